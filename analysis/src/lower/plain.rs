//! Bodies as compilers write them, walked without a tree.
//!
//! Nearly every instruction of a program looks like one before it: the same name, operands of the same kinds and
//! types. What the checks say of it depends on that [shape](super::shape) alone. So a body's text is read once, and
//! each instruction is looked up among the shapes that have passed; one of a new shape, and whatever else is rare, is
//! parsed by itself, in its place, and walked by the code that walks trees. The result is the tree's to the last bit. At
//! the first syntax error or doubt the reading gives up, and the function is walked as a whole.

use std::sync::{Arc, Mutex, PoisonError};

use memchr::{memchr, memchr2, memchr3};
use ptx_backend::input::{Guard, Instr, LabelId, Operands, SrcId, Stmt, Symbol, Variable};
use ptx_isa::{Opcode, ScalarType};
use ptx_syntax::{ItemKind, Next, StatementParser};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use text_size::{TextRange, TextSize};

use super::body::Walker;
use super::heading::Headings;
use super::shape::{comment_len, is_word};
use crate::db::{Db, SourceFile};
use crate::declaration::Shape;
use crate::ide::Access;
use crate::module::{effective_target, header};
use crate::scope::{DeclKind, Entity};

/// Walks a function with a plain body, which the walker has begun. False for everything else: then the walker has to
/// begin again.
pub(super) fn walk<'db>(
    walker: &mut Walker<'db>,
    memory: &mut Memory,
    headings: &mut Headings<'db>,
    kind: ItemKind,
) -> bool {
    // Characters beyond ASCII are errors even in comments.
    if !kind.is_function() || !walker.text.is_ascii() {
        return false;
    }
    let Some(heading) = headings.read(walker.text) else { return false };
    // What is found in the body; none for a declaration.
    let mut result = heading.body.is_none().then_some(0);
    walker.function(heading, |walker| {
        if walker.diagnostics.is_empty()
            && let Some(open) = heading.body
        {
            let mut body = Body::new(walker, memory, open);
            result = body.walk(open);
            body.give_back();
        }
    });
    // What is found in the heading may be about the end of the function, which is not known here.
    result.is_some_and(|found| walker.diagnostics.count() == found)
}

/// A shape that the checks let pass.
#[derive(Clone, Debug)]
enum Verdict {
    Passes(Known),
    /// They look at its constants as well; the shape with their text behind it has a verdict of its own.
    DependsOnValues,
}

/// What came of a statement that was walked by itself.
enum Outcome {
    Passes,
    /// Something is wrong with it, or was not understood. Such shapes are not remembered: each one is told of.
    Found,
}

/// What is the same for all instructions of a shape.
#[derive(Clone, Debug)]
struct Known {
    opcode: Opcode,
    /// By name in the instruction.
    accesses: SmallVec<[Access; 8]>,
}

/// What has passed, by shape.
#[derive(Debug, Default)]
pub(super) struct Memory {
    instructions: FxHashMap<Box<[u8]>, Verdict>,
    /// Types that `.reg` has passed with: `b32`.
    registers: FxHashMap<Box<str>, ScalarType>,
    /// Declarations of variables, by their text without the name.
    variables: FxHashMap<Box<[u8]>, (Shape, Variable)>,
    /// Lines with pragmas, behind whether they stood in a kernel.
    pragmas: FxHashSet<Box<[u8]>>,
    parser: StatementParser,
    buffers: Buffers,
}

/// What the walk over a body uses, for the next one.
#[derive(Debug, Default)]
struct Buffers {
    shape: Vec<u8>,
    values: Vec<u8>,
    braces: Vec<Braces>,
    blocks: Vec<Block>,
}

/// What has passed in a module; one memory for each thread that walks.
///
/// It makes answers quick and changes none: whether a shape passes is a function of the shape and of what [`passed`]
/// reads.
#[derive(Clone, Debug, Default)]
pub(super) struct Passed(Arc<Mutex<Vec<Memory>>>);

