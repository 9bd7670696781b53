//! Lowers every row of the PTX instruction table.

use super::float::rounding;
use super::integer::{lut, sign_of, takes_high, wraps};
use super::row::Slot::{In, Is, Magnitude, Minus};
use super::row::{A, AB, ABC, LARGER, MINUS_ZERO, SMALLER};
use super::{Lowering, Result, Statement};
use crate::input::{Operand, RegId};
use crate::ori::ir::Src;
use crate::ori::op::{DotMode, HalfFunc, HalfRead, HalfZeros, MufuFunc, Op, Round, ShfType};
use ptx_isa::{FormId as F, Mod, ScalarType, TypeKind};

/// The sign bit of a float.
const SIGN: Src = Src::imm(0x8000_0000);

impl<'a> Lowering<'a> {
    /// Lowers one statement that does not end its block.
    pub(super) fn instruction(&mut self, instr: &Statement<'a>) -> Result<()> {
        if self.puts_predicates_into_vectors(instr) {
            return self.unsupported(instr, "a predicate in a vector");
        }
        let ty = || instr.ty(0).unwrap_or(ScalarType::B32);
        let integer = || matches!(ty().kind(), TypeKind::Signed | TypeKind::Unsigned | TypeKind::Bits);
        let narrow = || integer() && ty().bits() <= 32;
        let wide = || ty() == ScalarType::F64;
        let sign = || sign_of(ty().is_signed());
        let (round, ftz, sat) = (|| rounding(instr), || instr.has(Mod::Ftz), || instr.has(Mod::Sat));
        // Halves have only one rounding.
        let nearest = || instr.ignore(&[Mod::Rn]);
        let dot = |mode| {
            let signed = |i| instr.ty(i).is_some_and(ScalarType::is_signed);
            Op::Idp { mode, a_signed: signed(0), b_signed: signed(1) }
        };
        match instr.form() {
            F::AddInt | F::SubInt => self.add_integer(instr),
            F::MulInt | F::MadInt => self.multiply(instr),
            F::Mul24 | F::Mad24 => self.multiply_24(instr),
            F::Sad => self.sum_of_differences(instr),
            F::DivInt | F::RemInt => self.divide_integer(instr),
            F::AbsInt if narrow() => self.one(instr, Op::Iabs, A),
            F::AbsInt | F::NegInt => self.negate_integer(instr),
            F::MinInt if narrow() && !instr.has(Mod::Relu) => {
                self.one(instr, Op::Imnmx { sign: sign() }, SMALLER)
            }
            F::MaxInt if narrow() && !instr.has(Mod::Relu) => {
                self.one(instr, Op::Imnmx { sign: sign() }, LARGER)
            }
            F::MinInt | F::MaxInt => self.minimum_integer(instr),
            F::Popc if narrow() => self.one(instr, Op::Popc, A),
            F::Brev if narrow() => self.one(instr, Op::Brev, A),
            F::Bfind if narrow() => {
                self.one(instr, Op::Flo { sign: sign(), shift: instr.has(Mod::Shiftamt) }, A)
            }
            F::Popc | F::Clz | F::Bfind | F::Brev => self.count_bits(instr),
            F::Fns => self.nth_bit(instr),
            F::Bfe => self.extract_bits(instr),
            F::Bfi => self.insert_bits(instr),
            F::Szext => self.one(instr, Op::Sgxt { sign: sign(), wrap: wraps(instr) }, AB),
            F::Bmsk => self.one(instr, Op::Bmsk { wrap: wraps(instr) }, AB),
            F::Dp4a => self.one(instr, dot(DotMode::A4), ABC),
            F::Dp2a => {
                self.one(instr, dot(if takes_high(instr) { DotMode::A2Hi } else { DotMode::A2Lo }), ABC)
            }
            F::AddCc | F::Addc | F::SubCc | F::Subc | F::MadCc | F::Madc => self.extended_precision(instr),

            F::AddF32 => self.one(instr, Op::Fadd { round: round(), ftz: ftz(), sat: sat() }, AB),
            F::SubF32 => {
                self.one(instr, Op::Fadd { round: round(), ftz: ftz(), sat: sat() }, &[In(1), Minus(2)])
            }
            F::MulF32 => self.one(instr, Op::Fmul { round: round(), ftz: ftz(), sat: sat() }, AB),
            F::FmaF32 | F::MadF32 => {
                self.one(instr, Op::Ffma { round: round(), ftz: ftz(), sat: sat() }, ABC)
            }
            F::AddF64 => self.one(instr, Op::Dadd { round: round() }, AB),
            F::SubF64 => self.one(instr, Op::Dadd { round: round() }, &[In(1), Minus(2)]),
            F::MulF64 => self.one(instr, Op::Dmul { round: round() }, AB),
            F::FmaF64 | F::MadF64 => self.one(instr, Op::Dfma { round: round() }, ABC),
            F::DivFull => self.divide_approximately(instr, true),
            F::DivF32 if instr.has(Mod::Approx) => self.divide_approximately(instr, false),
            F::DivF32 => self.divide_float(instr),
            F::RcpF32 | F::SqrtF32 if !instr.has(Mod::Approx) => self.round_float(instr),
            F::DivF64 | F::RcpF64 | F::SqrtF64 => self.divide_double(instr),
            F::AbsFloat if wide() => {
                self.one(instr, Op::Dadd { round: Round::Rn }, &[MINUS_ZERO, Magnitude(1)])
            }
            F::NegFloat if wide() => self.one(instr, Op::Dadd { round: Round::Rn }, &[MINUS_ZERO, Minus(1)]),
            F::AbsFloat => {
                let op = Op::Fadd { round: Round::Rn, ftz: ftz(), sat: false };
                self.one(instr, op, &[MINUS_ZERO, Magnitude(1)])
            }
            F::NegFloat => {
                let op = Op::Fadd { round: Round::Rn, ftz: ftz(), sat: false };
                self.one(instr, op, &[MINUS_ZERO, Minus(1)])
            }
            F::MinF32 | F::MaxF32 => self.single_minimum(instr),
            F::MinF64 | F::MaxF64 => self.double_minimum(instr),
            F::RcpApproxF64 | F::RsqrtF64 => self.double_approximate(instr),
            F::RcpF32 if ftz() => self.one(instr, Op::Mufu { func: MufuFunc::Rcp }, A),
            F::SqrtF32 if ftz() => self.one(instr, Op::Mufu { func: MufuFunc::Sqrt }, A),
            F::RsqrtF32 if ftz() => self.one(instr, Op::Mufu { func: MufuFunc::Rsq }, A),
            F::Ex2 if ftz() => self.one(instr, Op::Mufu { func: MufuFunc::Ex2 }, A),
            F::Lg2 if ftz() => self.one(instr, Op::Mufu { func: MufuFunc::Lg2 }, A),
            F::Tanh => self.one(instr, Op::Mufu { func: MufuFunc::Tanh }, A),
            F::RcpF32 | F::SqrtF32 | F::RsqrtF32 | F::Sin | F::Cos | F::Lg2 | F::Ex2 => {
                self.approximate(instr)
            }
            F::Testp => self.test_property(instr),
            F::Copysign if wide() => self.copy_sign(instr),
            F::Copysign => self.one(instr, Op::Lop3 { lut: lut::SELECT }, &[In(2), Is(SIGN), In(1)]),

            F::AddHalf => {
                nearest();
                let bf16 = self.half_sum_type(instr)?;
                self.one(
                    instr,
                    Op::Hadd2 { bf16, ftz: ftz(), sat: sat(), f32: false, half: HalfRead::Own },
                    AB,
                )
            }
            F::SubHalf => {
                nearest();
                let bf16 = self.half_sum_type(instr)?;
                self.one(
                    instr,
                    Op::Hadd2 { bf16, ftz: ftz(), sat: sat(), f32: false, half: HalfRead::Own },
                    &[In(1), Minus(2)],
                )
            }
            F::MulHalf => {
                nearest();
                let bf16 = self.half_sum_type(instr)?;
                self.one(instr, Op::Hmul2 { bf16, ftz: ftz(), sat: sat() }, AB)
            }
            F::FmaHalf => {
                nearest();
                let (bf16, relu) = (self.half_type(instr)?, instr.has(Mod::Relu));
                let zeros = match (ftz(), instr.has(Mod::Oob)) {
                    (true, _) => HalfZeros::Ftz,
                    (false, true) => HalfZeros::Oob,
                    (false, false) => HalfZeros::Zero,
                };
                self.one(instr, Op::Hfma2 { bf16, zeros, sat: sat(), relu }, ABC)
            }
            F::AbsHalf => self.sign_of_half(instr, lut::A & lut::B, 0x7fff_7fff),
            F::NegHalf => self.sign_of_half(instr, lut::A ^ lut::B, 0x8000_8000),
            F::MinHalf | F::MaxHalf => self.half_minimum(instr),
            F::Ex2Half => self.approximate_half(instr, HalfFunc::Ex2),
            F::TanhHalf => self.approximate_half(instr, HalfFunc::Tanh),

            F::SetpInt | F::SetpFloat | F::SetpHalf => self.set_predicate(instr),
            F::SetInt | F::SetFloat | F::SetHalf | F::SetHalfResult => self.set_register(instr),
            F::Selp => self.select_by_predicate(instr),
            F::Slct => self.select_by_sign(instr),

            F::And | F::Or | F::Xor => self.logic(instr),
            F::Not | F::Cnot => self.complement(instr),
            F::Lop3 => self.logic_three(instr),
            F::Shf => {
                let right = instr.any_of(&[Mod::L, Mod::R]) == Some(Mod::R);
                let op = Op::Shf { right, wrap: wraps(instr), hi: !right, ty: ShfType::U32 };
                self.one(instr, op, &[In(1), In(3), In(2)])
            }
            F::Shl | F::Shr => self.shift(instr),

            F::Mov => self.mov(instr),
            F::Prmt => self.permute(instr),
            F::Ld | F::Ldu => self.load(instr),
            F::St => self.store(instr),
            F::Cvta => self.cvta(instr),
            F::Isspacep => self.isspacep(instr),
            F::Cvt => self.convert(instr),
            F::Prefetch | F::Prefetchu => self.prefetch(instr),
            F::Applypriority => self.apply_priority(instr),
            F::Pmevent => self.count_event(instr),
            F::Shfl => self.shuffle(instr),
            F::ShflSync => self.branch_around(|this| this.shuffle(instr)),

            F::Call => self.call(instr),
            F::Bra | F::BrxIdx | F::Ret | F::Exit => self.malformed("a terminator inside a block"),

            F::Bar | F::Barrier => self.branch_around(|this| this.barrier(instr)),
            F::BarWarpSync => self.branch_around(|this| this.warp_barrier(instr)),
            F::Membar | F::Fence => self.fence(instr),
            F::Atom | F::Red => self.atomic(instr),
            F::Vote => self.vote(instr),
            F::VoteSync => self.branch_around(|this| this.vote(instr)),
            F::MatchSync => self.branch_around(|this| this.matching(instr)),
            F::Activemask => self.active_mask(instr),
            F::Redux => self.branch_around(|this| this.reduce(instr)),
            F::Elect => self.branch_around(|this| this.elect(instr)),

            F::AddF32x2 | F::SubF32x2 | F::MulF32x2 | F::FmaF32x2 => self.compute_pair_of_floats(instr),
            F::AddMixed | F::SubMixed | F::FmaMixed => self.compute_mixed(instr),
            F::CvtPair => self.convert_pair(instr),
            F::CvtTf32 => self.convert_to_tf32(instr),
            F::CvtToNarrow => self.convert_to_narrow(instr),
            F::CvtFromNarrow => self.convert_from_narrow(instr),
            F::CvtToNarrow4 => self.convert_to_four(instr),
            F::CvtToScale => self.convert_to_scale(instr),
            F::CvtFromScale => self.convert_from_scale(instr),
            F::CvtToScale4 => self.unsupported(instr, "four scale factors"),
            F::CvtPack | F::CvtPackInto => self.convert_and_pack(instr),
            F::ApplypriorityBulk | F::ApplypriorityBulkTensor => {
                self.unsupported(instr, "asynchronous changes of priority")
            }
            F::Spcompress | F::Spdecompress => self.unsupported(instr, "sparse vectors"),
            F::Discard => self.discard(instr),
            F::CreatepolicyFractional => self.create_policy(instr),
            F::CreatepolicyCvt => {
                // The bits are the same, and only this cache has policies.
                instr.ignore(&[Mod::L2]);
                let policy = self.source(instr, 1, ScalarType::U64)?;
                self.result(instr, policy)
            }
            F::CreatepolicyRange => self.create_range_policy(instr),
            F::Mapa => self.address_in_block(instr),
            F::Getctarank => self.block_of_address(instr),
            F::MovVector => self.mov_vector(instr),
            F::AtomVector | F::RedVector => self.update_vector(instr),
            F::FenceProxy | F::FenceProxySpace => self.fence_async(instr),
            F::FenceSyncRestrict | F::FenceMbarrierInit | F::FenceProxyAsyncGeneric => {
                self.fence_restricted(instr)
            }
            F::FenceProxyTensormap => self.branch_around(|this| this.fence_maps(instr)),
            F::MembarProxy => self.fence_aliases(instr),
            F::FenceProxyAlias | F::FenceProxyFabric => self.unsupported(instr, "fences between proxies"),
            F::BarrierCluster => self.branch_around(|this| this.cluster_barrier(instr)),
            F::Clmad => self.unsupported(instr, "products without carries"),
            F::SetPacked => self.unsupported(instr, "comparison of packed integers"),
            F::MbarrierCheckLayout => self.unsupported(instr, "barrier objects"),
            F::MultimemCpAsyncBulk
            | F::MultimemCpReduceAsyncBulk
            | F::MultimemStAsync
            | F::MultimemRedAsync
            | F::FabricSubmit
            | F::FabricWait
            | F::FabricTryGet
            | F::FabricTryPut
            | F::FabricTryRed
            | F::FabricTryPullred
            | F::FabricTryAtom
            | F::FabricTryGetTensor
            | F::FabricTryPutTensor
            | F::FabricTryRedTensor => self.unsupported(instr, "operations on the memory of several GPUs"),
            F::Griddepcontrol => self.depend(instr),
            F::Setmaxnreg => self.change_registers(instr),
            F::Alloca => self.take_stack(instr),
            F::Stacksave => self.save_stack(instr),
            F::Stackrestore => self.restore_stack(instr),
            F::ClusterlaunchcontrolTryCancel => self.try_cancel(instr),
            F::ClusterlaunchcontrolIsCanceled
            | F::ClusterlaunchcontrolGetFirstCtaid
            | F::ClusterlaunchcontrolGetFirstCtaidDim => self.query_cancel(instr),

            F::CpAsync => self.copy_asynchronously(instr),
            F::CpAsyncCommitGroup => self.one(instr, Op::Ldgdepbar, &[]),
            F::CpAsyncWaitGroup => self.wait_for_copies(instr),
            F::CpAsyncWaitAll => self.wait_for_all_copies(instr),
            F::CpAsyncMbarrierArrive => self.branch_around(|this| this.arrive_behind_copies(instr)),
            F::CpAsyncBulkLoad
            | F::CpAsyncBulkCluster
            | F::CpAsyncBulkStore
            | F::CpAsyncBulkPrefetch
            | F::CpReduceAsyncBulkCluster
            | F::CpReduceAsyncBulkStore => self.copy_bulk(instr),
            F::CpAsyncBulkCommitGroup => self.end_bulk_group(instr),
            F::CpAsyncBulkWaitGroup => self.wait_for_bulk(instr),
            F::CpAsyncBulkTensorLoad
            | F::CpAsyncBulkTensorStore
            | F::CpReduceAsyncBulkTensor
            | F::CpAsyncBulkPrefetchTensor => self.copy_tensor(instr),
            F::MbarrierInit => self.branch_around(|this| this.start_object(instr)),
            F::MbarrierInval => self.branch_around(|this| this.end_object(instr)),
            F::MbarrierExpectTx | F::MbarrierCompleteTx => self.count_bytes(instr),
            F::MbarrierArrive | F::MbarrierArriveDrop => self.branch_around(|this| this.arrive(instr)),
            F::MbarrierTestWait | F::MbarrierTryWait => self.branch_around(|this| this.ask_object(instr)),
            F::MbarrierPendingCount => self.pending_count(instr),
            F::StAsync | F::RedAsync => self.store_asynchronously(instr),
            F::StAsyncRelease | F::RedAsyncRelease => self.store_released(instr),
            F::StBulk => self.clear_block(instr),
            F::MultimemLdReduce => self.branch_around(|this| this.load_of_devices(instr)),
            // Multimem stores and reductions are ordinary instructions; the memory system replicates them.
            F::MultimemSt => {
                // No sum is computed.
                instr.ignore(&[Mod::AccF32, Mod::AccF16]);
                self.store(instr)
            }
            F::MultimemRed if self.has_vector(instr) => self.update_vector(instr),
            F::MultimemRed => self.atomic(instr),
            F::TensormapReplace => self.branch_around(|this| this.replace_in_map(instr)),
            F::TensormapCpFenceproxy => self.branch_around(|this| this.copy_map(instr)),
            F::Ldmatrix => self.branch_around(|this| this.load_matrices(instr)),
            F::Stmatrix => self.branch_around(|this| this.store_matrices(instr)),
            F::Movmatrix => self.branch_around(|this| this.transpose_matrix(instr)),
            F::MmaF16
            | F::MmaBf16
            | F::MmaTf32
            | F::MmaF64
            | F::MmaInt8
            | F::MmaInt4
            | F::MmaBits
            | F::MmaFp8
            | F::MmaKind => self.branch_around(|this| this.multiply_matrices(instr)),
            F::MmaSpF16
            | F::MmaSpBf16
            | F::MmaSpTf32
            | F::MmaSpInt8
            | F::MmaSpInt4
            | F::MmaSpFp8
            | F::MmaSpKind => self.branch_around(|this| this.multiply_sparse(instr)),
            F::MmaBlockScale | F::MmaSpBlockScale => self.branch_around(|this| this.multiply_scaled(instr)),
            F::WmmaLoad | F::WmmaLoadC => self.branch_around(|this| this.load_fragment(instr)),
            F::WmmaStore => self.branch_around(|this| this.store_fragment(instr)),
            F::WmmaMmaF16 | F::WmmaMma | F::WmmaMmaInt4 | F::WmmaMmaBits => {
                self.branch_around(|this| this.multiply_fragments(instr))
            }
            F::LdmatrixBytes | F::LdmatrixUnpack => self.branch_around(|this| this.load_byte_matrices(instr)),
            F::StmatrixBytes => self.branch_around(|this| this.store_byte_matrices(instr)),
            F::MmaF16M8 => self.branch_around(|this| this.multiply_quads(instr)),
            F::Tex | F::Tld4 => self.branch_around(|this| this.read_texture(instr)),
            F::Txq | F::Suq => self.branch_around(|this| this.query_texture(instr)),
            F::Suld => self.branch_around(|this| this.load_surface(instr)),
            F::Sust => self.branch_around(|this| this.store_surface(instr, false)),
            F::SustFormatted => self.branch_around(|this| this.store_surface(instr, true)),
            F::Sured => self.branch_around(|this| this.reduce_surface(instr)),
            F::Istypep => self.test_handle(instr),
            F::Vadd | F::Vsub | F::Vabsdiff | F::Vmin | F::Vmax | F::Vshl | F::Vshr | F::Vset => {
                self.compute_part(instr)
            }
            F::Vmad => self.multiply_parts(instr),
            F::Vadd2
            | F::Vsub2
            | F::Vavrg2
            | F::Vabsdiff2
            | F::Vmin2
            | F::Vmax2
            | F::Vset2
            | F::Vadd4
            | F::Vsub4
            | F::Vavrg4
            | F::Vabsdiff4
            | F::Vmin4
            | F::Vmax4
            | F::Vset4 => self.compute_lanes(instr),

            F::MmaBf16M8 | F::WmmaMmaInt4Wide => self.unsupported(instr, "matrices"),
            F::WgmmaMma | F::WgmmaMmaSp | F::WgmmaMmaBits => {
                self.branch_around(|this| this.multiply_group(instr))
            }
            F::WgmmaFence => self.fence_products(instr),
            F::WgmmaCommitGroup => self.branch_around(|this| this.end_product_group(instr)),
            F::WgmmaWaitGroup => self.branch_around(|this| this.wait_for_products(instr)),
            F::Tcgen05Alloc => self.branch_around(|this| this.take_columns(instr)),
            F::Tcgen05Dealloc => self.branch_around(|this| this.give_columns(instr)),
            F::Tcgen05RelinquishAllocPermit => self.branch_around(|this| this.take_no_more_columns(instr)),
            F::Tcgen05Ld => self.branch_around(|this| this.load_tensor(instr)),
            F::Tcgen05St => self.branch_around(|this| this.store_tensor(instr)),
            F::Tcgen05Wait => self.branch_around(|this| this.wait_for_tensor(instr)),
            F::Tcgen05Cp => self.copy_into_tensor(instr),
            F::Tcgen05Shift => self.shift_tensor(instr),
            F::Tcgen05Mma | F::Tcgen05MmaWs => self.multiply_tensor(instr),
            F::Tcgen05MmaBlockScale => self.multiply_tensor_scaled(instr),
            F::Tcgen05Commit => self.commit_tensor(instr),
            // A thread's operations are in order, and the barrier between the threads orders them for other threads.
            F::Tcgen05Fence => self.hint(instr),
            F::Tcgen05LdRed => self.branch_around(|this| this.load_tensor_reduced(instr)),
            F::Tcgen05LdSpcompress => self.unsupported(instr, "compressing loads"),

            F::Trap => self.one(instr, Op::Bpt { trap: true }, &[]),
            F::Brkpt => self.one(instr, Op::Bpt { trap: false }, &[]),
            F::Nanosleep => self.one(instr, Op::Nanosleep { object: false }, &[In(0)]),
        }
    }

