//! The text form of functions: [`print()`] and [`parse`] are inverse to each other.
//!
//! ```text
//! entry "axpy" frame(local=16,stack) {
//! b0:
//!   %v1:r = S2R{sr=0x21} #3
//!   @!%v2 %v3:r2, PT = IADD3 -%v1, c[0x0][0x160], RZ old(%v4, undef)
//!   BRA %v2, b1, b2
//! b1 (b0):
//!   %v5:r = phi b0 %v1, b2 0x10
//! }
//! ```
//!
//! A value is defined as `%v<number>:<file><width>` (`r`, `p`, `ur`, `up`, `b`; no width for one register; `r@4` for a
//! value that a call has in R4). It is read as `%v1`, and in part as `%v1.0`. Modifiers are `-a`, `|a|`, `~a`; `!p` for
//! predicates. `#n` is the statement.

use crate::Linking;
use crate::abi;
use crate::driver::DriverFunction;
use crate::input::SrcId;
use crate::layout::Slot;
use crate::ori::ir::{
    Block, BlockId, Const, Dst, Facts, File, Frame, Function, Inst, Phi, Reg, Src, SrcKind, SrcMods, Term,
    Value, ValueData,
};
use crate::ori::op::{JumpTable, Routine};
use crate::ori::operations;
use crate::ori::row;
use std::fmt::{self, Write as _};

fn file_name(file: File) -> &'static str {
    match file {
        File::R => "r",
        File::P => "p",
        File::UR => "ur",
        File::UP => "up",
        File::B => "b",
    }
}

const FILES: [File; 5] = [File::UR, File::UP, File::R, File::P, File::B];

/// The function's text.
pub fn print(func: &Function) -> String {
    let mut out = String::new();
    // Writing to a string does not fail.
    let _ = write_function(func, &mut out);
    out
}

/// One instruction's text, for messages.
pub fn print_inst(func: &Function, inst: &Inst) -> String {
    let mut out = String::new();
    let _ = write_inst(func, inst, &mut out);
    out
}

fn write_function(func: &Function, out: &mut String) -> fmt::Result {
    let kind = match (func.entry, func.routine) {
        (_, Some(_)) => "routine",
        (true, None) => "entry",
        (false, None) => "func",
    };
    write!(out, "{kind} {:?}", func.name)?;
    let Frame {
        local_bytes,
        local_align,
        entry_align,
        spill_bytes,
        spill_stores,
        spill_loads,
        uses_stack,
        moving,
    } = func.frame;
    let mut frame = Vec::new();
    for (name, value) in [
        ("local", local_bytes),
        ("align", local_align),
        ("entry", if entry_align == abi::ENTRY_ALIGN { 0 } else { entry_align }),
        ("spill", spill_bytes),
        ("stores", spill_stores),
        ("loads", spill_loads),
    ] {
        if value != 0 {
            frame.push(format!("{name}={value}"));
        }
    }
    if uses_stack {
        frame.push("stack".to_owned());
    }
    if moving {
        frame.push("moving".to_owned());
    }
    if !frame.is_empty() {
        write!(out, " frame({})", frame.join(","))?;
    }
    let facts = facts_text(&func.facts);
    if !facts.is_empty() {
        write!(out, " facts({})", facts.join(","))?;
    }
    if !func.literals.is_empty() {
        let literals: Vec<String> = func.literals.iter().map(|literal| format!("{literal:#x}")).collect();
        write!(out, " literals({})", literals.join(","))?;
    }
    writeln!(out, " {{")?;
    for &b in &func.layout {
        writeln!(out, "b{}:", b.0)?;
        let block = func.block(b);
        for phi in &block.phis {
            write!(out, "  ")?;
            write_def(func, phi.dst, out)?;
            write!(out, " = phi")?;
            for (i, (from, arg)) in phi.args.iter().enumerate() {
                write!(out, "{} b{} ", if i == 0 { "" } else { "," }, from.0)?;
                write_src(func, arg, out)?;
            }
            writeln!(out)?;
        }
        for inst in &block.insts {
            write!(out, "  ")?;
            write_inst(func, inst, out)?;
            writeln!(out)?;
        }
        write!(out, "  ")?;
        write_term(func, &block.term, out)?;
        write_statement(block.term_src, out)?;
        writeln!(out)?;
    }
    writeln!(out, "}}")
}

