//! An index from names to positions in a list, for names that are looked up once per instruction.
//!
//! The index uses open addressing in a table whose size is a power of two and at least four times the number of names,
//! so a failing lookup ends after one or two probes. It is built once, on first use. A lookup does not allocate.

/// The positions of the names in a list.
pub(crate) struct NameIndex {
    /// Each slot holds a position plus one, or zero if it is free.
    slots: Box<[u16]>,
    names: Box<[&'static str]>,
}

impl NameIndex {
    /// `names` must be distinct, and fewer than 65,535.
    pub(crate) fn new(names: impl IntoIterator<Item = &'static str>) -> Self {
        let names: Box<[&'static str]> = names.into_iter().collect();
        let mut slots = vec![0u16; (names.len() * 4).next_power_of_two()].into_boxed_slice();
        for (i, name) in names.iter().enumerate() {
            let mut at = hash(name) & (slots.len() - 1);
            while slots[at] != 0 {
                debug_assert_ne!(names[slots[at] as usize - 1], *name, "a name is listed twice");
                at = (at + 1) & (slots.len() - 1);
            }
            slots[at] = i as u16 + 1;
        }
        Self { slots, names }
    }

    /// The position of `name` in the list.
    pub(crate) fn get(&self, name: &str) -> Option<usize> {
        let mask = self.slots.len() - 1;
        let mut at = hash(name) & mask;
        loop {
            match self.slots[at] {
                0 => return None,
                slot if self.names[slot as usize - 1] == name => return Some(slot as usize - 1),
                _ => at = (at + 1) & mask,
            }
        }
    }
}

/// FNV-1a with the high bits folded in, because the names are short and often differ only in their last bytes.
fn hash(name: &str) -> usize {
    let hash =
        name.bytes().fold(0xcbf2_9ce4_8422_2325u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3));
    (hash ^ (hash >> 29)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_every_name_and_nothing_else() {
        let names = ["a", "ab", "abc", "rn", "rz", "L2::128B"];
        let index = NameIndex::new(names);
        for (i, name) in names.iter().enumerate() {
            assert_eq!(index.get(name), Some(i));
        }
        for name in ["", "b", "RN", "L2::128", "é"] {
            assert_eq!(index.get(name), None);
        }
    }
}
