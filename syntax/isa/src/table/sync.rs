//! Barriers, fences, atomics and operations across a warp.

use super::prelude::*;

const BARRIER: Fact = Fact::CONVERGENT.or(Fact::ORDERS);
/// The number of threads that take part in a barrier: a multiple of the warp size.
const THREADS: Values = Values::Multiples { of: 32, zero: true };
const REDUCE: &[Mod] = &[Popc, And, Or];
const BARRIER_OPS: &[Operand] = &[
    dst("d", T0).or(Class::PREDICATE).with(&[Red]),
    src("a", I32).values(Values::Low(&Values::Range(0, 15))),
    src("b", I32).values(THREADS).optional(),
    pred("c").with(&[Red]),
];
const BARRIER_RULES: &[Rule] = &[
    lacks(&[Arrive, Red]).needs(&[Sync]),
    has(&[Arrive, Red]).excludes(&[Sync]),
    has(&[Arrive]).operand("b", Column::Presence(Presence::Always)),
    has(&[Arrive]).values("b", Values::Multiples { of: 32, zero: false }),
    has(&[Red]).needs(REDUCE),
    has(REDUCE).needs(&[Red]),
    has(&[Popc]).types(U32),
    has(&[And, Or]).types(PRED),
    on(U32).needs(&[Popc]),
    on(PRED).needs(&[And, Or]),
    has(&[Cta]).since(7, 8, 10),
    has(&[Red, Arrive]).since(2, 0, 20),
];
const SEM: Group = opt(&[Relaxed, Acquire, Release, AcqRel]);
const RED_SEM: Group = opt(&[Relaxed, Release]);
const ATOM_SPACE: Group = opt(&[Global, Shared, SharedCta, SharedCluster]);
const ATOM_OP: Group = req(&[Add, Min, Max, And, Or, Xor, Exch, Cas, Inc, Dec]);
const RED_OP: Group = req(&[Add, Min, Max, And, Or, Xor, Inc, Dec]);
const ATOMIC: Fact = Fact::READS.or(Fact::WRITES);
const ATOM_TYPES: TypeSet = t![B16 B32 B64 B128 U32 U64 S32 S64 F16 F16x2 Bf16 Bf16x2 F32 F64];

/// Rules that `atom` and `red` share.
macro_rules! atomic_rules {
    ($($more:expr),* $(,)?) => { &[
        has(&[Add]).types(t![U32 U64 S32 F16 F16x2 Bf16 Bf16x2 F32 F64]),
        has(&[Inc, Dec]).types(t![U32]),
        has(&[And, Or, Xor]).types(t![B32 B64]),
        has(&[Noftz]).types(HALVES.union(F32)), has(&[Noftz]).on(F32).needs(&[Add]), has(&[Noftz]).on(F32).since(9, 4, 90), on(HALVES).needs(&[Noftz]),
        has(&[L2CacheHint]).excludes(SHARED_SPACES),
        has(&[Relaxed, Acquire, Release, AcqRel]).since(6, 0, 70), has(&[Cta, Gpu, Sys]).since(5, 0, 60), has(&[Cluster]).since(7, 8, 90),
        has(&[SharedCta]).since(7, 8, 10), has(&[SharedCluster]).since(7, 8, 90), has(&[L2CacheHint]).since(7, 4, 80),
        has(SHARED_SPACES).since(1, 2, 12), on(t![B64 U64 S64]).since(1, 2, 12), on(F32).since(2, 0, 20), on(F64).since(5, 0, 60),
        on(t![F16x2]).since(6, 2, 60), on(t![F16]).since(6, 3, 70), on(BFLOAT).since(7, 8, 90),
        has(&[Min, Max, And, Or, Xor]).on(t![B64 U64 S64]).since(3, 1, 32),
        $($more),*
    ] };
}

const VECTOR_RULES: &[Rule] = &[
    has(&[V8]).types(t![F16 Bf16]),
    has(&[V4]).types(t![F16 Bf16 F16x2 Bf16x2 F32]),
    on(F32).needs(&[Add]),
    has(&[Noftz]).types(HALVES.union(F32)),
    has(&[Noftz]).on(F32).needs(&[Add]),
    has(&[Noftz]).on(F32).since(9, 4, 90),
    on(HALVES).needs(&[Noftz]),
    has(&[Cluster]).since(8, 1, 90),
];

