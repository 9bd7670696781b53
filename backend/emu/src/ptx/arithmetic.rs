//! Executes one instruction of a warp. Integers, logic and selection are here, the rest is in the sibling modules.

use super::decode::{extend, ones};
use super::{Block, Step, WARP, each};
use crate::float::F32;
use crate::launch::FaultKind;
use ptx_backend::input::{Instr, Operand};
use ptx_isa::{FormId, Mod, Opcode, ScalarType, TypeKind};
use std::cmp::Ordering;

/// The value that stands for a cache policy.
const POLICY: u64 = 0x10f0_0000_0000_0000;

/// The type of an opcode at a position.
pub(super) fn ty(opcode: &Opcode, position: usize) -> Step<ScalarType> {
    opcode.ty(position).ok_or_else(|| FaultKind::Malformed("a type is missing".into()))
}

pub(super) fn unsupported<T>(instr: &Instr) -> Step<T> {
    let opcode = &instr.opcode;
    let mods: Vec<&str> = opcode.mods().map(|m| m.text()).collect();
    let types: Vec<&str> = opcode.types().map(|t| t.text()).collect();
    let name = opcode.form.mnemonic();
    Err(FaultKind::Unsupported(format!("{name}.{}.{}", mods.join("."), types.join("."))))
}

pub(super) fn operand(instr: &Instr, position: usize) -> Step<&Operand> {
    instr.operands.get(position).ok_or_else(|| FaultKind::Malformed("an operand is missing".into()))
}

const fn wide(ty: ScalarType) -> ScalarType {
    match ty {
        ScalarType::U16 => ScalarType::U32,
        ScalarType::S16 => ScalarType::S32,
        ScalarType::U32 => ScalarType::U64,
        _ => ScalarType::S64,
    }
}

impl<'a> Block<'a> {
    /// Executes the instruction at a position for the lanes there.
    pub(super) fn step(&mut self, w: usize, pc: u32, mask: u32) -> Step<()> {
        let Some(instr) = self.program.instr(pc) else {
            return Err(FaultKind::Malformed("control runs out of the program".into()));
        };
        let mut active = mask;
        if let Some(guard) = instr.guard {
            let register = guard.reg.0 as usize;
            self.is_written(w, register, mask)?;
            let values = &self.warps[w].registers[register * WARP..][..WARP];
            active =
                each(mask).filter(|&lane| (values[lane] != 0) != guard.negated).fold(0, |m, l| m | 1 << l);
        }
        for lane in each(mask) {
            self.warps[w].pc[lane] = pc + 1;
        }
        if active == 0 {
            return Ok(());
        }
        self.execute(w, pc, active, instr)
    }

