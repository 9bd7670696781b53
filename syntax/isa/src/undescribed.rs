//! Words of the language that no row has yet: instructions with them are known to exist, and no more.

use crate::PtxVersion;

/// Mnemonics and suffixes, and the version that they came with.
const WORDS: &[(&str, PtxVersion)] = &[("scaled::n1::ue8m0", PtxVersion::new(9, 4))];

/// The version that brought the newest such word of a name.
pub(crate) fn since<'w>(words: impl IntoIterator<Item = &'w str>) -> Option<PtxVersion> {
    let known = |word: &str| WORDS.iter().find(|(known, _)| *known == word).map(|&(_, since)| since);
    words.into_iter().filter_map(known).max()
}
