//! Fixes of the header: the version, the target and their order.

use expect_test::expect;

use super::{check, check_body, kernel};
use crate::db::Database;
use crate::ide;

#[test]
fn a_higher_version_and_target() {
    let module =
        |header: &str, body: &str| format!("{header}\n.entry k()\n{{\n.reg .b32 %r<3>;\n{body}\n}}\n");
    check(
        "E0401",
        &module(".version 6.0\n.target sm_70", "activemask.b32 %r1;"),
        expect![[r#"
        !raise `.version` to 6.2
          + .version 6.2
          - .version 6.0
    "#]],
    );
    check(
        "E0402",
        &module(".version 6.3\n.target sm_75", "redux.sync.add.u32 %r1, %r2, -1;"),
        expect![[r#"
        raise `.target` to sm_80 and `.version` to 7.0
          + .version 7.0
          + .target sm_80
          - .version 6.3
          - .target sm_75
    "#]],
    );
    check(
        "E0403",
        ".version 7.0\n.target sm_90\n",
        expect![[r#"
        !raise `.version` to 7.8
          + .version 7.8
          - .version 7.0
    "#]],
    );
}

/// sm_90a is not higher than sm_90.
#[test]
fn another_suffix_of_the_target() {
    check_body(
        "E0402",
        "    wgmma.fence.sync.aligned;\n    ret;",
        expect![[r#"
            change `.target` to sm_90a
              + .target sm_90a
              - .target sm_90
        "#]],
    );
    let body = ".reg .b32 %r<3>; .reg .b64 %d<3>; .reg .pred %p1;\n\
                tcgen05.mma.cta_group::1.kind::f16 [%r1], %d1, %d2, %r2, %p1, 3;\nret;";
    let db = Database::default();
    let text = kernel(body).replace(".target sm_90", ".target sm_110f");
    let found = ide::diagnostics(&db, db.add_file(text.as_str()));
    let message = "operand `scale-input-d` of `tcgen05.mma` requires one of";
    assert!(found.iter().any(|d| d.lint.code == "E0402" && d.message.starts_with(message)), "{found:?}");
}

/// A byte order mark hides no directive.
#[test]
fn byte_order_marks() {
    check(
        "E0001",
        &format!("\u{feff}{}", kernel("ret;")),
        expect![[r#"
        !remove the byte order mark
          + .version 9.0
          - ﻿.version 9.0
    "#]],
    );
    let db = Database::default();
    let file = db.add_file(format!("\u{feff}{}", kernel("ret;")));
    assert_eq!(ide::diagnostics(&db, file).len(), 1);
}

#[test]
fn versions_without_a_minor_number() {
    check(
        "E0104",
        ".version 9\n.target sm_80\n",
        expect![[r#"
        change to `.version 9.0`
          + .version 9.0
          - .version 9
    "#]],
    );
    check(
        "E0104",
        ".version 42\n.target sm_80\n",
        expect![[r#"
        change to `.version 8.0`
          + .version 8.0
          - .version 42
    "#]],
    );
}

/// The nearest target that the version of the module has.
#[test]
fn unknown_targets() {
    check(
        "E0403",
        ".version 8.7\n.target sm_200\n",
        expect![[r#"
        change to sm_120
          + .target sm_120
          - .target sm_200
    "#]],
    );
}

#[test]
fn names_of_targets_that_mean_another() {
    check(
        "W0520",
        ".version 9.0\n.target compute_90, texmode_unified\n",
        expect![[r#"
            !change to `sm_90`
              + .target sm_90, texmode_unified
              - .target compute_90, texmode_unified
        "#]],
    );
    check(
        "W0520",
        ".version 9.0\n.target sm_101a\n",
        expect![[r#"
            !change to `sm_110a`
              + .target sm_110a
              - .target sm_101a
        "#]],
    );
}

#[test]
fn what_a_header_lacks() {
    check(
        "E0104",
        ".entry k() { .reg .b32 %r; redux.sync.add.u32 %r, %r, -1; }\n",
        expect![[r#"
            !insert `.version 8.0` and `.target sm_80`
              + .version 8.0
              + .target sm_80
              + .address_size 64
        "#]],
    );
    check(
        "E0104",
        "// start\n.target sm_90\n.address_size 64\n",
        expect![[r#"
            !insert `.version 8.0`
              + .version 8.0
        "#]],
    );
    check(
        "E0104",
        "// nothing",
        expect![[r#"
            !insert `.version 8.0` and `.target sm_75`
              + .version 8.0
              + .target sm_75
              + .address_size 64
        "#]],
    );
    check(
        "E0107",
        ".version 8.0\n.entry k() { ret; }\n",
        expect![[r#"
            !insert `.target sm_75`
              + .target sm_75
              + .address_size 64
        "#]],
    );
    check(
        "E0404",
        ".version 8.0\n.target sm_90\n.address_size 32\n",
        expect![[r#"
            change to `.address_size 64`
              + .address_size 64
              - .address_size 32
        "#]],
    );
}
