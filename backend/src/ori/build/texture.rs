//! Textures and surfaces by handles that are parameters of the kernel.

use super::memory::elements;
use super::{Lowering, Result, Statement};
use crate::input::{AddressBase, Operand};
use crate::ori::ir::{Dst, File, Inst, Src, SrcKind};
use crate::ori::op::{MemSize, Op, SurfClamp, SurfDims, TexDims, TexLevel, TexRead};
use crate::ori::signature::{size_registers, surface_coordinates, texture_coordinates};
use ptx_isa::{Mod, ScalarType};

/// The most that the number of a layer can be.
const LAST_LAYER: u32 = 0xffff;
/// A level below all, which gives the first.
const BELOW_LEVELS: f32 = -32.0;

/// A handle: the word of constant bank 0, or uniform registers.
#[derive(Clone, Copy)]
struct Handle {
    word: i32,
    register: Src,
}

impl<'a> Lowering<'a> {
    /// The handle that an operand names.
    fn texture_handle(&mut self, instr: &Statement<'a>, operand: &Operand) -> Result<Handle> {
        let register = match operand {
            Operand::Reg(reg) => *reg,
            Operand::Address(address) if address.offset == 0 => match address.base {
                AddressBase::Reg(reg) => reg,
                _ => return self.unsupported(instr, "a texture or surface that is a variable"),
            },
            _ => return self.unsupported(instr, "a texture or surface that is a variable"),
        };
        let source = self.read(&Operand::Reg(register), ScalarType::U64)?;
        let constant = match source.kind {
            SrcKind::Const(constant) if constant.bank == 0 => constant,
            _ => return self.unsupported(instr, "a handle that is no parameter of the kernel"),
        };
        if !self.target.uniform_handles {
            return Ok(Handle { word: i32::from(constant.offset / 4), register: Src::ZERO });
        }
        let value = self.new_value(File::UR, 2);
        let low = Src::constant(0, constant.offset);
        self.push(Inst::new(Op::Handle, &[Dst::Value(value)], &[low], self.src));
        Ok(Handle { word: 0, register: value.into() })
    }

    /// The handle and the coordinates of an operand, all of which are words.
    fn sampled(&mut self, instr: &Statement<'a>, i: usize) -> Result<(Handle, Vec<Src>)> {
        let Operand::List(parts) = self.operand(instr, i)? else {
            return self.malformed("a texture without coordinates");
        };
        let [handle, vector] = &parts[..] else {
            return self.unsupported(instr, "a sampler of its own");
        };
        let handle = self.texture_handle(instr, handle)?;
        let words = match vector {
            Operand::Vector(words) => &words[..],
            single => std::slice::from_ref(single),
        };
        let words =
            words.iter().map(|word| self.read(word, ScalarType::B32)).collect::<Result<Vec<Src>>>()?;
        Ok((handle, words))
    }

    /// So many words in registers that follow each other.
    fn coordinates(&mut self, mut words: Vec<Src>, used: usize, registers: u8) -> Src {
        words.truncate(used);
        words.resize(usize::from(registers), Src::UNDEF);
        if registers == 1 { self.in_register(words[0]) } else { self.pack(&words) }
    }

    /// `tex` and `tld4`.
    pub(super) fn read_texture(&mut self, instr: &Statement<'a>) -> Result<()> {
        // There are always four elements.
        instr.ignore(&[Mod::V4]);
        let (to, from) = (self.type_of(instr, 0)?, self.type_of(instr, 1)?);
        if to.bits() != 32 {
            return self.unsupported(instr, &format!("the type .{}", to.text()));
        }
        let gather = instr.take(&[
            (Mod::R, TexRead::GatherR),
            (Mod::G, TexRead::GatherG),
            (Mod::B, TexRead::GatherB),
            (Mod::A, TexRead::GatherA),
        ]);
        let integers = from == ScalarType::S32;
        let read = gather.unwrap_or(if integers { TexRead::Fetch } else { TexRead::Sample });
        let geometries = [
            (Mod::D1d, TexDims::D1),
            (Mod::D2d, TexDims::D2),
            (Mod::D3d, TexDims::D3),
            (Mod::A1d, TexDims::A1),
            (Mod::A2d, TexDims::A2),
        ];
        let Some(mut dims) = instr.take(&geometries) else {
            return self.unsupported(instr, "this geometry");
        };
        let used = match dims {
            TexDims::D1 => 1,
            TexDims::D2 | TexDims::A1 => 2,
            TexDims::D3 | TexDims::A2 => 3,
        };
        let (handle, mut words) = self.sampled(instr, 1)?;
        if words.len() < used {
            return self.malformed("a texture with fewer coordinates than its geometry has");
        }
        if matches!(dims, TexDims::A1 | TexDims::A2) {
            words[0] = self.minimum(false, true, words[0], Src::imm(LAST_LAYER));
        }
        let mut used = used;
        if dims == TexDims::D1 && read == TexRead::Sample {
            // A line is a plane of which nothing but the first row is read.
            (dims, used) = (TexDims::D2, 2);
            words.truncate(1);
            words.push(Src::ZERO);
        }
        let (level, given) = match read {
            TexRead::Fetch => (TexLevel::First, Src::ZERO),
            TexRead::Sample if instr.has(Mod::Level) => {
                let level = self.source(instr, 2, ScalarType::F32)?;
                (TexLevel::Given, self.in_register(level))
            }
            TexRead::Sample if !self.target.own_texture_levels => {
                let below = self.in_register(Src::imm(BELOW_LEVELS.to_bits()));
                (TexLevel::Given, below)
            }
            _ => (TexLevel::Own, Src::ZERO),
        };
        let coordinates = self.coordinates(words, used, texture_coordinates(dims));
        let results = [self.new_value(File::R, 2), self.new_value(File::R, 2)];
        let op = Op::Tex { read, level, dims, word: handle.word };
        self.push(Inst::new(op, &results.map(Dst::Value), &[coordinates, given, handle.register], self.src));
        let words: Vec<Src> = results.iter().flat_map(|pair| (0..2).map(|i| Src::part(*pair, i))).collect();
        let dsts = self.operand(instr, 0)?;
        if matches!(dsts, Operand::Pair(_)) {
            return self.unsupported(instr, "whether elements are there");
        }
        self.write_elements(elements(instr, dsts), &words, ScalarType::B32)
    }

