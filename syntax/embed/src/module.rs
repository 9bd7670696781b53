//! Strings that hold a whole module, or a whole program.

/// Whether a text begins as a module does: with `.version`, after optional blanks and comments.
pub(crate) fn begins(text: &str) -> bool {
    let Some(after) = after_comments(text).strip_prefix(".version") else { return false };
    let version = after.trim_start();
    // The version must be in the text, not inserted by a program.
    after.starts_with([' ', '\t'])
        && version.starts_with(|c: char| c.is_ascii_digit())
        && version.contains(".target")
}

/// Whether a text with more text after it may begin as a module does.
pub(crate) fn may_begin(text: &str) -> bool {
    let start = after_comments(text);
    start.is_empty() || start.starts_with(".version")
}

/// The text after blanks and comments.
fn after_comments(text: &str) -> &str {
    let mut rest = text.trim_start();
    while let Some(comment) = rest.strip_prefix("//") {
        rest = comment.split_once('\n').map_or("", |(_, after)| after).trim_start();
    }
    rest
}

/// Whether a text is CUDA code with inline assembly, for a compiler at run time.
pub(crate) fn is_cuda_with_assembly(text: &str) -> bool {
    text.contains("asm") && ["__global__", "__device__"].iter().any(|word| text.contains(word))
}

/// Whether a string is used as it is, judged by the next character after blanks: the program does not append to it, index
/// it or format it.
pub(crate) fn stands_alone(_blanks: &str, next: u8) -> bool {
    !matches!(next, b'+' | b'%' | b'.' | b'[' | b'"' | b'_' | b'<') && !next.is_ascii_alphanumeric()
}