    fn execute(&mut self, w: usize, pc: u32, mask: u32, instr: &'a Instr) -> Step<()> {
        use FormId as F;
        let op = &instr.opcode;
        match op.form {
            F::AddInt
            | F::SubInt
            | F::DivInt
            | F::RemInt
            | F::MinInt
            | F::MaxInt
            | F::And
            | F::Or
            | F::Xor => {
                let t = ty(op, 0)?;
                self.map2(w, mask, instr, t, [t, t], |a, b| binary(instr, t, a, b))
            }
            F::MulInt => {
                let t = ty(op, 0)?;
                let d = if op.has(Mod::Wide) { wide(t) } else { t };
                self.map2(w, mask, instr, d, [t, t], |a, b| Ok(product(op, t, a, b)))
            }
            F::MadInt => {
                let t = ty(op, 0)?;
                let d = if op.has(Mod::Wide) { wide(t) } else { t };
                self.map3(w, mask, instr, d, [t, t, d], |a, b, c| {
                    let p = product(op, t, a, b);
                    if op.has(Mod::Sat) {
                        return Ok((p as i64 + c as i64).clamp(i32::MIN.into(), i32::MAX.into()) as u64);
                    }
                    Ok(p.wrapping_add(c))
                })
            }
            F::Mul24 | F::Mad24 => {
                let t = ty(op, 0)?;
                let product = |a: u64, b: u64| {
                    let cut = |x: u64| {
                        let x = (x & 0xff_ffff) as i64;
                        if t.is_signed() { x << 40 >> 40 } else { x }
                    };
                    let p = cut(a) * cut(b);
                    extend(if op.has(Mod::Hi) { p >> 16 } else { p } as u64, t)
                };
                if op.form == F::Mul24 {
                    return self.map2(w, mask, instr, t, [t, t], |a, b| Ok(product(a, b)));
                }
                self.map3(w, mask, instr, t, [t; 3], |a, b, c| {
                    let sum = (product(a, b) as i64).wrapping_add(c as i64);
                    Ok(if op.has(Mod::Sat) { sum.clamp(i32::MIN.into(), i32::MAX.into()) } else { sum }
                        as u64)
                })
            }
            F::Sad => {
                let t = ty(op, 0)?;
                self.map3(w, mask, instr, t, [t; 3], |a, b, c| {
                    let difference = if less(t, a, b) { b.wrapping_sub(a) } else { a.wrapping_sub(b) };
                    Ok(c.wrapping_add(difference))
                })
            }
            F::AbsInt | F::NegInt | F::Not | F::Cnot | F::Brev => {
                let t = ty(op, 0)?;
                self.map1(w, mask, instr, t, t, |a| {
                    Ok(match op.form {
                        F::AbsInt => (a as i64).wrapping_abs() as u64,
                        F::NegInt => (a as i64).wrapping_neg() as u64,
                        F::Not if t == ScalarType::Pred => a ^ 1,
                        F::Not => !a,
                        F::Cnot => u64::from(a == 0),
                        _ => a.reverse_bits() >> (64 - t.bits()),
                    })
                })
            }
            F::Popc | F::Clz => {
                let t = ty(op, 0)?;
                self.map1(w, mask, instr, ScalarType::U32, t, |a| {
                    let zeros = a.leading_zeros() - (64 - t.bits());
                    Ok(if op.form == F::Popc { a.count_ones() } else { zeros }.into())
                })
            }
            F::Bfind => {
                let t = ty(op, 0)?;
                self.map1(w, mask, instr, ScalarType::U32, t, |a| {
                    let a = if (a as i64) < 0 && t.is_signed() { !a } else { a } & ones(t.bits());
                    if a == 0 {
                        return Ok(u32::MAX.into());
                    }
                    let position = 63 - a.leading_zeros();
                    Ok(if op.has(Mod::Shiftamt) { t.bits() - 1 - position } else { position }.into())
                })
            }
            F::Bfe => {
                let t = ty(op, 0)?;
                let u = ScalarType::U32;
                self.map3(w, mask, instr, t, [t, u, u], |a, b, c| {
                    Ok(extract(t, a, b as u32 & 255, c as u32 & 255))
                })
            }
            F::Bfi => {
                let t = ty(op, 0)?;
                let u = ScalarType::U32;
                self.map4(w, mask, instr, t, [t, t, u, u], |a, b, c, d| {
                    let (position, length) = (c & 255, d & 255);
                    if position >= u64::from(t.bits()) {
                        return Ok(b);
                    }
                    let field = ones(length.min(64) as u32) << position;
                    Ok(b & !field | a << position & field)
                })
            }
            F::Szext => {
                let t = ty(op, 0)?;
                self.map2(w, mask, instr, t, [t, ScalarType::U32], |a, b| {
                    let length = if op.has(Mod::Wrap) { b & 31 } else { b.min(32) };
                    Ok(if length == 0 { 0 } else { extract(t, a, 0, length as u32) })
                })
            }
            F::Bmsk => {
                let u = ScalarType::U32;
                self.map2(w, mask, instr, u, [u, u], |a, b| {
                    let (a, b) = if op.has(Mod::Wrap) { (a & 31, b & 31) } else { (a.min(32), b.min(32)) };
                    Ok(ones(b as u32) << a)
                })
            }
            F::Dp4a | F::Dp2a => {
                let (ta, tb) = (ty(op, 0)?, ty(op, 1)?);
                let (sa, sb) = (ta.is_signed(), tb.is_signed());
                let d = if sa || sb { ScalarType::S32 } else { ScalarType::U32 };
                let b32 = ScalarType::B32;
                let (is_four, high) = (op.form == F::Dp4a, op.has(Mod::Hi));
                self.map3(w, mask, instr, d, [b32, b32, d], |a, b, c| {
                    let part = |x: u64, at: u32, bits: u32, signed: bool| {
                        let x = (x >> at & ones(bits)) as i64;
                        if signed { x << (64 - bits) >> (64 - bits) } else { x }
                    };
                    let sum: i64 = if is_four {
                        (0..4).map(|i| part(a, 8 * i, 8, sa) * part(b, 8 * i, 8, sb)).sum()
                    } else {
                        let from = if high { 16 } else { 0 };
                        (0..2).map(|i| part(a, 16 * i, 16, sa) * part(b, from + 8 * i, 8, sb)).sum()
                    };
                    Ok(c.wrapping_add(sum as u64))
                })
            }
            F::AddCc | F::Addc | F::SubCc | F::Subc | F::MadCc | F::Madc => self.extended(w, mask, instr),
            F::Shl | F::Shr => {
                let t = ty(op, 0)?;
                self.map2(w, mask, instr, t, [t, ScalarType::U32], |a, b| {
                    let b = b.min(64) as u32;
                    Ok(match op.form {
                        F::Shl if b >= t.bits() => 0,
                        F::Shl => a << b,
                        _ if t.is_signed() => (a as i64 >> b.min(63)) as u64,
                        _ if b >= t.bits() => 0,
                        _ => a >> b,
                    })
                })
            }
            F::Shf => {
                let u = ScalarType::B32;
                self.map3(w, mask, instr, u, [u; 3], |a, b, c| {
                    let n = if op.has(Mod::Wrap) { c & 31 } else { c.min(32) };
                    let both = b << 32 | a;
                    Ok(if op.has(Mod::L) { ((both as u128) << n >> 32) as u64 } else { both >> n })
                })
            }
            F::Prmt => {
                let u = ScalarType::B32;
                self.map3(w, mask, instr, u, [u; 3], |a, b, c| permute(instr, a, b, c))
            }
            F::Lop3 => self.logic3(w, mask, instr),
            F::Selp => {
                let t = ty(op, 0)?;
                self.map3(w, mask, instr, t, [t, t, ScalarType::Pred], |a, b, c| {
                    Ok(if c != 0 { a } else { b })
                })
            }
            F::Slct => {
                let (t, s) = (ty(op, 0)?, ty(op, 1)?);
                self.map3(w, mask, instr, t, [t, t, s], |a, b, c| {
                    let c = if op.has(Mod::Ftz) { F32.flush(c) } else { c };
                    let first = match s {
                        ScalarType::S32 => c as i64 >= 0,
                        _ => F32.compare(c, 0).is_some_and(|order| order != Ordering::Less),
                    };
                    Ok(if first { a } else { b })
                })
            }
            F::SetpInt | F::SetpFloat | F::SetpHalf => self.set_predicate(w, mask, instr),
            F::SetInt | F::SetFloat | F::SetHalf | F::SetHalfResult => self.set(w, mask, instr),
            F::Mov => self.mov(w, mask, instr),
            F::MovVector => self.mov_vector(w, mask, instr),
            F::Bra => {
                let target = self.program.label(operand(instr, 0)?)?;
                each(mask).for_each(|lane| self.warps[w].pc[lane] = target);
                Ok(())
            }
            F::BrxIdx => {
                let targets = self.program.targets(operand(instr, 1)?)?;
                let index = self.gather(w, mask, operand(instr, 0)?, ScalarType::U32)?;
                for lane in each(mask) {
                    let target = targets.get(index[lane] as usize);
                    let outside = || FaultKind::Malformed("an index outside the list of labels".into());
                    self.warps[w].pc[lane] = *target.ok_or_else(outside)?;
                }
                Ok(())
            }
            F::Ret => self.ret(w, mask),
            F::Exit => self.exit(w, mask),
            F::Call => self.call(w, pc, mask, instr),
            F::Vadd
            | F::Vsub
            | F::Vabsdiff
            | F::Vmin
            | F::Vmax
            | F::Vshl
            | F::Vshr
            | F::Vmad
            | F::Vset
            | F::Vadd2
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
            | F::Vset4 => self.video(w, pc, mask, instr),
            F::Tex | F::Tld4 | F::Txq | F::Suq | F::Suld | F::Sust | F::SustFormatted | F::Sured => {
                self.texture(w, mask, instr)
            }
            F::Istypep => self.test_handle(w, mask, instr),
            F::Alloca | F::Stacksave | F::Stackrestore => self.stack(w, mask, instr),
            F::Trap => Err(FaultKind::Trap),
            F::Membar | F::Fence => {
                self.races.publish();
                Ok(())
            }
            F::Brkpt | F::Nanosleep | F::Prefetch | F::Prefetchu | F::Pmevent => Ok(()),
            F::Applypriority | F::Discard => Ok(()),
            // The contents of a policy are not documented and affect only the timing.
            F::CreatepolicyRange | F::CreatepolicyFractional | F::CreatepolicyCvt => {
                each(mask).try_for_each(|lane| self.put(w, lane, operand(instr, 0)?, ScalarType::B64, POLICY))
            }
            F::Bar | F::Barrier => self.barrier(w, pc, mask, instr),
            F::BarWarpSync | F::ShflSync | F::VoteSync | F::MatchSync | F::Redux | F::Elect => {
                self.meet(w, pc, mask, instr)
            }
            // Without a mask, an operation is one of the threads that execute it together.
            F::Shfl | F::Vote => self.together(w, mask, instr, &[pc; WARP]),
            F::MmaF16
            | F::MmaF16M8
            | F::MmaFp8
            | F::MmaBf16
            | F::MmaTf32
            | F::MmaF64
            | F::MmaInt8
            | F::MmaInt4
            | F::MmaBits
            | F::MmaKind
            | F::MmaBlockScale
            | F::MmaSpF16
            | F::MmaSpBf16
            | F::MmaSpTf32
            | F::MmaSpInt8
            | F::MmaSpInt4
            | F::MmaSpFp8
            | F::MmaSpKind
            | F::MmaSpBlockScale => self.meet(w, pc, mask, instr),
            F::Ldmatrix
            | F::LdmatrixBytes
            | F::LdmatrixUnpack
            | F::Stmatrix
            | F::StmatrixBytes
            | F::Movmatrix => self.meet(w, pc, mask, instr),
            F::WmmaLoad | F::WmmaLoadC | F::WmmaStore => self.meet(w, pc, mask, instr),
            F::WmmaMmaF16 | F::WmmaMma | F::WmmaMmaInt4 | F::WmmaMmaBits => self.meet(w, pc, mask, instr),
            F::CpAsync | F::CpAsyncCommitGroup | F::CpAsyncWaitGroup | F::CpAsyncWaitAll => {
                self.asynchronous(w, mask, instr)
            }
            F::MbarrierInit
            | F::MbarrierInval
            | F::MbarrierExpectTx
            | F::MbarrierCompleteTx
            | F::MbarrierArrive
            | F::MbarrierArriveDrop
            | F::MbarrierTestWait
            | F::MbarrierTryWait
            | F::MbarrierPendingCount
            | F::CpAsyncMbarrierArrive => self.mbarrier(w, mask, instr),
            F::WgmmaFence
            | F::WgmmaCommitGroup
            | F::WgmmaWaitGroup
            | F::WgmmaMma
            | F::WgmmaMmaSp
            | F::WgmmaMmaBits => self.meet(w, pc, mask, instr),
            F::Tcgen05Alloc
            | F::Tcgen05Dealloc
            | F::Tcgen05RelinquishAllocPermit
            | F::Tcgen05Ld
            | F::Tcgen05LdRed
            | F::Tcgen05St
            | F::Tcgen05Wait => self.meet(w, pc, mask, instr),
            F::Tcgen05Cp
            | F::Tcgen05Mma
            | F::Tcgen05MmaWs
            | F::Tcgen05MmaBlockScale
            | F::Tcgen05Commit
            | F::Tcgen05Fence => self.tensor_alone(w, mask, instr),
            F::Setmaxnreg => self.meet(w, pc, mask, instr),
            F::BarrierCluster | F::Mapa | F::Getctarank => self.cluster(w, mask, instr),
            F::StAsync
            | F::RedAsync
            | F::CpAsyncBulkLoad
            | F::CpAsyncBulkCluster
            | F::CpAsyncBulkStore
            | F::CpAsyncBulkPrefetch
            | F::CpAsyncBulkCommitGroup
            | F::CpAsyncBulkWaitGroup
            | F::CpAsyncBulkTensorLoad
            | F::CpAsyncBulkTensorStore
            | F::CpAsyncBulkPrefetchTensor
            | F::CpReduceAsyncBulkCluster
            | F::CpReduceAsyncBulkStore
            | F::CpReduceAsyncBulkTensor => self.bulk(w, mask, instr),
            F::ClusterlaunchcontrolTryCancel
            | F::ClusterlaunchcontrolIsCanceled
            | F::ClusterlaunchcontrolGetFirstCtaid
            | F::ClusterlaunchcontrolGetFirstCtaidDim => self.cancel(w, mask, instr),
            F::TensormapReplace => self.replace_in_map(w, mask, instr),
            F::TensormapCpFenceproxy => self.meet(w, pc, mask, instr),
            F::FenceProxy
            | F::FenceProxySpace
            | F::FenceProxyTensormap
            | F::FenceProxyAsyncGeneric
            | F::FenceSyncRestrict
            | F::FenceMbarrierInit
            | F::Griddepcontrol => {
                self.races.cut();
                Ok(())
            }
            F::Fns => {
                let (u, s) = (ScalarType::U32, ScalarType::S32);
                self.map3(w, mask, instr, u, [u, u, s], |mask, base, offset| {
                    Ok(nth_set(mask as u32, base as u32, offset as i64))
                })
            }
            F::Activemask => {
                for lane in each(mask) {
                    self.put(w, lane, operand(instr, 0)?, ScalarType::B32, mask.into())?;
                }
                Ok(())
            }
            F::Ld
            | F::Ldu
            | F::St
            | F::Atom
            | F::AtomVector
            | F::Red
            | F::RedVector
            | F::StAsyncRelease
            | F::RedAsyncRelease
            | F::Cvta
            | F::Isspacep
            | F::MultimemLdReduce
            | F::MultimemSt
            | F::MultimemRed => self.memory(w, pc, mask, instr),
            F::Cvt
            | F::CvtPair
            | F::CvtTf32
            | F::CvtToNarrow
            | F::CvtToNarrow4
            | F::CvtFromNarrow
            | F::CvtToScale
            | F::CvtFromScale
            | F::CvtPack
            | F::CvtPackInto => self.convert(w, mask, instr),
            F::AddMixed | F::SubMixed | F::FmaMixed => self.mixed(w, mask, instr),
            _ => self.float(w, mask, instr),
        }
    }

