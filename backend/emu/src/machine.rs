//! The emulator of machine code.
//!
//! Threads of a warp that run together form a group. A group splits at divergent branches. Groups merge only where the
//! hardware merges them: at `BSYNC`, `WARPSYNC`, and barriers of the block and of the cluster. A value becomes visible
//! when the latency tables and scoreboards say so; an earlier read is a fault.

mod address;
mod alu;
mod bank;
mod barrier;
mod bulk;
mod cluster;
mod compute;
mod decode;
mod facts;
mod hazard;
mod matrix;
mod memory;
mod operand;
mod record;
mod registers;
mod step;
mod sync;
mod system;
mod tensor;
#[cfg(test)]
pub(crate) mod testing;
mod texture;
mod warpgroup;

use crate::copies::Copies;
use crate::device::{Device, code_address};
use crate::launch::{Fault, FaultKind, Launch, WARP, Work};
use crate::memory::UNWRITTEN;
use crate::tensor::TensorMemory;
use crate::trace::Trace;
use crate::transfers::Transfers;
pub(crate) use facts::counted_wait;
use ptx_backend::assemble::LinkTo;
use ptx_backend::input::{Env, Symbol};
use ptx_backend::join::Joined;
use ptx_backend::layout::{self, Slot};
use ptx_backend::target::Target;
use ptx_isa::Space;
use sass::Sm;
use step::Step as Instruction;
pub(crate) use system::address as system_address;

/// The number of instructions that a group issues before the next warp runs.
const TURN: u32 = 64;
/// The size of an instruction in bytes.
const INSTRUCTION: u32 = 16;
/// The top of every thread's stack.
const STACK_TOP: u64 = 0x10_0000;
/// The minimum stack size of a thread in bytes. It is larger if functions are called, in particular recursive ones.
const STACK_BYTES: u32 = 0x800;
const STACK_BYTES_OF_CALLS: u32 = 0x1_0000;

type Result<T> = std::result::Result<T, FaultKind>;

/// The machine code of a kernel, and the data that it needs.
#[derive(Clone, Debug)]
pub struct Kernel {
    pub sm: Sm,
    pub code: Vec<u128>,
    /// The number of registers per thread.
    pub registers: u32,
    /// The size of static shared memory in bytes, without the area that the target reserves.
    pub shared_bytes: u32,
    /// The stack size that the code requests, in bytes. The machine provides at least `STACK_BYTES`.
    pub stack_bytes: u32,
    /// The size of local memory at fixed addresses from 0 on, which code without the ABI uses.
    pub local_bytes: u32,
    /// Constant banks 2, 3 and 4, with addresses filled in.
    pub bank2: Vec<u8>,
    pub bank3: Vec<u8>,
    pub bank4: Vec<u8>,
    /// Words of global memory that hold addresses of functions, and the values of these words for this code.
    pub function_words: Vec<(u64, u64)>,
    /// Offsets in constant bank 0, and the bits of handles to write there.
    pub handles: Vec<(u32, u64)>,
    /// Set if the code reads the driver's tables of textures: `true` for the tables in which textures and samplers are
    /// separate, `false` for those in which a texture includes its sampler.
    pub independent: Option<bool>,
    /// The offset of each parameter, if the file gives it: ptxas aligns parameters in the constant bank, not in the
    /// parameter block.
    pub places: Vec<u32>,
}

