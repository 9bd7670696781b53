//! Words of the language that no row describes yet. Instructions with these words are known to exist, but nothing else
//! is known about them.

use crate::PtxVersion;

/// Mnemonics and suffixes, with the version that introduced each.
const WORDS: &[(&str, PtxVersion)] = &[("scaled::n1::ue8m0", PtxVersion::new(9, 4))];

/// The latest of the versions that introduced such words in a name.
pub(crate) fn since<'w>(words: impl IntoIterator<Item = &'w str>) -> Option<PtxVersion> {
    let known = |word: &str| WORDS.iter().find(|(known, _)| *known == word).map(|&(_, since)| since);
    words.into_iter().filter_map(known).max()
}
