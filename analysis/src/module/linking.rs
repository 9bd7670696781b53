//! Compares two declarations of one function.

use ptx_backend::input::{Linkage, Signature};

use crate::declaration::Shape;
use crate::signature::{FunctionDecl, Shapes};
use crate::text::counted;

/// How a later declaration contradicts an earlier one, as the end of the phrase "was declared …".
pub(super) fn redeclaration(was: &Signature, shapes: &Shapes, now: &FunctionDecl) -> Option<String> {
    let is = &now.signature;
    if was.entry != is.entry {
        return Some(if was.entry { "as a kernel" } else { "as a device function" }.to_owned());
    }
    if let Some(difference) = difference(shapes, &now.shapes) {
        return Some(format!("with different parameters: {difference}"));
    }
    // A definition may omit the linkage of its declaration, unless the declaration is `.extern`.
    let agrees = was.linkage == is.linkage
        || is.linkage == Linkage::Internal && matches!(was.linkage, Linkage::Visible | Linkage::Weak);
    if !agrees {
        return Some(
            match was.linkage {
                Linkage::Visible => "`.visible`",
                Linkage::Extern => "`.extern`",
                Linkage::Weak => "`.weak`",
                Linkage::Common => "`.common`",
                Linkage::Internal => "without linkage",
            }
            .to_owned(),
        );
    }
    for (word, one, other) in [
        (".abi_preserve", was.preserved.general, is.preserved.general),
        (".abi_preserve_control", was.preserved.control, is.preserved.control),
    ] {
        if one != other {
            return Some(match one {
                Some(count) => format!("with `{word} {count}`"),
                None => format!("without `{word}`"),
            });
        }
    }
    // The first declaration states whether a function is unified.
    if let (Some(one), Some(other)) = (was.unified, is.unified)
        && one != other
    {
        return Some(format!("with `.unified({}, {})`", one[0], one[1]));
    }
    (was.noreturn != is.noreturn)
        .then(|| if was.noreturn { "`.noreturn`" } else { "without `.noreturn`" }.to_owned())
}

/// The first difference between two lists of parameters.
pub(super) fn difference(one: &Shapes, other: &Shapes) -> Option<String> {
    pairwise("result", &one.returns, &other.returns)
        .or_else(|| pairwise("parameter", &one.params, &other.params))
}

fn pairwise(what: &str, one: &[Shape], other: &[Shape]) -> Option<String> {
    if one.len() != other.len() {
        return Some(format!("{} instead of {}", counted(one.len(), what), other.len()));
    }
    let (at, (one, other)) = one.iter().zip(other).enumerate().find(|(_, (one, other))| one != other)?;
    Some(format!("{what} {} is `{one}` instead of `{other}`", at + 1))
}
