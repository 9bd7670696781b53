//! File tests: textual input, a command, and the expected output.
//!
//! ```text
//! // What the test shows.
//! test phase OriFold
//! target sm_90
//!
//! func "f" {
//! …
//! }
//! // expect: func "f" {
//! // expect: …
//! ```
//!
//! The input is textual Ori (`.ori`) or PTX (`.ptx`). PTX is a module without its header, or only the statements of a
//! kernel. The statements may use the registers `%p` (predicates), `%h` (16 bits), `%r` (32), `%f` (float), `%d` (64)
//! and `%e` (double), 32 of each; the parameters `p`, `q` (64 bits) and `n` (32); and the variables `shared`, `local`
//! and `global`, of 256 bytes each.
//!
//! - `test cat` prints Ori that was parsed; `test verify` lists what the verifier finds, or `ok`.
//! - `test phase A B` runs the named phases on Ori in order, verifies the result and prints it.
//! - `test lower` prints the Ori that is built of PTX.
//! - `test alloc`, `test mach` and `test sched` print the result of register allocation, emission and scheduling, for
//!   Ori in the form that the stage expects, or for PTX. A number is the largest number of registers of a thread; `O0`
//!   to `O3` is the optimization level; with `errors-at-exit`, threads wait for errors before they exit.
//! - `test shown` prints the places of the registers of PTX in unoptimized machine code, by bytes.
//! - `test order` compares PTX with machine code after a line `---`, whose lines are `#STATEMENT INSTRUCTION`
//!   (`~STATEMENT` for loads and stores of spilled values), and prints what the order checker finds, or `ok`.
//!
//! With `PTX_BLESS=1` the expectations are rewritten.

use crate::case;
use ptx_backend::compile::generate;
use ptx_backend::input::SrcId;
use ptx_backend::ori::ir::Function;
use ptx_backend::ori::text;
use ptx_backend::ori::verify::{Stage, verify};
use ptx_backend::{CodegenError, Options, Session, compile, order, phases};
use ptx_isa::Sm;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

const EXPECT: &str = "// expect:";

/// The parts of a test file.
struct Test<'a> {
    command: &'a str,
    sm: Sm,
    body: String,
    /// The lines before the expectations.
    source: Vec<&'a str>,
    expected: Vec<&'a str>,
}

fn parse(content: &str) -> Result<Test<'_>, String> {
    let lines: Vec<&str> = content.lines().collect();
    let end = lines.iter().position(|line| line.starts_with(EXPECT)).unwrap_or(lines.len());
    let (source, expected) = lines.split_at(end);
    let expected = expected
        .iter()
        .map(|line| {
            let text = line.strip_prefix(EXPECT).ok_or_else(|| format!("`{line}` after expectations"))?;
            Ok(text.strip_prefix(' ').unwrap_or(text))
        })
        .collect::<Result<_, String>>()?;
    let mut test =
        Test { command: "", sm: Sm::new(80), body: String::new(), source: source.to_vec(), expected };
    for line in source {
        if let Some(command) = line.strip_prefix("test ") {
            test.command = command.trim();
        } else if let Some(target) = line.strip_prefix("target sm_") {
            let target = target.trim();
            test.sm =
                Sm::parse(&format!("sm_{target}")).ok_or_else(|| format!("`{line}` names no target"))?;
        } else {
            test.body.push_str(line);
            test.body.push('\n');
        }
    }
    Ok(test)
}

fn run(test: &Test<'_>) -> Result<String, String> {
    let (command, arguments) = test.command.split_once(' ').unwrap_or((test.command, ""));
    match command {
        "cat" => cat(&ori(test)?),
        "verify" => Ok(match verify(&ori(test)?, Stage::Built) {
            Ok(()) => "ok\n".to_owned(),
            Err(errors) => errors.iter().map(|error| format!("{error}\n")).collect(),
        }),
        "phase" => run_phases(ori(test)?, arguments, test.sm),
        "lower" => stage(test, "ori", arguments),
        "alloc" => stage(test, "alloc", arguments),
        "mach" => stage(test, "mach", arguments),
        "sched" => stage(test, "sched", arguments),
        "shown" => shown(test),
        "order" => check_order(test),
        _ => Err(format!("unknown command `{command}`")),
    }
}

fn ori(test: &Test<'_>) -> Result<Function, String> {
    text::parse(&test.body).map_err(|error| format!("does not parse: {error}"))
}

