//! Joins several inputs to one module, as ptxas does.
//!
//! Each input is checked by itself first, with its own header. The joined module has the newest version and the newest
//! target of the inputs. No line moves: headers and dropped declarations become blank.
//!
//! A function without linkage belongs to its input, so functions of other inputs may have its name; it is renamed. Variables
//! without linkage that have the same name and type are one variable, as with ptxas. ptxas also makes one variable of
//! variables that differ, which overlap then or lack an initial value; they are refused here.

use std::ops::Range;

use ptx_analysis::ide::{self, Diagnostic, Severity};
use ptx_analysis::items::items;
use ptx_analysis::module::header;
use ptx_analysis::signature::{ItemDecl, VariableDecl, item_decl};
use ptx_analysis::{Database, SourceFile};
use ptx_backend::Switches;
use ptx_backend::input::Linkage;
use ptx_syntax::SyntaxKind::IDENT;
use ptx_syntax::{Token, lex, tokens};
use rustc_hash::FxHashMap;

use super::log::{Kind, Log};
use super::options::Options;
use super::source::{Header, Text};
use super::{Task, database, too_old};
use crate::input::Input;

/// Lints about names that another input may define.
const ABOUT_OTHER_INPUTS: [&str; 3] = ["ignored-extern", "separate-compilation", "undefined-function"];

/// Whether a finding of the joined module is not one of its inputs.
pub(super) fn is_of_all(finding: &Diagnostic) -> bool {
    finding.severity == Severity::Error || ABOUT_OTHER_INPUTS.contains(&finding.lint.name)
}

/// An input and its changes.
struct Part {
    name: String,
    text: String,
    header: Header,
    definitions: Vec<Definition>,
    /// Ranges and the text to write there. They do not overlap.
    edits: Vec<(Range<usize>, String)>,
    /// Names, and those that replace them.
    renamed: FxHashMap<String, String>,
}

/// A function or variable that an input declares.
struct Definition {
    name: String,
    linkage: Linkage,
    /// The range of the whole item.
    range: Range<usize>,
    kind: What,
}

enum What {
    /// Whether it has a body.
    Function(bool),
    /// The declaration, and whether its item declares no other variable.
    Variable(VariableDecl, bool),
}

/// Checks the inputs and joins them. The error is the exit status.
pub(super) fn joined(options: &Options, inputs: Vec<Input>, log: &mut Log) -> Result<Text, u8> {
    if inputs.len() < 2 {
        return Ok(inputs
            .into_iter()
            .next()
            .map_or_else(Text::default, |input| Text::of(input.name, input.text)));
    }
    let db = database(options, Switches::default());
    let files: Vec<SourceFile> = inputs.iter().map(|input| db.add_frozen_file(input.text.clone())).collect();
    let mut failed = false;
    for (input, &file) in inputs.iter().zip(&files) {
        let mut found = ide::diagnostics_for(&db, file, &options.entries);
        found.retain(|d| !ABOUT_OTHER_INPUTS.contains(&d.lint.name));
        let text = Text::of(input.name.clone(), input.text.clone());
        failed |= Task { options, text, db: &db, file }.report(&found, log);
    }
    let mut parts: Vec<Part> =
        inputs.into_iter().zip(&files).map(|(input, &file)| Part::new(&db, file, input)).collect();
    failed |= conflicting(&db, &files, &parts, log);
    if failed {
        return Err(log.aborted());
    }
    let last = files.last().and_then(|&file| header(&*db, file).version);
    if let Some(status) = too_old(options, last, log) {
        return Err(status);
    }
    join_headers(&db, &files, &mut parts);
    rename_functions(&mut parts);
    if let Err((name, line, message)) = merge_variables(&mut parts) {
        log.say_at(&name, line, Kind::Error, message);
        return Err(log.aborted());
    }
    let mut text = Text::default();
    for part in parts {
        let (name, edited) = part.edited();
        text.add(name, &edited);
    }
    Ok(text)
}

impl Part {
    fn new(db: &Database, file: SourceFile, input: Input) -> Self {
        let Input { name, text, .. } = input;
        let mut definitions = Vec::new();
        for &item in items(db, file) {
            let range = item.range(db);
            let range = usize::from(range.start()) + leading(&text[range])..usize::from(range.end());
            match item_decl(db, item) {
                ItemDecl::Function(function) => {
                    let signature = &function.signature;
                    definitions.push(Definition {
                        name: signature.name.clone(),
                        linkage: if signature.entry { Linkage::Visible } else { signature.linkage },
                        range,
                        kind: What::Function(function.has_body),
                    });
                }
                ItemDecl::Variables(variables) => {
                    definitions.extend(variables.iter().map(|declared| Definition {
                        name: declared.variable.name.clone(),
                        linkage: declared.variable.linkage,
                        range: range.clone(),
                        kind: What::Variable(declared.clone(), variables.len() == 1),
                    }));
                }
                _ => {}
            }
        }
        let header = Header::of(&text);
        Part { name, text, header, definitions, edits: Vec::new(), renamed: FxHashMap::default() }
    }

