//! Additions of newer language versions. Older versions must reject them.

use crate::db::Database;
use crate::diagnostic::Severity;
use crate::ide;

/// The codes of the errors in a kernel with this statement.
fn errors(version: &str, target: &str, statement: &str) -> Vec<&'static str> {
    let text = format!(
        ".version {version}\n.target {target}\n.address_size 64\n.visible .entry k(.param .u64 a)\n{{\n\
         .shared .align 128 .b8 s[512]; .shared .align 8 .b64 bar;\n\
         .reg .pred %p<4>; .reg .b8 %c<4>; .reg .b16 %h<5>; .reg .b32 %r<9>; .reg .f32 %f<9>; .reg .b64 %d<9>; .reg .b128 %q<2>;\n\
         {statement}\nret;\n}}\n"
    );
    let db = Database::default();
    let found = ide::diagnostics(&db, db.add_file(text.as_str()));
    found.iter().filter(|d| d.severity == Severity::Error).map(|d| d.lint.code).collect()
}

#[test]
fn later_forms() {
    // A statement, the version that introduced it, the version before, a target that supports it, and a target that
    // does not.
    for (statement, since, before, target, other) in [
        ("add.sat.u8x4 %r1, %r2, %r3;", "9.2", "9.1", "sm_120f", "sm_100a"),
        ("sub.s8x4 %r1, %r2, %r3;", "9.2", "9.1", "sm_120a", "sm_90"),
        ("add.sat.u32 %r1, %r2, %r3;", "9.2", "9.1", "sm_120a", "sm_120"),
        ("neg.s8x4 %r1, %r2;", "9.2", "9.1", "sm_120a", "sm_120"),
        ("cvt.rn.satfinite.s2f6x2.f32 %h1, %f1, %f2;", "9.1", "9.0", "sm_100a", "sm_100f"),
        ("cvt.rn.satfinite.e4m3x2.bf16x2 %h1, %r1;", "9.1", "9.0", "sm_100f", "sm_100"),
        ("cvt.rn.bf16x2.e5m2x2 %r1, %h1;", "9.2", "9.1", "sm_100f", "sm_90"),
        ("clmad.lo.u64 %d1, %d2, %d3, %d4;", "9.3", "9.2", "sm_80", "sm_75"),
        ("ld.mmio.acquire.sys.global.u32 %r1, [%d1];", "9.3", "9.2", "sm_90", "sm_60"),
        ("mbarrier.check_layout.layout::v1.shared::cta.b64 %p1, [bar];", "9.3", "9.2", "sm_90", "sm_80"),
        ("mbarrier.init.layout::v1.shared::cta.b64 [bar], 1;", "9.3", "9.2", "sm_90", "sm_80"),
        (
            "multimem.cp.async.bulk.global.shared::cta.bulk_group [%d1], [s], %r1;",
            "9.1",
            "9.0",
            "sm_90",
            "sm_80",
        ),
        ("multimem.st.async.release.sys.global.u8 [%d1], %r1;", "9.3", "9.2", "sm_100", "sm_90"),
        (
            "st.async.shared::cluster.mbarrier::complete_tx::bytes.b128 [%r1], %q1, [%r2];",
            "9.2",
            "9.1",
            "sm_90",
            "sm_80",
        ),
        ("red.global.add.noftz.f32 [%d1], %f1;", "9.4", "9.3", "sm_90", "sm_80"),
        (
            "fabric.try_get.async.shared::cta.mbarrier::complete_tx::bytes.mbarrier::report::fabric.b128 [s], [%r1, %d1], 32, [bar];",
            "9.3",
            "9.2",
            "sm_100",
            "sm_90",
        ),
        (
            "fabric.try_put.async.shared::cta.mbarrier::complete_tx::16B.mbarrier::report::fabric.counted::bytes.b128 [%r1, %d1, %d2], [s], 32, [bar];",
            "9.3",
            "9.2",
            "sm_100",
            "sm_90",
        ),
        (
            "fabric.try_atom.async.shared::cta.mbarrier::complete_tx::16B.mbarrier::report::fabric.cas.b64 [%r1, %d1], [s], [s+16], [bar];",
            "9.4",
            "9.3",
            "sm_100",
            "sm_90",
        ),
        (
            "createpolicy.range.fabric.L2::evict_last.b64 %d1, [%r1, %d2], 128, 256;",
            "9.4",
            "9.3",
            "sm_100",
            "sm_90",
        ),
        ("fence.proxy.fabric::generic.alias.release.sys;", "9.3", "9.2", "sm_100", "sm_90"),
        ("fence.proxy.alias.acquire.sys;", "9.4", "9.3", "sm_90", "sm_80"),
        ("fence.proxy.async::generic.acq_rel.cluster;", "9.1", "9.0", "sm_90", "sm_80"),
        ("prefetch.L1::32B.valid_addr [%d1];", "9.4", "9.3", "sm_90", "sm_80"),
    ] {
        assert_eq!(errors(since, target, statement), Vec::<&str>::new(), "{statement}");
        assert!(errors(before, target, statement).contains(&"E0401"), "{statement} in {before}");
        assert!(errors("9.5", other, statement).contains(&"E0402"), "{statement} on {other}");
    }
    // PTX ISA 9.4 introduced sm_107.
    for statement in [
        "set.lt.u8x4 %r1, %r2, %r3;",
        "cvt.rz.satfinite.e4m3x2.f32 %h1, %f1, %f2;",
        "spcompress.b8.b4.sp::2:4.x2 {%r1}, {%r2, %r3}, {%r4, %r5, %r6, %r7}, %r8;",
        "spdecompress.b16.b2.sp::1:4.x2 {%r1, %r2, %r3, %r4}, {%r5}, {%r6};",
        "applypriority.async.bulk.bulk_group.L2::evict_normal [%d1], 32;",
        "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group.override::global_address.override::global_dim_stride \
         [%d1, %d2, {%c1, %c2}, {%r1}, %h1, {%r2, %r3}], [s];",
        "fabric.try_put.async.tensor.1d.shared::cta.mbarrier::complete_tx::16B.mbarrier::report::fabric\
         .override::global_address.b128 [%d1, %r2, %d3, {%r5}], [s], 32, [bar];",
        "mbarrier.arrive.multicast::cluster::32b.shared::cluster.b64 _, [%r1], %r2;",
        "tcgen05.mma.cta_group::1.kind::f8f6f4.decompress::lut::b [%r1], %d1, %d2, [%r3], %r2, %p1;",
        "tcgen05.mma.cta_group::1.kind::ti16.collector::b::fill [%r1], %d1, %d2, %r2, %p1;",
        "tcgen05.ld.red.spcompress.sync.aligned.32x32b.x4.max.sp::2:4.abs.NaN.f32.b2 {%r1}, {%r2, %r3}, %f4, [%r5];",
    ] {
        assert_eq!(errors("9.4", "sm_107a", statement), Vec::<&str>::new(), "{statement}");
        assert!(errors("9.4", "sm_100a", statement).contains(&"E0402"), "{statement}");
    }
}

