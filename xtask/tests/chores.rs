#![allow(clippy::unwrap_used, clippy::expect_used)]
//! Runs the chores like users do, on a workspace of three tiny crates.

use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Replaces the binary: prints its arguments, and fails if one of them requests it.
const HOST: &str = r#"//! A host.
fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    println!("jaato {}", words.join(" "));
    if std::env::var_os("CARGO_PKG_NAME").is_some() {
        println!("below cargo");
    }
    if words.iter().any(|word| word == "fail" || word.contains("tool_bad")) {
        std::process::exit(6);
    }
}
"#;

/// Replaces a plugin, with tests of all kinds.
const PLUGIN: &str = r#"//! A plugin.
#[unsafe(no_mangle)]
pub extern "C" fn answer() -> u8 { 42 }

#[cfg(test)]
mod tests {
    #[test]
    fn passes_in_the_house() {
        let house = std::path::PathBuf::from(std::env::var_os("JAATO_TEST_HOUSE").unwrap());
        assert!(house.join("bin").read_dir().unwrap().next().is_some());
        assert!(house.join("plugins").read_dir().unwrap().next().is_some());
    }

    #[test]
    fn passes_by_being_skipped() {
        use std::io::Write;
        let log = std::env::var_os("JAATO_SKIP_LOG").unwrap();
        let mut log = std::fs::OpenOptions::new().append(true).open(log).unwrap();
        writeln!(log, "SKIPPED: passes_by_being_skipped: no moon").unwrap();
    }

    #[test]
    fn fails() { panic!("as it should") }
}
"#;

struct TestCheckout {
    folder: tempfile::TempDir,
}

impl TestCheckout {
    fn new(plugins: &[&str]) -> Self {
        let checkout = Self { folder: tempfile::tempdir().unwrap() };
        checkout.write_file(
            "Cargo.toml",
            "[workspace]\nresolver = \"3\"\nmembers = [\"host\", \"plugins/*\"]\n\
             [profile.dev]\ndebug = false\n",
        );
        checkout.write_file("host/Cargo.toml", &plugin_manifest("jaato", ""));
        checkout.write_file("host/src/main.rs", HOST);
        for plugin in plugins {
            checkout.add_plugin(plugin);
        }
        checkout
    }

    fn add_plugin(&self, name: &str) {
        let library = "[lib]\ncrate-type = [\"cdylib\", \"rlib\"]\ndoctest = false\n";
        self.write_file(&format!("plugins/{name}/Cargo.toml"), &plugin_manifest(name, library));
        self.write_file(&format!("plugins/{name}/src/lib.rs"), PLUGIN);
    }

    fn write_file(&self, path: &str, text: &str) {
        let path = self.folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn run_xtask(&self, words: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
        command
            .args(words)
            .current_dir(self.folder.path())
            // Set like `cargo run` does, to name the checkout.
            .env("CARGO_MANIFEST_DIR", self.folder.path().join("xtask"))
            .env("CARGO_NET_OFFLINE", "true")
            .env_remove("CARGO_TARGET_DIR")
            .env_remove("CI");
        command.output().unwrap()
    }

    fn target_folder(&self) -> PathBuf {
        self.folder.path().join("target")
    }
}

fn plugin_manifest(name: &str, more: &str) -> String {
    format!("[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n{more}")
}

fn library_name(name: &str) -> String {
    format!("{DLL_PREFIX}{name}{DLL_SUFFIX}")
}

fn file_names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.retain(|name| !name.starts_with('.'));
    names.sort();
    names
}

fn printed_text(output: &Output) -> String {
    let (out, err) = (&output.stdout, &output.stderr);
    format!("{}{}", String::from_utf8_lossy(out), String::from_utf8_lossy(err))
}

