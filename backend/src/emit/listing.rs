//! For tests: compiles textual allocated Ori to machine code, as text with its control fields.

use crate::assemble::assemble;
use crate::hazard;
use crate::ori::text;
use crate::sched::{self, Options};
use crate::target::Target;
use sass::Sm;
use std::fmt::Write as _;

/// The code of a function given by its body (the lines up to the closing brace). It has no hazards.
pub(crate) fn listing(sm: u8, body: &str, options: Options) -> String {
    let func = text::parse(&format!("entry \"f\" {{\nb0:\n{body}\n}}")).expect("the text parses");
    let target = Target::of(ptx_isa::Sm::new(u16::from(sm))).expect("the target is known");
    let sm = Sm(sm);
    let mut code = match super::emit(&func, sm, target) {
        Ok(code) => code,
        Err(error) => return format!("{error}\n"),
    };
    sched::schedule(&mut code, options, &|| ());
    let assembled = match assemble(&code) {
        Ok(assembled) => assembled,
        Err(error) => return format!("{error}\n"),
    };
    let insts: Vec<sass::Inst> = assembled
        .code
        .iter()
        .map(|&word| sass::decode(sm, word).expect("what was encoded decodes"))
        .collect();
    assert_eq!(hazard::check(sm, &insts, &[]), []);
    let end = crate::assemble::used(sm, &assembled.code);
    let mut out = String::new();
    for (at, inst) in insts[..end].iter().enumerate() {
        let control = inst.control;
        let set = |name: char, s: Option<u8>| match s {
            Some(s) => format!("{name}{s}"),
            None => "--".to_owned(),
        };
        let waits: String = (0..6).filter(|s| control.wait >> s & 1 == 1).map(|s| s.to_string()).collect();
        let wait = if waits.is_empty() { "-".to_owned() } else { waits };
        let _ = writeln!(
            out,
            "{:>3} {wait:<4} {} {} {}{:<2} {}",
            at * 16,
            set('w', control.write_sb),
            set('r', control.read_sb),
            if control.yield_ { 'Y' } else { ' ' },
            control.stall,
            sass::print(sm, inst, at as u64 * 16),
        );
    }
    out
}