impl Kernel {
    /// A kernel as the compiler produced it, with the functions that it calls.
    pub fn compiled(env: &Env, joined: &Joined, sm: Sm, device: &Device) -> Kernel {
        let function = &joined.kernel;
        let mut bank4 = Vec::new();
        for &slot in &function.attributes.symbols {
            let address = match slot {
                Slot::Global(variable) => device.generic(env, variable as usize),
                Slot::Function(function) => match env.functions.get(function as usize) {
                    Some(kernel) if kernel.entry => Some(code_address(function)),
                    declared => declared.and_then(|f| system_address(&f.name)),
                },
                Slot::Driver(function) => system_address(&function.name()),
            };
            if let Some(at) = layout::address_slot(env, slot) {
                let at = usize::from(at);
                bank4.resize(bank4.len().max(at + 8), 0);
                bank4[at..at + 8].copy_from_slice(&address.unwrap_or(0).to_le_bytes());
            }
        }
        let number = |symbol: Symbol| {
            let Symbol::Function(function) = symbol else { return None };
            let known = joined.addresses.iter().find(|(index, _)| *index == function);
            known.map(|(_, number)| u64::from(*number))
        };
        let mut function_words = Vec::new();
        let mut bank3 = device.constant_bytes().to_vec();
        for (i, variable) in env.variables.iter().enumerate() {
            for reloc in variable.init.iter().flat_map(|init| &init.relocs) {
                let Some(number) = number(reloc.symbol).filter(|_| reloc.size == 8) else { continue };
                let at = device.place(i).unwrap_or(0) + reloc.at;
                let field = bank3.get_mut(at as usize..at as usize + 8);
                match (variable.space, field) {
                    (Space::Const, Some(field)) => field.copy_from_slice(&number.to_le_bytes()),
                    (Space::Global, _) => function_words.push((at, number)),
                    _ => {}
                }
            }
        }
        let mut code = function.code.to_vec();
        let mut sizes = function.links.iter().filter(|link| matches!(link.to, LinkTo::EntrySize(_)));
        for link in sizes.clone() {
            if let Some(word) = code.get_mut(link.at as usize) {
                *word |= u128::from(crate::texture::ENTRY_BYTES) << 32;
            }
        }
        Kernel {
            sm,
            code,
            registers: function.resources.registers,
            shared_bytes: function.resources.shared_bytes,
            stack_bytes: function.resources.stack_bytes,
            local_bytes: 0,
            bank2: joined.constants.clone(),
            bank3,
            bank4,
            function_words,
            handles: bound_handles(env, &function.attributes.handles, sm, device),
            independent: sizes.next().is_some().then_some(env.independent_samplers),
            places: function.attributes.params.clone(),
        }
    }

    /// The parameters of a launch, at the offsets that the kernel expects.
    fn params(&self, launch: &Launch) -> Vec<u8> {
        if self.places.is_empty() || self.places.len() != launch.places.len() {
            return launch.params.clone();
        }
        let mut params = Vec::new();
        for (&(from, size), &to) in launch.places.iter().zip(&self.places) {
            let (from, to, size) = (from as usize, to as usize, size as usize);
            params.resize(params.len().max(to + size), 0);
            if let Some(bytes) = launch.params.get(from..from + size) {
                params[to..to + size].copy_from_slice(bytes);
            }
        }
        params
    }
}

/// The words that the driver writes for texture, sampler and surface variables.
fn bound_handles(env: &Env, words: &layout::HandleWords, sm: Sm, device: &Device) -> Vec<(u32, u64)> {
    let target = Target::of_generation(sm);
    let shifts = target.is_some_and(|target| !target.uniform_handles);
    let bits = |(at, symbol)| {
        let (handle, is_sampler) = match symbol {
            Symbol::Global(i) => {
                let variable = env.variables.get(i as usize)?;
                let is_sampler = variable.ty == ptx_isa::ScalarType::SamplerRef;
                (device.bound_handle(&variable.name)?, is_sampler)
            }
            Symbol::Param(i) => {
                let (_, handle) = device.parameters.iter().find(|(param, _)| *param == i)?;
                let is_sampler = handle & crate::texture::kind(ptx_isa::ScalarType::SamplerRef) != 0;
                (handle & u64::from(u32::MAX), is_sampler)
            }
            _ => return None,
        };
        Some((at, if shifts && is_sampler { handle << crate::texture::SAMPLER_SHIFT } else { handle }))
    };
    words.places().filter_map(bits).collect()
}

