//! The search for an order and an allocation with few spills that lets many warps run.

use crate::CodegenError;
use crate::Options;
use crate::occupancy::warps_with;
use crate::ori::cfg::Cfg;
use crate::ori::ir::{Function, Value};
use crate::regalloc::counts::Counts;
use crate::regalloc::{self, Allocated, Within};
use crate::remat;
use crate::sched::pre::{Order, Plans, SPARE};
use crate::session::Session;
use crate::switches::{Step, Switches};
use crate::target::{MAX_REGISTERS, Target};

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
/// than there are. Only one of two attempts to spill less is made: the other does not help, and takes long.
pub(crate) const MUCH_SPILLED: u32 = 512;
/// The number of registers by which allocation may exceed the maximum number of live ones, because of runs and
/// alignment.
const UNSURE: u32 = 8;

/// Orders the instructions of every block and assigns at most `limit` registers to values.
///
/// If values spill, cheap values are recomputed where they are read, as long as that reduces the spill traffic. Then
/// orders with fewer live values are tried, and the order with the least traffic is kept.
///
/// If nothing spills but fewer warps fit than the multiprocessor can hold, three changes are tried, each of which counts
/// if more warps fit as a result: cheap values are recomputed outside loops; if allocation takes more registers than the
/// order was made for, an order with fewer live values is made; cheap values are recomputed in loops too, if that adds few
/// instructions.
pub(crate) fn assign(
    func: &mut Function,
    target: &Target,
    limit: u32,
    options: &Options,
    session: &Session<'_>,
) -> Result<Allocated, CodegenError> {
    let checkpoint = session.checkpoint;
    let switches = options.switches;
    if options.opt_level == 0 || !switches.takes(Step::PreSched) {
        return regalloc::allocate_within(func, target, Within::registers(limit), switches, checkpoint);
    }
    let changes = func.facts.starts_with.is_some();
    let limit = Counts::of(func, &Cfg::new(func)).map_or(limit, |counts| counts.most(func));
    let setting = Setting { target, limit, switches, checkpoint };
    let mut plans = Plans::new(func, target);
    let order = plans.order(func, limit, checkpoint);
    let all = Within::registers(limit);
    let all_values = func.values.iter().map(|value| u32::from(value.width)).sum::<u32>();
    if !changes && limit == MAX_REGISTERS && all_values <= FEW {
        return setting.allocate(func, &order, all);
    }
    let unordered = func.clone();
    let best = setting.allocate(func, &order, all);
    let meant = order.meant();
    let source = Source { unordered, plans, tried: vec![order] };
    let mut search = Search { setting, func, best, source, meant };
    search.recompute_spilled();
    search.spill_less();
    if !changes {
        search.recompute_idle();
        search.narrow();
        search.recompute_in_loops();
    }
    search.best
}

/// What all attempts have in common.
#[derive(Clone, Copy)]
struct Setting<'a> {
    target: &'a Target,
    /// The maximum number of registers.
    limit: u32,
    switches: Switches,
    checkpoint: &'a dyn Fn(),
}

impl Setting<'_> {
    fn allocate(
        &self,
        func: &mut Function,
        order: &Order,
        within: Within,
    ) -> Result<Allocated, CodegenError> {
        order.apply(func);
        let result = regalloc::allocate_within(func, self.target, within, self.switches, self.checkpoint);
        // Another order may avoid the error. Its result would be correct, but it must not hide the defect from tests.
        debug_assert!(!matches!(result, Err(CodegenError::Internal { .. })), "{result:?}");
        result
    }
}

/// An allocated function.
type Found = (Function, Allocated);

/// A function without an order, and the orders of it that have been tried.
struct Source {
    unordered: Function,
    plans: Plans,
    tried: Vec<Order>,
}

impl Source {
    /// The function in an order with at most `live` live registers, if the order is new and its allocation stays within
    /// the bounds. If another order had a result that must be improved, fewer registers must be live.
    fn again(&mut self, setting: &Setting<'_>, live: u32, within: Within) -> Option<Found> {
        let order = self.plans.order(&self.unordered, live, setting.checkpoint);
        let improves = within.traffic < u32::MAX;
        let has_no_use = |tried: &Order| tried.is_as(&order) || improves && !order.is_narrower_than(tried);
        if self.tried.iter().any(has_no_use) || within.traffic == 0 && !order.may_fit(within.registers) {
            return None;
        }
        let mut func = self.unordered.clone();
        let result = setting.allocate(&mut func, &order, within);
        self.tried.push(order);
        Some((func, result.ok()?))
    }

    /// The function with `values` recomputed where they are read, in its first order. `None` if nothing is recomputed, the
    /// function has more than `longest` instructions as a result, or the allocation exceeds the bounds.
    fn remade(
        &self,
        setting: &Setting<'_>,
        values: &[Value],
        longest: usize,
        live: u32,
        within: Within,
    ) -> Option<(Found, Source)> {
        if values.is_empty() {
            return None;
        }
        let mut unordered = self.unordered.clone();
        if !remat::remake(&mut unordered, values) || length(&unordered) > longest {
            return None;
        }
        let plans = Plans::new(&unordered, setting.target);
        let mut source = Source { unordered, plans, tried: Vec::new() };
        let found = source.again(setting, live, within)?;
        Some((found, source))
    }
}

fn length(func: &Function) -> usize {
    func.blocks.iter().map(|block| block.insts.len()).sum()
}

