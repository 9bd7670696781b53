//! Tests that snippets are found in texts, and that scanning after an edit finds the same.

use text_size::{TextRange, TextSize};

use crate::literal::range;
use crate::{Language, Scan, Snippet, scan};

fn one(language: Language, text: &str) -> Snippet {
    let found = scan(language, text);
    assert_eq!(found.snippets().len(), 1, "{text}");
    found.snippets()[0].clone()
}

fn none(language: Language, text: &str) {
    let found = scan(language, text);
    assert!(found.snippets().is_empty(), "{text}: {:?}", found.snippets());
}

/// The text of the snippet in the module.
fn inside(snippet: &Snippet) -> String {
    let pieces: Vec<_> = snippet.document.pieces().map(|(module, _)| module).collect();
    let (first, last) = (pieces[0], pieces[pieces.len() - 1]);
    snippet.document.text()[TextRange::new(first.start(), last.end())].to_owned()
}

/// The host text of a part of the snippet.
fn back<'a>(host: &'a str, snippet: &Snippet, part: &str) -> &'a str {
    let from = snippet.document.pieces().next().map_or(0, |(module, _)| module.start().into());
    let at =
        snippet.document.text()[from..].find(part).unwrap_or_else(|| panic!("`{part}` is in the module"));
    let there = snippet.document.to_host(range(from + at, from + at + part.len())).expect("it is the host's");
    &host[there + snippet.range.start()]
}

#[test]
fn operands_are_registers_of_their_constraints() {
    let text = r#"asm volatile("add.u32 %0, %1, %[n];\n\tmov.u32 %0, %%tid.x;" : "=r"(x) : "r"(f("a)")), [n] "n"(16) : "memory");"#;
    let snippet = one(Language::Cuda, text);
    assert_eq!(inside(&snippet), "add.u32 %0, %1, 16;\n\tmov.u32 %0, %tid.x;");
    let module = snippet.document.text();
    assert!(module.contains(".reg .b32 %0;\n.reg .b32 %1;\nld.param.b32 %1, [$in1];\n"), "{module}");
    assert!(!snippet.document.is_opaque);
    assert_eq!(back(text, &snippet, "%tid.x"), "%%tid.x");
    assert_eq!(back(text, &snippet, "16;"), "%[n];");
    assert_eq!(back(text, &snippet, "mov.u32 %0"), "mov.u32 %0");
    assert_eq!(snippet.document.to_host(range(0, 5)), None);
    assert_eq!(snippet.document.written("%laneid, %1").as_deref(), Some("%%laneid, %1"));
}

#[test]
fn literals_are_put_together() {
    let text = "asm(\"{.reg .pred p;\\n\" // a \"comment\"\n \"setp.ne.b32 p, %0, 0;\" \\\n R\"x(@p bra L;\nL: })x\" :: \"r\"(1'000));";
    let snippet = one(Language::Cpp, text);
    assert_eq!(inside(&snippet), "{.reg .pred p;\nsetp.ne.b32 p, %0, 0;@p bra L;\nL: }");
    assert_eq!(back(text, &snippet, "0;@p"), "0;\" \\\n R\"x(@p");
}

#[test]
fn what_is_not_understood_is_left_alone() {
    for text in [
        "asm(\"add.\" TYPE \" %0, 1;\" : \"=r\"(x));",
        "asm(\"ld.\" #x \".u32 %0, [%1];\" : \"=r\"(x) : \"l\"(p));",
        "asm(\"add.u32 %0, 1;\"\n#if X\n\"x\"\n#endif\n: \"=r\"(x));",
        "asm goto(\"bra %l0;\" ::::l);",
        "asm(\"mov.u32 %0, 1;\" : \"=v\"(x));",
        "asm(\"\" ::: \"memory\");",
        "// asm(\"trap;\");\n/* asm(\"trap;\"); */ \"asm(\\\"trap;\\\")\"",
        "int asm_ = 1; my_asm(\"trap;\");",
    ] {
        none(Language::Cuda, text);
    }
    for text in
        ["asm(\"cpuid\" : \"=r\"(x));", "asm(\"mov %0, %1\" : \"=r\"(x) : \"r\"(y));", "asm(\"bkpt\");"]
    {
        none(Language::Cpp, text);
    }
    for text in ["asm(\"mul%1.f32 %0, %0, %0;\" : \"+f\"(x) : \"n\"(1));", "asm(\"{ .reg .pred p;\");"] {
        assert!(one(Language::Cuda, text).document.is_opaque, "{text}");
    }
    let snippet = one(Language::Cuda, "asm(\"mov.u32 %2, 1;\" : \"=r\"(x));");
    assert!(!snippet.document.is_opaque && snippet.document.lacks_operand("%2"));
}

