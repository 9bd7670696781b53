//! Known values of registers: constants, addresses of variables, values by lane.
//!
//! Only registers with a single unguarded write are followed to the operands of that write, so no result depends on the
//! path.

use std::rc::Rc;

use ptx_backend::input::{Function, Launch, Operand, RegId, SrcId, Symbol};
use ptx_isa::{FormId, Mod, Opcode, ScalarType, SpecialReg, TypeKind};

use super::{Code, Instr, Survey};

/// Threads of a warp.
const LANES: usize = 32;

/// The known value of a register. Integers wrap; a reader truncates the value to its type.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    Unknown,
    Constant(i64),
    /// A value that depends only on the lane: the value in each lane.
    ByLane(Rc<[i64; LANES]>),
    /// `%tid.x`.
    Thread,
    /// A value computed from `%tid.x` that is the same in all threads of a warp.
    Uniform,
    /// The address of a variable plus an offset, in any window; `None` if the offset is unknown.
    Address(Symbol, Option<i64>),
    /// A predicate that is true in these lanes of every warp.
    Lanes(u32),
    /// A predicate that is true only if `%tid.x` is in this range, or only if it is not.
    Threads {
        from: i64,
        to: i64,
        outside: bool,
    },
    /// The predicate of `elect.sync`, which is true in one lane of each warp.
    Elected,
}

impl Value {
    /// A predicate's opposite.
    pub fn opposite(self) -> Self {
        match self {
            Self::Lanes(lanes) => Self::Lanes(!lanes),
            Self::Threads { from, to, outside } => Self::Threads { from, to, outside: !outside },
            _ => Self::Unknown,
        }
    }

    /// Whether a predicate certainly differs between threads of one warp. `%tid.x` is assumed to be consecutive in a
    /// warp, because CTAs are one or more warps wide.
    pub fn splits_warps(&self, launch: &Launch) -> bool {
        match *self {
            Self::Lanes(lanes) => lanes != 0 && lanes != u32::MAX,
            Self::Elected => true,
            Self::Threads { from, to, .. } => {
                let width = launch.reqntid.or(launch.maxntid).map_or(1024, |[x, ..]| i64::from(x));
                let cuts = |at: i64| 0 < at && at < width && at % LANES as i64 != 0;
                from < to && (cuts(from) || cuts(to))
            }
            _ => false,
        }
    }

    /// The lanes in which a predicate is true in the warp that it splits, if they are the same for every such warp.
    pub fn lanes(&self) -> Option<u32> {
        let below = |end: i64| ((1u64 << end) - 1) as u32;
        match *self {
            Self::Lanes(lanes) => Some(lanes),
            Self::Threads { from, to, outside: false } if 0 <= from && from < to && to <= LANES as i64 => {
                Some(below(to) & !below(from))
            }
            _ => None,
        }
    }
}

const NEVER: u32 = u32::MAX;
const OFTEN: u32 = u32::MAX - 1;
/// The index of [`Value::Unknown`].
const UNKNOWN: u32 = 0;

/// `%tid.x` is below 1024, so it is 0 after a shift by this distance.
const THREAD_BITS: i64 = 10;

/// The maximum length of a chain of instructions that is followed.
const DEPTH: u32 = 64;

/// Computes known values and stores them.
pub(super) struct Values<'a> {
    code: &'a Code,
    survey: &'a Survey,
    /// For each register: the ordinal of the only statement that writes it, [`NEVER`] or [`OFTEN`].
    definitions: Box<[u32]>,
    /// For each register: the index of its value in `values`; [`NEVER`] if it has not been computed.
    known: Box<[u32]>,
    /// The computed values, after [`Value::Unknown`].
    values: Vec<Value>,
}

