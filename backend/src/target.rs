//! The targets as data: one row per SM. No other code compares SM numbers.
//!
//! The tables of `sass` describe the machine instructions of a target, and whether an instruction exists
//! ([`crate::emit::encodes`]). This file contains the rest: the resources of a multiprocessor, the offsets of the
//! driver's words, and properties of the hardware that the cubin states.
//!
//! Sources: the table "Technical Specifications per Compute Capability" of the CUDA Programming Guide (limits; those of
//! sm_88, which it does not list, follow the generation's other members); the occupancy chapter of the Best
//! Practices Guide (granularities); observation of ptxas 13.0.88's output for each target (the rest).

use crate::abi::Preserved;
use crate::input::Param;
use ptx_isa::Sm;

/// One target. Offsets are bytes into constant bank 0.
#[derive(PartialEq, Eq, Debug)]
pub struct Target {
    /// `75` for `sm_75`.
    pub sm: u16,
    pub limits: Limits,
    pub driver: &'static DriverWords,
    /// The offset of user shared memory in the block's window.
    pub shared_base: u32,
    /// Blocks can form clusters. Shared addresses have the rank of the block in its cluster in their top byte.
    pub clusters: bool,
    /// `LDC` loads R1 from the constant bank, instead of `MOV`.
    pub loads_stack_pointer: bool,
    /// A barrier that a function has saved for its caller is cleared again before the function sets it.
    pub clears_barriers_twice: bool,
    /// Sparse products require metadata whose positions ascend within each group of four.
    pub ordered_metadata: bool,
    /// `.f64` products with 16 rows are one operation; on other targets they are composed of products with eight rows.
    pub tall_double_products: bool,
    /// The number of idle loads of shared memory before a copy to it that follows other users of the memory unit.
    pub loads_before_copies: u8,
    /// The same before an arrival at an mbarrier object after copies; such a function also has three idle loads before
    /// copies.
    pub loads_before_arrivals: u8,
    /// `%nwarpid` if it is a constant; on other targets a special register contains it.
    pub warp_slots: Option<u32>,
    /// The handles of textures and surfaces are in uniform registers, instead of constants.
    pub uniform_handles: bool,
    /// Which barriers of the block are `.DEFER_BLOCKING`.
    pub deferred_barriers: DeferredBarriers,
    /// Votes and matches of all threads have a predicate result. On other targets, ptxas compares thread masks.
    pub predicate_votes: bool,
    /// ptxas assumes that all threads which set a convergence barrier are together after it, and branches on uniform
    /// predicates.
    pub certain_meetings: bool,
    /// ptxas lets accesses of shared memory multiply the register of their address.
    pub scales_addresses: bool,
    /// ptxas puts 64-bit numbers that no instruction contains into constant bank 2 of the kernel.
    pub literals: bool,
    /// ptxas unrolls loops in which threads of a warp wait for each other.
    pub unrolls_warp_waits: bool,
    /// Threads of a warp converge before an aligned arrival at a barrier of the block.
    pub joins_arrivals: bool,
    /// Driver functions read textures with derivatives if there is no machine instruction for it.
    pub driver_gradients: bool,
    /// The registers that driver functions preserve. If they are more than those of the convention, prototypes in objects
    /// state them.
    pub driver_preserves: Preserved,
    /// Driver functions copy from global memory into the shared memory of other blocks of a cluster.
    pub driver_copies: bool,
    /// Textures select a level automatically if none is given, even in compute programs.
    pub own_texture_levels: bool,
    /// The number of uniform registers that code may use, without URZ. From sm_100 on the encoding has room for 255,
    /// but fewer exist; ptxas was observed to use 52.
    pub uniform_registers: u8,
    pub cubin: Cubin,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DeferredBarriers {
    None,
    /// Barriers that all threads of a warp reach together, and all reductions.
    Aligned,
    All,
}

/// The resources of one multiprocessor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    pub warps: u32,
    pub blocks: u32,
    /// Bytes of shared memory, including those of the system.
    pub shared: u32,
    /// The maximum number of bytes of shared memory that one block may use.
    pub shared_per_block: u32,
    /// The number of bytes of shared memory that the system takes from each block.
    pub shared_reserved: u32,
    /// Shared memory is allocated to blocks in multiples of this number of bytes.
    pub shared_unit: u32,
}

