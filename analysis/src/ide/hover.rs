//! Hovers: the meaning of a word.

use std::fmt::Write as _;

use ptx_backend::input::{Function, Linkage, SrcId, Symbol, Variable};
use ptx_isa::{Expected, Opcode, Space};
use ptx_syntax::ast::literal;
use ptx_syntax::{StatementParser, SyntaxKind, SyntaxNode, SyntaxToken, TokenAtOffset};
use text_size::{TextRange, TextSize};

use crate::compile::compile_function;
use crate::db::{Database, Db, SourceFile};
use crate::ide::Hover;
use crate::ide::fate::Fates;
use crate::ide::reasons::View;
use crate::ide::reference::marked_forms;
use crate::ide::resources::{details, not_compiled, of_item};
use crate::ide::sass::statement_sass;
use crate::ide::setting::Setting;
use crate::ide::words::{self, code, kind_name};
use crate::ide::{descriptors, layout, operands};
use crate::items::{Item, items, line_number, parse};
use crate::locate::{Found, Spot, module_target, name_at, spot};
use crate::lower::lower;
use crate::module::module;
use crate::readable::readable_in_full;
use crate::ready::Code;
use crate::scope::{DeclId, DeclKind, Entity};
use crate::source_map::{Occurrence, Usage};
use crate::text::counted;

/// Markdown about the name, instruction, register or directive at an offset.
pub fn hover(db: &Database, file: SourceFile, offset: TextSize, compiled: Code<'_>) -> Option<Hover> {
    if let Some((item, found)) = name_at(db, file, offset) {
        let (range, markdown) = match found {
            Found::Name(occurrence) => {
                (occurrence.range, entity(db, file, item, occurrence.entity, compiled)?)
            }
            Found::Declaration(id, range) => (range, declaration(db, file, item, id)?),
        };
        return Some(Hover { range: range + item.offset(db), markdown });
    }
    let spot = spot(db, file, offset)?;
    let token = match syntax_around(db, spot).token_at_offset(spot.offset) {
        TokenAtOffset::None => return None,
        TokenAtOffset::Single(token) => token,
        TokenAtOffset::Between(left, right) => {
            if right.kind().is_trivia() {
                left
            } else {
                right
            }
        }
    };
    let parent = token.parent()?;
    let setting = &Setting::of(db, file);
    let (range, markdown) = match (token.kind(), parent.kind()) {
        (SyntaxKind::IDENT | SyntaxKind::DOT_WORD, SyntaxKind::INSTRUCTION) => {
            let src = lower(db, spot.item).map.statement_at(spot.offset)?;
            (token.text_range(), instruction(db, file, spot.item, src, &parent, &token, compiled)?)
        }
        (SyntaxKind::IDENT | SyntaxKind::DOT_WORD, SyntaxKind::NAME_REF | SyntaxKind::COMPONENT) => {
            let node = if parent.kind() == SyntaxKind::COMPONENT {
                parent
            } else {
                parent.parent().filter(|p| p.kind() == SyntaxKind::COMPONENT).unwrap_or(parent)
            };
            (node.text_range(), words::special(&spot.item.text(db)[node.text_range()], setting)?)
        }
        (SyntaxKind::INT, _) => {
            let number = with_minus(&parent).map_or(token.text_range(), |negative| negative.text_range());
            let text = &spot.item.text(db)[number];
            let words = words::special(text, setting).or_else(|| words::integer(text))?;
            (number, words + &described(db, spot, number) + &used_as_descriptor(db, file, spot))
        }
        (SyntaxKind::FLOAT, SyntaxKind::VERSION_DIRECTIVE) => return None,
        (SyntaxKind::FLOAT, _) => (token.text_range(), words::float(token.text())?),
        (SyntaxKind::STRING, _) => {
            (token.text_range(), words::pragma(&literal::string(token.text()), setting)?)
        }
        (SyntaxKind::DOT_WORD, _) if is_after_ptr(&token) => {
            let space = Space::parse(token.text().strip_prefix('.')?)?;
            (
                token.text_range(),
                format!("`.{0}`: the parameter is a pointer to `.{0}` memory\n", space.text()),
            )
        }
        (SyntaxKind::DOT_WORD, _) => (token.text_range(), words::directive(token.text(), setting)?),
        (SyntaxKind::IDENT, _) => (token.text_range(), words::target(token.text())?),
        _ => return None,
    };
    Some(Hover { range: range + spot.item.offset(db), markdown })
}

