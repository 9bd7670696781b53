//! Instructions: name, guard, operands, and the checks of each.

use ptx_backend::input::{Guard, Operand, SrcId};
use ptx_isa::{Opcode, ResolveError, Role, ScalarType, Values};
use ptx_syntax::{NodeOrToken, SyntaxKind, SyntaxNode};
use smallvec::SmallVec;
use std::rc::Rc;
use text_size::{TextRange, TextSize};

use super::Occurrence;
use super::operand::first_component;
use super::walker::{Resolution, Walker};
use crate::check::types::{OPERAND_TYPE, gather};
use crate::check::vectors::VECTOR_SIZE;
use crate::check::{self, lints, spelling, video};
use crate::diagnostic::{Diagnostic, Findings, Severity};
use crate::elements::{elements, tokens};
use crate::ide::Access;

/// An instruction's name, looked up.
#[derive(Clone, Copy)]
struct Resolved {
    opcode: Opcode,
    /// The version and the target have it.
    available: bool,
    /// Index of what its operands must be.
    signature: u32,
}

/// An operand with its place and the first occurrence recorded for it.
struct Lowered {
    operands: SmallVec<[Option<Operand>; 6]>,
    ranges: SmallVec<[TextRange; 6]>,
    occurrences: SmallVec<[usize; 6]>,
}

impl<'db> Walker<'db> {
    pub(super) fn instruction(&mut self, node: &SyntaxNode) {
        let mut is_call = false;
        // The guard comes before the name, and that of the instruction before says nothing about it.
        (self.is_branch, self.is_video) = (false, false);
        let src = SrcId(self.map.statements.len() as u32);
        let range = node.text_range();
        let names = self.map.occurrences.len();
        self.map.statements.push(range);
        let mut guard = None;
        let mut mnemonic = None;
        let mut suffixes: SmallVec<[TextRange; 8]> = SmallVec::new();
        let mut lowered =
            Lowered { operands: SmallVec::new(), ranges: SmallVec::new(), occurrences: SmallVec::new() };
        for element in elements(node) {
            match element {
                NodeOrToken::Token(token) if token.is(SyntaxKind::IDENT) => {
                    mnemonic = Some(token.range);
                    let name = self.slice(token.range);
                    is_call = name == "call";
                    self.is_branch = name == "bra";
                    self.is_video = name.starts_with('v') && name != "vote";
                }
                NodeOrToken::Token(token) if token.is(SyntaxKind::DOT_WORD) => suffixes.push(token.range),
                NodeOrToken::Token(_) => {}
                NodeOrToken::Node(child) => match child.kind() {
                    SyntaxKind::GUARD => guard = self.guard(&child),
                    SyntaxKind::BANK => self.incomplete = true,
                    _ => {
                        lowered.occurrences.push(self.map.occurrences.len());
                        let operand = self.operand(&child);
                        lowered.operands.push(operand);
                        lowered.ranges.push(child.text_range());
                    }
                },
            }
        }
        let Some(mnemonic) = mnemonic else {
            self.incomplete = true;
            return;
        };
        let name = suffixes.last().map_or(mnemonic, |last| mnemonic.cover(*last));
        let Some(resolved) = self.opcode(range, name, mnemonic, &suffixes, &lowered) else {
            self.incomplete = true;
            return;
        };
        if is_call && !self.is_broken(range) {
            let operands: SmallVec<[SyntaxNode; 4]> =
                node.children().filter(|child| child.kind() != SyntaxKind::GUARD).collect();
            self.call(range, &operands);
        }
        if !self.is_broken(range) {
            self.check(range, name, &suffixes, resolved, &lowered);
        }
        if self.is_video {
            for (operand, &range) in lowered.ranges.iter().enumerate() {
                let part = video::part(src, operand as u8, self.slice(range));
                self.function.parts.extend(part);
            }
        }
        if lowered.operands.iter().all(Option::is_some) {
            let first = self.code.operands.len();
            self.code.operands.extend(lowered.operands.into_iter().flatten());
            let names = &self.map.occurrences[names..];
            self.survey
                .instruction(resolved.opcode.form, names.iter().map(|name| (name.entity, name.access)));
            if names.iter().any(Occurrence::is_symbol) {
                self.survey.names_symbols();
            }
            self.code.instruction(src, &resolved.opcode, guard, first);
        } else {
            self.incomplete = true;
        }
    }

