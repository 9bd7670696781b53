//! Whole kernels: compiled code must leave the same memory as the interpreter.

use conformance::case::{Argument, Case, Compare, compile, differences, input};
use conformance::sweep::Random;

fn words(seed: u64, count: usize) -> Vec<u8> {
    let mut random = Random::new(seed);
    (0..count).flat_map(|_| (random.next() as u32).to_le_bytes()).collect()
}

fn singles(seed: u64, count: usize) -> Vec<u8> {
    let mut random = Random::new(seed);
    (0..count).flat_map(|_| ((random.below(2000) as f32 - 1000.0) / 256.0).to_le_bytes()).collect()
}

fn doubles(seed: u64, count: usize) -> Vec<u8> {
    let mut random = Random::new(seed);
    (0..count).flat_map(|_| ((random.below(2000) as f64 - 1000.0) / 256.0).to_le_bytes()).collect()
}

fn exact(bytes: Vec<u8>) -> Argument {
    Argument::Buffer(bytes, Compare::Exact)
}

#[track_caller]
fn check(case: &Case) {
    let (wrong, missing) = differences(case).unwrap_or_else(|error| panic!("{error}"));
    assert!(missing.is_empty(), "not compiled:\n{}", missing.join("\n"));
    assert!(wrong.is_empty(), "{} differ\n{}", wrong.len(), wrong.join("\n\n"));
}

#[test]
fn saxpy() {
    let arguments = vec![
        Argument::U32(500),
        Argument::F32(1.5),
        exact(singles(1, 512)),
        Argument::Buffer(singles(2, 512), Compare::SINGLE),
    ];
    check(&Case::new(include_str!("../../examples/saxpy.ptx"), 4, 128, arguments));
}

#[test]
fn histogram() {
    let arguments = vec![exact(words(3, 1000)), exact(vec![0; 1024]), Argument::U32(1000)];
    check(&Case::new(include_str!("../kernels/histogram.ptx"), 2, 256, arguments));
}

#[test]
fn sums_of_big_integers() {
    let mut a = words(4, 8 * 64);
    a[..32].fill(0xff);
    let arguments = vec![exact(a), exact(words(5, 8 * 64)), exact(vec![0; 32 * 64]), Argument::U32(60)];
    let case = Case::new(include_str!("../kernels/integers.ptx"), 1, 64, arguments);
    check(&Case { kernel: "big_add".into(), ..case });
}

#[test]
fn switch() {
    for operation in 0..6 {
        let arguments = vec![exact(words(6, 64)), Argument::U32(60), Argument::U32(operation)];
        let case = Case::new(include_str!("../kernels/integers.ptx"), 1, 64, arguments);
        check(&Case { kernel: "dispatch".into(), ..case });
    }
}

#[test]
fn divergent_loop() {
    let arguments = vec![
        exact(vec![0; 4 * 32 * 32]),
        Argument::U32(32),
        Argument::U32(30),
        Argument::F32(0.1),
        Argument::U32(50),
    ];
    let case = Case::new(include_str!("../kernels/mandelbrot.ptx"), 1, 1, arguments);
    check(&Case { grid: [2, 8, 1], block: [16, 4, 1], ..case });
}

#[test]
fn products_of_matrices() {
    let n = 32;
    let arguments = vec![
        exact(singles(7, n * n)),
        exact(singles(8, n * n)),
        Argument::Buffer(vec![0; 4 * n * n], Compare::SINGLE),
        Argument::U32(n as u32),
    ];
    let case = Case::new(include_str!("../kernels/matmul.ptx"), 1, 1, arguments);
    check(&Case { grid: [2, 2, 1], block: [16, 16, 1], ..case });
}

#[test]
fn forces() {
    let arguments = vec![
        exact(singles(9, 4 * 64)),
        Argument::Buffer(vec![0; 16 * 64], Compare::F32 { ulps: 64, absolute: 1e-4 }),
        Argument::U32(64),
        Argument::F32(0.5),
    ];
    check(&Case::new(include_str!("../kernels/nbody.ptx"), 1, 64, arguments));
}