/// The offsets in constant bank 0 of the words that the driver writes for kernels.
#[derive(PartialEq, Eq, Debug)]
pub struct DriverWords {
    /// The first kernel parameter.
    pub params: u16,
    /// The same if all parameters together take more than [`SMALL_PARAM_BYTES`].
    pub large_params: u16,
    /// The initial stack pointer, loaded into R1.
    pub stack: u16,
    /// The 64-bit descriptor of the global window.
    pub descriptor: Option<u16>,
    /// `%ntid.x`; `.y` and `.z` follow.
    pub ntid: u16,
    /// `%nctaid.x`; `.y` and `.z` follow.
    pub nctaid: u16,
    /// 64-bit generic addresses of windows. If that of shared memory is missing, a special register contains its high
    /// word.
    pub shared_window: Option<u16>,
    pub local_window: u16,
    /// `.const` variables.
    pub const_window: u16,
    /// The parameters themselves, or the start of the bank.
    pub param_window: ParamWindow,
    /// The end of the parameters: the generic address of the last byte or, if the window is the whole bank, its offset
    /// in the bank.
    pub param_end: u16,
    pub grid_id: u16,
    pub graph_exec: u16,
    pub sm_count: u16,
    /// The number of bytes of the block's shared memory that the system reserves; `None` if there are none.
    pub reserved_shared: Option<u16>,
    /// The addresses of the tables that describe textures, samplers and surfaces, one after the other.
    pub descriptors: u16,
    /// `%is_explicit_cluster`.
    pub explicit_cluster: Option<u16>,
    pub launch: LaunchWords,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ParamWindow {
    /// The generic address of the first parameter.
    Parameters(u16),
    /// The generic address of the bank.
    Bank(u16),
}

/// Words about the launch. On targets that schedule blocks by clusters, the offset of each is lower by `stride` bytes
/// times `SR_CgaSize`.
#[derive(PartialEq, Eq, Debug)]
pub struct LaunchWords {
    pub stride: u16,
    pub dynamic_shared: u16,
    /// `%envreg0`; the others follow.
    pub environment: u16,
    /// `%envreg16`, if the second half of these words is elsewhere and does not depend on the launch.
    pub late_environment: Option<u16>,
    /// `%reserved_smem_offset_end`; `%reserved_smem_offset_1` follows.
    pub reserved_end: Option<u16>,
    pub clusters: Option<ClusterWords>,
}

/// Words about clusters. For words about three axes, the other two follow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClusterWords {
    /// `%cluster_nctaid.x`, and its reciprocal as a float.
    pub blocks_x: u16,
    pub reciprocal_x: u16,
    /// `%nclusterid.x`.
    pub clusters_x: u16,
    /// `%cluster_nctarank`.
    pub blocks: u16,
    /// The least `%aggr_smem_size`.
    pub aggregate_shared: u16,
}

/// The relocations for a 64-bit address in code and data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AddressRelocations {
    /// The halves of the address, in instructions.
    pub low: u32,
    pub high: u32,
    /// The whole address, in data.
    pub whole: u32,
    /// The lowest byte of the address in data; the types for the other seven bytes follow.
    pub lowest_byte: u32,
}

impl AddressRelocations {
    /// The relocation of one half of the address, in an instruction.
    pub fn half(&self, high: bool) -> u32 {
        if high { self.high } else { self.low }
    }
}

/// Properties of the hardware that a cubin states.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cubin {
    /// The low byte of `e_flags` in executables; nvJitLink rejects other values.
    pub executable_flags: u32,
    /// Relocations carry addends, and the header names the Mercury version.
    pub rela: bool,
    /// Attribute 0x35, a workaround, is written.
    pub workaround_35: bool,
    /// The relocation of a call of a function in another section.
    pub call_relocation: u32,
    /// The relocation of an offset in constant bank 0 that a uniform load reads.
    pub uniform_relocation: u32,
    /// The relocations of the address of a function other than a kernel, in objects.
    pub function_address: AddressRelocations,
    /// `EIATTR_SW_WAR`.
    pub workaround: Option<u32>,
    /// `EIATTR_VRC_CTA_INIT_COUNT` is written.
    pub counts_initial_blocks: bool,
    /// The size of the section for reserved shared memory.
    pub reserved_shared: u64,
    /// A variable of every module after these bytes, which no code reads.
    pub reserved_variable: Option<ReservedVariable>,
    /// `-v` counts the bank, because the driver's words precede the parameters in it.
    pub counts_bank_0: bool,
}

impl Cubin {
    /// The address in shared memory of the words in which a block records its columns of tensor memory. In objects, a
    /// linker assigns it.
    pub fn tensor_words(&self) -> u64 {
        self.reserved_shared + self.reserved_variable.map_or(0, |variable| variable.bytes)
    }
}

/// A variable in the shared memory that the system reserves in every block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReservedVariable {
    pub name: &'static str,
    pub bytes: u64,
    pub align: u64,
}

