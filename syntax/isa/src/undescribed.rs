//! Words of the language that no row has yet: instructions with them are known to exist, and no more.

use crate::PtxVersion;

const V93: PtxVersion = PtxVersion::new(9, 3);
const V94: PtxVersion = PtxVersion::new(9, 4);

/// Mnemonics and suffixes, and the version that they came with.
const WORDS: &[(&str, PtxVersion)] = &[
    // Memory of other GPUs behind the fabric.
    ("try_get", V93),
    ("try_put", V93),
    ("try_red", V93),
    ("try_pullred", V93),
    ("op_restrict::fetching", V93),
    ("fabric::generic", V93),
    ("async::fabric", V93),
    ("mbarrier::report::fabric", V93),
    ("mbarrier::complete_tx::16B", V93),
    ("counted::bytes", V93),
    // What sm_107 brought.
    ("spcompress", V94),
    ("spdecompress", V94),
    ("override::global_address", V94),
    ("multicast::cluster::16b", V94),
    ("multicast::cluster::32b", V94),
    ("im2col_no_offs::w", V94),
    ("decompress::lut::b", V94),
    ("collector::b::fill", V94),
    ("collector::b::use", V94),
    ("collector::b::lastuse", V94),
    ("collector::b::discard", V94),
    ("kind::ti16", V94),
    ("scaled::n1::ue8m0", V94),
    ("sync_restrict::shared::read::mma::a", V94),
    ("sync_restrict::shared::cluster::read", V94),
];

/// The version that brought the newest such word of a name.
pub(crate) fn since<'w>(words: impl IntoIterator<Item = &'w str>) -> Option<PtxVersion> {
    let known = |word: &str| WORDS.iter().find(|(known, _)| *known == word).map(|&(_, since)| since);
    words.into_iter().filter_map(known).max()
}
