//! Runs the compared commands as separate processes.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The paths of the commands: NVIDIA's from the environment, ours next to this program.
pub(crate) struct Tools {
    pub(crate) ptxas: PathBuf,
    pub(crate) nvdisasm: PathBuf,
    pub(crate) cuobjdump: PathBuf,
    pub(crate) ptxc: PathBuf,
    pub(crate) ptx_check: PathBuf,
}

/// The output of a command.
pub(crate) struct Said {
    pub(crate) ok: bool,
    pub(crate) text: String,
}

impl Tools {
    pub(crate) fn find() -> Result<Tools, String> {
        let named = |name: &str| {
            std::env::var_os(name)
                .map(PathBuf::from)
                .ok_or_else(|| format!("{name} is not set: start this with tests/oracle/run"))
        };
        let program = std::env::current_exe().map_err(|e| e.to_string())?;
        let ours = |name: &str| program.with_file_name(name);
        Ok(Tools {
            ptxas: named("PTXAS")?,
            nvdisasm: named("NVDISASM")?,
            cuobjdump: named("CUOBJDUMP")?,
            ptxc: ours("ptxc"),
            ptx_check: ours("ptx-check"),
        })
    }
}

/// The name of a target, with the suffix of a module that is for this architecture alone.
pub(crate) fn architecture(target: u32, module: &str) -> String {
    let suffix = if module.contains(&format!(".target sm_{target}a")) { "a" } else { "" };
    format!("sm_{target}{suffix}")
}

/// Arguments that both compilers accept.
pub(crate) fn compile_arguments(arch: &str, input: &Path, output: &Path) -> Vec<String> {
    let path = |p: &Path| p.to_string_lossy().into_owned();
    vec![format!("-arch={arch}"), "-O3".into(), "-v".into(), "-o".into(), path(output), path(input)]
}

pub(crate) fn run(tool: &Path, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Said {
    said(Command::new(tool).args(arguments).output())
}

fn said(output: std::io::Result<Output>) -> Said {
    match output {
        Ok(output) => {
            let text = [output.stdout, output.stderr].concat();
            Said { ok: output.status.success(), text: String::from_utf8_lossy(&text).into_owned() }
        }
        Err(error) => Said { ok: false, text: error.to_string() },
    }
}

/// User and system seconds of a process, as the shell reports them for its children.
pub(crate) fn cpu_seconds(tool: &Path, arguments: &[String]) -> Option<f64> {
    const SCRIPT: &str = r#""$@" >/dev/null 2>&1; times"#;
    let output = Command::new("bash").args(["-c", SCRIPT, "bash"]).arg(tool).args(arguments).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    // The second line is about the children: minutes and seconds, user and system, such as `0m0.004s`.
    text.lines().nth(1)?.split_whitespace().map(seconds).sum()
}

fn seconds(text: &str) -> Option<f64> {
    let (minutes, seconds) = text.strip_suffix('s')?.split_once('m')?;
    Some(minutes.parse::<f64>().ok()? * 60.0 + seconds.replace(',', ".").parse::<f64>().ok()?)
}

/// The data about a kernel that the compilers print with `-v`.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Kernel {
    pub(crate) name: String,
    pub(crate) registers: u32,
    pub(crate) spill_stores: u32,
}

/// The kernels in a compiler's output.
pub(crate) fn kernels(text: &str) -> Vec<Kernel> {
    let mut kernels: Vec<Kernel> = Vec::new();
    let mut about_kernel = false;
    for line in text.lines() {
        if let Some(rest) = after(line, "Compiling entry function '") {
            let name = rest.split('\'').next().unwrap_or("").to_owned();
            kernels.push(Kernel { name, ..Kernel::default() });
            about_kernel = true;
        } else if let Some(name) = after(line, "Function properties for ") {
            about_kernel = kernels.last().is_some_and(|k| k.name == name.trim());
        } else if let Some(kernel) = kernels.last_mut().filter(|_| about_kernel) {
            if let Some(rest) = after(line, "bytes stack frame, ") {
                kernel.spill_stores = number(rest);
            } else if let Some(rest) = after(line, "Used ") {
                kernel.registers = number(rest);
            }
        }
    }
    kernels
}

fn after<'a>(line: &'a str, mark: &str) -> Option<&'a str> {
    line.split_once(mark).map(|(_, rest)| rest)
}

fn number(text: &str) -> u32 {
    text.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_compilers_print() {
        let text = "\
info    : Compiling entry function 'a' for 'sm_80'
info    : Function properties for a
    8 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads
info    : Used 28 registers, used 1 barriers
info    : Function properties for helper
    0 bytes stack frame, 16 bytes spill stores, 0 bytes spill loads
";
        assert_eq!(kernels(text), [Kernel { name: "a".into(), registers: 28, spill_stores: 4 }]);
    }

    #[test]
    fn reads_the_shell_s_times() {
        assert_eq!(seconds("1m0.250s"), Some(60.25));
        assert_eq!(seconds("soon"), None);
    }
}
