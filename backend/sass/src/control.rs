//! The control word of an instruction: what the compiler tells the hardware's warp scheduler.

use crate::model::ones;
use std::fmt;

/// The scheduling data of an instruction, bits 105 to 125 of the word.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Control {
    /// Cycles until the warp may issue its next instruction, 0 to 15.
    pub stall: u8,
    /// The warp scheduler may switch to another warp. The word stores this inverted, in bit 109.
    pub yield_: bool,
    /// The scoreboard that is released when the result is written. There are six, although the field could name a
    /// seventh.
    pub write_sb: Option<u8>,
    /// The scoreboard that is released when the sources have been read.
    pub read_sb: Option<u8>,
    /// The scoreboards that must be free before issue, one bit each.
    pub wait: u8,
    /// The operands to keep in operand caches for the next instruction: bit 0 for slot A, 1 for B, 2 for C.
    pub reuse: u8,
}

/// The lowest bit of the control word.
const CONTROL_LOW: u8 = 105;
/// Bits 105 to 124. Bit 125 has no known use.
const CONTROL_BITS: u8 = 20;
const SCOREBOARDS: u8 = 6;
/// The value of a scoreboard field for "no scoreboard".
const NO_SCOREBOARD: u8 = 7;

impl Control {
    /// The bits of an instruction word that the control word occupies.
    pub const MASK: u128 = ones(CONTROL_BITS) << CONTROL_LOW;

    /// The control word at its place in the instruction word. `None` if a value is out of range.
    pub fn to_bits(self) -> Option<u128> {
        let scoreboard = |sb: Option<u8>| sb.unwrap_or(NO_SCOREBOARD);
        let named = |sb: Option<u8>| sb.is_none_or(|sb| sb < NO_SCOREBOARD);
        let in_range = self.stall < 16
            && named(self.write_sb)
            && named(self.read_sb)
            && self.wait < 64
            && self.reuse < 8;
        let bits = u32::from(self.stall)
            | u32::from(!self.yield_) << 4
            | u32::from(scoreboard(self.write_sb)) << 5
            | u32::from(scoreboard(self.read_sb)) << 8
            | u32::from(self.wait) << 11
            | u32::from(self.reuse) << 17;
        in_range.then_some(u128::from(bits) << CONTROL_LOW)
    }

    /// Decodes the control word of an instruction word.
    pub fn from_bits(word: u128) -> Control {
        let bits = (word >> CONTROL_LOW & ones(CONTROL_BITS)) as u32;
        let scoreboard = |at: u32| {
            let sb = (bits >> at & 7) as u8;
            (sb != NO_SCOREBOARD).then_some(sb)
        };
        Control {
            stall: (bits & 15) as u8,
            yield_: bits >> 4 & 1 == 0,
            write_sb: scoreboard(5),
            read_sb: scoreboard(8),
            wait: (bits >> 11 & 63) as u8,
            reuse: (bits >> 17 & 7) as u8,
        }
    }
}

impl Default for Control {
    /// A stall of one cycle, no scoreboards.
    fn default() -> Control {
        Control { stall: 1, yield_: false, write_sb: None, read_sb: None, wait: 0, reuse: 0 }
    }
}

/// `B--2---:R-:W0:-:S04`: the scoreboards that the instruction waits for, its read scoreboard, its write scoreboard,
/// `Y` if the warp may yield, the stall count. Reuse is printed with the operands.
impl fmt::Display for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = *b"B------:R-:W-:-:S00";
        let digit = |value: u8| b'0' + value % 10;
        for sb in (0..SCOREBOARDS).filter(|sb| self.wait >> sb & 1 != 0) {
            text[1 + usize::from(sb)] = digit(sb);
        }
        if let Some(sb) = self.read_sb {
            text[9] = digit(sb);
        }
        if let Some(sb) = self.write_sb {
            text[12] = digit(sb);
        }
        if self.yield_ {
            text[14] = b'Y';
        }
        text[17] = digit(self.stall / 10);
        text[18] = digit(self.stall);
        f.write_str(str::from_utf8(&text).unwrap_or_default())
    }
}

impl Control {
    /// The length of the text in bytes.
    pub(crate) const TEXT_LEN: usize = 19;

    /// Parses the output of [`Control`]'s `Display`.
    ///
    /// # Errors
    /// The offset of the first wrong byte.
    pub fn parse(text: &str) -> Result<Control, usize> {
        let text = text.as_bytes();
        let mut control = Control::default();
        let scoreboard = |at: usize| match text.get(at) {
            Some(b'-') => Ok(None),
            Some(sb @ b'0'..=b'6') => Ok(Some(sb - b'0')),
            _ => Err(at),
        };
        let template = b"B------:R-:W-:-:S00";
        for at in [0, 7, 8, 10, 11, 13, 15, 16] {
            if text.get(at) != Some(&template[at]) {
                return Err(at);
            }
        }
        for sb in 0..SCOREBOARDS {
            let at = 1 + usize::from(sb);
            match scoreboard(at)? {
                Some(named) if named != sb => return Err(at),
                Some(_) => control.wait |= 1 << sb,
                None => {}
            }
        }
        control.read_sb = scoreboard(9)?;
        control.write_sb = scoreboard(12)?;
        control.yield_ = match text.get(14) {
            Some(b'-') => false,
            Some(b'Y') => true,
            _ => return Err(14),
        };
        let digit = |at: usize| text.get(at).filter(|c| c.is_ascii_digit()).map(|c| c - b'0').ok_or(at);
        control.stall = digit(17)? * 10 + digit(18)?;
        if control.stall > 15 { Err(17) } else { Ok(control) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_round_trips() {
        let control =
            Control { stall: 11, yield_: false, write_sb: Some(2), read_sb: None, wait: 0b101, reuse: 3 };
        assert_eq!(Control::from_bits(control.to_bits().unwrap()), control);
        assert_eq!(Control { stall: 16, ..control }.to_bits(), None);
        assert_eq!(Control { write_sb: Some(7), ..control }.to_bits(), None);
    }

    #[test]
    fn text_reads_back() {
        let control =
            Control { stall: 11, yield_: true, write_sb: Some(2), read_sb: None, wait: 0b101, reuse: 0 };
        assert_eq!(control.to_string(), "B0-2---:R-:W2:Y:S11");
        assert_eq!(Control::parse(&control.to_string()), Ok(control));
        assert_eq!(Control::default().to_string().len(), Control::TEXT_LEN);
        assert_eq!(Control::parse("B0-2---:R-:W2:Y:S16"), Err(17));
        assert_eq!(Control::parse("B1-2---:R-:W2:Y:S11"), Err(1));
        assert_eq!(Control::parse("B0"), Err(7));
    }
}
