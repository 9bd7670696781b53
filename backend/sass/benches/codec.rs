//! How fast the four walkers are, on the recorded instructions of two generations.
//!
//! `cargo bench -p sass`; throughput is in instructions.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use sass::{Inst, Sm};
use std::hint::black_box;

/// The instructions of a file of recorded ones: address, word, text.
fn recorded(text: &'static str, sm: Sm) -> Vec<(u64, u128, &'static str)> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let parsed = lines.map(|line| {
        let mut parts = line.splitn(3, ' ');
        let mut next = || parts.next().expect("three columns");
        let address = u64::from_str_radix(next(), 16).expect("an address");
        (address, u128::from_str_radix(next(), 16).expect("a word"), next())
    });
    parsed.filter(|&(_, word, _)| sass::decode(sm, word).is_some()).collect()
}

fn codec(c: &mut Criterion) {
    let files = [
        (Sm(80), include_str!("../tests/recorded/sm_80.txt")),
        (Sm(90), include_str!("../tests/recorded/sm_90.txt")),
    ];
    for (sm, text) in files {
        let samples = recorded(text, sm);
        let insts: Vec<Inst> = samples.iter().filter_map(|&(_, word, _)| sass::decode(sm, word)).collect();
        let mut group = c.benchmark_group(format!("sm_{}", sm.0));
        group.throughput(Throughput::Elements(samples.len() as u64));
        group.bench_function("decode", |b| {
            b.iter(|| {
                for (_, word, _) in &samples {
                    black_box(sass::decode(sm, black_box(*word)));
                }
            });
        });
        group.bench_function("encode", |b| {
            b.iter(|| {
                for inst in &insts {
                    let _ = black_box(sass::encode(sm, black_box(inst)));
                }
            });
        });
        group.bench_function("print", |b| {
            let mut out = String::new();
            b.iter(|| {
                out.clear();
                for (inst, (address, ..)) in insts.iter().zip(&samples) {
                    sass::print_to(&mut out, sm, black_box(inst), *address);
                }
            });
        });
        group.bench_function("parse", |b| {
            b.iter(|| {
                for (address, _, text) in &samples {
                    let _ = black_box(sass::parse(sm, black_box(text), *address));
                }
            });
        });
        group.finish();
    }
}

criterion_group!(benches, codec);
criterion_main!(benches);
