//! Navigation in the text. `$0` is the cursor.

use expect_test::expect;
use text_size::TextSize;

use super::features::{open, shown};
use crate::db::{Database, SourceFile};
use crate::ide;

fn file(text: &str) -> (Database, SourceFile, TextSize) {
    let offset = text.find("$0").expect("the fixture has a cursor");
    let db = Database::default();
    let file = db.add_file(text.replacen("$0", "", 1));
    (db, file, TextSize::new(offset as u32))
}

#[test]
fn a_selection_grows() {
    let (db, file, offset) = open(".reg .b32 %r<3>;\n{\nmma {%r1,\n %r$02}, [%r1+4];\n}\nret;");
    let ranges = ide::selection_ranges(&db, file, offset);
    let first = |range| shown(&db, file, range).replace('\n', "⏎");
    let lines: Vec<String> = ranges.into_iter().map(first).collect();
    expect![[r#"
        10:1 %r2
        9:4 {%r1,⏎ %r2}
        9:0 mma {%r1,⏎ %r2}, [%r1+4];
        8:0 {⏎mma {%r1,⏎ %r2}, [%r1+4];⏎}
        6:0 {⏎.reg .b32 %r<3>;⏎{⏎mma {%r1,⏎ %r2}, [%r1+4];⏎}⏎ret;⏎}
        5:0 .visible .entry kernel(.param .u64 input)⏎{⏎.reg .b32 %r<3>;⏎{⏎mma {%r1,⏎ %r2}, [%r1+4];⏎}⏎ret;⏎}
        1:0 .version 9.0⏎.target sm_90⏎.address_size 64⏎.visible .global .align 4 .b32 table[4];⏎.visible .entry kernel(.param .u64 input)⏎{⏎.reg .b32 %r<3>;⏎{⏎mma {%r1,⏎ %r2}, [%r1+4];⏎}⏎ret;⏎}⏎"#]].assert_eq(&lines.join("\n"));
}

const PROGRAM: &str = "\
.version 8.0
.target sm_80
.address_size 64
.func leaf(.param .b32 a) { ret; }
.func middle(.param .b32 a)
{
    { .param .b32 p; call leaf, (p); }
    { .param .b32 p; call leaf, (p); }
    ret;
}
.entry top()
{
    { .param .b32 p; call mid$0dle, (p); }
    { .param .b32 p; call leaf, (p); }
    ret;
}
";

#[test]
fn calls_up_and_down() {
    let (db, file, offset) = file(PROGRAM);
    let node = ide::call_node(&db, file, offset).expect("a function");
    let list = |calls: Vec<ide::Calls>| {
        let line = |call: &ide::Calls| {
            let places: Vec<String> = call.places.iter().map(|&place| shown(&db, file, place)).collect();
            format!("{}: {}\n", call.function.name, places.join(", "))
        };
        calls.iter().map(line).collect::<String>()
    };
    assert_eq!((node.name.as_str(), node.is_entry), ("middle", false));
    expect![[r#"
        top: 13:26 middle
    "#]]
    .assert_eq(&list(ide::callers(&db, file, "middle")));
    expect![[r#"
        middle: 7:26 leaf, 8:26 leaf
        top: 14:26 leaf
    "#]]
    .assert_eq(&list(ide::callers(&db, file, "leaf")));
    expect![[r#"
        middle: 13:26 middle
        leaf: 14:26 leaf
    "#]]
    .assert_eq(&list(ide::callees(&db, file, "top")));
    assert_eq!(ide::callees(&db, file, "leaf"), []);
    let body = ide::call_node(&db, file, TextSize::of(PROGRAM) - TextSize::new(10)).expect("the kernel");
    assert!(body.is_entry && body.name == "top");
}

#[test]
fn prototypes_are_declarations() {
    let text = ".version 8.0\n.target sm_80\n.func f(.param .b32 a);\n.entry k()\n{\n{ .param .b32 p; call f$0, (p); }\nret;\n}\n.func f(.param .b32 a) { ret; }\n";
    let (db, file, offset) = file(text);
    let found = [ide::declaration(&db, file, offset), ide::definition(&db, file, offset)];
    let lines = found.map(|target| target.map(|target| shown(&db, file, target.focus)));
    expect![[r#"[Some("3:6 f"), Some("9:6 f")]"#]].assert_eq(&format!("{lines:?}"));
}

#[test]
fn source_of_instructions() {
    let text = ".version 8.0\n.target sm_80\n.file 1 \"a.cu\"\n.file 2 \"/src/b.cuh\"\n.entry k()\n{\nmov.b32 x, 1;\n.loc 1 7 3\nmov.b32 x, 2;\n.loc 2 40 1\nmov.b32 x, 3;\nret;\n}\n";
    let db = Database::default();
    let file = db.add_file(text);
    let at = |word: &str| {
        let offset = text.find(word).expect("it is there") as u32;
        let place = ide::source_place(&db, file, TextSize::new(offset))?;
        Some(format!("{}:{}:{} {}", place.path, place.line, place.column, shown(&db, file, place.origin)))
    };
    let places = ["mov.b32 x, 1", "loc 1", "mov.b32 x, 2", "40 1", "ret", ".entry"].map(at);
    let lines: Vec<String> =
        places.into_iter().map(|place| place.unwrap_or_else(|| "none".to_owned())).collect();
    expect![[r#"
        none
        a.cu:7:3 8:0 .loc 1 7 3
        a.cu:7:3 9:0 mov.b32 x, 2;
        /src/b.cuh:40:1 10:0 .loc 2 40 1
        /src/b.cuh:40:1 12:0 ret;
        none"#]]
    .assert_eq(&lines.join("\n"));
    let links: Vec<String> = ide::file_links(&db, file)
        .into_iter()
        .map(|(range, path)| shown(&db, file, range) + " = " + &path)
        .collect();
    expect![[r#"
        3:9 a.cu = a.cu
        4:9 /src/b.cuh = /src/b.cuh"#]]
    .assert_eq(&links.join("\n"));
}

#[test]
fn types_and_linked_labels() {
    let of = |body: &str| {
        let (db, file, offset) = open(body);
        let found = ide::type_definition(&db, file, offset).map(|target| shown(&db, file, target.focus));
        let linked = ide::linked_ranges(&db, file, offset);
        let linked: Option<Vec<String>> =
            linked.map(|ranges| ranges.into_iter().map(|range| shown(&db, file, range)).collect());
        format!("{found:?} {linked:?}\n")
    };
    let found = [
        of(".reg .b64 %rd<3>, x;\nmov.b64 %rd$01, x;"),
        of("ld.param.u64 x, [inp$0ut];"),
        of("mov.u64 x, tab$0le;"),
        of("bra L;\nL$0:\n@p bra L;"),
        of("r$0et;"),
    ];
    expect![[r#"
        Some("7:5 .b64") None
        Some("5:30 .u64") None
        Some("4:26 .b32") None
        None Some(["7:4 L", "8:0 L", "9:7 L"])
        None None
    "#]]
    .assert_eq(&found.concat());
}
