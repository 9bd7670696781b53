//! Diagnostics: the findings of checks and their severities.
//!
//! A diagnostic names its [`Lint`]: the stable code, the default level and the documentation. Ranges are relative to
//! the item until [`Diagnostic::shifted`] converts them to file offsets.

use std::collections::BTreeMap;
use std::fmt;

use ptx_isa::Gate;
use rustc_hash::FxHashMap;
use text_size::{TextRange, TextSize};

/// The severity of a diagnostic, in ascending order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Severity {
    /// Not reported.
    Allow,
    Information,
    Warning,
    Error,
}

impl Severity {
    /// Reads the name used in settings and on the command line.
    pub fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "allow" | "off" | "none" => Self::Allow,
            "info" | "information" | "note" => Self::Information,
            "warn" | "warning" => Self::Warning,
            "error" | "deny" => Self::Error,
            _ => return None,
        })
    }

    pub const fn text(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Information => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// A kind of finding. Declared with [`declare_lint!`](crate::declare_lint) beside the check that reports it.
#[derive(Debug)]
pub struct Lint {
    /// The stable code, such as `E0201`. `E` means an invalid program, `W` a doubtful one, `I` information.
    pub code: &'static str,
    /// The name for people and settings: `unknown-instruction`.
    pub name: &'static str,
    /// One sentence.
    pub summary: &'static str,
    pub default: Severity,
    /// The release that introduced it.
    pub since: &'static str,
    /// The documentation page, Markdown. Its examples are tests.
    pub page: &'static str,
}

impl Lint {
    /// Whether a finding means that the program is invalid. Then its level is fixed and no comment suppresses it,
    /// because code is generated only for programs without errors.
    pub fn is_error(&self) -> bool {
        self.default == Severity::Error
    }

    /// The rule that the page states after its first example, in a few sentences.
    pub fn rule(&self) -> String {
        /// The maximum number of characters of the sentences after the first.
        const LONG: usize = 130;
        let mut paragraphs = self.page.split("\n\n").skip(2).map(str::trim);
        let behind = paragraphs.find(|paragraph| paragraph.ends_with("```"));
        let rule = behind.and_then(|_| paragraphs.next());
        let rule = rule.or_else(|| self.page.split("\n\n").nth(2)).unwrap_or_default();
        let rule = rule.split_whitespace().collect::<Vec<_>>().join(" ");
        let ends = rule.match_indices(". ").map(|(at, _)| at + 1).take_while(|&end| end <= LONG);
        let first = rule.find(". ").map_or(rule.len(), |at| at + 1);
        let end = if rule.len() <= LONG { rule.len() } else { ends.last().unwrap_or(first) };
        rule[..end].trim_end_matches('.').to_owned()
    }
}

impl PartialEq for Lint {
    fn eq(&self, other: &Self) -> bool {
        self.code == other.code
    }
}
impl Eq for Lint {}

/// Declares a [`Lint`]: the doc comment is its summary, the page is `docs/lints/<code>.md`.
#[macro_export]
macro_rules! declare_lint {
    ($(#[doc = $summary:literal])+ $vis:vis $ident:ident = $code:literal $name:literal, $default:ident, since $since:literal) => {
        $(#[doc = $summary])+
        $vis static $ident: $crate::diagnostic::Lint = $crate::diagnostic::Lint {
            code: $code,
            name: $name,
            summary: concat!($($summary),+),
            default: $crate::diagnostic::Severity::$default,
            since: $since,
            page: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/lints/", $code, ".md")),
        };
    };
}

/// Levels that differ from the defaults, by code. Later settings win.
///
/// [`setting`](crate::check::setting) reads levels that users write, and checks which may be set.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Levels(BTreeMap<&'static str, Severity>);

impl Levels {
    pub fn set(&mut self, lint: &'static Lint, level: Severity) {
        self.0.insert(lint.code, level);
    }

    pub fn level(&self, lint: &Lint) -> Severity {
        self.0.get(lint.code).copied().unwrap_or(lint.default)
    }
}

/// A finding at a position.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diagnostic {
    pub lint: &'static Lint,
    pub severity: Severity,
    pub range: TextRange,
    /// The position where ptxas reports the error, if it is not `range`: the first token from here on. Machine-readable
    /// output names this line, so that its line numbers agree with ptxas; people see `range`.
    pub reported: Option<TextSize>,
    /// The message, in lower case and without a full stop: what was found, what is expected and why.
    pub message: String,
    /// Reasons and remedies.
    pub notes: Vec<String>,
    pub related: Vec<Related>,
    pub fixes: Vec<Fix>,
    /// The gate that the module's version and target do not satisfy.
    pub gate: Option<Gate>,
    /// The code at `range` has no effect; editors fade it.
    pub unnecessary: bool,
}

/// The findings of one item. Only the first [`Findings::LIMIT`] of each lint are kept: more are of no use, and text of
/// many megabytes can have an error at every second byte.
#[derive(Default, Debug)]
pub struct Findings {
    kept: Vec<Diagnostic>,
    /// The number of findings of each lint, kept or not, by code.
    counts: FxHashMap<&'static str, usize>,
}

impl Findings {
    /// The limit per lint and item.
    pub const LIMIT: usize = 1_000;

    pub fn push(&mut self, diagnostic: Diagnostic) {
        let count = self.counts.entry(diagnostic.lint.code).or_default();
        *count += 1;
        if *count < Self::LIMIT {
            self.kept.push(diagnostic);
        } else if *count == Self::LIMIT {
            self.kept.push(diagnostic.note("further findings of this kind are not shown"));
        }
    }

    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// The number of kept findings.
    pub fn len(&self) -> usize {
        self.kept.len()
    }

    /// Changes the last kept findings, from number `first` on.
    pub fn rework(&mut self, first: usize, change: impl FnOnce(&mut Vec<Diagnostic>)) {
        let mut last = self.kept.split_off(first);
        change(&mut last);
        self.kept.append(&mut last);
    }

    /// The number of findings, kept or not.
    pub fn count(&self) -> usize {
        self.counts.values().sum()
    }

    /// Whether there are so many findings of a lint that further suggestions are not worth their time.
    pub fn has_many(&self, lint: &Lint) -> bool {
        const MANY: usize = 100;
        self.counts.get(lint.code).is_some_and(|&count| count >= MANY)
    }

    /// Whether no more findings of a lint are kept.
    pub fn is_full(&self, lint: &Lint) -> bool {
        self.counts.get(lint.code).is_some_and(|&count| count >= Self::LIMIT)
    }

    pub fn iter(&self) -> std::slice::Iter<'_, Diagnostic> {
        self.kept.iter()
    }

    /// All kept findings in text order.
    pub fn into_sorted(mut self) -> Box<[Diagnostic]> {
        self.kept.sort_by_key(|d| (d.range.start(), d.range.end()));
        self.kept.into()
    }
}

impl Extend<Diagnostic> for Findings {
    fn extend<I: IntoIterator<Item = Diagnostic>>(&mut self, diagnostics: I) {
        diagnostics.into_iter().for_each(|diagnostic| self.push(diagnostic));
    }
}

/// Another place that explains the finding.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Related {
    pub range: TextRange,
    pub message: String,
}

