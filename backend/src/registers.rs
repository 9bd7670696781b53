//! Instruction order and register allocation, which depend on each other: the values that are live together must fit.

use crate::CodegenError;
use crate::Options;
use crate::input::{Env, Function as Input, Instr, Launch, Operand, Signature, Symbol};
use crate::occupancy::warps_with;
use crate::ori::cfg::Cfg;
use crate::ori::ir::{Function, Value};
use crate::regalloc::counts::Counts;
use crate::regalloc::{self, Allocation, Within};
use crate::remat;
use crate::sched::pre::{Order, Plans};
use crate::session::Session;
use crate::switches::{Step, Switches};
use crate::target::{MAX_REGISTERS, REGISTER_UNIT, SM_REGISTERS, Target, WARP};
use ptx_isa::FormId;

/// The smallest possible limit.
pub(crate) const FEWEST: u32 = 24;
/// A function whose values have at most this number of registers together never spills and never limits the occupancy.
const FEW: u32 = 32;
/// The number of registers that allocation may take beyond those that an order was made for, for which a narrower order
/// is tried.
const NEARLY: u32 = 8;
/// The number of registers by which the limit of that order is lower.
const FEWER: u32 = 3;
/// The number of instructions for each of which recomputed values may add one so that more warps fit.
const PER_ADDED: usize = 21;
/// A function that stores and loads more bytes of spilled values, counted per instruction, needs many registers more
/// than there are. Half of the attempts to spill less are left out: the others help as much, and each takes long.
pub(crate) const MUCH_SPILLED: u32 = 512;
/// The number of registers by which allocation may exceed the maximum number of live ones, because of runs and
/// alignment.
const UNSURE: u32 = 8;

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

