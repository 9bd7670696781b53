//! Combines a kernel and the functions that it may call into one piece of code, as in a kernel's section of ptxas.
//!
//! Functions are compiled one by one, and know only the declarations of other functions and, at most, the registers
//! that these overwrite. Here each kernel gets a copy of each function that it reaches, one after the other. Then the
//! references between them are filled in: targets of calls, return addresses, addresses of shared variables, and the
//! numbers that represent addresses of functions. Such a number is an offset in the kernel's constant bank 2, which
//! contains the start of the function there. So the number is the same in all kernels.

use crate::assemble::{CodeLink, JumpTable, LinkTo};
use crate::calls;
use crate::input::{Env, Linkage, SrcId, Symbol, Variable};
use crate::layout::{self, HandleWord, HandleWords};
use crate::ori::op::Link;
use crate::target::Target;
use crate::{CodegenError, CompiledFunction, LinkFunction};
use ptx_isa::Space;
use rustc_hash::{FxHashMap, FxHashSet};
use sass::{Field, Sm};

mod separate;

/// Bytes of an instruction.
const WORD: u64 = 16;
/// The size of a function's entry in bank 2. The first entry is not used.
const ENTRY: u32 = 8;
/// The largest offset in the bank that a load can encode, plus one, and the same for an operand.
const MOST_LOADED: u32 = 1 << 15;
const MOST_CONSTANTS: u32 = 1 << 16;

/// A kernel with the functions that it calls.
#[derive(Clone, Debug)]
pub struct Joined {
    /// The kernel, with its code followed by that of the functions, and with the resources of all of them. Its
    /// remaining links are those that the driver fills in, and those that are already correct because the code begins
    /// its section.
    pub kernel: CompiledFunction,
    /// The functions, in the order of their code.
    pub parts: Vec<Part>,
    /// The kernel's constant bank 2: the starts of functions whose addresses are taken, the target lists of indirect
    /// branches, then the literals.
    pub constants: Vec<u8>,
    /// Functions of the module, and the numbers that represent their addresses.
    pub addresses: Vec<(u32, u32)>,
    /// The shared variables that the code names, with their addresses, for debuggers. Empty if functions are joined.
    pub shared: Vec<(Symbol, u32)>,
    /// The kernel's frame, which contains those of the functions that are not [`Part::is_apart`].
    pub frame_bytes: u32,
}

/// A function in a kernel's code.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Part {
    pub name: String,
    pub linkage: Linkage,
    /// The offset in bytes from the start of the code.
    pub start: u64,
    pub bytes: u64,
    /// Whether the function's frame is its own. As in ptxas, the other functions use the frame of the kernel: those that
    /// are only called by name, without recursion, by the kernel and such functions.
    pub is_apart: bool,
    /// The size of its frame, if it is its own, with the frames of the functions that it calls.
    pub frame_bytes: u32,
}

/// The functions of a module, and the numbers that represent their addresses.
pub struct Program<'a> {
    env: &'a Env,
    /// By their index in [`Env::functions`].
    functions: FxHashMap<u32, LinkFunction<'a>>,
    /// The functions whose addresses are taken, in the order of the module.
    taken: Vec<u32>,
}

