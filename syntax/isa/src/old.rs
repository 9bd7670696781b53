//! Modifiers that are implied in old PTX versions or for old targets, as observed with ptxas 13.0.88.

use crate::{FormId, Mod, Opcode, PtxVersion, ResolveError, ScalarType, Sm, resolve};

/// The first version that requires `.approx` and rounding modifiers.
const NAMED: PtxVersion = PtxVersion::new(1, 4);
/// The first version that requires `.aligned` on `wmma`.
const ALIGNED: PtxVersion = PtxVersion::new(6, 3);
/// The first SM that supports subnormal `.f32` numbers.
const SUBNORMALS: u16 = 20;

/// Resolves an instruction name as in a module with this `.version` and `.target`, and adds the modifiers that are
/// implied there.
///
/// # Errors
/// The reason why the name as written is invalid.
pub fn resolve_in(
    mnemonic: &str,
    suffixes: &[&str],
    version: PtxVersion,
    target: Sm,
) -> Result<Opcode, ResolveError> {
    let mut opcode = resolve(mnemonic, suffixes);
    let mut suffixes = suffixes.to_vec();
    if let Err(ResolveError::MissingModifier { form, .. }) = opcode
        && let Some(implied) = implied(form, mnemonic, version)
    {
        suffixes.push(implied.text());
        opcode = resolve(mnemonic, &suffixes).or(opcode);
        if implied == Mod::Aligned {
            // Every `wmma` implies `.aligned`, which this version does not have as a modifier.
            return opcode.map(|opcode| without(&opcode, implied));
        }
    }
    let opcode = opcode?;
    if target.number >= SUBNORMALS || !flushes(&opcode) {
        return Ok(opcode);
    }
    suffixes.push(Mod::Ftz.text());
    Ok(resolve(mnemonic, &suffixes).ok().filter(|flushing| flushing.form == opcode.form).unwrap_or(opcode))
}

fn without(opcode: &Opcode, m: Mod) -> Opcode {
    let mods: Vec<Mod> = opcode.mods().filter(|other| *other != m).collect();
    let types: Vec<ScalarType> = opcode.types().collect();
    Opcode::new(opcode.form, &mods, &types).unwrap_or(*opcode)
}

fn implied(form: FormId, mnemonic: &str, version: PtxVersion) -> Option<Mod> {
    use FormId::*;
    match form {
        DivF32 | RcpF32 | SqrtF32 | RsqrtF32 | RsqrtF64 | Sin | Cos | Lg2 | Ex2 if version < NAMED => {
            Some(Mod::Approx)
        }
        MadF64 | DivF64 | SqrtF64 if version < NAMED => Some(Mod::Rn),
        _ if mnemonic == "wmma" && version < ALIGNED => Some(Mod::Aligned),
        _ => None,
    }
}

/// Whether an instruction flushes subnormal numbers to zero on targets that do not support them.
fn flushes(opcode: &Opcode) -> bool {
    let has = |ty| opcode.types().any(|other| other == ty);
    has(ScalarType::F32) && !has(ScalarType::F64) && !opcode.has(Mod::Ftz)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(mnemonic: &str, suffixes: &[&str], version: (u8, u8), sm: u16) -> Option<Vec<Mod>> {
        let version = PtxVersion::new(version.0, version.1);
        resolve_in(mnemonic, suffixes, version, Sm::new(sm)).ok().map(|opcode| opcode.mods().collect())
    }

    #[test]
    fn old_names_leave_out_more() {
        assert_eq!(name("div", &["f32"], (1, 3), 13), Some(vec![Mod::Approx, Mod::Ftz]));
        assert_eq!(name("div", &["f32"], (1, 4), 13), None);
        assert_eq!(name("sqrt", &["f64"], (1, 3), 13), Some(vec![Mod::Rn]));
        assert_eq!(name("add", &["f32"], (1, 4), 10), Some(vec![Mod::Ftz]));
        assert_eq!(name("add", &["f32"], (2, 0), 20), Some(vec![]));
        assert_eq!(name("add", &["u32"], (1, 4), 10), Some(vec![]));
        let load = ["load", "a", "sync", "row", "m16n16k16", "f16"];
        assert!(name("wmma", &load, (6, 2), 70).is_some_and(|mods| !mods.contains(&Mod::Aligned)));
        assert_eq!(name("wmma", &load, (6, 3), 70), None);
    }
}