impl PartialEq for Passed {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Passed {}

impl Passed {
    pub(super) fn take(&self) -> Memory {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
    }

    pub(super) fn give_back(&self, memory: Memory) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(memory);
    }
}

/// The memory for a file, as long as its version, target and options are the same.
#[salsa::tracked]
pub(super) fn passed(db: &dyn Db, file: SourceFile) -> Passed {
    let _: (&_, _) = (header(db, file), effective_target(db, file));
    Passed::default()
}

/// Statements that may be parsed by themselves, beyond one in four: more are better parsed together.
const SPARE: usize = 256;

/// Blocks may be nested this deep; far below the parser's limit.
const MAX_DEPTH: usize = 100;

/// What stands in braces: a block, or a vector.
#[derive(Debug)]
struct Braces {
    range: TextRange,
    labels: Vec<TextRange>,
}

/// An open block.
#[derive(Debug)]
struct Block {
    /// Index of its braces.
    braces: usize,
    first_label: LabelId,
    /// How many of its labels have come.
    labels: usize,
}

/// The walk over a plain body. Methods give `None` when they give up.
pub(super) struct Body<'s, 'db> {
    pub(super) walker: &'s mut Walker<'db>,
    memory: &'s mut Memory,
    /// That of the item.
    pub(super) text: &'db str,
    pub(super) pos: usize,
    pub(super) shape: Vec<u8>,
    /// The constants of the instruction, as written.
    pub(super) values: Vec<u8>,
    /// The operands of the instruction.
    pub(super) operands: Operands,
    /// The dotted name of the instruction.
    pub(super) name: &'db str,
    /// In the order in which they open.
    braces: Vec<Braces>,
    blocks: Vec<Block>,
    statements: usize,
    parsed: usize,
}

impl<'s, 'db> Body<'s, 'db> {
    fn new(walker: &'s mut Walker<'db>, memory: &'s mut Memory, open: TextSize) -> Self {
        let text = walker.text;
        let Buffers { shape, values, braces, blocks } = std::mem::take(&mut memory.buffers);
        Self {
            walker,
            memory,
            text,
            pos: open.into(),
            shape,
            values,
            operands: Operands::new(),
            name: "",
            braces,
            blocks,
            statements: 0,
            parsed: 0,
        }
    }

    fn give_back(mut self) {
        self.braces.clear();
        self.blocks.clear();
        let Self { shape, values, braces, blocks, .. } = self;
        self.memory.buffers = Buffers { shape, values, braces, blocks };
    }

    /// Walks the body whose brace is at `open`. Gives how many findings there are then.
    fn walk(&mut self, open: TextSize) -> Option<usize> {
        outline(self.text, open.into(), &mut self.braces)?;
        self.open(0)?;
        while !self.blocks.is_empty() {
            self.skip_trivia()?;
            match self.byte() {
                b'{' => {
                    let at = TextSize::new(self.pos as u32);
                    let braces = self.braces.partition_point(|braces| braces.range.start() < at);
                    self.walker.names.open();
                    self.open(braces)?;
                }
                b'}' => self.close()?,
                b'.' => self.directive()?,
                _ => self.labelled_or_instruction()?,
            }
        }
        Some(self.walker.diagnostics.count())
    }

    /// Where the innermost block is.
    fn block(&self) -> Option<TextRange> {
        Some(self.braces[self.blocks.last()?.braces].range)
    }

    /// Opens the block of these braces: labels are visible in all of it.
    fn open(&mut self, braces: usize) -> Option<()> {
        self.pos += 1;
        let Braces { range, labels } = self.braces.get(braces)?;
        let first_label = LabelId(self.walker.names.labels.len() as u32);
        self.walker.names.reserve(labels.len());
        for &label in labels {
            let kind = DeclKind::Label(LabelId(self.walker.names.labels.len() as u32));
            self.walker.declare(label, *range, kind);
        }
        self.blocks.push(Block { braces, first_label, labels: 0 });
        (self.blocks.len() <= MAX_DEPTH).then_some(())
    }

