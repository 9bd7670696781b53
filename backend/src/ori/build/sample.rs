//! For tests: builds functions from short texts in a subset of PTX, with one statement per `;`.
//!
//! Registers are typed by their names' prefixes: `%p` predicate, `%rs` 16 bits, `%r` 32, `%rd` 64, `%f` float,
//! `%fd` double. Declarations: `param <type> <name>`, `shared|local|global|const <bytes> <name>`,
//! `.branchtargets <labels>`; the lists are the operands `$0`, `$1`, ….

use crate::input::*;
use crate::ori::ir;
use crate::{CodegenError, Options};
use ptx_isa::{PtxVersion, ScalarType, Sm, Space, SpecialReg};
use std::collections::HashMap;

pub(crate) struct Sample {
    pub(crate) env: Env,
    pub(crate) func: Function,
    registers: HashMap<String, RegId>,
    labels: HashMap<String, LabelId>,
    symbols: HashMap<String, Symbol>,
}

impl Sample {
    pub(crate) fn new(text: &str) -> Sample {
        let version = PtxVersion::new(8, 8);
        let target = Sm::new(80);
        let env = Env {
            version,
            target,
            address_size: 64,
            independent_samplers: false,
            variables: Vec::new(),
            functions: Vec::new(),
            pointees_wait: true,
            pointees_watch: true,
            nounroll: false,
        };
        let func =
            Function { name: "sample".into(), entry: true, linkage: Linkage::Visible, ..Function::default() };
        let (registers, labels, symbols) = Default::default();
        let mut sample = Sample { env, func, registers, labels, symbols };
        for statement in text.split([';', '\n']).map(str::trim).filter(|s| !s.is_empty()) {
            sample.statement(statement);
        }
        sample.func.labels = sample.labels.len() as u32;
        sample
    }

    /// The SSA of this sample for a target.
    pub(crate) fn build(&self, sm: u16) -> Result<ir::Function, CodegenError> {
        let options = Options::new(Sm::new(sm));
        super::build(&self.env, &self.func, &options, None, &|| ())
    }

    fn statement(&mut self, text: &str) {
        if let Some(label) = text.strip_suffix(':') {
            let label = self.label(label);
            return self.func.body.push(Stmt::Label(label));
        }
        if let Some(list) = text.strip_prefix(".branchtargets ") {
            let labels = split(list).into_iter().map(|l| self.label(l)).collect();
            return self.func.targets.push(labels);
        }
        let words: Vec<&str> = text.split_whitespace().collect();
        match words[..] {
            ["param", ty, name] => return self.param(ScalarType::parse(ty).unwrap(), name),
            [space @ ("shared" | "local" | "global" | "const"), bytes, name] => {
                return self.variable(space, bytes.parse().unwrap(), name);
            }
            _ => {}
        }
        let (guard, text) = match text.strip_prefix('@') {
            Some(rest) => {
                let (guard, rest) = rest.split_once(' ').unwrap();
                let negated = guard.starts_with('!');
                (Some(Guard { reg: self.register(guard.trim_start_matches('!')), negated }), rest.trim())
            }
            None => (None, text),
        };
        let (name, operands) = text.split_once(' ').unwrap_or((text, ""));
        let mut parts = name.split('.');
        let mnemonic = parts.next().unwrap();
        let suffixes: Vec<&str> = parts.collect();
        let opcode = ptx_isa::resolve(mnemonic, &suffixes).unwrap_or_else(|e| panic!("{name}: {e:?}"));
        let operands = split(operands).into_iter().map(|o| self.operand(o)).collect();
        let src = SrcId(self.func.instrs().count() as u32);
        self.func.body.push(Stmt::Instr(Instr { src, opcode, guard, operands }));
    }

    fn param(&mut self, ty: ScalarType, name: &str) {
        let end = self.func.params.last().map_or(0, |p| p.offset + p.size);
        let size = ty.bytes();
        let offset = end.next_multiple_of(size);
        self.symbols.insert(name.into(), Symbol::Param(self.func.params.len() as u32));
        self.func.params.push(Param {
            name: name.into(),
            ty,
            size,
            is_array: false,
            align: size,
            offset,
            reg: None,
            pointer: None,
        });
    }

