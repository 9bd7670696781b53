//! Random words are rejected, or encode back to themselves.
//!
//! `SASS_RANDOM_WORDS=10000000 cargo test --release -p sass --test random` sets the number of words.

mod recorded;

use sass::{Sm, decode, decode_tolerant, encode, print_to};

#[test]
fn what_decodes_encodes_to_the_same_word() {
    let count =
        std::env::var("SASS_RANDOM_WORDS").ok().and_then(|count| count.parse().ok()).unwrap_or(100_000);
    let bases: Vec<u128> = recorded::samples().iter().map(|sample| sample.word).collect();
    let mut random = fastrand::Rng::with_seed(0x9e37_79b9_7f4a_7c15);
    let mut text = String::new();
    for i in 0..count {
        // A random word, a random word with the opcode of an instruction, and an instruction with random bits changed.
        let base = bases[random.usize(..bases.len())];
        let word = match i % 3 {
            0 => random.u128(..),
            1 => random.u128(..) & !0xfff | base & 0xfff,
            _ => base ^ random.u128(..) & random.u128(..) & random.u128(..) & !0xfff,
        };
        let sm = Sm::ALL[random.usize(..Sm::ALL.len())];
        let Some(inst) = decode_tolerant(sm, word) else { continue };
        assert_eq!(encode(sm, &inst), Ok(word), "sm_{} {word:032x}", sm.0);
        assert_eq!(decode(sm, word).is_some(), inst.stray() == 0, "sm_{} {word:032x}", sm.0);
        text.clear();
        print_to(&mut text, sm, &inst, 0);
        assert!(inst.reads(sm).count() + inst.writes(sm).count() < 32);
    }
}
