//! `tcgen05`: tensor memory, and products that accumulate in it.
//!
//! The uniform datapath starts asynchronous operations, once for all threads that execute an instruction together, so
//! the threads take turns. Warp-wide operations take one address. A block records its columns in words of reserved
//! shared memory, which code that the driver runs before the kernel clears. Observed on ptxas 13.0.88; see
//! `docs/tensor.md`.

use super::operand::known;
use super::special::sr;
use super::tensor_checks::{Product, SHIFTED_COLUMNS, columns_of_access, columns_of_copy};
use super::uniform::Chosen;
use super::{Lowering, Result, Statement};
use crate::input::{AddressBase, Operand};
use crate::ori::ir::{Dst, File, Inst, Src, SrcKind, TensorUse, Term};
use crate::ori::memory::{Order, Scope};
use crate::ori::op::{
    AddressScale, Arrival, ArriveMode, AtomOp, AtomType, Bool, ICmp, MemSize, Op, Sign, TensorCollect,
    TensorCopy, TensorCount, TensorFormat, TensorKind, TensorLanes, TensorScales, TensorStat, TensorStatType,
    ViewOf, lut,
};
use crate::ori::signature::tensor_registers;
use ptx_isa::{FormId, Mod, ScalarType};

/// The binary logarithm of the columns of an allocation unit.
pub(super) const UNIT: u32 = 5;
/// Offsets in the reserved words: an object by which the blocks of a pair wait for each other, and its phase; the units
/// that the block holds, those that are the first of an allocation, and whether it has given up allocating.
const PEER_OBJECT: i32 = 0x08;
const PEER_PHASE: i32 = 0x10;
pub(super) const TAKEN: i32 = 0x14;
const FIRST: i32 = 0x18;
const NO_MORE: i32 = 0x1c;
/// The operand that ptxas uses here; this wait never blocks.
const TAKE_DELAY: u8 = 0x36;
/// Nanoseconds between two attempts to allocate columns.
const TRY_AGAIN: u32 = 100;
/// The operand that gives up the permission to allocate.
const PERMISSION: u32 = 0x80;
/// The bit of a barrier object's word that has the phase.
const PHASE_AT: u32 = 31;
/// The `PRMT` selector of an address in another block: the low three bytes of the third source, below the low byte of
/// the first, which is the block's rank.
const IN_BLOCK: Src = Src::imm(0x0654);
/// The bits of an address that have the column.
pub(super) const COLUMN: u32 = 0xffff;
/// The mask of a product that disables neither lanes nor columns.
const ALL: Src = Src::ZERO;

/// Where the first factor of a product is.
#[derive(Clone, Copy)]
pub(super) enum Factor {
    Shared([Src; 2]),
    Tensor(Src),
}

impl<'a> Lowering<'a> {
    /// Whether the operation is for two blocks.
    fn of_pair(&mut self, instr: &Statement<'a>) -> bool {
        // `.cta_group::1` is the default.
        instr.ignore(&[Mod::CtaGroup1]);
        let pair = instr.has(Mod::CtaGroup2);
        self.uses_tensor(if pair { TensorUse::PAIR } else { TensorUse::ALONE });
        pair
    }

    pub(super) fn uses_tensor(&mut self, what: TensorUse) {
        self.out.facts.tensor.add(what);
    }

    /// Whether columns are allocated or freed for a pair of blocks.
    fn columns_of_pair(&mut self, instr: &Statement<'a>) -> bool {
        let pair = self.of_pair(instr);
        self.uses_tensor(if pair { TensorUse::COLUMNS_OF_PAIR } else { TensorUse::COLUMNS });
        pair
    }

    fn has_tensor_memory(&self, instr: &Statement<'a>, op: &Op) -> Result<()> {
        if self.encodes(op) { Ok(()) } else { self.unsupported(instr, "tensor memory on this target") }
    }

    /// The reserved words of the block.
    pub(super) fn reserved_words(&mut self) -> Src {
        let rank = self.s2r(sr::CLUSTER_CTA_ID);
        let start = match self.linking.is_object() {
            // The code of other objects uses the same words.
            true => self.reg(Op::TensorWords, &[]),
            false => Src::imm(self.target.cubin.tensor_words() as u32),
        };
        self.reg(Op::Lea { shift: 24 }, &[rank, start])
    }

