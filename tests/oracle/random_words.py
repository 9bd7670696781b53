#!/usr/bin/env python3
"""Compares the texts of random instruction words with NVIDIA's, and groups the differences by form.

  random_words.py [--arch sm_90] [--count 20000] [--sass target/release/sass]

A tenth of the words are uniformly random. The others are recorded instructions (backend/sass/tests/recorded) with some
bits flipped or some adjacent bits replaced. Without --arch, the script checks all generations. The exit status is 0 if
each generation reaches its floor. The floors apply to the default count and seed."""
import argparse
import collections
import pathlib
import random
import sys

import vendor
import walk

RECORDED = pathlib.Path(__file__).parents[2] / "backend/sass/tests/recorded"
# The minimum shares in percent, for the default words: identical texts among the words that both disassemblers accept,
# and words that we accept among the words that NVIDIA accepts. A change that lowers a share below its floor breaks
# something; a change that raises a share should raise its floor. The floors are 0.05 and 0.15 below the measured shares,
# because new recorded words change the random draw.
FLOORS = {
    75: (99.92, 98.14),
    80: (99.92, 98.76),
    86: (99.87, 99.10),
    87: (99.88, 99.22),
    88: (99.88, 99.15),
    89: (99.84, 99.30),
    90: (99.92, 99.22),
    100: (99.81, 99.32),
    103: (99.79, 99.12),
    110: (99.94, 99.28),
    120: (99.90, 99.09),
    121: (99.92, 98.98),
}
# The number of recorded words that is enough as a basis for variations.
MANY = 500
# Only bits of the instruction are flipped. The control word is one that is legal on every instruction.
FLIPPED = [bit for bit in range(12, 105)]


def bases(sm):
    """The recorded words of a generation and, until there are enough, of the generations before it."""
    files = {int(path.stem.split("_")[1]): path for path in RECORDED.glob("sm_*.txt")}
    found = []
    for number in sorted((number for number in files if number <= sm), reverse=True):
        if len(found) < MANY:
            lines = files[number].read_text().splitlines()
            found += [int(line.split()[1], 16) for line in lines if not line.startswith("#")]
    return found


def varied(dice, base):
    word = base
    for _ in range(dice.randint(1, 3)):
        if dice.random() < 0.5:
            for bit in dice.sample(FLIPPED, dice.randint(1, 4)):
                word ^= 1 << bit
        else:
            low = dice.randrange(12, 97)
            word = walk.spread(word, [(low, 8)], dice.getrandbits(8))
    return word


def words(sm, count, seed):
    dice = random.Random(seed + sm)
    recorded = bases(sm)
    for index in range(count):
        word = dice.getrandbits(128) if index % 10 == 0 else varied(dice, dice.choice(recorded))
        yield word & ~vendor.CONTROL_MASK | vendor.PLAIN_CONTROL


def mnemonic(text):
    text = text.split(" ", 1)[1] if text.startswith("@") and " " in text else text
    return text.split(" ")[0].split(".")[0]


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--arch", action="append")
    options.add_argument("--count", type=int, default=20_000)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--sass", default=vendor.SASS)
    options.add_argument("--grep", default="", help="show only mnemonics that begin so")
    options.add_argument("--brief", action="store_true", help="figures only")
    options.add_argument("--examples", type=int, default=1)
    options = options.parse_args()
    low = False
    for sm in map(vendor.generation, options.arch or [f"sm_{sm}" for sm in vendor.GENERATIONS]):
        tried = list(dict.fromkeys(words(sm, options.count, options.seed)))
        theirs, ours = vendor.vendor_texts(f"sm_{sm}", tried), vendor.our_texts(f"sm_{sm}", tried, options.sass)
        both = sum(a is not None and b is not None for a, b in zip(theirs, ours))
        same = sum(a is not None and a == b for a, b in zip(theirs, ours))
        accepted = sum(text is not None for text in theirs)
        missing = sum(a is not None and b is None for a, b in zip(theirs, ours))
        extra = sum(a is None and b is not None for a, b in zip(theirs, ours))
        shares = (100 * same / max(both, 1), 100 * same / max(accepted, 1))
        low |= any(share < floor for share, floor in zip(shares, FLOORS[sm]))
        print(f"sm_{sm}: {len(tried)} words, NVIDIA accepts {accepted}; both accept {both}, of which {same} "
              f"({shares[0]:.2f} %) agree, {shares[1]:.2f} % of NVIDIA's; we alone refuse {missing}, accept {extra}")
        groups = collections.defaultdict(list)
        for word, one, other in zip(tried, theirs, ours):
            if one != other:
                key = (mnemonic(one or other), walk.difference(one, other))
                groups[key].append((len(one or other), word, one, other))
        for (name, kind), found in [] if options.brief else sorted(groups.items(), key=lambda item: -len(item[1])):
            if name.startswith(options.grep):
                print(f"  {len(found):5} x {name}: {kind}")
                for _, word, one, other in sorted(found)[: options.examples]:
                    print(f"          {word:032x}\n            NVIDIA: {one}\n            we:     {other}")
    sys.exit(low)


if __name__ == "__main__":
    main()
