//! The database and its inputs.
//!
//! There are two inputs: the text of each file and one set of [`Options`]. All other data is derived. A handle is cheap
//! to clone. A clone is a snapshot, and must be dropped before the next write can finish.

use std::any::Any;
use std::sync::{Mutex, PoisonError};

use ptx_backend::Switches;
use ptx_backend::input::Launch;
use ptx_isa::{Mod, Opcode, ScalarType, Sm, Space};
use salsa::{Durability, Setter};

use crate::at_work::AtWork;
use crate::diagnostic::Levels;
use crate::pieces::{Piece, pieces};
use crate::text::Text;

/// A PTX file: the only input that changes while a user types.
#[salsa::input(debug)]
pub struct SourceFile {
    #[returns(ref)]
    pub text: Text,
    /// The items of the text, if it may change.
    #[returns(deref)]
    pub pieces: Box<[Piece]>,
    /// The text never changes.
    #[returns(copy)]
    pub is_frozen: bool,
    /// Every function is compiled, even those larger than [`Options::live_limit`].
    #[returns(copy)]
    pub compiles_all: bool,
    /// The file will be compiled after it has been checked.
    #[returns(copy)]
    pub is_compiled_next: bool,
    #[returns(ref)]
    pub spare: Spare,
    #[returns(ref)]
    pub at_work: AtWork,
}

/// Data that queries about a file reuse to be faster. It never changes a result, so it is not tracked.
#[derive(Debug, Default)]
pub struct Spare(Mutex<Vec<Box<dyn Any + Send>>>);

impl Spare {
    /// The maximum number of stored items: this number of threads may work on one file at a time.
    const MOST: usize = 4;

    pub(crate) fn take<T: Any>(&self) -> Option<Box<T>> {
        let found = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        found?.downcast().ok()
    }

    pub(crate) fn put(&self, spare: Box<dyn Any + Send>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() < Self::MOST {
            all.push(spare);
        }
    }
}

/// The launch bounds that the options state.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct LaunchBounds {
    /// As `.maxntid`.
    pub max_threads: Option<[u32; 3]>,
    /// As `.minnctapersm`.
    pub min_blocks: Option<u32>,
    /// As `.maxnreg`.
    pub max_registers: Option<u32>,
    /// The options have priority over the directives of kernels.
    pub overrides: bool,
}

impl LaunchBounds {
    /// The bounds of a kernel whose own directives are `own`.
    pub fn of(self, own: Launch) -> Launch {
        let says_threads = own.maxntid.or(own.reqntid).is_some() && !self.overrides;
        let maxntid = self.max_threads.filter(|_| !says_threads).or(own.maxntid);
        let own_blocks = own.minnctapersm.filter(|_| !self.overrides || self.min_blocks.is_none());
        let own_registers = own.maxnreg.filter(|_| !self.overrides || self.max_registers.is_none());
        Launch {
            maxntid,
            minnctapersm: own_blocks.or(self.min_blocks),
            maxnreg: own_registers.or(self.max_registers),
            ..own
        }
    }
}

/// The cache operators that the options select for accesses of global memory, including generic ones.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct CacheModifiers {
    pub loads: Option<CacheModifier>,
    pub stores: Option<CacheModifier>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct CacheModifier {
    /// One of `.ca`, `.cg`, `.cs`, `.lu`, `.cv`, `.wb` and `.wt`.
    pub modifier: Mod,
    /// Also for accesses that name another operator.
    pub forced: bool,
}

impl CacheModifiers {
    /// The access with the modifier that the options select. `None` if the options do not change it.
    pub fn of(self, opcode: &Opcode) -> Option<Opcode> {
        const CACHES: [Mod; 7] = [Mod::Ca, Mod::Cg, Mod::Cs, Mod::Lu, Mod::Cv, Mod::Wb, Mod::Wt];
        // These modifiers cannot be combined with a cache operator.
        const OTHERS: [Mod; 13] = [
            Mod::Volatile,
            Mod::Relaxed,
            Mod::Acquire,
            Mod::Release,
            Mod::Mmio,
            Mod::Nc,
            Mod::L1EvictNormal,
            Mod::L1EvictUnchanged,
            Mod::L1EvictFirst,
            Mod::L1EvictLast,
            Mod::L1NoAllocate,
            Mod::L2EvictFirst,
            Mod::L2EvictLast,
        ];
        let CacheModifier { modifier, forced } = match opcode.form.mnemonic() {
            "ld" => self.loads?,
            "st" => self.stores?,
            _ => return None,
        };
        let named = opcode.mods().find(|m| CACHES.contains(m));
        let elsewhere = opcode.mods().filter_map(Mod::space).any(|space| space != Space::Global);
        if elsewhere
            || named == Some(modifier)
            || named.is_some() && !forced
            || OTHERS.iter().any(|&m| opcode.has(m))
        {
            return None;
        }
        let mods: Vec<Mod> = opcode.mods().filter(|m| Some(*m) != named).chain([modifier]).collect();
        let types: Vec<ScalarType> = opcode.types().collect();
        Opcode::new(opcode.form, &mods, &types)
    }
}

