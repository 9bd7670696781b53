//! Completion: the possible texts at an offset, the most likely first.

mod call;
mod modifiers;
mod operands;
mod snippets;

pub(super) use self::call::argument;

use ptx_isa::{Directive, DirectiveKind, PRAGMAS, Pragma, PtxVersion, ScalarType, Site, Sm, SpecialReg};
use text_size::{TextRange, TextSize};

use self::operands::OperandPlace;
use crate::db::{Database, SourceFile};
use crate::diagnostic::TextEdit;
use crate::ide::reference::needs;
use crate::ide::setting::Setting;
use crate::ide::signature_help::{statement_before, word_before};
use crate::ide::words;
use crate::ide::{Completion, CompletionKind};
use crate::locate::spot;
use crate::lower::lower;

/// The completions at an offset in the order in which they are offered; clients filter by prefix.
pub fn completions(db: &Database, file: SourceFile, offset: TextSize) -> Vec<Completion> {
    let text = file.text(db);
    let Some(before) = text.get(..usize::from(offset)) else { return Vec::new() };
    let mut out = Collector { edit: word_before(text, offset), in_brackets: false, items: Vec::new() };
    collect(&mut out, db, file, offset, before);
    out.items.sort_by_key(|(rank, _)| *rank);
    out.items.into_iter().map(|(_, item)| item).collect()
}

/// Markdown about a completion, which clients request when it is selected.
pub fn completion_documentation(kind: CompletionKind, label: &str) -> Option<String> {
    let dotted = || format!(".{}", label.trim_start_matches('.'));
    match kind {
        CompletionKind::Mnemonic => ptx_isa::doc(label).map(str::to_owned),
        CompletionKind::Modifier | CompletionKind::Type => words::suffix(&dotted(), None, &Setting::UNKNOWN),
        CompletionKind::Directive => words::directive(&dotted(), &Setting::UNKNOWN),
        CompletionKind::SpecialRegister => words::special(label, &Setting::UNKNOWN),
        CompletionKind::Target => words::target(label),
        CompletionKind::Snippet => snippets::documentation(label),
        _ => None,
    }
}

fn collect(out: &mut Collector, db: &Database, file: SourceFile, offset: TextSize, before: &str) {
    let setting = Setting::of(db, file);
    let line = before.rsplit('\n').next().unwrap_or_default();
    if line.trim_start().starts_with(".target") {
        return targets(out, &setting, line);
    }
    if line.trim_start().starts_with(".address_size") {
        for size in ["64", "32"] {
            out.add(Rank::legal(true, 0, 0), size, CompletionKind::Target, "bits of an address".to_owned());
        }
        return;
    }
    if line.trim_start().starts_with(".version") {
        return versions(out, before);
    }
    let spot = spot(db, file, offset)
        .or_else(|| (offset > TextSize::new(0)).then(|| spot(db, file, offset - TextSize::new(1))).flatten());
    let start = spot.map_or(TextSize::new(0), |spot| spot.item.offset(db));
    let of_item = &before[usize::from(start).min(before.len())..];
    if is_in_comment(of_item) {
        return;
    }
    let dotted = before[..usize::from(out.edit.start())].ends_with('.');
    let body = spot.map(|spot| spot.item).filter(|&item| {
        let is_at_end = of_item.len() == item.text(db).len();
        lower(db, item).has_body && is_in_body(of_item, is_at_end)
    });
    let Some(item) = body else {
        return outside(out, db, file, &setting, before, dotted);
    };
    let statement = statement_before(before);
    if is_guard(before) {
        return operands::names(out, db, file, item, offset, &OperandPlace::guard());
    }
    match statement.split_once(|c: char| c.is_ascii_whitespace()) {
        // The cursor is still in the name.
        None if statement.contains('.') && !statement.starts_with('.') => {
            let word = usize::from(out.edit.len()) + usize::from(dotted);
            modifiers::modifiers(out, &setting, &statement[..statement.len() - word]);
        }
        None => {
            if !statement.starts_with('.') {
                modifiers::mnemonics(out, &setting);
                snippets::offer(out, &setting, snippets::STATEMENTS);
            }
            directives(out, &setting, Site::BODY, dotted);
        }
        Some((".branchtargets", _)) => {
            operands::names(out, db, file, item, offset, &OperandPlace::of("bra", ""));
        }
        Some((".calltargets", _)) => call::functions(out, db, file, |_| true),
        Some((".pragma", rest)) => pragmas(out, &setting, rest, |_| true),
        Some((name, _)) if name.starts_with('.') => {
            declaration(out, db, file, &setting, statement, dotted, Site::DECLARATION);
        }
        Some((name, rest)) => {
            if let Some(start) = special_before(before, out.edit) {
                out.edit = TextRange::new(start, offset);
                return operands::special_registers(out, &OperandPlace::of(name, rest));
            }
            if name == "call" || name.starts_with("call.") {
                return call::names(out, db, file, item, offset, rest);
            }
            let start = TextSize::new(of_item.len().saturating_sub(statement.len()) as u32);
            operands::names(out, db, file, item, offset, &OperandPlace::of(name, rest).in_statement(start));
        }
    }
}

