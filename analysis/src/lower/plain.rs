//! Bodies as compilers write them, walked without a tree.
//!
//! Nearly every instruction of a program looks like one before it: the same name, operands of the same kinds and
//! types. What the checks say of it depends on that [shape](super::shape) alone. So a body's text is read once, and
//! each instruction is looked up among the shapes that have passed; one of a new shape, and whatever else is rare, is
//! parsed by itself, in its place, and walked by the code that walks trees. The result is the tree's to the last bit. At
//! the first doubt, such as a syntax error that is not of one statement alone, the reading gives up, and the function is
//! walked as a whole.

use memchr::{memchr, memchr2, memchr3};
use ptx_backend::input::{Guard, LabelId, Operand, SrcId, Symbol, Variable};
use ptx_isa::{Opcode, ScalarType};
use ptx_syntax::{Next, Parse, SyntaxKind, SyntaxNode, is_word};
use smallvec::SmallVec;
use text_size::{TextRange, TextSize};

use super::Occurrence;
use super::heading::Headings;
use super::memory::{Known, Memory, Mnemonic, Point};
use super::shape::comment_len;
use super::walker::Walker;
use crate::ide::Access;
use crate::scope::{DeclKind, Entity};

/// Walks a function with a plain body, which the walker has begun. False for every other: then the walker has to begin
/// again.
pub(super) fn walk<'db>(walker: &mut Walker<'db>, memory: &mut Memory, headings: &mut Headings<'db>) -> bool {
    // Characters beyond ASCII are errors even in comments.
    if !walker.text.is_ascii() {
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

/// What came of a statement that was walked by itself.
enum Outcome {
    Passes,
    /// Something is wrong with it, or was not understood. Such shapes are not remembered: each one is told of.
    Found,
}

/// What the walk over a body uses, for the next one.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    key: Vec<u8>,
    braces: Vec<Braces>,
    blocks: Vec<Block>,
}

/// Statements that may be parsed by themselves, beyond one in four: more are better parsed together.
const SPARE: usize = 256;

/// Syntax errors of statements that stand alone. Where there are more, limits of the parser might be near.
const MOST_ERRORS: usize = 50;

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
    pub(super) memory: &'s mut Memory,
    /// That of the item.
    pub(super) text: &'db str,
    pub(super) pos: usize,
    /// What declarations are remembered by.
    key: Vec<u8>,
    /// Where the shape of the instruction is.
    pub(super) shape: Point,
    /// Whether its constants are part of it.
    pub(super) limits_constants: bool,
    /// How many operands there were before the instruction.
    pub(super) operands: usize,
    /// Where the dotted name of the instruction is.
    pub(super) name: TextRange,
    /// In the order in which they open.
    braces: Vec<Braces>,
    blocks: Vec<Block>,
    statements: usize,
    parsed: usize,
}

impl<'s, 'db> Body<'s, 'db> {
    fn new(walker: &'s mut Walker<'db>, memory: &'s mut Memory, open: TextSize) -> Self {
        let text = walker.text;
        let Buffers { key, braces, blocks } = std::mem::take(&mut memory.buffers);
        Self {
            walker,
            memory,
            text,
            pos: open.into(),
            key,
            shape: Point::default(),
            limits_constants: false,
            operands: 0,
            name: TextRange::default(),
            braces,
            blocks,
            statements: 0,
            parsed: 0,
        }
    }

    fn give_back(mut self) {
        self.braces.clear();
        self.blocks.clear();
        let Self { key, braces, blocks, .. } = self;
        self.memory.buffers = Buffers { key, braces, blocks };
    }