/// Options of the checks and the compiler, for all files of a database.
#[salsa::input(singleton, debug)]
pub struct Options {
    /// The target to check against and compile for, instead of the file's own.
    #[returns(copy)]
    pub target: Option<Sm>,
    /// The architecture to generate code for. Code of the target must run on it.
    #[returns(copy)]
    pub architecture: Option<Sm>,
    /// 0 to 3, as `ptxas -O`.
    #[returns(copy)]
    pub opt_level: u8,
    #[returns(copy)]
    pub max_registers: Option<u32>,
    /// The maximum number of registers of device functions, independently of kernels.
    #[returns(copy)]
    pub max_function_registers: Option<u32>,
    /// The machine code is an object for a linker.
    #[returns(copy)]
    pub relocatable: bool,
    /// The result states where PTX registers are.
    #[returns(copy)]
    pub shows_registers: bool,
    /// Before threads end, they wait for errors of their accesses.
    #[returns(copy)]
    pub errors_at_exit: bool,
    /// Accesses of tensor memory are checked.
    #[returns(copy)]
    pub checks_tensor_memory: bool,
    /// Which optional parts of the compiler run.
    #[returns(copy)]
    pub switches: Switches,
    #[returns(copy)]
    pub launch: LaunchBounds,
    #[returns(copy)]
    pub caches: CacheModifiers,
    /// The maximum number of statements of a function that is compiled while its file is being edited; `None` for no
    /// limit.
    #[returns(copy)]
    pub live_limit: Option<u32>,
    pub levels: Levels,
}

pub use salsa::{CancellationToken, Cancelled, Database as Db};

/// Runs queries until they end or a write cancels them. Other panics are passed on.
pub fn catch_cancelled<T>(work: impl FnOnce() -> T + std::panic::UnwindSafe) -> Result<T, Cancelled> {
    Cancelled::catch(work)
}

/// Called with the name of each query about to run. Tests count them.
pub type QueryHook = Box<dyn Fn(&str) + Send + Sync>;

#[salsa::db]
#[derive(Clone)]
pub struct Database {
    storage: salsa::Storage<Self>,
}

#[salsa::db]
impl salsa::Database for Database {}

impl Default for Database {
    fn default() -> Self {
        Self::with_storage(salsa::Storage::new(None))
    }
}

impl Database {
    /// A database that reports every executed query, as `name(id)`.
    pub fn with_hook(hook: QueryHook) -> Self {
        Self::with_storage(salsa::Storage::new(Some(Box::new(move |event| {
            if let salsa::EventKind::WillExecute { database_key } = event.kind {
                hook(&format!("{database_key:?}"));
            }
        }))))
    }

    fn with_storage(storage: salsa::Storage<Self>) -> Self {
        let db = Self { storage };
        let _options = Options::builder(
            None,
            None,
            3,
            None,
            None,
            false,
            false,
            false,
            false,
            Switches::ALL_ON,
            LaunchBounds::default(),
            CacheModifiers::default(),
            None,
            Levels::default(),
        )
        .durability(Durability::HIGH)
        .new(&db);
        db
    }

    /// An empty database with the same options. Its files are dropped with it.
    pub fn scratch(&self) -> Self {
        let other = Self { storage: salsa::Storage::new(None) };
        let own = Options::get(self);
        let _options = Options::builder(
            own.target(self),
            own.architecture(self),
            own.opt_level(self),
            own.max_registers(self),
            own.max_function_registers(self),
            own.relocatable(self),
            own.shows_registers(self),
            own.errors_at_exit(self),
            own.checks_tensor_memory(self),
            own.switches(self),
            own.launch(self),
            own.caches(self),
            own.live_limit(self),
            own.levels(self).clone(),
        )
        .durability(Durability::HIGH)
        .new(&other);
        other
    }

    /// A token whose `cancel` stops only the queries of this handle.
    pub fn cancellation_token(&self) -> CancellationToken {
        Db::cancellation_token(self)
    }

    /// Adds a file.
    pub fn add_file(&self, text: impl Into<Text>) -> SourceFile {
        let text = text.into();
        let pieces = pieces(&text, &[]);
        SourceFile::new(self, text, pieces, false, false, false, Spare::default(), AtWork::default())
    }

    /// Adds a file that never changes: it is not tracked, and its items share its text. For one-shot runs.
    pub fn add_frozen_file(&self, text: impl Into<Text>) -> SourceFile {
        self.freeze(text.into(), false)
    }

    /// As [`Database::add_frozen_file`], for files that are compiled after they have been checked.
    pub fn add_frozen_file_to_compile(&self, text: impl Into<Text>) -> SourceFile {
        self.freeze(text.into(), true)
    }

    fn freeze(&self, text: Text, is_compiled_next: bool) -> SourceFile {
        let pieces = Box::default();
        SourceFile::builder(text, pieces, true, true, is_compiled_next, Spare::default(), AtWork::default())
            .durability(Durability::NEVER_CHANGE)
            .new(self)
    }

