//! Unrolled loops as text.

use super::*;
use crate::copies::Statements;
use crate::ori::analyses::Analyses;
use crate::ori::op::Op;
use crate::ori::text;
use expect_test::{Expect, expect};

fn unrolled(body: &str) -> Function {
    unrolled_on(90, body)
}

fn unrolled_on(sm: u16, body: &str) -> Function {
    unrolled_after_fusion(sm, body, &[])
}

/// `fused`: the multiply-adds that were a product and a sum.
fn unrolled_after_fusion(sm: u16, body: &str, fused: &[SrcId]) -> Function {
    let mut func = text::parse(&format!("func \"f\" {{\n{body}\n}}")).unwrap();
    let analyses = Analyses::default();
    func.facts.statements = Statements::new(100);
    func.facts.fused = fused.to_vec();
    func.layout.clone().into_iter().for_each(|b| func.block_mut(b).may_unroll = true);
    run(&mut func, &Context::of(sm, &analyses)).unwrap();
    crate::ori::verify::verify(&func, crate::ori::verify::Stage::Built).unwrap();
    func
}

fn check(body: &str, expected: Expect) {
    expected.assert_eq(&text::print(&unrolled(body)));
}

/// A loop that stores its counter. The counter goes from `start` in steps of `step` while its comparison with `limit`
/// is true.
fn counting(start: &str, step: &str, compare: &str, limit: &str) -> String {
    format!(
        "b0:\n%v0:r = S2R{{sr=0x21}}\nJUMP b1\n\
         b1:\n%v1:r = phi b0 {start}, b1 %v2\nSTS %v1, RZ, %v1\n%v2:r, _, _ = IADD3 %v1, {step}, RZ\n\
         %v3:p, _ = ISETP.{compare}.AND %v2, {limit}, PT\nBRA %v3, b1, b2\n\
         b2:\nSTS %v0, RZ, %v2\nEXIT"
    )
}

fn is_unrolled(body: &str) -> bool {
    is_unrolled_on(90, body)
}

fn is_unrolled_on(sm: u16, body: &str) -> bool {
    let func = unrolled_on(sm, body);
    let stores = |b: &BlockId| func.block(*b).insts.iter().filter(|i| matches!(i.op, Op::Sts { .. })).count();
    func.layout.iter().map(stores).sum::<usize>() > 2
}

