//! The rows, grouped as in the manual. `FormId` has one variant per row, in the same order.

mod asynchronous;
mod compare;
mod control;
mod extended;
mod fabric;
mod float;
mod half;
mod integer;
mod logic;
mod matrix;
mod memory;
mod misc;
mod mnemonics;
mod prelude;
mod recent;
mod sync;
mod tcgen05;
mod texture;
mod video;
mod wgmma;

use crate::model::Form;
pub(crate) use mnemonics::{FREQUENT, MNEMONICS, PAGES};

macro_rules! form_ids {
    ($($id:ident $mnemonic:literal;)*) => {
        /// A row of the table. Lowering matches it exhaustively, so each new row causes a compile error there.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[repr(u16)]
        pub enum FormId { $($id),* }

        impl FormId {
            pub const ALL: &'static [FormId] = &[$(FormId::$id),*];

            pub const fn mnemonic(self) -> &'static str {
                match self { $(FormId::$id => $mnemonic),* }
            }
        }
    };
}

form_ids! {
    // Integer arithmetic.
    AddInt "add"; SubInt "sub"; MulInt "mul"; MadInt "mad"; Mul24 "mul24"; Mad24 "mad24"; Sad "sad";
    DivInt "div"; RemInt "rem"; AbsInt "abs"; NegInt "neg"; MinInt "min"; MaxInt "max";
    Popc "popc"; Clz "clz"; Bfind "bfind"; Fns "fns"; Brev "brev"; Bfe "bfe"; Bfi "bfi"; Szext "szext";
    Bmsk "bmsk"; Dp4a "dp4a"; Dp2a "dp2a";
    // Extended precision.
    AddCc "add"; Addc "addc"; SubCc "sub"; Subc "subc"; MadCc "mad"; Madc "madc";
    // Floating point.
    AddF32 "add"; AddF64 "add"; SubF32 "sub"; SubF64 "sub"; MulF32 "mul"; MulF64 "mul"; FmaF32 "fma"; FmaF64 "fma";
    MadF32 "mad"; MadF64 "mad"; DivFull "div"; DivF32 "div"; DivF64 "div"; AbsFloat "abs"; NegFloat "neg"; MinF32 "min"; MinF64 "min";
    MaxF32 "max"; MaxF64 "max"; RcpF32 "rcp"; RcpF64 "rcp"; RcpApproxF64 "rcp"; SqrtF32 "sqrt"; SqrtF64 "sqrt";
    RsqrtF32 "rsqrt"; RsqrtF64 "rsqrt"; Sin "sin"; Cos "cos"; Lg2 "lg2"; Ex2 "ex2"; Tanh "tanh"; Testp "testp";
    Copysign "copysign";
    AddF32x2 "add"; SubF32x2 "sub"; MulF32x2 "mul"; FmaF32x2 "fma"; AddMixed "add"; SubMixed "sub"; FmaMixed "fma";
    // Half precision.
    AddHalf "add"; SubHalf "sub"; MulHalf "mul"; FmaHalf "fma"; AbsHalf "abs"; NegHalf "neg"; MinHalf "min";
    MaxHalf "max"; Ex2Half "ex2"; TanhHalf "tanh";
    // Comparison and selection.
    SetpInt "setp"; SetpFloat "setp"; SetpHalf "setp"; SetInt "set"; SetFloat "set"; Selp "selp"; Slct "slct";
    SetHalf "set"; SetHalfResult "set";
    // Logic and shift.
    And "and"; Or "or"; Xor "xor"; Not "not"; Cnot "cnot"; Lop3 "lop3"; Shf "shf"; Shl "shl"; Shr "shr";
    // Data movement and conversion.
    Mov "mov"; Prmt "prmt"; Ld "ld"; Ldu "ldu"; St "st"; Cvta "cvta"; Isspacep "isspacep"; Cvt "cvt";
    Prefetch "prefetch"; Shfl "shfl"; ShflSync "shfl";
    CvtPair "cvt"; CvtTf32 "cvt"; CvtToNarrow "cvt"; CvtToNarrow4 "cvt"; CvtFromNarrow "cvt"; CvtToScale "cvt";
    CvtFromScale "cvt"; CvtPack "cvt"; CvtPackInto "cvt"; Prefetchu "prefetchu"; Applypriority "applypriority"; Discard "discard";
    CreatepolicyRange "createpolicy"; CreatepolicyFractional "createpolicy"; CreatepolicyCvt "createpolicy";
    Mapa "mapa"; Getctarank "getctarank"; MovVector "mov"; CvtToScale4 "cvt";
    // Control flow.
    Bra "bra"; BrxIdx "brx"; Call "call"; Ret "ret"; Exit "exit";
    // Synchronization, atomics and warp operations.
    Bar "bar"; Barrier "barrier"; BarWarpSync "bar"; Membar "membar"; Fence "fence"; Atom "atom"; Red "red";
    Vote "vote"; VoteSync "vote"; MatchSync "match"; Activemask "activemask"; Redux "redux"; Elect "elect";
    AtomVector "atom"; RedVector "red"; MembarProxy "membar"; FenceProxy "fence"; FenceProxySpace "fence";
    FenceProxyTensormap "fence"; FenceProxyAsyncGeneric "fence"; FenceSyncRestrict "fence";
    FenceMbarrierInit "fence"; BarrierCluster "barrier";
    // Miscellaneous.
    Trap "trap"; Brkpt "brkpt"; Nanosleep "nanosleep"; Pmevent "pmevent";
    Griddepcontrol "griddepcontrol"; Setmaxnreg "setmaxnreg"; Alloca "alloca"; Stacksave "stacksave";
    Stackrestore "stackrestore"; ClusterlaunchcontrolTryCancel "clusterlaunchcontrol";
    ClusterlaunchcontrolIsCanceled "clusterlaunchcontrol"; ClusterlaunchcontrolGetFirstCtaid "clusterlaunchcontrol";
    ClusterlaunchcontrolGetFirstCtaidDim "clusterlaunchcontrol";
    // Asynchronous copies, barrier objects, tensor maps and multimem.
    CpAsync "cp"; CpAsyncCommitGroup "cp"; CpAsyncWaitGroup "cp"; CpAsyncWaitAll "cp"; CpAsyncMbarrierArrive "cp";
    CpAsyncBulkLoad "cp"; CpAsyncBulkCluster "cp"; CpAsyncBulkStore "cp"; CpAsyncBulkPrefetch "cp";
    CpAsyncBulkCommitGroup "cp"; CpAsyncBulkWaitGroup "cp"; CpReduceAsyncBulkCluster "cp";
    CpReduceAsyncBulkStore "cp"; CpAsyncBulkTensorLoad "cp"; CpAsyncBulkTensorStore "cp";
    CpReduceAsyncBulkTensor "cp"; CpAsyncBulkPrefetchTensor "cp"; MbarrierInit "mbarrier";
    MbarrierInval "mbarrier"; MbarrierExpectTx "mbarrier"; MbarrierCompleteTx "mbarrier";
    MbarrierArrive "mbarrier"; MbarrierArriveDrop "mbarrier"; MbarrierTestWait "mbarrier";
    MbarrierTryWait "mbarrier"; MbarrierPendingCount "mbarrier"; StAsync "st"; StAsyncRelease "st"; StBulk "st";
    RedAsync "red"; RedAsyncRelease "red"; MultimemLdReduce "multimem"; MultimemSt "multimem";
    MultimemRed "multimem"; TensormapReplace "tensormap"; TensormapCpFenceproxy "tensormap";
    // Matrices held by a warp.
    Ldmatrix "ldmatrix"; LdmatrixBytes "ldmatrix"; LdmatrixUnpack "ldmatrix"; Stmatrix "stmatrix";
    StmatrixBytes "stmatrix"; Movmatrix "movmatrix"; MmaF16M8 "mma"; MmaF16 "mma"; MmaBf16 "mma"; MmaTf32 "mma";
    MmaF64 "mma"; MmaInt8 "mma"; MmaInt4 "mma"; MmaBits "mma"; MmaFp8 "mma";
    MmaBf16M8 "mma"; MmaKind "mma"; MmaBlockScale "mma"; MmaSpF16 "mma"; MmaSpBf16 "mma"; MmaSpTf32 "mma";
    MmaSpInt8 "mma"; MmaSpInt4 "mma"; MmaSpFp8 "mma"; MmaSpKind "mma"; MmaSpBlockScale "mma"; WmmaLoad "wmma";
    WmmaLoadC "wmma"; WmmaStore "wmma"; WmmaMmaF16 "wmma"; WmmaMma "wmma"; WmmaMmaInt4 "wmma"; WmmaMmaBits "wmma";
    WmmaMmaInt4Wide "wmma";
    // Textures and surfaces.
    Tex "tex"; Tld4 "tld4"; Txq "txq"; Istypep "istypep"; Suld "suld"; Sust "sust"; SustFormatted "sust";
    Sured "sured"; Suq "suq";
    // Video.
    Vadd "vadd"; Vsub "vsub"; Vabsdiff "vabsdiff"; Vmin "vmin"; Vmax "vmax"; Vshl "vshl"; Vshr "vshr"; Vmad "vmad";
    Vset "vset"; Vadd2 "vadd2"; Vsub2 "vsub2"; Vavrg2 "vavrg2"; Vabsdiff2 "vabsdiff2"; Vmin2 "vmin2";
    Vmax2 "vmax2"; Vset2 "vset2"; Vadd4 "vadd4"; Vsub4 "vsub4"; Vavrg4 "vavrg4"; Vabsdiff4 "vabsdiff4";
    Vmin4 "vmin4"; Vmax4 "vmax4"; Vset4 "vset4";
    // Warp groups.
    WgmmaFence "wgmma"; WgmmaCommitGroup "wgmma"; WgmmaWaitGroup "wgmma"; WgmmaMma "wgmma"; WgmmaMmaSp "wgmma";
    WgmmaMmaBits "wgmma";
    // Tensor memory.
    Tcgen05Alloc "tcgen05"; Tcgen05Dealloc "tcgen05"; Tcgen05RelinquishAllocPermit "tcgen05"; Tcgen05Ld "tcgen05";
    Tcgen05LdRed "tcgen05"; Tcgen05St "tcgen05"; Tcgen05Wait "tcgen05"; Tcgen05Cp "tcgen05";
    Tcgen05Shift "tcgen05"; Tcgen05Mma "tcgen05"; Tcgen05MmaBlockScale "tcgen05"; Tcgen05MmaWs "tcgen05";
    Tcgen05Commit "tcgen05"; Tcgen05Fence "tcgen05";
    // Additions after PTX ISA 9.0.
    Clmad "clmad"; SetPacked "set"; MbarrierCheckLayout "mbarrier"; MultimemCpAsyncBulk "multimem";
    MultimemCpReduceAsyncBulk "multimem"; MultimemStAsync "multimem"; MultimemRedAsync "multimem";
    FenceProxyAlias "fence"; FenceProxyFabric "fence"; ApplypriorityBulk "applypriority";
    ApplypriorityBulkTensor "applypriority"; Spcompress "spcompress"; Spdecompress "spdecompress";
    Tcgen05LdSpcompress "tcgen05";
    // The fabric between GPUs.
    FabricSubmit "fabric"; FabricWait "fabric"; FabricTryGet "fabric"; FabricTryPut "fabric"; FabricTryRed "fabric";
    FabricTryPullred "fabric"; FabricTryAtom "fabric"; FabricTryGetTensor "fabric"; FabricTryPutTensor "fabric";
    FabricTryRedTensor "fabric";
}