/// Runs a kernel.
///
/// # Errors
/// The mistake of the program, or the unsupported instruction, with its position.
pub fn run(kernel: &Kernel, launch: &Launch, device: &mut Device) -> std::result::Result<Work, Fault> {
    run_covering(kernel, launch, device, &mut Vec::new())
}

/// Runs a kernel. Returns which instructions were executed by a thread.
///
/// # Errors
/// As for [`run`].
pub fn run_covering(
    kernel: &Kernel,
    launch: &Launch,
    device: &mut Device,
    covered: &mut Vec<bool>,
) -> std::result::Result<Work, Fault> {
    run_watched(kernel, launch, device, covered, &mut None)
}

/// Runs a kernel and records a trace of its warps.
///
/// # Errors
/// As for [`run`].
pub fn trace(kernel: &Kernel, launch: &Launch, device: &mut Device) -> std::result::Result<Trace, Fault> {
    let mut recorder = Some(Box::default());
    run_watched(kernel, launch, device, &mut Vec::new(), &mut recorder)?;
    Ok(recorder.map(|recorder: Box<record::Recorder>| recorder.trace).unwrap_or_default())
}

fn run_watched(
    kernel: &Kernel,
    launch: &Launch,
    device: &mut Device,
    covered: &mut Vec<bool>,
    recorder: &mut Option<Box<record::Recorder>>,
) -> std::result::Result<Work, Fault> {
    let target = Target::of_generation(kernel.sm)
        .ok_or_else(|| FaultKind::Unsupported(format!("sm_{}", kernel.sm.0)).at(0))?;
    let code = decode::decode(kernel)?;
    // Code with a different order of constants than the device needs its own window for them.
    let constants = match kernel.bank3.starts_with(device.constant_bytes()) {
        true => device.constants(),
        false => device.global.add(kernel.bank3.clone()),
    };
    let tables = kernel.independent.map(|independent| {
        crate::texture::tables(&device.textures, independent).map(|table| device.global.add(table))
    });
    let bank0 = bank::filled(kernel, target, launch, constants, tables);
    let machine = Machine { sm: kernel.sm, target, code, launch, kernel, bank0 };
    device.global.set_params(&machine.bank0);
    let mut work = Work::default();
    let common = swap(device, &kernel.function_words);
    for ctaids in launch.clusters().map_err(|kind| kind.at(0))? {
        let mut block = Block::new(&machine, device, &ctaids);
        block.covered = std::mem::take(covered);
        block.covered.resize(machine.code.len(), false);
        block.recorder = recorder.take();
        if let Some(recorder) = &mut block.recorder {
            recorder.begin(ctaids.len(), block.warps.len());
        }
        let result = block.run(&mut work);
        *covered = std::mem::take(&mut block.covered);
        *recorder = block.recorder.take();
        result.map_err(|(pc, kind)| kind.at(pc as usize))?;
    }
    // Words that the kernel has not changed get back their common values.
    let own = kernel.function_words.iter().zip(common);
    let unchanged = own
        .filter(|((address, value), _)| device.global.word(*address) == Some(*value))
        .map(|(_, common)| common);
    let unchanged: Vec<(u64, u64)> = unchanged.collect();
    swap(device, &unchanged);
    Ok(work)
}

/// Writes words of global memory. Returns their old values.
fn swap(device: &mut Device, words: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let old =
        |&(address, value): &(u64, u64)| (address, device.global.set_word(address, value).unwrap_or(value));
    words.iter().map(old).collect()
}

struct Machine<'a> {
    sm: Sm,
    target: &'static Target,
    code: Vec<Instruction>,
    launch: &'a Launch,
    kernel: &'a Kernel,
    bank0: Vec<u8>,
}

/// What a group of threads waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Runs,
    /// Waits for the other threads of a convergence barrier. With `firmly`, also waits for threads that yield.
    Converges {
        barrier: u8,
        firmly: bool,
    },
    /// Waits for the threads of a mask.
    Meets(u32),
    /// Waits for the threads of a mask, which continue as one group at the first of the places where they wait.
    Collects(u32),
    /// Waits at a barrier of the block.
    Barrier(u32),
    /// Waits at the barrier of the cluster.
    Cluster,
}

