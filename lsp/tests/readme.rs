//! The output that the README shows must be that of the programs.

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
    // The README omits lines at each ellipsis and after the last line.
    let mut left = printed.as_str();
    for part in shown.split("…\n") {
        let at = left.find(part).unwrap_or_else(|| panic!("README shows\n{part}\nbut printed is\n{printed}"));
        left = &left[at + part.len()..];
    }
    assert!(shown.lines().count() > 3, "{shown}");
}

/// Pictures that look the same in all browsers. `tests/editors/run` takes the screenshots of the editors.
#[test]
fn the_pictures_are_there() {
    let pictures: Vec<&str> = README
        .split("](docs/")
        .skip(1)
        .filter_map(|rest| rest.split(')').next())
        .filter(|name| name.ends_with(".png"))
        .collect();
    assert_eq!(pictures, ["vscode.png", "neovim.png", "pictures.png"]);
    for name in pictures {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs").join(name);
        let bytes = std::fs::read(&path).expect("the picture is there");
        assert!(bytes.starts_with(b"\x89PNG\r\n\x1a\n"), "{name}");
        assert!(!README.contains(".svg"), "browsers lay out text in an SVG as they like");
    }
}

/// The address of the repository is the same in the README, in the package of the editor and in links to pages.
#[test]
fn the_repository_has_one_address() {
    let address = env!("CARGO_PKG_REPOSITORY");
    let extension = include_str!("../../editors/vscode/package.json");
    for (name, text) in [("README.md", README), ("package.json", extension)] {
        let links: Vec<&str> = text.match_indices("https://github.com/").map(|(at, _)| &text[at..]).collect();
        assert!(!links.is_empty(), "{name}");
        assert!(
            links.iter().all(|link| link.starts_with(address)),
            "{name} has another address than {address}"
        );
    }
}