    pub(super) fn map1(
        &mut self,
        w: usize,
        mask: u32,
        instr: &Instr,
        d: ScalarType,
        a: ScalarType,
        f: impl Fn(u64) -> Step<u64>,
    ) -> Step<()> {
        self.map4(
            w,
            mask,
            instr,
            d,
            [a, ScalarType::Pred, ScalarType::Pred, ScalarType::Pred],
            |a, _, _, _| f(a),
        )
    }

    pub(super) fn map2(
        &mut self,
        w: usize,
        mask: u32,
        instr: &Instr,
        d: ScalarType,
        t: [ScalarType; 2],
        f: impl Fn(u64, u64) -> Step<u64>,
    ) -> Step<()> {
        self.map4(w, mask, instr, d, [t[0], t[1], ScalarType::Pred, ScalarType::Pred], |a, b, _, _| f(a, b))
    }

    pub(super) fn map3(
        &mut self,
        w: usize,
        mask: u32,
        instr: &Instr,
        d: ScalarType,
        t: [ScalarType; 3],
        f: impl Fn(u64, u64, u64) -> Step<u64>,
    ) -> Step<()> {
        self.map4(w, mask, instr, d, [t[0], t[1], t[2], ScalarType::Pred], |a, b, c, _| f(a, b, c))
    }