    fn close(&mut self) -> Option<()> {
        self.pos += 1;
        let block = self.blocks.pop()?;
        // The body shares the scope of the parameters.
        if !self.blocks.is_empty() {
            self.walker.names.close();
        }
        (block.labels == self.braces[block.braces].labels.len()).then_some(())
    }

    fn labelled_or_instruction(&mut self) -> Option<()> {
        let block = self.blocks.last()?;
        match self.braces[block.braces].labels.get(block.labels) {
            Some(label) if usize::from(label.start()) == self.pos => self.label(*label),
            _ => self.instruction(self.pos),
        }
    }

    /// The next label of the block, which is at the cursor.
    fn label(&mut self, range: TextRange) -> Option<()> {
        self.word()?;
        if self.pos != range.end().into() {
            return None;
        }
        self.pos += 1;
        let block = self.blocks.last_mut()?;
        let label = LabelId(block.first_label.0 + block.labels as u32);
        block.labels += 1;
        self.walker.survey.label();
        self.walker.function.body.push(Stmt::Label(label));
        self.walker.occur(range, Entity::Label(label), Access::Declaration);
        self.skip_trivia()?;
        (!is_list(&self.text[self.pos..])).then_some(())
    }

    fn instruction(&mut self, start: usize) -> Option<()> {
        self.statements += 1;
        self.pos = start;
        self.shape.clear();
        self.values.clear();
        let before = self.walker.occurrences.len();
        let registers = self.walker.names.registers.len();
        let Some(guard) = self.read_instruction() else {
            self.forget(before, registers);
            return self.statement(start).map(drop);
        };
        let Some(Known { opcode, accesses }) =
            known(&self.memory.instructions, &mut self.shape, &mut self.values)
        else {
            self.forget(before, registers);
            return match self.statement(start)? {
                Outcome::Passes => self.remember(guard, before),
                Outcome::Found => Some(()),
            };
        };
        for (occurrence, &access) in self.walker.occurrences[before..].iter_mut().zip(accesses) {
            occurrence.access = access;
        }
        let src = SrcId(self.walker.places.len() as u32);
        let range = self.range_from(start);
        self.walker.places.push(range);
        // Made in its place, as operands are.
        self.walker.survey.instruction(opcode.form, &self.walker.occurrences[before..]);
        self.walker.function.body.extend(std::iter::once_with(|| {
            Stmt::Instr(Instr { src, opcode: *opcode, guard, operands: std::mem::take(&mut self.operands) })
        }));
        Some(())
    }

    /// Forgets what reading an instruction found, all but the first so many occurrences and registers.
    fn forget(&mut self, occurrences: usize, registers: usize) {
        self.walker.occurrences.truncate(occurrences);
        self.walker.names.renumber_from(registers);
    }

    /// Remembers the shape of the instruction that was walked last, if that made of it what was read here.
    fn remember(&mut self, guard: Option<Guard>, before: usize) -> Option<()> {
        let Some(Stmt::Instr(instr)) = self.walker.function.body.last() else { return None };
        if (instr.guard, instr.operands.as_slice()) != (guard, self.operands.as_slice()) {
            return Some(());
        }
        let accesses = self.walker.occurrences[before..].iter().map(|occurrence| occurrence.access).collect();
        let known = Verdict::Passes(Known { opcode: instr.opcode, accesses });
        if !self.values.is_empty() && self.walker.limits_constants(self.name)? {
            self.memory.instructions.insert(self.shape.as_slice().into(), Verdict::DependsOnValues);
            self.shape.append(&mut self.values);
        }
        self.memory.instructions.insert(self.shape.as_slice().into(), known);
        Some(())
    }

