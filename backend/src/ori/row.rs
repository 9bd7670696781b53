//! The structure of a row of the operation table, and the definitions generated from it.
//!
//! `operations!` takes the rows of [`super::operations`] and generates the [`Op`] enum, its text, its operands, its
//! facts, and the fields of the machine instruction that its modifiers set. The text of an operation is its mnemonic
//! with its modifiers as in SASS, `ISETP.LT.U32.AND`, followed in braces by the numbers that SASS shows as operands,
//! `LEA{shift=2}`.

use crate::abi::Preserved;
use crate::driver::DriverFunction;
use crate::input::Symbol;
use crate::ori::ir::BlockId;
use crate::ori::memory::Order;
use crate::ori::op::*;
use std::fmt::Write as _;

/// The effect of a modifier on a field of the machine instruction.
pub enum Setting {
    /// The first of these alternatives that the field has; named ones precede the empty text.
    Choice(&'static [&'static str]),
    /// A flag, and its text if the field is a choice.
    Flag(bool, &'static str),
    Number(u64),
    /// All fields of a global or generic access.
    Access(Access),
    /// Set by special code of the family.
    Custom,
}

/// The text of an operation during parsing.
pub(super) struct Reader<'a> {
    /// Modifiers that have not been read; empty, or starting with a dot.
    pub(super) modifiers: &'a str,
    /// `name=value` pairs.
    pub(super) numbers: &'a [(&'a str, &'a str)],
    /// The number of pairs that have been read.
    pub(super) taken: usize,
}

#[derive(Default)]
pub(super) struct Writer {
    pub(super) modifiers: String,
    pub(super) numbers: String,
}

/// One modifier of an operation. `yes` and `no` are the texts of a flag.
pub(super) trait Payload: Sized {
    fn write(&self, name: &str, yes: &str, no: &str, out: &mut Writer);
    fn read(name: &str, yes: &str, no: &str, from: &mut Reader<'_>) -> Option<Self>;
    fn setting(&self, yes: &'static str, no: &'static str) -> Setting;
    #[cfg(test)]
    fn samples() -> Vec<Self>;
}

/// The rest of `text` after `modifier`, if `modifier` consists of whole dotted parts of it.
pub(super) fn strip<'a>(text: &'a str, modifier: &str) -> Option<&'a str> {
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

    fn setting(&self, yes: &'static str, no: &'static str) -> Setting {
        Setting::Flag(*self, if *self { yes } else { no })
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
                // The longest text first, so that a default that prints nothing does not hide the others.
                let (choice, rest) = $name::ALL
                    .iter()
                    .filter_map(|c| Some((*c, strip(from.modifiers, c.text())?)))
                    .min_by_key(|(_, rest)| rest.len())?;
                from.modifiers = rest;
                Some(choice)
            }

            fn setting(&self, _: &'static str, _: &'static str) -> Setting {
                Setting::Choice(self.machine_texts())
            }

            #[cfg(test)]
            fn samples() -> Vec<Self> {
                $name::ALL.to_vec()
            }
        })*
    };
}

choices! {
    Round ICmp FCmp Bool Sign WideSign MemSize Order Evict EvictL2 Prefetch ShfType ShflMode VoteMode MufuFunc HalfFunc HalfZeros HalfRead AddressScale AtomOp AtomType CasSize PackType PackKept PackSat PairType ScaleRound ScaleType RandomRound ExtremeType FloatRedux ByteFormat StoreFormat StoreLayout ByteLayout TexDims TexLevel TexRead HandleAt Descriptors SurfDims SurfClamp SurfType
    IntType FloatType IntRound MembarScope BarMode Meeting DotMode MatchMode ReduxOp CctlOp QuerySpace LineOp MatrixLayout
    MatrixCount Routine HalfShape Tf32Shape ByteShape NibbleShape BitShape QuarterShape BitOp QuarterType
    DoubleShape SparseNibbleShape QuadTypes QuadStep ScaleFormat ScaleBlocks
    ArriveMode Arrival CopiesArrive ViewOf BulkPlace BulkType ManyInt ManyOp ManyFloat MapOp GroupFormat Dims TensorMode
    TensorKind TensorCollect TensorLanes TensorCount TensorCopy TensorFormat TensorStat TensorStatType TensorScales
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

            fn setting(&self, _: &'static str, _: &'static str) -> Setting {
                Setting::Number(i64::from(*self) as u64)
            }

            #[cfg(test)]
            fn samples() -> Vec<Self> {
                vec![0, 1, 0x7f]
            }
        })*
    };
}

numbers! { u8 u32 i32 }

impl Payload for Sr {
    fn write(&self, name: &str, _: &str, _: &str, out: &mut Writer) {
        self.0.write(name, "", "", out);
    }

    fn read(name: &str, _: &str, _: &str, from: &mut Reader<'_>) -> Option<Self> {
        u8::read(name, "", "", from).map(Sr)
    }

