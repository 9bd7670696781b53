//! Random programs and edits against properties that hold for every input.
//!
//! A [`Case`] is a text and edits of it; a [`Property`] panics where it does not hold. Programs come from
//! [`Seeds`], real or of the repository, by mutations that keep most of them sound, so that what is mutated
//! reaches every stage. `cargo test` replays a few cases; the binary `fuzz` runs for as long as it is told and
//! makes what it finds small.

mod generate;
mod property;
mod shrink;

pub use generate::{Random, Seeds};
pub use property::{PROPERTIES, Property};
pub use shrink::shrink;

use ptx_isa::Sm;

/// One input of a property.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Case {
    /// A text, and what each edit makes of the one before. Never empty.
    pub texts: Vec<String>,
    /// Compile for this target instead of the text's own.
    pub target: Option<Sm>,
}

/// What a property says about a case: nothing, or the message of its panic.
pub fn outcome(property: &Property, case: &Case) -> Result<(), String> {
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| (property.check)(case)));
    result.map_err(|payload| {
        let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
        text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "panic".to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn properties_hold_for_some_cases() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
        let seeds = Seeds::load(&[root.join("kernels"), root.join("../examples")]).expect("seeds");
        for property in PROPERTIES {
            let mut random = Random::new(1);
            for _ in 0..property.replays {
                let case = seeds.case(&mut random);
                if let Err(message) = outcome(property, &case) {
                    panic!("{}: {message}\n{}", property.name, case.texts.join("\n=====\n"));
                }
            }
        }
    }

    #[test]
    fn shrinking_keeps_what_matters() {
        let text = "a\nb\nlong line with x in it\nc\nd\n".repeat(3);
        let case = Case { texts: vec![text.clone(), text], target: None };
        let small = shrink(&case, std::time::Duration::from_secs(5), |case| {
            case.texts.iter().any(|text| text.contains('x'))
        });
        assert_eq!(small.texts, ["x"]);
    }
}
