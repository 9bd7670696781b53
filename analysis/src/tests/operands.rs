//! Operands that ptxas accepts or rejects although the manual does not say so, one instruction each.

use crate::db::Database;
use crate::diagnostic::Severity;
use crate::ide;

/// The codes of the errors in a kernel for `target` with this statement.
fn errors(target: &str, statement: &str) -> Vec<&'static str> {
    let text = format!(
        ".version 9.0\n.target {target}\n.address_size 64\n\
         .global .align 128 .b8 g[512]; .shared .align 128 .b8 s[512]; .const .b8 c[64]; .global .texref t; .global .surfref f;\n\
         .func fn() {{ ret; }}\n\
         .visible .entry k(.param .u64 a)\n{{\n\
         .reg .pred %p<4>; .reg .b8 %c<4>; .reg .b16 %h<5>; .reg .b32 %r<9>; .reg .u32 %ur<4>; .reg .f32 %f<9>; \
         .reg .f16x2 %fx<5>; .reg .b64 %d<9>; .reg .u64 %ud<4>; .reg .f64 %g<9>; .reg .b128 %q<2>;\n\
         {statement}\nret;\n}}\n"
    );
    let db = Database::default();
    let file = db.add_file(text.as_str());
    let found = ide::diagnostics(&db, file);
    found.iter().filter(|d| d.severity == Severity::Error).map(|d| d.lint.code).collect()
}

#[track_caller]
fn check(target: &str, taken: &[&str], refused: &[(&str, &str)]) {
    for statement in taken {
        assert_eq!(errors(target, statement), Vec::<&str>::new(), "{statement}");
    }
    for (statement, code) in refused {
        assert_eq!(errors(target, statement).first(), Some(code), "{statement}");
    }
}

#[test]
fn a_register_with_an_offset_is_read_whatever_its_width() {
    check(
        "sm_80",
        &["mov.u64 %ud1, %r1+4;", "add.s32 %r1, %r2, %d1+4;", "bar.sync g+4;"],
        &[
            ("mov.u32 %r1, %f1+4;", "E0303"),
            ("mov.f32 %f1, %f2+4;", "E0103"),
            ("add.f64 %g1, %g2, %f1+4;", "E0103"),
            ("and.pred %p1, %p2, %p3+1;", "E0103"),
            ("mov.b128 %q0, %q1+4;", "E0103"),
            ("shl.b64 %d1, %d2, %d1+4;", "E0303"),
            ("add.s32 %r1+4, %r2, %r3;", "E0302"),
            ("st.global.v2.u32 [%d1], {%r1+4, %r2};", "E0103"),
            ("div.s64 %d1, %d2, %d1+4;", "E0303"),
            ("barrier.sync g+4;", "E0302"),
        ],
    );
}

#[test]
fn the_second_half_of_a_pair_may_be_unwanted() {
    check(
        "sm_90",
        &[
            "rsqrt.approx.f32 %f1|_, %f2;",
            "setp.lt.s32 %p1|_, %r1, %r2;",
            "match.any.sync.b32 %r1|_, %r2, %r3;",
        ],
        &[
            ("setp.lt.s32 _|_, %r1, %r2;", "E0302"),
            ("lop3.and.b32 %r1|_, %r2, %r3, %r4, 1, %p1;", "E0302"),
            ("lop3.and.b32 _|_, %r2, %r3, %r4, 1, %p1;", "E0302"),
            ("tex.2d.v4.f32.f32 _|%p1, [t, {%f5, %f6}];", "E0302"),
        ],
    );
}

#[test]
fn one_element_in_braces_is_no_vector_of_two() {
    check(
        "sm_90",
        &[
            "sust.b.1d.v2.b32.trap [f, {%r1}], 5;",
            "sust.b.1d.b32.trap [f, {%r1}], {%h1, %h2};",
            "mov.v2.u16 {%h1, %h2}, %h3;",
        ],
        &[
            ("sust.b.1d.v2.b32.trap [f, {%r1}], {%r1};", "E0307"),
            ("mov.v2.u16 {%h1, %h2}, {%h3};", "E0307"),
            ("mov.v2.u16 {%h1, %h2}, {%h1, %h2, %h3, %h4};", "E0307"),
            ("suld.b.1d.b32.trap %r1, [f];", "E0302"),
            ("suq.width.b32 %r1, [f+4];", "E0306"),
        ],
    );
}

