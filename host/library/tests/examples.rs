//! The example programs that embed the library: built and tested, outside of the workspace.

use std::path::Path;
use std::process::Command;

fn cargo_command(words: &[&str]) -> Command {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(words).args(["--locked", "--offline", "--quiet", "--manifest-path"]);
    cargo.arg(root.join("docs/examples/embed-chat/Cargo.toml"));
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("embedders");
    cargo.env("CARGO_TARGET_DIR", target).env_remove("RUSTFLAGS").env_remove("RUSTC_BOOTSTRAP");
    cargo
}

#[test]
fn example_embedders_pass_their_tests() {
    // Their own dependencies, such as axum, are not in the workspace's lock file.
    let known = cargo_command(&["metadata", "--format-version=1"]).output().unwrap();
    if !known.status.success() {
        let said = String::from_utf8_lossy(&known.stderr);
        assert!(!said.contains("--locked"), "renew `docs/examples/embed-chat/Cargo.lock`: {said}");
        jaato_plugin_testkit::skip("`cargo fetch` in `docs/examples/embed-chat` was not run");
        return;
    }
    let ran = cargo_command(&["test", "--workspace"]).output().unwrap();
    let [said, failed] = [&ran.stdout, &ran.stderr].map(|text| String::from_utf8_lossy(text));
    assert!(ran.status.success() && !failed.contains("warning"), "{said}{failed}");
}
