//! Queries over PTX files: names, types, diagnostics, compilation and the editor features built on them.
//!
//! Protocol-neutral: offsets in, plain data out. Inside an item all ranges are relative to the item; only
//! [`ide`] speaks in file offsets.

pub mod check;
pub mod constant;
pub mod db;
pub mod declaration;
pub mod diagnostic;
pub mod ide;
pub mod initializer;
pub mod items;
pub mod lower;
pub mod module;
pub mod occupancy;
pub mod scope;
pub mod signature;

pub use db::{Database, Db, Options, SourceFile};
