"""Runs NVIDIA's disassembler and ours on raw instruction words and on cubins.

A word is an int of 128 bits. NVDISASM, CUOBJDUMP and SASS name the programs (`eval "$(tests/oracle/install.sh)"` sets the
first two)."""
import os
import pathlib
import re
import subprocess
import tempfile

NVDISASM = os.environ.get("NVDISASM", "nvdisasm")
CUOBJDUMP = os.environ.get("CUOBJDUMP", "cuobjdump")
SASS = os.environ.get("SASS", str(pathlib.Path(__file__).parents[2] / "target/release/sass"))
GENERATIONS = [75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121]
# The generations with an architecture-specific variant, which accepts everything that the base target accepts.
ACCELERATED = [90, 100, 103, 110, 120, 121]
INST_BYTES = 16
# A control word that is legal on every instruction: a stall count of one cycle, and no scoreboards.
PLAIN_CONTROL = 0x7F1 << 105
CONTROL_MASK = (1 << 21) - 1 << 105
NOP = 0x7918 | PLAIN_CONTROL
WORDS_PER_CALL = 50_000
LINE = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;", re.M)
ADDRESS_OF_ERROR = re.compile(r"at address 0x([0-9a-f]+)")


def generation(arch):
    """The generation's number in a name such as `sm_90a`, `SM90` or `90`."""
    return int(re.search(r"\d+", arch)[0])


def squeeze(text):
    return " ".join(text.split())


def _in_calls(words, run):
    texts = []
    for at in range(0, len(words), WORDS_PER_CALL):
        texts += run(words[at : at + WORDS_PER_CALL])
    return texts


def _with_file(words, command):
    with tempfile.NamedTemporaryFile(suffix=".bin") as file:
        file.write(b"".join(word.to_bytes(INST_BYTES, "little") for word in words))
        file.flush()
        return subprocess.run([*command, file.name], capture_output=True, text=True)


# NVIDIA's disassembler prints this for a field value that does not exist.
NO_VALUE = re.compile(r"INVALID\d|\?\?\?")


def vendor_texts(arch, words):
    """NVIDIA's text of each word, or None if it refuses the word or a value in it. Word i has the address 16 * i."""
    sm = generation(arch)
    target = f"SM{sm}" + "a" * (sm in ACCELERATED)

    def run(words, base=0):
        words, refused = list(words), set()
        # If there are refused words, the answer names only these. One error may hide another.
        while True:
            answer = _with_file(words, [NVDISASM, "-raw", "-b", target, "-base", hex(base)])
            if answer.returncode == 0:
                break
            found = ADDRESS_OF_ERROR.findall(answer.stderr)
            bad = {(int(at, 16) - base) // INST_BYTES for at in found} - refused
            if not bad or not all(0 <= index < len(words) for index in bad):
                return apart(words, base, refused)
            refused |= bad
            for index in bad:
                words[index] = NOP
        texts = {(int(at, 16) - base) // INST_BYTES: squeeze(text) for at, text in LINE.findall(answer.stdout)}
        known = lambda text: None if text is None or NO_VALUE.search(text) else text
        return [None if index in refused else known(texts.get(index)) for index in range(len(words))]

    def apart(words, base, refused):
        """Finds, by bisection, a word that makes the disassembler fail without refusing it."""
        if len(words) == 1:
            return [None]
        middle = len(words) // 2
        texts = run(words[:middle], base) + run(words[middle:], base + middle * INST_BYTES)
        return [None if index in refused else text for index, text in enumerate(texts)]

    return _in_calls(words, run)


def our_texts(arch, words, sass=SASS):
    """Our text of each word, or None if we refuse it. Word i has the address 16 * i."""
    command = [*sass.split(), "dis", "--raw", "--arch", f"sm_{generation(arch)}"]

    def run(words):
        answer = _with_file(words, command)
        if answer.returncode != 0:
            raise RuntimeError(answer.stderr)
        texts = {int(at, 16) // INST_BYTES: squeeze(text) for at, text in LINE.findall(answer.stdout)}
        known = lambda text: None if text is None or text.startswith(".word") else text
        return [known(texts.get(index)) for index in range(len(words))]

    return _in_calls(words, run)


LISTING_LOW = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;\s*/\* 0x([0-9a-f]{16}) \*/")
LISTING_HIGH = re.compile(r"^\s*/\* 0x([0-9a-f]{16}) \*/")


def listing(path):
    """The instructions of a cubin as `cuobjdump -sass` prints them: (arch, address, word, text)."""
    answer = subprocess.run([CUOBJDUMP, "-sass", path], capture_output=True, text=True)
    arch, low = None, None
    for line in answer.stdout.splitlines():
        if found := LISTING_LOW.match(line):
            low = (int(found[1], 16), squeeze(found[2]), int(found[3], 16))
        elif low and (found := LISTING_HIGH.match(line)):
            yield arch, low[0], low[2] | int(found[1], 16) << 64, low[1]
            low = None
        elif "code for sm_" in line:
            arch = line.split()[-1]


def kind(text):
    """The text without its numbers, so that similar instructions compare equal."""
    text = re.sub(r"^@!?U?P\w+ ", "", text)
    text = re.sub(r"\.reuse", "", text)
    text = re.sub(r"\b(U?[RPB]|SB)\d+\b", r"\1", text)
    text = re.sub(r"\b(U?)RZ\b", r"\1R", text)
    text = re.sub(r"\b(U?)PT\b", r"\1P", text)
    text = re.sub(r"-?0x[0-9a-f]+|(?<![\w.])-?\d+(\.\d+)?(e[-+]\d+)?\b|[-+](INF|QNAN|SNAN)", "#", text)
    return text
