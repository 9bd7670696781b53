//! A device with a loaded module: the module's variables and their places in memory.

use crate::launch::FaultKind;
use crate::memory::{Global, number};
use crate::texture::Texture;
use ptx_backend::input::{Env, Symbol};
use ptx_isa::{Space, TypeKind};

/// The memory, and the places of the module's variables.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Device {
    pub global: Global,
    /// The names and addresses of the global variables, in module order.
    pub variables: Vec<(String, u64)>,
    /// The places of the module's variables: addresses for global variables, offsets for constant ones.
    places: Vec<Option<u64>>,
    /// The buffer that holds the constant variables.
    constants: u64,
    /// Words of global variables whose initial values are addresses of functions.
    pub function_words: Vec<u64>,
    /// The textures and surfaces. Handles hold their indices.
    pub textures: Vec<Texture>,
    /// The objects bound to variables: variable name and object index.
    pub bound: Vec<(String, usize)>,
    /// The handles bound to the kernel's parameters: parameter number and handle.
    pub parameters: Vec<(u32, u64)>,
    /// The printed output, one text per call.
    pub output: Vec<String>,
}

/// The address of the first function, and the distance between functions.
const FIRST_FUNCTION: u64 = 0x4000_0000;
const FUNCTION_UNIT: u64 = 16;

/// The address that stands for a function of the module.
pub(crate) fn code_address(function: u32) -> u64 {
    FIRST_FUNCTION + FUNCTION_UNIT * u64::from(function)
}

/// The number of the function at an address.
pub(crate) fn function_at(address: u64) -> Option<u32> {
    let offset = address.checked_sub(FIRST_FUNCTION)?;
    let function = u32::try_from(offset / FUNCTION_UNIT).ok()?;
    (offset % FUNCTION_UNIT == 0).then_some(function)
}

impl Device {
    /// Places the module's variables and writes their initial values.
    pub fn new(env: &Env) -> Result<Device, FaultKind> {
        let mut global = Global::default();
        let mut places = vec![None; env.variables.len()];
        let mut variables = Vec::new();
        let mut bank = Vec::new();
        for (variable, place) in env.variables.iter().zip(&mut places) {
            let mut bytes = variable.init.as_ref().map(|init| init.bytes.clone()).unwrap_or_default();
            bytes.resize(variable.size as usize, 0);
            match variable.space {
                _ if variable.ty.kind() == TypeKind::Opaque => {}
                Space::Global => {
                    let address = global.add(bytes);
                    variables.push((variable.name.clone(), address));
                    *place = Some(address);
                }
                Space::Const => {
                    bank.resize(bank.len().next_multiple_of(variable.align.max(1) as usize), 0);
                    *place = Some(bank.len() as u64);
                    bank.extend(bytes);
                }
                _ => {}
            }
        }
        let constants = global.add(bank);
        let (function_words, textures, bound, output) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let parameters = Vec::new();
        let mut device = Device {
            global,
            variables,
            places,
            constants,
            function_words,
            textures,
            bound,
            parameters,
            output,
        };
        for (i, variable) in env.variables.iter().enumerate() {
            let Some(init) = &variable.init else { continue };
            for reloc in &init.relocs {
                let place = device.places[i].unwrap_or(0);
                let value = match reloc.symbol {
                    Symbol::Global(symbol) => device.generic(env, symbol as usize).unwrap_or(0),
                    Symbol::Function(function) => {
                        if variable.space == Space::Global && reloc.size == 8 {
                            device.function_words.push(place + reloc.at);
                        }
                        code_address(function)
                    }
                    _ => return Err(FaultKind::Unsupported("the address of a local name in memory".into())),
                };
                let value = value.wrapping_add(reloc.addend as u64);
                let (buffer, start) = match variable.space {
                    Space::Const => (device.constants, place + reloc.at),
                    _ => (place, reloc.at),
                };
                let (start, size) = (start as usize, usize::from(reloc.size));
                let field = device.global.buffer_mut(buffer).and_then(|b| b.get_mut(start..start + size));
                let Some(field) = field else {
                    return Err(FaultKind::Malformed("an address outside".into()));
                };
                let first = usize::from(reloc.byte);
                field.copy_from_slice(&value.to_le_bytes()[first..first + size]);
            }
        }
        Ok(device)
    }

    /// The address of a global variable, or the offset of a constant variable in the constants.
    pub fn place(&self, variable: usize) -> Option<u64> {
        self.places.get(variable).copied().flatten()
    }

    /// The generic address of a global or constant variable.
    pub fn generic(&self, env: &Env, variable: usize) -> Option<u64> {
        let place = self.place(variable)?;
        Some(if env.variables[variable].space == Space::Const { self.constants + place } else { place })
    }

    /// Binds an object to a variable of the module.
    pub fn bind(&mut self, env: &Env, name: &str, index: usize) {
        let handle = crate::texture::handle(index);
        for (variable, place) in env.variables.iter().zip(&mut self.places) {
            if variable.name == name {
                *place = Some(handle | crate::texture::kind(variable.ty));
            }
        }
        self.bound.push((name.to_owned(), index));
    }

    /// Binds an object to a parameter of the kernel.
    pub fn bind_parameter(&mut self, name: &str, param: u32, ty: ptx_isa::ScalarType, index: usize) {
        self.parameters.push((param, crate::texture::handle(index) | crate::texture::kind(ty)));
        self.bound.push((name.to_owned(), index));
    }

    /// The handle bound to a texture, sampler or surface variable.
    pub fn bound_handle(&self, name: &str) -> Option<u64> {
        let (_, index) = self.bound.iter().find(|(known, _)| known == name)?;
        Some(crate::texture::handle(*index))
    }

    /// The address of the global variable with a name.
    pub fn variable(&self, name: &str) -> Option<u64> {
        self.variables.iter().find(|(known, _)| known == name).map(|(_, address)| *address)
    }

    /// The generic address of the constants.
    pub fn constants(&self) -> u64 {
        self.constants
    }

    pub fn constant_bytes(&self) -> &[u8] {
        self.global.buffer(self.constants).unwrap_or_default()
    }

    /// Reads a number from the constants.
    pub fn constant(&self, offset: u64, size: u32) -> Result<u64, FaultKind> {
        let start = offset as usize;
        let bytes = self.constant_bytes().get(start..start.saturating_add(size as usize));
        bytes.map(number).ok_or(FaultKind::OutOfBounds { space: "constant", address: offset, size })
    }
}
