//! Line tables: the source line and the PTX line of each instruction.
//!
//! Both tables are DWARF 2 line number programs. `.debug_line` contains the lines that `.loc` gives, with an extension
//! of NVIDIA for inlined functions. `.nv_debug_line_sass` contains the lines of the PTX text, which is in
//! `.nv_debug_ptx_txt`.

use super::data::{Referent, Reloc};
use super::numbers::R_CUDA_64;

/// The source locations of a module, and the locations of its kernels' instructions.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Lines {
    pub files: Vec<File>,
    /// The source locations that instructions refer to.
    pub places: Vec<SourcePlace>,
    /// `.debug_str`, with the names of inlined functions.
    pub strings: Vec<u8>,
    /// `.nv_debug_ptx_txt`.
    pub text: Vec<u8>,
    /// The rows of each kernel, in the order in which the kernels are linked.
    pub kernels: Vec<Vec<Row>>,
}

/// `.file`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct File {
    pub number: u32,
    pub name: String,
    pub time: u64,
    pub size: u64,
}

/// `.loc`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SourcePlace {
    pub file: u32,
    pub line: u32,
    pub inlined: Option<Inlined>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Inlined {
    /// The offset of the function's name in the strings.
    pub name: u32,
    /// The location of the call, which is an earlier location.
    pub at: u32,
}

/// The location of the instructions from this byte of a kernel's code on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Row {
    pub at: u64,
    pub place: Option<u32>,
    /// The line in the PTX text, counted from 1.
    pub ptx_line: u32,
}

const TEXT_SECTION: &str = ".nv_debug_ptx_txt";
/// The initial value of the FNV-1a hash.
const HASH_START: u32 = 0x811c_9dc5;
const HASH_FACTOR: u32 = 0x0100_0193;

const LINE_BASE: i64 = -5;
const LINE_RANGE: i64 = 14;
const OPCODE_BASE: u8 = 10;

/// The header of a program, up to its directories.
#[rustfmt::skip]
const HEADER: [u8; 14] = [
    1, 1, // bytes of an instruction; rows are statements
    LINE_BASE as u8, LINE_RANGE as u8, OPCODE_BASE,
    0, 1, 1, 1, 1, 0, 0, 0, 1, // arguments of the standard operations
];

/// Standard operations.
const COPY: u8 = 1;
const ADVANCE_PC: u8 = 2;
const ADVANCE_LINE: u8 = 3;
const SET_FILE: u8 = 4;
/// Extended operations.
const END_SEQUENCE: u8 = 1;
const SET_ADDRESS: u8 = 2;
/// NVIDIA's extension: the following rows are inlined at a row of this sequence, counted from 1; 0 means not inlined.
/// The offset of the function's name in `.debug_str` follows.
const INLINED_AT: u8 = 0x90;

/// A section, and the relocations of its sequences' addresses.
pub(super) struct Section {
    pub(super) bytes: Vec<u8>,
    pub(super) relocs: Vec<Reloc>,
}

impl Lines {
    /// Writes `.debug_line`. `code_bytes` has the code size of each kernel.
    pub(super) fn source(&self, code_bytes: &[u64]) -> Section {
        let mut program = Program::new(&self.files);
        for (i, (rows, &end)) in self.kernels.iter().zip(code_bytes).enumerate() {
            if rows.iter().all(|row| row.place.is_none()) {
                continue;
            }
            program.start(i);
            let mut last = None;
            // Line 0 means that the location has no line; the previous line continues.
            let has_line = |place: &u32| self.places.get(*place as usize).is_none_or(|place| place.line > 0);
            for row in rows {
                if let Some(place) = row.place.filter(has_line).filter(|&place| last != Some(place)) {
                    last = Some(place);
                    self.row(&mut program, row.at, place);
                }
            }
            program.end(end);
        }
        program.finish()
    }

    /// Adds a row for a location, after one row for each call at which it is inlined.
    fn row(&self, program: &mut Program, at: u64, place: u32) {
        // A location is inlined at an earlier one, so this ends.
        let mut calls = Vec::new();
        let mut next = place;
        while let Some(inlined) = self.places.get(next as usize).and_then(|place| place.inlined)
            && inlined.at < next
        {
            calls.push(inlined.at);
            next = inlined.at;
        }
        for &call in calls.iter().rev() {
            if !program.calls.iter().any(|(known, _)| *known == call) {
                let row = self.plain_row(program, at, call);
                program.calls.push((call, row));
            }
        }
        self.plain_row(program, at, place);
    }

    /// The number of the row.
    fn plain_row(&self, program: &mut Program, at: u64, place: u32) -> u32 {
        let Some(&SourcePlace { file, line, inlined }) = self.places.get(place as usize) else { return 0 };
        let context = inlined.and_then(|inlined| {
            let (_, row) = program.calls.iter().find(|(call, _)| *call == inlined.at)?;
            Some((*row, inlined.name))
        });
        program.row(at, file, line, context.unwrap_or((0, 0)))
    }

