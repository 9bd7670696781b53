#!/usr/bin/env python3
"""Checks that NVIDIA's tools and readelf read our cubins without complaints and print the same figures as `ptxc -v`.

  readers.py [--target sm_NN] FILE-OR-FOLDER…

ptxc compiles each file for the target that it names, with the options in its first line (`// ptxas-opts: …`). cuobjdump,
nvdisasm and readelf read the cubin. A message that a tool also prints for ptxas's cubin is not a complaint. The exit
status is 0 if there are no complaints."""
import argparse
import collections
import os
import pathlib
import re
import subprocess
import sys
import tempfile

BUILT = pathlib.Path(os.environ.get("PTX_BUILT", "target/release"))
PTXAS, CUOBJDUMP, NVDISASM = (os.environ.get(name.upper(), name) for name in ("ptxas", "cuobjdump", "nvdisasm"))
READERS = {
    "cuobjdump -elf": [CUOBJDUMP, "-elf"],
    "cuobjdump -res-usage": [CUOBJDUMP, "-res-usage"],
    "cuobjdump -sass": [CUOBJDUMP, "-sass"],
    "nvdisasm -cfg": [NVDISASM, "-cfg"],
    "nvdisasm -plr -g": [NVDISASM, "-c", "-plr", "-g"],
    "readelf -a": ["readelf", "-aW"],
}
COMPLAINT = re.compile(r"warning|error|fatal|cannot|invalid|corrupt|truncated", re.I)
# cuobjdump -res-usage prints this for ptxas's own cubins too, if a kernel has a texture parameter.
OF_THE_TOOL = "Internal error: elf section not found"
OLDEST = 75
RESERVED = 1024


def run(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, errors="replace")
    return done.returncode, done.stdout, done.stderr


def own_target(text):
    name = re.search(r"^\s*\.target\s+sm_(\d+)([af]?)", text, re.M)
    if not name:
        return None
    number = max(int(name[1]), OLDEST)
    return f"sm_{number}{name[2]}"


def complaints(tool, cubin):
    """The warnings and errors of a tool, without numbers and file names."""
    status, out, err = run(*tool, cubin)
    # Search only standard error, where readelf and nvdisasm report problems: symbols can contain these words too.
    lines = {re.sub(r"\d+|0x[0-9a-f]+", "N", line.replace(str(cubin), "FILE")) for line in err.splitlines() if COMPLAINT.search(line)}
    return lines | ({f"status {status}"} if status else set()), out


def printed(verbose):
    """The registers, stack, shared memory and bank 0 of each kernel, as `-v` prints them."""
    figures = {}
    name = None
    for line in verbose.splitlines():
        if found := re.search(r"Compiling entry function '([^']+)'", line):
            name = found[1]
        elif found := re.search(r"Used (\d+) registers", line):
            number = lambda what: int(m[1]) if (m := re.search(rf"(\d+) bytes {re.escape(what)}", line)) else 0
            # Without the ABI, `-v` prints local memory instead of a stack. Our code keeps it on the stack anyway.
            stack = number("cumulative stack size") or number("lmem")
            figures[name] = (int(found[1]), stack, number("smem"), number("cmem[0]"))
    return figures


def used(report):
    """The figures that cuobjdump prints for each function."""
    found = re.findall(r"Function (\S+):\s+REG:(\d+) STACK:(\d+) SHARED:(\d+)(.*)", report)
    bank = lambda rest: int(m[1]) if (m := re.search(r"CONSTANT\[0\]:(\d+)", rest)) else 0
    return {name: (*map(int, numbers), bank(rest)) for name, *numbers, rest in found}


def read(path, target, folder, wrong):
    text = path.read_text(errors="replace")
    target = target or own_target(text)
    if not target:
        return False
    options = (re.match(r"// ptxas-opts: (.*)", text) or ["", ""])[1].split()
    ours, theirs = folder / "ours.cubin", folder / "theirs.cubin"
    status, _, said = run(BUILT / "ptxc", "-v", f"-arch={target}", *options, path, "-o", ours)
    if status:
        return False
    made_theirs = None
    for name, tool in READERS.items():
        found, out = complaints(tool, ours)
        gave_up = any(OF_THE_TOOL in line for line in found)
        if found:
            if made_theirs is None:
                made_theirs = run(PTXAS, f"-arch={target}", *options, path, "-o", theirs)[0] == 0
            found -= complaints(tool, theirs)[0] if made_theirs else set()
        for line in found:
            wrong[f"{name}: {line}"].append(path.name)
        if name == "cuobjdump -res-usage" and "-c" not in options and not gave_up:
            figures = used(out)
            for kernel, (registers, stack, shared, bank) in printed(said).items():
                wanted = (registers, stack, shared, bank)
                got = figures.get(kernel)
                # From sm_90 on, cuobjdump adds the memory that the system reserves, in kernels that use shared memory.
                kept = got is not None and got[2] - shared in (0, RESERVED)
                if not kept or got[:2] != wanted[:2] or bank and got[3] != bank:
                    wrong[f"{name}: other figures than -v"].append(f"{path.name} {kernel}: {got}, -v {wanted}")
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target")
    parser.add_argument("paths", nargs="+", type=pathlib.Path)
    arguments = parser.parse_args()
    files = [file for path in arguments.paths for file in (sorted(path.rglob("*.ptx")) if path.is_dir() else [path])]
    wrong = collections.defaultdict(list)
    with tempfile.TemporaryDirectory() as folder:
        count = sum(read(file, arguments.target, pathlib.Path(folder), wrong) for file in files)
    for what, where in sorted(wrong.items(), key=lambda item: -len(item[1])):
        print(f"{len(where):5}  {what}  ({where[0]})")
    print(f"{count} cubins are read by {len(READERS)} tools, {len(wrong)} kinds of complaints")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
