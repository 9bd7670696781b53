//! The dependence graph of a sequence of instructions: which instructions must precede which, and by how many cycles.
//!
//! Registers are assigned, so anti- and output dependences count as well as true ones. Memory accesses that may overlap
//! keep their order, and so do fences and warp-wide instructions.

use super::facts::InstFacts;
use crate::mach::{Effect, MachInst, MemoryAccess, REGISTERS, flat};
use sass::speed::speed;
use sass::{RegFile, RegUse, Sm, latency};
use smallvec::SmallVec;

/// A dependence; `cycles` is the distance from issue to issue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Edge {
    pub(super) to: u32,
    pub(super) cycles: u32,
}

pub(super) struct Dag {
    /// The outgoing edges of each instruction; every edge leads to a later instruction.
    pub(super) edges: Vec<SmallVec<[Edge; 4]>>,
    /// The number of incoming edges of each instruction.
    pub(super) incoming: Vec<u32>,
}

impl Dag {
    pub(super) fn build(sm: Sm, insts: &[MachInst], facts: &[InstFacts]) -> Dag {
        let mut builder = Builder {
            sm,
            insts,
            facts,
            dag: Dag { edges: vec![SmallVec::new(); insts.len()], incoming: vec![0; insts.len()] },
            registers: Registers::default(),
            accesses: Vec::new(),
            last_fence: None,
            last_convergent: None,
        };
        for at in 0..insts.len() {
            builder.add(at);
        }
        builder.dag
    }

    /// Cycles from the issue of each instruction to the end along the longest path.
    pub(super) fn heights(&self, own: impl Fn(usize) -> u32) -> Vec<u32> {
        let mut heights = vec![0; self.edges.len()];
        for at in (0..self.edges.len()).rev() {
            let below = self.edges[at].iter().map(|e| e.cycles + heights[e.to as usize]).max().unwrap_or(0);
            heights[at] = below.max(own(at));
        }
        heights
    }
}

/// The last writer of a register and its readers since then, with the numbers of the operands.
#[derive(Clone, Default)]
struct Register {
    writer: Option<(u32, RegUse)>,
    readers: SmallVec<[(u32, RegUse); 2]>,
    /// How often the register was written before.
    version: u32,
}

/// The registers that a sequence names, which are few.
struct Registers {
    /// For each register, by its number, its index plus one; 0 for registers that are not named.
    places: [u16; REGISTERS],
    named: Vec<Register>,
}

impl Default for Registers {
    fn default() -> Registers {
        Registers { places: [0; REGISTERS], named: Vec::new() }
    }
}

impl Registers {
    fn get(&self, register: usize) -> Option<&Register> {
        self.named.get(usize::from(self.places[register]).checked_sub(1)?)
    }

    fn named(&mut self, register: usize) -> &mut Register {
        let place = &mut self.places[register];
        if *place == 0 {
            self.named.push(Register::default());
            *place = self.named.len() as u16;
        }
        &mut self.named[usize::from(*place) - 1]
    }
}

struct Builder<'a> {
    sm: Sm,
    insts: &'a [MachInst],
    facts: &'a [InstFacts],
    dag: Dag,
    registers: Registers,
    /// Memory accesses since the last fence, with the versions of their address registers.
    accesses: Vec<(u32, MemoryAccess, [u32; 3])>,
    last_fence: Option<u32>,
    last_convergent: Option<u32>,
}

fn any_uniform(uses: &[RegUse]) -> bool {
    uses.iter().any(|of| matches!(of.file, RegFile::UR | RegFile::UP))
}

