//! Functions in sections of their own, in executables for debuggers.
//!
//! The driver fills in the addresses of functions. Everything else that a function refers to is at the same place in
//! every kernel that may call it: shared variables, the words of textures and surfaces, target lists and literals. A
//! kernel that calls no function with such references places only its own.

use super::{Joined, Literals, Piece, Program, Shared, Whole, check_constants, handles_of, shared_of};
use crate::assemble::JumpTable;
use crate::input::{Symbol, Variable};
use crate::layout::{self, HandleWord, HandleWords, LITERAL_BYTES};
use crate::target::Target;
use crate::{CodegenError, LinkFunction};
use rustc_hash::FxHashMap;

/// Bytes of an instruction.
const WORD: u32 = 16;

/// A shared variable: of the module, or of the body of the function with this name.
type SharedKey<'a> = (Option<&'a str>, u32);

/// A constant bank 2 under construction.
#[derive(Clone, Default)]
struct Bank {
    bytes: Vec<u8>,
    literals: FxHashMap<u64, u32>,
}

impl Bank {
    /// Adds the target lists of a function, which begins its section, and its literals. Returns the start of the lists.
    fn add(&mut self, f: &LinkFunction<'_>) -> u32 {
        let start = self.bytes.len() as u32;
        let targets = f.code.tables.iter().flat_map(|table| &table.targets);
        self.bytes.extend(targets.flat_map(|target| (target * WORD).to_le_bytes()));
        for &number in &f.code.literals {
            if !self.literals.contains_key(&number) {
                self.bytes.resize(self.bytes.len().next_multiple_of(LITERAL_BYTES as usize), 0);
                self.literals.insert(number, self.bytes.len() as u32);
                self.bytes.extend(number.to_le_bytes());
            }
        }
        start
    }
}

/// What functions refer to, and where it is in every kernel that may call them.
struct Common<'p, 'a> {
    program: &'p Program<'a>,
    target: &'p Target,
    /// The static shared variables, with their ends in the block's shared memory.
    shared: FxHashMap<SharedKey<'a>, (u32, u64)>,
    /// The offset of dynamic shared memory in the kernels that may call a function which uses it.
    dynamic: u64,
    handles: HandleWords,
    bank: Bank,
    /// By the name of the function.
    tables: FxHashMap<&'a str, u32>,
}

impl<'a> Program<'a> {
    /// The kernels and functions, each alone in its section, with the resources of all functions that it may call. Their
    /// remaining links name functions.
    ///
    /// # Errors
    /// `Unsupported` for functions without code, `Limit` for a constant bank that overflows.
    pub fn separate(&self, all: &[LinkFunction<'a>], target: &Target) -> Result<Vec<Joined>, CodegenError> {
        let sm = target.generation();
        let functions = all.iter().filter(|f| !f.input.entry);
        let mut common = Common::new(self, functions, target);
        for &kernel in all.iter().filter(|f| f.input.entry) {
            common.make_room(&self.reached(kernel, sm)?.0);
        }
        all.iter().map(|&f| common.placed(self.reached(f, sm)?.0)).collect()
    }
}

impl<'p, 'a> Common<'p, 'a> {
    fn new<'l>(
        program: &'p Program<'a>,
        functions: impl Iterator<Item = &'l LinkFunction<'a>>,
        target: &'p Target,
    ) -> Self
    where
        'a: 'l,
    {
        let mut common = Common {
            program,
            target,
            shared: FxHashMap::default(),
            dynamic: 0,
            handles: HandleWords::default(),
            bank: Bank::default(),
            tables: FxHashMap::default(),
        };
        let mut end = 0;
        for f in functions {
            let piece = Piece::alone(*f);
            for (symbol, variable) in shared_of(program.env, &piece) {
                if !layout::is_dynamic(variable) {
                    let place = common.shared.entry(key(f, symbol));
                    place.or_insert_with(|| place_after(&mut end, variable, target));
                }
            }
            handles_of(program.env, &piece).for_each(|symbol| common.handles.add(HandleWord::One(symbol)));
            common.tables.insert(&f.input.name, common.bank.add(f));
        }
        common
    }

