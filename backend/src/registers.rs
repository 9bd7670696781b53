//! The order of instructions and their registers, which depend on each other: what is live together has to fit.

use crate::CodegenError;
use crate::Options;
use crate::input::Launch;
use crate::ori::ir::Function;
use crate::regalloc::{self, Allocation};
use crate::sched::pre;
use crate::session::Session;
use crate::target::{MAX_REGISTERS, SM_REGISTERS, Target, WARP};

/// Registers are given out per warp, in units.
const REGISTERS_PER_THREAD_UNIT: u32 = 8;
/// No limit goes below.
const FEWEST: u32 = 24;

/// The most registers per thread that the launch bounds and the options leave, as ptxas counts them.
pub(crate) fn limit(launch: &Launch, options: &Options) -> u32 {
    let threads = launch.reqntid.or(launch.maxntid).map(|n| n.iter().product::<u32>().max(1));
    let from_launch = threads.map(|threads| {
        let warps = threads.div_ceil(WARP) * launch.minnctapersm.unwrap_or(1).max(1);
        let limit = SM_REGISTERS / warps.max(1) / WARP;
        limit - limit % REGISTERS_PER_THREAD_UNIT
    });
    let explicit = launch.maxnreg.or(options.max_registers);
    explicit.or(from_launch).unwrap_or(MAX_REGISTERS).clamp(FEWEST, MAX_REGISTERS)
}

/// Orders the instructions of every block and gives values registers, at most `limit`.
///
/// Where values go to memory, orders that keep fewer of them live are tried, and that with the least traffic stays.
pub(crate) fn assign(
    func: &mut Function,
    target: &Target,
    limit: u32,
    options: &Options,
    session: &Session<'_>,
) -> Result<Allocation, CodegenError> {
    let checkpoint = session.checkpoint;
    if options.opt_level == 0 {
        return regalloc::allocate_with(func, target, limit, checkpoint);
    }
    // Fewer values than this are never too many at once.
    let may_spill = limit < MAX_REGISTERS || func.values.len() > MAX_REGISTERS as usize / 2;
    let unordered = may_spill.then(|| func.clone());
    let attempt = |func: &mut Function, live: u32| {
        pre::schedule(func, live, checkpoint);
        let result = regalloc::allocate_with(func, target, limit, checkpoint);
        // Another order may do without, which is right but must not hide the defect from tests.
        debug_assert!(!matches!(result, Err(CodegenError::Internal { .. })), "{result:?}");
        result
    };
    let mut best = attempt(func, limit);
    for share in [7, 6, 4, 0] {
        let Some(unordered) = &unordered else { break };
        let traffic = |func: &Function| func.frame.spill_stores + func.frame.spill_loads;
        if best.is_ok() && traffic(func) == 0 {
            break;
        }
        let mut other = unordered.clone();
        let result = attempt(&mut other, limit * share / 8);
        if result.is_ok() && (best.is_err() || traffic(&other) < traffic(func)) {
            (*func, best) = (other, result);
        }
    }
    best
}