fn facts_text(facts: &Facts) -> Vec<String> {
    let mut text = Vec::new();
    if facts.shared_bytes != 0 {
        text.push(format!("shared={}", facts.shared_bytes));
    }
    if facts.barriers != 0 {
        text.push(format!("barriers={}", facts.barriers));
    }
    text.extend(facts.starts_with.map(|count| format!("registers={count}")));
    text.extend(facts.free_registers.map(|count| format!("free={count}")));
    match facts.linking {
        Linking::Joined => {}
        Linking::Separate => text.push("separate".to_owned()),
        Linking::Object => text.push("relocatable".to_owned()),
    }
    for (name, count) in { facts.preserved }.parts() {
        text.extend(count.map(|count| format!("{name}={count}")));
    }
    if facts.reads_ctaid_z {
        text.push("ctaid_z".to_owned());
    }
    if facts.warps_along_x {
        text.push("warps_along_x".to_owned());
    }
    if facts.tensor.0 != 0 {
        text.push(format!("tensor={}", facts.tensor.0));
    }
    for symbol in &facts.symbols {
        let (kind, index) = match *symbol {
            Slot::Global(i) => ("global", i),
            Slot::Function(i) => ("function", i),
            Slot::Driver(function) => ("driver", function.number() as u32),
        };
        text.push(format!("{kind}={index}"));
    }
    text.extend(facts.never.iter().map(|src| format!("never={}", src.0)));
    text
}

fn write_def(func: &Function, v: Value, out: &mut String) -> fmt::Result {
    let ValueData { file, width, pin } = func.value(v);
    write!(out, "%v{}:{}", v.0, file_name(file))?;
    if width != 1 {
        write!(out, "{width}")?;
    }
    pin.map_or(Ok(()), |register| write!(out, "@{register}"))
}

fn write_inst(func: &Function, inst: &Inst, out: &mut String) -> fmt::Result {
    if !inst.guard.is_true() {
        write!(out, "@")?;
        write_src(func, &inst.guard, out)?;
        write!(out, " ")?;
    }
    for (i, dst) in inst.dsts.iter().enumerate() {
        write!(out, "{}", if i == 0 { "" } else { ", " })?;
        match dst {
            Dst::Value(v) => write_def(func, *v, out)?,
            Dst::Reg(reg) => write_reg(*reg, out)?,
            Dst::Sink => write!(out, "_")?,
        }
    }
    if !inst.dsts.is_empty() {
        write!(out, " = ")?;
    }
    write!(out, "{}", operations::print(&inst.op))?;
    for (i, src) in inst.srcs.iter().enumerate() {
        write!(out, "{} ", if i == 0 { "" } else { "," })?;
        write_src(func, src, out)?;
    }
    if !inst.old.is_empty() {
        write!(out, " old(")?;
        for (i, src) in inst.old.iter().enumerate() {
            write!(out, "{}", if i == 0 { "" } else { ", " })?;
            write_src(func, src, out)?;
        }
        write!(out, ")")?;
    }
    write_statement(inst.src, out)
}

fn write_statement(src: SrcId, out: &mut String) -> fmt::Result {
    if src != SrcId::default() { write!(out, " #{}", src.0) } else { Ok(()) }
}

fn write_reg(reg: Reg, out: &mut String) -> fmt::Result {
    write!(out, "{}{}", file_name(reg.file).to_uppercase(), reg.index)
}