    /// Walks the body whose brace is at `open`. Gives how many findings there are then.
    fn walk(&mut self, open: TextSize) -> Option<usize> {
        outline(self.text, open.into(), &mut self.braces)?;
        self.open(0)?;
        while !self.blocks.is_empty() {
            self.walker.step();
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
        // Behind a syntax error nobody says what else was not understood, and it may stand anywhere.
        if !self.walker.broken.is_empty() {
            self.walker.not_understood = None;
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
        self.walker.code.label(label);
        self.walker.occur(range, Entity::Label(label), Access::Declaration);
        self.skip_trivia()?;
        (!is_list(&self.text[self.pos..])).then_some(())
    }

    fn instruction(&mut self, start: usize) -> Option<()> {
        self.statements += 1;
        self.pos = start;
        let names = self.walker.map.occurrences.len();
        let registers = self.walker.names.registers.len();
        let read = self.read_instruction();
        let range = self.range_from(start);
        let Some((guard, mnemonic)) = read else {
            self.forget(names, registers);
            return self.statement(start).map(drop);
        };
        if self.memory.shapes.known(self.shape).is_none() && !self.learn(mnemonic, range, names) {
            let operands: Vec<Operand> = self.walker.code.operands.drain(self.operands..).collect();
            self.forget(names, registers);
            let outcome = self.statement(start)?;
            if mnemonic.is_call && matches!(outcome, Outcome::Passes) {
                self.learn_call(guard, &operands, names);
            }
            return Some(());
        }
        let Known { opcode, accesses, has_symbols } = self.memory.shapes.known(self.shape)?;
        let src = SrcId(self.walker.map.statements.len() as u32);
        self.walker.map.statements.push(range);
        let names = self.walker.map.occurrences[names..].iter_mut().zip(accesses).map(|(name, &access)| {
            name.access = access;
            (name.entity, access)
        });
        self.walker.survey.instruction(opcode.form, names);
        if *has_symbols {
            self.walker.survey.names_symbols();
        }
        self.walker.code.instruction(src, opcode, guard, self.operands);
        Some(())
    }

    /// Remembers the shape of the instruction that was read last, if it passes. Its names are all but the first so
    /// many.
    fn learn(&mut self, mnemonic: Mnemonic, range: TextRange, names: usize) -> bool {
        // What calls say of their arguments is found in their trees.
        if mnemonic.is_call {
            return false;
        }
        let Some(opcode) = self.walker.passes(self.name, range, self.operands, names) else { return false };
        self.remember(opcode, names);
        true
    }

    /// Remembers the shape of the call that was walked last, if that made of it what was read here.
    fn learn_call(&mut self, guard: Option<Guard>, operands: &[Operand], names: usize) {
        if let Some(call) = self.walker.code.last()
            && (call.guard, call.operands) == (guard, operands)
        {
            self.remember(*call.opcode, names);
        }
    }

    fn remember(&mut self, opcode: Opcode, names: usize) {
        let names = &self.walker.map.occurrences[names..];
        let accesses = names.iter().map(|name| name.access).collect();
        let has_symbols = names.iter().any(Occurrence::is_symbol);
        self.memory.shapes.remember(self.shape, Known { opcode, accesses, has_symbols });
    }

    /// Forgets what reading an instruction found, all but the first so many names and registers.
    fn forget(&mut self, names: usize, registers: usize) {
        self.walker.code.operands.truncate(self.operands);
        self.walker.map.occurrences.truncate(names);
        self.walker.names.renumber_from(registers);
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
        if !parsed.errors.is_empty() && !self.stands_alone(start, &parsed) {
            return None;
        }
        let walker = &mut *self.walker;
        let found = walker.diagnostics.count();
        let was_incomplete = std::mem::replace(&mut walker.incomplete, false);
        walker.syntax_errors(&parsed.errors);
        walker.statements(&parsed.syntax(), visible);
        let passes = walker.diagnostics.count() == found && !walker.incomplete;
        walker.incomplete |= was_incomplete;
        Some(if passes { Outcome::Passes } else { Outcome::Found })
    }

    /// Whether the malformed statement at `start`, which ends at the cursor, is wrong in the same way wherever it stands,
    /// and nothing else is wrong because of it.
    fn stands_alone(&mut self, start: usize, parsed: &Parse) -> bool {
        let (before, behind) = (&self.text[..start], &self.text[self.pos..]);
        let is_apart = before.trim_end_matches([' ', '\t']).ends_with('\n')
            && behind.starts_with([' ', '\t', '\r', '\n'])
            && self.walker.broken.len() + parsed.errors.len() <= MOST_ERRORS;
        let is_inside = |at: TextSize| (start..self.pos).contains(&usize::from(at));
        let is_whole = |braces: &Braces| {
            is_inside(braces.range.start()) == is_inside(braces.range.end() - TextSize::of('}'))
        };
        // Labels are declared before all else, and the trivia stand for what is before the statement.
        let is_expected = |node: SyntaxNode| {
            matches!(node.kind(), SyntaxKind::INSTRUCTION | SyntaxKind::ERROR | SyntaxKind::TRIVIA)
        };
        let next = memchr(b';', behind.as_bytes()).map_or(behind.len(), |semicolon| semicolon + 1);
        is_apart
            && self.braces.iter().all(is_whole)
            && parsed.syntax().children().all(is_expected)
            && self.memory.parser.stand_alone(&self.text[start..self.pos + next], self.pos - start)
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
        self.key.clear();
        self.key.push(u8::from(self.walker.function.entry));
        self.key.extend_from_slice(&self.text.as_bytes()[start..end]);
        if self.memory.pragmas.contains(self.key.as_slice()) {
            self.pos = end;
            return Some(());
        }
        let outcome = self.statement(start)?;
        if matches!(outcome, Outcome::Passes)
            && self.text.get(self.pos..end).is_some_and(|rest| rest.trim_ascii().is_empty())
        {
            self.memory.pragmas.insert(self.key.as_slice().into());
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
        self.key.clear();
        self.key.extend_from_slice(&self.text.as_bytes()[start..range.start().into()]);
        self.key.push(b' ');
        self.key.extend_from_slice(&self.text.as_bytes()[range.end().into()..self.pos]);
        let before = self.walker.function.locals.len();
        if let Some((shape, variable)) = self.memory.variables.get(self.key.as_slice()) {
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
            self.memory.variables.insert(self.key.as_slice().into(), known);
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
            is_plain = item.kind(&db).is_function() && walk(&mut walker, &mut memory, &mut headings);
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
            ".loc 1 1 1, function_name L1\nL1:",
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
            "bra L1; L1: @%q ret;",
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
    fn what_is_malformed_alone_is_plain() {
        for body in [
            "add.f32 %f1, %f2, 0f3F80000;",
            "add.f64 %x, %x, 99999999999999999999;",
            "add.f32 %f1, %f2 %f2;",
            "mov.u32 %r1,; mov.u32 %r2, %r1;",
            "mov.u32 %r1, %r2\nmov.u32 %r2, %r1;",
            "mov.u32 %r1, %r1 %r2;\nmov.u32 %r2, %f1;",
            "ld.global.u8 %r4, [%rd1;",
            "ld.global.u8 %r4, [%rd1 + ];",
            "@ ret;",
            "mov.u32 %r1, (3;",
            "+ 5;",
        ] {
            for before in [PLAIN, body] {
                let text = kernel("one", before) + "\n" + &kernel("two", &format!("{body}\n{PLAIN}\n{body}"));
                assert_eq!(both(&text), (true, false), "{body}");
            }
        }
    }

    #[test]
    fn what_is_malformed_is_not_plain() {
        for body in [
            "add.f32 %f1, %f2, 0f3F800000",
            "ret; mov.u32 %r1,;",
            "mov.u32 {; }",
            "mov.u32 %r1, %r2\nL1: mov.u32 %r2, %r1;",
            "bra L1;\nL1\nret;",
            "mov.b64 {%r1, %r2, %x;",
            "} ret; {",
            "ret; }",
            "/* open",
            ".loc 1 6 4 // a\n, ;",
            "mov.u32 %r1, %tid.x; // \u{e9}",
            "mov.u32 %r1, %tid.x; # 5\nret;",
            ".local .align 4 .b8 WARP_SZ[16];",
            ".reg .b32 WARP_SZ;",
            "WARP_SZ: ret;",
            ".loc 1 2 3,\nret;",
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
