//! What could be written at an offset.

use ptx_isa::{
    Class, Directive, Expected, ExpectedType, Form, Gate, Opcode, Rule, ScalarType, Sm, SpecialReg, Suffix,
    Then, forms_of,
};
use text_size::{TextRange, TextSize};

use crate::db::{Database, Db, SourceFile};
use crate::diagnostic::TextEdit;
use crate::ide::reference::{modifier_needs, needs};
use crate::ide::signature_help::{operand_at, spelled, statement_before, word_before};
use crate::ide::words;
use crate::ide::{Completion, CompletionKind};
use crate::items::Item;
use crate::locate::spot;
use crate::lower::lower;
use crate::module::module;
use crate::scope::DeclKind;
use ptx_backend::input::Symbol;

/// Completions at an offset, best kinds first; clients filter by prefix.
pub fn completions(db: &Database, file: SourceFile, offset: TextSize) -> Vec<Completion> {
    let Some(spot) = spot(db, file, offset)
        .or_else(|| (offset > TextSize::new(0)).then(|| spot(db, file, offset - TextSize::new(1))).flatten())
    else {
        return Vec::new();
    };
    let text = file.text(db);
    let Some(before) = text.get(..usize::from(offset)) else { return Vec::new() };
    let word = word_before(text, offset);
    let item = spot.item;
    let mut out = Collector { edit: word, items: Vec::new() };
    let line = before.rsplit('\n').next().unwrap_or_default();
    if line.contains("//") {
        return Vec::new();
    }
    if line.trim_start().starts_with(".target") {
        for sm in Sm::KNOWN {
            out.add(&sm.to_string(), CompletionKind::Target, format!("since PTX ISA {}", sm.since()));
        }
        return out.items;
    }
    let inside = lower(db, item).has_body && is_in_braces(item.text(db), offset - item.offset(db));
    let statement = statement_before(before);
    if inside && is_guard(before) {
        names(&mut out, db, item, offset, &OperandPlace::guard());
        return out.items;
    }
    let dotted = text[..usize::from(word.start())].ends_with('.');
    if !inside {
        directives(&mut out, dotted);
        return out.items;
    }
    match statement.split_once(|c: char| c.is_ascii_whitespace()) {
        // Still in the name.
        None if statement.contains('.') && !statement.starts_with('.') => {
            modifiers(
                &mut out,
                &statement[..statement.len() - usize::from(word.len()) - usize::from(dotted)],
            );
        }
        None if statement.starts_with('.') => directives(&mut out, dotted),
        None => {
            for &mnemonic in ptx_isa::mnemonics() {
                let form = forms_of(mnemonic).first().map(|&id| ptx_isa::form(id));
                let operands = form.map_or(String::new(), |form| {
                    form.operands.iter().map(spelled).collect::<Vec<_>>().join(", ")
                });
                out.add(mnemonic, CompletionKind::Mnemonic, operands);
            }
            directives(&mut out, dotted);
        }
        Some((name, rest)) => {
            if name.starts_with('.') {
                directives(&mut out, dotted);
                for ty in ScalarType::ALL {
                    out.add_dotted(ty.text(), dotted, CompletionKind::Type, format!("{} bits", ty.bits()));
                }
                return out.items;
            }
            let place = OperandPlace::of(name, rest);
            names(&mut out, db, item, offset, &place);
            if place.takes_symbols() {
                module_names(&mut out, db, file, name.starts_with("call"));
            }
            if place.takes_specials() {
                for register in SpecialReg::ALL {
                    out.add(register.text(), CompletionKind::SpecialRegister, register.about().to_owned());
                }
            }
        }
    }
    out.items
}

/// What the table says of the operand at the cursor; nothing where the name is none, or inside a vector or an address.
struct OperandPlace(Option<Expected>);

impl OperandPlace {
    /// The predicate of a guard.
    fn guard() -> Self {
        let opcode = ptx_isa::resolve("not", &["pred"]);
        let signature = opcode.ok().map(|opcode| ptx_isa::signature(&opcode));
        Self(signature.and_then(|signature| signature.operands.first().cloned()))
    }

    fn of(name: &str, rest: &str) -> Self {
        let mut words = name.split('.');
        let mnemonic = words.next().unwrap_or_default();
        let resolved = ptx_isa::resolve(mnemonic, &words.collect::<Vec<_>>());
        let expected = match (resolved, operand_at(rest)) {
            (Ok(opcode), Some(index)) if mnemonic != "call" => {
                ptx_isa::signature(&opcode).operands.get(index).cloned()
            }
            _ => None,
        };
        Self(expected)
    }

    fn takes(&self, class: Class) -> bool {
        self.0.as_ref().is_none_or(|operand| operand.class == Class::NONE || operand.class.intersects(class))
    }

