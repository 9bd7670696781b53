//! What `ptxc` prints about objects, and which symbols it writes to them.

mod shell;

use std::fs;

use shell::{folder, run};

const COMPILE: &str = env!("CARGO_BIN_EXE_ptxc");

const HEADER: &str = ".version 8.0\n.target sm_75\n.address_size 64\n";

fn module(parts: &[&str]) -> String {
    format!("{HEADER}{}", parts.concat())
}

/// The pairs of a list of the call graph: the words `0` and `-list` come before them, and a pair that begins with `0`
/// ends them.
fn call_graph_pairs(elf: &gpu_files::elf::Elf<'_>, list: u32) -> Vec<[u32; 2]> {
    let section = elf.sections.iter().find(|section| section.name == ".nv.callgraph").expect("a call graph");
    let bytes = elf.content(section).expect("its bytes").chunks(4);
    let words: Vec<u32> = bytes.map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect();
    let pairs = words.chunks(2).skip_while(|pair| **pair != [0, list.wrapping_neg()]).skip(1);
    pairs.take_while(|pair| pair[0] != 0).map(|pair| [pair[0], pair[1]]).collect()
}

#[test]
fn functions_of_objects_are_described_in_the_order_of_ptxas() {
    let texts = [
        ".visible .func h(); .visible .func a() { call a, (); ret; }",
        ".visible .entry k() { call.uni a, (); call.uni h, (); call.uni a, (); ret; }",
        ".visible .func b() { call a, (); ret; }",
        ".visible .func h() { call b, (); call h, (); ret; }",
        ".visible .entry l() { ret; }",
    ];
    let folder = folder(&[("k.ptx", &module(&texts))]);
    let (_, text) = run(COMPILE, folder.path(), &["-arch=sm_80", "-c", "-v", "-o", "x.cubin", "k.ptx"]);
    let names: Vec<&str> =
        text.lines().filter_map(|line| Some(line.split_once("properties for ")?.1)).collect();
    assert_eq!(names, ["l", "a", "b", "h", "k"], "{text}");
}

#[test]
fn functions_without_linkage_are_described_first() {
    let texts = [
        ".func a(); .func b() { call a, (); ret; } .func a() { call a, (); ret; }",
        ".visible .func c() { call b, (); call a, (); ret; }",
        ".visible .entry k() { call c, (); call a, (); ret; } .func d() { ret; }",
        ".visible .func e() { call d, (); ret; } .entry l() { ret; }",
    ];
    let folder = folder(&[("k.ptx", &module(&texts))]);
    for (level, expected) in [("-O3", "l d a b e c k"), ("-O0", "c k e a b d l")] {
        let (_, text) = run(COMPILE, folder.path(), &["-arch=sm_80", "-c", "-v", level, "k.ptx"]);
        let names = text.lines().filter_map(|line| Some(line.split_once("properties for ")?.1));
        assert_eq!(names.collect::<Vec<_>>().join(" "), expected, "{level}: {text}");
    }
}

#[test]
fn objects_describe_functions_of_the_driver_as_such() {
    let text = ".version 8.0\n.target sm_80\n.address_size 64\n.extern .func (.param .b64 p) malloc(.param .b64 n);\n\
        .extern .func (.param .b64 p) elsewhere(.param .b64 n);\n.visible .func f()\n{\n.reg .b64 %rd<3>;\nmov.b64 %rd1, 8;\n\
        { .param .b64 n; .param .b64 p; st.param.b64 [n], %rd1; call (p), malloc, (n); ld.param.b64 %rd1, [p]; }\n\
        { .param .b64 n; .param .b64 p; st.param.b64 [n], %rd1; call (p), elsewhere, (n); }\nret;\n}\n";
    let folder = folder(&[("k.ptx", text)]);
    let said = run(COMPILE, folder.path(), &["-arch", "sm_80", "-c", "-o", "k.o", "k.ptx"]);
    assert_eq!(said, (0, String::new()));
    let object = fs::read(folder.path().join("k.o")).expect("the object");
    let count = |text: &[u8]| object.windows(text.len()).filter(|bytes| *bytes == text).count();
    assert_eq!((count(b"\0#ll\0"), count(b"\0#ll|12p4r20sRx")), (1, 1));
}

