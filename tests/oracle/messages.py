#!/usr/bin/env python3
"""Finds smallest inputs for messages of ptxas, and checks those that are stored.

  messages.py check            run ptxas on the inputs of tests/messages/inputs.txt; list those with another message
  messages.py add < FILE       store inputs of a file, which are separated by empty lines, where they are better
  messages.py find [--seed N] [--tries N]
                               change the examples of our pages at random, and store an input for each message that
                               still lacks one, or a smaller input

tests/messages/inputs.txt describes its format. After `find`, `PTX_BLESS=1 cargo test -p conformance --lib messages`
rewrites docs/ptxas-messages.md. PTXAS and PTX_CHECK name the programs; `eval "$(tests/oracle/install.sh)"` sets PTXAS."""
import argparse
import collections
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).parents[2]
INPUTS = ROOT / "tests/messages/inputs.txt"
PTXAS = os.environ.get("PTXAS", "ptxas")
PTX_CHECK = os.environ.get("PTX_CHECK", str(ROOT / "target/release/ptx-check"))
TARGETS = ["sm_90a", "sm_100a", "sm_75"]
# The parts of the module around a statement. tests/src/messages.rs reads the files in the same way.
MODULE = (ROOT / "tests/messages/module.ptx").read_text()
BEFORE_MODULE, BEFORE_BODY, AFTER = re.split(r"// MODULE\n|// BODY\n", MODULE)
SAID = re.compile(r"^ptxas (?:\S+, line (\d+); )?(\w+)\s*: (.*)$")
ABORTED = "Ptx assembly aborted due to errors"
# The number of kernels in one module.
TOGETHER = 60


class Row:
    """A message of ptxas, with an input that causes it if one is known."""

    def __init__(self, severity, template):
        self.severity, self.template, self.codes, self.target, self.arch, self.input = severity, template, "", "sm_90a", "", []
        pattern = re.sub(r"(?<![A-Za-z])N(?![A-Za-z])|(?<=sm_)N|(?<=\(C)N", r"-?(?:0x[\\da-f]+|\\d[\\d.]*[af]?)", re.escape(template).replace(r"\*", ".*?"))
        self.pattern = re.compile(pattern)

    def lines(self):
        yield f"{self.severity}: {self.template}"
        if self.codes:
            yield f"code: {self.codes}"
        if self.input and self.target != "sm_90a":
            yield f"target: {self.target}"
        if self.arch:
            yield f"arch: {self.arch}"
        yield from (f"    {line}".rstrip() for line in self.input)
        yield ""

    def module(self):
        return module("\n".join(self.input) + "\n", self.target)

    def run_target(self):
        """The target that ptxas is told."""
        named = re.search(r"^\.target (sm_\w+)", self.module(), re.M)
        return self.arch or (named[1] if named and "sm_102" not in named[1] else self.target)


def module(text, target):
    """The module of an input: the input itself, or with the header, or as the body of a kernel."""
    head = BEFORE_MODULE.replace("TARGET", target)
    if text.startswith((".version", "//")):
        return text
    if text.startswith("."):
        return head + text
    return head + BEFORE_BODY + text + AFTER


def read():
    head, rows = [], []
    for line in INPUTS.read_text().splitlines():
        if line.startswith("#"):
            head.append(line)
        elif line.startswith("    "):
            rows[-1].input.append(line[4:])
        elif line.startswith("code: "):
            rows[-1].codes = line[6:]
        elif line.startswith("target: "):
            rows[-1].target = line[8:]
        elif line.startswith("arch: "):
            rows[-1].arch = line[6:]
        elif line:
            rows.append(Row(*line.split(": ", 1)))
    return head, rows


def write(head, rows):
    INPUTS.write_text("\n".join([*head, "", *(line for row in rows for line in row.lines())]))