#[test]
fn run_builds_all_and_becomes_jaato() {
    let checkout = TestCheckout::new(&["tool-a"]);
    let first = checkout.run_xtask(&["run", "what is this?", "--help"]);
    assert_eq!(first.status.code(), Some(0), "{}", printed_text(&first));
    assert_eq!(String::from_utf8_lossy(&first.stdout), "jaato run what is this? --help\n");
    let said = String::from_utf8_lossy(&first.stderr);
    assert!(said.starts_with("building jaato and its plugins (the first time"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    assert_eq!(file_names(&checkout.target_folder().join("plugins")), [library_name("tool_a")]);

    let second = checkout.run_xtask(&["run", "fail"]);
    assert_eq!(second.status.code(), Some(6), "the exit code is jaato's own");
    assert_eq!(String::from_utf8_lossy(&second.stderr), "", "quiet when all is built");
}

#[test]
fn run_shows_compiler_errors() {
    let checkout = TestCheckout::new(&["tool-a"]);
    checkout.write_file("plugins/tool-a/src/lib.rs", "//! A.\nfn broken( {}\n");
    let output = checkout.run_xtask(&["run", "x"]);
    assert_eq!(output.status.code(), Some(1));
    let said = printed_text(&output);
    assert!(said.contains("plugins/tool-a/src/lib.rs"), "{said}");
    assert!(!said.contains("jaato run x"), "{said}");
}

#[test]
fn build_plugins_gathers_and_checks_plugins_and_removes_old_ones() {
    let checkout = TestCheckout::new(&["tool-a", "tool-b"]);
    let unchecked = checkout.run_xtask(&["build-plugins"]);
    assert!(unchecked.status.success(), "{}", printed_text(&unchecked));
    assert!(printed_text(&unchecked).contains("is not built yet"), "{}", printed_text(&unchecked));
    let plugins = checkout.target_folder().join("plugins");
    assert_eq!(file_names(&plugins), [library_name("tool_a"), library_name("tool_b")]);

    checkout.run_xtask(&["run", "x"]);
    fs::remove_dir_all(checkout.folder.path().join("plugins/tool-b")).unwrap();
    checkout.add_plugin("tool-bad");
    let refused = checkout.run_xtask(&["build-plugins"]);
    assert_eq!(refused.status.code(), Some(1));
    let said = printed_text(&refused);
    let good = plugins.join(library_name("tool_a"));
    assert!(said.contains(&format!("jaato plugin check {}", good.display())), "{said}");
    assert!(said.contains("has refused"), "{said}");
    assert_eq!(file_names(&plugins), [library_name("tool_a"), library_name("tool_bad")]);
}

#[test]
fn test_counts_passed_failed_and_skipped_and_ends_with_the_sum() {
    let checkout = TestCheckout::new(&["tool-a"]);
    let lock = Command::new(env!("CARGO"))
        .args(["generate-lockfile", "--offline"])
        .current_dir(checkout.folder.path())
        .output()
        .unwrap();
    assert!(lock.status.success(), "{}", printed_text(&lock));
    let output = checkout.run_xtask(&["test", "passes"]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(
        said.lines().last(),
        Some("1 passed, 0 failed, 1 skipped"),
        "{}",
        printed_text(&output)
    );
    assert!(said.contains("\nSKIPPED: passes_by_being_skipped: no moon\n"), "{said}");
    let slowest = said.split_once("\nslowest tests:\n").map_or("", |(_, rest)| rest);
    let named =
        slowest.lines().take_while(|line| line.contains(" s  tool-a tool_a: tests::passes_"));
    assert_eq!(named.count(), 2, "{said}");
    assert_eq!(output.status.code(), Some(0), "{}", printed_text(&output));
    let phases = fs::read_to_string(checkout.target_folder().join("test-phases.json")).unwrap();
    let phases: serde_json::Value = serde_json::from_str(&phases).unwrap();
    let named = phases["phases"].as_array().unwrap().iter().map(|phase| phase["phase"].as_str());
    assert_eq!(
        named.flatten().collect::<Vec<_>>(),
        ["setup", "build", "fixtures", "engine", "tests"]
    );

    let output = checkout.run_xtask(&["test", "tests"]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(
        said.lines().last(),
        Some("1 passed, 1 failed, 1 skipped"),
        "{}",
        printed_text(&output)
    );
    assert_eq!(output.status.code(), Some(1));
}

/// Creates a checkout with the smallest content of an archive.
fn shippable_checkout() -> TestCheckout {
    let checkout = TestCheckout::new(&["tool-a"]);
    checkout.write_file(
        "Cargo.toml",
        "[workspace]\nresolver = \"3\"\nmembers = [\"host\", \"plugins/*\", \"plugin-api\"]\n\
         [workspace.package]\nlicense = \"MIT\"\n[profile.dist]\ninherits = \"release\"\n",
    );
    checkout.write_file(
        "plugin-api/Cargo.toml",
        &plugin_manifest("jaato-plugin-api", "license.workspace = true\n"),
    );
    checkout.write_file("plugin-api/src/lib.rs", "//! The boundary.\n");
    checkout.write_file("plugin-api/tests/own.rs", "//! A test of the house.\n");
    for text in [
        "README.md",
        "CHANGELOG.md",
        "LICENSE-APACHE",
        "LICENSE-MIT",
        "plugin-api/include/jaato_plugin.h",
        "docs/abi.md",
        "docs/plugin-authors.md",
        "docs/security.md",
    ] {
        checkout.write_file(text, text);
    }
    let lock = Command::new(env!("CARGO"))
        .args(["generate-lockfile", "--offline"])
        .current_dir(checkout.folder.path())
        .output()
        .unwrap();
    assert!(lock.status.success(), "{}", printed_text(&lock));
    checkout
}

fn unpack_archive(archive: &str, folder: &Path) -> Vec<String> {
    let unpacking =
        Command::new("tar").args(["-xvzf", archive, "-C"]).arg(folder).output().unwrap();
    assert!(unpacking.status.success(), "{}", printed_text(&unpacking));
    let listed = String::from_utf8(unpacking.stdout).unwrap();
    let files = listed.lines().filter(|path| !path.ends_with('/'));
    files.map(|path| path.split_once('/').unwrap().1.to_owned()).collect()
}

#[cfg(target_os = "linux")]
#[test]
fn dist_archive_runs_elsewhere_and_is_reproducible() {
    let checkout = shippable_checkout();
    let packages = |words: &[&str]| -> Vec<String> {
        let output = checkout.run_xtask(words);
        assert!(output.status.success(), "{}", printed_text(&output));
        let printed = String::from_utf8(output.stdout).unwrap();
        let lines = printed.lines().filter_map(|line| line.split_once(" MB  "));
        lines.map(|(_, path)| path.to_owned()).collect()
    };
    let built = packages(&["dist"]);
    let [archive, wheel, npm] = &built[..] else { panic!("{built:?}") };
    assert!(wheel.ends_with(".whl") && npm.ends_with(".tgz"), "{built:?}");
    let name = Path::new(archive).file_name().unwrap().to_str().unwrap();
    assert!(name.starts_with("jaato-0.1.0-") && name.ends_with("-linux-gnu.tar.gz"), "{name}");
    let elsewhere = tempfile::tempdir().unwrap();
    let library = format!("lib/jaato/plugins/{}", library_name("tool_a"));
    assert_eq!(
        unpack_archive(archive, elsewhere.path()),
        [
            "CHANGELOG.md",
            "LICENSE-APACHE",
            "LICENSE-MIT",
            "README.md",
            "bin/jaato",
            "include/jaato_plugin.h",
            &library,
            "share/jaato/sdk/Cargo.lock",
            "share/jaato/sdk/Cargo.toml",
            "share/jaato/sdk/LICENSE-APACHE",
            "share/jaato/sdk/LICENSE-MIT",
            "share/jaato/sdk/README.md",
            "share/jaato/sdk/docs/abi.md",
            "share/jaato/sdk/docs/plugin-authors.md",
            "share/jaato/sdk/docs/security.md",
            "share/jaato/sdk/plugin-api/Cargo.toml",
            "share/jaato/sdk/plugin-api/include/jaato_plugin.h",
            "share/jaato/sdk/plugin-api/src/lib.rs",
        ]
    );
    let top = elsewhere.path().join(name.strip_suffix(".tar.gz").unwrap());
    assert!(Command::new(top.join("bin/jaato")).status().unwrap().success());

    // An existing layout is only packed, to the same bytes.
    let house = elsewhere.path().join("house");
    fs::create_dir_all(&house).unwrap();
    fs::rename(top.join("bin"), house.join("bin")).unwrap();
    fs::rename(top.join("lib/jaato/plugins"), house.join("plugins")).unwrap();
    let [house, dest] = [&house, elsewhere.path()].map(|path| path.to_str().unwrap());
    let again = packages(&["dist", "--from", house, "--dest", dest]);
    let read = |path: &String| fs::read(path).unwrap();
    assert!(built.iter().map(read).eq(again.iter().map(read)));
    let hidden = fs::read_dir(dest)
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().starts_with('.'));
    assert_eq!(hidden.count(), 0, "nothing is left over");
}

#[cfg(target_os = "linux")]
#[test]
fn dist_reports_missing_files() {
    let checkout = shippable_checkout();
    let house = checkout.folder.path().join("house");
    fs::create_dir_all(house.join("plugins")).unwrap();
    let refused = |expected: &str| {
        let output = checkout.run_xtask(&["dist", "--from", house.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(1));
        assert!(printed_text(&output).contains(expected), "{}", printed_text(&output));
        assert!(file_names(&checkout.target_folder().join("dist")).is_empty());
    };
    fs::create_dir_all(checkout.target_folder().join("dist")).unwrap();
    refused("house/bin/jaato` is missing");
    fs::create_dir_all(house.join("bin")).unwrap();
    fs::copy("/bin/true", house.join("bin/jaato")).unwrap();
    refused("found no plugin to ship");
    fs::copy("/bin/true", house.join("plugins").join(library_name("tool_a"))).unwrap();
    for paper in
        ["LICENSE-MIT", "plugin-api/include/jaato_plugin.h", "docs/security.md", "Cargo.lock"]
    {
        let (place, away) =
            (checkout.folder.path().join(paper), checkout.folder.path().join("away"));
        fs::rename(&place, &away).unwrap();
        refused(&format!("{paper}` is missing"));
        fs::rename(&away, &place).unwrap();
    }
}
