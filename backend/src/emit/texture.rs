//! Texture and surface instructions, whose form depends on where their handle is.

use super::Emitter;
use super::builder::{Builder, PHASE, Slot};
use super::generic::operand;
use crate::CodegenError;
use crate::mach::Effect;
use crate::ori::ir::{Dst, File, Inst, Reg, Src, SrcKind, SrcMods};
use crate::ori::memory::{Order, Scope};
use crate::ori::op::{
    Bool, HandleAt, ICmp, MemSize, MufuFunc, Op, Round, ShflMode, Sign, TexDims, TexLevel, TexRead,
};
use crate::ori::operations::{families, for_each_setting, signature};
use crate::ori::row::Setting;
use crate::ori::signature::{coordinates, has_layer};
use sass::Field;

const PINNED: Effect = Effect::Fence { pinned: true };
/// The register with the mask of active threads.
const ACTIVE: &str = "MACTIVE";
/// The number of threads of a quad, and the bounds of a shuffle within a quad.
const QUAD: u32 = 4;
const IN_QUAD: u32 = 0x1c03;
/// Whether each thread of a quad adds a derivative to a coordinate. Only the second and the fourth thread add the first
/// derivative, and only the third and the fourth add the second one. The others take the coordinate alone.
const TO_THE_RIGHT: u64 = 0b11_00_11_00;
const BELOW: u64 = 0b11_11_00_00;
/// The layout of the registers that the threads of a quad share. The layer and the coordinates come first; the results
/// of the read replace them.
const BEHIND: usize = 4;
const KEPT: usize = 8;
const RESULTS: usize = 5;
const MARK: usize = KEPT + RESULTS;
const DERIVATIVES: usize = MARK + 1;

