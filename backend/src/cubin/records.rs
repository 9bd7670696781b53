//! What `.nv.info` tells the driver of the module and of each kernel.

use super::elf::SymbolId;
use super::info::{self, Attribute, Records};
use super::{LinkFunction, Linker};

impl Linker<'_> {
    pub(super) fn module_records(&self, kernels: &[SymbolId]) -> Vec<u8> {
        let mut records = Records::default();
        for (f, symbol) in self.functions.iter().zip(kernels) {
            let resources = &f.code.resources;
            records.words(Attribute::Regcount, &[symbol.0, resources.registers]);
            records.words(Attribute::FrameSize, &[symbol.0, resources.stack_bytes]);
        }
        for (f, symbol) in self.functions.iter().zip(kernels) {
            records.words(Attribute::MinStackSize, &[symbol.0, f.code.resources.stack_bytes]);
        }
        records.into_bytes()
    }

    pub(super) fn kernel_records(&self, f: &LinkFunction<'_>, parameter_bank: SymbolId) -> Vec<u8> {
        let (attributes, launch) = (&f.code.attributes, &f.input.launch);
        let mut r = Records::default();
        r.words(Attribute::CudaApiVersion, &[u32::from(info::API_VERSION)]);
        let parameter_bytes = f.code.resources.const0_bytes - u32::from(self.target.driver.params);
        let parameters = |r: &mut Records| {
            let place = u32::from(self.target.driver.params) | parameter_bytes << 16;
            r.words(Attribute::ParamCbank, &[parameter_bank.0, place]);
            r.half(Attribute::CbankParamSize, parameter_bytes as u16);
        };
        if self.target.cubin.workaround_35 {
            r.flag(Attribute::Workaround35);
        }
        if !self.target.cubin.rela {
            parameters(&mut r);
        }
        for (ordinal, p) in f.input.params.iter().enumerate().rev() {
            let place = ordinal as u32 | p.offset << 16;
            r.words(Attribute::KparamInfo, &[0, place, p.size << 18 | 0x1f << 12]);
        }
        if self.target.cubin.rela {
            r.half(Attribute::SparseMmaMask, 0);
        }
        r.half(Attribute::MaxregCount, attributes.max_registers as u16);
        if f.code.resources.barriers > 0 {
            r.byte(Attribute::NumBarriers, f.code.resources.barriers as u8);
        }
        r.half(Attribute::MercuryIsaVersion, if self.target.cubin.rela { 0x0101 } else { 0 });
        if !attributes.coop_groups.is_empty() {
            let masks: Vec<u32> = attributes.coop_groups.iter().map(|g| g.1).collect();
            let offsets: Vec<u32> = attributes.coop_groups.iter().map(|g| g.0).collect();
            r.words(Attribute::CoopGroupMaskRegids, &masks);
            r.words(Attribute::CoopGroupInstrOffsets, &offsets);
        }
        if self.target.cubin.counts_initial_blocks {
            r.byte(Attribute::VrcCtaInitCount, 0);
        }
        r.words(Attribute::ExitInstrOffsets, &attributes.exits);
        if attributes.reads_ctaid_z && !self.target.cubin.rela {
            r.flag(Attribute::CtaidzUsed);
        }
        if let Some(size) = launch.reqntid {
            r.words(Attribute::ReqNtid, &size);
        }
        if let Some(size) = launch.maxntid.or(launch.reqntid) {
            r.words(Attribute::MaxThreads, &size);
        }
        if let Some(size) = launch.reqnctapercluster {
            r.words(Attribute::CtaPerCluster, &size);
        }
        if launch.explicitcluster {
            r.flag(Attribute::ExplicitCluster);
        }
        if attributes.uses_convergence_barriers {
            r.words(Attribute::CrsStackSize, &[0]);
        }
        if self.target.cubin.rela {
            parameters(&mut r);
        }
        if let Some(value) = self.target.cubin.workaround {
            r.words(Attribute::SwWar, &[value]);
        }
        r.into_bytes()
    }
}
