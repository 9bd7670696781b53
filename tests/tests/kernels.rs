//! Whole kernels: compiled code leaves in memory what the interpreter does.

use conformance::case::{Argument, Case, Compare, differences};
use conformance::sweep::Random;

fn words(seed: u64, count: usize) -> Vec<u8> {
    let mut random = Random::new(seed);
    (0..count).flat_map(|_| (random.next() as u32).to_le_bytes()).collect()
}

fn singles(seed: u64, count: usize) -> Vec<u8> {
    let mut random = Random::new(seed);
    (0..count).flat_map(|_| ((random.below(2000) as f32 - 1000.0) / 256.0).to_le_bytes()).collect()
}

fn doubles(seed: u64, count: usize) -> Vec<u8> {
    let mut random = Random::new(seed);
    (0..count).flat_map(|_| ((random.below(2000) as f64 - 1000.0) / 256.0).to_le_bytes()).collect()
}

fn exact(bytes: Vec<u8>) -> Argument {
    Argument::Buffer(bytes, Compare::Exact)
}

#[track_caller]
fn check(case: &Case) {
    let (wrong, missing) = differences(case).unwrap_or_else(|error| panic!("{error}"));
    assert!(missing.is_empty(), "not compiled:\n{}", missing.join("\n"));
    assert!(wrong.is_empty(), "{} differ\n{}", wrong.len(), wrong.join("\n\n"));
}

#[test]
fn saxpy() {
    let arguments = vec![
        Argument::U32(500),
        Argument::F32(1.5),
        exact(singles(1, 512)),
        Argument::Buffer(singles(2, 512), Compare::SINGLE),
    ];
    check(&Case::new(include_str!("../../examples/saxpy.ptx"), 4, 128, arguments));
}

#[test]
fn histogram() {
    let arguments = vec![exact(words(3, 1000)), exact(vec![0; 1024]), Argument::U32(1000)];
    check(&Case::new(include_str!("../kernels/histogram.ptx"), 2, 256, arguments));
}

#[test]
fn sums_of_big_integers() {
    let mut a = words(4, 8 * 64);
    a[..32].fill(0xff);
    let arguments = vec![exact(a), exact(words(5, 8 * 64)), exact(vec![0; 32 * 64]), Argument::U32(60)];
    let case = Case::new(include_str!("../kernels/integers.ptx"), 1, 64, arguments);
    check(&Case { kernel: "big_add".into(), ..case });
}

#[test]
fn switch() {
    for operation in 0..6 {
        let arguments = vec![exact(words(6, 64)), Argument::U32(60), Argument::U32(operation)];
        let case = Case::new(include_str!("../kernels/integers.ptx"), 1, 64, arguments);
        check(&Case { kernel: "dispatch".into(), ..case });
    }
}

#[test]
fn divergent_loop() {
    let arguments = vec![
        exact(vec![0; 4 * 32 * 32]),
        Argument::U32(32),
        Argument::U32(30),
        Argument::F32(0.1),
        Argument::U32(50),
    ];
    let case = Case::new(include_str!("../kernels/mandelbrot.ptx"), 1, 1, arguments);
    check(&Case { grid: [2, 8, 1], block: [16, 4, 1], ..case });
}

#[test]
fn products_of_matrices() {
    let n = 32;
    let arguments = vec![
        exact(singles(7, n * n)),
        exact(singles(8, n * n)),
        Argument::Buffer(vec![0; 4 * n * n], Compare::SINGLE),
        Argument::U32(n as u32),
    ];
    let case = Case::new(include_str!("../kernels/matmul.ptx"), 1, 1, arguments);
    check(&Case { grid: [2, 2, 1], block: [16, 16, 1], ..case });
}

#[test]
fn forces() {
    let arguments = vec![
        exact(singles(9, 4 * 64)),
        Argument::Buffer(vec![0; 16 * 64], Compare::F32 { ulps: 64, absolute: 1e-4 }),
        Argument::U32(64),
        Argument::F32(0.5),
    ];
    check(&Case::new(include_str!("../kernels/nbody.ptx"), 1, 64, arguments));
}

#[test]
fn sum_of_an_array() {
    // Whole numbers, so that the order of the additions does not matter.
    let numbers = (0..700u32).flat_map(|i| ((i % 17) as f32).to_le_bytes()).collect();
    let arguments = vec![exact(numbers), Argument::Buffer(vec![0; 4], Compare::SINGLE), Argument::U32(700)];
    check(&Case::new(include_str!("../kernels/reduce.ptx"), 2, 128, arguments));
}

#[test]
fn stencil() {
    let arguments = vec![
        exact(doubles(10, 40 * 20)),
        Argument::Buffer(doubles(11, 40 * 20), Compare::DOUBLE),
        Argument::U32(40),
        Argument::U32(20),
    ];
    let case = Case::new(include_str!("../kernels/stencil.ptx"), 1, 1, arguments);
    check(&Case { kernel: "stencil".into(), grid: [2, 5, 1], block: [32, 4, 1], ..case });
}

#[test]
fn guarded_loads() {
    let arguments = vec![
        exact(singles(12, 256)),
        exact(singles(13, 256)),
        Argument::Buffer(singles(14, 256), Compare::SINGLE),
        Argument::U32(250),
    ];
    let case = Case::new(include_str!("../kernels/stencil.ptx"), 1, 64, arguments);
    check(&Case { kernel: "masked_add".into(), ..case });
}
