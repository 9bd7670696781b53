//! Runs `ptx-check`, `ptxc` and `ptx-lsp` as a shell does: exit statuses, messages, and output files.

mod shell;

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use shell::{command, folder, output, run, told};

use serde_json::{Value, json};

const CHECK: &str = env!("CARGO_BIN_EXE_ptx-check");
const COMPILE: &str = env!("CARGO_BIN_EXE_ptxc");
const SERVER: &str = env!("CARGO_BIN_EXE_ptx-lsp");

const HEADER: &str = ".version 8.0\n.target sm_75\n.address_size 64\n";
const KERNEL: &str = ".visible .entry k(.param .u64 p)\n{\n\tret;\n}\n";
/// `add.u32` reads a 64-bit register.
const WRONG: &str = ".visible .entry w(.param .u64 p)\n{\n.reg .b32 %r<4>;\n.reg .b64 %rd<2>;\nld.param.u64 %rd1, [p];\nadd.u32 %r1, 1, %rd1;\nret;\n}\n";

fn module(parts: &[&str]) -> String {
    format!("{HEADER}{}", parts.concat())
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder");
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// The kernels of a module for tools that patch programs are errors.
#[test]
fn patches_have_no_kernels() {
    let function = ".visible .func f()\n{\n\tret;\n}\n";
    let folder = folder(&[("a.ptx", &module(&[function, KERNEL])), ("b.ptx", &module(&[function]))]);
    let (status, text) = run(COMPILE, folder.path(), &["-astoolspatch", "a.ptx"]);
    assert_eq!(status, 255);
    let message = "ptxc error   : Entry function is not allowed when command line option '--compile-as-tools-patch' is specified\n";
    assert_eq!(text, format!("{message}ptxc fatal   : Ptx assembly aborted due to errors\n"));
    let (status, text) = run(COMPILE, folder.path(), &["-astoolspatch", "b.ptx"]);
    assert_eq!(status, 255);
    assert!(text.contains("not supported yet: programs without kernels"), "{text}");
    assert_eq!(names(folder.path()), ["a.ptx", "b.ptx"]);
}

/// `.target …, debug` has the effect of `-g` on the optimization level.
#[test]
fn modules_for_debuggers_are_not_optimized() {
    let sections = ".section .debug_abbrev { .b8 0 }\n.section .debug_info { .b32 0 }\n";
    let text = module(&[KERNEL, sections]).replace("sm_75", "sm_75, debug");
    let folder = folder(&[("a.ptx", &text)]);
    for (level, status) in [("-O0", 0), ("-O1", 255), ("-O3", 255)] {
        let (exit, text) = run(COMPILE, folder.path(), &[level, "a.ptx"]);
        assert_eq!(exit, status, "{level}: {text}");
        assert_eq!(text.contains("Optimized debugging not supported"), status != 0, "{level}: {text}");
    }
    assert_eq!(run(COMPILE, folder.path(), &["a.ptx"]).0, 0);
}

/// A suppression comment cannot remove a kernel from a cubin.
#[test]
fn no_output_lacks_a_function() {
    let hidden = WRONG.replace("%rd1;\nret", "%rd1; // ptx-ignore: E0303\nret");
    let folder = folder(&[("a.ptx", &module(&[KERNEL, &hidden])), ("b.ptx", &module(&[KERNEL]))]);
    let folder = folder.path();
    let (status, text) = run(COMPILE, folder, &["-arch=sm_80", "a.ptx", "-o", "a.cubin"]);
    assert_eq!(status, 255, "{text}");
    assert!(text.contains("line 13; error   :") && text.contains("cannot be suppressed"), "{text}");
    assert_eq!(names(folder), ["a.ptx", "b.ptx"]);
    assert_eq!(run(COMPILE, folder, &["-arch=sm_80", "b.ptx", "-o", "a.cubin"]), (0, String::new()));
    let old = fs::read(folder.join("a.cubin")).expect("a cubin");
    assert_eq!(run(COMPILE, folder, &["-arch=sm_80", "a.ptx", "-o", "a.cubin"]).0, 255);
    assert_eq!(fs::read(folder.join("a.cubin")).expect("a cubin"), old);
}

/// Inline assembly is reported at its place in the file of the other language.
#[test]
fn files_of_other_languages_are_checked() {
    let cuda = "// π\n__device__ void f() {\n  asm(\"mov.u32 %0,\"\n      \" %r9;\" : \"=r\"(x));\n}\n";
    let folder = folder(&[("a.cu", cuda), ("b.cpp", "void f() { asm(\"cpuid\"); }\n"), ("c.py", "x = 1\n")]);
    let folder = folder.path();
    let (status, text) = run(CHECK, folder, &["--format", "json", "a.cu", "b.cpp", "c.py"]);
    assert_eq!(status, 1, "{text}");
    let found: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(found.len(), 1, "{text}");
    let place = ["file", "line", "column", "end_column", "code"].map(|key| found[0][key].clone());
    assert_eq!(place.to_vec(), [json!("a.cu"), json!(4), json!(9), json!(12), json!("E0202")]);
    let (_, text) = run(CHECK, folder, &["a.cu"]);
    assert!(text.contains("a.cu:4:9") && text.contains("\" %r9;\" : "), "{text}");
    let (_, text) = run(CHECK, folder, &["--format", "github", "a.cu"]);
    assert!(text.contains("line=4,endLine=4,col=9"), "{text}");
    assert_eq!(run(CHECK, folder, &["--fix", "a.cu"]).0, 2);
}

/// An unsupported function does not prevent the others from being checked and compiled.
#[test]
fn one_bad_function_among_many() {
    let kernel = |n: usize, body: &str| {
        format!(
            ".visible .entry k{n}(.param .u64 p)\n{{\n.reg .b32 %r<4>;\n.reg .b16 %h<4>;\n{body}\nret;\n}}\n"
        )
    };
    // The checks accept this instruction, but the compiler does not support it.
    const REFUSED: &str = "fma.rz.bf16 %h0, %h1, %h2, %h3;";
    let text = |bad: &[(usize, &str)]| {
        let body = |n| bad.iter().find(|(at, _)| *at == n).map_or("mov.u32 %r1, 5;", |(_, body)| body);
        let kernels: Vec<String> = (0..800).map(|n| kernel(n, body(n))).collect();
        format!(".version 9.0\n.target sm_90\n.address_size 64\n{}", kernels.concat())
    };
    let folder = folder(&[
        ("good.ptx", &text(&[])),
        ("bad.ptx", &text(&[(400, REFUSED)])),
        ("two.ptx", &text(&[(2, REFUSED), (799, REFUSED)])),
        ("wrong.ptx", &text(&[(400, REFUSED), (700, "add.u32 %r1, %r2, %h1;")])),
    ]);
    let compiled = |name: &str| {
        let (status, said) = run(COMPILE, folder.path(), &["-w", "-arch=sm_90", name, "-o", "out.cubin"]);
        let written = names(folder.path()).contains(&"out.cubin".to_owned());
        let refusals =
            said.lines().filter(|line| line.contains(" is not supported yet: ")).map(|line| line.to_owned());
        assert_eq!(status == 0, written, "{name}: {said}");
        assert!(
            status == 0 || said.ends_with("ptxc fatal   : Ptx assembly aborted due to errors\n"),
            "{said}"
        );
        (status, refusals.collect::<Vec<_>>(), said)
    };
    let at = |n: usize, message: &str, name: &str| {
        let line = 3 + 7 * n + 5;
        message
            .starts_with(&format!("ptxc {name}, line {line}; error   : `fma.rz.bf16` is not supported yet: "))
            && message.ends_with(&format!(" (in function 'k{n}')"))
    };
    let (status, refused, said) = compiled("bad.ptx");
    assert_eq!((status, refused.len(), said.lines().count()), (255, 1, 2), "{said}");
    assert!(at(400, &refused[0], "bad.ptx"), "{said}");
    // Every unsupported function is named. Errors of the program come first.
    let (_, refused, said) = compiled("two.ptx");
    assert!(refused.len() == 2 && at(2, &refused[0], "two.ptx") && at(799, &refused[1], "two.ptx"), "{said}");
    let (status, refused, said) = compiled("wrong.ptx");
    assert!(status == 255 && refused.is_empty() && said.contains("wrong.ptx, line "), "{said}");
    assert_eq!(compiled("good.ptx").0, 0);
}

#[test]
fn entries_bring_what_they_call_and_nothing_else() {
    let large = ".visible .entry large()\n{\n.reg .b32 %r;\n.shared .b8 s[100000];\nld.shared.u32 %r, [s];\nst.shared.u32 [s], %r;\nret;\n}\n";
    let function = ".visible .func f()\n{\n.reg .b32 %r<9>;\nalloca.u32 %r1, 8, 4;\nret;\n}\n";
    let text = module(&[function, KERNEL, large]).replace("8.0", "8.7");
    let folder = folder(&[("a.ptx", &text), ("w.ptx", &module(&[KERNEL, WRONG]))]);
    let compile =
        |rest: &[&str]| run(COMPILE, folder.path(), &[&["-arch=sm_80", "-o", "a.cubin"], rest].concat());
    assert_eq!(compile(&["a.ptx"]).0, 255);
    assert_eq!(names(folder.path()), ["a.ptx", "w.ptx"]);
    assert_eq!(compile(&["-e", "k", "a.ptx"]), (0, String::new()));
    fs::remove_file(folder.path().join("a.cubin")).expect("a cubin");
    for (entries, message) in [
        ("large", "bytes of static shared memory"),
        ("k,none", "Unknown function none"),
        ("f", "Entry function 'f' not found"),
    ] {
        let (status, text) = compile(&["-e", entries, "a.ptx"]);
        assert!(status == 255 && text.contains(message), "{text}");
    }
    // Errors anywhere in the text count.
    assert_eq!(compile(&["-e", "k", "w.ptx"]).0, 255);
    assert_eq!(names(folder.path()), ["a.ptx", "w.ptx"]);
}

#[test]
fn errors_keep_their_level() {
    let folder = folder(&[
        ("w.ptx", &module(&[WRONG])),
        ("bad.toml", "[lints]\nE0303 = \"allow\"\n"),
        ("t.toml", "target = \"sm_999\"\n"),
        ("k.toml", "color = 1\n"),
    ]);
    let check = |arguments: &[&str]| run(CHECK, folder.path(), &[arguments, &["w.ptx"]].concat());
    assert_eq!(check(&[]).0, 1);
    for (arguments, message) in [
        (["-W", "E0303=allow"], "is an error and cannot be set"),
        (["-W", "E9999=allow"], "unknown lint `E9999`"),
        (["--config", "bad.toml"], "bad.toml:2: `E0303` is an error"),
        (["--config", "t.toml"], "t.toml:1: unknown target `sm_999`; the targets are sm_10"),
        (["--config", "k.toml"], "k.toml:1: unknown field `color`, expected one of `target`"),
        (["--target", "sm_999"], "unknown target `sm_999`; the targets are sm_10"),
        (["--arch", "sm_999"], "unknown target `sm_999`; the targets are sm_10"),
    ] {
        let (status, text) = check(&arguments);
        assert!(status == 2 && text.contains(message), "{arguments:?}: {status} {text}");
    }
    let (status, text) = run(COMPILE, folder.path(), &["-arch=sm_999", "w.ptx"]);
    assert!(status == 255 && text.contains("defined are sm_75, "), "{text}");
}

#[test]
fn help_and_versions_are_no_errors() {
    let folder = folder(&[]);
    for program in [CHECK, COMPILE, SERVER] {
        let (status, text) = run(program, folder.path(), &["--help"]);
        assert!(status == 0 && text.to_lowercase().contains("exit status"), "{program}: {text}");
        let (status, text) = run(program, folder.path(), &["--version"]);
        assert!(status == 0 && text.ends_with(concat!(env!("CARGO_PKG_VERSION"), "\n")), "{program}: {text}");
        let (status, text) = run(program, folder.path(), &["--no-such-option"]);
        assert!(
            status == if program == COMPILE { 255 } else { 2 } && text.contains("no-such-option"),
            "{text}"
        );
    }
}

#[test]
fn stages_are_printed() {
    let folder = folder(&[("a.ptx", &module(&[KERNEL]))]);
    let dump = |stage: &str| run(SERVER, folder.path(), &["dump", "--stage", stage, "a.ptx"]);
    for (stage, part) in [
        ("tokens", "DOT_WORD \".entry\""),
        ("items", "Entry k"),
        ("ori", "EXIT"),
        ("phase:GvnCse", "EXIT"),
        ("alloc", "EXIT"),
        ("mach", "b0: -> exit"),
        ("sched", "S05 EXIT"),
        ("times", " us  GvnCse"),
        ("sass", "EXIT"),
    ] {
        let (status, text) = dump(stage);
        assert!(status == 0 && text.contains(part), "{stage}: {text}");
    }
    let (status, text) = dump("phase:none");
    let missing = "unknown compiler stage `none`; the stages are ori, OriContractProducts";
    assert!(status == 2 && text.contains(missing), "{text}");
    assert!(dump("none").1.contains("the stages are tokens, tree"));
    let knob = |knob: &str| run(COMPILE, folder.path(), &["-knob", knob, "a.ptx"]);
    let (status, text) = knob("DUMPIR=GvnCse");
    assert!(status == 0 && text.contains("entry \"k\" {\nb0:\n"), "{text}");
    assert!(
        knob("DUMPIR=none")
            .1
            .contains("Unknown stage 'none' in DUMPIR; the stages are ori, OriContractProducts")
    );
    assert!(knob("DUMP").1.contains("Unknown knob 'DUMP'; the knobs are DUMPIR=STAGE and PHASE=-NAME,..."));
}

/// A product and a sum, which become one instruction.
const SUM: &str = ".visible .entry s(.param .u64 p)\n{\n.reg .b64 %rd<2>;\n.reg .b32 %r<4>;\nld.param.u64 %rd1, [p];\nld.global.u32 %r1, [%rd1];\nmul.lo.u32 %r3, %r1, %r1;\nadd.u32 %r2, %r3, %r1;\nst.global.u32 [%rd1], %r2;\nret;\n}\n";

#[test]
fn phases_are_left_out() {
    let folder = folder(&[("a.ptx", &module(&[SUM]))]);
    let without = |program: &str, list: Option<&str>, arguments: &[&str]| {
        let mut command = command(program, folder.path(), arguments);
        command.envs(list.map(|list| ("PTX_PHASE", list)));
        told(&mut command)
    };
    let has_sum = |list: Option<&str>, arguments: &[&str]| {
        let arguments = [&["dump", "--stage", "mach", "a.ptx"], arguments].concat();
        let (status, text) = without(SERVER, list, &arguments);
        assert_eq!(status, 0, "{text}");
        text.contains("IADD3")
    };
    let list = "-GeneralOptimize";
    assert!(!has_sum(None, &[]));
    assert!(has_sum(Some(list), &[]));
    assert!(has_sum(None, &["--phases", list]));
    assert!(!has_sum(Some(list), &["--phases=+GeneralOptimize"]));
    let (status, shown) =
        without(COMPILE, None, &["-knob", "PHASE=-OriFold", "-knob", "DUMPIR=OriFold", "a.ptx"]);
    assert!(status == 0 && !shown.contains("entry"), "{shown}");
    let shown = without(COMPILE, Some("-OriFold"), &["-knob", "DUMPIR=OriFold", "a.ptx"]).1;
    assert!(!shown.contains("entry"), "{shown}");
    let listed = "Unknown phase 'Fold'; the optional phases are OriContractProducts, ";
    let (status, text) = without(COMPILE, None, &["-knob", "PHASE=-Fold", "a.ptx"]);
    assert!(status == 255 && text.contains(listed), "{text}");
    for (program, failed) in [(COMPILE, 255), (SERVER, 2)] {
        let arguments: &[&str] =
            if program == SERVER { &["dump", "--stage", "sass", "a.ptx"] } else { &["a.ptx"] };
        let (status, text) = without(program, Some("-Fold"), arguments);
        assert!(status == failed && text.contains("PTX_PHASE: ") && text.contains(listed), "{status} {text}");
    }
    let text = without(COMPILE, Some("-LateLegalization"), &["a.ptx"]).1;
    assert!(text.contains("PTX_PHASE: Phase 'LateLegalization' cannot be disabled"), "{text}");
}

#[test]
fn inputs_that_are_no_text_give_one_message() {
    let folder = folder(&[("noise.ptx", "")]);
    let noise: Vec<u8> = (0..20_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    fs::write(folder.path().join("noise.ptx"), noise).expect("a file");
    fs::write(folder.path().join("elf.ptx"), b"\x7fELF\x02\x01\x01").expect("a file");
    fs::create_dir(folder.path().join("empty")).expect("a folder");
    for (name, message) in
        [("noise.ptx", "is a binary file"), ("elf.ptx", "use `sass dis`"), ("none.ptx", "o such file")]
    {
        for (program, failed) in [(CHECK, 2), (COMPILE, 255), (SERVER, 2)] {
            let arguments =
                if program == SERVER { vec!["dump", "--stage", "tree", name] } else { vec![name] };
            let (status, text) = run(program, folder.path(), &arguments);
            // Ours ends with the same status as ptxas. Like ptxas, it says of a missing file only that it could not be
            // opened.
            let (lines, message) = match (program == COMPILE, name) {
                (true, "none.ptx") => (2, "could not be opened"),
                (true, _) => (2, message),
                (false, _) => (1, message),
            };
            assert_eq!((status, text.lines().count()), (failed, lines), "{program} {name}: {text}");
            assert!(text.contains(name) && text.contains(message), "{text}");
        }
    }
    let (status, text) = run(CHECK, folder.path(), &["empty"]);
    let message = "ptx-check: empty: folder contains no .ptx files; `--embedded` looks for";
    assert!(status == 2 && text.starts_with(message) && text.lines().count() == 1, "{text}");
    assert!(run(COMPILE, folder.path(), &["empty"]).1.contains("it is a folder, not a file"));
}

#[test]
fn the_size_of_inputs_is_limited() {
    let large = format!("{HEADER}{KERNEL}//{}\n", " ".repeat(1 << 20));
    let folder = folder(&[("large.ptx", &large)]);
    for (program, failed) in [(CHECK, 2), (COMPILE, 255)] {
        let limited =
            |limit: &str, name: &str| run(program, folder.path(), &["--max-input-size", limit, name]);
        assert_eq!(limited("2", "large.ptx").0, 0);
        let mut endless = vec!["large.ptx"];
        if cfg!(target_os = "linux") {
            endless.push("/dev/zero");
        }
        for name in endless {
            let (status, text) = limited("1", name);
            assert!(
                status == failed && text.contains("larger than 1 MiB; `--max-input-size"),
                "{status} {text}"
            );
        }
        for limit in ["0", "4096", "x", "99999999999999999999"] {
            assert_eq!(limited(limit, "large.ptx").0, failed);
        }
    }
}

/// There are at most as many threads as the system allows, whatever the option says.
#[test]
fn the_pool_is_bounded() {
    let folder = folder(&[("a.ptx", &module(&[KERNEL])), ("b.ptx", &module(&[KERNEL]))]);
    for (program, arguments) in
        [(CHECK, &["-q", "a.ptx", "b.ptx"][..]), (COMPILE, &["-split-compile=0", "-arch=sm_80", "a.ptx"])]
    {
        let mut command = command(program, folder.path(), arguments);
        command.env("RAYON_NUM_THREADS", "100000");
        assert_eq!(told(&mut command), (0, String::new()));
    }
}

/// A reader sees a complete cubin at any moment, and no temporary file is left.
#[test]
fn a_hundred_compilers_and_one_output() {
    let other = KERNEL.replace("ret;", &"membar.sys;\n".repeat(100)).replace("\n}\n", "\nret;\n}\n");
    let folder = folder(&[("a.ptx", &module(&[KERNEL])), ("b.ptx", &module(&[&other]))]);
    let compile =
        |input: &str, output: &str| command(COMPILE, folder.path(), &["-arch=sm_80", "-o", output, input]);
    let mut whole = Vec::new();
    for input in ["a.ptx", "b.ptx"] {
        assert_eq!(told(&mut compile(input, "x.cubin")), (0, String::new()));
        whole.push(fs::read(folder.path().join("x.cubin")).expect("a cubin"));
    }
    let is_whole = |found: &[u8]| whole.iter().any(|one| one.len() == found.len());
    let mut running: Vec<_> = (0..100)
        .map(|i| {
            compile(["a.ptx", "b.ptx"][i % 2], "x.cubin").stderr(Stdio::null()).spawn().expect("it starts")
        })
        .collect();
    while let Some(mut one) = running.pop() {
        assert!(is_whole(&fs::read(folder.path().join("x.cubin")).expect("a cubin")));
        assert!(one.wait().expect("it ends").success());
    }
    assert!(is_whole(&fs::read(folder.path().join("x.cubin")).expect("a cubin")));
    assert_eq!(names(folder.path()), ["a.ptx", "b.ptx", "x.cubin"]);
}

/// Several files and texts form one module. Messages give the lines of each input.
#[test]
fn inputs_are_one_module() {
    let other = KERNEL.replace("entry k", "entry other");
    let texts = [("a.ptx", module(&[KERNEL])), ("b.ptx", module(&[&other])), ("w.ptx", module(&[WRONG]))];
    let folder = folder(&texts.each_ref().map(|(name, text)| (*name, &**text)));
    let compile = |inputs: &[&str]| {
        run(COMPILE, folder.path(), &[&["-arch=sm_80", "-v", "-o", "x.cubin"], inputs].concat())
    };
    let (status, text) = compile(&["a.ptx", "b.ptx"]);
    let kernels: Vec<&str> = text.lines().filter(|line| line.contains("Compiling entry function")).collect();
    assert_eq!(
        (status, kernels),
        (
            0,
            vec![
                "ptxc info    : Compiling entry function 'other' for 'sm_80'",
                "ptxc info    : Compiling entry function 'k' for 'sm_80'"
            ]
        )
    );
    // Texts follow the files.
    let third = texts[0].1.replace("entry k", "entry third");
    let (_, text) = compile(&["-ias", &third, "a.ptx", "b.ptx"]);
    let at = |name: &str| text.find(&format!("Compiling entry function '{name}'"));
    assert!(at("third") < at("other") && at("other") < at("k"), "{text}");
    fs::remove_file(folder.path().join("x.cubin")).expect("a cubin");
    assert_eq!(compile(&["-ias", &texts[0].1]).0, 0);
    fs::remove_file(folder.path().join("x.cubin")).expect("a cubin");
    let (status, text) = compile(&["a.ptx", "w.ptx"]);
    assert!(status == 255 && text.contains("ptxc w.ptx, line 9; error   :"), "{text}");
    let (status, text) = compile(&["-ias", &texts[2].1]);
    assert!(status == 255 && text.contains("ptxc application ptx input, line 9; error   :"), "{text}");
    assert_eq!(compile(&["a.ptx", "a.ptx"]).0, 255);
    assert_eq!(names(folder.path()), ["a.ptx", "b.ptx", "w.ptx"]);
}

/// Each input has its own header, and its own functions without linkage.
#[test]
fn inputs_have_their_own_names() {
    let text = |version: &str, value: u32| {
        format!(
            ".version {version}\n.target sm_80\n.address_size 64\n.global .u32 g;\n.func (.param .b32 r) f()\n{{\n\
            .reg .b32 %r<2>;\nld.global.u32 %r1, [g];\nadd.u32 %r1, %r1, {value};\nst.param.b32 [r], %r1;\nret;\n}}\n\
            .visible .entry k{value}(.param .b64 p)\n{{\n.reg .b32 %r<2>;\n.reg .b64 %rd<2>;\nld.param.b64 %rd1, [p];\n\
            {{ .param .b32 r; call (r), f; ld.param.b32 %r1, [r]; }}\nst.global.u32 [%rd1], %r1;\nret;\n}}\n"
        )
    };
    let folder = folder(&[("a.ptx", &text("8.0", 1)), ("b.ptx", &text("8.1", 2))]);
    for more in [&[][..], &["-c"]] {
        let arguments = [&["-arch=sm_90a", "-o", "x.cubin", "a.ptx", "b.ptx"], more].concat();
        assert_eq!(run(COMPILE, folder.path(), &arguments), (0, String::new()));
        let cubin = fs::read(folder.path().join("x.cubin")).expect("a cubin");
        let count = |text: &[u8]| cubin.windows(text.len()).filter(|bytes| *bytes == text).count();
        assert!(count(b"\0.text.k1\0") > 0 && count(b"\0.text.k2\0") > 0);
    }
}

#[test]
fn bounds_out_of_range_and_objects_are_described_as_by_ptxas() {
    let texts = [
        ".visible .entry k() .maxntid 64 .minnctapersm 40 { ret; }",
        ".visible .entry l() .maxnreg 10 { ret; }",
        ".visible .global .align 8 .b64 t[4];",
        ".visible .func f(.param .b64 a) { .reg .b64 %rd<4>; ld.param.b64 %rd1, [a]; mov.u64 %rd2, t; \
            add.s64 %rd3, %rd2, 16; st.u64 [%rd1], %rd3; ret; }",
    ];
    let folder = folder(&[("k.ptx", &module(&texts))]);
    let compile = |rest: &[&str]| {
        run(COMPILE, folder.path(), &[&["-arch=sm_80", "-o", "x.cubin", "k.ptx"], rest].concat())
    };
    let adjusted = "For entry l adjusting per thread register count of 10 to lower bound of 24";
    let ignored = "Value of minnctapersm for entry k is out of range. minnctapersm will be ignored";
    let warnings = |word: &str| format!("ptxc {word} : {adjusted}\nptxc {word} : {ignored}\n");
    assert_eq!(compile(&[]), (0, warnings("warning")));
    let aborted = "ptxc fatal   : Ptx assembly aborted due to errors\n";
    assert_eq!(compile(&["-Werror"]), (255, warnings("error  ") + aborted));
    let (status, text) = compile(&["-w", "-c", "-v"]);
    let without_times: Vec<&str> = text.lines().filter(|line| !line.contains("Compile time")).collect();
    let first = "ptxc info    : 32 bytes gmem\nptxc info    : Function properties for f\n    \
        0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n\
        ptxc info    : Compiling entry function 'l' for 'sm_80'\n";
    assert!(status == 0 && without_times.join("\n").starts_with(first), "{text}");
}

/// A function that a recursive function calls does not count, even if the kernel calls it too.
/// Without the calling convention there are no stack frames, only local memory.
#[test]
fn local_memory_follows_the_banks() {
    let text = ".version 2.3\n.target sm_20\n.address_size 64\n.local .align 4 .b8 l[64];\n.shared .b32 s;\n\
        .visible .entry k(.param .u64 p)\n{\n.reg .b32 %r<3>;\n.reg .b64 %rd<4>;\nld.param.u64 %rd1, [p];\n\
        ld.global.u32 %r1, [%rd1];\ncvt.u64.u32 %rd2, %r1;\nmov.u64 %rd3, l;\nadd.u64 %rd3, %rd3, %rd2;\n\
        st.local.b32 [%rd3], %r1;\nld.local.b32 %r2, [l];\nst.shared.b32 [s], %r2;\nld.volatile.shared.b32 %r1, [s];\n\
        st.global.b32 [%rd1], %r1;\nret;\n}\n";
    let folder = folder(&[("k.ptx", text)]);
    let used = |arch: &str| {
        let (_, text) = run(COMPILE, folder.path(), &[arch, "-v", "-warn-lmem-usage", "k.ptx"]);
        assert!(!text.contains("Local memory used"), "{text}");
        let line = text.lines().find(|line| line.contains("Used ")).expect("a line").to_owned();
        line.split_once("barriers, ").expect("barriers").1.to_owned()
    };
    assert_eq!(used("-arch=sm_80"), "4 bytes smem, 360 bytes cmem[0], 64 bytes lmem");
    assert_eq!(used("-arch=sm_90"), "4 bytes smem, 64 bytes lmem");
}

#[test]
fn stacks_below_recursion_are_unknown() {
    let call = |name: &str| format!("{{ .param .u64 q; st.param.u64 [q], i; call {name}, (q); }}");
    let (leaf, rec) = (call("leaf"), call("rec"));
    let texts = [
        ".func leaf(.param .u64 a) { .local .b64 b[10]; .reg .b64 x, i; ld.param.u64 i, [a]; mov.u64 x, b; \
            cvta.local.u64 x, x; add.u64 x, x, i; st.volatile.u64 [x], i; ret; }\n",
        ".func rec(.param .u64 a) { .reg .b64 i; .reg .pred p; ld.param.u64 i, [a]; setp.eq.u64 p, i, 0; \
            @p ret; add.u64 i, i, -8; ",
        &leaf,
        &rec,
        " ret; }\n.visible .entry both(.param .u64 p) { .reg .b64 i; ld.param.u64 i, [p]; ",
        &leaf,
        &rec,
        " ret; }\n.visible .entry one(.param .u64 p) { .reg .b64 i; ld.param.u64 i, [p]; ",
        &leaf,
        " ret; }\n",
    ];
    let folder = folder(&[("k.ptx", &module(&texts))]);
    let (status, text) = run(COMPILE, folder.path(), &["-arch=sm_90", "-O0", "-v", "k.ptx"]);
    let used: Vec<&str> = text.lines().filter(|line| line.contains("Used ")).collect();
    assert_eq!((status, used.len()), (0, 2), "{text}");
    assert!(used[0].contains(", 80 bytes cumulative stack size"), "{text}");
    assert!(!used[1].contains("stack size"), "{text}");
}

#[test]
fn ignored_changes_of_registers_have_their_reasons() {
    let module = |bounds: &str, count: u32| {
        format!(
            ".version 8.6\n.target sm_90a\n.address_size 64\n.visible .entry k() {bounds}\n{{\n\
             setmaxnreg.dec.sync.aligned.u32 {count};\nret;\n}}\n"
        )
    };
    let said = |bounds: &str, count: u32, more: &[&str]| {
        let folder = folder(&[("k.ptx", &module(bounds, count))]);
        let (status, text) = run(COMPILE, folder.path(), &[&["-arch=sm_90a", "k.ptx"], more].concat());
        assert_eq!(status, 0, "{text}");
        text
    };
    let known = ".maxntid 384 .minnctapersm 1";
    assert_eq!(said(known, 40, &[]), "");
    assert!(said(known, 40, &["-v"]).contains("Used 168 registers"));
    for (bounds, count, more, reason) in [
        (
            "",
            40,
            &[][..],
            "(C7508) Potential Performance Loss: 'setmaxnreg' ignored; unable to determine register count at entry.",
        ),
        (
            known,
            40,
            &["-c"],
            "(C7504) Potential Performance Loss: 'setmaxnreg' ignored to maintain compatibility across compilation units.",
        ),
        (
            known,
            200,
            &[],
            "(C7507) Potential Performance Loss: 'setmaxnreg' ignored to maintain minimum register requirements.",
        ),
    ] {
        assert_eq!(said(bounds, count, more), format!("ptxc info    : {reason}\n"));
    }
}

/// Only code with the checks names the words in which a block records its columns.
#[test]
fn tensor_memory_is_checked_on_request_and_for_debuggers() {
    let text = ".version 8.7\n.target sm_100a\n.address_size 64\n\
        .visible .entry k(.param .u32 to) { .reg .b32 %to; ld.param.u32 %to, [to]; \
        tcgen05.shift.cta_group::1.down [%to]; ret; }\n";
    let is_checked = |options: &[&str]| {
        let folder = folder(&[("k.ptx", text)]);
        let (status, said) = run(
            COMPILE,
            folder.path(),
            &[&["-w", "-arch=sm_100a", "k.ptx", "-o", "k.cubin"], options].concat(),
        );
        assert_eq!(status, 0, "{said}");
        let cubin = std::fs::read(folder.path().join("k.cubin")).expect("the output");
        String::from_utf8_lossy(&cubin).contains("tcgen05_partition")
    };
    for options in [&["-g-tmem-access-check"][..], &["-g"], &["--g-tensor-memory-access-check"]] {
        assert!(is_checked(options), "{options:?}");
    }
    for options in
        [&[][..], &["-g", "-gno-tmem-access-check"], &["-gno-tmem-access-check", "-g-tmem-access-check"]]
    {
        assert!(!is_checked(options), "{options:?}");
    }
}

#[test]
fn warnings_and_statistics_are_those_of_ptxas() {
    let double = ".visible .entry d(.param .u64 p)\n{\n.reg .b64 %rd<2>;\n.reg .f64 %d<2>;\nld.param.u64 %rd1, [p];\nld.global.f64 %d1, [%rd1];\nst.global.f64 [%rd1+8], %d1;\ncvt.rni.f64.f64 %d1, %d1;\nret;\n}\n";
    let folder =
        folder(&[("d.ptx", &module(&[double])), ("t.json", "{\"traceEvents\": []}"), ("u.json", "{}")]);
    let compile = |rest: &[&str]| {
        run(COMPILE, folder.path(), &[&["-arch=sm_80", "-o", "x.cubin", "d.ptx"], rest].concat())
    };
    let lines = |word: &str| {
        let line =
            |n| format!("ptxc d.ptx, line {n}; {word} : Program is doing double precision computations.\n");
        // ptxas expands a conversion to two instructions.
        [line(9), line(10), line(11), line(11)].concat()
    };
    assert_eq!(compile(&["-warn-double-usage"]), (0, lines("warning")));
    let aborted = "ptxc fatal   : Ptx assembly aborted due to errors\n";
    assert_eq!(compile(&["-warn-double-usage", "-Werror"]), (255, lines("error  ") + aborted));
    let (status, text) = compile(&["-v"]);
    let fixed = "ptxc info    : 0 bytes gmem
ptxc info    : Compiling entry function 'd' for 'sm_80'
ptxc info    : Function properties for d
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxc info    : Used ";
    assert!(status == 0 && text.starts_with(fixed), "{text}");
    assert!(text.contains(" registers, used 0 barriers, 360 bytes cmem[0]\nptxc info    : Compile time = "));
    assert_eq!(compile(&["--compiler-stats=phase-wise"]), (0, String::new()));
    let (_, text) = compile(&["--compiler-stats=time,phase-wise"]);
    assert!(text.contains("STAT: CompileTime = ") && text.contains("\nOCG-time              : "), "{text}");
    assert!(!text.contains("Memory"), "{text}");
    if cfg!(target_os = "linux") {
        let (_, text) = compile(&["--compiler-stats=memory,phase-wise"]);
        assert!(text.contains("STAT: PeakMemoryUsage = ") && !text.contains("-time"), "{text}");
        assert!(text.contains("\nPeakParserMemoryUsage           : "), "{text}");
        assert!(text.trim_end().ends_with(" KB"), "{text}");
    }
    assert_eq!(compile(&["--fdevice-time-trace", "t.json"]), (0, String::new()));
    let trace = fs::read_to_string(folder.path().join("t.json")).expect("the trace");
    assert!(trace.contains("\"Total PTXAS Time\"") && trace.contains("\"name\":\"d\""), "{trace}");
    assert!(compile(&["--fdevice-time-trace=u.json"]).1.contains("not in expected format"));
    assert!(compile(&["--fdevice-time-trace=none.json"]).1.contains("'none.json' could not be opened"));
}

/// As with ptxas, a function that is only called by name uses the frame of the kernel. One whose address is taken has its
/// own, and so has one that it calls.
#[test]
fn frames_of_functions_are_parts_of_the_kernels_frame() {
    let function = |name: &str, bytes: u32, more: &str| {
        format!(
            ".visible .func {name}(.param .b64 i) {{ .local .align 8 .b8 b[{bytes}]; .reg .b64 %d<4>;
            ld.param.b64 %d0, [i]; mov.b64 %d1, b; add.s64 %d1, %d1, %d0; st.local.b64 [%d1], %d0;
            {more} ld.local.b64 %d2, [b]; st.global.b64 [%d0], %d2; ret; }}"
        )
    };
    let call = |name: &str| format!("{{ .param .b64 x; st.param.b64 [x], %d0; call {name}, (x); }}");
    let kernel = |body: &str| {
        format!(
            ".visible .entry k(.param .b64 i) {{ .reg .b64 %d<4>; ld.param.b64 %d0, [i];
            {body}\nret; }}"
        )
    };
    let by_address = "mov.b64 %d1, f; P: .callprototype _ (.param .b64 _);
        { .param .b64 x; st.param.b64 [x], %d0; call %d1, (x), P; }";
    let stacks = |parts: &[String]| -> Vec<(String, u32)> {
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        let folder = folder(&[("k.ptx", &module(&parts))]);
        let (status, text) = run(COMPILE, folder.path(), &["-arch=sm_80", "-O0", "-v", "k.ptx"]);
        assert_eq!(status, 0, "{text}");
        let lines: Vec<&str> = text.lines().collect();
        let named = lines.windows(2).filter_map(|two| {
            let name = two[0].strip_prefix("ptxc info    : Function properties for ")?;
            Some((name.to_owned(), two[1].trim().split(' ').next()?.parse().ok()?))
        });
        named.collect()
    };
    let stack = |stacks: &[(String, u32)], name: &str| {
        stacks.iter().find(|(of, _)| of == name).unwrap_or_else(|| panic!("{name}: {stacks:?}")).1
    };
    let (f, g) = (function("f", 64, ""), function("g", 96, &call("f")));
    let named = stacks(&[f.clone(), g.clone(), kernel(&call("g"))]);
    assert!(stack(&named, "k") >= 160 && stack(&named, "f") == 0 && stack(&named, "g") == 0, "{named:?}");
    let taken = stacks(&[f, g, kernel(&format!("{}{by_address}", call("g")))]);
    assert!((96..160).contains(&stack(&taken, "k")) && stack(&taken, "f") >= 64, "{taken:?}");
    assert_eq!(stack(&taken, "g"), 0);
}

