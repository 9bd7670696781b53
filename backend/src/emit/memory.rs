//! Loads, stores, atomics and fences.

use super::Emitter;
use super::builder::{Builder, PHASE};
use super::compute::operand;
use crate::CodegenError;
use crate::mach::{self, Effect};
use crate::ori::ir::{File, Inst, Reg, Src, SrcKind};
use crate::ori::memory::{self, Memory, Order, Scope, Space};
use crate::ori::op::{Access, AtomType, CctlOp, MembarScope, Op};
use sass::Field;

impl Emitter<'_> {
    pub(super) fn memory(&mut self, inst: &Inst) -> Result<(), CodegenError> {
        let Some(memory) = memory::memory(&inst.op) else { return self.misplaced(inst) };
        let builder = match inst.op {
            Op::Ldg { access } => {
                let mut load = self.global(inst, "LDG", access.offset)?;
                load.dst(Field::Rd, inst.dsts.first());
                self.modify(&mut load, &access);
                load
            }
            Op::Ld { access } => {
                let mut load = self.global(inst, "LD", access.offset)?;
                load.dst(Field::Rd, inst.dsts.first());
                self.modify(&mut load, &access);
                load
            }
            Op::Stg { access } => {
                let mut store = self.global(inst, "STG", access.offset)?;
                store.stored(operand(inst, 2)?);
                self.modify(&mut store, &access);
                store
            }
            Op::St { access } => {
                let mut store = self.global(inst, "ST", access.offset)?;
                store.stored(operand(inst, 2)?);
                self.modify(&mut store, &access);
                store
            }
            Op::Lds { size, offset, .. } => {
                let mut load = self.shared(inst, "LDS", offset)?;
                load.dst(Field::Rd, inst.dsts.first()).text(Field::Size, size.text());
                load
            }
            Op::Sts { size, offset, .. } => {
                let mut store = self.shared(inst, "STS", offset)?;
                store.reg(Field::Rb, File::R, operand(inst, 2)?).text(Field::Size, size.text());
                store
            }
            Op::Ldl { size, offset } => {
                let mut load = self.plain(inst, "LDL")?;
                load.address(operand(inst, 0)?, offset).text(Field::Size, size.text());
                load
            }
            Op::Stl { size, offset } => {
                let mut store = self.plain(inst, "STL")?;
                store.address(operand(inst, 0)?, offset).text(Field::Size, size.text());
                store.reg(Field::Rb, File::R, operand(inst, 1)?);
                store
            }
            Op::Ldc { size, bank, offset } => {
                let mut load = self.plain(inst, "LDC")?;
                load.reg(Field::Ra, File::R, operand(inst, 0)?).text(Field::Size, size.text());
                load.value(Field::CBank, bank.into()).value(Field::COffset, i64::from(offset) as u64);
                load
            }
            _ => self.atomic(inst)?,
        };
        self.push(builder, Some(inst.src), Effect::Memory(accessed(inst, memory)))
    }

    fn atomic(&mut self, inst: &Inst) -> Result<Builder, CodegenError> {
        let builder = match inst.op {
            Op::Atom { op, ty, order, offset, generic } => {
                let mnemonic = match (generic, self.float_atomics_apart(ty)) {
                    (true, false) => "ATOM",
                    (true, true) => "ATOM.F",
                    (false, false) => "ATOMG",
                    (false, true) => "ATOMG.F",
                };
                let mut atom = self.global(inst, mnemonic, offset)?;
                atom.dst(Field::Rd, inst.dsts.first()).reg(Field::Rb, File::R, operand(inst, 2)?);
                atom.text(Field::Op, op.text())
                    .text(Field::Type, ty.text())
                    .text(Field::Order, self.order(order));
                atom
            }
            Op::AtomCas { wide, order, offset, generic } => {
                let mnemonic = if generic { "ATOM.CAS" } else { "ATOMG.CAS" };
                let mut atom = self.global(inst, mnemonic, offset)?;
                atom.dst(Field::Rd, inst.dsts.first());
                atom.reg(Field::Rb, File::R, operand(inst, 2)?).reg(Field::Rc, File::R, operand(inst, 3)?);
                atom.text(Field::Type, if wide { ".64" } else { "" }).text(Field::Order, self.order(order));
                atom
            }
            Op::Red { op, ty, order, offset } => {
                let mnemonic = match (self.sm.0 >= 90, self.float_atomics_apart(ty)) {
                    (false, _) => "RED",
                    (true, false) => "REDG",
                    (true, true) => "REDG.F",
                };
                let mut red = self.global(inst, mnemonic, offset)?;
                red.reg(Field::Rb, File::R, operand(inst, 2)?);
                red.text(Field::Op, op.text())
                    .text(Field::Type, ty.text())
                    .text(Field::Order, self.order(order));
                red
            }
            Op::Atoms { op, ty, offset, .. } => {
                let mut atom = self.shared(inst, "ATOMS", offset)?;
                atom.dst(Field::Rd, inst.dsts.first()).reg(Field::Rb, File::R, operand(inst, 2)?);
                atom.text(Field::Op, op.text()).text(Field::Type, ty.text());
                atom
            }
            Op::AtomsCas { wide, offset, .. } => {
                let mut atom = self.shared(inst, "ATOMS.CAS", offset)?;
                atom.dst(Field::Rd, inst.dsts.first());
                atom.reg(Field::Rb, File::R, operand(inst, 2)?).reg(Field::Rc, File::R, operand(inst, 3)?);
                atom.text(Field::Type, if wide { ".64" } else { "" });
                atom
            }
            _ => return Err(CodegenError::internal(inst.src, PHASE, format!("no access: {:?}", inst.op))),
        };
        Ok(builder)
    }

    pub(super) fn fence(&mut self, inst: &Inst) -> Result<(), CodegenError> {
        let fence = Effect::Fence { pinned: false };
        match inst.op {
            Op::Membar { scope } => {
                let mut membar = self.plain(inst, "MEMBAR")?;
                let (mode, scope) = match scope {
                    MembarScope::Cta => (".SC", ".CTA"),
                    MembarScope::Gpu => (".SC", ".GPU"),
                    MembarScope::Sys => (".SC", ".SYS"),
                    MembarScope::AllCta => (".ALL", ".CTA"),
                    MembarScope::AllGpu => (".ALL", ".GPU"),
                    MembarScope::AllSys => (".ALL", ".SYS"),
                };
                membar.text(Field::Mode, mode).text(Field::Scope, scope);
                self.push(membar, Some(inst.src), fence)
            }
            Op::Errbar => {
                let errbar = self.plain(inst, "ERRBAR")?;
                self.push(errbar, Some(inst.src), fence)?;
                if self.sm.0 >= 90 {
                    let cluster = self.plain(inst, "CGAERRBAR")?;
                    self.push(cluster, Some(inst.src), fence)?;
                }
                Ok(())
            }
            Op::Cctl { op: CctlOp::Ivall } => {
                let cctl = self.plain(inst, "CCTL.IVALL")?;
                self.push(cctl, Some(inst.src), fence)
            }
            _ => self.misplaced(inst),
        }
    }

    /// From sm_90 the float atomics have opcodes of their own.
    fn float_atomics_apart(&self, ty: AtomType) -> bool {
        let float = matches!(ty, AtomType::F32 | AtomType::F64 | AtomType::F16x2 | AtomType::Bf16x2);
        float && self.sm.0 >= 90
    }

    /// A global or generic access: 64-bit address, and the window's descriptor where the target has one.
    fn global(&self, inst: &Inst, mnemonic: &str, offset: i32) -> Result<Builder, CodegenError> {
        // Compare-and-swap takes no descriptor anywhere.
        let plain = self.target.descriptor.is_none() && sass::lookup(self.sm, mnemonic, "r").is_some();
        let mut builder = Builder::new(self.sm, inst.src, mnemonic, if plain { "r" } else { "" })?;
        builder.address(operand(inst, 0)?, offset);
        if builder.has(Field::UrDesc) {
            builder.reg(Field::UrDesc, File::UR, operand(inst, 1)?);
        }
        Ok(builder)
    }

    /// The modifiers of a global or generic access.
    fn modify(&self, builder: &mut Builder, access: &Access) {
        builder.text(Field::Size, access.size.text()).text(Field::Order, self.order(access.order));
        builder.text(Field::Evict, access.evict.text()).text(Field::Prefetch, access.prefetch.text());
    }

    /// How the target names an order: before sm_80 every access has a scope. What acquires and releases beyond the
    /// access itself is done by fences around it.
    fn order(&self, order: Order) -> &'static str {
        let names_weak = self.sm.0 < 80;
        match order {
            Order::Weak if names_weak => ".SYS",
            Order::Weak => "",
            Order::Constant if names_weak => ".CONSTANT.SYS",
            Order::Constant => ".CONSTANT",
            Order::Mmio => ".MMIO.SYS",
            Order::Volatile => ".STRONG.SYS",
            Order::Relaxed(scope) | Order::Acquire(scope) | Order::Release(scope) | Order::AcqRel(scope) => {
                match scope {
                    Scope::Cta if names_weak => ".STRONG.CTA",
                    Scope::Cta => ".STRONG.SM",
                    Scope::Gpu => ".STRONG.GPU",
                    Scope::Sys => ".STRONG.SYS",
                }
            }
        }
    }

    /// A shared access: 32-bit address, and a uniform base.
    fn shared(&self, inst: &Inst, mnemonic: &str, offset: i32) -> Result<Builder, CodegenError> {
        let base = operand(inst, 1)?;
        let shape = if base.kind == SrcKind::Zero { "" } else { "u" };
        let mut builder = Builder::new(self.sm, inst.src, mnemonic, shape)?;
        builder.address(operand(inst, 0)?, offset);
        if base.kind != SrcKind::Zero {
            builder.reg(Field::UrBase, File::UR, base);
        }
        Ok(builder)
    }
}

/// The access with the registers of its address.
fn accessed(inst: &Inst, memory: Memory) -> mach::Access {
    let register = |n: usize, file: File| match inst.srcs.get(n).map(|s| s.kind) {
        Some(SrcKind::Reg(Reg { file: found, index })) if found == file => Some(index),
        _ => None,
    };
    let uniform = if memory.space == Space::Shared { register(1, File::UR) } else { None };
    mach::Access { memory, base: register(0, File::R), uniform }
}

impl Builder {
    pub(super) fn address(&mut self, base: &Src, offset: i32) -> &mut Builder {
        self.reg(Field::Ra, File::R, base).value(Field::Offset, i64::from(offset) as u64)
    }

    /// The stored value; some forms have it in another slot.
    fn stored(&mut self, value: &Src) -> &mut Builder {
        let field = if self.has(Field::Rb) { Field::Rb } else { Field::Rc };
        self.reg(field, File::R, value)
    }

    /// `c[bank][offset]` of a form that always has a constant.
    pub(super) fn constant(&mut self, source: &Src) -> &mut Builder {
        if let SrcKind::Const(c) = source.kind {
            self.value(Field::CBank, c.bank.into()).value(Field::COffset, c.offset.into());
        }
        self
    }
}
