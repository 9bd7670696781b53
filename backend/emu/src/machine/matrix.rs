//! Matrix products, and copies of matrices from and to shared memory.

use super::compute::rounding;
use super::{Block, Result, WARP};
use crate::launch::FaultKind;
use crate::matrix::{
    Element, Fragment, Product, Sum, bytes, half_place, spread, stored_bytes, transpose, transposed_bytes,
    widen,
};
use crate::memory::Space;
use crate::narrow::{E2M1, Narrow};
use crate::quads;
use crate::sparse::{Metadata, Scales, Selected};
use sass::{Field, Inst};

/// The mnemonics of matrix instructions, which a whole warp executes.
pub(super) const MNEMONICS: &[&str] =
    &["HMMA", "IMMA", "BMMA", "DMMA", "QMMA", "OMMA", "LDSM", "STSM", "MOVM"];

fn text_of(inst: &Inst, field: Field) -> &'static str {
    inst.text(field).unwrap_or("")
}

/// The product that an instruction computes. `None` if the emulator does not execute it.
fn product(inst: &Inst) -> Option<Product> {
    let text = |field| text_of(inst, field);
    let half = if text(Field::SrcType) == ".BF16" { Element::Bf16 } else { Element::F16 };
    let integer = |field| match text(field) {
        ".U8" => Some(Element::Integer { bits: 8, signed: false }),
        ".S8" => Some(Element::Integer { bits: 8, signed: true }),
        ".U4" => Some(Element::Integer { bits: 4, signed: false }),
        ".S4" => Some(Element::Integer { bits: 4, signed: true }),
        _ => None,
    };
    let float_sum = if text(Field::Type) == ".F16" { Sum::F16 } else { Sum::F32 };
    let narrow = |field| Narrow::named(&text(field).strip_prefix('.')?.to_ascii_lowercase());
    let (a, b, sum) = match inst.form().name {
        "HMMA" | "HMMA.SP" => (half, half, float_sum),
        "QMMA" | "QMMA.SP" | "QMMA.SF" | "QMMA.SF.SP" => {
            let [a, b] = [Field::SrcType, Field::SrcType2].map(narrow);
            // Products with scale factors have single-precision accumulators, without saying so in their form.
            let scaled = inst.form().name.contains(".SF");
            (Element::Narrow(a?), Element::Narrow(b?), if scaled { Sum::F32 } else { float_sum })
        }
        "OMMA.SF" | "OMMA.SF.SP" => (Element::Nibble(E2M1), Element::Nibble(E2M1), Sum::F32),
        "HMMA.TF32" | "HMMA.SP.TF32" => (Element::Tf32, Element::Tf32, float_sum),
        "IMMA" | "IMMA.S4" | "IMMA.SP" | "IMMA.SP.S4" => {
            let saturates = inst.get(Field::Sat) == Some(1);
            (integer(Field::SrcType)?, integer(Field::SrcType2)?, Sum::S32(saturates))
        }
        "BMMA" => {
            let bit = Element::Integer { bits: 1, signed: false };
            (bit, bit, Sum::Bits { and: inst.get(Field::Op) == Some(1) })
        }
        "DMMA" => (Element::F64, Element::F64, Sum::F64(rounding(inst.get(Field::Round).unwrap_or(0)))),
        _ => return None,
    };
    let (rows, depth) = match text(Field::Size) {
        "" if inst.form().name == "QMMA.SF" => (16, 32),
        "" if matches!(inst.form().name, "QMMA.SF.SP" | "OMMA.SF") => (16, 64),
        "" if inst.form().name == "OMMA.SF.SP" => (16, 128),
        ".1684" | ".16x8x4" => (16, 4),
        ".1688" | ".16x8x8" => (16, 8),
        ".16816" | ".16x8x16" => (16, 16),
        ".16832" => (16, 32),
        ".16864" => (16, 64),
        ".168128" => (16, 128),
        ".168256" => (16, 256),
        ".8816" => (8, 16),
        ".8832" => (8, 32),
        ".8864" => (8, 64),
        ".88128" => (8, 128),
        "" | ".8x8x4" if matches!(sum, Sum::F64(_)) => (8, 4),
        _ => return None,
    };
    Some(Product { rows, depth, a, b, sum })
}

