//! The checks that `--g-tensor-memory-access-check` adds: code with them traps at violations, and only there.

use conformance::case::{self, Argument, Case, Compare, compile_with, execute, input, interpret, prepare};
use conformance::description;
use ptx_backend::Options;
use ptx_emu::machine::Kernel;
use ptx_isa::Sm;
use std::path::Path;

/// Two kernels that allocate 64 columns, execute a statement and free the columns. `%r2` is an offset in tensor memory,
/// from the first column; `%w2` is the same for the lanes of each warp.
fn kernel(pair: bool, statement: &str) -> String {
    let (group, cluster) = if pair { (2, ".reqnctapercluster 2, 1, 1") } else { (1, "") };
    format!(
        ".version 9.0
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 out, .param .u32 first, .param .u32 second, .param .u32 third, .param .u32 fourth)
{cluster}
{{
    .reg .pred %p<4>;
    .reg .b32 %r<32>, %w<8>, %v<16>;
    .reg .b64 %rd<8>;
    .shared .align 16 .b8 place[16];
    .shared .align 1024 .b8 room[8192];
    ld.param.u32 %r2, [first];
    ld.param.u32 %r3, [second];
    ld.param.u32 %r4, [third];
    ld.param.u32 %r5, [fourth];
    mov.u32 %r6, %tid.x;
    setp.lt.u32 %p1, %r6, 32;
    shr.u32 %w1, %r6, 5;
    shl.b32 %w1, %w1, 21;
    @%p1 tcgen05.alloc.cta_group::{group}.sync.aligned.shared::cta.b32 [place], 64;
    bar.sync 0;
    ld.shared.u32 %r1, [place];
    add.u32 %r2, %r2, %r1;
    add.u32 %w2, %r2, %w1;
    mov.u64 %rd1, 0;
    {statement}
    bar.sync 0;
    @%p1 tcgen05.dealloc.cta_group::{group}.sync.aligned.b32 %r1, 64;
    ret;
}}
"
    )
}

/// Whether a statement traps for the given values of its registers, with and without the checks.
fn traps(pair: bool, statement: &str, words: [u32; 4]) -> [bool; 2] {
    let mut arguments = vec![Argument::Buffer(vec![0; 4], Compare::Exact)];
    arguments.extend(words.map(Argument::U32));
    let case = Case::new(kernel(pair, statement), if pair { 2 } else { 1 }, 128, arguments);
    let input = input(&case.ptx, "").unwrap_or_else(|error| panic!("{error}\n{}", case.ptx));
    let prepared = prepare(&case, &input).unwrap_or_else(|error| panic!("{error}"));
    let runs = |checks_tensor_memory, opt_level| {
        let sm = Sm::new(100);
        let options = Options { checks_tensor_memory, opt_level, ..Options::new(sm) };
        let code = compile_with(&input, options).unwrap_or_else(|error| panic!("{error:?}\n{statement}"));
        let kernel = Kernel::compiled(&input.env, &code, sass::Sm(sm.number as u8), &prepared.device);
        execute(&prepared, &kernel).err().is_some_and(|error| error.ends_with("trap"))
    };
    let [fast, slow] = [3, 0].map(|level| runs(true, level));
    assert_eq!(fast, slow, "{statement} {words:x?}");
    [fast, runs(false, 3)]
}

#[track_caller]
fn check(statement: &str, right: &[[u32; 4]], wrong: &[[u32; 4]]) {
    check_of(false, statement, right, wrong);
}

/// Other faults of the emulator do not count: not all statements are complete programs.
#[track_caller]
fn check_of(pair: bool, statement: &str, right: &[[u32; 4]], wrong: &[[u32; 4]]) {
    for (all, wanted) in [(right, false), (wrong, true)] {
        for words in all {
            assert_eq!(traps(pair, statement, *words), [wanted, false], "{statement} {words:x?}");
        }
    }
}

const QUARTER: u32 = 1 << 21;
const MIDDLE: u32 = 16 << 16;

