//! Throughput and latency figures of a multiprocessor, for a model of execution time.
//!
//! `latency/rates.csv` says which pipes each kind of instruction uses, and for how many cycles; `latency/sm.csv` has
//! the other figures of a multiprocessor. Both have a column per generation. The sources are NVIDIA's white papers and
//! guides, Jia et al. (2018, 2019), Luo et al. (2025), Huerta et al. (MICRO 2025), and public measurements of single
//! boards.
//!
//! The correctness of code never depends on these figures. The distances that code must keep are in [`crate::latency`].

use crate::class::Class;
use crate::expand::{form, forms};
use crate::inst::Inst;
use crate::model::{Field, FormId, Sm};
use std::sync::LazyLock;

macro_rules! named {
    ($(#[$doc:meta])* $name:ident { $($(#[$about:meta])* $variant:ident $text:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum $name { $($(#[$about])* $variant),* }

        impl $name {
            const NAMES: &'static [(&'static str, $name)] = &[$(($text, $name::$variant)),*];
            pub const ALL: &'static [$name] = &[$($name::$variant),*];
            pub const COUNT: usize = Self::NAMES.len();

            fn named(name: &str) -> Option<$name> {
                Self::NAMES.iter().find(|(text, _)| *text == name).map(|(_, value)| *value)
            }
        }
    };
}

named! {
    /// A unit that executes one instruction at a time. An instruction occupies it for some cycles.
    Pipe {
        Fma "fma", Heavy "heavy", Alu "alu", Shift "shift", Half "half", Fp64 "fp64", Xu "xu", Uniform "udp",
        Constant "constant", Tensor "tensor", SharedFp64 "sm.fp64", System "sm.system",
    }
}

impl Pipe {
    /// Whether the four partitions of a multiprocessor share the unit.
    pub fn is_shared(self) -> bool {
        matches!(self, Pipe::SharedFp64 | Pipe::System)
    }
}

named! {
    /// A figure of a multiprocessor, in cycles unless stated otherwise.
    Figure {
        /// The number of memory instructions that a partition's queue holds.
        Queue "queue",
        /// Between two address computations of a partition: the minimum, and the time for each register of the address.
        Address "address",
        AddressRegister "address_register",
        /// Between two requests of the partitions to the memory pipeline.
        Request "request",
        /// From a request until the sources of a load or a store have been read; and the time for each word after the
        /// first.
        LoadRelease "load_release",
        StoreRelease "store_release",
        ReleaseWord "release_word",
        /// The latency of loads from shared memory, the caches and memory.
        Shared "shared",
        L1 "l1",
        L2 "l2",
        Dram "dram",
        /// Bandwidths, in bytes per cycle.
        SharedBytes "shared_bytes",
        L1Bytes "l1_bytes",
        L2Bytes "l2_bytes",
        DramBytes "dram_bytes",
        /// The size of the first-level cache and shared memory together, in KB.
        L1Kilobytes "l1_kilobytes",
        /// The cost of each additional pass over shared memory, caused by bank conflicts.
        Conflict "conflict",
        /// The latency of variable-latency results that do not come from memory.
        Double "double",
        Special "special",
        System "system",
        ToUniform "to_uniform",
        Constant "constant",
        UniformConstant "uniform_constant",
        Reduce "reduce",
        ReduceQuickly "reduce_quickly",
        Match "match",
        Texture "texture",
        /// The cost of the first access to a line of a constant bank.
        ConstantMiss "constant_miss",
        /// From the last arrival at a block's barrier until its warps continue; and the time for each warp.
        Barrier "barrier",
        BarrierWarp "barrier_warp",
        ClusterBarrier "cluster_barrier",
        /// Until an operation on a barrier object is visible.
        Object "object",
        FenceBlock "fence_block",
        FenceDevice "fence_device",
        FenceSystem "fence_system",
        /// The cost of a branch to an address in a register.
        Indirect "indirect",
        CopyRelease "copy_release",
        /// From the start of a bulk copy until its first byte arrives.
        Transfer "transfer",
        /// The pause for a stall count of zero.
        Pause "pause",
        /// Cycles for which 2,048 multiply-adds keep the tensor pipe busy: with accumulators of `.f16` and of `.f32`,
        /// `.tf32`, 8-bit integers, 8-bit floats, 4-bit and 1-bit integers, `.f64`; and products of warp groups.
        HalfProduct "half_product",
        Product "product",
        SingleProduct "single_product",
        ByteProduct "byte_product",
        QuarterProduct "quarter_product",
        NibbleProduct "nibble_product",
        BitProduct "bit_product",
        DoubleProduct "double_product",
        GroupProduct "group_product",
    }
}

/// The multiply-adds that [`Figure::Product`] and its variants give the time for.
const PRODUCT: u64 = 2048;