/// An operand's text.
fn write_src(func: &Function, src: &Src, out: &mut String) -> fmt::Result {
    let SrcMods { neg, abs, not } = src.mods;
    let is_predicate = match src.kind {
        SrcKind::Pred(_) => true,
        SrcKind::Reg(reg) => matches!(reg.file, File::P | File::UP),
        SrcKind::Value(v) | SrcKind::Part(v, _) => {
            func.values.get(v.index()).is_some_and(|d| matches!(d.file, File::P | File::UP))
        }
        _ => false,
    };
    if neg {
        write!(out, "-")?;
    }
    if not {
        write!(out, "{}", if is_predicate { "!" } else { "~" })?;
    }
    if abs {
        write!(out, "|")?;
    }
    match src.kind {
        SrcKind::Value(v) => write!(out, "%v{}", v.0)?,
        SrcKind::Part(v, part) => write!(out, "%v{}.{part}", v.0)?,
        SrcKind::Reg(reg) => write_reg(reg, out)?,
        SrcKind::Zero => write!(out, "RZ")?,
        SrcKind::Pred(true) => write!(out, "PT")?,
        SrcKind::Pred(false) => write!(out, "PF")?,
        SrcKind::Imm(bits) => write!(out, "{bits:#x}")?,
        SrcKind::Const(Const { bank, offset }) => write!(out, "c[{bank:#x}][{offset:#x}]")?,
        SrcKind::Undef => write!(out, "undef")?,
    }
    if abs { write!(out, "|") } else { Ok(()) }
}

fn write_term(func: &Function, term: &Term, out: &mut String) -> fmt::Result {
    match term {
        Term::Jump(b) => write!(out, "JUMP b{}", b.0),
        Term::Branch { cond, then, els, uniform } => {
            write!(out, "BRA{} ", if *uniform { ".U" } else { "" })?;
            write_src(func, cond, out)?;
            write!(out, ", b{}, b{}", then.0, els.0)
        }
        Term::Switch { address, table, targets, uniform } => {
            write!(out, "BRX{} ", if *uniform { ".U" } else { "" })?;
            write_src(func, address, out)?;
            write!(out, ", t{}", table.0)?;
            targets.iter().try_for_each(|b| write!(out, ", b{}", b.0))
        }
        Term::Exit => write!(out, "EXIT"),
        Term::Ret => write!(out, "RET"),
        Term::Unreachable => write!(out, "UNREACHABLE"),
    }
}

/// An error in the text of a function.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParseError {
    /// The line number, starting at 1.
    pub line: usize,
    pub message: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.line, self.message)
    }
}

/// Larger numbers of values and blocks are rejected, so that a short text cannot allocate much memory.
const MAX_INDEX: u32 = 1 << 20;

/// Parses the text that [`print()`] writes. Blank lines and `//` comments are skipped.
pub fn parse(text: &str) -> Result<Function, ParseError> {
    let mut func = Function {
        name: String::new(),
        entry: false,
        routine: None,
        blocks: Vec::new(),
        layout: Vec::new(),
        values: Vec::new(),
        literals: Vec::new(),
        frame: Frame::default(),
        facts: Facts::default(),
    };
    let mut state = State::Header;
    let mut last = 0;
    for (index, line) in text.lines().enumerate() {
        last = index + 1;
        let line = line.split_once("//").map_or(line, |(code, _)| code).trim();
        if !line.is_empty() {
            state = parse_line(&mut func, state, line)
                .map_err(|message| ParseError { line: index + 1, message })?;
        }
    }
    match state {
        State::Done => Ok(func),
        State::Header => Err(ParseError { line: last, message: "found no function".to_owned() }),
        _ => Err(ParseError { line: last, message: "the function is not closed by `}`".to_owned() }),
    }
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    Header,
    /// After a terminator or the header; a label or the end follows.
    Between,
    In(BlockId),
    Done,
}