impl<'a> Values<'a> {
    pub(super) fn new(function: &Function, code: &'a Code, survey: &'a Survey) -> Self {
        let mut definitions = vec![NEVER; function.regs.len()];
        for parameter in function.params.iter().filter_map(|param| param.reg) {
            definitions[parameter.0 as usize] = OFTEN;
        }
        let accesses = survey.accesses();
        for src in accesses.statements() {
            for access in accesses.registers(src).filter(|access| access.writes()) {
                let definition = &mut definitions[access.register.0 as usize];
                *definition = if *definition == NEVER { src.0 } else { OFTEN };
            }
        }
        let known = vec![NEVER; function.regs.len()].into();
        Self { code, survey, definitions: definitions.into(), known, values: vec![Value::Unknown] }
    }

    /// The only statement that writes a register, if it has no guard.
    fn definition(&self, register: RegId) -> Option<Instr<'a>> {
        let src = self.definitions[register.0 as usize];
        let instr = if src < OFTEN { self.survey.find(self.code, SrcId(src))? } else { return None };
        instr.guard.is_none().then_some(instr)
    }

    pub(super) fn is_written_once(&self, register: RegId) -> bool {
        self.definition(register).is_some()
    }

    pub(super) fn operand(&mut self, operand: &Operand) -> Value {
        self.follow(operand, DEPTH)
    }

    fn follow(&mut self, operand: &Operand, depth: u32) -> Value {
        match operand {
            Operand::Int(value) => Value::Constant(*value),
            Operand::Symbol(symbol, offset) => Value::Address(*symbol, Some(*offset)),
            Operand::Special(SpecialReg::Laneid) => by_lane(|lane| lane),
            Operand::Special(SpecialReg::TidX) => Value::Thread,
            Operand::NotPred(register) => self.follow(&Operand::Reg(*register), depth).opposite(),
            Operand::Reg(register) => {
                if let Some(known) = self.values.get(self.known[register.0 as usize] as usize) {
                    return known.clone();
                }
                let value = match self.definition(*register) {
                    Some(instr) if depth > 0 => self.result(instr, *register, depth - 1),
                    _ => Value::Unknown,
                };
                self.known[register.0 as usize] = match value {
                    Value::Unknown => UNKNOWN,
                    _ => self.values.len() as u32,
                };
                if value != Value::Unknown {
                    self.values.push(value.clone());
                }
                value
            }
            _ => Value::Unknown,
        }
    }

    /// The value that an instruction writes to a register.
    fn result(&mut self, instr: Instr<'_>, register: RegId, depth: u32) -> Value {
        use FormId as F;
        let opcode = instr.opcode;
        let Some((destination, sources)) = instr.operands.split_first() else { return Value::Unknown };
        let ty = opcode.ty(0).unwrap_or(ScalarType::B64);
        match (opcode.form, sources) {
            (F::Elect, _) => match destination {
                Operand::Pair(pair) if pair.1 == Operand::Reg(register) => Value::Elected,
                _ => Value::Unknown,
            },
            (F::SetpInt, [a, b]) => {
                let holds = compare(opcode, ty, &self.follow(a, depth), &self.follow(b, depth));
                match destination {
                    Operand::Pair(pair) if pair.0 != Operand::Reg(register) => holds.opposite(),
                    _ => holds,
                }
            }
            _ if *destination != Operand::Reg(register) => Value::Unknown,
            (F::Mov | F::Cvta, [a]) => self.follow(a, depth),
            (F::Cvt, [a]) => {
                let (Some(to), Some(from)) = (opcode.ty(0), opcode.ty(1)) else { return Value::Unknown };
                let is_integer = |ty: ScalarType| matches!(ty.kind(), TypeKind::Unsigned | TypeKind::Signed);
                if !is_integer(to) || !is_integer(from) || opcode.has(Mod::Sat) {
                    return Value::Unknown;
                }
                match self.follow(a, depth) {
                    value @ (Value::Address(..) | Value::Thread) if to.bits() >= 32 => value,
                    value @ (Value::Constant(_) | Value::ByLane(_)) => map(&value, |v| cut(to, cut(from, v))),
                    _ => Value::Unknown,
                }
            }
            (F::AddInt, [a, b]) if !opcode.has(Mod::Sat) => add(self.follow(a, depth), self.follow(b, depth)),
            (F::SubInt, [a, b]) if !opcode.has(Mod::Sat) => {
                let (a, b) = (self.follow(a, depth), self.follow(b, depth));
                match (&a, &b) {
                    // The difference of two addresses is not an address.
                    (_, Value::Address(..)) => Value::Unknown,
                    _ => add(a, map(&b, i64::wrapping_neg)),
                }
            }
            (F::MulInt, [a, b]) if !opcode.has(Mod::Hi) => self.product(opcode, ty, a, b, depth),
            (F::MadInt, [a, b, c]) if !opcode.has(Mod::Hi) && !opcode.has(Mod::Sat) => {
                let product = self.product(opcode, ty, a, b, depth);
                add(product, self.follow(c, depth))
            }
            (F::And, [a, b]) if ty != ScalarType::Pred => {
                match (self.follow(a, depth), self.follow(b, depth)) {
                    (Value::Thread, Value::Constant(mask)) | (Value::Constant(mask), Value::Thread)
                        if (0..LANES as i64).contains(&mask) =>
                    {
                        by_lane(|lane| lane & mask)
                    }
                    (Value::Thread, Value::Constant(mask)) | (Value::Constant(mask), Value::Thread)
                        if mask % LANES as i64 == 0 =>
                    {
                        Value::Uniform
                    }
                    (a, b) => zip(&a, &b, |a, b| a & b),
                }
            }
            (F::Or, [a, b]) if ty != ScalarType::Pred => {
                zip(&self.follow(a, depth), &self.follow(b, depth), |a, b| a | b)
            }
            (F::Xor, [a, b]) if ty != ScalarType::Pred => {
                zip(&self.follow(a, depth), &self.follow(b, depth), |a, b| a ^ b)
            }
            (F::Shl, [a, b]) => {
                let shift = |a: i64, b| if (0..64).contains(&b) { a << b } else { 0 };
                zip(&self.follow(a, depth), &self.follow(b, depth), shift)
            }
            (F::Shr, [a, b]) => {
                if self.follow(a, depth) == Value::Thread {
                    return match self.follow(b, depth) {
                        Value::Constant(5..THREAD_BITS) => Value::Uniform,
                        Value::Constant(THREAD_BITS..) => Value::Constant(0),
                        _ => Value::Unknown,
                    };
                }
                let shift = |a, b| if (0..64).contains(&b) { cut(ty, a) >> b } else { 0 };
                zip(&self.follow(a, depth), &self.follow(b, depth), shift)
            }
            (F::DivInt, [a, b]) => match (self.follow(a, depth), self.follow(b, depth)) {
                (Value::Thread, Value::Constant(by)) if by != 0 && by % LANES as i64 == 0 => Value::Uniform,
                _ => Value::Unknown,
            },
            (F::And | F::Or | F::Xor, [a, b]) => {
                let (Value::Lanes(a), Value::Lanes(b)) = (self.follow(a, depth), self.follow(b, depth))
                else {
                    return Value::Unknown;
                };
                Value::Lanes(match opcode.form {
                    F::And => a & b,
                    F::Or => a | b,
                    _ => a ^ b,
                })
            }
            (F::Not, [a]) if ty == ScalarType::Pred => self.follow(a, depth).opposite(),
            _ => Value::Unknown,
        }
    }

    fn product(&mut self, opcode: &Opcode, ty: ScalarType, a: &Operand, b: &Operand, depth: u32) -> Value {
        let (a, b) = (self.follow(a, depth), self.follow(b, depth));
        match opcode.has(Mod::Wide) {
            true => zip(&a, &b, |a, b| cut(ty, a).wrapping_mul(cut(ty, b))),
            false => zip(&a, &b, i64::wrapping_mul),
        }
    }
}

