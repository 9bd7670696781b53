//! Explains statements without machine code of their own: which other instructions compute their results.
//!
//! Only registers that a single statement of the function writes are followed. For other registers, the text does not
//! show which value a statement reads.

use ptx_backend::CompiledFunction;
use ptx_backend::input::SrcId;
use rustc_hash::{FxHashMap, FxHashSet};
use text_size::TextRange;

use crate::scope::Entity;
use crate::source_map::{SourceMap, Usage};

/// The number of statements that are followed from one statement.
const FOLLOWED: usize = 256;
/// The maximum number of lines that are listed.
const NAMED: usize = 4;

/// The readers and writers of the registers of a function.
pub(super) struct Fates<'a> {
    map: &'a SourceMap,
    text: &'a str,
    has_code: FxHashSet<SrcId>,
    /// Calls of the function have been replaced by the bodies of the called functions.
    inlines: bool,
    /// For each register, the statement that writes it; `None` if several do.
    writer: FxHashMap<Entity, Option<SrcId>>,
    readers: FxHashMap<Entity, Vec<SrcId>>,
}

impl<'a> Fates<'a> {
    pub(super) fn new(map: &'a SourceMap, text: &'a str, compiled: &CompiledFunction) -> Self {
        let has_code = compiled.lines.iter().copied().flatten().collect();
        let mut fates = Self {
            map,
            text,
            has_code,
            inlines: compiled.inlined.is_some(),
            writer: FxHashMap::default(),
            readers: FxHashMap::default(),
        };
        let registers = map.occurrences.iter().filter(|o| matches!(o.entity, Entity::Register(_)));
        for occurrence in registers.filter(|o| o.access != Usage::Declaration) {
            let Some(src) = map.statement_at(occurrence.range.start()) else { continue };
            if occurrence.access != Usage::Read {
                fates.writer.entry(occurrence.entity).and_modify(|one| *one = None).or_insert(Some(src));
            }
            if occurrence.access != Usage::Write {
                fates.readers.entry(occurrence.entity).or_default().push(src);
            }
        }
        fates
    }

    /// The registers of a statement that are used in a way.
    fn registers(&self, src: SrcId, access: Usage) -> impl Iterator<Item = Entity> + use<'a> {
        let range = self.map.statement(src).unwrap_or_default();
        let all = &self.map.occurrences;
        let first = all.partition_point(|occurrence| occurrence.range.start() < range.start());
        let own = all[first..].iter().take_while(move |occurrence| occurrence.range.start() < range.end());
        own.filter(move |o| matches!(o.entity, Entity::Register(_)) && o.access == access).map(|o| o.entity)
    }

    /// The statements with code that are reached from a statement through statements without code.
    fn reached(&self, from: SrcId, with_code: bool, next: impl Fn(SrcId) -> Vec<SrcId>) -> Vec<SrcId> {
        let mut seen = FxHashSet::from_iter([from]);
        let mut pending = vec![from];
        let mut found = Vec::new();
        while let Some(src) = pending.pop() {
            for other in next(src) {
                if seen.len() > FOLLOWED || !seen.insert(other) {
                    continue;
                }
                let has_code = self.has_code.contains(&other);
                if has_code == with_code {
                    found.push(other);
                }
                if !has_code {
                    pending.push(other);
                }
            }
        }
        found.sort_unstable_by_key(|src| src.0);
        found
    }

    /// A sentence about a statement without code. `line` returns the line of a range.
    pub(super) fn of(&self, src: SrcId, line: impl Fn(TextRange) -> u32) -> String {
        let written: Vec<Entity> = self.registers(src, Usage::Write).collect();
        let is_single = |entity: &Entity| self.writer.get(entity) == Some(&Some(src));
        if self.name(src) == Some("call") && self.inlines {
            return "no instruction of its own: the function is inlined".to_owned();
        }
        if written.is_empty() {
            return "no machine code for this statement".to_owned();
        }
        if !written.iter().any(|entity| self.readers.contains_key(entity)) {
            return "no machine code: the result is never read".to_owned();
        }
        if !written.iter().all(is_single) {
            return "no machine code: other instructions do its work, or its result is not needed".to_owned();
        }
        let readers = |src| {
            let written = self.registers(src, Usage::Write);
            written.filter_map(|entity| self.readers.get(&entity)).flatten().copied().collect()
        };
        match self.places(&self.reached(src, true, readers), line) {
            Some(places) => format!("no instruction of its own: part of the machine code of {places}"),
            None => "no machine code: all instructions that read the result were removed".to_owned(),
        }
    }

    /// The statements without code whose work the instructions of a statement do.
    pub(super) fn taken_in(&self, src: SrcId, line: impl Fn(TextRange) -> u32) -> Option<String> {
        let writers = |src| {
            let read = self.registers(src, Usage::Read);
            read.filter_map(|entity| self.writer.get(&entity).copied().flatten()).collect()
        };
        self.places(&self.reached(src, false, writers), line)
    }

    /// The name of a statement's instruction.
    fn name(&self, src: SrcId) -> Option<&'a str> {
        instruction_name(&self.text[self.map.statement(src)?])
    }

    /// `ld.param.u64 (line 7), mul.f32 (line 9)`
    fn places(&self, all: &[SrcId], line: impl Fn(TextRange) -> u32) -> Option<String> {
        let name = |src: &SrcId| {
            let range = self.map.statement(*src)?;
            Some(format!("`{}` (line {})", self.name(*src)?, line(range)))
        };
        let mut names: Vec<String> = all.iter().take(NAMED).filter_map(name).collect();
        if all.len() > NAMED {
            names.push(format!("{} more", all.len() - NAMED));
        }
        (!names.is_empty()).then(|| names.join(", "))
    }
}

/// The name of a statement's instruction, with its modifiers and without its guard.
pub(super) fn instruction_name(statement: &str) -> Option<&str> {
    let mut words = statement.split(|c: char| c.is_ascii_whitespace() || c == ';');
    words.find(|word| !word.is_empty() && !word.starts_with('@'))
}
