//! Random programs and edits, checked against properties that hold for every input.
//!
//! A [`Case`] is a text and edits of it. A [`Property`] panics if it does not hold. Programs come from [`Seeds`], which
//! are real programs or those of the repository. Mutations keep most programs valid, so that they reach every stage.
//! `cargo test` replays a few cases. The binary `fuzz` runs for a given time and shrinks its findings.

mod generate;
mod property;
mod shrink;

pub use generate::Seeds;
pub use property::{PROPERTIES, Property};
pub use shrink::shrink;

use ptx_isa::Sm;

/// One input of a property.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Case {
    /// The texts: the first one, and the result of each edit. Never empty.
    pub texts: Vec<String>,
    /// Compile for this target instead of the text's own.
    pub target: Option<Sm>,
}

/// Checks a property on a case. Returns the message of its panic, if it panics.
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
            let mut random = fastrand::Rng::with_seed(1);
            for _ in 0..property.replays {
                let case = seeds.case(&mut random);
                if let Err(message) = outcome(property, &case) {
                    panic!("{}: {message}\n{}", property.name, case.texts.join("\n=====\n"));
                }
            }
        }
    }

    /// Earlier findings in their smallest form.
    #[test]
    fn findings_stay_fixed() {
        let registers =
            ".reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<9>; .reg .f32 %f<9>; .reg .b64 %d<9>;";
        let bodies = [
            ("sm_120", "min.s32 %r1, %r2, %r3; max.s32 %r4, %r1, 2; st.global.u32 [%d1], %r4;"),
            ("sm_90", "bar.warp.sync 0xf;"),
            ("sm_100", "vote.sync.all.pred %p1, %p2, %r1;"),
            ("sm_90", "fma.rn.relu.f16x2 %r1, %r2, %r3, %r2; st.global.u32 [%d1], %r1;"),
            ("sm_80", "cvt.rm.f16.f32 %h1, %f1; st.global.u16 [%d1], %h1;"),
            ("sm_90", "shfl.sync.bfly.b32 %r1, %r2, 66, 1, -1; st.global.u32 [%d1], %r1;"),
            (
                "sm_100",
                "ld.param.u32 %r1, [a]; L: mov.u32 %r2, %r1; @%p1 bra M; mov.u32 %r2, 1; @%p2 bra L; \
                M: st.global.u32 [%d1], %r2;",
            ),
            ("sm_90", "mov.b32 %r1, _;"),
            ("sm_90", "shfl.sync.down.b32 %r1|%r2, %r3, 6, 3, 5;"),
            ("sm_75", "shfl.sync.bfly.b32 %r1|%ctaid, %r2, %r3, %r4, %r5;"),
            ("sm_100", "@%p1 ld.global.v4.b32 {%r3, %clock64, %r5, %r1}, [%r0];"),
            ("sm_80", "@%p3 atom.exch.b64 %d5, [%d2], %d7;"),
            ("sm_80", "L: bar.sync 0; @%p1 bra L; @%p3 bra M; st.volatile.u32 [%d1], %r1; M:"),
            ("sm_80", "@!%p3 bra M; st.volatile.u32 [%d1], %r1; M: bar.warp.sync 1;"),
        ];
        for (target, body) in bodies {
            let text = format!(
                ".version 9.0\n.target {target}\n.address_size 64\n.entry f(.param .u32 a) {{ {registers} {body} ret; }}\n"
            );
            let case = Case { texts: vec![text], target: None };
            for property in PROPERTIES {
                assert_eq!(outcome(property, &case), Ok(()), "{body}");
            }
        }
    }

    #[test]
    fn edits_of_lines_that_end_at_carriage_returns() {
        let texts = ["\r", "a\rb\n", "a\rcb\n", "a\r\nb"].map(str::to_owned).to_vec();
        let case = Case { texts, target: None };
        for property in PROPERTIES {
            assert_eq!(outcome(property, &case), Ok(()));
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
