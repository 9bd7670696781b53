//! `txq` and `suq`. The lowering follows the output of ptxas 13.0.88.

use super::handle::{SAMPLER_SHIFT, TEXTURE};
use super::{Lowering, Result, Statement};
use crate::ori::ir::{Dst, File, Inst, Src};
use crate::ori::memory::Order;
use crate::ori::op::{Access, Descriptors, Evict, HandleAt, MemSize, Op, Prefetch};
use ptx_isa::{FormId, Mod, ScalarType};

/// The bits of a sampler's index in a handle value, up to sm_89.
const SAMPLER: u32 = 0xfff;

/// The offset of each attribute in an entry of a driver table.
type Places = &'static [(Mod, i32)];

const SURFACE: Places = &[
    (Mod::ChannelDataType, 0xc),
    (Mod::ChannelOrder, 0x10),
    (Mod::MemoryLayout, 0x14),
    (Mod::ArraySize, 0x1c),
];
const UNIFIED: Places = &[
    (Mod::AddrMode0, 0xc),
    (Mod::AddrMode1, 0x10),
    (Mod::AddrMode2, 0x14),
    (Mod::FilterMode, 0x18),
    (Mod::NormalizedCoords, 0x1c),
    (Mod::ChannelDataType, 0x20),
    (Mod::ChannelOrder, 0x24),
    (Mod::ArraySize, 0x28),
    (Mod::NumMipmapLevels, 0x2c),
    (Mod::NumSamples, 0x30),
];
const OF_TEXTURE: Places = &[
    (Mod::NormalizedCoords, 0xc),
    (Mod::ChannelDataType, 0x10),
    (Mod::ChannelOrder, 0x14),
    (Mod::ArraySize, 0x18),
    (Mod::NumMipmapLevels, 0x1c),
    (Mod::NumSamples, 0x20),
];
const OF_SAMPLER: Places = &[
    (Mod::AddrMode0, 0x0),
    (Mod::AddrMode1, 0x4),
    (Mod::AddrMode2, 0x8),
    (Mod::FilterMode, 0xc),
    (Mod::ForceUnnormalizedCoords, 0x10),
];

impl<'a> Lowering<'a> {
    /// `txq` and `suq`.
    pub(super) fn query_texture(&mut self, instr: &Statement<'a>) -> Result<()> {
        match instr.take(&[(Mod::Width, 1), (Mod::Height, 2), (Mod::Depth, 4)]) {
            Some(mask) => self.query_extent(instr, mask),
            None => self.query_table(instr),
        }
    }

    /// Queries an extent, for which there is a machine instruction.
    fn query_extent(&mut self, instr: &Statement<'a>, mask: u8) -> Result<()> {
        let operand = self.operand(instr, 1)?;
        let level = match instr.has(Mod::Level) {
            true => self.source(instr, 2, ScalarType::B32)?,
            false => Src::ZERO,
        };
        let extent = self.with_handle(instr, std::slice::from_ref(operand), |this, handle, matched| {
            let (at, place) = match handle.register {
                Some(register) => (HandleAt::Register, this.pack(&[register, level])),
                None if level == Src::ZERO => (HandleAt::Shared, level),
                None => (HandleAt::Shared, this.in_register(level)),
            };
            let extent = this.new_value(File::R, 1);
            let op = Op::Txq { mask, handle: at, word: handle.word };
            let inst = Inst::new(op, &[Dst::Value(extent)], &[place, handle.uniform], this.src);
            this.push_for(matched, inst);
            Ok(extent)
        })?;
        self.result(instr, extent.into())
    }

    /// Queries another attribute, which is in the driver's tables.
    fn query_table(&mut self, instr: &Statement<'a>) -> Result<()> {
        let tables: &[(Descriptors, Places)] = match (instr.form(), self.env.independent_samplers) {
            (FormId::Suq, _) => &[(Descriptors::Surface, SURFACE)],
            (_, false) => &[(Descriptors::Unified, UNIFIED)],
            (_, true) => &[(Descriptors::Texture, OF_TEXTURE), (Descriptors::Sampler, OF_SAMPLER)],
        };
        let found = tables.iter().find_map(|&(table, places)| Some((table, instr.take(places)?)));
        let Some((table, offset)) = found else {
            return self.unsupported(instr, "an attribute that the driver's tables do not contain");
        };
        let operand = self.operand(instr, 1)?;
        let word = self.handle_word(instr, operand)?;
        let index = match table {
            _ if self.target.uniform_handles => word,
            Descriptors::Sampler if self.opaque_symbol(operand).is_some() => {
                self.shift_right(word, SAMPLER_SHIFT, false)
            }
            Descriptors::Sampler => self.lop3(0xc0, word, Src::imm(SAMPLER), Src::ZERO),
            _ => self.lop3(0xc0, word, Src::imm(TEXTURE), Src::ZERO),
        };
        let start = self.target.driver.descriptors + table.place();
        let base = self.pack(&[Src::constant(0, start), Src::constant(0, start + 4)]);
        let size = self.reg(Op::EntrySize { table }, &[]);
        let entry = self.multiply_wide(false, index, size, base);
        let access = Access {
            size: MemSize::B32,
            order: Order::Constant,
            evict: Evict::Normal,
            prefetch: Prefetch::None,
            offset,
        };
        let descriptor = self.descriptor();
        let attribute = self.reg(Op::Ldg { access }, &[entry, descriptor]);
        self.result(instr, attribute)
    }
}
