//! Tests that the order checker detects changed code, in which instructions were exchanged or removed.

use crate::orders;
use conformance::case::{self, Input, input};
use ptx_backend::assemble::JumpTable;
use ptx_backend::copies::{Statements, Unrolled};
use ptx_backend::input::{Function, Instr, SrcId, Stmt};
use ptx_backend::order;
use ptx_isa::{FormId, Mod, Sm};
use sass::{Field, Inst, Role};
use std::collections::{BTreeMap, BTreeSet};

/// The code of a function, for changes.
#[derive(Clone)]
struct Made {
    sm: sass::Sm,
    insts: Vec<Inst>,
    lines: Vec<Option<SrcId>>,
    unrolled: Vec<Unrolled>,
    joined: Vec<(SrcId, SrcId)>,
    spills: Vec<bool>,
    tables: Vec<JumpTable>,
    has_frame: bool,
}

impl Made {
    fn of(function: &Function, env: &ptx_backend::input::Env, sm: u8) -> Option<Made> {
        let options = ptx_backend::Options::new(Sm::new(sm.into()));
        let made = ptx_backend::compile(env, function, &options, &mut Default::default()).ok()?;
        let sm = sass::Sm(sm);
        let insts = made.code.iter().map(|&word| sass::decode(sm, word)).collect::<Option<_>>()?;
        let tables = made.tables;
        let ptx_backend::Copies { lines, unrolled, joined } = made.copies;
        let lines = lines.to_vec();
        let has_frame = made.resources.stack_bytes > 0;
        Some(Made { sm, insts, lines, unrolled, joined, spills: made.spills.to_vec(), tables, has_frame })
    }

    fn check(&self, input: &Input) -> Result<(), String> {
        let claims = order::Claims {
            lines: &self.lines,
            unrolled: &self.unrolled,
            joined: &self.joined,
            spills: &self.spills,
            never: &[],
            tables: &self.tables,
            frame_is_gone: !self.has_frame,
        };
        order::check(&input.env, &input.function, self.sm, &self.insts, claims)
            .map_err(|error| error.to_string())
    }

    fn remove(&mut self, at: usize) {
        self.insts[at] = Inst::new(sass::lookup(self.sm, "NOP", "").expect("a NOP"));
    }

    fn exchange(&mut self, a: usize, b: usize) {
        self.insts.swap(a, b);
        self.lines.swap(a, b);
        self.spills.swap(a, b);
    }

    fn name(&self, at: usize) -> &'static str {
        self.insts[at].form().mnemonic.split('.').next().unwrap_or("")
    }
}

#[derive(Clone, Copy, Debug)]
enum Mutation {
    Remove(usize),
    Exchange(usize, usize),
}

/// The guarantees of a statement that matter here.
struct Promise<'a>(&'a Instr);

impl Promise<'_> {
    fn has(&self, mods: &[Mod]) -> bool {
        mods.iter().any(|m| self.0.opcode.has(*m))
    }

    fn is_memory(&self) -> bool {
        let forms = [FormId::Ld, FormId::St, FormId::Atom, FormId::Red, FormId::CpAsync];
        let constant = self.has(&[Mod::Const, Mod::Param, Mod::ParamEntry, Mod::Nc]);
        self.is_fence() || forms.contains(&self.0.opcode.form) && !constant
    }

    fn is_fence(&self) -> bool {
        let forms = [
            FormId::Bar,
            FormId::Barrier,
            FormId::BarWarpSync,
            FormId::Membar,
            FormId::Fence,
            FormId::CpAsyncCommitGroup,
            FormId::CpAsyncWaitGroup,
            FormId::CpAsyncWaitAll,
        ];
        forms.contains(&self.0.opcode.form)
    }

    fn space(&self) -> Option<Mod> {
        let space = self
            .0
            .opcode
            .mods()
            .find(|m| matches!(m, Mod::Global | Mod::Shared | Mod::SharedCta | Mod::Local));
        if space == Some(Mod::SharedCta) { Some(Mod::Shared) } else { space }
    }

    fn is_weak_load(&self) -> bool {
        let strong = [Mod::Relaxed, Mod::Acquire, Mod::Volatile, Mod::Mmio];
        self.0.opcode.form == FormId::Ld && !self.has(&strong)
    }

    fn stays_before(&self, later: &Promise<'_>) -> bool {
        let spaces = self.space() == later.space() || self.space().is_none() || later.space().is_none();
        let volatile = |one: &Promise<'_>| one.has(&[Mod::Volatile, Mod::Mmio]);
        self.is_fence()
            || later.is_fence()
            || self.has(&[Mod::Acquire, Mod::AcqRel])
            || later.has(&[Mod::Release, Mod::AcqRel])
            || volatile(self) && volatile(later)
            || spaces && !(self.is_weak_load() && later.is_weak_load())
    }
}

