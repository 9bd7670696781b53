//! PTX embedded in other languages: converts the results of the analysis to the host text.

use std::collections::BTreeSet;

use ptx_analysis::ide::{self, Diagnostic, Fix, Related, TextEdit};
use ptx_analysis::{Database, SourceFile};
use ptx_embed::{Document, Snippet};
use text_size::{TextRange, TextSize};

/// Errors that the analysis may report in inline assembly only because it does not see the names that the host's
/// compiler declares.
const OUTSIDE: [&str; 4] = ["E0115", "E0204", "E0205", "E0207"];

/// Findings about features that a target or PTX version lacks. Unless the settings name the target, the code may be
/// meant for any target.
const GATES: [&str; 6] = ["E0112", "E0401", "E0402", "E0405", "E0603", "W0521"];

/// Warnings that are right whatever code precedes and follows the inline assembly.
const WARNINGS: [&str; 11] =
    ["W0501", "W0502", "W0503", "W0504", "W0506", "W0507", "W0509", "W0510", "W0521", "W0522", "W0524"];

/// Errors about undeclared registers and names, as which a placeholder without an operand is reported.
const UNDECLARED: [&str; 2] = ["E0202", "E0204"];

/// Errors about names that another snippet of the same function may declare.
const DECLARED: [&str; 2] = ["E0202", "E0203"];

/// The findings in a snippet, with ranges relative to its start. `has_target` says whether the settings name the
/// target.
pub fn findings(db: &Database, file: SourceFile, document: &Document, has_target: bool) -> Vec<Diagnostic> {
    if document.is_opaque {
        return Vec::new();
    }
    let found = ide::diagnostics(db, file).into_iter();
    found.filter(|d| is_meant(d, document, has_target)).filter_map(|d| in_host(d, document)).collect()
}

fn is_meant(d: &Diagnostic, document: &Document, has_target: bool) -> bool {
    if document.is_module {
        return true;
    }
    let code = d.code();
    if document.lacks_operand(&document.text()[d.range]) {
        return UNDECLARED.contains(&code);
    }
    let is_certain = !OUTSIDE.contains(&code) && (!code.starts_with('W') || WARNINGS.contains(&code));
    let is_gate = d.gate.is_some() || GATES.contains(&code);
    // A file often has functions for 32-bit hosts next to those for 64-bit hosts.
    let is_narrow = code == "E0306" && document.text()[d.range].starts_with("cvta");
    let has_value = code == "W0507" && document.is_input(&document.text()[d.range]);
    let may_be_meant = !is_gate || has_target;
    is_certain && may_be_meant && !is_narrow && !has_value && !document.depends_on_unknown(d.range)
}

/// A finding converted to the host text. `None` if the finding is about the text that was added around the snippet.
fn in_host(mut d: Diagnostic, document: &Document) -> Option<Diagnostic> {
    if let Some((expected, _)) = d.message.split_once(", found `")
        && ends_at(d.range, document)
    {
        d.message = format!("{expected}, found the end of the assembly");
    }
    let name = &document.text()[d.range];
    if document.lacks_operand(name) {
        let count = document.operand_count();
        let operands = if count == 1 { "operand" } else { "operands" };
        d.message = format!("`{name}` does not exist: the assembly has {count} {operands}");
        d.notes = vec!["operands are numbered from 0, outputs first".to_owned()];
        d.fixes.clear();
    }
    d.range = document.to_host(d.range)?;
    d.reported = None;
    d.message = document.message(&d.message);
    d.notes.iter_mut().for_each(|note| *note = document.message(note));
    let related = |r: Related| {
        Some(Related { range: document.to_host(r.range)?, message: document.message(&r.message) })
    };
    d.related = d.related.into_iter().filter_map(related).collect();
    let fix = |fix: Fix| {
        let edits: Option<_> = fix.edits.iter().map(|edit| edit_in_host(edit, document)).collect();
        Some(Fix { title: document.message(&fix.title), edits: edits?, ..fix })
    };
    d.fixes = d.fixes.into_iter().filter_map(fix).collect();
    Some(d)
}