    /// Computes a result from up to four sources. Each source is extended as its type requires.
    pub(super) fn map4(
        &mut self,
        w: usize,
        mask: u32,
        instr: &Instr,
        d: ScalarType,
        t: [ScalarType; 4],
        f: impl Fn(u64, u64, u64, u64) -> Step<u64>,
    ) -> Step<()> {
        let destination = operand(instr, 0)?;
        let mut sources = [super::decode::Value::Constant(0); 4];
        for (i, source) in instr.operands.iter().skip(1).take(4).enumerate() {
            sources[i] = self.value(source, t[i])?;
        }
        for lane in each(mask) {
            let mut v = [0; 4];
            for i in 0..instr.operands.len().saturating_sub(1).min(4) {
                v[i] = extend(self.get(w, lane, sources[i])?, t[i]);
            }
            let result = f(v[0], v[1], v[2], v[3])?;
            self.put(w, lane, destination, d, result)?;
        }
        Ok(())
    }

    /// Sums and differences with a carry between instructions. A difference sets the carry if it does not borrow, so
    /// sums and differences can be mixed.
    fn extended(&mut self, w: usize, mask: u32, instr: &Instr) -> Step<()> {
        use FormId as F;
        let op = &instr.opcode;
        let t = ty(op, 0)?;
        let bits = t.bits();
        let a = self.gather(w, mask, operand(instr, 1)?, t)?;
        let b = self.gather(w, mask, operand(instr, 2)?, t)?;
        let multiplies = matches!(op.form, F::MadCc | F::Madc);
        let c = if multiplies { self.gather(w, mask, operand(instr, 3)?, t)? } else { [0; WARP] };
        for lane in each(mask) {
            let takes = match (matches!(op.form, F::Addc | F::Subc | F::Madc), self.warps[w].carry[lane]) {
                (true, None) if self.launch.strict => return Err(FaultKind::Unwritten("the carry".into())),
                (takes, carry) => u128::from(takes && carry == Some(true)),
            };
            let (x, y) = match multiplies {
                true => (product(op, t, extend(a[lane], t), extend(b[lane], t)) & ones(bits), c[lane]),
                false => (a[lane], b[lane]),
            };
            let (result, carry) = if matches!(op.form, F::SubCc | F::Subc) {
                let borrow = u128::from(op.form == F::Subc) - takes;
                let taken = u128::from(y) + borrow;
                (u128::from(x).wrapping_sub(taken) as u64, u128::from(x) >= taken)
            } else {
                let sum = u128::from(x) + u128::from(y) + takes;
                (sum as u64, sum >> bits != 0)
            };
            if op.has(Mod::Cc) {
                self.warps[w].carry[lane] = Some(carry);
            }
            let result = match op.has(Mod::Sat) {
                true => {
                    let signed = |value: u64| i128::from(extend(value, t) as i64);
                    let sum = match op.form {
                        F::Subc => signed(x) - signed(y) - (1 - takes as i128),
                        _ => signed(x) + signed(y) + takes as i128,
                    };
                    sum.clamp(i128::from(i32::MIN), i128::from(i32::MAX)) as u64
                }
                false => result,
            };
            self.put(w, lane, &instr.operands[0], t, result)?;
        }
        Ok(())
    }

