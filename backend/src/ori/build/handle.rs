//! Handles of textures, samplers and surfaces. The handle of a variable is a word after the parameters, which the
//! driver fills in; any other handle is a value. On targets that take handles in uniform registers, groups of threads
//! with different handles take turns.

use super::uniform::Chosen;
use super::{Lowering, Result, Statement};
use crate::input::{AddressBase, Operand, Symbol};
use crate::layout::{self, HandleWord};
use crate::ori::ir::{Dst, File, Inst, Src, SrcKind, Term};
use crate::ori::op::{ICmp, Link, Op, lut};
use ptx_isa::ScalarType;

/// The bits of a texture's index. The sampler's index follows in the same word, up to sm_89.
pub(super) const TEXTURE: u32 = 0xf_ffff;
pub(super) const SAMPLER_SHIFT: u32 = 20;
/// This bit is set in the low word of variables' handles, up to sm_89.
const VARIABLE: u32 = 0x8000_0000;

/// Where an instruction finds its handle.
#[derive(Clone, Copy)]
pub(super) struct Handle {
    /// The offset of the word in constant bank 0, if the handle is not in a register.
    pub(super) word: i32,
    pub(super) register: Option<Src>,
    /// Uniform registers of the texture and the sampler.
    pub(super) uniform: Src,
}

/// The bit of a handle's upper word that marks its kind.
pub(super) fn kind_bits(ty: ScalarType) -> Option<u32> {
    Some(match ty {
        ScalarType::TexRef => 1 << 29,
        ScalarType::SamplerRef => 1 << 30,
        ScalarType::SurfRef => 1 << 31,
        _ => return None,
    })
}

impl<'a> Lowering<'a> {
    /// Calls `act` with a handle and the predicate of the threads for which to act: all threads, or those that have
    /// this handle.
    pub(super) fn with_handle<T>(
        &mut self,
        instr: &Statement<'a>,
        handles: &[Operand],
        act: impl FnOnce(&mut Self, Handle, Src) -> Result<T>,
    ) -> Result<T> {
        let (texture, sampler) = match handles {
            [texture] => (texture, None),
            [texture, sampler] if self.env.independent_samplers => (texture, Some(sampler)),
            _ => return self.unsupported(instr, "a separate sampler in unified texture mode"),
        };
        if self.target.uniform_handles {
            let mut words = vec![self.handle_word(instr, texture)?];
            if let Some(sampler) = sampler {
                words.push(self.handle_word(instr, sampler)?);
            }
            return self.with_uniform_handle(&words, act);
        }
        let low = match (self.opaque_symbol(texture), sampler.map(|sampler| self.opaque_symbol(sampler))) {
            // Linked words contain one index each.
            (Some(texture), Some(Some(sampler))) if !self.links_handles() => {
                self.variable_word(HandleWord::Pair(texture, sampler))?
            }
            (_, None) => self.handle_word(instr, texture)?,
            _ => {
                let low = self.handle_word(instr, texture)?;
                let high = self.sampler_bits(instr, sampler.unwrap_or(texture))?;
                self.lop3(lut::SELECT, high, Src::imm(TEXTURE), low)
            }
        };
        let handle = match low.kind {
            SrcKind::Const(constant) if constant.bank == 0 => {
                Handle { word: i32::from(constant.offset / 4), register: None, uniform: Src::ZERO }
            }
            _ => Handle { word: 0, register: Some(self.in_register(low)), uniform: Src::ZERO },
        };
        act(self, handle, Src::TRUE)
    }

    fn with_uniform_handle<T>(
        &mut self,
        words: &[Src],
        act: impl FnOnce(&mut Self, Handle, Src) -> Result<T>,
    ) -> Result<T> {
        let handle = |uniform| Handle { word: 0, register: None, uniform };
        let both = |words: &[Src]| [words[0], words.get(1).copied().unwrap_or(Src::ZERO)];
        let is_same = |this: &Self, word: &Src| {
            let is_uniform = |v| this.out.value(v).file == File::UR;
            matches!(word.kind, SrcKind::Const(_)) || word.value().is_some_and(is_uniform)
        };
        if words.iter().all(|word| is_same(self, word)) {
            let pair = self.uniform_pack(&both(words), Chosen::all(Src::TRUE));
            return act(self, handle(pair), Src::TRUE);
        }
        let (again, done) = (self.new_block(2), self.new_block(1));
        self.end(Term::Jump(again));
        self.start(again);
        let chosen = self.new_value(File::P, 1);
        self.push(Inst::new(Op::Elect, &[Dst::Value(chosen), Dst::Sink], &[], self.src));
        let uniform: Vec<Src> =
            words.iter().map(|word| self.uniform(*word, Chosen::all(chosen.into()))).collect();
        let mut matched = Src::TRUE;
        for (word, uniform) in words.iter().zip(&uniform) {
            if !is_same(self, word) {
                let equal = self.compare(ICmp::Eq, false, *word, *uniform);
                matched = if matched.is_true() { equal } else { self.and(matched, equal) };
            }
        }
        let pair = self.uniform_pack(&both(&uniform), Chosen::all(Src::TRUE));
        let result = act(self, handle(pair), matched)?;
        self.end(Term::Branch { cond: matched.not(), then: again, els: done, uniform: false });
        self.start(done);
        Ok(result)
    }

