//! The grammars of PTX.

use super::{any, any_in_vim};
use ptx_isa::{Directive, DirectiveKind, Mod, ScalarType, SpecialReg, mnemonics, resolve};
use serde_json::{Value, json};

/// The end of a word, and the start of a word.
const END: &str = r"(?![\w$])";
const START: &str = r"(?<![\w$%.])";
const NAME: &str = r"(?:[A-Za-z][\w$]*|[_$%][\w$]+)";

/// Mnemonics that are complete instructions, and all others, which are followed by a dot.
fn whole() -> Vec<&'static str> {
    mnemonics().iter().copied().filter(|mnemonic| resolve(mnemonic, &[]).is_ok()).collect()
}

fn directives(of: impl Fn(DirectiveKind) -> bool) -> impl Iterator<Item = &'static str> {
    // `@@dwarf` has no dot.
    Directive::ALL
        .iter()
        .filter(move |row| of(row.kind))
        .map(|row| row.name)
        .filter(|name| !name.starts_with('@'))
}

/// Special registers without their `%` and without their components.
fn specials() -> Vec<&'static str> {
    let names = SpecialReg::ALL.iter().map(|register| register.text());
    names.map(|name| name.trim_start_matches('%').split('.').next().unwrap_or_default()).collect()
}

pub(super) fn textmate() -> Value {
    let mods = any(Mod::ALL.iter().map(|word| word.text()));
    let types = any(ScalarType::ALL.iter().map(|ty| ty.text()));
    let all = any(mnemonics().iter().copied());
    let whole = any(whole());
    let specials = any(specials());
    let directive = |kinds: &[DirectiveKind]| {
        let names = any(directives(|kind| kinds.contains(&kind)));
        format!(r"(?<![\w$%])\.(?:{names})(?![\w$:])")
    };
    use DirectiveKind as K;
    let begins = format!(r"{START}(?:(?:{all})(?=\s*\.)|(?:{whole})(?=\s*(?:[;/]|$|\s[^:=\s])))(?!\s*:)");
    // A statement without a semicolon ends where the next one begins.
    let next = any(directives(|kind| !matches!(kind, K::Attribute)));
    let next_statement = format!(r"(?=^\s*(?:@|\.(?:{next}){END}|(?:{all})\.[a-z]|(?:{whole})\s*;))");
    let ends = format!("(;)|{next_statement}");
    let instruction = |mnemonics: &str, operands: &[&str]| {
        let mut patterns: Vec<Value> = vec![include("comment"), include("string")];
        patterns.extend(operands.iter().map(|name| include(name)));
        json!({
            "name": "meta.instruction.ptx",
            "begin": format!(r"({mnemonics})((?:\s*\.[\w:]+)*)"),
            "beginCaptures": {
                "1": { "name": "support.function.mnemonic.ptx" },
                "2": { "patterns": [include("type"), include("modifier")] }
            },
            "end": ends,
            "endCaptures": { "1": { "name": "punctuation.terminator.ptx" } },
            "patterns": patterns
        })
    };
    let values = ["special", "predicate", "register", "component", "number", "constant"];
    json!({
        "$schema": "https://raw.githubusercontent.com/martinring/tmlanguage/master/tmlanguage.json",
        "name": "PTX",
        "scopeName": "source.ptx",
        "patterns": [include("comment"), include("string"), include("label"), include("statement")],
        "repository": {
            "statement": { "patterns": [
                include("heading"), include("section"), include("targets"), include("guard"), include("jump"),
                include("call"), include("instruction"), include("directive"), include("type"), include("special"),
                include("predicate"), include("register"), include("number"), include("constant")
            ] },
            "comment": { "patterns": [
                { "name": "comment.line.double-slash.ptx", "match": "//.*$" },
                { "name": "comment.block.ptx", "begin": r"/\*", "end": r"\*/" }
            ] },
            "string": { "name": "string.quoted.double.ptx", "begin": "\"", "end": "\"|$" },
            "label": {
                "match": format!(r"{START}({NAME})\s*(:)(?!:)"),
                "captures": { "1": { "name": "variable.other.constant.label.ptx" } }
            },
            "heading": {
                "name": "meta.function.ptx",
                "begin": r"(?:(?<![\w$%])|(?<=\\n))\.(?:entry|func)(?![\w$:])",
                "beginCaptures": { "0": { "name": "keyword.other.directive.ptx" } },
                "end": "(?=[{;])",
                "patterns": [
                    include("comment"), include("string"),
                    {
                        "begin": r"\(", "end": r"\)",
                        "patterns": [
                            include("comment"), include("type"), include("directive"), include("number"),
                            { "name": "variable.parameter.ptx", "match": format!("{START}{NAME}") }
                        ]
                    },
                    include("type"), include("directive"), include("number"),
                    { "name": "entity.name.function.ptx", "match": format!("{START}{NAME}") }
                ]
            },
            "section": { "patterns": [
                {
                    "match": r"(?<![\w$%])(\.section)\s+(\.?[\w.$]+)",
                    "captures": {
                        "1": { "name": "keyword.other.directive.ptx" },
                        "2": { "name": "keyword.other.directive.section.ptx" }
                    }
                },
                // Data refers to other sections.
                { "name": "keyword.other.directive.section.ptx", "match": r"(?<![\w$%])\.debug_\w+" }
            ] },
            "targets": {
                "begin": directive(&[K::Control]) + r"|(?<![\w$%])\.alias(?![\w$:])",
                "beginCaptures": { "0": { "name": "keyword.other.directive.ptx" } },
                "end": "(?=;)",
                "patterns": [
                    include("comment"), include("type"), include("directive"), include("number"),
                    { "name": "variable.other.constant.label.ptx", "match": format!("{START}{NAME}") }
                ]
            },
            "guard": {
                "match": format!(r"(@!?)\s*({NAME})(?=\s)"),
                "captures": {
                    "1": { "name": "keyword.operator.guard.ptx" },
                    "2": { "name": "keyword.control.predicate.ptx" }
                }
            },
            "jump": instruction(
                &format!(r"{START}(?:bra|brx)(?=[.\s])(?!\s*:)"),
                &["predicate", "register", "number", "jump-target"],
            ),
            "call": instruction(
                &format!(r"{START}call(?=[.\s])(?!\s*:)"),
                &["arguments", "callee"],
            ),
            "instruction": instruction(&begins, &values),
            "arguments": {
                "begin": r"\(", "end": r"\)|(?=;)",
                "patterns": values.iter().map(|name| include(name)).chain([include("comment")]).collect::<Vec<_>>()
            },
            // The name of a function, or the register that contains its address. The name after it is a list of targets, a
            // prototype or a table.
            "callee": {
                "begin": format!(r"{START}(?:(%[\w$]+)|({NAME}))"),
                "beginCaptures": {
                    "1": { "name": "variable.other.register.ptx" },
                    "2": { "name": "entity.name.function.ptx" }
                },
                "end": format!("(?=;)|{next_statement}"),
                "patterns": [include("comment"), include("arguments"), include("register"), include("jump-target")]
            },
            "jump-target": { "name": "variable.other.constant.label.ptx", "match": format!("{START}{NAME}") },
            "directive": { "patterns": [
                {
                    "name": "keyword.other.directive.ptx",
                    "match": directive(&[
                        K::Module, K::Function, K::Space, K::Linkage, K::Tuning, K::Control, K::Attribute, K::Debug,
                        K::Pragma,
                    ]),
                },
                { "name": "keyword.other.directive.ptx", "match": "@@dwarf" },
                // Vectors, and the state spaces of pointers.
                { "name": "keyword.other.directive.ptx", "match": format!(r"(?<![\w$%])\.(?:{mods})(?![\w$:])") }
            ] },
            "type": { "name": "support.type.ptx", "match": format!(r"\.(?:{types})(?![\w$:])") },
            "modifier": { "name": "storage.modifier.ptx", "match": format!(r"\.(?:{mods})(?![\w$:])") },
            "special": {
                "match": format!(r"{START}(%(?:{specials}){END})(\.[xyzwrgb]{END})?"),
                "captures": {
                    "1": { "name": "variable.language.special.ptx" },
                    "2": { "name": "variable.language.special.ptx" }
                }
            },
            "predicate": { "name": "keyword.control.predicate.ptx", "match": format!(r"{START}%p\d*{END}") },
            "register": { "name": "variable.other.register.ptx", "match": format!(r"{START}%[\w$]+") },
            "component": { "name": "variable.language.component.ptx", "match": format!(r"(?<=[\w$])\.(?:[xyzwrgba]|[bh][0-7]{{1,4}}){END}") },
            "number": { "patterns": [
                { "name": "constant.numeric.float.ptx", "match": format!(r"{START}0[fF][0-9a-fA-F]{{8}}{END}") },
                { "name": "constant.numeric.float.ptx", "match": format!(r"{START}0[dD][0-9a-fA-F]{{16}}{END}") },
                { "name": "constant.numeric.hex.ptx", "match": format!(r"{START}0[xX][0-9a-fA-F]+U?{END}") },
                { "name": "constant.numeric.float.ptx", "match": format!(r"(?<![\w$%])(?:\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)?{END}") },
                { "name": "constant.numeric.ptx", "match": format!(r"{START}\d+(?:[eE][+-]?\d+)?U?{END}") },
                { "name": "constant.numeric.binary.ptx", "match": format!(r"{START}0[bB][01]+U?{END}") }
            ] },
            "constant": { "patterns": [
                { "name": "variable.language.constant.ptx", "match": format!(r"{START}WARP_SZ{END}") },
                { "name": "constant.language.target.ptx", "match": format!(r"{START}(?:sm_\d+[af]?|texmode_unified|texmode_independent|map_f64_to_f32|debug){END}") }
            ] }
        }
    })
}

