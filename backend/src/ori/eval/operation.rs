//! The results of operations on registers.

use super::float::{self, BF16, F16, F32, F64, Format, Number, integer};
use super::{EvalError, Machine, Word};
use crate::ori::ir::{Inst, Src};
use crate::ori::op::{
    Bool, DotMode, FCmp, FloatType, HalfRead, ICmp, IntType, MufuFunc, Op, Round, ShfType, Sign, WideSign,
};
use std::cmp::Ordering;

/// A source: the contents of its registers, and the source itself for its modifiers.
type Operand = (Word, Src);

const fn reg(value: u32) -> Word {
    [value, 0, 0, 0]
}

const fn pair(value: u64) -> Word {
    [value as u32, (value >> 32) as u32, 0, 0]
}

const fn flag(value: bool) -> Word {
    reg(value as u32)
}

fn wide(word: Word) -> u64 {
    u64::from(word[0]) | u64::from(word[1]) << 32
}

fn truth(operand: &Operand) -> bool {
    operand.0[0] & 1 != 0
}

/// Applies float modifiers to the bits of a format.
fn modified(format: Format, bits: u64, src: Src) -> u64 {
    let magnitude = if src.mods.abs { bits & (format.sign() - 1) } else { bits };
    if src.mods.neg { magnitude ^ format.sign() } else { magnitude }
}

fn single(operand: &Operand) -> u64 {
    modified(F32, operand.0[0].into(), operand.1)
}

fn flushed(operand: &Operand, ftz: bool) -> u64 {
    if ftz { F32.flush(single(operand)) } else { single(operand) }
}

/// A double operand; an immediate is the high word.
fn double(operand: &Operand) -> u64 {
    let bits = match operand.1.kind {
        crate::ori::ir::SrcKind::Imm(high) => u64::from(high) << 32,
        _ => wide(operand.0),
    };
    modified(F64, bits, operand.1)
}

/// A pair. For an immediate, the lower half is the immediate and the upper half is its sign.
fn integer_pair(operand: &Operand) -> u64 {
    let v = match operand.1.kind {
        crate::ori::ir::SrcKind::Imm(low) => i64::from(low as i32) as u64,
        _ => wide(operand.0),
    };
    if operand.1.mods.neg { v.wrapping_neg() } else { v }
}

/// The number by which a comparison orders a pair.
fn ordered_pair(sign: WideSign, operand: &Operand) -> i128 {
    match sign {
        WideSign::S64 => i128::from(integer_pair(operand) as i64),
        WideSign::U64 => i128::from(integer_pair(operand)),
    }
}

/// Applies integer modifiers.
fn integer_of(operand: &Operand) -> u32 {
    let v = operand.0[0];
    let v = if operand.1.mods.not { !v } else { v };
    if operand.1.mods.neg { v.wrapping_neg() } else { v }
}

/// An fp32 result, saturated and flushed if requested.
fn finish(bits: u64, ftz: bool, sat: bool) -> Word {
    let bits = if ftz { F32.flush(bits) } else { bits };
    let value = f32::from_bits(bits as u32);
    if !sat {
        return reg(bits as u32);
    }
    reg(if value > 0.0 { value.min(1.0).to_bits() } else { 0 })
}

fn combine(op: Bool, a: bool, b: bool) -> bool {
    match op {
        Bool::And => a && b,
        Bool::Or => a || b,
        Bool::Xor => a != b,
    }
}

fn integer_compare(cmp: ICmp, order: Ordering) -> bool {
    match cmp {
        ICmp::F => false,
        ICmp::Lt => order.is_lt(),
        ICmp::Eq => order.is_eq(),
        ICmp::Le => order.is_le(),
        ICmp::Gt => order.is_gt(),
        ICmp::Ne => order.is_ne(),
        ICmp::Ge => order.is_ge(),
        ICmp::T => true,
    }
}

fn float_compare(cmp: FCmp, order: Option<Ordering>) -> bool {
    use FCmp::{Eq, Equ, F, Ge, Geu, Gt, Gtu, Le, Leu, Lt, Ltu, Nan, Ne, Neu, Num, T};
    match (cmp, order) {
        (T | Num, Some(_)) | (T | Nan | Ltu | Equ | Leu | Gtu | Neu | Geu, None) => true,
        (F | Nan, Some(_)) | (F | Num | Lt | Eq | Le | Gt | Ne | Ge, None) => false,
        (Lt | Ltu, Some(o)) => o.is_lt(),
        (Eq | Equ, Some(o)) => o.is_eq(),
        (Le | Leu, Some(o)) => o.is_le(),
        (Gt | Gtu, Some(o)) => o.is_gt(),
        (Ne | Neu, Some(o)) => o.is_ne(),
        (Ge | Geu, Some(o)) => o.is_ge(),
    }
}