/// Whether a word is the state space of a pointer: `.ptr .global`.
fn is_after_ptr(token: &SyntaxToken) -> bool {
    let mut before = std::iter::successors(token.prev_token(), SyntaxToken::prev_token);
    let is_space = Space::parse(token.text().trim_start_matches('.')).is_some();
    is_space && before.find(|token| !token.kind().is_trivia()).is_some_and(|ptr| ptr.text() == ".ptr")
}

/// A tree with the code at a position, with ranges of the item. If the position is in a statement, it is the tree of
/// that statement alone: parsing a long function takes longer than the rest of the hover.
fn syntax_around(db: &dyn Db, Spot { item, offset }: Spot<'_>) -> SyntaxNode {
    let map = &lower(db, item).map;
    match map.statement_at(offset).and_then(|src| map.statement(src)) {
        Some(range) => StatementParser::default().parse(&item.text(db)[range], range.start()).syntax(),
        None => parse(db, item).syntax(),
    }
}

fn entity(
    db: &dyn Db,
    file: SourceFile,
    item: Item<'_>,
    entity: Entity,
    compiled: Code<'_>,
) -> Option<String> {
    let lowered = lower(db, item);
    match entity {
        Entity::Register(register) => {
            let name = lowered.map.registers.get(register.0 as usize)?;
            let declared = lowered.map.declarations.get(name.declaration.0 as usize)?;
            let text = item.text(db);
            let number = name.number.map_or(String::new(), |number| number.to_string());
            let mut out = code(&format!(".reg .{} {}{number}", name.ty.text(), &text[declared.range]));
            let uses = lowered
                .map
                .occurrences
                .iter()
                .filter(|o| o.entity == entity && o.access != Usage::Declaration);
            let (mut reads, mut writes) = (0, 0);
            for occurrence in uses {
                match occurrence.access {
                    Usage::Write => writes += 1,
                    _ => reads += 1,
                }
            }
            let _ = writeln!(out, "{}; written {writes}×, read {reads}×", words::kind_and_size(name.ty));
            if !declared.range.is_empty() {
                let _ = writeln!(
                    out,
                    "\ndeclared on line {}",
                    line_number(db, file, declared.range.start() + item.offset(db))
                );
            }
            Some(out)
        }
        Entity::Symbol(symbol @ (Symbol::Global(_) | Symbol::Function(_))) => {
            module_symbol(db, file, symbol, compiled)
        }
        Entity::Label(label) => {
            let mut out = declaration(db, file, item, lowered.map.declaration_of(entity)?)?;
            if compiled.is_ready(db, file, item) {
                let found = View::of(db, file, item).and_then(|view| view.of_label(label));
                out += &found.unwrap_or_default();
            }
            Some(out)
        }
        _ => declaration(db, file, item, lowered.map.declaration_of(entity)?),
    }
}

fn declaration(db: &dyn Db, file: SourceFile, item: Item<'_>, id: DeclId) -> Option<String> {
    let lowered = lower(db, item);
    let declared = lowered.map.declarations.get(id.0 as usize)?;
    let name = &item.text(db)[declared.range];
    let mut out = match declared.kind {
        DeclKind::Register { ty, count: Some(count), .. } => {
            code(&format!(".reg .{} {name}<{count}>", ty.text()))
                + &format!("{}, `{name}0` to `{name}{}`\n", kind_name(ty), count.saturating_sub(1))
        }
        DeclKind::Register { ty, .. } => code(&format!(".reg .{} {name}", ty.text())) + kind_name(ty) + "\n",
        DeclKind::Label(label) => {
            let is_use = |o: &&Occurrence| o.entity == Entity::Label(label) && o.access != Usage::Declaration;
            let uses = lowered.map.occurrences.iter().filter(is_use).count();
            code(&format!("{name}:")) + &format!("label; used {uses}×\n")
        }
        DeclKind::Targets(_) => code(&format!("{name}: .branchtargets")),
        DeclKind::Prototype(_) => code(&format!("{name}: .callprototype")),
        DeclKind::Symbol(symbol) => match &lowered.function {
            Some(function) => local_symbol(function, symbol, name)?,
            // If the declaration has errors, its text is shown.
            None => code(as_written(item.text(db), declared.range)),
        },
    };
    if !declared.range.is_empty() {
        let _ = writeln!(
            out,
            "\ndeclared on line {}",
            line_number(db, file, declared.range.start() + item.offset(db))
        );
    }
    Some(out)
}

