//! The speed of each stage, for the kernels of `tests/kernels` repeated to a megabyte.
//!
//! `cargo bench -p conformance`. Throughput is in bytes of PTX, or in instructions for machine code.

use conformance::sized::module;
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use ptx_analysis::{Database, ide};
use std::hint::black_box;

/// The size of the module.
const SIZE: usize = 1 << 20;

fn syntax(c: &mut Criterion) {
    let text = module(SIZE);
    let mut group = c.benchmark_group("syntax");
    group.throughput(Throughput::Bytes(text.len() as u64));
    group.bench_function("split", |b| b.iter(|| ptx_syntax::split(black_box(&text))));
    group.bench_function("lex", |b| b.iter(|| ptx_syntax::lex(black_box(&text))));
    group.bench_function("parse", |b| b.iter(|| ptx_syntax::parse_file(black_box(&text))));
    group.finish();
}

fn check(c: &mut Criterion) {
    let text = module(SIZE);
    let mut group = c.benchmark_group("check");
    group.throughput(Throughput::Bytes(text.len() as u64)).sample_size(10);
    group.bench_function("cold", |b| {
        b.iter(|| {
            let db = Database::default();
            let file = db.add_file(text.as_str());
            ide::diagnostics(&db, file)
        })
    });
    group.bench_function("refuse", |b| {
        // What `ptx-check` does with a file that has an error in its last line.
        let wrong = ".entry last() {\n.reg .b32 %r<2>; .reg .f32 %f1;\nadd.s32 %r1, %r1, %f1;\n}\n";
        let text = format!("{text}{wrong}");
        b.iter(|| {
            let db = Database::default();
            let file = db.add_frozen_file(text.as_str());
            assert_eq!(ide::diagnostics(&db, file).len(), 1);
        })
    });
    group.bench_function("after an edit", |b| {
        let mut db = Database::default();
        let file = db.add_file(text.as_str());
        ide::diagnostics(&db, file);
        let middle = text[text.len() / 2..].find("add.rn").expect("an instruction") + text.len() / 2;
        let edited = format!("{}x{}", &text[..middle], &text[middle..]);
        let mut typed = false;
        b.iter(|| {
            typed = !typed;
            db.set_text(file, if typed { edited.as_str() } else { text.as_str() });
            ide::diagnostics(&db, file)
        })
    });
    group.finish();
}

fn compile(c: &mut Criterion) {
    let text = include_str!("../kernels/matmul.ptx");
    let mut group = c.benchmark_group("compile");
    group.throughput(Throughput::Bytes(text.len() as u64));
    group.bench_function("matmul", |b| {
        b.iter_batched(
            Database::default,
            |db| {
                let file = db.add_file(text);
                ide::function_resources(&db, file)
            },
            BatchSize::SmallInput,
        )
    });
    group.finish();
}

/// The words of a function with a mix of ordinary instructions.
fn words() -> Vec<u128> {
    let db = Database::default();
    let file = db.add_file(include_str!("../kernels/matmul.ptx"));
    let item = ptx_analysis::compile::functions(&db, file).next().expect("a function");
    let compiled = ptx_analysis::compile::compile_function(&db, item).as_deref().expect("no errors");
    compiled.as_ref().expect("it compiles").code.to_vec()
}

fn machine_code(c: &mut Criterion) {
    let sm = sass::Sm(75);
    let words = words();
    let insts: Vec<_> = words.iter().map(|&w| sass::decode(sm, w).expect("our own code decodes")).collect();
    let mut group = c.benchmark_group("sass");
    group.throughput(Throughput::Elements(words.len() as u64));
    group.bench_function("decode", |b| {
        b.iter(|| words.iter().filter(|&&w| sass::decode(sm, black_box(w)).is_some()).count())
    });
    group.bench_function("encode", |b| {
        b.iter(|| insts.iter().filter(|i| sass::encode(sm, black_box(i)).is_ok()).count())
    });
    group.bench_function("print", |b| {
        b.iter(|| insts.iter().map(|i| sass::print(sm, black_box(i), 0).len()).sum::<usize>())
    });
    group.finish();
}

criterion_group!(benches, syntax, check, compile, machine_code);
criterion_main!(benches);