/// Orders the instructions of every block and assigns at most `limit` registers to values.
///
/// If values spill, cheap values are recomputed where they are read, as long as that reduces the spill traffic. Then
/// orders with fewer live values are tried, and the order with the least traffic is kept.
///
/// If nothing spills but fewer warps fit than the multiprocessor can hold, cheap values are recomputed outside loops if
/// more warps fit as a result. An order with fewer live values is tried if allocation takes more registers than the order
/// was made for and fewer warps fit as a result. At last, cheap values are also recomputed in loops, if that adds few
/// instructions and more warps fit as a result.
pub(crate) fn assign(
    func: &mut Function,
    target: &Target,
    limit: u32,
    options: &Options,
    session: &Session<'_>,
) -> Result<Allocation, CodegenError> {
    let checkpoint = session.checkpoint;
    let switches = options.switches;
    if options.opt_level == 0 || !switches.takes(Step::PreSched) {
        return regalloc::allocate_within(func, target, Within::registers(limit), switches, checkpoint);
    }
    let changes = func.facts.starts_with.is_some();
    let limit = Counts::of(func, &Cfg::new(func)).map_or(limit, |counts| counts.most(func));
    let mut search =
        Search { plans: Plans::new(func, target), tried: Vec::new(), target, switches, checkpoint };
    let order = search.plans.order(func, limit, checkpoint);
    let mut meant = order.meant();
    let all = Within::registers(limit);
    let all_values = func.values.iter().map(|value| u32::from(value.width)).sum::<u32>();
    if !changes && limit == MAX_REGISTERS && all_values <= FEW {
        return search.allocate(func, &order, all);
    }
    let mut unordered = func.clone();
    let mut best = search.allocate(func, &order, all);
    search.tried.push(order);
    let traffic = |func: &Function| func.frame.spill_stores + func.frame.spill_loads;
    // First values that are live where the pressure is high, then values that got no register.
    let mut crowding = true;
    while let Ok(Allocation { spilled, .. }) = &best
        && traffic(func) > 0
        && switches.takes(Step::Remat)
    {
        let mut values = spilled.clone();
        if crowding {
            values.extend(remat::crowding(&unordered, limit.saturating_sub(UNSURE)));
        }
        let less = Within { registers: limit, traffic: traffic(func) - 1 };
        let other = search.remade(&unordered, &values, usize::MAX, limit, less);
        match other {
            Some((found, of_remade, remade)) => {
                (*func, best) = (found.0, Ok(found.1));
                (search, unordered) = (of_remade, remade);
            }
            None if crowding => {}
            None => break,
        }
        crowding = false;
    }
    for share in [7, 6, 4, 0] {
        if best.is_ok() && (traffic(func) == 0 || !switches.takes(Step::RetrySpills)) {
            break;
        }
        if best.is_ok() && traffic(func) > MUCH_SPILLED && matches!(share, 6 | 0) {
            continue;
        }
        let most = if best.is_ok() { traffic(func) - 1 } else { u32::MAX };
        let less = Within { registers: limit, traffic: most };
        if let Some(found) = search.again(&unordered, limit * share / 8, less) {
            (*func, best) = (found.0, Ok(found.1));
        }
    }
    let warps = |registers: u32| warps_with(registers).min(target.limits.warps);
    // The maximum number of registers, but at least `least`, with which more warps fit.
    let fewer =
        |registers: u32, least: u32| (least..registers).rev().find(|&fewer| warps(fewer) > warps(registers));
    let free = func.free_registers(target);
    if let Ok(Allocation { registers, .. }) = best
        && !changes
        && switches.takes(Step::Remat)
        && traffic(func) == 0
        && let Some(most) = fewer(registers, free)
    {
        let idle = remat::idle(&unordered, free.saturating_sub(UNSURE), registers - most);
        let other =
            search.remade(&unordered, &idle, usize::MAX, limit, Within { registers: most, traffic: 0 });
        if let Some((found, of_remade, remade)) = other.filter(|(found, ..)| found.1.registers <= most) {
            (*func, best) = (found.0, Ok(found.1));
            meant = of_remade.tried.last().map_or(meant, Order::meant);
            (search, unordered) = (of_remade, remade);
        }
    }
    if let Ok(Allocation { registers, .. }) = best
        && !changes
        && switches.takes(Step::RetryOccupancy)
        && registers <= meant + NEARLY
        && let Some(most) = fewer(registers, meant)
    {
        let less = Within { registers: most, traffic: traffic(func) };
        let found = search.again(&unordered, meant.saturating_sub(FEWER), less);
        if let Some(found) = found.filter(|(_, allocation)| allocation.registers <= most) {
            (*func, best) = (found.0, Ok(found.1));
        }
    }
    if let Ok(Allocation { registers, .. }) = best
        && !changes
        && switches.takes(Step::Remat)
        && traffic(func) == 0
        && let Some(most) = fewer(registers, free)
    {
        let mut ordered = unordered.clone();
        if let Some(order) = search.tried.iter().min_by_key(|order| order.most_live()) {
            order.apply(&mut ordered);
        }
        let values = remat::relieving(&ordered, most.saturating_sub(UNSURE), most);
        let longest = length(&unordered) * (PER_ADDED + 1) / PER_ADDED;
        let other = search.remade(&unordered, &values, longest, most, Within { registers: most, traffic: 0 });
        if let Some((found, ..)) = other.filter(|(found, ..)| found.1.registers <= most) {
            (*func, best) = (found.0, Ok(found.1));
        }
    }
    best
}

fn length(func: &Function) -> usize {
    func.blocks.iter().map(|block| block.insts.len()).sum()
}

/// The orders of one function that have been tried.
struct Search<'a> {
    plans: Plans,
    tried: Vec<Order>,
    target: &'a Target,
    switches: Switches,
    checkpoint: &'a dyn Fn(),
}

impl<'a> Search<'a> {
    fn allocate(
        &self,
        func: &mut Function,
        order: &Order,
        within: Within,
    ) -> Result<Allocation, CodegenError> {
        order.apply(func);
        let result = regalloc::allocate_within(func, self.target, within, self.switches, self.checkpoint);
        // Another order may avoid the error. Its result would be correct, but it must not hide the defect from tests.
        debug_assert!(!matches!(result, Err(CodegenError::Internal { .. })), "{result:?}");
        result
    }

    /// The first order of the function with `values` recomputed where they are read, the search for more of them, and that
    /// function without an order. `None` if nothing is recomputed, the function has more than `longest` instructions as
    /// a result, or the allocation exceeds the bounds.
    fn remade(
        &self,
        unordered: &Function,
        values: &[Value],
        longest: usize,
        live: u32,
        within: Within,
    ) -> Option<((Function, Allocation), Search<'a>, Function)> {
        if values.is_empty() {
            return None;
        }
        let mut remade = unordered.clone();
        if !remat::remake(&mut remade, values) || length(&remade) > longest {
            return None;
        }
        let mut search = Search { plans: Plans::new(&remade, self.target), tried: Vec::new(), ..*self };
        let found = search.again(&remade, live, within)?;
        Some((found, search, remade))
    }

