//! Textures and surfaces. The lowering follows the output of ptxas 13.0.88.

use super::call;
use super::handle::Handle;
use super::memory::elements;
use super::operand::known;
use super::{Lowering, Result, Statement};
use crate::abi;
use crate::driver::{DriverFunction, is_reference};
use crate::input::Operand;
use crate::ori::ir::{Dst, File, Inst, Src, Value};
use crate::ori::memory::{Order, Scope};
use crate::ori::op::{
    AtomOp, Evict, FloatType, HandleAt, MemSize, MufuFunc, Op, Round, Sign, SurfClamp, SurfDims, SurfType,
    TexDims, TexLevel, TexRead, lut,
};
use crate::ori::signature::{
    DERIVE_REGISTERS, size_registers, surface_coordinates, texture_extra, texture_place,
};
use ptx_isa::{Mod, ScalarType};

/// The largest layer index.
const LAST_LAYER: u32 = 0xffff;
/// A level below all levels, which selects the first level.
const BELOW_LEVELS: f32 = -32.0;
/// The number of bits of each offset.
const OFFSET_BITS: u32 = 4;
/// The distance in bits between the offsets of a gather, and the bits of each.
const GATHER_OFFSET: (u32, u32) = (8, 6);

/// The coordinates of a texture access, with the layer index kept apart.
struct Spot {
    dims: TexDims,
    layer: Option<Src>,
    words: Vec<Src>,
    /// The sample index.
    sample: Option<Src>,
}

/// The operands after the coordinates.
#[derive(Default)]
struct Extras {
    level: Option<Src>,
    derivatives: Vec<Src>,
    offsets: Option<Src>,
    compared: Option<Src>,
}

/// The geometries, the number of coordinates of each, and whether a layer index precedes them.
const GEOMETRIES: [(Mod, (TexDims, usize, bool)); 9] = [
    (Mod::D1d, (TexDims::D1, 1, false)),
    (Mod::D2d, (TexDims::D2, 2, false)),
    (Mod::D3d, (TexDims::D3, 3, false)),
    (Mod::A1d, (TexDims::A1, 1, true)),
    (Mod::A2d, (TexDims::A2, 2, true)),
    (Mod::Cube, (TexDims::Cube, 3, false)),
    (Mod::Acube, (TexDims::Cubes, 3, true)),
    (Mod::D2dms, (TexDims::D2, 2, false)),
    (Mod::A2dms, (TexDims::A2, 2, true)),
];

impl<'a> Lowering<'a> {
    /// Reads the bracketed operand: the handles, and the words of the coordinates.
    pub(super) fn sampled(&mut self, instr: &Statement<'a>, i: usize) -> Result<(&'a [Operand], Vec<Src>)> {
        let Operand::List(parts) = self.operand(instr, i)? else {
            return self.malformed("a texture without coordinates");
        };
        let Some((vector, handles)) = parts.split_last() else {
            return self.malformed("a texture without coordinates");
        };
        let words = self.words_of(vector)?;
        Ok((handles, words))
    }

    pub(super) fn words_of(&mut self, vector: &Operand) -> Result<Vec<Src>> {
        let words = match vector {
            Operand::Vector(words) => &words[..],
            single => std::slice::from_ref(single),
        };
        words.iter().map(|word| self.coordinate(word)).collect()
    }

    /// Reads a word of a vector. A predicate, which ptxas takes as a coordinate, is all ones or zero.
    fn coordinate(&mut self, word: &Operand) -> Result<Src> {
        match *word {
            Operand::Reg(reg) if self.register_type(reg)? == ScalarType::Pred => {
                let holds = self.read_register(reg)?;
                Ok(self.select(holds, Src::imm(u32::MAX), Src::ZERO, 1))
            }
            _ => self.read(word, ScalarType::B32),
        }
    }

    /// Puts words into consecutive registers.
    fn in_registers(&mut self, mut words: Vec<Src>, registers: u8) -> Src {
        if words.is_empty() {
            return Src::ZERO;
        }
        words.resize(usize::from(registers), Src::UNDEF);
        if registers == 1 { self.in_register(words[0]) } else { self.pack(&words) }
    }

