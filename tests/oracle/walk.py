#!/usr/bin/env python3
"""Walks the bits and fields of instruction words through NVIDIA's disassembler, to find or check rows of the table.

  walk.py --arch sm_90 WORD                        what each bit and each field of the word does
  walk.py --arch sm_90 WORD --field 84:3           the texts of all values of one field (LOW:WIDTH, or LOW:WIDTH+LOW:WIDTH)
  walk.py --arch sm_90 WORD --compare              the variations of the word that we and NVIDIA print differently
  walk.py --arch sm_90 --from FILE.cubin --compare the same for one word of each kind in a cubin (--grep NAME: only these)

WORD has 128 bits in hexadecimal, the high half first, such as 0x000fe20000000f000000000800028202. The script replaces its
control word by a plain one. The comparison varies every bit, every pair of bits, every window of adjacent bits and random
combinations of values that NVIDIA accepts. "we refuse" means that the row lacks a value, and "NVIDIA refuses" that it has
a wrong one. SASS or the argument of --compare names our program; the default is target/release/sass."""
import argparse
import collections
import random
import re
import sys

import vendor

TOKEN = re.compile(r"\.[A-Za-z_]\w*|[A-Za-z_]\w*|[-+]?0x[0-9a-f]+|[-+]?\d+(?:\.\d+)?(?:e[-+]\d+)?|\S")
OPCODE_BITS = range(0, 12)
# The guard and all bits between the opcode and the control word.
WALKED = [bit for bit in range(12, 105)] + [126, 127]
FIELD_BITS = 8


class Texts:
    """NVIDIA's texts of words. An address that depends on the position is replaced by its distance."""

    def __init__(self, arch, base):
        self.arch = arch
        here, there = vendor.vendor_texts(arch, [base, base])
        if here is None:
            sys.exit(f"NVIDIA refuses the word {base:032x} on {arch}")
        self.base = here
        ours, theirs = TOKEN.findall(here), TOKEN.findall(there)
        self.moving = [i for i, pair in enumerate(zip(ours, theirs)) if pair[0] != pair[1]]

    def get(self, words):
        texts = vendor.vendor_texts(self.arch, words)
        return [self.still(text, at * vendor.INST_BYTES) for at, text in enumerate(texts)]

    def still(self, text, address):
        if text is None or not self.moving:
            return text
        at_end = re.search(r"-?0x[0-9a-f]+$", text)
        if not at_end:
            return text
        distance = int(at_end[0], 16) - address - vendor.INST_BYTES
        return f"{text[:at_end.start()]}.{distance:+#x}"


def changes(base, text):
    """A short description of the changes between two texts."""
    if text is None:
        return "refused"
    if base == text:
        return "-"
    old, new = TOKEN.findall(base), TOKEN.findall(text)
    while old and new and old[0] == new[0]:
        old.pop(0), new.pop(0)
    while old and new and old[-1] == new[-1]:
        old.pop(), new.pop()
    return f"{' '.join(old) or '(nothing)'} -> {' '.join(new) or '(nothing)'}"


def spread(word, pieces, value):
    for low, width in pieces:
        mask = (1 << width) - 1
        word = word & ~(mask << low) | (value & mask) << low
        value >>= width
    return word


def show_field(texts, base, pieces, limit=1024):
    width = sum(width for _, width in pieces)
    values = list(range(1 << width)) if 1 << width <= limit else sorted(random.Random(1).sample(range(1 << width), limit))
    answers = texts.get([spread(base, pieces, value) for value in values])
    name = "+".join(f"{low}:{width}" for low, width in pieces)
    accepted = [(value, text) for value, text in zip(values, answers) if text is not None]
    print(f"field {name}: {len(accepted)} of {len(values)} values accepted")
    for value, text in accepted:
        print(f"  {value:4} {value:#0{2 + (width + 3) // 4}x}  {text}")


def fields(flips):
    """Runs of adjacent bits to enumerate: modifiers, and bits whose change alone makes the word illegal."""
    run = []
    for bit in [*WALKED, None]:
        effect = flips.get(bit)
        register = effect and re.search(r"^[-~|!]?U?[RB]\w* -> [-~|!]?U?[RB]\w*$|-> -?0x[0-9a-f]+$|-> -?[\d.e+-]+$", effect)
        wanted = effect not in (None, "-") and not register
        if wanted and run and run[-1] + 1 == bit and len(run) < FIELD_BITS:
            run.append(bit)
        else:
            if len(run) > 1:
                yield run[0], len(run)
            run = [bit] if wanted else []


