"""Lets Triton compile kernels for explicit targets with ptxc in place of ptxas, without a GPU.

The kernels are simple ones and typical ones of Triton's users: softmax, norms, attention, and matrix products that are
tiled, grouped, persistent or block-scaled. They use pipelined loops, tensor maps and specialised warps.
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


@triton.jit
def softmax_rows(out, x, in_stride, out_stride, rows, n, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    """Each program takes every n-th row; loads are pipelined ahead of their use."""
    i = tl.arange(0, BLOCK)
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0), num_stages=STAGES):
        v = tl.load(x + row * in_stride + i, mask=i < n, other=-float("inf"))
        e = tl.exp(v - tl.max(v, axis=0))
        tl.store(out + row * out_stride + i, e / tl.sum(e, axis=0), mask=i < n)


@triton.jit
def dropout(x, out, n, p, seed, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    tl.store(out + i, tl.where(tl.rand(seed, i) > p, v / (1 - p), 0.0), mask=i < n)


@triton.jit
def layer_norm(x, out, weight, bias, mean, rstd, stride, n, eps, BLOCK: tl.constexpr):
    row, j = tl.program_id(0), tl.arange(0, BLOCK)
    sums = tl.zeros([BLOCK], tl.float32)
    for at in range(0, n, BLOCK):
        sums += tl.load(x + row * stride + at + j, mask=at + j < n, other=0.0).to(tl.float32)
    m = tl.sum(sums, axis=0) / n
    squares = tl.zeros([BLOCK], tl.float32)
    for at in range(0, n, BLOCK):
        v = tl.load(x + row * stride + at + j, mask=at + j < n, other=0.0).to(tl.float32)
        d = tl.where(at + j < n, v - m, 0.0)
        squares += d * d
    r = 1 / tl.sqrt(tl.sum(squares, axis=0) / n + eps)
    tl.store(mean + row, m)
    tl.store(rstd + row, r)
    for at in range(0, n, BLOCK):
        inside = at + j < n
        w, b = tl.load(weight + at + j, mask=inside), tl.load(bias + at + j, mask=inside)
        v = tl.load(x + row * stride + at + j, mask=inside, other=0.0).to(tl.float32)
        tl.store(out + row * stride + at + j, (v - m) * r * w + b, mask=inside)


@triton.jit
def layer_norm_back(dx, dy, dw, db, x, w, mean, rstd, lock, stride, n, GROUP: tl.constexpr, BLOCK: tl.constexpr):
    """Partial gradients of the weights are summed under one lock for each group of rows."""
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    inside = i < n
    v = tl.load(x + row * stride + i, mask=inside, other=0).to(tl.float32)
    g = tl.load(dy + row * stride + i, mask=inside, other=0).to(tl.float32)
    weight = tl.load(w + i, mask=inside).to(tl.float32)
    r = tl.load(rstd + row)
    xhat = tl.where(inside, (v - tl.load(mean + row)) * r, 0.0)
    wdy = tl.where(inside, weight * g, 0.0)
    c1, c2 = tl.sum(xhat * wdy, axis=0) / n, tl.sum(wdy, axis=0) / n
    tl.store(dx + row * stride + i, (wdy - (xhat * c1 + c2)) * r, mask=inside)
    own = row % GROUP
    at, count = own * n + i, lock + GROUP + own
    while tl.atomic_cas(lock + own, 0, 1) == 1:
        pass
    sum_w, sum_b = (g * xhat).to(weight.dtype), g.to(weight.dtype)
    if tl.load(count) == 0:
        tl.atomic_xchg(count, 1)
    else:
        sum_w += tl.load(dw + at, mask=inside)
        sum_b += tl.load(db + at, mask=inside)
    tl.store(dw + at, sum_w, mask=inside)
    tl.store(db + at, sum_b, mask=inside)
    tl.debug_barrier()
    tl.atomic_xchg(lock + own, 0)


@triton.jit
def tiled(a, b, c, m, n, k, sa, sb, sc, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, GROUP: tl.constexpr):
    """Programs take tiles in groups of rows, so that shared data stays in the cache; indices beyond the edge wrap around."""
    tile = tl.program_id(0)
    rows, cols = tl.cdiv(m, M), tl.cdiv(n, N)
    first = tile // (GROUP * cols) * GROUP
    height = min(rows - first, GROUP)
    row, col = first + tile % (GROUP * cols) % height, tile % (GROUP * cols) // height
    i, j, l = (row * M + tl.arange(0, M)) % m, (col * N + tl.arange(0, N)) % n, tl.arange(0, K)
    left, right = a + i[:, None] * sa + l[None, :], b + l[:, None] * sb + j[None, :]
    acc = tl.zeros((M, N), tl.float32)
    for at in range(0, tl.cdiv(k, K)):
        x = tl.load(left, mask=l[None, :] < k - at * K, other=0.0)
        y = tl.load(right, mask=l[:, None] < k - at * K, other=0.0)
        acc = tl.dot(x, y, acc)
        left += K
        right += K * sb
    acc = tl.where(acc >= 0, acc, 0.01 * acc)
    i, j = row * M + tl.arange(0, M), col * N + tl.arange(0, N)
    tl.store(c + i[:, None] * sc + j[None, :], acc.to(c.dtype.element_ty), mask=(i[:, None] < m) & (j[None, :] < n))


@triton.jit
def grouped(pointers_a, pointers_b, pointers_c, sizes, strides, groups, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """Products of different sizes, given by tables of addresses. Each program takes every n-th tile of all products."""
    tile, end = tl.program_id(0), 0
    for g in range(groups):
        m, n, k = tl.load(sizes + g * 3), tl.load(sizes + g * 3 + 1), tl.load(sizes + g * 3 + 2)
        cols = tl.cdiv(n, N)
        tiles = tl.cdiv(m, M) * cols
        while tile >= end and tile < end + tiles:
            sa, sb, sc = tl.load(strides + g * 3), tl.load(strides + g * 3 + 1), tl.load(strides + g * 3 + 2)
            a = tl.load(pointers_a + g).to(tl.pointer_type(tl.float16))
            b = tl.load(pointers_b + g).to(tl.pointer_type(tl.float16))
            c = tl.load(pointers_c + g).to(tl.pointer_type(tl.float16))
            i = (tile - end) // cols * M + tl.arange(0, M)
            j = (tile - end) % cols * N + tl.arange(0, N)
            l = tl.arange(0, K)
            left, right = a + i[:, None] * sa + l[None, :], b + l[:, None] * sb + j[None, :]
            acc = tl.zeros((M, N), tl.float32)
            for _ in range(0, tl.cdiv(k, K)):
                tl.multiple_of(left, [16, 16])
                tl.multiple_of(right, [16, 16])
                acc = tl.dot(tl.load(left), tl.load(right), acc)
                left += K
                right += K * sb
            tl.store(c + i[:, None] * sc + j[None, :], acc.to(tl.float16))
            tile += tl.num_programs(0)
        end += tiles


@triton.jit
def persistent(a, b, c, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, FLATTEN: tl.constexpr, SPECIAL: tl.constexpr):
    """Tensor maps are created on the device; one loop covers all tiles."""
    left = tl.make_tensor_descriptor(a, [m, k], [k, 1], [M, K])
    right = tl.make_tensor_descriptor(b, [n, k], [k, 1], [N, K])
    to = tl.make_tensor_descriptor(c, [m, n], [n, 1], [M, N])
    cols = tl.cdiv(n, N)
    for tile in tl.range(tl.program_id(0), tl.cdiv(m, M) * cols, tl.num_programs(0), flatten=FLATTEN, warp_specialize=SPECIAL):
        i, j = tile // cols * M, tile % cols * N
        acc = tl.zeros((M, N), tl.float32)
        for at in range(tl.cdiv(k, K)):
            acc = tl.dot(left.load([i, at * K]), right.load([j, at * K]).T, acc)
        to.store([i, j], acc.to(tl.float16))


@triton.jit
def attention(q, k, v, out, lse, length, scale, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr, CAUSAL: tl.constexpr, SPECIAL: tl.constexpr):
    """Uses tensor maps for all four matrices. Blocks of keys before the diagonal need no mask; blocks on it have one."""
    block, head = tl.program_id(0), tl.program_id(1)
    rows = tl.num_programs(1) * length
    queries = tl.make_tensor_descriptor(q, [rows, D], [D, 1], [M, D])
    keys = tl.make_tensor_descriptor(k, [rows, D], [D, 1], [N, D])
    values = tl.make_tensor_descriptor(v, [rows, D], [D, 1], [N, D])
    to = tl.make_tensor_descriptor(out, [rows, D], [D, 1], [M, D])
    base = head * length
    i = block * M + tl.arange(0, M)
    top = tl.full([M], -float("inf"), tl.float32)
    total = tl.zeros([M], tl.float32)
    acc = tl.zeros([M, D], tl.float32)
    x = queries.load([base + block * M, 0])
    end = block * M if CAUSAL else length
    for at in tl.range(0, end, N, warp_specialize=SPECIAL):
        s = tl.dot(x, keys.load([base + at, 0]).T) * scale
        now = tl.maximum(top, tl.max(s, 1))
        p = tl.math.exp2(s - now[:, None])
        less = tl.math.exp2(top - now)
        total = total * less + tl.sum(p, 1)
        acc = tl.dot(p.to(tl.float16), values.load([base + at, 0]), acc * less[:, None])
        top = now
    if CAUSAL:
        for at in range(block * M, (block + 1) * M, N):
            s = tl.dot(x, keys.load([base + at, 0]).T) * scale
            s = tl.where(i[:, None] >= at + tl.arange(0, N)[None, :], s, -1.0e6)
            now = tl.maximum(top, tl.max(s, 1))
            p = tl.math.exp2(s - now[:, None])
            less = tl.math.exp2(top - now)
            total = total * less + tl.sum(p, 1)
            acc = tl.dot(p.to(tl.float16), values.load([base + at, 0]), acc * less[:, None])
            top = now
    tl.store(lse + base + i, top + tl.math.log2(total))
    to.store([base + block * M, 0], (acc / total[:, None]).to(tl.float16))


@triton.jit
def scaled(a, sa, b, sb, c, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, KIND: tl.constexpr, PER: tl.constexpr):
    """Factors of narrow types, with a scale for each block of elements."""
    i = tl.program_id(0) * M + tl.arange(0, M)
    j = tl.program_id(1) * N + tl.arange(0, N)
    packed: tl.constexpr = 2 if KIND == "e2m1" else 1
    l, s = tl.arange(0, K // packed), tl.arange(0, K // PER)
    acc = tl.zeros((M, N), tl.float32)
    for at in range(0, k, K):
        x = tl.load(a + i[:, None] * (k // packed) + at // packed + l[None, :])
        y = tl.load(b + j[:, None] * (k // packed) + at // packed + l[None, :])
        u = tl.load(sa + i[:, None] * (k // PER) + at // PER + s[None, :])
        w = tl.load(sb + j[:, None] * (k // PER) + at // PER + s[None, :])
        acc = tl.dot_scaled(x, u, KIND, y.T, w, KIND, acc)
    tl.store(c + i[:, None] * n + j[None, :], acc)


@triton.jit
def scaled_maps(a, sa, b, sb, c, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, PER: tl.constexpr):
    """The same with e4m3, with tensor maps for the factors and with the scales in the layout of tensor memory."""
    left = tl.make_tensor_descriptor(a, [m, k], [k, 1], [M, K])
    right = tl.make_tensor_descriptor(b, [n, k], [k, 1], [N, K])
    row, col = tl.program_id(0), tl.program_id(1)
    ua = tl.make_tensor_descriptor(sa, [1, m // 128, k // PER // 4, 2, 256], [m * k // PER, k // PER // 4 * 512, 512, 256, 1], [1, M // 128, K // PER // 4, 2, 256])
    ub = tl.make_tensor_descriptor(sb, [1, n // 128, k // PER // 4, 2, 256], [n * k // PER, k // PER // 4 * 512, 512, 256, 1], [1, N // 128, K // PER // 4, 2, 256])
    acc = tl.zeros((M, N), tl.float32)
    for at in tl.range(0, tl.cdiv(k, K), num_stages=3):
        x, y = left.load([row * M, at * K]), right.load([col * N, at * K])
        u = ua.load([0, row * (M // 128), at * (K // PER // 4), 0, 0])
        w = ub.load([0, col * (N // 128), at * (K // PER // 4), 0, 0])
        u = u.reshape(M // 128, K // PER // 4, 32, 4, 4).trans(0, 3, 2, 1, 4).reshape(M, K // PER)
        w = w.reshape(N // 128, K // PER // 4, 32, 4, 4).trans(0, 3, 2, 1, 4).reshape(N, K // PER)
        acc = tl.dot_scaled(x, u, "e4m3", y.T, w, "e4m3", acc)
    i, j = row * M + tl.arange(0, M), col * N + tl.arange(0, N)
    tl.store(c + i[:, None] * n + j[None, :], acc)


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
    (softmax_rows, "*fp32 *fp32 i32 i32 i32 i32", {"BLOCK": 1024, "STAGES": 4}),
    (dropout, "*fp32 *fp32 i32 fp32 i32", {"BLOCK": 1024}),
    (layer_norm, "*fp16 *fp16 *fp16 *fp16 *fp32 *fp32 i32 i32 fp32", {"BLOCK": 1024}),
    (layer_norm_back, "*fp16 *fp16 *fp16 *fp16 *fp16 *fp16 *fp32 *fp32 *i32 i32 i32", {"GROUP": 64, "BLOCK": 1024}),
    (tiled, "*fp16 *fp16 *fp16 i32 i32 i32 i32 i32 i32", {"M": 128, "N": 128, "K": 64, "GROUP": 8}),
    (tiled, "*fp8e5 *fp8e5 *fp16 i32 i32 i32 i32 i32 i32", {"M": 128, "N": 64, "K": 64, "GROUP": 8}),
    (tiled, "*fp32 *fp32 *fp32 i32 i32 i32 i32 i32 i32", {"M": 64, "N": 64, "K": 32, "GROUP": 4}),
    (grouped, "*i64 *i64 *i64 *i32 *i32 i32", {"M": 128, "N": 128, "K": 32}),
    (persistent, "*fp16 *fp16 *fp16 i32 i32 i32", {"M": 128, "N": 128, "K": 64, "FLATTEN": False, "SPECIAL": False}),
    (persistent, "*fp16 *fp16 *fp16 i32 i32 i32", {"M": 128, "N": 128, "K": 64, "FLATTEN": True, "SPECIAL": False}),
    (persistent, "*fp16 *fp16 *fp16 i32 i32 i32", {"M": 128, "N": 128, "K": 64, "FLATTEN": False, "SPECIAL": True}),
    (attention, "*fp16 *fp16 *fp16 *fp16 *fp32 i32 fp32", {"M": 128, "N": 64, "D": 64, "CAUSAL": False, "SPECIAL": False}),
    (attention, "*fp16 *fp16 *fp16 *fp16 *fp32 i32 fp32", {"M": 128, "N": 64, "D": 128, "CAUSAL": True, "SPECIAL": False}),
    (attention, "*fp16 *fp16 *fp16 *fp16 *fp32 i32 fp32", {"M": 128, "N": 64, "D": 64, "CAUSAL": False, "SPECIAL": True}),
    (scaled, "*fp8e4nv *u8 *fp8e4nv *u8 *fp32 i32 i32 i32", {"M": 128, "N": 128, "K": 128, "KIND": "e4m3", "PER": 32}),
    (scaled, "*u8 *u8 *u8 *u8 *fp32 i32 i32 i32", {"M": 128, "N": 128, "K": 128, "KIND": "e2m1", "PER": 32}),
    (scaled, "*u8 *fp8e4nv *u8 *fp8e4nv *fp32 i32 i32 i32", {"M": 128, "N": 128, "K": 256, "KIND": "e2m1", "PER": 16}),
    (scaled_maps, "*fp8e4nv *u8 *fp8e4nv *u8 *fp32 i32 i32 i32", {"M": 128, "N": 128, "K": 128, "PER": 32}),
]
REASON = re.compile(r"^ptxc.*?(?:error|fatal) *: (?:not compiled: )?(.*?)(?: \(in function .*)?$", re.M)
TARGETS = [80, 90, 100, 120]
# The first target on which Triton itself has each type.
FIRST_TARGET = {"fp8e4nv": 90}


def compile_kernel(kernel, types, constants, target):
    """Returns the cubin and its name."""
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
    """The output of cuobjdump for a cubin, or nothing if it cannot read the cubin."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        said = subprocess.run([os.environ["CUOBJDUMP"], "-res-usage", "-sass", file.name], capture_output=True, text=True)
        return said.stdout if said.returncode == 0 and "EXIT" in said.stdout and "REG:" in said.stdout else ""


def main():
    failed, tried, refused, compiled = 0, 0, collections.Counter(), 0
    for target in TARGETS:
        for kernel, types, constants in KERNELS:
            if any(ty in types and target < first for ty, first in FIRST_TARGET.items()):
                continue
            tried += 1
            name = f"{kernel.__name__}({types}) for sm_{target}"
            try:
                # Triton prints the error.
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
                failed += 1
                continue
            compiled += 1
            if not read(cubin):
                print(f"FAILED    {name}: cuobjdump does not read the cubin")
                failed += 1
    print(f"triton {triton.__version__}: {compiled} of {tried} kernels compile")
    for reason, count in refused.most_common():
        print(f"{count:5} kernels: {reason}")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