    /// `txq` and `suq` of extents.
    pub(super) fn query_texture(&mut self, instr: &Statement<'a>) -> Result<()> {
        let extents = [(Mod::Width, 1), (Mod::Height, 2), (Mod::Depth, 4)];
        let Some(mask) = instr.take(&extents) else {
            return self.unsupported(instr, "other than extents");
        };
        let operand = self.operand(instr, 1)?;
        let handle = self.texture_handle(instr, operand)?;
        let op = Op::Txq { mask, word: handle.word };
        let extent = self.reg(op, &[handle.register]);
        self.result(instr, extent)
    }

    /// The geometry, the size of all elements, and what accesses outside do.
    fn surface(&self, instr: &Statement<'a>, bytes: u32) -> Result<(SurfDims, MemSize, SurfClamp)> {
        let geometries = [
            (Mod::D1d, SurfDims::D1),
            (Mod::D2d, SurfDims::D2),
            (Mod::D3d, SurfDims::D3),
            (Mod::A1d, SurfDims::A1),
            (Mod::A2d, SurfDims::A2),
        ];
        let Some(dims) = instr.take(&geometries) else { return self.unsupported(instr, "this geometry") };
        let clamps =
            [(Mod::Zero, SurfClamp::Ignore), (Mod::Clamp, SurfClamp::Clamp), (Mod::Trap, SurfClamp::Trap)];
        let Some(clamp) = instr.take(&clamps) else {
            return self.malformed("a surface without its clamping");
        };
        let size = match bytes {
            1 => MemSize::U8,
            2 => MemSize::U16,
            4 => MemSize::B32,
            8 => MemSize::B64,
            16 => MemSize::B128,
            _ => return self.unsupported(instr, "a vector of this size"),
        };
        Ok((dims, size, clamp))
    }

    /// A surface's coordinates as the machine takes them: the number of the layer last.
    fn surface_place(&mut self, mut words: Vec<Src>, dims: SurfDims) -> Result<Src> {
        let used = match dims {
            SurfDims::D1 => 1,
            SurfDims::D2 | SurfDims::A1 => 2,
            SurfDims::D3 | SurfDims::A2 => 3,
        };
        if words.len() < used {
            return self.malformed("a surface with fewer coordinates than its geometry has");
        }
        if matches!(dims, SurfDims::A1 | SurfDims::A2) {
            words[..used].rotate_left(1);
        }
        Ok(self.coordinates(words, used, surface_coordinates(dims)))
    }

    /// `suld.b`.
    pub(super) fn load_surface(&mut self, instr: &Statement<'a>) -> Result<()> {
        let ty = self.type_of(instr, 0)?;
        let dsts = elements(instr, self.operand(instr, 0)?);
        let (dims, size, clamp) = self.surface(instr, dsts.len() as u32 * ty.bytes())?;
        let (handle, words) = self.sampled(instr, 1)?;
        let place = self.surface_place(words, dims)?;
        let op = Op::Suld { dims, size, clamp, word: handle.word };
        let count = size_registers(size);
        let value = self.wide(count, op, &[place, handle.register]);
        let words: Vec<Src> =
            if count == 1 { vec![value] } else { (0..count).map(|i| self.part(value, i)).collect() };
        self.write_elements(dsts, &words, ty)
    }

    /// `sust.b`.
    pub(super) fn store_surface(&mut self, instr: &Statement<'a>) -> Result<()> {
        let ty = self.type_of(instr, 0)?;
        let srcs = elements(instr, self.operand(instr, 1)?);
        let (dims, size, clamp) = self.surface(instr, srcs.len() as u32 * ty.bytes())?;
        let (handle, words) = self.sampled(instr, 0)?;
        let place = self.surface_place(words, dims)?;
        let data = self.stored(srcs, ty)?;
        self.effect(Op::Sust { dims, size, clamp, word: handle.word }, &[place, handle.register, data]);
        Ok(())
    }
}