#[test]
fn objects_name_the_functions_of_the_driver_that_they_call() {
    let text = ".version 8.6\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 t)\n{\n\
        .reg .b64 %rd1;\n.reg .f32 %f<8>;\nld.param.u64 %rd1, [t];\n\
        tex.grad.3d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%rd1, {%f4, %f4, %f4, %f4}], {%f4, %f4, %f4, %f4}, {%f4, %f4, %f4, %f4};\n\
        st.global.v4.f32 [%rd1], {%f0, %f1, %f2, %f3};\nret;\n}\n";
    let folder = folder(&[("k.ptx", text)]);
    let said = run(COMPILE, folder.path(), &["-arch=sm_90", "-c", "-w", "-o", "k.o", "k.ptx"]);
    assert_eq!(said, (0, String::new()));
    let object = fs::read(folder.path().join("k.o")).expect("the object");
    let has = |text: &[u8]| object.windows(text.len()).any(|bytes| bytes == text);
    assert!(has(b"\0__cuda_syscall_tex_grad_3d_v4_f32_f32\0") && has(b"\0#b32lb16b16b16|12p4r20sRx"));
}

/// nvlink rejects a name that is a kernel in only some of the objects.
#[test]
fn objects_say_that_what_they_launch_are_kernels() {
    let text = ".version 8.0\n.target sm_75\n.address_size 64\n.extern .entry elsewhere(.param .u64 a);\n.extern .func called;\n\
        .visible .entry here(.param .u64 out)\n{\n.reg .b64 %rd<4>;\nld.param.u64 %rd1, [out];\nmov.u64 %rd2, elsewhere;\n\
        mov.u64 %rd3, here;\nst.global.v2.b64 [%rd1], {%rd2, %rd3};\ncall called;\nret;\n}\n";
    let folder = folder(&[("k.ptx", text)]);
    for arch in ["sm_75", "sm_90", "sm_120"] {
        let said = run(COMPILE, folder.path(), &["-arch", arch, "-c", "-o", "k.o", "k.ptx"]);
        assert_eq!(said, (0, String::new()));
        let object = fs::read(folder.path().join("k.o")).expect("the object");
        let elf = gpu_files::elf::Elf::new(&object).expect("an ELF file");
        let symbols = elf.symbols().expect("symbols");
        let find = |name: &str| symbols.iter().position(|symbol| symbol.name == name).expect("a symbol");
        let [elsewhere, here, called] = ["elsewhere", "here", "called"].map(find);
        assert_eq!([elsewhere, here, called].map(|i| symbols[i].other), [0x10, 0x10, 0]);
        // The functions have no prototypes, which calls would need to reach them.
        let taken = call_graph_pairs(&elf, 2);
        assert_eq!(taken, [[here as u32, 0], [elsewhere as u32, 0]]);
    }
}

/// The linker adds the variables of the module.
#[test]
fn objects_count_the_shared_memory_that_kernels_declare() {
    let of = |module: &str, kernel: &str| {
        let text = format!(
            "{HEADER}{module}.visible .entry k()\n{{\n{kernel}.reg .b32 %r;\nld.shared.b32 %r, [s];\n\
             st.shared.b32 [s + 4], %r;\nret;\n}}\n"
        );
        let folder = folder(&[("k.ptx", &text)]);
        let (status, text) = run(COMPILE, folder.path(), &["-arch=sm_75", "-v", "-c", "-w", "k.ptx"]);
        assert_eq!(status, 0, "{text}");
        text.contains("32 bytes smem")
    };
    let variable = ".shared .b32 s[8];\n";
    assert!(of("", variable));
    assert!(!of(variable, ""));
}

#[test]
fn objects_name_their_textures() {
    let text = ".version 8.0\n.target sm_75\n.address_size 64\n\
        .global .texref seen;\n.global .surfref drawn;\n.global .texref other;\n\
        .visible .func f(.param .u64 out)\n{\n.reg .b64 %rd1;\n.reg .b32 %r<5>;\nld.param.u64 %rd1, [out];\n\
        tex.1d.v4.s32.s32 {%r0, %r1, %r2, %r3}, [seen, {0}];\nst.v4.b32 [%rd1], {%r0, %r1, %r2, %r3};\n\
        sust.b.1d.b32.trap [drawn, {0}], %r1;\nret;\n}\n";
    let folder = folder(&[("k.ptx", text)]);
    for arch in ["sm_75", "sm_90", "sm_120"] {
        let said = run(COMPILE, folder.path(), &["-arch", arch, "-c", "-w", "-o", "k.o", "k.ptx"]);
        assert_eq!(said, (0, String::new()));
        let object = fs::read(folder.path().join("k.o")).expect("the object");
        let has = |name: &str| object.windows(name.len()).any(|bytes| bytes == name.as_bytes());
        assert!(has("\0seen\0") && has("\0drawn\0") && has("\0other\0"));
    }
}