    fn variable(&mut self, space: &str, size: u64, name: &str) {
        let space = match space {
            "shared" => Space::Shared,
            "local" => Space::Local,
            "global" => Space::Global,
            _ => Space::Const,
        };
        let (linkage, ty, init) = (Linkage::Internal, ScalarType::B32, None);
        let variable = Variable {
            name: name.into(),
            space,
            linkage,
            ty,
            size,
            align: 4,
            init,
            managed: false,
            unified: None,
        };
        let inside = matches!(space, Space::Shared | Space::Local);
        let list = if inside { &mut self.func.locals } else { &mut self.env.variables };
        let index = list.len() as u32;
        list.push(variable);
        self.symbols.insert(name.into(), if inside { Symbol::Local(index) } else { Symbol::Global(index) });
    }

    fn label(&mut self, name: &str) -> LabelId {
        let next = LabelId(self.labels.len() as u32);
        *self.labels.entry(name.into()).or_insert(next)
    }

    pub(crate) fn register(&mut self, name: &str) -> RegId {
        if let Some(reg) = self.registers.get(name) {
            return *reg;
        }
        let ty = match name.trim_start_matches('%').trim_end_matches(|c: char| c.is_ascii_digit()) {
            "p" => ScalarType::Pred,
            "rs" => ScalarType::B16,
            "r" => ScalarType::B32,
            "rd" => ScalarType::B64,
            "f" => ScalarType::F32,
            "fd" => ScalarType::F64,
            other => panic!("register prefix {other}"),
        };
        let reg = RegId(self.func.regs.len() as u32);
        self.func.regs.push(Register { ty, shared: None });
        self.registers.insert(name.into(), reg);
        reg
    }

    fn operand(&mut self, text: &str) -> Operand {
        let text = text.trim();
        if text == "_" {
            return Operand::Sink;
        }
        if let Some(inner) = text.strip_prefix('{').and_then(|t| t.strip_suffix('}')) {
            return Operand::Vector(split(inner).into_iter().map(|o| self.operand(o)).collect());
        }
        if let Some(inner) = text.strip_prefix('[').and_then(|t| t.strip_suffix(']')) {
            let (base, offset) = inner.split_once('+').unwrap_or((inner, "0"));
            let base = match base.strip_prefix('%') {
                Some(_) => AddressBase::Reg(self.register(base)),
                None => AddressBase::Symbol(self.symbols[base]),
            };
            return Operand::Address(Address { base, offset: offset.parse().unwrap() });
        }
        if let Some((first, second)) = text.split_once('|') {
            return Operand::Pair(Box::new((self.operand(first), self.operand(second))));
        }
        if let Some(name) = text.strip_prefix('!') {
            return Operand::NotPred(self.register(name));
        }
        if let Some(list) = text.strip_prefix('$') {
            return Operand::Targets(list.parse().unwrap());
        }
        if let Some(special) = SpecialReg::parse(text) {
            return Operand::Special(special);
        }
        if text.starts_with('%') {
            return Operand::Reg(self.register(text));
        }
        if let Some(bits) = text.strip_prefix("0f") {
            return Operand::F32(u32::from_str_radix(bits, 16).unwrap());
        }
        if let Some(bits) = text.strip_prefix("0d") {
            return Operand::F64(u64::from_str_radix(bits, 16).unwrap());
        }
        if let Some(hex) = text.strip_prefix("0x") {
            return Operand::Int(u64::from_str_radix(hex, 16).unwrap() as i64);
        }
        if let Ok(value) = text.parse() {
            return Operand::Int(value);
        }
        match self.symbols.get(text) {
            Some(symbol) => Operand::Symbol(*symbol, 0),
            None => Operand::Label(self.label(text)),
        }
    }
}

/// Splits at commas outside brackets.
fn split(text: &str) -> Vec<&str> {
    let (mut depth, mut start, mut parts) = (0, 0, Vec::new());
    for (i, c) in text.char_indices() {
        match c {
            '{' | '[' => depth += 1,
            '}' | ']' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&text[start..i]);
                start = i + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts.into_iter().map(str::trim).filter(|p| !p.is_empty()).collect()
}
