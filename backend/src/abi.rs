//! The calling convention of device functions: the places of parameters and results, and the registers that a call
//! preserves.
//!
//! Observed on ptxas 13.0.88, the same on all targets. ptxas uses the convention if caller and callee are compiled
//! separately; for calls inside a module it may choose other registers. We pass parameters and results by the
//! convention in every call. The registers that a call preserves depend on the callee. [`Known`] describes functions
//! that are compiled before their callers, [`Preserved`] functions of objects with `.abi_preserve`.

use crate::input::Param;
use crate::ori::ir::{File, Reg};
use crate::target::HIDDEN_REGISTERS;

/// The first of the registers that pass parameters and results, and the last one plus one.
pub const FIRST: u8 = 4;
const END: u8 = 16;
/// The first register of the pair that holds the return address.
pub const RETURN_ADDRESS: u8 = 20;
/// For functions that execute `alloca`: a call passes the end of the stack in the first register, and keeps the start
/// of the caller's frame in the second. Neither passes a parameter, and the callee preserves the second.
pub const STACK_END: u8 = 3;
pub const FRAME: u8 = 2;
/// The least number of registers that kernels and functions with calls use, as ptxas counts registers.
pub const FEWEST_REGISTERS: u32 = 24;
/// At every call, the stack pointer is a multiple of this number of bytes.
pub const STACK_ALIGN: u32 = 8;
/// At the start of a kernel, the stack pointer is a multiple of this number of bytes. Every frame keeps that alignment,
/// so it also holds in functions of the same module.
pub const ENTRY_ALIGN: u32 = 16;

/// The only uniform register of routines of the runtime library. Where such a routine may be called, no value is in it
/// beyond the point where threads may diverge.
pub const ROUTINES_UNIFORM: Reg = Reg { file: File::UR, index: 35 };

/// Whether a called function preserves the register.
pub const fn is_preserved(reg: Reg) -> bool {
    match reg.file {
        File::R => matches!(reg.index, 1 | 2 | 16..=31) || (reg.index >= 32 && reg.index & 4 != 0),
        File::UR => reg.index >= 36 && reg.index < 64,
        File::B => reg.index >= 6,
        File::P | File::UP => false,
    }
}

/// The registers that a function preserves, if these are not those of the convention. `.abi_preserve` and
/// `.abi_preserve_control` state them. Only objects honor these directives: inside a module, callers and callees agree
/// without them. Driver functions preserve [more](Preserved::BY_DRIVER).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Preserved {
    /// The number of preserved general registers, from [`Preserved::START`] on.
    pub general: Option<u8>,
    /// The first preserved barrier; all later ones are preserved too.
    pub control: Option<u8>,
    /// The first register of the pair that holds the return address, unless it is the last preserved pair.
    pub return_address: Option<u8>,
}

impl Preserved {
    /// The first general register that `.abi_preserve` counts.
    const START: u8 = 16;
    /// With more general registers there would be no room for the return address.
    const MOST: u8 = 237;

    /// What driver functions preserve since sm_80. They overwrite only the registers in [`OVERWRITES`].
    ///
    /// [`OVERWRITES`]: crate::driver::OVERWRITES
    pub const BY_DRIVER: Preserved = Preserved {
        general: Some(u8::MAX - Preserved::START),
        return_address: Some(RETURN_ADDRESS),
        ..Preserved::BY_CONVENTION
    };

    pub const BY_CONVENTION: Preserved = Preserved { general: None, control: None, return_address: None };

    /// Whether a function with these directives preserves the register.
    pub const fn has(self, reg: Reg) -> bool {
        match (reg.file, self) {
            (File::R, Preserved { general: Some(count), .. }) => {
                matches!(reg.index, 1 | FRAME)
                    || reg.index >= Preserved::START && reg.index - Preserved::START < count
            }
            (File::B, Preserved { control: Some(first), .. }) => reg.index >= first,
            _ => is_preserved(reg),
        }
    }

    /// Whether a call of a function with these directives overwrites the register.
    pub const fn loses(self, reg: Reg) -> bool {
        is_pair(self.return_address(), reg) || !self.has(reg)
    }

