//! Video instructions: on parts of registers, and on two or four lanes of a register.

use super::arithmetic::{ty, unsupported};
use super::{Block, Step, each};
use ptx_backend::input::{Instr, Part, Selector};
use ptx_isa::{FormId, Mod, Opcode, ScalarType};

impl Block<'_> {
    pub(super) fn video(&mut self, w: usize, pc: u32, mask: u32, instr: &Instr) -> Step<()> {
        let op = &instr.opcode;
        let sets = matches!(op.form, FormId::Vset | FormId::Vset2 | FormId::Vset4);
        // A comparison has no type of its own; a secondary operation uses the type of the first source.
        let d = ty(op, 0)?;
        let first = usize::from(!sets);
        let sources = [ty(op, first)?, ty(op, first + 1)?].map(ScalarType::is_signed);
        let parts = [0, 1, 2, 3].map(|operand| self.program.part(pc, operand));
        let word = ScalarType::B32;
        let mut values = [[0; super::WARP]; 3];
        for (value, operand) in values.iter_mut().zip(&instr.operands[1..]) {
            *value = self.gather(w, mask, operand, word)?;
        }
        let lanes = lane_count(op.form);
        for lane in each(mask) {
            let [a, b, c] = values.map(|value| value[lane] as u32);
            let result = match lanes {
                None => scalar(instr, d.is_signed(), sources, parts, [a, b, c])?,
                Some(count) => simd(instr, d.is_signed(), sources, parts, [a, b, c], count)?,
            };
            self.put(w, lane, &instr.operands[0], word, result.into())?;
        }
        Ok(())
    }
}

fn lane_count(form: FormId) -> Option<u8> {
    use FormId as F;
    match form {
        F::Vadd2 | F::Vsub2 | F::Vavrg2 | F::Vabsdiff2 | F::Vmin2 | F::Vmax2 | F::Vset2 => Some(2),
        F::Vadd4 | F::Vsub4 | F::Vavrg4 | F::Vabsdiff4 | F::Vmin4 | F::Vmax4 | F::Vset4 => Some(4),
        _ => None,
    }
}

/// A lane of `bits` bits, extended.
fn lane(value: u64, index: u8, bits: u8, signed: bool) -> i64 {
    let (shift, unused) = (u32::from(index) * u32::from(bits), 64 - u32::from(bits));
    let field = (value >> shift) << unused;
    if signed { field as i64 >> unused } else { (field >> unused) as i64 }
}

/// The part of a register that an operand uses.
fn select(value: u32, part: Option<Part>, signed: bool) -> i64 {
    let selector = part.and_then(|part| part.selector);
    let (bits, index) = selector.map_or((32, 0), |selector| (selector.bits, selector.lanes[0]));
    lane(value.into(), index, bits, signed)
}

fn clamp(value: i64, bits: u8, signed: bool) -> i64 {
    match signed {
        true => value.clamp(-1 << (bits - 1), (1 << (bits - 1)) - 1),
        false => value.clamp(0, (1 << bits) - 1),
    }
}

fn scalar(
    instr: &Instr,
    signed: bool,
    signs: [bool; 2],
    parts: [Option<Part>; 4],
    [a, b, c]: [u32; 3],
) -> Step<u32> {
    let op = &instr.opcode;
    let (x, y) = (select(a, parts[1], signs[0]), select(b, parts[2], signs[1]));
    let negated = |i: usize| parts[i].is_some_and(|part| part.negated);
    if op.form == FormId::Vmad {
        let signed = signs[0] || signs[1] || negated(1) != negated(2) || negated(3);
        return Ok(multiply_add(op, [x, y], [negated(1) != negated(2), negated(3)], c, signed));
    }
    let result = match op.form {
        FormId::Vshl | FormId::Vshr => {
            let y = lane(y as u64, 0, 32, false);
            let count = if op.has(Mod::Wrap) { y & 31 } else { y.min(32) };
            if op.form == FormId::Vshl { x << count } else { x >> count }
        }
        _ => of_lanes(instr, x, y)?,
    };
    let place = parts[0].and_then(|part| part.selector);
    let bits = place.map_or(32, |place| place.bits);
    let result = if op.has(Mod::Sat) { clamp(result, bits, signed) } else { result };
    let third = lane(c.into(), 0, 32, signed);
    let cut = lane(result as u64, 0, 32, signed);
    Ok(match place {
        _ if op.has(Mod::Add) => result.wrapping_add(third) as u32,
        _ if op.has(Mod::Min) => cut.min(third) as u32,
        _ if op.has(Mod::Max) => cut.max(third) as u32,
        Some(place) => {
            let ones = (1 << place.bits) - 1;
            let shift = u32::from(place.lanes[0]) * u32::from(place.bits);
            c & !(ones << shift) | (result as u32 & ones) << shift
        }
        None => result as u32,
    })
}