    fn spot(&mut self, instr: &Statement<'a>, words: Vec<Src>) -> Result<Spot> {
        let has_samples = instr.any_of(&[Mod::D2dms, Mod::A2dms]).is_some();
        let Some((dims, count, has_layer)) = instr.take(&GEOMETRIES) else {
            return self.unsupported(instr, "this geometry");
        };
        let before = usize::from(has_samples) + usize::from(has_layer);
        if words.len() < before + count {
            return self.malformed("a texture with fewer coordinates than its geometry has");
        }
        let sample = has_samples.then_some(words[0]);
        let layer = has_layer.then(|| self.minimum(false, true, words[before - 1], Src::imm(LAST_LAYER)));
        let mut words = words[before..before + count].to_vec();
        // Derivatives are added to the direction before it is scaled.
        if matches!(dims, TexDims::Cube | TexDims::Cubes) && !instr.has(Mod::Grad) {
            words = self.onto_cube(&words);
        }
        Ok(Spot { dims, layer, words, sample })
    }

    /// Scales a direction to the surface of the cube whose faces are at a distance of one.
    fn onto_cube(&mut self, direction: &[Src]) -> Vec<Src> {
        let most = |this: &mut Self, a: Src, b: Src| {
            let op = Op::Fmnmx { ftz: false, nan: false, xor: false };
            this.reg(op, &[a, b, Src::FALSE])
        };
        let magnitudes: Vec<Src> = direction.iter().map(|word| super::float::magnitude(*word)).collect();
        let longest = most(self, magnitudes[0], magnitudes[1]);
        let longest = most(self, magnitudes[2], longest);
        let scale = self.reg(Op::Mufu { func: MufuFunc::Rcp }, &[longest]);
        let multiply = Op::Fmul { ftz: false, round: Round::Rn, sat: false };
        direction.iter().map(|word| self.reg(multiply, &[*word, scale])).collect()
    }

    /// Packs offsets into one word, each `bits` wide and `distance` bits after the previous one.
    fn packed_offsets(&mut self, offsets: &[Src], (distance, bits): (u32, u32)) -> Src {
        let mut packed = offsets[0];
        for (i, offset) in (1..).zip(&offsets[1..]) {
            let mask = ((1 << bits) - 1) << (i * distance);
            packed = match (known(packed), known(*offset)) {
                (Some(low), Some(high)) => Src::imm(low & !mask | high << (i * distance) & mask),
                _ => {
                    let high = self.shift_left(*offset, Src::imm(i * distance));
                    self.lop3(lut::SELECT, packed, Src::imm(mask), high)
                }
            };
        }
        match known(packed) {
            Some(low) if offsets.len() == 1 => Src::imm(low & ((1 << bits) - 1)),
            _ => packed,
        }
    }

    /// Reads the operands after the coordinates: the level or derivatives, offsets, and the reference value of a depth
    /// comparison.
    fn extras(&mut self, instr: &Statement<'a>, dims: usize, gathers: bool) -> Result<Extras> {
        let mut extras = Extras::default();
        let mut next = 2;
        if instr.has(Mod::Level) {
            extras.level = Some(self.source(instr, next, ScalarType::B32)?);
            next += 1;
        } else if instr.has(Mod::Grad) {
            let mut both = Vec::new();
            for i in [next, next + 1] {
                let vector = self.operand(instr, i)?;
                let words = self.words_of(vector)?;
                if words.len() < dims {
                    return self.unsupported(instr, "fewer derivatives than coordinates");
                }
                both.push(words);
            }
            extras.derivatives = (0..dims).flat_map(|d| [both[0][d], both[1][d]]).collect();
            next += 2;
        }
        let mut compared = next;
        if let Some(vector @ Operand::Vector(_)) = instr.peek_operands().get(next) {
            let offsets = self.words_of(vector)?;
            self.operand(instr, next)?;
            if offsets.len() < dims {
                return self.malformed("fewer offsets than coordinates");
            }
            let format = if gathers { GATHER_OFFSET } else { (OFFSET_BITS, OFFSET_BITS) };
            extras.offsets = Some(self.packed_offsets(&offsets[..dims], format));
            compared += 1;
        }
        // ptxas ignores the operands after it.
        if instr.peek_operands().get(compared).is_some_and(is_reference) {
            extras.compared = Some(self.source(instr, compared, ScalarType::F32)?);
        }
        for i in compared..instr.operand_count() {
            instr.operand(i);
        }
        Ok(extras)
    }

