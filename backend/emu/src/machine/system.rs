//! Calls of driver functions. Their code is at addresses after all other code.
//!
//! Arguments are in R4 and the following registers, wide ones in aligned pairs. R20 and R21 hold the return address,
//! and R4 receives the result. Functions that read textures follow the full calling convention, including the stack.

use super::bulk::ClusterEnds;
use super::{Block, INSTRUCTION, Result, each};
use crate::float::F16;
use crate::launch::FaultKind;
use crate::memory::{RANK_SHIFT, Space};
use crate::system::System;
use crate::tensormap::TensorMap;
use crate::texture::{self, Extras};
use ptx_backend::abi::{ArgumentPlace, Results};
use ptx_backend::driver::{BulkFunction, BulkSource, DriverFunction, Gradient};
use ptx_backend::ori::ir::{File, Reg};
use ptx_backend::ori::op::TexDims;
use ptx_isa::ScalarType;

/// The first instruction address of driver functions.
const FIRST: u32 = 0x0700_0000;
const ARGUMENT: u8 = 4;
const RETURN_ADDRESS: u8 = 20;
const STACK_POINTER: u8 = 1;
/// What a call leaves in registers that the function overwrites.
const OVERWRITTEN: u32 = 0xdead_beef;
/// The largest number of words in a parameter.
const WORDS: usize = 5;

/// The address of a driver function.
pub(crate) fn address(name: &str) -> Option<u64> {
    let known = System::ALL.iter().position(|(known, _)| *known == name);
    let index = known.or_else(|| {
        Some(System::ALL.len() + DriverFunction::all().position(|other| other.name() == name)?)
    })?;
    Some(u64::from(INSTRUCTION) * (u64::from(FIRST) + index as u64))
}

/// The driver function at an address.
#[derive(Clone, Copy)]
pub(super) enum Function {
    System(System),
    Driver(DriverFunction),
}

pub(super) fn at(pc: u32) -> Option<Function> {
    let index = pc.checked_sub(FIRST)? as usize;
    match System::ALL.get(index) {
        Some((_, system)) => Some(Function::System(*system)),
        None => DriverFunction::all().nth(index - System::ALL.len()).map(Function::Driver),
    }
}

/// The instruction index of an address.
pub(super) fn instruction_at(address: u64) -> Result<u32> {
    u32::try_from(address / u64::from(INSTRUCTION))
        .map_err(|_| FaultKind::Malformed("a jump out of the code".into()))
}