/// Like ptxas, `ptxc` does not warn about a `.loc` that names a file which the module does not declare.
#[test]
fn locations_need_some_file() {
    let said = |file: &str| {
        let text = module(&[".entry k() { .loc 7 5 3\nret; }", file]);
        let folder = folder(&[("k.ptx", &text)]);
        run(COMPILE, folder.path(), &["-arch=sm_80", "k.ptx"])
    };
    assert_eq!(said(".file 1 \"a.cu\""), (0, String::new()));
    let (status, text) = said("");
    assert!(status == 0 && text.contains(".loc directive without .file directive"), "{text}");
}

/// A module without `.address_size` has 64-bit addresses, whatever its version.
#[test]
fn programs_with_32_bit_addresses_are_refused_as_such() {
    let said = |size: &str| {
        let text = format!(
            ".version 7.0\n.target sm_75\n{size}\n.entry k(.param .u32 p) {{ .reg .b32 a; ld.param.u32 a, [p];\n\
             st.global.u32 [a], a; ret; }}\n"
        );
        let folder = folder(&[("k.ptx", &text)]);
        run(COMPILE, folder.path(), &["-arch=sm_80", "k.ptx"]).1
    };
    for size in ["", ".address_size 32"] {
        assert!(said(size).contains("32-bit addresses are no longer supported"), "{}", said(size));
    }
    assert!(said(".address_size 64").contains("expected a 64-bit address"));
}