impl Builder<'_> {
    fn edge(&mut self, from: u32, to: usize, cycles: u32) {
        debug_assert!((from as usize) < to);
        let edges = &mut self.dag.edges[from as usize];
        // Edges are added in ascending order of their ends.
        match edges.last_mut().filter(|e| e.to == to as u32) {
            Some(edge) => edge.cycles = edge.cycles.max(cycles),
            None => {
                edges.push(Edge { to: to as u32, cycles });
                self.dag.incoming[to] += 1;
            }
        }
    }

    fn add(&mut self, at: usize) {
        self.registers(at);
        match self.insts[at].effect {
            Effect::None => {
                // Writes of a uniform register keep their order; see below.
                if let Some(fence) = self.last_fence.filter(|_| any_uniform(&self.facts[at].writes)) {
                    self.edge(fence, at, 1);
                }
            }
            Effect::Memory(access) => self.memory(at, access),
            Effect::Convergent => {
                if let Some(fence) = self.last_fence.max(self.last_convergent) {
                    self.edge(fence, at, 1);
                }
                self.last_convergent = Some(at as u32);
            }
            Effect::Fence { pinned: false } => {
                let since = self.last_fence.map_or(0, |f| f as usize);
                for earlier in since..at {
                    // Threads that are apart share the uniform registers: while these threads wait, others may write
                    // uniform registers that are not in use here.
                    let facts = &self.facts[earlier];
                    let uniform = any_uniform(&facts.reads) || any_uniform(&facts.writes);
                    if uniform || self.insts[earlier].effect != Effect::None {
                        self.edge(earlier as u32, at, 1);
                    }
                }
                self.accesses.clear();
                self.last_fence = Some(at as u32);
            }
            Effect::Fence { pinned: true } | Effect::Control => {
                for earlier in 0..at {
                    self.edge(earlier as u32, at, 0);
                }
            }
        }
    }

    fn memory(&mut self, at: usize, access: MemoryAccess) {
        if let Some(fence) = self.last_fence {
            self.edge(fence, at, 1);
        }
        let version = |file, index: Option<u8>, high: u8| -> u32 {
            index.map_or(0, |index| {
                let register =
                    RegUse { file, index: index.saturating_add(high), count: 1, role: sass::Role::Address };
                self.registers.get(flat(&register).start).map_or(0, |r| r.version)
            })
        };
        let versions = [
            version(RegFile::R, access.base, 0),
            version(RegFile::R, access.base, 1),
            version(RegFile::UR, access.uniform, 0),
        ];
        let conflicts: SmallVec<[u32; 8]> = self
            .accesses
            .iter()
            .filter(|(_, earlier, v)| earlier.conflicts(&access, *v == versions))
            .map(|(earlier, ..)| *earlier)
            .collect();
        for earlier in conflicts {
            self.edge(earlier, at, 1);
        }
        self.accesses.push((at as u32, access, versions));
    }

    fn registers(&mut self, at: usize) {
        let (insts, facts) = (self.insts, self.facts);
        let inst = &insts[at].inst;
        for read in &facts[at].reads {
            for r in flat(read) {
                if let Some((writer, def)) = self.registers.get(r).and_then(|r| r.writer) {
                    let earlier = &insts[writer as usize].inst;
                    let cycles = if facts[writer as usize].variable {
                        speed(earlier.form).result
                    } else {
                        u32::from(latency::raw(self.sm, earlier, &def, inst, read))
                    };
                    self.edge(writer, at, cycles);
                }
            }
        }
        for over in &facts[at].writes {
            for r in flat(over) {
                let register = std::mem::take(self.registers.named(r));
                if let Some((writer, def)) = register.writer {
                    let earlier = &insts[writer as usize].inst;
                    let cycles = if facts[writer as usize].variable {
                        speed(earlier.form).result
                    } else {
                        u32::from(latency::waw(self.sm, earlier, &def, inst, over))
                    };
                    self.edge(writer, at, cycles);
                }
                for (reader, read) in register.readers.into_iter().filter(|r| r.0 as usize != at) {
                    let earlier = &insts[reader as usize].inst;
                    let late = facts[reader as usize].late && matches!(read.file, RegFile::R | RegFile::UR);
                    let cycles = if late {
                        speed(earlier.form).release
                    } else {
                        u32::from(latency::war(self.sm, earlier, &read, inst))
                    };
                    self.edge(reader, at, cycles);
                }
                *self.registers.named(r) = Register {
                    writer: Some((at as u32, *over)),
                    version: register.version + 1,
                    ..Register::default()
                };
            }
        }
        for read in &facts[at].reads {
            for r in flat(read) {
                // Registers that the instruction itself overwrites are ordered because it is their writer.
                let register = self.registers.named(r);
                if register.writer.is_none_or(|(w, _)| w as usize != at) {
                    register.readers.push((at as u32, *read));
                }
            }
        }
    }
}