    fn line(&self, at: usize) -> u32 {
        1 + memchr::memchr_iter(b'\n', &self.text.as_bytes()[..at]).count() as u32
    }

    /// Replaces a range and keeps its number of lines.
    fn replace(&mut self, range: Range<usize>, text: &str) {
        let lines = |text: &str| memchr::memchr_iter(b'\n', text.as_bytes()).count();
        let missing = lines(&self.text[range.clone()]) - lines(text);
        self.edits.push((range, format!("{text}{}", "\n".repeat(missing))));
    }

    /// The name and the changed text.
    fn edited(mut self) -> (String, String) {
        let mut at = 0;
        let mut renames = Vec::new();
        let all = if self.renamed.is_empty() { Vec::new() } else { lex(&self.text) };
        for token in all {
            let range = at..at + token.len as usize;
            at = range.end;
            let Some(new) = self.renamed.get(&self.text[range.clone()]).filter(|_| token.kind == IDENT)
            else {
                continue;
            };
            if self.edits.iter().all(|(other, _)| !other.contains(&range.start)) {
                renames.push((range, new.clone()));
            }
        }
        self.edits.append(&mut renames);
        self.edits.sort_by_key(|(range, _)| range.start);
        let (mut text, mut end) = (String::with_capacity(self.text.len()), 0);
        for (range, new) in &self.edits {
            text.push_str(&self.text[end..range.start]);
            text.push_str(new);
            end = range.end;
        }
        text.push_str(&self.text[end..]);
        (self.name, text)
    }
}

/// Reports texture modes that the first input does not have. Returns whether there are any.
fn conflicting(db: &Database, files: &[SourceFile], parts: &[Part], log: &mut Log) -> bool {
    let options = |file| header(db, file).target.options.clone();
    let first = files.first().map(|&file| options(file)).unwrap_or_default();
    let mut any = false;
    for (part, &file) in parts.iter().zip(files) {
        let is_other = |option: &&_| !first.contains(option) && option.starts_with("texmode_");
        for option in options(file).iter().filter(is_other) {
            let at = part.header.directive(&part.text, ".target").map_or(0, |(word, _)| word.start);
            let message = format_args!("Conflicting .target option '{option}'");
            log.say_at(&part.name, part.line(at), Kind::Error, message);
            any = true;
        }
    }
    any
}

/// Moves the newest version and target to the first header, and removes the other headers.
fn join_headers(db: &Database, files: &[SourceFile], parts: &mut [Part]) {
    let headers: Vec<_> = files.iter().map(|&file| header(db, file)).collect();
    let version = headers.iter().filter_map(|header| header.version).max();
    let newest = headers.iter().map(|header| &header.target).max_by_key(|target| target.sm);
    let (Some(first), Some(target)) = (headers.first(), newest) else { return };
    let mut words = vec![target.spelling.to_string()];
    words.extend(first.target.options.iter().map(ToString::to_string));
    let debugged = |options: &[_]| options.iter().any(|option| option == "debug");
    if !debugged(&first.target.options) && headers.iter().any(|header| debugged(&header.target.options)) {
        words.push("debug".to_owned());
    }
    let values =
        [(".version", version.map(|version| version.to_string())), (".target", Some(words.join(", ")))];
    for (i, part) in parts.iter_mut().enumerate() {
        if i > 0 {
            part.replace(0..part.header.end, "");
            continue;
        }
        for (name, value) in &values {
            let range = part.header.directive(&part.text, name).map(|(_, range)| range.clone());
            if let Some((range, value)) = range.zip(value.as_ref()) {
                part.replace(range, value);
            }
        }
    }
}