#[rustfmt::skip]
pub(super) const ROWS: &[Form] = &[
    form(F::Bar).name(&[opt(&[Cta]).at(Place::Leading), key(&[Sync, Arrive, Red]), opt(REDUCE)]).ty(&[t![U32 Pred]]).optional_types(1).ops(BARRIER_OPS).facts(BARRIER).rules(BARRIER_RULES),
    form(F::Barrier).name(&[opt(&[Cta]).at(Place::Leading), opt(&[Arrive, Red]).at(Place::Leading), opt(&[Sync]), opt(REDUCE), opt(&[Aligned])]).ty(&[t![U32 Pred]]).optional_types(1).ops(BARRIER_OPS).facts(BARRIER).since(6, 0, 30).rules(BARRIER_RULES),
    form(F::BarWarpSync).name(&[key(&[Warp]), key(&[Sync])]).ops(&[src("membermask", I32)]).facts(BARRIER).since(6, 0, 30),
    form(F::Membar).name(&[req(&[Cta, Gl, Sys])]).facts(Fact::ORDERS).since(1, 4, 10).rules(&[has(&[Sys]).since(2, 0, 20)]),
    form(F::Fence).name(&[opt(&[Sc, AcqRel, Acquire, Release]), MUST_SCOPE]).facts(Fact::ORDERS).since(6, 0, 70).rules(&[has(&[Cluster]).since(7, 8, 90)]),
    form(F::Atom).name(&[SEM, SCOPE, ATOM_SPACE, ATOM_OP, opt(&[Noftz]), CACHE_HINT]).ty(&[ATOM_TYPES]).ops(&[dst("d", T0).sink(), addr_sized("a"), src("b", T0), src("c", T0).with(&[Cas]), POLICY]).facts(ATOMIC).since(1, 1, 11).rules(atomic_rules![
        has(&[Cas]).excludes(&[L2CacheHint]), has(&[Exch]).types(t![B32 B64 B128]), has(&[Cas]).types(t![B16 B32 B64 B128]), has(&[Min, Max]).types(t![U32 U64 S32 S64]),
        on(t![B16]).since(6, 3, 70), on(t![B128]).since(8, 3, 90), has(&[Sys]).on(t![B128]).since(8, 4, 90),
    ]),
    form(F::Red).name(&[RED_SEM, SCOPE, ATOM_SPACE, RED_OP, opt(&[Noftz]), CACHE_HINT]).ty(&[ATOM_TYPES]).ops(&[addr_sized("a").sink(), src("b", T0), POLICY]).facts(ATOMIC).since(1, 2, 11).rules(atomic_rules![
        has(&[Min, Max]).types(t![U32 U64 S32 S64]),
    ]),
    form(F::Vote).name(&[req(&[All, Any, Uni, Ballot])]).ty(&[t![Pred B32]]).ops(&[dst("d", T0).or(Class::PREDICATE), pred("a").or(Class::REGISTER)]).facts(Fact::CONVERGENT).gate(Gate::since(1, 2, 12).until(6, 4, 70)).rules(&[has(&[Ballot]).operand("a", Column::Class(Class::PREDICATE.or(Class::IMMEDIATE))), has(&[Ballot]).types(B32), on(B32).needs(&[Ballot]), has(&[Ballot]).since(2, 0, 20)]),
    form(F::VoteSync).name(&[SYNC, req(&[All, Any, Uni, Ballot])]).ty(&[t![Pred B32]]).ops(&[dst("d", T0).or(Class::PREDICATE), pred("a").or(Class::REGISTER), src("membermask", I32)]).facts(Fact::CONVERGENT).since(6, 0, 30).rules(&[has(&[Ballot]).operand("a", Column::Class(Class::PREDICATE.or(Class::IMMEDIATE))), has(&[Ballot]).types(B32), on(B32).needs(&[Ballot])]),
    form(F::MatchSync).name(&[req(&[Any, All]), SYNC]).ty(&[B32_64]).ops(&[dst("d", I32), src("a", T0), src("membermask", I32)]).facts(Fact::CONVERGENT).since(6, 0, 70).rules(&[has(&[All]).operand("d", Column::Class(Class::REGISTER.or(Class::ANY_PAIR).or(Class::SINK)))]),
    form(F::Activemask).ty(&[B32]).ops(&[dst("d", TB32)]).facts(Fact::CONVERGENT.or(Fact::EFFECT)).since(6, 2, 30),
    form(F::Redux).name(&[SYNC, req(&[Add, Min, Max, And, Or, Xor]), opt(&[Abs]), opt(&[Nan])]).ty(&[t![U32 S32 B32 F32]]).ops(&[dst("d", OperandType::IntegerLike(0)), src("a", OperandType::IntegerLike(0)), src("membermask", I32)]).facts(Fact::CONVERGENT).since(7, 0, 80).rules(&[
        on(F32).operand("d", Column::Type(T0)), on(F32).operand("a", Column::Type(T0)),
        has(&[Add]).types(UI32), has(&[Min, Max]).types(t![U32 S32 F32]), has(&[And, Or, Xor]).types(B32), has(&[Abs, Nan]).types(F32),
        on(F32).gate(Gate::only(8, 6, TargetSet::family(100))),
    ]),
    form(F::Elect).name(&[SYNC]).ops(&[dst_pair("d", I32).class(Class::PAIR.or(Class::PAIR_WITHOUT_FIRST)), src("membermask", I32)]).facts(Fact::CONVERGENT).since(8, 0, 90),
    form(F::AtomVector).name(&[SEM, SCOPE, opt(&[Global]), req(&[Add, Min, Max]), opt(&[Noftz]), CACHE_HINT, req(&[V2, V4, V8])]).ty(&[HALVES.union(F32)]).ops(&[dst_vector("d", T0).braces(Lanes::Named(1)).sink(), addr_sized("a"), src_vector("b", T0).braces(Lanes::Named(1)), POLICY]).facts(ATOMIC).since(8, 1, 90).rules(VECTOR_RULES),
    form(F::RedVector).name(&[RED_SEM, SCOPE, opt(&[Global]), req(&[Add, Min, Max]), opt(&[Noftz]), CACHE_HINT, req(&[V2, V4, V8])]).ty(&[HALVES.union(F32)]).ops(&[addr_sized("a"), src_vector("b", T0).braces(Lanes::Named(1)), POLICY]).facts(ATOMIC).since(8, 1, 90).rules(VECTOR_RULES),
    form(F::MembarProxy).name(&[key(&[Proxy]), key(&[Alias])]).facts(Fact::ORDERS).since(7, 5, 60),
    form(F::FenceProxy).name(&[key(&[Proxy]), req(&[Alias, Async, AsyncGlobal, AsyncSharedCta, AsyncSharedCluster])]).facts(Fact::ORDERS).since(7, 5, 70).rules(&[has(&[Async, AsyncGlobal, AsyncSharedCta, AsyncSharedCluster]).since(8, 0, 90)]),
    form(F::FenceProxySpace).name(&[key(&[Proxy]), req(&[Async]), req(&[Global, Shared, SharedCta, SharedCluster])]).facts(Fact::ORDERS).since(8, 0, 90),
    form(F::FenceProxyTensormap).name(&[key(&[Proxy]), req(&[TensormapGeneric]), req(&[Acquire, Release, AcqRel]), opt(&[Global, Shared, SharedCta]), MUST_SCOPE]).ops(&[addr_at("addr", Base::of(Window::Unchecked)).with(&[Acquire, AcqRel]), imm("size", I32).values(Values::Of(&[128])).with(&[Acquire, AcqRel])]).facts(Fact::ORDERS).since(8, 3, 90).rules(&[has(&[Acquire, AcqRel]).excludes(&[Global, Shared, SharedCta]), has(&[AcqRel]).since(9, 1, 90)]),
    form(F::FenceProxyAsyncGeneric).name(&[key(&[Proxy]), key(&[AsyncGeneric]), req(&[Acquire, Release, AcqRel]), opt(&[SyncRestrictSharedCta, SyncRestrictSharedCluster, SyncRestrictSharedClusterRead]), MUST_SCOPE]).facts(Fact::ORDERS).since(8, 6, 90).rules(&[
        has(&[Acquire]).needs(&[SyncRestrictSharedCluster]), has(&[Release]).needs(&[SyncRestrictSharedCta, SyncRestrictSharedClusterRead]), has(&[Acquire]).needs(&[Cluster]),
        has(&[Release]).needs(&[Cta, Cluster]), has(&[Release]).lacks(&[SyncRestrictSharedClusterRead]).needs(&[Cluster]), has(&[SyncRestrictSharedClusterRead]).since(9, 4, 90), has(&[AcqRel]).since(9, 1, 90),
    ]),
    form(F::FenceSyncRestrict).name(&[req(&[Acquire, Release]), req(&[SyncRestrictSharedCta, SyncRestrictSharedCluster]), req(&[Cluster])]).facts(Fact::ORDERS).since(8, 6, 90).rules(&[
        has(&[Acquire]).needs(&[SyncRestrictSharedCluster]), has(&[Release]).needs(&[SyncRestrictSharedCta]),
    ]),
    form(F::FenceMbarrierInit).name(&[req(&[MbarrierInit]), req(&[Release]), req(&[Cluster]), opt(&[SyncRestrictSharedCta, SyncRestrictSharedCluster])]).facts(Fact::ORDERS).since(8, 0, 90).rules(&[has(&[SyncRestrictSharedCta, SyncRestrictSharedCluster]).since(8, 6, 90)]),
    form(F::BarrierCluster).name(&[key(&[Cluster]), key(&[Arrive, Wait]), opt(&[Acquire, Release, Relaxed]), opt(&[Aligned])]).facts(BARRIER).since(7, 8, 90).rules(&[
        has(&[Arrive]).excludes(&[Acquire]), has(&[Wait]).excludes(&[Release, Relaxed]), has(&[Acquire, Release, Relaxed]).since(8, 0, 90),
    ]),
];
