//! Tests `jaato plugin dev`, with a `cargo` that copies a prepared library.

use std::path::PathBuf;

use crate::house;
use crate::support::{Command, House, fixture, set_mode};

/// The plugin's crate, and the library that the `cargo` of the test builds.
struct PluginCrate<'a> {
    house: &'a House,
    folder: PathBuf,
    library: PathBuf,
}

impl<'a> PluginCrate<'a> {
    fn new(house: &'a House) -> Self {
        let suffix = std::env::consts::DLL_SUFFIX;
        let script = format!(
            "#!/bin/sh\n\
             here=$(pwd -P)\n\
             test -e ../built || {{ echo 'error: no moon tonight' >&2; exit 101; }}\n\
             mkdir -p target && cp ../built target/libmoon{suffix}\n\
             echo '{{\"reason\":\"compiler-artifact\",\"manifest_path\":\"'$here'/Cargo.toml\",\
             \"filenames\":[\"'$here'/target/libmoon{suffix}\"]}}'\n"
        );
        let cargo = house.write("bin-of-test/cargo", &script);
        set_mode(&cargo, 0o755);
        house.write("moon/Cargo.toml", "[package]\n");
        house.write("moon/src/lib.rs", "// 1\n");
        let (folder, library) = (house.path().join("moon"), house.path().join("built"));
        for private in [folder.clone(), folder.join("src")] {
            set_mode(&private, 0o755);
        }
        Self { house, folder, library }
    }

    /// Prepares another build of the plugin.
    fn prepare_build(&self, number: u8) {
        let mut bytes = std::fs::read(fixture("hooks")).unwrap();
        // Bytes after the end of a library change its content alone.
        bytes.push(number);
        std::fs::write(&self.library, bytes).unwrap();
    }

    fn dev_command(&self, options: &[&str]) -> Command {
        let folder = self.folder.to_str().unwrap();
        let words = [&["plugin", "dev", folder], options].concat();
        let path = format!("{}:/usr/bin:/bin", self.house.path().join("bin-of-test").display());
        self.house.command(&words).variable("PATH", path)
    }

    fn show_plugin(&self) -> String {
        self.house.run(&["plugin", "show", "fixture-hooks"]).code(0).stdout
    }
}

#[test]
fn later_builds_of_a_trusted_folder_keep_trust_and_grants() {
    let house = house!();
    let moon = PluginCrate::new(&house);
    moon.prepare_build(1);
    let output = moon.dev_command(&["--once", "--yes"]).run().code(0);
    assert!(output.stdout.contains("installed `fixture-hooks`"), "{output}");
    let shown = moon.show_plugin();
    assert!(shown.contains("(granted)") && !shown.contains("(not granted)"), "{shown}");
    house.run(&["plugin", "revoke", "fixture-hooks", "after_tool"]).code(0);
    moon.prepare_build(2);
    moon.dev_command(&["--once"]).run().code(0);
    let shown = moon.show_plugin();
    assert_eq!(shown.matches("(not granted)").count(), 1, "{shown}");
    let trusted = house.home().join(".local/share/jaato/trust.json");
    let record: serde_json::Value =
        serde_json::from_slice(&std::fs::read(trusted).unwrap()).unwrap();
    assert_eq!(record["plugins"].as_object().unwrap().len(), 1, "only the newest build: {record}");
}

#[test]
fn build_that_no_user_agreed_to_is_not_installed() {
    let house = house!();
    let moon = PluginCrate::new(&house);
    moon.prepare_build(1);
    let output = moon.dev_command(&["--once"]).run().code(2);
    assert!(output.stderr.contains("`--yes` trusts the builds without asking"), "{output}");
    house.run(&["plugin", "show", "fixture-hooks"]).code(2);
    // The user withdrew the trust, so the question comes again.
    moon.dev_command(&["--once", "--yes"]).run().code(0);
    house.run(&["plugin", "untrust", "fixture-hooks"]).code(0);
    moon.dev_command(&["--once"]).run().code(2);
}

#[test]
fn folder_that_others_may_write_to_is_refused() {
    let house = house!();
    let moon = PluginCrate::new(&house);
    moon.prepare_build(1);
    for folder in [moon.folder.clone(), moon.folder.join("src")] {
        set_mode(&folder, 0o777);
        let output = moon.dev_command(&["--once", "--yes"]).run().code(2);
        assert!(output.stderr.contains("that you alone can write to"), "{output}");
        set_mode(&folder, 0o755);
    }
}

#[test]
fn failed_build_shows_the_compilers_words_and_installs_nothing() {
    let house = house!();
    let moon = PluginCrate::new(&house);
    let output = moon.dev_command(&["--once", "--yes"]).run().code(1);
    assert!(output.stderr.contains("error: no moon tonight"), "{output}");
    assert!(output.stderr.contains("the build failed"), "{output}");
}

#[test]
fn changed_source_is_built_and_installed_until_an_interrupt() {
    let house = house!();
    let moon = PluginCrate::new(&house);
    let running = moon.dev_command(&["--yes"]).start();
    running.wait_for_error("the build failed");
    running.wait_for("waiting for changes");
    moon.prepare_build(1);
    house.write("moon/src/lib.rs", "// a longer second version\n");
    running.wait_for("installed `fixture-hooks`");
    running.wait_for("waiting for changes");
    running.send_signal("INT");
    running.finish().code(0);
    house.assert_no_processes();
}
