//! The speed of encoding, decoding, printing and parsing, with the recorded instructions of two generations.
//!
//! `cargo bench -p sass`; throughput is in instructions.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use sass::{Inst, Sm};
use std::hint::black_box;

#[path = "../tests/recorded/mod.rs"]
mod recorded;

fn codec(c: &mut Criterion) {
    for sm in [Sm(80), Sm(90)] {
        let mut samples = recorded::samples();
        samples.retain(|sample| sample.sm == sm && sass::decode(sm, sample.word).is_some());
        let insts: Vec<Inst> = samples.iter().filter_map(|sample| sass::decode(sm, sample.word)).collect();
        let mut group = c.benchmark_group(format!("sm_{}", sm.0));
        group.throughput(Throughput::Elements(samples.len() as u64));
        group.bench_function("decode", |b| {
            b.iter(|| {
                for sample in &samples {
                    black_box(sass::decode(sm, black_box(sample.word)));
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
                for (inst, sample) in insts.iter().zip(&samples) {
                    sass::print_to(&mut out, sm, black_box(inst), sample.address);
                }
            });
        });
        group.bench_function("parse", |b| {
            b.iter(|| {
                for sample in &samples {
                    let _ = black_box(sass::parse(sm, black_box(&sample.text), sample.address));
                }
            });
        });
        group.finish();
    }
}

criterion_group!(benches, codec);
criterion_main!(benches);
