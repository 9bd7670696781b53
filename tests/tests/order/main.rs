//! Memory order from PTX to machine code, and the checker of it.

mod mutations;
mod pairs;

/// Whether the instructions of this name access memory, or order others' accesses.
fn orders(mnemonic: &str) -> bool {
    matches!(
        mnemonic,
        "LD" | "LDG"
            | "LDS"
            | "LDL"
            | "ST"
            | "STG"
            | "STS"
            | "STL"
            | "ATOM"
            | "ATOMG"
            | "ATOMS"
            | "RED"
            | "REDG"
    ) || matches!(
        mnemonic,
        "MEMBAR" | "BAR" | "WARPSYNC" | "CCTL" | "ERRBAR" | "LDGSTS" | "LDGDEPBAR" | "DEPBAR"
    )
}
