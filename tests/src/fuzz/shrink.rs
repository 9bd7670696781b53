//! Shrinks a failing case.

use std::time::{Duration, Instant};

use super::Case;

/// Removes edits, then lines, then characters, as long as the case still fails and time is left.
pub fn shrink(case: &Case, budget: Duration, fails: impl Fn(&Case) -> bool) -> Case {
    let end = Instant::now() + budget;
    let fails = |case: &Case| Instant::now() < end && fails(case);
    let mut best = case.clone();
    if best.target.is_some() {
        let candidate = Case { target: None, ..best.clone() };
        if fails(&candidate) {
            best = candidate;
        }
    }
    let mut index = 0;
    while best.texts.len() > 1 && index < best.texts.len() {
        let mut candidate = best.clone();
        candidate.texts.remove(index);
        if fails(&candidate) {
            best = candidate;
        } else {
            index += 1;
        }
    }
    for pieces in [lines as fn(&str) -> Vec<String>, characters] {
        for index in 0..best.texts.len() {
            shrink_text(&mut best, index, pieces, &fails);
        }
    }
    best
}

fn lines(text: &str) -> Vec<String> {
    text.split_inclusive('\n').map(str::to_owned).collect()
}

fn characters(text: &str) -> Vec<String> {
    text.chars().map(String::from).collect()
}

/// Removes runs of pieces, long runs first. The same text is removed from later edits, so that they stay small.
fn shrink_text(
    best: &mut Case,
    index: usize,
    pieces: fn(&str) -> Vec<String>,
    fails: &impl Fn(&Case) -> bool,
) {
    let mut size = pieces(&best.texts[index]).len().div_ceil(2);
    while size > 0 {
        let mut at = 0;
        loop {
            let all = pieces(&best.texts[index]);
            if at >= all.len() {
                break;
            }
            let run = all[at..all.len().min(at + size)].concat();
            let mut candidate = best.clone();
            candidate.texts[index] = [&all[..at], &all[all.len().min(at + size)..]].concat().concat();
            let alone = candidate.clone();
            for later in &mut candidate.texts[index + 1..] {
                *later = later.replacen(&run, "", 1);
            }
            if fails(&candidate) {
                *best = candidate;
            } else if best.texts.len() > 1 && fails(&alone) {
                *best = alone;
            } else {
                at += size;
            }
        }
        size /= 2;
    }
}