impl Block<'_> {
    fn fragment(&self, w: usize, first: u64, count: usize) -> Fragment {
        let registers = &self.warps[w].registers;
        (0..count)
            .map(|i| {
                if first == 255 {
                    return [0; WARP];
                }
                let start = (first as usize + i) * WARP;
                registers[start..start + WARP].try_into().unwrap_or([0; WARP])
            })
            .collect()
    }

    fn put_fragment(&mut self, w: usize, first: u8, fragment: &Fragment) {
        for (i, register) in fragment.iter().enumerate().filter(|_| first != 255) {
            let start = (usize::from(first) + i) * WARP;
            self.warps[w].registers[start..start + WARP].copy_from_slice(register);
        }
    }

    pub(super) fn matrix(&mut self, w: usize, active: u32, at: u32, name: &str) -> Result<()> {
        let machine = self.machine;
        let step = &machine.code[at as usize];
        let inst = &step.inst;
        if active != u32::MAX {
            return Err(FaultKind::Malformed(format!("{name} without some threads of the warp")));
        }
        let unsupported = || Err(FaultKind::Unsupported(sass::print(machine.sm, inst, 0)));
        let register = |field| inst.get(field).unwrap_or(255);
        let modified = [Field::NegA, Field::NegB, Field::NegC, Field::AbsA, Field::AbsB, Field::AbsC];
        if modified.iter().any(|&field| inst.get(field) == Some(1)) {
            return unsupported();
        }
        match name {
            "MOVM" => {
                let source = self.fragment(w, register(Field::Ra), 1);
                let moved = match (inst.text(Field::Type).unwrap_or(".16"), inst.text(Field::Mode)) {
                    (".16", Some(".MT88")) => vec![transpose(&source[0])],
                    (".U4TO8", Some(".M832")) => widen(&source[0]),
                    _ => return unsupported(),
                };
                self.put_fragment(w, step.rd, &moved);
            }
            "HMMA" if inst.form().name == "HMMA.884" => {
                let result = text_of(inst, Field::Type);
                let product = quads::Product {
                    by_row: text_of(inst, Field::LayoutA) == ".ROW",
                    by_column: text_of(inst, Field::LayoutB) == ".COL",
                    half_result: result == ".F16.F16",
                    half_start: result != ".F32.F32",
                };
                if inst.get(Field::Sat) == Some(1) {
                    return unsupported();
                }
                let [a, b, c] =
                    [Field::Ra, Field::Rb, Field::Rc].map(|field| self.fragment(w, register(field), 2));
                let step_number = inst.get(Field::Mode).unwrap_or(0) as usize;
                self.put_fragment(w, step.rd, &product.step(step_number, &a, &b, &c));
            }
            "LDSM" | "STSM" => return self.move_matrices(w, at, name == "STSM"),
            _ => {
                let Some(product) = product(inst) else { return unsupported() };
                let form = inst.form().name;
                let sparse = form.contains(".SP");
                let words = |element: Element, across: usize| {
                    across * product.depth * element.bits() as usize / 32 / WARP
                };
                let across = if sparse { product.rows / 2 } else { product.rows };
                let a = self.fragment(w, register(Field::Ra), words(product.a, across));
                let b = self.fragment(w, register(Field::Rb), words(product.b, 8));
                let c = self.fragment(w, register(Field::Rc), product.result_registers());
                let held = self.fragment(w, register(Field::Re), 2);
                let selector = inst.get(Field::Imm2).unwrap_or(0) as usize;
                let metadata = sparse.then_some(Metadata { register: &held[0], selector });
                let ordered = machine.target.ordered_metadata
                    && matches!(product.a, Element::F16 | Element::Integer { .. });
                if ordered && metadata.is_some_and(|held| !held.is_ordered(&product)) {
                    return Err(FaultKind::Malformed("metadata that are not in order".into()));
                }
                let result = if form.contains(".SF") {
                    let second = self.fragment(w, register(Field::Rd2), 1);
                    // The layout of the uniform register is as in code of ptxas: two bits for a byte, one or two for
                    // threads.
                    let bits =
                        self.warps[w].uniform[usize::from(inst.get(Field::Ur).unwrap_or(0) as u8)] as usize;
                    let first = &held[usize::from(sparse)];
                    let scales = Scales {
                        count: match (product.a, inst.get(Field::Scale)) {
                            (Element::Nibble(_), Some(0)) => 4,
                            (Element::Nibble(_), _) => 2,
                            _ => 1,
                        },
                        powers: inst.text(Field::Mode) != Some(".UE4M3"),
                        a: Selected { register: first, byte: bits & 3, thread: bits >> 2 & 1 },
                        b: Selected { register: &second[0], byte: bits >> 3 & 3, thread: bits >> 5 & 3 },
                    };
                    product.compute_scaled([&a, &b, &c], metadata.as_ref(), &scales)
                } else if let Some(metadata) = metadata {
                    product.compute_sparse([&a, &b, &c], &metadata)
                } else {
                    product.compute(&a, &b, &c)
                };
                self.put_fragment(w, step.rd, &result);
            }
        }
        Ok(())
    }

    /// Loads or stores one, two or four matrices. Each lane gives the address of a row.
    fn move_matrices(&mut self, w: usize, at: u32, stores: bool) -> Result<()> {
        let inst = &self.machine.code[at as usize].inst;
        let step = &self.machine.code[at as usize];
        let unsupported = || FaultKind::Unsupported(sass::print(self.machine.sm, inst, 0));
        let count = [1, 2, 4][inst.get(Field::Size).unwrap_or(0).min(2) as usize];
        let data = inst.get(Field::Rb).or(inst.get(Field::Rc)).unwrap_or(255);
        let bits = match inst.text(Field::Type) {
            None | Some(".16") => 16,
            Some(".8") => 8,
            Some(".U6x16P32TO8") => 6,
            Some(".U4x16P64TO8") => 4,
            _ => return Err(unsupported()),
        };
        // The number of rows of a matrix in memory, and the number of its registers.
        let (height, each) = if inst.text(Field::Mode) == Some(".MT1616") { (16, 2) } else { (8, 1) };
        let mut fragment = if stores { self.fragment(w, data, count) } else { Vec::new() };
        for matrix in 0..count {
            let mut rows = [[0; 16]; 16];
            if stores {
                let register = &fragment[matrix];
                match (bits, inst.text(Field::Mode)) {
                    (16, Some(".M88")) => store_halves(register, &mut rows),
                    (16, Some(".MT88")) => store_halves(&transpose(register), &mut rows),
                    (8, Some(".MT168")) => rows[..8].copy_from_slice(&stored_bytes(register)),
                    _ => return Err(unsupported()),
                }
            }
            for (row, bytes) in rows[..height].iter_mut().enumerate() {
                let address = self.address(w, height * matrix + row, at, true)?;
                let mut view = self.view(w, 0);
                let place = view.slice(Space::Shared, address, 16)?;
                if stores {
                    place.copy_from_slice(bytes);
                } else {
                    bytes.copy_from_slice(place);
                }
            }
            if !stores {
                let unpacked = rows.map(|row| if bits < 8 { spread(row, bits) } else { row });
                fragment.append(&mut match (bits, inst.text(Field::Mode)) {
                    (16, Some(".M88")) => vec![load_halves(&rows)],
                    (16, Some(".MT88")) => vec![transpose(&load_halves(&rows))],
                    (4 | 6 | 8, Some(".M816")) => vec![bytes(&unpacked)],
                    (4 | 6 | 8, Some(".MT1616")) => transposed_bytes(&unpacked),
                    _ => return Err(unsupported()),
                });
            }
        }
        debug_assert_eq!(fragment.len(), count * each, "as many registers as the table says");
        if !stores {
            self.put_fragment(w, step.rd, &fragment);
        }
        Ok(())
    }
}

/// Eight rows of eight halves.
fn load_halves(rows: &[[u8; 16]; 16]) -> [u32; WARP] {
    let mut register = [0; WARP];
    for (row, column) in (0..8).flat_map(|row| (0..8).map(move |column| (row, column))) {
        let (lane, half) = half_place(row, column);
        let place = &rows[row][2 * column..];
        register[lane] |= u32::from(u16::from_le_bytes([place[0], place[1]])) << (16 * half);
    }
    register
}

fn store_halves(register: &[u32; WARP], rows: &mut [[u8; 16]; 16]) {
    for (row, column) in (0..8).flat_map(|row| (0..8).map(move |column| (row, column))) {
        let (lane, half) = half_place(row, column);
        let value = (register[lane] >> (16 * half)) as u16;
        rows[row][2 * column..2 * column + 2].copy_from_slice(&value.to_le_bytes());
    }
}
