//! Describes descriptors, cache policies, truth tables and selections of bytes whose values are known.

use std::fmt::Write as _;

use ptx_isa::{Mod, Opcode};

use crate::ide::layout::Written;
use crate::ide::truth;

/// The description of known descriptors among an instruction's operands. `value` returns the value of an operand, given
/// its text.
pub(super) fn about(opcode: &Opcode, written: &Written, value: impl Fn(&str) -> Option<u64>) -> String {
    let mnemonic = opcode.form.mnemonic();
    let mut out = String::new();
    for (name, text) in written {
        let Some(value) = value(text) else { continue };
        let words = match (mnemonic, *name) {
            ("tcgen05", "idesc") => instruction(opcode, value as u32),
            ("tcgen05", "a" | "b-desc" | "s-desc") => Some(matrix(value, tensor_swizzle(value >> 61))),
            ("wgmma", "a" | "b-desc") => Some(matrix(value, group_swizzle(value >> 62))),
            (_, "cache-policy") => policy(value),
            ("lop3", "immLut") => Some(format!("`{}`", truth::expression(value as u8))),
            ("prmt", "c") if !BYTE_MODES.iter().any(|&mode| opcode.has(mode)) => Some(bytes(value)),
            _ => None,
        };
        if let Some(words) = words {
            let _ = writeln!(out, "- `{name}` is `{value:#x}`: {words}");
        }
    }
    if out.is_empty() { out } else { format!("\n{out}") }
}

/// The modes of `prmt` in which the selection has another meaning.
const BYTE_MODES: [Mod; 6] = [Mod::F4e, Mod::B4e, Mod::Rc8, Mod::Ecl, Mod::Ecr, Mod::Rc16];

/// The bytes that `prmt` selects, lowest first.
fn bytes(selection: u64) -> String {
    let byte = |at: u32| {
        let (number, is_sign) = (selection >> (4 * at) & 7, selection >> (4 * at + 3) & 1 == 1);
        let source = if number < 4 { 'a' } else { 'b' };
        let what = if is_sign { "sign of byte" } else { "byte" };
        format!("{what} {} of `{source}`", number % 4)
    };
    format!("from the lowest byte on: {}", (0..4).map(byte).collect::<Vec<_>>().join(", "))
}

/// The instruction descriptor of `tcgen05.mma`.
fn instruction(opcode: &Opcode, value: u32) -> Option<String> {
    let field = |at: u32, bits: u32| value >> at & ((1 << bits) - 1);
    let has = |all: &[Mod]| all.iter().any(|&m| opcode.has(m));
    let is_scaled = has(&[Mod::KindMxf8f6f4, Mod::KindMxf4, Mod::KindMxf4nvf4]);
    let element = |format: u32| -> Option<&str> {
        Some(match format {
            0 if has(&[Mod::KindF16]) => ".f16",
            1 if has(&[Mod::KindF16]) => ".bf16",
            2 if has(&[Mod::KindTf32]) => ".tf32",
            0 if has(&[Mod::KindI8]) => ".u8",
            1 if has(&[Mod::KindI8]) => ".s8",
            1 if has(&[Mod::KindMxf4, Mod::KindMxf4nvf4]) => ".e2m1",
            _ if !has(&[Mod::KindF8f6f4, Mod::KindMxf8f6f4]) => return None,
            0 => ".e4m3",
            1 => ".e5m2",
            3 => ".e2m3",
            4 => ".e3m2",
            5 => ".e2m1",
            _ => return None,
        })
    };
    let (Some(a), Some(b)) = (element(field(7, 3)), element(field(10, 3))) else {
        return Some("invalid: this `.kind` has no such element type".to_owned());
    };
    let sum = match (is_scaled, field(4, 2)) {
        (true, _) | (false, 1) => ".f32",
        (false, 0) => ".f16",
        (false, 2) => ".s32",
        _ => return None,
    };
    let (rows, columns) = (field(24, 5) * 16, field(17, 6) * 8);
    let mut words = format!("M = {rows}, N = {columns}, A `{a}`, B `{b}`, D `{sum}`");
    let flags = [
        (2, "A is sparse"),
        (13, "A is negated"),
        (14, "B is negated"),
        (15, "A is transposed (M-major)"),
        (16, "B is transposed (N-major)"),
    ];
    for (_, flag) in flags.iter().filter(|(at, _)| field(*at, 1) == 1) {
        let _ = write!(words, ", {flag}");
    }
    if has(&[Mod::KindI8]) && field(3, 1) == 1 {
        words.push_str(", D saturates");
    }
    Some(words)
}