/// The product plus a summand, shifted right and clamped. A negation is the complement plus one; `.po` adds one without
/// a complement.
fn multiply_add(op: &Opcode, [x, y]: [i64; 2], [minus, less]: [bool; 2], c: u32, signed: bool) -> u32 {
    let product = i128::from(x) * i128::from(y);
    let third = if signed { i128::from(c as i32) } else { c.into() };
    let sum = match () {
        () if op.has(Mod::Po) => product + third + 1,
        () if minus => third - product,
        () if less => product - third,
        () => product + third,
    };
    let result = sum
        >> if op.has(Mod::Shr7) {
            7
        } else if op.has(Mod::Shr15) {
            15
        } else {
            0
        };
    match (op.has(Mod::Sat), signed) {
        (true, true) => result.clamp(i32::MIN.into(), i32::MAX.into()) as u32,
        (true, false) => result.clamp(0, u32::MAX.into()) as u32,
        (false, _) => result as u32,
    }
}

/// The result of one lane.
fn of_lanes(instr: &Instr, x: i64, y: i64) -> Step<i64> {
    use FormId as F;
    Ok(match instr.opcode.form {
        F::Vadd | F::Vadd2 | F::Vadd4 => x + y,
        F::Vsub | F::Vsub2 | F::Vsub4 => x - y,
        F::Vabsdiff | F::Vabsdiff2 | F::Vabsdiff4 => (x - y).abs(),
        F::Vmin | F::Vmin2 | F::Vmin4 => x.min(y),
        F::Vmax | F::Vmax2 | F::Vmax4 => x.max(y),
        // Halves are rounded away from zero.
        F::Vavrg2 | F::Vavrg4 => (x + y + i64::from(x + y >= 0)) >> 1,
        F::Vset | F::Vset2 | F::Vset4 => {
            let holds = [
                (Mod::Eq, x == y),
                (Mod::Ne, x != y),
                (Mod::Lt, x < y),
                (Mod::Le, x <= y),
                (Mod::Gt, x > y),
                (Mod::Ge, x >= y),
            ];
            let found = holds.into_iter().find(|(comparison, _)| instr.opcode.has(*comparison));
            i64::from(found.is_some_and(|(_, holds)| holds))
        }
        _ => return unsupported(instr),
    })
}

fn simd(
    instr: &Instr,
    signed: bool,
    signs: [bool; 2],
    parts: [Option<Part>; 4],
    [a, b, c]: [u32; 3],
    count: u8,
) -> Step<u32> {
    let usual = if count == 2 { Selector::PAIRS } else { Selector::QUARTETS };
    let bits = usual[0].bits;
    let both = u64::from(b) << 32 | u64::from(a);
    let selector = |operand: usize| parts[operand].and_then(|part| part.selector);
    let picks = [selector(1).unwrap_or(usual[0]), selector(2).unwrap_or(usual[1])];
    let written = selector(0).unwrap_or(usual[0]);
    let adds = instr.opcode.has(Mod::Add);
    let mut result = c;
    for place in (0..count).filter(|place| written.lanes[..usize::from(written.count)].contains(place)) {
        let source = |i: usize| lane(both, picks[i].lanes[usize::from(count - 1 - place)], bits, signs[i]);
        let value = of_lanes(instr, source(0), source(1))?;
        let value = if instr.opcode.has(Mod::Sat) { clamp(value, bits, signed) } else { value };
        if adds {
            result = result.wrapping_add(value as u32);
        } else {
            let ones = (1 << bits) - 1;
            let shift = u32::from(place) * u32::from(bits);
            result = result & !(ones << shift) | (value as u32 & ones) << shift;
        }
    }
    Ok(result)
}