    /// Lets one of the threads that execute the statement together act.
    fn by_one(&mut self, effects: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        let chosen = self.new_value(File::P, 1);
        self.guarded(Op::Elect, &[Dst::Value(chosen), Dst::Sink], &[], &[]);
        self.only_where(chosen.into(), effects)
    }

    pub(super) fn only_where(
        &mut self,
        holds: Src,
        effects: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        let (then, join) = (self.new_block(1), self.new_block(2));
        self.end(Term::Branch { cond: holds, then, els: join, uniform: false });
        self.start(then);
        effects(self)?;
        self.end(Term::Jump(join));
        self.start(join);
        Ok(())
    }

    pub(super) fn either(
        &mut self,
        holds: Src,
        first: impl FnOnce(&mut Self) -> Result<()>,
        second: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        let (then, els, join) = (self.new_block(1), self.new_block(1), self.new_block(2));
        self.end(Term::Branch { cond: holds, then, els, uniform: false });
        self.start(then);
        first(self)?;
        self.end(Term::Jump(join));
        self.start(els);
        second(self)?;
        self.end(Term::Jump(join));
        self.start(join);
        Ok(())
    }

    pub(super) fn is_other(&mut self, a: Src, b: Src) -> Src {
        let op = Op::Isetp { cmp: ICmp::Ne, sign: Sign::U32, bool_: Bool::And, ex: false };
        self.pred(op, &[a, b])
    }

    fn load_word(&mut self, at: Src, offset: i32, size: MemSize) -> Src {
        self.reg(
            Op::Lds { size, order: Order::Relaxed(Scope::Cta), scale: AddressScale::One, offset },
            &[at, Src::ZERO],
        )
    }

    fn store_word(&mut self, at: Src, offset: i32, size: MemSize, value: Src) {
        self.effect(
            Op::Sts { size, order: Order::Relaxed(Scope::Cta), scale: AddressScale::One, offset },
            &[at, Src::ZERO, value],
        );
    }

    fn update_word(&mut self, op: AtomOp, at: Src, offset: i32, value: Src) {
        let op = Op::Atoms { op, ty: AtomType::U32, order: Order::Relaxed(Scope::Cta), offset };
        self.guarded(op, &[Dst::Sink], &[at, Src::ZERO, value], &[Src::UNDEF]);
    }

    fn inverted(&mut self, src: Src) -> Src {
        match known(src) {
            Some(bits) => Src::imm(!bits),
            None => self.lop3(!lut::A, src, Src::ZERO, Src::ZERO),
        }
    }

    /// A mask of this many ones.
    pub(super) fn ones(&mut self, count: Src) -> Src {
        match known(count) {
            Some(count) => Src::imm(1u32.checked_shl(count).unwrap_or(0).wrapping_sub(1)),
            None => {
                let above = self.shift_left(Src::imm(u32::MAX), count);
                self.inverted(above)
            }
        }
    }

    /// `tcgen05.alloc`: waits until enough columns are free, allocates them, and writes their address.
    pub(super) fn take_columns(&mut self, instr: &Statement<'a>) -> Result<()> {
        let pair = self.columns_of_pair(instr);
        self.uses_tensor(TensorUse::MEMORY);
        self.has_tensor_memory(instr, &Op::TmemTake { pair, align: true })?;
        let to = self.object(instr, 0)?;
        let to = self.object_address(to);
        let count = self.source(instr, 1, ScalarType::U32)?;
        self.check_tensor(|this| Ok(this.is_no_allocation(count)))?;
        let count = self.shift_right(count, UNIT, false);
        self.join_all();
        self.by_one(|this| {
            let words = this.reserved_words();
            let no_more = this.load_word(words, NO_MORE, MemSize::U8);
            let no_more = this.is_other(no_more, Src::ZERO);
            this.either(
                no_more,
                |this| {
                    this.store_word(to, 0, MemSize::B32, Src::imm(u32::MAX));
                    this.effect(Op::Bpt { trap: true }, &[]);
                    Ok(())
                },
                |this| match pair {
                    true => this.take_for_pair(to, words, count),
                    false => {
                        let unit = this.take_units(count, false);
                        this.note_units(to, words, unit, count);
                        Ok(())
                    }
                },
            )
        })
    }

