//! Functions that the hardware approximates. Here they have the full precision of `f64`.
//!
//! Comparisons of their results must allow the error that the manual allows.

use crate::float::F32;

/// A function of the multi-function unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Function {
    /// The argument is in turns.
    Cosine,
    Sine,
    Exponential,
    Logarithm,
    Reciprocal,
    ReciprocalRoot,
    Root,
    Tangent,
}

/// The function of a single-precision number.
pub fn single(function: Function, bits: u64) -> u64 {
    let x = f64::from(f32::from_bits(bits as u32));
    F32.from_f64(double(function, x))
}

pub fn double(function: Function, x: f64) -> f64 {
    match function {
        Function::Cosine => turns(x).cos(),
        Function::Sine if x == 0.0 => x,
        Function::Sine => turns(x).sin(),
        Function::Exponential => x.exp2(),
        Function::Logarithm => x.log2(),
        Function::Reciprocal => 1.0 / x,
        Function::ReciprocalRoot => 1.0 / x.sqrt(),
        Function::Root => x.sqrt(),
        Function::Tangent => x.tanh(),
    }
}

/// Converts turns to radians, after removing whole turns.
fn turns(x: f64) -> f64 {
    (x - x.round()) * std::f64::consts::TAU
}
