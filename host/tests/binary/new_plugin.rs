//! Tests writing the crate of a plugin. The crate that writes it tests that it builds.

use std::fs;

use crate::house;
use crate::support::{Command, House};

/// Puts an sdk next to the executable. The checkout's sdk is found only if the target folder is
/// inside it.
fn give_sdk(house: &House) {
    for part in ["sdk", "testkit"] {
        house.write(&format!("share/jaato/sdk/plugin-api/{part}/Cargo.toml"), "");
    }
}

#[test]
fn new_plugin_crate_uses_the_sdk_next_to_the_executable() {
    let house = house!(give_sdk);
    house.write("share/jaato/sdk/Cargo.lock", "# locked\n");
    let output = house.run(&["plugin", "new", "tool-moon", "--kind", "tool"]).silent();
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
    let named = run(&["--sdk", "its sdk"]).silent();
    let sources = house.workspace().join("its sdk/plugin-api");
    let first = format!("written to `moon`, against the sdk in `{}`; next:", sources.display());
    assert_eq!(named.stdout.lines().next(), Some(first.as_str()), "{named}");
    let manifest = fs::read_to_string(house.workspace().join("moon/Cargo.toml")).unwrap();
    assert!(manifest.contains("its sdk/plugin-api/testkit\" }"), "{manifest}");
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
    let house = house!(give_sdk);
    fs::create_dir(house.workspace().join("moon")).unwrap();
    check_refused(&house, &["moon"], "`moon` exists already\nhint: remove it");
    check_refused(&house, &["other", "--path", "moon"], "`moon` exists already");
    check_refused(&house, &["Moon Phase"], "cannot be a plugin's name\nhint: lower-case letters");
    check_refused(&house, &["tool-fn"], "it has another meaning in Rust or the sdk");
    check_refused(&house, &["a", "--kind", "modul"], "possible values: tool, gc, provider");
}
