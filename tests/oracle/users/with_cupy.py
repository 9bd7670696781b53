"""Lets CuPy compile kernels with nvcc for explicit architectures, without a GPU. The kernels use CuPy's own headers and
are compiled as whole programs and as separate objects that are linked. NVCC names an nvcc that starts ptxc.

CuPy would pass the cubin on to the driver. Instead, cuobjdump checks what the driver would look for: the kernels' names,
their registers and their parameters.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import warnings

# CuPy warns that there is no driver.
warnings.simplefilter("ignore")
import cupy
from cupy.cuda.compiler import compile_using_nvcc

HEADERS = pathlib.Path(cupy.__file__).parent / "_core/include"
WHOLE = r"""
#include <cupy/complex.cuh>
#include <cupy/carray.cuh>
#include <cupy/atomics.cuh>
#include <cupy/float16.cuh>
extern "C" __global__ void multiply(CArray<complex<float>, 1, true, true> x, CArray<complex<float>, 1, true, true> y) {
    CUPY_FOR(i, x.size()) { y[i] = x[i] * y[i] + exp(x[i]); }
}
extern "C" __global__ void sum(CArray<double, 2, false, false> x, double *out) {
    double v = 0;
    CUPY_FOR(i, x.size()) { v += x[i]; }
    atomicAdd(out, v);
}
extern "C" __global__ void halves(CArray<float16, 1, true, true> x, float factor) {
    CUPY_FOR(i, x.size()) { x[i] = float16(float(x[i]) * factor); }
}
"""
PARTS = r"""
__device__ __noinline__ int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
__device__ int (*chosen)(int) = fib;
extern "C" __global__ void numbers(int *out) { out[threadIdx.x] = fib(threadIdx.x) + chosen(threadIdx.x & 3); }
"""


def kernels(cubin):
    """The kernels of a cubin and their registers, as NVIDIA's cuobjdump prints them."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        said = subprocess.run([os.environ["CUOBJDUMP"], "-res-usage", file.name], capture_output=True, text=True)
    assert said.returncode == 0, said.stdout + said.stderr
    found = re.findall(r"Function (\w+):\s+REG:(\d+)", said.stdout)
    return {name for name, registers in found if int(registers) > 0}


def main():
    failed = 0
    for arch in ("75", "80", "90", "100", "120"):
        for what, source, options, expected in [
            ("kernels with CuPy's headers", WHOLE, (f"-I{HEADERS}", "-std=c++17"), {"multiply", "sum", "halves"}),
            ("separate compilation", PARTS, ("-dc",), {"numbers"}),
        ]:
            separate = "-dc" in options
            try:
                cubin = compile_using_nvcc(source, options, arch, separate_compilation=separate)
                found = kernels(cubin)
                is_ours = separate or b"ptx-analyzer" in cubin
                wrong = "" if expected <= found and is_ours else f"it has {found}"
            except Exception as error:  # noqa: BLE001 - all of them are failures
                wrong = str(error)
            print(f"CuPy {cupy.__version__}, sm_{arch}, {what}: {wrong or 'compiles'}")
            failed += bool(wrong)
    return failed


sys.exit(1 if main() else 0)
