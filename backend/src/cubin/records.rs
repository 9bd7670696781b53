//! The contents of `.nv.info`: the properties of the module and of each kernel that the driver needs.

use super::elf::SymbolId;
use super::info::{self, Attribute, Records};
use super::symbols::Names;
use super::{LinkFunction, Linker};
use crate::assemble::{JumpTable, LinkTo};
use crate::input::Param;
use crate::ori::ir::TensorUse;
use crate::target::SMALL_PARAM_BYTES;
use ptx_isa::{ScalarType, Space};

impl Linker<'_> {
    pub(super) fn module_records(&self, names: &Names) -> Vec<u8> {
        let mut records = Records::default();
        for (i, (f, symbol)) in self.functions.iter().zip(&names.kernels).enumerate().rev() {
            let resources = &f.code.resources;
            records.words(Attribute::Regcount, &[symbol.0, resources.registers]);
            for (part, name) in self.kernels[i].joined.parts.iter().zip(&names.parts[i]) {
                records.words(Attribute::FrameSize, &[name.0, part.frame_bytes]);
            }
            // A kernel's frame contains those of the functions in its section.
            let frame_bytes = match self.options.linking.is_joined() {
                true => resources.stack_bytes,
                false => self.kernels[i].joined.frame_bytes,
            };
            records.words(Attribute::FrameSize, &[symbol.0, frame_bytes]);
            if self.options.errors_at_exit {
                records.flag(Attribute::GenErrbarAtExit);
            }
        }
        let kernels = self.functions.iter().zip(&names.kernels).filter(|(f, _)| f.input.entry);
        for (f, symbol) in kernels {
            records.words(Attribute::MinStackSize, &[symbol.0, f.code.resources.stack_bytes]);
        }
        self.sampler_records(&mut records, |variable| names.variables[variable as usize]);
        if self.functions.is_empty() {
            self.version_record(&mut records);
        }
        records.into_bytes()
    }

    /// The record that each function has. A module without kernels has one too.
    pub(super) fn version_record(&self, records: &mut Records) {
        records.half(Attribute::MercuryIsaVersion, if self.target.cubin.rela { 0x0101 } else { 0 });
    }

    /// The driver functions that a kernel calls, and the kernels whose addresses it takes.
    fn externs<'n>(
        &self,
        f: &LinkFunction<'_>,
        names: &'n Names,
    ) -> impl Iterator<Item = SymbolId> + use<'n, '_> {
        let called = f.code.attributes.symbols.clone();
        names.externs.iter().filter(move |(name, _)| called.contains(name)).map(|(_, id)| *id)
    }

    /// Each call between sections of code: the indices of the caller and of the function.
    pub(super) fn calls_between_sections(&self) -> Vec<(usize, usize)> {
        let mut all = Vec::new();
        for (caller, f) in self.functions.iter().enumerate() {
            let called = f.code.links.iter().filter_map(|link| match link.to {
                LinkTo::Function(i) => self.function(i),
                _ => None,
            });
            all.extend(called.map(|callee| (caller, callee)));
        }
        all.sort_unstable();
        all.dedup();
        all
    }

    /// The call graph of the file. The first of four lists contains pairs of a caller and a function in another section or
    /// in the driver, the second kernels whose addresses are taken, the last pairs of a kernel and a kernel whose address
    /// it takes. As in files of ptxas, calls inside a kernel's code are not listed.
    pub(super) fn call_graph(&self, names: &Names) -> Vec<u8> {
        let is_kernel = |id: &SymbolId| names.kernels.contains(id);
        let pairs = |kernels: bool| {
            let own = self.functions.iter().zip(&names.kernels);
            own.flat_map(move |(f, caller)| {
                let used = self.externs(f, names).filter(move |id| is_kernel(id) == kernels);
                used.map(|used| [caller.0, used.0])
            })
        };
        let taken = names.externs.iter().map(|(_, id)| id).filter(|id| is_kernel(id));
        let marker = |list: u32| std::iter::once([0, list.wrapping_neg()]);
        let between = self.calls_between_sections().into_iter();
        let between = between.map(|(caller, callee)| [names.kernels[caller].0, names.kernels[callee].0]);
        let words =
            marker(1).chain(pairs(false)).chain(between).chain(marker(2)).chain(taken.map(|id| [id.0, 0]));
        let words = words.chain(marker(3)).chain(marker(4)).chain(pairs(true));
        words.flatten().flat_map(u32::to_le_bytes).collect()
    }

    pub(super) fn kernel_records(
        &self,
        f: &LinkFunction<'_>,
        parameter_bank: SymbolId,
        names: &Names,
    ) -> Vec<u8> {
        let (attributes, launch) = (&f.code.attributes, &f.input.launch);
        let mut r = Records::default();
        let rela = self.target.cubin.rela;
        let workaround = |r: &mut Records| {
            if let Some(value) = self.target.cubin.workaround {
                r.words(Attribute::SwWar, &[value]);
            }
        };
        if !rela {
            workaround(&mut r);
        }
        r.words(Attribute::CudaApiVersion, &[u32::from(info::API_VERSION)]);
        let block = self.target.place_params(&f.input.params);
        let (parameter_bytes, first) = (block.bytes, u32::from(block.first));
        let place = first | parameter_bytes << 16;
        let bank = |r: &mut Records| r.words(Attribute::ParamCbank, &[parameter_bank.0, place]);
        let bank_size = |r: &mut Records| r.half(Attribute::CbankParamSize, parameter_bytes as u16);
        let has_parameters = !f.input.params.is_empty();
        if self.target.cubin.workaround_35 {
            r.flag(Attribute::Workaround35);
        }
        if !rela && has_parameters && f.input.entry {
            bank(&mut r);
            bank_size(&mut r);
        }
        let described = f.input.params.iter().zip(&block.offsets).enumerate().rev().filter(|_| f.input.entry);
        for (ordinal, (p, offset)) in described {
            let (symbol, place, size, pointee) = if p.is_opaque() {
                let own = self.functions.iter().position(|of| of.code.name == f.code.name);
                let symbol = names.handle(own.unwrap_or(0), ordinal as u32);
                (symbol.0, NO_PLACE, 0, handle_space(p.ty) << 8)
            } else {
                (0, offset << 16, p.size, pointee(p, rela))
            };
            let place = ordinal as u32 | place;
            if parameter_bytes > SMALL_PARAM_BYTES {
                r.words(Attribute::KparamInfoV2, &[symbol, place, pointee << 16 | size]);
            } else {
                r.words(Attribute::KparamInfo, &[symbol, place, size << 18 | 0x1f << 12 | pointee]);
            }
        }
        let uses = |what| attributes.tensor.has(what);
        let columns =
            [(TensorUse::COLUMNS, TENSOR_FRAGMENT), (TensorUse::COLUMNS_OF_PAIR, TENSOR_FRAGMENT_OF_PAIR)];
        let fragments: Vec<u32> = columns.iter().filter(|row| uses(row.0)).map(|row| row.1).collect();
        // A linker copies these records of functions to the kernels that may call them.
        let has_fragments = !fragments.is_empty() && (f.input.entry || self.options.linking.is_object());
        if has_fragments {
            r.words(Attribute::AtEntryFragments, &fragments);
        }
        let reads_reserved =
            attributes.reads_reserved_shared || self.target.cubin.reserved_variable.is_some();
        if has_fragments || f.input.entry && reads_reserved {
            r.flag(Attribute::ReservedSmemUsed);
        }
        if rela {
            r.half(Attribute::SparseMmaMask, attributes.matrix.sparse);
        }
        if uses(TensorUse::ALONE) {
            r.flag(Attribute::Tcgen05OneCtaUsed);
        }
        if uses(TensorUse::PAIR) {
            r.flag(Attribute::Tcgen05TwoCtaUsed);
        }
        if f.input.entry {
            r.half(Attribute::MaxregCount, attributes.max_registers as u16);
        }
        let spills = (0u32..).step_by(16).zip(f.code.spills.iter()).filter(|(_, spill)| **spill);
        let spills: Vec<u32> = spills.flat_map(|(at, _)| [info::SPILL, at]).collect();
        for spills in spills.chunks(MOST_ANNOTATIONS) {
            r.words(Attribute::Annotations, spills);
        }
        let handles = self.handle_kinds(f);
        let (textures, surfaces) =
            (handles.contains(&ScalarType::TexRef), handles.contains(&ScalarType::SurfRef));
        if surfaces && !rela {
            r.byte(Attribute::BindlessSurfaceBank, 0);
        }
        if textures && !rela {
            r.byte(Attribute::BindlessTextureBank, 0);
        }
        let externs: Vec<u32> = match self.options.linking.is_object() {
            true => names.externs.iter().map(|(_, symbol)| symbol.0).collect(),
            false => self.externs(f, names).map(|symbol| symbol.0).collect(),
        };
        if !externs.is_empty() {
            r.words(Attribute::Externs, &externs);
        }
        if attributes.matrix.wmma && f.input.entry {
            r.flag(Attribute::WmmaUsed);
        }
        if f.code.resources.barriers > 0 {
            r.byte(Attribute::NumBarriers, f.code.resources.barriers as u8);
        }
        self.version_record(&mut r);
        if !attributes.own_warp_operations.is_empty() {
            r.words(Attribute::IntWarpWideInstrOffsets, &attributes.own_warp_operations);
        }
        if !attributes.coop_groups.is_empty() {
            let masks: Vec<u32> = attributes.coop_groups.iter().map(|g| g.1).collect();
            let offsets: Vec<u32> = attributes.coop_groups.iter().map(|g| g.0).collect();
            r.words(Attribute::CoopGroupMaskRegids, &masks);
            r.words(Attribute::CoopGroupInstrOffsets, &offsets);
        }
        if attributes.changes_registers == Some(Ok(())) {
            r.flag(Attribute::RegReconfig);
        }
        if self.target.cubin.counts_initial_blocks {
            let count = if uses(TensorUse::MEMORY) { BLOCKS_WITH_TENSOR_MEMORY } else { 0 };
            r.byte(Attribute::VrcCtaInitCount, count);
        }
        if !attributes.system_calls.is_empty() {
            r.words(Attribute::SyscallOffsets, &attributes.system_calls);
        }
        if !attributes.exits.is_empty() {
            r.words(Attribute::ExitInstrOffsets, &attributes.exits);
        }
        for targets in branch_targets(&f.code.tables) {
            r.words(Attribute::IndirectBranchTargets, &targets);
        }
        if attributes.reads_ctaid_z && !rela {
            r.flag(Attribute::CtaidzUsed);
        }
        if let Some(size) = launch.reqntid {
            r.words(Attribute::ReqNtid, &size);
        }
        if let Some(size) = launch.maxntid {
            r.words(Attribute::MaxThreads, &size);
        }
        if let Some(size) = launch.reqnctapercluster {
            r.words(Attribute::CtaPerCluster, &size);
        }
        if launch.explicitcluster {
            r.flag(Attribute::ExplicitCluster);
        }
        if let Some(blocks) = launch.maxclusterrank {
            r.words(Attribute::MaxClusterRank, &[blocks]);
        }
        if attributes.uses_convergence_barriers {
            r.words(Attribute::CrsStackSize, &[0]);
        }
        if rela {
            if has_parameters && f.input.entry {
                bank_size(&mut r);
                bank(&mut r);
            }
            workaround(&mut r);
            if !handles.is_empty() && !self.options.linking.is_object() {
                r.byte(Attribute::BindlessTextureBank, 0);
                r.byte(Attribute::BindlessSurfaceBank, 0);
            }
        }
        r.into_bytes()
    }
}

