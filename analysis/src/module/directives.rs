//! Checks `.version`, `.target` and `.address_size`, and their order.

use ptx_isa::{Mismatch, PtxVersion, Sm};
use ptx_syntax::ItemKind;

use super::{
    ADDRESS_SIZE, ARCHITECTURE, DeclaredName, Finding, Header, MISSING_TARGET, MISSING_VERSION, Noticed,
    TARGET_NAME, UNKNOWN_TARGET, VERSION_GATE, find,
};
use crate::db::{Db, Options, SourceFile};
use crate::declaration::CONFLICTING_DIRECTIVES;
use crate::items::{Item, parts};
use crate::signature::{ItemDecl, TargetDecl, item_decl};
use crate::syntax_errors::UNEXPECTED;

/// Checks the header directives of a file, and those at places where none is allowed.
pub(super) fn check(db: &dyn Db, file: SourceFile, header: &Header, out: &mut Vec<Finding>) {
    let place = |ordinal: usize| DeclaredName { item: ordinal as u32, declarator: 0 };
    let real = parts(db, file).enumerate().filter(|(_, part)| part.kind(db) != ItemKind::Trivia);
    let mut state = State::Version;
    let mut at = None;
    for (ordinal, part) in real {
        at = Some(place(ordinal));
        match (part.kind(db), state) {
            (ItemKind::Version, State::Version) => {
                if has_line_marker(db, part.item(db)) {
                    missing_version(out, at).note = Some("a line marker precedes `.version`".to_owned());
                }
                version(header, at, out);
                state = State::Target;
            }
            (ItemKind::Target, State::Target | State::AddressSize) => {
                if state == State::Target && has_line_marker(db, part.item(db)) {
                    let message = "a line marker is not allowed between `.version` and `.target`";
                    find(out, &MISSING_TARGET, at, message.to_owned());
                }
                if let ItemDecl::Target(decl) = item_decl(db, part.item(db)) {
                    target(db, file, header, decl, at, out);
                }
                state = State::AddressSize;
            }
            (ItemKind::AddressSize, State::AddressSize) => {
                address_size(db, part.item(db), header, at, out);
                state = State::Rest;
            }
            (kind, State::Version) => {
                let finding = missing_version(out, at);
                if kind == ItemKind::Target {
                    finding.noticed = Noticed::NextItem;
                }
                return;
            }
            (_, State::Target) => {
                let message = "expected `.target` after `.version`";
                find(out, &MISSING_TARGET, at, message.to_owned());
                return;
            }
            (ItemKind::Version | ItemKind::Target | ItemKind::AddressSize, _) => {
                let message = "header directives must appear once, at the start, in the order `.version`, `.target`, `.address_size`";
                find(out, &UNEXPECTED, at, message.to_owned());
            }
            _ => state = State::Rest,
        }
    }
    match state {
        State::Version => {
            missing_version(out, at);
        }
        State::Target => {
            find(out, &MISSING_TARGET, at, "missing `.target`".to_owned()).note = Some(START.to_owned());
        }
        State::AddressSize | State::Rest => {}
    }
}

/// The directive that may come next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Version,
    Target,
    /// `.address_size`, another `.target`, or anything else.
    AddressSize,
    Rest,
}

const START: &str = "a module starts with `.version` and `.target`";

fn missing_version(out: &mut Vec<Finding>, at: Option<DeclaredName>) -> &mut Finding {
    let finding =
        find(out, &MISSING_VERSION, at, "expected `.version` at the start of the module".to_owned());
    finding.note = Some(START.to_owned());
    finding
}

/// Whether an item contains a `#line` before its first directive. Everywhere else, `#line` is ignored like a comment.
#[salsa::tracked(returns(copy))]
fn has_line_marker<'db>(db: &'db dyn Db, item: Item<'db>) -> bool {
    let mut lines = item.text(db).lines().map(str::trim_start);
    lines.find(|line| line.starts_with(['.', '#'])).is_some_and(|line| line.starts_with("#line"))
}

fn version(header: &Header, at: Option<DeclaredName>, out: &mut Vec<Finding>) {
    let message = match header.version {
        None => "invalid PTX ISA version; expected a version such as `9.0`".to_owned(),
        Some(found) if found > PtxVersion::NEWEST => {
            format!("PTX ISA {found} is newer than {}, the newest known version", PtxVersion::NEWEST)
        }
        Some(found) if !found.is_published() => format!("PTX ISA {found} does not exist"),
        Some(_) => return,
    };
    let lint = if header.version.is_none() { &MISSING_VERSION } else { &UNKNOWN_TARGET };
    find(out, lint, at, message);
}

/// The version that introduced `.address_size`.
const ADDRESS_SIZES: PtxVersion = PtxVersion::new(2, 3);

