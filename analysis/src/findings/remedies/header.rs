//! Fixes of the header: raising the version and target to what the module requires, and adding missing directives.

use ptx_isa::{Gate, GateError, PtxVersion, Sm};
use ptx_syntax::{ItemKind, NodeOrToken, SyntaxKind};
use rustc_hash::FxHashSet;
use text_size::{TextRange, TextSize};

use super::name_words;

use crate::check::gates::nearest;
use crate::db::{Db, Options, SourceFile};
use crate::diagnostic::{Applicability, Diagnostic, TextEdit};
use crate::items::{Item, items, parse, parts};
use crate::locate::trimmed;
use crate::module::{
    ADDRESS_SIZE, MISSING_TARGET, MISSING_VERSION, TARGET_NAME, UNKNOWN_TARGET, effective_target, header,
};
use crate::signature::target;

/// The version and target that a module without a header gets: a version that every recent toolkit reads, and the
/// oldest target that these toolkits generate code for. The requirements of the module's instructions are added.
const USUAL: Gate = Gate::since(8, 0, 75);

pub(super) fn complete(db: &dyn Db, file: SourceFile, diagnostic: &mut Diagnostic) {
    if let Some(gate) = diagnostic.gate {
        raise(db, file, &gate, diagnostic);
    } else if diagnostic.lint == &MISSING_VERSION {
        missing_version(db, file, diagnostic);
    } else if diagnostic.lint == &MISSING_TARGET {
        missing_target(db, file, diagnostic);
    } else if diagnostic.lint == &UNKNOWN_TARGET {
        unknown(db, file, diagnostic);
        target_of_version(db, file, diagnostic);
    } else if diagnostic.lint == &TARGET_NAME {
        if let (Some(place), Some(sm)) = (target_name(db, file), header(db, file).target.sm) {
            let title = format!("change to `{}`", sm.current());
            let edits = vec![TextEdit::new(place, sm.current().to_string())];
            diagnostic.offer(title, edits, Applicability::MachineApplicable);
        }
    } else if diagnostic.lint == &ADDRESS_SIZE {
        let title = "change to `.address_size 64`";
        let text = ".address_size 64";
        let edits = vec![TextEdit::new(diagnostic.range, text)];
        // A program with 32-bit addresses becomes another program with 64-bit addresses.
        let applicability = match header(db, file).address_size() {
            32 => Applicability::MaybeIncorrect,
            _ => Applicability::MachineApplicable,
        };
        diagnostic.offer(title, edits, applicability);
    }
}

/// Points to the directive that is too low, and offers to raise it.
fn raise(db: &dyn Db, file: SourceFile, gate: &Gate, diagnostic: &mut Diagnostic) {
    let header = header(db, file);
    let (Some(version), Some(sm)) = (header.version, header.target.sm) else { return };
    let Some(effective) = effective_target(db, file) else { return };
    let (version_place, target_place) = (version_number(db, file), target_name(db, file));
    match gate.check(version, effective) {
        Err(GateError::Version(needed)) => {
            let Some(place) = version_place else { return };
            // The target requires a version too.
            let needed = needed.max(sm.since());
            let title = format!("raise `.version` to {needed}");
            diagnostic.relate(place, "version of the module");
            let edits = vec![TextEdit::new(place, needed.to_string())];
            diagnostic.offer(title, edits, Applicability::MachineApplicable);
        }
        Err(GateError::Target(targets)) => {
            let Some(place) = target_place else { return };
            diagnostic.relate(place, "target of the module");
            // The options select another target than the file's, so the file need not change.
            if Options::get(db).target(db).is_some() {
                return;
            }
            let Some(needed) = nearest(targets, sm) else { return };
            let Some(least) = least_version(gate, needed, version) else { return };
            // An older target is not offered if no code is generated for it.
            if needed < sm && !Sm::COMPILED.contains(&needed.number) {
                return;
            }
            let verb = if needed.number > sm.number { "raise" } else { "change" };
            let mut title = format!("{verb} `.target` to {needed}");
            let mut edits = vec![TextEdit::new(place, needed.to_string())];
            if let (true, Some(place)) = (least > version, version_place) {
                title += &format!(" and `.version` to {least}");
                edits.insert(0, TextEdit::new(place, least.to_string()));
            }
            diagnostic.offer(title, edits, Applicability::MaybeIncorrect);
        }
        Err(GateError::Removed(_)) | Ok(()) => {}
    }
}

/// The lowest version from `version` on in which the target has the feature.
fn least_version(gate: &Gate, sm: Sm, version: PtxVersion) -> Option<PtxVersion> {
    let version = version.max(sm.since());
    match gate.check(version, sm) {
        Ok(()) => Some(version),
        Err(GateError::Version(needed)) => gate.check(needed, sm).is_ok().then_some(needed),
        Err(_) => None,
    }
}