    /// An instruction that has no effect on results: it generates no code.
    fn hint(&mut self, instr: &Statement<'a>) -> Result<()> {
        instr.take_all();
        Ok(())
    }

    /// `griddepcontrol`.
    fn depend(&mut self, instr: &Statement<'a>) -> Result<()> {
        let Some(op) = instr.take(&[(Mod::Wait, Op::Acqbulk), (Mod::LaunchDependents, Op::Preexit)]) else {
            return self.malformed("`griddepcontrol` without a modifier");
        };
        if !self.encodes(&op) {
            return self.unsupported(instr, "dependent grids on this target");
        }
        self.branch_around(|this| {
            this.effect(op, &[]);
            Ok(())
        })
    }

    /// ptxas accepts a predicate among other elements of a vector as a 32-bit register.
    fn puts_predicates_into_vectors(&self, instr: &Statement<'_>) -> bool {
        let is_predicate = |reg: RegId| matches!(self.register_type(reg), Ok(ScalarType::Pred));
        instr.peek_operands().iter().any(|operand| match operand {
            Operand::Vector(elements) => elements.iter().any(|element| match *element {
                Operand::Reg(reg) | Operand::NotPred(reg) => is_predicate(reg),
                _ => false,
            }),
            _ => false,
        })
    }
}