impl Emitter<'_> {
    pub(super) fn texture(&mut self, inst: &Inst) -> Result<(), CodegenError> {
        let builder = self.read_or_query(inst)?;
        self.push(builder, Some(inst.src), Effect::Fence { pinned: false })
    }

    fn read_or_query(&self, inst: &Inst) -> Result<Builder, CodegenError> {
        let (name, at, word, handle) = match inst.op {
            Op::Tex { read, handle, word, .. } => (unit(read), handle, word, 2),
            Op::Txq { handle, word, .. } => ("TXQ", handle, word, 1),
            _ => return Err(CodegenError::internal(inst.src, PHASE, "no texture")),
        };
        let mut builder = self.by_handle(inst, name, at, word, operand(inst, handle)?)?;
        for (slot, dst) in signature(&inst.op).dsts.iter().zip(&inst.dsts) {
            builder.dst(slot.at, Some(dst));
        }
        builder.reg(Field::Ra, File::R, operand(inst, 0)?);
        match inst.op {
            Op::Tex { read, level, dims, offsets, compare, .. } => {
                builder.reg(Field::Rb, File::R, operand(inst, 1)?);
                builder.setting(&[Field::Dims], Setting::Choice(dims.machine_texts()));
                builder.text(Field::Offsets, if offsets { ".AOFFI" } else { "" });
                match (read, channel(read)) {
                    (_, Some(channel)) => {
                        builder.text(Field::Op, channel).flag(Field::Compare, compare);
                    }
                    (TexRead::Derive, _) => {}
                    (TexRead::Sample, _) => {
                        builder.text(Field::Lod, level.text()).flag(Field::Compare, compare);
                    }
                    _ => {
                        builder.text(Field::Lod, level.text());
                        builder.flag(Field::Compare, read == TexRead::FetchSample);
                        // A mipmap level that does not exist is replaced by the nearest one.
                        builder.flag(Field::Mode2, level == TexLevel::Given);
                    }
                }
            }
            Op::Txq { mask, .. } => {
                builder.text(Field::Op, "TEX_HEADER_DIMENSION").value(Field::Mask, mask.into());
            }
            _ => {}
        }
        Ok(builder)
    }

    /// Emits `TEXTURE_BY_QUADS` as ptxas does. `TEX` computes derivatives from the differences between the coordinates
    /// of the four threads of a quad. So all threads of the quads execute the following code once for each thread of a
    /// quad: they copy the operands of that thread, add its derivatives to the coordinates in the threads to the right
    /// and below, and read. The thread then keeps the result of the first thread of the quad.
    pub(super) fn derive(&mut self, inst: &Inst) -> Result<(), CodegenError> {
        let broken = || CodegenError::internal(inst.src, PHASE, "no texture read with derivatives");
        let Op::TexDerive { dims, offsets, compare, handle, word } = inst.op else { return Err(broken()) };
        let [Dst::Reg(shared), Dst::Reg(chosen), Dst::Reg(barrier), texels @ ..] = &inst.dsts[..] else {
            return Err(broken());
        };
        let at = |i: usize| Reg { file: File::R, index: shared.index + i as u8 };
        let source = |reg: Reg| Src::new(SrcKind::Reg(reg));
        let of = |op: Op, dst: Reg, srcs: &[Src]| Inst::new(op, &[Dst::Reg(dst)], srcs, inst.src);
        let layers = usize::from(has_layer(dims));
        let coordinates = usize::from(coordinates(dims));
        let by_register = handle == HandleAt::Register;
        let behind = [by_register, offsets, compare].into_iter().filter(|&is| is).count();
        let first = layers + coordinates;
        let srcs = &inst.srcs;
        if srcs.len() != first + behind + 2 * coordinates {
            return Err(broken());
        }
        let others = texels.get(2);
        let mut active = Builder::new(self.sm, inst.src, "BMOV.32.STATE", "s")?;
        active.reg(Field::Barrier, File::B, &source(*barrier)).text(Field::Special, ACTIVE);
        self.push(active, Some(inst.src), PINNED)?;
        self.activate(inst, *barrier, true)?;
        if by_register {
            // Threads that do not execute this instruction have no handle, and no texel is read for them.
            self.mov(&Dst::Reg(at(MARK)), &Src::ZERO, Some(inst.src))?;
            self.activate(inst, *barrier, false)?;
            self.mov(&Dst::Reg(at(MARK)), &Src::imm(1), Some(inst.src))?;
            self.activate(inst, *barrier, true)?;
        }
        for lane in 0..QUAD {
            let from_lane = |dst: Reg, src: Src, lane: u32| {
                of(Op::Shfl { mode: ShflMode::Idx }, dst, &[src, Src::imm(lane), Src::imm(IN_QUAD)])
            };
            let places = (0..first).chain(BEHIND..BEHIND + behind).chain(DERIVATIVES..);
            for (i, src) in places.zip(srcs) {
                self.select(&from_lane(at(i), *src, lane))?;
            }
            for (i, coordinate) in (layers..first).enumerate() {
                for (derivative, signs) in [TO_THE_RIGHT, BELOW].into_iter().enumerate() {
                    let mut add = Builder::new(self.sm, inst.src, "FSWZADD", "")?;
                    add.flag(Field::Mode, true).value(Field::Imm32, signs);
                    add.dst(Field::Rd, Some(&Dst::Reg(at(coordinate))));
                    add.reg(Field::Ra, File::R, &source(at(DERIVATIVES + 2 * i + derivative)));
                    add.reg(Field::Rc, File::R, &source(at(coordinate)));
                    self.push(add, Some(inst.src), Effect::None)?;
                }
            }
            if matches!(dims, TexDims::Cube | TexDims::Cubes) {
                let most = Op::Fmnmx { ftz: false, nan: false, xor: false };
                let magnitude =
                    |i: usize| Src { mods: SrcMods { abs: true, ..SrcMods::NONE }, ..source(at(layers + i)) };
                let scale = at(DERIVATIVES);
                self.select(&of(most, scale, &[magnitude(0), magnitude(1), Src::FALSE]))?;
                self.select(&of(most, scale, &[source(scale), magnitude(2), Src::FALSE]))?;
                self.select(&of(Op::Mufu { func: MufuFunc::Rcp }, scale, &[source(scale)]))?;
                let multiply = Op::Fmul { ftz: false, round: Round::Rn, sat: false };
                for coordinate in (layers..first).map(at) {
                    self.select(&of(multiply, coordinate, &[source(coordinate), source(scale)]))?;
                }
            }
            if by_register {
                let mark = at(DERIVATIVES);
                self.select(&from_lane(mark, source(at(MARK)), lane))?;
                self.select(&is_set(inst, Dst::Reg(*chosen), source(mark)))?;
            }
            let op =
                Op::Tex { read: TexRead::Sample, level: TexLevel::Own, dims, offsets, compare, handle, word };
            let results = [at(0), at(2), *chosen].map(Dst::Reg);
            let results = &results[..if others.is_some() { 3 } else { 2 }];
            let rest = if behind > 0 { source(at(BEHIND)) } else { Src::ZERO };
            let mut read =
                self.read_or_query(&Inst::new(op, results, &[source(at(0)), rest, Src::ZERO], inst.src))?;
            read.flag(Field::Mode2, true);
            if by_register {
                read.pred(Field::Guard, &source(*chosen));
            }
            self.push(read, Some(inst.src), Effect::Fence { pinned: false })?;
            if others.is_some() {
                let missing = source(*chosen).not();
                self.select(&of(Op::Sel, at(BEHIND), &[Src::ZERO, Src::imm(1), missing]))?;
            }
            for (i, kept) in (0..RESULTS).zip(KEPT..).take(if others.is_some() { 5 } else { 4 }) {
                self.select(&from_lane(at(i), source(at(i)), 0))?;
                let mut keep = Builder::shaped(self.sm, inst.src, "MOV", &[(Slot::B, &source(at(i)))])?;
                keep.dst(Field::Rd, Some(&Dst::Reg(at(kept)))).value(Field::Mode, 1 << lane);
                self.push(keep, Some(inst.src), Effect::None)?;
            }
        }
        self.activate(inst, *barrier, false)?;
        for (half, texel) in texels.iter().take(2).enumerate() {
            if let Dst::Reg(to) = *texel {
                self.move_run(to, at(KEPT + 2 * half), 2, inst.src)?;
            }
        }
        match others {
            Some(to) => self.select(&is_set(inst, *to, source(at(KEPT + 4)))),
            None => Ok(()),
        }
    }

    /// Activates the threads in a barrier register, or all threads of their quads, for the following instructions.
    fn activate(&mut self, inst: &Inst, barrier: Reg, quads: bool) -> Result<(), CodegenError> {
        let mut active = Builder::new(self.sm, inst.src, "BMOV.32.STATE", "b")?;
        active.text(Field::Special, ACTIVE).flag(Field::Flag, quads);
        active.reg(Field::Barrier, File::B, &Src::new(SrcKind::Reg(barrier)));
        self.push(active, Some(inst.src), PINNED)
    }

    pub(super) fn surface(&mut self, inst: &Inst) -> Result<(), CodegenError> {
        let (at, word, in_bytes) = match inst.op {
            Op::Suld { handle, word, .. } | Op::Sust { handle, word, .. } => (handle, word, true),
            Op::SustElements { handle, word, .. } => (handle, word, false),
            Op::Sured { elements, handle, word, .. } => (handle, word, !elements),
            _ => return Err(CodegenError::internal(inst.src, PHASE, "no surface")),
        };
        let name = families(&inst.op)[0];
        let mut builder = self.by_handle(inst, name, at, word, operand(inst, 2)?)?;
        if at == HandleAt::Register {
            builder.reg(Field::Rc, File::R, operand(inst, 1)?);
        }
        builder.reg(Field::Ra, File::R, operand(inst, 0)?);
        for (slot, dst) in signature(&inst.op).dsts.iter().zip(&inst.dsts) {
            builder.dst(slot.at, Some(dst));
        }
        if let Some(data) = inst.srcs.get(3) {
            builder.reg(Field::Rb, File::R, data);
        }
        if builder.has(Field::Flag) {
            builder.flag(Field::Flag, in_bytes);
        }
        for_each_setting(&inst.op, |fields, setting| {
            builder.setting(fields, setting);
        });
        match inst.op {
            Op::SustElements { size, .. } => {
                builder.text(Field::Mask, channels(size));
            }
            Op::Sured { .. } => {
                let order = Order::Relaxed(Scope::Sys).machine_texts();
                builder.setting(&[Field::Order], Setting::Choice(order));
            }
            _ => {}
        }
        self.push(builder, Some(inst.src), Effect::Fence { pinned: false })
    }

    /// Selects the form by the location of the handle.
    fn by_handle(
        &self,
        inst: &Inst,
        name: &'static str,
        at: HandleAt,
        word: i32,
        uniform: &Src,
    ) -> Result<Builder, CodegenError> {
        let shape = match at {
            HandleAt::Register => "r",
            HandleAt::Shared if uniform.kind == SrcKind::Zero => "c",
            HandleAt::Shared => "u",
        };
        let mut builder = Builder::new(self.sm, inst.src, name, shape)?;
        match shape {
            "c" => builder.value(Field::CBank, 0).value(Field::COffset, word as u64),
            "u" => builder.reg(Field::Ur, File::UR, uniform),
            _ => &mut builder,
        };
        Ok(builder)
    }
}