    /// Parses and walks the statement at `start`, whatever it is, up to its semicolon.
    fn statement(&mut self, start: usize) -> Option<Outcome> {
        self.pos = start;
        // Alone it would begin a line.
        if self.byte() == b'#' {
            return None;
        }
        while self.byte() != b';' {
            match self.byte() {
                b'"' => self.pos = string_end(self.text, self.pos)?,
                b'/' => self.skip_trivia()?,
                0 => return None,
                _ => self.pos += 1,
            }
        }
        self.pos += 1;
        self.walk_text(start)
    }

    /// Parses and walks the text from `start` to the cursor.
    fn walk_text(&mut self, start: usize) -> Option<Outcome> {
        self.parsed += 1;
        if self.parsed > SPARE + self.statements / 4 {
            return None;
        }
        let visible = self.block()?;
        let parsed = self.memory.parser.parse(&self.text[start..self.pos], TextSize::new(start as u32));
        if !parsed.errors.is_empty() {
            return None;
        }
        let walker = &mut *self.walker;
        let found = walker.diagnostics.count();
        let was_incomplete = std::mem::replace(&mut walker.incomplete, false);
        walker.statements(&parsed.syntax(), visible);
        let passes = walker.diagnostics.count() == found && !walker.incomplete;
        walker.incomplete |= was_incomplete;
        Some(if passes { Outcome::Passes } else { Outcome::Found })
    }

    fn directive(&mut self) -> Option<()> {
        let start = self.pos;
        self.pos += 1;
        match self.word()? {
            "reg" => self.registers(start),
            "loc" if self.position()? => Some(()),
            "loc" => self.walk_text(start).map(drop),
            "param" | "local" | "shared" => self.variable(start),
            "pragma" => self.pragma(start),
            _ => None,
        }
    }

    /// `.pragma "nounroll";`, which does nothing but pass or not.
    fn pragma(&mut self, start: usize) -> Option<()> {
        let end = start + memchr(b'\n', &self.text.as_bytes()[start..])?;
        self.shape.clear();
        self.shape.push(u8::from(self.walker.function.entry));
        self.shape.extend_from_slice(&self.text.as_bytes()[start..end]);
        if self.memory.pragmas.contains(self.shape.as_slice()) {
            self.pos = end;
            return Some(());
        }
        let outcome = self.statement(start)?;
        if matches!(outcome, Outcome::Passes)
            && self.text.get(self.pos..end).is_some_and(|rest| rest.trim_ascii().is_empty())
        {
            self.memory.pragmas.insert(self.shape.as_slice().into());
        }
        Some(())
    }

    /// `.param .align 8 .b8 name[16];`: memory for an argument, or of the function.
    fn variable(&mut self, start: usize) -> Option<()> {
        let mut name = None;
        while self.byte() != b';' {
            let is_plain = match self.byte() {
                b'.' => {
                    self.pos += 1;
                    self.word().is_some()
                }
                b'0'..=b'9' => self.small_number().is_some(),
                b' ' | b'\t' | b'[' | b']' => {
                    self.pos += 1;
                    true
                }
                _ if name.is_none() => {
                    let start = self.pos;
                    name = self.word().map(|_| self.range_from(start));
                    name.is_some()
                }
                _ => false,
            };
            if !is_plain {
                return self.statement(start).map(drop);
            }
        }
        self.pos += 1;
        let range = name?;
        self.shape.clear();
        self.shape.extend_from_slice(&self.text.as_bytes()[start..range.start().into()]);
        self.shape.push(b' ');
        self.shape.extend_from_slice(&self.text.as_bytes()[range.end().into()..self.pos]);
        let before = self.walker.function.locals.len();
        if let Some((shape, variable)) = self.memory.variables.get(self.shape.as_slice()) {
            let variable = Variable { name: self.text[range].to_owned(), ..variable.clone() };
            let symbol = Symbol::Local(before as u32);
            let visible = TextRange::new(range.start(), self.block()?.end());
            let id = self.walker.declare(range, visible, DeclKind::Symbol(symbol));
            self.walker.occur(range, Entity::Symbol(symbol), Access::Declaration);
            self.walker.add_local(id, shape.clone(), variable);
            return Some(());
        }
        if let Outcome::Found = self.statement(start)? {
            return Some(());
        }
        let added = (&self.walker.local_shapes[before..], &self.walker.function.locals[before..]);
        if let ([shape], [variable]) = added {
            let known = (shape.clone(), variable.clone());
            self.memory.variables.insert(self.shape.as_slice().into(), known);
        }
        Some(())
    }