/// The maximum number of words in a record, whose size has 16 bits.
const MOST_ANNOTATIONS: usize = 0x3ff0;

/// Requests the driver code that clears, before a kernel, the reserved words in which blocks record their columns.
const TENSOR_FRAGMENT: u32 = 6;
const TENSOR_FRAGMENT_OF_PAIR: u32 = 7;
/// A block's share of the count that prevents other blocks from starting. The block holds the share until it gives up
/// the permission to allocate columns.
const BLOCKS_WITH_TENSOR_MEMORY: u8 = 0x80;

/// For each indirect branch: its offset, a word of flags, the number of its targets, and the targets. A record can hold
/// 64 KB.
fn branch_targets(tables: &[JumpTable]) -> Vec<Vec<u32>> {
    const WORD: u32 = 16;
    const MOST: usize = (1 << 14) - 1;
    let mut records: Vec<Vec<u32>> = Vec::new();
    for table in tables {
        let head = [table.branch * WORD, 0, table.targets.len() as u32];
        let words = head.into_iter().chain(table.targets.iter().map(|target| target * WORD));
        match records.last_mut() {
            Some(last) if last.len() + head.len() + table.targets.len() <= MOST => last.extend(words),
            _ => records.push(words.collect()),
        }
    }
    records
}

/// The value for the place of a handle parameter.
const NO_PLACE: u32 = 0xffff << 16;

/// The space number of a handle parameter.
fn handle_space(ty: ScalarType) -> u32 {
    match ty {
        ScalarType::SurfRef => 7,
        ScalarType::SamplerRef => 8,
        _ => 6,
    }
}

/// The space that a parameter points to, and the alignment as a power of two.
fn pointee(p: &Param, rela: bool) -> u32 {
    let Some(pointer) = p.pointer else { return 0 };
    let space = match pointer.space {
        Some(Space::Local) => 1,
        Some(Space::Shared) => 2,
        // From sm_90 on, constant memory has the number of global memory.
        Some(Space::Const) if !rela => 3,
        Some(Space::Const | Space::Global) => 4,
        _ => 5,
    };
    space << 8 | pointer.align.trailing_zeros()
}
