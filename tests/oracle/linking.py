#!/usr/bin/env python3
"""Links objects of ptxc and ptxas with nvlink, with either compiler's object as caller and as callee, and runs the results.

  linking.py [--targets sm_75,sm_90] [--programs COUNT [--first SEED] [--keep FOLDER]]

Each compiler compiles each of the two modules separately: the modules in `linking` and those of random programs. nvlink
links the objects in all four combinations. The emulator must leave the same memory as the interpreter, which runs both
modules as one. The exit status is 0 if it does."""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import linked_programs

HERE = pathlib.Path(__file__).parent / "linking"
PTXAS = os.environ.get("PTXAS", "ptxas")
BUILT = pathlib.Path(os.environ.get("PTX_BUILT", "target/release"))
TARGETS = "sm_75,sm_80,sm_86,sm_89,sm_90,sm_100,sm_103,sm_120"
HEADER = re.compile(r"^\.(version|target|address_size|extern)\b.*$", re.M)
# A name that both modules declare: nvlink merges the variables, and the kernels are not visible to each other.
IN_BOTH = re.compile(r"^.*// in both modules$", re.M)


def whole():
    """Combines both modules: functions precede their users, and kernels come last."""
    caller, callee = ((HERE / name).read_text() for name in ("caller.ptx", "callee.ptx"))
    header = "\n".join(line for line in caller.splitlines() if re.match(r"\.(version|target|address_size)", line))
    before, kernel = re.split(r"(?=^\.visible \.entry)", HEADER.sub("", caller), maxsplit=1, flags=re.M)
    return "\n".join([header, before, IN_BOTH.sub("", HEADER.sub("", callee)), kernel])


def run(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    return done.returncode == 0, done.stdout + done.stderr


class Linker:
    """Compiles two modules with both compilers, links them in all four combinations and runs the results."""

    def __init__(self, folder):
        self.folder = folder
        self.compilers = {"ptxas": PTXAS, "ptxc": BUILT / "ptxc"}
        self.count, self.wrong = 0, []

    def run(self, name, target, modules, program, cases, options=()):
        for compiler, path in self.compilers.items():
            for module, text in modules.items():
                made, said = run(path, "-c", "-arch", target, *options, text, "-o", self.folder / f"{module}_{compiler}.cubin")
                if not made:
                    self.wrong.append(f"{name}, {target}: {compiler} does not compile {module}: {said}")
                    return
        for caller in self.compilers:
            for callee in self.compilers:
                self.count += 1
                how = f"{name}, {target} {' '.join(options)}: caller by {caller}, callee by {callee}"
                cubin = self.folder / "program.cubin"
                made, said = run("nvlink", "-arch", target, self.folder / f"caller_{caller}.cubin", self.folder / f"callee_{callee}.cubin", "-o", cubin)
                if not made:
                    self.wrong.append(f"{how}: nvlink: {said}")
                    continue
                _, said = run(BUILT / "oracle", "--run", program, cases, "--target", target, "--cubin", cubin)
                # Also check our code as a whole program, once.
                expected = r"compiled: +agrees\s+cubin: +agrees" if caller == callee == "ptxc" else r"cubin: +agrees"
                if not re.search(expected, said):
                    self.wrong.append(f"{how}: {said[-400:]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--targets", default=TARGETS)
    parser.add_argument("--programs", type=int, default=0, help="random programs for each target")
    parser.add_argument("--first", type=int, default=1, help="the seed of the first")
    parser.add_argument("--keep", type=pathlib.Path, help="where the texts of one program stay")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        linker = Linker(pathlib.Path(folder))
        own = {name: HERE / f"{name}.ptx" for name in ("caller", "callee")}
        texts = arguments.keep or linker.folder
        program = linker.folder / "program.ptx"
        program.write_text(whole())
        targets = arguments.targets.split(",")
        for target in targets:
            linker.run("program", target, own, program, HERE / "program.cases")
        random = {name: texts / f"random_{name}.ptx" for name in ("caller", "callee", "whole")}
        cases = texts / "random.cases"
        for seed in range(arguments.first, arguments.first + arguments.programs):
            *modules, case = linked_programs.modules(seed)
            cases.write_text(case)
            two = {name: random[name] for name in own}
            for number, target in enumerate(targets):
                for path, text in zip(random.values(), modules):
                    path.write_text(linked_programs.text_for(target, text))
                level = (3, 3, 1, 3, 0, 3, 2)[(seed + number) % 7]
                linker.run(f"seed {seed}", target, two, random["whole"], cases, [f"-O{level}"])
    print(f"linking: {linker.count - len(linker.wrong)} of {linker.count} programs of two objects agree")
    print("\n".join(linker.wrong), end="")
    return 1 if linker.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
