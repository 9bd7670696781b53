//! The number of registers that a thread may have. [`assign`] searches for the order of instructions and the allocation
//! that make the best of them: the two depend on each other, because values that are live together must fit.

mod search;

use crate::Options;
use crate::input::{Env, Function as Input, Instr, Launch, Operand, Signature, Symbol};
use crate::target::{MAX_REGISTERS, REGISTER_UNIT, SM_REGISTERS, Target, WARP};
use ptx_isa::FormId;

pub(crate) use search::{MUCH_SPILLED, assign};

/// The smallest possible limit.
pub(crate) const FEWEST: u32 = 24;

/// The maximum number of registers per thread that the launch bounds and the options allow, as ptxas counts them.
///
/// Directives have priority over options: `--maxrregcount` counts only if the kernel has neither `.maxnreg` nor a
/// number of threads. `.minnctapersm` counts only if that number of blocks fits on the multiprocessor; ptxas warns that
/// it ignores larger ones.
pub fn limit(launch: &Launch, options: &Options) -> u32 {
    let Bounds { warps, blocks } = Bounds::of(launch, options);
    let shared = warps.map(|warps| {
        let limit = SM_REGISTERS / (warps * blocks.unwrap_or(1)) / WARP;
        limit - limit % REGISTER_UNIT
    });
    let limit = match launch.maxnreg.filter(|&most| most <= MAX_REGISTERS) {
        Some(most) if blocks.is_some() => Some(most.min(shared.unwrap_or(most))),
        Some(most) => Some(most),
        None => shared.or(options.max_registers),
    };
    limit.unwrap_or(MAX_REGISTERS).clamp(FEWEST, MAX_REGISTERS)
}

/// The number of registers that a thread can use while as many blocks fit on a multiprocessor as `.minnctapersm` states.
/// `None` if the directive is absent or does not count.
pub(crate) fn stated(launch: &Launch, options: &Options) -> Option<u32> {
    Bounds::of(launch, options).blocks.map(|_| limit(launch, options))
}

/// The warps of a block and the blocks of a multiprocessor, as far as the launch bounds state them and they fit on the
/// multiprocessor.
struct Bounds {
    warps: Option<u32>,
    blocks: Option<u32>,
}

impl Bounds {
    fn of(launch: &Launch, options: &Options) -> Bounds {
        let (most_warps, most_blocks) =
            Target::nearest(options.sm).map_or((0, 0), |target| (target.limits.warps, target.limits.blocks));
        let warps = threads(launch).map(|threads| threads.div_ceil(WARP).max(1));
        let warps = warps.filter(|&warps| warps <= most_warps);
        let fits = |&blocks: &u32| {
            (1..=most_blocks).contains(&blocks) && warps.is_some_and(|warps| warps * blocks <= most_warps)
        };
        Bounds { warps, blocks: launch.minnctapersm.filter(fits) }
    }
}

/// The maximum number of threads of a block, if the kernel states it.
fn threads(launch: &Launch) -> Option<u32> {
    let size = launch.reqntid.or(launch.maxntid)?;
    Some(size.iter().fold(1u32, |all, n| all.saturating_mul(*n)))
}

/// Why `setmaxnreg` of a function is ignored, so that threads keep their initial registers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fixed {
    /// The code is linked with other modules.
    Linked,
    /// Debug information states where PTX registers are.
    Debugged,
    /// The number of registers that the kernel starts with is unknown.
    Unknown,
    /// The function calls functions, which do not know the number of registers.
    Called,
    /// The code needs more registers than the kernel has at some point.
    TooFew,
}