    /// Records units that the block now holds, and writes their first column.
    fn note_units(&mut self, to: Src, words: Src, unit: Src, count: Src) {
        let taken = self.ones(count);
        let taken = self.shift_left(taken, unit);
        self.update_word(AtomOp::Or, words, TAKEN, taken);
        let first = self.shift_left(Src::imm(1), unit);
        self.update_word(AtomOp::Or, words, FIRST, first);
        let column = self.shift_left(unit, Src::imm(UNIT));
        self.store_word(to, 0, MemSize::B32, column);
    }

    /// In a pair, the block of even rank allocates columns for both and sends the first unit to the other block.
    fn take_for_pair(&mut self, to: Src, words: Src, count: Src) -> Result<()> {
        let rank = self.s2r(sr::CLUSTER_CTA_ID);
        let odd = self.lop3(lut::A & lut::B, rank, Src::imm(1), Src::ZERO);
        let odd = self.is_other(odd, Src::ZERO);
        let peer = self.lop3(lut::A ^ lut::B, rank, Src::imm(1), Src::ZERO);
        let object = self.add(words, Src::imm(PEER_OBJECT as u32));
        let object = self.reg(Op::Prmt, &[peer, IN_BLOCK, object]);
        let there = self.reg(Op::Prmt, &[peer, IN_BLOCK, to]);
        let arrive = |what| Op::SyncsArrive { mode: ArriveMode::Remote, drop: false, what, offset: 0 };
        self.either(
            odd,
            |this| {
                this.wait_for_peer(words);
                let unit = this.load_word(to, 0, MemSize::B32);
                this.note_units(to, words, unit, count);
                this.guarded(arrive(Arrival::One), &[Dst::Sink], &[object, Src::ZERO, Src::ZERO], &[]);
                this.update_word(AtomOp::Xor, words, PEER_PHASE, Src::imm(1));
                Ok(())
            },
            |this| {
                let unit = this.take_units(count, true);
                this.wait_for_peer(words);
                let bytes = this.in_register(Src::imm(4));
                let srcs = [object, Src::ZERO, bytes];
                this.guarded(arrive(Arrival::OneAndBytes), &[Dst::Sink], &srcs, &[]);
                let place = this.pack(&[there, object]);
                this.effect(Op::Stas { size: MemSize::B32 }, &[place, Src::ZERO, unit]);
                this.note_units(to, words, unit, count);
                this.update_word(AtomOp::Xor, words, PEER_PHASE, Src::imm(1));
                Ok(())
            },
        )
    }

    /// Waits until the other block of the pair has reached this point.
    fn wait_for_peer(&mut self, words: Src) {
        let phase = self.load_word(words, PEER_PHASE, MemSize::B32);
        let phase = self.shift_left(phase, Src::imm(PHASE_AT));
        let (again, done) = (self.new_block(2), self.new_block(1));
        self.end(Term::Jump(again));
        self.start(again);
        let op = Op::SyncsPhasechk { wait: true, offset: PEER_OBJECT };
        let over = self.pred(op, &[words, Src::ZERO, phase]);
        self.end(Term::Branch { cond: over, then: done, els: again, uniform: false });
        self.start(done);
    }

    /// Allocates units, waiting until enough are free; returns the first.
    fn take_units(&mut self, count: Src, pair: bool) -> Src {
        let (first, again, done) = (self.new_block(2), self.new_block(1), self.new_block(1));
        self.end(Term::Jump(first));
        self.start(first);
        self.effect(Op::Depbar { but: TAKE_DELAY }, &[]);
        let count = self.uniform_register(count, Chosen::all(Src::TRUE));
        let (unit, found) = (self.new_value(File::UR, 1), self.new_value(File::UP, 1));
        let take = Op::TmemTake { pair, align: true };
        self.push(Inst::new(take, &[Dst::Value(unit), Dst::Value(found)], &[count], self.src));
        let unit = self.reg(Op::Mov, &[unit.into()]);
        let found = self.in_each_thread(found.into());
        self.end(Term::Branch { cond: found, then: done, els: again, uniform: false });
        self.start(again);
        self.effect(Op::Nanosleep { object: false }, &[Src::imm(TRY_AGAIN)]);
        self.end(Term::Jump(first));
        self.start(done);
        unit
    }