/// Offers an existing version or target in place of an unknown one.
fn unknown(db: &dyn Db, file: SourceFile, diagnostic: &mut Diagnostic) {
    let header = header(db, file);
    let mut offer = |place: Option<TextRange>, found: String, title: String| {
        if let Some(place) = place.filter(|&place| diagnostic.range.contains_range(place)) {
            diagnostic.offer(title, vec![TextEdit::new(place, found)], Applicability::MaybeIncorrect);
        }
    };
    if let Some(version) = header.version
        && version > PtxVersion::NEWEST
    {
        let newest = PtxVersion::NEWEST.to_string();
        offer(
            version_number(db, file),
            newest.clone(),
            format!("change to {newest}, the newest known version"),
        );
    }
    if header.target.sm.is_none()
        && let Some(item) = items_of(db, file, ItemKind::Target).next()
        && let Some(place) = word(db, item, |kind, _| kind == SyntaxKind::IDENT)
        && let Some(meant) = meant_target(&file.text(db)[place])
    {
        offer(Some(place), meant.to_string(), format!("change to `{meant}`"));
    }
    if let Some(sm) = header.target.sm
        && !sm.is_known()
        // A target that the version lacks would be the next error.
        && let Some(nearest) = Sm::KNOWN
            .iter()
            .filter(|known| known.number <= sm.number && known.since() <= header.version_or_newest())
            .max_by_key(|known| {
                (known.number, known.feature == sm.feature, known.feature == ptx_isa::Feature::None)
            })
    {
        offer(target_name(db, file), nearest.to_string(), format!("change to {nearest}"));
    }
}

/// The target that a misspelled word means, such as `sm90`, `SM_90` or `sm-90`.
fn meant_target(word: &str) -> Option<Sm> {
    let word = word.to_ascii_lowercase();
    let number = word.strip_prefix("sm").or_else(|| word.strip_prefix("compute"))?;
    let sm = Sm::parse(&format!("sm_{}", number.trim_start_matches('_')))?;
    sm.is_known().then_some(sm)
}

/// Fixes a target that a module of an older version cannot have.
fn target_of_version(db: &dyn Db, file: SourceFile, diagnostic: &mut Diagnostic) {
    let header = header(db, file);
    let (Some(version), Some(place)) = (header.version, version_number(db, file)) else { return };
    if !version.is_published() || diagnostic.range.contains_range(place) {
        return;
    }
    if let Some(sm) = header.target.sm
        && sm.is_known()
        && version < sm.since()
    {
        let needed = sm.since();
        let title = format!("raise `.version` to {needed}");
        diagnostic.relate(place, "version of the module");
        let edits = vec![TextEdit::new(place, needed.to_string())];
        diagnostic.offer(title, edits, Applicability::MachineApplicable);
    }
}

/// The requirements of the module's instructions.
fn needs(db: &dyn Db, file: SourceFile) -> Gate {
    let mut all = USUAL;
    let mut seen = FxHashSet::default();
    for &item in items(db, file) {
        let text = item.text(db);
        let root = parse(db, item).syntax();
        for node in root.descendants().filter(|node| node.kind() == SyntaxKind::INSTRUCTION) {
            let words = name_words(&node, text);
            if let Some((mnemonic, suffixes)) = words.split_first()
                && let Ok(opcode) = ptx_isa::resolve(mnemonic, suffixes)
                && seen.insert(words)
            {
                let both = all.and(ptx_isa::gates(&opcode));
                // If no target satisfies both, the module has no valid target.
                if !both.targets.is_empty() {
                    all = both;
                }
            }
        }
    }
    all
}

/// The version and target of a module with these requirements, with at least this version.
fn header_for(gate: &Gate, version: PtxVersion) -> Option<(PtxVersion, Sm)> {
    let sm = nearest(gate.targets, Sm::new(75))?;
    Some((least_version(gate, sm, version)?, sm))
}

fn items_of(db: &dyn Db, file: SourceFile, kind: ItemKind) -> impl Iterator<Item = Item<'_>> {
    parts(db, file).filter(move |part| part.kind(db) == kind).map(|part| part.item(db))
}

