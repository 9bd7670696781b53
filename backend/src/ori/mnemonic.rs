//! Operations as text: the mnemonic with its modifiers as SASS writes them, `ISETP.LT.U32.AND`, and numbers that
//! SASS shows as operands in braces after it, `LEA{shift=2}`.
//!
//! One table gives printing, parsing and samples of every operation.

use crate::ori::ir::BlockId;
use crate::ori::memory::Order;
use crate::ori::op::*;
use std::fmt::Write as _;

/// An operation's text, taken apart while it is parsed.
struct Reader<'a> {
    /// Modifiers not consumed yet; empty or starting with a dot.
    modifiers: &'a str,
    /// `name=value` pairs.
    numbers: &'a [(&'a str, &'a str)],
    /// Pairs consumed so far.
    taken: usize,
}

struct Writer {
    modifiers: String,
    numbers: String,
}

/// One field of an operation. `yes` and `no` are the texts of a flag.
trait Payload: Sized {
    fn write(&self, name: &str, yes: &str, no: &str, out: &mut Writer);
    fn read(name: &str, yes: &str, no: &str, from: &mut Reader<'_>) -> Option<Self>;
    #[cfg(test)]
    fn samples() -> Vec<Self>;
}

/// `text` without `modifier`, where `modifier` is a whole number of its dotted parts.
fn strip<'a>(text: &'a str, modifier: &str) -> Option<&'a str> {
    let rest = text.strip_prefix(modifier)?;
    (rest.is_empty() || rest.starts_with('.')).then_some(rest)
}

impl Payload for bool {
    fn write(&self, _: &str, yes: &str, no: &str, out: &mut Writer) {
        out.modifiers.push_str(if *self { yes } else { no });
    }

    fn read(_: &str, yes: &str, no: &str, from: &mut Reader<'_>) -> Option<Self> {
        if let Some(rest) = strip(from.modifiers, yes) {
            from.modifiers = rest;
            return Some(true);
        }
        if !no.is_empty() {
            from.modifiers = strip(from.modifiers, no)?;
        }
        Some(false)
    }

    #[cfg(test)]
    fn samples() -> Vec<Self> {
        vec![false, true]
    }
}

macro_rules! choices {
    ($($name:ident)*) => {
        $(impl Payload for $name {
            fn write(&self, _: &str, _: &str, _: &str, out: &mut Writer) {
                out.modifiers.push_str(self.text());
            }

            fn read(_: &str, _: &str, _: &str, from: &mut Reader<'_>) -> Option<Self> {
                // Longest first, so that a default that prints nothing does not hide the others.
                let (choice, rest) = $name::ALL
                    .iter()
                    .filter_map(|c| Some((*c, strip(from.modifiers, c.text())?)))
                    .min_by_key(|(_, rest)| rest.len())?;
                from.modifiers = rest;
                Some(choice)
            }

            #[cfg(test)]
            fn samples() -> Vec<Self> {
                $name::ALL.to_vec()
            }
        })*
    };
}

choices! {
    Round ICmp FCmp Bool Sign MemSize Order Evict Prefetch ShfType ShflMode VoteMode MufuFunc AtomOp AtomType
    IntType FloatType IntRound MembarScope BarMode MatchMode ReduxOp CctlOp
}

/// Reads a decimal or `0x` number.
pub(super) fn number(text: &str) -> Option<i64> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let value = match digits.strip_prefix("0x") {
        Some(hex) => i64::from_str_radix(hex, 16).ok()?,
        None => digits.parse().ok()?,
    };
    Some(if negative { -value } else { value })
}

fn write_number(name: &str, value: i64, out: &mut Writer) {
    let separator = if out.numbers.is_empty() { "" } else { "," };
    let _ = match value {
        -9..=9 => write!(out.numbers, "{separator}{name}={value}"),
        ..-9 => write!(out.numbers, "{separator}{name}=-{:#x}", -value),
        _ => write!(out.numbers, "{separator}{name}={value:#x}"),
    };
}