    /// The name of the section with the PTX text. In objects it contains a hash, so that it differs from the names in
    /// other objects.
    pub(super) fn text_name(&self, relocatable: bool) -> String {
        if !relocatable {
            return TEXT_SECTION.to_owned();
        }
        let hash = self
            .text
            .iter()
            .fold(HASH_START, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(HASH_FACTOR));
        format!("{TEXT_SECTION}.{hash}")
    }

    /// `.nv_debug_line_sass`. In objects it names the section with the PTX text.
    pub(super) fn machine(&self, code_bytes: &[u64], relocatable: bool) -> Section {
        let text = File { number: 1, name: self.text_name(relocatable), ..File::default() };
        let files = if relocatable { &[text][..] } else { &[] };
        let mut program = Program::new(files);
        for (i, (rows, &end)) in self.kernels.iter().zip(code_bytes).enumerate() {
            program.start(i);
            let mut last = 0;
            for row in rows.iter().filter(|row| row.ptx_line > 0) {
                if row.ptx_line != last {
                    last = row.ptx_line;
                    program.row(row.at, relocatable.into(), last, (0, 0));
                }
            }
            program.end(end);
        }
        program.finish()
    }
}

/// A line number program under construction, with the state of its machine.
struct Program {
    bytes: Vec<u8>,
    header_end: usize,
    relocs: Vec<Reloc>,
    /// The rows of the call locations in this sequence.
    calls: Vec<(u32, u32)>,
    rows: u32,
    address: u64,
    file: u32,
    line: u32,
    context: (u32, u32),
}

impl Program {
    fn new(files: &[File]) -> Self {
        // The length, the version and the length of the header are written at the end.
        let mut bytes = vec![0; 10];
        bytes.extend(HEADER);
        let none = File::default();
        let mut directories: Vec<&str> = Vec::new();
        let mut entries = Vec::new();
        for number in 1..=files.iter().map(|file| file.number).max().unwrap_or(0).min(MOST_FILES) {
            let file = files.iter().find(|file| file.number == number).unwrap_or(&none);
            let (directory, name) = match file.name.rsplit_once('/') {
                Some((directory, name)) if !name.is_empty() => (directory, name),
                _ => ("", &*file.name),
            };
            let index = match directory {
                "" => 0,
                _ => {
                    directories.iter().position(|known| *known == directory).unwrap_or_else(|| {
                        directories.push(directory);
                        directories.len() - 1
                    }) + 1
                }
            };
            entries.extend(if name.is_empty() { "?" } else { name }.bytes().chain([0]));
            for value in [index as u64, file.time, file.size] {
                unsigned(&mut entries, value);
            }
        }
        let has_directories = !directories.is_empty();
        for directory in directories {
            bytes.extend(directory.bytes().chain([0]));
        }
        bytes.push(0);
        bytes.extend(entries);
        bytes.push(0);
        if has_directories {
            bytes.extend([0; PADDING]);
        }
        Program {
            header_end: bytes.len(),
            bytes,
            relocs: Vec::new(),
            calls: Vec::new(),
            rows: 0,
            address: 0,
            file: 1,
            line: 1,
            context: (0, 0),
        }
    }

    fn extended(&mut self, operation: u8, arguments: &[u8]) {
        self.bytes.push(0);
        unsigned(&mut self.bytes, arguments.len() as u64 + 1);
        self.bytes.push(operation);
        self.bytes.extend(arguments);
    }

    /// Begins the sequence of a kernel.
    fn start(&mut self, kernel: usize) {
        self.extended(SET_ADDRESS, &[0; 8]);
        let at = self.bytes.len() as u64 - 8;
        self.relocs.push(Reloc { at, symbol: Referent::Kernel(kernel), kind: R_CUDA_64, addend: 0 });
        self.calls.clear();
        (self.rows, self.address, self.line, self.context) = (0, 0, 1, (0, 0));
        self.file = u32::MAX;
    }

    /// Adds a row and returns its number in the sequence.
    fn row(&mut self, at: u64, file: u32, line: u32, context: (u32, u32)) -> u32 {
        // No instruction precedes the first row.
        let at = if self.rows == 0 { 0 } else { at };
        if file != self.file {
            self.bytes.push(SET_FILE);
            unsigned(&mut self.bytes, file.into());
            self.file = file;
        }
        if context != self.context {
            let mut arguments = Vec::new();
            unsigned(&mut arguments, context.0.into());
            unsigned(&mut arguments, context.1.into());
            self.extended(INLINED_AT, &arguments);
            self.context = context;
        }
        let (lines, bytes) = (i64::from(line) - i64::from(self.line), at - self.address);
        match special(lines, bytes) {
            Some(operation) => self.bytes.push(operation),
            None => {
                if lines != 0 {
                    self.bytes.push(ADVANCE_LINE);
                    signed(&mut self.bytes, lines);
                }
                if bytes != 0 {
                    self.advance(bytes);
                }
                self.bytes.push(COPY);
            }
        }
        (self.address, self.line) = (at, line);
        self.rows += 1;
        self.rows
    }

