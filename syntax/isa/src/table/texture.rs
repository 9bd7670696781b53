//! Textures and surfaces.

use super::prelude::*;

const GEOMETRY: &[Mod] = &[D1d, D2d, D3d, A1d, A2d, Cube, Acube, D2dms, A2dms];
const TEXEL: TypeSet = t![U32 S32 F32 F16 F16x2];
const UNCHECKED: crate::Base = crate::Base::of(Window::Unchecked);
const TF32: OperandType = is(ScalarType::F32);
const SAMPLED: Operand = texture("a", OperandType::Coordinates(1), Lanes::OrBare(&[1, 2, 4]));
const GRADIENT: Operand = src_vector("dPdy", TF32).class(Class::VECTOR).lanes(Lanes::Of(&[1]));
/// The assembler also accepts one value without braces for all elements.
const OFFSETS: Operand = src_vector("e", I32).lanes(Lanes::OrBare(&[1, 2, 4])).optional().since(4, 3, 30);
const DEPTH: Operand = src("f", TF32).optional().since(4, 3, 30);
/// The numbers of elements of coordinates, gradients and offsets. Vectors have one, two or four elements.
macro_rules! texture_rules {
    ($($more:expr),* $(,)?) => { &[
        has(&[D2d, A1d]).lanes("a", Lanes::OrBare(&[2, 4])),
        has(&[D3d, A2d, Cube, Acube, D2dms, A2dms]).lanes("a", Lanes::OrBare(&[4])),
        has(&[D2d, A2d, D2dms, A2dms]).lanes("e", Lanes::OrBare(&[2, 4])),
        has(&[Cube, Acube]).lanes("e", Lanes::OrBare(&[])),
        has(&[Uni]).since(3, 2, 10),
        $($more),*
    ] };
}
const CLAMP: Group = req(&[Trap, Clamp, Zero]);
const SURFACE: Group = req(&[D1d, D2d, D3d, A1d, A2d]);
const SURFACE_TYPES: TypeSet = t![B8 B16 B32 B64];
macro_rules! surface_rules {
    ($($more:expr),* $(,)?) => { &[
        has(&[D2d, A1d]).lanes("a", Lanes::OrBare(&[2, 4])),
        has(&[D3d, A2d]).lanes("a", Lanes::OrBare(&[4])),
        has(&[V4]).types(t![B8 B16 B32]),
        has(&[D3d]).since(3, 0, 20),
        has(&[A1d, A2d]).since(3, 0, 20),
        has(&[Clamp, Zero]).since(2, 0, 10),
        has(&[Ca, Cg, Cs, Cv, Wb, Wt]).since(2, 0, 20),
        $($more),*
    ] };
}