#[test]
fn vectors_of_constants_have_the_type_of_the_instruction() {
    check(
        "sm_90",
        &["st.global.v2.f32 [%d1], {0.0, 1.0};", "st.global.v2.b32 [%d1], {0f00000000, 0f00000000};"],
        &[
            ("st.global.v2.f32 [%d1], {1, 2};", "E0304"),
            ("st.global.v2.u32 [%d1], {0.0, 0.0};", "E0304"),
            ("mov.b64 %d1, {0.0, 0.0};", "E0304"),
        ],
    );
}

#[test]
fn copied_addresses_have_32_or_64_bits() {
    check(
        "sm_100a",
        &[
            "red.async.release.gpu.global.add.u32 [%d1], %r1;",
            "st.bulk.weak.shared::cta [%r1], %ur1, 0;",
            "st.bulk.weak [g], 64, 0;",
            "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [%h1];",
            "tcgen05.cp.cta_group::1.4x256b [%fx1], 5;",
        ],
        &[
            ("red.async.release.gpu.global.add.u32 [%h1], %r1;", "E0306"),
            ("red.async.release.gpu.global.add.u32 [t], %r1;", "E0306"),
            ("st.bulk.weak.shared::cta [%r1], %r1, 0;", "E0303"),
            ("st.bulk.weak.shared::cta [s], 64, 0;", "E0306"),
            ("ldmatrix.sync.aligned.m8n8.x1.b16 {%r1}, [%h1];", "E0306"),
            ("wmma.load.a.sync.aligned.row.m16n16k16.shared.s8 {%r1, %r2}, [%h1];", "E0306"),
            ("tcgen05.cp.cta_group::1.4x256b [%d1], %d2;", "E0306"),
            ("tcgen05.cp.cta_group::1.4x256b [g], %d2;", "E0306"),
        ],
    );
}

#[test]
fn a_tensor_map_is_a_global_variable_or_a_register() {
    let copy = |map: &str| {
        format!(
            "cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], {map}, [%r2];"
        )
    };
    for map in ["[%d1, {%r1}]", "[g, {%r1}]"] {
        assert_eq!(errors("sm_90a", &copy(map)), Vec::<&str>::new(), "{map}");
    }
    for map in ["[%d1, %r1]", "[g+64, {%r1}]", "[%d1+64, {%r1}]", "[64, {%r1}]", "[%d1, %d1, {%r1}]"] {
        assert_eq!(errors("sm_90a", &copy(map)), ["E0306"], "{map}");
    }
    for map in ["[c, {%r1}]", "[s, {%r1}]", "[a, {%r1}]"] {
        assert_eq!(errors("sm_90a", &copy(map)), ["E0308"], "{map}");
    }
}

#[test]
fn factors_of_warp_groups() {
    let product = |a: &str, rest: &str| {
        format!(
            "wgmma.mma_async.sync.m64n8k16.f32.f16.f16 {{%f1, %f2, %f3, %f4}}, {a}, %d2, %p1, 1, 1, {rest};"
        )
    };
    assert_eq!(errors("sm_90a", &product("%d1", "0, 0")), Vec::<&str>::new());
    assert_eq!(errors("sm_90a", &product("5", "0, 0")), Vec::<&str>::new());
    assert_eq!(errors("sm_90a", &product("{%r1, %r2, %r3, %r4}", "0")), Vec::<&str>::new());
    assert_eq!(errors("sm_90a", &product("{%r1, %r2, %r3, %r4}", "0, 0")), ["E0301"]);
    assert_eq!(errors("sm_90a", &product("%d1", "0")), ["E0301"]);
    assert_eq!(errors("sm_90a", &product("{%r1}", "0")), ["E0307"]);
}