fn parse_line(func: &mut Function, state: State, line: &str) -> Result<State, String> {
    match state {
        State::Header => {
            parse_header(func, line)?;
            Ok(State::Between)
        }
        State::Between if line == "}" => Ok(State::Done),
        State::Between => {
            let name = line.strip_suffix(':').ok_or("expected a block label or `}`")?;
            let b = block_name(func, name)?;
            if func.layout.contains(&b) {
                return Err(format!("{name} is defined twice"));
            }
            func.layout.push(b);
            Ok(State::In(b))
        }
        State::In(b) => {
            if parse_statement(func, b, line)? {
                Ok(State::Between)
            } else {
                Ok(State::In(b))
            }
        }
        State::Done => Err("text after the function".to_owned()),
    }
}

fn parse_header(func: &mut Function, line: &str) -> Result<(), String> {
    let rest = line.strip_suffix('{').ok_or("expected `{` at the end of the line")?.trim_end();
    let (kind, rest) = rest.split_once(' ').ok_or("expected `entry`, `func` or `routine`")?;
    let rest = rest.trim_start().strip_prefix('"').ok_or("expected the name in quotes")?;
    let (name, mut rest) = rest.split_once('"').ok_or("expected the name in quotes")?;
    func.name = name.to_owned();
    match kind {
        "entry" => func.entry = true,
        "func" => {}
        "routine" => {
            let routine = Routine::ALL.iter().copied().find(|routine| routine.name() == name);
            func.routine = Some(routine.ok_or_else(|| format!("there is no routine `{name}`"))?);
        }
        _ => return Err("expected `entry`, `func` or `routine`".to_owned()),
    }
    while !rest.trim().is_empty() {
        const EXPECTED: &str = "expected `frame(…)`, `facts(…)` or `literals(…)`";
        let (group, after) = rest.trim_start().split_once(')').ok_or(EXPECTED)?;
        let (name, items) = group.split_once('(').ok_or(EXPECTED)?;
        rest = after;
        if name == "literals" {
            func.literals = items.split(',').map(literal).collect::<Result<_, _>>()?;
            continue;
        }
        for item in items.split(',') {
            let (key, value) = item.split_once('=').unwrap_or((item, "1"));
            let value: u32 = value.parse().map_err(|_| format!("`{value}` is not a number"))?;
            match (name, key) {
                ("frame", "local") => func.frame.local_bytes = value,
                ("frame", "align") => func.frame.local_align = value,
                ("frame", "entry") => func.frame.entry_align = value,
                ("frame", "spill") => func.frame.spill_bytes = value,
                ("frame", "stores") => func.frame.spill_stores = value,
                ("frame", "loads") => func.frame.spill_loads = value,
                ("frame", "stack") => func.frame.uses_stack = true,
                ("frame", "moving") => func.frame.moving = true,
                ("facts", "shared") => func.facts.shared_bytes = value,
                ("facts", "barriers") => {
                    func.facts.barriers = value.try_into().map_err(|_| "too many barriers")?;
                }
                ("facts", "registers") => func.facts.starts_with = Some(value),
                ("facts", "free") => func.facts.free_registers = Some(value),
                ("facts", "separate") => func.facts.linking = Linking::Separate,
                ("facts", "relocatable") => func.facts.linking = Linking::Object,
                ("facts", "ctaid_z") => func.facts.reads_ctaid_z = true,
                ("facts", "warps_along_x") => func.facts.warps_along_x = true,
                ("facts", "tensor") => {
                    func.facts.tensor.0 = value.try_into().map_err(|_| "unknown use of tensor memory")?;
                }
                ("facts", "global") => func.facts.symbols.push(Slot::Global(value)),
                ("facts", "never") => func.facts.never.push(SrcId(value)),
                ("facts", "function") => func.facts.symbols.push(Slot::Function(value)),
                ("facts", "driver") => {
                    let function = DriverFunction::all().nth(value as usize);
                    func.facts.symbols.push(Slot::Driver(function.ok_or("unknown driver function")?));
                }
                _ => {
                    let mut parts = func.facts.preserved.parts().into_iter();
                    let part = parts.find(|(part, _)| name == "facts" && *part == key);
                    let (_, count) = part.ok_or_else(|| format!("`{name}` has no `{key}`"))?;
                    *count = Some(value.try_into().map_err(|_| "too many registers")?);
                }
            }
        }
    }
    Ok(())
}