    /// `tcgen05.dealloc`.
    pub(super) fn give_columns(&mut self, instr: &Statement<'a>) -> Result<()> {
        self.columns_of_pair(instr);
        self.uses_tensor(TensorUse::MEMORY);
        self.has_tensor_memory(instr, &Op::TmemGive)?;
        let address = self.source(instr, 0, ScalarType::U32)?;
        let count = self.source(instr, 1, ScalarType::U32)?;
        self.check_tensor(|this| Ok(this.are_outside(address, count)))?;
        let column = self.lop3(lut::A & lut::B, address, Src::imm(COLUMN), Src::ZERO);
        let unit = self.shift_right(column, UNIT, false);
        let count = self.shift_right(count, UNIT, false);
        let given = self.ones(count);
        let given = self.shift_left(given, unit);
        let first = self.shift_left(Src::imm(1), unit);
        self.join_all();
        self.by_one(|this| {
            let words = this.reserved_words();
            let wrong = this.lacks(words, TAKEN, given);
            let other = this.lacks(words, FIRST, first);
            let wrong = this.plop3(lut::A | lut::B, wrong, other, Src::TRUE);
            this.only_where(wrong, |this| {
                this.effect(Op::Bpt { trap: true }, &[]);
                Ok(())
            })?;
            let (given, first) = (this.inverted(given), this.inverted(first));
            let uniform = this.uniform_register(given, Chosen::all(Src::TRUE));
            this.effect(Op::TmemGive, &[uniform]);
            this.update_word(AtomOp::And, words, TAKEN, given);
            this.update_word(AtomOp::And, words, FIRST, first);
            Ok(())
        })
    }

    /// Whether a word lacks some of these bits.
    pub(super) fn lacks(&mut self, words: Src, offset: i32, bits: Src) -> Src {
        let word = self.load_word(words, offset, MemSize::B32);
        let both = self.lop3(lut::A & lut::B, word, bits, Src::ZERO);
        self.is_other(both, bits)
    }

    /// `tcgen05.relinquish_alloc_permit`.
    pub(super) fn take_no_more_columns(&mut self, instr: &Statement<'a>) -> Result<()> {
        self.columns_of_pair(instr);
        self.has_tensor_memory(instr, &Op::TmemYield)?;
        self.join_all();
        self.effect(Op::TmemYield, &[Src::imm(PERMISSION)]);
        self.by_one(|this| {
            let words = this.reserved_words();
            this.store_word(words, NO_MORE, MemSize::U8, Src::imm(1));
            Ok(())
        })
    }

    /// An address in tensor memory, as a register and an offset.
    fn tensor_place(&mut self, instr: &Statement<'a>, i: usize) -> Result<(Src, i32)> {
        self.uses_tensor(TensorUse::MEMORY);
        let Operand::Address(address) = self.operand(instr, i)? else {
            return self.malformed("a tensor memory operand that is not an address");
        };
        let Ok(offset) = i32::try_from(address.offset) else {
            return self.unsupported(instr, "an offset of more than 32 bits");
        };
        match address.base {
            AddressBase::Reg(reg) => Ok((self.read(&Operand::Reg(reg), ScalarType::U32)?, offset)),
            AddressBase::Absolute => Ok((Src::imm(offset as u32), 0)),
            AddressBase::Symbol(_) => self.unsupported(instr, "a variable as the address of tensor memory"),
        }
    }

    /// An address in tensor memory in one register.
    fn tensor_address(&mut self, instr: &Statement<'a>, i: usize) -> Result<Src> {
        let (place, offset) = self.tensor_place(instr, i)?;
        Ok(if offset == 0 { place } else { self.add(place, Src::imm(offset as u32)) })
    }

    /// The shape of an access; `None` if the halves of the warp access different columns.
    fn tensor_shape(&mut self, instr: &Statement<'a>) -> Result<(Option<TensorLanes>, TensorCount)> {
        use TensorCount as C;
        use TensorLanes as L;
        // All threads of the warp execute it together.
        instr.ignore(&[Mod::Aligned]);
        let lanes = instr.take(&[
            (Mod::N32x32b, Some(L::L32B32)),
            (Mod::N16x64b, Some(L::L16B64)),
            (Mod::N16x128b, Some(L::L16B128)),
            (Mod::N16x256b, Some(L::L16B256)),
            (Mod::N16x32bx2, None),
        ]);
        let counts = [
            (Mod::X1, C::X1),
            (Mod::X2, C::X2),
            (Mod::X4, C::X4),
            (Mod::X8, C::X8),
            (Mod::X16, C::X16),
            (Mod::X32, C::X32),
            (Mod::X64, C::X64),
            (Mod::X128, C::X128),
        ];
        match (lanes, instr.take(&counts)) {
            (Some(lanes), Some(count)) => Ok((lanes, count)),
            _ => self.malformed("an access of tensor memory without its shape"),
        }
    }