#[test]
fn kernels_count_the_textures_that_they_read() {
    let text = ".version 8.0\n.target sm_80\n.address_size 64\n.extern .global .b32 sum;\n\
        .global .texref image;\n.global .surfref drawn;\n\
        .visible .entry k()\n{\n.reg .b32 %r<5>;\n\
        tex.1d.v4.s32.s32 {%r0, %r1, %r2, %r3}, [image, {0}];\ntxq.width.b32 %r2, [image];\nadd.s32 %r1, %r1, %r2;\n\
        sust.b.1d.b32.trap [drawn, {0}], %r1;\nst.global.b32 [sum], %r0;\nret;\n}\n";
    let folder = folder(&[("k.ptx", text)]);
    let (status, said) = run(COMPILE, folder.path(), &["-arch=sm_80", "-v", "k.ptx"]);
    let warned = "line 4; warning : `.extern` is ignored";
    assert!(status == 0 && said.contains(", 1 textures, 1 surfaces\n") && said.contains(warned), "{said}");
}

/// The linker replaces the addresses of unified functions by those of their stubs, and collects unified variables. It finds
/// both by the entries, which contain the numbers of the attribute.
#[test]
fn objects_describe_unified_functions_and_variables() {
    let text = ".version 9.0\n.target sm_90\n.address_size 64\n\
        .visible .func .attribute(.unified(1, 2)) f() { ret; }\n.extern .func .attribute(.unified(3, 4)) elsewhere();\n\
        .global .attribute(.unified(0xffffffffffffffff, 6)) .b32 inner = 7;\n\
        .visible .global .attribute(.unified(7, 8)) .u64 outer[2] = { inner, f };\n\
        .visible .entry k(.param .u64 out)\n{\n.reg .b64 %rd<4>;\nld.param.u64 %rd1, [out];\nmov.u64 %rd2, f;\n\
        mov.u64 %rd3, outer;\nst.global.v2.b64 [%rd1], {%rd2, %rd3};\nret;\n}\n";
    let folder = folder(&[("k.ptx", text)]);
    let (status, said) = run(COMPILE, folder.path(), &["-arch", "sm_90", "k.ptx"]);
    assert!(status != 0 && said.contains("`.unified` functions are shared between modules"), "{said}");
    for arch in ["sm_90", "sm_100", "sm_120"] {
        let said = run(COMPILE, folder.path(), &["-arch", arch, "-c", "-o", "k.o", "k.ptx"]);
        assert_eq!(said, (0, String::new()));
        let object = fs::read(folder.path().join("k.o")).expect("the object");
        let elf = gpu_files::elf::Elf::new(&object).expect("an ELF file");
        let symbols = elf.symbols().expect("symbols");
        let find = |name: &str| symbols.iter().position(|symbol| symbol.name == name).expect("a symbol");
        let others =
            ["f", "elsewhere", "inner", "outer", "__cuda_uf_stub_f"].map(|name| symbols[find(name)].other);
        assert_eq!(others, [4, 0, 0x30, 0x30, 0]);
        let words = |name: &str| -> Vec<u64> {
            let section = elf.sections.iter().find(|section| section.name == name).expect("the section");
            let bytes = elf.content(section).expect("its bytes");
            bytes.chunks(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())).collect()
        };
        let defined = |name: &str| 1 << 32 | find(name) as u64;
        assert_eq!(words(".nv.uft.entry"), [defined("f"), 0, 1, 2]);
        let variables = [[defined("inner"), 16, u64::MAX, 6], [defined("outer"), 0, 7, 8]];
        assert_eq!(words(".nv.udt.entry"), variables.concat());
        assert_eq!(words(".nv.uft.rel.f").len() * 8, 128);
    }
}

