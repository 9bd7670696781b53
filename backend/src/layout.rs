//! The addresses of variables: shared memory of a function, constant bank 3, and the address slots of bank 4.
//!
//! Every offset depends only on the module environment and the function's own body, never on other bodies. So a
//! function's code stays valid while other functions change.

use crate::driver::DriverFunction;
use crate::input::{AddressBase, Env, Function, Linkage, Operand, Param, Stmt, Symbol, Variable};
use crate::target::Target;
use ptx_isa::{ScalarType, Space};

/// The constant bank of `.const` variables.
pub const CONST_BANK: u8 = 3;
/// The constant bank of each kernel that contains the numbers for addresses of functions, the target lists of indirect
/// branches, and literals.
pub const FUNCTION_BANK: u8 = 2;
/// The bank of operands in [`crate::ori::ir::Function::literals`] until the code is assembled. They are linked into
/// [`FUNCTION_BANK`]. No instruction reads a bank of this number.
pub const LITERALS: u8 = 0x12;
/// Bytes of a literal.
pub const LITERAL_BYTES: u32 = 8;
/// The constant bank whose 8-byte slots hold the addresses of global variables and functions.
pub const ADDRESS_BANK: u8 = 4;
/// The size of a constant bank in bytes.
pub const BANK_BYTES: u64 = 0x10000;

/// The variable a symbol names; `None` for parameters and functions.
pub fn variable<'a>(env: &'a Env, func: &'a Function, symbol: Symbol) -> Option<&'a Variable> {
    match symbol {
        Symbol::Global(i) => env.variables.get(i as usize),
        Symbol::Local(i) => func.locals.get(i as usize),
        _ => None,
    }
}

/// Rounds up; returns `u64::MAX` past the end of all memory.
fn align_up(offset: u64, align: u32) -> u64 {
    offset.checked_next_multiple_of(u64::from(align.max(1))).unwrap_or(u64::MAX)
}

/// Whether a variable is shared memory whose size the launch determines.
pub fn is_dynamic(v: &Variable) -> bool {
    v.space == Space::Shared && v.size == 0
}

/// The kind of handle of a module's variable or a kernel's parameter, if it is a handle. Handles have no memory.
pub fn opaque(env: &Env, func: &Function, symbol: Symbol) -> Option<ScalarType> {
    match symbol {
        Symbol::Global(i) => env.variables.get(i as usize).and_then(opaque_kind),
        Symbol::Param(i) if func.entry => {
            func.params.get(i as usize).filter(|param| param.is_opaque()).map(|param| param.ty)
        }
        _ => None,
    }
}

fn opaque_kind(v: &Variable) -> Option<ScalarType> {
    v.is_opaque().then_some(v.ty)
}

/// The contents of a word that the driver writes into a kernel's constant bank 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HandleWord {
    /// The index of a texture, a sampler or a surface.
    One(Symbol),
    /// The indices of a texture and a sampler.
    Pair(Symbol, Symbol),
}

/// The words of the texture, sampler and surface variables that a kernel uses.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct HandleWords {
    /// The offset of the first word in constant bank 0.
    pub start: u32,
    /// Four bytes each: textures and samplers in the order of first use, then surfaces.
    pub words: Vec<HandleWord>,
}

impl HandleWords {
    /// The offset of a word in constant bank 0.
    pub fn offset(&self, word: HandleWord) -> Option<u16> {
        let index = self.words.iter().position(|other| *other == word)?;
        u16::try_from(self.start + 4 * index as u32).ok()
    }

    /// Adds a word, unless it is one of them already.
    pub fn add(&mut self, word: HandleWord) {
        if !self.words.contains(&word) {
            self.words.push(word);
        }
    }

    /// The end of the words.
    pub fn end(&self) -> u32 {
        self.start.saturating_add(4 * self.words.len() as u32)
    }

    /// The number of indices of textures, of surfaces and of samplers.
    pub fn counts(&self, env: &Env, func: &Function) -> [u32; 3] {
        let mut counts = [0; 3];
        for word in &self.words {
            match *word {
                HandleWord::Pair(..) => {
                    counts[0] += 1;
                    counts[2] += 1;
                }
                HandleWord::One(symbol) => match opaque(env, func, symbol) {
                    Some(ScalarType::SurfRef) => counts[1] += 1,
                    Some(ScalarType::SamplerRef) => counts[2] += 1,
                    _ => counts[0] += 1,
                },
            }
        }
        counts
    }

    /// The offset of each variable's index. Two variables may share a word.
    pub fn places(&self) -> impl Iterator<Item = (u32, Symbol)> + '_ {
        (self.start..).step_by(4).zip(&self.words).flat_map(|(at, word)| {
            let named = match *word {
                HandleWord::One(symbol) => [Some(symbol), None],
                HandleWord::Pair(texture, sampler) => [Some(texture), Some(sampler)],
            };
            named.into_iter().flatten().map(move |symbol| (at, symbol))
        })
    }
}

