//! Finds registers that may differ between the threads of a warp.
//!
//! A register varies in these cases: it is computed from `%tid`, `%laneid` and similar registers; it is loaded from an
//! address that varies; the instruction has a different result in each thread; or the paths on which it is written
//! depend on a varying value. All writes of a register are combined. Values that are passed through memory and calls
//! count as equal in all threads, so that few registers are reported as varying.

use ptx_backend::input::Operand;
use ptx_isa::{FormId, Mod, SpecialReg};

use super::regions::Regions;
use super::{BlockId, Flow, Instr, Value};

/// The maximum number of passes over the statements.
const PASSES: usize = 12;

/// The answer for one body.
pub struct Uniformity {
    /// By register.
    varies: Box<[bool]>,
    /// For each block: the varying branch of which only one side leads to the block; if there are several, the last one
    /// in text order.
    branch: Box<[Option<BlockId>]>,
}

impl Uniformity {
    /// The branch because of which some threads of a warp reach a block and others do not, depending on computed
    /// values.
    pub fn divergent(&self, block: BlockId) -> Option<BlockId> {
        self.branch[block as usize]
    }

    pub(super) fn new(flow: &Flow<'_>) -> Self {
        let blocks = flow.graph().blocks().len();
        let registers = flow.function.regs.len();
        let mut known = Self { varies: vec![false; registers].into(), branch: vec![None; blocks].into() };
        // For each block: whether threads of a warp may reach it separately.
        let mut apart = vec![false; blocks];
        let mut is_followed = vec![false; blocks];
        let mut regions = Regions::new(flow);
        for _ in 0..PASSES {
            let mut changed = false;
            for block in flow.graph().reached_blocks() {
                for instr in flow.instructions(block) {
                    changed |= known.instruction(flow, instr, apart[block as usize]);
                }
            }
            for branch in flow.graph().reached_blocks() {
                let Some(guard) = flow.branch_guard(branch) else { continue };
                if is_followed[branch as usize] || !known.varies[guard.reg.0 as usize] {
                    continue;
                }
                is_followed[branch as usize] = true;
                changed = true;
                let Some(sides) = regions.sides(branch) else { continue };
                for side in 0..2 {
                    sides.blocks[side].iter().for_each(|&block| apart[block as usize] = true);
                    for block in sides.alone(flow, branch, side) {
                        known.branch[block as usize] = known.branch[block as usize].max(Some(branch));
                    }
                }
            }
            if !changed {
                break;
            }
        }
        known
    }

    /// Marks the results of an instruction; returns whether a mark is new.
    fn instruction(&mut self, flow: &Flow<'_>, instr: Instr<'_>, is_apart: bool) -> bool {
        let accesses = flow.accesses().registers(instr.src);
        if !accesses.clone().any(|access| access.writes() && !self.varies[access.register.0 as usize]) {
            return false;
        }
        let varies = match result(flow, instr) {
            Known::Same => false,
            Known::Varies => true,
            Known::AsOperands => {
                accesses.clone().any(|access| access.reads() && self.varies[access.register.0 as usize])
                    || instr.operands.iter().any(is_varying)
            }
        };
        let mut changed = false;
        for access in accesses.filter(|access| access.writes()) {
            let by_path = is_apart && !flow.is_written_once(access.register);
            let register = &mut self.varies[access.register.0 as usize];
            if (varies || by_path) && !*register {
                *register = true;
                changed = true;
            }
        }
        changed
    }
}

enum Known {
    Same,
    Varies,
    AsOperands,
}

/// What the kind of an instruction implies for its results.
fn result(flow: &Flow<'_>, instr: Instr<'_>) -> Known {
    use FormId as F;
    let opcode = instr.opcode;
    match opcode.form {
        F::VoteSync | F::Vote | F::Redux | F::Bar | F::Barrier | F::Activemask => Known::Same,
        F::MatchSync if opcode.has(Mod::All) => Known::Same,
        F::ShflSync | F::Shfl if opcode.has(Mod::Idx) => {
            let lane = instr.operands.get(2).map(|lane| flow.value(lane));
            if matches!(lane, Some(Value::Constant(_))) { Known::Same } else { Known::AsOperands }
        }
        F::Elect | F::Atom | F::AtomVector => Known::Varies,
        F::MbarrierTestWait | F::MbarrierTryWait | F::MbarrierArrive => Known::Same,
        F::Call => Known::Same,
        // Comparisons that differ only between whole warps: `%tid.x < 32`.
        F::SetpInt => match instr.operands.first() {
            Some(Operand::Reg(register)) => match flow.register(*register) {
                holds @ Value::Threads { .. } if !holds.splits_warps(&flow.function.launch) => Known::Same,
                _ => Known::AsOperands,
            },
            _ => Known::AsOperands,
        },
        // The same for whole warps: `%tid.x >> 5`.
        F::Shr | F::And | F::DivInt => match instr.operands.first() {
            Some(Operand::Reg(register)) if flow.register(*register) == Value::Uniform => Known::Same,
            _ => Known::AsOperands,
        },
        _ => Known::AsOperands,
    }
}

/// A special register that differs between threads of a warp.
fn is_varying(operand: &Operand) -> bool {
    use SpecialReg as S;
    match operand {
        Operand::Special(register) => matches!(
            register,
            S::TidX
                | S::TidY
                | S::TidZ
                | S::Laneid
                | S::LanemaskEq
                | S::LanemaskLe
                | S::LanemaskLt
                | S::LanemaskGe
                | S::LanemaskGt
        ),
        Operand::Vector(elements) => elements.iter().any(is_varying),
        _ => false,
    }
}
