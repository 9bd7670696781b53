//! The output of `-v` and of the warning options about compiled kernels, line by line as ptxas prints it.

use std::fmt::Write as _;
use std::time::Duration;

use super::log::{Kind, Log};
use super::options::Options;
use super::source::Text;
use ptx_analysis::link::Frame;
use ptx_analysis::lower::{function, lower};
use ptx_analysis::{Database, Linked, LinkedKernel, SourceFile, compile, reach};
use ptx_backend::Fixed;
use ptx_backend::abi::FEWEST_REGISTERS;
use ptx_backend::input::Launch;
use ptx_backend::target::WARP;
use ptx_backend::target::{MAX_REGISTERS, Target};

/// Reports the launch bounds of kernels that are out of range, last kernel first. Returns whether this forbids output.
pub(super) fn ranges(options: &Options, db: &Database, file: SourceFile, log: &mut Log) -> bool {
    let Some(target) = Target::of(options.sm) else { return false };
    let kind = if options.warnings_are_errors { Kind::Error } else { Kind::Warning };
    let kernels = compile::functions(db, file).filter_map(|item| function(db, item).as_ref());
    let kernels: Vec<_> = kernels.filter(|function| function.entry).collect();
    let mut any = false;
    for kernel in kernels.into_iter().rev().filter(|_| !options.quiet) {
        for message in out_of_range(&kernel.launch, &kernel.name, target).into_iter().flatten() {
            log.say(kind, message);
            any = true;
        }
    }
    any && kind == Kind::Error
}

/// The messages about launch bounds of a kernel that are changed or ignored.
fn out_of_range(launch: &Launch, name: &str, target: &Target) -> [Option<String>; 3] {
    let (least, most) = (FEWEST_REGISTERS, MAX_REGISTERS);
    let registers = launch.maxnreg.and_then(|registers| match registers {
        _ if registers < least => Some(format!(
            "For entry {name} adjusting per thread register count of {registers} to lower bound of {least}"
        )),
        _ if registers > most => {
            Some(format!("Too many maxnreg specified for entry {name}, will be ignored"))
        }
        _ => None,
    });
    let most_threads = target.limits.warps * WARP;
    let threads = launch.maxntid.or(launch.reqntid);
    let threads = threads.map(|n| n.iter().fold(1u32, |all, n| all.saturating_mul(*n)));
    let blocks = launch.minnctapersm.filter(|_| threads.is_some());
    let too_many = blocks.is_some_and(|blocks| blocks > target.limits.blocks);
    let blocks_message = too_many.then(|| {
        format!("Value of minnctapersm for entry {name} is out of range. minnctapersm will be ignored")
    });
    let blocks = blocks.filter(|_| !too_many);
    let all = threads.unwrap_or(0).saturating_mul(blocks.unwrap_or(1));
    let ignored = if blocks.is_some() { ".minnctapersm" } else { ".minnctapersm and .maxntid" };
    let threads_message = (all > most_threads).then(|| {
        format!("Value of threads per SM for entry {name} is out of range. {ignored} will be ignored")
    });
    [registers, blocks_message, threads_message]
}

/// Reports how the register limit is applied to each kernel, last kernel first.
pub(super) fn limits(options: &Options, db: &Database, file: SourceFile, log: &mut Log) {
    let Some(limit) = options.max_registers.filter(|_| options.verbose) else { return };
    let unlimited = ptx_backend::Options::new(options.sm);
    let kernels = compile::functions(db, file).filter_map(|item| lower(db, item).function.as_ref());
    let kernels: Vec<_> = kernels.filter(|function| function.entry).collect();
    for kernel in kernels.into_iter().rev() {
        let (launch, name) = (&kernel.launch, &kernel.name);
        let threads = launch.maxntid.or(launch.reqntid).is_some();
        let own = match launch.maxnreg {
            Some(own) => Some((own, "of .maxnreg")),
            None if threads && launch.minnctapersm.is_some() => {
                Some((ptx_backend::register_limit(launch, &unlimited), "computed using thread count"))
            }
            None => None,
        };
        if let Some((own, why)) = own {
            log.say(
                Kind::Info,
                format_args!("Overriding global maxrregcount {limit} with entry-specific value {own} {why}"),
            );
        }
        if options.overrides_directives || own.is_none() && !threads {
            let most = MAX_REGISTERS + 1;
            log.say(Kind::Info, format_args!("Overriding maximum register limit {most} for '{name}' with  {limit} of maxrregcount option"));
        }
    }
}

/// Reports each `setmaxnreg` that has no effect and the reason. ptxas prints this even with `--disable-warnings`.
pub(super) fn kept_registers(options: &Options, db: &Database, file: SourceFile, log: &mut Log) {
    for item in reach::wanted(db, file, &options.entries) {
        let (number, why) = match compile::kept_registers(db, item) {
            Some(Fixed::Linked) => (7504, " to maintain compatibility across compilation units"),
            Some(Fixed::Debugged) => (7505, " to allow debugging"),
            Some(Fixed::Called) => (7506, " to maintain compatibility into 'extern' call"),
            Some(Fixed::TooFew) => (7507, " to maintain minimum register requirements"),
            Some(Fixed::Unknown) => (7508, "; unable to determine register count at entry"),
            None => continue,
        };
        log.say(
            Kind::Info,
            format_args!("(C{number}) Potential Performance Loss: 'setmaxnreg' ignored{why}."),
        );
    }
}

