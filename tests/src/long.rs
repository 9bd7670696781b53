//! Long functions with a regular shape, for finding compile times that are not linear.
//!
//! `cargo bench -p conformance --bench long` shows the time per instruction; the test here counts checkpoints.

/// A program of about `size` instructions.
pub struct Shape {
    pub name: &'static str,
    pub program: fn(usize) -> String,
}

const HEADER: &str = ".version 8.0\n.target sm_80\n.address_size 64\n";

/// `%rd2` points to memory, `%r1` is a parameter, `%r2` differs between threads, `%r3` is zero.
const START: &str = "ld.param.u64 %rd1, [out];\ncvta.to.global.u64 %rd2, %rd1;\nld.param.u32 %r1, [n];
    mov.u32 %r2, %tid.x;\nmov.u32 %r3, 0;\n";

fn function(registers: usize, body: &str) -> String {
    format!(
        "{HEADER}.visible .entry f(.param .u64 out, .param .u32 n)\n{{\n.reg .b32 %r<{}>;\n.reg .b64 %rd<5>;
         .reg .pred %p<3>;\n{START}{body}st.global.u32 [%rd2], %r3;\nret;\n}}\n",
        registers + 10
    )
}

fn each(count: usize, line: impl Fn(usize) -> String) -> String {
    (0..count).map(line).collect()
}

fn backwards(count: usize, line: impl Fn(usize) -> String) -> String {
    (0..count).rev().map(line).collect()
}

