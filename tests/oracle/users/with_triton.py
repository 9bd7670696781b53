"""Triton compiles kernels with ptxc in ptxas's place, for targets that are named and without a GPU.

What it makes of tl.dot and of loops on newer targets needs instructions that we do not compile yet; those kernels may be
refused, and are listed.
"""
import collections
import os
import re
import subprocess
import sys
import tempfile

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)


@triton.jit
def softmax(out, x, stride, n, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    v = tl.load(x + row * stride + i, mask=i < n, other=-float("inf")).to(tl.float32)
    e = tl.exp(v - tl.max(v, 0))
    tl.store(out + row * stride + i, e / tl.sum(e, 0), mask=i < n)


@triton.jit
def scan(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.cumsum(tl.load(x + i), 0))


@triton.jit
def histogram(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out + (tl.load(x + i, mask=i < n, other=0) & 255), 1, mask=i < n)


@triton.jit
def matmul(a, b, c, k, A: tl.constexpr, B: tl.constexpr):
    i, j = tl.arange(0, A), tl.arange(0, B)
    acc = tl.zeros((A, A), tl.float32)
    for at in range(0, k, B):
        left = tl.load(a + i[:, None] * k + (at + j)[None, :])
        right = tl.load(b + (at + j)[:, None] * A + i[None, :])
        acc = tl.dot(left, right, acc)
    tl.store(c + i[:, None] * A + i[None, :], acc)


KERNELS = [
    (add, "*fp32 *fp32 *fp32 i32", {"BLOCK": 1024}),
    (add, "*fp16 *fp16 *fp16 i32", {"BLOCK": 1024}),
    (add, "*fp64 *fp64 *fp64 i32", {"BLOCK": 256}),
    (softmax, "*fp32 *fp32 i32 i32", {"BLOCK": 1024}),
    (softmax, "*bf16 *bf16 i32 i32", {"BLOCK": 512}),
    (scan, "*fp32 *fp32", {"BLOCK": 256}),
    (histogram, "*i32 *i32 i32", {"BLOCK": 512}),
    (matmul, "*fp16 *fp16 *fp32 i32", {"A": 64, "B": 32}),
    (matmul, "*fp32 *fp32 *fp32 i32", {"A": 32, "B": 32}),
]
REASON = re.compile(r"^ptxc.*?(?:error|fatal) *: (?:not compiled: )?(.*?)(?: \(in function .*)?$", re.M)
TARGETS = [80, 90, 100, 120]
# Products of warp groups and tensor memory; `max` of three.
MAY_BE_REFUSED_FROM = {matmul: 90, softmax: 100}


def compile_kernel(kernel, types, constants, target):
    """The cubin, and its name."""
    names = [name for name in kernel.arg_names if name not in constants]
    signature = dict(zip(names, types.split())) | {name: "constexpr" for name in constants}
    place = kernel.arg_names.index
    aligned = {(place(name),): [["tt.divisibility", 16]] for name in names if signature[name].startswith("*")}
    source = ASTSource(
        fn=kernel,
        signature={name: signature[name] for name in kernel.arg_names},
        constexprs={(place(name),): value for name, value in constants.items()},
        attrs=aligned,
    )
    return triton.compile(source, target=GPUTarget("cuda", target, 32)).asm["cubin"]


def read(cubin):
    """What cuobjdump says of a cubin, or nothing where it cannot read it."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        said = subprocess.run([os.environ["CUOBJDUMP"], "-res-usage", "-sass", file.name], capture_output=True, text=True)
        return said.stdout if said.returncode == 0 and "EXIT" in said.stdout and "REG:" in said.stdout else ""


def main():
    failed, refused, compiled = 0, collections.Counter(), 0
    for target in TARGETS:
        for kernel, types, constants in KERNELS:
            name = f"{kernel.__name__}({types}) for sm_{target}"
            try:
                # It prints what fails.
                with open(os.devnull, "w") as nowhere:
                    stdout, sys.stdout = sys.stdout, nowhere
                    try:
                        cubin = compile_kernel(kernel, types, constants, target)
                    finally:
                        sys.stdout = stdout
            except Exception as error:
                reasons = REASON.findall(str(error)) or [str(error)[:200]]
                refused.update({reason for reason in reasons if "aborted" not in reason})
                print(f"refused   {name}: {reasons[0]}")
                failed += target < MAY_BE_REFUSED_FROM.get(kernel, 1000)
                continue
            compiled += 1
            if not read(cubin):
                print(f"FAILED    {name}: cuobjdump does not read the cubin")
                failed += 1
    print(f"triton {triton.__version__}: {compiled} of {len(TARGETS) * len(KERNELS)} kernels compile")
    for reason, count in refused.most_common():
        print(f"{count:5} kernels: {reason}")
    return failed > 0


sys.exit(main())
