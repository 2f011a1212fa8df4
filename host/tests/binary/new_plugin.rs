//! Tests writing the crate of a plugin. The crate that writes it tests that it builds.

use std::fs;
use std::path::Path;

use crate::house;
use crate::support::{Command, House, library_name, skip};

/// Puts an sdk next to the executable. The checkout's sdk is found only if the target folder is
/// inside it.
fn ship_sdk(house: &House) {
    for part in ["sdk", "testkit"] {
        house.write(&format!("share/jaato/sdk/plugin-api/{part}/Cargo.toml"), "");
    }
}

#[test]
fn new_plugin_crate_uses_the_sdk_next_to_the_executable() {
    let house = house!(ship_sdk);
    house.write("share/jaato/sdk/Cargo.lock", "# locked\n");
    let output = house.run(&["plugin", "new", "tool-moon", "--kind", "tool"]).expect_silent();
    expect_test::expect![[r#"
        exit 0
        --- stdout
        written to `tool-moon`, against the sdk in `$HOUSE/share/jaato/sdk/plugin-api`; next:

          cd tool-moon
          cargo test
          cargo build --release
          jaato plugin check target/release/libtool_moon.so
          jaato plugin install target/release/libtool_moon.so
    "#]]
    .assert_eq(&output.to_string());
    let read = |file: &str| fs::read_to_string(house.workspace().join("tool-moon").join(file));
    let manifest = read("Cargo.toml").unwrap();
    let sources = house.path().join("share/jaato/sdk/plugin-api");
    for part in ["sdk", "testkit"] {
        let path = format!("path = \"{}\"", sources.join(part).display());
        assert!(manifest.contains(&path), "{manifest}");
    }
    assert_eq!(read("Cargo.lock").unwrap(), "# locked\n");
    for file in ["src/lib.rs", "tests/conformance.rs", "README.md", ".github/workflows/ci.yml"] {
        assert!(!read(file).unwrap().contains("template"), "{file}");
    }
}

#[test]
fn new_plugin_uses_a_given_sdk_and_writes_nothing_without_one() {
    let house = house!();
    // Outside of the checkout, whose crates would be found otherwise.
    let elsewhere = tempfile::tempdir().unwrap();
    let elsewhere = elsewhere.path().canonicalize().unwrap();
    let jaato = elsewhere.join("bin/jaato");
    fs::create_dir(elsewhere.join("bin")).unwrap();
    fs::copy(house.binary(), &jaato).unwrap();
    let run = |words: &[&str]| {
        let words: Vec<&str> = ["plugin", "new", "moon"].iter().chain(words).copied().collect();
        Command::program(&house, jaato.to_str().unwrap(), &words).run()
    };
    let alone = run(&[]).code(2);
    assert_eq!(
        alone.stderr,
        format!(
            "error: `{}` has no sdk: its folder has no `../share/jaato/sdk`\n\
             hint: unpack the whole archive of jaato, or name an sdk or a checkout with `--sdk`\n",
            jaato.display()
        )
    );
    let wrong = run(&["--sdk", "nowhere"]).code(2);
    assert!(wrong.stderr.contains("`nowhere` does not contain jaato's sdk"), "{wrong}");
    assert!(!house.workspace().join("moon").exists());

    for part in ["sdk", "testkit"] {
        house.write(&format!("workspace/its sdk/plugin-api/{part}/Cargo.toml"), "");
    }
    let named = run(&["--sdk", "its sdk"]).expect_silent();
    let sources = house.workspace().join("its sdk/plugin-api");
    let first = format!("written to `moon`, against the sdk in `{}`; next:", sources.display());
    assert_eq!(named.stdout.lines().next(), Some(first.as_str()), "{named}");
    let manifest = fs::read_to_string(house.workspace().join("moon/Cargo.toml")).unwrap();
    assert!(manifest.contains("its sdk/plugin-api/testkit\" }"), "{manifest}");
}

#[test]
fn new_plugin_in_c_builds_and_passes_its_check() {
    let house = house!();
    if std::process::Command::new("make").arg("--version").output().is_err() {
        return skip("there is no `make`");
    }
    // The Makefile and the shell must read the path to the header as it is.
    let sdk = house.workspace().join("it's $HOME #1/plugin-api");
    for part in ["sdk", "testkit"] {
        fs::create_dir_all(sdk.join(part)).unwrap();
        fs::write(sdk.join(part).join("Cargo.toml"), "").unwrap();
    }
    let header = Path::new(env!("CARGO_MANIFEST_DIR")).join("../plugin-api/include/jaato_plugin.h");
    fs::create_dir(sdk.join("include")).unwrap();
    fs::copy(header, sdk.join("include/jaato_plugin.h")).unwrap();
    let sdk = sdk.display().to_string();
    let words = ["plugin", "new", "tool-clock", "--kind", "c", "--sdk", &sdk];
    let written = house.run(&words).expect_silent();
    let library = library_name("tool_clock");
    let next = format!("  cd tool-clock\n  make\n  jaato plugin check ./{library}\n");
    assert!(written.stdout.contains(&next), "{written}");
    let folder = house.workspace().join("tool-clock");
    let made = std::process::Command::new("make").current_dir(&folder).output().unwrap();
    let warnings = String::from_utf8_lossy(&made.stderr);
    assert!(made.status.success() && warnings.is_empty(), "{warnings}");
    let file = folder.join(library).display().to_string();
    let checked = house.run(&["plugin", "check", &file]).expect_silent();
    assert!(checked.stdout.contains("tool clock   ok: 1 example ran"), "{checked}");
    assert!(checked.stdout.ends_with("conformance  ok: 21 checks hold\n"), "{checked}");
    for file in ["tool_clock.c", "Makefile", "README.md"] {
        assert!(!fs::read_to_string(folder.join(file)).unwrap().contains("template"), "{file}");
    }
    house.assert_no_processes();
}

/// Checks that nothing is written, and that the error contains this text.
#[track_caller]
fn check_refused(house: &House, words: &[&str], expected: &str) {
    let words: Vec<&str> = ["plugin", "new"].into_iter().chain(words.iter().copied()).collect();
    let output = house.run(&words).code(2);
    assert!(output.stderr.contains(expected), "{output}");
    assert!(!house.workspace().join("moon").join("Cargo.toml").exists());
}

#[test]
fn new_plugin_refuses_existing_folders_and_invalid_names() {
    let house = house!(ship_sdk);
    fs::create_dir(house.workspace().join("moon")).unwrap();
    check_refused(&house, &["moon"], "`moon` already exists\nhint: remove it");
    check_refused(&house, &["other", "--path", "moon"], "`moon` already exists");
    check_refused(&house, &["Moon Phase"], "cannot be a plugin's name\nhint: lower-case letters");
    check_refused(&house, &["tool-fn"], "it has another meaning in Rust or the sdk");
    let kinds = "possible values: tool, gc, provider, environment, hook, c";
    check_refused(&house, &["a", "--kind", "modul"], kinds);
}
