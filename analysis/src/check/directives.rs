//! Directives between the header of a function and its body.

use ptx_isa::{Directive, Gate, PtxVersion};
use ptx_syntax::flat::Node;
use text_size::TextSize;

use super::Gates;
use super::declarations::REMOVED_FORM;
use crate::constant;
use crate::declaration::{self, BAD_DECLARATION, BAD_SIZE, CONFLICTING_DIRECTIVES, Words};
use crate::declare_lint;
use crate::diagnostic::{Diagnostic, Findings};
use crate::externals;
use crate::heading::{FunctionDirective, Heading};
use crate::occupancy;
use crate::text::with_line;

declare_lint! {
    /// A directive is ignored because another one is missing or conflicts with it.
    pub(crate) IGNORED_DIRECTIVE = "W0503" "ignored-directive", Warning, since "0.1.0"
}

/// The number of registers that a callee can promise to preserve; the caller must save the lower ones.
const MAX_PRESERVED: u32 = 239;
/// The number of predicates and barrier registers that a callee can promise to preserve.
const MAX_PRESERVED_CONTROL: u32 = 11;

/// By name of a directive: the maximum number of arguments, and whether it applies only to kernels.
fn shape(word: &str) -> Option<(usize, bool)> {
    Some(match word {
        ".maxntid" | ".reqntid" | ".reqnctapercluster" => (3, true),
        ".minnctapersm" | ".maxnctapersm" | ".maxnreg" | ".maxclusterrank" => (1, true),
        ".explicitcluster" | ".blocksareclusters" => (0, true),
        ".noreturn" => (0, false),
        ".abi_preserve" | ".abi_preserve_control" => (1, false),
        _ => return None,
    })
}

/// Checks the directives of a function or a prototype. Errors in their combination are mostly reported at `end`.
pub(crate) fn check(heading: &Heading<'_>, gates: &Gates, text: &str, end: TextSize, out: &mut Findings) {
    let (is_entry, has_body) = (heading.is_entry(text), heading.body.is_some());
    for &list in &heading.attributes {
        attributes(list, gates, text, out);
    }
    for pragma in heading.pragmas.iter().filter(|_| !is_entry && has_body) {
        let message = "`.pragma` is not allowed before the body of a function; put it inside the body";
        out.push(Diagnostic::new(&BAD_DECLARATION, pragma.text_range(), message));
    }
    declaration_gates(heading, is_entry, gates, text, out);
    let all = &heading.directives;
    let mut preserved: Vec<&FunctionDirective<'_>> = Vec::new();
    for (index, found) in all.iter().enumerate() {
        let Some((most, of_kernels)) = shape(found.word) else { continue };
        if let Some(&(range, _)) = found.arguments.get(most) {
            let message = format!("`{}` takes at most {most} arguments", found.word);
            out.push(Diagnostic::new(&BAD_DECLARATION, range, message));
        }
        if of_kernels != is_entry {
            let owner = if of_kernels { "kernels" } else { "device functions" };
            let message = format!("`{}` applies only to {owner}", found.word);
            let title = format!("remove `{}`", found.word);
            let place = with_line(text, found.whole);
            out.push(Diagnostic::new(&BAD_DECLARATION, found.range, message).fix(title, place, ""));
            continue;
        }
        if let Some(directive) = Directive::parse(&found.word[1..]) {
            out.extend(gates.check(&directive.gate, found.word, found.range, ""));
        }
        values(found, gates, out);
        if found.word == ".noreturn" && heading.has_results() {
            let message = "a function that returns a value cannot be `.noreturn`";
            out.push(Diagnostic::new(&CONFLICTING_DIRECTIVES, found.range, message));
        }
        if found.word == ".noreturn" && index > 0 {
            let message = "`.noreturn` must appear once, before the other directives";
            out.push(Diagnostic::new(&BAD_DECLARATION, found.range, message));
        }
        if found.word.starts_with(".abi") {
            if let Some(first) = preserved.iter().find(|first| first.word == found.word) {
                let message = format!("duplicate `{}`", found.word);
                let diagnostic = Diagnostic::new(&CONFLICTING_DIRECTIVES, found.range, message);
                out.push(diagnostic.related(first.range, "first used here"));
            }
            preserved.push(found);
        }
    }
    if is_entry {
        together(all, end, out);
        crowded(all, gates, out);
        if !has_body && let Some(first) = all.first() {
            let message = "directives are not allowed on a kernel declaration without a body";
            out.push(Diagnostic::new(&BAD_DECLARATION, first.range, message));
        }
    }
}

/// Checks forms of function declarations that were introduced after functions.
fn declaration_gates(heading: &Heading<'_>, is_entry: bool, gates: &Gates, text: &str, out: &mut Findings) {
    for &range in &heading.words {
        match &text[range] {
            ".weak" => out.extend(gates.check(&Gate::since(3, 1, 20), ".weak", range, "")),
            ".entry" if is_entry && heading.body.is_none() => {
                let what = "a kernel declaration without a body".to_owned();
                out.extend(gates.check_phrase(&Gate::since(3, 0, 10), what, range));
            }
            _ => {}
        }
    }
}