/// Whether the snippet ends right after a range or before it: the next token belongs to the text that was added around
/// the snippet.
fn ends_at(range: TextRange, document: &Document) -> bool {
    let rest = &document.text()[range.start().into()..];
    let next = range.start() + TextSize::of(rest) - TextSize::of(rest.trim_start());
    !rest.trim_start().is_empty() && document.to_host(TextRange::at(next, TextSize::new(1))).is_none()
}

/// Replaces the line numbers of the module in a text with those of the host text. `line` gives the line of a host
/// offset. Lines that were added around the snippet have no number in the host text.
pub fn with_host_lines(text: &str, document: &Document, line: impl Fn(TextSize) -> u32) -> String {
    const WORD: &str = "line ";
    let lines: Vec<&str> = document.text().split_inclusive('\n').collect();
    let in_host = |number: usize| {
        let own = lines.get(number.checked_sub(1)?)?;
        let start: usize = lines[..number - 1].iter().map(|line| line.len()).sum();
        let blanks = own.len() - own.trim_start().len();
        let first = TextRange::at(TextSize::new((start + blanks) as u32), TextSize::new(1));
        Some(line(document.to_host(first)?.start()))
    };
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(WORD) {
        let (before, after) = rest.split_at(at + WORD.len());
        let digits = after.bytes().take_while(u8::is_ascii_digit).count();
        rest = &after[digits..];
        let Ok(number) = after[..digits].parse() else {
            out += before;
            continue;
        };
        match in_host(number) {
            Some(number) => out += &format!("{before}{number}"),
            None => {
                let before = &before[..at];
                match before.strip_suffix(" (") {
                    Some(name) => {
                        out += name;
                        rest = rest.strip_prefix(')').unwrap_or(rest);
                    }
                    None => out += before.strip_suffix(" on ").unwrap_or(before),
                }
            }
        }
    }
    out + rest
}

/// An edit of the module as an edit of the host text. `None` if the host text cannot express it.
pub fn edit_in_host(edit: &TextEdit, document: &Document) -> Option<TextEdit> {
    Some(TextEdit::new(document.to_host(edit.range)?, document.written(&edit.text)?))
}

/// The findings in all snippets of a text, at positions of the text.
///
/// `found` holds the findings of each snippet. A name that a snippet uses without declaring it is not an error if
/// another snippet declares it outside of braces. `guarded` says whether an offset is compiled only for some targets,
/// perhaps not for the chosen one.
pub fn all<'a>(
    snippets: &'a [Snippet],
    found: impl Iterator<Item = &'a [Diagnostic]> + Clone,
    guarded: impl Fn(TextSize) -> bool,
) -> Vec<Diagnostic> {
    let is_open = |d: &Diagnostic| DECLARED.contains(&d.code());
    let needs_names = found.clone().flatten().any(is_open);
    let names: BTreeSet<&str> = match needs_names {
        true => snippets.iter().flat_map(|snippet| snippet.document.open_names()).collect(),
        false => BTreeSet::new(),
    };
    let mut all = Vec::new();
    for (snippet, found) in snippets.iter().zip(found) {
        let start = snippet.range.start();
        for d in found {
            let name =
                || snippet.document.to_module(d.range.start()).map(|at| word_at(snippet.document.text(), at));
            let is_elsewhere = is_open(d) && name().is_some_and(|name| names.contains(name));
            let is_other_target = !snippet.document.is_module
                && (d.gate.is_some() || GATES.contains(&d.code()))
                && guarded(start);
            if !is_elsewhere && !is_other_target {
                all.push(d.clone().shifted(start));
            }
        }
    }
    all
}

/// The name that starts at an offset.
fn word_at(text: &str, at: TextSize) -> &str {
    let rest = &text[at.into()..];
    let end = rest.find(|c: char| !(matches!(c, '%' | '$' | '_') || c.is_ascii_alphanumeric()));
    &rest[..end.unwrap_or(rest.len())]
}

/// Whether an offset lies between an `#if` that tests the architecture and its `#endif`.
pub fn is_guarded(text: &str, at: TextSize) -> bool {
    let mut depth = 0;
    for line in text[..at.into()].lines().rev() {
        let Some(directive) = line.trim_start().strip_prefix('#').map(str::trim_start) else { continue };
        if directive.starts_with("endif") {
            depth += 1;
        } else if directive.starts_with("if") && depth > 0 {
            depth -= 1;
        } else if depth == 0
            && (directive.starts_with("if") || directive.starts_with("el"))
            && (directive.contains("ARCH") || directive.contains("SM") || directive.starts_with("else"))
        {
            return true;
        }
    }
    false
}

