//! `ptx/sassDifference`: compares a function's machine code with that of the last save, of another target or of another
//! option.
//!
//! Parameters: `{ textDocument, function | position, with }`; `with` is one of `{ saved: true }`, `{ target }`,
//! `{ optLevel }` and `{ maxRegisters }`. Result: `{ function, summary, before, after }`; `before` and `after` are
//! `{ title, text, lines }`. The texts have no addresses and no control words, so a difference view shows only changed
//! instructions. The answer is null outside of a function.

use crate::compile::options::REGISTERS;
use crate::document::Document;
use crate::handlers::sass_view::{Place, object, of_file};
use crate::input;
use crate::owner::Snapshot;
use crate::variant::{Change, variant};
use ptx_analysis::ide::{SassStyle, SassView};
use ptx_isa::Sm;
use serde_json::{Value, json};

/// Parameters of `ptx/sassDifference`.
#[derive(Clone, Debug, serde::Deserialize)]
pub struct SassDifferenceParams {
    #[serde(flatten)]
    pub place: Place,
    pub with: With,
}

/// What the machine code is compared with.
#[derive(Clone, PartialEq, Debug, serde::Deserialize)]
#[serde(try_from = "Fields")]
pub enum With {
    Saved(bool),
    Target(String),
    OptLevel(u8),
    MaxRegisters(u32),
}

/// `With` as clients write it.
#[derive(Default, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Fields {
    saved: Option<bool>,
    target: Option<String>,
    opt_level: Option<u8>,
    max_registers: Option<u32>,
}

impl TryFrom<Fields> for With {
    type Error = &'static str;

    fn try_from(fields: Fields) -> Result<Self, Self::Error> {
        match fields {
            Fields { saved: Some(saved), target: None, opt_level: None, max_registers: None } => {
                Ok(Self::Saved(saved))
            }
            Fields { saved: None, target: Some(target), opt_level: None, max_registers: None } => {
                Ok(Self::Target(target))
            }
            Fields { saved: None, target: None, opt_level: Some(level), max_registers: None } => {
                Ok(Self::OptLevel(level))
            }
            Fields { saved: None, target: None, opt_level: None, max_registers: Some(most) } => {
                Ok(Self::MaxRegisters(most))
            }
            _ => Err("`with` must have exactly one of `saved`, `target`, `optLevel` and `maxRegisters`"),
        }
    }
}

/// The size of the largest saved file that is read, in MiB.
const LARGEST: u64 = 64;

/// # Errors
/// The reason why there is no code to compare with.
pub fn handle(s: &Snapshot, params: &SassDifferenceParams) -> Result<Option<Value>, String> {
    let Some(own) = params.place.view(s, SassStyle::BARE) else { return Ok(None) };
    let name = own.function.clone();
    let (before, after) = match &params.with {
        With::Saved(_) => {
            let saved = saved(s)?;
            let (db, file) = variant(s, Change::Text(&saved));
            let before = of_file(&db, file, &name)
                .ok_or_else(|| format!("the saved file has no function `{name}`"))?;
            let lines = Document::new(&saved, 0, s.encoding);
            ((side("as saved", &before, &lines), before), (side("as it is", &own, s.lines()), own))
        }
        With::Target(target) => {
            let target = Sm::known(target)?;
            other(s, own, Change::Target(target), &format!("for {target}"))?
        }
        With::OptLevel(level @ 0..=3) => other(s, own, Change::Level(*level), &format!("with -O{level}"))?,
        With::OptLevel(level) => return Err(format!("unknown optimization level {level}, expected 0 to 3")),
        With::MaxRegisters(most) if !REGISTERS.contains(&i64::from(*most)) => {
            let (least, largest) = (REGISTERS.start(), REGISTERS.end());
            return Err(format!("invalid register limit {most}: expected {least} to {largest}"));
        }
        With::MaxRegisters(most) => {
            other(s, own, Change::Registers(*most), &format!("with at most {most} registers"))?
        }
    };
    let summary = match (before.1.figures, after.1.figures) {
        (Some(old), Some(new)) => new.difference(&old),
        (None, _) => first_line(&before.1),
        (_, None) => first_line(&after.1),
    };
    Ok(Some(json!({ "function": name, "summary": summary, "before": before.0, "after": after.0 })))
}

type Side = (Value, SassView);

fn side(title: &str, view: &SassView, lines: &Document) -> Value {
    let mut object = object(view, lines);
    object["title"] = format!("{} {title}", view.function).into();
    object
}

/// The function's machine code after a change of the target, an option or the text.
fn other(s: &Snapshot, own: SassView, change: Change<'_>, title: &str) -> Result<(Side, Side), String> {
    let (db, file) = variant(s, change);
    let other = of_file(&db, file, &own.function)
        .ok_or_else(|| format!("function `{}` does not exist {title}", own.function))?;
    let lines = s.lines();
    Ok(((side("as it is", &own, lines), own), (side(title, &other, lines), other)))
}

/// The first line of a view without code: the reason why the function has none.
fn first_line(view: &SassView) -> String {
    view.text.lines().next().unwrap_or_default().trim_start_matches("// ").to_owned()
}

/// The text on disk, as the editor saved it last.
fn saved(s: &Snapshot) -> Result<String, String> {
    let path = s.uri.to_file_path().map_err(|()| "the document was never saved to a file".to_owned())?;
    let input = input::read(&path, LARGEST).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(input.text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_one_difference_is_chosen() {
        let of = |text: &str| serde_json::from_str::<With>(text).map_err(|error| error.to_string());
        assert_eq!(of(r#"{ "optLevel": 2 }"#), Ok(With::OptLevel(2)));
        for wrong in ["{}", r#"{ "saved": true, "optLevel": 2 }"#] {
            assert_eq!(
                of(wrong),
                Err("`with` must have exactly one of `saved`, `target`, `optLevel` and `maxRegisters`".into())
            );
        }
    }
}
