//! Finds latencies in our tables that are shorter than every distance in code of NVIDIA's compiler:
//! `distances CUBINS…`.
//!
//! For every kind of producer and every instruction that reads its result, it finds the shortest distance in
//! straight-line code, the number of its occurrences, and the distance in the tables. It lists pairs whose shortest
//! distance is longer than the table's. Often these cubins have no tight case of such a pair; sometimes the table is
//! wrong.

#![expect(clippy::print_stdout, reason = "a tool for a terminal")]

use object::{Object, ObjectSection};
use sass::latency::{self, UNKNOWN};
use sass::{Inst, RegFile, RegUse, Sm};
use std::collections::BTreeMap;

/// The number of issue cycles within which producers are searched.
const FAR: u32 = 40;

/// Producer, consumer, register file and role.
type Pair = (u8, String, String, String);

/// The shortest distance, the number of occurrences, the tables' distance, and an example.
type Seen = (u32, usize, u8, String);

fn main() {
    let mut pairs: BTreeMap<Pair, Seen> = BTreeMap::new();
    for name in std::env::args().skip(1) {
        let Ok(bytes) = std::fs::read(&name) else { continue };
        let Ok(file) = object::File::parse(&*bytes) else { continue };
        let object::FileFlags::Elf { e_flags, .. } = file.flags() else { continue };
        let sm = Sm((e_flags.0 >> 8) as u8);
        for section in file.sections() {
            let (Ok(section_name), Ok(data)) = (section.name(), section.data()) else { continue };
            if section_name.starts_with(".text.") {
                let words =
                    data.chunks_exact(16).map(|w| u128::from_le_bytes(w.try_into().expect("16 bytes")));
                let code: Vec<Option<Inst>> = words.map(|w| sass::decode(sm, w)).collect();
                walk(sm, &code, &mut pairs);
            }
        }
    }
    let mut suspects: Vec<_> =
        pairs.iter().filter(|(_, (least, _, told, _))| *least > u32::from(*told)).collect();
    suspects.sort_by_key(|(pair, (_, count, ..))| (pair.0, std::cmp::Reverse(*count)));
    for ((sm, producer, consumer, how), (least, count, told, text)) in suspects {
        println!(
            "sm_{sm} {producer:16} {consumer:16} {how:14} least {least:3} in {count:6}, table {told:3}  {text}"
        );
    }
}

/// Finds the pairs in straight-line code, which ends at branches and branch targets.
fn walk(sm: Sm, code: &[Option<Inst>], pairs: &mut BTreeMap<Pair, Seen>) {
    let targets: Vec<u64> = code
        .iter()
        .enumerate()
        .filter_map(|(at, inst)| inst.as_ref()?.target(at as u64 * sass::INST_BYTES))
        .collect();
    let mut recent: Vec<(u32, &Inst)> = Vec::new();
    let mut cycle = 0;
    for (at, inst) in code.iter().enumerate() {
        if targets.contains(&(at as u64 * sass::INST_BYTES)) {
            recent.clear();
        }
        let Some(inst) = inst else {
            recent.clear();
            continue;
        };
        for read in inst.reads(sm) {
            let Some((when, earlier, def)) = last(&recent, |inst| inst.writes(sm), &read) else { continue };
            let told = latency::raw(sm, earlier, &def, inst, &read);
            if read.file != RegFile::B {
                let how = format!("{:?} {:?}", read.file, read.role);
                note(pairs, sm, (earlier, inst), how, cycle - when, told);
            }
        }
        for over in inst.writes(sm) {
            if let Some((when, earlier, def)) = last(&recent, |inst| inst.writes(sm), &over) {
                let told = latency::waw(sm, earlier, &def, inst, &over);
                note(pairs, sm, (earlier, inst), format!("{:?} again", over.file), cycle - when, told);
            }
            let reader = last(&recent, |inst| inst.reads(sm), &over);
            if let Some((when, earlier, read)) = reader.filter(|r| r.1.control.read_sb.is_none()) {
                let told = latency::war(sm, earlier, &read, inst);
                note(pairs, sm, (earlier, inst), format!("{:?} over", over.file), cycle - when, told);
            }
        }
        recent.push((cycle, inst));
        recent.retain(|(when, _)| cycle - when < FAR);
        cycle += u32::from(inst.control.stall).max(1);
    }
}

/// The last instruction that uses a register of `of` in the given way: the time of its issue, and the operand.
fn last<'i, U: Iterator<Item = RegUse>>(
    recent: &[(u32, &'i Inst)],
    uses: impl Fn(&'i Inst) -> U,
    of: &RegUse,
) -> Option<(u32, &'i Inst, RegUse)> {
    recent
        .iter()
        .rev()
        .find_map(|&(when, inst)| Some((when, inst, uses(inst).find(|used| used.overlaps(of))?)))
}

/// Counts a pair whose second instruction issued the given number of cycles after the first.
fn note(
    pairs: &mut BTreeMap<Pair, Seen>,
    sm: Sm,
    (first, second): (&Inst, &Inst),
    how: String,
    distance: u32,
    told: u8,
) {
    if told == UNKNOWN {
        return;
    }
    let key = (sm.0, first.form().name.to_owned(), second.form().name.to_owned(), how);
    let seen = pairs.entry(key).or_insert_with(|| (u32::MAX, 0, told, String::new()));
    seen.1 += 1;
    seen.2 = seen.2.max(told);
    if distance < seen.0 {
        seen.0 = distance;
        seen.3 = format!("{} | {}", sass::print(sm, first, 0), sass::print(sm, second, 0));
    }
}