/// The text of the declaration of a name, without its end and its initializer.
pub(super) fn as_written(text: &str, name: TextRange) -> &str {
    let start = text[..usize::from(name.start())].rfind([';', '{', '}', '(', ',']).map_or(0, |at| at + 1);
    let end = text[usize::from(name.end())..].find([';', ',', ')', '=', '}', '\n']);
    let end = end.map_or(text.len(), |at| usize::from(name.end()) + at);
    text[start..end].trim()
}

fn local_symbol(function: &Function, symbol: Symbol, name: &str) -> Option<String> {
    Some(match symbol {
        Symbol::Local(index) => {
            let variable = function.locals.get(index as usize)?;
            code(&describe_variable(variable)) + &size_of(variable)
        }
        Symbol::Param(index) | Symbol::Return(index) => {
            let list = if matches!(symbol, Symbol::Param(_)) { &function.params } else { &function.returns };
            let param = list.get(index as usize)?;
            let dimension = match param.is_array {
                true => format!("[{}]", param.size / param.ty.bytes().max(1)),
                false => String::new(),
            };
            let mut out = code(&format!(".param .{} {name}{dimension}", param.ty.text()));
            let _ =
                writeln!(out, "{} bytes, aligned to {}, at offset {}", param.size, param.align, param.offset);
            out
        }
        Symbol::Global(_) | Symbol::Function(_) => return None,
    })
}

/// `.global .align 4 .f32 table[16], 64 bytes`
pub(super) fn describe_variable(variable: &Variable) -> String {
    let linkage = match variable.linkage {
        Linkage::Internal => "",
        Linkage::Visible => ".visible ",
        Linkage::Extern => ".extern ",
        Linkage::Weak => ".weak ",
        Linkage::Common => ".common ",
    };
    let space = variable.space.text();
    let element = u64::from(variable.ty.bytes());
    let dimension = match variable.size {
        0 => "[]".to_owned(),
        size if size == element => String::new(),
        size => format!("[{}]", size / element.max(1)),
    };
    format!(
        "{linkage}.{space} .align {} .{} {}{dimension}",
        variable.align,
        variable.ty.text(),
        variable.name
    )
}

/// The size of a variable, in words.
fn size_of(variable: &Variable) -> String {
    match variable.size {
        0 if variable.space == Space::Shared => "the launch determines the size\n".to_owned(),
        0 => "the size is not known here\n".to_owned(),
        1 => "1 byte\n".to_owned(),
        size => format!("{size} bytes\n"),
    }
}

