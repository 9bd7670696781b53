//! Finds the statements of a piece of PTX without a grammar: enough to distinguish PTX from other assembly.

use ptx_isa::{Opcode, Suffix};

/// The dotted names of the instructions in a text, as written.
pub(crate) fn heads(text: &str) -> impl Iterator<Item = &str> {
    text.split([';', '{', '}', '\n']).filter_map(|statement| {
        let mut rest = statement.trim_start();
        // The instruction may follow a label and a guard.
        if let Some((label, after)) = rest.split_once(':')
            && !label.is_empty()
            && !after.starts_with(':')
            && label.bytes().all(|b| b == b'_' || b == b'$' || b.is_ascii_alphanumeric())
        {
            rest = after.trim_start();
        }
        if let Some(guard) = rest.strip_prefix('@') {
            rest = guard.trim_start_matches('!').trim_start();
            rest = rest.split_once(char::is_whitespace)?.1.trim_start();
        }
        let end =
            rest.find(|c: char| !(c.is_ascii_alphanumeric() || "._:".contains(c))).unwrap_or(rest.len());
        (end > 0).then(|| &rest[..end])
    })
}

/// The registers and labels that a text declares outside of braces, or in a brace that another text closes.
pub(crate) fn open_names(text: &str) -> impl Iterator<Item = &str> {
    let statements: Vec<&str> = text.split_inclusive([';', '{', '}']).collect();
    // From the last statement to the first: how many braces are closed after it but not opened.
    let mut closed = 0i32;
    let is_open = statements.iter().rev().map(|statement| {
        match statement.as_bytes().last() {
            Some(b'}') => closed += 1,
            Some(b'{') => closed = (closed - 1).max(0),
            _ => {}
        }
        closed == 0
    });
    let is_open: Vec<bool> = is_open.collect();
    statements.into_iter().zip(is_open.into_iter().rev()).flat_map(move |(statement, is_open)| {
        let words = statement
            .split(|c: char| !(matches!(c, '_' | '$' | '%' | ':' | '.') || c.is_ascii_alphanumeric()));
        let is_declaration = statement.trim_start().starts_with(".reg");
        words
            .filter(move |word| is_open && (is_declaration && !word.starts_with('.') || word.ends_with(':')))
            .map(|word| word.trim_end_matches(':'))
            .filter(|word| !word.is_empty())
    })
}

/// Resolves a dotted name. `None` if it is not a PTX instruction.
pub(crate) fn opcode(head: &str) -> Option<Opcode> {
    let mut words = head.split('.');
    let mnemonic = words.next()?;
    let words: Vec<&str> = words.collect();
    ptx_isa::resolve(mnemonic, &words).ok()
}

/// Whether a text is the name of a symbol, which `asm` after the declaration of a function gives it.
pub(crate) fn is_symbol(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '.');
    let first = text.split('.').next().unwrap_or(text);
    !text.is_empty() && text.chars().all(is_part) && !ptx_isa::is_mnemonic(first)
}

/// Whether a text is certainly PTX. If PTX is `likely`, one name with a type or modifier of PTX is enough.
pub(crate) fn is_ptx(text: &str, likely: bool) -> bool {
    heads(text).any(|head| {
        let (first, rest) = head.split_once('.').unwrap_or((head, ""));
        let has_suffix = rest.split('.').any(|word| Suffix::parse(word).is_some());
        match first {
            "" => rest == "reg" || likely && matches!(rest, "pragma" | "shared" | "local"),
            _ if likely => {
                has_suffix
                    || ptx_isa::is_mnemonic(first) && (!rest.is_empty() || text.trim_end().ends_with(';'))
            }
            _ => has_suffix && opcode(head).is_some(),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_instructions() {
        let text = "{ .reg .pred p;\nL1: setp.ne.b32 p, %0, 0; @!p bra L1; ld.shared::cta.u32 %1, [%2];}";
        let all: Vec<&str> = heads(text).collect();
        assert_eq!(all, [".reg", "setp.ne.b32", "bra", "ld.shared::cta.u32"]);
    }

    #[test]
    fn names_outside_of_braces() {
        let text = ".reg .pred p, q; { .reg .u32 t; } L: bra L;";
        assert_eq!(open_names(text).collect::<Vec<_>>(), ["p", "q", "L"]);
        let text = "{ .reg .u32 t; } { .reg.pred %p; { .reg .u32 u; }";
        assert_eq!(open_names(text).collect::<Vec<_>>(), ["%p"]);
    }

    #[test]
    fn other_machines() {
        for text in [
            "cpuid",
            "movl %0, %%eax",
            "lock; cmpxchgl %2, %1",
            "b.eq 1f",
            "add.w r0, r1, #2",
            "fence.i",
            "lr.w %0, (%1)",
            "rep; nop",
            "add v0.4s, v1.4s, v2.4s",
            "mrs %0, cntvct_el0",
            "v_add_f32 $0, $1, $2",
        ] {
            assert!(!is_ptx(text, false), "{text}");
        }
        for text in ["mov.u32 %0, %clock;", "bar.sync 0;", "{.reg .pred p; }", "fma.rn.f32 %0, %1, %2, %3;"] {
            assert!(is_ptx(text, false), "{text}");
        }
        assert!(is_ptx("trap;", true) && is_ptx("mvo.u32 %0, 1;", true));
        assert!(!is_ptx("pause", true));
    }
}
