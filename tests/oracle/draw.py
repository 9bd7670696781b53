#!/usr/bin/env python3
"""Lists random statements of the instruction table that ptxas accepts and ptxc refuses.

  draw.py [--arch sm_90a …] [--seed 1] [--most 50] [--grep TEXT] [--varied]

For each target, the script draws kernels of one statement each (syntax/isa/examples/draw.rs). ptxc must compile every
kernel that ptxas accepts, except those in EXCEPTIONS, and NVIDIA's disassembler must read the code. Refused kernels are
grouped by reason. --varied also draws operands and contexts that are rare in programs. PTXAS, PTXC and PTX_DRAW (the
compiled example) name the programs; `eval "$(tests/oracle/install.sh)"` sets PTXAS."""
import argparse
import collections
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import vendor

ROOT = pathlib.Path(__file__).parents[2]
PTXAS = os.environ.get("PTXAS", "ptxas")
PTXC = os.environ.get("PTXC", str(ROOT / "target/release/ptxc"))
DRAW = os.environ.get("PTX_DRAW", "cargo run --release --quiet -p ptx-isa --example draw --").split()
TARGETS = """sm_75 sm_80 sm_86 sm_87 sm_88 sm_89 sm_90 sm_90a sm_100 sm_100a sm_100f sm_103 sm_103a sm_103f sm_110 sm_110a
sm_110f sm_120 sm_120a sm_120f sm_121 sm_121a""".split()
# Statements that ptxas accepts and we refuse, because their meaning is not defined.
EXCEPTIONS = [
    (r"mma\.sync\.aligned\.m8n8k4\..*bf16", "ptxas makes no code of it"),
    (r"^cvt.*\.ue8m0x4\.f32", "ptxas gives zero for all operands that one would write"),
    (r"^(st|red)\.async.*complete_tx::bytes\S* \[[^\]]*\], [^\[]*;$", "without a barrier object ptxas makes no code of it"),
    (r"^st\.async\S*\.global\S* \[[^\]]*\], [^\[]*, \[", "with a barrier object ptxas makes no code of it, or ends with a fault"),
    (r"^testp\.f(32|64) ", "without a property ptxas makes no code of it"),
    (r"^madc\.hi\S*\.[su]16", "ptxas takes the upper half of a product of 32 bits"),
    (r"^fma\.r[zmp].*\.bf16", "ptxas computes with the operands as f16"),
    (r"^fma.*\.oob", "which NaN stands for what lies outside of a tensor is not written"),
    (r"^(ld|st)matrix.*\.m8n8\.x8", "ptxas loads and stores one matrix of the eight"),
    (r"^red\S* _,", "ptxas makes no code of a reduction without an address"),
    (r"^wmma\.mma.*\.[su]4\.[su]4", "of a shape that no factor of four bits has, ptxas makes the smallest product"),
    (r"^fence\.proxy\.tensormap.*\[tex\]", "a texture is no tensor map"),
    (r"^txq\.(memory_layout|force_unnormalized_coords.*\[%)", "ptxas reads the first word of a table, whatever that is"),
    (r"^txq\.force_unnormalized_coords.*\[tex\]", "a texture has no such attribute"),
    (r"^tex\.(?!level|grad)\S*\.s32 [^;]*\}\]?, %x\d+;$", "a depth comparison of an element that is not filtered"),
    (r"^tex\.level\S*\.s32 [^;]*\}\]?, [^,{}]+(, \{[^}]*\})?, %x\d+;$", "a depth comparison of an element that is not filtered"),
    (r"^mov\.v4\.[bsuf]16 .*\}, [^{]*;$", "ptxas puts all 16 bits into the first of four parts"),
    (r"^st\.async\.weak.*, \{", "without a vector's length ptxas makes no code of it"),
    (r"^st\.async\S*\.[bsuf]64 [^{]*\{[^},]*,[^},]*,", "ptxas makes no code of a vector of 32 bytes"),
    (r"^st\.async\.mmio", "ptxas ends with a fault, or makes no code of it"),
    (r"^cp\.reduce\.async\.bulk\.tensor.*scatter4", "ptxas makes a plain store of it"),
    (r"^(mov|clusterlaunchcontrol\.query_cancel\S*)\.b128 .*%x\d+\+", "ptxas adds the register's own words and the stack pointer"),
]
# The number of kernels in one module.
TOGETHER = 400
NUMBER = re.compile(r"\bk(\d+)\b")


