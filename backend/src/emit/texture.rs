//! Textures and surfaces, whose form depends on where their handle is.

use super::Emitter;
use super::builder::{Builder, PHASE};
use super::generic::operand;
use crate::CodegenError;
use crate::mach::Effect;
use crate::ori::ir::{File, Inst, Src, SrcKind};
use crate::ori::memory::{Order, Scope};
use crate::ori::op::{HandleAt, MemSize, Op, TexLevel, TexRead};
use crate::ori::operations::{families, for_each_setting, signature};
use crate::ori::row::Setting;
use sass::Field;

impl Emitter<'_> {
    pub(super) fn texture(&mut self, inst: &Inst) -> Result<(), CodegenError> {
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
                        // A level that does not exist is replaced by the nearest one that does.
                        builder.flag(Field::Mode2, level == TexLevel::Given);
                    }
                }
            }
            Op::Txq { mask, .. } => {
                builder.text(Field::Op, "TEX_HEADER_DIMENSION").value(Field::Mask, mask.into());
            }
            _ => {}
        }
        self.push(builder, Some(inst.src), Effect::Fence { pinned: false })
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

    /// The form for where the handle is.
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

fn unit(read: TexRead) -> &'static str {
    match read {
        TexRead::Sample => "TEX",
        TexRead::Derive => "TXD",
        TexRead::Fetch | TexRead::FetchSample => "TLD",
        TexRead::GatherR | TexRead::GatherG | TexRead::GatherB | TexRead::GatherA => "TLD4",
    }
}

/// The channel that is gathered.
fn channel(read: TexRead) -> Option<&'static str> {
    match read {
        TexRead::Sample | TexRead::Derive | TexRead::Fetch | TexRead::FetchSample => None,
        TexRead::GatherR => Some(".R"),
        TexRead::GatherG => Some(".G"),
        TexRead::GatherB => Some(".B"),
        TexRead::GatherA => Some(".A"),
    }
}

/// The channels of a converting store.
fn channels(size: MemSize) -> &'static str {
    match size {
        MemSize::B128 => "",
        MemSize::B64 => ".RG",
        _ => ".R",
    }
}