#[test]
fn operands_that_conversions_and_arrivals_need() {
    check(
        "sm_90",
        &["cvt.rn.satfinite.e4m3x2.f32 %h1, %f1, %f2;", "mbarrier.arrive.shared.b64 _, [%r1], %r2;"],
        &[
            ("cvt.rn.satfinite.e4m3x2.f32 %h1, %f1;", "E0301"),
            ("mbarrier.arrive.shared.b64 [%r1], %r2;", "E0302"),
            ("cvt.rna.tf32.f32 %r1, %d1;", "E0303"),
            ("barrier.aligned.arrive 1, 64;", "E0211"),
        ],
    );
}

#[test]
fn special_registers_are_addresses_where_nothing_asks_what_they_are() {
    check(
        "sm_100a",
        &[
            "ld.global.u32 %r1, [%clock];",
            "st.shared.u32 [%clock64+4], %r1;",
            "multimem.red.relaxed.gpu.global.add.u32 [%clock64], %r1;",
            "tcgen05.alloc.cta_group::1.sync.aligned.b32 [%laneid], 32;",
        ],
        &[
            ("add.u32 %r1, %r2, [%clock];", "E0306"),
            ("mbarrier.arrive.shared.b64 _, [%clock];", "E0306"),
            ("txq.width.b32 %r1, [%clock64];", "E0306"),
            ("prefetchu.L1 [%clock64];", "E0306"),
            ("multimem.red.relaxed.gpu.global.add.u32 [%clock], %r1;", "E0306"),
            ("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%clock], 32;", "E0306"),
            ("tcgen05.mma.cta_group::1.kind::f16 [%clock], %d1, %d2, %r1, %p1;", "E0306"),
            ("tex.1d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%clock64];", "E0306"),
        ],
    );
}

#[test]
fn the_fourth_component_is_a_special_register() {
    check(
        "sm_90",
        &["mov.u32 %r1, %tid.w;", "mov.b16 %h1, %ntid.w;", "mov.b64 %d1, {%tid.w, %r1};"],
        &[("mov.u64 %d1, %tid.w;", "E0303"), ("add.u32 %r1, %tid.w, 1;", "E0302")],
    );
}

#[test]
fn elements_of_arrays_are_addresses_of_loads_and_stores() {
    check(
        "sm_90",
        &["ld.global.u32 %r1, g[4];", "st.shared.u32 s[4], %r1;"],
        &[
            ("ld.global.u32 %r1, g;", "E0302"),
            ("ld.global.u32 %r1, s[4];", "E0308"),
            ("atom.global.add.u32 %r1, g[4], %r2;", "E0302"),
        ],
    );
}

#[test]
fn offsets_and_depths_of_textures() {
    check(
        "sm_90",
        &[
            "tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [t, {%f5, %f6}], 5;",
            "tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [t, {%f5, %f6}], %r1, %f5;",
            "tex.1d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [t, {%f5}], %f6;",
            "tex.cube.v4.f32.f32 {%f1, %f2, %f3, %f4}, [t, {%f5, %f6, %f7, %f8}], 5, %f1;",
            "tex.3d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [t, %f5];",
            "suld.b.2d.b32.trap %r1, [f, %r2];",
        ],
        &[
            ("tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [t, {%f5, %f6}], {5};", "E0307"),
            ("tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [t, {%f5, %f6}], {%r1, %r2}, 5;", "E0304"),
            ("tex.1d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [t, %ur1];", "E0303"),
            ("tex.grad.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [t, {%f5, %f6}], {%f1}, {%f1, %f2};", "E0307"),
            ("suld.b.1d.b32.trap %r1, [f, %f2];", "E0303"),
            ("suld.b.1d.b32.trap %r1, [%d1, %d2, {%r2}];", "E0309"),
            ("tex.1d.v2.f16x2.f32 {%r1, _}, [t, {%f1}];", "E0302"),
        ],
    );
}

