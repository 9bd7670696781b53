//! The modifiers and operands of machine instructions, in a few words.

/// What a modifier of an instruction means, without its dot; `None` if its meaning is not described.
pub fn modifier(mnemonic: &str, modifier: &str) -> Option<&'static str> {
    let plain = mnemonic.strip_prefix('U').unwrap_or(mnemonic);
    let is_of = |of: &&str| match of.strip_suffix('*') {
        Some(start) => mnemonic.starts_with(start) || plain.starts_with(start),
        None => mnemonic == *of || plain == *of,
    };
    let fits = |row: &&Row| row.0.contains(&modifier) && (row.1.is_empty() || row.1.iter().any(is_of));
    MODIFIERS.iter().find(fits).map(|row| row.2)
}

/// What an operand means, such as `R4.reuse`, `UR4`, `!P0`, `c[0x0][0x160]` or `SR_TID.X`.
pub fn operand(word: &str) -> Option<String> {
    let word = word.trim_start_matches(['-', '!', '~', '|', '@']);
    let (name, rest) = word.split_once('.').unwrap_or((word, ""));
    let number = |prefix: &str| name.strip_prefix(prefix)?.parse::<u32>().ok();
    let also = rest.split('.').filter_map(part).map(|also| format!("; {also}"));
    let also: String = also.collect();
    let about = match name {
        "RZ" | "URZ" => "always zero; a result written to it is discarded".to_owned(),
        "PT" | "UPT" => "always true; a result written to it is discarded".to_owned(),
        "SRZ" => "a special register that is always zero".to_owned(),
        _ if name.starts_with("SR_") => special(word),
        _ if number("UR").is_some() => {
            "a 32-bit uniform register: one value for all threads of the warp".to_owned()
        }
        _ if number("UP").is_some() => {
            "a uniform predicate register: one value for all threads of the warp".to_owned()
        }
        _ if number("R").is_some() => "a 32-bit register; each thread has its own value".to_owned(),
        _ if number("P").is_some() => "a predicate register; each thread has its own value".to_owned(),
        _ if number("B").is_some() => "a convergence barrier".to_owned(),
        _ if number("SB").is_some() => "a scoreboard: a later instruction waits until it is free".to_owned(),
        _ => return constant(word),
    };
    Some(about + &also)
}

/// `SR_TID.X`
fn special(word: &str) -> String {
    let twin = match word.strip_prefix("SR_").unwrap_or(word) {
        "LANEID" => "%laneid",
        "TID.X" => "%tid.x",
        "TID.Y" => "%tid.y",
        "TID.Z" => "%tid.z",
        "CTAID.X" => "%ctaid.x",
        "CTAID.Y" => "%ctaid.y",
        "CTAID.Z" => "%ctaid.z",
        "EQMASK" => "%lanemask_eq",
        "LTMASK" => "%lanemask_lt",
        "LEMASK" => "%lanemask_le",
        "GTMASK" => "%lanemask_gt",
        "GEMASK" => "%lanemask_ge",
        _ => return "a special register".to_owned(),
    };
    format!("the special register `{twin}`")
}

/// The suffix of a register.
fn part(suffix: &str) -> Option<&'static str> {
    Some(match suffix {
        "reuse" => "kept in an operand cache for the next instruction",
        "64" => "the first of two registers that hold 64 bits",
        "H0_H0" => "its lower half, in both halves",
        "H1_H1" => "its upper half, in both halves",
        "H0" => "its lower half",
        "H1" => "its upper half",
        "B0" => "its byte 0",
        "B1" => "its byte 1",
        "B2" => "its byte 2",
        "B3" => "its byte 3",
        "X4" => "multiplied by 4",
        "X8" => "multiplied by 8",
        "X16" => "multiplied by 16",
        _ => return None,
    })
}

/// `c[0x0][0x160]`
fn constant(word: &str) -> Option<String> {
    let (bank, rest) = word.strip_prefix("c[")?.split_once("][")?;
    let (offset, _) = rest.split_once(']')?;
    let what = match bank {
        "0x0" => "which holds the parameters of the kernel and of the launch",
        "0x3" => "which holds the variables in `.const`",
        "0x4" => "which holds addresses of variables and functions",
        _ => return Some(format!("the constant at offset {offset} of bank {bank}")),
    };
    Some(format!("the constant at offset {offset} of bank {bank}, {what}"))
}