    fn setting(&self, _: &'static str, _: &'static str) -> Setting {
        Setting::Number(self.0.into())
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

    fn setting(&self, _: &'static str, _: &'static str) -> Setting {
        Setting::Custom
    }

    #[cfg(test)]
    fn samples() -> Vec<Self> {
        vec![BlockId(0), BlockId(12)]
    }
}

fn symbol_text(symbol: Symbol) -> String {
    match symbol {
        Symbol::Function(i) => format!("f{i}"),
        Symbol::Global(i) => format!("g{i}"),
        Symbol::Local(i) => format!("l{i}"),
        Symbol::Param(i) => format!("p{i}"),
        Symbol::Return(i) => format!("r{i}"),
    }
}

fn symbol_of(text: &str) -> Option<Symbol> {
    let (kind, index) = text.split_at_checked(1)?;
    let index = index.parse().ok()?;
    Some(match kind {
        "f" => Symbol::Function(index),
        "g" => Symbol::Global(index),
        "l" => Symbol::Local(index),
        "p" => Symbol::Param(index),
        "r" => Symbol::Return(index),
        _ => return None,
    })
}

impl Payload for Callee {
    fn write(&self, name: &str, _: &str, _: &str, out: &mut Writer) {
        let separator = if out.numbers.is_empty() { "" } else { "," };
        let _ = write!(out.numbers, "{separator}{name}=f{}", self.function);
        if !self.waits {
            out.numbers.push_str(",goes=1");
        }
        self.preserved.write(name, "", "", out);
    }

    fn read(name: &str, _: &str, _: &str, from: &mut Reader<'_>) -> Option<Self> {
        let function = read_text(name, from)?.strip_prefix('f')?.parse().ok()?;
        let waits = read_text("goes", from).is_none();
        Some(Callee { function, waits, preserved: Preserved::read(name, "", "", from)? })
    }

    fn setting(&self, _: &'static str, _: &'static str) -> Setting {
        Setting::Custom
    }

    #[cfg(test)]
    fn samples() -> Vec<Self> {
        let of = |function, waits, preserved| Callee { function, waits, preserved };
        let preserved = Preserved::samples().into_iter();
        preserved.zip(0..).map(|(preserved, i)| of(i, i % 2 == 0, preserved)).collect()
    }
}

impl Payload for Preserved {
    fn write(&self, _: &str, _: &str, _: &str, out: &mut Writer) {
        for (name, count) in { *self }.parts() {
            if let Some(count) = *count {
                write_number(name, count.into(), out);
            }
        }
    }

    fn read(_: &str, _: &str, _: &str, from: &mut Reader<'_>) -> Option<Self> {
        let mut preserved = Preserved::default();
        for (name, count) in preserved.parts() {
            if let Some(text) = read_text(name, from) {
                *count = Some(number(text)?.try_into().ok()?);
            }
        }
        Some(preserved)
    }

    fn setting(&self, _: &'static str, _: &'static str) -> Setting {
        Setting::Custom
    }

    #[cfg(test)]
    fn samples() -> Vec<Self> {
        let of = |general, control| Preserved { general, control, return_address: None };
        vec![of(None, None), of(Some(0), None), of(Some(24), Some(3)), Preserved::BY_DRIVER]
    }
}

impl Payload for Link {
    fn write(&self, name: &str, _: &str, _: &str, out: &mut Writer) {
        let _ = write!(out.numbers, "{name}={}", symbol_text(self.symbol));
        self.offset.write("offset", "", "", out);
        if self.high {
            out.numbers.push_str(",high=1");
        }
    }

    fn read(name: &str, _: &str, _: &str, from: &mut Reader<'_>) -> Option<Self> {
        let symbol = symbol_of(read_text(name, from)?)?;
        let offset = i32::read("offset", "", "", from)?;
        Some(Link { symbol, offset, high: read_text("high", from).is_some() })
    }

    fn setting(&self, _: &'static str, _: &'static str) -> Setting {
        Setting::Custom
    }

    #[cfg(test)]
    fn samples() -> Vec<Self> {
        let link = |symbol, offset, high| Link { symbol, offset, high };
        vec![
            link(Symbol::Function(3), 0, false),
            link(Symbol::Global(1), 0x20, true),
            link(Symbol::Local(2), -4, false),
        ]
    }
}

impl Payload for DriverFunction {
    fn write(&self, name: &str, _: &str, _: &str, out: &mut Writer) {
        let _ = write!(out.numbers, "{name}=d{}", self.number());
    }

    fn read(name: &str, _: &str, _: &str, from: &mut Reader<'_>) -> Option<Self> {
        let number = read_text(name, from)?.strip_prefix('d')?.parse().ok()?;
        DriverFunction::all().nth(number)
    }

    fn setting(&self, _: &'static str, _: &'static str) -> Setting {
        Setting::Custom
    }

