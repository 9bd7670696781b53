//! Instructions that have an encoding and a text, but that the hardware does not execute.

use crate::{Field, Inst, Sm};

impl Inst {
    /// The reason why the hardware raises "illegal instruction" for this form with these operands.
    ///
    /// Sources: `IADD3` with both operands negated stopped a kernel on sm_90, and NVIDIA's compiler makes one of them
    /// the third operand. Mesa's open driver follows this rule for `IADD3` and `LEA` on all generations. On sm_100 and
    /// sm_103, NVIDIA's compiler emits `CREDUX` for minima and maxima of integers, and `REDUX` only for the other
    /// reductions. On sm_75, it splits a matrix product with a depth of sixteen into two with a depth of eight, because
    /// Turing's tensor cores lack the former.
    pub fn illegal(&self, sm: Sm) -> Option<&'static str> {
        let is_set = |field| self.get(field) == Some(1);
        match self.form().mnemonic {
            "IADD3" | "UIADD3" | "LEA" | "ULEA" if is_set(Field::NegA) && is_set(Field::NegB) => {
                Some("only one of the first two operands may be negated or complemented")
            }
            "REDUX"
                if matches!(self.text(Field::Op), Some(".MIN" | ".MAX"))
                    && crate::lookup(sm, "CREDUX", "").is_some() =>
            {
                Some("minima and maxima over a warp require CREDUX on this target")
            }
            "HMMA" if sm.0 < 80 && self.text(Field::Size) == Some(".16816") => {
                Some("half-precision products have a depth of at most 8 on this target")
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
        let is_legal = |text| parse(Sm(90), text, 0).expect("it has an encoding").illegal(Sm(90)).is_none();
        assert!(is_legal("IADD3 R0, -R1, R2, -R3"));
        assert!(is_legal("IADD3 R0, R1, -R2, -R3"));
        assert!(is_legal("IADD3.X R0, R1, ~R2, RZ, P0, !PT"));
        assert!(!is_legal("IADD3 R0, -R1, -R2, R3"));
        assert!(!is_legal("IADD3.X R0, ~R1, ~c[0x0][0x210], RZ, P0, !PT"));
        assert!(!is_legal("UIADD3 UR0, -UR1, -UR2, URZ"));
        assert!(is_legal("LEA R0, -R1, R2, 0x2"));
        assert!(!is_legal("LEA R0, -R1, -R2, 0x2"));
    }

    #[test]
    fn the_first_tensor_cores_multiply_halves_eight_deep() {
        let is_legal =
            |sm, text| parse(Sm(sm), text, 0).expect("it has an encoding").illegal(Sm(sm)).is_none();
        assert!(is_legal(75, "HMMA.1688.F32 R4, R8, R10, R4"));
        assert!(!is_legal(75, "HMMA.16816.F32 R4, R8, R10, R4"));
        assert!(is_legal(80, "HMMA.16816.F32 R4, R8, R10, R4"));
    }

    #[test]
    fn extremes_of_a_warp_have_an_operation_of_their_own_on_some_targets() {
        let is_legal =
            |sm, text| parse(Sm(sm), text, 0).expect("it has an encoding").illegal(Sm(sm)).is_none();
        assert!(is_legal(90, "REDUX.MIN.S32 UR0, R1"));
        assert!(is_legal(120, "REDUX.MAX UR0, R1"));
        assert!(is_legal(100, "REDUX.SUM UR0, R1"));
        assert!(is_legal(100, "CREDUX.MIN.S32 UR0, R1"));
        assert!(!is_legal(100, "REDUX.MIN.S32 UR0, R1"));
        assert!(!is_legal(103, "REDUX.MAX UR0, R1"));
    }
}