fn read_text<'a>(name: &str, from: &mut Reader<'a>) -> Option<&'a str> {
    let (_, value) = from.numbers.iter().find(|(n, _)| *n == name)?;
    from.taken += 1;
    Some(value)
}

macro_rules! numbers {
    ($($ty:ty)*) => {
        $(impl Payload for $ty {
            fn write(&self, name: &str, _: &str, _: &str, out: &mut Writer) {
                if *self != 0 {
                    write_number(name, i64::from(*self), out);
                }
            }

            fn read(name: &str, _: &str, _: &str, from: &mut Reader<'_>) -> Option<Self> {
                match read_text(name, from) {
                    Some(text) => number(text)?.try_into().ok(),
                    None => Some(0),
                }
            }

            #[cfg(test)]
            fn samples() -> Vec<Self> {
                vec![0, 1, 0x7f]
            }
        })*
    };
}

numbers! { u8 i32 }

impl Payload for Sr {
    fn write(&self, name: &str, _: &str, _: &str, out: &mut Writer) {
        self.0.write(name, "", "", out);
    }

    fn read(name: &str, _: &str, _: &str, from: &mut Reader<'_>) -> Option<Self> {
        u8::read(name, "", "", from).map(Sr)
    }

    #[cfg(test)]
    fn samples() -> Vec<Self> {
        vec![Sr(0), Sr(0x21)]
    }
}

impl Payload for BlockId {
    fn write(&self, name: &str, _: &str, _: &str, out: &mut Writer) {
        let _ = write!(out.numbers, "{name}=b{}", self.0);
    }

    fn read(name: &str, _: &str, _: &str, from: &mut Reader<'_>) -> Option<Self> {
        read_text(name, from)?.strip_prefix('b')?.parse().ok().map(BlockId)
    }

    #[cfg(test)]
    fn samples() -> Vec<Self> {
        vec![BlockId(0), BlockId(12)]
    }
}

impl Payload for Access {
    fn write(&self, _: &str, _: &str, _: &str, out: &mut Writer) {
        self.evict.write("", "", "", out);
        self.prefetch.write("", "", "", out);
        self.size.write("", "", "", out);
        self.order.write("", "", "", out);
        self.offset.write("offset", "", "", out);
    }

    fn read(_: &str, _: &str, _: &str, from: &mut Reader<'_>) -> Option<Self> {
        Some(Access {
            evict: Evict::read("", "", "", from)?,
            prefetch: Prefetch::read("", "", "", from)?,
            size: MemSize::read("", "", "", from)?,
            order: Order::read("", "", "", from)?,
            offset: i32::read("offset", "", "", from)?,
        })
    }

    #[cfg(test)]
    fn samples() -> Vec<Self> {
        use crate::ori::memory::Scope;
        vec![
            Access::weak(MemSize::B32, 0),
            Access {
                evict: Evict::Last,
                prefetch: Prefetch::B128,
                size: MemSize::B64,
                order: Order::Relaxed(Scope::Gpu),
                offset: -0x10,
            },
        ]
    }
}

macro_rules! mnemonics {
    ($($op:ident $text:literal { $($field:ident $($yes:literal $($no:literal)?)?),* })*) => {
        /// Writes modifiers and numbers of `op`; gives its mnemonic.
        fn write_op(op: &Op, out: &mut Writer) -> &'static str {
            match op {
                $(Op::$op { $($field),* } => {
                    $($field.write(
                        stringify!($field), concat!($($yes)?), concat!($($($no)?)?), out,
                    );)*
                    $text
                })*
            }
        }

        /// Reads the operation of which `text` is mnemonic and modifiers.
        fn read_op(text: &str, numbers: &[(&str, &str)]) -> Option<Op> {
            $(
                // A loop for its early exit.
                #[allow(unused_mut, clippy::never_loop)]
                while let Some(modifiers) = strip(text, $text) {
                    let mut reader = Reader { modifiers, numbers, taken: 0 };
                    $(let Some($field) = Payload::read(
                        stringify!($field), concat!($($yes)?), concat!($($($no)?)?), &mut reader,
                    ) else { break };)*
                    if reader.modifiers.is_empty() && reader.taken == numbers.len() {
                        return Some(Op::$op { $($field),* });
                    }
                    break;
                }
            )*
            None
        }

        /// Operations of every kind, each field with each of its samples.
        #[cfg(test)]
        pub(crate) fn samples() -> Vec<Op> {
            let mut ops = Vec::new();
            $(ops.extend(sample!($op $($field)*));)*
            ops
        }
    };
}