/// Places the words after the parameters.
pub fn handle_words(env: &Env, func: &Function, target: &Target) -> HandleWords {
    let mut words = Vec::new();
    let mut add = |word| {
        if !words.contains(&word) {
            words.push(word);
        }
    };
    if env.variables.iter().any(|v| opaque_kind(v).is_some()) || func.params.iter().any(Param::is_opaque) {
        for stmt in &func.body {
            let Stmt::Instr(instr) = stmt else { continue };
            instr.operands.iter().for_each(|operand| name_handles((env, func), target, operand, &mut add));
        }
    }
    let is_surface = |word: &HandleWord| matches!(word, HandleWord::One(s) if opaque(env, func, *s) == Some(ScalarType::SurfRef));
    words.sort_by_key(is_surface);
    let params = target.place_params(if func.entry { &func.params } else { &[] });
    let end = u32::from(params.first).saturating_add(params.bytes);
    HandleWords { start: end.checked_next_multiple_of(4).unwrap_or(u32::MAX), words }
}

fn name_handles(
    module: (&Env, &Function),
    target: &Target,
    operand: &Operand,
    add: &mut impl FnMut(HandleWord),
) {
    let named = |operand: &Operand| match operand {
        Operand::Symbol(symbol, _) => opaque(module.0, module.1, *symbol).map(|_| *symbol),
        Operand::Address(address) => match address.base {
            AddressBase::Symbol(symbol) => opaque(module.0, module.1, symbol).map(|_| symbol),
            _ => None,
        },
        _ => None,
    };
    match operand {
        Operand::List(parts) => match &parts[..] {
            [texture, sampler, _] if !target.uniform_handles => match (named(texture), named(sampler)) {
                (Some(texture), Some(sampler)) => add(HandleWord::Pair(texture, sampler)),
                (texture, sampler) => {
                    texture.into_iter().chain(sampler).for_each(|s| add(HandleWord::One(s)))
                }
            },
            parts => parts.iter().for_each(|part| name_handles(module, target, part, add)),
        },
        Operand::Vector(parts) => parts.iter().for_each(|part| name_handles(module, target, part, add)),
        _ => named(operand).into_iter().for_each(|symbol| add(HandleWord::One(symbol))),
    }
}

/// The shared memory of one kernel.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SharedLayout {
    /// The number of static bytes, without the target's reserved part at the start.
    pub static_bytes: u64,
    globals: Vec<Option<u32>>,
    locals: Vec<Option<u32>>,
}

impl SharedLayout {
    /// Places the function's own shared variables, and after them the module's variables that `uses` names. All dynamic
    /// variables start at the end of the static ones.
    pub fn new(env: &Env, func: &Function, target: &Target, uses: impl Fn(Symbol) -> bool) -> SharedLayout {
        let place = |symbol: Symbol, v: &Variable| v.space == Space::Shared && uses(symbol);
        let symbols = (0..func.locals.len() as u32)
            .map(Symbol::Local)
            .chain((0..env.variables.len() as u32).map(Symbol::Global));
        let placed: Vec<(Symbol, &Variable)> = symbols
            .filter_map(|symbol| Some((symbol, variable(env, func, symbol).filter(|v| place(symbol, v))?)))
            .collect();
        let variables: Vec<&Variable> = placed.iter().map(|(_, v)| *v).collect();
        let (starts, static_bytes) = place_shared(env, &variables, target);
        let mut layout = SharedLayout {
            static_bytes,
            globals: vec![None; env.variables.len()],
            locals: vec![None; func.locals.len()],
        };
        for ((symbol, _), start) in placed.into_iter().zip(starts) {
            layout.set(symbol, start);
        }
        layout
    }

    fn set(&mut self, symbol: Symbol, offset: u32) {
        let slot = match symbol {
            Symbol::Global(i) => &mut self.globals[i as usize],
            Symbol::Local(i) => &mut self.locals[i as usize],
            _ => return,
        };
        *slot = Some(offset);
    }

    /// The byte offset in the block's window, including the target's base.
    pub fn offset(&self, symbol: Symbol) -> Option<u32> {
        match symbol {
            Symbol::Global(i) => self.globals.get(i as usize).copied().flatten(),
            Symbol::Local(i) => self.locals.get(i as usize).copied().flatten(),
            _ => None,
        }
    }
}