    fn logic3(&mut self, w: usize, mask: u32, instr: &Instr) -> Step<()> {
        let t = ScalarType::B32;
        let table = self.gather(w, mask, operand(instr, 4)?, t)?;
        let combine = instr.opcode.has(Mod::And) || instr.opcode.has(Mod::Or);
        let mut sources = [[0; WARP]; 3];
        for (i, source) in sources.iter_mut().enumerate() {
            *source = self.gather(w, mask, operand(instr, i + 1)?, t)?;
        }
        let q = if combine { self.gather(w, mask, operand(instr, 5)?, ScalarType::Pred)? } else { [0; WARP] };
        for lane in each(mask) {
            let [a, b, c] = [sources[0][lane], sources[1][lane], sources[2][lane]];
            let mut result = 0;
            for i in 0..8u64 {
                if table[lane] >> i & 1 == 1 {
                    let pick = |x: u64, bit: u64| if i >> bit & 1 == 1 { x } else { !x };
                    result |= pick(a, 2) & pick(b, 1) & pick(c, 0);
                }
            }
            result &= ones(32);
            let (d, p) = split(operand(instr, 0)?);
            self.put(w, lane, d, t, result)?;
            if let Some(p) = p {
                let q = q[lane] != 0;
                let holds = if instr.opcode.has(Mod::And) { (result != 0) & q } else { (result != 0) | q };
                self.put(w, lane, p, ScalarType::Pred, holds.into())?;
            }
        }
        Ok(())
    }