    /// `tex` and `tld4`.
    pub(super) fn read_texture(&mut self, instr: &Statement<'a>) -> Result<()> {
        if let Some(DriverFunction::Gradient(gradient)) =
            DriverFunction::of(self.env, self.target, instr.input())
        {
            return self.read_by_driver(instr, gradient);
        }
        // The types give the number of elements.
        instr.ignore(&[Mod::V2, Mod::V4]);
        // Any handle is read as one that differs among threads.
        instr.ignore(&[Mod::Uni]);
        let (to, from) = (self.type_of(instr, 0)?, self.type_of(instr, 1)?);
        let gather = instr.take(&[
            (Mod::R, TexRead::GatherR),
            (Mod::G, TexRead::GatherG),
            (Mod::B, TexRead::GatherB),
            (Mod::A, TexRead::GatherA),
        ]);
        let (handles, words) = self.sampled(instr, 1)?;
        let spot = self.spot(instr, words)?;
        let extras = self.extras(instr, spot.words.len(), gather.is_some())?;
        // The level of a texture with a single level.
        let base = instr.has(Mod::Base);
        let has_sampler = handles.len() > 1;
        let mut spot = spot;
        let read = match gather {
            Some(gather) => gather,
            None if spot.sample.is_some() => TexRead::FetchSample,
            None if !extras.derivatives.is_empty() => TexRead::Derive,
            // A texel of a given level is fetched even if there is a sampler.
            None if from == ScalarType::S32 && (!has_sampler || extras.level.is_some()) => TexRead::Fetch,
            None => TexRead::Sample,
        };
        if from == ScalarType::S32 && matches!(read, TexRead::Sample) {
            spot.words =
                spot.words.iter().map(|word| self.word_to_float(Sign::S32, Round::Rn, *word)).collect();
        }
        let whole = from == ScalarType::S32 || base;
        let (level, given) = match (read, extras.level) {
            (TexRead::Fetch, Some(level)) if known(level) == Some(0) => (TexLevel::First, None),
            (TexRead::Fetch | TexRead::Sample, Some(level)) => (TexLevel::Given, Some(level)),
            (TexRead::Fetch | TexRead::FetchSample, _) => (TexLevel::First, None),
            (TexRead::Sample, None) if !self.target.own_texture_levels => {
                (TexLevel::Given, Some(Src::imm(BELOW_LEVELS.to_bits())))
            }
            (TexRead::Sample, None) if whole => (TexLevel::First, None),
            _ => (TexLevel::Own, None),
        };
        let is_compared = extras.compared.is_some();
        if matches!(read, TexRead::Derive) && (is_compared || spot.words.len() == 3) {
            return self.read_by_quads(instr, handles, &spot, &extras, to);
        }
        if spot.dims == TexDims::D1 && matches!(read, TexRead::Sample | TexRead::Derive) {
            // A 1D texture is read as a 2D texture with one row.
            spot.dims = TexDims::D2;
            spot.words.push(Src::ZERO);
        }
        let results = self.with_handle(instr, handles, |this, handle, matched| {
            let at = if handle.register.is_some() { HandleAt::Register } else { HandleAt::Shared };
            let offsets = extras.offsets.is_some();
            let bindless = at == HandleAt::Register;
            let (place, behind) = this.texture_words(&spot, &extras, given, read, handle.register);
            let place = this.in_registers(place, texture_place(read, spot.dims, offsets, bindless));
            let more = [offsets, is_compared, bindless];
            let behind = this.in_registers(behind, texture_extra(read, spot.dims, level, more));
            let results =
                [this.new_value(File::R, 2), this.new_value(File::R, 2), this.new_value(File::P, 1)];
            let op = Op::Tex {
                read,
                level,
                dims: spot.dims,
                offsets,
                compare: is_compared,
                handle: at,
                word: handle.word,
            };
            let mut inst =
                Inst::new(op, &results.map(Dst::Value), &[place, behind, handle.uniform], this.src);
            if !matches!(instr.peek_operands().first(), Some(Operand::Pair(_))) {
                inst.dsts.pop();
            }
            this.push_for(matched, inst);
            Ok(results)
        })?;
        self.write_read(instr, results, to)
    }