    /// Its fields, with their names in the text form of the IR.
    pub fn parts(&mut self) -> [(&'static str, &mut Option<u8>); 3] {
        [
            ("preserves", &mut self.general),
            ("barriers_from", &mut self.control),
            ("returns_to", &mut self.return_address),
        ]
    }

    /// The first register of the pair that holds the return address.
    pub const fn return_address(self) -> u8 {
        match self {
            Preserved { return_address: Some(first), .. } => first,
            // The last even register of the preserved pairs.
            Preserved { general: Some(count), .. } => (Preserved::START - 2 + count) & !1,
            _ => RETURN_ADDRESS,
        }
    }

    /// The least number of registers that the function counts, and that a caller counts for it, as ptxas counts
    /// registers.
    pub fn fewest_registers(self) -> u32 {
        FEWEST_REGISTERS.max(u32::from(self.return_address()) + 2 + HIDDEN_REGISTERS)
    }

    /// The convention of a function with these directives, parameters and results. `None` if it is not known where
    /// ptxas places them.
    pub fn convention(self, params: &[Param], returns: &[Param]) -> Option<Convention> {
        if let Some(count) = self.general {
            // ptxas places parameters above R16 if they do not fit one after the other, although it fills gaps below.
            let room = END.min(self.return_address()) - FIRST;
            let is_open = params.iter().chain(returns).any(is_open);
            if is_open || count > Preserved::MOST || words_in_sequence(params, returns) > room.into() {
                return None;
            }
        }
        Some(convention(params, returns))
    }
}

/// Whether it is one of the two general registers from `first` on.
pub const fn is_pair(first: u8, reg: Reg) -> bool {
    matches!(reg.file, File::R) && (reg.index == first || reg.index == first + 1)
}

/// The number of registers of all parameters placed one after the other, or of all results if these take more.
pub fn words_in_sequence(params: &[Param], returns: &[Param]) -> u32 {
    let end = |list: &[Param]| {
        list.iter().fold(0u32, |end, param| {
            end.next_multiple_of(param.align.clamp(4, 16) / 4).saturating_add(words(param)).min(1 << 20)
        })
    };
    end(params).max(end(returns))
}

/// What a call of a function overwrites, for a function that is compiled before its callers. Such a function takes
/// parameters and returns results by the convention, and preserves no registers except R1 and R2.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Known {
    /// The first register of the pair that holds the return address.
    pub return_address: u8,
    /// The number of registers that the function and its callees use, as ptxas counts them.
    pub registers: u32,
    /// A bit for each register that the function overwrites, except the return address.
    pub general: [u128; 2],
    /// The function or one of its callees may yield. Then threads that wait at a barrier for the yielding threads may
    /// continue.
    pub yields: bool,
    /// The function, or a function that it calls, keeps barriers of its callers in its frame.
    pub saves_barriers: bool,
}

impl Known {
    /// A function that overwrites no general register and, in the other files, the same registers as any function. It
    /// may yield and save barriers.
    pub const fn new(return_address: u8, registers: u32) -> Known {
        Known { return_address, registers, general: [0; 2], yields: true, saves_barriers: true }
    }

    pub const fn has(&self, reg: Reg) -> bool {
        match reg.file {
            File::R => self.general[(reg.index >> 7) as usize] >> (reg.index & 127) & 1 == 1,
            File::P | File::B | File::UR | File::UP => !is_preserved(reg),
        }
    }

    /// The stack pointer has its old value when a function returns.
    pub fn add(&mut self, index: u8) {
        if index != 1 {
            self.general[usize::from(index >> 7)] |= 1 << (index & 127);
        }
    }
}

/// Where a parameter or a result is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ArgumentPlace {
    /// In consecutive registers from this one on, four bytes in each.
    Registers(u8),
    /// In memory, this number of bytes above the caller's stack pointer.
    Stack(u32),
}

/// How a function with given parameters and results is called.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Convention {
    /// The place of each parameter, in the same order.
    pub params: Vec<ArgumentPlace>,
    pub results: Results,
    /// The number of bytes that parameters take on the stack.
    pub stack_bytes: u32,
}

/// Where the results are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Results {
    /// In registers: the first register of each result, in the order of the results.
    Registers(Vec<u8>),
    /// In local memory of the caller, whose address is passed in the first register.
    Memory {
        /// The offset of each result.
        starts: Vec<u32>,
        bytes: u32,
    },
}

/// A set of free registers. One bit represents a register of the convention; the lowest bit is the first one.
struct Free(u16);

impl Free {
    /// Takes the lowest free run of registers that fits the parameter.
    fn take(&mut self, param: &Param) -> Option<u8> {
        let words = words(param);
        let align = (param.align.clamp(4, 16) / 4) as u8;
        let run = |first: u8| (((1u32 << words) - 1) << (first - FIRST)) as u16;
        let fits = |first: &u8| {
            first.is_multiple_of(align)
                && u32::from(*first) + words <= END.into()
                && self.0 & run(*first) == 0
        };
        let first = (words <= u32::from(END - FIRST)).then(|| (FIRST..END).find(fits))??;
        self.0 |= run(first);
        Some(first)
    }
}

