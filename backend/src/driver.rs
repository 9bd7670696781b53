//! Driver functions that no module declares: ptxas calls them for statements that have no machine instruction. Their
//! names, their parameters and the cases in which they are called were observed on ptxas 13.0.88.

mod bulk;
mod gradient;

pub use bulk::{BulkFunction, BulkSource};
pub use gradient::Gradient;
pub(crate) use gradient::is_reference;

use crate::abi::{self, Convention};
use crate::input::{Env, Instr, Param};
use crate::target::Target;
use ptx_isa::ScalarType;

/// The end of the prototypes of driver functions, for a linker: the registers of arguments and return address, and
/// those that the function overwrites. ptxas writes the same for all of them.
pub const OVERWRITES: &str = "|12p4r20sRx000000000000000000000000000000000000000000000000000000000000fff9";

/// One of these functions.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum DriverFunction {
    Bulk(BulkFunction),
    Gradient(Gradient),
}

impl DriverFunction {
    /// The function that a statement calls, perhaps only for some values of its operands; `None` if the target has
    /// instructions for all cases.
    pub fn of(env: &Env, target: &Target, instr: &Instr) -> Option<DriverFunction> {
        let gradient = || Gradient::of(env, instr).map(DriverFunction::Gradient);
        let bulk = || BulkFunction::of(instr).map(DriverFunction::Bulk);
        (target.driver_gradients.then(gradient).flatten())
            .or_else(|| target.driver_copies.then(bulk).flatten())
    }

    /// All functions, in the order of their numbers.
    pub fn all() -> impl Iterator<Item = DriverFunction> {
        let gradients = [false, true]
            .into_iter()
            .flat_map(|mode| (0..Gradient::COUNT).filter_map(move |number| Gradient::numbered(number, mode)));
        BulkFunction::all().map(DriverFunction::Bulk).chain(gradients.map(DriverFunction::Gradient))
    }

    /// The index in [`DriverFunction::all`].
    pub fn number(self) -> usize {
        DriverFunction::all().position(|other| other == self).expect("one of all")
    }

    /// The symbol name.
    pub fn name(self) -> String {
        match self {
            DriverFunction::Bulk(function) => function.name(),
            DriverFunction::Gradient(gradient) => gradient.name(),
        }
    }

    pub fn params(self) -> Vec<Param> {
        match self {
            DriverFunction::Bulk(function) => function.params(),
            DriverFunction::Gradient(gradient) => gradient.params(),
        }
    }

    pub fn returns(self) -> Vec<Param> {
        match self {
            DriverFunction::Bulk(_) => Vec::new(),
            DriverFunction::Gradient(gradient) => gradient.returns(),
        }
    }

    /// The prototype as text for a linker: a letter for the result and for each parameter, then [`OVERWRITES`].
    pub fn prototype(self) -> String {
        let result = match self {
            DriverFunction::Bulk(_) => "v",
            // An array of 32 bytes, the size of two vectors.
            DriverFunction::Gradient(_) => "b32",
        };
        let letter = |param: Param| match param.size {
            2 | 4 => "i".to_owned(),
            8 => "l".to_owned(),
            size => format!("b{size}"),
        };
        let params: String = self.params().into_iter().map(letter).collect();
        format!("#{result}{params}{OVERWRITES}")
    }

    pub fn convention(self) -> Convention {
        abi::convention(&self.params(), &self.returns())
    }
}

/// A parameter of the given size, aligned to its size.
fn param(ty: ScalarType, size: u32) -> Param {
    Param { name: String::new(), ty, size, is_array: false, align: size, offset: 0, reg: None, pointer: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::ArgumentPlace;
    use crate::ori::op::Dims;

    #[test]
    fn numbers_and_names_tell_them_apart() {
        let all: Vec<DriverFunction> = DriverFunction::all().collect();
        assert!(all.iter().enumerate().all(|(number, function)| function.number() == number));
        let mut names: Vec<String> = all.iter().map(|function| function.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all.len());
    }

    #[test]
    fn prototypes_are_those_that_ptxas_writes() {
        let of = |source, multicast| DriverFunction::Bulk(BulkFunction { source, multicast }).prototype();
        assert_eq!(of(BulkSource::Block, true), format!("#vllilil{OVERWRITES}"));
        let image = BulkSource::Tensor { dims: Dims::D5, image: true };
        assert_eq!(of(image, true), format!("#vllb20lb6il{OVERWRITES}"));
        assert_eq!(of(image, false), format!("#vllb20lb6l{OVERWRITES}"));
        let gradient =
            Gradient::numbered(3, true).map(|gradient| DriverFunction::Gradient(gradient).prototype());
        assert_eq!(gradient, Some(format!("#b32llb16b16b16b16i{OVERWRITES}")));
    }

    #[test]
    fn arguments_of_copies_are_where_ptxas_puts_them() {
        use ArgumentPlace::{Registers as R, Stack};
        let places =
            |source, multicast| DriverFunction::Bulk(BulkFunction { source, multicast }).convention().params;
        assert_eq!(places(BulkSource::Block, false), [R(4), R(6), R(8), R(10), R(12)]);
        assert_eq!(places(BulkSource::Block, true), [R(4), R(6), R(8), R(10), R(9), R(12)]);
        let tile = BulkSource::Tensor { dims: Dims::D2, image: false };
        assert_eq!(places(tile, false), [R(4), R(6), R(8), R(14), Stack(0)]);
        let image = BulkSource::Tensor { dims: Dims::D5, image: true };
        assert_eq!(places(image, true), [R(4), R(6), R(8), R(14), Stack(0), R(13), Stack(8)]);
    }
}