/// The pipes that an instruction uses, and its latency.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Rate {
    /// The pipes, and the number of cycles for which the instruction occupies each.
    pub busy: [Option<(Pipe, u32)>; 2],
    /// The latency of a result that a scoreboard signals, unless it comes from memory.
    pub result: Option<u32>,
}

/// The first SM of each column.
const GENERATIONS: [u8; 7] = [75, 80, 86, 89, 90, 100, 120];

struct Table {
    /// Indexed by generation and form.
    rates: [Vec<Rate>; GENERATIONS.len()],
    figures: [[u32; Figure::COUNT]; GENERATIONS.len()],
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let figures = figures();
    let rates = std::array::from_fn(|generation| {
        forms().map(|id| form_rate(id, generation, &figures[generation])).collect()
    });
    Table { rates, figures }
});

fn column(sm: Sm) -> usize {
    GENERATIONS.iter().rposition(|&first| first <= sm.0).unwrap_or(0)
}

fn figures() -> [[u32; Figure::COUNT]; GENERATIONS.len()] {
    let mut figures = [[0; Figure::COUNT]; GENERATIONS.len()];
    for line in include_str!("latency/sm.csv").lines().skip(1) {
        let mut cells = line.split(',');
        let Some(figure) = cells.next().and_then(Figure::named) else { continue };
        for (row, cell) in figures.iter_mut().zip(cells) {
            row[figure as usize] = cell.parse().unwrap_or(0);
        }
    }
    figures
}

/// The rate of a form. A row names forms, mnemonics and, after a colon, classes; the most specific name wins.
fn form_rate(id: FormId, generation: usize, figures: &[u32; Figure::COUNT]) -> Rate {
    let form = form(id);
    let class = format!(":{:?}", form.class);
    let rows = || include_str!("latency/rates.csv").lines().skip(1);
    let row = [form.name, form.mnemonic, &class].into_iter().find_map(|name| {
        rows().find(|row| row.split(',').next().is_some_and(|names| names.split(' ').any(|of| of == name)))
    });
    let Some(row) = row else { return Rate::default() };
    let mut cells = row.split(',').skip(1);
    let result = cells.next().and_then(Figure::named).map(|figure| figures[figure as usize]);
    let mut busy = [None; 2];
    let used = cells.nth(generation).unwrap_or("").split('+').filter_map(|cell| {
        let (pipe, clocks) = cell.split_once(':')?;
        Some((Pipe::named(pipe)?, clocks.parse().ok()?))
    });
    busy.iter_mut().zip(used).for_each(|(place, pipe)| *place = Some(pipe));
    Rate { busy, result }
}

/// A figure of a generation's multiprocessors.
pub fn figure(sm: Sm, figure: Figure) -> u32 {
    TABLE.figures[column(sm)][figure as usize]
}

/// The rate of an instruction. It is empty for memory instructions and barriers, whose time depends on the state of the
/// machine.
pub fn rate(sm: Sm, inst: &Inst) -> Rate {
    if let Some((each, products)) = products(sm, inst) {
        let clocks = products * u64::from(each) / PRODUCT;
        return Rate { busy: [Some((Pipe::Tensor, clocks.max(1) as u32)), None], result: None };
    }
    TABLE.rates[column(sm)].get(usize::from(inst.form.0)).copied().unwrap_or_default()
}

/// The latency of an exchange between lanes, a texture access or an operation on a barrier object. It uses the queue of
/// memory instructions, but its time does not depend on memory. `None` for other instructions.
pub fn exchange(sm: Sm, inst: &Inst) -> Option<u32> {
    let of = match inst.form().mnemonic {
        "LDGSTS" => return None,
        "MATCH" => Figure::Match,
        "SYNCS" | "ARRIVES" => Figure::Object,
        "SHFL" | "MOVM" | "B2R" | "QSPC" => Figure::Shared,
        _ => match inst.class(sm) {
            Class::Texture => Figure::Texture,
            Class::Async if !inst.is_group_product() => Figure::Object,
            _ => return None,
        },
    };
    Some(figure(sm, of))
}