/// The modifiers, the mnemonics to which the row applies, and the description. An empty list means every mnemonic; a `*` at the
/// end of one matches any suffix.
type Row = (&'static [&'static str], &'static [&'static str], &'static str);

const ACCESSES: &[&str] =
    &["LD", "LDG*", "LDS", "LDL", "LDC*", "ST", "STG", "STS", "STL", "ATOM*", "RED", "REDG", "STAS"];
const COMPARISONS: &[&str] = &["ISETP", "FSETP", "DSETP", "HSETP2", "FSET", "HSET2"];
const PRODUCTS: &[&str] = &["HMMA", "IMMA", "DMMA", "BMMA", "QMMA", "OMMA"];

/// Sorted by topic. The first row that fits is used.
#[rustfmt::skip]
const MODIFIERS: &[Row] = &[
    // Widths and types.
    (&["32"], ACCESSES, "32 bits"),
    (&["64"], ACCESSES, "64 bits, in two registers"),
    (&["128"], ACCESSES, "128 bits, in four registers"),
    (&["U8"], ACCESSES, "8 bits; a load fills the register with zeros"),
    (&["S8"], ACCESSES, "8 bits; a load fills the register with the sign"),
    (&["U16"], ACCESSES, "16 bits; a load fills the register with zeros"),
    (&["S16"], ACCESSES, "16 bits; a load fills the register with the sign"),
    (&["U8"], &[], "unsigned 8-bit integers"),
    (&["S8"], &[], "signed 8-bit integers"),
    (&["U16"], &[], "unsigned 16-bit integers"),
    (&["S16"], &[], "signed 16-bit integers"),
    (&["U32"], &[], "unsigned 32-bit integers"),
    (&["S32"], &[], "signed 32-bit integers"),
    (&["U64"], &[], "unsigned 64-bit integers"),
    (&["S64"], &[], "signed 64-bit integers"),
    (&["F16"], &[], "halves"),
    (&["BF16"], &[], "bf16"),
    (&["TF32"], &[], "tf32"),
    (&["F32"], &[], "32-bit floats"),
    (&["F64"], &[], "64-bit floats"),
    (&["E4M3"], &[], "8-bit floats with 4 exponent bits"),
    (&["E5M2"], &[], "8-bit floats with 5 exponent bits"),
    (&["E"], &["LD", "LDG*", "ST", "STG", "ATOM", "ATOMG", "RED", "REDG", "CCTL", "QSPC"], "the address has 64 bits"),
    // Memory.
    (&["STRONG"], &[], "ordered with the accesses of other threads in the scope"),
    (&["WEAK"], &[], "not ordered with the accesses of other threads"),
    (&["CONSTANT"], &["LDG", "LD"], "the data is read-only while the kernel runs"),
    (&["CTA", "SM"], &[], "scope: the thread block"),
    (&["GPU"], &[], "scope: the GPU"),
    (&["SYS"], &[], "scope: the system, with the host and other GPUs"),
    (&["EF"], &[], "the cache line is evicted first"),
    (&["EL"], &[], "the cache line is evicted last"),
    (&["BYPASS"], &["LDGSTS"], "the data is not cached in L1"),
    (&["SC"], &["MEMBAR"], "sequentially consistent"),
    (&["CAS"], &["ATOM*"], "compare and swap"),
    (&["EXCH"], &["ATOM*"], "exchange"),
    (&["ADD"], &["ATOM*", "RED*"], "add"),
    (&["MIN"], &["ATOM*", "RED*", "CREDUX"], "minimum"),
    (&["MAX"], &["ATOM*", "RED*", "CREDUX"], "maximum"),
    (&["INC"], &["ATOM*", "RED*"], "increment, or zero if the limit is reached"),
    (&["DEC"], &["ATOM*", "RED*"], "decrement, or the limit below zero"),
    (&["SUM"], &["REDUX"], "sum"),
    (&["AND"], &["ATOM*", "RED*", "CREDUX"], "bitwise and"),
    (&["OR"], &["ATOM*", "RED*", "CREDUX"], "bitwise or"),
    (&["XOR"], &["ATOM*", "RED*", "CREDUX"], "bitwise exclusive or"),
    (&["M88"], &["LDSM", "STSM"], "matrices of 8 rows of 16 bytes"),
    (&["MT88"], &["LDSM", "STSM", "MOVM"], "the same, transposed"),
    (&["2"], &["LDSM", "STSM"], "two matrices"),
    (&["4"], &["LDSM", "STSM"], "four matrices"),
    // Comparisons.
    (&["F"], COMPARISONS, "false"),
    (&["T"], COMPARISONS, "true"),
    (&["LT"], COMPARISONS, "less than"),
    (&["EQ"], COMPARISONS, "equal"),
    (&["LE"], COMPARISONS, "less than or equal"),
    (&["GT"], COMPARISONS, "greater than"),
    (&["NE"], COMPARISONS, "not equal"),
    (&["GE"], COMPARISONS, "greater than or equal"),
    (&["LTU"], COMPARISONS, "less than, or an operand is NaN"),
    (&["EQU"], COMPARISONS, "equal, or an operand is NaN"),
    (&["LEU"], COMPARISONS, "less than or equal, or an operand is NaN"),
    (&["GTU"], COMPARISONS, "greater than, or an operand is NaN"),
    (&["NEU"], COMPARISONS, "not equal, or an operand is NaN"),
    (&["GEU"], COMPARISONS, "greater than or equal, or an operand is NaN"),
    (&["NUM"], COMPARISONS, "no operand is NaN"),
    (&["NAN"], COMPARISONS, "an operand is NaN"),
    (&["AND"], COMPARISONS, "combined with the last operand by \"and\""),
    (&["OR"], COMPARISONS, "combined with the last operand by \"or\""),
    (&["XOR"], COMPARISONS, "combined with the last operand by \"exclusive or\""),
    (&["EX"], &["ISETP"], "continues the comparison of the lower words"),
    // Integers.
    (&["WIDE"], &["IMAD"], "the product and the sum have 64 bits"),
    (&["HI"], &["IMAD"], "the upper half of the product"),
    (&["X"], &["IMAD", "IADD3", "LEA", "IADD*", "VIADD"], "adds carries of earlier additions"),
    (&["MOV"], &["IMAD"], "a move in the pipe of multiplications"),
    (&["IADD"], &["IMAD"], "a sum in the pipe of multiplications"),
    (&["SHL"], &["IMAD"], "a shift to the left in the pipe of multiplications"),
    (&["LUT"], &["LOP3", "PLOP3"], "the constant is the truth table of the three operands"),
    (&["HI"], &["SHF"], "the upper word of the shifted value"),
    (&["L"], &["SHF"], "to the left"),
    (&["R"], &["SHF"], "to the right"),
    (&["W"], &["SHF", "SGXT", "BMSK"], "the shift count wraps"),
    (&["HI"], &["LEA"], "the upper word of the shifted sum"),
    (&["SX32"], &["LEA"], "extends the shifted operand by its sign"),
    (&["SH"], &["FLO"], "the distance from the upper end"),
    // Floats.
    (&["FTZ"], &[], "subnormal operands and results are zero"),
    (&["SAT"], &["F*", "H*"], "the result is clamped to 0 to 1"),
    (&["SAT"], &["IMMA"], "the results are clamped to the range of the type"),
    (&["RELU"], &[], "negative results become zero"),
    (&["SATFINITE"], &[], "results that are too large become the largest finite number"),
    (&["RN"], &[], "rounded to nearest, ties to even"),
    (&["RZ", "TRUNC"], &[], "rounded toward zero"),
    (&["RM", "FLOOR"], &[], "rounded down"),
    (&["RP", "CEIL"], &[], "rounded up"),
    (&["NTZ"], &["F2I"], "NaN becomes zero"),
    (&["RCP"], &["MUFU"], "1/x"),
    (&["RSQ"], &["MUFU"], "1/√x"),
    (&["SQRT"], &["MUFU"], "√x"),
    (&["EX2"], &["MUFU"], "2 to the power of x"),
    (&["LG2"], &["MUFU"], "logarithm to base 2"),
    (&["SIN"], &["MUFU"], "sine"),
    (&["COS"], &["MUFU"], "cosine"),
    (&["TANH"], &["MUFU"], "hyperbolic tangent"),
    (&["RCP64H"], &["MUFU"], "the upper word of an approximation of 1/x, for doubles"),
    (&["RSQ64H"], &["MUFU"], "the upper word of an approximation of 1/√x, for doubles"),
    (&["PACK_AB"], &["F2FP"], "packs both results; that of the first operand is in the upper half"),
    // Matrices.
    (&["884"], PRODUCTS, "8×8 results, depth 4"),
    (&["8816"], PRODUCTS, "8×8 results, depth 16"),
    (&["8832"], PRODUCTS, "8×8 results, depth 32"),
    (&["1684"], PRODUCTS, "16×8 results, depth 4"),
    (&["1688"], PRODUCTS, "16×8 results, depth 8"),
    (&["16816"], PRODUCTS, "16×8 results, depth 16"),
    (&["16832"], PRODUCTS, "16×8 results, depth 32"),
    (&["16864"], PRODUCTS, "16×8 results, depth 64"),
    (&["SP"], PRODUCTS, "the first matrix is sparse"),
    // Warps and branches.
    (&["IDX"], &["SHFL"], "from the lane with the given number"),
    (&["UP"], &["SHFL"], "from a lower lane, at the given distance"),
    (&["DOWN"], &["SHFL"], "from a higher lane, at the given distance"),
    (&["BFLY"], &["SHFL"], "from the lane whose number differs in the given bits"),
    (&["ALL"], &["VOTE*"], "true if the predicate is true in all threads"),
    (&["ANY"], &["VOTE*"], "true if the predicate is true in a thread"),
    (&["EQ"], &["VOTE*"], "true if the predicate is the same in all threads"),
    (&["ANY"], &["MATCH"], "the mask of the threads with the same value"),
    (&["ALL"], &["MATCH"], "the mask of all threads if all have the same value"),
    (&["SYNC"], &["BAR"], "arrives and waits for all threads of the barrier"),
    (&["ARV"], &["BAR"], "arrives without waiting"),
    (&["RED"], &["BAR"], "also reduces a predicate of all threads"),
    (&["REL"], &["CALL", "RET"], "the address is relative to this instruction"),
    (&["ABS"], &["CALL", "RET"], "the address is absolute"),
    // Textures.
    (&["B"], &["TEX", "TLD*", "TXD", "TXQ", "TMML"], "the handle is in a register"),
    (&["LZ"], &["TEX", "TLD*"], "level of detail 0"),
    (&["LL"], &["TEX", "TLD*"], "the level of detail is an operand"),
    (&["LB"], &["TEX", "TLD*"], "a bias is added to the level of detail"),
    (&["AOFFI"], &["TEX", "TLD*", "TXD"], "an offset is added to the coordinates"),
    (&["DC"], &["TEX", "TLD*", "TXD"], "compares depths"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modifiers_by_mnemonic() {
        assert_eq!(modifier("LDG", "64"), Some("64 bits, in two registers"));
        assert_eq!(modifier("ISETP", "AND"), Some("combined with the last operand by \"and\""));
        assert_eq!(modifier("ATOMG", "AND"), Some("bitwise and"));
        assert_eq!(modifier("UISETP", "GE"), modifier("ISETP", "GE"));
        assert_eq!(modifier("IMAD", "U32"), Some("unsigned 32-bit integers"));
        assert_eq!(modifier("BSSY", "RECONVERGENT"), None);
    }

    #[test]
    fn no_row_is_hidden_by_an_earlier_one() {
        for (at, (names, of, words)) in MODIFIERS.iter().enumerate() {
            for name in *names {
                let same = |row: &&Row| row.0.contains(name) && (row.1.is_empty() || row.1 == *of);
                let hidden = MODIFIERS[..at].iter().find(same);
                assert_eq!(hidden, None, "{name}: {words}");
            }
        }
    }

    #[test]
    fn operands_of_instructions() {
        let of = |word| operand(word).unwrap_or_default();
        assert_eq!(of("RZ"), "always zero; a result written to it is discarded");
        assert!(of("R4.reuse").ends_with("; kept in an operand cache for the next instruction"));
        assert!(of("@!P0").starts_with("a predicate register"));
        assert!(of("UR4").starts_with("a 32-bit uniform register"));
        assert!(of("c[0x0][0x160]").contains("offset 0x160 of bank 0x0, which holds the parameters"));
        assert_eq!([operand("RX"), operand("B--2---:R-:W0:-:S04"), operand("IMAD")], [None, None, None]);
    }
}