/// Adds units in the last place to the bits of a float, except for NaN, zero and infinity.
fn displaced(format: Format, bits: u64, by: i32) -> u64 {
    let magnitude = bits & (format.sign() - 1);
    if magnitude == 0 || magnitude >= format.infinity() || format.is_denormal(bits) {
        return bits;
    }
    bits.wrapping_add(by as i64 as u64)
}

fn mufu(machine: &Machine, func: MufuFunc, operand: &Operand) -> Word {
    if matches!(func, MufuFunc::Rcp64h | MufuFunc::Rsq64h) {
        // The operand and the result are high words of doubles.
        let bits = u64::from(operand.0[0]) << 32;
        let x = f64::from_bits(modified(F64, bits, operand.1));
        let y = if func == MufuFunc::Rcp64h { 1.0 / x } else { 1.0 / x.sqrt() };
        let high = F64.flush(y.to_bits()) >> 32;
        // The same exception as below, for a significand of all ones.
        let all_ones = func == MufuFunc::Rcp64h && operand.0[0] & 0xf_ffff == 0xf_ffff;
        let exact = y == 0.0 || !y.is_finite() || all_ones;
        return reg(if exact { high as u32 } else { high.wrapping_add(machine.error as i64 as u64) as u32 });
    }
    let x = f64::from(f32::from_bits(F32.flush(single(operand)) as u32));
    let y = match func {
        MufuFunc::Rcp => 1.0 / x,
        MufuFunc::Rsq => 1.0 / x.sqrt(),
        MufuFunc::Sqrt => x.sqrt(),
        MufuFunc::Ex2 => x.exp2(),
        MufuFunc::Lg2 => x.log2(),
        MufuFunc::Sin => (x * std::f64::consts::TAU).sin(),
        MufuFunc::Cos => (x * std::f64::consts::TAU).cos(),
        MufuFunc::Tanh => x.tanh(),
        MufuFunc::Rcp64h | MufuFunc::Rsq64h => x,
    };
    let bits = F32.flush((y as f32).to_bits().into());
    // This is the only significand whose reciprocal no refinement in fp32 can correct. The division algorithm, which is
    // that of compilers for this hardware, relies on the unit here.
    let all_ones = func == MufuFunc::Rcp && single(operand) & 0x7f_ffff == 0x7f_ffff;
    match () {
        () if F32.is_nan(bits) => reg(F32.nan() as u32),
        () if all_ones => reg(bits as u32),
        () => reg(displaced(F32, bits, machine.error) as u32),
    }
}

/// Whether an fp32 division needs more than the fast path. This is true at least if a step could leave the normal
/// range.
fn needs_slow_division(a: u64, b: u64) -> bool {
    let exponent = |bits: u64| (bits >> 23 & 0xff) as i32;
    let (a, b) = (exponent(a), exponent(b));
    !(26..=253).contains(&a) || !(2..=252).contains(&b) || !(-124..=124).contains(&(a - b))
}

fn shift(right: bool, wrap: bool, high: bool, ty: ShfType, [low, by, top]: [u32; 3]) -> u32 {
    let value = u64::from(top) << 32 | u64::from(low);
    let limit = if matches!(ty, ShfType::S64 | ShfType::U64) { 64 } else { 32 };
    let by = if wrap { by % limit } else { by.min(limit) };
    let signed = matches!(ty, ShfType::S64 | ShfType::S32);
    let shifted = match (right, signed) {
        (false, _) => value.checked_shl(by).unwrap_or(0),
        (true, false) => match high {
            // Only the high word changes, by up to its own size.
            true => u64::from(top.checked_shr(by).unwrap_or(0)) << 32,
            false => value.checked_shr(by).unwrap_or(0),
        },
        (true, true) => match high {
            true => u64::from(((top as i32) >> by.min(31)) as u32) << 32,
            false => ((value as i64) >> by.min(63)) as u64,
        },
    };
    if high { (shifted >> 32) as u32 } else { shifted as u32 }
}