/// A program that was started by another name uses that name in its messages.
#[cfg(unix)]
#[test]
fn messages_name_the_program_as_it_was_started() {
    let folder = folder(&[]);
    std::os::unix::fs::symlink(COMPILE, folder.path().join("ptxas")).expect("a link");
    let program = folder.path().join("ptxas");
    let (status, text) = run(program.to_str().expect("text"), folder.path(), &["none.ptx"]);
    let message = "ptxas fatal   : Input file 'none.ptx' could not be opened\nptxas fatal   : Ptx assembly aborted due to errors\n";
    assert_eq!((status, &*text), (255, message));
    let (status, text) = run(COMPILE, folder.path(), &["--version"]);
    assert!(status == 0 && text.contains("Cuda compilation tools, release 13.0, V13.0.88\n"), "{text}");
    assert!(run(COMPILE, folder.path(), &["--list-version"]).1.ends_with("8.8\n9.0\n"));
}

#[test]
fn an_input_is_not_overwritten() {
    let text = module(&[KERNEL]);
    let folder = folder(&[("a.ptx", &text)]);
    let (status, message) = run(COMPILE, folder.path(), &["-arch=sm_80", "a.ptx", "-o", "./a.ptx"]);
    assert!(status == 255 && message.contains("is the input file"), "{message}");
    assert_eq!(fs::read_to_string(folder.path().join("a.ptx")).expect("the text"), text);
}