#[test]
fn sum_of_an_array() {
    // Whole numbers, so that the order of the additions does not matter.
    let numbers = (0..700u32).flat_map(|i| ((i % 17) as f32).to_le_bytes()).collect();
    let arguments = vec![exact(numbers), Argument::Buffer(vec![0; 4], Compare::SINGLE), Argument::U32(700)];
    check(&Case::new(include_str!("../kernels/reduce.ptx"), 2, 128, arguments));
}

#[test]
fn stencil() {
    let arguments = vec![
        exact(doubles(10, 40 * 20)),
        Argument::Buffer(doubles(11, 40 * 20), Compare::DOUBLE),
        Argument::U32(40),
        Argument::U32(20),
    ];
    let case = Case::new(include_str!("../kernels/stencil.ptx"), 1, 1, arguments);
    check(&Case { kernel: "stencil".into(), grid: [2, 5, 1], block: [32, 4, 1], ..case });
}

#[test]
fn guarded_loads() {
    let arguments = vec![
        exact(singles(12, 256)),
        exact(singles(13, 256)),
        Argument::Buffer(singles(14, 256), Compare::SINGLE),
        Argument::U32(250),
    ];
    let case = Case::new(include_str!("../kernels/stencil.ptx"), 1, 64, arguments);
    check(&Case { kernel: "masked_add".into(), ..case });
}

/// A kernel of 32 threads that reads its part of `a` at %d0 and writes its part of `b` at %d1.
fn small(target: &str, body: &str) -> Case {
    let ptx = format!(
        ".version 8.8\n.target {target}\n.address_size 64\n.visible .entry k(.param .u64 a, .param .u64 b)\n{{\n\
         .reg .pred %p<4>;\n.reg .b16 %h<9>;\n.reg .b32 %r<9>;\n.reg .b64 %d<9>;\n.reg .b32 %me;\n\
         ld.param.u64 %d0, [a];\nld.param.u64 %d1, [b];\nmov.u32 %me, %tid.x;\n\
         mad.wide.u32 %d0, %me, 32, %d0;\nmad.wide.u32 %d1, %me, 32, %d1;\n{body}\nret;\n}}\n"
    );
    Case::new(ptx, 1, 32, vec![exact(words(15, 8 * 32)), exact(words(16, 8 * 32))])
}

#[test]
fn eight_small_elements() {
    let registers = |class: &str| (0..8).map(|i| format!("%{class}{i}")).collect::<Vec<_>>().join(", ");
    for (ty, class) in [("b8", "h"), ("u8", "r"), ("s8", "r"), ("b16", "h"), ("u16", "r"), ("s16", "r")] {
        let all = registers(class);
        let bits = if class == "h" { "b16" } else { "b32" };
        let each =
            (0..8).map(|i| format!("not.{bits} %{class}{i}, %{class}{};\n", (i + 3) % 8)).collect::<String>();
        check(&small(
            "sm_80",
            &format!("ld.global.v8.{ty} {{{all}}}, [%d0];\nst.global.v8.{ty} [%d1], {{{all}}};"),
        ));
        check(&small(
            "sm_80",
            &format!("ld.global.v8.{ty} {{{all}}}, [%d0+16];\n{each}st.global.v8.{ty} [%d1], {{{all}}};"),
        ));
        // The other bits of the registers show how the element was extended.
        if class == "r" {
            let stores =
                (0..8).map(|i| format!("st.global.b32 [%d1+{}], %r{i};\n", 4 * i)).collect::<String>();
            check(&small("sm_80", &format!("ld.global.v8.{ty} {{{all}}}, [%d0];\n{stores}")));
        }
    }
}

#[test]
fn reductions_in_a_loop_that_threads_leave_one_by_one() {
    check(&small(
        "sm_80",
        "ld.global.b32 %r0, [%d0];\nmov.b32 %r1, -1;\nmov.u32 %r2, %me;\n\
         L: redux.sync.min.s32 %r3, %r0, %r1;\nsub.u32 %r2, %r2, 1;\nsetp.gt.s32 %p0, %r2, 0;\n\
         vote.sync.ballot.b32 %r1, %p0, %r1;\n@%p0 bra L;\nmad.lo.u32 %r4, %r0, %r3, %r3;\n\
         st.global.b32 [%d1], %r4;",
    ));
}