#[test]
fn constants_without_a_value_are_known() {
    let text = "asm(\"mov.u32 %0, %1; add.u32 %0, %0, 1;\" : \"=r\"(x) : \"n\"(N));";
    let snippet = one(Language::Cuda, text);
    let at = |what: &str| {
        let at = snippet.document.text().find(what).expect("it is there");
        snippet.document.depends_on_unknown(range(at, at + what.len()))
    };
    assert!(at("mov.u32") && !at("add.u32"));
}

#[test]
fn rust() {
    let text = r##"unsafe { asm!("mov.u32 {x}, %tid.x;", r#"{{ add.u32 {x}, {x}, {}; }}"#, in(reg32) y, x = out(reg32) z, options(nostack)); }"##;
    let snippet = one(Language::Rust, text);
    assert_eq!(inside(&snippet), "mov.u32 $x, %tid.x;\n{ add.u32 $x, $x, $0; }");
    assert_eq!(back(text, &snippet, "$x, %tid"), "{x}, %tid");
    assert_eq!(snippet.document.written("$x }").as_deref(), Some("{x} }}"));
    assert_eq!(snippet.document.message("`$x` is not"), "`{x}` is not");
    none(
        Language::Rust,
        r#"asm!("mov {}, 5", out(reg) x); asm!("nop"); let c = '"'; fn f<'a>(x: &'a str) {}"#,
    );
    one(Language::Rust, "fn f<'a>() { asm!(\"bar.sync 0;\") }");
    one(Language::Rust, "const K: &str = \".version 8.0\\n.target sm_80\\n\";");
}

#[test]
fn python() {
    let text = r#"
y = tl.inline_asm_elementwise(
    asm="""
    { // pack
    cvt.rn.bf16x2.f32 $0, $2, $1;
    }
    """,
    constraints=("=r,"
                 "f,f"),
    args=[x["a, b"], z], dtype=tl.int32, is_pure=True, pack=1)"#;
    let snippet = one(Language::Python, text);
    let module = snippet.document.text();
    assert!(module.contains(".reg .b32 $0;\n.reg .f32 $1;"), "{module}");
    assert_eq!(back(text, &snippet, "$0, $2"), "$0, $2");
    one(Language::Python, "ir.InlineAsm(fnty, 'activemask.b32 $0;', '=r', side_effect=True)");
    one(Language::Python, "K = r'''\n//\n.version 8.0\n.target sm_80\n'''");
    // The next statement begins with a word.
    one(Language::Python, "K = '''.version 8.0\n.target sm_80\n'''\nimport x");
    one(Language::Python, "class C:\n  K = '.version 8.0 .target sm_80' # PTX\n\n  def f(self): pass");
    none(Language::Python, "K = ('.version 8.0 .target sm_80'\n     + rest)");
    none(Language::Python, "K = '.version 8.0 .target sm_80' if x else y");
    for text in [
        "tl.inline_asm_elementwise(f\"mov.{t} $0, 1;\", \"=r\", [])",
        "tl.inline_asm_elementwise(\"mov.%s $0, 1;\" % t, \"=r\", [])",
        "tl.inline_asm_elementwise(\"mov.u32 $0, 1;\", c, [])",
        "tl.inline_asm_elementwise(\"v_mov_b32 $0, 1\", \"=v\", [])",
        "K = '.version 8.0 .target sm_%d' % sm",
        "K = f'.version 8.0 .target sm_{sm}'",
        "# tl.inline_asm_elementwise(\"mov.u32 $0, 1;\", \"=r\", [])",
        "import asm\nasm = 3",
    ] {
        none(Language::Python, text);
    }
}