fn module_symbol(db: &dyn Db, file: SourceFile, symbol: Symbol, compiled: Code<'_>) -> Option<String> {
    let module = module(db, file);
    let readable = |name: &str| match readable_in_full(name) {
        Some(readable) => format!("```cpp\n{readable}\n```\n"),
        None => String::new(),
    };
    let mut out = match symbol {
        Symbol::Global(index) => {
            let variable = module.env.variables.get(index as usize)?;
            code(&describe_variable(variable)) + &readable(&variable.name) + &size_of(variable)
        }
        Symbol::Function(index) => {
            let signature = module.env.functions.get(index as usize)?;
            let list = |params: &[ptx_backend::input::Param]| {
                let params: Vec<String> = params
                    .iter()
                    .map(|param| {
                        let element = param.ty.bytes();
                        let count = if param.size == element {
                            String::new()
                        } else {
                            format!("[{}]", param.size / element.max(1))
                        };
                        format!(".param .{} {}{count}", param.ty.text(), param.name)
                    })
                    .collect();
                params.join(", ")
            };
            let kind = if signature.entry { ".entry" } else { ".func" };
            let returns = if signature.returns.is_empty() {
                String::new()
            } else {
                format!(" ({})", list(&signature.returns))
            };
            let mut out = code(&format!("{kind}{returns} {} ({})", signature.name, list(&signature.params)));
            out += &readable(&signature.name);
            let place = module.function_items.get(index as usize)?;
            let item = items(db, file)[place.item as usize];
            let is_ready = compiled.is_ready(db, file, item);
            if let Some(found) = of_item(db, file, item, is_ready) {
                let _ = write!(out, "\n{}", details(&found));
            }
            if let Some(view) = is_ready.then(|| View::of(db, file, item)).flatten() {
                out += &view.of_function();
            }
            out
        }
        Symbol::Local(_) | Symbol::Param(_) | Symbol::Return(_) => return None,
    };
    if let Some(target) = module_target(db, file, symbol) {
        let _ = writeln!(out, "\ndeclared on line {}", line_number(db, file, target.focus.start()));
    }
    Some(out)
}

/// The maximum number of lines of machine code that are shown for one statement.
const SHOWN: usize = 24;

fn instruction(
    db: &dyn Db,
    file: SourceFile,
    item: Item<'_>,
    src: SrcId,
    node: &SyntaxNode,
    token: &SyntaxToken,
    compiled: Code<'_>,
) -> Option<String> {
    let text = item.text(db);
    let (mnemonic, words) = name_of(node, text)?;
    let name = |words: &[&str]| [&[mnemonic], words].concat().join(".");
    let page = ptx_isa::doc(mnemonic).map(page_parts);
    let setting = &Setting::of(db, file);
    let opcode = ptx_isa::resolve(mnemonic, &words).ok();
    let form = opcode.map(|opcode| ptx_isa::form(opcode.form));
    // The description of the word under the cursor comes first.
    let mut out = words::suffix(token.text(), form, setting).map_or(String::new(), |about| about + "\n");
    match opcode {
        Some(opcode) => {
            out += &code(&syntax_line(&name(&words), &ptx_isa::signature(&opcode).operands));
            if let Some((about, _)) = &page {
                let _ = writeln!(out, "{}", prose(about));
            }
            if let Some(lacks) = setting.lacks(&ptx_isa::gates(&opcode)) {
                let _ = writeln!(out, "\n{lacks}");
            }
        }
        None => {
            let _ = writeln!(out, "`{}`", name(&words));
        }
    }
    let is_ready = compiled.is_ready(db, file, item);
    let line_of = |range: TextRange| line_number(db, file, range.start() + item.offset(db));
    match is_ready.then(|| statement_sass(db, file, item, src)).flatten() {
        None if !is_ready => {
            out.push_str("\nThe function is being compiled. Hover again for its machine code.\n")
        }
        Some((lines, live)) if !lines.is_empty() => {
            let _ = writeln!(out, "\n```sass");
            for line in lines.iter().take(SHOWN) {
                let _ = writeln!(out, "{line}");
            }
            if lines.len() > SHOWN {
                let _ = writeln!(out, "// {} more", lines.len() - SHOWN);
            }
            let _ = writeln!(out, "```\n\n{}", counted(live.into(), "live register"));
            if let Some(statements) = fates(db, item).and_then(|fates| fates.taken_in(src, line_of)) {
                let _ = writeln!(out, "\nincludes {statements}");
            }
            if let Some(spilled) = View::of(db, file, item).and_then(|view| view.of_statement(src)) {
                let _ = writeln!(out, "\n{spilled}");
            }
        }
        Some(_) => {
            let fate = fates(db, item).map(|fates| fates.of(src, line_of));
            let _ = writeln!(out, "\n{}", fate.unwrap_or_default());
        }
        None => {
            let _ = writeln!(out, "\n{}", not_compiled(db, file, item).0);
        }
    }
    if let Some(opcode) = opcode {
        let expected = ptx_isa::signature(&opcode).operands;
        let _ = write!(out, "\n{}", operands::list(&opcode, &expected));
        let written = written(node, text, &expected);
        out += &layout::tables(&opcode, &written);
        out += &descriptors::about(&opcode, &written, |operand| constant(db, item, src, operand));
    }
    if let Some((_, rest)) = page {
        let _ = write!(out, "\n---\n{}", prose(&rest));
    }
    let forms = form.map_or(String::new(), |form| marked_forms(form, setting));
    if !forms.is_empty() {
        let _ = write!(out, "\n---\n{forms}");
    }
    Some(out)
}