impl Block<'_> {
    /// Calls a driver function for the threads of a group, which return at once.
    pub(super) fn call_system(&mut self, w: usize, g: usize, system: System) -> Result<()> {
        let group = self.warps[w].groups[g];
        let mut back = [0; super::WARP];
        for lane in each(group.mask) {
            let word = |block: &Self, index: u8| {
                u64::from(block.warps[w].registers[usize::from(index) * super::WARP + lane])
            };
            let pair = |index: u8| word(self, index) | word(self, index + 1) << 32;
            let arguments = match system {
                System::Print => vec![pair(ARGUMENT), pair(ARGUMENT + 2)],
                System::Allocate | System::Free => vec![pair(ARGUMENT)],
                System::Assert => {
                    let [message, file, function] = [ARGUMENT, ARGUMENT + 2, ARGUMENT + 6].map(pair);
                    vec![message, file, word(self, ARGUMENT + 4), function]
                }
            };
            back[lane] = instruction_at(pair(RETURN_ADDRESS))?;
            let done = system.call(&arguments, &mut self.view(w, lane))?;
            self.device.output.extend(done.text);
            if done.traps {
                return Err(FaultKind::Trap);
            }
            self.overwrite(w, lane);
            match system {
                System::Print => self.set_register(w, lane, ARGUMENT, done.result as u32),
                System::Allocate => {
                    self.set_register(w, lane, ARGUMENT, done.result as u32);
                    self.set_register(w, lane, ARGUMENT + 1, (done.result >> 32) as u32);
                }
                System::Free | System::Assert => {}
            }
        }
        self.jump(w, g, group.mask, |lane| back[lane]);
        Ok(())
    }

    /// Calls a driver function that no module declares, for the threads of a group.
    pub(super) fn call_driver(&mut self, w: usize, g: usize, function: DriverFunction) -> Result<()> {
        let group = self.warps[w].groups[g];
        let convention = function.convention();
        let mut back = [0; super::WARP];
        for lane in each(group.mask) {
            let register =
                |block: &Self, index: u8| block.warps[w].registers[usize::from(index) * super::WARP + lane];
            let mut words = Vec::new();
            for (place, param) in convention.params.iter().zip(function.params()) {
                let mut of_param = [0; WORDS];
                for (i, word) in (0..ptx_backend::abi::words(&param)).zip(&mut of_param) {
                    *word = match *place {
                        ArgumentPlace::Registers(first) => register(self, first + i as u8),
                        ArgumentPlace::Stack(start) => {
                            let address = u64::from(register(self, STACK_POINTER) + start + 4 * i);
                            self.view(w, lane).load(Space::Local, address, 4)? as u32
                        }
                    };
                }
                words.push(of_param);
            }
            let [low, high] =
                [RETURN_ADDRESS, RETURN_ADDRESS + 1].map(|index| u64::from(register(self, index)));
            back[lane] = instruction_at(low | high << 32)?;
            let given = match function {
                DriverFunction::Gradient(gradient) => self.gradient_words(w, lane, gradient, &words)?,
                DriverFunction::Bulk(function) => {
                    self.copy_by_driver(w, lane, function, &words)?;
                    Vec::new()
                }
            };
            self.overwrite(w, lane);
            let Results::Registers(places) = &convention.results else { continue };
            for (register, word) in places.iter().zip(given) {
                self.set_register(w, lane, *register, word);
            }
        }
        self.jump(w, g, group.mask, |lane| back[lane]);
        Ok(())
    }

    /// Overwrites all registers that a driver function does not preserve.
    fn overwrite(&mut self, w: usize, lane: usize) {
        let preserved = self.machine.target.driver_preserves;
        let lost = |file, count: usize| {
            (0..count as u8).filter(move |&index| preserved.loses(Reg { file, index })).map(usize::from)
        };
        // The last register of each file is constant.
        let warp = &mut self.warps[w];
        let general = warp.registers.len() / super::WARP - 1;
        lost(File::R, general).for_each(|i| warp.registers[i * super::WARP + lane] = OVERWRITTEN);
        lost(File::UR, warp.uniform.len() - 1).for_each(|i| warp.uniform[i] = OVERWRITTEN);
        lost(File::P, warp.predicates.len() - 1).for_each(|i| warp.predicates[i] ^= 1 << lane);
        lost(File::UP, warp.uniform_predicates.len() - 1).for_each(|i| warp.uniform_predicates[i] ^= true);
    }

    /// The results of a texture read: first whether the texels are resident, then the texels. Textures have one level,
    /// so derivatives have no effect.
    fn gradient_words(
        &mut self,
        w: usize,
        lane: usize,
        gradient: Gradient,
        words: &[[u32; WORDS]],
    ) -> Result<Vec<u32>> {
        let mut texels = self.gradient_texels(w, lane, gradient, words)?.to_vec();
        if gradient.texel == ScalarType::F16 {
            let half = |word: u32| F16.from_f64(f64::from(f32::from_bits(word))) as u32;
            texels = texels.chunks(2).map(|pair| half(pair[0]) | half(pair[1]) << 16).collect();
        }
        // All texels are resident.
        Ok([1].into_iter().chain(texels).collect())
    }

    /// Copies data of a thread from global memory to shared memory of the cluster.
    fn copy_by_driver(
        &mut self,
        w: usize,
        lane: usize,
        function: BulkFunction,
        words: &[[u32; WORDS]],
    ) -> Result<()> {
        let mut arguments = words.iter();
        let mut next = || *arguments.next().expect("as many arguments as the function has");
        let (to, from, extent, object) = (next(), next(), next(), next());
        let offsets = match function.source {
            BulkSource::Tensor { image: true, .. } => Some(next()),
            _ => None,
        };
        let ranks = if function.multicast { next()[0] & 0xffff } else { 1 << (to[0] >> RANK_SHIFT) };
        let from = u64::from(from[0]) | u64::from(from[1]) << 32;
        let ends = ClusterEnds { to: to[0].into(), object: object[0].into(), ranks };
        match function.source {
            BulkSource::Block => self.copy_block_to_cluster(w, (Space::Global, from), extent[0], ends, None),
            BulkSource::Tensor { dims, .. } => {
                let count = dims as usize + 1;
                let coordinates: Vec<i32> = extent[..count].iter().map(|&at| at as i32).collect();
                let offsets = offsets.map(|[low, high, ..]| {
                    [low & 0xffff, low >> 16, high & 0xffff].map(u64::from)[..count - 2].to_vec()
                });
                let map = TensorMap::read(&mut self.view(w, lane), from)?;
                self.copy_tensor_to_cluster(&map, &coordinates, offsets.as_deref(), ends)
            }
        }
    }

    fn gradient_texels(
        &mut self,
        w: usize,
        lane: usize,
        gradient: Gradient,
        words: &[[u32; WORDS]],
    ) -> Result<[u32; 4]> {
        let wide = |words: [u32; WORDS]| u64::from(words[0]) | u64::from(words[1]) << 32;
        let sampler = gradient.independent.then(|| wide(words[1]));
        let object = texture::find_sampled(&self.device.textures, wide(words[0]), sampler)?;
        let vectors = &words[1 + usize::from(gradient.independent)..];
        let has_layer = matches!(gradient.dims, TexDims::A1 | TexDims::A2 | TexDims::Cubes);
        let [first, rest @ .., _] = vectors[0];
        let (layer, mut at) = if has_layer { (first, rest) } else { (0, [first, rest[0], rest[1]]) };
        let count = match gradient.dims {
            TexDims::D1 | TexDims::A1 => 1,
            TexDims::D2 | TexDims::A2 => 2,
            TexDims::D3 | TexDims::Cube | TexDims::Cubes => 3,
        };
        at[count..].fill(0);
        let mut extras = Extras::default();
        if gradient.offsets {
            for (offset, word) in extras.offsets.iter_mut().zip(vectors[3]).take(count) {
                *offset = (word as i32) << 28 >> 28;
            }
        }
        if gradient.compares {
            extras.compared = words.last().map(|reference| reference[0]);
        }
        let at = at.map(f32::from_bits);
        let place = match gradient.dims {
            TexDims::Cube | TexDims::Cubes => texture::TexturePoint::Direction(at),
            _ => texture::TexturePoint::Sample(at),
        };
        object.fetch(&mut self.view(w, lane), layer, place, &extras)
    }
}
