//! Pipes. The pipe of an instruction decides its latency, and whether a scoreboard guards its result.

use crate::inst::Inst;
use crate::model::{Field, Sm};

/// The category of an instruction in the latency tables.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Class {
    /// Integer, logic, comparison, selection and moves.
    Alu,
    /// Single-precision and 32-bit multiply-add.
    Fma,
    /// Integer multiplication with a wide or high result.
    ImadWide,
    /// Packed half arithmetic.
    Half,
    /// Packed half to single: `HADD2.F32`.
    HalfToSingle,
    /// `HFMA2.MMA`, half arithmetic on the tensor pipe.
    HalfMma,
    Fp64,
    Fp64Compare,
    /// Transcendentals, conversions and bit counts.
    Xu,
    /// Reads of clocks, and the zeroing of register pairs.
    Cs2r,
    /// Reads of special registers.
    S2r,
    Vote,
    VoteUniform,
    /// Instructions of the uniform datapath.
    Uniform,
    /// `UMOV` and `ULDC`.
    UniformMove,
    /// Instructions with a uniform result that a scoreboard guards: `S2UR`, `R2UR`, `REDUX`, `LDCU`; and the predicate
    /// of `USETMAXREG`, which says whether it got registers.
    UniformLoad,
    Hmma16,
    Hmma32,
    Imma16,
    Imma32,
    Dmma,
    /// Loads and warp exchanges: they read their sources late, and a scoreboard guards their result.
    Load,
    /// Constant loads through the memory path.
    LoadConstant,
    /// Stores and reductions.
    Store,
    Atomic,
    Texture,
    /// Barriers, fences and cache control.
    Sync,
    /// Asynchronous copies and tensor operations.
    Async,
    Branch,
    /// `NOP`, `DEPBAR` and others without operands.
    Control,
}

/// Which of an instruction's two scoreboards signals an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Told {
    Written,
    Read,
}

impl Inst {
    /// The category of the pipe that executes the instruction.
    pub fn class(&self, _sm: Sm) -> Class {
        match self.form().class {
            Class::Half if self.form().mnemonic == "HADD2" && self.get(Field::High) == Some(1) => {
                Class::HalfToSingle
            }
            class => class,
        }
    }

    /// Whether a scoreboard guards the result, because the latency is not fixed.
    pub fn is_variable(&self, sm: Sm) -> bool {
        match self.class(sm) {
            Class::Fp64 | Class::Fp64Compare => !matches!(sm.0, 90 | 100),
            Class::Dmma => true,
            Class::Hmma16 | Class::Hmma32 | Class::Imma16 | Class::Imma32 => sm.0 == 75,
            // Reading the program counter has a fixed latency, and no instruction waits for a write to a convergence
            // barrier.
            Class::S2r => !matches!(self.form().mnemonic, "LEPC" | "RPCMOV") && self.has(Field::Rd),
            Class::UniformLoad => !self.is_fixed_to_uniform(sm),
            Class::Xu
            | Class::Load
            | Class::LoadConstant
            | Class::Store
            | Class::Atomic
            | Class::Texture
            | Class::Async => true,
            _ => false,
        }
    }

    /// Whether sources may be read after issue. A write to such a source must wait for a read scoreboard.
    pub fn reads_late(&self, sm: Sm) -> bool {
        // A load from tensor memory reads its address at issue, and cannot set a scoreboard for it.
        if self.is_fixed_to_uniform(sm) || self.form().mnemonic == "LDTM" {
            return false;
        }
        matches!(
            self.class(sm),
            Class::Xu
                | Class::Load
                | Class::LoadConstant
                | Class::Store
                | Class::Atomic
                | Class::Texture
                | Class::Sync
                | Class::Async
                | Class::UniformLoad
        ) || self.is_variable(sm)
    }

    /// For a fence that is not complete when it has issued: the scoreboard that signals its completion. Instructions
    /// that the fence orders wait for this scoreboard. As observed in code of ptxas 13.0.
    pub fn fences_late(&self, sm: Sm) -> Option<Told> {
        match self.form().mnemonic {
            "FENCE" => Some(Told::Written),
            // The barrier object becomes visible to other threads when it is written.
            "SYNCS" if self.form().name == "SYNCS.EXCH" => Some(Told::Written),
            "MEMBAR" if sm.0 >= 90 && self.is_local_fence() => Some(Told::Read),
            _ => None,
        }
    }