def ptxas(text, arch, folder):
    """The messages of ptxas: line or None, severity, message."""
    path = folder / "m.ptx"
    path.write_text(text)
    try:
        ran = subprocess.run([PTXAS, f"-arch={arch}", "-o", folder / "m.cubin", path], capture_output=True, text=True, timeout=10, errors="replace")
    except subprocess.TimeoutExpired:
        return None
    if ran.returncode < 0:
        return None
    found = (SAID.match(line) for line in (ran.stdout + ran.stderr).splitlines())
    return [(int(m[1]) if m[1] else None, m[2].lower(), m[3]) for m in found if m and m[3] != ABORTED]


def row_of(rows, severity, message, known={}):
    """The row of a message. Remembers the rows of messages that differ only in names and numbers."""
    key = severity, re.sub(r"\d+", "N", re.sub(r"'[^']*'", "'*'", message))
    if key not in known:
        known[key] = row_of_new(rows, severity, message)
    return known[key]


def row_of_new(rows, severity, message):
    fits = [row for row in rows if row.severity == severity and row.pattern.fullmatch(message.strip())]
    return max(fits, key=lambda row: len(row.template), default=None)


def check():
    _, rows = read()
    bad = 0
    with tempfile.TemporaryDirectory() as name:
        for row in rows:
            if not row.input:
                continue
            said = ptxas(row.module(), row.run_target(), pathlib.Path(name)) or []
            if not any(severity == row.severity and row.pattern.fullmatch(message.strip()) for _, severity, message in said):
                bad += 1
                print(f"{row.severity}: {row.template}\n  {' '.join(row.input)[:200]}\n  ptxas: {said[:2]}")
    print(f"{sum(bool(row.input) for row in rows)} of {len(rows)} rows have an input, {bad} of them with another message of ptxas")


OPERANDS = """%p1 !%p1 %h1 %r1 %rd1 %f1 %fd1 _ 0 1 -1 3 4 16 31 4294967296 0.5 0f3F800000 {%r1} {%r1,%r2} {%r1,%r2,%r3} {%r1,%r2,%r3,%r4}
{%r1,%r2,%r3,%r4,%r5} {%f1,%f2} {%f1,%f2,%f3,%f4} {%h1,%h2} {%rd1,%rd2} {%r1,_} {_,_} {1,2} [smem] [data] [%r1] [%rd1] [%r1+4] [%rd1+3] [data+1] [1] [p] [%p1] [%f1] [image]
[image,{%r1}] [image,{%f1,%f2}] [surface,{%r1}] smem data image surface twice missing %tid.x %tid %r1|%p1 %p1|%p2 -%r1 %r1.x WARP_SZ (%r1) %laneid %clock64 [mbar] mbar 7/0 'a'
%envreg0 %q1 [%rd1,{%r1}] [%rd1,{%r1,%r2}] {{%r1}} "a" """.split()
MODIFIERS = ".foo .sat .ftz .rn .rz .approx .full .lo .hi .wide .cc .global .shared .local .const .param .volatile .relaxed .acquire .release .sc .weak .cta .gpu .sys .cluster .sync .aligned .uni .v2 .v4 .v8 .b8 .b16 .b32 .b64 .b128 .s8 .s16 .s32 .s64 .u8 .u16 .u32 .u64 .f16 .f16x2 .bf16 .bf16x2 .f32 .f64 .tf32 .e4m3 .e5m2 .pred .shared::cta .shared::cluster .L2::cache_hint .L1::no_allocate .L2::128B .noinc .expect_tx .1d .2d .3d .a1d .cube .x1 .x2 .x4 .row .col .trans .num .m8n8 .m16n8k8 .m16n8k16 .m64n8k16 .noftz .relu .nan .NaN .xorsign .abs .satfinite .mbarrier .multicast::cluster .tile .im2col .cta_group::1 .cta_group::2 .kind::f16 .kind::tf32 .level .grad .base .clamp .zero .trap .wrap .unified .nc .ca .cg .cs .lu .cv .wb .wt .add .min .max .and .or .xor .inc .dec .exch .cas .popc .eq .lt .arrive .red .all .any .ballot .up .down .bfly .idx .mmio .proxy .alias .async .noComplete .tensormap .read".split()