/// Completions outside of bodies: directives where they are allowed.
fn outside(
    out: &mut Collector,
    db: &Database,
    file: SourceFile,
    setting: &Setting,
    before: &str,
    dotted: bool,
) {
    // The declaration begins after the end of the previous one, or after the line of a header directive.
    let start = before.rfind([';', '}']).map_or(0, |at| at + 1);
    let is_header = |line: &str| {
        let words = [".version", ".target", ".address_size", ".file", "//"];
        words.iter().any(|word| line.trim_start().starts_with(word))
    };
    let mut declaration: Vec<&str> = before[start..].split('\n').collect();
    while declaration.len() > 1 && (declaration[0].trim().is_empty() || is_header(declaration[0])) {
        declaration.remove(0);
    }
    let declaration = declaration.join("\n");
    let declaration = declaration.trim_start();
    let words = declaration.split_whitespace().count();
    let is_first_word = words == 0 || words == 1 && !declaration.ends_with(char::is_whitespace);
    let opened = declaration.matches('(').count();
    let closed = declaration.matches(')').count();
    let is_function = declaration.contains(".entry") || declaration.contains(".func");
    if opened > closed {
        let parameter = declaration.rsplit(['(', ',']).next().unwrap_or_default();
        self::parameter(out, db, file, setting, parameter, declaration.contains(".entry"), dotted);
    } else if is_function && closed > 0 {
        let tuning = declaration.rsplit(')').next().unwrap_or_default();
        self::tuning(out, setting, tuning, dotted);
    } else if is_first_word {
        if before.trim().is_empty() {
            snippets::offer(out, setting, snippets::FILES);
        }
        // The header has a fixed order.
        let missing = |name: &str| !before.contains(&format!(".{name}"));
        let next = ["version", "target", "address_size"].into_iter().find(|name| missing(name));
        directives_where(out, setting, Site::HEADER, dotted, |directive| Some(directive.name) == next);
        if !missing("version") && !missing("target") {
            directives(out, setting, Site::MODULE, dotted);
            if !declaration.starts_with('.') {
                snippets::offer(out, setting, snippets::ITEMS);
            }
        }
    } else if let Some(rest) = declaration.strip_prefix(".alias") {
        let first = rest.split_once(',').map(|(first, _)| first.trim());
        call::functions(out, db, file, |function| first != Some(&*function.name));
    } else if let Some(rest) = declaration.strip_prefix(".pragma") {
        pragmas(out, setting, rest, |pragma| !pragma.of_statements);
    } else if !is_function {
        let words: Vec<&str> = declaration.split_whitespace().collect();
        if words.iter().any(|word| is_of_kind(word, DirectiveKind::Space)) {
            self::declaration(out, db, file, setting, declaration, dotted, Site::DECLARATION);
        } else if words.iter().any(|word| is_of_kind(word, DirectiveKind::Linkage)) {
            let has_linkage = |directive: &Directive| {
                matches!(directive.name, "entry" | "func" | "global" | "const" | "shared")
            };
            directives_where(out, setting, Site::MODULE, dotted, has_linkage);
        }
    }
}

fn is_of_kind(word: &str, kind: DirectiveKind) -> bool {
    let directive = word.strip_prefix('.').and_then(Directive::parse);
    directive.is_some_and(|directive| directive.kind == kind)
}

/// The complete words of a text before the one that is being typed, without dots.
fn complete_words<'t>(out: &Collector, text: &'t str, dotted: bool) -> Vec<&'t str> {
    let typed = usize::from(out.edit.len()) + usize::from(dotted);
    let before = &text[..text.len().saturating_sub(typed)];
    before.split(|c: char| c.is_whitespace() || c == '.').filter(|word| !word.is_empty()).collect()
}

/// Completions after the parameters of a function: directives, or the strings of a pragma.
fn tuning(out: &mut Collector, setting: &Setting, text: &str, dotted: bool) {
    if let Some((_, string)) = text.rsplit_once(".pragma").filter(|(_, string)| !string.contains(';')) {
        return pragmas(out, setting, string, |pragma| !pragma.of_statements);
    }
    // Arguments are numbers.
    let last = complete_words(out, text, dotted).last().copied().unwrap_or_default();
    if !last.ends_with(',') && !Directive::parse(last).is_some_and(Directive::takes_arguments) {
        directives(out, setting, Site::FUNCTION, dotted);
    }
}

