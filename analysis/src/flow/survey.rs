//! Records the rare statements of a body during the walk, so that no check has to search for them.

use ptx_backend::input::SrcId;
use ptx_isa::{Facts, FormId};

use super::{Accesses, Code, Instr};
use crate::scope::Entity;
use crate::source_map::Usage;

/// The kinds of statements in a body, and the positions of the rare ones.
#[derive(Clone, Debug, Default)]
pub struct Survey {
    /// The rows of the instruction table that occur, as a set.
    forms: [u64; FormId::ALL.len().div_ceil(64)],
    /// Labels and notable instructions, as indices into a [`Code`].
    landmarks: Vec<u32>,
    /// For each label in text order: the number of instructions before it.
    labels: Vec<u32>,
    instructions: u32,
    accesses: Accesses,
}

impl Survey {
    pub fn clear(&mut self) {
        self.forms = [0; _];
        self.landmarks.clear();
        self.labels.clear();
        self.instructions = 0;
        self.accesses.clear();
    }

    /// Reserves memory for statements and names.
    pub fn reserve(&mut self, statements: usize, names: usize) {
        self.accesses.reserve(statements, names);
    }

    /// Records the next statement of the body: an instruction, with all names in it.
    #[inline]
    pub fn instruction(&mut self, form: FormId, names: impl Iterator<Item = (Entity, Usage)>) {
        self.forms[form as usize / 64] |= 1 << (form as usize % 64);
        if is_notable(form) {
            self.landmark();
        }
        self.instructions += 1;
        self.accesses.note(names);
    }

    /// Records that the last statement names variables or functions.
    pub fn names_symbols(&mut self) {
        self.accesses.note_symbols();
    }

    /// Records the next statement of the body: a label.
    pub fn label(&mut self) {
        self.landmark();
        self.labels.push(self.instructions);
    }

    fn landmark(&mut self) {
        self.landmarks.push(self.instructions + self.labels.len() as u32);
    }

    /// Whether the body has an instruction of a form for which `is_asked_for` is true.
    pub fn any(&self, is_asked_for: impl Fn(FormId) -> bool) -> bool {
        self.forms.iter().enumerate().any(|(word, &forms)| {
            let mut rest = forms;
            while rest != 0 {
                if is_asked_for(FormId::ALL[64 * word + rest.trailing_zeros() as usize]) {
                    return true;
                }
                rest &= rest - 1;
            }
            false
        })
    }

    pub fn accesses(&self) -> &Accesses {
        &self.accesses
    }

    /// All of them, as indices into a [`Code`].
    pub(super) fn landmarks(&self) -> &[u32] {
        &self.landmarks
    }

    /// An instruction by its ordinal.
    pub(super) fn find<'c>(&self, code: &'c Code, src: SrcId) -> Option<Instr<'c>> {
        let labels = self.labels.partition_point(|&before| before <= src.0);
        code.instruction_at(src.0 as usize + labels)
    }
}

/// Whether instructions of a form do more than compute, load and store. Such instructions are landmarks.
pub fn is_notable(form: FormId) -> bool {
    const COMPUTES: Facts = Facts::COMMUTES.or(Facts::TRAPS);
    !COMPUTES.has(ptx_isa::form(form).facts) && !matches!(form, FormId::Ld | FormId::St)
}
