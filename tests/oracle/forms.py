#!/usr/bin/env python3
"""Compares the texts of instruction words of every form in the table, on every generation, with NVIDIA's disassembler.

  forms.py [--arch sm_90] [--count 12] [--grep NAME]     texts that differ, and forms that NVIDIA never accepts
  forms.py --record                                      a word of each form that has no recorded instruction

Recorded words go to backend/sass/tests/recorded/made_sm_N.txt, one for each form, with the text of NVIDIA's
disassembler. `cargo run -p sass --example coverage` lists the forms without a recorded word."""
import argparse
import collections
import pathlib
import subprocess
import sys

import listings
import vendor
import walk

HEAD = "# Words made of rows of the table: address, word, text of NVIDIA's disassembler."
ROOT = pathlib.Path(__file__).parents[2]
RECORDED = ROOT / "backend/sass/tests/recorded"
BUILD = ["cargo", "run", "--release", "--quiet", "-p", "sass", "--example"]


def samples(count):
    """(form, generation) -> words. A form is its name, shape and range of generations."""
    text = subprocess.run([*BUILD, "forms", "--", str(count)], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    found = collections.defaultdict(list)
    for line in text.splitlines():
        name, shape, generations, sm, word = line.split("\t")
        found[(name, shape, generations), int(sm)].append(int(word, 16))
    return found


def compare(found, generations, sass):
    """Yields (form, generation, [(word, NVIDIA's text, ours, address)])."""
    for sm in generations:
        keys = [key for key in found if key[1] == sm]
        words = [word & ~vendor.CONTROL_MASK | vendor.PLAIN_CONTROL for key in keys for word in found[key]]
        addresses = (at % vendor.WORDS_PER_CALL * vendor.INST_BYTES for at in range(len(words)))
        theirs, ours = vendor.vendor_texts(f"sm_{sm}", words), vendor.our_texts(f"sm_{sm}", words, sass)
        texts = zip(words, theirs, ours, addresses)
        for key in keys:
            yield key[0], sm, [next(texts) for _ in found[key]]


def check(options):
    wrong = 0
    for form, sm, texts in compare(samples(options.count), options.generations, options.sass):
        if options.grep not in form[0]:
            continue
        differ = [(word, one, other) for word, one, other, _ in texts if one is not None and one != other]
        refused = all(one is None for _, one, _, _ in texts)
        wrong += bool(differ) + refused
        if refused:
            print(f"sm_{sm} {' '.join(form)}: NVIDIA refuses all, such as {texts[0][0]:032x} {texts[0][2]}")
        for word, one, other in differ[: options.examples]:
            print(f"sm_{sm} {' '.join(form)}: {walk.difference(one, other)}\n  {word:032x}\n    NVIDIA: {one}\n    we:     {other}")
    print(f"{wrong} forms differ")
    return wrong > 0


def reads_back(sass, sm, sample):
    word, text, _, address = sample
    made = next(listings.assembled(sass, f"sm_{sm}", [(address, text)]), None)
    return made is not None and (made ^ word) & ~vendor.CONTROL_MASK == 0


def record(options):
    """Records, for each form without a recorded instruction, the first word for which NVIDIA prints the same text as we do."""
    unseen = subprocess.run([*BUILD, "coverage"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    unseen = {tuple(line.split("\t")) for line in unseen.splitlines()}
    lines, files = {}, collections.defaultdict(list)
    for form, sm, texts in compare(samples(max(options.count, 32)), options.generations, options.sass):
        if form not in unseen or form in lines:
            continue
        good = (sample for sample in texts if sample[1] is not None and sample[1] == sample[2])
        # The tests require that the text determines the whole word.
        good = next((sample for sample in good if reads_back(options.sass, sm, sample)), None)
        if good:
            word, text, _, address = good
            lines[form] = f"{address:x} {word:032x} {text}"
            files[sm].append(lines[form])
    for sm, new in files.items():
        path = RECORDED / f"made_sm_{sm}.txt"
        old = path.read_text().splitlines() if path.exists() else [HEAD]
        path.write_text("\n".join(old + new) + "\n")
    print(f"{len(lines)} words recorded; no word was accepted with our text for")
    for form in sorted(unseen - set(lines)):
        print("  " + " ".join(form))


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--arch", action="append")
    options.add_argument("--count", type=int, default=12)
    options.add_argument("--grep", default="")
    options.add_argument("--examples", type=int, default=1)
    options.add_argument("--record", action="store_true")
    options.add_argument("--sass", default=vendor.SASS)
    options = options.parse_args()
    options.generations = [vendor.generation(arch) for arch in options.arch or map(str, vendor.GENERATIONS)]
    if options.record:
        record(options)
    else:
        sys.exit(check(options))


if __name__ == "__main__":
    main()