/// Threads that run together.
#[derive(Clone, Copy, Debug)]
struct Group {
    pc: u32,
    mask: u32,
    state: State,
    /// The number of cycles along the path of these threads.
    clock: u64,
}

struct Warp {
    first: u32,
    /// Indexed by register, then by lane. The last register is RZ.
    registers: Vec<u32>,
    /// The lanes in which each predicate is true. The last is PT.
    predicates: [u32; 8],
    uniform: [u32; 256],
    uniform_predicates: [bool; 8],
    /// Indexed by convergence barrier and lane: the participating threads, as set by the lane's `BSSY`. Groups that
    /// diverged before may use the same barrier at the same time.
    convergence: [[u32; WARP]; 16],
    groups: Vec<Group>,
    /// Lanes that execute the running group's instruction although they belong to other groups: the other lanes of its
    /// quads.
    helpers: u32,
    /// Where each lane continues after the code that it executes as part of a `WARPSYNC.COLLECTIVE`.
    collective: [u32; WARP],
    /// The results of barrier reductions: the count, and whether the predicate was true for all or for any threads.
    reduction: [u32; 2],
    local: Vec<u8>,
    copies: Copies,
    /// The number of each lane's arrivals at the barrier of the cluster.
    arrivals: [u32; WARP],
    products: warpgroup::Products,
    /// The values that `RPCMOV` moves, for each lane.
    rpc: [[u32; 2]; WARP],
    /// The scoreboard that counts the closed groups of bulk copies.
    bulk_scoreboard: Option<u8>,
    /// The scoreboard that counts the closed groups of copies.
    copies_scoreboard: Option<u8>,
    timing: hazard::Timing,
    /// The number of registers of each thread, including those that the hardware uses.
    held: u32,
    /// The last instruction was a backward jump.
    went_back: bool,
}

impl Warp {
    fn new(machine: &Machine<'_>, first: u32) -> Warp {
        let threads = (machine.launch.threads() - first).min(WARP as u32);
        let mask = u32::MAX >> (WARP as u32 - threads);
        let mut registers = vec![u32::from_le_bytes([UNWRITTEN; 4]); 256 * WARP];
        registers[255 * WARP..].fill(0);
        let calls = machine.code.iter().any(|step| step.inst.form().mnemonic == "CALL");
        let least = if calls { STACK_BYTES_OF_CALLS } else { STACK_BYTES };
        let stack = (machine.kernel.stack_bytes.max(least) + machine.kernel.local_bytes) as usize;
        let mut uniform = [u32::from_le_bytes([UNWRITTEN; 4]); 256];
        uniform[usize::from(machine.sm.urz())] = 0;
        Warp {
            first,
            registers,
            predicates: [0, 0, 0, 0, 0, 0, 0, u32::MAX],
            uniform,
            uniform_predicates: [false, false, false, false, false, false, false, true],
            convergence: [[0; WARP]; 16],
            groups: vec![Group { pc: 0, mask, state: State::Runs, clock: 0 }],
            helpers: 0,
            collective: [0; WARP],
            reduction: [0; 2],
            local: vec![UNWRITTEN; stack * WARP],
            copies: Copies::default(),
            arrivals: [0; WARP],
            products: warpgroup::Products::default(),
            rpc: [[0; 2]; WARP],
            bulk_scoreboard: None,
            copies_scoreboard: None,
            timing: hazard::Timing::default(),
            held: machine.kernel.registers,
            went_back: false,
        }
    }

    fn live(&self) -> u32 {
        self.groups.iter().fold(0, |mask, group| mask | group.mask)
    }

    /// The threads in a state.
    fn lanes(&self, state: State) -> u32 {
        self.groups.iter().filter(|g| g.state == state).fold(0, |mask, group| mask | group.mask)
    }
}

/// The lanes of a mask.
fn each(mask: u32) -> impl Iterator<Item = usize> {
    (0..WARP).filter(move |lane| mask >> lane & 1 == 1)
}