    /// Moves, and packing and unpacking of vectors. All elements are read before any is written.
    fn mov_vector(&mut self, w: usize, mask: u32, instr: &Instr) -> Step<()> {
        let t = ty(&instr.opcode, 0)?;
        let (Operand::Vector(to), Operand::Vector(from)) = (operand(instr, 0)?, operand(instr, 1)?) else {
            return self.mov(w, mask, instr);
        };
        let values = from.iter().map(|source| self.gather(w, mask, source, t)).collect::<Step<Vec<_>>>()?;
        for (d, values) in to.iter().zip(values) {
            each(mask).try_for_each(|lane| self.put(w, lane, d, t, values[lane]))?;
        }
        Ok(())
    }

    fn mov(&mut self, w: usize, mask: u32, instr: &Instr) -> Step<()> {
        let t = ty(&instr.opcode, 0)?;
        match (operand(instr, 0)?, operand(instr, 1)?) {
            (d, Operand::Vector(parts)) => {
                let bits = t.bits() / parts.len() as u32;
                let part = part_type(bits)?;
                let mut whole = [0u128; WARP];
                let is_unwritten = |operand: &Operand| match operand {
                    Operand::Reg(register) => mask & !self.warps[w].written[register.0 as usize] != 0,
                    _ => false,
                };
                // Compilers pack a value with an unwritten register, and later extract only the value.
                let nothing: Vec<bool> = parts.iter().map(is_unwritten).collect();
                for (i, operand) in parts.iter().enumerate() {
                    let is_nothing = nothing[i] && nothing.contains(&false);
                    let values =
                        if is_nothing { [0; WARP] } else { self.gather_wide(w, mask, operand, part)? };
                    each(mask).for_each(|lane| whole[lane] |= values[lane] << (i as u32 * bits));
                }
                each(mask).try_for_each(|lane| self.put_wide(w, lane, d, t, whole[lane]))
            }
            (Operand::Vector(parts), source) => {
                let bits = t.bits() / parts.len() as u32;
                let part = part_type(bits)?;
                let values = self.gather_wide(w, mask, source, t)?;
                for (i, d) in parts.iter().enumerate() {
                    for lane in each(mask) {
                        self.put_wide(w, lane, d, part, values[lane] >> (i as u32 * bits))?;
                    }
                }
                Ok(())
            }
            (d, source) => {
                let values = self.gather_wide(w, mask, source, t)?;
                each(mask).try_for_each(|lane| self.put_wide(w, lane, d, t, values[lane]))
            }
        }
    }
}