    /// A read with derivatives of three coordinates or with a depth comparison, which `TXD` cannot do.
    fn read_by_quads(
        &mut self,
        instr: &Statement<'a>,
        handles: &[Operand],
        spot: &Spot,
        extras: &Extras,
        to: ScalarType,
    ) -> Result<()> {
        let calls = call::callees_align(self.env, self.func, self.target, abi::STACK_ALIGN).is_some();
        if !self.func.entry || calls {
            return self.unsupported(
                instr,
                "derivatives with three coordinates or a depth comparison in a function that is not inlined",
            );
        }
        let (offsets, compare) = (extras.offsets.is_some(), extras.compared.is_some());
        let results = self.with_handle(instr, handles, |this, handle, matched| {
            let at = if handle.register.is_some() { HandleAt::Register } else { HandleAt::Shared };
            let place = spot.layer.iter().chain(&spot.words).copied();
            let behind = [handle.register, extras.offsets, extras.compared].into_iter().flatten();
            let words: Vec<Src> = place.chain(behind).chain(extras.derivatives.iter().copied()).collect();
            let words: Vec<Src> = words.into_iter().map(|word| this.in_register(word)).collect();
            let files = [
                (File::R, DERIVE_REGISTERS),
                (File::P, 1),
                (File::B, 1),
                (File::R, 2),
                (File::R, 2),
                (File::P, 1),
            ];
            let results = files.map(|(file, width)| this.new_value(file, width));
            let op = Op::TexDerive { dims: spot.dims, offsets, compare, handle: at, word: handle.word };
            let mut inst = Inst::new(op, &results.map(Dst::Value), &words, this.src);
            if !matches!(instr.peek_operands().first(), Some(Operand::Pair(_))) {
                inst.dsts.pop();
            }
            this.push_for(matched, inst);
            let [_, _, _, low, high, missing] = results;
            Ok([low, high, missing])
        })?;
        self.write_read(instr, results, to)
    }

    /// Assigns the results of a texture read: four channels, and whether a texel is not resident.
    fn write_read(&mut self, instr: &Statement<'a>, results: [Value; 3], to: ScalarType) -> Result<()> {
        let words: Vec<Src> =
            results[..2].iter().flat_map(|pair| (0..2).map(|i| Src::part(*pair, i))).collect();
        let dsts = match self.operand(instr, 0)? {
            Operand::Pair(pair) => {
                // The machine's predicate means "not resident".
                self.write(&pair.1, Src::from(results[2]).not())?;
                &pair.0
            }
            dsts => dsts,
        };
        self.write_texels(elements(instr, dsts), &words, to)
    }

    /// The words of the two register operands: coordinates, and the rest.
    fn texture_words(
        &mut self,
        spot: &Spot,
        extras: &Extras,
        level: Option<Src>,
        read: TexRead,
        handle: Option<Src>,
    ) -> (Vec<Src>, Vec<Src>) {
        if read != TexRead::Derive {
            let place = spot.layer.iter().chain(&spot.words).copied().collect();
            let behind = [handle, level, extras.offsets, spot.sample, extras.compared];
            return (place, behind.into_iter().flatten().collect());
        }
        // The layer index and the offsets share a word.
        const SHIFT: u32 = 16;
        let layer = match extras.offsets {
            None => spot.layer,
            Some(offsets) => {
                let high = self.shift_left(offsets, Src::imm(SHIFT));
                let low = spot.layer.unwrap_or(Src::ZERO);
                Some(self.lop3(lut::SELECT, low, Src::imm(0xfff << SHIFT), high))
            }
        };
        let place = handle.into_iter().chain(spot.words.iter().copied()).chain(layer).collect();
        let mut derivatives = extras.derivatives.clone();
        if spot.dims == TexDims::D2 {
            derivatives.resize(4, Src::ZERO);
        }
        (place, derivatives)
    }

    /// Assigns the four channels, in the type of the result.
    fn write_texels(&mut self, dsts: &[Operand], words: &[Src], to: ScalarType) -> Result<()> {
        match to {
            ScalarType::F16 | ScalarType::F16x2 => {
                let halves: Vec<Src> =
                    words.chunks(2).map(|pair| self.packed_halves(pair[0], pair[1])).collect();
                let ty = if to == ScalarType::F16 { ScalarType::B16 } else { ScalarType::B32 };
                self.write_elements(dsts, &halves, ty)
            }
            _ => self.write_elements(dsts, words, ScalarType::B32),
        }
    }

    /// Converts two floats to `.f16` and packs them into one register.
    fn packed_halves(&mut self, low: Src, high: Src) -> Src {
        let op = Op::F2fp { sat: false, relu: false, bf16: false, round: Round::Rn };
        if self.encodes(&op) {
            return self.reg(op, &[high, low]);
        }
        let narrow =
            Op::F2f { ftz: false, to: FloatType::F16, from: FloatType::F32, round: Round::Rn, sat: false };
        let [low, high] = [low, high].map(|word| self.reg(narrow, &[word]));
        self.halves_of(low, high)
    }

