//! The number of thread instructions that the emulator and the interpreter execute per second.

use conformance::case::{Argument, Case, Compare, input, interpret};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use ptx_emu::machine::{self, Kernel};
use ptx_isa::Sm;
use std::hint::black_box;
use std::time::Duration;

/// A product of two 64×64 matrices.
fn product() -> Case {
    const SIDE: usize = 64;
    let numbers = || {
        let numbers = (0..SIDE * SIDE).flat_map(|i| ((i % 7) as f32).to_le_bytes());
        Argument::Buffer(numbers.collect(), Compare::SINGLE)
    };
    let arguments = vec![numbers(), numbers(), numbers(), Argument::U32(SIDE as u32)];
    let case = Case::new(include_str!("../kernels/matmul.ptx"), 1, 1, arguments);
    Case { grid: [4, 4, 1], block: [16, 16, 1], ..case }
}

fn emulators(criterion: &mut Criterion) {
    let case = product();
    let input = input(&case.ptx, &case.kernel).expect("the kernel is right");
    let (prepared, _) = interpret(&case, &input).expect("the kernel runs");
    let function = conformance::case::compile(&input, Sm::new(90), 3).expect("the kernel compiles");
    let kernel = Kernel::compiled(&input.env, &function, sass::Sm(90), &prepared.device);
    let mut group = criterion.benchmark_group("emulator");
    group.sample_size(10).measurement_time(Duration::from_secs(3));
    let machine = || machine::run(&kernel, &prepared.launch, &mut prepared.device.clone()).expect("it runs");
    group.throughput(Throughput::Elements(machine().thread_instructions));
    group.bench_function("machine", |bencher| bencher.iter(|| black_box(machine())));
    let ptx = || {
        let device = &mut prepared.device.clone();
        input.interpret(&case.ptx, &prepared.launch, device).expect("it runs")
    };
    group.throughput(Throughput::Elements(ptx().thread_instructions));
    group.bench_function("ptx", |bencher| bencher.iter(|| black_box(ptx())));
    group.finish();
}

criterion_group!(benches, emulators);
criterion_main!(benches);