    /// `.reg .b32 %r<10>, %x;`
    fn registers(&mut self, start: usize) -> Option<()> {
        self.skip_blanks();
        if !self.eat(b'.') {
            return None;
        }
        let word = self.word().unwrap_or_default();
        let Some(&ty) = self.memory.registers.get(word) else {
            if let Outcome::Passes = self.statement(start)?
                && let Some(ty) = ScalarType::parse(word)
            {
                self.memory.registers.insert(word.into(), ty);
            }
            return Some(());
        };
        loop {
            self.skip_blanks();
            let name = self.pos;
            self.word()?;
            let range = self.range_from(name);
            let count = if self.eat(b'<') { Some(self.small_number()?) } else { None };
            if count.is_some() && !self.eat(b'>') {
                return None;
            }
            let visible = TextRange::new(range.start(), self.block()?.end());
            self.walker.declare(range, visible, DeclKind::Register { ty, count, lanes: 1 });
            self.skip_blanks();
            if !self.eat(b',') {
                return self.eat(b';').then_some(());
            }
        }
    }

    pub(super) fn range_from(&self, start: usize) -> TextRange {
        TextRange::new(TextSize::new(start as u32), TextSize::new(self.pos as u32))
    }
}

/// What is known of a shape. If nothing is, the shape is complete, with the values if they matter.
fn known<'m>(
    instructions: &'m FxHashMap<Box<[u8]>, Verdict>,
    shape: &mut Vec<u8>,
    values: &mut Vec<u8>,
) -> Option<&'m Known> {
    match instructions.get(shape.as_slice())? {
        Verdict::Passes(known) => return Some(known),
        Verdict::DependsOnValues => shape.append(values),
    }
    match instructions.get(shape.as_slice())? {
        Verdict::Passes(known) => Some(known),
        Verdict::DependsOnValues => None,
    }
}

/// Adds the braces of a body with the labels in them. `None` unless the text ends with the brace that closes the one at
/// `open`.
fn outline(text: &str, open: usize, braces: &mut Vec<Braces>) -> Option<()> {
    let bytes = text.as_bytes();
    let size = |at: usize| TextSize::new(at as u32);
    let mut pending: SmallVec<[usize; 8]> = SmallVec::new();
    let mut pos = open;
    let (mut next_mark, mut next_hidden) = (Next::default(), Next::default());
    loop {
        let mark = next_mark.at_or_after(bytes, pos, |rest| memchr3(b'{', b'}', b':', rest));
        let hidden = next_hidden.at_or_after(bytes, pos, |rest| memchr2(b'"', b'/', rest));
        if hidden < mark {
            pos = match bytes[hidden] {
                b'"' => string_end(text, hidden)?,
                _ => hidden + comment_len(&text[hidden..])?,
            };
            continue;
        }
        pos = mark + 1;
        match *bytes.get(mark)? {
            b'{' => {
                pending.push(braces.len());
                braces.push(Braces { range: TextRange::empty(size(mark)), labels: Vec::new() });
            }
            b'}' => {
                let closed = &mut braces[pending.pop()?];
                closed.range = TextRange::new(closed.range.start(), size(pos));
                if pending.is_empty() {
                    return (pos == bytes.len()).then_some(());
                }
            }
            _ if bytes.get(pos) == Some(&b':') => pos += 1,
            // Declared where it stands.
            _ if is_list(text[pos..].trim_ascii_start()) => {}
            _ => {
                let name =
                    bytes[..mark].iter().rev().take_while(|&&byte| is_word(byte) || byte == b'%').count();
                let label = TextRange::new(size(mark - name), size(mark));
                braces[*pending.last()?].labels.push(label);
            }
        }
    }
}

