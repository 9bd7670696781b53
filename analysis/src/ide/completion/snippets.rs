//! Snippets of several statements, with placeholders.

use ptx_isa::Gate;

use super::{Collector, Rank};
use crate::ide::CompletionKind;
use crate::ide::setting::Setting;

/// A snippet in the syntax of the protocol. Each declares the registers that it uses in its own block.
pub(super) struct Snippet {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) gate: Gate,
    pub(super) text: &'static str,
}

/// Snippets for an empty file.
pub(super) const FILES: &[Snippet] = &[Snippet {
    name: "module",
    about: "module with a kernel in which each thread processes one element",
    gate: Gate::BASE,
    text: "\
.version ${1:8.0}
.target ${2:sm_80}
.address_size 64

.visible .entry ${3:kernel}(
    .param .u64 ${4:data},
    .param .u32 ${5:count}
)
{
    .reg .pred %p<2>;
    .reg .b32 %r<8>;
    .reg .b64 %rd<8>;

    ld.param.u64 %rd1, [$4];
    ld.param.u32 %r1, [$5];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.u32 %r5, %r2, %r3, %r4;
    setp.ge.u32 %p1, %r5, %r1;
    @%p1 bra DONE;
    cvta.to.global.u64 %rd2, %rd1;
    mad.wide.u32 %rd3, %r5, ${6:4}, %rd2;
    $0
DONE:
    ret;
}
",
}];

/// Between the items of a module.
pub(super) const ITEMS: &[Snippet] = &[
    Snippet {
        name: "kernel",
        about: "kernel in which each thread processes one element",
        gate: Gate::BASE,
        text: "\
.visible .entry ${1:kernel}(
    .param .u64 ${2:data},
    .param .u32 ${3:count}
)
{
    .reg .pred %p<2>;
    .reg .b32 %r<8>;
    .reg .b64 %rd<8>;

    ld.param.u64 %rd1, [$2];
    ld.param.u32 %r1, [$3];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.u32 %r5, %r2, %r3, %r4;
    setp.ge.u32 %p1, %r5, %r1;
    @%p1 bra DONE;
    cvta.to.global.u64 %rd2, %rd1;
    mad.wide.u32 %rd3, %r5, ${4:4}, %rd2;
    $0
DONE:
    ret;
}
",
    },
    Snippet {
        name: "func",
        about: "function with a parameter and a result",
        gate: Gate::BASE,
        text: "\
.func (.param .b32 ${1:result}) ${2:name}(.param .b32 ${3:value})
{
    .reg .b32 %r<4>;
    ld.param.b32 %r1, [$3];
    $0
    st.param.b32 [$1], %r1;
    ret;
}
",
    },
];

/// Between the statements of a body.
pub(super) const STATEMENTS: &[Snippet] = &[
    Snippet {
        name: "loop",
        about: "loop that counts up to a limit",
        gate: Gate::BASE,
        text: "\
{
    .reg .pred %again;
    .reg .u32 %i;
    mov.u32 %i, 0;
${1:LOOP}:
    $0
    add.u32 %i, %i, 1;
    setp.lt.u32 %again, %i, ${2:16};
    @%again bra $1;
}",
    },
    Snippet {
        name: "guard",
        about: "statements that only some threads execute",
        gate: Gate::BASE,
        text: "\
{
    .reg .pred %skip;
    .reg .u32 %thread;
    mov.u32 %thread, %tid.x;
    setp.ge.u32 %skip, %thread, ${1:32};
    @%skip bra ${2:SKIP};
    $0
$2:
}",
    },
    Snippet {
        name: "mma",
        about: "product of 16x16 and 16x8 `.f16` matrices in shared memory, accumulated in `.f32`",
        gate: Gate::since(7, 0, 80),
        text: "\
{
    .reg .b32 %a<4>, %b<2>, %row_a, %row_b;
    .reg .f32 %d<4>;
    // Lane i holds the address of row i mod 16 of A, of its first or its second half.
    mov.u32 %row_a, ${1:0};
    mov.u32 %row_b, ${2:0};
    mov.f32 %d0, 0f00000000;
    mov.f32 %d1, 0f00000000;
    mov.f32 %d2, 0f00000000;
    mov.f32 %d3, 0f00000000;
    ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%a0, %a1, %a2, %a3}, [%row_a];
    ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%b0, %b1}, [%row_b];
    mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
        {%d0, %d1, %d2, %d3}, {%a0, %a1, %a2, %a3}, {%b0, %b1}, {%d0, %d1, %d2, %d3};
    $0
}",
    },
    Snippet {
        name: "mbarrier",
        about: "arrive on an mbarrier object and wait for the phase",
        gate: Gate::since(7, 8, 90),
        text: "\
{
    .reg .pred %first, %done;
    .reg .b32 %thread;
    .reg .b64 %phase;
    .shared .align 8 .b64 ${1:barrier};
    // One thread initializes the object for all threads of the CTA.
    mov.u32 %thread, %tid.x;
    setp.eq.u32 %first, %thread, 0;
    @%first mbarrier.init.shared.b64 [$1], ${2:128};
    bar.sync 0;
    mbarrier.arrive.shared.b64 %phase, [$1];
    $0
${3:WAIT}:
    mbarrier.try_wait.shared.b64 %done, [$1], %phase;
    @!%done bra $3;
}",
    },
    Snippet {
        name: "cp.async",
        about: "asynchronous copy from global to shared memory and the wait for it",
        gate: Gate::since(7, 0, 80),
        text: "\
{
    .shared .align 16 .b8 ${1:tile}[512];
    .reg .b32 %to, %lane;
    .reg .b64 %from;
    mov.u32 %to, $1;
    mov.u64 %from, ${2:0};
    mov.u32 %lane, %tid.x;
    mad.lo.u32 %to, %lane, 16, %to;
    cp.async.cg.shared.global [%to], [%from], 16;
    cp.async.commit_group;
    $0
    cp.async.wait_group 0;
    bar.sync 0;
}",
    },
];

