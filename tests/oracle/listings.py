#!/usr/bin/env python3
"""Compares the listings of cubins that `cuobjdump -sass` and `sass dis` print, and assembles their lines with `sass asm`.

  listings.py [--targets sm_75,sm_90] [--most 20] PATHS...     PTX files, cubins, or folders of them

ptxas compiles the PTX files for each target that accepts them, at most --most files per target. For each target, the
script prints the share of instructions whose text is the same, and the share that `sass asm` assembles from the lines of
a function to the same word, ignoring the control word. The exit status is 0 if both shares are at least 99.9 %."""
import argparse
import collections
import os
import pathlib
import subprocess
import sys
import tempfile

import vendor

PTXAS = os.environ.get("PTXAS", "ptxas")
WANTED = 99.9
TARGETS = "sm_75,sm_80,sm_86,sm_89,sm_90,sm_100,sm_103,sm_120"


def cubins(paths, targets, most, folder):
    """Yields the cubins among the files, and the cubins that ptxas compiles from the PTX files."""
    files = []
    for path in map(pathlib.Path, paths):
        files += sorted(path.rglob("*")) if path.is_dir() else [path]
    yield from (file for file in files if file.suffix == ".cubin")
    sources = [file for file in files if file.suffix == ".ptx"]
    for target in targets:
        made = 0
        # Take files from the whole list instead of only the first ones.
        for file in sources[:: max(1, len(sources) // (2 * most))]:
            out = pathlib.Path(folder) / f"{file.stem}.{target}.cubin"
            done = subprocess.run([PTXAS, f"-arch={target}", "-o", out, file], capture_output=True)
            if done.returncode == 0:
                made += 1
                yield out
                out.unlink()
            if made == most:
                break


def assembled(sass, arch, lines):
    """The word for each line (OFFSET, TEXT), or None for a line that is refused."""
    text = "".join(f"{address:x}\t{text}\n" for address, text in lines)
    answer = subprocess.run([*sass.split(), "asm", "--arch", arch], input=text, capture_output=True, text=True)
    for line in answer.stdout.splitlines():
        yield sum(int(half, 16) << 64 * i for i, half in enumerate(line.split())) if line else None


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("paths", nargs="+")
    options.add_argument("--targets", default=TARGETS)
    options.add_argument("--most", type=int, default=20)
    options.add_argument("--sass", default=vendor.SASS)
    options.add_argument("--examples", type=int, default=10)
    options = options.parse_args()
    total, texts, words = (collections.Counter() for _ in range(3))
    misses = collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        for cubin in cubins(options.paths, options.targets.split(","), options.most, folder):
            theirs = list(vendor.listing(str(cubin)))
            ours = subprocess.run([*options.sass.split(), "dis", cubin], capture_output=True, text=True).stdout
            ours = [vendor.squeeze(text) for _, text in vendor.LINE.findall(ours)]
            if not theirs:
                continue
            arch = theirs[0][0]
            made = assembled(options.sass, arch, [(address, text) for _, address, _, text in theirs])
            for index, (_, _, word, text) in enumerate(theirs):
                total[arch] += 1
                own = ours[index] if index < len(ours) else None
                texts[arch] += own == text
                back = next(made, None)
                same = back is not None and (back ^ word) & ~vendor.CONTROL_MASK == 0
                words[arch] += same
                if own != text:
                    misses[f"{arch} text: NVIDIA {vendor.kind(text)}, we {own and vendor.kind(own)}"] += 1
                elif not same:
                    misses[f"{arch} asm: {vendor.kind(text)}"] += 1
    good = bool(total)
    for arch in sorted(total):
        text, word = (100 * count[arch] / total[arch] for count in (texts, words))
        good &= text >= WANTED and word >= WANTED
        print(f"{arch:7} {total[arch]:8} instructions: text {text:.3f} %, assembled {word:.3f} %")
    for miss, count in misses.most_common(options.examples):
        print(f"  {count:5} x {miss}")
    sys.exit(not good)


if __name__ == "__main__":
    main()