/// `.attribute(.unified(1, 2))` of a device function.
fn attributes(list: Node<'_>, gates: &Gates, text: &str, out: &mut Findings) {
    let mut words = Words::default();
    declaration::attributes(list, text, &mut words, out);
    if let Some(range) = words.unified {
        out.extend(gates.check(&Gate::since(8, 0, 90), ".attribute(.unified)", range, ""));
        let message = "`.unified` functions are shared between modules and require separate compilation";
        out.push(externals::report(range, message.to_owned()));
    }
    if let Some(range) = words.managed {
        let message = "`.unified` is the only attribute of a function";
        out.push(Diagnostic::new(&BAD_DECLARATION, range, message));
    }
}

/// The values of a directive's arguments.
fn values(found: &FunctionDirective<'_>, gates: &Gates, out: &mut Findings) {
    let word = found.word;
    let positive = matches!(word, ".maxntid" | ".reqntid" | ".minnctapersm" | ".maxnctapersm" | ".maxnreg");
    let most = match word {
        ".abi_preserve" => MAX_PRESERVED,
        ".abi_preserve_control" => MAX_PRESERVED_CONTROL,
        _ => u32::MAX,
    };
    for &(range, value) in &found.arguments {
        let Some(value) = value else { continue };
        let bits = constant::narrow(value);
        if bits == Some(0) && positive {
            out.push(Diagnostic::new(&BAD_SIZE, range, format!("`{word}` must be at least 1")));
        } else if bits.is_none_or(|bits| bits > most) {
            out.push(Diagnostic::new(
                &BAD_SIZE,
                range,
                format!("`{word}` must be at most {most}, found {value}"),
            ));
        }
    }
    if word == ".maxnctapersm" && gates.version >= PtxVersion::new(2, 1) {
        let message = "`.maxnctapersm` was removed in PTX ISA 2.1";
        let diagnostic = Diagnostic::new(&REMOVED_FORM, found.range, message);
        out.push(diagnostic.fix("change to `.minnctapersm`", found.range, ".minnctapersm"));
    }
}

/// Reports a request for more CTAs than a multiprocessor can hold.
fn crowded(all: &[FunctionDirective<'_>], gates: &Gates, out: &mut Findings) {
    let find = |word: &str| all.iter().find(|found| found.word == word);
    let (Some(wanted), Some(block)) = (find(".minnctapersm"), find(".maxntid").or(find(".reqntid"))) else {
        return;
    };
    let Some(blocks) = wanted.value(0) else { return };
    let threads = (0..block.arguments.len()).try_fold(1u32, |n, at| n.checked_mul(block.value(at)?));
    let (Some(threads), Some(limits)) = (threads, occupancy::limits(gates.target)) else { return };
    let warps = threads.div_ceil(occupancy::WARP);
    let most = limits.blocks.min(limits.warps / warps.max(1));
    if gates.is_compiled() && blocks > most {
        let message = format!(
            "`.minnctapersm {blocks}` is ignored: at most {most} {} of this size fit{} on a multiprocessor of {}",
            if most == 1 { "CTA" } else { "CTAs" },
            if most == 1 { "s" } else { "" },
            gates.target
        );
        let note = format!(
            "a multiprocessor holds {} CTAs and {} warps; a CTA of this kernel has {warps} warps",
            limits.blocks, limits.warps
        );
        out.push(Diagnostic::new(&IGNORED_DIRECTIVE, wanted.range, message).note(note));
    }
}

/// Checks directives that exclude or require each other.
fn together(all: &[FunctionDirective<'_>], end: TextSize, out: &mut Findings) {
    let find = |word: &str| all.iter().find(|found| found.word == word);
    for (bound, exact) in [(".maxntid", ".reqntid"), (".maxclusterrank", ".reqnctapercluster")] {
        if let (Some(one), Some(other)) = (find(bound), find(exact)) {
            let (first, second) =
                if one.range.start() < other.range.start() { (one, other) } else { (other, one) };
            let message = format!("`{}` and `{}` cannot be combined", first.word, second.word);
            let is_late = first.word.ends_with("ntid");
            let of = if is_late { "CTA" } else { "cluster" };
            let diagnostic = Diagnostic::new(&CONFLICTING_DIRECTIVES, second.range, message)
                .note(format!("`{exact}` gives the exact size of a {of}, `{bound}` an upper bound"))
                .related(first.range, "conflicts with this");
            out.push(if is_late { diagnostic.reported_at(end) } else { diagnostic });
        }
    }
    if let Some(found) = find(".blocksareclusters") {
        // A cluster without CTAs does not count.
        let has = |word: &str| find(word).is_some_and(|found| found.value(0) != Some(0));
        let missing: Vec<&str> =
            [".reqntid", ".reqnctapercluster"].into_iter().filter(|word| !has(word)).collect();
        if !missing.is_empty() {
            let message = format!("`.blocksareclusters` requires `{}`", missing.join("` and `"));
            out.push(Diagnostic::new(&CONFLICTING_DIRECTIVES, found.range, message).reported_at(end));
        }
    }
    let blocks = find(".minnctapersm").or(find(".maxnctapersm"));
    if let Some(found) = blocks
        && find(".maxntid").is_none()
        && find(".reqntid").is_none()
    {
        let message = format!("`{}` is ignored without `.maxntid` or `.reqntid`", found.word);
        let diagnostic = Diagnostic::new(&IGNORED_DIRECTIVE, found.range, message).reported_at(end);
        out.push(
            diagnostic.note("the number of CTAs per multiprocessor depends on the number of threads per CTA"),
        );
    }
}
