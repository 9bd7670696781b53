//! What the command prints.

mod files;

use expect_test::{Expect, expect};
use std::io::Write;
use std::process::{Command, Stdio};

/// Output and errors of the command, with an input.
fn run(args: &[&str], input: &str) -> (String, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_sass"))
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    child.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("the command reads");
    let output = child.wait_with_output().expect("the command ends");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (text(output.stdout), text(output.stderr))
}

/// Disassembles a file in a style.
fn disassemble(name: &str, file: &[u8], style: &[&str]) -> String {
    let path = std::env::temp_dir().join(format!("sass-{}-{name}", std::process::id()));
    std::fs::write(&path, file).expect("a temporary file");
    let args = [&["dis"], style, &[path.to_str().expect("a path")]].concat();
    let (out, errors) = run(&args, "");
    std::fs::remove_file(&path).expect("the temporary file");
    assert_eq!(errors, "");
    out
}

fn check(name: &str, file: &[u8], style: &[&str], expected: Expect) {
    expected.assert_eq(&disassemble(name, file, style));
}

#[test]
fn listing() {
    check(
        "listing",
        &files::container(),
        &[],
        expect![[r#"

        Fatbin elf code:
        ================
        arch = sm_90a
        code version = [0,0]
        host = linux
        compile_size = 64bit

        	code for sm_90a
        	.target	sm_90a

        		Function : k
        	.headerflags	@"EF_CUDA_ACCELERATORS EF_CUDA_SM90 EF_CUDA_VIRTUAL_SM(EF_CUDA_SM90)"
                /*0000*/              @!P0 MOV R2, R8 ;       /* 0x0000000800028202 */
                                                              /* 0x000fe20000000f00 */
                /*0010*/                   EXIT ;             /* 0x000000000000794d */
                                                              /* 0x000fea0003800000 */
                /*0020*/                   BRA 0x20;          /* 0xfffffffc00fc7947 */
                                                              /* 0x000fc0000383ffff */
        		..........


    "#]],
    );
}

#[test]
fn labels() {
    check(
        "labels",
        &files::cubin(),
        &["--nv"],
        expect![[r#"
        	.target	sm_90a

        	.elftype	@"ET_EXEC"


        //--------------------- .text.k                   --------------------------
        	.section	.text.k,"ax",@progbits
        	.align	128
                .global         k
                .type           k,@function
                .size           k,0x30
                .other          k,@"STO_CUDA_ENTRY STV_DEFAULT"
        k:
        .text.k:
        	// filled in by the linker, kind 0x38: callee+0x4
                /*0000*/              @!P0 MOV R2, R8 ;
                /*0010*/                   EXIT ;
        .L_x_0:
                /*0020*/                   BRA `(.L_x_0);
    "#]],
    );
}

#[test]
fn json() {
    let out = disassemble("json", &files::cubin(), &["--json"]);
    let (first, rest) = out.split_once('\n').expect("a line for each instruction");
    assert_eq!(rest.lines().count(), 2);
    // A line for each field.
    let first = first.replace(",\"", "\n\"") + "\n";
    expect![[r#"
        {"function":"k"
        "address":0
        "word":"0x000fe20000000f000000000800028202"
        "text":"@!P0 MOV R2, R8"
        "form":"MOV"
        "shape":"r"
        "class":"Alu"
        "control":{"stall":1
        "yield":false
        "write":null
        "read":null
        "wait":0
        "reuse":0}
        "fields":{"Guard":0
        "GuardNot":1
        "Rd":2
        "Rb":8
        "Mode":15}
        "operands":[{"role":"Dst"
        "file":"R"
        "index":2
        "count":1},{"role":"Guard"
        "file":"P"
        "index":0
        "count":1},{"role":"B"
        "file":"R"
        "index":8
        "count":1}]
        "guarded":true
        "relocation":{"kind":56
        "symbol":"callee"
        "addend":4}}
    "#]]
    .assert_eq(&first);
}

#[test]
fn control() {
    check(
        "control",
        &files::cubin(),
        &["--control"],
        expect![[r#"
        # sm_90a k
        0000	B------:R-:W-:-:S01  @!P0 MOV R2, R8
        0010	B------:R-:W-:-:S05  EXIT
        0020	B------:R-:W-:Y:S00  BRA 0x20
    "#]],
    );
}

#[test]
fn assembles_lines_and_names_what_is_wrong() {
    let lines = "\
0\tMOV R1, R2 ;
10\tB--2---:R-:W0:Y:S04 @P0 LDG.E R5, [R2.64+0x8] {UrDesc=0x6}
20\tBRA 0x10
30\tLDG.E.U9 R5, [R2.64]
40\tMOV R1, R300
50\tFROB R1
60\tFADD R1, R2
70\t.word 0x000fe20000000f000000000800028202
";
    let (out, _) = run(&["asm", "--arch", "sm_80"], lines);
    expect![[r#"
        0x0000000200017202 0x000fe20000000f00
        0x0000080602050981 0x004e08000c1e1900
        0xffffffe000007947 0x000fe2000383ffff
        error: column 6: expected .EF, .EL, .LU, .EU, .NA, .LTC64B, .LTC128B, .LTC256B, .U8, .S8, .U16, .S16, .64, .128, .CONSTANT.PRIVATE, .CONSTANT.CTA, .CONSTANT.CTA.PRIVATE, .CONSTANT, .STRONG.SM, .STRONG.GPU.PRIVATE, .STRONG.GPU, .MMIO.GPU, .CONSTANT.SM, .STRONG.SYS, .CONSTANT.SM.PRIVATE, .MMIO.SYS, .CONSTANT.VC, .CONSTANT.VC.PRIVATE, .CONSTANT.GPU or a blank here
        error: column 9: there is no register of this number
        error: column 1: unknown mnemonic
        error: column 12: expected ',' here
        0x0000000800028202 0x000fe20000000f00
    "#]].assert_eq(&out);
}

#[test]
fn wrong_usage_and_files_are_refused() {
    let (_, errors) = run(&["dis", "Cargo.toml"], "");
    expect![[r#"
        Cargo.toml: neither a cubin nor a file that holds cubins
    "#]]
    .assert_eq(&errors);
    let (_, errors) = run(&["asm", "--arch", "sm_20"], "");
    expect![[r#"
        unknown architecture 'sm_20'
    "#]]
    .assert_eq(&errors);
}

/// An argument that is no text is named, and nothing panics.
#[cfg(unix)]
#[test]
fn arguments_that_are_no_text() {
    use std::os::unix::ffi::OsStrExt;
    let name = std::ffi::OsStr::from_bytes(b"\xff.cubin");
    let command = Command::new(env!("CARGO_BIN_EXE_sass")).arg("dis").arg(name).output().expect("it runs");
    let errors = String::from_utf8_lossy(&command.stderr).into_owned();
    assert_eq!(command.status.code(), Some(1));
    assert_eq!(errors, "the argument '\u{fffd}.cubin' is not UTF-8 text\n");
}
