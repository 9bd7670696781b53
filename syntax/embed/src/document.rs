//! A snippet as a PTX module, and the mapping of its text to the host text.

use ptx_isa::PtxVersion;
use text_size::{TextRange, TextSize};

use crate::literal::{Decoded, Piece, range};
use crate::operand::{Kind, Operand};
use crate::template::{self, Builder, Style};
use crate::{statements, target};

/// A PTX module that maps its positions to the host text. Host positions are relative to the start of the snippet. So a
/// document stays the same when the text around the snippet changes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Document {
    text: String,
    pieces: Vec<Piece>,
    holes: Vec<TextRange>,
    /// The registers that replace operands.
    registers: Vec<Register>,
    style: Style,
    is_raw: bool,
    /// The literal is inside another literal, which has escapes too.
    is_escaped_twice: bool,
    operands: usize,
    /// The snippet is a whole module, not inline assembly.
    pub is_module: bool,
    /// Some part of the snippet is not understood, so any finding may be wrong.
    pub is_opaque: bool,
}

/// A register that replaces an operand.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Register {
    name: String,
    ty: &'static str,
    /// The operand as written in the host text.
    source: String,
    /// The register has a value at the start of the snippet.
    is_input: bool,
}

/// The function that contains inline assembly. Its parameters provide the values of the inputs, and it stores the
/// outputs, so that the machine code of the snippet is the same as in a real function.
const FUNCTION: &str = "inline_asm";

impl Document {
    /// The document of a string that holds a whole module.
    pub(crate) fn module(decoded: &Decoded) -> Document {
        let mut builder = Builder::default();
        template::fill(&mut builder, decoded, Style::Plain, &[]);
        Document {
            text: builder.text,
            pieces: builder.pieces,
            holes: Vec::new(),
            registers: Vec::new(),
            style: Style::Plain,
            is_raw: decoded.is_raw,
            is_escaped_twice: false,
            operands: 0,
            is_module: true,
            is_opaque: false,
        }
    }

    /// The document of inline assembly. Unless PTX is `likely`, the text must be recognizable as PTX; if it is not, the
    /// result is `None`.
    pub(crate) fn inline(
        decoded: &Decoded,
        style: Style,
        operands: &[Operand],
        likely: bool,
        is_opaque: bool,
    ) -> Option<Document> {
        let mut inside = Builder::default();
        let is_understood = template::fill(&mut inside, decoded, style, operands);
        let is_ptx = statements::is_ptx(&inside.text, likely);
        if !is_ptx && !likely || inside.text.trim().is_empty() {
            return None;
        }
        let mut all = Builder::default();
        let registers = || {
            let indexed = operands.iter().enumerate();
            indexed.filter_map(|(index, operand)| match operand.kind {
                Kind::Register(ty) => Some((index, operand, ty, template::name(style, index, operand))),
                Kind::Constant(_) => None,
            })
        };
        let loads = |ty: &str| !matches!(ty, ".pred" | ".b128");
        let target = target::newest(&inside.text);
        all.own(&format!(".version {}\n.target {target}\n.address_size 64\n", PtxVersion::NEWEST));
        let parameters = registers().filter(|(_, operand, ty, _)| operand.is_read && loads(ty));
        let parameters = parameters.map(|(index, _, ty, _)| format!(", .param {ty} $in{index}"));
        all.own(&format!(".func {FUNCTION}(.param .b64 $out{})\n{{\n", parameters.collect::<String>()));
        for (index, operand, ty, name) in registers() {
            all.own(&format!(".reg {ty} {name};\n"));
            if operand.is_read && loads(ty) {
                all.own(&format!("ld.param{ty} {name}, [$in{index}];\n"));
            }
        }
        let start = all.text.len() as u32;
        all.own(&inside.text);
        all.pieces =
            inside.pieces.iter().map(|piece| Piece { start: piece.start + start, ..*piece }).collect();
        let holes = inside.holes.iter().map(|&hole| hole + TextSize::new(start)).collect();
        all.own("\n");
        let mut outputs =
            registers().filter(|(_, operand, ty, _)| operand.is_written && loads(ty)).peekable();
        if outputs.peek().is_some() {
            all.own(".reg .b64 $address;\nld.param.b64 $address, [$out];\n");
        }
        for (index, _, ty, name) in outputs {
            all.own(&format!("st{ty} [$address + {}], {name};\n", 8 * index));
        }
        all.own("}\n");
        Some(Document {
            text: all.text,
            pieces: all.pieces,
            holes,
            registers: registers()
                .map(|(_, operand, ty, name)| Register {
                    name,
                    ty,
                    source: operand.source.clone(),
                    is_input: operand.is_read,
                })
                .collect(),
            style,
            is_raw: decoded.is_raw,
            is_escaped_twice: false,
            operands: operands.len(),
            is_module: false,
            is_opaque: is_opaque || !is_understood || !is_ptx || !is_closed(&inside.text),
        })
    }