def seeds():
    """The statements of the examples of our pages."""
    for page in sorted((ROOT / "syntax/isa/docs").glob("*.md")):
        for block in re.findall(r"```ptx body\n(.*?)```", page.read_text(), re.S):
            text = re.sub(r"//.*", "", block)
            for statement in re.split(r"(?<=;)", text):
                statement = " ".join(statement.split())
                if re.fullmatch(r"(@!?%\w+ )?[a-z][\w.:]* ?[^;{]*(\{[^;{]*\}[^;{]*)*;", statement):
                    yield statement


def operands(text):
    parts, depth, part = [], 0, ""
    for c in text:
        depth += (c in "[({") - (c in "])}")
        if c == "," and depth == 0:
            parts.append(part.strip())
            part = ""
        else:
            part += c
    return [*parts, part.strip()] if part.strip() else parts


def changes(statement, tries):
    """Random changes of a statement, most with one change."""
    guard, name, rest = re.fullmatch(r"(@!?%\w+ )?([a-z][\w.:]*) ?(.*);", statement).groups()
    guard = guard or ""
    first, *mods = re.split(r"(?=\.)", name)
    ops = operands(rest)
    make = lambda mods, ops, guard=guard: f"{guard}{first}{''.join(mods)} {', '.join(ops)}".strip() + ";"
    yield make(mods, ops)
    for i in range(len(mods)):
        yield make(mods[:i] + mods[i + 1:], ops)
        yield make(mods[:i + 1] + mods[i:], ops)
    for i in range(len(ops)):
        yield make(mods, ops[:i] + ops[i + 1:])
    yield make(mods, [*ops, "%r1"])
    yield make(mods, ops, "@%r1 ")
    for _ in range(tries):
        new_mods, new_ops = list(mods), list(ops)
        for _ in range(random.choice([1, 1, 1, 2, 2, 3])):
            kind = random.random()
            if kind < 0.3 and new_mods:
                new_mods[random.randrange(len(new_mods))] = random.choice(MODIFIERS)
            elif kind < 0.5:
                new_mods.insert(random.randint(0, len(new_mods)), random.choice(MODIFIERS))
            elif kind < 0.6 and new_mods:
                new_mods.pop(random.randrange(len(new_mods)))
            elif kind < 0.9 and new_ops:
                new_ops[random.randrange(len(new_ops))] = random.choice(OPERANDS)
            elif kind < 0.95 and new_ops:
                new_ops.pop(random.randrange(len(new_ops)))
            else:
                new_ops.append(random.choice(OPERANDS))
        yield make(new_mods, new_ops)


def accepts(row, text):
    """Whether our program has no finding of the message's kind in the line of a text, or in any line of a module."""
    with tempfile.TemporaryDirectory() as name:
        path = pathlib.Path(name) / "m.ptx"
        whole = module(text + "\n", row.target)
        path.write_text(whole)
        ran = subprocess.run([PTX_CHECK, "--format=json", *([f"--arch={row.arch}"] if row.arch else []), path], capture_output=True, text=True)
        found = [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("{")]
    line = whole.split("\n").index(text) + 1 if "\n" not in text else None
    is_error = row.severity in ("error", "fatal")
    is_meant = lambda d: d["code"] in row.codes.split(", ") if row.codes else (d["severity"] == "error") == is_error
    return not any(is_meant(d) and line in (None, d["line"]) for d in found)


