//! Which registers may differ between the threads of a warp.
//!
//! A register varies when it is computed from `%tid`, `%laneid` and the like, from memory at an address that
//! varies, by an instruction that gives each thread something else, or when the paths on which it is written
//! depend on something that varies. Registers are taken as a whole, over all their writes. What is passed
//! through memory and calls is taken to be the same for all threads, so that little is called varying.

use ptx_backend::input::Operand;
use ptx_isa::{FormId, Mod, SpecialReg};

use super::regions::Regions;
use super::{BlockId, Flow, Instr, Value};

/// Passes over the statements after which what is known so far has to do.
const PASSES: usize = 12;

/// The answer for one body.
pub struct Uniformity {
    /// By register.
    varies: Box<[bool]>,
    /// By block: the branch that varies and whose one side alone leads here, the last one in text order.
    branch: Box<[Option<BlockId>]>,
}

impl Uniformity {
    /// The branch that brings some threads of a warp to a block and leaves out others, depending on what they
    /// computed.
    pub fn divergent(&self, block: BlockId) -> Option<BlockId> {
        self.branch[block as usize]
    }

    pub(super) fn new(flow: &Flow<'_>) -> Self {
        let blocks = flow.graph().blocks().len();
        let registers = flow.function.regs.len();
        let mut known = Self { varies: vec![false; registers].into(), branch: vec![None; blocks].into() };
        // By block: threads of a warp may come here apart.
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

    /// Marks what an instruction writes; `true` when that is new.
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

/// What the kind of an instruction says about its results.
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
        // Comparisons by which whole warps differ: `%tid.x < 32`.
        F::SetpInt => match instr.operands.first() {
            Some(Operand::Reg(register)) => match flow.register(*register) {
                holds @ Value::Threads { .. } if !holds.splits_warps(&flow.function.launch) => Known::Same,
                _ => Known::AsOperands,
            },
            _ => Known::AsOperands,
        },
        // Whole warps: `%tid.x >> 5`.
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
