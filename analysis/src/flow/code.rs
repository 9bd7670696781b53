//! The statements of a body in a compact form. The operands of all statements are in one vector, so that little memory
//! is touched until the function for the backend is built.

use std::ops::Range;

use ptx_backend::input::{self, Guard, LabelId, Operand, SrcId, Stmt};
use ptx_isa::Opcode;

#[derive(Debug, Default)]
pub struct Code {
    statements: Vec<Statement>,
    /// Operands after those of the last instruction belong to the next one.
    pub(crate) operands: Vec<Operand>,
}

#[derive(Debug)]
enum Statement {
    Label(LabelId),
    Instr {
        src: SrcId,
        guard: Option<Guard>,
        /// The index of the first operand, and the number of operands.
        operands: (u32, u32),
        opcode: Opcode,
    },
}

/// An instruction of a [`Code`]; see [`input::Instr`].
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Instr<'a> {
    pub src: SrcId,
    pub opcode: &'a Opcode,
    pub guard: Option<Guard>,
    pub operands: &'a [Operand],
}

impl Code {
    pub(crate) fn clear(&mut self) {
        self.statements.clear();
        self.operands.clear();
    }

    /// Reserves memory for statements and operands.
    pub(crate) fn reserve(&mut self, statements: usize, operands: usize) {
        self.statements.reserve(statements);
        self.operands.reserve(operands);
    }

    pub(crate) fn label(&mut self, label: LabelId) {
        self.statements.push(Statement::Label(label));
    }

    /// Adds an instruction with the operands from `first` on.
    #[inline]
    pub(crate) fn instruction(&mut self, src: SrcId, opcode: &Opcode, guard: Option<Guard>, first: usize) {
        let operands = (first as u32, (self.operands.len() - first) as u32);
        self.statements.push(Statement::Instr { src, guard, operands, opcode: *opcode });
    }

    pub fn len(&self) -> usize {
        self.statements.len()
    }

    pub fn is_empty(&self) -> bool {
        self.statements.is_empty()
    }

    /// The statement at an index, if it is a label.
    pub fn label_at(&self, index: usize) -> Option<LabelId> {
        match self.statements.get(index)? {
            Statement::Label(label) => Some(*label),
            Statement::Instr { .. } => None,
        }
    }

    /// The statement at an index, if it is an instruction.
    #[inline]
    pub fn instruction_at(&self, index: usize) -> Option<Instr<'_>> {
        self.view(self.statements.get(index)?)
    }

    pub fn last(&self) -> Option<Instr<'_>> {
        self.view(self.statements.last()?)
    }

    #[inline]
    fn view<'a>(&'a self, statement: &'a Statement) -> Option<Instr<'a>> {
        match statement {
            Statement::Label(_) => None,
            &Statement::Instr { src, guard, operands: (first, count), ref opcode } => {
                let operands = &self.operands[first as usize..][..count as usize];
                Some(Instr { src, opcode, guard, operands })
            }
        }
    }

    /// The instructions among the statements of a range.
    pub fn instructions(
        &self,
        statements: Range<usize>,
    ) -> impl DoubleEndedIterator<Item = Instr<'_>> + Clone + use<'_> {
        self.statements[statements].iter().filter_map(|statement| self.view(statement))
    }

    /// Takes all statements, for a function.
    pub(crate) fn take(&mut self) -> Vec<Stmt> {
        let mut operands = self.operands.drain(..);
        let statements = self.statements.drain(..).map(|statement| match statement {
            Statement::Label(label) => Stmt::Label(label),
            Statement::Instr { src, guard, operands: (_, count), opcode } => {
                let operands = operands.by_ref().take(count as usize).collect();
                Stmt::Instr(input::Instr { src, opcode, guard, operands })
            }
        });
        statements.collect()
    }
}