def walk(arch, base):
    texts = Texts(arch, base)
    print(f"{base:032x}  {texts.still(texts.base, 0)}")
    start = texts.still(texts.base, 0)
    bits = [*OPCODE_BITS, *WALKED]
    # `start` is the text of the unchanged word at address 0.
    answers = texts.get([base ^ (1 << bit) for bit in bits])
    flips = {bit: changes(start, text) for bit, text in zip(bits, answers)}
    for bit in bits:
        print(f"  bit {bit:3} = {base >> bit & 1}: {flips[bit]}")
    for low, width in fields(flips):
        show_field(texts, base, [(low, width)])


def variations(arch, base, combinations):
    """Words that differ from the base in one bit, in two bits, in a window of bits, or in several places."""
    words = {base}
    words |= {base ^ (1 << bit) for bit in [*OPCODE_BITS, *WALKED]}
    walked = [bit for bit in WALKED if bit >= 12]
    for i, one in enumerate(walked):
        words |= {base ^ (1 << one) ^ (1 << other) for other in walked[:i]}
    for low in range(59, 105 - FIELD_BITS + 1):
        words |= {spread(base, [(low, FIELD_BITS)], value) for value in range(1 << FIELD_BITS)}
    words = sorted(words)
    legal = [word ^ base for word, text in zip(words, vendor.vendor_texts(arch, words)) if text and word != base]
    dice = random.Random(base)
    for _ in range(combinations if legal else 0):
        word = base
        for change in dice.sample(legal, min(len(legal), dice.randint(2, 4))):
            word ^= change & ~0xFFF
        words.append(word)
    return list(dict.fromkeys(words))


def difference(theirs, ours):
    if theirs is None:
        return "NVIDIA refuses"
    if ours is None:
        return "we refuse"
    return changes(vendor.kind(theirs), vendor.kind(ours))


def compare(arch, base, sass, combinations, verbose):
    """Prints the words whose texts differ, grouped by the kind of difference."""
    words = variations(arch, base, combinations)
    theirs, ours = vendor.vendor_texts(arch, words), vendor.our_texts(arch, words, sass)
    text = next((text for word, text in zip(words, theirs) if word == base), None)
    print(f"{base:032x}  {text}")
    groups = collections.defaultdict(list)
    accepted = sum(text is not None for text in theirs)
    for word, one, other in zip(words, theirs, ours):
        if one != other:
            # For refused words, group by the change from the base: it says more than the text.
            key = difference(one, other)
            if key == "we refuse":
                key += f": {changes(vendor.kind(text or ''), vendor.kind(one))}"
            elif key == "NVIDIA refuses":
                key += f": {changes(vendor.kind(text or ''), vendor.kind(other))}"
            groups[key].append((bin(word ^ base).count("1"), word, one, other))
    bad = sum(map(len, groups.values()))
    print(f"  {len(words)} variations, {accepted} accepted, {bad} differ")
    for key, found in sorted(groups.items(), key=lambda item: -len(item[1])):
        print(f"  {len(found):6} x {key}")
        for _, word, one, other in sorted(found, key=lambda item: item[:2])[: verbose]:
            bits = [bit for bit in range(128) if (word ^ base) >> bit & 1]
            print(f"           {word:032x} bits {bits}\n             NVIDIA: {one}\n             we:     {other}")
    return len(words), bad


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--arch", required=True)
    options.add_argument("words", nargs="*", metavar="WORD")
    options.add_argument("--from", dest="cubins", action="append", default=[], metavar="FILE.cubin")
    options.add_argument("--grep", help="of the cubins' instructions those whose text matches")
    options.add_argument("--field", help="LOW:WIDTH, or several joined by +, the lowest part first")
    options.add_argument("--compare", nargs="?", const=vendor.SASS, metavar="SASS")
    options.add_argument("--combinations", type=int, default=2000)
    options.add_argument("--examples", type=int, default=2, help="words shown for each kind of difference")
    options = options.parse_args()
    words = [int(word.replace("_", ""), 16) for word in options.words]
    seen = set()
    for path in options.cubins:
        for _, _, word, text in vendor.listing(path):
            key = (word & 0xFFF, vendor.kind(text))
            if key not in seen and (not options.grep or re.search(options.grep, text)):
                seen.add(key)
                words.append(word)
    total = wrong = 0
    for word in words:
        word = word & ~vendor.CONTROL_MASK | vendor.PLAIN_CONTROL
        if options.field:
            pieces = [tuple(map(int, piece.split(":"))) for piece in options.field.split("+")]
            show_field(Texts(options.arch, word), word, pieces)
        elif options.compare:
            count, bad = compare(options.arch, word, options.compare, options.combinations, options.examples)
            total, wrong = total + count, wrong + bad
        else:
            walk(options.arch, word)
    if options.compare:
        print(f"{wrong} of {total} variations of {len(words)} words differ")


if __name__ == "__main__":
    main()
