//! Faults that the interpreter finds in running programs, and programs without faults, in which it must find none.

use conformance::case::{Argument, Case, Compare, input, interpret};

/// Runs a kernel with the given numbers of blocks and threads. `a` is a buffer of 4 KiB with numbers; `b` is a buffer
/// that has not been written. Returns the fault with its line in the body; empty if there is none.
fn found(grid: u32, block: u32, body: &str) -> String {
    const HEAD: &str = ".version 8.0\n.target sm_80\n.address_size 64\n\
         .visible .entry k(.param .u64 a, .param .u64 b)\n{\n\
         .reg .pred %p<4>;\n.reg .b32 %r<9>;\n.reg .b64 %d<9>;\n.reg .b32 %me;\n\
         .shared .align 8 .b8 tile[1024];\n.local .align 8 .b8 own[64];\n\
         ld.param.u64 %d0, [a];\nld.param.u64 %d1, [b];\nmov.u32 %me, %tid.x;\nmov.u64 %d2, tile;\nmov.u64 %d3, own;\n\
         mul.wide.u32 %d4, %me, 4;\nadd.u64 %d5, %d2, %d4;\nadd.u64 %d6, %d0, %d4;\nadd.u64 %d7, %d1, %d4;\n";
    let numbers = (0..1024u32).flat_map(u32::to_le_bytes).collect();
    let arguments =
        vec![Argument::Buffer(numbers, Compare::Exact), Argument::Unwritten(4096, Compare::Exact)];
    let case = Case::new(format!("{HEAD}{body}\nret;\n}}\n"), grid, block, arguments);
    let input = input(&case.ptx, "").unwrap_or_else(|error| panic!("{error}"));
    let Err(text) = interpret(&case, &input) else { return String::new() };
    let rest = text.strip_prefix("interpreter: line ").unwrap_or_else(|| panic!("no line: {text}"));
    let (line, what) = rest.split_once(": ").unwrap_or_else(|| panic!("no text: {text}"));
    let line = line.parse::<usize>().expect("a number") - HEAD.matches('\n').count();
    // The number of the statement adds nothing to the line.
    let what = what.split_once(": ").map_or(what, |(_, what)| what);
    format!("{line}: {what}")
}

#[track_caller]
fn finds(grid: u32, block: u32, body: &str, wanted: &str) {
    assert_eq!(found(grid, block, body), wanted, "{body}");
}

#[test]
fn accesses_outside_of_memory() {
    finds(1, 32, "ld.global.u32 %r1, [%d6];\nst.global.u32 [%d7], %r1;", "");
    finds(
        1,
        32,
        "mov.u32 %r1, 1;\nld.global.u32 %r1, [%d6+4000];",
        "2: 4 bytes at 0x1000011000 are outside global memory",
    );
    finds(1, 1, "st.shared.u32 [tile+1024], %me;", "1: 4 bytes at 0x400 are outside shared memory");
    finds(1, 1, "st.local.u32 [own+64], %me;", "1: 4 bytes at 0x40 are outside local memory");
    finds(1, 1, "mov.u64 %d1, 64;\nst.u32 [%d1], %me;", "2: 4 bytes at 0x40 are outside global memory");
}

#[test]
fn misaligned_accesses() {
    finds(1, 1, "ld.global.u64 %d1, [%d0+8];", "");
    finds(1, 1, "ld.global.u64 %d1, [%d0+4];", "1: 8 bytes at 0x1000010004 of global memory are misaligned");
    finds(
        1,
        1,
        "st.shared.v4.u32 [tile+8], {%me, %me, %me, %me};",
        "1: 16 bytes at 0x8 of shared memory are misaligned",
    );
    finds(1, 1, "atom.shared.add.u32 %r1, [tile+2], 1;", "1: 4 bytes at 0x2 of shared memory are misaligned");
}

#[test]
fn reads_of_what_nobody_wrote() {
    finds(1, 1, "st.shared.u32 [tile+4], 1;\nld.shared.u32 %r1, [tile+4];", "");
    finds(
        1,
        1,
        "st.shared.u32 [tile], 1;\nld.shared.u64 %d8, [tile];",
        "2: 8 bytes at 0x0 of shared memory are read and were never written",
    );
    finds(
        1,
        1,
        "atom.shared.add.u32 %r1, [tile], 1;",
        "1: 4 bytes at 0x0 of shared memory are read and were never written",
    );
    finds(1, 1, "st.local.u32 [own], 1;\nld.local.u16 %r1, [own+2];", "");
    finds(
        1,
        1,
        "st.local.u16 [own], %me;\nld.local.u32 %r1, [own];",
        "2: 4 bytes at 0x0 of local memory are read and were never written",
    );
    finds(1, 32, "st.global.u32 [%d7], %me;\nld.global.u32 %r1, [%d7];", "");
    finds(
        1,
        32,
        "st.global.u32 [%d7], %me;\nld.global.u32 %r1, [%d7+4];",
        "2: 4 bytes at 0x1000030080 of global memory are read and were never written",
    );
    finds(1, 1, "add.u32 %r1, %r2, 1;", "1: register 10 of type b32 is read and was never written");
    finds(
        1,
        32,
        "setp.lt.u32 %p1, %me, 31;\n@%p1 mov.u32 %r2, 1;\nadd.u32 %r1, %r2, 1;",
        "3: register 10 of type b32 is read and was never written",
    );
}

