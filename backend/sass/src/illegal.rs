//! Instructions that have an encoding and a text, and that hardware does not execute.

use crate::{Field, Inst};

impl Inst {
    /// Why hardware raises "illegal instruction" for this form with these operands.
    ///
    /// Source: `IADD3` with both operands negated stopped a kernel on sm_90; the vendor's compiler puts one of them third.
    /// The open driver of Mesa keeps to this for `IADD3` and `LEA` on all generations.
    pub fn illegal(&self) -> Option<&'static str> {
        let is_set = |field| self.get(field) == Some(1);
        match self.form().mnemonic {
            "IADD3" | "UIADD3" | "LEA" | "ULEA" if is_set(Field::NegA) && is_set(Field::NegB) => {
                Some("only one of the first two operands may be negated or complemented")
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Sm, parse};

    #[test]
    fn one_of_the_first_two_terms_is_plain() {
        let is_legal = |text| parse(Sm(90), text, 0).expect("it has an encoding").illegal().is_none();
        assert!(is_legal("IADD3 R0, -R1, R2, -R3"));
        assert!(is_legal("IADD3 R0, R1, -R2, -R3"));
        assert!(is_legal("IADD3.X R0, R1, ~R2, RZ, P0, !PT"));
        assert!(!is_legal("IADD3 R0, -R1, -R2, R3"));
        assert!(!is_legal("IADD3.X R0, ~R1, ~c[0x0][0x210], RZ, P0, !PT"));
        assert!(!is_legal("UIADD3 UR0, -UR1, -UR2, URZ"));
        assert!(is_legal("LEA R0, -R1, R2, 0x2"));
        assert!(!is_legal("LEA R0, -R1, -R2, 0x2"));
    }
}