fn permute(a: u32, selector: u32, b: u32) -> u32 {
    let bytes = u64::from(b) << 32 | u64::from(a);
    (0..4).fold(0, |result, i| {
        let nibble = selector >> (4 * i) & 0xf;
        let byte = (bytes >> (8 * (nibble & 7))) as u8;
        let byte = if nibble & 8 != 0 { ((byte as i8) >> 7) as u8 } else { byte };
        result | u32::from(byte) << (8 * i)
    })
}

fn lop3(lut: u8, a: u32, b: u32, c: u32) -> u32 {
    (0..32).fold(0, |result, i| {
        let index = (a >> i & 1) << 2 | (b >> i & 1) << 1 | c >> i & 1;
        result | u32::from(lut >> index & 1) << i
    })
}

fn leading(value: u32, signed: bool, shift: bool) -> u32 {
    let value = if signed && (value as i32) < 0 { !value } else { value };
    match value {
        0 => u32::MAX,
        v if shift => v.leading_zeros(),
        v => 31 - v.leading_zeros(),
    }
}

fn extend_sign(value: u32, bits: u32, signed: bool) -> u32 {
    match bits {
        0 => 0,
        32.. => value,
        _ if signed => ((value << (32 - bits)) as i32 >> (32 - bits)) as u32,
        _ => value & ((1 << bits) - 1),
    }
}

fn dot(inst: Op, a: u32, b: u32) -> u32 {
    let Op::Idp { mode, a_signed, b_signed } = inst else { return 0 };
    let byte = |v: u32, i: u32, signed: bool| {
        let v = (v >> (8 * i)) as u8;
        if signed { i64::from(v as i8) } else { i64::from(v) }
    };
    let half = |v: u32, i: u32, signed: bool| {
        let v = (v >> (16 * i)) as u16;
        if signed { i64::from(v as i16) } else { i64::from(v) }
    };
    let of_halves = |first: u32| (0..2).map(|i| half(a, i, a_signed) * byte(b, i + first, b_signed)).sum();
    let sum: i64 = match mode {
        DotMode::A4 => (0..4).map(|i| byte(a, i, a_signed) * byte(b, i, b_signed)).sum(),
        DotMode::A2Lo => of_halves(0),
        DotMode::A2Hi => of_halves(2),
    };
    sum as u32
}

fn format_of(ty: FloatType) -> Format {
    match ty {
        FloatType::F16 => F16,
        FloatType::Bf16 => BF16,
        FloatType::F32 => F32,
        FloatType::F64 => F64,
    }
}

fn float_operand(ty: FloatType, operand: &Operand) -> u64 {
    match ty {
        FloatType::F64 => double(operand),
        FloatType::F32 => single(operand),
        FloatType::F16 | FloatType::Bf16 => {
            modified(format_of(ty), u64::from(operand.0[0] & 0xffff), operand.1)
        }
    }
}

fn float_result(ty: FloatType, bits: u64) -> Word {
    if ty == FloatType::F64 { pair(bits) } else { reg(bits as u32) }
}

/// The number of bits of an integer type, and whether it is signed.
const fn integer_shape(ty: IntType) -> (u32, bool) {
    match ty {
        IntType::U8 => (8, false),
        IntType::S8 => (8, true),
        IntType::U16 => (16, false),
        IntType::S16 => (16, true),
        IntType::U32 => (32, false),
        IntType::S32 => (32, true),
        IntType::U64 => (64, false),
        IntType::S64 => (64, true),
    }
}

/// The number that an integer operand is.
fn integer_value(ty: IntType, operand: &Operand) -> i128 {
    let (bits, signed) = integer_shape(ty);
    let value = if bits == 64 { wide(operand.0) } else { u64::from(operand.0[0]) };
    let up = 64 - bits;
    if signed { i128::from((value << up) as i64 >> up) } else { i128::from(value << up >> up) }
}

fn signed(sign: Sign) -> bool {
    sign == Sign::S32
}

fn extend(sign: Sign, v: u32) -> i128 {
    if signed(sign) { i128::from(v as i32) } else { i128::from(v) }
}

/// The smallest or the largest of some values.
fn extreme(sign: Sign, least: bool, values: &[u32]) -> u32 {
    let key = |value: &&u32| extend(sign, **value);
    let found = if least { values.iter().min_by_key(key) } else { values.iter().max_by_key(key) };
    found.copied().unwrap_or(0)
}

