//! What the README shows is what the programs print.

use std::path::Path;
use std::process::Command;

const README: &str = include_str!("../../README.md");

#[test]
fn the_listing_is_what_the_command_prints() {
    let command = "cargo run --release --bin ptx-check -- ";
    let (_, rest) = README.split_once(command).expect("the command is there");
    let (arguments, rest) = rest.split_once('\n').expect("it is a line");
    let (_, rest) = rest.split_once("```text\n").expect("its output follows");
    let (shown, _) = rest.split_once("```").expect("it ends");

    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut checker = Command::new(env!("CARGO_BIN_EXE_ptx-check"));
    let output = checker.args(arguments.split(' ')).current_dir(root).output().expect("it runs");
    assert!(output.status.success());
    let printed = String::from_utf8(output.stdout).expect("text");
    // Lines are left out at each ellipsis, and after the last.
    let mut left = printed.as_str();
    for part in shown.split("…\n") {
        let at = left.find(part).unwrap_or_else(|| panic!("README shows\n{part}\nbut printed is\n{printed}"));
        left = &left[at + part.len()..];
    }
    assert!(shown.lines().count() > 3, "{shown}");
}

/// Browsers draw several blanks as one, and stretch what is left to the length that it should have.
#[test]
fn the_picture_does_not_depend_on_blanks() {
    let picture = include_str!("../../docs/neovim.svg");
    let texts = picture.lines().filter(|line| line.starts_with("<text"));
    assert!(texts.clone().count() > 100);
    assert_eq!(texts.filter(|text| text.contains("  ")).collect::<Vec<_>>(), [""; 0]);
}