#[cfg(unix)]
mod unix {
    use super::*;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    #[test]
    fn arguments_need_not_be_text() {
        let folder = folder(&[]);
        let name = OsStr::from_bytes(b"\xff.ptx");
        if fs::write(folder.path().join(name), module(&[KERNEL])).is_err() {
            // The file system only accepts names that are text.
            return;
        }
        let with = |program, arguments: &[&OsStr]| {
            let mut command = command(program, folder.path(), &[]);
            command.args(arguments);
            told(&mut command)
        };
        assert_eq!(with(CHECK, &[OsStr::new("-q"), name]), (0, String::new()));
        let out = OsStr::from_bytes(b"-o=\xfe.cubin");
        assert_eq!(with(COMPILE, &[OsStr::new("-arch=sm_80"), out, name]), (0, String::new()));
        assert!(folder.path().join(OsStr::from_bytes(b"\xfe.cubin")).is_file());
        let wrong = OsStr::from_bytes(b"--\xff");
        assert_eq!([CHECK, COMPILE, SERVER].map(|program| with(program, &[wrong]).0), [2, 255, 2]);
        assert_eq!([CHECK, COMPILE].map(|program| with(program, &[OsStr::from_bytes(b"\xfd")]).0), [2, 255]);
        assert_eq!(with(CHECK, &[OsStr::new("-W"), name]).0, 2);
        assert_eq!(with(SERVER, &[OsStr::new("dump"), OsStr::new("--stage"), name, name]).0, 2);
    }