/// A way to resolve the finding.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fix {
    pub title: String,
    pub edits: Vec<TextEdit>,
    pub applicability: Applicability,
}

/// Whether a fix may be applied without asking.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Applicability {
    /// The fix is certainly what was meant.
    MachineApplicable,
    /// The fix is one of several possible intentions.
    MaybeIncorrect,
}

impl Applicability {
    /// The name in machine-readable output: `machine-applicable`.
    pub const fn text(self) -> &'static str {
        match self {
            Self::MachineApplicable => "machine-applicable",
            Self::MaybeIncorrect => "maybe-incorrect",
        }
    }
}

/// Replace `range` by `text`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TextEdit {
    pub range: TextRange,
    pub text: String,
}

impl TextEdit {
    pub fn new(range: TextRange, text: impl Into<String>) -> Self {
        Self { range, text: text.into() }
    }
}

impl Diagnostic {
    pub fn new(lint: &'static Lint, range: TextRange, message: impl Into<String>) -> Self {
        Self {
            lint,
            severity: lint.default,
            range,
            reported: None,
            message: message.into(),
            notes: Vec::new(),
            related: Vec::new(),
            fixes: Vec::new(),
            gate: None,
            unnecessary: false,
        }
    }

    /// Sets the position where ptxas reports the error.
    pub fn reported_at(mut self, offset: TextSize) -> Self {
        self.reported = Some(offset);
        self
    }

    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    /// Adds the rule of the lint's page as a note. Many lints have several messages; only those that the rule explains
    /// show it.
    pub fn rule(self) -> Self {
        let rule = self.lint.rule();
        let mut letters = rule.chars();
        let is_word = matches!((letters.next(), letters.next()),
            (Some(first), Some(second)) if first.is_uppercase() && !second.is_uppercase());
        // Notes begin in lower case, as messages do.
        self.note(if is_word { rule[..1].to_ascii_lowercase() + &rule[1..] } else { rule })
    }