    /// NVIDIA's readers interpret the number as signed. It is written so that all readers get the same value.
    fn advance(&mut self, bytes: u64) {
        self.bytes.push(ADVANCE_PC);
        signed(&mut self.bytes, bytes as i64);
    }

    /// Ends a sequence at this byte offset of the code.
    fn end(&mut self, at: u64) {
        self.advance(at - self.address);
        self.extended(END_SEQUENCE, &[]);
    }

    fn finish(mut self) -> Section {
        let length = self.bytes.len() as u32 - 4;
        let header = self.header_end as u32 - 10;
        self.bytes[..4].copy_from_slice(&length.to_le_bytes());
        self.bytes[4..6].copy_from_slice(&2u16.to_le_bytes());
        self.bytes[6..10].copy_from_slice(&header.to_le_bytes());
        self.relocs.reverse();
        Section { bytes: self.bytes, relocs: self.relocs }
    }
}

/// The number of bytes that ptxas writes after the file table of a header with directories.
const PADDING: usize = 4;
/// The maximum file number. Files with numbers in between are written too.
const MOST_FILES: u32 = 1 << 16;

/// The opcode that advances line and address and adds a row, if there is one.
fn special(lines: i64, bytes: u64) -> Option<u8> {
    let range = LINE_BASE..LINE_BASE + LINE_RANGE;
    if !range.contains(&lines) || bytes == 0 || bytes > 17 {
        return None;
    }
    u8::try_from(lines - LINE_BASE + LINE_RANGE * bytes as i64 + i64::from(OPCODE_BASE)).ok()
}

/// A number in LEB128.
pub(super) fn unsigned(out: &mut Vec<u8>, mut value: u64) {
    loop {
        let low = (value & 0x7f) as u8;
        value >>= 7;
        out.push(if value == 0 { low } else { low | 0x80 });
        if value == 0 {
            return;
        }
    }
}

/// A number with a sign in LEB128.
fn signed(out: &mut Vec<u8>, mut value: i64) {
    loop {
        let low = (value & 0x7f) as u8;
        value >>= 7;
        let last = value == 0 && low & 0x40 == 0 || value == -1 && low & 0x40 != 0;
        out.push(if last { low } else { low | 0x80 });
        if last {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The table that ptxas writes for such a kernel: three rows of a file, then an inlined function, and back.
    #[test]
    fn rows_of_inlined_functions() {
        let place = |file, line, inlined| SourcePlace { file, line, inlined };
        let inlined = Some(Inlined { name: 0, at: 2 });
        let lines = Lines {
            files: vec![
                File { number: 1, name: "/src/dir/a.cu".into(), ..File::default() },
                File { number: 2, name: "/src/dir/b.h".into(), time: 1_700_000_000, size: 1234 },
            ],
            places: vec![
                place(1, 10, None),
                place(1, 11, None),
                place(1, 13, None),
                place(2, 20, inlined),
                place(2, 21, inlined),
                place(1, 14, None),
                place(1, 15, None),
            ],
            kernels: vec![
                [
                    (0, 0, 5),
                    (0x10, 1, 13),
                    (0x30, 3, 18),
                    (0x40, 3, 19),
                    (0x50, 4, 21),
                    (0x60, 5, 23),
                    (0x70, 6, 25),
                ]
                .map(|(at, place, ptx_line)| Row { at, place: Some(place), ptx_line })
                .into(),
            ],
            ..Lines::default()
        };
        let source = lines.source(&[0x100]);
        let header = "6f00000002003100000001 01fb0e0a000101010100000001";
        assert_eq!(hex(&source.bytes[..0x18]), header.replace(' ', ""));
        assert_eq!(
            hex(&source.bytes[0x3b..]),
            "000902000000000000000004010309\
             01f0030202200104020003900300030701030102200104010003900000037902100\
             1f0029001000101"
        );
        assert_eq!(source.relocs[0].at, 0x3e);
        let machine = lines.machine(&[0x100], false);
        assert_eq!(
            hex(&machine.bytes[0x1a..]),
            "0009020000000000000000040003040 1f70305022001f0f1f1f10290010001 01".replace(' ', "")
        );
    }

    /// As in ptxas, code with line 0 belongs to the line before.
    #[test]
    fn line_0_has_no_row() {
        let with = |lines: &[u32]| {
            let places = lines.iter().map(|&line| SourcePlace { file: 1, line, inlined: None }).collect();
            let row = |place| Row { at: u64::from(place) * 16, place: Some(place), ptx_line: 0 };
            let kernels = vec![(0..lines.len() as u32).map(row).collect()];
            Lines { places, kernels, ..Lines::default() }.source(&[0x80]).bytes
        };
        assert_eq!(with(&[10, 0]), with(&[10]));
        assert_ne!(with(&[10, 11]), with(&[10]));
    }

    #[test]
    fn numbers_of_any_length() {
        let (mut out, mut negative) = (Vec::new(), Vec::new());
        unsigned(&mut out, 624_485);
        signed(&mut negative, -123_456);
        assert_eq!((hex(&out), hex(&negative)), ("e58e26".into(), "c0bb78".into()));
    }
}