    /// Both output streams are closed, or their reader has gone away, or they are full.
    #[test]
    fn streams_that_take_nothing_are_no_panic() {
        let folder = folder(&[("a.ptx", &module(&[KERNEL])), ("w.ptx", &module(&[WRONG]))]);
        let closed = || {
            let (_, writer) = std::io::pipe().expect("a pipe");
            Stdio::from(writer)
        };
        let full = || match File::options().write(true).open("/dev/full") {
            Ok(full) => Stdio::from(full),
            Err(_) => closed(),
        };
        let status = |program, arguments: &[&str], out: Stdio, err: Stdio| {
            let mut child = command(program, folder.path(), arguments)
                .stdout(out)
                .stderr(err)
                .spawn()
                .expect("it starts");
            child.wait().expect("it ends").code().expect("no signal")
        };
        let verbose: &[&str] = &["-arch=sm_80", "-v", "a.ptx"];
        for (program, arguments, expected) in [
            (COMPILE, verbose, 0),
            (COMPILE, &["-arch=sm_80", "w.ptx"], 255),
            (COMPILE, &["--nonsense"], 255),
            (CHECK, &["w.ptx"], 1),
            (CHECK, &["--nonsense"], 2),
            (CHECK, &["none.ptx"], 2),
            (SERVER, &["--nonsense"], 2),
            (SERVER, &["dump", "--stage", "none", "a.ptx"], 2),
        ] {
            assert_eq!(status(program, arguments, Stdio::null(), closed()), expected, "{arguments:?}");
            assert_eq!(status(program, arguments, Stdio::null(), full()), expected, "{arguments:?}");
        }
        let text: &[&str] = &["dump", "--stage", "tree", "a.ptx"];
        for (program, arguments, whole) in [
            (CHECK, &["--explain", "E0303"][..], 0),
            (CHECK, &["--explain", "ld"], 0),
            (CHECK, &["--help"], 0),
            (CHECK, &["--version"], 0),
            (CHECK, &["w.ptx"], 1),
            (CHECK, &["--format", "sarif", "a.ptx"], 0),
            (SERVER, &["--help"], 0),
            (SERVER, text, 0),
            (COMPILE, &["--help"], 0),
            (COMPILE, &["-V"], 0),
        ] {
            assert_eq!(status(program, arguments, closed(), Stdio::null()), whole, "{arguments:?}");
            if Path::new("/dev/full").exists() {
                let failed = if program == COMPILE { 255 } else { 2 };
                assert_eq!(status(program, arguments, full(), Stdio::null()), failed, "{arguments:?}");
            }
        }
    }

