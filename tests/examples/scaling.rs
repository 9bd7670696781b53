//! Measures how the time of a compiler grows with the length of functions, and draws it:
//!
//!     cargo run -p conformance --example scaling -- target/release/ptxc backend/docs/compile-time.svg
//!
//! Prints microseconds per instruction, by kind of function and number of PTX instructions. The time is the user and
//! system time of the whole process, as Linux reports it for children. Short runs are repeated until the time is long
//! enough to be measured.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::{env, fs, io};

const SIZES: [usize; 4] = [100, 1_000, 10_000, 100_000];

/// Generates PTX with about this many instructions.
type Make = fn(usize) -> String;

const KINDS: [(&str, &str, Make); 5] = [
    ("one block of arithmetic", "#4269d0", arithmetic),
    ("loads and stores", "#efb118", memory),
    ("many blocks", "#ff725c", blocks),
    ("a hundred live values", "#6cc5b0", live),
    ("many kernels of 50", "#a463f2", kernels),
];

/// The unit of a process's CPU time in seconds.
const TICK: f64 = 0.01;
/// Runs are repeated until they have taken this many seconds.
const ENOUGH: f64 = 0.5;

fn main() -> ExitCode {
    let mut arguments = env::args_os().skip(1).map(PathBuf::from);
    let (Some(compiler), Some(picture)) = (arguments.next(), arguments.next()) else {
        eprintln!("usage: scaling COMPILER PICTURE.svg");
        return ExitCode::FAILURE;
    };
    match measure(&compiler).and_then(|lines| fs::write(picture, draw(&lines))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Microseconds per instruction, by kind and size.
fn measure(compiler: &Path) -> io::Result<Vec<Vec<f64>>> {
    let directory = env::temp_dir().join(format!("ptx-scaling-{}", std::process::id()));
    fs::create_dir_all(&directory)?;
    let (input, output) = (directory.join("in.ptx"), directory.join("out.cubin"));
    let mut lines = Vec::new();
    for (name, _, make) in KINDS {
        let mut line = Vec::new();
        for size in SIZES {
            fs::write(&input, make(size))?;
            let before = children()?;
            let (mut runs, mut taken) = (0, 0.0);
            while taken < ENOUGH {
                let mut command = Command::new(compiler);
                command.arg("-arch=sm_80").arg(&input).arg("-o").arg(&output).stdout(Stdio::null());
                if !command.status()?.success() {
                    return Err(io::Error::other(format!("{name}, {size} instructions: not compiled")));
                }
                runs += 1;
                taken = children()? - before;
            }
            line.push(taken / f64::from(runs) / size as f64 * 1e6);
        }
        let cells: Vec<String> = line.iter().map(|time| format!("{time:8.2}")).collect();
        println!("{name:<24}{}", cells.join(""));
        lines.push(line);
    }
    fs::remove_dir_all(directory)?;
    Ok(lines)
}

/// The CPU time of ended child processes in seconds.
fn children() -> io::Result<f64> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    // The name may contain blanks. It ends with the last parenthesis, which the third field follows.
    let fields = stat.rsplit(')').next().unwrap_or_default().split_ascii_whitespace();
    let ticks: u64 = fields.skip(13).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    Ok(ticks as f64 * TICK)
}

/// Axes with logarithmic scales.
fn draw(lines: &[Vec<f64>]) -> String {
    const WIDTH: f64 = 640.0;
    const HEIGHT: f64 = 360.0;
    const LEFT: f64 = 56.0;
    const RIGHT: f64 = 190.0;
    const TOP: f64 = 16.0;
    const BOTTOM: f64 = 44.0;
    let ticks = [1.0, 3.0, 10.0, 30.0, 100.0];
    let x = |size: usize| LEFT + (WIDTH - LEFT - RIGHT) * ((size as f64).log10() - 2.0) / 3.0;
    let y = |time: f64| HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * time.clamp(1.0, 100.0).log10() / 2.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" \
         font-size=\"12\" fill=\"#555\">\n<rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#fff\"/>\n"
    );
    for time in ticks {
        let (at, end) = (y(time), WIDTH - RIGHT);
        let _ = writeln!(
            svg,
            "<path d=\"M{LEFT} {at:.1}H{end}\" stroke=\"#ddd\"/><text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{time}</text>",
            LEFT - 6.0,
            at + 4.0
        );
    }
    for size in SIZES {
        let (at, below) = (x(size), HEIGHT - BOTTOM + 16.0);
        let _ = writeln!(svg, "<text x=\"{at:.1}\" y=\"{below:.1}\" text-anchor=\"middle\">{size}</text>");
    }
    let _ = writeln!(
        svg,
        "<text x=\"{LEFT}\" y=\"{:.1}\">PTX instructions; microseconds of CPU time for each</text>",
        HEIGHT - 8.0
    );
    for (row, (line, (name, color, _))) in lines.iter().zip(KINDS).enumerate() {
        let points = SIZES.iter().zip(line).map(|(&size, &time)| format!("{:.1},{:.1}", x(size), y(time)));
        let points: Vec<String> = points.collect();
        let at = TOP + 14.0 + 20.0 * row as f64;
        let _ = writeln!(
            svg,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"2\"/>\n\
             <text x=\"{:.1}\" y=\"{at:.1}\" fill=\"{color}\">{name}</text>",
            points.join(" "),
            WIDTH - RIGHT + 14.0
        );
    }
    svg + "</svg>\n"
}

