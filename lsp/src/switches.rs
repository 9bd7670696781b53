//! Which optional parts of the compiler the programs for files leave out.

use ptx_backend::Switches;

/// Holds a list as [`Switches::parse`] reads it.
const VARIABLE: &str = "PTX_PHASE";

/// The choice of the environment, then that of a list.
pub(crate) fn chosen(list: &str) -> Result<Switches, String> {
    let own = std::env::var_os(VARIABLE).unwrap_or_default();
    let own = own.to_string_lossy();
    Switches::parse(&own).map_err(|error| format!("{VARIABLE}: {error}"))?;
    Switches::parse(&format!("{own},{list}"))
}
