//! Faults that the interpreter finds in programs with asynchronous copies and products.

use conformance::case::{Argument, Case, Compare, input, interpret};

/// Runs a kernel for sm_90a with a buffer `a` of 4 KiB of numbers. Returns the fault; empty if there is none.
fn found(block: u32, body: &str) -> String {
    let head = ".version 8.6\n.target sm_90a\n.address_size 64\n\
         .visible .entry k(.param .u64 a)\n{\n\
         .reg .pred %p<4>;\n.reg .b32 %r<9>;\n.reg .b64 %d<9>;\n.reg .f32 %f<9>;\n\
         .shared .align 1024 .b8 room[8192];\n.shared .align 8 .b64 bar;\nld.param.u64 %d0, [a];\n";
    let numbers = (0..1024u32).flat_map(u32::to_le_bytes).collect();
    let arguments = vec![Argument::Buffer(numbers, Compare::Exact)];
    let case = Case::new(format!("{head}{body}\nret;\n}}\n"), 1, block, arguments);
    let input = input(&case.ptx, "").unwrap_or_else(|error| panic!("{error}"));
    let Err(text) = interpret(&case, &input) else { return String::new() };
    text.rsplit_once("at ").map_or(&*text, |_| text.split_once(": ").map_or("", |(_, rest)| rest)).to_owned()
}

#[track_caller]
fn finds(block: u32, body: &str, wanted: &str) {
    let text = found(block, body);
    assert!(text.ends_with(wanted) && text.is_empty() == wanted.is_empty(), "{text}\n{body}");
}

const COPY: &str = "mbarrier.init.shared.b64 [bar], 1;\n\
     mbarrier.arrive.expect_tx.shared.b64 %d1, [bar], 16;\n\
     cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [room], [%d0], 16, [bar];\n";
const WAIT: &str = "W: mbarrier.try_wait.shared.b64 %p1, [bar], %d1;\n@!%p1 bra W;\n";

#[test]
fn barrier_objects() {
    finds(1, "mbarrier.init.shared.b64 [bar], 1;\nmbarrier.arrive.shared.b64 %d1, [bar];", "");
    finds(1, "mbarrier.arrive.shared.b64 %d1, [bar];", "are read and were never written");
    finds(1, "st.shared.u64 [bar], 0;\nmbarrier.arrive.shared.b64 %d1, [bar];", "no barrier object is there");
    finds(
        1,
        "mbarrier.init.shared.b64 [bar], 1;\nmbarrier.arrive.shared.b64 %d1, [bar], 2;",
        "more arrivals than a barrier object expects",
    );
    finds(
        1,
        "mbarrier.init.shared.b64 [bar], 1;\nmbarrier.arrive.noComplete.shared.b64 %d1, [bar], 1;",
        "a .noComplete arrival completes the phase",
    );
    finds(1, "barrier.cluster.wait;", "a thread waits where it never arrived");
}

#[test]
fn copies_come_late() {
    finds(1, &format!("{COPY}{WAIT}ld.shared.u32 %r1, [room];"), "");
    finds(1, &format!("{COPY}ld.shared.u32 %r1, [room];\n{WAIT}"), "are read and were never written");
    let misaligned = COPY.replace("[room]", "[room+8]");
    finds(1, &misaligned, "of a bulk copy is no multiple of 16");
}

#[test]
fn registers_of_products() {
    let fill = "mov.u32 %r1, room;\nmov.u32 %r2, %tid.x;\nmad.lo.u32 %r1, %r2, 64, %r1;\nmov.u32 %r3, 0;\n\
         F: st.shared.u32 [%r1], 0;\nadd.u32 %r1, %r1, 4;\nadd.u32 %r3, %r3, 1;\nsetp.lt.u32 %p1, %r3, 16;\n@%p1 bra F;\n\
         bar.sync 0;\nmov.u32 %r1, room;\nshr.u32 %r1, %r1, 4;\ncvt.u64.u32 %d1, %r1;\nadd.u64 %d1, %d1, 0x1000080000;\n";
    let product = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %d1, %d1, 0, 1, 1, 0, 0;\n\
         wgmma.commit_group.sync.aligned;\n";
    let (fence, wait) = ("wgmma.fence.sync.aligned;\n", "wgmma.wait_group.sync.aligned 0;\n");
    let store = "st.global.f32 [%d0], %f0;\n";
    finds(128, &format!("{fill}{fence}{product}{wait}{store}"), "");
    finds(128, &format!("{fill}{product}{wait}"), "a product before any wgmma.fence");
    finds(
        128,
        &format!("{fill}{fence}{product}{store}{wait}"),
        "is used before the product that has it is waited for",
    );
    finds(
        128,
        &format!("{fill}{fence}mov.f32 %f2, 0f00000000;\n{product}{wait}"),
        "was written with no wgmma.fence before its product",
    );
}