#[test]
fn an_array_index_has_nothing_in_common_with_the_coordinates() {
    check(
        "sm_90",
        &[
            "tex.a1d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [t, {%ur1, %f5}];",
            "tex.a1d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [t, {1, %f5}];",
            "tex.a2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [t, {%r1, %f5, %f6, 1.0}];",
            "tex.a1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [t, {%r1, 1}];",
            "tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [t, {%ur1, %ur2}];",
            "tex.a2d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [t, {%r1, %f5, %f6, %f7}];",
            "tex.a1d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [t, {%ur1, %fx1}];",
            "tex.2d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [t, {%fx1, %fx2}];",
        ],
        &[
            ("tex.a1d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [t, {%f1, %f5}];", "E0303"),
            ("tex.a1d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [t, {1.0, %f5}];", "E0303"),
            ("tex.a1d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [t, {1, 1}];", "E0303"),
            ("tex.a2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [t, {%r1, %f5, %f6, 1}];", "E0303"),
            ("tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [t, {1, %f5}];", "E0303"),
            ("tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [t, {1, 1}];", "E0303"),
            ("tex.2d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [t, {1.0, 1.0}];", "E0303"),
            ("tex.a1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [t, {%r1, %h2}];", "E0303"),
            ("tex.a2d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [t, {%r1, %f5, %fx1, %f7}];", "E0303"),
            ("tex.2d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [t, {%f5, %f6}];", "E0303"),
            ("tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [t, {%fx1, %fx2}];", "E0303"),
            ("sust.b.1d.v2.b64.clamp [f, {1.0}], {%d1, %d2};", "E0303"),
        ],
    );
}

#[test]
fn neighbors_in_a_vector_agree() {
    check(
        "sm_90",
        &[
            "st.global.v4.b32 [%d1], {%f1, %r1, %ur1, %r2};",
            "st.global.v4.f32 [%d1], {%r1, %r2, %r3, 1};",
            "mov.b64 %d1, {%r1, %p1};",
        ],
        &[
            ("st.global.v4.b32 [%d1], {%r1, %f1, %ur1, %r2};", "E0303"),
            ("st.global.v4.f32 [%d1], {%r1, %f1, %f2, 1};", "E0303"),
            ("ld.global.v4.b32 {%r1, %f1, %ur1, %r2}, [%d1];", "E0303"),
            ("mov.b64 %d1, {%ur1, %p1};", "E0303"),
        ],
    );
}

#[test]
fn operators_of_operands() {
    check(
        "sm_90",
        &[
            "or.pred %p1, !%p2, %p1;",
            "vmad.s32.s32.u32 %r1, %r2, -%r3, %r4;",
            "vmad.s32.s32.u32 %r1, %r2, -%r3.b0, %r4;",
        ],
        &[
            ("or.pred %p1, -%p2, %p1;", "E0305"),
            ("and.pred %p1, ~%p2, %p1;", "E0305"),
            ("selp.b32 %r1, 1, 2, -%p1;", "E0305"),
            ("vadd.s32.s32.s32 %r1, ~%r1, %r2;", "E0305"),
            ("vsub.s32.u32.s32 %r1, !%r2.h0, %r3;", "E0305"),
            ("vmad.s32.s32.u32 %r1, %r2, -fn, %r4;", "E0305"),
            ("add.u32 %r1, -%r2, %r3;", "E0305"),
        ],
    );
}

#[test]
fn words_that_every_instruction_takes() {
    check(
        "sm_90",
        &[
            "add.rank.u32 %r1, %r2, %r3;",
            "add.normal.acc::f16.rank.u32 %r1, %r2, %r3;",
            "fma.rn.b8x16.f32 %f1, %f2, %f3, %f4;",
            "add.f32.texref %f1, %f2, %f3;",
            "abs.bf16 %h1, {%h2, %h3};",
            "ret.normal;",
        ],
        &[
            ("add.rank.box_dim.u32 %r1, %r2, %r3;", "E0211"),
            ("add.normal.finite.u32 %r1, %r2, %r3;", "E0211"),
            ("mov.texref.u32 %r1, %r2;", "E0211"),
            ("mul24.rank.lo.u32 %r1, %r2, %r3;", "E0211"),
            ("set.eq.and.bf16.f32 %h1, %f1, %f2, 1;", "E0302"),
        ],
    );
}