    /// `istypep`: the upper word of a handle contains its kind.
    pub(super) fn test_handle(&mut self, instr: &Statement<'a>) -> Result<()> {
        let kind = self.type_of(instr, 0)?;
        let Some(bits) = super::handle::kind_bits(kind) else {
            return self.unsupported(instr, "a handle of this type");
        };
        let handle = self.source_pair(instr, 1, ScalarType::U64)?;
        let masked = self.reg(Op::Lop3 { lut: 0xc0 }, &[handle[1], Src::imm(bits), Src::ZERO]);
        let is = self.compare(crate::ori::op::ICmp::Eq, false, masked, Src::imm(bits));
        self.result(instr, is)
    }

    /// The behavior of surface accesses out of bounds.
    fn surface_clamp(&self, instr: &Statement<'a>) -> Result<SurfClamp> {
        let clamps =
            [(Mod::Zero, SurfClamp::Ignore), (Mod::Clamp, SurfClamp::Clamp), (Mod::Trap, SurfClamp::Trap)];
        match instr.take(&clamps) {
            Some(clamp) => Ok(clamp),
            None => self.malformed("a surface access without a clamp mode"),
        }
    }

    fn surface_size(&self, instr: &Statement<'a>, bytes: u32) -> Result<MemSize> {
        Ok(match bytes {
            1 => MemSize::U8,
            2 => MemSize::U16,
            4 => MemSize::B32,
            8 => MemSize::B64,
            16 => MemSize::B128,
            _ => return self.unsupported(instr, "a vector of this size"),
        })
    }

    /// The cache operators of a surface access.
    fn surface_caching(&self, instr: &Statement<'a>) -> (Evict, Order) {
        let (near, far) = (Order::Relaxed(Scope::Cta), Order::Relaxed(Scope::Sys));
        let operators = [
            (Mod::Ca, (Evict::Normal, near)),
            (Mod::Wb, (Evict::Normal, near)),
            (Mod::Cs, (Evict::First, near)),
            (Mod::Cg, (Evict::Normal, far)),
            (Mod::Cv, (Evict::Normal, far)),
            (Mod::Wt, (Evict::Normal, far)),
        ];
        instr.take(&operators).unwrap_or((Evict::Normal, near))
    }

    /// A surface's geometry, handle and coordinates in the machine's order: the layer index comes last.
    fn surface_place(&mut self, instr: &Statement<'a>, i: usize) -> Result<(SurfDims, &'a [Operand], Src)> {
        let geometries = [
            (Mod::D1d, (SurfDims::D1, 1)),
            (Mod::D2d, (SurfDims::D2, 2)),
            (Mod::D3d, (SurfDims::D3, 3)),
            (Mod::A1d, (SurfDims::A1, 2)),
            (Mod::A2d, (SurfDims::A2, 3)),
        ];
        let Some((dims, used)) = instr.take(&geometries) else {
            return self.unsupported(instr, "this geometry");
        };
        let (handles, mut words) = self.sampled(instr, i)?;
        if words.len() < used {
            return self.malformed("a surface with fewer coordinates than its geometry has");
        }
        words.truncate(used);
        if matches!(dims, SurfDims::A1 | SurfDims::A2) {
            words.rotate_left(1);
        }
        let place = self.in_registers(words, surface_coordinates(dims));
        Ok((dims, handles, place))
    }

    /// `suld.b`.
    pub(super) fn load_surface(&mut self, instr: &Statement<'a>) -> Result<()> {
        let ty = self.type_of(instr, 0)?;
        let dsts = elements(instr, self.operand(instr, 0)?);
        let size = self.surface_size(instr, surface_elements(instr, dsts) * ty.bytes())?;
        let (clamp, (evict, order)) = (self.surface_clamp(instr)?, self.surface_caching(instr));
        let (dims, handles, place) = self.surface_place(instr, 1)?;
        let count = size_registers(size);
        let value = self.with_handle(instr, handles, |this, handle, matched| {
            let (at, word) = (handle.at(), handle.word);
            let op = Op::Suld { evict, dims, size, order, clamp, handle: at, word };
            let value = this.new_value(File::R, count);
            let srcs = [place, handle.register.unwrap_or(Src::ZERO), handle.uniform];
            this.push_for(matched, Inst::new(op, &[Dst::Value(value)], &srcs, this.src));
            Ok(Src::from(value))
        })?;
        let words: Vec<Src> =
            if count == 1 { vec![value] } else { (0..count).map(|i| self.part(value, i)).collect() };
        match surface_elements(instr, dsts) {
            1 => dsts.iter().try_for_each(|dst| self.write_elements(std::slice::from_ref(dst), &words, ty)),
            _ => self.write_elements(dsts, &words, ty),
        }
    }