    fn takes_register(&self, ty: ScalarType) -> bool {
        let Some(operand) = &self.0 else { return true };
        let more = Class::ANY_PAIR.or(Class::VECTOR).or(Class::ADDRESS).or(Class::TEXTURE);
        match (operand.ty, ty) {
            (ExpectedType::Typed(ScalarType::Pred), ScalarType::Pred) | (ExpectedType::Word, _) => true,
            // Rows of all types name both kinds: the type decides.
            (ExpectedType::Typed(_) | ExpectedType::AddressOf(..), ScalarType::Pred)
                if self.takes(Class::REGISTER) =>
            {
                self.takes(Class::ANY_PAIR)
            }
            (_, ScalarType::Pred) => self.takes(Class::ANY_PAIR.or(Class::PREDICATE)),
            (ExpectedType::Typed(ScalarType::Pred), _) => false,
            _ => self.takes(more.or(Class::REGISTER)),
        }
    }

    fn takes_labels(&self) -> bool {
        let lists = Class::BRANCH_TARGETS.or(Class::PROTOTYPE);
        self.0.is_some() && self.takes(Class::LABEL.or(lists).or(Class::SYMBOL))
    }

    /// Names of variables, parameters and functions.
    fn takes_symbols(&self) -> bool {
        self.takes(Class::SYMBOL.or(Class::ADDRESS).or(Class::TEXTURE).or(Class::LIST))
    }

    fn takes_specials(&self) -> bool {
        self.takes(Class::SPECIAL)
    }
}

struct Collector {
    edit: TextRange,
    items: Vec<Completion>,
}

impl Collector {
    fn add(&mut self, label: &str, kind: CompletionKind, detail: String) {
        let edit = TextEdit { range: self.edit, text: label.to_owned() };
        let dotted = || format!(".{}", label.trim_start_matches('.'));
        let documentation = match kind {
            CompletionKind::Mnemonic => ptx_isa::doc(label).map(str::to_owned),
            CompletionKind::Modifier | CompletionKind::Type => words::suffix(&dotted(), None),
            CompletionKind::Directive => words::directive(&dotted()),
            CompletionKind::SpecialRegister => words::special(label),
            _ => None,
        };
        let documentation = documentation.unwrap_or_default();
        self.items.push(Completion { label: label.to_owned(), kind, detail, documentation, edit });
    }

    /// A word that is written with a dot, which may be there already.
    fn add_dotted(&mut self, word: &str, dotted: bool, kind: CompletionKind, detail: String) {
        if dotted { self.add(word, kind, detail) } else { self.add(&format!(".{word}"), kind, detail) }
    }
}

fn directives(out: &mut Collector, dotted: bool) {
    for directive in Directive::ALL.iter().filter(|directive| !directive.name.starts_with('@')) {
        out.add_dotted(directive.name, dotted, CompletionKind::Directive, directive.about.to_owned());
    }
}

/// Whether a text ends in the name of a guard: behind `@` or `@!`.
fn is_guard(before: &str) -> bool {
    let name = before.trim_end_matches(|c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '%'));
    name.ends_with('@') || name.ends_with("@!")
}

/// Whether an offset is inside the braces of a body.
fn is_in_braces(text: &str, offset: TextSize) -> bool {
    text[..usize::from(offset)].contains('{')
}

/// What can follow a name such as `ld.global`: modifiers and types of the rows that fit so far.
fn modifiers(out: &mut Collector, name: &str) {
    let mut words = name.split('.').filter(|word| !word.is_empty());
    let Some(mnemonic) = words.next() else { return };
    let written: Vec<Suffix> = words.filter_map(Suffix::parse).collect();
    // A modifier with what it needs in every form that takes it.
    let mut seen: Vec<(Suffix, Option<Gate>)> = Vec::new();
    for &id in forms_of(mnemonic) {
        let form = ptx_isa::form(id);
        let types_written = written.iter().filter(|suffix| matches!(suffix, Suffix::Type(_))).count();
        let fits = written.iter().all(|suffix| match suffix {
            Suffix::Mod(m) => form.groups.iter().any(|group| group.contains(*m)),
            Suffix::Type(ty) => form.types.iter().any(|set| set.contains(*ty)),
        });
        if !fits {
            continue;
        }
        let open = form.groups.iter().filter(|group| {
            !written.iter().any(|suffix| matches!(suffix, Suffix::Mod(m) if group.contains(*m)))
        });
        let fits_on = |suffix: &Suffix| {
            let (mut mods, mut types) = (Vec::new(), Vec::new());
            for suffix in written.iter().chain([suffix]) {
                match *suffix {
                    Suffix::Mod(m) => mods.push(m),
                    Suffix::Type(ty) => types.push(ty),
                }
            }
            Opcode::new(id, &mods, &types).is_none_or(|opcode| is_possible(form, &opcode))
        };
        let mods = open.flat_map(|group| group.names).map(|&m| Suffix::Mod(m));
        let types = form.types.get(types_written).into_iter().flat_map(|set| set.iter()).map(Suffix::Type);
        for suffix in mods.chain(types).filter(fits_on) {
            let needs = match suffix {
                Suffix::Mod(m) => modifier_needs(form, m),
                Suffix::Type(_) => None,
            };
            match seen.iter_mut().find(|(other, _)| *other == suffix) {
                Some((_, known)) => *known = known.filter(|gate| needs == Some(*gate)),
                None => seen.push((suffix, needs)),
            }
        }
    }
    for (suffix, gate) in seen {
        match suffix {
            Suffix::Mod(m) => {
                let detail = gate.map_or(String::new(), |gate| needs(&gate));
                out.add_dotted(m.text(), true, CompletionKind::Modifier, detail);
            }
            Suffix::Type(ty) => {
                out.add_dotted(ty.text(), true, CompletionKind::Type, format!("{} bits", ty.bits()));
            }
        }
    }
}

