//! Renaming of registers; `$0` is the cursor.

use expect_test::expect;

use super::features::{open, shown};
use crate::ide;

/// The lines that a rename changes, or the reason why it is rejected.
fn renamed(body: &str, new_name: &str) -> String {
    let (db, file, offset) = open(body);
    match ide::rename(&db, file, offset, new_name) {
        Ok(edits) => {
            let mut text = file.text(&db).to_string();
            let before = text.clone();
            for edit in edits.iter().rev() {
                text.replace_range(std::ops::Range::<usize>::from(edit.range), &edit.text);
            }
            let file = db.add_file(text.as_str());
            assert_eq!(ide::diagnostics(&db, file), []);
            let changed = text.lines().zip(before.lines()).filter(|(new, old)| new != old);
            changed.map(|(line, _)| format!("{line}\n")).collect()
        }
        Err(reason) => reason + "\n",
    }
}

#[test]
fn rename_one_register_of_a_range() {
    let body = ".reg .b64 %rd<4>, %x<3>, sum;\nld.param.u64 %rd1, [input];\nadd.s64 %rd2, %rd$01, 1;\nmov.u64 sum, %rd2;\nst.global.u64 [%rd1], sum;\nret;";
    let all = ["address", "%rd7", "%rd3", "%x2", "%x3", "sum", "table", "input", "%tid", "%rd1"];
    let lists = all.map(|name| renamed(body, name));
    expect![[r#"
        .reg .b64 %rd<4>, address, %x<3>, sum;
        ld.param.u64 address, [input];
        add.s64 %rd2, address, 1;
        st.global.u64 [address], sum;
        .reg .b64 %rd<4>, %rd7, %x<3>, sum;
        ld.param.u64 %rd7, [input];
        add.s64 %rd2, %rd7, 1;
        st.global.u64 [%rd7], sum;
        `%rd3` is already declared by `%rd<4>`
        `%x2` is already declared by `%x<3>`
        .reg .b64 %rd<4>, %x3, %x<3>, sum;
        ld.param.u64 %x3, [input];
        add.s64 %rd2, %x3, 1;
        st.global.u64 [%x3], sum;
        `sum` is already declared
        `table` is already declared in the module
        `input` is already declared
        `%tid` is a special register
    "#]]
    .assert_eq(&lists.concat());
    let prepared = |body: &str| {
        let (db, file, offset) = open(body);
        ide::prepare_rename(&db, file, offset).map(|range| shown(&db, file, range))
    };
    assert_eq!(prepared(body).as_deref(), Some("9:14 %rd1"));
}

#[test]
fn names_of_ranges_and_of_the_module_are_kept_apart() {
    let module = |body: &str| {
        format!(
            ".version 8.0\n.target sm_80\n.global .u64 a1;\n.entry k()\n{{\n.reg .b64 %r<4>;\n{body}ret;\n}}\n"
        )
    };
    let refused = |text: String, of: &str, new: &str| {
        let db = crate::db::Database::default();
        let file = db.add_file(text.as_str());
        let offset = text.find(of).expect("the text has the name") as u32;
        ide::rename(&db, file, offset.into(), new).expect_err("the name is taken")
    };
    let body = "mov.u64 %r1, a1;\n";
    assert_eq!(
        refused(module(body), "%r<", "a"),
        "`a1` is already declared in the module, and `a<4>` would declare it again"
    );
    assert_eq!(refused(module(body), "a1;", "%r2"), "`%r2` is already declared by `%r<4>` in `k`");
}

#[test]
fn rename_of_a_range_keeps_names_apart() {
    let body =
        ".reg .b32 %$0r<3>, %v1;\nmov.u32 %r1, 1;\nmov.u32 %v1, %r1;\nst.global.u32 [table], %v1;\nret;";
    expect![[r#"
        `%v1` is already declared, and `%v<3>` would declare it again
        .reg .b32 %w<3>, %v1;
        mov.u32 %w1, 1;
        mov.u32 %v1, %w1;
    "#]]
    .assert_eq(&(renamed(body, "%v") + &renamed(body, "%w")));
}