pub(super) fn offer(out: &mut Collector, setting: &Setting, snippets: &[Snippet]) {
    for snippet in snippets.iter().filter(|snippet| setting.has(&snippet.gate)) {
        let rank = Rank::legal(true, 1, 0);
        out.add_text(rank, snippet.name, CompletionKind::Snippet, snippet.about.to_owned(), snippet.text);
    }
}

/// The text with the suggestions in place of the placeholders.
pub(super) fn expanded(text: &str) -> String {
    let mut suggestions: Vec<(char, &str)> = Vec::new();
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('$') {
        out.push_str(before);
        if let Some((place, after)) = behind.strip_prefix('{').and_then(|place| place.split_once('}')) {
            let (number, suggestion) = place.split_once(':').unwrap_or((place, ""));
            suggestions.extend(number.chars().next().map(|number| (number, suggestion)));
            out.push_str(suggestion);
            rest = after;
        } else {
            let mut chars = behind.chars();
            let number = chars.next();
            let known = suggestions.iter().find(|(other, _)| Some(*other) == number);
            out.push_str(known.map_or("", |(_, suggestion)| suggestion));
            rest = chars.as_str();
        }
    }
    out + rest
}

/// A snippet as Markdown.
pub(super) fn documentation(name: &str) -> Option<String> {
    let snippet = FILES.iter().chain(ITEMS).chain(STATEMENTS).find(|snippet| snippet.name == name)?;
    Some(format!("{}\n\n```ptx\n{}\n```\n", snippet.about, expanded(snippet.text).trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::db::Database;
    use crate::diagnostic::Severity;
    use crate::ide;

    /// Each snippet is PTX without errors on the first target that supports it, also in an empty function.
    #[test]
    fn snippets_are_correct() {
        let all = [FILES, ITEMS, STATEMENTS].into_iter().enumerate();
        for (place, snippet) in all.flat_map(|(place, all)| all.iter().map(move |one| (place, one))) {
            let text = expanded(snippet.text);
            let sm = snippet.gate.targets.lowest().map_or(75, |lowest| lowest.max(75));
            let version = snippet.gate.ptx.max(ptx_isa::PtxVersion::new(6, 4));
            let header = format!(".version {version}\n.target sm_{sm}\n.address_size 64\n");
            let text = match place {
                0 => text,
                1 => header + &text,
                _ => format!("{header}.entry k()\n{{\n{text}\nret;\n}}\n"),
            };
            let db = Database::default();
            let file = db.add_file(text.as_str());
            let found = ide::diagnostics(&db, file);
            let wrong: Vec<_> = found.iter().filter(|d| d.severity == Severity::Error).collect();
            assert!(wrong.is_empty(), "{}: {wrong:#?}\n{text}", snippet.name);
        }
    }
}
