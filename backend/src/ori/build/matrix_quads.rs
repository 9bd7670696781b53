//! `mma.m8n8k4` with `.f16`: four products of 8 by 8 by 4 in a warp. Four neighboring threads of the lower half of the
//! warp and the corresponding four of the upper half compute each of them.
//!
//! On targets without this instruction, the threads exchange elements by shuffles and compute in `.f32`. The order of
//! the additions is that of ptxas.

use super::integer::lut;
use super::memory::elements;
use super::special::sr;
use super::{Lowering, Result, Statement};
use crate::ori::ir::{Dst, File, Inst, Src};
use crate::ori::op::{HalfRead, ICmp, Op, QuadStep, QuadTypes, Round, ShflMode};
use ptx_isa::{Mod, ScalarType};

/// The depth of a product, K.
const DEPTH: usize = 4;
/// The distance between corresponding threads of the lower and the upper half of the warp.
const UPPER: u32 = 16;
const STEPS: [QuadStep; 4] = [QuadStep::First, QuadStep::Second, QuadStep::Third, QuadStep::Fourth];

/// The elements of one row of A or column of B, as `.f32`.
type Line = [Src; DEPTH];

/// Where a thread finds the elements that other threads hold.
struct Holder {
    lane: Src,
    /// The bit offset of the half of a register that this thread takes. It depends on the parity of the lane.
    half: Src,
    /// Whether this is one of the last two threads of its group of four.
    late: Src,
}

impl<'a> Lowering<'a> {
    pub(super) fn multiply_quads(&mut self, instr: &Statement<'a>) -> Result<()> {
        let layouts = instr.take_each(&[(Mod::Row, true), (Mod::Col, false)]);
        let &[a_rows, b_rows] = &layouts[..] else { return self.malformed("a product without its layouts") };
        let types = match (self.type_of(instr, 0)?, self.type_of(instr, 3)?) {
            (ScalarType::F16, ScalarType::F16) => QuadTypes::Halves,
            (ScalarType::F32, ScalarType::F16) => QuadTypes::Mixed,
            _ => QuadTypes::Singles,
        };
        let mut words = Vec::new();
        for i in 1..=3 {
            words.push(self.fragment_words(elements(instr, self.operand(instr, i)?), 32)?);
        }
        let (a, b, c) = (&words[0], &words[1], &words[2]);
        self.join_all();
        let steps = if types == QuadTypes::Halves { 2 } else { 4 };
        let quad = |step| Op::HmmaQuad { types, step, a_rows, b_rows };
        let sums = if self.encodes(&quad(QuadStep::First)) {
            let (a, b) = (self.pack(a), self.pack(b));
            let mut sums = Vec::new();
            for (i, step) in STEPS.into_iter().enumerate().take(steps) {
                // With an `.f16` accumulator and `.f32` results, two steps share its registers.
                let from = if types == QuadTypes::Mixed { i & !1 } else { 2 * i };
                let start = self.pack(&c[from..from + 2]);
                let sum = self.wide(2, quad(step), &[a, b, start]);
                sums.extend(self.pair(sum));
            }
            sums
        } else {
            self.multiply_quads_by_floats(types, (a_rows, b_rows), [a, b, c])
        };
        self.write_product(instr, &sums, false)
    }

    fn multiply_quads_by_floats(
        &mut self,
        types: QuadTypes,
        (a_rows, b_rows): (bool, bool),
        [a, b, c]: [&[Src]; 3],
    ) -> Vec<Src> {
        let lane = self.s2r(sr::LANE_ID);
        let odd = self.masked(lane, 1);
        let half = self.shift_left(odd, Src::imm(4));
        let late = self.masked(lane, 2);
        let late = self.compare(ICmp::Ne, false, late, Src::ZERO);
        let place = Holder { lane, half, late };
        if types == QuadTypes::Halves {
            let row = self.quad_row(&place, a_rows, a);
            let columns = self.quad_columns(&place, b_rows, b);
            let starts: Vec<Src> = c.iter().flat_map(|word| self.halves_as_floats(*word)).collect();
            let sums: Vec<Src> = (columns.iter().zip(starts))
                .map(|(column, start)| {
                    let [low, high] = [0, 2].map(|k| {
                        let first = self.fmul(false, row[k], column[k]);
                        self.ffma(Round::Rn, row[k + 1], column[k + 1], first)
                    });
                    let sum = self.fadd(false, start, low);
                    self.fadd(false, sum, high)
                })
                .collect();
            return sums.chunks(2).map(|pair| self.float_halves(pair)).collect();
        }
        let rows = self.quad_row_pair(&place, a_rows, a);
        let columns = self.quad_four_columns(&place, b_rows, b);
        let starts = match types {
            QuadTypes::Mixed => self.quad_starts(&place, c),
            _ => c.to_vec(),
        };
        (0..8)
            .map(|i| {
                let (row, column) = (&rows[i / 2 % 2], &columns[i / 4 * 2 + i % 2]);
                let product =
                    row.iter().zip(column).fold(Src::ZERO, |sum, (x, y)| self.ffma(Round::Rn, *x, *y, sum));
                self.fadd(false, product, starts[i])
            })
            .collect()
    }

    /// This thread's row of A.
    fn quad_row(&mut self, place: &Holder, by_row: bool, words: &[Src]) -> Line {
        if by_row {
            return self.quad_line(words);
        }
        // Thread k of the four holds element k of four rows.
        let first = self.masked(place.lane, 0x1c);
        std::array::from_fn(|k| {
            let from = self.add(first, Src::imm(k as u32));
            let [low, high] = [words[0], words[1]].map(|word| self.word_of(word, from));
            let word = self.select(place.late, high, low, 1);
            self.own_half(place, word)
        })
    }