    /// The text of the module.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether a range of the module contains a constant with an unknown value, or is in a statement with one.
    pub fn depends_on_unknown(&self, range: TextRange) -> bool {
        !self.holes.is_empty() && {
            let (start, end) = (usize::from(range.start()), usize::from(range.end()));
            let start = self.text[..start].rfind([';', '\n']).map_or(0, |at| at + 1);
            let end = self.text[end..].find(';').map_or(self.text.len(), |at| end + at);
            self.holes.iter().any(|hole| usize::from(hole.start()) < end && start < usize::from(hole.end()))
        }
    }

    /// The names that the snippet declares outside of braces. Later snippets of the same function can use them.
    pub fn open_names(&self) -> impl Iterator<Item = &str> {
        let inside = self.pieces.first().zip(self.pieces.last()).filter(|_| !self.is_module);
        let text = inside.map_or("", |(first, last)| &self.text[first.start as usize..last.end() as usize]);
        statements::open_names(text)
    }

    /// Whether a name is that of a placeholder that has a value at the start.
    pub fn is_input(&self, name: &str) -> bool {
        self.registers.iter().any(|register| register.is_input && register.name == name)
    }

    /// Whether a name belongs to the text that was added around inline assembly.
    pub fn is_around(&self, name: &str) -> bool {
        let is_parameter = |name: &str| name == "out" || name == "address" || is_input_number(name);
        !self.is_module && (name == FUNCTION || name.strip_prefix('$').is_some_and(is_parameter))
    }

    /// Whether a name is that of a placeholder without an operand, such as `%5` in assembly with two operands.
    pub fn lacks_operand(&self, name: &str) -> bool {
        let mark = match self.style {
            Style::Gcc => '%',
            Style::Llvm => '$',
            Style::Plain | Style::Rust => return false,
        };
        let number =
            name.strip_prefix(mark).filter(|number| number.bytes().all(|byte| byte.is_ascii_digit()));
        number.and_then(|number| number.parse().ok()).is_some_and(|index: usize| index >= self.operands)
    }

    /// The number of operands.
    pub fn operand_count(&self) -> usize {
        self.operands
    }

    /// The operand of a placeholder: its name and type, and the operand as written in the host text.
    pub fn operand(&self, name: &str) -> Option<(String, &str)> {
        let register = self.registers.iter().find(|register| register.name == name)?;
        Some((self.message(&format!(".reg {} {name}", register.ty)), &register.source))
    }

    /// Converts a range of the module to the host text, relative to the snippet. `None` if it is in the text that was
    /// added around the snippet.
    pub fn to_host(&self, range: TextRange) -> Option<TextRange> {
        let (start, end) = (u32::from(range.start()), u32::from(range.end()));
        // The range covers the whole snippet and text around it.
        if start < self.pieces.first()?.start && end > self.pieces.last()?.end() {
            return None;
        }
        let (first, last) = if start == end {
            let piece = self.pieces[..self.pieces.partition_point(|piece| piece.start <= start)].last()?;
            (piece, piece)
        } else {
            let first = self.pieces.get(self.pieces.partition_point(|piece| piece.end() <= start))?;
            let after = self.pieces.partition_point(|piece| piece.start < end);
            (first, self.pieces.get(after.checked_sub(1)?)?)
        };
        if first.start >= end && start != end || start > last.end() {
            return None;
        }
        let from = match first.is_verbatim() && start >= first.start {
            true => first.host.start() + TextSize::new(start - first.start),
            false => first.host.start(),
        };
        let to = match last.is_verbatim() && end <= last.end() {
            true => last.host.start() + TextSize::new(end - last.start),
            false => last.host.end(),
        };
        // An empty range in a replaced part is mapped to the start of that part.
        (from <= to).then(|| TextRange::new(from, if start == end { from } else { to }))
    }

    /// Converts a position of the host text, relative to the snippet, to the module. `None` between literals and
    /// outside of the snippet.
    pub fn to_module(&self, host: TextSize) -> Option<TextSize> {
        let after = self.pieces.partition_point(|piece| piece.host.start() <= host);
        let piece = self.pieces.get(after.checked_sub(1)?)?;
        if host > piece.host.end() {
            return None;
        }
        let within = u32::from(host - piece.host.start());
        Some(TextSize::new(match piece.is_verbatim() {
            true => piece.start + within,
            false if host == piece.host.end() => piece.end(),
            false => piece.start,
        }))
    }