/// The result of a saturating conversion to an integer; `None` stands for a NaN.
fn saturated(ty: IntType, value: Option<i128>) -> Word {
    let (bits, signed) = integer_shape(ty);
    let Some(value) = value else {
        return if bits == 64 { pair(1 << 63) } else { reg(0) };
    };
    let (least, most) =
        if signed { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1i128 << bits) - 1) };
    pair(value.clamp(least, most) as u64).map_first(bits)
}

trait Narrow {
    fn map_first(self, bits: u32) -> Self;
}

impl Narrow for Word {
    /// Changes the first register of a result of at most 32 bits.
    fn map_first(self, bits: u32) -> Word {
        if bits == 64 { self } else { reg(self[0]) }
    }
}

fn ordering(format: Format, a: u64, b: u64) -> Option<Ordering> {
    let value = |bits: u64| match format.fraction {
        23 => f64::from(f32::from_bits(bits as u32)),
        52 => f64::from_bits(bits),
        _ => f64::from_bits(F64.round(format.unpack(bits), Round::Rn)),
    };
    value(a).partial_cmp(&value(b))
}

/// The smaller or larger number. The other operand is returned if one is a NaN, and -0 is less than +0.
fn minimum(format: Format, a: u64, b: u64, min: bool, nan: bool) -> u64 {
    match (format.is_nan(a), format.is_nan(b)) {
        (true, true) => return format.nan(),
        (true, false) | (false, true) if nan => return format.nan(),
        (true, false) => return b,
        (false, true) => return a,
        _ => {}
    }
    let key = |bits: u64| {
        if bits & format.sign() != 0 { -((bits & (format.sign() - 1)) as i128) - 1 } else { bits as i128 }
    };
    if (key(a) < key(b)) == min { a } else { b }
}

/// Whether the results are exactly determined by the operands, on every machine.
pub(super) fn is_exact(op: &Op) -> bool {
    matches!(
        op,
        Op::Pack
            | Op::Copy
            | Op::Mov
            | Op::Sel
            | Op::Fsel { .. }
            | Op::Prmt
            | Op::Iadd3 { .. }
            | Op::Imad { .. }
            | Op::ImadWide { .. }
            | Op::ImadHi { .. }
            | Op::Lea { .. }
            | Op::LeaHi { .. }
            | Op::LeaHiSx { .. }
            | Op::Lop3 { .. }
            | Op::Lop3P { .. }
            | Op::Plop3 { .. }
            | Op::Shf { .. }
            | Op::Isetp { .. }
            | Op::Imnmx { .. }
            | Op::Iabs
            | Op::Iadd64
            | Op::Sel64
            | Op::Isetp64 { .. }
            | Op::Popc
            | Op::Brev
            | Op::Flo { .. }
            | Op::Sgxt { .. }
            | Op::Fadd { .. }
            | Op::Fmul { .. }
            | Op::Ffma { .. }
            | Op::Fmnmx { xor: false, .. }
            | Op::Fsetp { .. }
            | Op::Dadd { .. }
            | Op::Dmul { .. }
            | Op::Dfma { .. }
            | Op::Dsetp { .. }
            | Op::Dextreme { .. }
            | Op::I2f { .. }
            | Op::I2fp { .. }
            | Op::F2i { .. }
            | Op::F2f { sat: false, .. }
            | Op::Frnd { .. }
    )
}

/// The results of an operation that involves neither memory nor other threads.
pub(super) fn apply(machine: &Machine, inst: &Inst, s: &[Operand]) -> Result<Vec<Word>, EvalError> {
    let r = |i: usize| s[i].0[0];
    Ok(match inst.op {
        Op::Nop => Vec::new(),
        Op::Pack => {
            let mut word = [0; 4];
            for (to, from) in word.iter_mut().zip(s) {
                *to = from.0[0];
            }
            vec![word]
        }
        Op::Copy | Op::Fix | Op::Mov | Op::Umov | Op::Uldc { .. } | Op::R2ur => vec![s[0].0],
        Op::Sel => vec![reg(if truth(&s[2]) { r(0) } else { r(1) })],
        Op::Fsel { ftz } => vec![reg(flushed(if truth(&s[2]) { &s[0] } else { &s[1] }, ftz) as u32)],
        Op::Prmt => vec![reg(permute(r(0), r(1), r(2)))],
        Op::S2r { sr } | Op::S2ur { sr } => vec![reg(machine.special.get(&sr.0).copied().unwrap_or(0))],
        Op::Cs2r { sr, .. } => vec![reg(machine.special.get(&sr.0).copied().unwrap_or(0))],
        Op::Uimad { .. } => vec![reg(r(0).wrapping_mul(r(1)).wrapping_add(r(2)))],
        Op::Uprmt => vec![reg(permute(r(0), r(1), r(2)))],
        Op::Ulop3 { lut } => vec![reg(lop3(lut, r(0), r(1), r(2)))],
        Op::Ushf { right, wrap, ty, hi } => vec![reg(shift(right, wrap, hi, ty, [r(0), r(1), r(2)]))],
        _ => return arithmetic(machine, inst, s),
    })
}

