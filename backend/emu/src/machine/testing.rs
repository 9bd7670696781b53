//! Makes kernels from the text of instructions, for tests.

use super::Kernel;
use crate::Device;
use ptx_backend::input::Env;
use ptx_isa::PtxVersion;
use sass::Sm;

/// Assembles instructions, each preceded by its stall count, scoreboards, waits and reuse flags:
/// `s4 w0 r1 ?01 u1: TEXT`. The last instruction ends the threads. `y` lets the warp scheduler switch to another warp.
pub(crate) fn kernel(sm: Sm, lines: &[impl AsRef<str>]) -> Kernel {
    let lines = lines.iter().map(AsRef::as_ref).chain(["s5: EXIT"]);
    Kernel {
        sm,
        code: lines.enumerate().map(|(at, line)| word(sm, at as u64 * sass::INST_BYTES, line)).collect(),
        registers: 32,
        shared_bytes: 1024,
        stack_bytes: 0,
        local_bytes: 0,
        bank2: Vec::new(),
        bank3: Vec::new(),
        bank4: Vec::new(),
        function_words: Vec::new(),
        independent: None,
        handles: Vec::new(),
        places: Vec::new(),
    }
}

fn word(sm: Sm, address: u64, line: &str) -> u128 {
    let (control, text) = line.split_once(": ").expect("control: text");
    let mut inst = sass::parse(sm, text, address).unwrap_or_else(|e| panic!("{text}: {}", e.message));
    for field in control.split_ascii_whitespace() {
        let (kind, number) = field.split_at(1);
        let value = || number.parse::<u8>().expect("a number");
        match kind {
            "s" => inst.control.stall = value(),
            "w" => inst.control.write_sb = Some(value()),
            "r" => inst.control.read_sb = Some(value()),
            "u" => inst.control.reuse = value(),
            "y" => inst.control.yield_ = true,
            "?" => inst.control.wait = number.bytes().map(|b| 1 << (b - b'0')).sum(),
            _ => panic!("{field}"),
        }
    }
    sass::encode(sm, &inst).expect("encodes")
}

/// A device with an empty module.
pub(crate) fn device(sm: Sm) -> Device {
    let env = Env {
        version: PtxVersion::NEWEST,
        target: ptx_isa::Sm::new(sm.0.into()),
        address_size: 64,
        independent_samplers: false,
        variables: Vec::new(),
        functions: Vec::new(),
        pointees_wait: true,
        pointees_watch: true,
        nounroll: false,
    };
    Device::new(&env).expect("a device")
}