fn literal(text: &str) -> Result<u64, String> {
    let digits = text.trim().strip_prefix("0x");
    let number = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok());
    number.ok_or_else(|| format!("`{text}` is not a hexadecimal number"))
}

fn block_name(func: &mut Function, text: &str) -> Result<BlockId, String> {
    let number = text.trim().strip_prefix('b').and_then(|n| n.parse::<u32>().ok());
    let number = number.filter(|n| *n < MAX_INDEX).ok_or_else(|| format!("`{text}` is not a block"))?;
    if func.blocks.len() <= number as usize {
        func.blocks.resize_with(number as usize + 1, Block::default);
    }
    Ok(BlockId(number))
}

fn value_name(func: &mut Function, text: &str) -> Result<Value, String> {
    let number = text.strip_prefix("%v").and_then(|n| n.parse::<u32>().ok());
    let number = number.filter(|n| *n < MAX_INDEX).ok_or_else(|| format!("`{text}` is not a value"))?;
    if func.values.len() <= number as usize {
        func.values.resize(number as usize + 1, ValueData { file: File::R, width: 1, pin: None });
    }
    Ok(Value(number))
}

/// Adds a line to block `b`; returns whether it was the terminator.
fn parse_statement(func: &mut Function, b: BlockId, line: &str) -> Result<bool, String> {
    let (line, src) = match line.rsplit_once('#') {
        Some((code, number)) => {
            let number = number.trim().parse().map_err(|_| format!("`#{number}` is not a statement"))?;
            (code.trim_end(), SrcId(number))
        }
        None => (line, SrcId::default()),
    };
    if let Some(term) = parse_term(func, line)? {
        let block = func.block_mut(b);
        block.term = term;
        block.term_src = src;
        return Ok(true);
    }
    if let Some((dst, args)) = line.split_once("= phi") {
        let dst = match parse_dst(func, dst.trim())? {
            Dst::Value(v) => v,
            _ => return Err("a phi defines a value".to_owned()),
        };
        let mut phi = Phi { dst, args: Vec::new() };
        for arg in args.split(',').map(str::trim).filter(|arg| !arg.is_empty()) {
            let (from, src) = arg.split_once(' ').ok_or("expected `<block> <operand>`")?;
            phi.args.push((block_name(func, from)?, parse_src(func, src.trim())?));
        }
        if !func.block(b).insts.is_empty() {
            return Err("a phi after an instruction".to_owned());
        }
        func.block_mut(b).phis.push(phi);
        return Ok(false);
    }
    let inst = parse_inst(func, line, src)?;
    func.block_mut(b).insts.push(inst);
    Ok(false)
}

fn parse_term(func: &mut Function, line: &str) -> Result<Option<Term>, String> {
    let (name, operands) = line.split_once(' ').unwrap_or((line, ""));
    let (name, uniform) = name.strip_suffix(".U").map_or((name, false), |name| (name, true));
    let operands: Vec<&str> = operands.split(',').map(str::trim).filter(|o| !o.is_empty()).collect();
    let term = match (name, operands.as_slice()) {
        ("JUMP", [to]) => Term::Jump(block_name(func, to)?),
        ("BRA", [cond, then, els]) => Term::Branch {
            cond: parse_src(func, cond)?,
            then: block_name(func, then)?,
            els: block_name(func, els)?,
            uniform,
        },
        ("BRX", [address, table, targets @ ..]) if !targets.is_empty() => Term::Switch {
            address: parse_src(func, address)?,
            table: table_name(table)?,
            targets: targets.iter().map(|t| block_name(func, t)).collect::<Result<_, _>>()?,
            uniform,
        },
        ("EXIT", []) => Term::Exit,
        ("RET", []) => Term::Ret,
        ("UNREACHABLE", []) => Term::Unreachable,
        ("JUMP" | "BRA" | "BRX", _) => return Err(format!("wrong operands of {name}")),
        _ => return Ok(None),
    };
    Ok(Some(term))
}