/// A misspelled instruction is certainly PTX only in code for GPUs, which headers may contain.
#[test]
fn headers_with_code_for_gpus() {
    let assembly = "void f() { asm(\"ad.u32 %0, %0, 1;\" : \"+r\"(x)); }\n";
    none(Language::Cpp, assembly);
    one(Language::Cpp, &format!("CUTE_HOST_DEVICE {assembly}"));
    let mut found = scan(Language::Cpp, assembly);
    let text = format!("__device__ {assembly}");
    assert_eq!(found.edit(0..0, 11, text.len(), |range| read(&text, range)), (0..0, 1));
    assert_eq!(found.snippets(), scan(Language::Cpp, &text).snippets());
}

/// The name of a function's symbol is not an instruction.
#[test]
fn names_of_symbols() {
    none(Language::Cuda, "__device__ half load(int) __asm(\"llvm.amdgcn.raw.buffer.load.i16\");");
    one(Language::Cuda, "asm(\"membar.gl\");");
}

const PIECES: &[&str] = &[
    "asm",
    "(",
    ")",
    "\"",
    "'",
    "\n",
    "\\",
    "//",
    "/*",
    "*/",
    "R\"x(",
    ")x\"",
    "#",
    "\"\"\"",
    ":",
    ",",
    "!",
    "{",
    "}",
    "r#\"",
    "π",
    " ",
    "int x = 1;\n",
    "\"add.u32 %0, 1, 2;\"",
    "asm(\"add.u32 %0, 1, 2;\" : \"=r\"(x));\n",
    "tl.inline_asm_elementwise(\"mov.u32 $0, 1;\", \"=r\", [x])\n",
    "asm!(\"mov.u32 {}, 1;\", out(reg32) x);\n",
    "1'0",
    "\".version 8.0\\n.target sm_80\"",
    "x = 2\n",
    "\r\n",
];

fn text(random: &mut fastrand::Rng, most: usize) -> String {
    (0..random.usize(..most)).map(|_| *random.choice(PIECES).expect("some")).collect()
}

const LANGUAGES: [Language; 4] = [Language::Cuda, Language::Cpp, Language::Rust, Language::Python];

#[test]
fn any_text_is_scanned() {
    let mut random = fastrand::Rng::with_seed(3);
    for round in 0..4000 {
        let host = text(&mut random, 40);
        for language in LANGUAGES {
            for snippet in scan(language, &host).snippets() {
                let document = &snippet.document;
                for (at, _) in document.text().char_indices() {
                    if let Some(there) = document.to_host(TextRange::empty(TextSize::new(at as u32))) {
                        let there = there.start() + snippet.range.start();
                        assert!(host.is_char_boundary(there.into()), "{round}: {host:?}");
                    }
                }
                for (at, _) in host.char_indices() {
                    let relative = TextSize::new(at as u32).checked_sub(snippet.range.start());
                    if let Some(there) = relative.and_then(|at| document.to_module(at)) {
                        assert!(document.text().is_char_boundary(there.into()), "{round}: {host:?}");
                    }
                }
            }
        }
    }
}

fn boundary(text: &str, at: usize) -> usize {
    text.floor_char_boundary(at)
}

fn read(text: &str, range: std::ops::Range<usize>) -> String {
    text[range.start..boundary(text, range.end)].to_owned()
}