/// The position of the n-th set bit, counted upwards or downwards from a base. All ones if there is none.
fn nth_set(mask: u32, base: u32, offset: i64) -> u64 {
    const NONE: u64 = u32::MAX as u64;
    if base >= u32::BITS {
        return NONE;
    }
    if offset == 0 {
        return if mask >> base & 1 == 1 { base.into() } else { NONE };
    }
    let base = i64::from(base);
    let place = |i: i64| if offset > 0 { base + i } else { base - i };
    let mut places = (0..32).map(place).filter(|p| (0..32).contains(p) && mask >> p & 1 == 1);
    places.nth(offset.unsigned_abs() as usize - 1).map_or(NONE, |p| p as u64)
}

fn part_type(bits: u32) -> Step<ScalarType> {
    match bits {
        8 => Ok(ScalarType::B8),
        16 => Ok(ScalarType::B16),
        32 => Ok(ScalarType::B32),
        64 => Ok(ScalarType::B64),
        128 => Ok(ScalarType::B128),
        _ => Err(FaultKind::Unsupported(format!("vectors of {bits} bits each"))),
    }
}

/// The two halves of `d|p`.
pub(super) fn split(operand: &Operand) -> (&Operand, Option<&Operand>) {
    match operand {
        Operand::Pair(pair) => (&pair.0, Some(&pair.1)),
        other => (other, None),
    }
}

fn less(t: ScalarType, a: u64, b: u64) -> bool {
    if t.is_signed() { (a as i64) < b as i64 } else { a < b }
}