/// The number of registers of a parameter.
pub fn words(param: &Param) -> u32 {
    param.size.div_ceil(4).max(1)
}

/// Whether a parameter is an array without a size, such as `.param .b8 list[]`. The call determines its size.
pub fn is_open(param: &Param) -> bool {
    param.size == 0
}

/// The convention for a function with these parameters and results.
pub fn convention(params: &[Param], returns: &[Param]) -> Convention {
    let mut free = Free(0);
    let mut taken = Free(0);
    let in_registers: Option<Vec<u8>> = returns.iter().map(|result| taken.take(result)).collect();
    let results = match in_registers {
        Some(places) => Results::Registers(places),
        None => {
            free.0 = 1;
            // Several results need not be placed as by ptxas, because such functions are never visible to other
            // modules.
            let mut bytes = 0u32;
            let place = |result: &Param| {
                let start = bytes;
                bytes = bytes.saturating_add(4 * words(result));
                start
            };
            let starts = returns.iter().map(place).collect();
            Results::Memory { starts, bytes }
        }
    };
    let mut stack_bytes = 0u32;
    let mut place = |param: &Param| {
        if is_open(param) {
            // This parameter is the last; the call determines its length.
            stack_bytes = stack_bytes.next_multiple_of(param.align.max(4));
            return ArgumentPlace::Stack(stack_bytes);
        }
        if let Some(register) = free.take(param) {
            return ArgumentPlace::Registers(register);
        }
        let start = stack_bytes.next_multiple_of(param.align.max(4));
        stack_bytes = start.saturating_add(param.size.max(4));
        ArgumentPlace::Stack(start)
    };
    let params = params.iter().map(&mut place).collect();
    Convention { params, results, stack_bytes }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ptx_isa::ScalarType;

    /// Parameters with these sizes and alignments.
    fn params(list: &[(u32, u32)]) -> Vec<Param> {
        let param = |&(size, align): &(u32, u32)| Param {
            name: String::new(),
            ty: ScalarType::B8,
            size,
            is_array: true,
            align,
            offset: 0,
            reg: None,
            pointer: None,
        };
        list.iter().map(param).collect()
    }

    fn places(list: &[(u32, u32)]) -> Vec<ArgumentPlace> {
        convention(&params(list), &[]).params
    }

    #[test]
    fn parameters_take_the_lowest_run_that_is_free() {
        use ArgumentPlace::{Registers as R, Stack as S};
        let (b8, b16, b32, b64) = ((1, 1), (2, 2), (4, 4), (8, 8));
        assert_eq!(places(&[b32, b64, b16, b8, b32, b64, b32]), [R(4), R(6), R(5), R(8), R(9), R(10), R(12)]);
        assert_eq!(
            places(&[(16, 16), b32, (12, 8), (4, 4), (3, 1), b32]),
            [R(4), R(8), R(10), R(9), R(13), R(14)]
        );
        assert_eq!(places(&[b32, (32, 16), b32]), [R(4), R(8), R(5)]);
        assert_eq!(places(&[b32, (16, 16), b32, b32]), [R(4), R(8), R(5), R(6)]);
        assert_eq!(places(&[b32, (44, 4), b32]), [R(4), R(5), S(0)]);
        assert_eq!(places(&[(48, 16), b32, b8, b64]), [R(4), S(0), S(4), S(8)]);
        assert_eq!(places(&[b32, (64, 8), b32]), [R(4), S(0), R(5)]);
        let mut many = vec![b32; 11];
        many.extend([b64, b32, b8, b16, b64, (12, 4)]);
        assert_eq!(places(&many)[11..], [S(0), R(15), S(8), S(12), S(16), S(24)]);
    }

    #[test]
    fn large_results_are_in_memory_of_the_caller() {
        let of = |size| convention(&params(&[(4, 4), (8, 8)]), &params(&[(size, 8)]));
        assert_eq!(of(48).results, Results::Registers(vec![4]));
        assert_eq!(of(64).results, Results::Memory { starts: vec![0], bytes: 64 });
        assert_eq!(of(64).params, [ArgumentPlace::Registers(5), ArgumentPlace::Registers(6)]);
        let many = convention(&[], &params(&[(8, 8); 7]));
        assert_eq!(many.results, Results::Memory { starts: vec![0, 8, 16, 24, 32, 40, 48], bytes: 56 });
    }

    #[test]
    fn lists_of_open_length_are_on_the_stack() {
        assert_eq!(places(&[(4, 4), (0, 8)]), [ArgumentPlace::Registers(4), ArgumentPlace::Stack(0)]);
        assert_eq!(places(&[(48, 16), (4, 4), (0, 8)])[2], ArgumentPlace::Stack(8));
    }
}