fn missing_version(db: &dyn Db, file: SourceFile, diagnostic: &mut Diagnostic) {
    let first = parts(db, file).find(|part| part.kind(db) != ItemKind::Trivia).map(|part| part.item(db));
    let needs = needs(db, file);
    let found = match header(db, file).target.sm {
        Some(sm) => least_version(&needs, sm, needs.ptx).or(Some(needs.ptx.max(sm.since()))).zip(Some(sm)),
        None => header_for(&needs, PtxVersion::new(1, 0)),
    };
    let Some((version, sm)) = found else { return };
    if let Some(first) = first.filter(|item| item.kind(db) == ItemKind::Version) {
        // The directive exists but cannot be read, or a line marker precedes it.
        if header(db, file).version.is_none() {
            let version = whole_version(db, first).unwrap_or(version);
            let title = format!("change to `.version {version}`");
            let edits = vec![TextEdit::new(trimmed(db, first), format!(".version {version}"))];
            diagnostic.offer(title, edits, Applicability::MaybeIncorrect);
        }
        return;
    }
    // The first directive has such an error that the version is parsed as a part of it.
    if first.is_some_and(|first| first.text(db).contains(".version")) {
        return;
    }
    let at = first.map_or(TextSize::of(&**file.text(db)), |first| trimmed(db, first).start());
    let mut lines = String::new();
    let mut edits = Vec::new();
    match items_of(db, file, ItemKind::Version).next() {
        // The directive is too late.
        Some(item) => edits.push(take(db, item, &mut lines)),
        None => lines += &format!(".version {version}\n"),
    }
    let follows = |kind| first.is_some_and(|first| first.kind(db) == kind);
    if !follows(ItemKind::Target) {
        match items_of(db, file, ItemKind::Target).next() {
            Some(item) => edits.push(take(db, item, &mut lines)),
            None => lines += &target_lines(db, file, sm),
        }
        if let Some(item) = items_of(db, file, ItemKind::AddressSize).next()
            && !follows(ItemKind::AddressSize)
        {
            edits.push(take(db, item, &mut lines));
        }
    }
    // After a comment at the end of a text without a final line break.
    let before = &file.text(db)[..usize::from(at)];
    if !before.rsplit('\n').next().unwrap_or_default().trim().is_empty() {
        lines.insert(0, '\n');
    }
    let words: Vec<String> = lines.trim_start().lines().take(2).map(|line| format!("`{line}`")).collect();
    let title = format!("insert {}", words.join(" and "));
    edits.insert(0, TextEdit::new(TextRange::empty(at), lines));
    diagnostic.offer(title, edits, Applicability::MachineApplicable);
}

/// The version that a `.version` with a major number alone means.
fn whole_version(db: &dyn Db, item: Item<'_>) -> Option<PtxVersion> {
    let place = word(db, item, |kind, _| kind == SyntaxKind::INT)?;
    let major = item.text(db)[place - item.offset(db)].parse().ok()?;
    Some(PtxVersion::new(major, 0)).filter(|version| version.is_published())
}

fn missing_target(db: &dyn Db, file: SourceFile, diagnostic: &mut Diagnostic) {
    let Some(version_item) = items_of(db, file, ItemKind::Version).next() else { return };
    let Some(version) = header(db, file).version else { return };
    let after = trimmed(db, version_item).end();
    let mut lines = String::from("\n");
    let mut edits = Vec::new();
    let title = match items_of(db, file, ItemKind::Target).next() {
        // A line marker is between them.
        Some(item) if trimmed(db, item) == diagnostic.range => return,
        Some(item) => {
            edits.push(take(db, item, &mut lines));
            format!("move `{}` here", lines.trim())
        }
        None => {
            let Some((least, sm)) = header_for(&needs(db, file), version) else { return };
            if let (true, Some(place)) = (least > version, version_number(db, file)) {
                edits.push(TextEdit::new(place, least.to_string()));
            }
            lines += &target_lines(db, file, sm);
            format!("insert `.target {sm}`")
        }
    };
    // The line break after the version stays in place.
    lines.pop();
    edits.push(TextEdit::new(TextRange::empty(after), lines));
    edits.sort_by_key(|edit| edit.range.start());
    diagnostic.offer(title, edits, Applicability::MachineApplicable);
}

/// `.target`, and the address size if the module does not state it.
fn target_lines(db: &dyn Db, file: SourceFile, sm: Sm) -> String {
    let size = match items_of(db, file, ItemKind::AddressSize).next() {
        Some(_) => "",
        None => ".address_size 64\n",
    };
    format!(".target {sm}\n{size}")
}

/// Moves a directive to the end of `lines`.
fn take(db: &dyn Db, item: Item<'_>, lines: &mut String) -> TextEdit {
    let range = trimmed(db, item);
    *lines += &item.text(db)[range - item.offset(db)];
    lines.push('\n');
    TextEdit::new(range, "")
}

/// The number after `.version`, in the file.
fn version_number(db: &dyn Db, file: SourceFile) -> Option<TextRange> {
    let item = items_of(db, file, ItemKind::Version).next()?;
    word(db, item, |kind, _| kind == SyntaxKind::FLOAT)
}

/// The first name of a target after `.target`, in the file.
fn target_name(db: &dyn Db, file: SourceFile) -> Option<TextRange> {
    let item = items_of(db, file, ItemKind::Target).next()?;
    word(db, item, |kind, text| kind == SyntaxKind::IDENT && target(text).is_some())
}

fn word(db: &dyn Db, item: Item<'_>, wanted: impl Fn(SyntaxKind, &str) -> bool) -> Option<TextRange> {
    let root = parse(db, item).syntax();
    let mut tokens = root.children_with_tokens().filter_map(NodeOrToken::into_token);
    let found = tokens.find(|token| wanted(token.kind(), token.text()))?;
    Some(found.text_range() + item.offset(db))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ptx_isa::TargetSet;

    #[test]
    fn a_version_that_the_target_needs_too() {
        let gate = Gate::only(8, 0, TargetSet::arch(90));
        assert_eq!(
            header_for(&gate, PtxVersion::new(7, 0)),
            Some((PtxVersion::new(8, 0), Sm::parse("sm_90a").unwrap()))
        );
        let removed = Gate::BASE.until(6, 4, 70);
        assert_eq!(least_version(&removed, Sm::new(75), PtxVersion::new(7, 0)), None);
    }
}