#[test]
fn loads_and_stores() {
    let wrong =
        [[61, 0, 0, 0], [64, 0, 0, 0], [509, 0, 0, 0], [512, 0, 0, 0], [0xffff, 0, 0, 0], [QUARTER, 0, 0, 0]];
    let right = [[0, 0, 0, 0], [60, 0, 0, 0]];
    for statement in [
        "tcgen05.ld.sync.aligned.32x32b.x4.b32 {%v0, %v1, %v2, %v3}, [%w2];",
        "tcgen05.st.sync.aligned.32x32b.x4.b32 [%w2], {%r3, %r3, %r3, %r3};",
        "tcgen05.ld.sync.aligned.16x64b.x2.b32 {%v0, %v1}, [%w2];",
        "tcgen05.ld.sync.aligned.16x128b.x1.b32 {%v0, %v1}, [%w2];",
        "tcgen05.st.sync.aligned.32x32b.x2.unpack::16b.b32 [%w2], {%r3, %r3};",
        "tcgen05.ld.sync.aligned.16x32bx2.x2.pack::16b.b32 {%v0, %v1}, [%w2], -4;",
    ] {
        check(statement, &right, &wrong);
    }
    check(
        "tcgen05.st.sync.aligned.16x256b.x1.b32 [%w2 + 4], {%r3, %r3, %r3, %r3};",
        &[[52, 0, 0, 0]],
        &[[53, 0, 0, 0]],
    );
    // A statement whose guard is false is not checked.
    let guarded = "setp.ne.u32 %p2, %r3, 0;\n@%p2 tcgen05.ld.sync.aligned.32x32b.x1.b32 {%v0}, [%w2];";
    check(guarded, &[[64, 0, 0, 0]], &[[64, 1, 0, 0]]);
}

#[test]
fn allocations() {
    let take = "@%p1 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [place], %r3;\n\
         bar.sync 0;\nld.shared.u32 %r7, [place];\n@%p1 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r7, %r3;";
    check(
        take,
        &[[0, 32, 0, 0], [0, 256, 0, 0]],
        &[[0, 96, 0, 0], [0, 0, 0, 0], [0, 1024, 0, 0], [0, 1 << 31, 0, 0]],
    );
}

#[test]
fn copies_and_shifts() {
    let copy = |shape| format!("@%p1 tcgen05.cp.cta_group::1.{shape} [%r2], %rd1;");
    check(&copy("128x256b"), &[[0, 0, 0, 0], [56, 0, 0, 0]], &[[57, 0, 0, 0], [96, 0, 0, 0], [511, 0, 0, 0]]);
    for shape in ["128x128b", "32x128b.warpx4", "64x128b.warpx2::02_13"] {
        check(&copy(shape), &[[60, 0, 0, 0]], &[[61, 0, 0, 0]]);
    }
    check("@%p1 tcgen05.shift.cta_group::1.down [%r2];", &[[56, 0, 0, 0]], &[[57, 0, 0, 0], [512, 0, 0, 0]]);
}

/// An instruction descriptor.
const fn description(rows: u32, columns: u32, sparse: bool) -> u32 {
    (rows / 16) << 24 | (columns / 8) << 17 | (sparse as u32) << 2
}

const TALL: u32 = description(128, 64, false);
const SMALL: u32 = description(64, 32, false);
const SPARSE: u32 = description(64, 32, true);