    /// The function in an order with at most `live` live registers, if the order is new and its allocation stays within
    /// the bounds. If another order had a result that must be improved, fewer registers must be live.
    fn again(&mut self, unordered: &Function, live: u32, within: Within) -> Option<(Function, Allocation)> {
        let order = self.plans.order(unordered, live, self.checkpoint);
        let improves = within.traffic < u32::MAX;
        let has_no_use = |tried: &Order| tried.is_as(&order) || improves && !order.is_narrower_than(tried);
        if self.tried.iter().any(has_no_use) || within.traffic == 0 && !order.may_fit(within.registers) {
            return None;
        }
        let mut func = unordered.clone();
        let result = self.allocate(&mut func, &order, within);
        self.tried.push(order);
        Some((func, result.ok()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ori::text;
    use crate::switches::Switches;
    use ptx_isa::Sm;
    use std::fmt::Write as _;

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

    /// A function for which only 32 registers are free. It reads addresses in the frame before and after a block in which
    /// `live` values are live; if `repeats`, the reads after that block are in a loop.
    fn crowded(addresses: usize, live: usize, repeats: bool) -> String {
        let mut body = String::from("entry \"f\" {\nb0:\n%v0:r = S2R{sr=0x21}\n");
        for i in 1..=addresses {
            writeln!(body, "%v{i}:r, _, _ = IADD3 R1, {}, RZ\nSTL{{offset=0x0}} %v{i}, %v0", 16 * i).unwrap();
        }
        body += "%v100:p, _ = ISETP.LT.U32.AND %v0, 0x5, PT\nBRA %v100, b1, b2\nb1:\n";
        for i in 0..live {
            writeln!(body, "%v{}:r = LDS{{offset={}}} RZ, RZ", 200 + i, 4 * i).unwrap();
        }
        for i in 1..live {
            let before = if i == 1 { 200 } else { 299 + i };
            writeln!(body, "%v{}:r, _, _ = IADD3 %v{before}, %v{}, RZ", 300 + i, 200 + i).unwrap();
        }
        // The sum of all values is needed with each of them.
        for i in 0..live {
            let (value, sum) = (200 + i, 299 + live);
            writeln!(body, "%v{}:r = LOP3{{lut=0x3c}} %v{value}, %v{sum}, RZ", 400 + i).unwrap();
            writeln!(body, "STS{{offset={}}} RZ, RZ, %v{}", 4 * i, 400 + i).unwrap();
        }
        body += "JUMP b2\nb2:\n";
        for i in 1..=addresses {
            writeln!(body, "STL{{offset=0x0}} %v{i}, %v0").unwrap();
        }
        if repeats {
            body += "%v101:r = LDS{offset=0x0} RZ, RZ\n";
            body += "%v102:p, _ = ISETP.LT.U32.AND %v101, 0x5, PT\nBRA %v102, b2, b3\nb3:\n";
        }
        body + "EXIT\n}"
    }

    fn registers(body: &str, switches: &str) -> u32 {
        let switches = Switches::parse(switches).expect("the names of steps");
        let mut func = text::parse(body).unwrap_or_else(|e| panic!("{e}\n{body}"));
        let options = Options { switches, ..Options::new(Sm::new(80)) };
        let target = Target::of(options.sm).expect("a target");
        let assigned = assign(&mut func, target, MAX_REGISTERS, &options, &Session::default());
        assigned.expect("allocates").registers
    }

    #[test]
    fn cheap_values_do_not_limit_the_occupancy() {
        let body = crowded(20, 20, false);
        let (few, many) = (registers(&body, ""), registers(&body, "-OriDoRemat"));
        assert!(few <= 32 && many > 32, "{few} {many}");
    }

    #[test]
    fn a_few_cheap_values_are_recomputed_in_loops() {
        let body = crowded(4, 25, true);
        let (few, many) = (registers(&body, ""), registers(&body, "-OriDoRemat"));
        assert!(few <= 32 && many > 32, "{few} {many}");
        // Twenty of them would make the function an eighth longer.
        let many = registers(&crowded(20, 20, true), "");
        assert!(many > 32, "{many}");
    }
}