    /// Converts text for the module to the way it is written in the host text. `None` if no placeholder or escape can
    /// express it.
    pub fn written(&self, text: &str) -> Option<String> {
        let mut written = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            let digits = rest[1.min(rest.len())..].bytes().take_while(u8::is_ascii_digit).count();
            let is_operand = rest[c.len_utf8()..].get(..digits).and_then(|d| d.parse().ok());
            let is_operand = digits > 0 && is_operand.is_some_and(|index: usize| index < self.operands);
            let mut length = c.len_utf8();
            match (self.style, c) {
                (Style::Gcc, '%') | (Style::Llvm, '$') if is_operand => written.push(c),
                (Style::Gcc, '%') if self.operands > 0 => written.push_str("%%"),
                (Style::Llvm, '$') => written.push_str("$$"),
                (Style::Rust, '{' | '}') => written.extend([c, c]),
                (Style::Rust, '$') => {
                    let name = rest[1..].find(|c: char| !(c == '_' || c.is_ascii_alphanumeric()));
                    let end = name.map_or(rest.len(), |end| end + 1);
                    written.push_str(&format!("{{{}}}", &rest[1..end]));
                    length = end;
                }
                (_, '"' | '\\' | '\n' | '\r' | '\t') if self.is_raw && c != '\n' => match c {
                    '\t' => written.push(c),
                    _ => return None,
                },
                (_, '\n') if !self.is_raw => written.push_str("\\n"),
                (_, '\t') => written.push_str("\\t"),
                (_, '\r') => written.push_str("\\r"),
                (_, '"' | '\\') => written.extend(['\\', c]),
                _ => written.push(c),
            }
            rest = &rest[length..];
        }
        let is_plain = !written.contains(['\\', '"', '\'', '\n']);
        (is_plain || !self.is_escaped_twice).then_some(written)
    }

    /// Converts a message about the module: replaces the names of registers with those of the placeholders in the host
    /// text.
    pub fn message(&self, message: &str) -> String {
        if self.style != Style::Rust || !message.contains('$') {
            return message.to_owned();
        }
        let mut parts = message.split('$');
        let mut changed = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let end = part.find(|c: char| !(c == '_' || c.is_ascii_alphanumeric())).unwrap_or(part.len());
            changed.push_str(&format!("{{{}}}{}", &part[..end], &part[end..]));
        }
        changed
    }

    /// The parts of the module that come from the host text, with their ranges in it, relative to the snippet.
    pub fn pieces(&self) -> impl Iterator<Item = (TextRange, TextRange)> + '_ {
        self.pieces.iter().map(|piece| (range(piece.start as usize, piece.end() as usize), piece.host))
    }

    /// Converts a document of a decoded literal to the text that the literal is in. The document's host positions,
    /// which are relative to `start`, become those of the literal.
    pub(crate) fn within(mut self, start: TextSize, decoded: &Decoded) -> Document {
        let mut pieces = Vec::with_capacity(self.pieces.len());
        for piece in &self.pieces {
            let host = piece.host + start;
            if !piece.is_verbatim() {
                pieces.extend(decoded.host_of(host).map(|host| Piece { host, ..*piece }));
                continue;
            }
            for part in decoded.parts(host) {
                let at = piece.start + part.start - u32::from(host.start());
                pieces.push(Piece { start: at, ..part });
            }
        }
        self.pieces = pieces;
        self.is_escaped_twice = !decoded.is_raw;
        self
    }

    /// Makes the host positions relative to `start`.
    pub(crate) fn relative_to(mut self, start: TextSize) -> Document {
        self.pieces.iter_mut().for_each(|piece| piece.host -= start);
        self
    }
}

/// Whether a name, without its `$`, is that of the parameter for an operand's value.
fn is_input_number(name: &str) -> bool {
    let digits = name.strip_prefix("in");
    digits.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Whether a text closes every brace, bracket and comment that it opens. If not, its statements may continue in another
/// string.
fn is_closed(text: &str) -> bool {
    let (mut depth, mut rest) = (0i32, text);
    while let Some(c) = rest.chars().next() {
        if let Some(comment) = rest.strip_prefix("/*") {
            let Some(end) = comment.find("*/") else { return false };
            rest = &comment[end + 2..];
            continue;
        }
        if let Some(comment) = rest.strip_prefix("//") {
            rest = &comment[comment.find('\n').unwrap_or(comment.len())..];
            continue;
        }
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => return false,
            '}' => depth -= 1,
            _ => {}
        }
        rest = &rest[c.len_utf8()..];
    }
    depth == 0
}
