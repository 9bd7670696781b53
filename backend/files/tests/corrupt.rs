//! Files with wrong bytes are rejected or read, without a panic.

mod files;

use files::container;
use gpu_files::cubin::{self, Symbol, read};
use gpu_files::image::{ImageKind, UNPACK_LIMIT, images};
use sass::{Sm, decode_tolerant, print};

/// Reads everything in a file.
fn walk(bytes: &[u8]) {
    for image in images(bytes).unwrap_or_default() {
        let Ok(content) = image.content(&mut UNPACK_LIMIT.clone()) else { continue };
        let Ok(cubin) = read(&content) else { continue };
        for function in &cubin.functions {
            for word in cubin::words(function.code) {
                if let Some(inst) = decode_tolerant(cubin.sm, word) {
                    print(cubin.sm, &inst, 0);
                }
            }
        }
    }
}

#[test]
fn the_sample_is_read_whole() {
    let bytes = container();
    let images = images(&bytes).unwrap();
    assert_eq!((images.len(), images[0].kind), (1, ImageKind::Cubin));
    let content = images[0].content(&mut 0).unwrap();
    let cubin = read(&content).unwrap();
    assert_eq!((cubin.sm, cubin.target(), cubin.virtual_sm), (Sm(90), "sm_90a".to_owned(), Some(90)));
    let function = &cubin.functions[0];
    assert_eq!((function.name, cubin::words(function.code).count()), ("k", 3));
    let k = Symbol { name: "k", offset: 0, size: 48, global: true, entry: true };
    assert_eq!(function.symbols, [k]);
    assert_eq!((function.relocations[0].symbol, function.relocations[0].addend), ("callee", 4));
}

#[test]
fn wrong_bytes_and_ends_never_panic() {
    let bytes = container();
    for at in 0..bytes.len() {
        for value in [0, 1, 0x7f, 0x80, 0xff, bytes[at].wrapping_add(1)] {
            let mut wrong = bytes.clone();
            wrong[at] = value;
            walk(&wrong);
        }
        walk(&bytes[..at]);
    }
}