    /// `tcgen05.ld`.
    pub(super) fn load_tensor(&mut self, instr: &Statement<'a>) -> Result<()> {
        let (lanes, count) = self.tensor_shape(instr)?;
        let pack = instr.has(Mod::Pack16b);
        let (place, offset) = self.tensor_place(instr, 1)?;
        let op = match lanes {
            Some(lanes) => Op::TmemLoad { lanes, count, pack, offset },
            None => {
                let behind = self.immediate(instr, 2)? as i32;
                Op::TmemLoadHalves { count, pack, offset, behind }
            }
        };
        self.has_tensor_memory(instr, &Op::TmemLoaded)?;
        self.has_tensor_memory(instr, &op)?;
        let places = self.elements_of(instr, 0)?;
        let width = tensor_registers(lanes.unwrap_or(TensorLanes::Lower), count);
        if places.len() != usize::from(width) {
            return self.malformed("a load whose number of registers does not match its shape");
        }
        self.check_access(place, offset, columns_of_access(lanes, count, pack))?;
        self.join_all();
        let place = self.uniform_register(place, Chosen::all(Src::TRUE));
        let result = self.wide(width, op, &[place]);
        for (i, to) in places.iter().enumerate() {
            let part = if width == 1 { result } else { self.part(result, i as u8) };
            self.write(to, part)?;
        }
        Ok(())
    }

    /// `tcgen05.ld.red`: also the minimum or maximum of the words that each thread loads.
    pub(super) fn load_tensor_reduced(&mut self, instr: &Statement<'a>) -> Result<()> {
        let (lanes, count) = self.tensor_shape(instr)?;
        let greatest = instr.any_of(&[Mod::Min, Mod::Max]) == Some(Mod::Max);
        let op = match (greatest, instr.has(Mod::Abs)) {
            (true, false) => TensorStat::Max,
            (true, true) => TensorStat::MaxAbs,
            (false, false) => TensorStat::Min,
            (false, true) => TensorStat::MinAbs,
        };
        let nan = instr.has(Mod::Nan);
        let ty = match self.type_of(instr, 0)? {
            ScalarType::F32 => TensorStatType::F32,
            ScalarType::S32 => TensorStatType::S32,
            _ => TensorStatType::U32,
        };
        let (place, offset) = self.tensor_place(instr, 2)?;
        let op = match lanes {
            Some(lanes) => Op::TmemLoadStat { lanes, count, op, ty, nan, offset },
            None => {
                let behind = self.immediate(instr, 3)? as i32;
                Op::TmemLoadStatHalves { count, op, ty, nan, offset, behind }
            }
        };
        self.has_tensor_memory(instr, &op)?;
        let places = self.elements_of(instr, 0)?;
        let width = tensor_registers(lanes.unwrap_or(TensorLanes::Lower), count);
        let [stat] = self.elements_of(instr, 1)? else {
            return self.malformed("a load with more than one reduction");
        };
        if places.len() != usize::from(width) {
            return self.malformed("a load whose number of registers does not match its shape");
        }
        self.check_access(place, offset, columns_of_access(lanes, count, false))?;
        self.join_all();
        let place = self.uniform_register(place, Chosen::all(Src::TRUE));
        let (loaded, reduced) = (self.new_value(File::R, width), self.new_value(File::R, 1));
        let dsts = [Dst::Value(loaded), Dst::Value(reduced)];
        self.push(Inst::new(op, &dsts, &[place], self.src));
        for (i, to) in places.iter().enumerate() {
            let part = self.part(loaded.into(), i as u8);
            self.write(to, part)?;
        }
        self.write(stat, reduced.into())
    }