/// A matrix in shared memory, as `wgmma` and `tcgen05` describe it.
fn matrix(value: u64, swizzle: &str) -> String {
    let bytes = |at: u32| (value >> at & 0x3fff) << 4;
    format!(
        "starts at byte {:#x} of shared memory, leading dimension offset {} bytes, stride offset {} bytes, {swizzle}",
        bytes(0),
        bytes(16),
        bytes(32)
    )
}

fn group_swizzle(mode: u64) -> &'static str {
    ["no swizzle", "128-byte swizzle", "64-byte swizzle", "32-byte swizzle"][mode as usize & 3]
}

fn tensor_swizzle(mode: u64) -> &'static str {
    match mode {
        0 => "no swizzle",
        1 => "128-byte swizzle of 32-byte units",
        2 => "128-byte swizzle",
        4 => "64-byte swizzle",
        6 => "32-byte swizzle",
        _ => "a reserved swizzle mode",
    }
}

/// A policy as `createpolicy` makes it, or as libraries write it.
fn policy(value: u64) -> Option<String> {
    const NORMAL: u64 = 0x1000_0000_0000_0000;
    const FRACTIONAL: u64 = 0x100;
    const RANGE: u64 = 0x180;
    if value == NORMAL {
        return Some("the default priority".to_owned());
    }
    let kind = value >> 52;
    let first = ["`evict_unchanged`", "`evict_first`", "`evict_last`", "`evict_normal`"];
    let second = ["`evict_unchanged`", "`evict_first`"][kind as usize >> 4 & 1];
    let first = first[kind as usize >> 5 & 3];
    match kind & 0xf80 {
        RANGE => Some("a policy for a range of addresses".to_owned()),
        FRACTIONAL if value << 12 == 0 => Some(match (kind & 0xf) + 1 {
            16 => format!("{first} for all accesses"),
            sixteenths => format!("{first} for {sixteenths}/16 of the accesses, {second} for the others"),
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn descriptors_in_words() {
        let of = |name: &str, operand: &'static str, value: u64| {
            let mut words = name.split('.');
            let opcode = ptx_isa::resolve(words.next().unwrap(), &words.collect::<Vec<_>>()).unwrap();
            about(&opcode, &vec![(operand, "%r1".to_owned())], |_| Some(value))
        };
        let mma = |kind: &str| format!("tcgen05.mma.cta_group::1.kind::{kind}");
        let load = "ld.global.L2::cache_hint.f32";
        let all = [
            of(&mma("f16"), "idesc", 0x0840_0490),
            of(&mma("f8f6f4"), "idesc", 0x0811_8090),
            of(&mma("i8"), "idesc", 0x0810_04a8),
            of(&mma("f16"), "b-desc", 0x4000_4040_0001_0400),
            of("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16", "b-desc", 0x4000_0040_0001_0080),
            of(load, "cache-policy", 0x12f0_0000_0000_0000),
            of(load, "cache-policy", 0x1470_0000_0000_0000),
            of(load, "cache-policy", 0x1000_0000_0000_0000),
            of(load, "cache-policy", 7),
        ];
        expect![[r#"

            - `idesc` is `0x8400490`: M = 128, N = 256, A `.bf16`, B `.bf16`, D `.f32`

            - `idesc` is `0x8118090`: M = 128, N = 64, A `.e5m2`, B `.e4m3`, D `.f32`, A is transposed (M-major), B is transposed (N-major)

            - `idesc` is `0x81004a8`: M = 128, N = 64, A `.s8`, B `.s8`, D `.s32`, D saturates

            - `b-desc` is `0x4000404000010400`: starts at byte 0x4000 of shared memory, leading dimension offset 16 bytes, stride offset 1024 bytes, 128-byte swizzle

            - `b-desc` is `0x4000004000010080`: starts at byte 0x800 of shared memory, leading dimension offset 16 bytes, stride offset 1024 bytes, 128-byte swizzle

            - `cache-policy` is `0x12f0000000000000`: `evict_first` for all accesses

            - `cache-policy` is `0x1470000000000000`: `evict_last` for 8/16 of the accesses, `evict_unchanged` for the others

            - `cache-policy` is `0x1000000000000000`: the default priority
        "#]].assert_eq(&all.concat());
    }
}
