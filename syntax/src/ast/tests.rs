//! Tests that the views read the trees that the grammar builds.

use super::*;
use crate::{SyntaxToken, parse_file, parse_item};

fn item<N: AstNode>(text: &str) -> N {
    let parse = parse_item(text);
    assert_eq!(parse.errors, [], "in {text}");
    N::cast(parse.syntax()).unwrap()
}

fn find<N: AstNode>(text: &str) -> N {
    let parse = parse_item(&format!(".func f() {{ {text} }}"));
    assert_eq!(parse.errors, [], "in {text}");
    parse.syntax().descendants().find_map(N::cast).unwrap()
}

fn text(token: Option<SyntaxToken>) -> String {
    token.map_or_else(String::new, |token| token.text().to_owned())
}

fn node_text<N: AstNode>(node: Option<N>) -> String {
    node.map_or_else(String::new, |node| node.syntax().text().to_string())
}

#[test]
fn function() {
    let function: Function = item(
        "// doc\n.visible .func (.param .u32 r) f (.param .u64 .ptr .global .align 16 p, .param .align 8 .b8 s[24]) .maxntid 32, 1 { ret; }",
    );
    assert_eq!(function.linkage().unwrap().0, Linkage::Visible);
    assert!(!function.is_entry());
    assert_eq!(function.name().unwrap().text(), "f");
    assert_eq!(function.return_params().unwrap().params().count(), 1);
    let params: Vec<Param> = function.params().unwrap().params().collect();
    assert_eq!(text(params[0].ty()), ".u64");
    assert_eq!(text(params[0].pointer().unwrap().space()), ".global");
    assert_eq!(params[0].pointer().unwrap().align().unwrap().value().unwrap().unwrap().value, 16);
    assert!(params[0].align().is_none());
    assert_eq!(params[1].align().unwrap().value().unwrap().unwrap().value, 8);
    let declarator = params[1].declarator().unwrap();
    assert_eq!(node_text(declarator.dimensions().next().unwrap().size()), "24");
    let directive = function.directives().next().unwrap();
    assert_eq!(text(directive.word()), ".maxntid");
    assert_eq!(directive.arguments().count(), 2);
    assert_eq!(function.body().unwrap().statements().count(), 1);
    assert_eq!(usize::from(function.range().start()), "// doc\n".len());
}

#[test]
fn variable() {
    let variable: Variable = item(".weak .const .align 4 .v2 .f32 x[2] = {1.0, {y = 2}}, %r<10>;");
    assert_eq!(variable.linkage().unwrap().0, Linkage::Weak);
    assert_eq!(text(variable.space()), ".const");
    assert_eq!(text(variable.vector()), ".v2");
    assert_eq!(text(variable.ty()), ".f32");
    let declarators: Vec<Declarator> = variable.declarators().collect();
    let Some(InitializerValue::InitializerList(list)) = declarators[0].initializer().unwrap().value() else {
        panic!("a list");
    };
    assert_eq!(list.values().count(), 2);
    assert_eq!(declarators[1].register_range().unwrap().count().unwrap().unwrap().value, 10);
}

#[test]
fn instruction() {
    let instruction: Instruction =
        find("@!%p ld.global.L2::128B.v2.f32 {%f1, _}|%q, [%rd1+8].unified, %r1.x, !%p, -1, 0f3F800000;");
    assert!(instruction.guard().unwrap().is_negated());
    assert_eq!(text(instruction.guard().unwrap().predicate().unwrap().token()), "%p");
    assert_eq!(text(instruction.mnemonic()), "ld");
    let suffixes: Vec<String> = instruction.suffixes().map(|token| token.text().to_owned()).collect();
    assert_eq!(suffixes, [".global", ".L2::128B", ".v2", ".f32"]);
    let operands: Vec<Operand> = instruction.operands().collect();
    let [
        Operand::Pair(pair),
        Operand::Address(address),
        Operand::Component(component),
        Operand::PrefixExpr(not),
        Operand::PrefixExpr(minus),
        Operand::Literal(one),
    ] = &operands[..]
    else {
        panic!("{operands:?}");
    };
    let Some(Operand::Vector(vector)) = pair.first() else { panic!("a vector") };
    assert!(matches!(vector.elements().nth(1), Some(Operand::Sink(_))));
    assert_eq!(node_text(pair.second()), "%q");
    assert_eq!(text(address.suffix()), ".unified");
    let Some(Operand::BinaryExpr(sum)) = address.parts().next() else { panic!("a sum") };
    assert_eq!(
        (node_text(sum.left()), text(sum.operator()), node_text(sum.right())),
        ("%rd1".into(), "+".into(), "8".into())
    );
    assert_eq!(text(component.selector()), ".x");
    assert_eq!(text(not.operator()), "!");
    assert_eq!(node_text(minus.operand()), "1");
    assert_eq!(one.float().unwrap().unwrap().to_f64(), 1.0);
}