struct Search<'a> {
    setting: Setting<'a>,
    /// The function with the best result.
    func: &'a mut Function,
    best: Result<Allocated, CodegenError>,
    /// The function that has that result in some order.
    source: Source,
    /// The number of registers that the first order of the source was made for.
    meant: u32,
}

impl Search<'_> {
    /// The bytes that spills store and load.
    fn traffic(&self) -> u32 {
        self.func.frame.spill_stores + self.func.frame.spill_loads
    }

    fn keep(&mut self, (func, allocated): Found) {
        *self.func = func;
        self.best = Ok(allocated);
    }

    /// Recomputes spilled values: first together with values that are live where the pressure is high.
    fn recompute_spilled(&mut self) {
        let limit = self.setting.limit;
        let mut crowding = true;
        while let Ok(Allocated { allocation, .. }) = &self.best
            && self.traffic() > 0
            && self.setting.switches.takes(Step::Remat)
        {
            let mut values = allocation.spilled.clone();
            if crowding {
                values.extend(remat::crowding(&self.source.unordered, limit.saturating_sub(UNSURE)));
            }
            let less = Within { registers: limit, traffic: self.traffic() - 1 };
            match self.source.remade(&self.setting, &values, usize::MAX, limit, less) {
                Some((found, source)) => {
                    self.keep(found);
                    self.source = source;
                }
                None if crowding => {}
                None => break,
            }
            crowding = false;
        }
    }

    /// Tries an order with somewhat fewer live values, then one with the fewest. Others between them do not help.
    fn spill_less(&mut self) {
        let limit = self.setting.limit;
        for live in [limit * 7 / 8, 0] {
            let fits = self.best.is_ok();
            if fits && (self.traffic() == 0 || !self.setting.switches.takes(Step::RetrySpills)) {
                break;
            }
            if fits && self.traffic() > MUCH_SPILLED && live == 0 {
                break;
            }
            let most = if fits { self.traffic() - 1 } else { u32::MAX };
            let less = Within { registers: limit, traffic: most };
            if let Some(found) = self.source.again(&self.setting, live, less) {
                self.keep(found);
            }
        }
    }

    /// The number of registers of the best result, and the maximum number, but at least `least`, with which more warps fit
    /// than with those.
    fn fewer(&self, least: u32) -> Option<(u32, u32)> {
        let warps = |registers: u32| warps_with(registers).min(self.setting.target.limits.warps);
        let registers = self.best.as_ref().ok()?.allocation.registers;
        let fewer = (least..registers).rev().find(|&fewer| warps(fewer) > warps(registers))?;
        Some((registers, fewer))
    }

    /// [`Search::fewer`], if values may be recomputed to get there.
    fn fewer_by_recomputing(&self) -> Option<(u32, u32)> {
        let may = self.setting.switches.takes(Step::Remat) && self.traffic() == 0;
        may.then(|| self.fewer(self.func.free_registers(self.setting.target))).flatten()
    }

    /// Recomputes cheap values outside loops if more warps fit as a result.
    fn recompute_idle(&mut self) {
        let Some((registers, most)) = self.fewer_by_recomputing() else { return };
        let free = self.func.free_registers(self.setting.target);
        let idle = remat::idle(&self.source.unordered, free.saturating_sub(UNSURE), registers - most);
        let within = Within { registers: most, traffic: 0 };
        // All of these registers may be live. An order for more of them would only be narrowed step by step.
        let live = most + SPARE;
        let remade = self.source.remade(&self.setting, &idle, usize::MAX, live, within);
        if let Some((found, source)) = remade.filter(|(found, _)| found.1.allocation.registers <= most) {
            self.keep(found);
            self.meant = source.tried.last().map_or(self.meant, Order::meant);
            self.source = source;
        }
    }

    /// Tries an order with fewer live values if allocation takes a few registers more than the order was made for, and
    /// fewer warps fit as a result.
    fn narrow(&mut self) {
        let Some((registers, most)) = self.fewer(self.meant) else { return };
        if registers > self.meant + NEARLY || !self.setting.switches.takes(Step::RetryOccupancy) {
            return;
        }
        let less = Within { registers: most, traffic: self.traffic() };
        let found = self.source.again(&self.setting, self.meant.saturating_sub(FEWER), less);
        if let Some(found) = found.filter(|(_, allocated)| allocated.allocation.registers <= most) {
            self.keep(found);
        }
    }

    /// Recomputes cheap values also in loops if more warps fit as a result and few instructions are added.
    fn recompute_in_loops(&mut self) {
        let Some((_, most)) = self.fewer_by_recomputing() else { return };
        let Source { unordered, tried, .. } = &self.source;
        let mut ordered = unordered.clone();
        if let Some(order) = tried.iter().min_by_key(|order| order.most_live()) {
            order.apply(&mut ordered);
        }
        let values = remat::relieving(&ordered, most.saturating_sub(UNSURE), most);
        let longest = length(unordered) * (PER_ADDED + 1) / PER_ADDED;
        let within = Within { registers: most, traffic: 0 };
        let remade = self.source.remade(&self.setting, &values, longest, most, within);
        if let Some((found, _)) = remade.filter(|(found, _)| found.1.allocation.registers <= most) {
            self.keep(found);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ori::text;
    use ptx_isa::Sm;
    use std::fmt::Write as _;

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
        assigned.expect("allocates").allocation.registers
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
