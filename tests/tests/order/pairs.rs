//! Each kind of access, fence and barrier before and after each other kind.

use crate::orders;
use conformance::case::{compile, input};
use ptx_backend::input::SrcId;
use ptx_isa::Sm;

/// Kinds of statements. `{a}` is an address in the state space; `{d}` and `{s}` are a destination and a source.
const ACCESSES: [&str; 14] = [
    "ld.weak{space}.u32 {d}, [{a}]",
    "st.weak{space}.u32 [{a}], {s}",
    "ld.volatile{space}.u32 {d}, [{a}]",
    "st.volatile{space}.u32 [{a}], {s}",
    "ld.relaxed.gpu{space}.u32 {d}, [{a}]",
    "st.relaxed.cta{space}.u32 [{a}], {s}",
    "ld.acquire.cta{space}.u32 {d}, [{a}]",
    "ld.acquire.sys{space}.u32 {d}, [{a}]",
    "st.release.cta{space}.u32 [{a}], {s}",
    "st.release.gpu{space}.u32 [{a}], {s}",
    "atom.relaxed.cta{space}.add.u32 {d}, [{a}], {s}",
    "atom.acquire.gpu{space}.exch.b32 {d}, [{a}], {s}",
    "atom.release.gpu{space}.cas.b32 {d}, [{a}], {s}, 7",
    "red.release.gpu{space}.add.u32 [{a}], {s}",
];

/// State spaces in which not all kinds exist.
const OTHERS: [&str; 8] = [
    "ld.local.u32 {d}, [{a}]",
    "st.local.u32 [{a}], {s}",
    "ld.mmio.relaxed.sys.global.u32 {d}, [{a}]",
    "st.mmio.relaxed.sys.global.u32 [{a}], {s}",
    "atom.acq_rel.gpu.shared.add.u32 {d}, [{a}], {s}",
    "cp.async.ca.shared.global [{a}], [%d2], 4",
    "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {{d}}, [{a}]",
    "ldmatrix.sync.aligned.m8n8.x2.trans.b16 {{d}, %v2}, [{a}]",
];

const FENCES: [&str; 11] = [
    "membar.cta",
    "membar.gl",
    "fence.acq_rel.sys",
    "fence.sc.cta",
    "bar.sync 0",
    "bar.arrive 1, 64",
    "bar.red.popc.u32 {d}, 0, %p0",
    "bar.warp.sync 0xffffffff",
    "cp.async.commit_group",
    "cp.async.wait_group 1",
    "cp.async.wait_all",
];

#[derive(Clone, Debug)]
struct Kind {
    text: String,
    space: &'static str,
}

fn kinds() -> Vec<Kind> {
    let mut kinds = Vec::new();
    for space in [".global", ".shared", ""] {
        kinds.extend(ACCESSES.map(|text| Kind { text: text.replace("{space}", space), space }));
    }
    for text in OTHERS {
        let space = [".local", ".global", ".shared"].into_iter().find(|space| text.contains(space));
        kinds.push(Kind { text: text.to_owned(), space: space.unwrap_or("") });
    }
    kinds.extend(FENCES.map(|text| Kind { text: text.to_owned(), space: "none" }));
    kinds
}

impl Kind {
    fn has(&self, word: &str) -> bool {
        self.text.split([' ', ',']).next().is_some_and(|name| name.split('.').any(|part| part == word))
    }

    fn is_fence(&self) -> bool {
        self.space == "none"
    }

    fn is_read(&self) -> bool {
        self.text.starts_with("ld")
    }

    /// Whether, under PTX's memory model, another thread could see an exchange of the two. Their addresses are not
    /// known to differ.
    fn stays_before(&self, later: &Kind) -> bool {
        let volatile = |kind: &Kind| kind.has("volatile") || kind.has("mmio");
        let overlap = self.space == later.space || self.space.is_empty() || later.space.is_empty();
        // A copy reads global memory too.
        let reads = |copy: &Kind, store: &Kind| {
            copy.has("cp") && matches!(store.space, ".global" | "") && !store.is_weak_load()
        };
        self.is_fence()
            || later.is_fence()
            || self.has("acquire")
            || self.has("acq_rel")
            || later.has("release")
            || later.has("acq_rel")
            || volatile(self) && volatile(later)
            || overlap && !(self.is_read() && later.is_read())
            || reads(self, later)
            || reads(later, self)
    }