impl ReservedVariable {
    /// The words in which a block records its columns of tensor memory.
    pub const TENSOR_WORDS: ReservedVariable =
        ReservedVariable { name: "__nv_reservedSMEM_tcgen05_partition", bytes: 0x20, align: 1 };
    const UNREAD: ReservedVariable =
        ReservedVariable { name: "__nv_reservedSMEM_gb10b_war_var", bytes: 0x80, align: 16 };
}

/// The offsets of the parameters of a kernel on a target.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParamBlock {
    /// The offset of the first parameter in constant bank 0.
    pub first: u16,
    /// The offset of each parameter from there.
    pub offsets: Vec<u32>,
    /// The number of bytes of all parameters.
    pub bytes: u32,
}

/// The highest general register index that a thread may use, plus one: R255 is RZ, and the hardware takes two
/// registers.
pub const MAX_REGISTERS: u32 = 255;
/// The number of registers that the hardware takes per thread, in addition to those that the code names.
pub const HIDDEN_REGISTERS: u32 = 2;
/// Bytes of kernel parameters before and from PTX 8.1 on sm_70.
pub const MAX_PARAM_BYTES: u32 = 32764;
/// The maximum number of parameter bytes that are described and placed as before PTX 8.1.
pub const SMALL_PARAM_BYTES: u32 = 4352;
/// 32-bit registers of a multiprocessor.
pub const SM_REGISTERS: u32 = 65536;

/// Registers are allocated to the threads of a warp in units of this size.
pub const REGISTER_UNIT: u32 = 8;

impl Limits {
    /// The number of registers that a thread can use without reducing the occupancy: the register file holds them for as
    /// many warps as the multiprocessor can run.
    pub fn free_registers(&self) -> u32 {
        let most = SM_REGISTERS / (self.warps * WARP);
        most - most % REGISTER_UNIT
    }
}
pub const WARP: u32 = 32;
pub const MAX_THREADS_PER_BLOCK: u32 = 1024;

const KB: u32 = 1024;

const TURING_WORDS: DriverWords = DriverWords {
    params: 0x160,
    large_params: 0x1a80,
    stack: 0x28,
    descriptor: None,
    ntid: 0x0,
    nctaid: 0xc,
    shared_window: Some(0x18),
    local_window: 0x20,
    const_window: 0x50,
    param_window: ParamWindow::Bank(0x40),
    param_end: 0x114,
    grid_id: 0x30,
    graph_exec: 0x120,
    sm_count: 0x10c,
    reserved_shared: None,
    descriptors: 0x70,
    explicit_cluster: None,
    launch: LaunchWords {
        stride: 0,
        dynamic_shared: 0x2c,
        environment: 0x88,
        late_environment: None,
        reserved_end: None,
        clusters: None,
    },
};

const AMPERE_WORDS: DriverWords = DriverWords {
    descriptor: Some(0x118),
    param_end: 0x12c,
    graph_exec: 0x130,
    reserved_shared: Some(0x114),
    launch: LaunchWords { reserved_end: Some(0x120), ..TURING_WORDS.launch },
    ..TURING_WORDS
};

const HOPPER_WORDS: DriverWords = DriverWords {
    params: 0x210,
    large_params: 0x210,
    descriptor: Some(0x208),
    shared_window: None,
    const_window: 0xd0,
    param_window: ParamWindow::Parameters(0x198),
    param_end: 0x1a0,
    graph_exec: 0x190,
    descriptors: 0xf0,
    explicit_cluster: Some(0x140),
    launch: LaunchWords {
        stride: 0,
        dynamic_shared: 0x2c,
        environment: 0x40,
        late_environment: None,
        reserved_end: Some(0x68),
        clusters: Some(ClusterWords {
            blocks_x: 0x144,
            reciprocal_x: 0x150,
            clusters_x: 0x15c,
            blocks: 0x188,
            aggregate_shared: 0x13c,
        }),
    },
    ..AMPERE_WORDS
};

const BLACKWELL_WORDS: DriverWords = DriverWords {
    params: 0x380,
    large_params: 0x380,
    stack: 0x37c,
    descriptor: Some(0x358),
    ntid: 0x360,
    nctaid: 0x370,
    shared_window: None,
    local_window: 0x2f8,
    const_window: 0x120,
    param_window: ParamWindow::Parameters(0x348),
    param_end: 0x350,
    grid_id: 0x140,
    graph_exec: 0x2e8,
    sm_count: 0x2d0,
    reserved_shared: Some(0x16c),
    descriptors: 0x150,
    explicit_cluster: Some(0x36c),
    launch: LaunchWords {
        stride: 0xa0,
        dynamic_shared: 0x2ac,
        environment: 0x250,
        late_environment: Some(0xd0),
        reserved_end: Some(0x278),
        clusters: Some(ClusterWords {
            blocks_x: 0x2a0,
            reciprocal_x: 0x2b0,
            clusters_x: 0x2c0,
            blocks: 0x2cc,
            aggregate_shared: 0x2bc,
        }),
    },
};

