//! PTX embedded in other languages: inline assembly in C++, CUDA and Rust, strings in Python, and inline assembly of
//! CUDA code in Python and C++ strings.
//!
//! [`scan`] finds the snippets of a text. Each snippet becomes a [`Document`]: a PTX module that declares a register
//! for each placeholder, and maps its positions to the host text. The scanners accept any text. They give up on code
//! that they do not understand, such as strings that are built at run time, macros with pasted tokens, or operands of
//! other machines. There is then no snippet, or a snippet without findings.

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
    /// Code for GPUs. Its assembly is PTX unless it looks different.
    Cuda,
    /// C and C++, whose assembly may be for any machine.
    Cpp,
    Rust,
    Python,
}

impl Language {
    /// The language of a file, from its extension.
    pub fn of_path(path: &Path) -> Option<Self> {
        Some(match path.extension()?.to_str()? {
            "cu" | "cuh" => Self::Cuda,
            "c" | "cc" | "cpp" | "cxx" | "h" | "hh" | "hpp" | "hxx" | "inl" | "ipp" => Self::Cpp,
            "rs" => Self::Rust,
            "py" | "pyi" => Self::Python,
            _ => return None,
        })
    }

    /// The language with the given editor name.
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
    /// The document. Its positions are relative to the start of the range.
    pub document: Arc<Document>,
}