impl<'a> Program<'a> {
    /// `aliases`: aliases of functions, each with the function that it names.
    pub fn new(env: &'a Env, all: &[LinkFunction<'a>], aliases: &[(String, String)]) -> Program<'a> {
        let by_name: FxHashMap<&str, LinkFunction<'a>> =
            all.iter().filter(|f| !f.input.entry).map(|f| (f.input.name.as_str(), *f)).collect();
        let stands_for = |name: &str| {
            let aliased = || aliases.iter().find(|(alias, _)| alias == name).map(|(_, of)| of.as_str());
            by_name.get(name).or_else(|| by_name.get(aliased()?)).copied()
        };
        let functions = (0..)
            .zip(&env.functions)
            .filter_map(|(i, signature)| Some((i, stands_for(&signature.name)?)))
            .collect();
        let in_code = all.iter().flat_map(|f| &f.code.links).filter_map(|link| match link.to {
            LinkTo::Symbol(Link { symbol: Symbol::Function(i), .. }) => Some(i),
            _ => None,
        });
        let inits = env.variables.iter().filter_map(|v| v.init.as_ref()).flat_map(|init| &init.relocs);
        let in_data = inits.filter_map(|reloc| match reloc.symbol {
            Symbol::Function(i) => {
                Some(i).filter(|&i| env.functions.get(i as usize).is_some_and(|f| !f.entry))
            }
            _ => None,
        });
        let mut taken: Vec<u32> = in_code.chain(in_data).collect();
        taken.sort_unstable();
        taken.dedup();
        Program { env, functions, taken }
    }

    /// The name of the function with code that an alias names.
    pub fn stands_for(&self, function: u32) -> Option<&'a str> {
        self.functions.get(&function).map(|f| f.input.name.as_str())
    }

    /// The number that represents the address of a function.
    pub fn address(&self, function: u32) -> Option<u32> {
        let place = self.taken.binary_search(&function).ok()?;
        Some((place as u32 + 1) * ENTRY)
    }

    /// The size of the functions' part of a kernel's constants.
    fn bank_bytes(&self) -> u32 {
        (self.taken.len() as u32 + 1) * ENTRY
    }

    pub fn env(&self) -> &'a Env {
        self.env
    }

    fn addresses(&self) -> Vec<(u32, u32)> {
        self.taken.iter().filter_map(|&i| Some((i, self.address(i)?))).collect()
    }

    fn function(&self, index: u32) -> Result<LinkFunction<'a>, CodegenError> {
        self.functions.get(&index).copied().ok_or_else(|| {
            let name = self.env.functions.get(index as usize).map_or("", |f| &f.name);
            CodegenError::unsupported(
                SrcId(0),
                format!("the function '{name}', which has no code in this module"),
            )
        })
    }

    /// A kernel or a function, followed by the functions that it may call, and whether it may call functions through their
    /// addresses.
    fn reached(&self, root: LinkFunction<'a>, sm: Sm) -> Result<(Vec<Piece<'a>>, bool), CodegenError> {
        let mut pieces = vec![Piece::alone(root)];
        let mut reached: Vec<u32> = Vec::new();
        let mut seen = FxHashSet::default();
        let mut any_address = false;
        let mut next = 0;
        while let Some(piece) = pieces.get(next) {
            next += 1;
            let code = piece.function.code;
            let addresses = takes_addresses(sm, code);
            if addresses && !std::mem::replace(&mut any_address, true) {
                reached.extend(&self.taken);
            }
            reached.extend(code.links.iter().filter_map(|link| match link.to {
                LinkTo::Function(i) => Some(i),
                _ => None,
            }));
            for index in std::mem::take(&mut reached) {
                if !seen.insert(index) {
                    continue;
                }
                let start = pieces.last().map_or(0, |last| last.start + last.function.code.code.len());
                pieces.push(Piece { index: Some(index), function: self.function(index)?, start, tables: 0 });
            }
        }
        Ok((pieces, any_address))
    }

    /// Combines a kernel and the functions that it calls.
    ///
    /// # Errors
    /// `Unsupported` for functions without code, `Limit` for code that is too far apart.
    pub fn join(&self, kernel: LinkFunction<'a>, target: &Target) -> Result<Joined, CodegenError> {
        if is_whole(target.generation(), kernel.code) {
            let (parts, constants) =
                (Vec::new(), kernel.code.literals.iter().copied().flat_map(u64::to_le_bytes).collect());
            let kernel = kernel.code.clone();
            let frame_bytes = kernel.resources.stack_bytes;
            return Ok(Joined {
                kernel,
                parts,
                constants,
                addresses: self.addresses(),
                shared: Vec::new(),
                frame_bytes,
            });
        }
        let sm = target.generation();
        let (mut pieces, any_address) = self.reached(kernel, sm)?;
        let mut end = if any_address { self.bank_bytes() } else { 0 };
        for piece in &mut pieces {
            piece.tables = end;
            end += piece.function.code.tables.iter().map(JumpTable::bytes).sum::<u32>();
        }
        let literals = Literals::new(&pieces, end.next_multiple_of(layout::LITERAL_BYTES));
        check_constants(end, literals.end())?;
        let places = (0..).zip(&pieces).filter_map(|(at, piece)| Some((piece.index?, at))).collect();
        let shared = Shared::new(self.env, &pieces, target);
        let handles = handle_words(self.env, &pieces);
        Whole { program: self, sm, is_separate: false, shared, handles, literals, pieces, places }
            .joined(any_address)
    }
}

