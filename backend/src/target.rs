//! What differs between targets and is a number: the driver's words in constant bank 0 and the limits.
//!
//! Source: observation of ptxas 13.0.88 output for each target (constant bank 0 words), and the CUDA
//! Programming Guide's table of compute capabilities (limits).

use ptx_isa::Sm;

/// A generation's constants. Offsets are bytes into constant bank 0.
#[derive(PartialEq, Eq, Debug)]
pub struct Target {
    /// First and last SM number that the row holds for.
    pub sms: (u16, u16),
    /// The first kernel parameter.
    pub param_base: u16,
    /// The initial stack pointer, loaded into R1.
    pub stack_slot: u16,
    /// The 64-bit descriptor of the global window; none before sm_80.
    pub descriptor: Option<u16>,
    /// `%ntid.x`; `.y` and `.z` follow.
    pub ntid: u16,
    /// `%nctaid.x`; `.y` and `.z` follow.
    pub nctaid: u16,
    /// 64-bit generic address of the shared window; from sm_90 it is computed from special registers.
    pub shared_window: Option<u16>,
    /// 64-bit generic address of the local window.
    pub local_window: u16,
    /// Where user shared memory starts in the block's window.
    pub shared_base: u32,
    /// Shared addresses carry the rank of the block in its cluster in their top byte.
    pub clusters: bool,
    /// Relocations carry addends, and the sections for later re-finalisation of the code exist.
    pub rela: bool,
    /// The whole-warp uniform registers, URZ not counted.
    pub uniform_registers: u8,
}

/// Highest general register index + 1 that a thread may use: R255 is RZ, and the hardware takes two.
pub const MAX_REGISTERS: u32 = 255;
/// Registers that the hardware takes per thread beside those the code names.
pub const HIDDEN_REGISTERS: u32 = 2;
/// Bytes of kernel parameters before and from PTX 8.1 on sm_70.
pub const MAX_PARAM_BYTES: u32 = 32764;

const TARGETS: &[Target] = &[
    Target {
        sms: (75, 75),
        param_base: 0x160,
        stack_slot: 0x28,
        descriptor: None,
        ntid: 0x0,
        nctaid: 0xc,
        shared_window: Some(0x18),
        local_window: 0x20,
        shared_base: 0,
        clusters: false,
        rela: false,
        uniform_registers: 63,
    },
    Target {
        sms: (80, 89),
        param_base: 0x160,
        stack_slot: 0x28,
        descriptor: Some(0x118),
        ntid: 0x0,
        nctaid: 0xc,
        shared_window: Some(0x18),
        local_window: 0x20,
        shared_base: 0,
        clusters: false,
        rela: false,
        uniform_registers: 63,
    },
    Target {
        sms: (90, 90),
        param_base: 0x210,
        stack_slot: 0x28,
        descriptor: Some(0x208),
        ntid: 0x0,
        nctaid: 0xc,
        shared_window: None,
        local_window: 0x20,
        shared_base: 0x400,
        clusters: true,
        rela: true,
        uniform_registers: 63,
    },
    Target {
        sms: (100, 121),
        param_base: 0x380,
        stack_slot: 0x37c,
        descriptor: Some(0x358),
        ntid: 0x360,
        nctaid: 0x370,
        shared_window: Some(0x2f0),
        local_window: 0x2f8,
        shared_base: 0x400,
        clusters: true,
        rela: true,
        uniform_registers: 63,
    },
];

impl Target {
    /// The constants of a target; `None` for hardware that no code is generated for.
    pub fn of(sm: Sm) -> Option<&'static Target> {
        if !Sm::COMPILED.contains(&sm.number) {
            return None;
        }
        TARGETS.iter().find(|t| (t.sms.0..=t.sms.1).contains(&sm.number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_compiled_target_has_one_row() {
        for &number in &Sm::COMPILED {
            let rows = TARGETS.iter().filter(|t| (t.sms.0..=t.sms.1).contains(&number)).count();
            assert_eq!(rows, 1, "sm_{number}");
            assert!(Target::of(Sm::new(number)).is_some());
        }
        assert!(Target::of(Sm::new(70)).is_none());
    }
}