const SM_75: Target = Target {
    sm: 75,
    limits: Limits {
        warps: 32,
        blocks: 16,
        shared: 64 * KB,
        shared_per_block: 64 * KB,
        shared_reserved: 0,
        shared_unit: 256,
    },
    driver: &TURING_WORDS,
    shared_base: 0,
    clusters: false,
    loads_stack_pointer: false,
    clears_barriers_twice: true,
    ordered_metadata: false,
    tall_double_products: false,
    loads_before_copies: 0,
    loads_before_arrivals: 0,
    warp_slots: Some(32),
    uniform_handles: false,
    deferred_barriers: DeferredBarriers::None,
    predicate_votes: false,
    certain_meetings: false,
    scales_addresses: true,
    literals: true,
    unrolls_warp_waits: false,
    joins_arrivals: true,
    driver_gradients: false,
    driver_preserves: Preserved::BY_CONVENTION,
    driver_copies: false,
    own_texture_levels: false,
    uniform_registers: 63,
    cubin: Cubin {
        executable_flags: 4,
        rela: false,
        workaround_35: false,
        call_relocation: 58,
        uniform_relocation: 66,
        // R_CUDA_ABS32_LO_32, R_CUDA_ABS32_HI_32, R_CUDA_64 and R_CUDA_8_0.
        function_address: AddressRelocations { low: 56, high: 57, whole: 2, lowest_byte: 76 },
        workaround: Some(1),
        counts_initial_blocks: false,
        reserved_shared: 0,
        reserved_variable: None,
        counts_bank_0: true,
    },
};

const SM_80: Target = Target {
    sm: 80,
    limits: Limits {
        warps: 64,
        blocks: 32,
        shared: 164 * KB,
        shared_per_block: 163 * KB,
        shared_reserved: KB,
        shared_unit: 128,
    },
    driver: &AMPERE_WORDS,
    predicate_votes: true,
    clears_barriers_twice: false,
    deferred_barriers: DeferredBarriers::Aligned,
    loads_before_arrivals: 4,
    warp_slots: Some(64),
    driver_preserves: Preserved::BY_DRIVER,
    cubin: Cubin { workaround_35: true, workaround: None, ..SM_75.cubin },
    ..SM_75
};

/// The smaller multiprocessors of the Ampere generation.
const SM_86: Target = Target {
    sm: 86,
    limits: Limits { warps: 48, blocks: 16, shared: 100 * KB, shared_per_block: 99 * KB, ..SM_80.limits },
    warp_slots: Some(48),
    ..SM_80
};

const SM_90: Target = Target {
    sm: 90,
    uniform_handles: true,
    deferred_barriers: DeferredBarriers::All,
    scales_addresses: false,
    literals: false,
    unrolls_warp_waits: true,
    joins_arrivals: false,
    driver_gradients: true,
    limits: Limits { shared: 228 * KB, shared_per_block: 227 * KB, ..SM_80.limits },
    driver: &HOPPER_WORDS,
    shared_base: 0x400,
    clusters: true,
    loads_stack_pointer: true,
    tall_double_products: true,
    loads_before_copies: 3,
    loads_before_arrivals: 0,
    warp_slots: None,
    cubin: Cubin {
        rela: true,
        workaround_35: false,
        call_relocation: 75,
        // R_CUDA_UNIFIED32_LO_32, R_CUDA_UNIFIED32_HI_32, R_CUDA_UNIFIED and R_CUDA_UNIFIED_8_0.
        function_address: AddressRelocations { low: 112, high: 113, whole: 102, lowest_byte: 104 },
        workaround: Some(8),
        counts_bank_0: false,
        ..SM_80.cubin
    },
    ..SM_80
};

const SM_100: Target = Target {
    certain_meetings: true,
    sm: 100,
    driver: &BLACKWELL_WORDS,
    tall_double_products: false,
    cubin: Cubin {
        executable_flags: 2,
        uniform_relocation: 115,
        counts_initial_blocks: true,
        reserved_shared: 0x40,
        ..SM_90.cubin
    },
    ..SM_90
};