    fn guard(&mut self, node: &SyntaxNode) -> Option<Guard> {
        let name = node.first_child()?;
        let negated = !tokens(node, SyntaxKind::BANG).is_empty();
        match self.operand(&name)? {
            Operand::Reg(reg) if self.names.registers[reg.0 as usize].ty == ScalarType::Pred => {
                Some(Guard { reg, negated })
            }
            _ => {
                let text = self.slice(name.text_range());
                let message = format!("a guard must be a predicate, but `{text}` is not");
                self.report(Diagnostic::new(&lints::PREDICATE, name.text_range(), message));
                None
            }
        }
    }

    /// The opcode of a dotted name; `None` is reported.
    fn opcode(
        &mut self,
        range: TextRange,
        name: TextRange,
        mnemonic: TextRange,
        suffixes: &[TextRange],
        lowered: &Lowered,
    ) -> Option<Resolved> {
        let key = self.slice(name);
        let known = self.resolutions.get(key).copied();
        let has_many = spelling::LINTS.iter().any(|lint| self.diagnostics.has_many(lint));
        match known {
            Some(Resolution::Opcode(opcode, available, signature)) => {
                return Some(Resolved { opcode, available, signature });
            }
            Some(Resolution::Wrong) if spelling::LINTS.iter().any(|lint| self.diagnostics.is_full(lint)) => {
                return None;
            }
            _ => {}
        }
        let words: SmallVec<[&str; 8]> = suffixes.iter().map(|&suffix| &self.slice(suffix)[1..]).collect();
        let resolution = match self.resolve(self.slice(mnemonic), &words) {
            Ok(opcode) => return Some(self.resolved(key, opcode)),
            Err(ResolveError::NoRow { since }) => {
                let gate = ptx_isa::Gate { ptx: since, ..ptx_isa::Gate::BASE };
                let message =
                    format!("`{key}` is not checked: the instruction table does not describe it yet");
                let too_old = self.gates.check(&gate, key, name, "");
                self.report(too_old.unwrap_or_else(|| Diagnostic::new(&lints::NOT_CHECKED, name, message)));
                Resolution::NoRow
            }
            Err(_) if self.is_broken(name) => Resolution::Wrong,
            Err(error) => {
                let is_right =
                    |opcode: &Opcode| !has_many && self.is_right(opcode, range, name, suffixes, lowered);
                let diagnostic = spelling::unresolved(self.text, name, mnemonic, suffixes, &error, &is_right);
                self.report(diagnostic);
                Resolution::Wrong
            }
        };
        self.resolutions.insert(key, resolution);
        None
    }

    /// Resolves an instruction name for the module's version and target.
    fn resolve(&self, mnemonic: &str, suffixes: &[&str]) -> Result<Opcode, ResolveError> {
        let version = self.header.version_or_newest();
        let target = self.header.target.sm;
        ptx_isa::resolve_in(mnemonic, suffixes, version, target.unwrap_or(ptx_isa::Sm::new(75)))
    }

    /// Remembers what a dotted name was found to be.
    fn resolved(&mut self, name: &'db str, opcode: Opcode) -> Resolved {
        let signature = self.signatures.len() as u32;
        self.signatures.push(Rc::new(ptx_isa::signature(&opcode)));
        let available = self.gates.is_open(&ptx_isa::gates(&opcode));
        self.resolutions.insert(name, Resolution::Opcode(opcode, available, signature));
        Resolved { opcode, available, signature }
    }