#[test]
fn later_forms_have_their_own_rules() {
    for (statement, code) in [
        ("sub.u16x2 %r1, %r2, %r3;", "E0211"),
        ("spcompress.b8.b2.sp::2:4.x2 {%r1}, {%r2}, {%r4, %r5, %r6, %r7}, %r8;", "E0307"),
        ("spdecompress.b8.b2.sp::2:8.x1 {%r1, %r2}, {%r3}, {%r4};", "E0212"),
        ("createpolicy.range.fabric.L2::evict_last.b64 %d1, [%d2, %d2], 128, 256;", "E0306"),
        (
            "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group.override::global_address [%d1, {%r2, %r3}], [s];",
            "E0306",
        ),
        (
            "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group.override::global_address.override::global_dim_stride \
             [%d1, %d2, {%c1}, {%r1}, %h1, {%r2, %r3}], [s];",
            "E0306",
        ),
        ("set.lo.s16x2 %r1, %r2, %r3;", "E0211"),
        ("multimem.red.async.release.sys.global.min.u32 [%d1], %r1;", "E0211"),
        ("mbarrier.test_wait.phase_type::conditional.shared::cta.b64 %p1, [bar], %d1;", "E0212"),
        ("cp.async.bulk.global.shared::cta.bulk_group.relaxed.gpu [%d1], [s], %r1;", "E0212"),
    ] {
        assert_eq!(errors("9.5", "sm_107a", statement).first(), Some(&code), "{statement}");
    }
}