#[test]
fn races_in_a_block() {
    let exchange = |between: &str| {
        format!(
            "st.shared.u32 [%d5], %me;\n{between}\nxor.b32 %r1, %me, 32;\nmul.wide.u32 %d8, %r1, 4;\n\
             add.u64 %d8, %d2, %d8;\nld.shared.u32 %r2, [%d8];"
        )
    };
    finds(1, 64, &exchange("bar.sync 0;"), "");
    finds(1, 64, "st.shared.u32 [tile], 7;", "");
    // The second warp writes data that the first one has read.
    finds(
        1,
        64,
        "st.shared.u32 [tile], %me;",
        "1: race: warp 1 of block 0 writes shared memory at 0x0 that warp 0 uses",
    );
    finds(
        1,
        64,
        "st.global.u32 [%d1], %me;",
        "1: race: warp 1 of block 0 writes global memory at 0x1000030000 that warp 0 uses",
    );
    finds(
        1,
        64,
        "ld.global.u32 %r1, [%d0+128];\nst.global.u32 [%d6], 5;",
        "2: race: warp 1 of block 0 writes global memory at 0x1000010080 that other warps use",
    );
    finds(1, 64, "ld.global.u32 %r1, [%d0+128];\nbar.sync 0;\nst.global.u32 [%d6], 5;", "");
    finds(1, 64, "st.volatile.global.u32 [%d1], %me;", "");
}

#[test]
fn races_between_blocks() {
    let later = |between: &str| {
        format!(
            "mov.u32 %r1, %ctaid.x;\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 st.global.u32 [%d0], 5;\n{between}\n\
             @!%p1 ld.global.u32 %r2, [%d0];"
        )
    };
    finds(
        2,
        1,
        &later(""),
        "5: race: warp 0 of block 1 reads global memory at 0x1000010000 that warp 0 of block 0 uses",
    );
    // A barrier synchronizes only its own block.
    assert!(found(2, 1, &later("bar.sync 0;")).contains("race"));
    finds(2, 1, &later("fence.acq_rel.gpu;"), "");
    finds(2, 1, &later("atom.global.add.u32 %r3, [%d0+8], 1;"), "");
    finds(2, 1, "red.global.add.u32 [%d0], 1;", "");
}

#[test]
fn barriers_that_never_open() {
    finds(1, 64, "bar.sync 0;\nbarrier.sync 1, 64;", "");
    // Exited threads do not count.
    finds(1, 64, "setp.lt.u32 %p1, %me, 32;\n@%p1 bra OVER;\nbar.sync 0;\nOVER:", "");
    finds(
        1,
        64,
        "setp.lt.u32 %p1, %me, 32;\n@%p1 bra OTHER;\nbar.sync 0;\nret;\nOTHER:\nbar.sync 1;",
        "6: deadlock: threads 0xffffffff of warp 0 wait at barrier 1, threads 0xffffffff of warp 1 wait at barrier 0",
    );
    finds(
        1,
        64,
        "bar.sync 2, 96;",
        "1: deadlock: threads 0xffffffff of warp 0 wait at barrier 2, threads 0xffffffff of warp 1 wait at barrier 2",
    );
}

#[test]
fn threads_of_a_warp_that_wait_for_each_other() {
    let parted = |first: &str, second: &str| {
        format!(
            "setp.lt.u32 %p1, %me, 16;\n@%p1 bra LOW;\n{first}\nbra END;\nLOW:\n{second}\nEND:\nmov.u32 %r8, 0;"
        )
    };
    finds(1, 32, &parted("bar.warp.sync 0xffff0000;", "bar.warp.sync 0xffff;"), "");
    // Threads with the same mask may wait at different places of the same instruction.
    finds(1, 32, &parted("bar.warp.sync -1;", "bar.warp.sync -1;"), "");
    let ballot = "vote.sync.ballot.b32 %r1, %p1, -1;";
    finds(1, 32, &parted(ballot, ballot), "");
    finds(
        1,
        32,
        &parted("bar.warp.sync -1;", "bar.warp.sync 0x1ffff;"),
        "6: deadlock: threads 0xffff of warp 0 wait at bar.warp.sync, threads 0xffff0000 of warp 0 wait at bar.warp.sync",
    );
    finds(
        1,
        32,
        &parted("shfl.sync.idx.b32 %r1, %me, 0, 31, -1;", "vote.sync.ballot.b32 %r1, %p1, -1;"),
        "6: deadlock: threads 0xffff of warp 0 wait at vote, threads 0xffff0000 of warp 0 wait at shfl",
    );
    // A thread that has exited counts as arrived.
    finds(1, 32, &parted("bar.warp.sync -1;", "ret;"), "");
    finds(
        1,
        32,
        "vote.sync.ballot.b32 %r1, 1, 0xffff;",
        "1: malformed: a thread that its mask does not name",
    );
}
