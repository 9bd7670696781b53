//! Instructions: name, guard, operands, and the checks of each.

use ptx_backend::input::{Guard, Operand, SrcId};
use ptx_isa::{Class, Opcode, ResolveError, Role, ScalarType, TypeKind};
use ptx_syntax::flat::Node;
use ptx_syntax::{NodeOrToken, SyntaxKind};
use smallvec::SmallVec;
use std::sync::Arc;
use text_size::TextRange;

use super::operand::first_component;
use super::walker::{Resolution, Walker};
use crate::check::lints::Expected;
use crate::check::types::{OPERAND_TYPE, gather};
use crate::check::vectors::VECTOR_SIZE;
use crate::check::{self, declarations, lints, spelling, video};
use crate::declaration::BAD_CONSTANT;
use crate::diagnostic::{Diagnostic, Findings, Severity};
use crate::scope::Entity;
use crate::source_map::Usage;

/// A resolved instruction name.
#[derive(Clone, Copy)]
struct Resolved {
    opcode: Opcode,
    /// Whether the version and the target of the module have it.
    available: bool,
    /// The index of its signature.
    signature: u32,
}

/// An operand with its range and the index of its first name.
struct Lowered {
    operands: SmallVec<[Option<Operand>; 6]>,
    ranges: SmallVec<[TextRange; 6]>,
    occurrences: SmallVec<[usize; 6]>,
}

