//! Executes `tcgen05` machine code: allocation of tensor memory, loads and stores, and asynchronous operations. The
//! latter complete where they are issued; their arrivals at barrier objects are delayed.

use super::{Block, Machine, Result};
use crate::launch::FaultKind;
use crate::matrix::Fragment;
use crate::memory::RANK_SHIFT;
use crate::tensor::{
    self, Compared, Factor, Kind, Product, Rows, Shape, TensorAccess, TensorMemory, extremum,
};
use crate::transfers::{Done, Transfer};
use sass::{Field, Inst};
use std::ops::Range;

/// The mnemonics of instructions on tensor memory.
pub(super) const MNEMONICS: &[&str] = &[
    "UTCATOMSWS",
    "UVIRTCOUNT",
    "LDTM",
    "STTM",
    "UTCHMMA",
    "UTCIMMA",
    "UTCQMMA",
    "UTCOMMA",
    "UTCCP",
    "UTCBAR",
];

/// The reserved bytes of shared memory in which a block records its columns.
const WORDS_BYTES: usize = 0x20;

/// The initial contents of these bytes. The blocks of a pair wait for each other by an object for one arrival; the
/// block of even rank does not wait for the first phase.
pub(super) fn reserved_words(rank: usize) -> Vec<u8> {
    const OBJECT: u64 = 0x7fff_f800_001f_fffe;
    let mut words = vec![0; WORDS_BYTES];
    words[0x08..0x10].copy_from_slice(&OBJECT.to_le_bytes());
    words[0x10] = u8::from(rank.is_multiple_of(2));
    words
}

const LOWER_HALF: u32 = 0xffff;

impl Machine<'_> {
    pub(super) fn uses_tensor(&self) -> bool {
        self.code.iter().any(|step| MNEMONICS.contains(&step.inst.form().mnemonic))
    }
}

/// The layout of a warp's registers, and the number of participating threads. `None` for shapes that the emulator does
/// not execute.
fn access(inst: &Inst) -> Option<(TensorAccess, u32)> {
    let (shape, threads, row) = match inst.text(Field::Type)? {
        "" => (Shape::L32B32, u32::MAX, 1),
        ".16dp64bit" => (Shape::L16B64, u32::MAX, 1),
        ".16dp128bit" => (Shape::L16B128, u32::MAX, 2),
        ".16dp256bit" => (Shape::L16B256, u32::MAX, 4),
        ".16dp32bit_t0_t15" => (Shape::L16B32, LOWER_HALF, 1),
        ".16dp32bit_t16_t31" => (Shape::L16B32, !LOWER_HALF, 1),
        _ => return None,
    };
    let registers = row << inst.get(Field::Size)?;
    let packed = inst.get(Field::Mode) == Some(1) && inst.form().name != "LDTM.STAT";
    Some((TensorAccess { shape, registers, packed }, threads))
}

/// The statistic that a load computes, and whether it is the maximum.
fn statistic(inst: &Inst) -> (Compared, bool) {
    let op = inst.text(Field::Op).unwrap_or("");
    let compared = match inst.text(Field::SrcType) {
        Some(".F32") => {
            Compared::Floats { magnitudes: op.ends_with("ABS"), nan: inst.get(Field::Mode) == Some(1) }
        }
        Some(".S32") => Compared::Signed,
        _ => Compared::Unsigned,
    };
    (compared, op.starts_with(".MAX"))
}

fn is_for_pair(inst: &Inst) -> bool {
    inst.get(Field::Size) == Some(1)
}