    #[test]
    fn special_outputs_are_written_to() {
        let folder = folder(&[("a.ptx", &module(&[KERNEL]))]);
        let compile = |to: &str| run(COMPILE, folder.path(), &["-arch=sm_80", "a.ptx", "-o", to]);
        assert_eq!(compile("a.cubin"), (0, String::new()));
        let cubin = fs::read(folder.path().join("a.cubin")).expect("a cubin");
        let piped =
            output(&mut command(COMPILE, folder.path(), &["-arch=sm_80", "a.ptx", "-o", "/dev/stdout"]));
        assert_eq!((piped.status.code(), piped.stdout.len()), (Some(0), cubin.len()));
        assert_eq!(compile("/dev/null"), (0, String::new()));
        if Path::new("/dev/full").exists() {
            let (status, text) = compile("/dev/full");
            assert!(status == 255 && text.contains("could not be written"), "{text}");
        }
        let fifo = folder.path().join("fifo");
        if Command::new("mkfifo").arg(&fifo).status().is_ok_and(|made| made.success()) {
            let reader = std::thread::spawn({
                let fifo = fifo.clone();
                move || fs::read(fifo).expect("what was written")
            });
            assert_eq!(compile("fifo"), (0, String::new()));
            assert_eq!(reader.join().expect("read").len(), cubin.len());
            fs::remove_file(fifo).expect("the pipe goes");
        }
        assert_eq!(names(folder.path()), ["a.cubin", "a.ptx"]);
    }