const SM_110: Target = Target {
    sm: 110,
    limits: Limits { warps: 48, blocks: 24, ..SM_100.limits },
    cubin: Cubin { reserved_variable: Some(ReservedVariable::UNREAD), ..SM_100.cubin },
    ..SM_100
};

const SM_120: Target = Target {
    sm: 120,
    own_texture_levels: true,
    driver_copies: true,
    limits: Limits { warps: 48, blocks: 24, shared: 100 * KB, shared_per_block: 99 * KB, ..SM_100.limits },
    ordered_metadata: true,
    cubin: Cubin { workaround: Some(0), ..SM_100.cubin },
    ..SM_100
};

/// Oldest first.
pub(crate) static TARGETS: [Target; 12] = [
    SM_75,
    SM_80,
    SM_86,
    Target {
        sm: 87,
        limits: Limits { shared: 164 * KB, shared_per_block: 163 * KB, ..SM_86.limits },
        warp_slots: Some(64),
        cubin: Cubin { workaround: Some(2), ..SM_86.cubin },
        ..SM_86
    },
    Target { sm: 88, ..SM_86 },
    Target {
        sm: 89,
        limits: Limits { blocks: 24, ..SM_86.limits },
        cubin: Cubin { workaround_35: false, ..SM_86.cubin },
        ..SM_86
    },
    SM_90,
    SM_100,
    Target { sm: 103, ..SM_100 },
    SM_110,
    SM_120,
    Target { sm: 121, ..SM_120 },
];

impl Target {
    /// The row of a target; `None` for targets without code generation.
    pub fn of(sm: Sm) -> Option<&'static Target> {
        TARGETS.iter().find(|t| t.sm == sm.number)
    }

    /// The row of the target with the machine code of a generation.
    pub fn of_generation(sm: sass::Sm) -> Option<&'static Target> {
        Target::of(Sm::new(sm.0.into()))
    }

    /// The row of a target, or of the nearest older one.
    pub fn nearest(sm: Sm) -> Option<&'static Target> {
        TARGETS.iter().rev().find(|t| t.sm <= sm.number)
    }

    /// The offset of the first kernel parameter in constant bank 0, if the parameters take `bytes` bytes.
    pub fn first_param(&self, bytes: u32) -> u16 {
        if bytes > SMALL_PARAM_BYTES { self.driver.large_params } else { self.driver.params }
    }

    /// The offsets of a kernel's parameters, which are aligned in the bank; the driver's words precede them.
    pub fn place_params(&self, params: &[Param]) -> ParamBlock {
        let place = |first: u16| {
            let first = u32::from(first);
            let mut end = first;
            let mut offsets = Vec::with_capacity(params.len());
            for param in params {
                if param.is_opaque() {
                    offsets.push(end - first);
                    continue;
                }
                let at = end.checked_next_multiple_of(param.align.max(1)).unwrap_or(u32::MAX);
                offsets.push(at - first);
                end = at.saturating_add(param.size);
            }
            (offsets, end - first)
        };
        let first = self.driver.params;
        let (offsets, bytes) = place(first);
        if bytes <= SMALL_PARAM_BYTES {
            return ParamBlock { first, offsets, bytes };
        }
        let first = self.driver.large_params;
        let (offsets, bytes) = place(first);
        ParamBlock { first, offsets, bytes }
    }

    /// Accesses of global and generic memory can read their address from uniform registers. The field is that of the
    /// window's descriptor on other targets.
    pub fn uniform_addresses(&self) -> bool {
        self.driver.descriptor.is_none()
    }

    /// The generation in the tables of machine instructions.
    pub fn generation(&self) -> sass::Sm {
        sass::Sm(self.sm as u8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_warps_as_run_have_registers() {
        let free = |sm| Target::of(Sm::new(sm)).map(|target| target.limits.free_registers());
        assert_eq!([75, 80, 86, 90, 100, 120].map(free), [64, 32, 40, 32, 32, 40].map(Some));
    }

    #[test]
    fn every_generation_of_machine_code_has_a_row() {
        let rows: Vec<u16> = TARGETS.iter().map(|t| t.sm).collect();
        let generations: Vec<u16> = sass::Sm::ALL.iter().map(|sm| sm.0.into()).collect();
        assert_eq!(rows, generations);
        assert!(Target::of(Sm::new(70)).is_none());
        assert_eq!(Target::nearest(Sm::new(101)).map(|t| t.sm), Some(100));
    }

    #[test]
    fn code_is_generated_for_all_targets() {
        assert!(Sm::COMPILED.iter().all(|&number| Target::of(Sm::new(number)).is_some()));
    }
}
