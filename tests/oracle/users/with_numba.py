"""Compiles Numba's kernels for explicit compute capabilities, without a GPU: ptxc compiles Numba's PTX, and the library
that Numba links with reads the cubin.

Numba itself passes PTX to the driver or to that library. All later steps need a GPU.
"""
import math
import os
import pathlib
import subprocess
import sys
import tempfile

PACKAGES = next(pathlib.Path(path) / "nvidia/cu13" for path in sys.path if (pathlib.Path(path) / "nvidia/cu13").is_dir())
os.environ.setdefault("CUDA_HOME", str(PACKAGES))

from cuda.bindings import nvjitlink
from numba import cuda, float32, float64, int32, types

VECTOR, DOUBLES, INTEGERS = (types.Array(of, 1, "C") for of in (float32, float64, int32))


def saxpy(x, y, out, a):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = a * x[i] + y[i]


def waves(x, out):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = math.sin(x[i]) + math.exp(x[i]) + math.erf(x[i]) + x[i] % 3.0


def count(x, out):
    i = cuda.grid(1)
    bins = cuda.shared.array(64, int32)
    if cuda.threadIdx.x < 64:
        bins[cuda.threadIdx.x] = 0
    cuda.syncthreads()
    if i < x.size:
        cuda.atomic.add(bins, x[i] & 63, 1)
    cuda.syncthreads()
    if cuda.threadIdx.x < 64:
        cuda.atomic.add(out, cuda.threadIdx.x, bins[cuda.threadIdx.x])


def warps(x, out):
    i = cuda.grid(1)
    v = x[i]
    for d in (16, 8, 4, 2, 1):
        v += cuda.shfl_xor_sync(0xFFFFFFFF, v, d)
    out[i] = v


KERNELS = [
    (saxpy, (VECTOR, VECTOR, VECTOR, float32)),
    (waves, (DOUBLES, DOUBLES)),
    (count, (INTEGERS, INTEGERS)),
    (warps, (INTEGERS, INTEGERS)),
]
CAPABILITIES = [(7, 5), (8, 0), (9, 0), (10, 0), (12, 0)]


def link(cubin, target):
    """Whether the library accepts a cubin."""
    handle = nvjitlink.create(1, [f"-arch={target}"])
    nvjitlink.add_data(handle, nvjitlink.InputType.CUBIN, cubin, len(cubin), "ptxc.cubin")
    nvjitlink.complete(handle)
    return nvjitlink.get_linked_cubin_size(handle) > 0


def check(ptx, target, folder):
    """The error in the cubin that is compiled from a text, if any."""
    source, cubin = folder / "k.ptx", folder / "k.cubin"
    source.write_text(ptx)
    said = subprocess.run([os.environ["PTXC"], f"-arch={target}", "-o", cubin, source], capture_output=True, text=True)
    if said.returncode:
        return said.stderr
    read = subprocess.run([os.environ["CUOBJDUMP"], "-res-usage", "-sass", cubin], capture_output=True, text=True)
    if read.returncode or "EXIT" not in read.stdout:
        return "cuobjdump does not read the cubin"
    return "" if link(cubin.read_bytes(), target) else "nvJitLink does not take the cubin"


def main():
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for capability in CAPABILITIES:
            target = "sm_%d%d" % capability
            for kernel, signature in KERNELS:
                for options in ({}, {"lineinfo": True}, {"fastmath": True}):
                    ptx, _ = cuda.compile_ptx(kernel, types.void(*signature), cc=capability, **options)
                    wrong = check(ptx, target, pathlib.Path(folder))
                    if wrong:
                        failed += 1
                        print(f"FAILED    {kernel.__name__} for {target} {options}: {wrong}")
    all_of_them = len(CAPABILITIES) * len(KERNELS) * 3
    print(f"numba: {all_of_them - failed} of {all_of_them} kernels compile, and nvJitLink takes them")
    return failed > 0


sys.exit(main())
