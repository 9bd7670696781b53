//! Memory order from PTX to machine code, and the checker of it.

mod mutations;
mod pairs;