    /// Replaces a file's text. Cancels the running queries of all snapshots and waits until they are dropped.
    pub fn set_text(&mut self, file: SourceFile, text: impl Into<Text>) {
        let text = text.into();
        let pieces = pieces(&text, file.pieces(self));
        file.set_text(self).to(text);
        file.set_pieces(self).to(pieces);
    }

    /// Sets whether every function of a file is compiled, however large.
    pub fn set_compiles_all(&mut self, file: SourceFile, all: bool) {
        if file.compiles_all(self) != all {
            file.set_compiles_all(self).to(all);
        }
    }

    pub fn set_live_limit(&mut self, statements: Option<u32>) {
        Options::get(self).set_live_limit(self).with_durability(Durability::HIGH).to(statements);
    }

    pub fn set_target_override(&mut self, target: Option<Sm>) {
        Options::get(self).set_target(self).with_durability(Durability::HIGH).to(target);
    }

    pub fn set_architecture(&mut self, architecture: Option<Sm>) {
        Options::get(self).set_architecture(self).with_durability(Durability::HIGH).to(architecture);
    }

    pub fn set_opt_level(&mut self, level: u8) {
        Options::get(self).set_opt_level(self).with_durability(Durability::HIGH).to(level);
    }

    pub fn set_switches(&mut self, switches: Switches) {
        Options::get(self).set_switches(self).with_durability(Durability::HIGH).to(switches);
    }

    pub fn set_max_registers(&mut self, limit: Option<u32>) {
        Options::get(self).set_max_registers(self).with_durability(Durability::HIGH).to(limit);
    }

    pub fn set_max_function_registers(&mut self, limit: Option<u32>) {
        Options::get(self).set_max_function_registers(self).with_durability(Durability::HIGH).to(limit);
    }

    /// In a relocatable object, names that the module does not define are not errors.
    pub fn set_relocatable(&mut self, relocatable: bool) {
        Options::get(self).set_relocatable(self).with_durability(Durability::HIGH).to(relocatable);
    }

    pub fn set_shows_registers(&mut self, shows: bool) {
        Options::get(self).set_shows_registers(self).with_durability(Durability::HIGH).to(shows);
    }

    pub fn set_checks_tensor_memory(&mut self, checks: bool) {
        Options::get(self).set_checks_tensor_memory(self).with_durability(Durability::HIGH).to(checks);
    }

    pub fn set_errors_at_exit(&mut self, visible: bool) {
        Options::get(self).set_errors_at_exit(self).with_durability(Durability::HIGH).to(visible);
    }

    pub fn set_launch(&mut self, bounds: LaunchBounds) {
        Options::get(self).set_launch(self).with_durability(Durability::HIGH).to(bounds);
    }

    pub fn set_caches(&mut self, caches: CacheModifiers) {
        Options::get(self).set_caches(self).with_durability(Durability::HIGH).to(caches);
    }

    pub fn set_levels(&mut self, levels: Levels) {
        Options::get(self).set_levels(self).with_durability(Durability::HIGH).to(levels);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modifiers_of_caches() {
        let of = |name: &str, modifier, forced| {
            let all = Some(CacheModifier { modifier, forced });
            let mut words = name.split('.');
            let mnemonic = words.next().unwrap();
            let opcode = ptx_isa::resolve(mnemonic, &words.collect::<Vec<_>>()).unwrap();
            CacheModifiers { loads: all, stores: all }.of(&opcode).map(|changed| changed.mods().last())
        };
        for name in ["ld.global.f32", "ld.u32", "st.global.v4.b32", "ld.weak.global.b64", "st.b8"] {
            assert_eq!(of(name, Mod::Cg, false), Some(Some(Mod::Cg)), "{name}");
        }
        for name in [
            "ld.shared.f32",
            "ld.param.u64",
            "st.local.b32",
            "ld.global.nc.f32",
            "ld.volatile.global.f32",
            "st.relaxed.gpu.global.b32",
            "ld.global.L1::evict_last.b32",
            "add.f32",
        ] {
            assert_eq!(of(name, Mod::Cg, true), None, "{name}");
        }
        assert_eq!(of("ld.global.ca.f32", Mod::Cg, false), None);
        assert_eq!(of("ld.global.ca.f32", Mod::Cg, true), Some(Some(Mod::Cg)));
        assert_eq!(of("ld.global.cg.f32", Mod::Cg, true), None);
    }

    #[test]
    fn bounds_of_launches() {
        let own = Launch { maxntid: Some([64, 1, 1]), minnctapersm: Some(2), ..Launch::default() };
        let mut bounds = LaunchBounds { max_threads: Some([128, 1, 1]), ..LaunchBounds::default() };
        assert_eq!(bounds.of(own), own);
        assert_eq!(bounds.of(Launch::default()).maxntid, Some([128, 1, 1]));
        bounds.overrides = true;
        assert_eq!(bounds.of(own), Launch { maxntid: Some([128, 1, 1]), ..own });
        assert_eq!(bounds.of(Launch::default()).minnctapersm, None);
    }
}