/// The first sample of all fields, then each field varied alone.
#[cfg(test)]
macro_rules! sample {
    ($op:ident) => { vec![Op::$op {}] };
    ($op:ident $($field:ident)+) => {{
        let mut ops = Vec::new();
        let longest = 32;
        for at in 0..longest {
            $(let $field = { let all = Payload::samples(); all[at % all.len()] };)+
            let op = Op::$op { $($field),+ };
            if !ops.contains(&op) {
                ops.push(op);
            }
        }
        ops
    }};
}

mnemonics! {
    Pack "PACK" {}
    Copy "COPY" {}
    Mov "MOV" {}
    Sel "SEL" {}
    Fsel "FSEL" { ftz ".FTZ" }
    Prmt "PRMT" {}
    S2r "S2R" { sr }
    Cs2r "CS2R" { sr, wide ".64" ".32" }
    P2r "P2R" { mask }
    R2p "R2P" { mask }
    Iadd3 "IADD3" { x ".X" }
    Imad "IMAD" { sign }
    ImadWide "IMAD.WIDE" { sign }
    ImadHi "IMAD.HI" { sign }
    ImadX "IMAD" { hi ".HI.X" ".X", sign }
    Lea "LEA" { shift }
    LeaHi "LEA.HI" { x ".X", shift }
    LeaHiSx32 "LEA.HI" { x ".X.SX32" ".SX32", shift }
    Lop3 "LOP3" { lut }
    Lop3P "LOP3.P" { lut }
    Plop3 "PLOP3" { lut, lut2 }
    Shf "SHF" { right ".R" ".L", wrap ".W", ty, hi ".HI" }
    Isetp "ISETP" { cmp, sign, bool_, ex ".EX" }
    Imnmx "IMNMX" { sign }
    Iabs "IABS" {}
    Popc "POPC" {}
    Flo "FLO" { sign, shift ".SH" }
    Brev "BREV" {}
    Sgxt "SGXT" { wrap ".W", sign }
    Bmsk "BMSK" { wrap ".W" }
    Idp "IDP" { two ".2A" ".4A", hi ".HI", a_signed ".S8" ".U8", b_signed ".S8" ".U8" }
    Vabsdiff "VABSDIFF" { sign }
    Fadd "FADD" { ftz ".FTZ", round, sat ".SAT" }
    Fmul "FMUL" { ftz ".FTZ", round, sat ".SAT" }
    Ffma "FFMA" { ftz ".FTZ", round, sat ".SAT" }
    Fmnmx "FMNMX" { ftz ".FTZ", nan ".NAN" }
    Fsetp "FSETP" { cmp, ftz ".FTZ", bool_ }
    Mufu "MUFU" { func }
    Fchk "FCHK" {}
    Dadd "DADD" { round }
    Dmul "DMUL" { round }
    Dfma "DFMA" { round }
    Dsetp "DSETP" { cmp, bool_ }
    Hadd2 "HADD2" { f32 ".F32", bf16 ".BF16_V2", ftz ".FTZ", sat ".SAT" }
    Hmul2 "HMUL2" { bf16 ".BF16_V2", ftz ".FTZ", sat ".SAT" }
    Hfma2 "HFMA2" { bf16 ".BF16_V2", ftz ".FTZ", relu ".RELU", sat ".SAT" }
    Hsetp2 "HSETP2" { bf16 ".BF16_V2", cmp, ftz ".FTZ", bool_ }
    Hmnmx2 "HMNMX2" { bf16 ".BF16_V2", ftz ".FTZ", nan ".NAN" }
    I2f "I2F" { to, from, round }
    I2fp "I2FP" { sign, round }
    F2i "F2I" { ftz ".FTZ", to, from, round, ntz ".NTZ" }
    F2f "F2F" { ftz ".FTZ", to, from, round, sat ".SAT" }
    Frnd "FRND" { ftz ".FTZ", ty, round }
    F2fp "F2FP" { sat ".SAT", relu ".RELU", bf16 ".BF16" ".F16", round }
    Uldc "ULDC" { wide ".64" }
    Umov "UMOV" {}
    Ulea "ULEA" { shift }
    S2ur "S2UR" { sr }
    R2ur "R2UR" {}
    Ldg "LDG.E" { access }
    Stg "STG.E" { access }
    Ld "LD.E" { access }
    St "ST.E" { access }
    Lds "LDS" { size, order, offset }
    Sts "STS" { size, order, offset }
    Ldl "LDL" { size, offset }
    Stl "STL" { size, offset }
    Ldc "LDC" { size, bank, offset }
    Atom "ATOM.E" { generic ".GENERIC", op, ty, order, offset }
    AtomCas "ATOM.E.CAS" { generic ".GENERIC", wide ".64", order, offset }
    Red "RED.E" { op, ty, order, offset }
    Atoms "ATOMS" { op, ty, order, offset }
    AtomsCas "ATOMS.CAS" { wide ".64", order, offset }
    Membar "MEMBAR" { scope }
    Errbar "ERRBAR" {}
    Cctl "CCTL" { op }
    Shfl "SHFL" { mode }
    Vote "VOTE" { mode }
    Match "MATCH" { mode, wide ".U64" }
    Redux "REDUX" { op, sign }
    Warpsync "WARPSYNC" {}
    Nanosleep "NANOSLEEP" {}
    Bar "BAR" { mode }
    B2r "B2R" { result ".RESULT" }
    Bssy "BSSY" { target }
    Bsync "BSYNC" {}
    Break "BREAK" {}
    Bpt "BPT" { trap ".TRAP" }
    Nop "NOP" {}
}