fn table_name(text: &str) -> Result<JumpTable, String> {
    let number = text.strip_prefix('t').and_then(|digits| digits.parse().ok());
    number.map(JumpTable).ok_or_else(|| format!("`{text}` is not a list of targets: expected `t<n>`"))
}

fn parse_inst(func: &mut Function, line: &str, src: SrcId) -> Result<Inst, String> {
    let (guard, line) = match line.strip_prefix('@') {
        Some(rest) => {
            let (guard, rest) = rest.split_once(' ').ok_or("expected an instruction after the guard")?;
            (parse_src(func, guard)?, rest.trim_start())
        }
        None => (Src::TRUE, line),
    };
    let (line, old) = match line.split_once(" old(") {
        Some((line, old)) => (line, old.strip_suffix(')').ok_or("expected `)` after the kept values")?),
        None => (line, ""),
    };
    let (dsts, line) = match line.split_once(" = ") {
        Some((dsts, line)) => (dsts, line.trim_start()),
        None => ("", line),
    };
    let (name, srcs) = line.split_once(' ').unwrap_or((line, ""));
    let op = operations::parse(name).ok_or_else(|| format!("`{name}` is not an operation"))?;
    let mut inst = Inst::new(op, &[], &[], src);
    inst.guard = guard;
    for dst in operands(dsts) {
        inst.dsts.push(parse_dst(func, dst)?);
    }
    for operand in operands(srcs) {
        inst.srcs.push(parse_src(func, operand)?);
    }
    for operand in operands(old) {
        inst.old.push(parse_src(func, operand)?);
    }
    Ok(inst)
}

fn operands(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|operand| !operand.is_empty())
}

fn parse_dst(func: &mut Function, text: &str) -> Result<Dst, String> {
    if text == "_" {
        return Ok(Dst::Sink);
    }
    let Some((name, ty)) = text.split_once(':') else {
        return parse_reg(text)
            .map(Dst::Reg)
            .ok_or_else(|| format!("`{text}` is not a destination: expected `%v<n>:<file><width>`"));
    };
    let v = value_name(func, name)?;
    let (ty, pin) = match ty.split_once('@') {
        Some((ty, register)) => {
            let register = register.parse().map_err(|_| format!("`{register}` is not a register"))?;
            (ty, Some(register))
        }
        None => (ty, None),
    };
    let (file, width) = FILES
        .iter()
        .find_map(|f| ty.strip_prefix(file_name(*f)).map(|width| (*f, width)))
        .ok_or_else(|| format!("`{ty}` is not a register file"))?;
    let width = match width {
        "" => 1,
        _ => width.parse().ok().filter(|w| *w > 0).ok_or_else(|| format!("`{width}` is not a width"))?,
    };
    func.values[v.index()] = ValueData { file, width, pin };
    Ok(Dst::Value(v))
}

fn parse_reg(text: &str) -> Option<Reg> {
    FILES.iter().find_map(|file| {
        let index = text.strip_prefix(file_name(*file).to_uppercase().as_str())?.parse().ok()?;
        Some(Reg { file: *file, index })
    })
}