fn include(name: &str) -> Value {
    json!({ "include": format!("#{name}") })
}

pub(super) fn vim() -> String {
    let mods = any_in_vim(Mod::ALL.iter().map(|word| word.text()));
    let types = any_in_vim(ScalarType::ALL.iter().map(|ty| ty.text()));
    let all = any_in_vim(mnemonics().iter().copied());
    let whole = any_in_vim(whole());
    let specials = any_in_vim(specials());
    let directives = any_in_vim(directives(|_| true));
    format!(
        r#"" PTX. Made from the table of instructions by the tests of ptx-analyzer; see tests/src/grammars.
" The runtime's own file may have come first.
if exists('b:ptx_analyzer_syntax')
  finish
endif
syntax clear
let b:ptx_analyzer_syntax = 1
syntax case match
syntax iskeyword @,48-57,_,$,%

syntax match ptxName /[A-Za-z_$][A-Za-z0-9_$]*/
syntax match ptxDirective /\.\%({directives}\)\>:\@!/
syntax match ptxDirective /\.\%({mods}\)\>:\@!/
syntax match ptxDirective /@@dwarf/
syntax match ptxSection /\%(\.section\s\+\)\@<=\.\?[A-Za-z0-9_.$]\+/
syntax match ptxSection /\.debug_[a-z0-9_]\+/
syntax match ptxType /\.\%({types}\)\>:\@!/

syntax match ptxModifier /\_s*\.\%({mods}\)\>:\@!/ contained nextgroup=ptxModifier,ptxModifierType
syntax match ptxModifierType /\_s*\.\%({types}\)\>:\@!/ contained nextgroup=ptxModifier,ptxModifierType
syntax match ptxMnemonic /\<\%({all}\)\>\ze\s*\./ nextgroup=ptxModifier,ptxModifierType
syntax match ptxMnemonic /\<\%({whole}\)\>\ze\s*\%([;/]\|$\|\s[^:=[:blank:]]\)/
syntax match ptxFunction /\%(\.entry\s\+\)\@<=[A-Za-z_$%][A-Za-z0-9_$]*/
syntax match ptxFunction /\%(\.func\s\+\%(([^)]*)\s*\)\?\)\@<=[A-Za-z_$%][A-Za-z0-9_$]*/
syntax match ptxTarget /\<sm_[0-9]\+[af]\?\>/

syntax match ptxRegister /%[A-Za-z0-9_$]\+/
syntax match ptxPredicate /%p[0-9]*\>/
syntax match ptxGuard /@!\?\s*[A-Za-z0-9_$%]\+\ze\s/ contains=ptxPredicate
syntax match ptxSpecial /%\%({specials}\)\>\%(\.[xyzwrgb]\>\)\?/
syntax match ptxSpecial /\<WARP_SZ\>/
syntax match ptxComponent /\%(%[A-Za-z0-9_$]\+\)\@<=\.\%([xyzwrgba]\|[bh][0-7]\{{1,4}}\)\>/

syntax match ptxNumber /\<[0-9]\+\%([eE][+-]\?[0-9]\+\)\?U\?\>/
syntax match ptxNumber /\<0[xX][0-9a-fA-F]\+U\?\>/
syntax match ptxNumber /\<0[bB][01]\+U\?\>/
syntax match ptxFloat /\<[0-9]\+\.[0-9]*\%([eE][+-]\?[0-9]\+\)\?/
syntax match ptxFloat /\<0[fF][0-9a-fA-F]\{{8}}\>/
syntax match ptxFloat /\<0[dD][0-9a-fA-F]\{{16}}\>/

syntax match ptxLabel /[A-Za-z_$%][A-Za-z0-9_$]*\ze\s*::\@!/
syntax match ptxLabel /\%(\<brx\?\%(\.[a-z]\+\)*\s\+\)\@<=[A-Za-z_$][A-Za-z0-9_$]*/
syntax match ptxLabel /\%(\<bra\%(\.[a-z]\+\)*\s\+\)\@<=[A-Za-z_$][A-Za-z0-9_$]*/

syntax region ptxString start=/"/ end=/"/ oneline
syntax match ptxComment /\/\/.*$/ contains=@Spell
syntax region ptxComment start=/\/\*/ end=/\*\// contains=@Spell
syntax sync minlines=200

highlight default link ptxDirective PreProc
highlight default link ptxSection PreProc
highlight default link ptxType Type
highlight default link ptxModifier Special
highlight default link ptxModifierType Type
highlight default link ptxMnemonic Statement
highlight default link ptxFunction Function
highlight default link ptxTarget Constant
highlight default link ptxRegister Identifier
highlight default link ptxPredicate Conditional
highlight default link ptxGuard Conditional
highlight default link ptxSpecial Constant
highlight default link ptxComponent Constant
highlight default link ptxNumber Number
highlight default link ptxFloat Float
highlight default link ptxLabel Label
highlight default link ptxString String
highlight default link ptxComment Comment

let b:current_syntax = 'ptx'
"#
    )
}