/// The end without `ret` belongs to the last statement, a branch from which control does not lead to it.
#[test]
fn threads_wait_for_errors_at_an_end_without_ret() {
    let text = ".extern .func f(); .visible .entry k(.param .u32 n) {
        .reg .pred %p; .reg .b32 %r; ld.param.u32 %r, [n]; setp.eq.s32 %p, %r, 43;
        @%p bra end; bra.uni l; l: call.uni f, (); bra.uni end; end: }";
    let folder = folder(&[("k.ptx", &module(&[text]))]);
    let (status, text) = run(COMPILE, folder.path(), &["-arch=sm_75", "-c", "-O0", "-g", "k.ptx"]);
    assert_eq!(status, 0, "{text}");
}

#[test]
fn unified_aliases_have_no_objects() {
    let text = ".version 9.0\n.target sm_90\n.address_size 64\n.visible .func .attribute(.unified(1, 2)) f() { ret; }\n\
        .visible .func .attribute(.unified(3, 4)) g();\n.alias g, f;\n";
    let folder = folder(&[("k.ptx", text)]);
    let (status, said) = run(COMPILE, folder.path(), &["-arch", "sm_90", "-c", "k.ptx"]);
    assert!(
        status != 0 && said.contains("line 5") && said.contains("`.unified` alias is not supported"),
        "{said}"
    );
}

/// The linker requires a definition even of a variable that no function uses.
#[test]
fn objects_name_unused_variables_of_other_modules() {
    let text = format!("{HEADER}.extern .global .b32 g;\n.extern .func f;\n.visible .entry k() {{ ret; }}\n");
    let folder = folder(&[("k.ptx", &text)]);
    let said = run(COMPILE, folder.path(), &["-arch=sm_80", "-c", "-o", "k.o", "k.ptx"]);
    assert_eq!(said, (0, String::new()));
    let object = fs::read(folder.path().join("k.o")).expect("the object");
    let symbols = gpu_files::elf::Elf::new(&object).expect("an ELF file");
    let names: Vec<&str> = symbols.symbols().expect("symbols").iter().map(|symbol| symbol.name).collect();
    assert!(names.contains(&"g") && !names.contains(&"f"), "{names:?}");
}

/// If objects state different prototypes of a function, nvlink drops other functions.
#[test]
fn prototypes_of_driver_functions_depend_on_the_target() {
    let text = format!(
        "{HEADER}.extern .func (.param .b64 p) malloc(.param .b64 n);\n.visible .func f()\n{{\n\
         .param .b64 n; .param .b64 p; st.param.b64 [n], 8; call (p), malloc, (n); ret;\n}}\n"
    );
    let folder = folder(&[("k.ptx", &text)]);
    for (arch, states) in [("sm_75", false), ("sm_80", true)] {
        let said = run(COMPILE, folder.path(), &["-arch", arch, "-c", "-o", "k.o", "k.ptx"]);
        assert_eq!(said, (0, String::new()));
        let object = fs::read(folder.path().join("k.o")).expect("the object");
        let has = |text: &[u8]| object.windows(text.len()).any(|bytes| bytes == text);
        assert_eq!((has(b"\0#ll\0"), has(b"\0#ll|12p4r20sRx")), (!states, states));
    }
}

/// ptxas deals kernels onto stacks if the module takes the address of a function, and moves kernels that may call through
/// an address to the front. In objects such functions follow all functions that they may call.
#[test]
fn functions_are_described_in_the_order_of_ptxas_if_addresses_are_taken() {
    let takes = "mov.u64 %rd2, f; st.global.b64 [%rd1], %rd2;";
    let kernel = |name: char, body: &str| {
        format!(
            ".visible .entry {name}(.param .u64 out) {{ .reg .b64 %rd<3>; ld.param.u64 %rd1, [out]; {body} ret; }}\n"
        )
    };
    let module = |taker: Option<char>, data: &str| {
        let kernels = ('a'..='e').map(|name| kernel(name, if taker == Some(name) { takes } else { "" }));
        format!("{HEADER}.visible .func f() {{ ret; }}\n{data}{}", kernels.collect::<String>())
    };
    let described = |text: &str, options: &[&str]| -> String {
        let folder = folder(&[("k.ptx", text)]);
        let arguments = [&["-arch=sm_80", "-v", "-w", "-o", "x.cubin", "k.ptx"][..], options].concat();
        let (_, said) = run(COMPILE, folder.path(), &arguments);
        said.lines().filter_map(|line| Some(line.split_once("properties for ")?.1)).collect()
    };
    assert_eq!(described(&module(None, ""), &[]), "edcba");
    assert_eq!(described(&module(None, ".global .u64 t = f;\n"), &[]), "bdcea");
    assert_eq!(described(&module(Some('c'), ""), &[]), "cfbdea");
    assert_eq!(described(&module(Some('c'), ""), &["-c"]), "edfcba");
}