#[test]
fn loops_of_known_turns_become_straight() {
    check(
        &counting("RZ", "0x1", "LT", "0x3"),
        expect![[r#"
            func "f" {
            b0:
              %v0:r = S2R{sr=0x21}
              JUMP b3
            b3:
              JUMP b5
            b5:
              STS RZ, RZ, RZ
              %v5:r, _, _ = IADD3 RZ, 0x1, RZ
              %v6:p, _ = ISETP.LT.AND %v5, 0x3, PT
              JUMP b6
            b6:
              STS %v5, RZ, %v5 #100
              %v7:r, _, _ = IADD3 %v5, 0x1, RZ #100
              %v8:p, _ = ISETP.LT.AND %v7, 0x3, PT #100
              JUMP b7 #100
            b7:
              STS %v7, RZ, %v7 #200
              %v9:r, _, _ = IADD3 %v7, 0x1, RZ #200
              %v10:p, _ = ISETP.LT.AND %v9, 0x3, PT #200
              JUMP b4 #200
            b4:
              %v4:r = phi b7 %v9
              JUMP b2
            b2:
              STS %v0, RZ, %v4
              EXIT
            }
        "#]],
    );
}

/// The numbers of iterations of the pieces that replace a loop.
fn pieces(body: &str) -> Vec<u32> {
    let func = unrolled(body);
    func.facts.unrolled.iter().flat_map(|one| one.pieces.iter().map(|piece| piece.iterations)).collect()
}

/// As in ptxas's code. An iteration costs 2.
#[test]
fn remainders_precede_loops_of_known_trip_counts() {
    let of = |limit: &str| pieces(&counting("RZ", "0x1", "LT", limit));
    assert_eq!(of("0x7d0"), [8, 166]);
    assert_eq!(of("0x1000000"), [10, 162]);
}

#[test]
fn loops_of_known_trip_counts_with_several_blocks_stay() {
    let body = "b0:\n%v0:r = S2R{sr=0x21}\n%v9:p, _ = ISETP.LT.AND %v0, 0x5, PT\nJUMP b1\n\
         b1:\n%v1:r = phi b0 RZ, b4 %v2\nSTS %v1, RZ, %v1\nBRA %v9, b3, b4\n\
         b3:\nSTS %v0, RZ, %v1\nJUMP b4\n\
         b4:\n%v2:r, _, _ = IADD3 %v1, 0x1, RZ\n%v3:p, _ = ISETP.LT.AND %v2, 0x7d0, PT\nBRA %v3, b1, b2\n\
         b2:\nSTS %v0, RZ, %v0\nEXIT";
    assert_eq!(pieces(body), []);
    assert_eq!(pieces(&body.replace("0x7d0", "0x3")), [3]);
}

/// A loop stays if one of its branches depends on another one, unless the trip count is known. It is unrolled if the
/// branches follow each other, or if the block that the second one skips is a target of the first one.
#[test]
fn loops_of_unknown_trip_counts_with_nested_branches_stay() {
    let body = |first: &str, second: &str| {
        format!(
            "b0:\n%v0:r = S2R{{sr=0x21}}\n%v9:p, _ = ISETP.LT.AND %v0, 0x5, PT\n%v8:p, _ = ISETP.GT.AND %v0, 0x2, PT
            JUMP b1\nb1:\n%v1:r = phi b0 RZ, b4 %v2\nSTS %v1, RZ, %v1\nBRA %v9, {first}, b3
            b3:\nSTS %v1, RZ, %v0\nBRA %v8, {second}, b5\nb5:\nSTS %v0, RZ, %v1\nJUMP b4
            b4:\n%v2:r, _, _ = IADD3 %v1, 0x1, RZ\n%v3:p, _ = ISETP.LT.AND %v2, c[0x0][0x210], PT\nBRA %v3, b1, b2
            b2:\nSTS %v0, RZ, %v0\nEXIT"
        )
    };
    assert_eq!(pieces(&body("b4", "b4")), []);
    assert_eq!(pieces(&body("b5", "b4")), [4, 2, 1]);
    let in_turn = body("b3", "b4").replace("BRA %v9, b3, b3", "BRA %v9, b6, b3");
    let in_turn = in_turn.replace("b5:", "b6:\nSTS %v1, RZ, %v1\nJUMP b3\nb5:");
    assert_eq!(pieces(&in_turn), [4, 2, 1]);
    assert_eq!(pieces(&body("b4", "b4").replace("c[0x0][0x210]", "0x3")), [3]);
}

#[test]
fn trip_counts_are_computed_from_start_step_and_limit() {
    let of = |start, step, compare, limit| pieces(&counting(start, step, compare, limit));
    assert_eq!(of("RZ", "0x1", "LT", "0xa"), [10]);
    assert_eq!(of("RZ", "0x1", "LE", "0xa"), [11]);
    assert_eq!(of("0x1", "0x3", "LT.U32", "0xa"), [3]);
    assert_eq!(of("0x1", "0x3", "NE", "0xa"), [3]);
    assert_eq!(of("0x5", "0xfffffffd", "GT", "0xfffffffb"), [4]);
    assert_eq!(of("0x5", "0xfffffffe", "GE", "0xfffffffb"), [6]);
    assert_eq!(of("0xa", "0x1", "LT", "0x1"), [1]);
    assert_eq!(of("0xfffffff0", "0x1", "LT", "RZ"), [16]);
    // The variable wraps around.
    for (start, step, compare, limit) in
        [("RZ", "0x3", "NE", "0xa"), ("RZ", "0x1", "LE.U32", "0xffffffff"), ("RZ", "0x2", "LT", "0x7fffffff")]
    {
        assert_ne!(of(start, step, compare, limit).len(), 1, "{step} {compare} {limit}");
    }
}

#[test]
fn the_test_of_an_unknown_trip_count_reads_the_next_number() {
    let of_next = counting("%v0", "0x4", "LT", "c[0x0][0x210]");
    let of_this = of_next.replace("AND %v2,", "AND %v1,");
    assert!(is_unrolled(&of_next) && !is_unrolled(&of_this));
    assert!(is_unrolled(&counting("RZ", "0x4", "LT", "0x10").replace("AND %v2,", "AND %v1,")));
}

#[test]
fn other_loops_take_four_turns_while_so_many_are_left() {
    check(
        &counting("%v0", "0x4", "NE", "c[0x0][0x210]"),
        expect![[r#"
            func "f" {
            b0:
              %v0:r = S2R{sr=0x21}
              JUMP b3
            b3:
              %v15:r, _, _ = IADD3 %v0, 0x4, RZ
              %v16:r, _, _ = IADD3 c[0x0][0x210], -%v15, RZ
              %v17:p, _ = ISETP.GT.U32.AND %v16, 0x8, PT
              BRA %v17, b6, b5
            b6:
              %v6:r = phi b3 %v0, b9 %v13
              STS %v6, RZ, %v6
              %v7:r, _, _ = IADD3 %v6, 0x4, RZ
              %v8:p, _ = ISETP.NE.AND %v7, c[0x0][0x210], PT
              JUMP b7
            b7:
              STS %v7, RZ, %v7 #100
              %v9:r, _, _ = IADD3 %v7, 0x4, RZ #100
              %v10:p, _ = ISETP.NE.AND %v9, c[0x0][0x210], PT #100
              JUMP b8 #100
            b8:
              STS %v9, RZ, %v9 #200
              %v11:r, _, _ = IADD3 %v9, 0x4, RZ #200
              %v12:p, _ = ISETP.NE.AND %v11, c[0x0][0x210], PT #200
              JUMP b9 #200
            b9:
              STS %v11, RZ, %v11 #300
              %v13:r, _, _ = IADD3 %v11, 0x4, RZ #300
              %v14:p, _ = ISETP.NE.AND %v13, c[0x0][0x210], PT #300
              %v18:r, _, _ = IADD3 %v13, 0x4, RZ
              %v19:r, _, _ = IADD3 c[0x0][0x210], -%v18, RZ
              %v20:p, _ = ISETP.GT.U32.AND %v19, 0x8, %v14
              BRA %v20, b6, b10 #300
            b10:
              BRA %v14, b5, b4
            b5:
              %v5:r = phi b3 %v0, b10 %v13
              %v25:r, _, _ = IADD3 %v5, 0x4, RZ
              %v26:r, _, _ = IADD3 c[0x0][0x210], -%v25, RZ
              %v27:p, _ = ISETP.GT.U32.AND %v26, RZ, PT
              BRA %v27, b11, b1
            b11:
              STS %v5, RZ, %v5 #400
              %v21:r, _, _ = IADD3 %v5, 0x4, RZ #400
              %v22:p, _ = ISETP.NE.AND %v21, c[0x0][0x210], PT #400
              JUMP b12 #400
            b12:
              STS %v21, RZ, %v21 #500
              %v23:r, _, _ = IADD3 %v21, 0x4, RZ #500
              %v24:p, _ = ISETP.NE.AND %v23, c[0x0][0x210], PT #500
              BRA %v24, b1, b4 #500
            b1:
              %v1:r = phi b1 %v2, b5 %v5, b12 %v23
              STS %v1, RZ, %v1 #600
              %v2:r, _, _ = IADD3 %v1, 0x4, RZ #600
              %v3:p, _ = ISETP.NE.AND %v2, c[0x0][0x210], PT #600
              BRA %v3, b1, b4 #600
            b4:
              %v4:r = phi b1 %v2, b10 %v13, b12 %v23
              JUMP b2
            b2:
              STS %v0, RZ, %v4
              EXIT
            }
        "#]],
    );
}

#[test]
fn steps_go_towards_the_limit() {
    let unrolls = |step, compare| is_unrolled(&counting("%v0", step, compare, "c[0x0][0x210]"));
    assert!(unrolls("0x1", "LT") && unrolls("0x2", "LE.U32") && unrolls("0xffffffff", "GT"));
    assert!(!unrolls("0xffffffff", "LT") && !unrolls("0x1", "GE") && !unrolls("0x1", "EQ"));
}

#[test]
fn loops_in_which_threads_act_together_stay() {
    let body = counting("%v0", "0x1", "LT", "c[0x0][0x210]").replace("STS %v1, RZ, %v1\n", "BAR.SYNC RZ\n");
    assert!(!is_unrolled(&body));
}

#[test]
fn loops_with_another_way_out_stay() {
    let body = "b0:\n%v0:r = S2R{sr=0x21}\n%v9:p, _ = ISETP.LT.AND %v0, 0x5, PT\nJUMP b1\n\
         b1:\n%v1:r = phi b0 RZ, b3 %v2\nSTS %v1, RZ, %v1\nBRA %v9, b2, b3\n\
         b3:\n%v2:r, _, _ = IADD3 %v1, 0x1, RZ\n%v3:p, _ = ISETP.LT.AND %v2, 0x64, PT\nBRA %v3, b1, b2\n\
         b2:\nSTS %v0, RZ, %v0\nEXIT";
    assert!(!is_unrolled(body));
}

/// The counting loop with these operations before its store. An iteration of the counting loop alone costs 3.
fn costing(first: &str, sums: usize) -> String {
    let sums: String = (0..sums).map(|i| format!("%v{}:r, _, _ = IADD3 %v1, %v0, RZ\n", 20 + i)).collect();
    counting("%v0", "0x1", "LT", "c[0x0][0x210]").replacen("STS", &format!("{first}\n{sums}STS"), 1)
}

#[test]
fn loops_that_wait_for_memory_may_cost_more() {
    for (first, most) in [
        ("", 20),
        ("%v10:r = LDS %v1, RZ", 25 - 1),
        ("%v10:r = LDG.E RZ, RZ", 48 - 1),
        ("%v10:r = LDG.E{offset=4} RZ, RZ", 48 - 2),
    ] {
        assert!(is_unrolled(&costing(first, most - 3)), "{first}");
        assert!(!is_unrolled(&costing(first, most - 2)), "{first}");
    }
}

/// The counting loop with a branch before its test.
fn with_branch(body: &str) -> String {
    let branch = "%v6:p, _ = ISETP.LT.AND %v1, 0x5, PT\nBRA %v6, b3, b4\nb3:\nJUMP b4\nb4:\n%v3:p";
    body.replace("%v3:p", branch).replace("b1 %v2", "b4 %v2")
}

#[test]
fn branches_inside_a_loop_cost_as_much_as_operations() {
    let of = |sums| with_branch(&costing("", sums));
    assert!(is_unrolled(&of(20 - 5)) && !is_unrolled(&of(20 - 4)));
}

#[test]
fn both_halves_of_an_operation_cost_as_much_as_one() {
    let halves = "%v10:r = LOP3{lut=0xc0} %v0, %v1, RZ\n%v11:r = LOP3{lut=0xc0} RZ, %v1, RZ";
    let of = |sums| costing(halves, sums);
    assert!(is_unrolled(&of(20 - 4)) && !is_unrolled(&of(20 - 3)));
}

#[test]
fn fused_operations_cost_as_much_as_two() {
    let of = |sums, fused: &[SrcId]| {
        let func = unrolled_after_fusion(90, &costing("%v10:r = FFMA %v1, %v1, %v1 #7", sums), fused);
        !func.facts.unrolled.is_empty()
    };
    assert!(of(20 - 4, &[]) && !of(20 - 4, &[SrcId(7)]) && of(20 - 5, &[SrcId(7)]));
}

#[test]
fn loops_that_update_memory_stay_where_threads_leave_apart() {
    assert!(!is_unrolled(&costing("%v10:r = ATOMS.ADD.RELAXED.GPU RZ, RZ, 0x1", 0)));
}

/// As in ptxas's code. From sm_90 on, it unrolls loops in which threads of a warp wait for each other.
#[test]
fn loops_that_call_routines_or_wait_stay() {
    for (first, newer) in [
        ("%v10:r, _, _, _ = COMPUTE.QUOTIENT_F32 %v1, %v0, RZ, RZ", false),
        ("MEMBAR.SC.GPU", false),
        ("WARPSYNC 0xffffffff", true),
    ] {
        // All threads leave the loop together.
        let text = costing(first, 0).replace("phi b0 %v0", "phi b0 RZ");
        assert!(!is_unrolled_on(80, &text), "{first}");
        assert_eq!(is_unrolled_on(90, &text), newer, "{first}");
    }
}

/// As in ptxas's code.
#[test]
fn loops_that_store_what_they_load_stay_where_threads_leave_apart() {
    let address = |n: u32| format!("%v{n}:r2 = IMAD.WIDE %v1, 0x4, RZ\n");
    let (load, store) = ("%v10:r = LDG.E %v9, RZ\n", "STG.E %v8, RZ, %v10\n");
    let copy = [&address(9), &address(8), load, store].concat();
    assert!(!is_unrolled(&costing(&copy, 0)));
    // All threads leave the loop together.
    assert!(is_unrolled(&costing(&copy, 0).replace("phi b0 %v0", "phi b0 RZ")));
    // The stored value is not loaded, or not from the same memory.
    let unrelated = copy.replace("RZ, %v10\n", "RZ, %v0\n");
    assert!(is_unrolled(&costing(&unrelated, 0)));
    let shared = [&address(8), "%v10:r = LDS %v1, RZ\n", store].concat();
    assert!(is_unrolled(&costing(&shared, 0)));
    // Loads of other memory count only if an iteration is one block, and stores through phis only in the last block.
    let both = [&copy, "%v11:r = LDS %v1, RZ\n"].concat();
    assert!(is_unrolled(&costing(&both, 0)) && !is_unrolled(&with_branch(&costing(&both, 0))));
    let through_phi = copy.replace("STG.E %v8", "STG.E %v1");
    assert!(is_unrolled(&costing(&through_phi, 0)) && !is_unrolled(&with_branch(&costing(&through_phi, 0))));
}