fn by_lane(value: impl Fn(i64) -> i64) -> Value {
    Value::ByLane(Rc::new(std::array::from_fn(|lane| value(lane as i64))))
}

/// The value truncated to a type and sign-extended.
fn cut(ty: ScalarType, value: i64) -> i64 {
    let is_signed = ty.kind() == TypeKind::Signed;
    match (ty.bits(), is_signed) {
        (8, false) => i64::from(value as u8),
        (8, true) => i64::from(value as i8),
        (16, false) => i64::from(value as u16),
        (16, true) => i64::from(value as i16),
        (32, false) => i64::from(value as u32),
        (32, true) => i64::from(value as i32),
        _ => value,
    }
}

fn map(value: &Value, f: impl Fn(i64) -> i64) -> Value {
    match value {
        Value::Constant(value) => Value::Constant(f(*value)),
        Value::ByLane(values) => by_lane(|lane| f(values[lane as usize])),
        _ => Value::Unknown,
    }
}

fn zip(a: &Value, b: &Value, f: impl Fn(i64, i64) -> i64) -> Value {
    match (a, b) {
        (Value::Constant(a), b) => map(b, |b| f(*a, b)),
        (a, Value::Constant(b)) => map(a, |a| f(a, *b)),
        (Value::ByLane(a), Value::ByLane(b)) => by_lane(|lane| f(a[lane as usize], b[lane as usize])),
        _ => Value::Unknown,
    }
}

