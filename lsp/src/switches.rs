//! The compiler phases that the command-line programs disable.

use ptx_backend::Switches;

/// A list of phases, in the syntax of [`Switches::parse`].
const VARIABLE: &str = "PTX_PHASE";

/// The phases chosen by the environment variable, then by `list`.
pub(crate) fn chosen(list: &str) -> Result<Switches, String> {
    let own = std::env::var_os(VARIABLE).unwrap_or_default();
    let own = own.to_string_lossy();
    Switches::parse(&own).map_err(|error| format!("{VARIABLE}: {error}"))?;
    Switches::parse(&format!("{own},{list}"))
}
