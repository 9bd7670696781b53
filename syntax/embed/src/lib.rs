//! PTX inside other languages: inline assembly of C++, CUDA and Rust, strings of Python, and inline assembly of CUDA code
//! in strings of Python and C++.
//!
//! [`scan`] finds the snippets of a text. Each becomes a [`Document`]: a PTX module with a declared register for each
//! placeholder, and a map between its positions and those of the host text. The scanners take any text and give up
//! on what they do not understand: strings that are built, macros that are pasted, operands of other machines. Then
//! there is no snippet, or one that nothing is said about.

mod c;
mod cursor;
mod document;
mod literal;
mod module;
mod operand;
mod python;
mod rust;
mod scan;
mod statements;
mod target;
mod template;
#[cfg(test)]
mod tests;

pub use document::Document;
pub use scan::{Scan, scan};

use std::path::Path;
use std::sync::Arc;

use text_size::TextRange;

/// A language that PTX is embedded in.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Language {
    /// Code for GPUs: assembly is PTX unless it looks otherwise.
    Cuda,
    /// C and C++, whose assembly is that of any machine.
    Cpp,
    Rust,
    Python,
}

impl Language {
    /// The language of a file, by its extension.
    pub fn of_path(path: &Path) -> Option<Self> {
        Some(match path.extension()?.to_str()? {
            "cu" | "cuh" => Self::Cuda,
            "c" | "cc" | "cpp" | "cxx" | "h" | "hh" | "hpp" | "hxx" | "inl" | "ipp" => Self::Cpp,
            "rs" => Self::Rust,
            "py" | "pyi" => Self::Python,
            _ => return None,
        })
    }

    /// The language by the name that editors have for it.
    pub fn of_editor(name: &str) -> Option<Self> {
        Some(match name {
            "cuda" | "cuda-cpp" => Self::Cuda,
            "c" | "cpp" => Self::Cpp,
            "rust" => Self::Rust,
            "python" => Self::Python,
            _ => return None,
        })
    }
}

/// A piece of PTX in a host text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Snippet {
    /// From the first quote of the text to the last one.
    pub range: TextRange,
    /// Its positions are relative to the start of the range.
    pub document: Arc<Document>,
}