/// Changes that PTX's memory model does not permit.
fn mutations(function: &Function, made: &Made) -> Vec<Mutation> {
    let statements: BTreeMap<SrcId, &Instr> = function
        .body
        .iter()
        .filter_map(|stmt| match stmt {
            Stmt::Instr(instr) => Some((instr.src, instr)),
            Stmt::Label(_) => None,
        })
        .collect();
    let numbers = Statements::of(function);
    let promise = |at: usize| -> Option<(SrcId, Promise<'_>)> {
        let src = made.lines[at]?;
        let promise = Promise(statements.get(&numbers.original(src))?);
        let own = !matches!(made.name(at), "LDL" | "STL") || promise.space() == Some(Mod::Local);
        (orders(made.name(at)) && own && promise.is_memory()).then_some((src, promise))
    };
    let boundaries: BTreeSet<usize> = (0..made.insts.len())
        .flat_map(|at| {
            let target = made.insts[at].target(at as u64 * 16).map(|to| (to / 16) as usize);
            let leaves = matches!(made.name(at), "BRA" | "EXIT" | "BSYNC" | "RET");
            target.into_iter().chain(leaves.then_some(at + 1))
        })
        .collect();
    let mut mutations = Vec::new();
    let mut last: Option<usize> = None;
    for at in 0..made.insts.len() {
        if boundaries.contains(&at) {
            last = None;
        }
        let Some((src, one)) = promise(at) else { continue };
        // Guessing the value that a swap will find gives no guarantee. Of an operation and the loop that replaces it,
        // only one is kept.
        let atomic = matches!(one.0.opcode.form, FormId::Atom | FormId::Red);
        let guesses = |at| matches!(made.name(at), "LD" | "LDG" | "LDS");
        let guess = atomic && guesses(at);
        let again = |other: &usize| *other != at && promise(*other).is_some_and(|(line, _)| line == src);
        let several = atomic && (0..made.insts.len()).filter(again).any(|other| !guesses(other));
        // Memory that only the thread itself sees need not be accessed.
        let is_own = one.space() == Some(Mod::Local);
        if !one.is_weak_load() && !is_own && !guess && !several {
            mutations.push(Mutation::Remove(at));
        }
        if let Some(before) = last
            && let Some((earlier, first)) = promise(before)
            && !exclusive(&made.insts[before], &made.insts[at])
        {
            let pair = [made.name(before), made.name(at)];
            let stays = match earlier.cmp(&src) {
                std::cmp::Ordering::Less => first.stays_before(&one) && !may_be_apart(made, before, at),
                // Both are fences of the same statement.
                std::cmp::Ordering::Equal => {
                    pair[0] == "MEMBAR"
                        || (pair[1] == "CCTL" && pair[0] != "ERRBAR")
                        || pair[0] == "ERRBAR" && pair[1] != "CCTL"
                        || pair == ["LDGDEPBAR", "DEPBAR"]
                }
                // Their order has been exchanged already.
                std::cmp::Ordering::Greater => false,
            };
            if stays {
                mutations.push(Mutation::Exchange(before, at));
            }
        }
        last = Some(at);
    }
    mutations
}

/// Whether different threads execute them, on the two sides of a branch.
fn exclusive(a: &Inst, b: &Inst) -> bool {
    a.get(Field::Guard) == b.get(Field::Guard) && a.get(Field::GuardNot) != b.get(Field::GuardNot)
}

/// Whether they use the same address with different offsets.
fn may_be_apart(made: &Made, a: usize, b: usize) -> bool {
    let address = |at: usize| -> Vec<_> {
        let of_address = |used: &sass::RegUse| matches!(used.role, Role::Address | Role::Base);
        made.insts[at].reads(made.sm).filter(of_address).map(|used| (used.file, used.index)).collect()
    };
    let offset = |at: usize| made.insts[at].get(Field::Offset);
    offset(a).is_some() && offset(b).is_some() && offset(a) != offset(b) && address(a) == address(b)
}

fn random(state: &mut u64) -> usize {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) as usize
}

/// The number of changes to try. The environment can set a larger number.
fn wanted() -> usize {
    std::env::var("PTX_ORDER_MUTATIONS").ok().and_then(|count| count.parse().ok()).unwrap_or(1000)
}

