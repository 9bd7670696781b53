//! Loads, stores and atomics.

use super::address::Address;
use super::operand::Kind;
use super::{Block, Result, STACK_TOP, WARP, each};
use crate::float::{BF16, F16, F32, F64, Format, Rounding};
use crate::launch::FaultKind;
use crate::memory::{RANK_SHIFT, SHARED_WINDOW, Space, View, number, space_of};
use sass::{Field, Inst};

const BYTES: [u32; 8] = [1, 1, 2, 2, 4, 8, 16, 16];
/// The size of an access to eight registers, which form two groups of four, and the number of registers in a group.
const WIDE_BYTES: u32 = 32;
const GROUP: usize = 4;

impl Block<'_> {
    pub(super) fn view(&mut self, w: usize, lane: usize) -> View<'_> {
        let bytes = self.warps[w].local.len() / WARP;
        let rank = self.cluster.rank();
        // Without clusters, addresses of shared memory belong to the thread's own block.
        let (seen, rank) = match self.machine.target.clusters {
            true => (0..self.shared.len(), rank),
            false => (rank..rank + 1, 0),
        };
        View {
            global: &mut self.device.global,
            shared: self.shared.get_mut(seen.clone()).unwrap_or_default(),
            shared_written: &mut [],
            reserved: self.reserved.get_mut(seen).unwrap_or_default(),
            reserved_base: self.machine.target.cubin.tensor_words(),
            rank,
            shared_base: self.machine.target.shared_base.into(),
            local: &mut self.warps[w].local[lane * bytes..][..bytes],
            local_written: &mut [],
            local_end: STACK_TOP,
            local_low: self.machine.kernel.local_bytes.into(),
        }
    }

    /// The address of a lane's access in the state space of the instruction.
    pub(super) fn address(&self, w: usize, lane: usize, at: u32, narrow: bool) -> Result<u64> {
        let step = &self.machine.code[at as usize];
        let Address { register, base, offset, scale, wide } = step.address;
        if narrow {
            let index = self.bits(w, lane, register)? << scale;
            return Ok(index.wrapping_add(self.bits(w, lane, base)?).wrapping_add(offset as u32).into());
        }
        let register =
            if wide { self.pair(w, lane, register, false)? } else { self.bits(w, lane, register)?.into() };
        Ok(register.wrapping_add(self.pair(w, lane, base, false)?).wrapping_add(offset))
    }

    pub(super) fn access(&mut self, w: usize, mask: u32, at: u32, name: &'static str) -> Result<()> {
        let machine = self.machine;
        let step = &machine.code[at as usize];
        let full = step.inst.form().name;
        let unsupported = || Err(FaultKind::Unsupported(format!("this form of {full}")));
        if matches!(name, "LDG" | "LD") && (step.pd != 7 || step.inst.get(Field::Pp).unwrap_or(7) != 7) {
            return unsupported();
        }
        let (space, narrow) = match name {
            "LDG" | "STG" | "ATOMG" | "RED" | "REDG" => (Space::Global, false),
            "LDS" | "STS" | "ATOMS" => (Space::Shared, true),
            "LDL" | "STL" => (Space::Local, true),
            _ => (Space::Generic, false),
        };
        let size = step.inst.get(Field::Size).unwrap_or(4) as usize;
        match name {
            "LDC" => {
                if step.inst.get(Field::Mode).unwrap_or(0) != 0 {
                    return unsupported();
                }
                let register = step.inst.get(Field::Ra).filter(|&register| register != 255);
                for lane in each(mask) {
                    let index = register.map(|index| self.warps[w].registers[index as usize * WARP + lane]);
                    let (bank, address) = constant_place(&step.inst, index, BYTES[size])?;
                    let value = self.constant(bank, address, BYTES[size])?;
                    self.loaded(w, lane, step.rd, size, &value.to_le_bytes());
                }
                Ok(())
            }
            "ULDC" | "LDCU" => {
                let register =
                    step.inst.get(Field::URa).filter(|&register| register != machine.sm.urz().into());
                let index = register.map(|index| self.warps[w].uniform[index as usize]);
                let (bank, address) = constant_place(&step.inst, index, BYTES[size])?;
                for word in 0..BYTES[size].div_ceil(4) {
                    let value = self.constant(bank, address + u64::from(4 * word), BYTES[size].min(4))?;
                    self.set_uniform(w, step.rd + word as u8, value as u32);
                }
                Ok(())
            }
            "LDG" | "STG" if matches!(full, "LDG.256" | "STG.256") => self.access_wide(w, mask, at, full),
            "LDG" | "LD" | "LDS" | "LDL" => {
                let mut looked = None;
                for lane in each(mask) {
                    let address = self.address(w, lane, at, narrow)?;
                    looked = Some((lane, address));
                    let mut bytes = [0; 16];
                    let found = self.view(w, lane);
                    let mut found = found;
                    bytes[..BYTES[size] as usize].copy_from_slice(found.slice(
                        space,
                        address,
                        BYTES[size],
                    )?);
                    self.loaded(w, lane, step.rd, size, &bytes);
                }
                match looked {
                    Some((lane, address)) => self.looked(w, lane, space, address, BYTES[size]),
                    None => Ok(()),
                }
            }
            "STG" | "ST" | "STS" | "STL" => {
                let data = data(step, Field::Rb).or(data(step, Field::Rc)).unwrap_or(255);
                for lane in each(mask) {
                    let address = self.address(w, lane, at, narrow)?;
                    let mut bytes = [0; 16];
                    for (i, word) in bytes.chunks_mut(4).take(BYTES[size].div_ceil(4) as usize).enumerate() {
                        let index = if data == 255 { 255 } else { usize::from(data) + i };
                        word.copy_from_slice(&self.warps[w].registers[index * WARP + lane].to_le_bytes());
                    }
                    let mut view = self.view(w, lane);
                    view.slice(space, address, BYTES[size])?.copy_from_slice(&bytes[..BYTES[size] as usize]);
                }
                Ok(())
            }
            // The multicast address refers to a single device, so a reduction over all devices is the value on this
            // device.
            "LDGMC" => {
                let words = multicast_words(step.inst.text(Field::Type).unwrap_or(""));
                let Some(words) = words else { return unsupported() };
                for lane in each(mask) {
                    let address = self.address(w, lane, at, false)?;
                    let mut bytes = [0; 16];
                    let bytes = &mut bytes[..4 * words];
                    bytes.copy_from_slice(self.view(w, lane).slice(
                        Space::Global,
                        address,
                        4 * words as u32,
                    )?);
                    for (i, word) in bytes.chunks(4).enumerate().filter(|_| step.rd != 255) {
                        self.set_register(w, lane, step.rd + i as u8, number(word) as u32);
                    }
                }
                Ok(())
            }
            "LDGSTS" => {
                let size = match step.inst.text(Field::Size) {
                    Some(".64") => 8,
                    Some(".128") => 16,
                    _ => 4,
                };
                let to = Kind::Register(data(step, Field::Rc).unwrap_or(255));
                let to = super::operand::Source { kind: to, ..step.sources[0] };
                let offset = step.inst.get(Field::Imm2).unwrap_or(0) as u32;
                let fills = step.inst.get(Field::ZeroFill) == Some(1);
                for lane in each(mask) {
                    let address = self.address(w, lane, at, false)?;
                    let to = self.bits(w, lane, to)?.wrapping_add(offset);
                    let copies = self.holds(w, lane, false, step.predicates[0]);
                    let mut bytes = vec![0; size as usize];
                    let mut view = self.view(w, lane);
                    // The low bits of the address hold the number of bytes that are not copied and filled with zeros.
                    let filled = if fills { address % u64::from(size) } else { 0 };
                    if copies {
                        let left = size - filled as u32;
                        let from = view.read_bytes(Space::Global, address - filled, left)?;
                        bytes[..left as usize].copy_from_slice(from);
                    }
                    view.slice(Space::Shared, to.into(), size)?;
                    self.warps[w].copies.begin(lane, to.into(), bytes);
                }
                Ok(())
            }
            "QSPC" => {
                let wanted = match step.inst.get(Field::Mode) {
                    Some(0) => Space::Global,
                    Some(1) => Space::Local,
                    Some(2 | 3) => Space::Shared,
                    _ => return unsupported(),
                };
                for lane in each(mask) {
                    let holds = space_of(self.address(w, lane, at, false)?) == wanted;
                    self.set_predicate(w, lane, false, step.pd, holds);
                    self.set_register(w, lane, step.rd, holds.into());
                }
                Ok(())
            }
            _ => self.atomic(w, mask, at, space, narrow),
        }
    }

    /// Loads or stores eight registers, or those in a mask.
    fn access_wide(&mut self, w: usize, mask: u32, at: u32, name: &str) -> Result<()> {
        let step = &self.machine.code[at as usize];
        let words = step.inst.get(Field::Mask).unwrap_or(0xff);
        let register = |field| data(step, field).unwrap_or(255);
        let loads = name == "LDG.256";
        let groups = if loads { [Field::Rd, Field::Rd2] } else { [Field::Rb, Field::Rc] }.map(register);
        for lane in each(mask) {
            let address = self.address(w, lane, at, false)?;
            let mut bytes = [0; WIDE_BYTES as usize];
            bytes.copy_from_slice(self.view(w, lane).slice(Space::Global, address, WIDE_BYTES)?);
            let mut next = groups;
            for (i, word) in bytes.chunks_mut(4).enumerate() {
                let register = next[i / GROUP];
                let moves = words >> i & 1 == 1;
                // The accessed registers of a group are consecutive.
                next[i / GROUP] = register.saturating_add(u8::from(moves));
                if moves && loads {
                    self.set_register(w, lane, register, number(word) as u32);
                } else if moves {
                    let index = if groups[i / GROUP] == 255 { 255 } else { usize::from(register) };
                    word.copy_from_slice(&self.warps[w].registers[index * WARP + lane].to_le_bytes());
                }
            }
            if !loads {
                self.view(w, lane).slice(Space::Global, address, WIDE_BYTES)?.copy_from_slice(&bytes);
            }
        }
        Ok(())
    }

    /// Completes the copies of threads: all except those of the last `but` closed groups, or all.
    pub(super) fn land(&mut self, w: usize, mask: u32, but: Option<u32>) -> Result<()> {
        for lane in each(mask) {
            let copies = match but {
                Some(but) => self.warps[w].copies.finish(lane, but),
                None => self.warps[w].copies.finish_all(lane),
            };
            self.put_copies(w, lane, copies)?;
        }
        Ok(())
    }

    /// Writes the data of a thread's completed copies.
    pub(super) fn put_copies(&mut self, w: usize, lane: usize, copies: Vec<(u64, Vec<u8>)>) -> Result<()> {
        for (to, bytes) in copies {
            let mut view = self.view(w, lane);
            view.slice(Space::Shared, to, bytes.len() as u32)?.copy_from_slice(&bytes);
        }
        Ok(())
    }

    pub(super) fn loaded(&mut self, w: usize, lane: usize, rd: u8, size: usize, bytes: &[u8]) {
        if rd == 255 {
            return;
        }
        let first = number(&bytes[..4.min(BYTES[size] as usize)]) as u32;
        let first = match size {
            1 => first as u8 as i8 as u32,
            3 => first as u16 as i16 as u32,
            _ => first,
        };
        self.set_register(w, lane, rd, first);
        for word in 1..BYTES[size] as usize / 4 {
            self.set_register(w, lane, rd + word as u8, number(&bytes[4 * word..4 * word + 4]) as u32);
        }
    }

    fn atomic(&mut self, w: usize, mask: u32, at: u32, space: Space, narrow: bool) -> Result<()> {
        let step = &self.machine.code[at as usize];
        let inst = &step.inst;
        let name = inst.form().name;
        let ty = inst.text(Field::Type).unwrap_or("");
        let float = matches!(name, "ATOM.F" | "ATOMG.F" | "REDG.F");
        let (ty, size, count) = elements(ty).ok_or_else(|| FaultKind::Unsupported(format!("{name}{ty}")))?;
        let total = size * count;
        let op = inst.text(Field::Op).unwrap_or("");
        let tests = name == "ATOMS.CAST" || op.starts_with(".CAST");
        let compare = tests || name.ends_with(".CAS");
        // Operations that the block's own shared memory does not support are only executed in global memory and in
        // other blocks.
        let global_only =
            space == Space::Generic && !compare && op != ".EXCH" && (float || elsewhere_missing(ty));
        for lane in each(mask) {
            let address = self.address(w, lane, at, narrow)?;
            if global_only && self.is_own(address) {
                self.set_predicate(w, lane, false, step.pd, false);
                continue;
            }
            let operand = |field| -> Vec<u8> {
                let first = data(step, field).unwrap_or(255);
                let word = |i| if first == 255 { 255 } else { usize::from(first) + i };
                let words = 0..total.div_ceil(4) as usize;
                words.flat_map(|i| self.warps[w].registers[word(i) * WARP + lane].to_le_bytes()).collect()
            };
            let (b, c) = (operand(Field::Rb), operand(Field::Rc));
            let mut view = self.view(w, lane);
            let old = view.slice(space, address, total)?.to_vec();
            let is_same = old == b;
            let new = match name {
                _ if compare && is_same => c,
                _ if compare => old.clone(),
                _ if op == ".EXCH" => b,
                _ => {
                    let mut new = Vec::new();
                    for (old, b) in old.chunks(size as usize).zip(b.chunks(size as usize)) {
                        let value = match name {
                            "ATOMS.POPC.INC" => Some((number(old) + 1) & 0xffff_ffff),
                            _ if size > 8 => None,
                            _ => update(op, ty, float, number(old), number(b)),
                        };
                        let unknown = || FaultKind::Unsupported(format!("{name}{op}{ty}"));
                        new.extend(&value.ok_or_else(unknown)?.to_le_bytes()[..size as usize]);
                    }
                    new
                }
            };
            view.slice(space, address, total)?.copy_from_slice(&new);
            for (i, word) in old.chunks(4).enumerate().filter(|_| step.rd != 255) {
                // The forms with a test return whether they stored, in the same number of registers.
                let value = if tests { u64::from(is_same && i == 0) } else { number(word) };
                self.set_register(w, lane, step.rd + i as u8, value as u32);
            }
            self.set_predicate(w, lane, false, step.pd, !tests || is_same);
        }
        Ok(())
    }
}