fn arithmetic(machine: &Machine, inst: &Inst, s: &[Operand]) -> Result<Vec<Word>, EvalError> {
    let r = |i: usize| s[i].0[0];
    let wide_source = |i: usize| if s[i].1.kind == crate::ori::ir::SrcKind::Zero { 0 } else { wide(s[i].0) };
    // With a carry in, a negated operand is complemented.
    let addend = |i: usize, x: bool| {
        let (word, src) = &s[i];
        if x && (src.mods.neg || src.mods.not) { !word[0] } else { integer_of(&s[i]) }
    };
    Ok(match inst.op {
        Op::Iadd3 { x } | Op::Uiadd3 { x } => {
            // A negated operand is complemented, and one is added if there is no carry in.
            let mut sum = if x { u64::from(truth(&s[3])) + u64::from(truth(&s[4])) } else { 0 };
            for (word, src) in &s[..3] {
                let flip = src.mods.neg || src.mods.not;
                sum += u64::from(if flip { !word[0] } else { word[0] }) + u64::from(src.mods.neg && !x);
            }
            vec![reg(sum as u32), flag(sum >> 32 != 0), flag(sum >> 33 != 0)]
        }
        Op::UimadWide { sign } => {
            let product = (extend(sign, r(0)) * extend(sign, r(1))) as u64;
            vec![pair(product.wrapping_add(wide_source(2)))]
        }
        Op::Imad { .. } => vec![reg(r(0).wrapping_mul(r(1)).wrapping_add(integer_of(&s[2])))],
        Op::ImadWide { sign, x } => {
            let product = (extend(sign, r(0)) * extend(sign, r(1))) as u64;
            let carry = u128::from(x && truth(&s[3]));
            let sum = u128::from(product) + u128::from(wide_source(2)) + carry;
            vec![pair(sum as u64), flag(sum >> 64 != 0)]
        }
        Op::ImadHi { sign } => {
            let product = (extend(sign, r(0)) * extend(sign, r(1))) as u64;
            vec![reg((product.wrapping_add(wide_source(2)) >> 32) as u32)]
        }
        Op::Lea { shift } | Op::Ulea { shift } => {
            let sum = u64::from(r(0) << shift) + u64::from(integer_of(&s[1]));
            vec![reg(sum as u32), flag(sum >> 32 != 0)]
        }
        Op::LeaHi { shift, x } | Op::UleaHi { shift, x } => {
            let high = ((u64::from(r(2)) << 32 | u64::from(r(0))) << shift >> 32) as u32;
            vec![reg(high.wrapping_add(addend(1, x)).wrapping_add(u32::from(x && truth(&s[3]))))]
        }
        Op::LeaHiSx { shift, x } | Op::UleaHiSx { shift, x } => {
            let high = (i64::from(r(0) as i32) << shift >> 32) as u32;
            vec![reg(high.wrapping_add(addend(1, x)).wrapping_add(u32::from(x && truth(&s[2]))))]
        }
        Op::Lop3 { lut } => vec![reg(lop3(lut, r(0), r(1), r(2)))],
        Op::Lop3P { lut } => vec![flag(lop3(lut, r(0), r(1), r(2)) != 0)],
        Op::Plop3 { lut, lut2 } => {
            let index = u32::from(truth(&s[0])) << 2 | u32::from(truth(&s[1])) << 1 | u32::from(truth(&s[2]));
            vec![flag(lut >> index & 1 != 0), flag(lut2 >> index & 1 != 0)]
        }
        Op::Shf { right, wrap, hi, ty } => vec![reg(shift(right, wrap, hi, ty, [r(0), r(1), r(2)]))],
        Op::Isetp { cmp, sign, bool_, ex } | Op::Uisetp { cmp, sign, bool_, ex } => {
            let order = extend(sign, r(0)).cmp(&extend(sign, r(1)));
            let holds = if !ex {
                integer_compare(cmp, order)
            } else {
                match (cmp, order) {
                    // If the high words are equal, the low words decide.
                    (ICmp::Ne, Ordering::Less | Ordering::Greater) => true,
                    (ICmp::Eq, Ordering::Less | Ordering::Greater) => false,
                    (_, Ordering::Equal) => truth(&s[3]),
                    _ => integer_compare(cmp, order),
                }
            };
            let with = truth(&s[2]);
            vec![flag(combine(bool_, holds, with)), flag(combine(bool_, !holds, with))]
        }
        Op::Iadd64 => vec![pair(integer_pair(&s[0]).wrapping_add(integer_pair(&s[1])))],
        Op::Sel64 => vec![pair(integer_pair(&s[usize::from(!truth(&s[2]))]))],
        Op::Isetp64 { cmp, sign, bool_ } => {
            let order = ordered_pair(sign, &s[0]).cmp(&ordered_pair(sign, &s[1]));
            let (holds, with) = (integer_compare(cmp, order), truth(&s[2]));
            vec![flag(combine(bool_, holds, with)), flag(combine(bool_, !holds, with))]
        }
        Op::Imnmx64 { sign } => {
            let (a, b) = (ordered_pair(sign, &s[0]), ordered_pair(sign, &s[1]));
            vec![pair(if truth(&s[2]) { a.min(b) } else { a.max(b) } as u64)]
        }
        Op::Imnmx { sign } => vec![reg(extreme(sign, truth(&s[2]), &[r(0), r(1)]))],
        Op::Imnmx3 { sign } => vec![reg(extreme(sign, truth(&s[3]), &[r(0), r(1), r(2)]))],
        Op::Iaddmnmx { sign } => {
            vec![reg(extreme(sign, truth(&s[3]), &[r(0).wrapping_add(r(1)), r(2)]))]
        }
        Op::Iabs => vec![reg((r(0) as i32).unsigned_abs())],
        Op::Popc => vec![reg(integer_of(&s[0]).count_ones())],
        Op::Flo { sign, shift } => vec![reg(leading(integer_of(&s[0]), signed(sign), shift))],
        Op::Brev => vec![reg(integer_of(&s[0]).reverse_bits())],
        Op::Sgxt { sign, wrap } | Op::Usgxt { sign, wrap } => {
            let bits = if wrap { r(1) & 31 } else { r(1) };
            vec![reg(extend_sign(r(0), bits, signed(sign)))]
        }
        Op::Bmsk { wrap } | Op::Ubmsk { wrap } => {
            let (from, count) = if wrap { (r(0) & 31, r(1) & 31) } else { (r(0), r(1)) };
            let ones = 1u32.checked_shl(count).unwrap_or(0).wrapping_sub(1);
            vec![reg(ones.checked_shl(from).unwrap_or(0))]
        }
        Op::Idp { .. } => vec![reg(dot(inst.op, r(0), r(1)).wrapping_add(r(2)))],
        Op::Vabsdiff { sign } => {
            let difference = (extend(sign, r(0)) - extend(sign, r(1))).unsigned_abs();
            vec![reg((difference as u32).wrapping_add(r(2)))]
        }
        _ => return floating(machine, inst, s),
    })
}

