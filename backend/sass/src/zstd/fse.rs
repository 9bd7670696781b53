//! Tables of finite state entropy: each state stands for a symbol and tells how many bits make the next state.

use super::bits::{Backward, Forward};

pub(super) struct Table {
    accuracy: u8,
    states: Vec<State>,
}

#[derive(Clone, Copy, Default)]
struct State {
    symbol: u8,
    /// Bits of the stream that are added to the base.
    bits: u8,
    base: u16,
}

/// Symbols are bytes.
const MOST_SYMBOLS: usize = 256;

impl Table {
    /// The table of symbols with shares of 1 << accuracy; -1 is a share of less than one.
    pub(super) fn new(accuracy: u8, shares: &[i16]) -> Option<Table> {
        let size = 1usize << accuracy;
        let mut states = vec![State::default(); size];
        // The rarest come last.
        let rare = (0..).zip(shares).filter(|&(_, &share)| share == -1);
        let mut end = size;
        for (symbol, _) in rare {
            end = end.checked_sub(1)?;
            states[end].symbol = symbol;
        }
        // The others are spread in large steps.
        let step = (size >> 1) + (size >> 3) + 3;
        let mut at = 0;
        for (symbol, &share) in (0..).zip(shares) {
            for _ in 0..share.max(0) {
                states[at].symbol = symbol;
                at = (at + step) & (size - 1);
                while at >= end {
                    at = (at + step) & (size - 1);
                }
            }
        }
        // The states of a symbol divide the table among them.
        let mut next = [0u32; MOST_SYMBOLS];
        for (next, &share) in next.iter_mut().zip(shares) {
            *next = u32::from(share.unsigned_abs());
        }
        for state in &mut states {
            let number = &mut next[usize::from(state.symbol)];
            state.bits = accuracy - number.checked_ilog2()? as u8;
            state.base = ((*number << state.bits) as usize).checked_sub(size)? as u16;
            *number += 1;
        }
        Some(Table { accuracy, states })
    }

    /// One symbol only.
    pub(super) fn single(symbol: u8) -> Table {
        Table { accuracy: 0, states: vec![State { symbol, bits: 0, base: 0 }] }
    }

    /// Reads a description and leaves what is behind it.
    pub(super) fn read(bytes: &mut &[u8], most: u8) -> Option<Table> {
        let mut bits = Forward::new(bytes);
        let accuracy = bits.peek(4) as u8 + 5;
        bits.skip(4);
        if accuracy > most {
            return None;
        }
        let mut shares = Vec::new();
        let mut left = 1i32 << accuracy;
        while left > 0 {
            // Values from 0 to left + 1; the low ones take a bit less.
            let width = (left + 1).ilog2() as u8 + 1;
            let short = (1 << width) - 1 - (left + 1);
            let low = bits.peek(width - 1) as i32;
            let value = if low < short {
                bits.skip(width - 1);
                low
            } else {
                let value = bits.peek(width) as i32;
                bits.skip(width);
                if value >= 1 << (width - 1) { value - short } else { value }
            };
            let share = value - 1;
            left -= share.abs();
            shares.push(share as i16);
            // After a symbol that does not occur stands how many more do not.
            let mut more = if share == 0 { 3 } else { 0 };
            while more == 3 && shares.len() <= MOST_SYMBOLS {
                more = bits.peek(2) as usize;
                bits.skip(2);
                shares.resize(shares.len() + more, 0);
            }
            if shares.len() > MOST_SYMBOLS {
                return None;
            }
        }
        *bytes = bits.rest().filter(|_| left == 0)?;
        Table::new(accuracy, &shares)
    }
}

/// A state of a table that follows a stream.
pub(super) struct States<'a> {
    table: &'a Table,
    state: State,
}

impl<'a> States<'a> {
    pub(super) fn new(table: &'a Table, bits: &mut Backward<'_>) -> Option<States<'a>> {
        let first = bits.read(table.accuracy)?;
        Some(States { table, state: table.states[first as usize] })
    }

    pub(super) fn symbol(&self) -> u8 {
        self.state.symbol
    }

    /// Goes on to the next state; `None` where the stream has not enough bits.
    pub(super) fn step(&mut self, bits: &mut Backward<'_>) -> Option<()> {
        let more = bits.read(self.state.bits)?;
        self.state = self.table.states[usize::from(self.state.base) + more as usize];
        Some(())
    }
}