#[test]
fn what_is_not_compiled_is_refused_where_it_stands() {
    let body = "fma.rz.bf16 %h0, %h1, %h2, %h3;";
    let case = small("sm_80", body);
    let db = ptx_analysis::Database::default();
    let file = db.add_frozen_file(case.ptx.as_str());
    let found = ptx_analysis::ide::compile_diagnostics(&db, file);
    let [only] = &found[..] else { panic!("{body}: {found:?}") };
    assert!(only.message.contains(" is not supported yet: "), "{body}: {}", only.message);
    assert_eq!(&case.ptx[only.range], body);
}

#[test]
fn registers_that_functions_share_are_refused_where_they_cannot_be_inlined() {
    let text = ".version 2.3\n.target sm_20\n.address_size 64\n.reg .u32 %shared;\n\
        .func next() { add.u32 %shared, %shared, 1; ret; }\n\
        .func again() { .reg .pred %p; setp.lt.u32 %p, %shared, 9; @%p call again; call next; ret; }\n\
        .entry calls() { mov.u32 %shared, 1; call again; ret; }\n\
        .entry alone() { mov.u32 %shared, 1; call next; ret; }\n\
        .entry without() { ret; }\n";
    let refused = |text: &str| {
        let mut db = ptx_analysis::Database::default();
        db.set_target_override(Some(ptx_isa::Sm::new(75)));
        let file = db.add_frozen_file(text);
        let found = ptx_analysis::ide::compile_diagnostics(&db, file);
        let found = found.iter().filter(|d| d.message.contains("module-scope registers"));
        found.map(|d| text[d.range].to_owned()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(refused(text), "@%p call again; call again;");
    assert_eq!(refused(&text.replace("@%p call again;", "")), "");
    let pointed = text.replace("@%p call again;", ".reg .u64 %d; mov.u64 %d, next;");
    assert_eq!(refused(&pointed), "next");
}

/// As in ptxas, `nounroll` applies to the loop whose first block it is in, or to all loops of a function or module.
#[test]
fn a_pragma_keeps_the_loop_of_its_block() {
    const PRAGMA: &str = ".pragma \"nounroll\";";
    let lines = |module: &str, kernel: &str, before: &str, inside: &str| {
        let text = format!(
            ".version 8.0\n.target sm_80\n.address_size 64\n{module}\n.entry k(.param .u64 p, .param .u32 n)\n{kernel}\n{{\n\
             .reg .b32 %r<4>; .reg .b64 %d; .reg .pred %p;\nld.param.u64 %d, [p]; ld.param.u32 %r1, [n]; mov.u32 %r0, 0;\n\
             {before}\nLOOP:\nld.global.u32 %r2, [%d];\n{inside}\nmad.lo.u32 %r0, %r0, 3, %r2; add.u64 %d, %d, 4;\n\
             sub.u32 %r1, %r1, 1; setp.ne.u32 %p, %r1, 0; @%p bra LOOP;\nst.global.u32 [%d], %r0; ret;\n}}\n"
        );
        let input = input(&text, "k").unwrap();
        compile(&input, ptx_isa::Sm::new(80), 3).unwrap().kernel.lines.len()
    };
    let unrolled = lines("", "", "", "");
    assert_eq!(lines("", "", PRAGMA, ""), unrolled);
    let kept = lines("", "", "", PRAGMA);
    assert!(kept < unrolled / 2, "{kept} of {unrolled} instructions");
    assert_eq!(lines(PRAGMA, "", "", ""), kept);
    assert_eq!(lines("", PRAGMA, "", ""), kept);
    assert_eq!(lines("", "", &format!("{PRAGMA}\nbra LOOP;"), ""), unrolled);
}