/// The linker checks the static shared memory of kernels, except in programs that it only adds to.
#[test]
fn shared_memory_of_objects_is_checked_by_the_linker() {
    let text = module(&[
        ".visible .entry k(.param .u64 p)\n{\n.reg .b32 %r<2>;\n.reg .b64 %rd<2>;\n.shared .align 4 .b8 s[49156];\n\
        ld.param.b64 %rd1, [p];\nld.shared.b32 %r1, [s+49152];\nst.global.b32 [%rd1], %r1;\nret;\n}\n",
    ]);
    let folder = folder(&[("k.ptx", &text)]);
    let compile =
        |more: &[&str]| run(COMPILE, folder.path(), &[&["-arch=sm_80", "-o", "k.o", "k.ptx"], more].concat());
    let (status, said) = compile(&[]);
    assert!(status == 255 && said.contains("`k` uses 49156 bytes of static shared memory"), "{said}");
    let (status, said) = compile(&["-ewp"]);
    let expected = "ptxc error   : Entry function 'k' uses too much shared data (0xc004 bytes, 0xc000 max)\n";
    assert_eq!((status, &*said), (255, expected));
    assert!(!folder.path().join("k.o").exists());
    let (status, said) = compile(&["-c", "-v"]);
    assert!(status == 0 && said.contains("49156 bytes smem"), "{said}");
}

/// Kernels cannot spill to shared memory if each function is compiled by itself.
#[test]
fn functions_compiled_by_themselves_do_not_spill_to_shared_memory() {
    let text = ".version 8.7\n.target sm_75\n.address_size 64\n// .pragma \"enable_smem_spilling\";\n\
        .visible .entry k(.param .u64 p)\n{\n.pragma \" enable_smem_spilling\";\nret;\n}\n";
    let other = text.replacen(".pragma \" ", "// .pragma \" ", 1);
    let folder = folder(&[("k.ptx", text), ("l.ptx", &other)]);
    let fatal =
        "ptxc fatal   : Pragma 'enable_smem_spilling' is not allowed for per-function compilation modes\n";
    for (option, said) in [("-c", fatal), ("-ewp", ""), ("-O0", "")] {
        let expected = if said.is_empty() { 0 } else { 255 };
        assert_eq!(run(COMPILE, folder.path(), &[option, "k.ptx"]), (expected, said.to_owned()), "{option}");
        assert_eq!(run(COMPILE, folder.path(), &[option, "l.ptx"]), (0, String::new()), "{option}");
    }
    assert_eq!(run(COMPILE, folder.path(), &["-g", "-w", "k.ptx"]), (255, fatal.to_owned()));
}

/// Old programs are not compiled to objects, and those without the calling convention only as whole programs.
#[test]
fn old_programs_are_no_objects() {
    let head = ".version 2.3\n.target sm_20\n.address_size 64\n";
    let kernel = ".visible .entry k()\n{\nret;\n}\n";
    let folder = folder(&[
        ("a.ptx", &format!("{head}{kernel}")),
        ("b.ptx", &format!("{head}.reg .b32 %r;\n{kernel}")),
    ]);
    let compile = |arguments: &[&str]| run(COMPILE, folder.path(), arguments);
    let old = "ptxc fatal   : 'Compile only(-c)' requires PTX ISA .version 3.1 or later\n";
    let no_convention =
        "ptxc warning : Use of module scoped .local or .reg variable '%r' found, disabling ABI\n";
    assert_eq!(compile(&["-c", "-e", "none", "a.ptx"]), (255, old.to_owned()));
    assert_eq!(compile(&["-ewp", "a.ptx"]), (0, String::new()));
    assert_eq!(compile(&["-c", "b.ptx"]), (255, format!("{no_convention}{old}")));
    let ignored = "ptxc warning : Command line option '--extensible-whole-program' not supported for 'compilation without ABI', will be ignored\n";
    assert_eq!(compile(&["-ewp", "b.ptx"]), (0, format!("{ignored}{no_convention}")));
}