/// Gives new names to functions without linkage whose names also other inputs declare.
fn rename_functions(parts: &mut [Part]) {
    for i in 0..parts.len() {
        let functions = parts[i].definitions.iter();
        let own = functions
            .filter(|own| own.linkage == Linkage::Internal && matches!(own.kind, What::Function(true)));
        let mut names: Vec<String> = own.map(|own| own.name.clone()).collect();
        names.retain(|name| {
            let of_others = |parts: &[Part], also: fn(&Definition) -> bool| {
                let mut all = parts.iter().flat_map(|part| &part.definitions);
                all.any(|other| other.name == *name && also(other))
            };
            let is_public = |other: &Definition| {
                other.linkage != Linkage::Internal && matches!(other.kind, What::Function(true))
            };
            // ptxas reports a function that a former input defines for all inputs.
            !of_others(&parts[..i], is_public)
                && (of_others(&parts[..i], |_| true) || of_others(&parts[i + 1..], |_| true))
        });
        for name in names {
            let taken = |new: &str| parts.iter().any(|part| part.text.contains(new));
            let mut new = format!("{name}${}", i + 1);
            while taken(&new) {
                new.push('_');
            }
            for definition in &mut parts[i].definitions {
                if definition.name == name {
                    definition.name.clone_from(&new);
                }
            }
            parts[i].renamed.insert(name, new);
        }
    }
}

/// Leaves one declaration of variables without linkage that have the same name. The error is the name of an input, a line
/// and a message.
fn merge_variables(parts: &mut [Part]) -> Result<(), (String, u32, String)> {
    for i in 0..parts.len() {
        for k in 0..parts[i].definitions.len() {
            let later = &parts[i].definitions[k];
            let What::Variable(later_declared, later_alone) = &later.kind else { continue };
            let is_former = |former: &Definition| {
                former.name == later.name
                    && former.linkage == Linkage::Internal
                    && matches!(former.kind, What::Variable(..))
            };
            let found = parts[..i].iter().enumerate().find_map(|(j, part)| {
                part.definitions
                    .iter()
                    .enumerate()
                    .find(|(_, former)| is_former(former))
                    .map(|(at, _)| (j, at))
            });
            let Some((j, at)) = found.filter(|_| later.linkage == Linkage::Internal) else { continue };
            let former = &parts[j].definitions[at];
            let What::Variable(former_declared, former_alone) = &former.kind else { continue };
            let initialized = merged(former_declared, later_declared)
                .filter(|initialized| *later_alone && (*former_alone || !initialized));
            let Some(initialized) = initialized else {
                let message = format!(
                    "variable '{}' differs from that of '{}': variables without linkage that have the same name and different declarations in several inputs are not supported yet",
                    later.name, parts[j].name
                );
                let part = &parts[i];
                let name = part.text[later.range.clone()].find(&later.name).unwrap_or(0);
                return Err((part.name.clone(), part.line(later.range.start + name), message));
            };
            let (declared, later) = (later_declared.clone(), later.range.clone());
            if initialized {
                let text = in_one_line(&parts[i].text[later.clone()]);
                let former = former.range.clone();
                parts[j].edits.retain(|(range, _)| *range != former);
                parts[j].replace(former, &text);
                parts[j].definitions[at].kind = What::Variable(declared, true);
            }
            parts[i].replace(later, "");
        }
    }
    Ok(())
}

/// Whether the later of two declarations gives the variable its initial value. `None` if they are not one variable.
fn merged(former: &VariableDecl, later: &VariableDecl) -> Option<bool> {
    let (a, b) = (&former.variable, &later.variable);
    let is_same = former.shape == later.shape
        && (a.space, a.ty, a.size, a.align, a.managed, a.unified)
            == (b.space, b.ty, b.size, b.align, b.managed, b.unified);
    let has_addresses = !former.relocs.is_empty() || !later.relocs.is_empty();
    if !is_same || has_addresses || a.is_opaque() {
        return None;
    }
    match (&a.init, &b.init) {
        (_, None) => Some(false),
        (None, Some(_)) => Some(true),
        (Some(a), Some(b)) => (a == b).then_some(false),
    }
}

/// The length of the blanks and comments before the first word.
fn leading(text: &str) -> usize {
    let is_blank = |token: &Token| token.kind.is_trivia();
    tokens(text).take_while(is_blank).map(|token| token.len as usize).sum()
}

/// A text without comments and line breaks.
fn in_one_line(text: &str) -> String {
    let (mut line, mut at) = (String::new(), 0);
    for token in tokens(text) {
        let word = &text[at..at + token.len as usize];
        at += word.len();
        let is_blank = token.kind.is_trivia() && (word.starts_with('/') || word.contains('\n'));
        line.push_str(if is_blank { " " } else { word });
    }
    line
}

#[cfg(test)]
mod tests {
    use super::super::options;
    use super::*;

    const HEAD: &str = ".version 8.0\n.target sm_80\n.address_size 64\n";