#[rustfmt::skip]
pub(super) const ROWS: &[Form] = &[
    form(F::Tex).name(&[UNI, opt(&[Base, Level, Grad]).at(Place::Leading), req(GEOMETRY), req(&[V2, V4])]).ty(&[TEXEL, t![S32 F32]]).ops(&[dst_vector("d", T0).braces(Lanes::Named(1)).pair(), SAMPLED, src_vector("lod", TF32).lanes(Lanes::Any).with(&[Level, Grad]), GRADIENT.with(&[Grad]), OFFSETS, DEPTH]).facts(Fact::READS).rules(texture_rules![
        has(&[Grad]).operand("lod", Column::Class(Class::VECTOR)), has(&[Grad]).and(&[D1d, A1d]).lanes("lod", Lanes::Of(&[1])),
        has(&[Grad]).and(&[D2d, A2d]).lanes("lod", Lanes::Of(&[2])), has(&[D2d, A2d]).lanes("dPdy", Lanes::Of(&[2])), has(&[Grad]).and(&[D3d]).lanes("lod", Lanes::Of(&[4])), has(&[D3d]).lanes("dPdy", Lanes::Of(&[4])), has(&[Cube, Acube]).lanes("dPdy", Lanes::Of(&[1, 2, 4])),
        has(&[D3d]).operand("e", Column::Class(Class::IMMEDIATE.or(Class::VECTOR))), has(&[D3d]).lanes("e", Lanes::OrBare(&[4])), has(&[D3d, D2dms, A2dms]).operand("f", Column::Presence(Presence::Never)),
        has(&[V2]).types(t![F16x2]), on(t![F16x2]).needs(&[V2]), on(t![F16 F16x2]).since(4, 2, 53), has(&[Cube]).since(3, 0, 10), has(&[Acube]).since(3, 0, 20), has(&[A1d, A2d]).since(2, 3, 10), has(&[Grad]).and(&[Cube, Acube]).since(4, 3, 20), has(&[Grad, Level, Mod::Base]).since(3, 1, 20),
        has(&[Level]).operand("lod", Column::Type(T1)), has(&[Cube, Acube]).types_at(1, F32), has(&[D2dms, A2dms]).types_at(1, t![S32]), has(&[D2dms, A2dms]).since(3, 2, 30), has(&[D2dms, A2dms]).excludes(&[Level, Grad]),
    ]),
    form(F::Tld4).name(&[UNI, req(&[R, G, B, A]), req(&[D2d, A2d, Cube, Acube]), req(&[V4])]).ty(&[t![U32 S32 F32], F32]).ops(&[dst_vector("d", T0).braces(Lanes::Named(1)).pair(), SAMPLED, OFFSETS, DEPTH]).facts(Fact::READS).since(2, 2, 20).rules(texture_rules![has(&[A2d, Cube, Acube]).since(4, 3, 30)]),
    form(F::Txq).name(&[req(&[Width, Height, Depth, ChannelDataType, ChannelOrder, NormalizedCoords, ForceUnnormalizedCoords, FilterMode, AddrMode0, AddrMode1, AddrMode2, ArraySize, NumMipmapLevels, NumSamples, MemoryLayout]), opt(&[Level])]).ty(&[B32]).ops(&[dst("d", TB32), addr_at("a", UNCHECKED), src_vector("lod", I32).lanes(Lanes::Any).with(&[Level])]).facts(Fact::READS).since(1, 5, 10).rules(&[has(&[MemoryLayout]).since(4, 2, 10), 
        has(&[Level]).needs(&[Width, Height, Depth]), has(&[Level]).since(4, 3, 30), has(&[ArraySize, NumMipmapLevels]).since(4, 1, 10), has(&[NumSamples]).since(4, 1, 30), has(&[ForceUnnormalizedCoords]).since(3, 1, 10),
    ]),
    form(F::Istypep).ty(&[t![TexRef SamplerRef SurfRef]]).ops(&[dst_pred("p"), src("a", I64)]).since(4, 0, 30),
    form(F::Suld).name(&[key(&[B]), SURFACE, opt(&[Ca, Cg, Cs, Cv]), opt(&[V2, V4]), CLAMP]).ty(&[SURFACE_TYPES]).ops(&[dst_vector("d", T0).lanes(Lanes::Any), texture("a", I32, Lanes::OrBare(&[1, 2, 4]))]).facts(Fact::READS).since(1, 5, 10).rules(surface_rules![has(&[V2, V4]).lanes("d", Lanes::Named(1))]),
    form(F::Sust).name(&[key(&[B]), SURFACE, opt(&[Wb, Cg, Cs, Wt]), opt(&[V2, V4]), CLAMP]).ty(&[SURFACE_TYPES]).ops(&[texture("a", I32, Lanes::OrBare(&[1, 2, 4])), src_vector("c", T0).lanes(Lanes::Any)]).facts(Fact::WRITES).since(1, 5, 10).rules(surface_rules![has(&[V2]).lanes("c", Lanes::Of(&[1, 2])), has(&[V4]).lanes("c", Lanes::Of(&[1, 4]))]),
    // The manual lists more types, which the assembler rejects.
    form(F::SustFormatted).name(&[key(&[P]), SURFACE, opt(&[Wb, Cg, Cs, Wt]), opt(&[V2, V4]), CLAMP]).ty(&[B32]).ops(&[texture("a", I32, Lanes::OrBare(&[1, 2, 4])), src_vector("c", T0).lanes(Lanes::Any)]).facts(Fact::WRITES).since(2, 0, 20).rules(&[has(&[V2]).lanes("c", Lanes::Of(&[1, 2])), has(&[V4]).lanes("c", Lanes::Of(&[1, 4])), has(&[D2d, A1d]).lanes("a", Lanes::OrBare(&[2, 4])), has(&[D3d, A2d]).lanes("a", Lanes::OrBare(&[4])), has(&[D3d]).since(3, 0, 20), has(&[A1d, A2d]).since(4, 1, 30)]),
    form(F::Sured).name(&[key(&[B, P]), req(&[Add, Min, Max, And, Or]), req(&[D1d, D2d, D3d]), CLAMP]).ty(&[t![U32 U64 S32 B32 S64 B64]]).ops(&[texture("a", I32, Lanes::OrBare(&[1, 2, 4])), src("c", T0)]).facts(Fact::READS.or(Fact::WRITES)).since(2, 0, 20).rules(&[
        has(&[D2d]).lanes("a", Lanes::OrBare(&[2, 4])), has(&[D3d]).lanes("a", Lanes::OrBare(&[4])),
        has(&[Add]).types(t![U32 U64 S32 B32 B64]), has(&[And, Or]).types(B32_64), has(&[P]).types(B32_64), has(&[P]).lacks(&[Min, Max]).types(B32), has(&[B]).lacks(&[And, Or]).types(t![U32 S32 U64 S64]),
        has(&[Min, Max]).on(t![U64 S64 B64]).since(8, 1, 50), has(&[D3d]).since(3, 0, 20),
    ]),
    form(F::Suq).name(&[req(&[Width, Height, Depth, ChannelDataType, ChannelOrder, ArraySize, MemoryLayout])]).ty(&[B32]).ops(&[dst("d", TB32), addr_at("a", UNCHECKED)]).facts(Fact::READS).since(1, 5, 10).rules(&[has(&[ArraySize]).since(4, 1, 10), has(&[MemoryLayout]).since(4, 2, 10)]),
];