#[test]
fn exchanged_and_removed_instructions_are_found() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels");
    let mut paths: Vec<_> =
        std::fs::read_dir(folder).expect("kernels").map(|e| e.expect("a file").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "ptx"));
    paths.sort();
    let mut all: Vec<(Input, Made, Vec<Mutation>)> = Vec::new();
    for path in &paths {
        let text = std::fs::read_to_string(path).expect("text");
        let Ok(module) = case::parse(&text) else { continue };
        let names = text.split(".entry ").skip(1).filter_map(|rest| rest.split(['(', '\n']).next());
        for input in names.filter_map(|name| case::kernel_of(&module, name.trim()).ok()) {
            for sm in [75, 90, 120] {
                let Some(made) = Made::of(&input.function, &input.env, sm) else { continue };
                let mutations = mutations(&input.function, &made);
                // Only the compiler knows which statements are unreachable.
                if made.check(&input).is_ok() && !mutations.is_empty() {
                    all.push((input.clone(), made, mutations));
                }
            }
        }
    }
    assert!(all.len() > 50, "{} functions", all.len());
    let mut state = 1;
    let (mut missed, wanted) = (Vec::new(), wanted());
    for _ in 0..wanted {
        let (input, made, mutations) = &all[random(&mut state) % all.len()];
        let mutation = mutations[random(&mut state) % mutations.len()];
        let mut changed = made.clone();
        match mutation {
            Mutation::Remove(at) => changed.remove(at),
            Mutation::Exchange(a, b) => changed.exchange(a, b),
        }
        if changed.check(input).is_ok() {
            let text = |at: usize| sass::print(made.sm, &made.insts[at], at as u64 * 16);
            let what = match mutation {
                Mutation::Remove(at) => text(at),
                Mutation::Exchange(a, b) => format!("{} and {}", text(a), text(b)),
            };
            missed.push(format!("{} for sm_{}: {mutation:?}: {what}", input.function.name, made.sm.0));
        }
    }
    eprintln!("{} of {wanted} are found", wanted - missed.len());
    assert!(missed.len() * 100 <= wanted, "{} of {wanted} are missed:\n{}", missed.len(), missed.join("\n"));
}

/// Compiles one kernel, changes its code (given the places of the instructions with a name), and runs the checker.
fn found(body: &str, change: impl Fn(&mut Made, &dyn Fn(&str) -> Vec<usize>)) -> String {
    let ptx = format!(
        ".version 8.3\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p)\n{{\n\
         .reg .pred %p<2>;\n.reg .b32 %r<9>;\n.reg .b64 %d<9>;\n.shared .align 4 .b8 room[64];\n\
         ld.param.u64 %d0, [p];\nmov.u32 %r0, %tid.x;\nsetp.gt.u32 %p0, %r0, 3;\n{body}\nret;\n}}\n"
    );
    let input = input(&ptx, "k").unwrap_or_else(|error| panic!("{error}\n{ptx}"));
    let mut made = Made::of(&input.function, &input.env, 90).expect("it compiles");
    assert_eq!(made.check(&input), Ok(()));
    let before = made.clone();
    change(&mut made, &|name| (0..before.insts.len()).filter(|&at| before.name(at) == name).collect());
    made.check(&input).err().unwrap_or_default()
}

#[test]
fn messages_name_statements_and_reasons() {
    let volatile = "ld.volatile.shared.u32 %r1, [room];\nst.global.u32 [%d0], %r0;";
    assert_eq!(found(volatile, |made, of| made.remove(of("LDS")[0])), "statement 3: its access is missing");
    assert_eq!(found(volatile, |_, _| ()), "");
    let release = "st.global.u32 [%d0+4], %r0;\nst.release.gpu.global.u32 [%d0], %r0;";
    assert_eq!(
        found(release, |made, of| made.remove(of("MEMBAR")[0])),
        "statement 4: no MEMBAR before its access"
    );
    assert_eq!(
        found(release, |made, of| made.remove(of("ERRBAR")[0])),
        "statement 4: no ERRBAR before its access"
    );
    assert_eq!(
        found(release, |made, of| made.exchange(of("STG")[0], of("MEMBAR")[0])),
        "statement 3 and statement 4: their instructions are in the wrong order"
    );
    let acquire =
        "ld.acquire.gpu.global.u32 %r1, [%d0];\nld.global.u32 %r2, [%d0+4];\nst.global.u32 [%d0+8], %r2;";
    assert_eq!(
        found(acquire, |made, of| made.exchange(of("LDG")[0], of("CCTL")[0])),
        "statement 3: no CCTL after its access"
    );
    assert_eq!(
        found(acquire, |made, of| made.exchange(of("LDG")[1], of("CCTL")[0])),
        "statement 3 and statement 4: their instructions are in the wrong order"
    );
}