    fn is_weak_load(&self) -> bool {
        self.has("ldmatrix") || self.text == OTHERS[0] || self.has("ld") && self.has("weak")
    }

    /// The statement with its operands, which depend on a load or are available from the start.
    fn statement(&self, late: bool, n: usize) -> String {
        let address = match (self.space, late) {
            (".global" | "", true) => "%d4",
            (".global" | "", false) => "%d1",
            (".shared", true) => "%s1",
            (".shared", false) => "%s0",
            (_, true) => "%l1",
            (_, false) => "%l0",
        };
        let source = if late { "%x1" } else { "%x0" };
        self.text.replace("{a}", address).replace("{d}", &format!("%v{n}")).replace("{s}", source)
    }
}

/// Two statements. The first one has to wait for a load, which gives the compiler a reason to exchange them.
fn kernel(first: &Kind, second: &Kind) -> (String, [SrcId; 2]) {
    let statements = [
        "ld.param.u64 %d0, [p]",
        "ld.param.u64 %d1, [q]",
        "add.u64 %d2, %d1, 64",
        "mov.u32 %x0, %tid.x",
        "setp.gt.u32 %p0, %x0, 3",
        "mov.u32 %s0, room",
        "mov.u32 %l0, own",
        "ld.global.u32 %x1, [%d0]",
        "mul.lo.u32 %x1, %x1, %x1",
        "cvt.u64.u32 %d3, %x1",
        "add.u64 %d4, %d0, %d3",
        "add.u32 %s1, %s0, %x1",
        "add.u32 %l1, %l0, %x1",
    ];
    let (first, second) = (first.statement(true, 0), second.statement(false, 1));
    let at = statements.len() as u32;
    let ptx = format!(
        ".version 8.3\n.target sm_80\n.address_size 64\n\
         .visible .entry k(.param .u64 p, .param .u64 q)\n{{\n\
         .reg .pred %p<2>;\n.reg .b32 %x<2>, %s<2>, %l<2>, %v<3>;\n.reg .b64 %d<5>;\n\
         .shared .align 4 .b8 room[64];\n.local .align 4 .b8 own[64];\n\
         {};\n{first};\n{second};\nret;\n}}\n",
        statements.join(";\n"),
    );
    (ptx, [SrcId(at), SrcId(at + 1)])
}

/// The machine instructions of a statement that affect memory, as positions in the code.
fn places(sm: u8, code: &[u128], lines: &[Option<SrcId>], of: SrcId) -> Vec<usize> {
    let name = |word| sass::decode(sass::Sm(sm), word).map_or("", |inst| inst.form().mnemonic);
    let is_memory = |word| {
        let name = name(word).split('.').next().unwrap_or("");
        orders(name) || name == "LDSM"
    };
    (0..code.len()).filter(|&i| lines[i] == Some(of) && is_memory(code[i])).collect()
}

fn check(sm: u8, first: &Kind, second: &Kind) -> Result<(), String> {
    let (ptx, [a, b]) = kernel(first, second);
    let input = input(&ptx, "k").unwrap_or_else(|error| panic!("{error}\n{ptx}"));
    let made = compile(&input, Sm::new(sm.into()), 3).map_err(|error| format!("{error}"))?;
    let [before, after] = [a, b].map(|src| places(sm, &made.kernel.code, &made.kernel.lines, src));
    for (kind, places) in [(first, &before), (second, &after)] {
        // Nothing reads the loaded value, or no other thread sees local memory.
        if places.is_empty() && !kind.is_weak_load() && !kind.has("weak") && !kind.has("local") {
            return Err("is deleted".to_owned());
        }
    }
    match (before.last(), after.first()) {
        (Some(x), Some(y)) if x > y && first.stays_before(second) => Err("change places".to_owned()),
        _ => Ok(()),
    }
}

#[test]
fn every_pair_keeps_the_order_that_ptx_promises() {
    let kinds = kinds();
    let mut wrong = Vec::new();
    for (i, first) in kinds.iter().enumerate() {
        for (j, second) in kinds.iter().enumerate() {
            // Each pair is tested on one generation, each kind on all of them.
            let sm = [80, 90, 120][(i + j) % 3];
            if let Err(how) = check(sm, first, second) {
                wrong.push(format!("sm_{sm}: {}; {}: {how}", first.text, second.text));
            }
        }
    }
    assert!(wrong.is_empty(), "{} pairs\n{}", wrong.len(), wrong.join("\n"));
}
