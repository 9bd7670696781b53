"""Random programs of two modules whose functions call each other, for linking.py.

Parameters and results have any size and alignment, in registers and on the stack. Functions call functions with lower
numbers by name and by address, under conditions and in loops, with words and predicates live across the call. They have
local memory, some of it with dynamic size, and pass pointers to it. One function calls itself. Some functions declare how
many registers and barriers they preserve."""
import random
import re

HEADER = ".version 9.0\n.target sm_80\n.address_size 64\n"
# ptxas refuses narrower types in functions of other modules.
SCALARS = {"b32": 4, "f32": 4, "s64": 8, "f64": 8}
THREADS = 64
WORDS = 16
POINTED = 32
"""The size in bytes of the local memory that a pointer parameter points to."""


def text_for(target, text):
    """Adapts a module to a target: sm_75 has no directives for preserved registers."""
    if target == "sm_75":
        text = re.sub(r" \.abi_preserve(_control)? \d+", "", text.replace(".target sm_80", ".target sm_75"))
    return text


class Parameter:
    """A parameter: a scalar, or an array of bytes that is passed by value."""

    def __init__(self, name, rng, most=72):
        self.name = name
        self.kind = rng.choice(list(SCALARS)) if rng.random() < 0.6 else None
        if self.kind:
            self.size, self.align = (SCALARS[self.kind],) * 2
        else:
            self.align = rng.choice([1, 2, 4, 4, 8, 8, 16])
            self.size = rng.randint(1, rng.choice([4, 16, most]))

    def declared(self, name=None):
        name = name or self.name
        return f".param .{self.kind} {name}" if self.kind else f".param .align {self.align} .b8 {name}[{self.size}]"

    def pieces(self):
        """Yields the offsets and sizes of aligned pieces that cover the parameter."""
        at = 0
        while at < self.size:
            size = min(8, self.align)
            while at % size or at + size > self.size:
                size //= 2
            yield at, size
            at += size


