//! Detects package runners: programs that may install a server before they start it.
//!
//! If they are killed during an installation, some leave a broken cache that no later start
//! repairs. They therefore get several minutes, and are not ended while they are silent.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::config::{McpServerAddress, StdioServerAddress};

/// The maximum time for a package runner to install and start a server.
pub const INSTALL_TIME: Duration = Duration::from_secs(300);
/// The time during which a known server counts as starting, not as installing.
const START_TIME: Duration = Duration::from_secs(5);

/// Programs that run a package without a subcommand.
const RUNNERS: [&str; 7] = ["bunx", "dnx", "jbang", "npx", "pipx", "pnpx", "uvx"];
/// Programs that run a package with a subcommand.
const SUBCOMMANDS: [(&str, &[&str]); 14] = [
    ("bun", &["x", "add", "install"]),
    ("cargo", &["run", "install"]),
    ("deno", &["run", "x"]),
    ("docker", &["run", "pull", "compose", "mcp"]),
    ("dotnet", &["run", "tool"]),
    ("go", &["run", "install"]),
    ("nerdctl", &["run", "pull", "compose"]),
    ("nix", &["run", "shell", "develop"]),
    ("npm", &["exec", "x", "install", "ci", "i"]),
    ("pip", &["install"]),
    ("pnpm", &["dlx", "exec", "install", "add"]),
    ("podman", &["run", "pull", "compose"]),
    ("uv", &["run", "tool", "sync", "x"]),
    ("yarn", &["dlx", "exec", "install", "add"]),
];

/// The maximum number of words after a program that are searched for a subcommand.
const SUBCOMMAND_PLACES_MAX: usize = 5;

/// Package runners that have started and are still silent.
#[derive(Default)]
pub struct PackageInstalls {
    running: Mutex<BTreeMap<u64, PackageInstall>>,
}

struct PackageInstall {
    server: String,
    since: Instant,
    /// Whether the server was up before.
    is_known: bool,
}

/// The registration of a package runner. Dropping it removes the runner.
pub struct PackageInstallRegistration {
    all: Arc<PackageInstalls>,
    number: u64,
}

impl PackageInstalls {
    /// Registers a package runner that starts.
    pub fn register_runner(
        self: &Arc<Self>,
        server: &str,
        is_known: bool,
    ) -> PackageInstallRegistration {
        let mut running = self.running.lock();
        let number = running.last_key_value().map_or(0, |(number, _)| number + 1);
        let install = PackageInstall { server: server.to_owned(), since: Instant::now(), is_known };
        running.insert(number, install);
        PackageInstallRegistration { all: Arc::clone(self), number }
    }

    /// Lists the servers that are being installed.
    pub fn installing_servers(&self) -> Vec<String> {
        let is_installing = |install: &&PackageInstall| {
            let age = install.since.elapsed();
            age < INSTALL_TIME && (!install.is_known || age >= START_TIME)
        };
        self.running.lock().values().filter(is_installing).map(|it| it.server.clone()).collect()
    }
}

impl Drop for PackageInstallRegistration {
    fn drop(&mut self) {
        self.all.running.lock().remove(&self.number);
    }
}

/// Returns true if a server's start may install it.
pub fn can_install_packages(reach: &McpServerAddress) -> bool {
    match reach {
        McpServerAddress::Stdio(reach) => is_package_runner(reach),
        McpServerAddress::Http(_) => false,
    }
}

/// Searches a command line for a package runner, also after `env` or `sudo` or inside `sh -c`.
pub fn is_package_runner(reach: &StdioServerAddress) -> bool {
    let args = reach.args.iter().flat_map(|arg| arg.split(|c: char| !is_word_char(c)));
    let words: Vec<&str> =
        [reach.command.as_str()].into_iter().chain(args).filter(|word| !word.is_empty()).collect();
    words.iter().enumerate().any(|(at, word)| {
        let program = program_name(word);
        // Options, possibly with values, may come before the subcommand.
        let mut next = words[at + 1..].iter().take(SUBCOMMAND_PLACES_MAX);
        let by_subcommand = SUBCOMMANDS.iter().find(|(name, _)| *name == program);
        RUNNERS.contains(&program.as_str())
            || by_subcommand.is_some_and(|(_, all)| next.any(|word| all.contains(word)))
    })
}

fn is_word_char(c: char) -> bool {
    c.is_alphanumeric() || "-_./\\@:=~+".contains(c)
}

/// Returns the name of a program without folders and Windows extensions.
fn program_name(word: &str) -> String {
    let name = word.rsplit(['/', '\\']).next().unwrap_or_default().to_lowercase();
    let ending = [".cmd", ".exe", ".bat", ".ps1"].into_iter().find(|it| name.ends_with(it));
    let name = ending.map_or(name.as_str(), |ending| &name[..name.len() - ending.len()]);
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn package_runner_is_detected_anywhere_in_the_command() {
        for (line, expected) in [
            ("npx -y @scope/server", true),
            ("/usr/local/bin/npx -y x", true),
            ("cmd /c npx -y x", true),
            ("env A=B uvx mcp-server-git", true),
            ("npm exec -- x", true),
            ("npm --silent exec x", true),
            ("pnpm dlx x", true),
            ("uv --quiet tool run x", true),
            ("docker run -i --rm mcp/git", true),
            ("pipx run x", true),
            ("node server.js", false),
            ("npm start", false),
            ("docker exec -i moon server", false),
            ("python3 -m mcp_server_git", false),
            ("/opt/npx-server/bin/serve", false),
        ] {
            let mut words = line.split(' ').map(str::to_owned);
            let command = words.next().unwrap();
            let reach = StdioServerAddress {
                command,
                args: words.collect(),
                ..StdioServerAddress::default()
            };
            assert_eq!(is_package_runner(&reach), expected, "{line}");
        }
        let shell = StdioServerAddress {
            command: "sh".to_owned(),
            args: vec!["-c".to_owned(), "cd /x && exec npx -y y".to_owned()],
            ..StdioServerAddress::default()
        };
        assert!(is_package_runner(&shell));
    }

    #[tokio::test(start_paused = true)]
    async fn install_status_lasts_until_the_server_answers_or_a_time_limit() {
        let installs = Arc::new(PackageInstalls::default());
        let new = installs.register_runner("new", false);
        let _known = installs.register_runner("known", true);
        assert_eq!(installs.installing_servers(), ["new"]);
        tokio::time::sleep(START_TIME).await;
        assert_eq!(installs.installing_servers(), ["new", "known"]);
        drop(new);
        assert_eq!(installs.installing_servers(), ["known"]);
        tokio::time::sleep(INSTALL_TIME).await;
        assert!(installs.installing_servers().is_empty());
    }
}