fn is_set(inst: &Inst, dst: Dst, word: Src) -> Inst {
    let op = Op::Isetp { cmp: ICmp::Ne, sign: Sign::U32, bool_: Bool::And, ex: false };
    Inst::new(op, &[dst], &[word, Src::ZERO, Src::TRUE], inst.src)
}

fn unit(read: TexRead) -> &'static str {
    match read {
        TexRead::Sample => "TEX",
        TexRead::Derive => "TXD",
        TexRead::Fetch | TexRead::FetchSample => "TLD",
        TexRead::GatherR | TexRead::GatherG | TexRead::GatherB | TexRead::GatherA => "TLD4",
    }
}

/// The channel that a gather reads.
fn channel(read: TexRead) -> Option<&'static str> {
    match read {
        TexRead::Sample | TexRead::Derive | TexRead::Fetch | TexRead::FetchSample => None,
        TexRead::GatherR => Some(".R"),
        TexRead::GatherG => Some(".G"),
        TexRead::GatherB => Some(".B"),
        TexRead::GatherA => Some(".A"),
    }
}

/// The channels that a converting store writes.
fn channels(size: MemSize) -> &'static str {
    match size {
        MemSize::B128 => "",
        MemSize::B64 => ".RG",
        _ => ".R",
    }
}