    fn elements_of(&mut self, instr: &Statement<'a>, i: usize) -> Result<&'a [Operand]> {
        Ok(match self.operand(instr, i)? {
            Operand::Vector(elements) => elements,
            one => std::slice::from_ref(one),
        })
    }

    /// `tcgen05.st`.
    pub(super) fn store_tensor(&mut self, instr: &Statement<'a>) -> Result<()> {
        let (lanes, count) = self.tensor_shape(instr)?;
        let pack = instr.has(Mod::Unpack16b);
        let (place, offset) = self.tensor_place(instr, 0)?;
        let (op, last) = match lanes {
            Some(lanes) => (Op::TmemStore { lanes, count, pack, offset }, 1),
            None => {
                let behind = self.immediate(instr, 1)? as i32;
                (Op::TmemStoreHalves { count, pack, offset, behind }, 2)
            }
        };
        self.has_tensor_memory(instr, &op)?;
        let elements = self.elements_of(instr, last)?;
        let width = tensor_registers(lanes.unwrap_or(TensorLanes::Lower), count);
        if elements.len() != usize::from(width) {
            return self.malformed("a store whose number of registers does not match its shape");
        }
        let words: Vec<Src> =
            elements.iter().map(|element| self.read(element, ScalarType::B32)).collect::<Result<_>>()?;
        let data = match words[..] {
            [one] => self.in_register(one),
            _ => self.pack(&words),
        };
        self.check_access(place, offset, columns_of_access(lanes, count, pack))?;
        self.join_all();
        let place = self.uniform_register(place, Chosen::all(Src::TRUE));
        self.effect(op, &[place, data]);
        Ok(())
    }

    /// `tcgen05.wait`.
    pub(super) fn wait_for_tensor(&mut self, instr: &Statement<'a>) -> Result<()> {
        let stores = instr.any_of(&[Mod::WaitLd, Mod::WaitSt]) == Some(Mod::WaitSt);
        let op = if stores { Op::FenceView { of: ViewOf::Tensor } } else { Op::TmemLoaded };
        self.has_tensor_memory(instr, &op)?;
        self.effect(op, &[]);
        Ok(())
    }

    /// `tcgen05.cp`.
    pub(super) fn copy_into_tensor(&mut self, instr: &Statement<'a>) -> Result<()> {
        let pair = self.of_pair(instr);
        let lanes = instr.take(&[
            (Mod::N128x256b, TensorCopy::L128B256),
            (Mod::N4x256b, TensorCopy::L4B256),
            (Mod::N128x128b, TensorCopy::L128B128),
            (Mod::N64x128b, TensorCopy::L64Pairs02),
            (Mod::N32x128b, TensorCopy::L32),
        ]);
        let ways = instr.any_of(&[Mod::Warpx20213, Mod::Warpx20123, Mod::Warpx4]);
        let shape = match (lanes, ways) {
            (Some(TensorCopy::L64Pairs02), Some(Mod::Warpx20123)) => TensorCopy::L64Pairs01,
            (Some(shape), _) => shape,
            (None, _) => return self.malformed("a copy without its shape"),
        };
        let format = match (instr.ty(0), instr.ty(1)) {
            (None, None) => TensorFormat::Bytes,
            (Some(ScalarType::B8x16), Some(ScalarType::B4x16P64)) => TensorFormat::Nibbles,
            (Some(ScalarType::B8x16), Some(ScalarType::B6x16P32)) => TensorFormat::Sextets,
            _ => return self.unsupported(instr, "this format"),
        };
        let (place, offset) = self.tensor_place(instr, 0)?;
        let source = self.source_pair(instr, 1, ScalarType::U64)?;
        let op = Op::TmemCopyIn { pair, shape, format, offset };
        self.has_tensor_memory(instr, &op)?;
        self.check_columns(place, offset, columns_of_copy(shape))?;
        self.one_by_one(|this, chosen| {
            let place = this.uniform_register(place, chosen);
            let source = this.uniform_pack(&source, chosen);
            this.effect(op, &[place, source]);
            Ok(())
        })
    }

    /// `tcgen05.shift`.
    pub(super) fn shift_tensor(&mut self, instr: &Statement<'a>) -> Result<()> {
        let pair = self.of_pair(instr);
        instr.ignore(&[Mod::Down]);
        let (place, offset) = self.tensor_place(instr, 0)?;
        let op = Op::TmemShift { pair, offset };
        self.has_tensor_memory(instr, &op)?;
        self.check_columns(place, offset, SHIFTED_COLUMNS)?;
        self.one_by_one(|this, chosen| {
            let place = this.uniform_register(place, chosen);
            this.effect(op, &[place]);
            Ok(())
        })
    }

    /// `tcgen05.commit`.
    pub(super) fn commit_tensor(&mut self, instr: &Statement<'a>) -> Result<()> {
        let pair = self.of_pair(instr);
        // The only kind of completion, and the only state space of objects.
        instr.ignore(&[Mod::MbarrierArriveOne, Mod::SharedCluster]);
        self.uses_tensor(TensorUse::MEMORY);
        let multicast = instr.has(Mod::MulticastCluster);
        let op = Op::TmemCommit { pair, multicast };
        self.has_tensor_memory(instr, &op)?;
        self.branch_around(|this| {
            let object = this.object(instr, 0)?;
            let object = this.object_address(object);
            let blocks = match multicast {
                true => {
                    let blocks = this.source(instr, 1, ScalarType::U16)?;
                    this.lop3(lut::A & lut::B, blocks, Src::imm(0xffff), Src::ZERO)
                }
                false => Src::ZERO,
            };
            this.one_by_one(|this, chosen| {
                let object = this.uniform_register(object, chosen);
                let blocks = if multicast { this.uniform_register(blocks, chosen) } else { Src::ZERO };
                this.effect(op, &[object, Src::ZERO, blocks]);
                Ok(())
            })
        })
    }

    /// The first factor of a product.
    fn first_factor(&mut self, instr: &Statement<'a>, i: usize) -> Result<Factor> {
        match self.operand(instr, i)? {
            Operand::Address(_) => Ok(Factor::Tensor(self.tensor_address(instr, i)?)),
            _ => Ok(Factor::Shared(self.source_pair(instr, i, ScalarType::U64)?)),
        }
    }

    fn uniform_factor(&mut self, factor: Factor, chosen: Chosen) -> Src {
        match factor {
            Factor::Shared(words) => self.uniform_pack(&words, chosen),
            Factor::Tensor(place) => self.uniform_register(place, chosen),
        }
    }

    fn collects(instr: &Statement<'a>) -> TensorCollect {
        let collect = instr.take(&[
            (Mod::CollectorAFill, TensorCollect::Keep),
            (Mod::CollectorAUse, TensorCollect::Reuse),
            (Mod::CollectorALastuse, TensorCollect::Last),
            (Mod::CollectorADiscard, TensorCollect::Discard),
        ]);
        collect.unwrap_or(TensorCollect::Discard)
    }

    /// The collector buffer of B and its use, in the machine's encoding.
    fn buffers(instr: &Statement<'a>) -> u8 {
        let number = instr.take_text(|text| {
            let (buffer, what) = text.strip_prefix("collector::b")?.split_once("::")?;
            let what = match what {
                "fill" => 4,
                "lastuse" => 8,
                "use" => 12,
                "discard" => 0,
                _ => return None,
            };
            Some(buffer.parse::<u8>().ok()? + what)
        });
        number.unwrap_or(0)
    }

    fn is_sparse(&mut self, instr: &Statement<'a>) -> bool {
        let sparse = instr.has(Mod::Sp);
        if sparse {
            self.uses_tensor(TensorUse::SPARSE);
        }
        sparse
    }

    /// `tcgen05.mma` and `tcgen05.mma.ws`.
    pub(super) fn multiply_tensor(&mut self, instr: &Statement<'a>) -> Result<()> {
        let pair = self.of_pair(instr);
        let weights = instr.form() == FormId::Tcgen05MmaWs;
        let kind = instr.take(&[
            (Mod::KindF16, TensorKind::Half),
            (Mod::KindTf32, TensorKind::Half),
            (Mod::KindI8, TensorKind::Integer),
            (Mod::KindF8f6f4, TensorKind::Quarter),
        ]);
        let Some(kind) = kind else { return self.unsupported(instr, "this kind of product") };
        let sparse = self.is_sparse(instr);
        let (collect, buffer) =
            if weights { (TensorCollect::Discard, Self::buffers(instr)) } else { (Self::collects(instr), 0) };
        let sum = self.tensor_address(instr, 0)?;
        let first = self.first_factor(instr, 1)?;
        let second = self.source_pair(instr, 2, ScalarType::U64)?;
        let metadata = if sparse { self.tensor_address(instr, 3)? } else { Src::ZERO };
        let mut next = 3 + usize::from(sparse);
        let description = self.source(instr, next, ScalarType::U32)?;
        next += 1;
        let masked = !weights && matches!(instr.peek_operands().get(next), Some(Operand::Vector(_)));
        let mut mask = Vec::new();
        if masked {
            for element in self.elements_of(instr, next)? {
                mask.push(self.read(element, ScalarType::B32)?);
            }
            next += 1;
        }
        let adds = self.predicate_or_number(instr, next)?;
        next += 1;
        let mut scale = 0;
        if next < instr.operand_count() {
            if weights {
                mask = self.source_pair(instr, next, ScalarType::U64)?.to_vec();
            } else if kind == TensorKind::Half {
                scale = self.immediate(instr, next)? as u8 & 0xf;
            } else {
                // Sums of integers are not scaled. ptxas also takes a predicate here.
                self.operand(instr, next)?;
            }
        }
        let op = Op::TmemProduct {
            kind,
            tensor: matches!(first, Factor::Tensor(_)),
            pair,
            weights,
            shift: instr.has(Mod::Ashift),
            collect,
            buffer,
            scale,
        };
        self.has_tensor_memory(instr, &op)?;
        let product = Product { description, pair, weights, metadata: sparse.then_some(metadata) };
        self.check_tensor(|this| Ok(this.wrong_product(sum, first, product)))?;
        self.one_by_one(|this, chosen| {
            let first = this.uniform_factor(first, chosen);
            let second = this.uniform_pack(&second, chosen);
            let sum = this.uniform_register(sum, chosen);
            let described = this.uniform_pack(&[metadata, description], chosen);
            let mask = if mask.is_empty() { ALL } else { this.uniform_pack(&mask, chosen) };
            let adds = this.uniform_predicate(adds, chosen);
            this.effect(op, &[first, second, sum, described, mask, adds]);
            Ok(())
        })
    }

    /// `tcgen05.mma` with `.block_scale`.
    pub(super) fn multiply_tensor_scaled(&mut self, instr: &Statement<'a>) -> Result<()> {
        let pair = self.of_pair(instr);
        instr.ignore(&[Mod::BlockScale]);
        let kind = instr.any_of(&[Mod::KindMxf8f6f4, Mod::KindMxf4, Mod::KindMxf4nvf4]);
        let scales =
            instr.any_of(&[Mod::ScaleVec1X, Mod::ScaleVec2X, Mod::ScaleVec4X, Mod::Block16, Mod::Block32]);
        let sparse = self.is_sparse(instr);
        let collect = Self::collects(instr);
        let sum = self.tensor_address(instr, 0)?;
        let first = self.first_factor(instr, 1)?;
        let second = self.source_pair(instr, 2, ScalarType::U64)?;
        let metadata = if sparse { self.tensor_address(instr, 3)? } else { Src::ZERO };
        let at = 3 + usize::from(sparse);
        let description = self.source(instr, at, ScalarType::U32)?;
        let factors = [self.tensor_address(instr, at + 1)?, self.tensor_address(instr, at + 2)?];
        let adds = self.predicate_or_number(instr, at + 3)?;
        let op = Op::TmemProductScaled {
            kind: if kind == Some(Mod::KindMxf8f6f4) { TensorKind::Quarter } else { TensorKind::Nibble },
            tensor: matches!(first, Factor::Tensor(_)),
            pair,
            scales: match scales {
                Some(Mod::ScaleVec4X | Mod::Block16) => TensorScales::Fine,
                _ => TensorScales::Wide,
            },
            collect,
        };
        self.has_tensor_memory(instr, &op)?;
        let product = Product { description, pair, weights: false, metadata: sparse.then_some(metadata) };
        self.check_tensor(|this| {
            let mut wrong = this.wrong_product(sum, first, product);
            wrong.extend(this.wrong_scales(factors, product));
            Ok(wrong)
        })?;
        self.one_by_one(|this, chosen| {
            let first = this.uniform_factor(first, chosen);
            let second = this.uniform_pack(&second, chosen);
            let sum = this.uniform_register(sum, chosen);
            let described = this.uniform_pack(&[metadata, description], chosen);
            let factors = this.uniform_pack(&factors, chosen);
            let adds = this.uniform_predicate(adds, chosen);
            this.effect(op, &[first, second, sum, described, factors, adds]);
            Ok(())
        })
    }

    fn predicate_or_number(&mut self, instr: &Statement<'a>, i: usize) -> Result<Src> {
        let operand = self.operand(instr, i)?;
        match operand {
            Operand::Int(number) => Ok(Src::new(SrcKind::Pred(*number != 0))),
            _ => self.read(operand, ScalarType::Pred),
        }
    }
}
