//! The output of the command `sass`.

#[path = "../../backend/files/tests/files/mod.rs"]
mod files;

#[path = "../../backend/sass/tests/recorded/mod.rs"]
mod recorded;

use expect_test::{Expect, expect};
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The output, the errors and the exit status of the command for an input.
fn run(args: &[&str], input: &[u8]) -> (String, String, i32) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_sass"))
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    let (mut stdin, input) = (child.stdin.take().expect("a pipe"), input.to_owned());
    // The command prints answers while its input is still being written.
    let writer = std::thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output().expect("the command ends");
    let _ = writer.join();
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (text(output.stdout), text(output.stderr), output.status.code().expect("an exit status"))
}

/// A file that is deleted when dropped.
struct Temporary(PathBuf);

impl Temporary {
    fn new(name: &str, bytes: &[u8]) -> Temporary {
        let path = std::env::temp_dir().join(format!("sass-{}-{name}", std::process::id()));
        std::fs::write(&path, bytes).expect("a temporary file");
        Temporary(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().expect("a path")
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Disassembles a file in a style.
fn disassemble(name: &str, file: &[u8], style: &[&str]) -> String {
    let file = Temporary::new(name, file);
    let (out, errors, status) = run(&[&["dis"], style, &[file.path()]].concat(), b"");
    assert_eq!((errors.as_str(), status), ("", 0));
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
# a comment, and an empty line

0\tMOV R1, R2 ;
10\tB--2---:R-:W0:Y:S04 @P0 LDG.E R5, [R2.64+0x8] {UrDesc=0x6}
20\tBRA 0x10
30\tLDG.E.U9 R5, [R2.64]
40\tMOV R1, R300
50\tFROB R1
60\tFADD R1, R2
zz\tEXIT
70\t.word 0x000fe20000000f000000000800028202
";
    let (out, errors, status) = run(&["asm", "--arch", "sm_80"], lines.as_bytes());
    expect![[r#"
        # a comment, and an empty line

        0x0000000200017202 0x000fe20000000f00
        0x0000080602050981 0x004e08000c1e1900
        0xffffffe000007947 0x000fe2000383ffff





        0x0000000800028202 0x000fe20000000f00
    "#]]
    .assert_eq(&out);
    expect![[r#"
        sass: line 6: column 6: expected .EF, .EL, .LU, .EU, .NA, .LTC64B, .LTC128B, .LTC256B, .U8, .S8, .U16, .S16, .64, .128, .CONSTANT.PRIVATE, .CONSTANT.CTA, .CONSTANT.CTA.PRIVATE, .CONSTANT, .STRONG.SM, .STRONG.GPU.PRIVATE, .STRONG.GPU, .MMIO.GPU, .CONSTANT.SM, .STRONG.SYS, .CONSTANT.SM.PRIVATE, .MMIO.SYS, .CONSTANT.VC, .CONSTANT.VC.PRIVATE, .CONSTANT.GPU or a blank here
        sass: line 7: column 9: register number out of range
        sass: line 8: column 1: unknown mnemonic
        sass: line 9: column 12: expected ',' here
        sass: line 10: 'zz' is not an offset
    "#]].assert_eq(&errors);
    assert_eq!(status, 1);
    let (out, errors, status) =
        run(&["words", "--arch", "sm_90"], b"0\t0x000fea0003800000000000000000794d\n0\tx\n");
    assert_eq!(
        (out.as_str(), errors.as_str(), status),
        ("EXIT\n\n", "sass: line 2: 'x' is not an instruction word\n", 1)
    );
}

/// The bytes of lines `0xLOW 0xHIGH`.
fn words(lines: &str) -> Vec<u8> {
    let lines = lines.lines().filter(|line| !line.starts_with('#'));
    let halves = lines.flat_map(|line| line.split(' '));
    let half = |half: &str| u64::from_str_radix(half.trim_start_matches("0x"), 16).expect("a half");
    halves.flat_map(|text| half(text).to_le_bytes()).collect()
}

#[test]
fn assembles_what_it_prints_for_that() {
    let samples = recorded::samples();
    for &sm in sass::Sm::ALL {
        let arch = format!("sm_{}", sm.0);
        let recorded = samples.iter().filter(|sample| sample.sm == sm).map(|sample| sample.word);
        let code: Vec<u8> = recorded.chain([0, u128::MAX]).flat_map(u128::to_le_bytes).collect();
        let lines = disassemble(&arch, &code, &["--control", "--raw", "--arch", &arch]);
        let (out, errors, status) = run(&["asm", "--arch", &arch], lines.as_bytes());
        assert_eq!((errors.as_str(), status), ("", 0));
        assert!(words(&out) == code, "{arch} differs");
    }
}

#[test]
fn a_listing_tells_its_generations() {
    let listing = disassemble("generations", &files::container(), &["--control"]);
    let (out, errors, status) = run(&["asm"], listing.as_bytes());
    assert_eq!((errors.as_str(), status), ("", 0));
    let (header, code) = out.split_once('\n').expect("a line for the function");
    assert_eq!(header, "# sm_90a k");
    assert_eq!(words(code), files::CODE.map(u128::to_le_bytes).concat());
    let two = "# sm_120 a\n0\tLDCU UR4, c[0x0][0x358]\n# sm_80 b\n0\tULDC UR4, c[0x0][0x118]\n";
    let (out, errors, status) = run(&["asm"], two.as_bytes());
    assert_eq!((errors.as_str(), status, out.lines().count()), ("", 0, 4));
    let (out, errors, status) = run(&["asm"], b"0\tEXIT\n");
    assert_eq!((out.as_str(), status), ("\n", 1));
    assert_eq!(
        errors,
        "sass: line 1: unknown architecture: use --arch, or put a line `# sm_90 NAME` before the code\n"
    );
}

#[test]
fn wrong_usage_and_files_are_refused() {
    let refused = |args: &[&str], input: &[u8]| {
        let (out, errors, status) = run(args, input);
        assert_eq!((out.as_str(), status), ("", 1));
        errors
    };
    expect![[r#"
        sass: Cargo.toml: neither a cubin nor a file that holds cubins
    "#]]
    .assert_eq(&refused(&["dis", "Cargo.toml"], b""));
    let arch = refused(&["asm", "--arch", "sm_20"], b"");
    assert!(arch.contains("unknown architecture 'sm_20'"), "{arch}");
    expect![[r#"
        sass: standard input: not UTF-8 text
    "#]]
    .assert_eq(&refused(&["asm", "--arch", "sm_80"], b"\xff\xfe"));
    assert!(refused(&["dis", "--unpack-limit", "x", "file"], b"").contains("'x' is not a number of MiB"));
    assert!(refused(&[], b"").contains("Usage: sass <COMMAND>"));
    let option = refused(&["dis", "--frob", "file"], b"");
    assert!(
        option.contains("unexpected argument '--frob'") && option.contains("Usage: sass dis"),
        "{option}"
    );
    assert!(refused(&["dis", "--nv", "--json", "file"], b"").contains("cannot be used with"));
    assert!(refused(&["dis", "--raw", "file"], b"").contains("--arch <SM>"));
}

#[test]
fn tells_its_usage_and_version() {
    let (out, errors, status) = run(&["--help"], b"");
    assert!(out.contains("Usage: sass <COMMAND>") && errors.is_empty() && status == 0);
    let (out, errors, status) = run(&["--version"], b"");
    assert_eq!((out.as_str(), status), (concat!("sass ", env!("CARGO_PKG_VERSION"), "\n"), 0));
    assert_eq!(errors, "");
}

/// Two images in which a few bytes expand to many.
#[test]
fn unpacks_no_more_than_it_is_allowed() {
    let bomb = Temporary::new("bomb", &[files::zeros(768 << 10), files::zeros(512 << 10)].concat());
    let errors = |args: &[&str]| {
        let (out, errors, status) = run(&[&["dis"], args].concat(), b"");
        assert_eq!((out.as_str(), status), ("", 1));
        let error = |line: &str| line.rsplit(": ").next().unwrap_or_default().to_owned();
        errors.lines().map(error).collect::<Vec<String>>()
    };
    let zeros = "not a 64-bit little-endian ELF file for the GPU";
    let refused =
        "unpacks to 524288 bytes, but only 262144 bytes are left of the limit; raise it with --unpack-limit";
    assert_eq!(errors(&["--unpack-limit", "1", bomb.path()]), [zeros, refused]);
    assert_eq!(errors(&[bomb.path()]), [zeros, zeros]);
    let large = Temporary::new("large", &files::zeros(257 << 20));
    let refused = "unpacks to 269484032 bytes, but only 268435456 bytes are left of the limit; raise it with --unpack-limit";
    assert_eq!(errors(&[large.path()]), [refused]);
}

#[cfg(unix)]
mod unix {
    use super::*;
    use std::ffi::OsStr;
    use std::fs::File;
    use std::os::unix::ffi::OsStrExt;

    fn command() -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sass"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    #[test]
    fn arguments_need_not_be_unicode() {
        let output = command().arg("dis").arg(OsStr::from_bytes(b"no\xffwhere")).output().expect("it runs");
        assert_eq!(output.status.code(), Some(1));
        assert!(String::from_utf8_lossy(&output.stderr).starts_with("sass: no\u{fffd}where: "));
        let output = command().arg(OsStr::from_bytes(b"\xff")).output().expect("it runs");
        assert_eq!(output.status.code(), Some(1));
    }

    /// If output cannot be written, the command reports an error and does not panic.
    #[test]
    fn output_that_is_not_taken() {
        let file = Temporary::new("not-taken", &files::container());
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let output = command().args(["dis", file.path()]).stdout(writer).output().expect("it runs");
        assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), b"".as_slice()));
        if !cfg!(target_os = "linux") {
            return;
        }
        for args in [vec!["dis", file.path()], vec!["--help"]] {
            let full = File::options().write(true).open("/dev/full").expect("the full device");
            let output = command().args(args).stdout(full).output().expect("it runs");
            assert_eq!(output.status.code(), Some(1));
            assert!(String::from_utf8_lossy(&output.stderr).contains("standard output: "));
        }
        let output = command().args(["dis", "/dev/zero"]).output().expect("it runs");
        let expected = b"sass: /dev/zero: neither a cubin nor a file that holds cubins\n";
        assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(1), expected.as_slice()));
    }
}