fn add(a: Value, b: Value) -> Value {
    match (a, b) {
        (Value::Address(..), Value::Address(..)) => Value::Unknown,
        (Value::Address(symbol, offset), other) | (other, Value::Address(symbol, offset)) => {
            let offset = match other {
                Value::Constant(bytes) => offset.map(|offset| offset.wrapping_add(bytes)),
                _ => None,
            };
            Value::Address(symbol, offset)
        }
        (Value::Thread, Value::Constant(0)) | (Value::Constant(0), Value::Thread) => Value::Thread,
        (a, b) => zip(&a, &b, i64::wrapping_add),
    }
}

/// The lanes or threads for which a comparison of integers is true.
fn compare(opcode: &Opcode, ty: ScalarType, a: &Value, b: &Value) -> Value {
    let is_64_unsigned = ty.bits() == 64 && ty.kind() != TypeKind::Signed;
    let order = move |a: i64, b: i64| {
        let (a, b) = (cut(ty, a), cut(ty, b));
        if is_64_unsigned { (a as u64).cmp(&(b as u64)) } else { a.cmp(&b) }
    };
    let has = |mods: &[Mod]| mods.iter().any(|&m| opcode.has(m));
    let holds = |order: std::cmp::Ordering| {
        if has(&[Mod::Eq]) {
            order.is_eq()
        } else if has(&[Mod::Ne]) {
            order.is_ne()
        } else if has(&[Mod::Lt, Mod::Lo]) {
            order.is_lt()
        } else if has(&[Mod::Le, Mod::Ls]) {
            order.is_le()
        } else if has(&[Mod::Gt, Mod::Hi]) {
            order.is_gt()
        } else {
            order.is_ge()
        }
    };
    match (a, b) {
        (Value::ByLane(_), Value::Constant(_) | Value::ByLane(_))
        | (Value::Constant(_), Value::ByLane(_)) => match zip(a, b, |a, b| i64::from(holds(order(a, b)))) {
            Value::ByLane(holds) => {
                let lanes = holds.iter().enumerate().map(|(lane, &holds)| (holds as u32) << lane);
                Value::Lanes(lanes.sum())
            }
            _ => Value::Unknown,
        },
        (Value::Thread, Value::Constant(bound)) => {
            let bound = cut(ty, *bound);
            if bound < 0 {
                return Value::Unknown;
            }
            let (from, to, outside) = if has(&[Mod::Eq, Mod::Ne]) {
                (bound, bound.saturating_add(1), has(&[Mod::Ne]))
            } else if has(&[Mod::Lt, Mod::Lo, Mod::Ge, Mod::Hs]) {
                (0, bound, has(&[Mod::Ge, Mod::Hs]))
            } else {
                (0, bound.saturating_add(1), has(&[Mod::Gt, Mod::Hi]))
            };
            Value::Threads { from, to, outside }
        }
        _ => Value::Unknown,
    }
}
