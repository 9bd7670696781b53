//! The instruction pages in `docs/`, one per mnemonic.

use crate::table::{MNEMONICS, PAGES};

/// The page of a mnemonic in Markdown: syntax lines, description, requirements, pitfalls and an example.
pub fn doc(mnemonic: &str) -> Option<&'static str> {
    MNEMONICS.binary_search(&mnemonic).ok().map(|i| PAGES[i])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Mod, Suffix};

    #[test]
    fn pages_begin_with_their_mnemonic_and_have_syntax_and_text() {
        for mnemonic in MNEMONICS {
            let page = doc(mnemonic).unwrap();
            assert!(page.starts_with(&format!("# {mnemonic}\n\n    ")), "{mnemonic}");
            assert!(page.lines().any(|line| line.starts_with(char::is_uppercase)), "{mnemonic}");
            assert!(page.len() < 4000, "{mnemonic}: hover text is short");
            let paragraphs: Vec<&str> = page.split("\n\n").collect();
            let twice = |(i, paragraph): (usize, &&str)| paragraphs[..i].contains(paragraph);
            assert!(!paragraphs.iter().enumerate().any(twice), "{mnemonic}: a paragraph appears twice");
        }
        assert_eq!(doc("nothing"), None);
    }

    /// A plain name used as a modifier in a syntax line must be a modifier of the language.
    #[test]
    fn syntax_lines_use_modifiers_of_the_language() {
        const METAVARIABLES: &[&str] = &[
            "rnd",
            "type",
            "atype",
            "btype",
            "ctype",
            "dtype",
            "stype",
            "cmp",
            "bool",
            "op",
            "op2",
            "mode",
            "space",
            "ss",
            "cop",
            "vec",
            "scope",
            "sem",
            "size",
            "geom",
            "clamp",
            "query",
            "comp",
            "shape",
            "primary",
            "secondary",
            "dim",
            "dst",
            "src",
            "completion",
            "field",
            "sel",
            "level::eviction_priority",
            "level::cache_hint",
            "level::prefetch_size",
            "mask",
            "layout",
            "alayout",
            "blayout",
            "num",
            "multicast",
            "fmt",
            "kind",
            "cta_group",
            "scale",
        ];
        for mnemonic in MNEMONICS {
            let (text, _) = doc(mnemonic).unwrap().split_once("```").unwrap();
            for line in text.lines().filter(|line| line.starts_with("    ")) {
                let name = line.trim().trim_start_matches("@p ").split([' ', ';']).next().unwrap();
                let words = name.split(['.', '{', '}', '|']).skip(1).filter(|word| !word.is_empty());
                for word in words.filter(|word| !word.starts_with("::") && !METAVARIABLES.contains(word)) {
                    let of_shared = matches!(word, "evict_normal" | "evict_last");
                    assert!(of_shared || Suffix::parse(word).is_some(), "{mnemonic}: {word}");
                }
            }
        }
        assert!(Mod::parse("rnd").is_none());
    }
}
