//! The examples on the instruction pages must pass the checks, with the version and target in their first line.

use crate::check::lint;
use crate::db::Database;
use crate::diagnostic::{Levels, Severity};
use crate::ide;

/// The module around an example, as the reference describes it.
fn module(version: &str, target: &str, body: &str) -> String {
    let wide = if body.contains("%q") { ".reg .b128 %q<2>;\n" } else { "" };
    format!(
        ".version {version}\n.target {target}\n.address_size 64\n\
         .global .align 128 .b8 data[1024];\n.global .texref image;\n.global .surfref surface;\n\
         .func (.param .b32 result) twice(.param .b32 value)\n{{\n\
         .reg .b32 %r0;\nld.param.b32 %r0, [value];\nadd.u32 %r0, %r0, %r0;\nst.param.b32 [result], %r0;\nret;\n}}\n\
         .visible .entry kernel(.param .u64 p)\n{{\n\
         .reg .pred %p<8>;\n.reg .b16 %h<8>;\n.reg .b32 %r<32>;\n.reg .b64 %rd<8>;\n\
         .reg .f32 %f<32>;\n.reg .f64 %fd<8>;\n{wide}\
         .shared .align 128 .b8 smem[1024];\n.shared .align 8 .b64 mbar;\n{body}ret;\n}}\n"
    )
}

fn check(mnemonic: &str) -> Result<(), String> {
    let page = ptx_isa::doc(mnemonic).ok_or("no page")?;
    let (_, rest) = page.split_once("```ptx body\n").ok_or("no example")?;
    let (example, rest) = rest.split_once("```\n").ok_or("the example has no end")?;
    if !rest.is_empty() {
        return Err("the example ends the page".to_owned());
    }
    let (version, target) = example
        .lines()
        .next()
        .and_then(|line| line.strip_prefix("// .version ")?.split_once(", .target "))
        .ok_or("the example begins with `// .version M.N, .target sm_NN`")?;
    let is_used = example.lines().filter_map(|line| line.split("//").next()).any(|line| {
        let words = line.split_ascii_whitespace().map(|word| word.trim_end_matches(';'));
        words.filter_map(|word| word.split('.').next()).any(|word| word == mnemonic)
    });
    if !is_used {
        return Err("the example is about something else".to_owned());
    }
    let mut db = Database::default();
    let mut levels = Levels::default();
    // Examples are parts of a kernel, so it does not matter where their values come from.
    levels.set(lint("unassigned-read").unwrap(), Severity::Allow);
    levels.set(lint("W0513").unwrap(), Severity::Allow);
    db.set_levels(levels);
    let file = db.add_file(module(version, target, example).as_str());
    let found = ide::diagnostics(&db, file);
    match found.iter().find(|d| d.severity >= Severity::Warning) {
        Some(finding) => Err(finding.to_string()),
        None => Ok(()),
    }
}

#[test]
fn examples_of_instructions_are_accepted() {
    let failures: Vec<String> = ptx_isa::mnemonics()
        .iter()
        .filter_map(|mnemonic| check(mnemonic).err().map(|error| format!("{mnemonic}: {error}")))
        .collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
