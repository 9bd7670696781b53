//! Modules of a given size, for benchmarks.

const HEADER: &str = ".version 8.0\n.target sm_80\n.address_size 64\n";

const KERNELS: [&str; 4] = [
    include_str!("../kernels/mandelbrot.ptx"),
    include_str!("../kernels/nbody.ptx"),
    include_str!("../kernels/stencil.ptx"),
    include_str!("../kernels/reduce.ptx"),
];

/// A module of at least this many bytes: kernels of `tests/kernels` again and again, each time with other names.
pub fn module(bytes: usize) -> String {
    let mut text = HEADER.to_owned();
    let mut count = 0;
    while text.len() < bytes {
        for kernel in KERNELS {
            let functions = &kernel[kernel.find(".visible").expect("a function")..];
            text += &functions.replace(".entry ", &format!(".entry k{count}_"));
            count += 1;
        }
    }
    text
}