/// Whether more suffixes may complete the name of an instruction of a form, as far as its rules tell.
fn is_possible(form: &Form, opcode: &Opcode) -> bool {
    // What a modifier to come may lift is not broken yet.
    let holds = |rule: &&Rule| rule.when.none.is_empty() && rule.when.holds(opcode);
    let rules = || form.rules.iter().filter(holds);
    let typed = form.types.iter().enumerate().all(|(position, &set)| {
        let left = |ty| {
            rules().all(|rule| match rule.then {
                Then::Types(at, set) if usize::from(at) == position => set.contains(ty),
                _ => true,
            })
        };
        match opcode.ty(position) {
            Some(ty) => left(ty),
            None => set.iter().any(left),
        }
    });
    typed
        && rules().all(|rule| match rule.then {
            Then::Excludes(mods) => !mods.iter().any(|&m| opcode.has(m)),
            Then::SameType(a, b) => opcode.ty(a.into()).zip(opcode.ty(b.into())).is_none_or(|(a, b)| a == b),
            Then::Types(..) | Then::Needs(_) | Then::Gate(_) | Then::Operand(..) => true,
        })
}

/// Most registers of one range that are offered.
const OFFERED: u32 = 64;

fn names(out: &mut Collector, db: &dyn Db, item: Item<'_>, offset: TextSize, place: &OperandPlace) {
    let (map, text) = (&lower(db, item).map, item.text(db));
    let here = offset - item.offset(db);
    let visible =
        map.declarations.iter().filter(|d| d.visible.contains_inclusive(here) && !d.range.is_empty());
    for declaration in visible {
        let name = &text[declaration.range];
        match declaration.kind {
            DeclKind::Label(_) | DeclKind::Targets(_) | DeclKind::Prototype(_) if !place.takes_labels() => {}
            DeclKind::Register { ty, .. } if !place.takes_register(ty) => {}
            DeclKind::Symbol(_) if !place.takes_symbols() => {}
            DeclKind::Label(_) => out.add(name, CompletionKind::Label, "label".to_owned()),
            DeclKind::Register { ty, count: None, .. } => {
                out.add(name, CompletionKind::Register, format!(".{}", ty.text()));
            }
            DeclKind::Register { ty, count: Some(count), .. } => {
                for number in 0..count.min(OFFERED) {
                    out.add(&format!("{name}{number}"), CompletionKind::Register, format!(".{}", ty.text()));
                }
            }
            DeclKind::Symbol(Symbol::Param(_) | Symbol::Return(_)) => {
                out.add(name, CompletionKind::Parameter, "parameter".to_owned());
            }
            DeclKind::Symbol(_) => out.add(name, CompletionKind::Variable, "variable".to_owned()),
            DeclKind::Targets(_) | DeclKind::Prototype(_) => {
                out.add(name, CompletionKind::Label, "list of branch or call targets".to_owned());
            }
        }
    }
}

fn module_names(out: &mut Collector, db: &dyn Db, file: SourceFile, functions_first: bool) {
    let env = &module(db, file).env;
    let functions = |out: &mut Collector| {
        for function in env.functions.iter().filter(|function| !function.entry) {
            out.add(
                &function.name,
                CompletionKind::Function,
                format!("{} parameters", function.params.len()),
            );
        }
    };
    if functions_first {
        functions(out);
    }
    for variable in &env.variables {
        out.add(&variable.name, CompletionKind::Variable, super::hover::describe_variable(variable));
    }
    if !functions_first {
        functions(out);
    }
}