fn floating(machine: &Machine, inst: &Inst, s: &[Operand]) -> Result<Vec<Word>, EvalError> {
    Ok(match inst.op {
        Op::Fadd { round, ftz, sat } => {
            vec![finish(F32.add(flushed(&s[0], ftz), flushed(&s[1], ftz), round), ftz, sat)]
        }
        Op::Fmul { round, ftz, sat } => {
            vec![finish(F32.mul(flushed(&s[0], ftz), flushed(&s[1], ftz), round), ftz, sat)]
        }
        Op::Ffma { round, ftz, sat } => {
            let [a, b, c] = [0, 1, 2].map(|i| flushed(&s[i], ftz));
            vec![finish(F32.fma(a, b, c, round), ftz, sat)]
        }
        Op::Fmnmx { ftz, nan, xor: false } => {
            vec![reg(minimum(F32, flushed(&s[0], ftz), flushed(&s[1], ftz), truth(&s[2]), nan) as u32)]
        }
        Op::Fmnmx3 { ftz, nan } => {
            let [a, b, c] = [0, 1, 2].map(|i| flushed(&s[i], ftz));
            let least = truth(&s[3]);
            vec![reg(minimum(F32, minimum(F32, a, b, least, nan), c, least, nan) as u32)]
        }
        Op::Fsetp { cmp, ftz, bool_ } => {
            let holds = float_compare(cmp, ordering(F32, flushed(&s[0], ftz), flushed(&s[1], ftz)));
            vec![flag(combine(bool_, holds, truth(&s[2]))), flag(combine(bool_, !holds, truth(&s[2])))]
        }
        Op::Mufu { func } => vec![mufu(machine, func, &s[0])],
        Op::Fchk => vec![flag(needs_slow_division(single(&s[0]), single(&s[1])))],
        Op::Dadd { round } => vec![pair(F64.add(double(&s[0]), double(&s[1]), round))],
        Op::Dmul { round } => vec![pair(F64.mul(double(&s[0]), double(&s[1]), round))],
        Op::Dfma { round } => vec![pair(F64.fma(double(&s[0]), double(&s[1]), double(&s[2]), round))],
        Op::Dsetp { cmp, bool_ } => {
            let holds = float_compare(cmp, ordering(F64, double(&s[0]), double(&s[1])));
            vec![flag(combine(bool_, holds, truth(&s[2]))), flag(combine(bool_, !holds, truth(&s[2])))]
        }
        Op::Dextreme { max } => {
            let (a, b) = (double(&s[0]), double(&s[1]));
            let is_first = !F64.is_nan(a) && minimum(F64, a, b, !max, false) == a;
            vec![flag(is_first), flag(F64.is_nan(a) && F64.is_nan(b))]
        }
        Op::I2f { to, from, round } => {
            vec![float_result(to, format_of(to).round(integer(integer_value(from, &s[0])), round))]
        }
        Op::I2fp { sign, round } => {
            let from = if signed(sign) { IntType::S32 } else { IntType::U32 };
            vec![float_result(FloatType::F32, F32.round(integer(integer_value(from, &s[0])), round))]
        }
        Op::F2i { to, from, round, ftz, .. } => {
            let bits = float_operand(from, &s[0]);
            let bits = if ftz { format_of(from).flush(bits) } else { bits };
            vec![saturated(to, float::to_integer(format_of(from).unpack(bits), round))]
        }
        Op::F2f { to, from, round, ftz, sat: false } => {
            let bits = float_operand(from, &s[0]);
            let bits = if ftz { format_of(from).flush(bits) } else { bits };
            vec![float_result(to, format_of(to).round(format_of(from).unpack(bits), round))]
        }
        Op::Frnd { ty, round, ftz } => {
            let format = format_of(ty);
            let bits = float_operand(ty, &s[0]);
            let bits = if ftz { format.flush(bits) } else { bits };
            let rounded = match format.unpack(bits) {
                // Large values are integral; zeros keep their sign.
                Number::Finite { exponent, .. } if exponent < 0 => {
                    let value = float::to_integer(format.unpack(bits), round).unwrap_or(0);
                    format.round(integer(value), Round::Rn) | bits & format.sign()
                }
                Number::Nan => format.nan(),
                _ => bits,
            };
            vec![float_result(ty, rounded)]
        }
        Op::F2fp { bf16, round, relu, sat: false } => {
            let format = if bf16 { BF16 } else { F16 };
            let half = |operand: &Operand| {
                let bits = format.round(F32.unpack(single(operand)), round);
                let negative = bits & format.sign() != 0 && !format.is_nan(bits);
                if relu && negative { 0 } else { bits as u32 }
            };
            vec![reg(half(&s[0]) << 16 | half(&s[1]))]
        }
        Op::Hadd2 { bf16: false, ftz: false, sat: false, f32: true, half } => {
            let value = |operand: &Operand, half: HalfRead| {
                let bits = match half {
                    HalfRead::Own => operand.0[0] & 0xffff,
                    HalfRead::High => operand.0[0] >> 16,
                };
                let bits = modified(F16, bits.into(), operand.1);
                F32.round(F16.unpack(bits), Round::Rn)
            };
            vec![reg(F32.add(value(&s[0], HalfRead::Own), value(&s[1], half), Round::Rn) as u32)]
        }
        op => return Err(EvalError::Operation(op)),
    })
}