fn cat(func: &Function) -> Result<String, String> {
    let printed = text::print(func);
    let again = text::parse(&printed).map_err(|error| format!("its print does not parse: {error}"))?;
    if text::print(&again) != printed {
        return Err("printing and parsing again changes it".to_owned());
    }
    Ok(printed)
}

fn run_phases(mut func: Function, names: &str, sm: Sm) -> Result<String, String> {
    verified(&func, Stage::Built)?;
    let options = Options::new(sm);
    for name in names.split_whitespace() {
        let phase = phases::find(name).ok_or_else(|| format!("unknown phase `{name}`"))?;
        phases::run_phase(&mut func, phase, &options, &Session::default())
            .map_err(|error| error.to_string())?;
        verified(&func, phase.result)?;
    }
    Ok(text::print(&func))
}

/// The function after a stage of the compiler. If a later stage rejects it, the error is printed after it.
fn stage(test: &Test<'_>, name: &'static str, arguments: &str) -> Result<String, String> {
    /// The largest number of registers of a thread, without an explicit limit.
    const MOST_REGISTERS: u32 = 255;
    let mut options = Options::new(test.sm);
    for argument in arguments.split_whitespace() {
        if argument == "errors-at-exit" {
            options.errors_at_exit = true;
            continue;
        }
        if argument == "checks-tensor-memory" {
            options.checks_tensor_memory = true;
            continue;
        }
        match argument.strip_prefix('O').map_or_else(|| argument.parse(), str::parse) {
            Ok(level) if argument.starts_with('O') => options.opt_level = level as u8,
            Ok(number) => options.max_registers = Some(number),
            Err(_) => {
                return Err(format!(
                    "`{argument}` is neither a level, a number of registers, `errors-at-exit` nor `checks-tensor-memory`"
                ));
            }
        }
    }
    let mut session = Session { shown: Some(name), ..Session::default() };
    let made: Result<(), CodegenError> = if is_ori(&test.body) {
        let mut func = ori(test)?;
        verified(&func, Stage::Legal)?;
        let limit = options.max_registers.unwrap_or(MOST_REGISTERS);
        generate(&mut func, limit, &options, &mut session).map(|_| ())
    } else {
        let input = case::input(&module(&test.body, test.sm), "")?;
        compile(&input.env, &input.function, &options, &mut session).map(|_| ())
    };
    let refusal = made.err().map(|error| format!("{error}\n"));
    Ok(session.dumps.into_iter().chain(refusal).collect())
}

/// The instructions. Each follows the registers of PTX that are in machine registers before it.
fn shown(test: &Test<'_>) -> Result<String, String> {
    let options = Options { opt_level: 0, shows_registers: true, ..Options::new(test.sm) };
    let input = case::input(&module(&test.body, test.sm), "")?;
    let code = compile(&input.env, &input.function, &options, &mut Session::default())
        .map_err(|error| error.to_string())?;
    let sm = sass::Sm(test.sm.number as u8);
    let mut out = String::new();
    let own = code.lines.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
    for (at, word) in (0..).step_by(16).zip(code.code.iter().take(own)) {
        let here = code.shown.iter().filter(|location| (location.start..location.end).contains(&at));
        let here: Vec<String> = here
            .map(|location| format!("{}.{}=R{}", location.word.register.0, location.word.index, location.at))
            .collect();
        let inst = sass::decode(sm, *word).ok_or("does not decode")?;
        let _ = writeln!(out, "{} [{}]", sass::print(sm, &inst, at.into()), here.join(" "));
    }
    Ok(out)
}

fn is_ori(body: &str) -> bool {
    body.lines().any(|line| line.starts_with("func \"") || line.starts_with("entry \""))
}

/// A module of PTX: the test's own module, or a kernel with its statements.
fn module(body: &str, sm: Sm) -> String {
    let header = format!(".version 9.0\n.target {sm}\n.address_size 64\n");
    if body.contains(".entry") {
        return header + body;
    }
    let registers = [("pred", "p"), ("b16", "h"), ("b32", "r"), ("f32", "f"), ("b64", "d"), ("f64", "e")]
        .map(|(ty, name)| format!(".reg .{ty} %{name}<32>;\n"))
        .concat();
    let variables: String = ["global", "shared", "local"]
        .into_iter()
        .filter(|space| body.contains(&format!("[{space}")) || body.contains(&format!(", {space};")))
        .map(|space| format!(".{space} .align 16 .b8 {space}[256];\n"))
        .collect();
    format!(
        "{header}.visible .entry f(.param .u64 p, .param .u64 q, .param .u32 n)\n{{\n{registers}{variables}{body}\n}}\n"
    )
}