/// The operation's text.
pub fn print(op: &Op) -> String {
    let mut out = Writer { modifiers: String::new(), numbers: String::new() };
    let name = write_op(op, &mut out);
    let mut text = String::with_capacity(name.len() + out.modifiers.len() + out.numbers.len() + 2);
    text.push_str(name);
    text.push_str(&out.modifiers);
    if !out.numbers.is_empty() {
        let _ = write!(text, "{{{}}}", out.numbers);
    }
    text
}

/// The operation that [`print()`] writes as `text`.
pub fn parse(text: &str) -> Option<Op> {
    let (name, numbers) = match text.split_once('{') {
        Some((name, rest)) => (name, rest.strip_suffix('}')?),
        None => (text, ""),
    };
    let numbers = numbers
        .split(',')
        .filter(|item| !item.is_empty())
        .map(|item| item.split_once('='))
        .collect::<Option<Vec<_>>>()?;
    read_op(name, &numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_survives_a_round_trip() {
        for op in samples() {
            let text = print(&op);
            assert_eq!(parse(&text), Some(op), "{text}");
        }
    }

    #[test]
    fn texts_look_like_sass() {
        let isetp = Op::Isetp { cmp: ICmp::Lt, sign: Sign::U32, bool_: Bool::And, ex: false };
        assert_eq!(print(&isetp), "ISETP.LT.U32.AND");
        assert_eq!(print(&Op::Lea { shift: 2 }), "LEA{shift=2}");
        assert_eq!(print(&Op::Stg { access: Access::weak(MemSize::B64, 16) }), "STG.E.64{offset=0x10}");
    }

    #[test]
    fn unknown_text_is_refused() {
        for text in ["", "FOO", "IADD3.Y", "IADD3{shift=1}", "LEA{shift=300}", "LEA{shift}", "LEA{"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