/// Whether what is labelled is a list of targets or a prototype.
fn is_list(labelled: &str) -> bool {
    [".callprototype", ".branchtargets", ".calltargets"].iter().any(|word| labelled.starts_with(word))
}

/// The end of the string at `pos`, which is closed in its line.
fn string_end(text: &str, pos: usize) -> Option<usize> {
    let length = text[pos + 1..].find(['"', '\n'])?;
    let end = pos + 1 + length;
    (text.as_bytes()[end] == b'"').then_some(end + 1)
}

#[cfg(test)]
mod tests {
    use crate::db::Database;
    use crate::diagnostic::Severity;
    use crate::items::{Part, items};
    use crate::lower::walk_tree;

    use super::{Headings, Memory, Walker, walk};

    /// Whether the last function is plain, and whether nothing is wrong with it. What is plain gives what its tree
    /// gives, findings too.
    fn both(functions: &str) -> (bool, bool) {
        let header = ".version 9.0\n.target sm_90\n.address_size 64\n.global .align 4 .b8 table[16];\n\
                      .func (.param .b32 r) callee(.param .b32 a, .param .align 8 .b8 b[16]) { ret; }\n";
        let db = Database::default();
        let file = db.add_file(format!("{header}{functions}"));
        let all = items(&db, file);
        let (mut walker, mut memory) = (Walker::new(&db, file), Memory::default());
        let (mut headings, mut is_plain) = (Headings::default(), false);
        for &item in all {
            walker.findings();
            walker.begin(Part::Edited(item));
            is_plain = walk(&mut walker, &mut memory, &mut headings, item.kind(&db));
        }
        let by_tree = walk_tree(&db, all[all.len() - 1]);
        if is_plain {
            assert_eq!(walker.lowered(), by_tree);
        }
        (is_plain, by_tree.diagnostics.iter().all(|d| d.lint.default != Severity::Error))
    }

    fn kernel(name: &str, body: &str) -> String {
        format!(".entry {name}(.param .u64 p, .param .u32 n)\n{{\n{REGISTERS}{body}\n}}")
    }

    const REGISTERS: &str = ".reg .b32 %r<9>;\n.reg .f32 %f<3>;\n.reg .b64 %rd<4>, %x;\n.reg .pred %p<4>;\n";

    const PLAIN: &str = "ld.param.u64 %rd1, [p];\n@%p1 bra L1;\nmov.u32 %r1, %tid.x; // id\nL1:\n\
        setp.lt.and.s32 %p1|%p2, %r1, -1, !%p3;\nmov.b64 {%r1, _}, %x;\n\
        add.f32 %f1, %f2, 0f3F800000;\nadd.f64 %x, %x, 0d0000000000000000;\nst.global.v2.b32 [%rd1+-8], {%r1, %r2};\n{\nbra L1;\n}\n\
        .pragma \"nounroll\"; // once\n.pragma \"nounroll\";\n.local .align 8 .b8 depot[64];\n\
        .shared .align 8 .b8 tile[64];\nmov.u32 %r3, tile;\nld.global.u8 %r4, [table+3];\n.loc 1 2 3\n.loc 1 2 3 \t// a.py:2:3\r\n\
        { .param .b32 a0; .param .align 8 .b8 a1[16]; .param .b32 r0;\nst.param.b32 [a0+0], %r1;\n\
        call.uni (r0),\ncallee,\n(\na0,\na1\n);\nld.param.b32 %r5, [r0+0]; }\n\
        shf.l.wrap.b32 %r1, %r2, %r3, 5;\nbar.sync 0;\nret;";

    #[test]
    fn what_compilers_write_is_plain() {
        assert_eq!(both(&kernel("one", PLAIN)), (true, true));
        let two = kernel("one", PLAIN) + "\n" + &kernel("two", PLAIN);
        assert_eq!(both(&two), (true, true));
        let inlined = ".loc 1 2 3\n.loc 1 4 5, function_name L1, inlined_at 1 2 3 // a.h\nL1: ret;";
        let section = ".section .debug_str { L1: .b8 0 }\n".to_owned();
        assert_eq!(both(&(section + &kernel("one", inlined))), (true, true));
    }