/// The bank and the address of a constant load. With an index, the offset is signed; without one, it is unsigned.
fn constant_place(inst: &Inst, index: Option<u32>, size: u32) -> Result<(u8, u64)> {
    let bank = inst.get(Field::CBank).unwrap_or(0) as u8;
    let offset = inst.get(Field::COffset).unwrap_or(0) as u32;
    let address = match (index, inst.form().spec(Field::COffset)) {
        (Some(index), Some(spec)) => {
            let unused = u32::BITS - spec.value_bits();
            index.wrapping_add(((offset << unused) as i32 >> unused) as u32)
        }
        _ => offset,
    };
    if !address.is_multiple_of(size) {
        return Err(FaultKind::Misaligned { space: "constant", address: address.into(), size });
    }
    Ok((bank, address.into()))
}

/// The type of an atomic operation's elements, their size in bytes, and their number.
fn elements(ty: &str) -> Option<(&str, u32, u32)> {
    Some(match ty {
        ".128" => (ty, 16, 1),
        ".64" | ".S64" | ".F64.RN" => (ty, 8, 1),
        "" | ".S32" | ".F32.FTZ.RN" | ".F32.RN" | ".F16x2.RN" | ".BF16x2.RN" => (ty, 4, 1),
        ".F32x2.FTZ.RN" => (".F32.FTZ.RN", 4, 2),
        ".F32x4.FTZ.RN" => (".F32.FTZ.RN", 4, 4),
        ".F32x2.RN" => (".F32.RN", 4, 2),
        ".F32x4.RN" => (".F32.RN", 4, 4),
        ".F16x4.RN" => (".F16x2.RN", 4, 2),
        ".F16x8.RN" => (".F16x2.RN", 4, 4),
        ".BF16x4.RN" => (".BF16x2.RN", 4, 2),
        ".BF16x8.RN" => (".BF16x2.RN", 4, 4),
        _ => return None,
    })
}

