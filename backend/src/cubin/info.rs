//! `.nv.info` records: the properties of a module and of each kernel that the driver needs.

/// Attribute numbers, with the names that `cuobjdump -elf` prints (`EIATTR_…`).
#[derive(Clone, Copy, Debug)]
#[repr(u8)]
pub(super) enum Attribute {
    MaxThreads = 0x05,
    CtaidzUsed = 0x04,
    SamplerInit = 0x09,
    ParamCbank = 0x0a,
    Externs = 0x0f,
    ReqNtid = 0x10,
    FrameSize = 0x11,
    MinStackSize = 0x12,
    SamplerForceUnnormalized = 0x13,
    KparamInfo = 0x17,
    CbankParamSize = 0x19,
    MaxregCount = 0x1b,
    ExitInstrOffsets = 0x1c,
    CrsStackSize = 0x1e,
    CoopGroupInstrOffsets = 0x28,
    CoopGroupMaskRegids = 0x29,
    WmmaUsed = 0x2b,
    MaxStackSize = 0x23,
    Regcount = 0x2f,
    IntWarpWideInstrOffsets = 0x31,
    IndirectBranchTargets = 0x34,
    /// No public name is known; present on sm_80 to sm_88.
    Workaround35 = 0x35,
    SwWar = 0x36,
    CudaApiVersion = 0x37,
    CtaPerCluster = 0x3d,
    ExplicitCluster = 0x3e,
    MaxClusterRank = 0x3f,
    VrcCtaInitCount = 0x4a,
    KparamInfoV2 = 0x45,
    SyscallOffsets = 0x46,
    NumBarriers = 0x4c,
    TexmodeIndependent = 0x4d,
    /// Numbers of driver code fragments that run before a kernel's own code.
    AtEntryFragments = 0x4f,
    SparseMmaMask = 0x50,
    BindlessTextureBank = 0x15,
    BindlessSurfaceBank = 0x16,
    /// Facts about instructions for tools.
    Annotations = 0x55,
    Tcgen05OneCtaUsed = 0x51,
    Tcgen05TwoCtaUsed = 0x52,
    GenErrbarAtExit = 0x53,
    RegReconfig = 0x54,
    /// No public name is known; present on the stubs of unified functions.
    UftStub = 0x58,
    ReservedSmemUsed = 0x41,
    MercuryIsaVersion = 0x5f,
}

/// An annotation: the instruction stores or loads a spilled value.
pub(super) const SPILL: u32 = 1;

/// The records of one section.
#[derive(Default)]
pub(super) struct Records(Vec<u8>);

impl Records {
    /// A record without a value.
    pub(super) fn flag(&mut self, attribute: Attribute) {
        self.0.extend([1, attribute as u8, 0, 0]);
    }

    /// A record with an 8-bit value.
    pub(super) fn byte(&mut self, attribute: Attribute, value: u8) {
        self.0.extend([2, attribute as u8, value, 0]);
    }

    /// A record with a 16-bit value.
    pub(super) fn half(&mut self, attribute: Attribute, value: u16) {
        self.0.extend([3, attribute as u8]);
        self.0.extend(value.to_le_bytes());
    }

    /// A record with 32-bit words.
    pub(super) fn words(&mut self, attribute: Attribute, words: &[u32]) {
        self.0.extend([4, attribute as u8]);
        self.0.extend((words.len() as u16 * 4).to_le_bytes());
        for word in words {
            self.0.extend(word.to_le_bytes());
        }
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

/// Driver ABI that the cubins are written for: CUDA 13.0.
pub(super) const API_VERSION: u16 = 0x82;

/// The records of `.nv.compat`, which state on which other hardware the code may run. The last record is about
/// finalizers, which need sections that this file does not have.
pub(super) fn compat(sm: ptx_isa::Sm) -> Vec<u8> {
    let accelerator = u8::from(sm.feature == ptx_isa::Feature::Arch);
    let mut out = vec![2, 9, accelerator, 0, 2, 2, 1, 0, 2, 5, 5, 0, 3, 7, 1, 1, 2, 3, 0, 0, 2, 6, 1, 0];
    out.extend([4, 11, 8, 0]);
    out.extend([0; 8]);
    out
}
