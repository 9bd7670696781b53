//! Textures and surfaces, whose form depends on where their handle is.

use super::Emitter;
use super::builder::{Builder, PHASE, Slot};
use super::generic::operand;
use crate::CodegenError;
use crate::mach::Effect;
use crate::ori::ir::{Dst, File, Inst, Reg, Src, SrcKind};
use crate::ori::memory::{Order, Scope};
use crate::ori::op::{Op, TexRead};
use crate::ori::operations::signature;
use crate::ori::row::Setting;
use sass::Field;

impl Emitter<'_> {
    /// A handle and a zero, in a pair of uniform registers.
    pub(super) fn handle(&mut self, inst: &Inst) -> Result<(), CodegenError> {
        let load = self.by_row(inst)?;
        self.push(load, Some(inst.src), Effect::None)?;
        let Some(&Dst::Reg(Reg { file: File::UR, index })) = inst.dsts.first() else {
            return Err(CodegenError::internal(inst.src, PHASE, "a handle without registers"));
        };
        let mut zero = Builder::shaped(self.sm, inst.src, "UMOV", &[(Slot::B, &Src::new(SrcKind::Imm(0)))])?;
        zero.dst(Field::URd, Some(&Dst::Reg(Reg { file: File::UR, index: index + 1 })));
        self.push(zero, Some(inst.src), Effect::None)
    }

    pub(super) fn texture(&mut self, inst: &Inst) -> Result<(), CodegenError> {
        let (name, word, handle) = match inst.op {
            Op::Tex { read, word, .. } => (unit(read), word, 2),
            Op::Txq { word, .. } => ("TXQ", word, 0),
            Op::Suld { word, .. } => ("SULD", word, 1),
            Op::Sust { word, .. } => ("SUST", word, 1),
            _ => return Err(CodegenError::internal(inst.src, PHASE, "no texture")),
        };
        let handle = operand(inst, handle)?;
        let constant = handle.kind == SrcKind::Zero;
        let mut builder = Builder::new(self.sm, inst.src, name, if constant { "c" } else { "u" })?;
        if constant {
            builder.value(Field::CBank, 0).value(Field::COffset, word as u64);
        } else {
            builder.reg(Field::Ur, File::UR, handle);
        }
        for (slot, dst) in signature(&inst.op).dsts.iter().zip(&inst.dsts) {
            builder.dst(slot.at, Some(dst));
        }
        match inst.op {
            Op::Tex { read, level, dims, .. } => {
                builder.reg(Field::Ra, File::R, operand(inst, 0)?);
                builder.setting(&[Field::Dims], Setting::Choice(dims.machine_texts()));
                match channel(read) {
                    Some(channel) => builder.text(Field::Op, channel),
                    None => builder.text(Field::Lod, level.text()).reg(Field::Rb, File::R, operand(inst, 1)?),
                };
            }
            Op::Txq { mask, .. } => {
                builder.text(Field::Op, "TEX_HEADER_DIMENSION").value(Field::Mask, mask.into());
            }
            Op::Suld { dims, size, clamp, .. } | Op::Sust { dims, size, clamp, .. } => {
                builder.reg(Field::Ra, File::R, operand(inst, 0)?).text(Field::Dims, dims.text());
                builder.flag(Field::Flag, true).text(Field::Clamp, clamp.text());
                builder.setting(&[Field::Size], Setting::Choice(size.machine_texts()));
                let order = Order::Relaxed(Scope::Cta).machine_texts();
                builder.setting(&[Field::Order], Setting::Choice(order));
                if let Op::Sust { .. } = inst.op {
                    builder.reg(Field::Rb, File::R, operand(inst, 2)?);
                }
            }
            _ => {}
        }
        self.push(builder, Some(inst.src), Effect::Fence { pinned: false })
    }
}

fn unit(read: TexRead) -> &'static str {
    match read {
        TexRead::Sample => "TEX",
        TexRead::Fetch => "TLD",
        TexRead::GatherR | TexRead::GatherG | TexRead::GatherB | TexRead::GatherA => "TLD4",
    }
}

/// The channel that is gathered.
fn channel(read: TexRead) -> Option<&'static str> {
    match read {
        TexRead::Sample | TexRead::Fetch => None,
        TexRead::GatherR => Some(".R"),
        TexRead::GatherG => Some(".G"),
        TexRead::GatherB => Some(".B"),
        TexRead::GatherA => Some(".A"),
    }
}