pub const SHAPES: &[Shape] = &[
    Shape { name: "labels", program: |n| function(0, &each(n, |i| format!("L{i}:\n"))) },
    Shape {
        name: "branches to one label",
        program: |n| {
            let step =
                |i| format!("setp.eq.s32 %p1, %r2, {i};\n@%p1 bra END;\nmad.lo.s32 %r3, %r3, %r2, {i};\n");
            function(0, &(each(n / 3, step) + "END:\n"))
        },
    },
    Shape {
        name: "exits",
        program: |n| {
            let step = |i| format!("setp.eq.s32 %p1, %r2, {i};\n@%p1 bra END;\nst.global.u32 [%rd2], %r2;\n");
            function(0, &(each(n / 3, step) + "END:\n"))
        },
    },
    Shape {
        name: "jumps backwards",
        program: |n| {
            let count = n / 3;
            let next = |i: usize| if i == 0 { "END".to_owned() } else { format!("L{}", i - 1) };
            let step = |i| format!("L{i}:\nmul.lo.s32 %r3, %r3, %r2;\nbar.sync 0;\nbra {};\n", next(i));
            function(0, &format!("bra L{};\n{}END:\n", count - 1, each(count, step)))
        },
    },
    Shape {
        name: "nested loops",
        program: |n| {
            let enter = each(n / 4, |i| format!("L{i}:\nadd.s32 %r3, %r3, 1;\n"));
            let leave = backwards(n / 4, |i| format!("setp.lt.s32 %p1, %r3, {};\n@%p1 bra L{i};\n", i + 7));
            function(0, &(enter + &leave))
        },
    },
    Shape {
        name: "jumps back to one loop",
        program: |n| {
            let step =
                |i| format!("setp.eq.s32 %p1, %r2, {i};\n@%p1 bra L;\nmad.lo.s32 %r3, %r3, %r2, {i};\n");
            function(0, &("L:\n".to_owned() + &each(n / 3, step)))
        },
    },
    Shape {
        name: "groups of the warp",
        program: |n| {
            let step = "match.any.sync.b32 %r4, %r3, -1;\nvote.sync.ballot.b32 %r5, %p1, %r4;\n
                add.s32 %r3, %r3, %r5;\nadd.s32 %r3, %r3, %r2;\n";
            function(0, &("setp.lt.s32 %p1, %r2, %r1;\n".to_owned() + &step.repeat(n / 4)))
        },
    },
    Shape {
        name: "votes",
        program: |n| {
            let step =
                "setp.lt.s32 %p1, %r2, %r3;\nvote.sync.ballot.b32 %r5, %p1, -1;\nadd.s32 %r3, %r3, %r5;\n";
            function(0, &step.repeat(n / 3))
        },
    },
    Shape {
        name: "loops in a row",
        program: |n| {
            let step = |i| {
                format!(
                    "mov.u32 %r4, {i};\nL{i}:\nadd.s32 %r3, %r3, %r4;\nadd.s32 %r4, %r4, 3;
                     setp.lt.s32 %p1, %r4, %r2;\n@%p1 bra L{i};\n"
                )
            };
            function(0, &each(n / 5, step))
        },
    },
    Shape {
        name: "made of a counter",
        program: |n| {
            let step = |i| format!("xor.b32 %r{}, %r{}, %r1;\n", i + 10, if i == 0 { 4 } else { i + 9 });
            let end = format!(
                "add.s32 %r4, %r4, 1;\nsetp.lt.s32 %p1, %r4, %r1;\n@%p1 bra L;\nmov.u32 %r3, %r{};\n",
                n + 9
            );
            function(n, &("mov.u32 %r4, 0;\nL:\n".to_owned() + &each(n, step) + &end))
        },
    },
    Shape {
        name: "sums with carries in a loop",
        program: |n| {
            let step = "add.cc.u32 %r5, %r5, %r4;\naddc.u32 %r6, %r6, %r5;\n";
            let end = "add.s32 %r4, %r4, 1;\nsetp.lt.s32 %p1, %r4, %r1;\n@%p1 bra L;\nmov.u32 %r3, %r6;\n";
            let start = "mov.u32 %r4, 0;\nmov.u32 %r5, 0;\nmov.u32 %r6, 0;\nL:\n";
            function(0, &(start.to_owned() + &step.repeat(n / 2) + end))
        },
    },
    Shape {
        name: "invariants of a loop",
        program: |n| {
            let step = |i| {
                let (result, operand) = (i + 10, if i == 0 { 2 } else { i + 9 });
                format!(
                    "mad.lo.s32 %r{result}, %r{operand}, %r2, {i};\nadd.s32 %r5, %r4, %r{result};
                     st.global.u32 [%rd2+{}], %r5;\n",
                    4 * i
                )
            };
            let end = "add.s32 %r4, %r4, 1;\nsetp.lt.s32 %p1, %r4, %r1;\n@%p1 bra L;\n";
            function(n / 3, &("mov.u32 %r4, 0;\nL:\n".to_owned() + &each(n / 3, step) + end))
        },
    },
    Shape {
        name: "nested branches",
        program: |n| {
            let enter = each(n / 4, |i| {
                format!("setp.gt.s32 %p1, %r1, {i};\n@%p1 bra.uni E{i};\nst.global.u32 [%rd2], %r2;\n")
            });
            function(0, &(enter + &backwards(n / 4, |i| format!("E{i}:\nst.global.u32 [%rd2+4], %r3;\n"))))
        },
    },
    Shape {
        name: "diamonds",
        program: |n| {
            let step = |i| {
                format!(
                    "setp.eq.s32 %p1, %r3, {i};\n@%p1 bra A{i};\nst.global.u32 [%rd2], %r3;\nadd.s32 %r3, %r3, 1;
                     bra B{i};\nA{i}:\nst.global.u32 [%rd2+4], %r3;\nadd.s32 %r3, %r3, 5;\nB{i}:\n"
                )
            };
            function(0, &each(n / 7, step))
        },
    },
    Shape {
        name: "targets of one branch",
        program: |n| {
            let targets: Vec<String> = (0..n / 3).map(|i| format!("L{i}")).collect();
            let step = |i| format!("L{i}:\nadd.s32 %r3, %r2, {i};\nst.global.u32 [%rd2], %r3;\nbra END;\n");
            let list = format!("ts: .branchtargets {};\nbrx.idx %r2, ts;\n", targets.join(", "));
            function(0, &(list + &each(n / 3, step) + "END:\n"))
        },
    },
    Shape {
        name: "guarded",
        program: |n| {
            let step = |i| format!("@%p1 mul.lo.s32 %r3, %r3, {};\n", i | 1);
            function(0, &("setp.lt.s32 %p1, %r2, %r1;\n".to_owned() + &each(n, step)))
        },
    },
    Shape {
        name: "stores and loads",
        program: |n| {
            let at = |i: usize| (4 * i % 4096, 8 * i % 4096);
            let step = |i| {
                let (load, store) = at(i);
                format!("ld.global.u32 %r4, [%rd2+{load}];\nst.global.u32 [%rd2+{store}], %r4;\n")
            };
            function(0, &each(n / 2, step))
        },
    },
    Shape {
        name: "all live at once",
        program: |n| {
            let load = each(n / 2, |i| format!("ld.global.u32 %r{}, [%rd2+{}];\n", i + 10, 4 * i));
            let store = backwards(n / 2, |i| format!("st.global.u32 [%rd2+{}], %r{};\n", 4 * i, i + 10));
            function(n / 2, &(load + "bar.sync 0;\n" + &store))
        },
    },
    Shape {
        name: "joined at once",
        program: |n| {
            let load =
                |by: usize| each(n / 3, |i| format!("ld.global.u32 %r{}, [%rd2+{}];\n", i + 10, 4 * i + by));
            let store = backwards(n / 3, |i| format!("st.global.u32 [%rd2+{}], %r{};\n", 4 * i, i + 10));
            let (first, second) = (load(0), load(64));
            let branch = "setp.lt.s32 %p1, %r2, %r1;\n@%p1 bra A;\n";
            function(n / 3, &format!("{branch}{first}bra J;\nA:\n{second}J:\n{store}"))
        },
    },
    Shape {
        name: "exchanged in a loop",
        program: |n| {
            let count = n / 3;
            let load = each(count, |i| format!("ld.global.u32 %r{}, [%rd2+{}];\n", i + 10, 4 * i));
            let rotate = each(count - 1, |i| format!("mov.u32 %r{}, %r{};\n", i + 10, i + 11));
            let store = each(count, |i| format!("st.global.u32 [%rd2+{}], %r{};\n", 4 * i, i + 10));
            let last = count + 9;
            function(
                count,
                &format!(
                    "{load}L:\nmov.u32 %r4, %r10;\n{rotate}mov.u32 %r{last}, %r4;\nsetp.eq.s32 %p1, %r10, %r1;
                     @%p1 bra L;\n{store}"
                ),
            )
        },
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::input;
    use ptx_backend::{Options, Session};
    use ptx_isa::Sm;
    use std::cell::Cell;

    /// The number of checkpoints that the compiler passes. It passes one for about every block that it works on.
    fn checkpoints(shape: &Shape, size: usize) -> usize {
        let input = input(&(shape.program)(size), "f").unwrap_or_else(|e| panic!("{}: {e}", shape.name));
        let count = Cell::new(0);
        let checkpoint = || count.set(count.get() + 1);
        let options = Options::new(Sm::new(80));
        ptx_backend::compile(&input.env, &input.function, &options, &mut Session::new(&checkpoint))
            .unwrap_or_else(|e| panic!("{}: {e}", shape.name));
        count.get()
    }

    #[test]
    fn work_grows_with_length() {
        for shape in SHAPES {
            let (short, long) = (checkpoints(shape, 300), checkpoints(shape, 1200));
            assert!(long <= 5 * short + 200, "{}: {short} checkpoints, then {long}", shape.name);
        }
    }
}