impl<'db> Walker<'db> {
    pub(super) fn instruction(&mut self, node: Node<'_>) {
        let mut is_call = false;
        // The guard comes before the name, so flags of the previous instruction must not affect it.
        (self.expected, self.is_video) = (Expected::Symbol, false);
        let first = self.diagnostics.len();
        let src = SrcId(self.map.statements.len() as u32);
        let range = node.text_range();
        let names = self.map.occurrences.len();
        self.map.statements.push(range);
        self.sums.clear();
        let (mut guard, mut has_guard) = (None, false);
        let mut mnemonic = None;
        let mut suffixes: SmallVec<[TextRange; 8]> = SmallVec::new();
        let mut nodes: SmallVec<[Node<'_>; 6]> = SmallVec::new();
        let mut operands: SmallVec<[Option<Operand>; 6]> = SmallVec::new();
        let mut occurrences: SmallVec<[usize; 6]> = SmallVec::new();
        for element in node.elements() {
            match element {
                NodeOrToken::Token(token) if token.kind == SyntaxKind::IDENT => {
                    mnemonic = Some(token.range);
                    let name = self.slice(token.range);
                    is_call = name == "call";
                    self.expected = if name == "bra" { Expected::Label } else { Expected::Symbol };
                    self.is_video = name.starts_with('v') && name != "vote";
                }
                NodeOrToken::Token(token) if token.kind == SyntaxKind::DOT_WORD => suffixes.push(token.range),
                NodeOrToken::Token(_) => {}
                NodeOrToken::Node(child) => match child.kind() {
                    SyntaxKind::GUARD => (guard, has_guard) = (self.guard(child), true),
                    SyntaxKind::BANK => {
                        declarations::bank(child.text_range(), self.text, &self.gates, &mut self.diagnostics);
                    }
                    _ => {
                        occurrences.push(self.map.occurrences.len());
                        operands.push(self.operand(child));
                        nodes.push(child);
                    }
                },
            }
        }
        let Some(mnemonic) = mnemonic else {
            self.incomplete = true;
            return;
        };
        let name = suffixes.last().map_or(mnemonic, |last| mnemonic.cover(*last));
        let is_broken = self.is_broken(range);
        // A shape does not include the arguments of a call or the byte selectors of a video instruction.
        let may_pass = !is_broken && !is_call && !self.is_video && guard.is_some() == has_guard;
        let known = if may_pass { self.known.resolutions.get(self.slice(name)).copied() } else { None };
        if let Some(Resolution::Opcode(opcode, _, signature)) = known {
            let all = nodes.iter().copied().zip(operands.iter().map(Option::as_ref));
            if self.has_passed(names, signature, guard, all) {
                self.add(src, &opcode, guard, operands, names);
                return;
            }
        }
        let ranges: SmallVec<[TextRange; 6]> = nodes.iter().map(|node| node.text_range()).collect();
        let lowered = Lowered { operands, ranges, occurrences };
        let found = self.diagnostics.count();
        let Some(resolved) = self.opcode(range, name, mnemonic, &suffixes, &lowered) else {
            self.incomplete = true;
            return;
        };
        if is_call && !is_broken {
            let signature = &self.known.signatures[resolved.signature as usize];
            let has_count = check::bind(signature, &lowered.operands, &self.names.registers).is_some();
            self.call(range, &nodes, has_count);
        }
        if !is_broken {
            self.undeclared_registers(first, resolved, &lowered);
            self.check(range, name, &suffixes, resolved, &lowered);
        }
        if self.is_video {
            for (operand, &range) in lowered.ranges.iter().enumerate() {
                let part = video::part(src, operand as u8, self.slice(range));
                self.function.parts.extend(part);
            }
        }
        if may_pass && self.diagnostics.count() == found {
            let all = nodes.iter().copied().zip(lowered.operands.iter().map(Option::as_ref));
            self.remember(names, resolved.signature, guard, all);
        }
        let mut lowered = lowered;
        let is_right = self.diagnostics.count() == found;
        self.put_sums(&mut lowered, is_right);
        if is_call && let Some(prototype) = self.table_prototype(&nodes) {
            let last = lowered.operands.last_mut();
            last.into_iter()
                .for_each(|last| *last = Some(Operand::Prototype(Box::new((*prototype).clone()))));
        }
        if lowered.operands.iter().all(Option::is_some) {
            self.add(src, &resolved.opcode, guard, lowered.operands, names);
        } else {
            self.incomplete = true;
        }
    }

    /// Replaces registers that the checks have seen by sums of a register and a constant. If the register is not an
    /// integer of at most 64 bits, ptxas crashes, does not end or drops the instruction.
    fn put_sums(&mut self, lowered: &mut Lowered, is_right: bool) {
        for (range, addend) in std::mem::take(&mut self.sums) {
            let place = lowered.ranges.iter().position(|&place| place == range);
            let operand = place.and_then(|place| lowered.operands[place].as_mut());
            match operand {
                Some(operand @ Operand::Reg(_)) => {
                    let Operand::Reg(register) = *operand else { continue };
                    let ty = self.names.registers[register.0 as usize].ty;
                    let is_integer =
                        matches!(ty.kind(), TypeKind::Bits | TypeKind::Unsigned | TypeKind::Signed);
                    if is_integer && ty.bits() <= 64 {
                        *operand = Operand::Sum(register, addend);
                        continue;
                    }
                    self.incomplete = true;
                    if is_right {
                        let text = self.slice(range);
                        let message = format!("`{text}` adds a constant to a `.{}` register", ty.text());
                        let note = "a constant can be added only to an integer register of at most 64 bits";
                        self.report(Diagnostic::new(&BAD_CONSTANT, range, message).note(note));
                    }
                }
                _ => self.incomplete = true,
            }
        }
    }

    /// Adds an instruction with resolved operands. Its names are all except the first `names` ones.
    fn add(
        &mut self,
        src: SrcId,
        opcode: &Opcode,
        guard: Option<Guard>,
        operands: SmallVec<[Option<Operand>; 6]>,
        names: usize,
    ) {
        let first = self.code.operands.len();
        self.code.operands.extend(operands.into_iter().flatten());
        let names = &self.map.occurrences[names..];
        self.survey.instruction(opcode.form, names.iter().map(|name| (name.entity, name.access)));
        if names.iter().any(|name| matches!(name.entity, Entity::Symbol(_))) {
            self.survey.names_symbols();
        }
        self.code.instruction(src, opcode, guard, first);
    }

    fn guard(&mut self, node: Node<'_>) -> Option<Guard> {
        let name = node.first_child()?;
        let negated = node.tokens(SyntaxKind::BANG).next().is_some();
        self.expected = Expected::Register;
        match self.operand(name)? {
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

    /// The opcode of a dotted name. `None` has been reported.
    fn opcode(
        &mut self,
        range: TextRange,
        name: TextRange,
        mnemonic: TextRange,
        suffixes: &[TextRange],
        lowered: &Lowered,
    ) -> Option<Resolved> {
        let key = self.slice(name);
        let known = self.known.resolutions.get(key).copied();
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
                self.report(
                    too_old.unwrap_or_else(|| Diagnostic::new(&lints::NOT_CHECKED, name, message).rule()),
                );
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
        self.known.resolutions.insert(key.into(), resolution);
        None
    }

    /// Resolves an instruction name for the module's version and target.
    fn resolve(&self, mnemonic: &str, suffixes: &[&str]) -> Result<Opcode, ResolveError> {
        let version = self.header.version_or_newest();
        let target = self.header.target.sm;
        ptx_isa::resolve_in(mnemonic, suffixes, version, target.unwrap_or(ptx_isa::Sm::new(75)))
    }

    /// Stores the result for a dotted name.
    fn resolved(&mut self, name: &'db str, opcode: Opcode) -> Resolved {
        let signature = self.known.signatures.len() as u32;
        self.known.signatures.push(Arc::new(ptx_isa::signature(&opcode)));
        let available = self.gates.is_open(&ptx_isa::gates(&opcode));
        self.known.resolutions.insert(name.into(), Resolution::Opcode(opcode, available, signature));
        Resolved { opcode, available, signature }
    }

    /// Reports undeclared names as registers where the instruction takes no other name. Names are read before the
    /// instruction is known. The findings of the statement begin at number `first`.
    fn undeclared_registers(&mut self, first: usize, resolved: Resolved, lowered: &Lowered) {
        if lowered.operands.iter().all(Option::is_some) {
            return;
        }
        let names = Class::SYMBOL.or(Class::ADDRESS).or(Class::TEXTURE).or(Class::LIST);
        let names = names.or(Class::LABEL).or(Class::BRANCH_TARGETS).or(Class::PROTOTYPE);
        let signature = &self.known.signatures[resolved.signature as usize];
        let Some(rows) = check::bind(signature, &lowered.operands, &self.names.registers) else { return };
        let places: SmallVec<[TextRange; 6]> = rows
            .iter()
            .zip(&lowered.ranges)
            .filter(|(row, _)| !row.documented().intersects(names))
            .map(|(_, &range)| range)
            .collect();
        let text = self.text;
        self.diagnostics.rework(first, |last| {
            let is_register = |d: &&mut Diagnostic| {
                d.lint == &lints::UNDEFINED_SYMBOL && places.iter().any(|place| place.contains_range(d.range))
            };
            for diagnostic in last.iter_mut().filter(is_register) {
                let range = diagnostic.range;
                let register = lints::undefined(&text[range], range, Expected::Register, std::iter::empty());
                let fixes = std::mem::take(&mut diagnostic.fixes);
                *diagnostic = Diagnostic { fixes, ..register };
            }
        });
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
        let signature = Arc::clone(&self.known.signatures[signature as usize]);
        let bound = check::bind(&signature, &lowered.operands, &self.names.registers);
        // Destinations are written; all names inside addresses are read.
        for (i, row) in bound.iter().flatten().enumerate() {
            let access = match row.role {
                Role::Source => continue,
                Role::Destination => Usage::Write,
                Role::Both => Usage::ReadWrite,
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

    /// The operands with the register `%tid.w` itself, which the checks need, instead of its value zero. `None` if
    /// the instruction does not read it.
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

    /// Whether an instruction would have no errors with another opcode.
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