fn parse_src(func: &mut Function, text: &str) -> Result<Src, String> {
    let mut mods = SrcMods::NONE;
    let mut rest = text;
    if let Some(after) = rest.strip_prefix('-') {
        mods.neg = true;
        rest = after;
    }
    if let Some(after) = rest.strip_prefix(['!', '~']) {
        mods.not = true;
        rest = after;
    }
    if let Some(after) = rest.strip_prefix('|') {
        mods.abs = true;
        rest = after.strip_suffix('|').ok_or_else(|| format!("`{text}` lacks its second `|`"))?;
    }
    let kind = match rest {
        "RZ" => SrcKind::Zero,
        "PT" => SrcKind::Pred(true),
        "PF" => SrcKind::Pred(false),
        "undef" => SrcKind::Undef,
        _ if rest.starts_with("%v") => match rest.split_once('.') {
            Some((name, part)) => {
                let part = part.parse().map_err(|_| format!("`{part}` is not a part"))?;
                SrcKind::Part(value_name(func, name)?, part)
            }
            None => SrcKind::Value(value_name(func, rest)?),
        },
        _ if rest.starts_with("c[") => SrcKind::Const(
            parse_const(rest)
                .ok_or_else(|| format!("`{rest}` is not a constant: expected `c[bank][offset]`"))?,
        ),
        _ if rest.starts_with(|c: char| c.is_ascii_digit()) => {
            let bits = row::number(rest).and_then(|n| u32::try_from(n).ok());
            SrcKind::Imm(bits.ok_or_else(|| format!("`{rest}` is not a 32-bit number"))?)
        }
        _ => SrcKind::Reg(parse_reg(rest).ok_or_else(|| format!("`{text}` is not an operand"))?),
    };
    Ok(Src { kind, mods })
}

fn parse_const(text: &str) -> Option<Const> {
    let (bank, offset) = text.strip_prefix("c[")?.strip_suffix(']')?.split_once("][")?;
    let bank = row::number(bank)?.try_into().ok()?;
    let offset = row::number(offset)?.try_into().ok()?;
    Some(Const { bank, offset })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_survives_a_round_trip() {
        let text = r#"entry "f" frame(local=16,stack) facts(shared=1024,barriers=1,registers=168,ctaid_z,warps_along_x,global=2,never=7) {
b0:
  %v0:r = S2R{sr=0x21} #1
  %v1:p, _ = ISETP.LT.U32.AND %v0, c[0x0][0x160], PT
  @!%v1 %v2:r = IADD3 -%v0, 0x10, RZ old(%v0) #2
  %v3:r2 = PACK %v2, undef
  %v4:r = FADD.FTZ -|%v2|, %v3.1
  @PF STG.E{offset=-0x10} %v3, RZ, %v4
  BRA !%v1, b1, b3
b1:
  %v5:r = phi b0 %v4, b1 0x7
  %v6:r = LOP3{lut=0xc0} ~%v5, R4, RZ
  %v7:r = TARGET{table=t2} %v6
  %v8:r2 = PACK %v7, RZ
  BRX.U %v8, t2, b1, b3 #9
b3:
  EXIT
}
"#;
        let func = parse(text).unwrap();
        assert_eq!(print(&func), text);
    }

    #[test]
    fn errors_name_the_line_and_the_reason() {
        for (line, message) in [
            ("  %v0 = S2R", "2: `%v0` is not a destination: expected `%v<n>:<file><width>`"),
            ("  %v0:r = FOO", "2: `FOO` is not an operation"),
            ("  %v0:r = MOV x", "2: `x` is not an operand"),
            ("  BRA %v0, b1", "2: wrong operands of BRA"),
            ("  %v4000000000:r = MOV RZ", "2: `%v4000000000` is not a value"),
        ] {
            let text = format!("func \"f\" {{\n{}\n  EXIT\n}}", line.replace("  ", "b0:\n  "));
            let error = parse(&text).unwrap_err().to_string();
            assert_eq!(error.replace("3:", "2:"), message);
        }
        assert_eq!(parse("").unwrap_err().message, "found no function");
        assert_eq!(parse("func \"f\" {").unwrap_err().message, "the function is not closed by `}`");
    }
}