fn check_order(test: &Test<'_>) -> Result<String, String> {
    let (ptx, listing) = test.body.split_once("---\n").ok_or("`---` and machine code are missing")?;
    let input = case::input(&module(ptx, test.sm), "")?;
    let sm = sass::Sm(test.sm.number as u8);
    let (mut insts, mut lines, mut spills) = (Vec::new(), Vec::new(), Vec::new());
    for line in listing.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (statement, text) = line.split_once(' ').ok_or_else(|| format!("`{line}` has no statement"))?;
        let number = statement.strip_prefix(['#', '~']).and_then(|number| number.parse().ok());
        spills.push(statement.starts_with('~'));
        lines.push(number.map(SrcId));
        let inst = sass::parse(sm, text, insts.len() as u64 * sass::INST_BYTES);
        insts.push(inst.map_err(|error| format!("`{text}`: {}", error.message))?);
    }
    let claims = order::Claims {
        lines: &lines,
        unrolled: &[],
        joined: &[],
        spills: &spills,
        never: &[],
        tables: &[],
        frame_is_gone: false,
    };
    Ok(match order::check(&input.env, &input.function, sm, &insts, claims) {
        Ok(()) => "ok\n".to_owned(),
        Err(violation) => format!("{violation}\n"),
    })
}

fn verified(func: &Function, stage: Stage) -> Result<(), String> {
    verify(func, stage).map_err(|errors| {
        let list: Vec<String> = errors.iter().map(ToString::to_string).collect();
        format!("{}\n{}", list.join("\n"), text::print(func))
    })
}

/// Runs the test in `path`. Returns the difference, or the reason why it could not run.
fn check(path: &Path) -> Result<(), String> {
    let content = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    let test = parse(&content)?;
    let output = run(&test)?;
    let lines: Vec<&str> = output.lines().collect();
    if lines == test.expected {
        return Ok(());
    }
    if std::env::var_os("PTX_BLESS").is_some() {
        let mut blessed = test.source.join("\n");
        blessed.push('\n');
        for line in lines {
            blessed.push_str(format!("{EXPECT} {line}").trim_end());
            blessed.push('\n');
        }
        return std::fs::write(path, blessed).map_err(|error| error.to_string());
    }
    Err(format!("expected:\n{}\nfound:\n{output}", test.expected.join("\n")))
}

/// The test files under `folder`, sorted.
fn files(folder: &Path, found: &mut Vec<PathBuf>) -> std::io::Result<()> {
    let mut entries = std::fs::read_dir(folder)?.collect::<Result<Vec<_>, _>>()?;
    entries.sort_by_key(std::fs::DirEntry::path);
    for entry in entries {
        let path = entry.path();
        if path.is_dir() {
            files(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "ori" || extension == "ptx") {
            found.push(path);
        }
    }
    Ok(())
}

/// Runs every file in `folder`. Returns one text per failure.
///
/// # Errors
/// The folder cannot be read.
pub fn check_all(folder: &Path) -> std::io::Result<Vec<String>> {
    let mut found = Vec::new();
    files(folder, &mut found)?;
    let failures = found.iter().filter_map(|path| {
        let name = path.strip_prefix(folder).unwrap_or(path).display();
        check(path).err().map(|reason| format!("{name}: {reason}"))
    });
    Ok(failures.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_gives_what_it_expects() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("filetests");
        let failures = check_all(&folder).expect("the folder of file tests can be read");
        assert!(failures.is_empty(), "{}", failures.join("\n\n"));
    }

    #[test]
    fn malformed_tests_say_why() {
        let reason = |content: &str| parse(content).and_then(|test| run(&test)).err().unwrap_or_default();
        assert_eq!(reason("test fly\nfunc \"f\" {\nb0:\nEXIT\n}"), "unknown command `fly`");
        assert_eq!(reason("test phase Magic\nfunc \"f\" {\nb0:\nEXIT\n}"), "unknown phase `Magic`");
        assert_eq!(reason("test cat\n"), "does not parse: 0: found no function");
    }
}