    fn of(texts: &[&str]) -> Result<Text, String> {
        let options = options::parse(["-arch=sm_90a", "a"].map(Into::into).into_iter()).expect("options");
        let inputs = texts.iter().zip(["a", "b", "c"]);
        let input =
            |(text, name): (&&str, &str)| Input { name: name.into(), text: (*text).into(), replaced: None };
        let mut log = Log::new(None);
        joined(&options, inputs.map(input).collect(), &mut log).map_err(|_| log.text)
    }

    #[test]
    fn later_headers_become_blank() {
        let text = of(&[
            "// a\n.version 8.0\n.target sm_80 , texmode_independent\n.address_size 64\n.visible .entry x()\n{ ret; }",
            "/* b */ .version 7.8 .target sm_75,\ntexmode_independent\n\n.address_size 64 .visible .entry z()\n{ ret; }\n",
            ".version 8.7 .target sm_90a .visible .entry w() { ret; }",
        ])
        .unwrap();
        let head = "// a\n.version 8.7\n.target sm_90a, texmode_independent\n.address_size 64\n";
        let rest = text.text.strip_prefix(head).expect(&text.text);
        assert!(!rest.contains(".version") && !rest.contains(".target"), "{rest}");
        let place = |word: &str| text.place(text.text.find(word).unwrap());
        assert_eq!((place("x()"), place("z()"), place("w()")), (("a", 5), ("b", 4), ("c", 1)));
        assert_eq!(text.first_name(), "a");
    }

    #[test]
    fn each_input_is_checked_with_its_own_header() {
        let product = ".visible .entry w() { .reg .b32 %r<3>; tanh.approx.bf16x2 %r1, %r2; ret; }\n";
        let new = format!(".version 8.0\n.target sm_90a\n{product}");
        assert!(of(&[HEAD, &new.replace("8.0", "8.7")]).is_ok());
        let said = of(&[HEAD, &new.replace("8.0", "7.8")]).map(|_| ()).unwrap_err();
        assert!(said.contains("b, line 2; error"), "{said}");
        let said = of(&[&new.replace("8.0", "8.7"), &format!("{HEAD}{product}")]).map(|_| ()).unwrap_err();
        assert!(said.contains("b, line 4; error"), "{said}");
        let said = of(&[HEAD, &HEAD.replace("sm_80", "sm_80, texmode_independent")]).map(|_| ()).unwrap_err();
        assert!(
            said.contains("b, line 2; error   : Conflicting .target option 'texmode_independent'"),
            "{said}"
        );
    }

    #[test]
    fn functions_without_linkage_belong_to_their_input() {
        let function = ".func f() { ret; }\n";
        let text = |function: &str, name: &str| {
            format!("{HEAD}{function}.visible .entry {name}() {{ call f; ret; }} // f\n")
        };
        let [a, b] = ["k", "l"].map(|name| text(function, name));
        let joined = of(&[&a, &b]).unwrap().text;
        let lines: Vec<&str> = joined.lines().filter(|line| line.contains('f')).collect();
        let expected = [
            ".func f$1() { ret; }",
            ".visible .entry k() { call f$1; ret; } // f",
            ".func f() { ret; }",
            ".visible .entry l() { call f; ret; } // f",
        ];
        assert_eq!(lines, expected);
        let public = text(&format!(".visible {function}"), "m");
        assert!(of(&[&a, &public]).unwrap().text.contains(".func f$1()"));
        assert!(!of(&[&public, &a]).unwrap().text.contains('$'));
    }

    #[test]
    fn equal_variables_without_linkage_are_one() {
        let text = |declaration: &str| format!("{HEAD}{declaration}\n");
        let of = |a: &str, b: &str| of(&[&text(a), &text(b)]).map(|text| text.text);
        let global = ".global .u32 g";
        let plain = format!("{HEAD}{global};\n\n\n\n\n");
        assert_eq!(of(&format!("{global};"), &format!("{global};")).as_ref(), Ok(&plain));
        let given = of(&format!("{global};"), &format!("{global} // the value\n= 6;"));
        assert_eq!(given, Ok(plain.replace("g;", "g   = 6;") + "\n"));
        for (a, b) in [
            (".global .u32 g;", ".global .u64 g;"),
            (".global .u32 g;", ".const .u32 g;"),
            (".global .u32 g = 5;", ".global .u32 g = 6;"),
            (".global .u32 g, h;", ".global .u32 g, h;"),
            (".global .u32 g;", ".global .u32 h; .global .align 8 .u32 g;"),
        ] {
            assert!(
                of(a, b).is_err_and(|said| said.contains("b, line 4; error   : variable 'g' differs")),
                "{a} {b}"
            );
        }
    }
}
