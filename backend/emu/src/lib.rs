//! Two independent executions of a kernel, to compare: of PTX as its manual defines it, and of machine code as
//! the hardware runs it.
//!
//! [`ptx::run`] interprets the typed program that the compiler takes; [`machine::run`] executes encoded
//! instructions, a compiled function's or a cubin's. They share memory, floating-point formats and the
//! values of approximate functions and the functions of the driver, nothing else, and nothing with the compiler. What they do not know is a
//! [`Fault`], never a guess.

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