    fn and(&mut self, a: Src, b: Src) -> Src {
        self.plop3(lut::A & lut::B, a, b, Src::TRUE)
    }

    /// The variable that an operand names.
    pub(super) fn opaque_symbol(&self, operand: &Operand) -> Option<Symbol> {
        let symbol = match *operand {
            Operand::Symbol(symbol, 0) => symbol,
            Operand::Address(address) if address.offset == 0 => match address.base {
                AddressBase::Symbol(symbol) => symbol,
                _ => return None,
            },
            _ => return None,
        };
        layout::opaque(self.env, self.func, symbol).map(|_| symbol)
    }

    /// The low word of an operand's handle, which is a value or the handle of a variable.
    pub(super) fn handle_word(&mut self, instr: &Statement<'a>, operand: &Operand) -> Result<Src> {
        if let Some(symbol) = self.opaque_symbol(operand) {
            return self.variable_word(HandleWord::One(symbol));
        }
        let handle = self.handle_value(instr, operand)?;
        Ok(self.part(handle, 0))
    }

    /// A handle in a register.
    pub(super) fn handle_value(&mut self, instr: &Statement<'a>, operand: &Operand) -> Result<Src> {
        let register = match operand {
            Operand::Reg(reg) => *reg,
            Operand::Address(address) if address.offset == 0 => match address.base {
                AddressBase::Reg(reg) => reg,
                _ => return self.unsupported(instr, "a texture or surface without a handle"),
            },
            _ => return self.unsupported(instr, "a texture or surface without a handle"),
        };
        self.read(&Operand::Reg(register), ScalarType::U64)
    }

    /// The bits of a sampler, shifted to their position in a word that also contains a texture.
    fn sampler_bits(&mut self, instr: &Statement<'a>, sampler: &Operand) -> Result<Src> {
        let word = self.handle_word(instr, sampler)?;
        if self.opaque_symbol(sampler).is_some() {
            return Ok(word);
        }
        Ok(self.shift_left(word, Src::imm(SAMPLER_SHIFT)))
    }

    /// Whether the words of variables get their offsets only when a kernel is linked with the functions that it calls.
    fn links_handles(&self) -> bool {
        !self.linking.is_joined() || !self.func.entry
    }

    /// The word that the driver fills in for a variable: a constant or, if the offset is assigned by linking, a uniform
    /// register.
    fn variable_word(&mut self, word: HandleWord) -> Result<Src> {
        if self.links_handles() {
            let HandleWord::One(symbol) = word else {
                return self.malformed("a linked texture word that combines two variables");
            };
            let value = self.new_value(File::UR, 1);
            let op = Op::LoadHandle { link: Link { symbol, offset: 0, high: false } };
            self.push(Inst::new(op, &[Dst::Value(value)], &[], self.src));
            return Ok(match self.target.uniform_handles {
                true => value.into(),
                false => self.reg(Op::Mov, &[value.into()]),
            });
        }
        match layout::handle_words(self.env, self.func, self.target).offset(word) {
            Some(offset) => Ok(Src::constant(0, offset)),
            None => self.malformed("a texture without a word in the constant bank"),
        }
    }

    /// The handle of a variable as a value.
    pub(super) fn variable_handle(&mut self, symbol: Symbol, kind: ScalarType) -> Result<Src> {
        let word = self.variable_word(HandleWord::One(symbol))?;
        let low = if self.target.uniform_handles {
            // A linked word is in a uniform register.
            if self.links_handles() { self.reg(Op::Mov, &[word]) } else { word }
        } else {
            let number = match kind {
                ScalarType::SamplerRef => self.shift_right(word, SAMPLER_SHIFT, false),
                _ => word,
            };
            self.reg(Op::Lop3 { lut: 0xfc }, &[number, Src::imm(VARIABLE), Src::ZERO])
        };
        let high = Src::imm(kind_bits(kind).unwrap_or(0));
        Ok(self.pack(&[low, high]))
    }
}