/// nvlink deletes an alias that is in no pair, and then rejects the object.
#[test]
fn call_graphs_of_objects_name_the_aliases_that_code_names() {
    let function = "(.param .b32 r) f(.param .b32 a) { st.param.b32 [r], 1; ret; }";
    let text = format!(
        "{HEADER}.visible .func {function}\n.visible .func (.param .b32 r) g(.param .b32 a);\n.alias g, f;\n\
         .visible .entry k(.param .u64 out)\n{{\n.reg .b64 %rd<3>;\nld.param.u64 %rd1, [out];\nmov.u64 %rd2, g;\n\
         st.global.b64 [%rd1], %rd2;\n{{ .param .b32 a, r; st.param.b32 [a], 2; call (r), g, (a); }}\nret;\n}}\n"
    );
    let folder = folder(&[("k.ptx", &text)]);
    for arch in ["sm_75", "sm_90", "sm_120"] {
        let said = run(COMPILE, folder.path(), &["-arch", arch, "-c", "-o", "k.o", "k.ptx"]);
        assert_eq!(said, (0, String::new()));
        let object = fs::read(folder.path().join("k.o")).expect("the object");
        let elf = gpu_files::elf::Elf::new(&object).expect("an ELF file");
        let symbols = elf.symbols().expect("symbols");
        let find = |name: &str| symbols.iter().position(|symbol| symbol.name == name).expect("a symbol");
        let [f, g, k] = ["f", "g", "k"].map(|name| find(name) as u32);
        let pairs = |list| call_graph_pairs(&elf, list);
        let mut calls = pairs(1);
        calls.sort_unstable();
        let mut expected = [[k, f], [k, g], [g, f]];
        expected.sort_unstable();
        assert_eq!(calls, expected);
        assert_eq!(pairs(2).iter().map(|pair| pair[0]).collect::<Vec<_>>(), [f, g]);
        assert_eq!(pairs(4), [[k, g]]);
    }
}

#[test]
fn constant_banks_are_in_the_order_of_the_first_variables() {
    let order = |variables: &str| {
        let text = format!(
            "{HEADER}{variables}\n.visible .entry k()\n{{\n.reg .b32 %r;\nld.const.b32 %r, [c];\n\
             st.global.b32 [v], %r;\nret;\n}}\n"
        );
        let folder = folder(&[("k.ptx", &text)]);
        let said = run(COMPILE, folder.path(), &["-arch=sm_80", "-o", "k.cubin", "k.ptx"]);
        assert_eq!(said, (0, String::new()));
        let cubin = fs::read(folder.path().join("k.cubin")).expect("the file");
        let elf = gpu_files::elf::Elf::new(&cubin).expect("an ELF file");
        let banks = elf.sections.iter().filter_map(|section| section.name.strip_prefix(".nv.constant"));
        banks.filter(|bank| matches!(*bank, "3" | "4")).collect::<String>()
    };
    let (constant, global) = (".const .b32 c = 1;", ".global .b32 v;");
    assert_eq!(order(&format!("{constant}{global}")), "34");
    assert_eq!(order(&format!("{global}{constant}")), "43");
    assert_eq!(order(&format!("{constant}.visible {global}")), "43");
    assert_eq!(order(&format!("{global}.visible {constant}")), "34");
}

/// nvlink fills in the size of the `.const` variables of all objects, which code needs to recognize their addresses.
#[test]
fn objects_leave_the_size_of_constants_to_the_linker() {
    let body = ".reg .pred %p<2>;\n.reg .b64 %rd<3>;\n.reg .b32 %r<2>;\nld.param.b64 %rd1, [p];\n";
    let queried = |space: &str| {
        let query =
            format!("isspacep.{space} %p1, %rd1;\nselp.b32 %r1, 1, 2, %p1;\nst.b32 [%rd1], %r1;\nret;\n");
        let text = module(&[&format!(".visible .entry k(.param .u64 p)\n{{\n{body}{query}}}\n")]);
        let folder = folder(&[("k.ptx", &text)]);
        ["sm_75", "sm_90", "sm_120"].map(|arch| {
            let said = run(COMPILE, folder.path(), &["-arch", arch, "-c", "-o", "k.o", "k.ptx"]);
            assert_eq!(said, (0, String::new()));
            let object = fs::read(folder.path().join("k.o")).expect("the object");
            let name = b".nv.ptx.const0.size\0";
            object.windows(name.len()).any(|bytes| bytes == name)
        })
    };
    assert_eq!(queried("const"), [true; 3]);
    assert_eq!(queried("global"), [true; 3]);
    assert_eq!(queried("param"), [false; 3]);
}