    /// Which scoreboard signals that the predicate result has been written. A generic atomic has such a predicate: it
    /// says whether the operation was done; for an address in shared memory, it was not. As observed in code of ptxas
    /// 13.0.
    pub fn predicate_told(&self, sm: Sm) -> Told {
        match self.form().mnemonic {
            "ATOM" if sm.0 >= 90 => Told::Read,
            _ => Told::Written,
        }
    }

    /// Whether this is a matrix product of a warp group, which runs asynchronously.
    pub fn is_group_product(&self) -> bool {
        matches!(self.form().mnemonic, "HGMMA" | "IGMMA" | "QGMMA" | "BGMMA")
    }

    /// Whether this is the arrival of a warp group, after which its products may read registers.
    pub fn is_group_arrival(&self) -> bool {
        self.form().name == "WARPGROUP.ARRIVE"
    }

    fn is_local_fence(&self) -> bool {
        self.text(Field::Mode) == Some(".ALL") && self.text(Field::Scope) == Some(".CTA")
    }

    /// The smallest stall count of the instruction: the cycles before the next instruction may issue, whatever that
    /// instruction is. As observed in code of ptxas 13.0 for every target.
    pub fn issue_cycles(&self, sm: Sm) -> u8 {
        match self.form().mnemonic {
            "EXIT" | "BRA" | "BSYNC" | "CALL" | "BRX" | "JMP" | "RET" | "BREAK" | "WARPSYNC" | "BPT"
            | "CCTL" => 5,
            "BAR" | "MEMBAR" if sm.0 < 80 => 5,
            "BAR" | "MEMBAR" | "CGAERRBAR" => 6,
            "YIELD" if sm.0 >= 90 => 5,
            "DEPBAR" => 4,
            "BMOV" if sm.0 >= 90 => 5,
            "NANOSLEEP" if sm.0 >= 90 => 5,
            // Until a wait instruction counts the group that this product ends.
            _ if self.is_group_product() && self.get(Field::Scoreboard) == Some(0) => 3,
            "WARPGROUP" => 2,
            // Until the new set of threads is active.
            "BMOV" if self.form().name == "BMOV.32.STATE" && self.form().shape == "b" => 2,
            // Zero means a long pause that the hardware inserts itself.
            "ERRBAR" => 0,
            _ if self.gives_registers() => 0,
            _ => 1,
        }
    }

    /// Whether the instruction releases registers of its threads for other warps. Earlier accesses to those registers
    /// must be complete, and later instructions wait for its scoreboard. As observed in code of ptxas 13.0.
    pub fn gives_registers(&self) -> bool {
        self.form().name == "USETMAXREG.DEALLOC"
    }

    /// Whether the instruction moves a general register to a uniform one with a fixed latency, as `R2UR` and `CREDUX`
    /// do from sm_90 on.
    fn is_fixed_to_uniform(&self, sm: Sm) -> bool {
        sm.0 >= 90 && matches!(self.form().mnemonic, "R2UR" | "CREDUX")
    }
}

#[cfg(test)]
mod tests {
    use crate::Sm;

    #[test]
    fn moves_of_barriers_and_sleeps_stall() {
        let stalls = |sm, text| crate::parse(Sm(sm), text, 0).expect("an instruction").issue_cycles(Sm(sm));
        assert_eq!([75, 89, 90, 120].map(|sm| stalls(sm, "BMOV.32 B5, R0")), [1, 1, 5, 5]);
        assert_eq!([80, 90, 100, 120].map(|sm| stalls(sm, "NANOSLEEP 0x64")), [1, 5, 5, 5]);
    }

    #[test]
    fn products_that_end_a_group_stall_until_waits_see_it() {
        let stalls = |text: &str| crate::parse(Sm(90), text, 0).ok().map(|inst| inst.issue_cycles(Sm(90)));
        for product in [
            "HGMMA.64x8x16.F32 R24, gdesc[UR4], R24",
            "IGMMA.64x8x32.S8.S8 R24, gdesc[UR4], R24",
            "QGMMA.64x8x32.F32.E5M2.E5M2 R24, gdesc[UR4], R24",
            "BGMMA.64x8x256.AND.POPC R24, gdesc[UR4], R24",
        ] {
            assert_eq!(stalls(product), Some(1), "{product}");
            assert_eq!(stalls(&format!("{product}, gsb0")), Some(3), "{product}");
        }
    }
}