fn address_size(
    db: &dyn Db,
    item: Item<'_>,
    header: &Header,
    at: Option<DeclaredName>,
    out: &mut Vec<Finding>,
) {
    if header.version.is_some_and(|version| version < ADDRESS_SIZES) {
        find(out, &VERSION_GATE, at, format!("`.address_size` requires PTX ISA {ADDRESS_SIZES}"));
    }
    let ItemDecl::AddressSize(size) = item_decl(db, item) else { return };
    let message = match size {
        Some(64) => return,
        Some(_) => "32-bit addresses are no longer supported",
        None => "the address size must be 64",
    };
    find(out, &ADDRESS_SIZE, at, message.to_owned()).note =
        Some("assemblers generate code only for 64-bit addresses".to_owned());
}

/// Warns about the name of a target. ptxas is lenient: it treats `sm_90c` as sm_90, and code for sm_101 runs only on
/// its successor.
fn target_name(header: &Header, sm: Sm, spelling: &str, at: Option<DeclaredName>, out: &mut Vec<Finding>) {
    if sm.current() != sm && header.version_or_newest() >= sm.current().since() {
        let message = format!("{sm} was renamed to {} in PTX ISA {}", sm.current(), sm.current().since());
        let finding = find(out, &TARGET_NAME, at, message);
        finding.note =
            Some(format!("assemblers of that version do not generate code for an architecture named {sm}"));
    } else if spelling.starts_with("compute_") {
        let message = format!("`{spelling}` is treated as `{sm}`");
        find(out, &TARGET_NAME, at, message).note = Some(
            "`compute_NN` names a virtual architecture and is meant for the command line only".to_owned(),
        );
    } else if spelling != sm.to_string() {
        let message = format!("`{spelling}` is treated as `{sm}`");
        find(out, &TARGET_NAME, at, message).note =
            Some("the only suffixes of a target are `a` and `f`; others are ignored".to_owned());
    }
}

const TEXTURE_MODES: [&str; 2] = ["texmode_unified", "texmode_independent"];

fn target(
    db: &dyn Db,
    file: SourceFile,
    header: &Header,
    decl: &TargetDecl,
    at: Option<DeclaredName>,
    out: &mut Vec<Finding>,
) {
    if !decl.starts_with_target {
        let message = match decl.options.first() {
            Some(word) if decl.sm.is_none() && word.bytes().any(|byte| byte.is_ascii_digit()) => {
                format!("unknown target `{word}`, expected a target such as `sm_90`")
            }
            _ => "`.target` must name a target such as `sm_90` first".to_owned(),
        };
        find(out, &UNKNOWN_TARGET, at, message);
        return;
    }
    match decl.sm {
        None => {
            find(out, &UNKNOWN_TARGET, at, "invalid target".to_owned());
        }
        Some(sm) if !sm.is_known() => {
            find(out, &UNKNOWN_TARGET, at, format!("unknown target `{sm}`"));
        }
        Some(sm) => {
            if let Some(architecture) = Options::get(db).architecture(db)
                && let Err(mismatch) = sm.runs_on(architecture)
            {
                let message = format!("code for {sm} does not run on {architecture}");
                let finding = find(out, &ARCHITECTURE, at, message);
                finding.note = Some(match mismatch {
                    Mismatch::Older => {
                        format!("{architecture} is older and lacks features that {sm} code can use")
                    }
                    Mismatch::OneArchitecture => format!("code for {sm} runs only on that architecture"),
                    Mismatch::Family => format!("code for {sm} runs only on later members of its family"),
                });
            }
            if let Some(version) = header.version
                && version < sm.since()
            {
                let message =
                    format!("{sm} requires PTX ISA {}, but the module declares {version}", sm.since());
                find(out, &UNKNOWN_TARGET, at, message);
            } else {
                target_name(header, sm, &decl.spelling, at, out);
            }
        }
    }
    for option in &decl.options {
        match option.as_str() {
            mode if TEXTURE_MODES.contains(&mode) => {}
            "debug" => {
                let mut sections = parts(db, file).filter(|part| part.kind(db) == ItemKind::Section);
                if !sections.any(|part| *item_decl(db, part.item(db)) == ItemDecl::DebugInfo) {
                    let message =
                        "`.target` has option `debug`, but the module has no `.section .debug_info`"
                            .to_owned();
                    find(out, &CONFLICTING_DIRECTIVES, at, message);
                }
            }
            "map_f64_to_f32" if decl.sm.is_some_and(|sm| !sm.has_f64()) => {}
            "map_f64_to_f32" => {
                let message = "`map_f64_to_f32` is only for targets without `.f64` (before sm_13)".to_owned();
                find(out, &CONFLICTING_DIRECTIVES, at, message);
            }
            word => {
                find(out, &UNKNOWN_TARGET, at, format!("`{word}` is not a target or a target option"));
            }
        }
    }
    if TEXTURE_MODES.iter().all(|mode| decl.options.iter().any(|option| option == mode)) {
        let message = "`texmode_unified` and `texmode_independent` cannot be combined".to_owned();
        find(out, &CONFLICTING_DIRECTIVES, at, message);
    }
}
