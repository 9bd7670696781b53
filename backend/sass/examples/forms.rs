//! Prints words of every form on every generation, for comparisons with NVIDIA's disassembler:
//!
//!     cargo run --release -p sass --example forms -- 20
//!
//! as lines NAME<TAB>SHAPE<TAB>FIRST-LAST<TAB>GENERATION<TAB>WORD, with the given number of words for each form. The
//! first word has neutral values and small registers; the others have random values where their fields permit.

use sass::model::{FieldSpec, Value};
use sass::{Field, FormId, Inst, Sm, encode, form, forms};
use std::io::{self, BufWriter, Write};

fn main() -> io::Result<()> {
    let count = std::env::args().nth(1).and_then(|count| count.parse().ok()).unwrap_or(1);
    let mut out = BufWriter::new(io::stdout().lock());
    let mut random = fastrand::Rng::with_seed(0x9e37_79b9_7f4a_7c15);
    for id in forms() {
        let form = form(id);
        let range = format!("{}-{}", form.sm.0, form.sm.1);
        for &sm in Sm::ALL.iter().filter(|&&sm| form.holds_for(sm)) {
            for index in 0..count {
                let inst = sample(id, index, &mut random);
                if let Ok(word) = encode(sm, &inst) {
                    writeln!(out, "{}\t{}\t{range}\t{}\t{word:032x}", form.name, form.shape, sm.0)?;
                }
            }
        }
    }
    out.flush()
}

/// An instruction of the form. With a larger index, more of its fields are random.
fn sample(id: FormId, index: u32, random: &mut fastrand::Rng) -> Inst {
    let mut inst = Inst::new(id);
    let mut register = 0;
    for spec in &form(id).fields {
        let vary = random.u64(..32) < u64::from(index);
        let raw = if is_register(spec.field) {
            // A group of four registers is aligned for every use.
            register += 4;
            Some(register)
        } else if matches!(spec.field, Field::Guard | Field::GuardNot) || !vary {
            None
        } else {
            Some(any(spec, random))
        };
        if let Some(raw) = raw {
            inst.set(spec.field, spec.from_raw(raw));
        }
    }
    inst
}

fn any(spec: &FieldSpec, random: &mut fastrand::Rng) -> u64 {
    let raw = random.u64(..) >> (64 - spec.bits().min(63));
    match spec.value {
        Value::Choice(texts) => {
            let legal: Vec<u64> = (0..texts.len() as u64).filter(|&raw| spec.allows(raw)).collect();
            legal[raw as usize % legal.len()]
        }
        _ => raw,
    }
}

fn is_register(field: Field) -> bool {
    use Field::*;
    matches!(field, Rd | Rd2 | Ra | Rb | Rc | Re | URd | URa | URb | URc | Ur | UrBase | UrDesc)
}