#[test]
fn sums_of_what_is_expanded() {
    check(
        "sm_100a",
        &[
            "tcgen05.mma.cta_group::1.kind::f16 [%r1], %d1, %d2+4, 4+4, %p1;",
            "st.async.release.gpu.global.b16 [%d1], g+4;",
            "st.bulk [%d1], %r1+8, 0;",
            "createpolicy.fractional.L2::evict_last.b64 %d1, %r1+4;",
            "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32 {%r0, %r1, %r2, %r3}, {%r3, %r4}, {%r5, %r6}, {%r0, %r1, %r2, %r3}, %r7+4, 0;",
        ],
        &[
            (
                "mma.sp.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32 {%r0, %r1, %r2, %r3}, {%r3, %r4}, {%r5, %r6}, {%r0, %r1, %r2, %r3}, %r7+4, 0;",
                "E0303",
            ),
            ("tcgen05.mma.cta_group::1.kind::f16 [%r1], %d1, %d2, %r1+4, %p1;", "E0303"),
            ("tcgen05.mma.cta_group::1.kind::f16 [%r1], %d1, %d2, g+4, %p1;", "E0302"),
            ("tcgen05.mma.cta_group::1.kind::f16 [%ur1], %d1, %d2, %r1, %p1;", "E0306"),
            ("createpolicy.range.L2::evict_last.b64 %d1, [%d2], 4, g+4;", "E0302"),
            ("createpolicy.fractional.L2::evict_last.b64 %d1, fn;", "E0302"),
            ("createpolicy.fractional.L2::evict_last.b64 %d1, %d2+4;", "E0303"),
            ("createpolicy.fractional.L2::evict_last.b64 %d1, g+4;", "E0302"),
            ("st.async.release.gpu.global.b32 [%d1], g+4;", "E0302"),
            ("st.bulk [%d1], %r1, 0;", "E0303"),
            ("stackrestore.u64 %d1+4;", "E0303"),
        ],
    );
}

#[test]
fn sources_of_copies() {
    check(
        "sm_90",
        &[
            "cp.async.ca.shared.global [%r1], [%d1], 4, %r1;",
            "cp.async.ca.shared.global [%r1], [%d1], 4, %p1;",
            "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r1], [%r2], 64, %d1;",
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%d1], 4294967296, [%r2];",
        ],
        &[
            ("cp.async.ca.shared.global [%r1], [%d1], 4, 4, %p1;", "E0301"),
            ("cp.async.ca.shared.global [%r1], [%d1], 4, 4294967296;", "E0310"),
            (
                "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r1], [%r2], 64, %r1;",
                "E0303",
            ),
        ],
    );
}

#[test]
fn bfloats_in_braces() {
    check(
        "sm_90",
        &[
            "set.eq.bf16x2.bf16x2 {%r1, %r2}, %r2, %r3;",
            "set.eq.bf16.bf16 %h1, {%h2}, %h3;",
            "setp.eq.bf16x2 %p1|%p2, %r1, !%p3;",
            "tanh.approx.bf16 {%h1, %h2}, %h3;",
        ],
        &[
            ("set.eq.bf16x2.bf16x2 %r1, {%h1, %h2}, %r3;", "E0303"),
            ("set.eq.f16x2.f16x2 %r1, {%r1}, %r3;", "E0302"),
            ("setp.eq.bf16x2 %p1|%p2, %p3, %r1;", "E0303"),
            ("tanh.approx.bf16x2 {%r1, %r2}, %r3;", "E0302"),
            ("setp.eq.u32 !%p1|%p2, %r1, %r3;", "E0302"),
        ],
    );
}