impl Block<'_> {
    pub(super) fn tensor(&mut self, w: usize, active: u32, at: u32, name: &str) -> Result<()> {
        let step = &self.machine.code[at as usize];
        let inst = &step.inst;
        let unsupported = || Err(FaultKind::Unsupported(sass::print(self.machine.sm, inst, 0)));
        let uniform = |field: Field| self.uniform_word(w, inst.get(field).unwrap_or(0) as usize);
        let rank = self.cluster.rank();
        let (rd, pd) = (step.rd, step.pd);
        match (name, inst.form().name) {
            (_, "UTCATOMSWS.FIND_AND_SET") => {
                let count = uniform(Field::URb);
                let blocks = self.blocks(is_for_pair(inst))?;
                let first = TensorMemory::take(&mut self.tensor[blocks], count)?;
                self.set_uniform(w, rd, first.unwrap_or(u32::MAX));
                self.set_predicate(w, 0, true, pd, first.is_some());
                Ok(())
            }
            (_, "UTCATOMSWS") if inst.text(Field::Op) == Some(".AND") => {
                let mask = uniform(Field::URb);
                self.tensor[rank].keep(mask);
                Ok(())
            }
            ("UVIRTCOUNT", _) => Ok(()),
            (_, "LDTM" | "LDTM.STAT" | "STTM") => self.move_tensor(w, active, at),
            (_, "UTCCP") if !is_for_pair(inst) => self.copy_into_tensor(w, at),
            (_, "UTCBAR") => self.commit_tensor(w, at),
            ("UTCHMMA" | "UTCIMMA" | "UTCQMMA" | "UTCOMMA", _) => self.multiply_tensor(w, at),
            _ => unsupported(),
        }
    }

    /// A uniform register. The ones after the register that is always zero are zero too.
    fn uniform_word(&self, w: usize, index: usize) -> u32 {
        if index >= usize::from(self.machine.sm.urz()) { 0 } else { self.warps[w].uniform[index] }
    }

    /// The tensor memory address of an access.
    fn tensor_address(&self, w: usize, inst: &Inst) -> u32 {
        let base = self.uniform_word(w, inst.get(Field::UrBase).unwrap_or(0) as usize);
        base.wrapping_add(inst.get(Field::Offset).unwrap_or(0) as u32)
    }

    fn uniform_pair(&self, w: usize, index: usize) -> u64 {
        u64::from(self.uniform_word(w, index + 1)) << 32 | u64::from(self.uniform_word(w, index))
    }

    fn move_tensor(&mut self, w: usize, active: u32, at: u32) -> Result<()> {
        let step = &self.machine.code[at as usize];
        let inst = &step.inst;
        let Some((access, threads)) = access(inst) else {
            return Err(FaultKind::Unsupported(sass::print(self.machine.sm, inst, 0)));
        };
        if active != u32::MAX {
            return Err(FaultKind::Malformed("an access of tensor memory without some threads".into()));
        }
        let (rank, address) = (self.cluster.rank(), self.tensor_address(w, inst));
        if inst.form().mnemonic == "LDTM" {
            let rd = step.rd;
            let result = access.load(&self.tensor[rank], w, threads, address)?;
            if let Some(register) = inst.get(Field::Rd2) {
                let (compared, greatest) = statistic(inst);
                let found = extremum(&result, compared, greatest);
                for lane in super::each(threads) {
                    self.set_register(w, lane, register as u8, found[lane]);
                }
            }
            for (i, values) in result.iter().enumerate() {
                for lane in super::each(threads) {
                    let register = if rd == 255 { 255 } else { rd + i as u8 };
                    self.set_register(w, lane, register, values[lane]);
                }
            }
            return Ok(());
        }
        let first = inst.get(Field::Rb).unwrap_or(255) as usize;
        let values: Fragment = (0..access.registers)
            .map(|i| {
                let register = if first == 255 { 255 } else { first + i };
                std::array::from_fn(|lane| self.warps[w].registers[register * super::WARP + lane])
            })
            .collect();
        access.store(&mut self.tensor[rank], w, threads, address, &values)
    }

    fn copy_into_tensor(&mut self, w: usize, at: u32) -> Result<()> {
        let inst = &self.machine.code[at as usize].inst;
        let rows = match (inst.text(Field::Type), inst.get(Field::SrcType)) {
            (Some(""), Some(0)) => Rows::Wide,
            (Some(".128dp128bit"), Some(0)) => Rows::All,
            (Some(".2x64dp128bit_lw02_lw13"), Some(0)) => Rows::Pairs02,
            (Some(".2x64dp128bit_lw01_lw23"), Some(0)) => Rows::Pairs01,
            (Some(".4x32dp128bit"), Some(0)) => Rows::Quarter,
            _ => return Err(FaultKind::Unsupported(sass::print(self.machine.sm, inst, 0))),
        };
        let address = self.tensor_address(w, inst);
        let descriptor = self.uniform_pair(w, inst.get(Field::URb).unwrap_or(0) as usize);
        self.with_tensor(w, false, |memories, read| {
            rows.copy(&mut memories[0], address, descriptor, |address, size| read(0, address, size))
        })
    }

    /// Calls a function with the tensor memory of the blocks and a reader of their shared memory. The reader takes an
    /// address and a size.
    fn with_tensor(
        &mut self,
        w: usize,
        pair: bool,
        does: impl FnOnce(&mut [TensorMemory], &mut dyn FnMut(usize, u64, u32) -> Result<u64>) -> Result<()>,
    ) -> Result<()> {
        let blocks = self.blocks(pair)?;
        let mut memories = std::mem::take(&mut self.tensor);
        let mut read = tensor::reader(self.view(w, 0), blocks.start);
        let result = does(&mut memories[blocks], &mut read);
        drop(read);
        self.tensor = memories;
        result
    }

    /// The blocks that an operation affects.
    fn blocks(&self, pair: bool) -> Result<Range<usize>> {
        tensor::blocks(self.cluster.rank(), pair, self.tensor.len())
    }

    fn commit_tensor(&mut self, w: usize, at: u32) -> Result<()> {
        let inst = &self.machine.code[at as usize].inst;
        let object = u64::from(self.tensor_address(w, inst));
        let ranks = match inst.get(Field::Flag) {
            Some(1) => self.uniform_word(w, inst.get(Field::URc).unwrap_or(0) as usize),
            _ => 1 << (object >> RANK_SHIFT),
        };
        let thread = (self.cluster.rank(), w, 0);
        for rank in (0..16).filter(|rank| ranks >> rank & 1 == 1) {
            let barrier = object & !(0xff << RANK_SHIFT) | rank << RANK_SHIFT;
            let done = Done::Arrival { barrier, thread, copies: 0, counts_bytes: false };
            self.transfers.begin(Transfer { pieces: Vec::new(), reduces: None, done });
        }
        Ok(())
    }

    fn multiply_tensor(&mut self, w: usize, at: u32) -> Result<()> {
        let step = &self.machine.code[at as usize];
        let inst = &step.inst;
        let unsupported = || Err(FaultKind::Unsupported(sass::print(self.machine.sm, inst, 0)));
        let field = |field| inst.get(field).unwrap_or(0) as usize;
        let name = inst.form().name;
        let kind = match (inst.form().mnemonic, name.contains(".SCALED")) {
            ("UTCHMMA", _) => Kind::Half,
            ("UTCIMMA", _) => Kind::Integer,
            ("UTCQMMA", false) => Kind::Quarter,
            ("UTCQMMA", true) => Kind::QuarterScaled,
            _ => Kind::NibbleScaled { fine: inst.text(Field::Scale).is_some_and(|text| !text.is_empty()) },
        };
        if inst.get(Field::Flag) == Some(1) {
            return unsupported();
        }
        let weights = inst.get(Field::Mode) == Some(1);
        let scaled = matches!(kind, Kind::QuarterScaled | Kind::NibbleScaled { .. });
        let first = field(Field::URa);
        let description = field(Field::UrBase);
        let mask = field(Field::Ur);
        let pair = is_for_pair(inst);
        let words = |w: usize| -> [u32; 8] { std::array::from_fn(|i| self.uniform_word(w, mask + i)) };
        let masked = !scaled && mask != usize::from(self.machine.sm.urz());
        if masked && weights {
            return unsupported();
        }
        let product = Product {
            kind,
            sum: self.uniform_word(w, field(Field::URc)),
            a: match name.ends_with(".TENSOR") {
                true => Factor::Tensor(self.uniform_word(w, first)),
                false => Factor::Shared(self.uniform_pair(w, first)),
            },
            b: self.uniform_pair(w, field(Field::URb)),
            description: self.uniform_word(w, description + 1),
            without: if masked { words(w) } else { [0; 8] },
            adds: self.holds(w, 0, true, step.predicates[0]),
            scale: inst.get(Field::Imm2).unwrap_or(0) as u32,
            factors: if scaled { [words(w)[0], words(w)[1]] } else { [0; 2] },
            weights,
            pair,
        };
        self.with_tensor(w, pair, |memories, read| product.compute(memories, read))
    }
}
