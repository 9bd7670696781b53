//! Tables that show which lane and register hold which element of a matrix.

use std::fmt::Write as _;

use ptx_isa::Opcode;
use ptx_isa::fragment::{Fragment, Place, fragments};

/// The number of blocks with the same layout that are listed one by one.
const LISTED: usize = 4;

/// The text of an instruction's operands, by their names in the table.
pub(super) type Written = Vec<(&'static str, String)>;

/// The layouts of all fragments of an instruction. Empty if it has no fragments.
pub(super) fn tables(opcode: &Opcode, written: &Written) -> String {
    if matches!(opcode.form.mnemonic(), "wmma") {
        return "The layout of `wmma` fragments is unspecified and differs between targets.\n".to_owned();
    }
    let text =
        |operand: &str| written.iter().find(|(name, _)| *name == operand).map(|(_, text)| text.as_str());
    let is_list = |operand: &str| text(operand).is_some_and(|text| text.starts_with('{'));
    let all = fragments(opcode, is_list);
    let mut out = String::new();
    for fragment in &all {
        let same = all.iter().find(|other| other.is_like(fragment));
        if let Some(same) = same.filter(|same| same.operand != fragment.operand) {
            let _ = writeln!(out, "\n**`{}`** is laid out like `{}`.", fragment.operand, same.operand);
            continue;
        }
        let names = names(fragment.operand, text(fragment.operand));
        match fragment.is_quad() {
            true => quad(&mut out, fragment, &names),
            false => table(&mut out, fragment, &names),
        }
    }
    out
}

/// The registers of an operand: as written, otherwise by number.
fn names(operand: &str, written: Option<&str>) -> impl Fn(usize) -> String {
    let inner = written.unwrap_or_default().trim().trim_start_matches('{').trim_end_matches('}');
    let list: Vec<String> = inner.split(',').map(|name| name.trim().to_owned()).collect();
    let operand = operand.to_owned();
    move |index| match list.get(index).filter(|name| !name.is_empty()) {
        Some(name) => format!("`{name}`"),
        None => format!("`{operand}{index}`"),
    }
}

/// The row and column of each element, by its number and lane.
fn elements(fragment: &Fragment, lanes: usize) -> Vec<Vec<(usize, usize)>> {
    let mut all = vec![vec![(0, 0); lanes]; fragment.rows * fragment.columns / lanes];
    for row in 0..fragment.rows {
        for column in 0..fragment.columns {
            let Place { lane, index } = fragment.place(row, column);
            all[index][lane] = (row, column);
        }
    }
    all
}

/// A formula such as `2t+8` for the row or column in each lane, if it is a sum of multiples of `g` and `t`. It begins
/// with `first`, the part that is the same in all lanes of a warp.
fn formula(first: Option<&str>, of: impl Fn(usize) -> usize) -> Option<String> {
    let start = of(0);
    let (g, t) = (of(4).checked_sub(start)?, of(1).checked_sub(start)?);
    let holds = (0..32).all(|lane| of(lane) == start + lane / 4 * g + lane % 4 * t);
    let times = |factor: usize, name: &str| match factor {
        0 => None,
        1 => Some(name.to_owned()),
        _ => Some(format!("{factor}{name}")),
    };
    let parts =
        [first.map(str::to_owned), times(g, "g"), times(t, "t"), (start > 0).then(|| start.to_string())];
    let sum = parts.into_iter().flatten().collect::<Vec<_>>().join("+");
    holds.then(|| if sum.is_empty() { "0".to_owned() } else { sum })
}

/// Joins names: equal ones once, few as a list, many as the first to the last.
fn together(mut all: Vec<String>) -> String {
    all.dedup();
    match &all[..] {
        [first, .., last] if all.len() > 4 => format!("{first} … {last}"),
        _ => all.join(", "),
    }
}

fn table(out: &mut String, fragment: &Fragment, names: &impl Fn(usize) -> String) {
    let per = fragment.per_register();
    let elements = elements(fragment, 32);
    let registers: Vec<&[Vec<(usize, usize)>]> = elements.chunks(per).collect();
    let is_load = fragment.operand == "r";
    let width = if is_load { 1 } else { fragment.count };
    let (rows, columns) = (fragment.rows * fragment.warps, fragment.columns * width);
    // Each warp holds as many rows as the fragment has; the example is in the second warp.
    let of_warp = (fragment.warps > 1).then(|| format!("{}w", fragment.rows));
    let shift_of_warp = if of_warp.is_some() { fragment.rows } else { 0 };
    let _ = write!(out, "\n**`{}`**: ", fragment.operand);
    if is_load && fragment.count > 1 {
        let _ = write!(out, "{} matrices of ", fragment.count);
    }
    let _ = write!(out, "{rows} × {columns} `.{}`; ", fragment.ty.text());
    if of_warp.is_some() {
        let _ = write!(out, "`w = warp % {}`, ", fragment.warps);
    }
    let _ = writeln!(out, "`g = lane / 4`, `t = lane % 4`\n");
    let extra = if is_load { " rows at the addresses of |" } else { "" };
    let example = if of_warp.is_some() { "lane 5 of warp 1" } else { "lane 5" };
    let _ = writeln!(out, "| register |{extra} row | column | {example} |");
    let _ = writeln!(out, "|---|{}---|---|---|", if is_load { "---|" } else { "" });
    for block in 0..fragment.count.min(LISTED) {
        for (i, held) in registers.iter().enumerate() {
            let shift = if is_load { 0 } else { block * fragment.columns };
            let row = held.iter().filter_map(|element| formula(of_warp.as_deref(), |lane| element[lane].0));
            let column = held.iter().filter_map(|element| formula(None, |lane| element[lane].1 + shift));
            let example: Vec<String> =
                held.iter().map(|e| format!("({}, {})", e[5].0 + shift_of_warp, e[5].1 + shift)).collect();
            let name = names(block * registers.len() + i);
            let extra = match is_load {
                true => format!(" lanes {} to {} |", 8 * block, 8 * block + 7),
                false => String::new(),
            };
            let (row, column) = (together(row.collect()), together(column.collect()));
            let _ = writeln!(out, "| {name} |{extra} {row} | {column} | {} |", together(example));
        }
    }
    if fragment.count > LISTED {
        let next = names(LISTED * registers.len());
        let _ = writeln!(out, "\nFrom {next} on, the layout repeats every {} columns.", fragment.columns);
    }
}

/// Four products in a warp, with eight lanes each.
fn quad(out: &mut String, fragment: &Fragment, names: &impl Fn(usize) -> String) {
    let per = fragment.per_register();
    let _ = writeln!(
        out,
        "\n**`{}`**: {} × {} `.{}` of product `lane % 16 / 4`; `l = lane % 4 + lane / 16 * 4`\n",
        fragment.operand,
        fragment.rows,
        fragment.columns,
        fragment.ty.text()
    );
    let lanes = (0..8).map(|lane| format!(" l = {lane} |")).collect::<String>();
    let _ = writeln!(out, "| register |{lanes}\n|---|{}", "---|".repeat(8));
    for (i, held) in elements(fragment, 8).chunks(per).enumerate() {
        let _ = write!(out, "| {} |", names(i));
        for lane in 0..8 {
            let cell = held.iter().map(|e| format!("({}, {})", e[lane].0, e[lane].1)).collect();
            let _ = write!(out, " {} |", together(cell));
        }
        out.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    fn of(name: &str, written: Written) -> String {
        let mut words = name.split('.');
        let mnemonic = words.next().unwrap();
        tables(&ptx_isa::resolve(mnemonic, &words.collect::<Vec<_>>()).unwrap(), &written)
    }

    #[test]
    fn layouts_of_a_product() {
        let written = vec![("a", "{%r1, %r2, %r3, %r4}".to_owned())];
        expect![[r#"

            **`d`**: 16 × 8 `.f32`; `g = lane / 4`, `t = lane % 4`

            | register | row | column | lane 5 |
            |---|---|---|---|
            | `d0` | g | 2t | (1, 2) |
            | `d1` | g | 2t+1 | (1, 3) |
            | `d2` | g+8 | 2t | (9, 2) |
            | `d3` | g+8 | 2t+1 | (9, 3) |

            **`a`**: 16 × 16 `.f16`; `g = lane / 4`, `t = lane % 4`

            | register | row | column | lane 5 |
            |---|---|---|---|
            | `%r1` | g | 2t, 2t+1 | (1, 2), (1, 3) |
            | `%r2` | g+8 | 2t, 2t+1 | (9, 2), (9, 3) |
            | `%r3` | g | 2t+8, 2t+9 | (1, 10), (1, 11) |
            | `%r4` | g+8 | 2t+8, 2t+9 | (9, 10), (9, 11) |

            **`b`**: 16 × 8 `.f16`; `g = lane / 4`, `t = lane % 4`

            | register | row | column | lane 5 |
            |---|---|---|---|
            | `b0` | 2t, 2t+1 | g | (2, 1), (3, 1) |
            | `b1` | 2t+8, 2t+9 | g | (10, 1), (11, 1) |

            **`c`** is laid out like `d`.
        "#]]
        .assert_eq(&of("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", written));
    }

    #[test]
    fn layouts_of_other_instructions() {
        expect![[r#"

            **`r`**: 2 matrices of 8 × 8 `.b16`; `g = lane / 4`, `t = lane % 4`

            | register | rows at the addresses of | row | column | lane 5 |
            |---|---|---|---|---|
            | `r0` | lanes 0 to 7 | 2t, 2t+1 | g | (2, 1), (3, 1) |
            | `r1` | lanes 8 to 15 | 2t, 2t+1 | g | (2, 1), (3, 1) |
        "#]]
        .assert_eq(&of("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16", Vec::new()));
        expect![[r#"

            **`d`**: 64 × 64 `.f32`; `w = warp % 4`, `g = lane / 4`, `t = lane % 4`

            | register | row | column | lane 5 of warp 1 |
            |---|---|---|---|
            | `d0` | 16w+g | 2t | (17, 2) |
            | `d1` | 16w+g | 2t+1 | (17, 3) |
            | `d2` | 16w+g+8 | 2t | (25, 2) |
            | `d3` | 16w+g+8 | 2t+1 | (25, 3) |
            | `d4` | 16w+g | 2t+8 | (17, 10) |
            | `d5` | 16w+g | 2t+9 | (17, 11) |
            | `d6` | 16w+g+8 | 2t+8 | (25, 10) |
            | `d7` | 16w+g+8 | 2t+9 | (25, 11) |
            | `d8` | 16w+g | 2t+16 | (17, 18) |
            | `d9` | 16w+g | 2t+17 | (17, 19) |
            | `d10` | 16w+g+8 | 2t+16 | (25, 18) |
            | `d11` | 16w+g+8 | 2t+17 | (25, 19) |
            | `d12` | 16w+g | 2t+24 | (17, 26) |
            | `d13` | 16w+g | 2t+25 | (17, 27) |
            | `d14` | 16w+g+8 | 2t+24 | (25, 26) |
            | `d15` | 16w+g+8 | 2t+25 | (25, 27) |

            From `d16` on, the layout repeats every 8 columns.
        "#]]
        .assert_eq(&of("wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16", Vec::new()));
        expect![[r#"
            The layout of `wmma` fragments is unspecified and differs between targets.
        "#]]
        .assert_eq(&of("wmma.load.a.sync.aligned.row.m16n16k16.f16", Vec::new()));
        expect![[r#"

            **`d`**: 8 × 8 `.f32` of product `lane % 16 / 4`; `l = lane % 4 + lane / 16 * 4`

            | register | l = 0 | l = 1 | l = 2 | l = 3 | l = 4 | l = 5 | l = 6 | l = 7 |
            |---|---|---|---|---|---|---|---|---|
            | `d0` | (0, 0) | (1, 0) | (0, 2) | (1, 2) | (4, 0) | (5, 0) | (4, 2) | (5, 2) |
            | `d1` | (0, 1) | (1, 1) | (0, 3) | (1, 3) | (4, 1) | (5, 1) | (4, 3) | (5, 3) |
            | `d2` | (2, 0) | (3, 0) | (2, 2) | (3, 2) | (6, 0) | (7, 0) | (6, 2) | (7, 2) |
            | `d3` | (2, 1) | (3, 1) | (2, 3) | (3, 3) | (6, 1) | (7, 1) | (6, 3) | (7, 3) |
            | `d4` | (0, 4) | (1, 4) | (0, 6) | (1, 6) | (4, 4) | (5, 4) | (4, 6) | (5, 6) |
            | `d5` | (0, 5) | (1, 5) | (0, 7) | (1, 7) | (4, 5) | (5, 5) | (4, 7) | (5, 7) |
            | `d6` | (2, 4) | (3, 4) | (2, 6) | (3, 6) | (6, 4) | (7, 4) | (6, 6) | (7, 6) |
            | `d7` | (2, 5) | (3, 5) | (2, 7) | (3, 7) | (6, 5) | (7, 5) | (6, 7) | (7, 7) |

            **`a`**: 8 × 4 `.f16` of product `lane % 16 / 4`; `l = lane % 4 + lane / 16 * 4`

            | register | l = 0 | l = 1 | l = 2 | l = 3 | l = 4 | l = 5 | l = 6 | l = 7 |
            |---|---|---|---|---|---|---|---|---|
            | `a0` | (0, 0), (0, 1) | (1, 0), (1, 1) | (2, 0), (2, 1) | (3, 0), (3, 1) | (4, 0), (4, 1) | (5, 0), (5, 1) | (6, 0), (6, 1) | (7, 0), (7, 1) |
            | `a1` | (0, 2), (0, 3) | (1, 2), (1, 3) | (2, 2), (2, 3) | (3, 2), (3, 3) | (4, 2), (4, 3) | (5, 2), (5, 3) | (6, 2), (6, 3) | (7, 2), (7, 3) |

            **`b`**: 4 × 8 `.f16` of product `lane % 16 / 4`; `l = lane % 4 + lane / 16 * 4`

            | register | l = 0 | l = 1 | l = 2 | l = 3 | l = 4 | l = 5 | l = 6 | l = 7 |
            |---|---|---|---|---|---|---|---|---|
            | `b0` | (0, 0), (1, 0) | (0, 1), (1, 1) | (0, 2), (1, 2) | (0, 3), (1, 3) | (0, 4), (1, 4) | (0, 5), (1, 5) | (0, 6), (1, 6) | (0, 7), (1, 7) |
            | `b1` | (2, 0), (3, 0) | (2, 1), (3, 1) | (2, 2), (3, 2) | (2, 3), (3, 3) | (2, 4), (3, 4) | (2, 5), (3, 5) | (2, 6), (3, 6) | (2, 7), (3, 7) |

            **`c`** is laid out like `d`.
        "#]].assert_eq(&of("mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32", Vec::new()));
        expect![[r#"

            **`d`**: 16 × 8 `.s32`; `g = lane / 4`, `t = lane % 4`

            | register | row | column | lane 5 |
            |---|---|---|---|
            | `d0` | g | 2t | (1, 2) |
            | `d1` | g | 2t+1 | (1, 3) |
            | `d2` | g+8 | 2t | (9, 2) |
            | `d3` | g+8 | 2t+1 | (9, 3) |

            **`a`**: 16 × 256 `.b1`; `g = lane / 4`, `t = lane % 4`

            | register | row | column | lane 5 |
            |---|---|---|---|
            | `a0` | g | 32t … 32t+31 | (1, 32) … (1, 63) |
            | `a1` | g+8 | 32t … 32t+31 | (9, 32) … (9, 63) |
            | `a2` | g | 32t+128 … 32t+159 | (1, 160) … (1, 191) |
            | `a3` | g+8 | 32t+128 … 32t+159 | (9, 160) … (9, 191) |

            **`b`**: 256 × 8 `.b1`; `g = lane / 4`, `t = lane % 4`

            | register | row | column | lane 5 |
            |---|---|---|---|
            | `b0` | 32t … 32t+31 | g | (32, 1) … (63, 1) |
            | `b1` | 32t+128 … 32t+159 | g | (160, 1) … (191, 1) |

            **`c`** is laid out like `d`.
        "#]]
        .assert_eq(&of("mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.xor.popc", Vec::new()));
        assert_eq!(of("add.s32", Vec::new()), "");
    }
}
