//! How the time of a compilation grows with the length of the function, for the shapes of `conformance::long`.

use conformance::case::{compile, input};
use conformance::long::SHAPES;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use ptx_isa::Sm;
use std::hint::black_box;
use std::time::Duration;

fn long(criterion: &mut Criterion) {
    for shape in SHAPES {
        let mut group = criterion.benchmark_group(shape.name);
        group.sample_size(10).warm_up_time(Duration::from_millis(200));
        for size in [1_000, 10_000, 100_000] {
            let input = input(&(shape.program)(size), "f").expect("the program is right");
            group.throughput(Throughput::Elements(size as u64));
            group.bench_with_input(BenchmarkId::from_parameter(size), &input, |bencher, input| {
                bencher.iter(|| black_box(compile(input, Sm::new(80), 3)))
            });
        }
        group.finish();
    }
}

criterion_group!(benches, long);
criterion_main!(benches);