#[test]
fn operands_of_video_instructions() {
    check(
        "sm_90",
        &["vadd.s32.s32.s32.add %r1, %r2, -WARP_SZ, %d1+4;", "vmad.s32.s32.s32 %r1, %r2, %r3, g+4;"],
        &[
            ("vadd.s32.s32.s32 %r1, %r2, %r3+4;", "E0302"),
            ("vmad.s32.s32.s32 %r1, g+4, %r3, %r4;", "E0302"),
            ("vadd.s32.s32.s32 %r1, !%r2, %r3;", "E0305"),
            ("vadd.s32.s32.s32 %r1, [%clock], %r3;", "E0306"),
        ],
    );
}

#[test]
fn pointers_to_unified_memory() {
    check(
        "sm_90",
        &["ld.global.u32 %r1, [%d1].unified;", "mbarrier.arrive.b64 %d1, [%d2].unified;"],
        &[
            ("mbarrier.arrive.shared.b64 %d1, [%r2].unified;", "E0211"),
            ("st.global.u32 [%d1].unified, %r1;", "E0211"),
        ],
    );
}

#[test]
fn factors_of_matrices() {
    let product = |name: &str, a: &str, b: &str| {
        format!("mma.{name} {{%f1, %f2, %f3, %f4}}, {a}, {b}, {{%f1, %f2, %f3, %f4}};")
    };
    let fp8 = "sync.aligned.m16n8k32.row.col.f32.e5m2.e5m2.f32";
    let bf16 = "sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32";
    let floats = "{%f1, %f2, %f3, %f4}";
    assert_eq!(errors("sm_89", &product(fp8, floats, "{%r1, %r2}")), Vec::<&str>::new());
    assert_eq!(errors("sm_89", &product(bf16, floats, "{%r1, %r2}")), ["E0303"]);
    check(
        "sm_90",
        &[
            "mma.v2.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%r1, %r2}, {%r3, %r4}, {%r5, %r6}, {%r7, %r8}, %r1, 0;",
        ],
        &[
            (
                "mma.v2.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%r1, %r2}, {%r1, %r2}, {%r3}, {%r4, %r5};",
                "E0307",
            ),
            (
                "mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%r1, %r2, %r3, %r4}, {4, 5}, {%r3}, {%r1, %r2, %r3, %r4};",
                "E0304",
            ),
            ("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%r1], {4, 5};", "E0304"),
        ],
    );
    check(
        "sm_80",
        &[
            "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%g1, %g2}, {5}, {%g3}, {%g1, %g2};",
            "mma.sync.aligned.m8n8k32.row.col.s32.s4.s4.s32 {%r1, %r2}, {%f1}, {0f3F800000}, {1, 2};",
            "wmma.mma.sync.aligned.row.col.m32n8k16.s32.s4.s4.s32 {%r1, %r2}, {%r3}, {%r4, %r5}, {%r1, %r2, %r3, %r4};",
            "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2}, {%r3}, {0f00000000, 0f00000000, 0f00000000, 0f00000000};",
        ],
        &[
            (
                "wmma.mma.sync.aligned.row.col.m8n8k4.f64.f64.f64.f64 {%g1, %g2}, {5}, {%g3}, {%g1, %g2};",
                "E0304",
            ),
            ("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%r1, %r2}, {%r3}, {5}, {%r1, %r2};", "E0304"),
            (
                "wmma.mma.sync.aligned.row.col.m32n8k16.s32.s4.s4.s32 {%r1}, {%r3}, {%r4}, {%r1, %r2};",
                "E0307",
            ),
            (
                "wmma.mma.sync.aligned.row.col.m8n8k32.s32.s4.s4.s32 {%r1, %r2}, {%r3, %r4}, {%r4}, {%r1, %r2};",
                "E0307",
            ),
            ("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%r1, %r2}, {%f1}, {%r4}, {%r1, %r2};", "E0303"),
            (
                "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2}, {%r3}, {0.0, 0.0, 0.0, 0.0};",
                "E0304",
            ),
        ],
    );
}

#[test]
fn stores_without_a_count() {
    check(
        "sm_90",
        &["st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r1], {%r2, %r3}, [%r4];"],
        &[
            ("st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r1], {%r2, %r3}, [%r4];", "E0307"),
            ("sust.p.1d.u32.trap [f, {%r1}], %r2;", "E0211"),
        ],
    );
}

