//! The version and the target of a file, which determine what is available.

use ptx_isa::{Gate, PtxVersion, Sm};

use crate::db::{Db, SourceFile};
use crate::ide::reference::needs;
use crate::module::{effective_target, header};

pub(super) struct Setting {
    pub(super) version: PtxVersion,
    target: Option<Sm>,
    /// Without a file, every requirement matters.
    is_known: bool,
}

impl Setting {
    pub(super) const UNKNOWN: Setting =
        Setting { version: PtxVersion::NEWEST, target: None, is_known: false };

    pub(super) fn of(db: &dyn Db, file: SourceFile) -> Self {
        let (version, target) = (header(db, file).version_or_newest(), effective_target(db, file));
        Self { version, target, is_known: true }
    }

    pub(super) fn has(&self, gate: &Gate) -> bool {
        self.target.is_none_or(|target| gate.check(self.version, target).is_ok())
    }

    /// The requirements that the file does not meet, in words.
    pub(super) fn lacks(&self, gate: &Gate) -> Option<String> {
        let matters = *gate != Gate::BASE && !(self.is_known && self.has(gate));
        matters.then(|| format!("requires {}", needs(gate)))
    }
}