    #[test]
    fn fixes_follow_links_and_keep_permissions() {
        let wrong = module(&[&KERNEL.replace("ret;", "membar.glx;\nret;")]);
        let right = wrong.replace("glx", "gl");
        let folder = folder(&[("a.ptx", &wrong)]);
        let file = folder.path().join("a.ptx");
        symlink("a.ptx", folder.path().join("link.ptx")).expect("a link");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("permissions");
        let (status, text) = run(CHECK, folder.path(), &["--fix", "link.ptx"]);
        assert_eq!(status, 0, "{text}");
        assert_eq!(fs::read_to_string(&file).expect("the text"), right);
        assert_eq!(fs::metadata(&file).expect("the file").mode() & 0o777, 0o600);
        assert_eq!(names(folder.path()), ["a.ptx", "link.ptx"]);
        // A file that cannot be replaced is left unchanged.
        let mut child = command(CHECK, folder.path(), &["--fix", "/dev/stdin"]);
        fs::write(&file, &wrong).expect("the file");
        child.stdin(File::options().read(true).write(true).open(&file).expect("the file"));
        let (status, text) = told(&mut child);
        if Path::new("/dev/stdin").exists() {
            assert!(status == 2 && text.contains("not a regular file"), "{text}");
        }
        assert_eq!(fs::read_to_string(&file).expect("the text"), wrong);
    }
}