fn module(kernels: &str) -> String {
    format!(".version 8.0\n.target sm_80\n.address_size 64\n{kernels}")
}

fn kernel(name: &str, registers: usize, body: &str) -> String {
    format!(
        ".visible .entry {name}(.param .u64 p)\n{{\n.reg .pred %p<{registers}>;\n.reg .b32 %r<{registers}>;\n.reg .b64 %d<2>;\n\
         ld.param.u64 %d1, [p];\ncvta.to.global.u64 %d1, %d1;\n{body}ret;\n}}\n"
    )
}

/// Each instruction reads the results of the two before it.
fn sums(count: usize) -> String {
    let mut body = "ld.global.u32 %r0, [%d1];\nld.global.u32 %r1, [%d1+4];\n".to_owned();
    for i in 2..count + 2 {
        let name = ["add.s32", "xor.b32", "mul.lo.s32", "sub.s32"][i % 4];
        let _ = writeln!(body, "{name} %r{i}, %r{}, %r{};", i - 1, i - 2);
    }
    let _ = writeln!(body, "st.global.u32 [%d1], %r{};", count + 1);
    body
}

fn arithmetic(size: usize) -> String {
    module(&kernel("k", size + 2, &sums(size)))
}

fn kernels(size: usize) -> String {
    let all: Vec<String> = (0..size / 50).map(|i| kernel(&format!("k{i}"), 48, &sums(46))).collect();
    module(&all.concat())
}

fn memory(size: usize) -> String {
    let mut body = String::new();
    for i in 0..size / 3 {
        let (from, to) = (4 * (7 * i % 4096), 4 * (5 * i % 4096));
        let _ = writeln!(
            body,
            "ld.global.u32 %r{i}, [%d1+{from}];\nadd.s32 %r{i}, %r{i}, {i};\nst.global.u32 [%d1+{to}], %r{i};"
        );
    }
    module(&kernel("k", size, &body))
}

fn blocks(size: usize) -> String {
    let mut body = "ld.global.u32 %r0, [%d1];\nmov.u32 %r1, %r0;\n".to_owned();
    for i in 0..size / 6 {
        let at = 4 * i % 4096;
        let _ = writeln!(
            body,
            "setp.gt.s32 %p{i}, %r1, {i};\n@%p{i} bra L{i};\nst.global.u32 [%d1+{at}], %r1;\nst.global.u32 [%d1+{}], %r0;\n\
             L{i}:\nld.global.u32 %r2, [%d1+{}];\nadd.s32 %r1, %r1, %r2;",
            at + 4,
            2 * at
        );
    }
    module(&kernel("k", size, &(body + "st.global.u32 [%d1], %r1;\n")))
}

fn live(size: usize) -> String {
    const VALUES: usize = 100;
    let mut body = String::new();
    let each = |body: &mut String, text: fn(usize) -> String| (0..VALUES).for_each(|i| *body += &text(i));
    each(&mut body, |i| format!("ld.global.u32 %r{i}, [%d1+{}];\n", 4 * i));
    for i in 0..size.saturating_sub(2 * VALUES) {
        let (a, b, c) = (37 * i % VALUES, 11 * i % VALUES, (53 * i + 7) % VALUES);
        let _ = writeln!(body, "mad.lo.s32 %r{a}, %r{b}, %r{c}, %r{a};");
    }
    each(&mut body, |i| format!("st.global.u32 [%d1+{}], %r{i};\n", 4 * i));
    module(&kernel("k", VALUES, &body))
}