/// Reports where the compiler waits for `wgmma` products although the program does not. ptxas prints this even with
/// `--disable-warnings`.
pub(super) fn waits(options: &Options, db: &Database, text: &Text, file: SourceFile, log: &mut Log) {
    for item in reach::wanted(db, file, &options.entries) {
        let name = item.name(db);
        for range in compile::added_waits(db, item) {
            let (_, line) = text.place((item.offset(db) + range.start()).into());
            log.say(Kind::Info, format_args!("(C7517) warpgroup.wait is injected in around line {line} by compiler to allow use of registers defined by GMMA in function '{name}'"));
        }
    }
}

/// Prints the resources of each function. Returns whether something forbids output. Without the calling convention,
/// functions have no stack frames.
pub(super) fn report(
    (options, has_convention): (&Options, bool),
    linked: &Linked,
    times: &dyn Fn(&str) -> Duration,
    log: &mut Log,
) -> bool {
    let mut failed = warn((options, has_convention), linked, log);
    failed |= options.extensible && has_too_much_shared(options, linked, log);
    if options.verbose {
        describe((options, has_convention), linked, times, log);
    }
    failed
}

/// Reports kernels of an extensible program that use too much static shared memory. The linker checks those of other
/// objects, and the kernels of other programs have been checked before.
fn has_too_much_shared(options: &Options, linked: &Linked, log: &mut Log) -> bool {
    let limit = options.sm.static_shared_limit();
    let mut any = false;
    for kernel in &linked.kernels {
        let bytes = u64::from(kernel.resources.shared_bytes);
        if kernel.entry && bytes > limit {
            let name = &kernel.name;
            log.say(
                Kind::Error,
                format_args!(
                    "Entry function '{name}' uses too much shared data ({bytes:#x} bytes, {limit:#x} max)"
                ),
            );
            any = true;
        }
    }
    any
}

fn warn((options, has_convention): (&Options, bool), linked: &Linked, log: &mut Log) -> bool {
    let kind = if options.warnings_are_errors { Kind::Error } else { Kind::Warning };
    let mut any = linked.lacks_files && !options.quiet;
    if any {
        let message = ".loc directive without .file directive is found, line information in generated binary may not be complete";
        log.say(kind, message);
    }
    for kernel in linked.kernels.iter().filter(|_| !options.quiet) {
        let parts = kernel.parts.iter().map(|part| (&part.name, part.frame));
        for (name, frame) in std::iter::once((&kernel.name, kernel.frame)).chain(parts) {
            if options.warn_on_local_memory && has_convention && frame.bytes > 0 {
                let bytes = frame.bytes;
                log.say(
                    kind,
                    format_args!(
                        "Local memory used for function '{name}', size of stack frame: {bytes} bytes"
                    ),
                );
                any = true;
            }
            if options.warn_on_spills && frame.spill_stores + frame.spill_loads > 0 {
                let (stores, loads) = (frame.spill_stores, frame.spill_loads);
                log.say(kind, format_args!("Registers are spilled to local memory in function '{name}', {stores} bytes spill stores, {loads} bytes spill loads"));
                any = true;
            }
        }
    }
    any && kind == Kind::Error
}

fn describe(
    (options, has_convention): (&Options, bool),
    linked: &Linked,
    times: &dyn Fn(&str) -> Duration,
    log: &mut Log,
) {
    // ptxas counts constant banks only on targets where the driver's words come before the parameters in their bank.
    let counts_banks = Target::of(options.sm).is_some_and(|target| target.cubin.counts_bank_0);
    let mut line = format!("{} bytes gmem", linked.sizes.global);
    for (bank, bytes) in [(3, linked.sizes.constant_3), (4, linked.sizes.constant_4)] {
        if counts_banks && bytes > 0 {
            let _ = write!(line, ", {bytes} bytes cmem[{bank}]");
        }
    }
    log.say(Kind::Info, line);
    for kernel in &linked.kernels {
        let name = &kernel.name;
        if kernel.entry {
            log.say(Kind::Info, format_args!("Compiling entry function '{name}' for '{}'", options.sm));
        }
        if has_convention {
            properties(name, kernel.frame, log);
        }
        if kernel.entry {
            log.say(Kind::Info, used(kernel, counts_banks, has_convention));
        }
        let milliseconds = times(name).as_secs_f64() * 1e3;
        log.say(Kind::Info, format_args!("Compile time = {milliseconds:.3} ms"));
        for part in kernel.parts.iter().filter(|_| has_convention) {
            properties(&part.name, part.frame, log);
        }
    }
}

fn properties(name: &str, frame: Frame, log: &mut Log) {
    log.say(Kind::Info, format_args!("Function properties for {name}"));
    let (stack, stores, loads) = (frame.bytes, frame.spill_stores, frame.spill_loads);
    log.more(format_args!(
        "    {stack} bytes stack frame, {stores} bytes spill stores, {loads} bytes spill loads"
    ));
}

fn used(kernel: &LinkedKernel, counts_banks: bool, has_convention: bool) -> String {
    let r = &kernel.resources;
    let mut line = format!("Used {} registers, used {} barriers", r.registers, r.barriers);
    // Without stack frames, local memory follows the constant banks.
    let (stack, local) = if has_convention { (r.stack_bytes, 0) } else { (0, r.stack_bytes) };
    let add = |line: &mut String, bytes: u32, what: &str| {
        if bytes > 0 {
            let _ = write!(line, ", {bytes} bytes {what}");
        }
    };
    add(&mut line, stack, "cumulative stack size");
    add(&mut line, r.shared_bytes, "smem");
    if counts_banks {
        let _ = write!(line, ", {} bytes cmem[0]", r.const0_bytes);
        add(&mut line, kernel.bank_2_bytes, "cmem[2]");
    }
    add(&mut line, local, "lmem");
    if counts_banks {
        for (count, what) in kernel.handles.into_iter().zip(["textures", "surfaces", "samplers"]) {
            if count > 0 {
                let _ = write!(line, ", {count} {what}");
            }
        }
    }
    line
}