#[test]
fn edits_find_what_a_scan_finds() {
    let mut random = fastrand::Rng::with_seed(11);
    for _ in 0..300 {
        let language = *random.choice(LANGUAGES.iter()).expect("some");
        let mut host = text(&mut random, 3000);
        let mut found = scan(language, &host);
        for _ in 0..8 {
            let start = boundary(&host, random.usize(..=host.len()));
            let end = boundary(&host, start + random.usize(..60)).max(start);
            let new = text(&mut random, 4);
            host.replace_range(start..end, &new);
            let before: Vec<Snippet> = found.snippets().to_vec();
            let (gone, added) = found.edit(start..end, new.len(), host.len(), |range| read(&host, range));
            assert_eq!(found.snippets(), scan(language, &host).snippets());
            assert_eq!(found.snippets().len(), before.len() - gone.len() + added);
            for (old, new) in before[..gone.start].iter().zip(found.snippets()) {
                assert_eq!(old.document, new.document);
            }
        }
    }
}

/// The number of marks is neither too small nor too large.
#[test]
fn an_edit_reads_little() {
    let line = "int x = f(1, \"two\"); // three\n";
    let mut host = line.repeat(40_000);
    host.push_str("asm(\"trap;\");\n");
    let mut found: Scan = scan(Language::Cuda, &host);
    let at = host.len() / 2;
    host.insert(at, ' ');
    let read = std::cell::Cell::new(0);
    found.edit(at..at, 1, host.len(), |range| {
        read.set(read.get() + range.len());
        host[range].to_owned()
    });
    assert!(read.get() < 20_000, "{}", read.get());
    assert_eq!(found.snippets(), scan(Language::Cuda, &host).snippets());
}

/// CUDA code in a string, which CuPy, NVRTC and others compile at run time.
#[test]
fn assembly_of_programs_in_strings() {
    let code = r#"__global__ void f(int *x) { int y; asm("add.u32 %0, %1, 1;\n\tmov.u32 %0, %%tid.x;" : "=r"(y) : "r"(*x)); }"#;
    let raw = format!("kernel = cupy.RawKernel(r'''\n{code}\n''', 'f')\n");
    let escaped = format!("kernel = cupy.RawKernel(\"\"\"\n{}\"\"\", 'f')\n", code.replace('\\', "\\\\"));
    for text in [raw.as_str(), escaped.as_str()] {
        let snippet = one(Language::Python, text);
        assert_eq!(inside(&snippet), "add.u32 %0, %1, 1;\n\tmov.u32 %0, %tid.x;");
        assert_eq!(back(text, &snippet, "%tid.x"), "%%tid.x");
        assert_eq!(back(text, &snippet, "add.u32"), "add.u32");
        assert_eq!(back(text, &snippet, "mov.u32 %0"), "mov.u32 %0");
        assert_eq!(snippet.document.written("%laneid").as_deref(), Some("%%laneid"));
    }
    let snippet = one(Language::Python, &escaped);
    assert_eq!(back(&escaped, &snippet, "1;\n\tmov"), r"1;\\n\\tmov");
    assert_eq!(snippet.document.written("a\nb"), None);
    let nvrtc = format!("const char *source = R\"({code})\";\n");
    assert_eq!(back(&nvrtc, &one(Language::Cpp, &nvrtc), "add.u32"), "add.u32");
    // Strings that a program builds are not known.
    none(Language::Python, &format!("kernel = f'''{code}'''\n"));
    none(Language::Python, &format!("kernel = '''{code}'''.format(1)\n"));
    none(Language::Python, "text = '__global__ fantasm'\n");
}

/// A module in adjacent literals. The first literals alone do not show that the text is a module.
#[test]
fn modules_in_adjacent_literals() {
    let c = "const char *ptx =\n  \"// saxpy\\n\"\n  \".version 8.0\\n\"\n  \".target sm_80\\n.entry k() { ret; }\\n\";\n";
    let snippet = one(Language::Cpp, c);
    assert!(snippet.document.is_module);
    assert_eq!(back(c, &snippet, ".entry k"), ".entry k");
    let python = "ptx = ('.version 8.0\\n'\n       '.target sm_80\\n')\n";
    assert!(one(Language::Python, python).document.is_module);
    none(Language::Cpp, "print(\".version 8.0\\n\" \"and more\");\n");
}