#[test]
fn arguments_of_calls_have_no_address() {
    check(
        "sm_90",
        &["{ .local .b32 x; mov.b64 %d1, x; }", "mov.b64 %d1, a;"],
        &[
            ("{ .param .b32 x; mov.b64 %d1, x; }", "E0306"),
            ("{ .param .b32 x; cvta.param.u64 %d1, x; }", "E0306"),
        ],
    );
}

#[test]
fn conversions_and_addresses_of_what_has_none() {
    check(
        "sm_100",
        &[
            "cvt.rn.f16x2.f32 %r1, %d1, %f2;",
            "add.rn.f32.bf16 %f1, {%h1, %h2}, %f3;",
            "cvta.to.global.u64 %d1, g+4;",
            "cvt.f32.bf16 %f1, {%h1, %h2};",
        ],
        &[
            ("cvt.rn.bf16x2.f32 %r1, %d1, %f2;", "E0303"),
            ("add.rn.f32.f16 %f1, {%h1, %h2}, %f3;", "E0302"),
            ("cvta.global.u64 %d1, fn;", "E0306"),
            ("cvt.f32.f16 %f1, {%h1, %h2};", "E0302"),
        ],
    );
}

#[test]
fn integers_in_vectors_of_floats() {
    check(
        "sm_90",
        &[
            "ld.global.v2.f32 {%ur1, %ur2}, [%d1];",
            "tex.1d.v4.f32.f32 {%ur1, %ur2, %ur3, _}, [t, {%f1}];",
            "red.global.v2.f32.add [%d1], {%ur1, %ur2};",
        ],
        &[
            ("ld.global.v2.f32 {%fx1, %fx2}, [%d1];", "E0303"),
            ("ld.global.v2.f32 {%ud1, %ud2}, [%d1];", "E0303"),
            ("ld.global.v2.u32 {%f1, %f2}, [%d1];", "E0303"),
            ("ld.global.f32 %ur1, [%d1];", "E0303"),
            ("tex.grad.1d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [t, {%f1}], {%ur1}, {%f1};", "E0303"),
        ],
    );
}

#[test]
fn integer_products_with_disabled_lanes_are_scaled_by_constants_alone() {
    const LANES: &str = "{%r2, %r3, %r4, %r5}";
    let dense = |rest: &str| format!("tcgen05.mma.cta_group::1.kind::i8 [%r0], %d1, %d2, %r1, {rest};");
    let sparse =
        |rest: &str| format!("tcgen05.mma.sp.cta_group::1.kind::i8 [%r0], %d1, %d2, [%r6], %r1, {rest};");
    for name in [dense("%p1, !%p2"), dense(&format!("{LANES}, %p1, 5")), sparse("%p1, 5"), sparse("%p1, %p2")]
    {
        check("sm_100a", &[&name], &[]);
    }
    for name in [dense(&format!("{LANES}, %p1, %p2")), sparse(&format!("{LANES}, %p1, 5"))] {
        check("sm_100a", &[], &[(&name, "E0302")]);
    }
}

#[test]
fn labels_may_be_listed_by_their_number() {
    check(
        "sm_90",
        &[
            "t: .branchtargets a<2>; a0: a1: brx.idx %r1, t;",
            "t: .branchtargets b, a<0x2>, b; a0: a1: b: brx.idx %r1, t;",
        ],
        &[
            ("t: .branchtargets a<2>; a0: a: brx.idx %r1, t;", "E0203"),
            ("t: .branchtargets a<1+1>; a0: a1: brx.idx %r1, t;", "E0004"),
            ("t: .branchtargets a<>; a0: a1: brx.idx %r1, t;", "E0004"),
            ("t: .calltargets fn<2>;", "E0004"),
        ],
    );
}

#[test]
fn vectors_of_one_element_are_negated() {
    check(
        "sm_90",
        &["neg.bf16x2 {%r1}, {%r2};", "fma.rn.bf16x2 {%r1}, {%r2}, %r3, %r4;"],
        &[("mov.b32 {%r1}, {%r2};", "E0307"), ("mov.b32 {%h1, %h2}, {%h3, %h4};", "E0307")],
    );
}

