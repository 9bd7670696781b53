//! The reference: prints the page of a code or mnemonic, or writes all pages to a folder.

use std::fs;
use std::io;
use std::path::Path;

use ptx_analysis::ide;

use crate::output;

/// The page of a diagnostic code, a diagnostic name, a mnemonic of PTX, or a word of machine code: a mnemonic with or
/// without modifiers, an operand, or the code of a control word.
pub fn page(word: &str) -> Option<String> {
    let lints = ptx_analysis::lints();
    match lints.iter().find(|lint| lint.code.eq_ignore_ascii_case(word) || lint.name == word) {
        Some(lint) => Some(lint.page.to_owned()),
        // The page of `ld.global.u32` is that of `ld`.
        None => {
            let mnemonic = word.split('.').next().unwrap_or(word);
            ide::instruction_page(mnemonic).or_else(|| machine_page(word))
        }
    }
}

/// The page of a word of machine code.
fn machine_page(word: &str) -> Option<String> {
    let about = || ide::control_in_words(word).or_else(|| sass::about::operand(word));
    instruction_page(word).or_else(|| Some(format!("# `{word}`\n\n{}.\n", capitalized(&about()?))))
}

fn capitalized(text: &str) -> String {
    let mut begin = text.chars();
    begin.next().into_iter().flat_map(char::to_uppercase).chain(begin).collect()
}

/// What a machine instruction and its modifiers do, and the targets that have it.
fn instruction_page(word: &str) -> Option<String> {
    let mut parts = word.split('.');
    let mnemonic = parts.next()?;
    let about = sass::about::about(mnemonic)?;
    let twin = match sass::about::is_uniform_twin(mnemonic) {
        true => ". It works on uniform registers, once for all threads of the warp",
        false => "",
    };
    let forms = || sass::forms().map(sass::form).filter(|form| form.mnemonic == mnemonic);
    let has = |sm: &&sass::Sm| forms().any(|form| (form.sm.0..=form.sm.1).contains(&sm.0));
    let targets: Vec<String> = sass::Sm::ALL.iter().filter(has).map(|sm| format!("`sm_{}`", sm.0)).collect();
    let described = parts.filter_map(|part| Some((part, sass::about::modifier(mnemonic, part)?)));
    let mut modifiers: String = described.map(|(part, about)| format!("- `.{part}`: {about}\n")).collect();
    if !modifiers.is_empty() {
        modifiers.push('\n');
    }
    let about = capitalized(about);
    Some(format!(
        "# `{mnemonic}`\n\n{about}{twin}.\n\n{modifiers}A machine instruction (SASS) of {}.\n",
        targets.join(", ")
    ))
}

/// The code, name or mnemonic nearest to a misspelled word.
pub fn nearest(word: &str) -> Option<&'static str> {
    let lints = ptx_analysis::lints().iter().flat_map(|lint| [lint.code, lint.name]);
    let word = word.split('.').next().unwrap_or(word);
    let mnemonics = ptx_isa::mnemonics().iter().copied();
    ptx_isa::suggestions(word, lints.chain(mnemonics)).into_iter().next()
}

/// Writes the whole reference to a folder. Returns the number of pages.
pub fn write(folder: &Path) -> io::Result<usize> {
    let pages = ide::pages();
    for page in &pages {
        let path = folder.join(&page.path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        output::write(&path, page.text.as_bytes())?;
    }
    Ok(pages.len())
}

#[cfg(test)]
mod tests {
    use super::page;

    #[test]
    fn pages_of_machine_instructions() {
        let text = page("IMAD.WIDE.U32").expect("a page");
        assert!(text.starts_with("# `IMAD`\n\nMultiply integers and add"), "{text}");
        assert!(page("UIADD3").is_some_and(|text| text.contains("uniform registers, once")));
        assert!(page("UTCHMMA").is_some_and(|text| text.ends_with("of `sm_100`, `sm_103`, `sm_110`.\n")));
        assert!(page("ld").is_some_and(|text| !text.contains("SASS")));
        let text = page("IMAD.WIDE.U32").unwrap_or_default();
        assert!(
            text.contains("\n\n- `.WIDE`: the product and the sum have 64 bits\n- `.U32`: unsigned"),
            "{text}"
        );
        let control = page("B--2---:R-:W0:-:S04");
        assert_eq!(
            control.as_deref(),
            Some("# `B--2---:R-:W0:-:S04`\n\nWaits for SB2, 4 cycles, SB0 when written.\n")
        );
        assert!(page("R4.reuse").is_some_and(|text| text.contains("operand cache")));
        assert_eq!(page("NOTHING"), None);
    }
}