class Signature:
    def __init__(self, rng, simple=False):
        most = 2 if simple else rng.choice([2, 4, 9, 20])
        self.parameters = [Parameter(f"p{i}", rng) for i in range(rng.randint(0, most))]
        self.result = Parameter("result", rng, 90) if rng.random() < 0.85 else None
        self.preserved = ""
        if rng.random() < 0.4 and self.fits():
            self.preserved = rng.choice([
                f" .abi_preserve {rng.choice([2, 3, 4, 5, 6, 7, 8, 9, 12, 17, 24, 40, 77])}",
                f" .abi_preserve_control {rng.randrange(12)}",
                f" .abi_preserve {rng.randint(2, 60)} .abi_preserve_control {rng.randrange(12)}",
            ])

    def fits(self):
        """Whether the consecutive parameters fit into R4 to R15, and the result does too."""
        words = 4  # The depth and the place.
        for parameter in self.parameters:
            words = -(-words // max(1, parameter.align // 4)) * max(1, parameter.align // 4) + -(-parameter.size // 4)
        return words <= 12 and (not self.result or self.result.size <= 48)

    def prototype(self, name):
        result = f"({self.result.declared()}) " if self.result else ""
        return f"{result}{name} ({', '.join(['.param .b32 depth', '.param .u64 place'] + [p.declared() for p in self.parameters])}){self.preserved}"

    def callprototype(self):
        result = f"({self.result.declared('_')})" if self.result else ""
        parameters = [".param .b32 _", ".param .u64 _"] + [p.declared("_") for p in self.parameters]
        return f".callprototype {result} _ ({', '.join(parameters)}){self.preserved};"


class Function:
    """Writes a function or the kernel."""

    def __init__(self, rng, number, signatures, others):
        self.rng, self.number, self.signatures, self.others = rng, number, signatures, others
        self.kernel = number is None
        self.text, self.labels = [], 0
        self.words = rng.choice([6, 10, 16, 40]) if not self.kernel else rng.choice([8, 30])
        self.local = rng.random() < 0.5 or self.kernel
        self.align = rng.choice([4, 8, 16, 16, 32, 128])

    def line(self, text):
        self.text.append("\t" + text)

    def word(self):
        return f"%r{self.rng.randrange(self.words)}"

    def label(self):
        self.labels += 1
        return f"L{self.labels}"

    def step(self):
        a, b, c, d = (self.word() for _ in range(4))
        self.line(self.rng.choice([
            f"mad.lo.u32 {a}, {b}, {c}, {d};", f"xor.b32 {a}, {b}, {c};", f"shf.l.wrap.b32 {a}, {b}, {c}, {self.rng.randrange(32)};",
            f"add.u32 {a}, {b}, {self.rng.randrange(1 << 20)};", f"mul.hi.u32 {a}, {b}, {c};", f"max.s32 {a}, {b}, {c};",
            f"setp.lt.s32 %p{self.rng.randrange(4)}, {b}, {c};", f"selp.b32 {a}, {b}, {c}, %p{self.rng.randrange(4)};",
            f"@%p{self.rng.randrange(4)} xor.b32 {a}, {b}, {self.rng.randrange(1 << 16)};",
            f"div.u32 {a}, {b}, 7;", f"or.b32 %t0, {c}, 1;\n\trem.u32 {a}, {b}, %t0;",
            f"cvt.u64.u32 %d1, {b};\n\tcvt.u64.u32 %d2, {c};\n\tor.b64 %d2, %d2, 3;\n\tmad.lo.u64 %d1, %d1, %d1, 77;\n\tdiv.u64 %d1, %d1, %d2;\n\tcvt.u32.u64 {a}, %d1;",
        ]))
        if self.rng.random() < 0.15 and self.local:
            self.line(f"and.b32 %t0, {self.word()}, {POINTED - 4};\n\tcvt.u64.u32 %d1, %t0;\n\tadd.u64 %d1, %d1, %array;")
            self.line(self.rng.choice([f"st.local.u32 [%d1], {a};", f"ld.local.u32 {a}, [%d1];"]))
        if self.rng.random() < 0.1:
            self.line(self.rng.choice([
                f"ld.global.u32 {a}, [numbers+{4 * self.rng.randrange(4)}];", f"ld.const.u32 {a}, [fixed+{4 * self.rng.randrange(4)}];",
                f"mov.u64 %d1, numbers;\n\tand.b32 %t0, {b}, 12;\n\tcvt.u64.u32 %d2, %t0;\n\tadd.u64 %d1, %d1, %d2;\n\tld.global.u32 {a}, [%d1];",
            ]))

    def call(self, callee, depth):
        """Writes a call and stores its results in words."""
        signature = self.signatures[callee]
        self.line("{")
        given = ["depth_", "place_"] + [p.name + "_" for p in signature.parameters]
        self.line(".param .b32 depth_; .param .u64 place_;")
        for parameter in signature.parameters:
            self.line(parameter.declared(parameter.name + "_") + ";")
        if signature.result:
            self.line(signature.result.declared("got_") + ";")
        self.line(f"st.param.b32 [depth_], {depth};")
        pointer = "%place" if not self.local or self.rng.random() < 0.4 else "%d5"
        if pointer == "%d5":
            self.line("cvta.local.u64 %d5, %array;")
        self.line(f"st.param.b64 [place_], {pointer};")
        for parameter in signature.parameters:
            for at, size in parameter.pieces():
                word = self.word()
                if size == 8:
                    self.line(f"mov.b64 %d4, {{{word}, {self.word()}}};\n\tst.param.b64 [{parameter.name}_+{at}], %d4;")
                else:
                    self.line(f"st.param.b{8 * size} [{parameter.name}_+{at}], {word};" if size != 2 else
                              f"cvt.u16.u32 %h0, {word};\n\tst.param.b16 [{parameter.name}_+{at}], %h0;")
        arguments = f"({', '.join(given)})"
        result = "(got_), " if signature.result else ""
        how = self.rng.random()
        if how < 0.65:
            self.line(f"call{self.rng.choice(['', '.uni'])} {result}f{callee}, {arguments};" if self.uniform else f"call {result}f{callee}, {arguments};")
        else:
            if how < 0.8:
                self.line(f"mov.u64 %d6, f{callee};")
            else:
                self.line(f"ld.global.u64 %d6, [table_{'k' if self.kernel else self.module}+{8 * callee}];")
            name = self.label()
            self.line(f"{name}: {signature.callprototype()}")
            self.line(f"call {result}%d6, {arguments}, {name};")
        if signature.result:
            for at, size in signature.result.pieces():
                word = self.word()
                if size == 8:
                    self.line(f"ld.param.b64 %d4, [got_+{at}];\n\tmov.b64 {{%t0, %t1}}, %d4;\n\txor.b32 {word}, {word}, %t0;\n\tadd.u32 {word}, {word}, %t1;")
                else:
                    self.line(f"ld.param.u{8 * size} %t0, [got_+{at}];\n\tmad.lo.u32 {word}, {word}, 31, %t0;")
        self.line("}")

    def statements(self, count, level):
        while count > 0:
            count -= 1
            what = self.rng.random()
            if what < 0.12 and level < 2:
                end, predicate = self.label(), self.rng.randrange(4)
                self.line(f"@{self.rng.choice(['', '!'])}%p{predicate} bra {end};")
                before, self.uniform = self.uniform, False
                self.statements(self.rng.randint(1, 4), level + 1)
                self.uniform = before
                self.line(f"{end}:")
            elif what < 0.18 and level < 2 and not self.looping:
                head = self.label()
                self.line(f"and.b32 %turns, {self.word()}, 3;\n{head}:")
                before, self.uniform, self.looping = self.uniform, False, True
                self.statements(self.rng.randint(1, 3), level + 1)
                self.uniform, self.looping = before, False
                self.line(f"setp.ne.u32 %q, %turns, 0;\n\tsub.u32 %turns, %turns, 1;\n\t@%q bra {head};")
            elif what < 0.3 and self.others and self.calls and not (self.looping and len(self.others) > 2):
                self.calls -= 1
                self.call(self.rng.choice(self.others), "%depth")
            elif what < 0.36 and self.number is not None and self.recursive and self.calls:
                self.calls -= 1
                end = self.label()
                self.line(f"setp.eq.u32 %q, %depth, 0;\n\t@%q bra {end};\n\tsub.u32 %t2, %depth, 1;")
                before, self.uniform = self.uniform, False
                self.call(self.number, "%t2")
                self.uniform = before
                self.line(f"{end}:")
            elif what < 0.4 and not self.kernel:
                self.line(f"and.b32 %t0, {self.word()}, {POINTED - 4};\n\tcvt.u64.u32 %d1, %t0;\n\tadd.u64 %d1, %d1, %place;")
                self.line(self.rng.choice([f"st.u32 [%d1], {self.word()};", f"ld.u32 {self.word()}, [%d1];"]))
            else:
                self.step()

    def write(self, module, recursive):
        rng = self.rng
        self.module, self.recursive, self.calls, self.uniform, self.looping = module, recursive, 5 if self.kernel else 2, self.kernel, False
        self.line(f".reg .b32 %r<{self.words}>, %t<4>, %depth, %turns;\n\t.reg .b64 %d<8>, %place, %array, %out;\n\t.reg .b16 %h<2>;\n\t.reg .pred %p<4>, %q;")
        dynamic = self.local and not self.kernel and rng.random() < 0.25
        if self.local and not dynamic:
            self.line(f".local .align {self.align} .b8 array[{POINTED + rng.choice([0, 4, 24])}];\n\tmov.u64 %array, array;")
        if self.kernel:
            self.line(f"ld.param.u64 %out, [data];\n\tmov.u32 %t0, %tid.x;\n\tmad.wide.u32 %out, %t0, {4 * WORDS}, %out;\n\tmov.b32 %depth, 2;")
            for i in range(self.words):
                self.line(f"ld.global.u32 %r{i}, [%out+{4 * (i % WORDS)}];")
            self.line("cvta.local.u64 %place, %array;")
        else:
            self.line("ld.param.b32 %depth, [depth];\n\tld.param.u64 %place, [place];\n\tmov.u32 %r0, %tid.x;")
            for i in range(1, self.words):
                self.line(f"mad.lo.u32 %r{i}, %r{i - 1}, 1103515245, {12345 + i};")
            if dynamic:
                self.line(f"and.b32 %t0, %r1, 31;\n\tadd.u32 %t0, %t0, {POINTED};\n\tcvt.u64.u32 %d1, %t0;\n\talloca.u64 %array, %d1, {self.align};")
            for parameter in self.signatures[self.number].parameters:
                self.read(parameter)
        if self.local:
            for at in range(0, POINTED, 4):
                self.line(f"st.local.u32 [%array+{at}], %r{at // 4 % self.words};")
        for i in range(4):
            self.line(f"setp.lt.s32 %p{i}, {self.word()}, {self.word()};")
        self.statements(rng.randint(4, 25), 0)
        for i in range(1, self.words):
            self.line(f"mad.lo.u32 %r0, %r0, 31, %r{i};")
        for i in range(4):
            self.line(f"@%p{i} add.u32 %r0, %r0, {1 << i};")
        if self.local:
            for at in range(0, POINTED, 8):
                self.line(f"ld.local.u32 %t0, [%array+{at}];\n\tmad.lo.u32 %r0, %r0, 31, %t0;")
        if self.kernel:
            self.line("st.global.u32 [%out], %r0;\n\tret;")
            return ".visible .entry linked (.param .u64 data)\n{\n" + "\n".join(self.text) + "\n}\n"
        signature = self.signatures[self.number]
        if signature.result:
            for at, size in signature.result.pieces():
                self.line(f"mad.lo.u32 %r0, %r0, 69069, {at + 1};")
                value = {8: "%d4", 4: "%r0", 2: "%h0", 1: "%r0"}[size]
                if size == 8:
                    self.line("mov.b64 %d4, {%r0, %r1};")
                if size == 2:
                    self.line("cvt.u16.u32 %h0, %r0;")
                self.line(f"st.param.b{8 * size} [result+{at}], {value};")
        self.line("ret;")
        return f"{self.linkage} .func {signature.prototype(f'f{self.number}')}" + "\n{\n" + "\n".join(self.text) + "\n}\n"

    def read(self, parameter):
        """Mixes a parameter into the words. Reads it by name, by address or by a variable index."""
        how = self.rng.random()
        if how < 0.15 and parameter.size >= 4:
            # Reads one byte; its index differs between threads.
            self.line(f"and.b32 %t0, %r0, 3;\n\tcvt.u64.u32 %d1, %t0;\n\tmov.u64 %d2, {parameter.name};\n\tadd.u64 %d1, %d1, %d2;\n\tld.param.u8 %t1, [%d1];")
            self.line(f"xor.b32 {self.word()}, {self.word()}, %t1;")
        for at, size in parameter.pieces():
            if how > 0.9 and self.rng.random() < 0.5:
                continue
            word = self.word()
            if size == 8:
                self.line(f"ld.param.b64 %d4, [{parameter.name}+{at}];\n\tmov.b64 {{%t0, %t1}}, %d4;\n\txor.b32 {word}, {word}, %t0;\n\tmad.lo.u32 {word}, {word}, 3, %t1;")
            else:
                self.line(f"ld.param.u{8 * size} %t0, [{parameter.name}+{at}];\n\tmad.lo.u32 {word}, {word}, 7, %t0;")


def modules(seed):
    """Returns both modules, the module that combines them, and the launch."""
    rng = random.Random(seed)
    count = rng.randint(2, 6)
    signatures = [Signature(rng) for _ in range(count)]
    home = [rng.randrange(2) for _ in range(count)]
    if 1 not in home:
        home[0] = 1
    recursive = rng.randrange(count) if rng.random() < 0.4 else None
    bodies, linkages = [], []
    for number in range(count):
        function = Function(rng, number, signatures, list(range(number)))
        function.linkage = rng.choice([".visible", ".visible", ".weak"])
        linkages.append(function.linkage)
        bodies.append(function.write(home[number], number == recursive))
    kernel = Function(rng, None, signatures, list(range(count))).write(0, False)
    data = ".visible .global .align 4 .u32 numbers[4] = { 3, 1, 4, 159 };\n.visible .const .align 4 .u32 fixed[4] = { 27, 18, 28, 1828 };\n"
    outside = ".extern .global .align 4 .u32 numbers[4];\n.extern .const .align 4 .u32 fixed[4];\n"
    declared = lambda number: signatures[number].prototype(f"f{number}")
    table = lambda name: f".global .align 8 .u64 table_{name}[{count}] = {{ {', '.join(f'f{n}' for n in range(count))} }};\n"
    forward = [f"{linkages[n]} .func {declared(n)};\n" for n in range(count)]

    def module(which):
        own = [n for n in range(count) if home[n] == which]
        others = [n for n in range(count) if home[n] != which]
        text = HEADER + (data if which == 0 else outside)
        text += "".join(f".extern .func {declared(n)};\n" for n in others) + "".join(forward[n] for n in own)
        text += table(which) + (table("k") if which == 0 else "")
        text += "".join(bodies[n] for n in own) + (kernel if which == 0 else "")
        return text

    whole = HEADER + data + "".join(forward) + table(0) + table(1) + table("k") + "".join(bodies) + kernel
    case = f"case linked\nkernel linked\nblock {THREADS}\nbuffer u32 {THREADS * WORDS} random {seed % 1000 + 1}\n"
    return module(0), module(1), whole, case