/// The strings of a pragma; `rest` is the text after the directive, perhaps with the opening quote.
fn pragmas(out: &mut Collector, setting: &Setting, rest: &str, is_wanted: impl Fn(&Pragma) -> bool) {
    let is_quoted = rest.matches('"').count() % 2 == 1;
    for (i, pragma) in PRAGMAS.iter().enumerate().filter(|(_, pragma)| is_wanted(pragma)) {
        let label = if is_quoted { pragma.name.to_owned() } else { format!("\"{}\"", pragma.name) };
        let rank = Rank::legal(setting.has(&pragma.gate), 0, i as u32);
        out.add(rank, &label, CompletionKind::Target, pragma.about.to_owned());
    }
}

/// Completions in a declaration, which begins with its state space: its type, then the rest of its directives, and names
/// in its initializer.
fn declaration(
    out: &mut Collector,
    db: &Database,
    file: SourceFile,
    setting: &Setting,
    text: &str,
    dotted: bool,
    site: Site,
) {
    let words = complete_words(out, text, dotted);
    let is_space = |word: &&str| Directive::parse(word).is_some_and(|d| d.kind == DirectiveKind::Space);
    let Some(space) = words.iter().copied().find(is_space) else { return };
    if text.contains('=') {
        return operands::module_names(out, db, file, &OperandPlace::of("mov.u64", "%rd0, "));
    }
    // The alignment is a number.
    if words.last() == Some(&"align") {
        return;
    }
    let has_type = words.iter().any(|word| ScalarType::parse(word).is_some());
    if !has_type {
        types(out, dotted);
    }
    // A parameter is a pointer after its type; the type of a variable is last.
    if space != "reg" && (!has_type || site == Site::PARAMETER) {
        let is_new = |directive: &Directive| {
            directive.kind != DirectiveKind::Space && !words.contains(&directive.name)
        };
        directives_where(out, setting, site, dotted, is_new);
    }
}

/// Completions in the declaration of a parameter, beginning with its state space.
fn parameter(
    out: &mut Collector,
    db: &Database,
    file: SourceFile,
    setting: &Setting,
    text: &str,
    is_kernel: bool,
    dotted: bool,
) {
    if text.split_whitespace().any(|word| is_of_kind(word, DirectiveKind::Space)) {
        return declaration(out, db, file, setting, text, dotted, Site::PARAMETER);
    }
    let name = if is_kernel { &["param"][..] } else { &["param", "reg"] };
    for (i, directive) in name.iter().filter_map(|name| Directive::parse(name)).enumerate() {
        let rank = Rank::legal(true, 0, i as u32);
        out.add_dotted(rank, directive.name, dotted, CompletionKind::Directive, directive.about.to_owned());
    }
}

/// Types that declarations can use.
fn types(out: &mut Collector, dotted: bool) {
    let plain = |ty: &&ScalarType| {
        let name = ty.text();
        name == "pred"
            || matches!(name, "f16x2" | "bf16" | "bf16x2")
            || name[1..].bytes().all(|b| b.is_ascii_digit())
    };
    for &ty in ScalarType::ALL.iter().filter(plain).filter(|ty| ty.bits() >= 8 || **ty == ScalarType::Pred) {
        let rank = Rank::legal(true, 0, modifiers::order_of_type(ty));
        out.add_dotted(rank, ty.text(), dotted, CompletionKind::Type, words::kind_and_size(ty));
    }
}

/// The versions of the language, the newest first.
fn versions(out: &mut Collector, before: &str) {
    // The word before the cursor ends at the dot.
    let number = before.len() - before.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.').len();
    let is_directive = before[..before.len() - number].ends_with("version");
    if is_directive {
        return;
    }
    out.edit = TextRange::new(out.edit.end() - TextSize::new(number as u32), out.edit.end());
    let all = (1..=PtxVersion::NEWEST.major)
        .flat_map(|major| (0..10).map(move |minor| PtxVersion::new(major, minor)));
    for (age, version) in all.filter(|version| version.is_published()).rev().enumerate() {
        let added: Vec<String> =
            Sm::KNOWN.iter().filter(|sm| sm.since() == version).map(Sm::to_string).collect();
        let detail = if added.is_empty() { String::new() } else { format!("adds {}", added.join(", ")) };
        out.add(Rank::legal(true, 0, age as u32), &version.to_string(), CompletionKind::Target, detail);
    }
}