#[test]
fn all_of_a_special_register_is_read_as_its_components_are() {
    let into = |name: &str| match name.rsplit('.').next() {
        Some("f32") => format!("{name} {{%f1, %f2, %f3, %f4}}"),
        Some("u16" | "b16") => format!("{name} {{%h1, %h2, %h3, %h4}}"),
        _ => format!("{name} {{%r1, %r2, %r3, %r4}}"),
    };
    let statement = |name: &str, register: &str| format!("{}, {register};", into(name));
    let taken = [
        ("mov.v4.u32", "%tid"),
        ("mov.v4.u16", "%tid"),
        ("mov.v4.b16", "%nctaid"),
        ("mov.v4.s32", "%clusterid"),
    ];
    let refused = [("mov.v4.f32", "%tid"), ("mov.v4.u16", "%clusterid"), ("mov.v2.u32", "%tid")];
    for (name, register) in taken {
        check("sm_100a", &[&statement(name, register)], &[]);
    }
    for (name, register) in refused {
        assert!(!errors("sm_100a", &statement(name, register)).is_empty(), "{name} {register}");
    }
}

#[test]
fn constants_beside_registers_have_widths() {
    let eight = "{%f1, %f2, %f3, %f4, %f5, %f6, %f7, %f8}";
    let store = |first: &str| {
        let rest = eight.strip_prefix("{%f1").unwrap();
        format!("wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [%d1], {{{first}{rest};")
    };
    let integers = |b: &str| {
        format!(
            "wmma.mma.sync.aligned.row.col.m16n16k16.s32.s8.s8.s32 {{%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}}, {{%r1, %r2}}, {b}, {{%r1, %r2, %r3, %r4, %r5, %r6, %r7, 4294967296}};"
        )
    };
    check(
        "sm_100a",
        &[
            "red.global.v2.bf16x2.add.noftz [%d1], {-1, %r1};",
            "multimem.st.global.v2.f16x2 [%d1], {%r1, 1};",
            "red.global.v2.f16.add.noftz [%d1], {4294967296, %h1};",
            "tcgen05.st.sync.aligned.32x32b.x2.b32 [%r2], {0f3F800000, %r2};",
            "tcgen05.st.sync.aligned.32x32b.x2.b32 [%r2], {%r2, 4294967296};",
            &store("0f3F800000"),
            &integers("{%r1, %r2}"),
            "wmma.mma.sync.aligned.row.col.m8n8k32.s32.s4.s4.s32 {%r1, %r2}, {%r3}, {1}, {%r3, %r4};",
            "cp.async.bulk.prefetch.L2.global [%d1], 1048560;",
            "cp.async.bulk.global.shared::cta.bulk_group [%d1], [%r1], 4294967296;",
        ],
        &[
            ("red.global.v2.f16x2.add.noftz [%d1], {1, %r1};", "E0304"),
            ("red.global.v2.f16x2.add.noftz [%d1], {0f3F800000, %r1};", "E0304"),
            ("atom.global.v2.f16x2.add.noftz {%r3, %r4}, [%d1], {1, %r1};", "E0304"),
            ("multimem.red.global.add.v2.f16x2 [%d1], {-1, %r1};", "E0304"),
            ("multimem.st.global.v2.f16x2 [%d1], {-1, %r1};", "E0304"),
            ("tcgen05.st.sync.aligned.32x32b.x2.b32 [%r2], {1.0, %r2};", "E0304"),
            ("tcgen05.st.sync.aligned.32x32b.x2.b32 [%r2], {%f2, 1.0};", "E0304"),
            (&store("1.0"), "E0304"),
            (&integers("{%r1, 1}"), "E0304"),
            (&integers("{1, 1}"), "E0304"),
            ("cp.async.bulk.prefetch.L2.global [%d1], 4294967296;", "E0310"),
        ],
    );
}
