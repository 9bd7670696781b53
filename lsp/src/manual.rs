//! Generates manual pages and shell completions of all programs from their clap definitions.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Command, CommandFactory};
use clap_complete::Shell;

use crate::{check, command, compile, machine, output, terminal};

/// Arguments of `ptx-lsp manual`.
#[derive(Args, Debug)]
pub struct Arguments {
    /// Such as /usr/local or ~/.local: pages go to share/man/man1 below it, completions to where bash, zsh and fish
    /// look for them.
    folder: PathBuf,
}

/// The clap definitions of the programs.
pub fn programs() -> [Command; 4] {
    [
        command::Arguments::command(),
        check::Arguments::command(),
        compile::definition(),
        machine::Arguments::command(),
    ]
}

/// Writes all files. `failed` is the exit status if a file cannot be written.
pub fn main(arguments: &Arguments, failed: u8) -> ExitCode {
    for (path, content) in files() {
        if let Err((path, error)) = write(&arguments.folder.join(path), &content) {
            terminal::say(format_args!("ptx-lsp manual: {}: {error}", path.display()));
            return ExitCode::from(failed);
        }
    }
    ExitCode::SUCCESS
}

fn write(path: &Path, content: &[u8]) -> Result<(), (PathBuf, io::Error)> {
    let made = path.parent().map_or(Ok(()), std::fs::create_dir_all);
    made.and_then(|()| output::write(path, content)).map_err(|error| (path.to_owned(), error))
}

/// The content of every file, with its path below the folder.
fn files() -> Vec<(PathBuf, Vec<u8>)> {
    let mut files = Vec::new();
    for program in programs() {
        let name = program.get_name().to_owned();
        for (shell, path) in [
            (Shell::Bash, format!("share/bash-completion/completions/{name}")),
            (Shell::Zsh, format!("share/zsh/site-functions/_{name}")),
            (Shell::Fish, format!("share/fish/vendor_completions.d/{name}.fish")),
        ] {
            let mut content = Vec::new();
            clap_complete::generate(shell, &mut program.clone(), &name, &mut content);
            files.push((path.into(), content));
        }
        pages(program, &name, &mut files);
    }
    files
}

/// The manual pages of a program and of each of its subcommands.
fn pages(mut program: Command, title: &str, files: &mut Vec<(PathBuf, Vec<u8>)>) {
    program.build();
    for subcommand in program.get_subcommands().filter(|subcommand| subcommand.get_name() != "help") {
        pages(subcommand.clone(), &format!("{title}-{}", subcommand.get_name()), files);
    }
    let mut content = Vec::new();
    let page = clap_mangen::Man::new(program.disable_help_subcommand(true)).title(title.to_owned());
    // Writing to memory cannot fail.
    if page.render(&mut content).is_ok() {
        files.push((format!("share/man/man1/{title}.1").into(), content));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str) -> String {
        let found = files().into_iter().find(|(name, _)| name == Path::new(path)).expect(path);
        String::from_utf8(found.1).expect("text")
    }

    #[test]
    fn every_program_is_described() {
        for program in programs() {
            program.debug_assert();
        }
        for name in ["ptx-lsp", "ptx-check", "ptxc", "sass"] {
            let page = file(&format!("share/man/man1/{name}.1"));
            assert!(page.contains(".SH OPTIONS") && page.contains("Exit status"), "{page}");
            assert!(
                file(&format!("share/zsh/site-functions/_{name}")).starts_with(&format!("#compdef {name}\n"))
            );
        }
        assert!(file("share/man/man1/sass-dis.1").contains("unpack\\-limit"));
    }

    #[test]
    fn completions_offer_options_and_their_values() {
        assert!(file("share/bash-completion/completions/ptx-check").contains("--fail-on"));
        let ptxc = file("share/fish/vendor_completions.d/ptxc.fish");
        assert!(ptxc.contains("-l gpu-name") && ptxc.contains("sm_90a"), "{ptxc}");
        assert!(ptxc.contains("-s v -l verbose"), "{ptxc}");
    }
}