    /// Whether the instructions of a dotted name take some constants only. `None` if it is wrong, which is not reported.
    pub(super) fn limits_constants(&mut self, name: &'db str) -> Option<bool> {
        let Resolved { signature, .. } = match self.resolutions.get(name) {
            Some(&Resolution::Opcode(opcode, available, signature)) => {
                Resolved { opcode, available, signature }
            }
            Some(_) => return None,
            None => {
                let mut words = name.split('.');
                let mnemonic = words.next()?;
                let words: SmallVec<[&str; 8]> = words.collect();
                let opcode = self.resolve(mnemonic, &words).ok()?;
                self.resolved(name, opcode)
            }
        };
        Some(self.signatures[signature as usize].operands.iter().any(|operand| {
            operand.values != Values::Any || operand.gated.is_some() || operand.gated_sink.is_some()
        }))
    }

    /// The opcode of an instruction that was read without a tree, if it is right. Its operands and names are all but the first so many,
    /// and the names get their accesses.
    pub(super) fn passes(
        &mut self,
        name: TextRange,
        range: TextRange,
        operands: usize,
        names: usize,
    ) -> Option<Opcode> {
        let operands = &self.code.operands[operands..];
        let mut suffixes: SmallVec<[TextRange; 8]> = SmallVec::new();
        let text = self.slice(name);
        let at = |start: usize, end: usize| {
            TextRange::new(TextSize::new(start as u32), TextSize::new(end as u32)) + name.start()
        };
        let mut dots = text.match_indices('.').map(|(dot, _)| dot).chain([text.len()]);
        let mut start = dots.next().unwrap_or(0);
        let mnemonic = at(0, start);
        for end in dots {
            suffixes.push(at(start, end));
            start = end;
        }
        let ranges = operand_ranges(self.text, TextRange::new(name.end(), range.end() - TextSize::of(';')));
        if ranges.len() != operands.len() {
            return None;
        }
        let occurrences = ranges.iter().map(|operand| {
            let is_before = |name: &Occurrence| name.range.start() < operand.start();
            names + self.map.occurrences[names..].partition_point(is_before)
        });
        let lowered = Lowered {
            occurrences: occurrences.collect(),
            operands: operands.iter().cloned().map(Some).collect(),
            ranges,
        };
        let resolved = self.opcode(range, name, mnemonic, &suffixes, &lowered)?;
        let found = std::mem::take(&mut self.diagnostics);
        self.check(range, name, &suffixes, resolved, &lowered);
        let passes = self.diagnostics.is_empty();
        self.diagnostics = found;
        passes.then_some(resolved.opcode)
    }

    fn check(
        &mut self,
        range: TextRange,
        name: TextRange,
        suffixes: &[TextRange],
        Resolved { opcode, available, signature }: Resolved,
        lowered: &Lowered,
    ) {
        if let Some(lowered) = self.with_components(lowered) {
            return self.check(range, name, suffixes, Resolved { opcode, available, signature }, &lowered);
        }
        let form = ptx_isa::form(opcode.form);
        let signature = Rc::clone(&self.signatures[signature as usize]);
        let bound = check::bind(&signature, &lowered.operands, &self.names.registers);
        // Destinations are written; all names inside addresses are read.
        for (i, row) in bound.iter().flatten().enumerate() {
            let access = match row.role {
                Role::Source => continue,
                Role::Destination => Access::Write,
                Role::Both => Access::ReadWrite,
            };
            if matches!(lowered.operands[i], Some(Operand::Address(_) | Operand::Symbol(..)) | None) {
                continue;
            }
            let end = lowered.occurrences.get(i + 1).copied().unwrap_or(self.map.occurrences.len());
            for occurrence in &mut self.map.occurrences[lowered.occurrences[i]..end] {
                occurrence.access = access;
            }
        }
        let statement = check::Statement {
            range,
            name,
            suffixes,
            opcode,
            form,
            available,
            operands: &lowered.operands,
            ranges: &lowered.ranges,
            signature: &signature,
            rows: bound.as_deref(),
        };
        let mut found = std::mem::take(&mut self.diagnostics);
        let first = found.len();
        self.run_checks(&statement, &mut found);
        let is_new = |d: &&Diagnostic| d.lint == &OPERAND_TYPE || d.lint == &VECTOR_SIZE;
        if found.iter().skip(first).any(|d| is_new(&d)) && !found.has_many(&OPERAND_TYPE) {
            found.rework(first, |last| {
                gather(last);
                let is_right = |opcode: &Opcode| self.is_right(opcode, range, name, suffixes, lowered);
                if let Some(diagnostic) = last.iter_mut().find(|d| is_new(&&**d)) {
                    let is_all = spelling::retyped(
                        self.text,
                        statement.form.mnemonic(),
                        suffixes,
                        &is_right,
                        diagnostic,
                    );
                    if is_all {
                        let mut seen = false;
                        last.retain(|d| !is_new(&d) || !std::mem::replace(&mut seen, true));
                    }
                }
            });
        }
        self.diagnostics = found;
    }