/// The start of the special register whose name before the cursor is complete up to a dot: `%ctaid.`.
fn special_before(before: &str, edit: TextRange) -> Option<TextSize> {
    let base = before[..usize::from(edit.start())].strip_suffix('.')?;
    let start = base.rfind('%')?;
    let part = &before[start..=base.len()];
    SpecialReg::ALL
        .iter()
        .any(|register| register.text().starts_with(part))
        .then(|| TextSize::new(start as u32))
}

/// Words that can follow the first target after a comma.
const TARGET_OPTIONS: [(&str, &str); 4] = [
    ("texmode_unified", "a texture and its sampler have one handle (the default)"),
    ("texmode_independent", "textures and samplers have handles of their own"),
    ("debug", "the module has DWARF debugging information"),
    ("map_f64_to_f32", "`.f64` means `.f32`, for targets before sm_13"),
];

fn targets(out: &mut Collector, setting: &Setting, line: &str) {
    if line.contains(',') {
        for (i, (option, about)) in TARGET_OPTIONS.into_iter().enumerate() {
            if !line.contains(option) {
                out.add(Rank::legal(true, 0, i as u32), option, CompletionKind::Target, about.to_owned());
            }
        }
        return;
    }
    // The newest first; those that the version lacks come last.
    for (age, sm) in Sm::KNOWN.iter().rev().enumerate() {
        let rank = Rank::legal(sm.since() <= setting.version, 0, age as u32);
        out.add(rank, &sm.to_string(), CompletionKind::Target, format!("since PTX ISA {}", sm.since()));
    }
}

fn directives(out: &mut Collector, setting: &Setting, site: Site, dotted: bool) {
    directives_where(out, setting, site, dotted, |_| true);
}

fn directives_where(
    out: &mut Collector,
    setting: &Setting,
    site: Site,
    dotted: bool,
    is_wanted: impl Fn(&Directive) -> bool,
) {
    let all = Directive::ALL.iter().filter(|d| d.site.intersects(site) && !d.name.starts_with('@'));
    for (i, directive) in all.filter(|directive| is_wanted(directive)).enumerate() {
        let is_legal = setting.has(&directive.gate);
        let detail = match is_legal {
            true => directive.about.to_owned(),
            false => format!("requires {}", needs(&directive.gate)),
        };
        let rank = Rank::legal(is_legal, 2, i as u32);
        out.add_dotted(rank, directive.name, dotted, CompletionKind::Directive, detail);
    }
}

/// The order of completions: unavailable ones last, then by group, then within the group.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    is_unavailable: bool,
    group: u32,
    within: u32,
}

impl Rank {
    fn legal(is_legal: bool, group: u32, within: u32) -> Self {
        Self { is_unavailable: !is_legal, group, within }
    }
}

struct Collector {
    /// The range that a completion replaces.
    edit: TextRange,
    /// Names are put into brackets.
    in_brackets: bool,
    items: Vec<(Rank, Completion)>,
}

impl Collector {
    fn add(&mut self, rank: Rank, label: &str, kind: CompletionKind, detail: String) {
        let bracketed = self.in_brackets.then(|| format!("[{label}]"));
        let label = bracketed.as_deref().unwrap_or(label);
        self.add_text(rank, label, kind, detail, label);
    }

    fn add_text(&mut self, rank: Rank, label: &str, kind: CompletionKind, detail: String, text: &str) {
        let edit = TextEdit { range: self.edit, text: text.to_owned() };
        let is_available = !rank.is_unavailable;
        self.items.push((rank, Completion { label: label.to_owned(), kind, detail, edit, is_available }));
    }

    /// Adds a word with a leading dot, which may already be in the text.
    fn add_dotted(&mut self, rank: Rank, word: &str, dotted: bool, kind: CompletionKind, detail: String) {
        let word = if dotted { word.to_owned() } else { format!(".{word}") };
        self.add(rank, &word, kind, detail);
    }
}

/// Whether a text ends inside a comment.
fn is_in_comment(before: &str) -> bool {
    let line = before.rsplit('\n').next().unwrap_or_default();
    line.contains("//") || before.rfind("/*") > before.rfind("*/")
}

/// Whether a text ends in the name of a guard, after `@` or `@!`.
fn is_guard(before: &str) -> bool {
    let name = before.trim_end_matches(|c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '%'));
    name.ends_with('@') || name.ends_with("@!")
}

/// Whether the text of a function up to a position ends in its body.
fn is_in_body(before: &str, is_at_end: bool) -> bool {
    // The last brace of a function ends it.
    if is_at_end && before.ends_with('}') {
        return before.matches('{').count() > before.matches('}').count();
    }
    before.contains('{')
}
