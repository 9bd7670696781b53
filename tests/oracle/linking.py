#!/usr/bin/env python3
"""Links objects of ptxc and of ptxas with nvlink, each as caller and as callee, and runs the results.

  linking.py [--targets sm_75,sm_90]

The two modules in `linking` are compiled separately by either compiler and linked in all four ways. The emulator must leave
in memory what the interpreter does with both modules as one. The exit status tells whether it does."""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent / "linking"
PTXAS = os.environ.get("PTXAS", "ptxas")
BUILT = pathlib.Path(os.environ.get("PTX_BUILT", "target/release"))
TARGETS = "sm_75,sm_80,sm_86,sm_89,sm_90,sm_100,sm_103,sm_120"
HEADER = re.compile(r"^\.(version|target|address_size|extern)\b.*$", re.M)


def whole():
    """Both modules as one: functions before who names them, kernels last."""
    caller, callee = ((HERE / name).read_text() for name in ("caller.ptx", "callee.ptx"))
    header = "\n".join(line for line in caller.splitlines() if re.match(r"\.(version|target|address_size)", line))
    before, kernel = re.split(r"(?=^\.visible \.entry)", HEADER.sub("", caller), maxsplit=1, flags=re.M)
    return "\n".join([header, before, HEADER.sub("", callee), kernel])


def run(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    return done.returncode == 0, done.stdout + done.stderr


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--targets", default=TARGETS)
    targets = parser.parse_args().targets.split(",")
    compilers = {"ptxas": PTXAS, "ptxc": BUILT / "ptxc"}
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        program = folder / "program.ptx"
        program.write_text(whole())
        for target in targets:
            for name, compiler in compilers.items():
                for module in ("caller", "callee"):
                    made, said = run(compiler, "-c", "-arch", target, HERE / f"{module}.ptx", "-o", folder / f"{module}_{name}.cubin")
                    if not made:
                        wrong.append(f"{target}: {name} does not compile {module}: {said}")
            for caller in compilers:
                for callee in compilers:
                    how = f"{target}: caller by {caller}, callee by {callee}"
                    cubin = folder / "program.cubin"
                    made, said = run("nvlink", "-arch", target, folder / f"caller_{caller}.cubin", folder / f"callee_{callee}.cubin", "-o", cubin)
                    if not made:
                        wrong.append(f"{how}: nvlink: {said}")
                        continue
                    _, said = run(BUILT / "oracle", "--run", program, HERE / "program.cases", "--target", target, "--cubin", cubin)
                    if not re.search(r"cubin: +agrees", said):
                        wrong.append(f"{how}: {said}")
    print(f"linking: {4 * len(targets) - len(wrong)} of {4 * len(targets)} programs of two objects agree")
    print("\n".join(wrong), end="")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