/// The offsets of shared variables in the block's window, including the target's base, and the number of static bytes.
/// All dynamic variables start at the end of the static ones. If a module has a dynamic variable, every kernel leaves
/// room for its alignment.
pub fn place_shared(env: &Env, variables: &[&Variable], target: &Target) -> (Vec<u32>, u64) {
    let mut end = 0;
    let mut starts = vec![0; variables.len()];
    for (start, v) in starts.iter_mut().zip(variables).filter(|(_, v)| !is_dynamic(v)) {
        *start = align_up(end, v.align);
        end = start.saturating_add(v.size);
    }
    end = end_of_static(env, variables.iter().copied(), end);
    let place = |(start, v): (u64, &&Variable)| {
        let start = if is_dynamic(v) { end } else { start };
        u32::try_from(start).unwrap_or(u32::MAX >> 1) + target.shared_base
    };
    (starts.into_iter().zip(variables).map(place).collect(), end)
}

/// The end of the static variables, if the last one ends at `end`. Dynamic bytes follow the static ones, so the end has
/// the largest alignment of a dynamic array.
pub fn end_of_static<'v>(env: &'v Env, variables: impl Iterator<Item = &'v Variable>, end: u64) -> u64 {
    let dynamic = variables.chain(&env.variables).filter(|v| is_dynamic(v));
    dynamic.map(|v| v.align).max().map_or(end, |align| align_up(end, align.max(16)))
}

/// The `.local` variables of a function, at the bottom of its frame.
pub struct LocalLayout {
    /// The offset of each of the function's variables from the bottom of the frame.
    pub offsets: Vec<Option<u32>>,
    /// The size in bytes, a multiple of a word.
    pub size: u64,
    /// The alignment in bytes: a multiple of 8 and of every variable's alignment. Zero without variables.
    pub align: u32,
}

/// Places the `.local` variables of a function.
pub fn local_layout(variables: &[Variable]) -> LocalLayout {
    let (mut size, mut align) = (0, 8);
    let offsets = variables
        .iter()
        .map(|v| {
            (v.space == Space::Local).then(|| {
                let start = align_up(size, v.align);
                size = start.saturating_add(v.size);
                align = align.max(v.align);
                u32::try_from(start).unwrap_or(u32::MAX)
            })
        })
        .collect();
    LocalLayout { offsets, size: align_up(size, 4), align: if size > 0 { align } else { 0 } }
}

/// The byte offset of a module-scope `.const` variable in bank 3; `None` if it is not one, or if it is past the bank's
/// end.
pub fn const_offset(env: &Env, symbol: Symbol) -> Option<u16> {
    let Symbol::Global(wanted) = symbol else { return None };
    let (offset, _) = const_layout(env).find(|(_, i)| *i == wanted)?;
    u16::try_from(offset).ok()
}

/// Offset and variable index of each `.const` variable that this module defines.
pub fn const_layout(env: &Env) -> impl Iterator<Item = (u64, u32)> {
    let mut size = 0;
    env.variables
        .iter()
        .enumerate()
        .filter(|(_, v)| v.space == Space::Const && v.linkage != Linkage::Extern)
        .map(move |(i, v)| {
            let start = align_up(size, v.align);
            size = start.saturating_add(v.size);
            (start, i as u32)
        })
}

/// The number of bytes of the `.const` variables that this module defines.
pub fn const_bytes(env: &Env) -> u64 {
    let end = |(start, i): (u64, u32)| start.saturating_add(env.variables[i as usize].size);
    const_layout(env).map(end).last().unwrap_or(0)
}

/// An entity that may have a slot with its address in bank 4.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Slot {
    /// Index into [`Env::variables`].
    Global(u32),
    /// Index into [`Env::functions`].
    Function(u32),
    /// A driver function that no module declares.
    Driver(DriverFunction),
}

/// Byte offset in bank 4 of the slot with a 64-bit address; `None` past its end.
pub fn address_slot(env: &Env, slot: Slot) -> Option<u16> {
    let index = slots(env).position(|other| other == slot)?;
    u16::try_from(8 * index).ok()
}

/// All slots in their order. Slots that every file has come first. A function's slot depends only on its number,
/// because a function is compiled without knowing functions that it does not mention.
fn slots(env: &Env) -> impl Iterator<Item = Slot> {
    let variables = |global: bool| {
        let is = move |v: &Variable| {
            (v.space == Space::Global && v.linkage != Linkage::Extern) == global && opaque_kind(v).is_none()
        };
        let all = (0..).zip(&env.variables).filter(move |(_, v)| is(v));
        all.map(|(i, _)| Slot::Global(i))
    };
    let functions = (0..env.functions.len() as u32).map(Slot::Function);
    variables(true).chain(functions).chain(variables(false)).chain(DriverFunction::all().map(Slot::Driver))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_do_not_wrap() {
        let variable = |align, size| Variable {
            name: "v".into(),
            space: Space::Local,
            linkage: Linkage::Internal,
            ty: ScalarType::B8,
            size,
            align,
            init: None,
            managed: false,
            unified: None,
        };
        assert_eq!(local_layout(&[variable(1, u64::MAX), variable(1 << 31, 4)]).size, u64::MAX);
    }
}
