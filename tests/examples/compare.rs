//! Compares the compiler's results with recorded results of the vendor's assembler.
//!
//! `compare [-v] [-d] [-t] <records.jsonl> <root> [<part of a file name> [<target> [<kernel>]]]`: for every
//! recorded kernel of the files whose name contains the part, instructions and registers of both; then the
//! geometric means and the reasons for which kernels were not compiled. `-v` lists kernels, `-d` prints the
//! machine code, `-t` the time by phase.

use ptx_analysis::Database;
use ptx_analysis::compile::{function_env, functions};
use ptx_analysis::lower::function;
use ptx_backend::{CodegenError, Options, Session};
use ptx_isa::Sm;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

#[derive(Default)]
struct Totals {
    kernels: u32,
    compiled: u32,
    log_instructions: f64,
    log_registers: f64,
    reasons: BTreeMap<String, u32>,
    times: Vec<(&'static str, Duration)>,
    rows: Vec<(f64, String)>,
}

fn main() {
    let (flags, arguments): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|a| a.starts_with('-'));
    let flag = |name: &str| flags.iter().any(|f| f == name);
    let [records, root, rest @ ..] = &arguments[..] else {
        eprintln!("usage: compare [-v] [-d] [-t] <records.jsonl> <root> [<file> [<target> [<kernel>]]]");
        std::process::exit(2);
    };
    let wanted = |i: usize| rest.get(i).map(String::as_str).unwrap_or("");
    let text = std::fs::read_to_string(records).expect("the records can be read");
    let mut totals = Totals::default();
    for line in text.lines() {
        let record: serde_json::Value = serde_json::from_str(line).expect("a record is JSON");
        let (file, target) = (record["file"].as_str().unwrap_or(""), record["target"].as_str().unwrap_or(""));
        let debug = record["opts"].as_array().is_some_and(|o| !o.is_empty());
        let natural = record["natural"] == true;
        let chosen = if wanted(1).is_empty() { natural } else { target == wanted(1) };
        if record["ok"] != true || debug || !file.contains(wanted(0)) || !chosen {
            continue;
        }
        let Ok(source) = std::fs::read_to_string(format!("{root}/{file}")) else { continue };
        let Some(sm) = target.strip_prefix("sm_").map(|t| t.trim_end_matches(['a', 'f'])) else { continue };
        let Some(sm) = sm.parse().ok().map(Sm::new) else { continue };
        compare_file(&source, file, sm, &record, &mut totals, wanted(2), flag("-d"));
    }
    report(totals, flag("-v"), flag("-t"));
}

fn compare_file(
    source: &str,
    file: &str,
    sm: Sm,
    record: &serde_json::Value,
    totals: &mut Totals,
    kernel: &str,
    dump: bool,
) {
    let db = Database::default();
    let input = db.add_file(source);
    for item in functions(&db, input) {
        let Some(func) = function(&db, item) else { continue };
        if !func.entry || !func.name.contains(kernel) {
            continue;
        }
        let Some(vendor) = record["funcs"]
            .as_array()
            .into_iter()
            .flatten()
            .find(|f| f["name"] == func.name.as_str() && f["kind"] == "entry")
        else {
            continue;
        };
        totals.kernels += 1;
        let env = function_env(&db, item);
        let options = Options { sm, opt_level: 3, max_registers: None };
        let start = Instant::now();
        let clock = move || start.elapsed();
        let mut session = Session { clock: Some(&clock), ..Session::default() };
        if let Ok(switches) = std::env::var("PTX_PHASE") {
            session.switches =
                ptx_backend::session::Switches::parse(&switches).expect("PTX_PHASE is well formed");
        }
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            ptx_backend::compile(env, func, &options, &mut session)
        }));
        for dump in &session.dumps {
            println!("// after {}\n{}", dump.phase, dump.text);
        }
        let compiled = match result {
            Ok(Ok(compiled)) => compiled,
            Ok(Err(error)) => {
                let reason = match &error {
                    CodegenError::Internal { .. } => format!("{file} {}: {error}", func.name),
                    _ => error.to_string(),
                };
                *totals.reasons.entry(reason).or_default() += 1;
                continue;
            }
            Err(_) => {
                *totals.reasons.entry(format!("panic: {file} {}", func.name)).or_default() += 1;
                continue;
            }
        };
        for (phase, time) in session.times {
            match totals.times.iter_mut().find(|(name, _)| *name == phase) {
                Some((_, total)) => *total += time,
                None => totals.times.push((phase, time)),
            }
        }
        let machine = sass::Sm(sm.number as u8);
        let code: Vec<String> = compiled
            .code
            .iter()
            .enumerate()
            .map(|(i, word)| match sass::decode(machine, *word) {
                Some(inst) => sass::print(machine, &inst, 16 * i as u64),
                None => format!("{word:032x}"),
            })
            .collect();
        if dump {
            println!("{} {sm}", func.name);
            code.iter().enumerate().for_each(|(i, text)| println!("  /*{:04x}*/ {text}", 16 * i));
        }
        // The branch to itself at the end and what pads the section count for neither.
        let end = code.iter().rposition(|text| !text.trim_start().starts_with("NOP")).map_or(0, |i| i + 1);
        let ours = code[..end].iter().filter(|text| !text.trim_start().starts_with("NOP")).count() as f64;
        let theirs = vendor["ninst_nopad"].as_f64().unwrap_or(1.0);
        let (our_registers, their_registers) =
            (f64::from(compiled.resources.registers), vendor["regs"].as_f64().unwrap_or(1.0));
        totals.compiled += 1;
        totals.log_instructions += (ours / theirs).ln();
        totals.log_registers += (our_registers / their_registers).ln();
        totals.rows.push((
            ours / theirs,
            format!(
                "{:5.2} {:5.2}  {ours:6} / {theirs:6}  {our_registers:3} / {their_registers:3}  {file} {}",
                ours / theirs,
                our_registers / their_registers,
                func.name
            ),
        ));
    }
}

fn report(mut totals: Totals, verbose: bool, times: bool) {
    if verbose {
        totals.rows.sort_by(|a, b| a.0.total_cmp(&b.0));
        totals.rows.iter().for_each(|(_, row)| println!("{row}"));
    }
    if times {
        totals
            .times
            .iter()
            .for_each(|(phase, time)| println!("{:10.1} ms  {phase}", time.as_secs_f64() * 1e3));
    }
    let mut reasons: Vec<_> = totals.reasons.into_iter().collect();
    reasons.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    reasons
        .iter()
        .take(40)
        .for_each(|(reason, count)| println!("{count:5}  {}", &reason[..reason.len().min(400)]));
    let n = f64::from(totals.compiled.max(1));
    println!(
        "{} of {} kernels; instructions {:.3}, registers {:.3}",
        totals.compiled,
        totals.kernels,
        (totals.log_instructions / n).exp(),
        (totals.log_registers / n).exp()
    );
}