/// For a matrix product: the figure for 2,048 multiply-adds, and how many multiply-adds a warp's part has.
fn products(sm: Sm, inst: &Inst) -> Option<(u32, u64)> {
    use Figure::*;
    let name = inst.form().name;
    let singles = !matches!(inst.text(Field::Type), Some(".F16"));
    let each = match inst.class(sm) {
        Class::Async if inst.is_group_product() => {
            let each = figure(sm, GroupProduct);
            match inst.form().mnemonic {
                "HGMMA" if inst.text(Field::SrcType) == Some(".TF32") => 2 * each,
                "HGMMA" => each,
                _ => each / 2,
            }
        }
        Class::Dmma => figure(sm, DoubleProduct),
        Class::Hmma16 | Class::Hmma32 | Class::Imma16 | Class::Imma32 => match inst.form().mnemonic {
            "BMMA" => figure(sm, BitProduct),
            "IMMA" if name.ends_with(".S4") => figure(sm, NibbleProduct),
            "IMMA" => figure(sm, ByteProduct),
            "QMMA" if !singles => figure(sm, QuarterProduct) / 2,
            "QMMA" => figure(sm, QuarterProduct),
            "OMMA" => figure(sm, NibbleProduct),
            _ if name.ends_with(".TF32") => figure(sm, SingleProduct),
            _ if singles => figure(sm, Product),
            _ => figure(sm, HalfProduct),
        },
        _ => return None,
    };
    let count = extent(inst)?;
    Some((each, if name.contains(".SP") { count / 2 } else { count }))
}

/// The multiply-adds of a warp's part of a product: of `.16816`, or a quarter of those of `.64x128x16`.
fn extent(inst: &Inst) -> Option<u64> {
    let size = inst.text(Field::Size).unwrap_or(".884").trim_start_matches('.');
    if size.contains('x') {
        let count: u64 = size.split('x').map_while(|part| part.parse::<u64>().ok()).product();
        return Some(count / 4);
    }
    let rows: u64 = if size.starts_with("16") { 16 } else { 8 };
    let rest = size.strip_prefix(if rows == 16 { "168" } else { "88" })?;
    Some(rows * 8 * rest.parse::<u64>().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn busy(sm: u8, text: &str) -> Option<(Pipe, u32)> {
        let inst = crate::parse(Sm(sm), text, 0).unwrap_or_else(|e| panic!("{text}: {}", e.message));
        rate(Sm(sm), &inst).busy[0]
    }

    #[test]
    fn every_name_of_the_tables_means_something() {
        for line in include_str!("latency/sm.csv").lines().skip(1) {
            let cells: Vec<&str> = line.split(',').collect();
            assert!(Figure::named(cells[0]).is_some(), "{line}");
            assert_eq!(cells.len(), GENERATIONS.len() + 2, "{line}");
            assert!(cells[1..8].iter().all(|cell| cell.parse::<u32>().is_ok()), "{line}");
        }
        assert_eq!(include_str!("latency/sm.csv").lines().count(), Figure::COUNT + 1);
        for line in include_str!("latency/rates.csv").lines().skip(1) {
            let cells: Vec<&str> = line.split(',').collect();
            assert_eq!(cells.len(), GENERATIONS.len() + 3, "{line}");
            for name in cells[0].split(' ') {
                let known = forms().any(|id| {
                    let form = form(id);
                    [form.name, form.mnemonic, &format!(":{:?}", form.class)].contains(&name)
                });
                assert!(known, "{name}");
            }
            assert!(cells[1].is_empty() || Figure::named(cells[1]).is_some(), "{line}");
            for cell in cells[2..9].iter().flat_map(|cell| cell.split('+')).filter(|cell| !cell.is_empty()) {
                let (pipe, clocks) = cell.split_once(':').expect("a pipe and clocks");
                assert!(Pipe::named(pipe).is_some() && clocks.parse::<u32>().is_ok(), "{line}");
            }
        }
    }

    #[test]
    fn the_most_exact_row_counts() {
        assert_eq!(busy(80, "FFMA R0, R1, R2, R3"), Some((Pipe::Fma, 2)));
        assert_eq!(busy(86, "FFMA R0, R1, R2, R3"), Some((Pipe::Fma, 1)));
        assert_eq!(busy(80, "IMAD.WIDE R0, R2, R3, R4"), Some((Pipe::Fma, 4)));
        assert_eq!(busy(120, "MOV R0, R1"), Some((Pipe::Alu, 1)));
        assert_eq!(busy(75, "DADD R0, R2, R4"), Some((Pipe::SharedFp64, 16)));
    }

    #[test]
    fn products_take_as_long_as_they_are_big() {
        assert_eq!(busy(80, "HMMA.16816.F32 R12, R4, R8, R12"), Some((Pipe::Tensor, 8)));
        assert_eq!(busy(80, "HMMA.1688.F32 R12, R4, R8, R12"), Some((Pipe::Tensor, 4)));
        assert_eq!(busy(80, "HMMA.1688.F32.TF32 R12, R4, R8, R12"), Some((Pipe::Tensor, 8)));
        assert_eq!(busy(80, "IMMA.16832.S8.S8 R12, R4.ROW, R8.COL, R12"), Some((Pipe::Tensor, 8)));
        assert_eq!(busy(120, "HMMA.16816.F32 R12, R4, R8, R12"), Some((Pipe::Tensor, 32)));
        assert_eq!(busy(120, "HMMA.16816.F16 R12, R4, R8, R12"), Some((Pipe::Tensor, 16)));
    }
}