/// The words of an instruction's name, without dots.
fn name_of<'t>(node: &SyntaxNode, text: &'t str) -> Option<(&'t str, Vec<&'t str>)> {
    let tokens = node.children_with_tokens().filter_map(ptx_syntax::NodeOrToken::into_token);
    let mut words = tokens
        .filter(|t| matches!(t.kind(), SyntaxKind::IDENT | SyntaxKind::DOT_WORD))
        .map(|t| text[t.text_range()].trim_start_matches('.'));
    Some((words.next()?, words.collect()))
}

/// The operands of an instruction as written, by the names of the manual.
fn written(node: &SyntaxNode, text: &str, expected: &[Expected]) -> layout::Written {
    let operands = node.children().filter(|child| child.kind() != SyntaxKind::GUARD);
    let operands = operands.map(|operand| text[operand.text_range()].trim().to_owned());
    expected.iter().map(|operand| operand.name).zip(operands).collect()
}

/// The description of what an instruction does, and the rest of its page. The title is the mnemonic, which is shown
/// anyway.
fn page_parts(page: &str) -> (String, String) {
    let body = page.split_once('\n').map_or(page, |(_, body)| body);
    let mut about = String::new();
    let rest = body.split("\n\n").filter(|paragraph| {
        let is_about = about.is_empty() && paragraph.starts_with(char::is_uppercase);
        if is_about {
            about = (*paragraph).to_owned();
        }
        !is_about
    });
    let rest = rest.collect::<Vec<_>>().join("\n\n");
    (about, rest)
}

/// The expression with the minus before a literal.
fn with_minus(literal: &SyntaxNode) -> Option<SyntaxNode> {
    let minus = literal.parent().filter(|parent| parent.kind() == SyntaxKind::PREFIX_EXPR)?;
    minus.first_token().is_some_and(|token| token.kind() == SyntaxKind::MINUS).then_some(minus)
}

/// The number of uses of a constant that are examined.
const DESCRIBED: usize = 4;

/// The descriptors and policies that a `mov` of a constant makes.
fn used_as_descriptor(db: &dyn Db, file: SourceFile, Spot { item, offset }: Spot<'_>) -> String {
    let (map, text) = (&lower(db, item).map, item.text(db));
    let statement = map.statement_at(offset).and_then(|src| map.statement(src));
    let Some(statement) = statement.filter(|&statement| text[statement].starts_with("mov.")) else {
        return String::new();
    };
    let is_written = |o: &&Occurrence| statement.contains_range(o.range) && o.access == Usage::Write;
    let Some(register) = map.occurrences.iter().find(is_written) else { return String::new() };
    let is_use = |o: &&Occurrence| o.entity == register.entity && o.access == Usage::Read;
    let mut out = String::new();
    for used in map.occurrences.iter().filter(is_use).take(DESCRIBED) {
        let Some(src) = map.statement_at(used.range.start()) else { continue };
        let Some(range) = map.statement(src) else { continue };
        let Some((opcode, written)) = resolved(text, range) else { continue };
        let is_this = |operand: &str| operand == &text[used.range];
        let value = |operand: &str| is_this(operand).then(|| constant(db, item, src, operand)).flatten();
        let words = descriptors::about(&opcode, &written, value);
        if !words.is_empty() && !out.contains(words.trim()) {
            let line = line_number(db, file, range.start() + item.offset(db));
            let _ = write!(out, "\nin `{}` on line {line}:\n{words}", opcode.form.mnemonic());
        }
    }
    out
}

