//! What each machine instruction does, in a few words.

mod parts;

pub use parts::{modifier, operand};

/// What an instruction with this mnemonic does; `None` for unknown mnemonics. The words are those of a list: they begin
/// with a lower-case verb and have no full stop.
pub fn about(mnemonic: &str) -> Option<&'static str> {
    listed(mnemonic).or_else(|| listed(mnemonic.strip_prefix('U')?))
}

/// Whether an instruction of the general datapath has this mnemonic after a `U`: the uniform datapath does the same once
/// for all threads of the warp, in uniform registers.
pub fn is_uniform_twin(mnemonic: &str) -> bool {
    listed(mnemonic).is_none() && about(mnemonic).is_some()
}

fn listed(mnemonic: &str) -> Option<&'static str> {
    let place = ABOUT.binary_search_by(|(known, _)| (*known).cmp(mnemonic)).ok()?;
    Some(ABOUT[place].1)
}

/// By mnemonic, sorted. Instructions of the uniform datapath are listed only if they do something else than the
/// instruction without the `U`.
const ABOUT: &[(&str, &str)] = &[
    ("ACQBULK", "wait until the data of the preceding grid is visible (`griddepcontrol.wait`)"),
    ("ARRIVES", "arrive at a barrier object in shared memory when earlier asynchronous copies complete"),
    ("ATOM", "update memory at a generic address atomically and return the old value"),
    ("ATOMG", "update global memory atomically and return the old value"),
    ("ATOMS", "update shared memory atomically and return the old value"),
    ("B2R", "copy a barrier, or the result of a barrier reduction, to a register"),
    ("BAR", "wait for, or arrive at, a barrier of the thread block"),
    ("BGMMA", "multiply one-bit matrices of a warp group and accumulate"),
    ("BMMA", "multiply one-bit matrices of a warp and accumulate"),
    ("BMOV", "move between a convergence barrier and a register"),
    ("BMSK", "build a mask of consecutive bits from a position and a width"),
    ("BPT", "stop at a breakpoint or trap"),
    ("BRA", "branch to an address relative to this instruction"),
    ("BREAK", "take the thread out of a convergence barrier, because it leaves the region"),
    ("BREV", "reverse the order of the bits"),
    ("BRX", "branch to an address relative to this instruction plus a register"),
    ("BRXU", "branch to an address relative to this instruction plus a uniform register"),
    ("BSSY", "set a convergence barrier: the threads of the warp meet again at its `BSYNC`"),
    ("BSYNC", "wait until all threads in the convergence barrier have arrived"),
    ("CALL", "call a function; the return address is in registers"),
    ("CCTL", "control a cache line: invalidate, write back or prefetch it"),
    ("CCTLL", "control a cache line of local memory"),
    ("CGAERRBAR", "wait until errors of earlier accesses in the cluster have been reported"),
    ("CLMAD", "multiply without carries and combine with a third operand"),
    ("CREDUX", "reduce a value over the threads of a warp; the result is in a uniform register"),
    ("CS2R", "copy a special register, such as a clock, to registers; writes 64 bits at once"),
    ("CS2UR", "copy a special register to uniform registers"),
    ("DADD", "add doubles"),
    ("DEPBAR", "wait until a scoreboard has at most a given number of outstanding operations"),
    ("DFMA", "multiply doubles and add, rounded once"),
    ("DMMA", "multiply matrices of doubles and accumulate"),
    ("DMUL", "multiply doubles"),
    ("DSETP", "compare doubles and set predicates"),
    ("ELECT", "choose one thread of those that execute it"),
    ("ENDCOLLECTIVE", "end a region that threads of a warp execute together"),
    ("ERRBAR", "wait until errors of earlier memory accesses have been reported"),
    ("EXIT", "end the thread"),
    ("F2F", "convert between floating-point formats"),
    ("F2FP", "convert two floats to a packed pair of a shorter format"),
    ("F2I", "convert a float to an integer"),
    ("F2IP", "convert floats to packed integers"),
    ("FADD", "add floats"),
    ("FADD2", "add two pairs of floats"),
    ("FCHK", "check whether a division of floats needs the slow path"),
    ("FENCE", "order accesses through different proxies, such as asynchronous copies"),
    ("FFMA", "multiply floats and add, rounded once"),
    ("FFMA2", "multiply two pairs of floats and add, rounded once"),
    ("FHADD", "add a half to a float"),
    ("FHFMA", "multiply halves and add to a float"),
    ("FLO", "find the position of the leading one bit"),
    ("FMNMX", "take the minimum or maximum of floats; the predicate says which"),
    ("FMNMX3", "take the minimum or maximum of three floats"),
    ("FMUL", "multiply floats"),
    ("FMUL2", "multiply two pairs of floats"),
    ("FRND", "round a float to an integral value"),
    ("FSEL", "select one of two floats by a predicate"),
    ("FSET", "compare floats and write a mask or 1.0 to a register"),
    ("FSETP", "compare floats and set predicates"),
    ("FSWZADD", "add floats with signs that depend on the lane"),
    ("GETLMEMBASE", "read the base address of local memory"),
    ("HADD2", "add two pairs of halves"),
    ("HFMA2", "multiply two pairs of halves and add, rounded once; with `RZ` a move of a constant"),
    ("HGMMA", "multiply matrices of halves, bf16 or tf32 of a warp group and accumulate, asynchronously"),
    ("HMMA", "multiply matrices of halves, bf16 or tf32 of a warp and accumulate"),
    ("HMNMX2", "take minima or maxima of two pairs of halves"),
    ("HMUL2", "multiply two pairs of halves"),
    ("HSET2", "compare two pairs of halves and write masks or ones to a register"),
    ("HSETP2", "compare two pairs of halves and set predicates"),
    ("I2F", "convert an integer to a float"),
    ("I2FP", "convert an integer to a float, in the floating-point pipe"),
    ("I2I", "convert between integer types, with saturation"),
    ("I2IP", "convert two integers to packed shorter ones, with saturation"),
    ("IABS", "take the absolute value of an integer"),
    ("IADD", "add two integers"),
    ("IADD3", "add three integers; predicates receive the carries"),
    ("IDP", "multiply the bytes of two words, add the products and accumulate"),
    ("IGMMA", "multiply matrices of 8-bit integers of a warp group and accumulate, asynchronously"),
    (
        "IMAD",
        "multiply integers and add; `.MOV`, `.IADD` and `.SHL` are a move, a sum and a shift in its pipe",
    ),
    ("IMMA", "multiply matrices of integers of a warp and accumulate"),
    ("IMNMX", "take the minimum or maximum of integers; the predicate says which"),
    ("ISETP", "compare integers and set predicates"),
    ("JMP", "jump to an absolute address"),
    ("JMX", "jump to an absolute address in registers"),
    ("JMXU", "jump to an absolute address in uniform registers"),
    ("KILL", "end the thread as killed"),
    ("LD", "load from a generic address"),
    ("LDC", "load from a constant bank"),
    ("LDCU", "load from a constant bank to uniform registers"),
    ("LDG", "load from global memory"),
    ("LDGDEPBAR", "close a group of asynchronous copies (`cp.async.commit_group`)"),
    ("LDGMC", "load from a multicast address and reduce over the devices (`multimem`)"),
    ("LDGSTS", "copy from global to shared memory asynchronously (`cp.async`)"),
    ("LDL", "load from local memory, such as a spilled value"),
    ("LDS", "load from shared memory"),
    ("LDSM", "load 8x8 matrices from shared memory (`ldmatrix`)"),
    ("LDTM", "load from tensor memory (`tcgen05.ld`)"),
    ("LEA", "shift left and add, as for addresses"),
    ("LEPC", "read the address of this instruction"),
    ("LOP3", "combine three operands bit by bit; the truth table is the immediate"),
    ("MATCH", "find the threads of the warp with the same value"),
    ("MEMBAR", "order memory accesses as seen by other threads"),
    ("MOV", "copy a register, a constant or an immediate"),
    ("MOV64IUR", "copy 64 bits from an immediate or uniform registers"),
    ("MOVM", "transpose an 8x8 matrix in registers (`movmatrix`)"),
    ("MUFU", "compute a function approximately: reciprocal, root, sine, logarithm, power of two"),
    ("NANOSLEEP", "suspend the thread for about a given time"),
    ("NOP", "do nothing"),
    ("OMMA", "multiply matrices of 4-bit floats with scale factors and accumulate"),
    ("P2R", "copy predicates to bits of a register"),
    ("PLOP3", "combine three predicates; the truth tables are immediates"),
    ("PMTRIG", "trigger a performance monitor event"),
    ("POPC", "count the one bits"),
    ("PREEXIT", "let dependent grids start (`griddepcontrol.launch_dependents`)"),
    ("PRMT", "select four bytes of two registers"),
    ("QGMMA", "multiply matrices of 8-bit floats of a warp group and accumulate, asynchronously"),
    ("QMMA", "multiply matrices of 8-bit and shorter floats and accumulate"),
    ("QSPC", "test the state space of a generic address"),
    ("R2P", "copy bits of a register to predicates"),
    ("R2UR", "copy a register to a uniform register"),
    ("RED", "update memory at a generic address atomically, without a result"),
    ("REDAS", "update shared memory of another block of the cluster and complete its barrier object"),
    ("REDG", "update global memory atomically, without a result"),
    ("REDUX", "reduce an integer over the threads of a warp; the result is in a uniform register"),
    ("RET", "return to the address in registers"),
    ("RPCMOV", "move to or from the return address register"),
    ("S2R", "copy a special register, such as a thread index, to a register"),
    ("S2UR", "copy a special register to a uniform register"),
    ("SEL", "select one of two operands by a predicate"),
    ("SETCTAID", "set the index of the block"),
    ("SETLMEMBASE", "set the base address of local memory"),
    ("SGXT", "extend the sign from a bit position"),
    ("SHF", "shift a pair of registers and keep one word"),
    ("SHFL", "read a register of another thread of the warp"),
    ("ST", "store to a generic address"),
    ("STAS", "store to shared memory of another block of the cluster and complete its barrier object"),
    ("STG", "store to global memory"),
    ("STL", "store to local memory, such as a spilled value"),
    ("STS", "store to shared memory"),
    ("STSM", "store 8x8 matrices to shared memory (`stmatrix`)"),
    ("STTM", "store to tensor memory (`tcgen05.st`)"),
    ("SULD", "load from a surface"),
    ("SURED", "update a surface atomically, without a result"),
    ("SUST", "store to a surface"),
    ("SYNCS", "use a barrier object in shared memory (`mbarrier`)"),
    ("TEX", "read a texture with filtering"),
    ("TLD", "read a texel without filtering"),
    ("TLD4", "gather one channel of four texels"),
    ("TMML", "compute the level of detail of a texture read"),
    ("TXD", "read a texture with given derivatives"),
    ("TXQ", "read a property of a texture"),
    ("UBLKCP", "copy a block of memory asynchronously (`cp.async.bulk`)"),
    ("UBLKPF", "prefetch a block of memory (`cp.async.bulk.prefetch`)"),
    ("UBLKRED", "add a block of memory to another one asynchronously (`cp.reduce.async.bulk`)"),
    ("UCGABAR_ARV", "arrive at the barrier of the cluster"),
    ("UCGABAR_WAIT", "wait at the barrier of the cluster"),
    ("UCLEA", "compute an address of the constant bank in uniform registers"),
    ("UGETNEXTWORKID", "ask for the next block to run (`clusterlaunchcontrol.try_cancel`)"),
    ("ULDC", "load from a constant bank to uniform registers"),
    ("UMEMSETS", "set a block of shared memory to zero"),
    ("UP2UR", "copy uniform predicates to bits of a uniform register"),
    ("UR2UP", "copy bits of a uniform register to uniform predicates"),
    ("UREDGR", "update a register of another block of the cluster"),
    ("USETMAXREG", "give registers to other warps or take them (`setmaxnreg`)"),
    ("USTGR", "store to a register of another block of the cluster"),
    ("UTCATOMSWS", "allocate or free columns of tensor memory (`tcgen05.alloc`)"),
    ("UTCBAR", "arrive at a barrier object when earlier tensor core operations complete (`tcgen05.commit`)"),
    ("UTCCP", "copy from shared memory to tensor memory (`tcgen05.cp`)"),
    ("UTCHMMA", "multiply matrices of halves, bf16 or tf32 in tensor memory (`tcgen05.mma`)"),
    ("UTCIMMA", "multiply matrices of 8-bit integers in tensor memory (`tcgen05.mma`)"),
    ("UTCOMMA", "multiply matrices of 4-bit floats with scale factors in tensor memory (`tcgen05.mma`)"),
    ("UTCQMMA", "multiply matrices of 8-bit and shorter floats in tensor memory (`tcgen05.mma`)"),
    ("UTCSHIFT", "shift rows of tensor memory (`tcgen05.shift`)"),
    ("UTMACCTL", "prefetch or invalidate a tensor map"),
    ("UTMACMDFLUSH", "close a group of bulk copies from shared memory (`cp.async.bulk.commit_group`)"),
    ("UTMALDG", "copy a box of a tensor from global to shared memory (`cp.async.bulk.tensor`)"),
    ("UTMAPF", "prefetch a box of a tensor (`cp.async.bulk.prefetch.tensor`)"),
    ("UTMAREDG", "add a box in shared memory to a tensor (`cp.reduce.async.bulk.tensor`)"),
    ("UTMASTG", "copy a box of a tensor from shared to global memory (`cp.async.bulk.tensor`)"),
    ("UVIRTCOUNT", "tell the hardware that a thread block's shared resources are in use"),
    ("VABSDIFF", "add the absolute difference of integers to a third"),
    ("VABSDIFF4", "add the absolute differences of four bytes to a third operand"),
    ("VHMNMX", "take minima or maxima of three pairs of halves"),
    ("VIADD", "add two integers, in the pipe for minima and maxima"),
    ("VIADDMNMX", "add two integers, then take the minimum or maximum with a third"),
    ("VIMNMX", "take the minimum or maximum of integers or of pairs of 16-bit integers"),
    ("VIMNMX3", "take the minimum or maximum of three integers"),
    ("VOTE", "collect a predicate of all threads of the warp"),
    ("VOTEU", "collect a predicate of all threads of the warp in uniform registers"),
    ("WARPGROUP", "wait for, arrive at or commit products of the warp group"),
    ("WARPSYNC", "wait until the threads of a mask have arrived"),
    ("YIELD", "let other warps, or other threads of the warp, run"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{form, forms};

    fn mnemonics() -> impl Iterator<Item = &'static str> {
        forms().map(|id| form(id).mnemonic)
    }

    #[test]
    fn every_instruction_is_described() {
        let mut missing: Vec<&str> = mnemonics().filter(|mnemonic| about(mnemonic).is_none()).collect();
        missing.sort_unstable();
        missing.dedup();
        assert_eq!(missing, [""; 0]);
    }

    #[test]
    fn descriptions_are_sorted_and_of_instructions() {
        assert!(ABOUT.is_sorted_by(|(one, _), (other, _)| one < other));
        let is_used = |name: &str| {
            let twin = |mnemonic: &str| mnemonic.strip_prefix('U') == Some(name);
            mnemonics().any(|mnemonic| mnemonic == name || twin(mnemonic))
        };
        let unused: Vec<&str> = ABOUT.iter().map(|(name, _)| *name).filter(|name| !is_used(name)).collect();
        assert_eq!(unused, [""; 0]);
        assert_eq!(about("UIADD3"), about("IADD3"));
        assert!(is_uniform_twin("UIADD3") && !is_uniform_twin("UBLKCP") && !is_uniform_twin("IADD3"));
    }
}