def draw(arch, seed, most, varied):
    """Returns the text before the kernels, and the kernels by number."""
    kind = "varied" if varied else "plain"
    text = subprocess.run([*DRAW, arch, str(seed), str(most), kind], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    head, *kernels = re.split(r"^(?=\.visible \.entry)", text, flags=re.M)
    return head, dict(enumerate(kernels))


def statement(kernel):
    return next(line.strip() for line in kernel.splitlines() if line.startswith("\t"))


def compile_with(tool, arch, head, kernels, folder, extra=()):
    """Returns None if the tool accepts all kernels, else its messages by kernel number, or by None if they name no line."""
    source, output = folder / "drawn.ptx", folder / "drawn.cubin"
    output.unlink(missing_ok=True)
    line, starts = head.count("\n") + 1, {}
    for number, kernel in kernels.items():
        starts[line] = number
        line += kernel.count("\n")
    source.write_text(head + "".join(kernels.values()))
    try:
        said = subprocess.run([tool, f"-arch={arch}", *extra, "-o", output, source], capture_output=True, text=True, timeout=600)
    except subprocess.TimeoutExpired:
        return {None: ["it takes longer than ten minutes"]}
    if said.returncode == 0:
        return None
    messages = collections.defaultdict(list)
    order = sorted(starts)
    for text in (said.stdout + said.stderr).splitlines():
        at = re.search(r"line (\d+)|\.ptx:(\d+)", text)
        named = NUMBER.search(text)
        if re.search(r"(warning|info) *:", text):
            continue
        if at:
            number = int(at[1] or at[2])
            before = [start for start in order if start <= number]
            messages[starts[before[-1]] if before else None].append(text)
        elif named and int(named[1]) in kernels:
            messages[int(named[1])].append(text)
        else:
            messages[None].append(text)
    return messages


def judge(tool, arch, head, kernels, folder, extra=()):
    """Returns the numbers of the kernels that the tool accepts, and its messages about the others."""
    messages = compile_with(tool, arch, head, kernels, folder, extra)
    if messages is None:
        return set(kernels), {}
    refused = {number: texts for number, texts in messages.items() if number is not None}
    rest = {number: kernel for number, kernel in kernels.items() if number not in refused}
    if not refused and len(kernels) == 1:
        return set(), {next(iter(kernels)): messages[None] or ["it ends without a word"]}
    if refused:
        taken, more = judge(tool, arch, head, rest, folder, extra) if rest else (set(), {})
        return taken, {**refused, **more}
    numbers = list(kernels)
    taken, said = set(), {}
    for part in (numbers[: len(numbers) // 2], numbers[len(numbers) // 2 :]):
        more = judge(tool, arch, head, {number: kernels[number] for number in part}, folder, extra)
        taken |= more[0]
        said |= more[1]
    return taken, said


def unread(arch, head, kernels, taken, folder):
    """Returns the errors of NVIDIA's disassembler about our code, by kernel number."""
    if not taken:
        return {}
    messages = compile_with(PTXC, arch, head, {number: kernels[number] for number in taken}, folder)
    said = subprocess.run([vendor.NVDISASM, folder / "drawn.cubin"], capture_output=True, text=True) if messages is None else None
    if said and said.returncode == 0:
        return {}
    if len(taken) == 1:
        return {taken[0]: [said.stderr if said else str(messages)]}
    return {**unread(arch, head, kernels, taken[: len(taken) // 2], folder), **unread(arch, head, kernels, taken[len(taken) // 2 :], folder)}


def exception(text):
    """The reason why a statement is an exception, or None if it is not."""
    text = re.sub(r"^@!?%\w+ ", "", text)
    return next((why for pattern, why in EXCEPTIONS if re.search(pattern, text)), None)


def reason(texts):
    text = re.sub(r"^.*?: (error|fatal)[^:]*: ", "", texts[0])
    text = re.sub(r"^.*error\s*:\s*", "", text)
    text = re.sub(r"line \d+;?|\bk\d+\b|'[^']*'|%x\d+|\d+", "…", text)
    return text[:150]


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--arch", nargs="*", default=TARGETS)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--most", type=int, default=50, help="names of each form")
    options.add_argument("--grep", default="")
    options.add_argument("--varied", action="store_true")
    options.add_argument("--examples", type=int, default=3)
    options = options.parse_args()
    wrong = 0
    for arch in options.arch:
        head, kernels = draw(arch, options.seed, options.most, options.varied)
        kernels = {number: kernel for number, kernel in kernels.items() if options.grep in statement(kernel)}
        accepted, refused, unreadable = 0, {}, {}
        numbers = list(kernels)
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            for at in range(0, len(numbers), TOGETHER):
                some = {number: kernels[number] for number in numbers[at : at + TOGETHER]}
                theirs, _ = judge(PTXAS, arch, head, some, folder, ["-O1"])
                accepted += len(theirs)
                if not theirs:
                    continue
                taken, said = judge(PTXC, arch, head, {number: some[number] for number in sorted(theirs)}, folder)
                refused |= said
                unreadable |= unread(arch, head, kernels, sorted(taken), folder)
        excepted = {number for number in refused if exception(statement(kernels[number]))}
        refused = {number: texts for number, texts in refused.items() if number not in excepted}
        wrong += len(refused) + len(unreadable)
        print(f"{arch}: {len(kernels)} drawn, ptxas takes {accepted}, ptxc refuses {len(refused)} and {len(excepted)} exceptions, not read {len(unreadable)}", flush=True)
        groups = collections.defaultdict(list)
        for number, texts in [*refused.items(), *unreadable.items()]:
            groups[reason(texts)].append(statement(kernels[number]))
        for why, statements in sorted(groups.items(), key=lambda group: -len(group[1])):
            print(f"{len(statements):5} {why}")
            for text in statements[: options.examples]:
                print(f"          {text}")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
