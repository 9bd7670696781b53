//! The memory effects and the order that PTX guarantees for the input's statements.

use super::expand::{Expansion, Wrong};
use crate::copies::{Statements, Unrolled};
use crate::input::{Address, AddressBase, Env, Function, Instr, Operand, SrcId, Stmt};
use crate::layout::variable;
use crate::ori::cfg::Cfg;
use crate::ori::dominators::{Tree, dominators};
use crate::ori::ir::{self, Block, BlockId, Src, Term};
use crate::ori::loops::Loops;
use crate::ori::op::JumpTable;
use ptx_isa::{FormId, Mod, Space};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::{Cell, RefCell};

/// The scope of synchronization.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Reach {
    Thread,
    Block,
    Device,
    System,
}

/// A memory that does not overlap with the others; a generic address may point into any of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Region {
    Global,
    Shared,
    Local,
    Generic,
}

impl Region {
    pub(super) const ALL: [Region; 4] = [Region::Global, Region::Shared, Region::Local, Region::Generic];

    pub(super) fn overlaps(self, other: Region) -> bool {
        self == other || self == Region::Generic || other == Region::Generic
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum What {
    Load,
    Store,
    Update,
    /// Reads one address and writes another, at any time until the wait.
    Copy,
    /// Ends a group of copies, or waits for groups.
    Wait,
    Fence,
    /// A barrier of the block.
    Sync,
    /// A barrier of the warp.
    SyncWarp,
    /// May have any effect.
    Call,
    /// Returns results to the caller.
    Return,
    /// Orders accesses of the same memory through different addresses.
    Alias,
    /// An operation on an mbarrier object, or an operation that continues asynchronously: ordered with all accesses.
    Beside,
    /// Initializes an mbarrier object: a store, by any instruction.
    Make,
    /// An access of a texture or a surface. It uses another proxy (PTX ISA, "Memory Consistency Model", "Proxies"):
    /// without a proxy fence, it is not ordered with accesses of memory by addresses.
    Image,
    /// Unknown: its effect on memory is ordered with all accesses.
    Other,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Statement {
    /// The statement, or the copy of it that unrolling made.
    pub(super) src: SrcId,
    pub(super) block: BlockId,
    pub(super) what: What,
    pub(super) place: Region,
    pub(super) reach: Reach,
    pub(super) strong: bool,
    pub(super) volatile: bool,
    pub(super) acquires: bool,
    pub(super) releases: bool,
    /// An access of memory with side effects, which must be executed exactly once.
    pub(super) once: bool,
    pub(super) guarded: bool,
    /// A product of a warpgroup. It changes only registers, so it may be missing if nothing reads them.
    pub(super) is_product: bool,
    /// Its instructions are in branches: on how the kernel was launched, or for one thread of the warp.
    pub(super) in_branches: bool,
    /// A driver function may implement it; its arguments are on the stack.
    pub(super) may_call: bool,
    /// It has an address operand, so it may access memory.
    pub(super) addressed: bool,
    /// The memory that a copy reads.
    pub(super) source: Option<Region>,
    /// The maximum number of groups of copies that a wait leaves in flight.
    pub(super) groups: Option<i64>,
}

/// The memory of the variable that an access without a state space names.
fn named_place(env: &Env, function: &Function, instr: &Instr) -> Region {
    let named = instr.operands.iter().find_map(|operand| match operand {
        Operand::Address(Address { base: AddressBase::Symbol(symbol), .. }) => Some(*symbol),
        _ => None,
    });
    match named.and_then(|symbol| variable(env, function, symbol)).map(|variable| variable.space) {
        Some(Space::Shared) => Region::Shared,
        Some(Space::Local) => Region::Local,
        _ => Region::Generic,
    }
}

impl Statement {
    /// `None` for reads of memory that is never written.
    fn new(env: &Env, function: &Function, instr: &Instr, block: BlockId) -> Option<Statement> {
        let other = Statement {
            src: instr.src,
            block,
            what: What::Other,
            place: Region::Generic,
            reach: Reach::Thread,
            strong: false,
            volatile: false,
            acquires: false,
            releases: false,
            once: false,
            guarded: instr.guard.is_some(),
            is_product: false,
            in_branches: matches!(
                instr.opcode.form,
                FormId::BarrierCluster
                    | FormId::Tcgen05Alloc
                    | FormId::Tcgen05Dealloc
                    | FormId::Tcgen05RelinquishAllocPermit
            ),
            may_call: match instr.opcode.form {
                FormId::Tex => instr.opcode.has(Mod::Grad),
                FormId::CpAsyncBulkLoad | FormId::CpAsyncBulkTensorLoad => {
                    instr.opcode.has(Mod::SharedCluster)
                }
                _ => false,
            },
            addressed: instr.operands.iter().any(|operand| matches!(operand, Operand::Address(_))),
            source: None,
            groups: None,
        };
        let has = |m: Mod| instr.opcode.has(m);
        let named = || match () {
            () if has(Mod::Cta) => Some(Reach::Block),
            () if has(Mod::Cluster) || has(Mod::Gpu) || has(Mod::Gl) => Some(Reach::Device),
            () if has(Mod::Sys) => Some(Reach::System),
            () => None,
        };
        let what = match instr.opcode.form {
            FormId::Ld | FormId::Ldu => What::Load,
            FormId::St | FormId::MultimemSt | FormId::StAsyncRelease => What::Store,
            FormId::MultimemRed => What::Update,
            FormId::Atom | FormId::Red | FormId::RedAsyncRelease | FormId::AtomVector | FormId::RedVector => {
                What::Update
            }
            FormId::Ldmatrix | FormId::LdmatrixBytes | FormId::LdmatrixUnpack => What::Load,
            FormId::WmmaLoad | FormId::WmmaLoadC => What::Load,
            FormId::Stmatrix | FormId::StmatrixBytes | FormId::WmmaStore => What::Store,
            FormId::CpAsync => {
                let (place, source) = (Region::Shared, Some(Region::Global));
                return Some(Statement { what: What::Copy, place, source, ..other });
            }
            FormId::CpAsyncCommitGroup => return Some(Statement { what: What::Wait, ..other }),
            FormId::CpAsyncWaitGroup | FormId::CpAsyncWaitAll => {
                let groups = match instr.operands.first() {
                    // A negative number counts as a large one.
                    Some(Operand::Int(groups)) => i64::from(*groups as u32),
                    _ => 0,
                };
                return Some(Statement { what: What::Wait, groups: Some(groups), ..other });
            }
            FormId::Bar | FormId::Barrier => What::Sync,
            FormId::BarWarpSync => What::SyncWarp,
            // The words of a tensor map, like those of a variable.
            FormId::TensormapReplace | FormId::TensormapCpFenceproxy => {
                let place = match () {
                    () if instr.opcode.form == FormId::TensormapCpFenceproxy => Region::Generic,
                    () if has(Mod::SharedCta) => Region::Shared,
                    () if has(Mod::Global) => Region::Global,
                    () => Region::Generic,
                };
                return Some(Statement { what: What::Update, place, ..other });
            }
            FormId::FenceProxy if instr.opcode.has(Mod::Alias) => {
                return Some(Statement { what: What::Alias, reach: Reach::System, ..other });
            }
            // An mbarrier object is in shared memory, and its initialization only writes.
            FormId::MbarrierInit => {
                return Some(Statement { what: What::Make, place: Region::Shared, ..other });
            }
            // It reads the object and may acquire, so earlier accesses may move after it.
            FormId::MbarrierTestWait | FormId::MbarrierTryWait => {
                return Some(Statement {
                    what: What::Beside,
                    place: Region::Shared,
                    acquires: true,
                    ..other
                });
            }
            FormId::MbarrierExpectTx
            | FormId::MbarrierCompleteTx
            | FormId::MbarrierArrive
            | FormId::MbarrierArriveDrop
            | FormId::FenceProxy
            | FormId::FenceProxySpace
            | FormId::CpAsyncMbarrierArrive
            | FormId::CpAsyncBulkLoad
            | FormId::CpAsyncBulkCluster
            | FormId::CpAsyncBulkStore
            | FormId::CpReduceAsyncBulkCluster
            | FormId::CpReduceAsyncBulkStore
            | FormId::CpAsyncBulkTensorLoad
            | FormId::CpAsyncBulkTensorStore
            | FormId::CpReduceAsyncBulkTensor
            | FormId::CpAsyncBulkCommitGroup
            | FormId::CpAsyncBulkWaitGroup
            | FormId::BarrierCluster
            | FormId::StAsync
            | FormId::StBulk
            | FormId::WgmmaWaitGroup
            | FormId::Tcgen05Alloc
            | FormId::Tcgen05Dealloc
            | FormId::Tcgen05RelinquishAllocPermit
            | FormId::Tcgen05Ld
            | FormId::Tcgen05LdRed
            | FormId::Tcgen05St
            | FormId::Tcgen05Cp
            | FormId::Tcgen05Shift
            | FormId::Tcgen05Mma
            | FormId::Tcgen05MmaWs
            | FormId::Tcgen05MmaBlockScale
            | FormId::Tcgen05Commit
            | FormId::ClusterlaunchcontrolTryCancel
            | FormId::RedAsync => return Some(Statement { what: What::Beside, ..other }),
            FormId::WgmmaMma | FormId::WgmmaMmaSp | FormId::WgmmaMmaBits => {
                return Some(Statement { what: What::Beside, is_product: true, ..other });
            }
            FormId::Suld | FormId::Sust | FormId::SustFormatted | FormId::Sured => {
                return Some(Statement { what: What::Image, ..other });
            }
            // It reads the driver's tables, which are not written while a kernel runs.
            FormId::Txq | FormId::Suq => return None,
            FormId::Ret => return Some(Statement { what: What::Return, ..other }),
            FormId::Call => return Some(Statement { what: What::Call, ..other }),
            FormId::Membar | FormId::Fence => {
                return Some(Statement {
                    what: What::Fence,
                    reach: named().unwrap_or(Reach::System),
                    acquires: !has(Mod::Release),
                    releases: !has(Mod::Acquire),
                    ..other
                });
            }
            _ => return Some(other),
        };
        let matrices = matches!(
            instr.opcode.form,
            FormId::Ldmatrix
                | FormId::LdmatrixBytes
                | FormId::LdmatrixUnpack
                | FormId::Stmatrix
                | FormId::StmatrixBytes
        );
        // Functions may have parameters on the stack.
        let called = !function.entry;
        let place = match () {
            () if matrices => Region::Shared,
            () if called && (has(Mod::Param) || has(Mod::ParamFunc)) => Region::Local,
            () if [Mod::Const, Mod::Param, Mod::ParamEntry, Mod::ParamFunc, Mod::Nc].into_iter().any(has) => {
                return None;
            }
            () if has(Mod::Global) => Region::Global,
            () if has(Mod::Shared) || has(Mod::SharedCta) || has(Mod::SharedCluster) => Region::Shared,
            () if has(Mod::Local) => Region::Local,
            () => named_place(env, function, instr),
        };
        let volatile = has(Mod::Volatile) || has(Mod::Mmio);
        let acquires = has(Mod::Acquire) || has(Mod::AcqRel);
        let releases = has(Mod::Release) || has(Mod::AcqRel) || instr.opcode.form == FormId::StAsyncRelease;
        let strong = what == What::Update || volatile || acquires || releases || has(Mod::Relaxed);
        let widest = if what == What::Update { Reach::Device } else { Reach::System };
        let reach = if strong { named().unwrap_or(widest) } else { Reach::Thread };
        Some(Statement {
            what,
            place,
            reach,
            strong,
            volatile,
            acquires,
            releases,
            once: has(Mod::Mmio),
            ..other
        })
    }

    pub(super) fn is_access(&self) -> bool {
        matches!(self.what, What::Load | What::Store | What::Update | What::Copy | What::Make)
    }

    /// The memories that the statement accesses.
    pub(super) fn places(&self) -> impl Iterator<Item = Region> {
        [Some(self.place), self.source].into_iter().flatten()
    }

    /// Whether no access may move across it in either direction.
    pub(super) fn is_hard(&self) -> bool {
        !self.is_access() && self.what != What::Image
    }

    /// Whether it may not move before any earlier access.
    pub(super) fn follows_all(&self) -> bool {
        self.releases || (self.is_hard() && !self.acquires)
    }

    /// Whether its order can also be observed relative to reads.
    pub(super) fn is_ordering(&self) -> bool {
        self.strong || self.what != What::Load
    }

    /// Whether it bypasses the caches that are not shared by all threads which can access the memory.
    pub(super) fn is_coherent(&self) -> bool {
        matches!(self.place, Region::Global | Region::Generic)
    }

    pub(super) fn must_stay(&self) -> bool {
        match self.what {
            // Only the thread itself accesses local memory. Other checks verify the values of its loads.
            What::Load | What::Store if self.place == Region::Local => false,
            What::Load => self.strong,
            What::Call
            | What::Store
            | What::Update
            | What::Copy
            | What::Wait
            | What::Fence
            | What::Sync
            | What::SyncWarp
            | What::Alias
            | What::Make => true,
            What::Beside => !self.is_product,
            What::Image | What::Other | What::Return => false,
        }
    }

    /// Whether the statement stays before `later` for any addresses.
    pub(super) fn keeps(&self, later: &Statement) -> bool {
        self.is_hard() || later.follows_all() || self.acquires || (self.volatile && later.volatile)
    }

    /// Whether the statement keeps its order relative to `other` if both access the same bytes.
    pub(super) fn conflicts(&self, other: &Statement) -> bool {
        let images = [self, other].map(|statement| statement.what == What::Image);
        if images.contains(&true) {
            return images == [true; 2];
        }
        let reads = |reader: &Statement, writer: &Statement| {
            reader.source.is_some_and(|source| source.overlaps(writer.place)) && writer.is_ordering()
        };
        let meet = self.place.overlaps(other.place) && (self.is_ordering() || other.is_ordering());
        meet || reads(self, other) || reads(other, self)
    }
}

/// The statements that affect memory, and their copies, by rank: in program order, as far as it is defined.
pub(super) struct Program {
    pub(super) statements: Vec<Statement>,
    /// The ranks, by [`SrcId`].
    ranks: FxHashMap<SrcId, u32>,
    /// Statements and copies that are claimed to be never executed.
    pub(super) gone: FxHashSet<SrcId>,
    graph: ir::Function,
    cfg: Cfg,
    tree: Tree,
    /// Some loop has several entries.
    irreducible: bool,
    /// The ranks of the statements of each block.
    blocks: Vec<std::ops::Range<u32>>,
    /// Temporary data of [`Program::leads`]: the last walk that reached each block, and the number of walks.
    seen: RefCell<Vec<u32>>,
    walks: Cell<u32>,
}

impl Program {
    pub(super) fn new(
        env: &Env,
        function: &Function,
        numbers: Statements,
        unrolled: &[Unrolled],
        never: &[SrcId],
    ) -> Result<Program, Wrong> {
        let (graph, runs) = graph(function);
        let instrs = |run: &std::ops::Range<usize>| function.body[run.clone()].iter().filter_map(Stmt::instr);
        let sources: Vec<Vec<SrcId>> = match unrolled {
            [] => Vec::new(),
            _ => runs.iter().map(|run| instrs(run).map(|instr| instr.src).collect()).collect(),
        };
        let mut expansion = Expansion::new(graph, numbers, &sources);
        expansion.expand(unrolled, never)?;
        let Expansion { graph, nodes, gone, .. } = expansion;
        let cfg = Cfg::new(&graph);
        let tree = dominators(&cfg, &graph);
        let irreducible = Loops::new(&graph, &cfg, &tree).any_irreducible();
        let mut statements = Vec::new();
        let mut blocks = vec![0..0; nodes.len()];
        for &block in &cfg.order {
            let start = statements.len() as u32;
            let node = &nodes[block.index()];
            for instr in instrs(&runs[node.run]) {
                let statement = Statement::new(env, function, instr, block);
                let src = numbers.in_iteration(instr.src, node.copy, 1);
                statements.extend(statement.map(|statement| Statement { src, ..statement }));
            }
            blocks[block.index()] = start..statements.len() as u32;
        }
        let ranks = statements.iter().zip(0..).map(|(statement, rank)| (statement.src, rank)).collect();
        let seen = RefCell::new(vec![0; graph.blocks.len()]);
        let walks = Cell::new(0);
        Ok(Program { statements, ranks, gone, graph, cfg, tree, irreducible, blocks, seen, walks })
    }

    pub(super) fn rank(&self, src: SrcId) -> Option<u32> {
        self.ranks.get(&src).copied()
    }

    pub(super) fn blocks(&self) -> usize {
        self.blocks.len()
    }

    pub(super) fn ranks(&self, block: BlockId) -> std::ops::Range<u32> {
        self.blocks[block.index()].clone()
    }

    /// The blocks, each after the blocks that dominate it.
    pub(super) fn preorder(&self) -> impl Iterator<Item = BlockId> + '_ {
        self.tree.preorder.iter().copied()
    }

    pub(super) fn parent(&self, block: BlockId) -> Option<BlockId> {
        self.tree.parent(block)
    }

    /// Whether the first statement is executed before the second one, which has a higher rank, whenever control leads to
    /// both without a back edge. In a loop with several entries, control may lead from either one to the other.
    pub(super) fn orders(&self, first: &Statement, second: &Statement) -> bool {
        let (first, second) = (first.block, second.block);
        self.tree.dominates(first, second)
            || self.leads(first, second) && !(self.irreducible && self.leads(second, first))
    }

    /// Whether control leads from one block to another without a back edge.
    fn leads(&self, from: BlockId, to: BlockId) -> bool {
        let walk = self.walks.get() + 1;
        self.walks.set(walk);
        let mut seen = self.seen.borrow_mut();
        let end = self.cfg.place(to);
        let mut work = vec![from];
        while let Some(block) = work.pop() {
            for next in self.graph.block(block).term.successors() {
                if self.tree.dominates(next, block) {
                    continue;
                }
                if next == to {
                    return true;
                }
                let may_lead = self.irreducible || self.cfg.place(next) < end;
                if may_lead && std::mem::replace(&mut seen[next.index()], walk) != walk {
                    work.push(next);
                }
            }
        }
        false
    }
}

/// The control flow of the input, with the statements of each block.
fn graph(function: &Function) -> (ir::Function, Vec<std::ops::Range<usize>>) {
    let mut runs = Vec::new();
    let mut at_label = vec![None; function.labels as usize];
    let mut start = 0;
    for (i, stmt) in function.body.iter().enumerate() {
        match stmt {
            Stmt::Label(label) => {
                if start < i {
                    runs.push(start..i);
                    start = i;
                }
                if let Some(slot) = at_label.get_mut(label.0 as usize) {
                    *slot = Some(BlockId(runs.len() as u32));
                }
            }
            Stmt::Instr(instr) if ends_block(instr) => {
                runs.push(start..i + 1);
                start = i + 1;
            }
            Stmt::Instr(_) => {}
        }
    }
    runs.push(start..function.body.len());
    let term = |i: usize, run: &std::ops::Range<usize>| {
        let next = (i + 1 < runs.len()).then_some(BlockId(i as u32 + 1));
        let mut targets: Vec<BlockId> = Vec::new();
        match function.body[run.clone()].last() {
            Some(Stmt::Instr(instr)) if ends_block(instr) => {
                let labels = match instr.operands.last() {
                    Some(Operand::Label(label)) => std::slice::from_ref(label),
                    Some(Operand::Targets(list)) => {
                        function.targets.get(*list as usize).map_or(&[][..], |t| t)
                    }
                    _ => &[],
                };
                targets.extend(
                    labels.iter().filter_map(|label| at_label.get(label.0 as usize).copied().flatten()),
                );
                if instr.guard.is_some() {
                    targets.extend(next);
                }
            }
            _ => targets.extend(next),
        }
        switch(targets)
    };
    let blocks: Vec<Block> =
        runs.iter().enumerate().map(|(i, run)| Block { term: term(i, run), ..Block::default() }).collect();
    (flow(blocks), runs)
}

/// A branch to one of the targets.
pub(super) fn switch(targets: Vec<BlockId>) -> Term {
    match targets[..] {
        [] => Term::Exit,
        _ => Term::Switch { address: Src::ZERO, table: JumpTable(0), targets, uniform: false },
    }
}

fn ends_block(instr: &Instr) -> bool {
    matches!(instr.opcode.form, FormId::Bra | FormId::BrxIdx | FormId::Ret | FormId::Exit)
}

/// A function that consists only of control flow, for the analyses of the IR.
pub(super) fn flow(blocks: Vec<Block>) -> ir::Function {
    ir::Function {
        name: String::new(),
        entry: true,
        routine: None,
        layout: (0..blocks.len() as u32).map(BlockId).collect(),
        blocks,
        values: Vec::new(),
        literals: Vec::new(),
        frame: ir::Frame::default(),
        facts: ir::Facts::default(),
    }
}