/// The number of registers that a multicast load of a type such as `.F16x4` fills.
fn multicast_words(ty: &str) -> Option<usize> {
    let (ty, count) = match ty.trim_start_matches('.').split_once('x') {
        Some((ty, count)) => (ty, count.parse::<usize>().ok()?),
        None => (ty.trim_start_matches('.'), 1),
    };
    let bits = match ty {
        "" | "32" | "S32" | "U32" | "F32" => 32,
        "64" | "S64" | "U64" | "F64" => 64,
        "F16" | "BF16" => 16,
        "E4M3" | "E5M2" => 8,
        _ => return None,
    };
    let words = (bits * count).div_ceil(32);
    (words <= 4).then_some(words)
}

impl Block<'_> {
    /// Whether a generic address refers to the thread's own local memory or to its block's shared memory.
    fn is_own(&self, address: u64) -> bool {
        match space_of(address) {
            Space::Shared => (address - SHARED_WINDOW) >> RANK_SHIFT == self.cluster.rank() as u64,
            space => space != Space::Global,
        }
    }
}

/// Whether shared memory lacks atomic operations on such elements, except exchanges.
fn elsewhere_missing(ty: &str) -> bool {
    !matches!(ty, "" | ".S32")
}

fn data(step: &super::step::Step, field: Field) -> Option<u8> {
    step.inst.get(field).map(|index| index as u8)
}