/// A cluster, and the block of it that runs now.
struct Block<'a> {
    machine: &'a Machine<'a>,
    device: &'a mut Device,
    ctaid: [u32; 3],
    /// The shared memory of every block of the cluster.
    shared: Vec<Vec<u8>>,
    /// The reserved words of shared memory, and the tensor memory, of every block.
    reserved: Vec<Vec<u8>>,
    tensor: Vec<TensorMemory>,
    warps: Vec<Warp>,
    barriers: [sync::Barrier; 16],
    cluster: cluster::Cluster,
    transfers: Transfers<bulk::Reduction>,
    /// Which instructions have been executed by a thread.
    covered: Vec<bool>,
    /// Records a trace, if one was requested.
    recorder: Option<Box<record::Recorder>>,
}

impl<'a> Block<'a> {
    fn new(machine: &'a Machine<'a>, device: &'a mut Device, ctaids: &[[u32; 3]]) -> Block<'a> {
        let threads = machine.launch.threads();
        let warps = || (0..threads).step_by(WARP).map(|first| Warp::new(machine, first)).collect();
        let bytes = (machine.kernel.shared_bytes + machine.launch.dynamic_shared) as usize;
        Block {
            machine,
            device,
            ctaid: ctaids[0],
            shared: vec![vec![UNWRITTEN; bytes]; ctaids.len()],
            reserved: match machine.uses_tensor() {
                true => (0..ctaids.len()).map(tensor::reserved_words).collect(),
                false => Vec::new(),
            },
            tensor: vec![TensorMemory::default(); if machine.uses_tensor() { ctaids.len() } else { 0 }],
            warps: warps(),
            barriers: Default::default(),
            cluster: cluster::Cluster::new(ctaids, warps),
            transfers: Transfers::default(),
            covered: Vec::new(),
            recorder: None,
        }
    }

    fn run(&mut self, work: &mut Work) -> std::result::Result<(), (u32, FaultKind)> {
        loop {
            let mut went = false;
            for rank in 0..self.shared.len() {
                self.switch_to(rank);
                self.pass_cluster_barrier();
                went |= self.turn(work)?;
            }
            if !went {
                return self.end();
            }
        }
    }

    /// Runs every warp of the block for some time. Returns whether any of them made progress.
    fn turn(&mut self, work: &mut Work) -> std::result::Result<bool, (u32, FaultKind)> {
        let mut went = false;
        for w in 0..self.warps.len() {
            let mut issued = 0;
            while let Some(g) = self.warps[w].groups.iter().position(|g| g.state == State::Runs) {
                went = true;
                let Group { pc, mask, .. } = self.warps[w].groups[g];
                work.warp_instructions += 1;
                work.thread_instructions += u64::from(mask.count_ones());
                if work.warp_instructions > self.machine.launch.steps {
                    return Err((pc, FaultKind::Steps));
                }
                self.warps[w].went_back = false;
                self.step(w, g).map_err(|kind| (pc, kind))?;
                issued += 1;
                // Groups share the uniform registers, so another group may run only at the start of a loop iteration.
                if issued >= TURN && (self.warps[w].went_back || self.warps[w].groups.len() == 1) {
                    break;
                }
            }
            // Every group gets its turn. Otherwise a group that waits in a loop for another group would wait forever.
            let groups = &mut self.warps[w].groups;
            let by = usize::from(groups.len() > 1);
            groups.rotate_left(by);
        }
        Ok(went)
    }

    /// Ends a cluster in which all threads have exited.
    fn end(&mut self) -> std::result::Result<(), (u32, FaultKind)> {
        for rank in 0..self.shared.len() {
            self.switch_to(rank);
            if let Some(warp) = self.warps.iter().find(|warp| !warp.groups.is_empty()) {
                let waits = format!("{:x?}", warp.groups);
                return Err((warp.groups[0].pc, FaultKind::Deadlock(waits)));
            }
        }
        self.land_all().map_err(|kind| (0, kind))
    }
}
