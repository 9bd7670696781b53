//! Two independent ways to execute a kernel, for comparison: as PTX, according to the manual, and as machine code, in
//! the way the hardware executes it.
//!
//! [`ptx::run`] interprets the typed program that the compiler takes as input. [`machine::run`] executes the encoded
//! instructions of a compiled function or of a cubin. The two share memory, floating-point formats, the values of
//! approximate functions and the driver's functions, but nothing else, and they share no code with the compiler. For
//! anything that they do not implement, they return a [`Fault`] and never a guess.

pub mod approximate;
pub mod clock;
mod copies;
pub mod cubin;
pub mod device;
pub mod float;
mod launch;
pub mod machine;
pub mod matrix;
pub mod memory;
pub mod narrow;
pub mod ptx;
mod quads;
pub mod sparse;
mod system;
mod tensor;
pub mod tensormap;
pub mod texture;
pub mod trace;
mod transfers;
mod warpgroup;

pub use device::Device;
pub use launch::{Fault, FaultKind, Launch, WARP, Work};