    /// The rows of A for which the thread computes results: its own row or the one before, and the second row after
    /// that.
    fn quad_row_pair(&mut self, place: &Holder, by_row: bool, words: &[Src]) -> [Line; 2] {
        if by_row {
            let first = self.masked(place.lane, 0x1d);
            return [0, 2].map(|row| {
                let from = self.add(first, Src::imm(row));
                let words = [words[0], words[1]].map(|word| self.word_of(word, from));
                self.quad_line(&words)
            });
        }
        let first = self.masked(place.lane, 0x1c);
        let mut rows = [[Src::ZERO; DEPTH]; 2];
        for k in 0..DEPTH {
            let from = self.add(first, Src::imm(k as u32));
            for (row, word) in rows.iter_mut().zip(words) {
                let word = self.word_of(*word, from);
                row[k] = self.own_half(place, word);
            }
        }
        rows
    }

    /// All columns of B.
    fn quad_columns(&mut self, place: &Holder, by_row: bool, words: &[Src]) -> Vec<Line> {
        let first = self.masked(place.lane, 0xc);
        let mut lines = Vec::new();
        for upper in [0, UPPER] {
            let mut four = [[Src::ZERO; DEPTH]; 4];
            for k in 0..DEPTH {
                let from = self.add(first, Src::imm(upper + k as u32));
                let line = [words[0], words[1]].map(|word| self.word_of(word, from));
                let line = self.quad_line(&line);
                if by_row {
                    // Element k of four columns.
                    four.iter_mut().zip(line).for_each(|(column, element)| column[k] = element);
                } else {
                    four[k] = line;
                }
            }
            lines.extend(four);
        }
        lines
    }

    /// The columns of B for which the thread computes results: two neighbors among the first four, and two among the
    /// last four.
    fn quad_four_columns(&mut self, place: &Holder, by_row: bool, words: &[Src]) -> Vec<Line> {
        let mut lines = Vec::new();
        if !by_row {
            let first = self.masked(place.lane, 0xe);
            for column in [0, 1, UPPER, UPPER + 1] {
                let from = self.add(first, Src::imm(column));
                let line = [words[0], words[1]].map(|word| self.word_of(word, from));
                lines.push(self.quad_line(&line));
            }
            return lines;
        }
        let first = self.masked(place.lane, 0xc);
        for upper in [0, UPPER] {
            let mut two = [[Src::ZERO; DEPTH]; 2];
            for k in 0..DEPTH {
                let from = self.add(first, Src::imm(upper + k as u32));
                let [low, high] = [words[0], words[1]].map(|word| self.word_of(word, from));
                let word = self.select(place.late, high, low, 1);
                let pair = self.halves_as_floats(word);
                two.iter_mut().zip(pair).for_each(|(column, element)| column[k] = element);
            }
            lines.extend(two);
        }
        lines
    }

    /// The initial accumulators of `.f32` results if C is `.f16`: each thread holds a row of eight.
    fn quad_starts(&mut self, place: &Holder, words: &[Src]) -> Vec<Src> {
        let first = self.masked(place.lane, 0x1d);
        let mut starts = vec![Src::ZERO; 8];
        for row in 0..2 {
            let from = self.add(first, Src::imm(2 * row as u32));
            for side in 0..2 {
                let [low, high] = [0, 1].map(|i| self.word_of(words[2 * side + i], from));
                let word = self.select(place.late, high, low, 1);
                let pair = self.halves_as_floats(word);
                starts[4 * side + 2 * row..][..2].copy_from_slice(&pair);
            }
        }
        starts
    }

    /// The value of a register in another thread of the warp.
    fn word_of(&mut self, word: Src, lane: Src) -> Src {
        let word = self.in_register(word);
        self.shuffle_word(word, lane)
    }

    fn quad_line(&mut self, words: &[Src]) -> Line {
        let [low, high] = [words[0], words[1]].map(|word| self.halves_as_floats(word));
        [low[0], low[1], high[0], high[1]]
    }

    fn halves_as_floats(&mut self, word: Src) -> [Src; 2] {
        let high = self.shift_right(word, 16, false);
        [word, high].map(|half| self.half_as_float(half))
    }

    fn own_half(&mut self, place: &Holder, word: Src) -> Src {
        let half = self.shift_right_by(word, place.half, false);
        self.half_as_float(half)
    }

    /// The low half, converted from `.f16` to `.f32`.
    fn half_as_float(&mut self, word: Src) -> Src {
        let op = Op::Hadd2 { bf16: false, ftz: false, sat: false, f32: true, half: HalfRead::Own };
        self.reg(op, &[Src::ZERO.neg(), word])
    }

    /// `word & mask`.
    pub(super) fn masked(&mut self, word: Src, mask: u32) -> Src {
        self.lop3(lut::A & lut::B, word, Src::imm(mask), Src::ZERO)
    }

    /// `SHFL.IDX`: the value in the given lane of the warp.
    pub(super) fn shuffle_word(&mut self, word: Src, lane: Src) -> Src {
        let value = self.new_value(File::R, 1);
        let srcs = [word, lane, Src::imm(0x1f)];
        self.push(Inst::new(
            Op::Shfl { mode: ShflMode::Idx },
            &[Dst::Value(value), Dst::Sink],
            &srcs,
            self.src,
        ));
        value.into()
    }
}