    /// Places what functions share after what a kernel that may call them has of its own.
    fn make_room(&mut self, pieces: &[Piece<'a>]) {
        if pieces[1..].iter().any(|piece| has_handles(self.program, piece)) {
            self.handles.start = self.handles.start.max(parameters_end(&pieces[0], self.target));
        }
        if self.uses_dynamic(&pieces[1..]) {
            self.dynamic = self.dynamic.max(self.own_shared(pieces).static_bytes);
        }
    }

    fn uses_dynamic(&self, pieces: &[Piece<'a>]) -> bool {
        let mut all = pieces.iter().flat_map(|piece| shared_of(self.program.env, piece));
        all.any(|(_, variable)| layout::is_dynamic(variable))
    }

    /// Places the shared variables of a kernel after those of the functions that it may call.
    fn own_shared(&self, pieces: &[Piece<'a>]) -> Shared {
        let env = self.program.env;
        let known = pieces.iter().flat_map(|piece| {
            shared_of(env, piece).filter_map(|(symbol, _)| self.shared.get(&key(&piece.function, symbol)))
        });
        let mut end = known.map(|place| place.1).max().unwrap_or(0);
        let mut starts = FxHashMap::default();
        let kernel = &pieces[0];
        let mut dynamic = Vec::new();
        for (symbol, variable) in shared_of(env, kernel) {
            let (place, index) = (owned(0, symbol), key(&kernel.function, symbol));
            if layout::is_dynamic(variable) {
                dynamic.push(place);
            } else if let Some(&(start, _)) = self.shared.get(&index) {
                starts.insert(place, start);
            } else {
                starts.entry(place).or_insert_with(|| place_after(&mut end, variable, self.target).0);
            }
        }
        end = layout::end_of_static(env, shared_of(env, kernel).map(|found| found.1), end);
        if self.uses_dynamic(&pieces[1..]) {
            end = end.max(self.dynamic);
        }
        let start = address(end, self.target);
        starts.extend(dynamic.into_iter().map(|place| (place, start)));
        Shared { starts, static_bytes: end }
    }

    /// The shared variables of a function.
    fn common_shared(&self, piece: &Piece<'a>) -> Shared {
        let dynamic = address(self.dynamic, self.target);
        let place = |(symbol, variable): (Symbol, &Variable)| {
            let known = self.shared.get(&key(&piece.function, symbol)).map(|place| place.0);
            let start = if layout::is_dynamic(variable) { Some(dynamic) } else { known };
            Some((owned(0, symbol), start?))
        };
        let starts = shared_of(self.program.env, piece).filter_map(place).collect();
        Shared { starts, static_bytes: 0 }
    }

    fn placed(&self, mut pieces: Vec<Piece<'a>>) -> Result<Joined, CodegenError> {
        let (program, env) = (self.program, self.program.env);
        let own = pieces[0].function;
        let (shared, handles, bank, tables);
        if own.input.entry {
            shared = self.own_shared(&pieces);
            let callees = &pieces[1..];
            let any_handle = callees.iter().any(|piece| has_handles(program, piece));
            let mut words = if any_handle { self.handles.clone() } else { HandleWords::default() };
            words.start = words.start.max(parameters_end(&pieces[0], self.target));
            handles_of(env, &pieces[0]).for_each(|symbol| words.add(HandleWord::One(symbol)));
            handles = words;
            let reads_bank = |piece: &Piece<'_>| {
                !(piece.function.code.tables.is_empty() && piece.function.code.literals.is_empty())
            };
            let mut constants =
                if callees.iter().any(reads_bank) { self.bank.clone() } else { Bank::default() };
            tables = constants.add(&own);
            bank = constants;
        } else {
            shared = self.common_shared(&pieces[0]);
            handles = self.handles.clone();
            tables = self.tables.get(&*own.input.name).copied().unwrap_or(0);
            bank = self.bank.clone();
        }
        let mut named: Vec<(Symbol, u32)> = shared
            .starts
            .iter()
            .map(|(&(piece, i), &start)| (piece.map_or(Symbol::Global(i), |_| Symbol::Local(i)), start))
            .collect();
        named.sort_unstable_by_key(|&(_, start)| start);
        let lists = own.code.tables.iter().map(JumpTable::bytes).sum::<u32>();
        check_constants(tables + lists, bank.bytes.len() as u32)?;
        pieces[0].tables = tables;
        let places = (0..).zip(&pieces).filter_map(|(at, piece)| Some((piece.index?, at))).collect();
        let literals = Literals { start: 0, places: bank.literals, numbers: Vec::new() };
        let sm = self.target.generation();
        let whole = Whole { program, sm, is_separate: true, shared, handles, literals, pieces, places };
        let mut joined = whole.joined(false)?;
        joined.shared = named;
        joined.constants = if own.input.entry { bank.bytes } else { Vec::new() };
        if !own.input.entry {
            joined.kernel.attributes.handles = HandleWords::default();
        }
        Ok(joined)
    }
}

fn key<'a>(function: &LinkFunction<'a>, symbol: Symbol) -> SharedKey<'a> {
    owned(&function.input.name, symbol)
}

/// A variable with the owner of the local ones.
fn owned<T>(owner: T, symbol: Symbol) -> (Option<T>, u32) {
    match symbol {
        Symbol::Local(i) => (Some(owner), i),
        Symbol::Global(i) | Symbol::Param(i) | Symbol::Return(i) | Symbol::Function(i) => (None, i),
    }
}

/// The address of an offset in the block's shared memory.
fn address(offset: u64, target: &Target) -> u32 {
    u32::try_from(offset).unwrap_or(u32::MAX >> 1) + target.shared_base
}

/// Places a static variable after the others. Returns its address and its end.
fn place_after(end: &mut u64, variable: &Variable, target: &Target) -> (u32, u64) {
    let start = end.next_multiple_of(u64::from(variable.align.max(1)));
    *end = start.saturating_add(variable.size);
    (address(start, target), *end)
}

fn has_handles(program: &Program<'_>, piece: &Piece<'_>) -> bool {
    handles_of(program.env, piece).next().is_some()
}

/// The offset of the first word after a kernel's parameters.
fn parameters_end(kernel: &Piece<'_>, target: &Target) -> u32 {
    let block = target.place_params(&kernel.function.input.params);
    (u32::from(block.first) + block.bytes).next_multiple_of(4)
}