def add(texts):
    head, rows = read()
    with tempfile.TemporaryDirectory() as name:
        for text in texts:
            target, arch = "sm_90a", ""
            while match := re.match(r"(target|arch): (.*)\n", text):
                target, arch = (match[2], arch) if match[1] == "target" else (target, match[2])
                text = text[match.end():]
            text = text.strip("\n")
            probe = Row("", "")
            probe.input, probe.target, probe.arch = text.split("\n"), target, arch
            said = ptxas(probe.module(), probe.run_target(), pathlib.Path(name)) or []
            if not said:
                print("ptxas accepts:", text)
            # Of several messages, the most severe one.
            said.sort(key=lambda found: ["fatal", "error"].index(found[1]) if found[1] in ("fatal", "error") else 2)
            for _, severity, message in said[:1]:
                row = row_of(rows, severity, message)
                if row is None:
                    print("no row:", severity, message)
                elif not row.input or len(text) < len("\n".join(row.input)):
                    old = row.input, row.target, row.arch
                    row.input, row.target, row.arch = text.split("\n"), target, arch
                    if accepts(row, text):
                        print("we report another finding:", text)
                        row.input, row.target, row.arch = old
    write(head, rows)
    print(sum(bool(row.input) for row in rows), "of", len(rows), "rows have an input")


def find(tries):
    head, rows = read()
    drawn = sorted({change for seed in seeds() for change in changes(seed, tries)}, key=len)
    random.shuffle(drawn)
    print(len(drawn), "statements")
    # Candidates by row: length, text, target.
    best = collections.defaultdict(list)
    unknown = collections.Counter()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        # A statement that ends ptxas is left out, and so is one with a syntax error: ptxas stops at the first.
        for target in TARGETS:
            start = BEFORE_MODULE.replace("TARGET", target)
            for at in range(0, len(drawn), TOGETHER):
                work = [drawn[at:at + TOGETHER]]
                while work:
                    part = work.pop()
                    if not part:
                        continue
                    text, lines = start, {}
                    for number, statement in enumerate(part):
                        text += BEFORE_BODY.replace("kernel(", f"kernel{number}(")
                        lines[text.count("\n") + 1] = number
                        text += statement + "\n" + AFTER
                    said = ptxas(text, target, folder)
                    if said is None:
                        if len(part) > 20:
                            work += [part[:len(part) // 2], part[len(part) // 2:]]
                        continue
                    per = collections.defaultdict(list)
                    for line, severity, message in said:
                        per[lines.get(line)].append((severity, message))
                    fatal = [number for number, found in per.items() if number is not None and any(s == "fatal" or "Parsing error" in m for s, m in found)]
                    if fatal:
                        # Messages of the others are missing, so they are tried again.
                        work.append([s for number, s in enumerate(part) if number not in fatal])
                    for number, found in per.items():
                        if number is None or len(found) != 1:
                            continue
                        severity, message = found[0]
                        row = row_of(rows, severity, message)
                        if row is None:
                            unknown[severity, re.sub(r"'[^']*'", "'*'", message)] += 1
                        elif len(part[number]) < 160:
                            best[id(row)].append((len(part[number]), part[number], TARGETS.index(target)))
    for key, count in unknown.most_common(40):
        print("no row:", count, *key)
    by_id = {id(row): row for row in rows}
    # Our program must report a finding of the same kind on that line.
    for key, all_of_row in best.items():
        row = by_id[key]
        known = len(" ".join(row.input)) if row.input else 1 << 30
        for size, statement, target in sorted(set(all_of_row))[:12]:
            if size >= known:
                break
            target = TARGETS[target]
            old = row.input, row.target
            row.input, row.target = [statement], target
            if not accepts(row, statement):
                break
            row.input, row.target = old
        else:
            if not row.input:
                print("we report other findings:", row.template, "|", sorted(all_of_row)[0][1:])
    write(head, rows)
    print(sum(bool(row.input) for row in rows), "of", len(rows), "rows have an input")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["check", "add", "find"])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tries", type=int, default=60)
    arguments = parser.parse_args()
    random.seed(arguments.seed)
    match arguments.what:
        case "check":
            check()
        case "add":
            add(sys.stdin.read().strip("\n").split("\n\n"))
        case "find":
            find(arguments.tries)


if __name__ == "__main__":
    main()