/// Code is formatted in place, and formatted files pass the check.
#[test]
fn code_is_laid_out() {
    let text = "// a\n.version 8.0\n.target   sm_80\n.entry k() {\n  ret ;\n}\n";
    let laid_out = "// a\n.version 8.0\n.target sm_80\n.entry k()\n{\n    ret;\n}\n";
    let folder = folder(&[("a.ptx", text), ("b.ptx", laid_out)]);
    let check = |mode: &str| run(CHECK, folder.path(), &[mode, "a.ptx", "b.ptx"]);
    let left = |name: &str| std::fs::read_to_string(folder.path().join(name)).expect("the text");
    assert_eq!(check("--format-code=check"), (1, "a.ptx\n".to_owned()));
    assert_eq!(left("a.ptx"), text);
    assert_eq!(check("--format-code"), (0, String::new()));
    assert_eq!((left("a.ptx"), left("b.ptx")), (laid_out.to_owned(), laid_out.to_owned()));
    assert_eq!(check("--format-code=check"), (0, String::new()));
    let (status, message) = run(CHECK, folder.path(), &["--format-code", "--fix", "a.ptx"]);
    assert!(status == 2 && message.contains("cannot be used with"), "{message}");
}

/// A text from a pipe is compiled.
#[test]
fn standard_input_is_compiled() {
    let folder = folder(&[]);
    let mut command = command(COMPILE, folder.path(), &["-arch=sm_80", "-", "-o", "a.cubin"]);
    let mut child = command.stdin(Stdio::piped()).spawn().expect("it starts");
    child.stdin.take().expect("a pipe").write_all(module(&[KERNEL]).as_bytes()).expect("it reads");
    assert!(child.wait().expect("it ends").success());
    assert_eq!(names(folder.path()), ["a.cubin"]);
}

/// A closed standard input is an error, not an empty file.
#[cfg(unix)]
#[test]
fn closed_standard_input() {
    let folder = folder(&[]);
    let sass = env!("CARGO_BIN_EXE_sass");
    for (program, arguments, expected) in [
        (CHECK, "-", (2, "ptx-check: cannot read standard input: it is closed\n")),
        (SERVER, "dump --stage items -", (2, "ptx-lsp dump: cannot read standard input: it is closed\n")),
        (sass, "asm", (1, "sass: cannot read standard input: it is closed\n")),
        (
            COMPILE,
            "-",
            (
                255,
                "ptxc fatal   : Standard input could not be read: it is closed\nptxc fatal   : Ptx assembly aborted due to errors\n",
            ),
        ),
    ] {
        let closed = format!("exec '{program}' {arguments} <&-");
        let found = run("sh", folder.path(), &["-c", &closed]);
        assert_eq!(found, (expected.0, expected.1.to_owned()));
    }
}

/// The help of the compiler lists every option.
#[test]
fn the_help_lists_options() {
    let (status, text) = run(COMPILE, folder(&[]).path(), &["--help"]);
    assert_eq!(status, 0);
    for line in [
        "  --compile-only (-c)                         write an object for nvlink\n",
        "  --gpu-name (-arch) sm_NN                    target",
        "  --disable-optimizer-constants (-disable-optimizer-consts)\n                                              do not",
        "  --sanitize WORD                             add checks of memory accesses (memcheck) or delays (threadsteer) (refused)\n",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
}

/// Doubles are in constant bank 2, unless an option forbids it.
#[test]
fn constants_of_the_optimizer() {
    let body = "\t.reg .f64 %d<3>;\n\t.reg .b64 %rd<2>;\n\tld.param.f64 %d1, [x];\n\tld.param.u64 %rd1, [p];\n\tfma.rn.f64 %d2, %d1, %d1, 0d400921FB54442D18;\n\
                \tst.global.f64 [%rd1], %d2;\n\tret;";
    let text = format!(
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .f64 x, .param .u64 p)\n{{\n{body}\n}}\n"
    );
    let folder = folder(&[("a.ptx", &text)]);
    let resources = |options: &[&str]| {
        let (status, text) = run(
            COMPILE,
            folder.path(),
            &[&["-arch=sm_80", "-v", "-o", "a.cubin", "a.ptx"], options].concat(),
        );
        assert_eq!(status, 0, "{text}");
        text
    };
    assert!(resources(&[]).contains(", 8 bytes cmem[2]"));
    assert!(!resources(&["-disable-optimizer-consts"]).contains("cmem[2]"));
}

/// The message about an unreadable folder names it once.
#[cfg(unix)]
#[test]
fn unreadable_folder() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = folder(&[("a.ptx", &module(&[KERNEL]))]);
    let closed = folder.path().join("closed");
    fs::create_dir(&closed).expect("a folder");
    let permit = |mode| fs::set_permissions(&closed, fs::Permissions::from_mode(mode)).expect("permissions");
    permit(0o000);
    // The superuser reads every folder.
    if fs::read_dir(&closed).is_ok() {
        return;
    }
    let (_, text) = run(CHECK, folder.path(), &["."]);
    permit(0o700);
    assert!(text.contains("ptx-check: ./closed: Permission denied (os error 13)\n"), "{text}");
}

#[test]
fn frames_and_spills_of_functions_are_warned_of_with_each_kernel() {
    let text = ".version 8.0\n.target sm_75\n.address_size 64\n.func (.param .b32 r) f(.param .b32 a)\n{\n\
        .reg .b32 %r<6>;\n.reg .b64 %rd<4>;\n.reg .pred %p1;\n.local .align 8 .b8 l[64];\nld.param.b32 %r1, [a];\n\
        and.b32 %r2, %r1, 7;\nmul.wide.u32 %rd1, %r2, 4;\nmov.u64 %rd2, l;\nadd.u64 %rd2, %rd2, %rd1;\n\
        st.local.u32 [%rd2], %r1;\nsetp.lt.u32 %p1, %r1, 2;\n@%p1 bra done;\nshr.u32 %r3, %r1, 1;\n\
        { .param .b32 x, y; st.param.b32 [x], %r3; call (y), f, (x); ld.param.b32 %r4, [y]; }\n\
        ld.local.u32 %r5, [%rd2];\nadd.u32 %r1, %r4, %r5;\ndone:\nst.param.b32 [r], %r1;\nret;\n}\n";
    let kernel = |name: &str| {
        format!(
            ".visible .entry {name}(.param .b32 n)\n{{\n.reg .b32 %r1;\n.param .b32 x, y;\nld.param.b32 %r1, [n];\n\
             st.param.b32 [x], %r1;\ncall (y), f, (x);\nret;\n}}\n"
        )
    };
    let folder = folder(&[("k.ptx", &format!("{text}{}{}", kernel("k"), kernel("l")))]);
    let compile = |options: &[&str]| {
        run(COMPILE, folder.path(), &[&["-arch=sm_75", "-o", "x.cubin", "k.ptx"], options].concat())
    };
    let line = |word: &str| {
        format!("ptxc {word} : Local memory used for function 'f', size of stack frame: 80 bytes\n")
    };
    assert_eq!(compile(&["-warn-lmem-usage"]), (0, line("warning").repeat(2)));
    let (status, said) = compile(&["-warn-lmem-usage", "-Werror"]);
    assert!(status == 255 && said.contains(&line("error  ")), "{said}");
    let (_, said) = compile(&["-warn-spills"]);
    let spilled = "ptxc warning : Registers are spilled to local memory in function 'f', ";
    assert_eq!(said.matches(spilled).count(), 2, "{said}");
}