/// Converts a range of the host text to the module of a snippet.
pub fn range_in_module(range: TextRange, snippet: &Snippet) -> Option<TextRange> {
    let inside = |offset: TextSize| snippet.document.to_module(offset.checked_sub(snippet.range.start())?);
    let (start, end) = (inside(range.start())?, inside(range.end())?);
    (start <= end).then(|| TextRange::new(start, end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ptx_embed::{Language, scan};

    fn found(language: Language, text: &str, has_target: bool) -> Vec<String> {
        let scan = scan(language, text);
        let db = Database::default();
        let each: Vec<Vec<Diagnostic>> = scan
            .snippets()
            .iter()
            .map(|s| findings(&db, db.add_file(s.document.text()), &s.document, has_target))
            .collect();
        let all = all(scan.snippets(), each.iter().map(Vec::as_slice), |at| is_guarded(text, at));
        all.iter().map(|d| format!("{} `{}` {}", d.code(), &text[d.range], d.message)).collect()
    }

    fn cuda(text: &str) -> Vec<String> {
        found(Language::Cuda, text, false)
    }

    #[test]
    fn correct_assembly() {
        for text in [
            r#"asm("add.f32 %0, %0, %1;" : "=f"(x) : "f"(y), "0"(x));"#,
            r#"asm volatile("mov.u32 %0, %laneid;" : "=r"(x)); asm("mov.u64 %0, %%clock64;" : "=l"(t));"#,
            r#"asm("{ .reg .pred p; setp.ne.b32 p, %1, 0; selp.f32 %0, %2, %0, p; }" : "+f"(x) : "r"(c), "f"(y));"#,
            r#"asm("add.f16 %0, %1, %2;" : "=h"(a) : "h"(b), "h"(c)); asm("mov.b64 %0, {%1, %2};" : "=l"(a) : "r"(b), "r"(c));"#,
            r#"asm("ld.global.u32 %0, [table];" : "=r"(x)); asm("membar.gl;"); asm volatile("bar.sync %0;" :: "r"(1));"#,
            r#"asm("cp.async.ca.shared.global [%0], [%1], %2;" :: "r"(s), "l"(g), "n"(SIZE));"#,
            r#"asm("wgmma.fence.sync.aligned;"); asm("tcgen05.fence::before_thread_sync;");"#,
            r#"asm(".reg .pred q;"); asm("setp.eq.u32 q, %0, 1;" :: "r"(x)); asm("@q trap;");"#,
            r#"asm("{"); asm(".reg .u32 t;"); asm("mov.u32 t, 1; }");"#,
            r#"asm("st.shared.v4.f32 [%0+%1], {%2,%2,%2,%2};" :: "r"(s), "n"(16 * I), "f"(v) : "memory");"#,
            r#"asm("cvta.to.param.u32 %0, %1;" : "=r"(x) : "r"(p));"#,
            r#"asm("setmaxnreg.inc.sync.aligned.u32 %0;" :: "n"(N));"#,
        ] {
            assert_eq!(cuda(text), [] as [String; 0], "{text}");
        }
    }

    #[test]
    fn faults_are_found_where_they_stand() {
        let one = |text: &str, start: &str| {
            let found = cuda(text);
            assert!(found.len() == 1 && found[0].starts_with(start), "{text}: {found:?}");
        };
        one(r#"asm("add.u64 %0, %1, 1;" : "=r"(x) : "l"(y));"#, "E0303 `%0` ");
        one(r#"asm("add.u32 %0, %1, 1;" : "=r"(x) : "f"(y));"#, "E0303 `%1` ");
        one(r#"asm("mvo.u32\t%0, 1;" : "=r"(x));"#, "E0210 `mvo` ");
        one(r#"asm("add.u32 %0, %1, %%r7;" : "=r"(x) : "r"(y));"#, "E0202 `%%r7` ");
        one(
            r#"asm("add.s32 %0, %1, %5;" : "=r"(b) : "r"(b));"#,
            "E0202 `%5` `%5` does not exist: the assembly has 2 operands",
        );
        one(r#"asm("ld.global.u32 %0, [%2];" : "=r"(b) : "l"(p));"#, "E0202 `%2` `%2` does not exist");
        one(
            r#"asm("{ .reg .pred p; setp.eq.u32 p, %0, 0; @q add.u32 %0, %0, 1; }" : "+r"(b));"#,
            "E0202 `q` ",
        );
        one(r#"asm("add.u32 %0, %0, q;" : "+r"(b));"#, "E0202 `q` ");
        one("asm(\"add.u32 %0, \"\n \"%0, 1\" : \"+r\"(x));", "E0005 ");
        let rust = r#"asm!("add.u64 {x}, {x}, 1;", x = inout(reg32) x)"#;
        let all = found(Language::Rust, rust, false);
        assert!(all[0].starts_with("E0303 `{x}` ") && !all[0].contains('$'), "{all:?}");
        let python = r#"tl.inline_asm_elementwise("add.u32 $0, $1, $5;", "=r,r", [x])"#;
        assert!(
            found(Language::Python, python, false)[0].starts_with("E0202 `$5` `$5` does not exist"),
            "{python}"
        );
        let python = r#"tl.inline_asm_elementwise("add.u32 $0, $1;", "=r,r", [x])"#;
        assert!(found(Language::Python, python, false)[0].starts_with("E0301 "), "{python}");
    }

    #[test]
    fn the_end_of_the_assembly_is_no_brace() {
        let expected = "E0005 `` expected `;`, found the end of the assembly";
        assert_eq!(cuda(r#"asm("bar.sync 0");"#), [expected]);
        assert_eq!(cuda(r#"asm("mov.u32 %0, 1" : "=r"(x));"#), [expected]);
        let inside = cuda(r#"asm("{ mov.u32 %0, 1 }" : "=r"(x));"#);
        assert_eq!(inside, ["E0005 `` expected `;`, found `}`"]);
    }

    #[test]
    fn lines_are_those_of_the_host() {
        let text = "\n\nasm(\"{\\n\"\n    \".reg .pred p;\\n\"\n    \"mov.u32 %0, 1; }\" : \"=r\"(x));";
        let scan = scan(Language::Cuda, text);
        let snippet = &scan.snippets()[0];
        let line = |at: TextSize| {
            let before = &text[..(snippet.range.start() + at).into()];
            before.matches('\n').count() as u32 + 1
        };
        let module = snippet.document.text();
        let own = |needle: &str| module[..module.find(needle).unwrap()].matches('\n').count() + 1;
        let (declared, moved, own) = (own(".reg .pred"), own("mov.u32"), own(".version"));
        let about =
            format!("declared on line {declared}; `mov` (line {moved}), `x` (line {own}), LD on line {own}.");
        let expected = "declared on line 4; `mov` (line 5), `x`, LD.";
        assert_eq!(with_host_lines(&about, &snippet.document, line), expected);
    }

    #[test]
    fn a_chosen_target_counts_where_nobody_asks_for_another() {
        let text = "asm(\"wgmma.fence.sync.aligned;\");\n";
        let scan_for = |text: &str| {
            let mut db = Database::default();
            db.set_target_override(ptx_isa::Sm::parse("sm_80"));
            let scan = scan(Language::Cuda, text);
            let snippet = &scan.snippets()[0];
            let found = findings(&db, db.add_file(snippet.document.text()), &snippet.document, true);
            all(scan.snippets(), [found.as_slice()].into_iter(), |at| is_guarded(text, at)).len()
        };
        assert_eq!(scan_for(text), 1);
        assert_eq!(scan_for(&format!("#if __CUDA_ARCH__ >= 900\n{text}#endif\n")), 0);
        assert_eq!(scan_for(&format!("#if __CUDA_ARCH__ >= 900\n#endif\n{text}")), 1);
    }

    #[test]
    fn whole_modules() {
        let text = "const char *k = R\"(.version 8.0\n.target sm_80\n.entry k() { mov.u33 %r1, 0; }\n)\";";
        let found = found(Language::Cpp, text, false);
        assert!(found.iter().any(|d| d.contains("u33")), "{found:?}");
    }
}