    /// The operands with `%tid.w` for the register that it is to the checks, rather than for its value, zero. `None`
    /// where there is none.
    fn with_components(&self, lowered: &Lowered) -> Option<Lowered> {
        let component = |operand: &Option<Operand>, range| match operand {
            Some(Operand::Int(0)) => first_component(self.slice(range).strip_suffix(".w")?.trim_end()),
            _ => None,
        };
        let written = |(operand, &range)| component(operand, range);
        lowered.operands.iter().zip(&lowered.ranges).find_map(written)?;
        let operands = lowered.operands.iter().zip(&lowered.ranges);
        let operands = operands.map(|(operand, &range)| match component(operand, range) {
            Some(register) => Some(Operand::Special(register)),
            None => operand.clone(),
        });
        Some(Lowered {
            operands: operands.collect(),
            ranges: lowered.ranges.clone(),
            occurrences: lowered.occurrences.clone(),
        })
    }

    fn run_checks(&self, statement: &check::Statement<'_>, out: &mut Findings) {
        let context = check::Context {
            header: self.header,
            gates: self.gates,
            variables: &self.variables,
            registers: &self.names.registers,
            text: self.text,
        };
        for check in check::STATEMENT_CHECKS {
            check(&context, statement, out);
        }
    }

    /// Whether an instruction would have no errors if it were that of an opcode.
    fn is_right(
        &self,
        opcode: &Opcode,
        range: TextRange,
        name: TextRange,
        suffixes: &[TextRange],
        lowered: &Lowered,
    ) -> bool {
        let signature = ptx_isa::signature(opcode);
        let bound = check::bind(&signature, &lowered.operands, &self.names.registers);
        let statement = check::Statement {
            range,
            name,
            suffixes,
            opcode: *opcode,
            form: ptx_isa::form(opcode.form),
            available: self.gates.is_open(&ptx_isa::gates(opcode)),
            operands: &lowered.operands,
            ranges: &lowered.ranges,
            signature: &signature,
            rows: bound.as_deref(),
        };
        let mut found = Findings::default();
        self.run_checks(&statement, &mut found);
        found.iter().all(|diagnostic| diagnostic.severity != Severity::Error)
    }
}

/// Where the operands are in a text that has nothing else but blanks.
fn operand_ranges(text: &str, range: TextRange) -> SmallVec<[TextRange; 6]> {
    let mut ranges: SmallVec<[TextRange; 6]> = SmallVec::new();
    let mut depth = 0;
    let mut start = range.start();
    let mut end = |at: TextSize| {
        let operand = &text[TextRange::new(start, at)];
        let blanks = TextSize::of(operand) - TextSize::of(operand.trim_ascii_start());
        ranges.push(TextRange::at(start + blanks, TextSize::of(operand.trim_ascii())));
        start = at + TextSize::of(',');
    };
    for (at, byte) in (u32::from(range.start())..).zip(text[range].bytes()) {
        match byte {
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth -= 1,
            b',' if depth == 0 => end(TextSize::new(at)),
            _ => {}
        }
    }
    end(range.end());
    if let [only] = ranges.as_slice()
        && only.is_empty()
    {
        ranges.clear();
    }
    ranges
}