    pub fn related(mut self, range: TextRange, message: impl Into<String>) -> Self {
        self.relate(range, message);
        self
    }

    /// Adds a fix that replaces one range, and that may not be what was meant.
    pub fn fix(self, title: impl Into<String>, range: TextRange, text: impl Into<String>) -> Self {
        let edits = vec![TextEdit { range, text: text.into() }];
        self.remedy(title, edits, Applicability::MaybeIncorrect)
    }

    /// Adds a fix that replaces one range, and that may be applied without asking.
    pub fn sure_fix(self, title: impl Into<String>, range: TextRange, text: impl Into<String>) -> Self {
        let edits = vec![TextEdit { range, text: text.into() }];
        self.remedy(title, edits, Applicability::MachineApplicable)
    }

    /// Adds a fix of several edits.
    pub fn remedy(
        mut self,
        title: impl Into<String>,
        edits: Vec<TextEdit>,
        applicability: Applicability,
    ) -> Self {
        self.offer(title, edits, applicability);
        self
    }

    /// Adds a fix of several edits to an existing finding.
    pub fn offer(&mut self, title: impl Into<String>, edits: Vec<TextEdit>, applicability: Applicability) {
        self.fixes.push(Fix { title: title.into(), edits, applicability });
    }

    /// Adds a related position to an existing finding.
    pub fn relate(&mut self, range: TextRange, message: impl Into<String>) {
        self.related.push(Related { range, message: message.into() });
    }

    pub fn unnecessary(mut self) -> Self {
        self.unnecessary = true;
        self
    }

    /// The code: `E0201`.
    pub fn code(&self) -> &'static str {
        self.lint.code
    }

    /// Moves all ranges by the offset of the item in the file.
    pub fn shifted(mut self, offset: TextSize) -> Self {
        self.range += offset;
        self.reported = self.reported.map(|reported| reported + offset);
        for related in &mut self.related {
            related.range += offset;
        }
        for edit in self.fixes.iter_mut().flat_map(|fix| &mut fix.edits) {
            edit.range += offset;
        }
        self
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[{}]: {}", self.severity.text(), self.lint.code, self.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static SAMPLE: Lint = Lint {
        code: "W9999",
        name: "sample",
        summary: "",
        default: Severity::Warning,
        since: "0.1.0",
        page: "",
    };

    #[test]
    fn the_last_level_counts() {
        let mut levels = Levels::default();
        assert_eq!(levels.level(&SAMPLE), Severity::Warning);
        levels.set(&SAMPLE, Severity::Error);
        levels.set(&SAMPLE, Severity::Allow);
        assert_eq!(levels.level(&SAMPLE), Severity::Allow);
    }

    #[test]
    fn shifting_moves_everything() {
        let range = TextRange::new(1.into(), 2.into());
        let shifted =
            Diagnostic::new(&SAMPLE, range, "x").related(range, "y").fix("z", range, "").shifted(10.into());
        let expected = TextRange::new(11.into(), 12.into());
        assert_eq!(shifted.range, expected);
        assert_eq!(shifted.related[0].range, expected);
        assert_eq!(shifted.fixes[0].edits[0].range, expected);
    }
}