/// A whole program that a linker adds to may call functions of other modules, but not take their addresses.
#[test]
fn extensible_programs_take_addresses_of_their_own_functions_only() {
    let declared = ".extern .func (.param .b32 r) far(.param .b32 a);\n\
        .extern .func (.param .b64 r) malloc(.param .b64 a);\n\
        .visible .func (.param .b32 r) near(.param .b32 a) { st.param.b32 [r], 1; ret; }\n\
        .visible .func (.param .b32 r) nick(.param .b32 a);\n.alias nick, near;\n";
    let says = |data: &str, body: &str| {
        let head = ".visible .entry k(.param .u64 p)\n{\n.reg .b64 %rd<3>;\n.reg .b32 %r;\n.param .b32 a, q;\n\
            ld.param.b64 %rd1, [p];\nld.global.b64 %rd2, [%rd1];\n";
        let kernel = format!("{head}{body}\nret;\n}}\n");
        let folder = folder(&[("k.ptx", &module(&[declared, data, &kernel]))]);
        run(COMPILE, folder.path(), &["-arch=sm_80", "-ewp", "-w", "-o", "k.o", "k.ptx"])
    };
    let refused = |name: &str| {
        let reason = "in extensible whole program compilation.";
        (255, format!("ptxc fatal   : Cannot take address of function '{name}' {reason}\n"))
    };
    for name in ["far", "malloc", "nick"] {
        assert_eq!(says("", &format!("mov.b64 %rd2, {name};")), refused(name));
        assert_eq!(says(&format!(".global .u64 unused = {name};\n"), ""), refused(name));
    }
    assert_eq!(says(".global .u64 unused = far;\n", "mov.b64 %rd2, nick;"), refused("nick"));
    for body in [
        "mov.b64 %rd2, near;",
        "st.param.b32 [a], 1;\ncall (q), far, (a);",
        "st.param.b32 [a], 1;\ncall (q), nick, (a);",
        "st.param.b32 [a], 1;\nlist: .calltargets far;\ncall (q), %rd2, (a), list;",
    ] {
        assert_eq!(says("", body), (0, String::new()), "{body}");
    }
}

/// In a whole program that a linker adds to, kernels have the shared variables of the module that their functions use.
#[test]
fn kernels_of_extensible_programs_have_the_shared_memory_of_their_functions() {
    let text = |bytes: u32| {
        let function = ".visible .func f(.param .b64 a)\n{\n.reg .b64 %rd<2>;\nld.param.b64 %rd1, [a];\n\
            st.shared.b64 [big+8], %rd1;\nret;\n}\n";
        let kernel = |name: &str, body: &str| {
            format!(
                ".visible .entry {name}(.param .b64 p)\n{{\n.shared .b8 own[12];\n.reg .b64 %rd<3>;\n.param .b64 a;\n\
                 ld.param.b64 %rd1, [p];\nst.param.b64 [a], %rd1;\nst.shared.b8 [own], 1;\n{body}\nret;\n}}\n"
            )
        };
        let kernels = [
            kernel("named", "call f, (a);"),
            kernel(
                "pointed",
                "mov.b64 %rd2, f;\nproto: .callprototype _ (.param .b64 _);\ncall %rd2, (a), proto;",
            ),
            kernel("other", ""),
        ];
        let shared = format!(".shared .align 8 .b8 big[{bytes}];\n.shared .b8 unused[60000];\n");
        module(&[&shared, function, &kernels.concat()])
    };
    let folder = folder(&[("small.ptx", &text(1000)), ("big.ptx", &text(60000))]);
    let says =
        |more: &[&str]| run(COMPILE, folder.path(), &[&["-arch=sm_80", "-w", "-o", "k.o"], more].concat());
    let used = |more: &[&str]| -> Vec<String> {
        let (_, said) = says(more);
        let sizes =
            said.lines().filter_map(|line| Some(line.split_once(" bytes smem")?.0.rsplit_once(' ')?.1));
        sizes.map(str::to_owned).collect()
    };
    let mut sizes = used(&["-ewp", "-v", "small.ptx"]);
    sizes.sort();
    assert_eq!(sizes, ["1016", "1016", "12"]);
    assert_eq!(used(&["-c", "-v", "small.ptx"]), ["12", "12", "12"]);
    let too_much = |name: &str| {
        format!("ptxc error   : Entry function '{name}' uses too much shared data (0xea70 bytes, 0xc000 max)")
    };
    let (status, said) = says(&["-ewp", "big.ptx"]);
    let mut said: Vec<&str> = said.lines().collect();
    said.sort_unstable();
    assert_eq!((status, said), (255, vec![&*too_much("named"), &*too_much("pointed")]));
    assert_eq!(says(&["-c", "big.ptx"]).0, 0);
}

