//! Strings that hold a whole module, or a whole program.

/// Whether a text begins as a module does: with `.version`, after blanks and comments.
pub(crate) fn begins(text: &str) -> bool {
    let mut rest = text.trim_start();
    while let Some(comment) = rest.strip_prefix("//") {
        rest = comment.split_once('\n').map_or("", |(_, after)| after).trim_start();
    }
    let Some(after) = rest.strip_prefix(".version") else { return false };
    let version = after.trim_start();
    // One that is put in by a program is not there.
    after.starts_with([' ', '\t'])
        && version.starts_with(|c: char| c.is_ascii_digit())
        && version.contains(".target")
}

/// Whether a text is CUDA code with inline assembly, as programs give it to a compiler at run time.
pub(crate) fn is_cuda_with_assembly(text: &str) -> bool {
    text.contains("asm") && ["__global__", "__device__"].iter().any(|word| text.contains(word))
}

/// Whether a string stands for itself, by what follows it: nothing is added to it, taken out of it or put into it.
pub(crate) fn stands_alone(next: u8) -> bool {
    !matches!(next, b'+' | b'%' | b'.' | b'[' | b'"' | b'_' | b'<') && !next.is_ascii_alphanumeric()
}
