//! An index of forms by name. Every run of a tool builds the index, so building it must be cheap.

use crate::model::FormId;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Range;

/// The forms of each name, in the order in which they were added.
pub(crate) struct Names {
    /// The first and the last run of a name.
    by_name: HashMap<&'static str, (u16, u16), BuildHasherDefault<NameHasher>>,
    runs: Vec<Run>,
}

/// A run of consecutive forms, and the next run of the same name.
struct Run {
    forms: Range<u16>,
    next: Option<u16>,
}

impl Names {
    pub(crate) fn with_capacity(runs: usize) -> Names {
        let by_name = HashMap::with_capacity_and_hasher(runs, BuildHasherDefault::default());
        Names { by_name, runs: Vec::with_capacity(runs) }
    }

    pub(crate) fn add(&mut self, name: &'static str, forms: Range<u16>) {
        let new = self.runs.len() as u16;
        self.runs.push(Run { forms, next: None });
        let (_, last) = self.by_name.entry(name).or_insert((new, new));
        if *last != new {
            self.runs[usize::from(*last)].next = Some(new);
            *last = new;
        }
    }

    pub(crate) fn forms(&self, name: &str) -> impl Iterator<Item = FormId> + use<'_> {
        let first = self.by_name.get(name).map(|&(first, _)| first);
        let runs = std::iter::successors(first, |&run| self.runs[usize::from(run)].next);
        runs.flat_map(|run| self.runs[usize::from(run)].forms.clone()).map(FormId)
    }
}

/// A hash function that multiplies and rotates, eight bytes at a time. It does not resist attacks, but the names are
/// short and come from the table.
#[derive(Default)]
struct NameHasher(u64);

impl Hasher for NameHasher {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u8(&mut self, byte: u8) {
        self.write_u64(byte.into());
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    }

    fn finish(&self) -> u64 {
        // The hash table uses the low bits and the highest bits.
        self.0 ^ self.0 >> 32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_a_name_follow_each_other() {
        let mut names = Names::with_capacity(4);
        for (name, forms) in [("A", 0..2), ("B.C", 2..3), ("A", 3..3), ("A", 3..5)] {
            names.add(name, forms);
        }
        let of = |name| names.forms(name).map(|id| id.0).collect::<Vec<_>>();
        assert_eq!([of("A"), of("B.C"), of("B")], [vec![0, 1, 3, 4], vec![2], vec![]]);
    }
}