/// The rows of each group, in the order of [`FormId`].
const GROUPS: &[&[Form]] = &[
    integer::ROWS,
    extended::ROWS,
    float::ROWS,
    half::ROWS,
    compare::ROWS,
    logic::ROWS,
    memory::ROWS,
    control::ROWS,
    sync::ROWS,
    misc::ROWS,
    asynchronous::ROWS,
    matrix::ROWS,
    texture::ROWS,
    video::ROWS,
    wgmma::ROWS,
    tcgen05::ROWS,
    recent::ROWS,
    fabric::ROWS,
];

static TABLE: [Form; FormId::ALL.len()] = {
    let mut table = [Form::new(FormId::AddInt); FormId::ALL.len()];
    let (mut group, mut at) = (0, 0);
    while group < GROUPS.len() {
        let mut row = 0;
        while row < GROUPS[group].len() {
            let form = GROUPS[group][row];
            assert!(form.id as usize == at, "rows are in the order of FormId");
            table[at] = form;
            at += 1;
            row += 1;
        }
        group += 1;
    }
    assert!(at == table.len(), "every FormId has a row");
    table
};

/// The row of a form.
pub fn form(id: FormId) -> &'static Form {
    #[cfg(test)]
    if let Some(form) = crate::tests::mutations::replacement(id) {
        return form;
    }
    &TABLE[id as usize]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Presence, Then};
    use crate::opcode::{MAX_MODS, MAX_TYPES, Mod};
    use crate::{Gate, ScalarType, TypeSet, gates, resolve};

    /// The shortest name of a form: the first alternative of required groups and the first type of each set,
    /// adjusted until the rules hold.
    fn example(form: &'static Form) -> (Vec<Mod>, Vec<ScalarType>) {
        let mut mods: Vec<Mod> = form.groups.iter().filter(|g| g.required).map(|g| g.names[0]).collect();
        let sets = &form.types[..form.required_types as usize];
        let mut types: Vec<ScalarType> = sets.iter().map(|set| set.iter().next().unwrap()).collect();
        for _ in 0..8 {
            let opcode = crate::Opcode::new(form.id, &mods, &types).unwrap();
            let Some(rule) = form.rules.iter().find(|rule| !rule.allows(&opcode)) else { break };
            match rule.then {
                Then::Types(at, set) => types[at as usize] = set.iter().next().unwrap(),
                Then::Needs(needed) => {
                    let full = |m: &Mod| form.groups.iter().any(|g| g.contains(*m) && g.contains(needed[0]));
                    match mods.iter().position(full) {
                        Some(i) => mods[i] = needed[0],
                        None => mods.push(needed[0]),
                    }
                }
                Then::SameType(a, b) => types[b as usize] = types[a as usize],
                Then::Excludes(excluded) => {
                    for m in &mut mods {
                        if excluded.contains(m) {
                            let group = form.groups.iter().find(|g| g.contains(*m)).unwrap();
                            *m = *group.names.iter().find(|n| !excluded.contains(n)).unwrap();
                        }
                    }
                }
                Then::Gate(_) | Then::Operand(..) => unreachable!(),
            }
        }
        (mods, types)
    }

    #[test]
    fn every_form_has_a_name_that_resolves_to_it() {
        for &id in FormId::ALL {
            let (mods, types) = example(form(id));
            let names: Vec<&str> =
                mods.iter().map(|m| m.text()).chain(types.iter().map(|t| t.text())).collect();
            let opcode = resolve(id.mnemonic(), &names).unwrap_or_else(|e| panic!("{id:?} {names:?}: {e:?}"));
            assert_eq!(opcode.form, id, "{names:?}");
            assert!(!gates(&opcode).targets.is_empty(), "{id:?}: no target has {names:?}");
        }
    }

    #[test]
    fn rows_fit_the_limits_and_name_their_parts_once() {
        for row in &TABLE {
            assert!(row.groups.len() <= MAX_MODS && row.types.len() <= MAX_TYPES, "{:?}", row.id);
            for group in row.groups {
                assert!(!group.names.is_empty(), "{:?}: an empty group", row.id);
                for (i, name) in group.names.iter().enumerate() {
                    assert!(!group.names[..i].contains(name), "{:?}: {name:?} twice in one group", row.id);
                }
            }
            for (i, operand) in row.operands.iter().enumerate() {
                assert!(
                    row.operands[..i].iter().all(|o| o.name != operand.name),
                    "{:?}: {}",
                    row.id,
                    operand.name
                );
            }
        }
    }

    #[test]
    fn rules_and_operands_speak_of_parts_that_the_row_has() {
        for row in &TABLE {
            let known = |mods: &[Mod]| mods.iter().any(|&m| row.groups.iter().any(|g| g.contains(m)));
            for rule in row.rules {
                assert!(rule.when.any.is_empty() || known(rule.when.any), "{:?}: {rule:?}", row.id);
                assert!(rule.when.and.is_empty() || known(rule.when.and), "{:?}: {rule:?}", row.id);
                if let Then::Needs(mods) = rule.then {
                    assert!(known(mods), "{:?}: {rule:?}", row.id);
                }
                if let Then::Operand(name, _) = rule.then {
                    assert!(row.operands.iter().any(|o| o.name == name), "{:?}: {rule:?}", row.id);
                }
                assert!(rule.when.first == TypeSet::ALL || !row.types.is_empty(), "{:?}: {rule:?}", row.id);
                assert!(rule.when.second == TypeSet::ALL || row.types.len() > 1, "{:?}: {rule:?}", row.id);
            }
            for operand in row.operands {
                if let Presence::With(mods) | Presence::Without(mods) | Presence::OptionalWith(mods) =
                    operand.presence
                {
                    assert!(known(mods), "{:?}: {}", row.id, operand.name);
                }
            }
        }
    }

    #[test]
    fn no_gate_is_older_than_the_language() {
        let gate_of = |then| if let Then::Gate(gate) = then { gate } else { Gate::BASE };
        for row in &TABLE {
            for gate in row.rules.iter().map(|r| gate_of(r.then)).chain([row.gate]) {
                assert!(gate.ptx >= Gate::BASE.ptx && !gate.targets.is_empty(), "{:?}", row.id);
            }
        }
    }

    #[test]
    fn mnemonics_are_sorted_and_cover_the_rows() {
        assert!(MNEMONICS.is_sorted());
        assert!(FREQUENT.iter().all(|frequent| MNEMONICS.binary_search(frequent).is_ok()));
        for id in FormId::ALL {
            assert!(MNEMONICS.binary_search(&id.mnemonic()).is_ok(), "{id:?}");
        }
        for mnemonic in MNEMONICS {
            assert!(!crate::forms_of(mnemonic).is_empty(), "{mnemonic} has no row");
        }
    }
}
