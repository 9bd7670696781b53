//! The target for which a snippet is checked if none is given.

use ptx_isa::{Gate, PtxVersion, Sm};

use crate::statements::{heads, opcode};

/// The candidates in the order of preference. Later ones are for instructions that only they have.
const CANDIDATES: [&str; 5] = ["sm_120a", "sm_100a", "sm_90a", "sm_110a", "sm_103a"];

/// The first candidate that has the most instructions of a text.
pub(crate) fn newest(text: &str) -> &'static str {
    let gates: Vec<Gate> = heads(text).filter_map(opcode).map(|opcode| ptx_isa::gates(&opcode)).collect();
    let lacking = |name: &&str| {
        let Some(sm) = Sm::parse(name) else { return usize::MAX };
        gates.iter().filter(|gate| gate.check(PtxVersion::NEWEST, sm).is_err()).count()
    };
    CANDIDATES.into_iter().min_by_key(lacking).unwrap_or(CANDIDATES[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_follow_from_instructions() {
        assert_eq!(newest("add.u32 %0, %1, %2;"), "sm_120a");
        assert_eq!(newest("wgmma.fence.sync.aligned;"), "sm_90a");
        assert_eq!(newest("tcgen05.fence::before_thread_sync;"), "sm_100a");
    }
}