/// The maximum number of registers that a thread may start with, if the function's `setmaxnreg` is honored; `None` for
/// a function without it. The launch bounds or options must state the number.
pub(crate) fn starts_with(env: &Env, func: &Input, options: &Options) -> Option<Result<u32, Fixed>> {
    if !func.contains(&[FormId::Setmaxnreg]) {
        return None;
    }
    let launch = &func.launch;
    let is_known = launch.maxnreg.is_some()
        || Bounds::of(launch, options).blocks.is_some()
        || options.max_registers.is_some() && threads(launch).is_none();
    let is_unknown_call = |instr: &Instr| {
        let callee = instr.operands.iter().find_map(|operand| match operand {
            Operand::Symbol(Symbol::Function(i), _) => env.functions.get(*i as usize),
            _ => None,
        });
        instr.opcode.form == FormId::Call && !callee.is_some_and(Signature::is_of_driver)
    };
    Some(match () {
        () if options.linking.is_object() => Err(Fixed::Linked),
        () if options.shows_registers => Err(Fixed::Debugged),
        () if !func.entry || func.instrs().any(is_unknown_call) => Err(Fixed::Called),
        () if !is_known => Err(Fixed::Unknown),
        () => Ok(limit(launch, options)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ptx_isa::Sm;

    /// The limit for a kernel with `.maxntid`, `.minnctapersm` and `.maxnreg`, and for `--maxrregcount`. Zero means
    /// that the kernel or the option gives no value.
    fn with(sm: u16, [threads, blocks, most, option]: [u32; 4]) -> u32 {
        let given = |n: u32| (n > 0).then_some(n);
        let launch = Launch {
            maxntid: given(threads).map(|n| [n, 1, 1]),
            minnctapersm: given(blocks),
            maxnreg: given(most),
            ..Launch::default()
        };
        limit(&launch, &Options { max_registers: given(option), ..Options::new(Sm::new(sm)) })
    }

    #[test]
    fn blocks_that_fit_share_the_registers() {
        assert_eq!([1, 2, 3, 4].map(|blocks| with(80, [256, blocks, 0, 0])), [255, 128, 80, 64]);
        assert_eq!(with(90, [1024, 2, 0, 0]), 32);
        assert_eq!(with(75, [100, 8, 0, 0]), 64);
        assert_eq!(with(80, [32, 32, 0, 0]), 64);
    }

    #[test]
    fn a_stated_number_of_blocks_is_enough() {
        let with = |blocks| {
            let launch = Launch { maxntid: Some([256, 1, 1]), minnctapersm: blocks, ..Launch::default() };
            stated(&launch, &Options::new(Sm::new(80)))
        };
        assert_eq!([None, Some(1), Some(2), Some(9)].map(with), [None, Some(255), Some(128), None]);
    }

    /// As in ptxas 13.0, which says that it ignores the directive.
    #[test]
    fn blocks_that_do_not_fit_do_not_count() {
        for sm in [75, 86, 89, 120] {
            assert_eq!(with(sm, [1024, 2, 0, 0]), 64, "sm_{sm}");
        }
        // Threads are rounded up to whole warps.
        assert_eq!(with(75, [100, 9, 0, 0]), 255);
        for (sm, most) in [(75, 16), (80, 32), (86, 16), (89, 24), (90, 32), (100, 32), (120, 24)] {
            assert!(with(sm, [32, most, 0, 0]) < 255, "sm_{sm}");
            assert_eq!(with(sm, [32, most + 1, 0, 0]), 255, "sm_{sm}");
        }
        assert_eq!(with(75, [0, 4, 0, 0]), 255);
    }

    #[test]
    fn directives_come_before_options() {
        assert_eq!(with(90, [0, 0, 0, 40]), 40);
        assert_eq!(with(90, [0, 4, 0, 40]), 40);
        assert_eq!(with(90, [512, 0, 0, 40]), 128);
        assert_eq!(with(90, [32, 64, 0, 40]), 255);
        assert_eq!(with(90, [0, 0, 100, 40]), 100);
        assert_eq!(with(90, [0, 0, 20, 0]), 24);
    }

    #[test]
    fn the_lower_of_two_directives_counts() {
        assert_eq!(with(75, [1024, 0, 100, 0]), 100);
        assert_eq!(with(75, [1024, 1, 100, 0]), 64);
        assert_eq!(with(75, [1024, 3, 100, 0]), 100);
        assert_eq!(with(75, [256, 2, 40, 0]), 40);
        assert_eq!(with(75, [256, 4, 200, 0]), 64);
        // A number that exceeds the available registers is ignored.
        assert_eq!(with(75, [512, 2, 300, 0]), 64);
    }
}