/// Checks the size of a constant bank 2: the end of the lists, and the end of all constants.
fn check_constants(lists: u32, all: u32) -> Result<(), CodegenError> {
    let limit = |most: u32, what: &str| {
        Err(CodegenError::Limit { at: SrcId(0), what: format!("{what} of more than {most} bytes") })
    };
    if lists > MOST_LOADED {
        return limit(MOST_LOADED, "lists of branch targets and functions");
    }
    if all > MOST_CONSTANTS {
        return limit(MOST_CONSTANTS, "numbers, lists of branch targets and functions");
    }
    Ok(())
}

/// The size of the shared variables that the code of a kernel and of the functions that it may call uses, as in a whole
/// program. `of`: the functions with code, by their index in [`Env::functions`].
pub fn shared_bytes<'a>(
    env: &Env,
    kernel: u32,
    of: &dyn Fn(u32) -> Option<LinkFunction<'a>>,
    taken: &[u32],
    target: &Target,
) -> u32 {
    let bodies = |index| of(index).map(|of| of.input);
    let callees = calls::reached(kernel, &bodies, taken);
    let pieces: Vec<Piece<'_>> = std::iter::once(kernel)
        .chain(callees)
        .filter_map(|index| Some(Piece { index: Some(index), function: of(index)?, start: 0, tables: 0 }))
        .collect();
    u32::try_from(Shared::new(env, &pieces, target).static_bytes).unwrap_or(u32::MAX)
}

/// Whether the kernel refers to no other function. A kernel begins its section, so offsets from the section's start are
/// already correct.
fn is_whole(sm: Sm, kernel: &CompiledFunction) -> bool {
    let own = |link: &CodeLink| {
        matches!(link.to, LinkTo::Start | LinkTo::Place(_) | LinkTo::EntrySize(_) | LinkTo::Literal(_))
    };
    kernel.links.iter().all(own) && !takes_addresses(sm, kernel)
}

/// Whether the code calls functions through their addresses, or uses an address of a function as a number.
fn takes_addresses(sm: Sm, code: &CompiledFunction) -> bool {
    code.links.iter().any(|link| match link.to {
        LinkTo::Symbol(Link { symbol: Symbol::Function(_), .. }) | LinkTo::Pointee => true,
        LinkTo::Start => {
            let inst = code.code.get(link.at as usize).and_then(|&word| sass::decode(sm, word));
            inst.is_some_and(|inst| inst.form().mnemonic == "CALL")
        }
        _ => false,
    })
}

/// The kernel, or a function in its code.
#[derive(Clone, Copy)]
struct Piece<'a> {
    /// The index in [`Env::functions`]; `None` for the kernel.
    index: Option<u32>,
    function: LinkFunction<'a>,
    /// The index of its first instruction.
    start: usize,
    /// The offset of its target lists in the kernel's constants.
    tables: u32,
}

impl<'a> Piece<'a> {
    fn alone(function: LinkFunction<'a>) -> Piece<'a> {
        Piece { index: None, function, start: 0, tables: 0 }
    }
}

/// The symbols that a piece's code refers to.
fn symbols<'p>(piece: &'p Piece<'_>) -> impl Iterator<Item = Symbol> + 'p {
    piece.function.code.links.iter().filter_map(|link| match link.to {
        LinkTo::Symbol(Link { symbol, .. }) => Some(symbol),
        _ => None,
    })
}

/// The textures, samplers and surfaces that a piece's code refers to.
fn handles_of<'p>(env: &'p Env, piece: &'p Piece<'_>) -> impl Iterator<Item = Symbol> + 'p {
    symbols(piece).filter(move |symbol| is_handle(env, piece, *symbol))
}