/// What a number means as an operand of its statement.
fn described(db: &dyn Db, Spot { item, offset }: Spot<'_>, number: TextRange) -> String {
    let (map, text) = (&lower(db, item).map, item.text(db));
    let statement = map.statement_at(offset).and_then(|src| map.statement(src));
    let about = |statement: TextRange| {
        let (opcode, written) = resolved(text, statement)?;
        let value =
            |operand: &str| (operand == &text[number]).then(|| literal::integer(operand).ok()).flatten();
        Some(descriptors::about(&opcode, &written, |operand| value(operand).map(|number| number.value)))
    };
    statement.and_then(about).unwrap_or_default()
}

/// The instruction of the statement in a range, and its operands as written.
fn resolved(text: &str, statement: TextRange) -> Option<(Opcode, layout::Written)> {
    let root = StatementParser::default().parse(&text[statement], statement.start()).syntax();
    let node = root.descendants().find(|node| node.kind() == SyntaxKind::INSTRUCTION)?;
    let (mnemonic, words) = name_of(&node, text)?;
    let opcode = ptx_isa::resolve(mnemonic, &words).ok()?;
    let written = written(&node, text, &ptx_isa::signature(&opcode).operands);
    Some((opcode, written))
}

/// What became of the statements of a compiled function without machine code.
fn fates<'db>(db: &'db dyn Db, item: Item<'db>) -> Option<Fates<'db>> {
    let compiled = compile_function(db, item).as_deref()?.as_ref().ok()?;
    Some(Fates::new(&lower(db, item).map, item.text(db), compiled))
}

/// The value of an operand of a statement: a number, or a register that only one `mov` of a number writes.
fn constant(db: &dyn Db, item: Item<'_>, src: SrcId, operand: &str) -> Option<u64> {
    if let Ok(number) = literal::integer(operand) {
        return Some(number.value);
    }
    let (map, text) = (&lower(db, item).map, item.text(db));
    let statement = map.statement(src)?;
    let is_operand = |o: &&Occurrence| statement.contains_range(o.range) && &text[o.range] == operand;
    let entity = map.occurrences.iter().find(is_operand)?.entity;
    let mut writes = map
        .occurrences
        .iter()
        .filter(|o| o.entity == entity && matches!(o.access, Usage::Write | Usage::ReadWrite));
    let (Some(write), None) = (writes.next(), writes.next()) else { return None };
    let definition = &text[map.statement(map.statement_at(write.range.start())?)?];
    let (_, value) = definition.trim_start().strip_prefix("mov.")?.split_once(',')?;
    Some(literal::integer(value.trim_end_matches(';').trim()).ok()?.value)
}

/// Markdown with names such as `sm_80` as code, because some clients read underscores as emphasis, and without line breaks
/// inside paragraphs.
fn prose(markdown: &str) -> String {
    // The second word tells tests that the code is the body of a function.
    let markdown = &words::unwrapped(&markdown.replace("```ptx body\n", "```ptx\n"));
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut out = String::with_capacity(markdown.len() + 16);
    let mut is_block = false;
    for line in markdown.split_inclusive('\n') {
        is_block ^= line.starts_with("```");
        let is_verbatim = is_block || line.starts_with("    ");
        // Every second part of a line is between backquotes.
        for (i, part) in line.split('`').enumerate() {
            if i > 0 {
                out.push('`');
            }
            let mut rest = part;
            while !rest.is_empty() {
                let end = rest.find(|c| is_name(c) != rest.starts_with(is_name)).unwrap_or(rest.len());
                let (word, behind) = rest.split_at(end);
                let marks = if word.contains('_') && !is_verbatim && i % 2 == 0 { "`" } else { "" };
                out.extend([marks, word, marks]);
                rest = behind;
            }
        }
    }
    out
}

/// `add.s32 d, a, b`
fn syntax_line(name: &str, operands: &[Expected]) -> String {
    let operands: Vec<String> = operands.iter().map(operands::spelled).collect();
    format!("{name} {}", operands.join(", ")).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    #[test]
    fn names_with_underscores_are_code() {
        assert_eq!(super::prose("On sm_80,\n`a_b`.\n\n    c_d\n"), "On `sm_80`, `a_b`.\n\n    c_d\n");
    }
}