/// Values are spilled for any statement, also for a load or store of local memory.
#[test]
fn spills_are_told_from_local_variables() {
    let mut text =
        ".version 8.0\n.target sm_75\n.address_size 64\n.visible .entry k(.param .u64 p) .maxnreg 24 {\n\
                    .reg .b64 %d; .reg .b32 %r<34>; .local .align 16 .b8 array[128];\nld.param.u64 %d, [p];\n"
            .to_owned();
    let mut line = |what: String| text.push_str(&(what + ";\n"));
    // The address is not known to be that of the load.
    line("cvt.u32.u64 %r32, %d".into());
    line("and.b32 %r32, %r32, 60".into());
    line("mov.u32 %r33, array".into());
    line("add.u32 %r33, %r33, %r32".into());
    line("st.local.u32 [%r33], 1".into());
    (0..32).for_each(|i| line(format!("ld.volatile.global.u32 %r{i}, [%d+{}]", 4 * i)));
    line("ld.local.u32 %r32, [array+56]".into());
    (0..32).for_each(|i| line(format!("st.volatile.global.u32 [%d+{}], %r{i}", 4 * i)));
    line("st.global.u32 [%d], %r32".into());
    text.push('}');
    let input = input(&text, "k").expect("a kernel");
    let mut made = Made::of(&input.function, &input.env, 75).expect("compiles");
    assert_eq!(made.check(&input), Ok(()));
    let spills: Vec<usize> = (0..made.insts.len()).filter(|&at| made.spills[at]).collect();
    assert!(spills.len() > 8, "{} spills", spills.len());
    // Whatever statement they are spilled for.
    let local =
        (0..made.insts.len()).rfind(|&at| made.name(at) == "LDL" && !made.spills[at]).expect("the load");
    for &at in &spills {
        made.lines[at] = made.lines[local];
    }
    assert_eq!(made.check(&input), Ok(()));
    made.spills[local] = true;
    let error = made.check(&input).expect_err("an access of a variable is no spill");
    assert!(error.ends_with("a spill is not above the variables"), "{error}");
}

#[test]
fn copies_stay_with_what_waits_for_them() {
    let body = "mov.u32 %r1, room;\ncp.async.ca.shared.global [%r1], [%d0], 4;\ncp.async.commit_group;\n\
                cp.async.wait_group 0;\nbar.sync 0;\nld.shared.u32 %r2, [%r1];\nst.global.u32 [%d0], %r2;";
    let changed = "their instructions are in the wrong order";
    assert_eq!(found(body, |_, _| ()), "");
    assert_eq!(found(body, |made, of| made.remove(of("LDGSTS")[0])), "statement 4: its access is missing");
    assert_eq!(
        found(body, |made, of| made.remove(of("LDGDEPBAR")[0])),
        "statement 5: its LDGDEPBAR is missing"
    );
    let leaves = "statement 6: its DEPBAR is missing or leaves too many groups";
    assert_eq!(found(body, |made, of| made.remove(of("DEPBAR")[0])), leaves);
    let too_many = found(body, |made, of| {
        made.insts[of("DEPBAR")[0]].set(Field::Imm2, 1);
    });
    assert_eq!(too_many, leaves);
    let late = found(body, |made, of| made.exchange(of("LDGSTS")[0], of("LDGDEPBAR")[0]));
    assert_eq!(late, format!("statement 4 and statement 5: {changed}"));
    // A copy reads global memory as it was before a later store.
    let body = "mov.u32 %r1, room;\ncp.async.ca.shared.global [%r1], [%d0], 4;\nst.global.u32 [%d0+4], %r0;";
    let stored = found(body, |made, of| made.exchange(of("LDGSTS")[0], of("STG")[0]));
    assert_eq!(stored, format!("statement 4 and statement 5: {changed}"));
    let load = "mov.u32 %r1, room;\ncp.async.ca.shared.global [%r1], [%d0], 4;\nld.global.u32 %r2, [%d0+4];\nst.global.u32 [%d0+8], %r2;";
    assert_eq!(found(load, |made, of| made.exchange(of("LDGSTS")[0], of("LDG")[0])), "");
}