#[test]
fn call() {
    let call = find::<Instruction>("call.uni (r), %f, (a, b), proto;").call().unwrap();
    assert_eq!(call.results.unwrap().arguments().count(), 1);
    assert_eq!(node_text(call.callee), "%f");
    assert_eq!(call.arguments.unwrap().arguments().count(), 2);
    assert_eq!(node_text(call.targets), "proto");
    let call = find::<Instruction>("call f;").call().unwrap();
    assert!(call.results.is_none() && call.arguments.is_none() && call.callee.is_some());
    let call = find::<Instruction>("call f, (a);").call().unwrap();
    assert!(call.results.is_none() && call.arguments.is_some());
    assert!(find::<Instruction>("ret;").call().is_none());
}

#[test]
fn call_prototype() {
    let prototype: CallPrototype =
        find("p: .callprototype (.param .b32 _) _ (.param .b64 _, .param .b8 _[4]) .noreturn;");
    assert_eq!(prototype.name().unwrap().text(), "p");
    assert_eq!(prototype.return_params().unwrap().params().count(), 1);
    assert_eq!(prototype.params().unwrap().params().count(), 2);
    assert_eq!(prototype.directives().count(), 1);
    let prototype: CallPrototype = find("p: .callprototype _ ();");
    assert!(prototype.return_params().is_none() && prototype.params().is_some());
    assert_eq!(find::<BranchTargets>("t: .branchtargets a, b;").targets().count(), 2);
    assert_eq!(find::<CallTargets>("t: .calltargets a, b;").targets().count(), 2);
}

#[test]
fn debug_information() {
    let loc: LocDirective = find(".loc 1 20 5, function_name $info+24, inlined_at 1 10 3\nret;");
    assert_eq!(loc.position(), Some(Position { file: 1, line: 20, column: 5 }));
    assert_eq!(node_text(loc.function().unwrap().name()), "$info+24");
    assert_eq!(loc.inlined_at().unwrap().position(), Some(Position { file: 1, line: 10, column: 3 }));
    let file: FileDirective = item(".file 2 \"a\\\\b.cu\", 1, 2");
    assert_eq!((file.number(), file.path().as_deref()), (Some(2), Some("a\\b.cu")));
    let section: Section = item(".section .debug_info { a: .b8 1, 2 .b32 .debug_str+4 .b64 b-a }");
    assert_eq!(section.name().unwrap().text(), ".debug_info");
    let entries: Vec<SectionEntry> = section.entries().collect();
    let [SectionEntry::Label(_), SectionEntry::SectionData(data), ..] = &entries[..] else {
        panic!("{entries:?}")
    };
    assert_eq!((text(data.width()).as_str(), data.values().count()), (".b8", 2));
    assert_eq!(entries.len(), 4);
}

#[test]
fn header() {
    let parse = parse_file(".version 8.7\n.target sm_90a, debug\n.address_size 64\n.alias a, b;\n");
    let file = SourceFile::cast(parse.syntax()).unwrap();
    let items: Vec<Item> = file.items().collect();
    let [
        Item::VersionDirective(version),
        Item::TargetDirective(target),
        Item::AddressSizeDirective(size),
        Item::Alias(alias),
    ] = &items[..]
    else {
        panic!("{items:?}");
    };
    assert_eq!(version.version(), Some((8, 7)));
    assert_eq!(target.names().map(|token| token.text().to_owned()).collect::<Vec<_>>(), ["sm_90a", "debug"]);
    assert_eq!(size.bits(), Some(64));
    assert_eq!((node_text(alias.name()), node_text(alias.aliasee())), ("a".into(), "b".into()));
}

#[test]
fn pointers_find_their_nodes() {
    let parse = parse_item(".func f() { add.u32 %r1, %r2, %r3; }");
    let root = parse.syntax();
    for node in root.descendants() {
        assert_eq!(crate::ptr::SyntaxNodePtr::new(&node).to_node(&root), Some(node));
    }
    let other = parse_item(".func f() { }").syntax();
    let last = root.descendants().last().unwrap();
    assert_eq!(crate::ptr::SyntaxNodePtr::new(&last).to_node(&other), None);
}