    /// `sust.b`, and `sust.p`, which converts to the format of the surface.
    pub(super) fn store_surface(&mut self, instr: &Statement<'a>, formatted: bool) -> Result<()> {
        let ty = self.type_of(instr, 0)?;
        let srcs = elements(instr, self.operand(instr, 1)?);
        let srcs = &srcs[..surface_elements(instr, srcs) as usize];
        let size = self.surface_size(instr, srcs.len() as u32 * ty.bytes())?;
        let (clamp, (evict, order)) = (self.surface_clamp(instr)?, self.surface_caching(instr));
        let (dims, handles, place) = self.surface_place(instr, 0)?;
        let data = self.stored(srcs, ty)?;
        self.with_handle(instr, handles, |this, handle, matched| {
            let (at, word) = (handle.at(), handle.word);
            let op = match formatted {
                true => Op::SustElements { evict, dims, size, order, clamp, handle: at, word },
                false => Op::Sust { evict, dims, size, order, clamp, handle: at, word },
            };
            let srcs = [place, handle.register.unwrap_or(Src::ZERO), handle.uniform, data];
            this.push_for(matched, Inst::new(op, &[], &srcs, this.src));
            Ok(())
        })
    }

    /// `sured`.
    pub(super) fn reduce_surface(&mut self, instr: &Statement<'a>) -> Result<()> {
        let ty = self.type_of(instr, 0)?;
        let operations = [
            (Mod::Add, AtomOp::Add),
            (Mod::Min, AtomOp::Min),
            (Mod::Max, AtomOp::Max),
            (Mod::And, AtomOp::And),
            (Mod::Or, AtomOp::Or),
        ];
        let Some(op) = instr.take(&operations) else {
            return self.malformed("a reduction without an operation such as `.add`");
        };
        instr.ignore(&[Mod::B]);
        let elements = instr.has(Mod::P);
        let compares = matches!(op, AtomOp::Min | AtomOp::Max);
        let ty = match ty {
            ScalarType::B32 if elements && compares => SurfType::Element,
            ScalarType::B64 if elements && compares => SurfType::Element64,
            ScalarType::B32 | ScalarType::U32 => SurfType::U32,
            ScalarType::S32 => SurfType::S32,
            ScalarType::U64 | ScalarType::B64 => SurfType::U64,
            ScalarType::S64 => SurfType::S64,
            _ => return self.unsupported(instr, "this type"),
        };
        let clamp = self.surface_clamp(instr)?;
        let (dims, handles, place) = self.surface_place(instr, 0)?;
        let bits =
            if crate::ori::signature::surface_operand(ty) == 2 { ScalarType::B64 } else { ScalarType::B32 };
        let data = self.source(instr, 1, bits)?;
        self.with_handle(instr, handles, |this, handle, matched| {
            let op = Op::Sured { elements, dims, op, ty, clamp, handle: handle.at(), word: handle.word };
            let srcs = [place, handle.register.unwrap_or(Src::ZERO), handle.uniform, data];
            this.push_for(matched, Inst::new(op, &[], &srcs, this.src));
            Ok(())
        })
    }

    /// Emits an operation for the threads whose predicate is true.
    pub(super) fn push_for(&mut self, matched: Src, mut inst: Inst) {
        if !matched.is_true() {
            inst.guard = matched;
            inst.old.extend(inst.dsts.iter().map(|_| Src::UNDEF));
        }
        self.push(inst);
    }
}

/// The registers that a surface access moves. Without `.v2` or `.v4` it moves one element: a load writes it to all
/// registers of a vector, a store takes it from the first.
fn surface_elements(instr: &Statement<'_>, registers: &[Operand]) -> u32 {
    let is_vector = instr.any_of(&[Mod::V2, Mod::V4]).is_some();
    if is_vector { registers.len() as u32 } else { 1 }
}

impl Handle {
    fn at(&self) -> HandleAt {
        if self.register.is_some() { HandleAt::Register } else { HandleAt::Shared }
    }
}
