//! The grammars of machine code, as the server's view and `sass dis` print it.

use super::{any, any_in_vim};
use serde_json::{Value, json};

fn mnemonics() -> impl Iterator<Item = &'static str> {
    sass::forms().map(|id| sass::form(id).mnemonic)
}

/// The text before an instruction: address, scoreboards, stall, live registers.
const ADDRESS: &str = r"/\*[0-9a-fA-F]{4,}\*/";
const CONTROL: &str = r"B[0-5-]{6}:R[0-5-]:W[0-5-]:[Y-]:S\d\d";

pub(super) fn textmate() -> Value {
    // Of mnemonics with dots, the first part is enough: the grammar treats the rest as modifiers.
    let mnemonics = any(mnemonics().map(|name| name.split('.').next().unwrap_or(name)));
    json!({
        "$schema": "https://raw.githubusercontent.com/martinring/tmlanguage/master/tmlanguage.json",
        "name": "NVIDIA SASS",
        "scopeName": "source.ptx-sass",
        "patterns": [
            { "name": "comment.line.double-slash.ptx-sass", "match": "//.*$" },
            { "name": "constant.numeric.address.ptx-sass", "match": ADDRESS },
            { "name": "comment.block.ptx-sass", "begin": r"/\*", "end": r"\*/" },
            { "name": "comment.line.number-sign.ptx-sass", "match": "^#.*$" },
            { "name": "comment.block.control.ptx-sass", "match": CONTROL },
            {
                "match": r"\b(live) +(\d+)\b",
                "captures": {
                    "1": { "name": "comment.block.control.ptx-sass" },
                    "2": { "name": "constant.numeric.live.ptx-sass" }
                }
            },
            {
                "match": r"(@!?)(U?P(?:T|\d+))\b",
                "captures": {
                    "1": { "name": "keyword.operator.guard.ptx-sass" },
                    "2": { "name": "keyword.control.predicate.ptx-sass" }
                }
            },
            {
                "match": format!(r"(?<![\w.])({mnemonics})((?:\.[\w:]+)*)(?=[\s;])"),
                "captures": {
                    "1": { "name": "support.function.mnemonic.ptx-sass" },
                    "2": { "name": "storage.modifier.ptx-sass" }
                }
            },
            { "name": "variable.other.constant.label.ptx-sass", "match": r"\.L_x_\d+" },
            { "name": "variable.other.constant.uniform.ptx-sass", "match": r"\bUR(?:\d+|Z)\b" },
            { "name": "variable.other.register.ptx-sass", "match": r"\bR(?:\d+|Z)\b" },
            { "name": "keyword.control.predicate.ptx-sass", "match": r"\bU?P(?:\d+|T)\b" },
            { "name": "variable.language.special.ptx-sass", "match": r"\bSRZ\b|\bSR_\w+(?:\.[XYZ])?|\bSB\d\b|\bB\d+\b|\bPR\b" },
            { "name": "support.constant.bank.ptx-sass", "match": r"\bc(?:x)?(?=\[)|\bdesc(?=\[)|\bgdesc(?=\[)" },
            { "name": "constant.numeric.hex.ptx-sass", "match": r"(?<![\w.])-?0x[0-9a-fA-F]+\b" },
            { "name": "constant.numeric.float.ptx-sass", "match": r"(?<![\w.])[-+]?(?:\d+\.\d*(?:[eE][-+]?\d+)?|INF|QNAN)\b" },
            { "name": "constant.numeric.ptx-sass", "match": r"(?<![\w.])-?\d+\b" },
            { "name": "storage.modifier.ptx-sass", "match": r"\.[A-Za-z0-9]\w*" },
            { "name": "support.constant.geometry.ptx-sass", "match": r"\b(?:[1-3]D|gsb\d|[A-Z][A-Z0-9_]+)\b" }
        ]
    })
}

pub(super) fn vim() -> String {
    let mnemonics = any_in_vim(mnemonics().map(|name| name.split('.').next().unwrap_or(name)));
    format!(
        r#"" Machine code of NVIDIA's GPUs. Made from the table of instructions by the tests of ptx-analyzer; see
" tests/src/grammars.
if exists('b:current_syntax')
  finish
endif
syntax case match

syntax match ptxSassModifier /\.[A-Za-z0-9][A-Za-z0-9_]*/
syntax match ptxSassNumber /\<-\?[0-9]\+\>/
syntax match ptxSassNumber /\<-\?0x[0-9a-fA-F]\+\>/
syntax match ptxSassNumber /\<[0-9]\+\.[0-9]*\%([eE][-+]\?[0-9]\+\)\?/
syntax match ptxSassMnemonic /\<\%({mnemonics}\)\>\ze[. ;]/ nextgroup=ptxSassModifier
syntax match ptxSassRegister /\<R\%([0-9]\+\|Z\)\>/
syntax match ptxSassUniform /\<UR\%([0-9]\+\|Z\)\>/
syntax match ptxSassPredicate /@\?!\?\<U\?P\%([0-9]\+\|T\)\>/
syntax match ptxSassSpecial /\<SRZ\>/
syntax match ptxSassSpecial /\<SR_[A-Za-z0-9_]\+\%(\.[XYZ]\)\?/
syntax match ptxSassBank /\<c\ze\[/
syntax match ptxSassLabel /\.L_x_[0-9]\+/
syntax match ptxSassControl /\<B[-0-5]\{{6}}:R[-0-5]:W[-0-5]:[-Y]:S[0-9][0-9]\>/
syntax match ptxSassControl /\<live\>\ze \+[0-9]/
syntax match ptxSassAddress /\/\*[0-9a-fA-F]\{{4,}}\*\//
syntax match ptxSassComment /\/\/.*$/
syntax match ptxSassComment /^#.*$/
syntax match ptxSassComment /\/\* 0x[0-9a-f]* \*\//

highlight default link ptxSassModifier Special
highlight default link ptxSassNumber Number
highlight default link ptxSassMnemonic Statement
highlight default link ptxSassRegister Identifier
highlight default link ptxSassUniform Constant
highlight default link ptxSassPredicate Conditional
highlight default link ptxSassSpecial Constant
highlight default link ptxSassBank Constant
highlight default link ptxSassLabel Label
highlight default link ptxSassControl Comment
highlight default link ptxSassAddress Comment
highlight default link ptxSassComment Comment

let b:current_syntax = 'ptx-sass'
"#
    )
}