    #[cfg(test)]
    fn samples() -> Vec<Self> {
        DriverFunction::all().step_by(9).collect()
    }
}

impl Payload for JumpTable {
    fn write(&self, name: &str, _: &str, _: &str, out: &mut Writer) {
        let _ = write!(out.numbers, "{name}=t{}", self.0);
    }

    fn read(name: &str, _: &str, _: &str, from: &mut Reader<'_>) -> Option<Self> {
        read_text(name, from)?.strip_prefix('t')?.parse().ok().map(JumpTable)
    }

    fn setting(&self, _: &'static str, _: &'static str) -> Setting {
        Setting::Custom
    }

    #[cfg(test)]
    fn samples() -> Vec<Self> {
        vec![JumpTable(0), JumpTable(3)]
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

    fn setting(&self, _: &'static str, _: &'static str) -> Setting {
        Setting::Access(*self)
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

macro_rules! operations {
    ($(
        $(#[$doc:meta])*
        $op:ident $text:literal
        $({ $($field:ident : $ty:ty $([$yes:literal $($no:literal)?])? $(= $($to:ident)|+)?),* })?
        [$($dst:expr),* $(,)?] <- [$($src:expr),* $(,)?] $facts:expr $(, as $families:expr)?;
    )*) => {
        /// A machine operation. Operands are given as `[results] <- [sources]`.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum Op {
            $($(#[$doc])* $op $({ $($field: $ty),* })?,)*
        }

        /// The signature of `op`.
        pub fn signature(op: &Op) -> Signature {
            #[allow(unused_variables, reason = "not every modifier decides about the operands")]
            match *op {
                $(Op::$op { $($($field),*)? } => Signature::new(&[$($dst),*], &[$($src),*]),)*
            }
        }

        /// The facts of `op`.
        pub fn facts(op: &Op) -> Facts {
            #[allow(unused_variables, reason = "not every modifier decides about the facts")]
            match *op {
                $(Op::$op { $($($field),*)? } => $facts,)*
            }
        }

        /// The names in the machine table, the best first. A target has at least one of them.
        pub fn families(op: &Op) -> &'static [&'static str] {
            #[allow(unused_variables, reason = "not every modifier decides about the family")]
            match *op {
                $(Op::$op { $($($field),*)? } => families!($text $($families)?),)*
            }
        }

        /// What each modifier sets, and in which field: the first of the listed fields that the form has.
        pub fn for_each_setting(op: &Op, mut set: impl FnMut(&'static [Field], Setting)) {
            #[allow(unused_variables, reason = "some set no field")]
            match op {
                $(Op::$op { $($($field),*)? } => {
                    $($(setting!(set $field [$($yes $($no)?)?] [$($(Field::$to),+)?]);)*)?
                })*
            }
        }

        /// Writes the modifiers and numbers of `op`; returns its mnemonic.
        fn write_op(op: &Op, out: &mut Writer) -> &'static str {
            match op {
                $(Op::$op { $($($field),*)? } => {
                    $($($field.write(
                        stringify!($field), concat!($($yes)?), concat!($($($no)?)?), out,
                    );)*)?
                    $text
                })*
            }
        }

        /// Reads an operation from its mnemonic and modifiers.
        fn read_op(text: &str, numbers: &[(&str, &str)]) -> Option<Op> {
            $(
                // A loop only for its early exit.
                #[allow(unused_mut, clippy::never_loop)]
                while let Some(modifiers) = strip(text, $text) {
                    let mut reader = Reader { modifiers, numbers, taken: 0 };
                    $($(let Some($field) = Payload::read(
                        stringify!($field), concat!($($yes)?), concat!($($($no)?)?), &mut reader,
                    ) else { break };)*)?
                    if reader.modifiers.is_empty() && reader.taken == numbers.len() {
                        return Some(Op::$op { $($($field),*)? });
                    }
                    break;
                }
            )*
            None
        }

        /// Sample operations of every kind, with each sample value of each field.
        #[cfg(test)]
        pub(crate) fn samples() -> Vec<Op> {
            let mut ops = Vec::new();
            $(ops.extend(sample!($op $($($field)*)?));)*
            ops
        }
    };
}

macro_rules! setting {
    ($set:ident $field:ident [$($yes:literal $($no:literal)?)?] []) => {};
    ($set:ident $field:ident [$($yes:literal $($no:literal)?)?] [$($to:expr),+]) => {
        $set(&[$($to),+], Payload::setting($field, concat!($($yes)?), concat!($($($no)?)?)))
    };
}

macro_rules! families {
    ($text:literal) => {
        &[$text]
    };
    ($text:literal $families:expr) => {
        $families
    };
}

/// The first sample of all fields, then each field varied separately.
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

#[cfg(test)]
pub(super) use sample;
pub(super) use {families, operations, setting};