/// From sm_100 on, objects whose code uses shared memory have a symbol for the end of the part that the system may reserve.
#[test]
fn objects_with_shared_memory_name_the_end_of_the_reserved_part() {
    let names = |arch: &str, data: &str, body: &str| {
        let head = ".visible .func f(.param .b64 p)\n{\n.reg .b64 %rd<2>;\nld.param.b64 %rd1, [p];\n";
        let folder = folder(&[("k.ptx", &module(&[data, head, body, "\nret;\n}\n"]))]);
        let said = run(COMPILE, folder.path(), &["-arch", arch, "-c", "-w", "-o", "k.o", "k.ptx"]);
        assert_eq!(said, (0, String::new()));
        let object = fs::read(folder.path().join("k.o")).expect("the object");
        let name = b".nv.reservedSmem.cap\0";
        object.windows(name.len()).any(|bytes| bytes == name)
    };
    let (data, body) = (".shared .align 8 .b8 s[40];\n", "st.shared.b64 [s+8], %rd1;");
    assert_eq!(["sm_90", "sm_100", "sm_120"].map(|arch| names(arch, data, body)), [false, true, true]);
    let open = ".extern .shared .align 8 .b8 s[];\n";
    assert!(names("sm_120", open, body));
    assert!(!names("sm_120", data, "st.global.b64 [%rd1], %rd1;"));
}

/// nvlink assigns the address of the words in which a block records its columns of tensor memory, and has them cleared before
/// each kernel that may reach a function with the record.
#[test]
fn objects_leave_the_words_of_tensor_memory_to_the_linker() {
    // The attribute `EIATTR_AT_ENTRY_FRAGMENTS` with one value: columns of a single block.
    let cleared: [u8; 8] = [4, 0x4f, 4, 0, 6, 0, 0, 0];
    let described = |arch: &str, body: &str| {
        let text = format!(
            ".version 9.0\n.target {arch}\n.address_size 64\n.visible .func f(.param .b32 p)\n{{\n.reg .b32 %r<2>;\n\
             ld.param.b32 %r1, [p];\n{body}\nret;\n}}\n"
        );
        let folder = folder(&[("k.ptx", &text)]);
        let said = run(COMPILE, folder.path(), &["-arch", arch, "-c", "-o", "k.o", "k.ptx"]);
        assert_eq!(said, (0, String::new()));
        let object = fs::read(folder.path().join("k.o")).expect("the object");
        let elf = gpu_files::elf::Elf::new(&object).expect("an object");
        let symbols = elf.symbols().expect("symbols");
        let place = |name: &str| {
            let symbol = symbols.iter().find(|symbol| symbol.name == name)?;
            Some((elf.sections[symbol.section].name, symbol.value, symbol.size))
        };
        let info = elf.sections.iter().find(|section| section.name == ".nv.info.f").expect("attributes");
        let info = elf.content(info).expect("their bytes");
        let is_cleared = info.windows(cleared.len()).any(|bytes| bytes == cleared);
        ["__nv_reservedSMEM_tcgen05_partition", "__nv_reservedSMEM_gb10b_war_var"]
            .map(place)
            .into_iter()
            .flatten()
            .map(|(section, align, bytes)| {
                assert_eq!(section, ".nv.shared.reserved.0");
                (align, bytes, is_cleared)
            })
            .collect::<Vec<_>>()
    };
    let free = "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, 64;";
    assert_eq!(described("sm_100a", free), [(1, 0x20, true)]);
    assert_eq!(described("sm_110a", free), [(1, 0x20, true), (16, 0x80, true)]);
    assert_eq!(described("sm_100a", ""), []);
    assert_eq!(described("sm_110a", ""), [(16, 0x80, false)]);
}