#[test]
fn accesses_of_different_bytes_may_change_places() {
    let stores = |offset: u32| {
        let body = format!("st.global.u32 [%d0], %r0;\nst.global.u32 [%d0+{offset}], 7;");
        found(&body, |made, of| made.exchange(of("STG")[0], of("STG")[1]))
    };
    assert_eq!(stores(4), "");
    assert_eq!(stores(2), "statement 3 and statement 4: their instructions are in the wrong order");
}

#[test]
fn a_load_for_several_statements_stands_where_each_may() {
    let loads = |between: &str| {
        let body = format!(
            "ld.shared.u32 %r1, [room];\n{between}\nld.shared.u32 %r2, [room+4];\nst.global.v2.u32 [%d0], {{%r1, %r2}};"
        );
        // The second load is removed, unless it was removed before, and the first load is attributed to it.
        found(&body, |made, of| {
            of("LDS").into_iter().skip(1).for_each(|at| made.remove(at));
            made.joined.push((SrcId(3), SrcId(5)));
        })
    };
    assert_eq!(loads("add.u32 %r0, %r0, 1;"), "");
    assert_eq!(loads("st.shared.u32 [room+16], %r0;"), "");
    let wrong = "statement 4 and statement 5: their instructions are in the wrong order";
    assert_eq!(loads("st.shared.u32 [room], %r0;"), wrong);
    assert_eq!(loads("bar.sync 0;"), wrong);
}

#[test]
fn instructions_stay_with_the_fence_before_them() {
    // A branch over enough stores that it is not replaced by guards.
    let stores: String = (0..9).map(|i| format!("st.global.u32 [%d0+{}], %r0;\n", 4 * i)).collect();
    let body = format!(
        "st.shared.u32 [room], %r0;\n@%p0 bra A;\nfence.acq_rel.cta;\n{stores}A:\nfence.sc.cta;\nld.global.u32 %r1, [%d0+64];\n\
         st.global.u32 [%d0], %r1;"
    );
    let lost = "the second's instruction can be reached without the first's";
    // The store moves after the first fence, and the load to the start.
    let text = found(&body, |made, of| made.exchange(of("STS")[0], of("MEMBAR")[0]));
    assert_eq!(text, format!("statement 3 and statement 5: {lost}"));
    let text = found(&body, |made, of| made.exchange(of("LDG")[0], of("S2R")[0]));
    assert_eq!(text, format!("statement 15 and statement 16: {lost}"));
}

/// A loop of volatile stores, which continues while its counter is below `limit`.
fn storing(limit: &str) -> String {
    format!(
        "mov.u32 %r1, 0;\nL:\nst.volatile.global.u32 [%d0], %r1;\nadd.u32 %r1, %r1, 1;\nsetp.lt.u32 %p1, %r1, {limit};\n\
         @%p1 bra L;"
    )
}

#[test]
fn each_iteration_has_its_instructions() {
    for (limit, copies) in [("3", 3), ("%r0", 7)] {
        let missing = "statement 4: its access is missing";
        for i in 0..copies {
            let text = found(&storing(limit), |made, of| {
                assert_eq!(of("STG").len(), copies);
                made.remove(of("STG")[i]);
            });
            assert_eq!(text, missing);
        }
        let exchanged = found(&storing(limit), |made, of| made.exchange(of("STG")[0], of("STG")[1]));
        assert_eq!(exchanged, "statement 4: their instructions are in the wrong order");
    }
}

#[test]
fn claims_of_unrolling_are_compared_with_the_code() {
    let claimed = |change: &dyn Fn(&mut Unrolled)| {
        found(&storing("5"), |made, _| made.unrolled.iter_mut().for_each(change))
    };
    let nowhere = "statement 4: an instruction that belongs to no statement";
    assert_eq!(claimed(&|_| ()), "");
    assert_eq!(claimed(&|loop_| loop_.pieces[0].iterations = 6), "statement 4: its access is missing");
    assert_eq!(claimed(&|loop_| loop_.pieces[0].iterations = 4), nowhere);
    assert_eq!(claimed(&|loop_| loop_.branch = SrcId(0)), "statement 0: is unrolled, but is in no loop");
    assert_eq!(found(&storing("5"), |made, _| made.unrolled.clear()), nowhere);
    let twice = found(&storing("5"), |made, _| made.unrolled.push(made.unrolled[0].clone()));
    assert_eq!(twice, "statement 7: is unrolled twice");
}