/// The shared variables that a piece's code refers to.
fn shared_of<'p>(env: &'p Env, piece: &'p Piece<'_>) -> impl Iterator<Item = (Symbol, &'p Variable)> + 'p {
    let variable = move |symbol| Some((symbol, layout::variable(env, piece.function.input, symbol)?));
    symbols(piece)
        .filter(move |symbol| !is_handle(env, piece, *symbol))
        .filter_map(variable)
        .filter(|(_, variable)| variable.space == Space::Shared)
}

/// Stack sizes of pieces: zero for some, unknown for the others.
fn frames(without: &[bool]) -> Vec<Option<u32>> {
    without.iter().map(|&without| without.then_some(0)).collect()
}

/// Whether a symbol is a texture, sampler or surface.
fn is_handle(env: &Env, piece: &Piece<'_>, symbol: Symbol) -> bool {
    layout::opaque(env, piece.function.input, symbol).is_some()
}

/// The handle words that a kernel or its functions use, the kernel's own first.
fn handle_words(env: &Env, pieces: &[Piece<'_>]) -> HandleWords {
    let mut handles = pieces[0].function.code.attributes.handles.clone();
    let all = pieces.iter().flat_map(|piece| handles_of(env, piece));
    all.for_each(|symbol| handles.add(HandleWord::One(symbol)));
    handles
}

/// The literals of a kernel and its functions, each number once.
struct Literals {
    /// The offset of the first in the kernel's constants.
    start: u32,
    places: FxHashMap<u64, u32>,
    numbers: Vec<u64>,
}

impl Literals {
    fn new(pieces: &[Piece<'_>], start: u32) -> Literals {
        let mut literals = Literals { start, places: FxHashMap::default(), numbers: Vec::new() };
        for &number in pieces.iter().flat_map(|piece| &piece.function.code.literals) {
            let next = literals.end();
            literals.places.entry(number).or_insert_with(|| {
                literals.numbers.push(number);
                next
            });
        }
        literals
    }

    fn end(&self) -> u32 {
        self.start + self.numbers.len() as u32 * layout::LITERAL_BYTES
    }

    fn bytes(&self) -> impl Iterator<Item = u8> {
        self.numbers.iter().flat_map(|number| number.to_le_bytes())
    }
}

/// The shared variables of all functions of a kernel.
struct Shared {
    /// The offsets of the module's variables, and of the variables of a piece.
    starts: FxHashMap<(Option<usize>, u32), u32>,
    static_bytes: u64,
}

impl Shared {
    fn new(env: &Env, pieces: &[Piece<'_>], target: &Target) -> Shared {
        let mut keys: Vec<(Option<usize>, u32)> = Vec::new();
        for (at, piece) in pieces.iter().enumerate() {
            keys.extend(piece.function.code.links.iter().filter_map(|link| match link.to {
                LinkTo::Symbol(Link { symbol, .. }) if is_handle(env, piece, symbol) => None,
                LinkTo::Symbol(Link { symbol: Symbol::Global(i), .. }) => Some((None, i)),
                LinkTo::Symbol(Link { symbol: Symbol::Local(i), .. }) => Some((Some(at), i)),
                _ => None,
            }));
        }
        // As in ptxas, those of the kernel come first, then those of the module, then those of the functions.
        let place = |piece: Option<usize>| match piece {
            Some(0) => 0,
            None => 1,
            Some(piece) => piece + 1,
        };
        keys.sort_unstable_by_key(|&(piece, i)| (place(piece), i));
        keys.dedup();
        let variable = |&(at, i): &(Option<usize>, u32)| -> Option<&Variable> {
            match at {
                None => env.variables.get(i as usize),
                Some(at) => pieces[at].function.input.locals.get(i as usize),
            }
        };
        // In objects, links also name variables in other state spaces.
        keys.retain(|key| variable(key).is_some_and(|v| v.space == Space::Shared));
        let variables: Vec<&Variable> = keys.iter().filter_map(variable).collect();
        let (starts, static_bytes) = layout::place_shared(env, &variables, target);
        Shared { starts: keys.into_iter().zip(starts).collect(), static_bytes }
    }
}

struct Whole<'p, 'a> {
    program: &'p Program<'a>,
    sm: Sm,
    /// The code is that of the first piece alone. The other pieces are in other sections.
    is_separate: bool,
    shared: Shared,
    handles: HandleWords,
    literals: Literals,
    pieces: Vec<Piece<'a>>,
    /// The index of the piece of each function.
    places: FxHashMap<u32, usize>,
}

impl Whole<'_, '_> {
    fn joined(&self, any_address: bool) -> Result<Joined, CodegenError> {
        let mut kernel = self.pieces[0].function.code.clone();
        kernel.links.clear();
        kernel.tables.clear();
        let mut code = Vec::new();
        let (mut lines, mut live, mut spills) = (Vec::new(), Vec::new(), Vec::new());
        let included = if self.is_separate { &self.pieces[..1] } else { &self.pieces[..] };
        for (i, piece) in included.iter().enumerate() {
            let own = piece.function.code;
            code.extend_from_slice(&own.code);
            lines.extend(own.lines.iter().map(|line| line.filter(|_| i == 0)));
            live.extend_from_slice(&own.live_registers);
            spills.extend_from_slice(&own.spills);
            for link in &own.links {
                self.fill(i, link, &mut code)?;
            }
            let left = own.links.iter().filter(|link| self.is_for_driver(link.to));
            kernel.links.extend(left.map(|link| CodeLink { at: link.at + piece.start as u32, ..*link }));
            let moved = |at: &u32| at + piece.start as u32;
            kernel.tables.extend(own.tables.iter().map(|table| JumpTable {
                branch: moved(&table.branch),
                targets: table.targets.iter().map(moved).collect(),
            }));
        }
        for piece in &included[1..] {
            let base = (piece.start as u64 * WORD) as u32;
            let (all, more) = (&mut kernel.attributes, &piece.function.code.attributes);
            all.exits.extend(more.exits.iter().map(|at| at + base));
            all.coop_groups.extend(more.coop_groups.iter().map(|(at, mask)| (at + base, *mask)));
            all.own_warp_operations.extend(more.own_warp_operations.iter().map(|at| at + base));
            all.system_calls.extend(more.system_calls.iter().map(|at| at + base));
            for symbol in &more.symbols {
                if !all.symbols.contains(symbol) {
                    all.symbols.push(*symbol);
                }
            }
        }
        for piece in &self.pieces[1..] {
            let own = piece.function.code;
            let (all, more) = (&mut kernel.attributes, &own.attributes);
            all.uses_convergence_barriers |= more.uses_convergence_barriers;
            all.reads_ctaid_z |= more.reads_ctaid_z;
            all.tensor.add(more.tensor);
            all.matrix.add(more.matrix);
            all.reads_reserved_shared |= more.reads_reserved_shared;
            let resources = &mut kernel.resources;
            resources.registers = resources.registers.max(own.resources.registers);
            resources.barriers = resources.barriers.max(own.resources.barriers);
            resources.spill_store_bytes += own.resources.spill_store_bytes;
            resources.spill_load_bytes += own.resources.spill_load_bytes;
        }
        if !self.handles.words.is_empty() {
            kernel.resources.const0_bytes = self.handles.end();
        }
        kernel.attributes.handles = self.handles.clone();
        let apart = self.apart();
        let root = self.pieces[0].function;
        let own_frame = match self.is_separate {
            true => root.code.resources.stack_bytes,
            false => self.stack_bytes(0, &mut frames(&apart)),
        };
        // The sizes of the stacks of other functions are not needed.
        let below = if root.input.entry { self.deepest(&apart) } else { 0 };
        kernel.resources.stack_bytes = own_frame.saturating_add(below);
        // A kernel without calls has already placed its variables.
        let places_nothing = |link: &CodeLink| {
            matches!(
                link.to,
                LinkTo::Start
                    | LinkTo::Place(_)
                    | LinkTo::Table(_)
                    | LinkTo::EntrySize(_)
                    | LinkTo::Literal(_)
            )
        };
        if !self.pieces[0].function.code.links.iter().all(places_nothing) {
            kernel.resources.shared_bytes = u32::try_from(self.shared.static_bytes).unwrap_or(u32::MAX);
        }
        kernel.copies = Default::default();
        (kernel.code, kernel.lines) = (code.into(), lines.into());
        (kernel.live_registers, kernel.spills) = (live.into(), spills.into());
        let mut constants = if any_address { self.functions_bank() } else { Vec::new() };
        let targets = kernel.tables.iter().flat_map(|table| &table.targets);
        constants.extend(targets.flat_map(|target| (target * WORD as u32).to_le_bytes()));
        if !self.literals.numbers.is_empty() {
            constants.resize(self.literals.start as usize, 0);
            constants.extend(self.literals.bytes());
        }
        Ok(Joined {
            kernel,
            parts: if self.is_separate { Vec::new() } else { self.parts(&apart) },
            constants,
            addresses: self.program.addresses(),
            shared: Vec::new(),
            frame_bytes: own_frame,
        })
    }

    fn parts(&self, apart: &[bool]) -> Vec<Part> {
        let mut stack = vec![None; self.pieces.len()];
        let mut part = |(i, piece): (usize, &Piece<'_>)| {
            let with_calls = self.stack_bytes(i, &mut stack);
            let own = piece.function.code.resources.stack_bytes;
            Part {
                name: piece.function.input.name.clone(),
                linkage: piece.function.input.linkage,
                start: piece.start as u64 * WORD,
                bytes: piece.function.code.code.len() as u64 * WORD,
                is_apart: apart[i],
                frame_bytes: if apart[i] { own.max(with_calls) } else { 0 },
            }
        };
        self.pieces.iter().enumerate().skip(1).map(&mut part).collect()
    }

    /// Whether each piece has a frame of its own: functions whose addresses are taken, recursive functions, and the
    /// functions that these call.
    fn apart(&self) -> Vec<bool> {
        if self.is_separate {
            return (0..self.pieces.len()).map(|i| i > 0).collect();
        }
        let is_taken = |index| self.program.taken.binary_search(&index).is_ok();
        self.with_callees(|i| self.pieces[i].index.is_some_and(is_taken) || self.calls_itself(i))
    }

    /// Whether each piece is one of these, or may be called by one of these.
    fn with_callees(&self, is_root: impl Fn(usize) -> bool) -> Vec<bool> {
        let mut reached = vec![false; self.pieces.len()];
        let mut pending: Vec<usize> = (0..self.pieces.len()).filter(|&i| is_root(i)).collect();
        while let Some(i) = pending.pop() {
            if !std::mem::replace(&mut reached[i], true) {
                pending.extend(self.callees(i));
            }
        }
        reached
    }

    /// Whether the driver fills in the field.
    fn is_for_driver(&self, to: LinkTo) -> bool {
        match to {
            LinkTo::EntrySize(_) => true,
            LinkTo::Function(_)
            | LinkTo::Return { .. }
            | LinkTo::Pointee
            | LinkTo::Symbol(Link { symbol: Symbol::Function(_), .. }) => self.is_separate,
            _ => false,
        }
    }

    fn start(&self, function: u32) -> Option<u64> {
        let place = *self.places.get(&function)?;
        Some(self.pieces[place].start as u64 * WORD)
    }

    /// The starts of the functions whose addresses are taken; the first entry is not a function.
    fn functions_bank(&self) -> Vec<u8> {
        let starts = self.program.taken.iter().map(|&i| self.start(i).unwrap_or(0));
        std::iter::once(1).chain(starts).flat_map(u64::to_le_bytes).collect()
    }

    /// Fills in one instruction of a piece; the piece is the last in the code.
    fn fill(&self, piece: usize, link: &CodeLink, code: &mut [u128]) -> Result<(), CodegenError> {
        let base = self.pieces[piece].start as u64;
        let at = base + u64::from(link.at);
        let wrong = |what: &str| CodegenError::internal(SrcId(0), "join", what);
        let next = (at + 1) * WORD;
        let (field, value) = match link.to {
            to if self.is_for_driver(to) => return Ok(()),
            LinkTo::Function(function) => {
                let start = self.start(function).ok_or_else(|| wrong("a function is missing"))?;
                (Field::Target, start.wrapping_sub(next))
            }
            LinkTo::Start => (Field::Target, next.wrapping_neg()),
            LinkTo::Place(place) => (Field::Imm32, (base + u64::from(place)) * WORD),
            LinkTo::Symbol(Link { high: true, .. })
            | LinkTo::Return { .. }
            | LinkTo::Driver(_)
            | LinkTo::Pointee
            | LinkTo::EntrySize(_)
            | LinkTo::ConstBytes
            | LinkTo::TensorWords => {
                return Err(wrong("a number for another linker"));
            }
            LinkTo::Literal(offset) => {
                let index = offset / layout::LITERAL_BYTES;
                let number = self.pieces[piece].function.code.literals.get(index as usize);
                let start = number.and_then(|number| self.literals.places.get(number));
                let start = start.ok_or_else(|| wrong("a literal has no place"))?;
                // The operand may be the high word of the number.
                (Field::COffset, (start + offset % layout::LITERAL_BYTES).into())
            }
            LinkTo::Table(start) => (Field::COffset, (self.pieces[piece].tables + start).into()),
            LinkTo::Symbol(Link { symbol, .. })
                if is_handle(self.program.env, &self.pieces[piece], symbol) =>
            {
                let place = self.handles.offset(HandleWord::One(symbol));
                (Field::COffset, place.ok_or_else(|| wrong("a handle has no place"))?.into())
            }
            LinkTo::Symbol(Link { symbol, offset, high: false }) => {
                let start = match symbol {
                    Symbol::Function(i) => self.program.address(i),
                    Symbol::Global(i) => self.shared.starts.get(&(None, i)).copied(),
                    Symbol::Local(i) => self.shared.starts.get(&(Some(piece), i)).copied(),
                    Symbol::Param(_) | Symbol::Return(_) => None,
                };
                let start = start.ok_or_else(|| wrong("a symbol has no place"))?;
                (Field::Imm32, start.wrapping_add_signed(offset).into())
            }
        };
        let word = code.get_mut(at as usize).ok_or_else(|| wrong("a link outside the code"))?;
        let mut inst = sass::decode(self.sm, *word).ok_or_else(|| wrong("a word does not decode"))?;
        inst.set(field, value);
        *word = sass::encode(self.sm, &inst).map_err(|error| wrong(&error.to_string()))?;
        Ok(())
    }

    /// The maximum stack size of the functions with frames of their own, with their calls. As with ptxas, recursive
    /// functions and the functions that they call do not contribute, even if they are also called elsewhere: the depth of
    /// the recursion is unknown, so the user must set the stack size.
    fn deepest(&self, apart: &[bool]) -> u32 {
        let mut known = frames(&self.with_callees(|i| self.calls_itself(i)));
        let apart = (0..self.pieces.len()).filter(|&i| apart[i]);
        apart.map(|i| self.stack_bytes(i, &mut known)).max().unwrap_or(0)
    }

    /// The maximum stack size of a piece with its calls. The sizes of some pieces are already known. Recursive functions
    /// do not contribute.
    fn stack_bytes(&self, piece: usize, known: &mut Vec<Option<u32>>) -> u32 {
        if let Some(bytes) = known[piece] {
            return bytes;
        }
        known[piece] = Some(0);
        if self.calls_itself(piece) {
            return 0;
        }
        let deepest = self.callees(piece).map(|callee| self.stack_bytes(callee, known)).max().unwrap_or(0);
        let bytes = self.pieces[piece].function.code.resources.stack_bytes.saturating_add(deepest);
        known[piece] = Some(bytes);
        bytes
    }

    fn calls_itself(&self, piece: usize) -> bool {
        let mut seen = FxHashSet::default();
        let mut pending: Vec<usize> = self.callees(piece).collect();
        while let Some(next) = pending.pop() {
            if next == piece {
                return true;
            }
            if seen.insert(next) {
                pending.extend(self.callees(next));
            }
        }
        false
    }

    /// The pieces that a piece may call.
    fn callees(&self, piece: usize) -> impl Iterator<Item = usize> {
        let code = self.pieces[piece].function.code;
        let direct = code.links.iter().filter_map(|link| match link.to {
            LinkTo::Function(i) => Some(i),
            _ => None,
        });
        let taken = if takes_addresses(self.sm, code) { &self.program.taken[..] } else { &[] };
        direct.chain(taken.iter().copied()).filter_map(|i| self.places.get(&i).copied())
    }
}