    /// Each of these is like a line of a function that has passed, but for one thing.
    #[test]
    fn what_is_wrong_is_found() {
        for body in [
            "add.f32 %f1, %f2, %rd1;",
            "add.f32 %f1, %f3, 0f3F800000;",
            "@%r1 bra L1; L1:",
            "bra L2;",
            "{ L9: } bra L9;",
            "L1: L1:",
            "L1: .reg .b32 L1;",
            "p: ret;",
            ".reg .b32 %r1;",
            ".local .b32 p;",
            ".local .align 4 .b8 s[16]; .local .align 4 .b8 s[16];",
            ".pragma \"frequency x\";",
            ".shared .align 3 .b8 s[16];",
            "L1: .reg .b32 L<4>;",
            "ld.param.u64 %rd1, [q];",
            "add.f32 %f1, %f2; mov.u32 %r1, %tid.q;",
            "mov.u32 %r1, %r2.x;",
            "ld.global.u8 %r4, [tile+3];",
            "bar.sync 99;",
            ".loc 1 4 5, function_name L1, inlined_at 1 2 3\nL1: ret;",
            "bra.unique L1; bra L1; L1:",
            "o %r7+d; mov.u32 %r6, %r7;",
            "o %x+d; mov.b64 %rd3, %x;",
            "st.global.v2.b32 [%rd1+-8], {%r1, %r2, %r3};",
            "st.global.v2.b32 [%f1+-8], {%r1, %r2};",
            "{ .param .b64 a0; .param .align 8 .b8 a1[16]; .param .b32 r0;\n\
             call.uni (r0),\ncallee,\n(\na0,\na1\n); }",
            "{ .param .b32 a0; .param .align 8 .b8 a1[8]; .param .b32 r0;\n\
             call.uni (r0),\ncallee,\n(\na0,\na1\n); }",
        ] {
            for before in [PLAIN, body] {
                let text = kernel("one", before) + "\n" + &kernel("two", &(body.to_owned() + PLAIN));
                assert_eq!(both(&text), (true, false), "{body}");
            }
        }
    }

    /// Of each of these the grammar has something to say, for which the rest of the text may matter.
    #[test]
    fn what_is_malformed_is_not_plain() {
        for body in [
            "add.f32 %f1, %f2, 0f3F80000;",
            "add.f64 %x, %x, 99999999999999999999;",
            "add.f32 %f1, %f2, 0f3F800000",
            "} ret; {",
            "ret; }",
            "/* open",
            "mov.u32 %r1, %tid.x; // \u{e9}",
            "mov.u32 %r1, %tid.x; # 5\nret;",
            ".local .align 4 .b8 WARP_SZ[16];",
            ".reg .b32 WARP_SZ;",
            "WARP_SZ: ret;",
        ] {
            for before in [PLAIN, body] {
                let text = kernel("one", before) + "\n" + &kernel("two", body);
                assert_eq!(both(&text), (false, false), "{body}");
            }
        }
    }

    #[test]
    fn what_is_unusual_is_no_error() {
        let lists = "t: .branchtargets L1, L2; L1: brx.idx %r1, t; L2: \n\
            f : .callprototype (.param .b32 _) _ (.param .b32 _, .param .align 8 .b8 _[16]);\n\
            { .param .b32 r0; .param .b32 a0; .param .align 8 .b8 a1[16]; call (r0), %rd1, (a0, a1), f; }";
        assert_eq!(both(&kernel("one", lists)), (true, true));
        // Left to the tree.
        assert_eq!(both(&kernel("one", "bra L1; L1 : ret;")), (false, true));
        assert_eq!(both(&kernel("one", "mov.u32\n%r1, /* why */ WARP_SZ;")), (true, true));
    }
}
