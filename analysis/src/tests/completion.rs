//! Completion: what is offered at a place, and in which order. `$0` is the cursor.

use expect_test::expect;
use text_size::TextSize;

use super::features::kernel;
use crate::db::Database;
use crate::ide;

/// The first labels that are offered at the cursor in a file.
fn first_completions(text: &str, count: usize) -> String {
    let offset = text.find("$0").expect("the fixture has a cursor");
    let db = Database::default();
    let file = db.add_file(text.replacen("$0", "", 1));
    let found = ide::completions(&db, file, TextSize::new(offset as u32));
    found.iter().take(count).map(|item| item.label.as_str()).collect::<Vec<_>>().join(" ")
}

#[test]
fn completions_of_names_begin_with_what_is_missing() {
    let at = |target: &str, statement: &str| {
        let text =
            format!(".version 9.0\n.target {target}\n.address_size 64\n.entry k()\n{{\n{statement}$0\n}}\n");
        first_completions(&text, 8) + "\n"
    };
    let lists = [
        at("sm_80", "ld."),
        at("sm_80", "ld.global."),
        at("sm_100", "ld.global."),
        at("sm_80", "add."),
        at("sm_80", "mul."),
        at("sm_80", "mul.lo."),
        at("sm_80", "setp."),
        at("sm_80", "cvt."),
        at("sm_80", "cvt.f32."),
        at("sm_80", "mma.sync."),
        at("sm_80", "mma.sync.aligned."),
        at("sm_80", "atom.global."),
        at("sm_90", "cp.async."),
        at("sm_90", "cp.async.bulk."),
        at("sm_100a", "tcgen05."),
        at("sm_90", "mbarrier."),
        at("sm_90", "st."),
        at("sm_90", "bar."),
        at("sm_90", "barrier."),
        at("sm_90", "cvta."),
        at("sm_90", "red."),
    ];
    expect![[r#"
        global shared param const local param::entry param::func shared::cta
        b32 u32 s32 f32 b64 u64 s64 f64
        b32 u32 s32 f32 b64 u64 s64 f64
        u32 s32 f32 u64 s64 f64 u16 s16
        hi lo wide f32 f64 f16 f16x2 rn
        u32 s32 u64 s64 u16 s16
        eq ne lt le gt ge lo ls
        rn rna rz rm rp u32 s32 f32
        rn rz rna rp rm u32 s32 f32
        aligned m8n8k4 m16n8k8 m16n8k16 m8n8k16 m16n8k32 m8n8k32 m16n8k4
        m8n8k4 m16n8k8 m16n8k16 m8n8k16 m16n8k32 m8n8k32 m16n8k4 m16n8k64
        add min max and or xor exch cas
        ca commit_group wait_group wait_all mbarrier bulk cg shared
        shared::cta shared::cluster global b128 prefetch commit_group wait_group tensor
        alloc dealloc relinquish_alloc_permit ld st wait::ld cp shift
        init inval expect_tx complete_tx arrive arrive_drop test_wait try_wait
        global shared param local param::func shared::cta shared::cluster b32
        sync warp arrive red cta popc and or
        sync cta arrive red u32 pred cluster wait
        global shared param const local param::entry shared::cta shared::cluster
        add min max and or xor inc dec
    "#]]
    .assert_eq(&lists.concat());
}

/// The first instruction of a function with several parameters, and one after a comment with punctuation.
#[test]
fn statements_begin_after_headings_and_comments() {
    let header = ".version 9.0\n.target sm_90\n.address_size 64\n";
    let heading = ".entry k(\n    .param .u64 a,\n    .param .u32 n\n)\n.maxntid 32, 1, 1\n{\n";
    let at = |before: &str| first_completions(&format!("{header}{heading}{before}$0\n}}\n"), 3) + "\n";
    let lists = [
        at("    "),
        at("    .reg "),
        at("    ld.param."),
        at("    .reg .b32 %r<3>; // first; then {\n    ld.param.u32 "),
        at("    // of `a; b`, {c}\n    add."),
        at("    ret;\n/* one; two;\n } */    add."),
    ];
    expect![[r#"
        mov ld st
        .b32 .u32 .s32
        b32 u32 s32
        %r1 %r2 %r0
        u32 s32 f32
        u32 s32 f32
    "#]]
    .assert_eq(&lists.concat());
    expect![".entry .func .const .global .shared"]
        .assert_eq(&first_completions(&format!("{header}.visible $0"), 20));
}

#[test]
fn addresses_are_offered_in_brackets_and_registers_with_a_value_first() {
    let registers = ".reg .f32 %f<9>;\n.reg .b64 %d<9>;\n";
    let at = |before: &str, after: &str| {
        let heading = ".version 9.0\n.target sm_90\n.address_size 64\n.entry k(.param .u64 a, .param .u64 b, .param .f32 x, .param .u32 n)\n{\n";
        first_completions(&format!("{heading}{registers}{before}$0\n{after}\nret;\n}}\n"), 4) + "\n"
    };
    let lists = [
        at("ld.param.f32 %f1, ", ""),
        at("ld.param.f32 %f1, [", ""),
        at("ld.param.b64 %d1, [a];\nld.param.u64 %d2, ", ""),
        at("mov.b64 %d1, 0;\nld.global.f32 %f1, ", "add.s64 %d3, %d2, 1;"),
        at("mov.f32 %f1, 0f00000000;\nadd.f32 %f3, ", "add.f32 %f4, %f3, %f2;"),
    ];
    expect![[r#"
        [x] [n] [a] [b]
        x n a b
        [b] [a] [x] [n]
        [%d1] [%d3] [%d2] [%d4]
        %f1 %f3 %f4 %f2
    "#]]
    .assert_eq(&lists.concat());
}

#[test]
fn what_a_target_lacks_is_offered_last() {
    let text = ".version 6.3\n.target sm_70\n.address_size 64\n.entry k()\n{\nld.global.$0\n}\n";
    let offset = text.find("$0").unwrap();
    let db = Database::default();
    let file = db.add_file(text.replacen("$0", "", 1));
    let found = ide::completions(&db, file, TextSize::new(offset as u32));
    let first = found.iter().position(|item| !item.is_available).expect("some are not available");
    assert!(found[first..].iter().all(|item| !item.is_available && item.detail.starts_with("requires ")));
    let missing: Vec<String> =
        found[first..].iter().map(|item| format!("{}: {}\n", item.label, item.detail)).collect();
    expect![[r#"
        b128: requires PTX ISA 8.3, sm_70 or higher
        proxy::readonly: requires PTX ISA 9.4, sm_90 or higher
        L1::evict_normal: requires PTX ISA 7.4, sm_70 or higher
        L1::evict_unchanged: requires PTX ISA 7.4, sm_70 or higher
        L1::evict_first: requires PTX ISA 7.4, sm_70 or higher
        L1::evict_last: requires PTX ISA 7.4, sm_70 or higher
        L1::no_allocate: requires PTX ISA 7.4, sm_70 or higher
        L2::evict_normal: requires PTX ISA 8.8, sm_100 or higher
        L2::evict_first: requires PTX ISA 8.8, sm_100 or higher
        L2::evict_last: requires PTX ISA 8.8, sm_100 or higher
        L2::cache_hint: requires PTX ISA 7.4, sm_80 or higher
        L2::64B: requires PTX ISA 7.4, sm_75 or higher
        L2::128B: requires PTX ISA 7.4, sm_75 or higher
        L2::256B: requires PTX ISA 7.4, sm_80 or higher
        mmio: requires PTX ISA 9.3, sm_70 or higher
        cluster: requires PTX ISA 7.8, sm_90 or higher
    "#]]
    .assert_eq(&missing.concat());
}

#[test]
fn operands_begin_with_the_right_type_and_the_nearest() {
    let at = |statement: &str| {
        let body = format!(
            ".reg .pred %p<3>;\n.reg .b32 %r<9>;\n.reg .u32 %u<3>;\n.reg .f32 %f<9>;\n.reg .b64 %rd<4>;\n.shared .b8 tile[16];\n\
             ld.param.u64 %rd1, [input];\nmov.u32 %r1, 1;\nmov.u32 %r2, 2;\nmov.u32 %u1, 3;\nmov.f32 %f4, 0f00000000;\n\
             setp.eq.u32 %p1, %r1, 0;\nSTART:\nadd.s32 %r3, %r1, 1;\nNEXT:\n{statement}"
        );
        first_completions(&kernel(&body), 6) + "\n"
    };
    let lists = [
        at("add.u32 $0"),
        at("add.u32 %r4, $0"),
        at("add.u32 %r4, %r3, %$0"),
        at("add.f32 %f1, $0"),
        at("@$0"),
        at("ld.global.u32 %r4, [$0"),
        at("ld.shared.u32 %r4, [$0"),
        at("ld.param.u64 %rd2, [$0"),
        at("bra $0"),
        at("mov.u64 %rd2, $0"),
        at("st.global.v2.f32 [%rd1], {$0"),
    ];
    expect![[r#"
        %r4 %u2 %r3 %r1 %u1 %r2
        %r3 %r1 %u1 %r2 %r4 %r5
        %r3 %r1 %u1 %r2 %r4 %r5
        %f4 %f1 %f2 %f3 %f5 %f6
        %p1 %p2 %p0
        %rd1 table %rd2 %rd3 %rd0 %r3
        %r3 %r1 %u1 %r2 tile %r4
        input %rd1 %rd2 %rd3 %rd0 %r3
        NEXT START
        %rd1 %rd2 %rd3 %rd0 tile table
        %f4 %f1 %f2 %f3 %f5 %f6
    "#]]
    .assert_eq(&lists.concat());
}

#[test]
fn directives_and_snippets_where_they_can_occur() {
    let header = ".version 8.0\n.target sm_90\n.address_size 64\n";
    let at = |text: &str, labels: &[&str]| {
        let offset = text.find("$0").expect("the fixture has a cursor");
        let db = Database::default();
        let file = db.add_file(text.replacen("$0", "", 1));
        let found = ide::completions(&db, file, TextSize::new(offset as u32));
        let has = |label: &&&str| found.iter().any(|item| item.label == **label);
        labels.iter().filter(has).copied().collect::<Vec<_>>().join(" ") + "\n"
    };
    let all = [
        ".version", ".target", ".entry", ".visible", ".reg", ".param", ".u32", ".maxntid", ".loc", "kernel",
        "loop", "add",
    ];
    let lists = [
        at("$0", &all),
        at(&format!("{header}$0"), &all),
        at(&format!("{header}.visible $0"), &all),
        at(&format!("{header}.global $0"), &all),
        at(&format!("{header}.entry k($0"), &all),
        at(&format!("{header}.entry k()\n$0"), &all),
        at(&format!("{header}.entry k()\n{{\n$0\n}}"), &all),
        at(&format!("{header}.entry k()\n{{\n.reg $0\n}}"), &all),
        at(&format!("{header}.entry k()\n{{\n// $0\n}}"), &all),
    ];
    expect![[r#"
        .version
        .entry .visible .reg kernel
        .entry
        .u32
        .param
        .maxntid
        .reg .param .loc loop add
        .u32

    "#]]
    .assert_eq(&lists.concat());
}

#[test]
fn declarations_are_completed_in_order() {
    let module = "\n.global .u32 other;\n.func f() { ret; }\n";
    let lists = [
        ".global .align $0",
        ".global .align 4 .$0",
        ".global .align 4 .f32 t[2] = {$0};",
        ".const .u64 a = $0;",
        ".entry k(.param .u64 .$0",
        ".entry k() .maxntid $0",
        ".entry k() .maxntid 32, 1, 1 .$0",
        ".entry k()\n.pragma \"$0\";\n{ ret; }",
    ];
    let at = |text: &str| format!(".version 9.0\n.target sm_90\n.address_size 64\n{text}{module}");
    let lists = lists.map(|text| format!("{text} → {}\n", first_completions(&at(text), 3)));
    expect![[r#"
        .global .align $0 → 
        .global .align 4 .$0 → b32 u32 s32
        .global .align 4 .f32 t[2] = {$0}; → t other f
        .const .u64 a = $0; → a other f
        .entry k(.param .u64 .$0 → align ptr
        .entry k() .maxntid $0 → 
        .entry k() .maxntid 32, 1, 1 .$0 → maxnreg maxntid reqntid
        .entry k()
        .pragma "$0";
        { ret; } → nounroll
    "#]]
    .assert_eq(&lists.concat());
}

#[test]
fn a_new_file_is_completed_step_by_step() {
    let lists = [
        "$0",
        ".version $0",
        ".version 8.$0",
        ".version 8.0\n.target $0",
        ".version 8.0\n.target sm_90\n.visible .entry k($0",
        ".version 8.0\n.target sm_90\n.visible .entry k(.$0",
        ".version 8.0\n.target sm_90\n.visible .entry k(.param .u64 a, $0",
        ".version 8.0\n.target sm_90\n.visible .entry k(.param .$0",
        ".version 8.0\n.target sm_90\n.func f($0",
        ".version 8.0\n.target sm_90, $0",
        ".version 8.0\n.target sm_90, texmode_unified, $0",
        ".version 8.0\n.target sm_90\n.address_size $0",
    ];
    let lists = lists.map(|text| first_completions(text, 4) + "\n");
    expect![[r#"
        module .version
        9.5 9.4 9.3 9.2
        9.5 9.4 9.3 9.2
        sm_90a sm_90 sm_89 sm_88
        .param
        param
        .param
        b32 u32 s32 f32
        .param .reg
        texmode_unified texmode_independent debug map_f64_to_f32
        texmode_independent debug map_f64_to_f32
        64 32
    "#]]
    .assert_eq(&lists.concat());
}

/// The part of a special register before its dot is replaced too.
#[test]
fn parts_of_special_registers_follow_their_names() {
    for part in ["", "%", "%ct", "%ctaid", "%ctaid.", "%ctaid.x"] {
        let before =
            format!(".version 8.0\n.target sm_90\n.entry k()\n{{\n.reg .b32 %r<2>;\nmov.u32 %r1, {part}");
        let db = Database::default();
        let file = db.add_file(format!("{before};\n}}\n"));
        let found = ide::completions(&db, file, TextSize::new(before.len() as u32));
        let item = found.iter().find(|item| item.label == "%ctaid.x").expect("it is offered");
        assert_eq!(usize::from(item.edit.range.len()), part.len(), "after {part}");
    }
}

/// A module with names of every kind. `statement` follows the declarations of its kernel.
fn in_full_module(statement: &str) -> String {
    format!(
        ".version 9.0\n.target sm_90\n.address_size 64\n.global .u32 counter;\n.const .f32 scale;\n.shared .b64 bar;\n.global .texref image;\n\
         .func (.param .f32 r) square(.param .f32 x)\n{{\nret;\n}}\n.func log(.param .b64 p, .param .b32 n)\n{{\nret;\n}}\n\
         .visible .entry k(.param .u64 out, .param .u32 n)\n{{\n.reg .f32 %f<3>;\n.reg .b32 %r<3>;\n.reg .b64 %rd<3>;\n\
         .reg .b16 %h<3>;\n.reg .pred %p<3>;\n.param .f32 arg;\n.param .f32 res;\n.param .b64 ptr;\n.local .b32 slot;\nproto: .callprototype (.param .f32 _) _ (.param .f32 _);\n\
         mov.f32 %f1, 0f00000000;\nmov.u32 %r1, 1;\nmov.u64 %rd1, 2;\nsetp.eq.u32 %p1, %r1, 0;\nmov.b16 %h1, 3;\n\
         LOOP:\n{statement}\nEND:\nret;\n}}\n"
    )
}

#[test]
fn positions_offer_what_is_legal_there() {
    let all = [
        "call $0",
        "call.uni $0",
        "call ($0",
        "call (res), $0",
        "call (res), square, ($0",
        "call log, ($0",
        "call log, (ptr, $0",
        "bra $0",
        "bra.uni $0",
        "@$0",
        "@!$0",
        "@%p1 bra $0",
        "ld.param.u64 %rd1, [$0",
        "ld.param.f32 %f1, [$0",
        "st.param.f32 [$0",
        "ld.global.u32 %r1, [$0",
        "ld.shared.b64 %rd1, [$0",
        "ld.const.f32 %f1, [$0",
        "ld.local.b32 %r1, [$0",
        "ld.global.v2.f32 {$0",
        "ld.global.v2.f32 {%f1, $0",
        "st.global.v2.u32 [%rd1], {$0",
        "mov.b64 %rd1, {$0",
        "mov.b64 {$0",
        "mbarrier.init.shared.b64 [$0",
        "mbarrier.init.shared.b64 [bar], $0",
        "mbarrier.try_wait.parity.shared.b64 $0",
        "mbarrier.arrive.shared.b64 $0",
        "setp.lt.f32 $0",
        "setp.lt.f32 %p1, $0",
        "setp.lt.f32 %p1|$0",
        "selp.b32 %r1, %r1, %r1, $0",
        "cvt.rn.f32.u32 %f1, $0",
        "cvt.rn.f32.u32 $0",
        "mov.u64 %rd1, $0",
        "mov.u32 %r1, $0",
        "cvta.to.global.u64 %rd1, $0",
        "atom.global.add.u32 %r1, [$0",
        "shfl.sync.down.b32 %r1|$0",
        "bar.sync $0",
        "{ $0",
        "mul.wide.u32 $0",
        "mul.wide.u32 %rd1, $0",
        "shl.b64 %rd1, %rd1, $0",
        "cp.async.ca.shared.global [$0",
        "brx.idx $0",
        ".reg .$0",
        ".shared .$0",
        ".pragma $0",
        ".pragma \"$0",
        ".reg .b32 .$0",
        ".shared .align $0",
        "ts: .branchtargets $0",
        "ts: .calltargets $0",
        "ld.global.u32 %r1, [%rd1+$0",
        "X: $0",
        "@%p1 $0",
        "{ add.u32 %r1, %r1, 1; } $0",
        "{ INNER: } $0",
        "call (res), %rd1, (arg), $0",
        "tex.2d.v4.f32.f32 {%f1, %f2, %f1, %f2}, [$0",
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1, %f1, %f1, %f1}, {$0",
    ];
    let lists: String =
        all.iter().map(|one| format!("{one} → {}\n", first_completions(&in_full_module(one), 7))).collect();
    expect![[r#"
        call $0 → square log %rd1 %rd2 %rd0
        call.uni $0 → square log %rd1 %rd2 %rd0
        call ($0 → ptr res arg %h1 %r1 %rd1 %f1
        call (res), $0 → square log %rd1 %rd2 %rd0
        call (res), square, ($0 → res arg %f1 %f2 %f0 %r1 ptr
        call log, ($0 → ptr %rd1 %rd2 %rd0 res arg
        call log, (ptr, $0 → res arg %r1 %r2 %r0 %f1 ptr
        bra $0 → END LOOP
        bra.uni $0 → END LOOP
        @$0 → %p1 %p2 %p0
        @!$0 → %p1 %p2 %p0
        @%p1 bra $0 → END LOOP
        ld.param.u64 %rd1, [$0 → out ptr n arg res %rd1 %rd2
        ld.param.f32 %f1, [$0 → arg res n out ptr %rd1 %rd2
        st.param.f32 [$0 → arg res ptr %rd1 %rd2 %rd0 %h1
        ld.global.u32 %r1, [$0 → %rd1 counter image %rd2 %rd0 %r1 %r2
        ld.shared.b64 %rd1, [$0 → %r1 bar %r2 %r0 %rd1 %rd2 %rd0
        ld.const.f32 %f1, [$0 → %r1 scale %r2 %r0 %rd1 %rd2 %rd0
        ld.local.b32 %r1, [$0 → %r1 slot %r2 %r0 %rd1 %rd2 %rd0
        ld.global.v2.f32 {$0 → %f2 %f1 %f0 %r2 %r1 %r0 %rd2
        ld.global.v2.f32 {%f1, $0 → %f2 %f1 %f0 %r2 %r1 %r0 %rd2
        st.global.v2.u32 [%rd1], {$0 → %r1 %r2 %r0 %rd1 %rd2 %rd0
        mov.b64 %rd1, {$0 → %r1 %f1 %f2 %r2 %f0 %r0 %h1
        mov.b64 {$0 → %f2 %r2 %r1 %f1 %f0 %r0 %h2
        mbarrier.init.shared.b64 [$0 → %r1 bar %r2 %r0 %rd1 %rd2 %rd0
        mbarrier.init.shared.b64 [bar], $0 → %r1 %r2 %r0
        mbarrier.try_wait.parity.shared.b64 $0 → %p2 %p1 %p0
        mbarrier.arrive.shared.b64 $0 → %rd2 %rd1 %rd0
        setp.lt.f32 $0 → %p2 %p1 %p0
        setp.lt.f32 %p1, $0 → %f1 %f2 %f0 %r1 %r2 %r0
        setp.lt.f32 %p1|$0 → %p2 %p1 %p0
        selp.b32 %r1, %r1, %r1, $0 → %p1 %p2 %p0
        cvt.rn.f32.u32 %f1, $0 → %r1 %r2 %r0 %rd1 %rd2 %rd0
        cvt.rn.f32.u32 $0 → %f2 %f1 %f0 %r2 %r1 %r0 %rd2
        mov.u64 %rd1, $0 → %rd1 %rd2 %rd0 out slot ptr counter
        mov.u32 %r1, $0 → %r1 %r2 %r0 %tid.x %tid.y %tid.z %ntid.x
        cvta.to.global.u64 %rd1, $0 → %rd1 %rd2 %rd0
        atom.global.add.u32 %r1, [$0 → %rd1 counter image %rd2 %rd0 %r1 %r2
        shfl.sync.down.b32 %r1|$0 → %p2 %p1 %p0
        bar.sync $0 → %r1 %r2 %r0
        { $0 → mov ld st add mad mul fma
        mul.wide.u32 $0 → %rd2 %rd1 %rd0
        mul.wide.u32 %rd1, $0 → %r1 %r2 %r0
        shl.b64 %rd1, %rd1, $0 → %r1 %r2 %r0
        cp.async.ca.shared.global [$0 → %r1 bar %r2 %r0 %rd1 %rd2 %rd0
        brx.idx $0 → %r1 %r2 %r0
        .reg .$0 → b32 u32 s32 f32 b64 u64 s64
        .shared .$0 → b32 u32 s32 f32 b64 u64 s64
        .pragma $0 → "nounroll" "used_bytes_mask" "enable_smem_spilling" "frequency"
        .pragma "$0 → nounroll used_bytes_mask enable_smem_spilling frequency
        .reg .b32 .$0 → 
        .shared .align $0 → 
        ts: .branchtargets $0 → END LOOP
        ts: .calltargets $0 → square log
        ld.global.u32 %r1, [%rd1+$0 → 
        X: $0 → mov ld st add mad mul fma
        @%p1 $0 → mov ld st add mad mul fma
        { add.u32 %r1, %r1, 1; } $0 → mov ld st add mad mul fma
        { INNER: } $0 → mov ld st add mad mul fma
        call (res), %rd1, (arg), $0 → proto
        tex.2d.v4.f32.f32 {%f1, %f2, %f1, %f2}, [$0 → %rd1 counter image %rd2 %rd0 %r1 %r2
        mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1, %f1, %f1, %f1}, {$0 → %r1 %r2 %r0
    "#]]
    .assert_eq(&lists);
}

/// In a new file, the function is often still open.
#[test]
fn unclosed_functions_are_scopes() {
    let header = ".version 9.0\n.target sm_90\n.address_size 64\n.entry k(.param .u32 n)\n{\n";
    let body = "    .reg .b32 %r<4>;\n    .reg .pred %p<3>;\nL1:\n";
    let at = |statement: &str, after: &str| {
        first_completions(&format!("{header}{body}    {statement}$0{after}"), 3) + "\n"
    };
    let statements = [
        "ld.param.u32 ",
        "add.u32 %r1, %r2, ",
        "@",
        "@%p1 bra ",
        "mov.u32 %r1, ",
        "{ .reg .b32 %x; neg.s32 ",
    ];
    let lists = statements.map(|statement| {
        let closed = at(statement, "\n    ret;\n}\n");
        for after in ["", "\n", "\n\n"] {
            assert_eq!(at(statement, after), closed, "`{statement}` before {after:?}");
        }
        closed
    });
    expect![[r#"
        %r1 %r2 %r3
        %r2 %r1 %r3
        %p1 %p2 %p0
        L1
        %r1 %r2 %r3
        %r1 %x %r2
    "#]]
    .assert_eq(&lists.concat());
}

#[test]
fn aliases_are_functions() {
    let at = |text: &str| {
        let header = ".version 9.0\n.target sm_90\n.address_size 64\n.func f() { ret; }\n.func g();\n";
        first_completions(&format!("{header}{text}$0\n"), 3) + "\n"
    };
    expect![[r#"
        f g
        f g
        f g
    "#]]
    .assert_eq(&[at(".alias "), at(".alias g, "), at(".alias g, f")].concat());
}

/// Frequent instructions come first, and among the others those that the target has.
#[test]
fn frequent_instructions_come_first() {
    let text = ".version 9.0\n.target sm_90\n.address_size 64\n.entry k()\n{\n$0\n}\n";
    expect!["mov ld st add mad mul fma setp bra cvta cvt sub shl shr and or xor selp min max neg ret bar div rem call atom shfl abs activemask addc alloca applypriority barrier bfe bfi bfind bmsk brev brkpt"].assert_eq(&first_completions(text, 40));
}
