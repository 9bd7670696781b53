//! Tests of the memory order from PTX to machine code, and of the order checker.

mod mutations;
mod pairs;

/// Whether instructions with this name access memory or order accesses of other instructions.
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