/// The new value in memory after an atomic operation.
pub(super) fn update(op: &str, ty: &str, float: bool, old: u64, b: u64) -> Option<u64> {
    let bits = if matches!(ty, ".64" | ".S64" | ".F64.RN") { 64 } else { 32 };
    let signed = matches!(ty, ".S32" | ".S64");
    let wide = |x: u64| if signed { i128::from((x << (64 - bits)) as i64 >> (64 - bits)) } else { x.into() };
    let less = wide(old) < wide(b);
    let packed = |format: Format| {
        let one = |x: u64, y: u64| match op {
            ".MIN" | ".MAX" => format.extremum(x & 0xffff, y & 0xffff, op == ".MAX", false),
            _ => format.add(x & 0xffff, y & 0xffff, Rounding::Nearest),
        };
        one(old >> 16, b >> 16) << 16 | one(old, b)
    };
    let combined = match ty {
        ".F32.FTZ.RN" => F32.flush(F32.add(F32.flush(old), F32.flush(b), Rounding::Nearest)),
        ".F32.RN" => F32.add(old, b, Rounding::Nearest),
        ".F64.RN" => F64.add(old, b, Rounding::Nearest),
        ".F16x2.RN" => packed(F16),
        ".BF16x2.RN" => packed(BF16),
        _ => old.wrapping_add(b) & (u64::MAX >> (64 - bits)),
    };
    Some(match op {
        ".ADD" => combined,
        ".MIN" | ".MAX" if matches!(ty, ".F16x2.RN" | ".BF16x2.RN") => combined,
        _ if float => return None,
        ".MIN" => {
            if less {
                old
            } else {
                b
            }
        }
        ".MAX" => {
            if less {
                b
            } else {
                old
            }
        }
        ".INC" => {
            if old >= b {
                0
            } else {
                old + 1
            }
        }
        ".DEC" => {
            if old == 0 || old > b {
                b
            } else {
                old - 1
            }
        }
        ".AND" => old & b,
        ".OR" => old | b,
        ".XOR" => old ^ b,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use crate::Launch;
    use crate::machine::run;
    use crate::machine::testing::{device, kernel};
    use sass::Sm;

    /// The fault of instructions that read 64 bytes of constants. Each word of the constants holds its own address.
    fn fault(sm: Sm, lines: &[&str]) -> String {
        let mut kernel = kernel(sm, lines);
        kernel.bank3 = (0..16u32).flat_map(|word| (4 * word).to_le_bytes()).collect();
        let result = run(&kernel, &Launch::new(1, 1, Vec::new()), &mut device(sm));
        result.map_or_else(|fault| fault.to_string(), |_| String::new())
    }

    #[test]
    fn an_index_takes_a_signed_offset() {
        let load = |sm, index: &str, load: &str, is: &str| {
            let check = "s15: @P0 BPT.TRAP";
            fault(sm, &[index, load, &format!("s15 ?0: ISETP.NE.AND P0, PT, R5, {is}, PT"), check])
        };
        for sm in [80, 90, 100, 120].map(Sm) {
            let index = "s15: MOV R4, 0x10";
            assert_eq!(load(sm, index, "s15 w0: LDC R5, c[0x3][R4+-0x8]", "0x8"), "");
            assert_eq!(load(sm, "s15: NOP", "s15 w0: LDC R5, c[0x3][RZ+0x8]", "0x8"), "");
            let outside = load(sm, "s15: MOV R4, 0x4", "s15 w0: LDC R5, c[0x3][R4+-0x8]", "0x0");
            assert_eq!(outside, "at 1: 4 bytes at 0xfffffffc are outside constant memory");
            let outside = load(sm, "s15: MOV R4, 0x10008", "s15 w0: LDC R5, c[0x3][R4+0x8]", "0x10");
            assert_eq!(outside, "at 1: 4 bytes at 0x10010 are outside constant memory");
            let odd = load(sm, "s15: MOV R4, 0x2", "s15 w0: LDC R5, c[0x3][R4+0x8]", "0x8");
            assert_eq!(odd, "at 1: 4 bytes at 0xa of constant memory are misaligned");
        }
        for sm in [100, 120].map(Sm) {
            let lines = [
                "s15: UMOV UR4, 0x10",
                "s15 w0: LDCU UR5, c[0x3][UR4+-0x8]",
                "s15 ?0: MOV R5, UR5",
                "s15: ISETP.NE.AND P0, PT, R5, 0x8, PT",
                "s15: @P0 BPT.TRAP",
            ];
            assert_eq!(fault(sm, &lines), "");
        }
    }
}