fn binary(instr: &Instr, t: ScalarType, a: u64, b: u64) -> Step<u64> {
    use FormId as F;
    let op = &instr.opcode;
    if t.kind() == TypeKind::Packed {
        let half = if t == ScalarType::S16x2 { ScalarType::S16 } else { ScalarType::U16 };
        let low = binary(instr, half, extend(a, half), extend(b, half))? & 0xffff;
        let high = binary(instr, half, extend(a >> 16, half), extend(b >> 16, half))? & 0xffff;
        return Ok(high << 16 | low);
    }
    Ok(match op.form {
        F::AddInt | F::SubInt if op.has(Mod::Sat) => {
            let b = if op.form == F::SubInt { -(b as i64) } else { b as i64 };
            (a as i64 + b).clamp(i32::MIN.into(), i32::MAX.into()) as u64
        }
        F::AddInt => a.wrapping_add(b),
        F::SubInt => a.wrapping_sub(b),
        F::MinInt | F::MaxInt => {
            let result = if less(t, a, b) == (op.form == F::MinInt) { a } else { b };
            if op.has(Mod::Relu) && (result as i64) < 0 { 0 } else { result }
        }
        // The manual does not specify the result.
        F::DivInt if b == 0 => u64::MAX,
        F::RemInt if b == 0 => a,
        F::DivInt if t.is_signed() => (a as i64).wrapping_div(b as i64) as u64,
        F::RemInt if t.is_signed() => (a as i64).wrapping_rem(b as i64) as u64,
        F::DivInt => a / b,
        F::RemInt => a % b,
        F::And => a & b,
        F::Or => a | b,
        F::Xor => a ^ b,
        _ => return unsupported(instr),
    })
}

/// The part of a product that the instruction selects, extended as its type requires.
fn product(op: &Opcode, t: ScalarType, a: u64, b: u64) -> u64 {
    let whole = if t.is_signed() {
        (i128::from(a as i64) * i128::from(b as i64)) as u128
    } else {
        u128::from(a) * u128::from(b)
    };
    if op.has(Mod::Hi) { extend((whole >> t.bits()) as u64, t) } else { whole as u64 }
}

fn extract(t: ScalarType, a: u64, position: u32, length: u32) -> u64 {
    let bits = t.bits();
    let a = a & ones(bits);
    let sign = if !t.is_signed() || length == 0 { 0 } else { a >> (position + length - 1).min(bits - 1) & 1 };
    let field = if position >= bits { 0 } else { a >> position & ones(length) };
    // Bits past the end of the value or of the field are copies of the sign.
    let known = length.min(bits.saturating_sub(position));
    if sign == 1 { field & ones(known) | (ones(bits) & !ones(known)) } else { field }
}

fn permute(instr: &Instr, a: u64, b: u64, c: u64) -> Step<u64> {
    let bytes = b << 32 | a;
    let byte = |i: u64| bytes >> (8 * (i & 7)) & 255;
    let c4 = c & 3;
    let picks: [u64; 4] = match instr.opcode.mods().next() {
        None => {
            let mut result = 0;
            for i in 0..4 {
                let selector = c >> (4 * i) & 15;
                let value = byte(selector & 7);
                let value = if selector & 8 == 0 {
                    value
                } else if value & 128 != 0 {
                    255
                } else {
                    0
                };
                result |= value << (8 * i);
            }
            return Ok(result);
        }
        Some(Mod::F4e) => [c4, c4 + 1, c4 + 2, c4 + 3],
        Some(Mod::B4e) => [c4, c4 + 7, c4 + 6, c4 + 5],
        Some(Mod::Rc8) => [c4; 4],
        Some(Mod::Ecl) => [0, 1, 2, 3].map(|i: u64| i.max(c4)),
        Some(Mod::Ecr) => [0, 1, 2, 3].map(|i: u64| i.min(c4)),
        Some(Mod::Rc16) => [2 * (c & 1), 2 * (c & 1) + 1, 2 * (c & 1), 2 * (c & 1) + 1],
        _ => return unsupported(instr),
    };
    Ok(picks.iter().enumerate().fold(0, |result, (i, &pick)| result | byte(pick) << (8 * i)))
}
