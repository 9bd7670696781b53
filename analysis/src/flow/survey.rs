//! One look at all statements of a body, which are many and large: what is rare among them, so that nothing else has
//! to look for it.

use ptx_backend::input::{Function, Instr, SrcId, Stmt};
use ptx_isa::{Facts, FormId};

use super::instruction;

/// What kinds of statements a body has, and where the rare ones are.
#[derive(Clone, Debug)]
pub struct Survey {
    /// The rows of the instruction table that it has, as a set.
    forms: [u64; FormId::ALL.len().div_ceil(64)],
    /// Labels and notable instructions, as indices into [`Function::body`].
    landmarks: Box<[u32]>,
    /// By label in text order: how many instructions stand before it.
    labels: Box<[u32]>,
}

impl Survey {
    pub(super) fn new(function: &Function) -> Self {
        let mut forms = [0; _];
        let (mut landmarks, mut labels) = (Vec::new(), Vec::with_capacity(function.labels as usize));
        for (index, statement) in function.body.iter().enumerate() {
            match statement {
                Stmt::Label(_) => {
                    labels.push((index - labels.len()) as u32);
                    landmarks.push(index as u32);
                }
                Stmt::Instr(instr) => {
                    let form = instr.opcode.form;
                    forms[form as usize / 64] |= 1 << (form as usize % 64);
                    if is_notable(form) {
                        landmarks.push(index as u32);
                    }
                }
            }
        }
        Self { forms, landmarks: landmarks.into(), labels: labels.into() }
    }

    /// Whether one of the instructions is of a form that is asked for.
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

    /// All of them, as indices into [`Function::body`].
    pub(super) fn landmarks(&self) -> &[u32] {
        &self.landmarks
    }

    /// An instruction by its ordinal.
    pub(super) fn instruction<'f>(&self, function: &'f Function, src: SrcId) -> Option<&'f Instr> {
        let labels = self.labels.partition_point(|&before| before <= src.0);
        instruction(function.body.get(src.0 as usize + labels)?)
    }
}

/// Whether instructions of a form do more than compute, load and store. Those are landmarks.
pub fn is_notable(form: FormId) -> bool {
    const COMPUTES: Facts = Facts::COMMUTES.or(Facts::TRAPS);
    !COMPUTES.has(ptx_isa::form(form).facts) && !matches!(form, FormId::Ld | FormId::St)
}
