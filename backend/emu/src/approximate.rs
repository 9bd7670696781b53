//! Functions that the hardware approximates, here as exact as `f64` gives them.
//!
//! Comparisons of their results allow the error that the manual allows.

use crate::float::F32;

/// A function of the multi-function unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Function {
    /// Of turns.
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

/// Radians of the part of a turn.
fn turns(x: f64) -> f64 {
    (x - x.round()) * std::f64::consts::TAU
}
