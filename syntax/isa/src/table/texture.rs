//! Textures and surfaces.

use super::prelude::*;

const GEOMETRY: &[Mod] = &[D1d, D2d, D3d, A1d, A2d, Cube, Acube, D2dms, A2dms];
const TEXEL: TypeSet = t![U32 S32 F32 F16 F16x2];
const CLAMP: Group = req(&[Trap, Clamp, Zero]);
const SURFACE: Group = req(&[D1d, D2d, D3d, A1d, A2d]);
const SURFACE_TYPES: TypeSet = t![B8 B16 B32 B64];
const SURFACE_RULES: &[Rule] = &[
    has(&[V4]).types(t![B8 B16 B32]),
    has(&[D3d]).since(3, 0, 20),
    has(&[A1d, A2d]).since(3, 0, 20),
    has(&[Clamp, Zero]).since(2, 0, 10),
    has(&[Ca, Cg, Cs, Cv, Wb, Wt]).since(2, 0, 20),
];

#[rustfmt::skip]
pub(super) const ROWS: &[Form] = &[
    form(F::Tex).name(&[UNI, opt(&[Base, Level, Grad]).at(Place::Leading), req(GEOMETRY), req(&[V2, V4])]).ty(&[TEXEL, t![S32 F32]]).ops(&[dst_vector("d", T0).pair(), texture("a"), src_vector("lod", T1).when(Presence::OptionalWith(&[Level, Grad])), src_vector("dPdy", T1).when(Presence::OptionalWith(&[Grad])), src_vector("e", FREE).optional(), src("f", is(ScalarType::F32)).optional()]).facts(Fact::READS).rules(&[
        has(&[V2]).types(t![F16x2]), on(t![F16x2]).needs(&[V2]), on(t![F16 F16x2]).since(4, 2, 53), has(&[Cube, Acube]).since(3, 0, 10), has(&[Grad, Level, Base]).since(3, 1, 20),
        has(&[Level, Cube, Acube]).types_at(1, F32), has(&[D2dms, A2dms]).types_at(1, t![S32]), has(&[D2dms, A2dms]).since(3, 2, 30), has(&[D2dms, A2dms]).excludes(&[Level, Grad]),
    ]),
    form(F::Tld4).name(&[UNI, req(&[R, G, B, A]), req(&[D2d, A2d, Cube, Acube]), req(&[V4])]).ty(&[t![U32 S32 F32], F32]).ops(&[dst_vector("d", T0).pair(), texture("a"), src_vector("e", FREE).optional(), src("f", is(ScalarType::F32)).optional()]).facts(Fact::READS).since(2, 2, 20).rules(&[has(&[A2d, Cube, Acube]).since(4, 3, 30)]),
    form(F::Txq).name(&[req(&[Width, Height, Depth, ChannelDataType, ChannelOrder, NormalizedCoords, ForceUnnormalizedCoords, FilterMode, AddrMode0, AddrMode1, AddrMode2, ArraySize, NumMipmapLevels, NumSamples]), opt(&[Level])]).ty(&[B32]).ops(&[dst("d", TB32), addr("a"), src("lod", TU32).with(&[Level])]).facts(Fact::READS).since(1, 5, 10).rules(&[
        has(&[Level]).needs(&[Width, Height, Depth]), has(&[Level]).since(4, 3, 30), has(&[ArraySize, NumMipmapLevels]).since(4, 1, 10), has(&[NumSamples]).since(4, 1, 30), has(&[ForceUnnormalizedCoords]).since(3, 1, 10),
    ]),
    form(F::Istypep).ty(&[t![TexRef SamplerRef SurfRef]]).ops(&[dst_pred("p"), src_any("a", FREE)]).since(4, 0, 30),
    form(F::Suld).name(&[key(&[B]), SURFACE, opt(&[Ca, Cg, Cs, Cv]), opt(&[V2, V4]), CLAMP]).ty(&[SURFACE_TYPES]).ops(&[dst_vector("d", T0), texture("a")]).facts(Fact::READS).since(1, 5, 10).rules(SURFACE_RULES),
    form(F::Sust).name(&[key(&[B]), SURFACE, opt(&[Wb, Cg, Cs, Wt]), opt(&[V2, V4]), CLAMP]).ty(&[SURFACE_TYPES]).ops(&[texture("a"), src_vector("c", T0)]).facts(Fact::WRITES).since(1, 5, 10).rules(SURFACE_RULES),
    form(F::SustFormatted).name(&[key(&[P]), SURFACE, opt(&[V2, V4]), CLAMP]).ty(&[t![U32 S32 B32 F32]]).ops(&[texture("a"), src_vector("c", T0)]).facts(Fact::WRITES).since(2, 0, 20).rules(&[has(&[D3d]).since(3, 0, 20), has(&[A1d, A2d]).since(4, 1, 30)]),
    form(F::Sured).name(&[key(&[B, P]), req(&[Add, Min, Max, And, Or]), req(&[D1d, D2d, D3d]), CLAMP]).ty(&[t![U32 U64 S32 B32 S64 B64]]).ops(&[texture("a"), src("c", T0)]).facts(Fact::READS.or(Fact::WRITES)).since(2, 0, 20).rules(&[
        has(&[Add]).types(t![U32 U64 S32 B32 B64]), has(&[And, Or]).types(B32_64), has(&[P]).types(B32_64), has(&[B]).lacks(&[And, Or]).types(t![U32 S32 U64 S64]),
        has(&[Min, Max]).on(t![U64 S64 B64]).since(8, 1, 50), has(&[D3d]).since(3, 0, 20),
    ]),
    form(F::Suq).name(&[req(&[Width, Height, Depth, ChannelDataType, ChannelOrder, ArraySize, MemoryLayout])]).ty(&[B32]).ops(&[dst("d", TB32), addr("a")]).facts(Fact::READS).since(1, 5, 10).rules(&[has(&[ArraySize]).since(4, 1, 10), has(&[MemoryLayout]).since(4, 2, 10)]),
];