#[test]
fn products() {
    let shared =
        |kind: &str| format!("@%p1 tcgen05.mma.cta_group::1.kind::{kind} [%r2], %rd1, %rd1, %r3, %p1;");
    let right = [[0, TALL, 0, 0], [32, SMALL, 0, 0], [MIDDLE, SMALL, 0, 0]];
    let wrong = [
        [1, TALL, 0, 0],
        [33, SMALL, 0, 0],
        [448, TALL, 0, 0],
        [MIDDLE, TALL, 0, 0],
        [8 << 16, SMALL, 0, 0],
        [0, SPARSE, 0, 0],
    ];
    for kind in ["f16", "tf32", "f8f6f4", "i8"] {
        check(&shared(kind), &right, &wrong);
    }
    let weights = "@%p1 tcgen05.mma.ws.cta_group::1.kind::f16 [%r2], %rd1, %rd1, %r3, %p1;";
    check(weights, &[[0, SMALL, 0, 0]], &[[MIDDLE, SMALL, 0, 0]]);
    let tensor =
        "add.u32 %r4, %r4, %r1;\n@%p1 tcgen05.mma.cta_group::1.kind::f16 [%r2], [%r4], %rd1, %r3, %p1;";
    check(
        tensor,
        &[[0, SMALL, 56, 0], [0, SMALL, MIDDLE | 56, 0]],
        &[[0, SMALL, 57, 0], [0, SMALL, 1 << 16, 0], [0, TALL, MIDDLE, 0]],
    );
    let sparse = "add.u32 %r4, %r4, %r1;\n@%p1 tcgen05.mma.sp.cta_group::1.kind::f16 [%r2], %rd1, %rd1, [%r4], %r3, %p1;";
    check(sparse, &[[0, SPARSE, 62, 0]], &[[0, SPARSE, 63, 0], [0, SMALL, 62, 0], [0, SPARSE, 2 << 16, 0]]);
}

#[test]
fn products_of_pairs() {
    let dense = "@%p1 tcgen05.mma.cta_group::2.kind::f16 [%r2], %rd1, %rd1, %r3, %p1;";
    let (rows, sparse) = (description(128, 32, false), description(128, 32, true));
    check_of(true, dense, &[[0, rows, 0, 0]], &[[MIDDLE, rows, 0, 0], [33, rows, 0, 0]]);
    let metadata = "add.u32 %r4, %r4, %r1;\n@%p1 tcgen05.mma.sp.cta_group::2.kind::f16 [%r2], %rd1, %rd1, [%r4], %r3, %p1;";
    check_of(true, metadata, &[[MIDDLE, sparse, 0, 0]], &[[MIDDLE, sparse | 16 << 24, 0, 0]]);
}

#[test]
fn scaled_products() {
    let scaled = |group: u32, kind: &str| {
        format!(
            "add.u32 %r4, %r4, %r1;\nadd.u32 %r5, %r5, %r1;\n\
             @%p1 tcgen05.mma.cta_group::{group}.kind::{kind} [%r2], %rd1, %rd1, %r3, [%r4], [%r5], %p1;"
        )
    };
    let rows = description(128, 32, false);
    let right = [[0, rows, 60, 62], [0, TALL, 60, 62]];
    let wrong = [
        [0, rows, 61, 0],
        [0, rows, 0, 63],
        [0, description(128, 64, false) + (8 << 17), 0, 0],
        [0, rows, 1 << 16, 0],
    ];
    for kind in [
        "mxf8f6f4.block_scale.scale_vec::1X",
        "mxf4.block_scale.scale_vec::2X",
        "mxf4nvf4.block_scale.scale_vec::4X",
    ] {
        check(&scaled(1, kind), &right, &wrong);
    }
    let high = description(256, 32, false);
    let kind = "mxf8f6f4.block_scale.scale_vec::1X";
    check_of(
        true,
        &scaled(2, kind),
        &[[0, rows, 62, 0], [0, high, 60, 0]],
        &[[0, rows, 63, 0], [0, high, 61, 0]],
    );
}

/// Programs without violations give the same results.
#[test]
fn right_programs() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels");
    let cases = description::folder(&folder).unwrap_or_else(|error| panic!("{error}"));
    let mut count = 0;
    for described in cases.iter().filter(|described| described.name.starts_with("tensor_")) {
        let (name, case) = (&described.name, &described.case);
        let input = input(&case.ptx, &case.kernel).unwrap_or_else(|error| panic!("{name}: {error}"));
        let interpreted = interpret(case, &input).unwrap_or_else(|error| panic!("{name}: {error}"));
        let sm = input.env.target;
        let options = Options { checks_tensor_memory: true, ..Options::new(sm) };
        let code = compile_with(&input, options).unwrap_or_else(|error| panic!("{name}: {error:?}"));
        match case::run(&input, &interpreted, sm, &code) {
            case::Outcome::Differs(how) => panic!("{name}: {how}"),
            _ => count += 1,
        }
    }
    assert!(count > 10, "{count} cases");
}
