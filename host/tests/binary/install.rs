//! Tests installing files from this machine, replacing installed ones, and uninstalling them.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use expect_test::expect;
use serde_json::json;

use crate::house;
use crate::support::{Command, House, fixture, library_name};

const COUNT_BYTES: [&str; 3] = ["call", "count_bytes_echo", r#"{"text": "a b"}"#];

/// Returns the path under which the echo is installed.
fn echo_path(house: &House) -> PathBuf {
    house.user_plugins().join(library_name("fixture_echo"))
}

fn path_text(path: &Path) -> String {
    path.display().to_string()
}

/// Checks that the user's folder contains only these files.
#[track_caller]
fn check_folder(house: &House, expected: &[&str]) {
    let entries = fs::read_dir(house.user_plugins()).into_iter().flatten().flatten();
    let mut names: Vec<_> = entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names, expected);
}

/// Packs files of the given folder as users do.
fn pack_archive(house: &House, archive: &str, files: &[&str]) -> String {
    let archive = path_text(&house.path().join(archive));
    let mut tar = std::process::Command::new("tar");
    tar.arg("-C").arg(house.given_folder()).args(["-caf", &archive]).args(files);
    assert!(tar.status().unwrap().success());
    archive
}

#[test]
fn a_file_is_installed_works_at_once_and_is_trusted_by_the_printed_command() {
    let house = house!();
    let given = house.write_given_file("any name.so", &fs::read(fixture("echo")).unwrap());
    let output = house.run(&["plugin", "install", &path_text(&given)]).expect_silent();
    expect![[r#"
        exit 0
        --- stdout
        installed `fixture-echo` 0.1.0: tools count_bytes_echo
          $HOUSE/home/.local/share/jaato/plugins/libfixture_echo.so
        it is not trusted: it runs in a worker without keys (a worker is not a sandbox). To have it run inside jaato:
          jaato plugin trust '$HOUSE/home/.local/share/jaato/plugins/libfixture_echo.so' --sha256 DIGEST
    "#]].assert_eq(&output.to_string());
    check_folder(&house, &["libfixture_echo.so"]);
    let place = echo_path(&house);
    assert_eq!(fs::metadata(&place).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(house.run(&COUNT_BYTES).code(0).json(), json!({ "bytes": 3 }));

    let list = house.run(&["plugin", "list"]).code(0);
    let command =
        list.stdout.lines().map(str::trim).find(|line| line.starts_with("jaato plugin trust"));
    let path = format!("{}:/usr/bin:/bin", house.path().join("bin").display());
    let trust = Command::program(&house, "sh", &["-c", command.unwrap()]).variable("PATH", path);
    trust.run().expect_silent();
    let again = house.run(&["plugin", "install", &path_text(&given)]).expect_silent();
    expect![[r#"
        exit 0
        --- stdout
        installed `fixture-echo` 0.1.0, in place of 0.1.0: tools count_bytes_echo
          $HOUSE/home/.local/share/jaato/plugins/libfixture_echo.so
        this content is already trusted: it runs inside jaato
    "#]]
    .assert_eq(&again.to_string());
}

#[test]
fn installed_plugin_replaces_an_older_file_without_writing_to_it() {
    let house = house!();
    let old = house.user_plugins().join("old.so");
    fs::create_dir_all(house.user_plugins()).unwrap();
    fs::copy(fixture("echo"), &old).unwrap();
    // A host that has the file open keeps its content.
    let mut open = fs::File::open(&old).unwrap();
    let mut newer = fs::read(fixture("echo")).unwrap();
    let before = newer.clone();
    newer.push(0);
    let given = house.write_given_file("echo.so", &newer);
    house.run(&["plugin", "install", &path_text(&given)]).expect_silent();
    check_folder(&house, &["old.so"]);
    assert_eq!(fs::read(&old).unwrap(), newer);
    let mut mapped = Vec::new();
    std::io::Read::read_to_end(&mut open, &mut mapped).unwrap();
    assert!(mapped == before, "the open file changed");
}

#[test]
fn a_folder_and_an_archive_are_installed() {
    let house = house!();
    let bytes = fs::read(fixture("echo")).unwrap();
    let triple = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    house.write_given_file("flat/echo.so", &bytes);
    house.write_given_file("flat/README.md", b"echo");
    house.write_given_file(&format!("echo-1/lib/{triple}/echo.so"), &bytes);
    house.write_given_file("echo-1/lib/x86_64-pc-windows-msvc/echo.dll", b"MZ");
    house.write_given_file("echo-1/README.md", b"echo");
    let given = |name: &str| path_text(&house.given_folder().join(name));
    let whats = [
        given("flat"),
        given("echo-1"),
        pack_archive(&house, "flat.tar", &["flat"]),
        pack_archive(&house, "many.tar.gz", &["echo-1"]),
        // The content decides, not the extension.
        pack_archive(&house, "file.tgz", &["flat/echo.so"]),
    ];
    for what in whats {
        let output = house.run(&["plugin", "install", &what]).expect_silent();
        assert!(output.stdout.starts_with("installed `fixture-echo` 0.1.0: tools"), "{output}");
        check_folder(&house, &["libfixture_echo.so"]);
        assert!(fs::read(echo_path(&house)).unwrap() == bytes, "{what}");
        house.run(&["plugin", "remove", "fixture-echo"]).expect_silent();
        check_folder(&house, &[]);
    }
}

#[track_caller]
fn assert_refused(house: &House, what: &str, code: i32, expected: expect_test::Expect) {
    let output = house.run(&["plugin", "install", what]).code(code);
    expected.assert_eq(&house.normalize_output(&output.stderr));
    check_folder(house, &[]);
}

#[test]
fn unusable_plugin_is_refused_with_the_error_of_plugin_check() {
    let house = house!();
    let text_file = path_text(&house.write_given_file("moon.so", b"text"));
    assert_refused(
        &house,
        &text_file,
        4,
        expect![[r#"
            error: cannot use `$HOUSE/given/moon.so` as a plugin: it is not a dynamic library
        "#]],
    );
    let check = house.run(&["plugin", "check", &text_file]).code(4);
    assert_eq!(house.run(&["plugin", "install", &text_file]).stderr, check.stderr);
    let none = path_text(&house.given_folder().join("none"));
    assert_refused(
        &house,
        &none,
        4,
        expect![[r#"
            error: cannot read `$HOUSE/given/none`: No such file or directory (os error 2)
        "#]],
    );
    assert_refused(
        &house,
        "https://example.org/moon.so",
        2,
        expect![[r#"
        error: `https://example.org/moon.so` is a URL; jaato installs only local files
        hint: download it, check its source, then run `jaato plugin install FILE`
    "#]],
    );
    house.write_given_file("crate/Cargo.toml", b"[package]");
    assert_refused(
        &house,
        &path_text(&house.given_folder().join("crate")),
        4,
        expect![[r#"
            error: `$HOUSE/given/crate` is a crate's sources, not a plugin
            hint: `cargo build --release` in `$HOUSE/given/crate`, then install the library below `target/release`
        "#]],
    );
}

#[test]
fn a_plugin_that_dies_when_it_is_described_is_not_installed() {
    let house = house!();
    let given = path_text(&fixture("aborts"));
    let check = house.run(&["plugin", "check", &given]).code(4);
    let install = house.run(&["plugin", "install", &given]).code(4);
    assert_eq!(install.stderr, check.stderr);
    assert!(install.stderr.contains("as a plugin: "), "{install}");
    check_folder(&house, &[]);
}

#[test]
fn install_does_not_replace_a_shipped_plugin_or_an_unrelated_file() {
    let house = house!(ships "echo");
    assert_refused(
        &house,
        &path_text(&fixture("echo")),
        4,
        expect![[r#"
            error: plugin `fixture-echo` has the name of a shipped plugin: `$HOUSE/plugins/libfixture_echo.so`
            hint: give your plugin another name
        "#]],
    );
    let output = house.run(&["plugin", "remove", "fixture-echo"]).code(4);
    expect![[r#"
        error: plugin `fixture-echo` is shipped with jaato: `$HOUSE/plugins/libfixture_echo.so`
        hint: `jaato plugin disable fixture-echo` disables it
    "#]]
    .assert_eq(&house.normalize_output(&output.stderr));
    house.ship_to_user(&fixture("probe"));
    let place = house.user_plugins().join(library_name("fixture_probe"));
    fs::rename(&place, echo_path(&house)).unwrap();
    fs::remove_file(house.shipped_folder().join(library_name("fixture_echo"))).unwrap();
    let output = house.run(&["plugin", "install", &path_text(&fixture("echo"))]).code(4);
    assert!(output.stderr.contains("because another file or folder is in the way"), "{output}");
    assert_eq!(fs::read(echo_path(&house)).unwrap(), fs::read(fixture("probe")).unwrap());
}

#[test]
fn only_plugins_in_the_users_folder_can_be_removed() {
    let house = house!();
    let output = house.run(&["plugin", "remove", "fixture-ecco"]).code(2);
    assert!(output.stderr.contains("`jaato plugin list` lists them"), "{output}");
    house.run(&["plugin", "install", &path_text(&fixture("echo"))]).expect_silent();
    let output = house.run(&["plugin", "remove", "fixture-ecco"]).code(2);
    assert!(output.stderr.contains("did you mean `fixture-echo`?"), "{output}");
    let output = house.run(&["plugin", "remove", "fixture-echo"]).expect_silent();
    expect![[r#"
        exit 0
        --- stdout
        removed `fixture-echo` 0.1.0: $HOUSE/home/.local/share/jaato/plugins/libfixture_echo.so
    "#]]
    .assert_eq(&output.to_string());
    check_folder(&house, &[]);
    house.run(&COUNT_BYTES).code(2);
    let given = house.write_given_file("echo.so", &fs::read(fixture("echo")).unwrap());
    let folder = path_text(&house.given_folder());
    let output = house.run(&["plugin", "remove", "fixture-echo", "--plugin-dir", &folder]).code(4);
    assert!(output.stderr.contains("is not in your own plugins folder"), "{output}");
    assert!(given.exists());
}

#[test]
fn refused_commands_are_reported_and_the_rest_is_installed() {
    let house = house!();
    let given = house.write_given_file("c.so", &fs::read(fixture("commands")).unwrap());
    let output = house.run(&["plugin", "install", &path_text(&given)]).expect_silent();
    expect![[r#"
        exit 0
        --- stdout
        installed `fixture-commands` 0.1.0: tools repeat
          $HOUSE/home/.local/share/jaato/plugins/libfixture_commands.so
        some parts cannot be used:
          command `gc` is refused: jaato itself uses the name
          command `two words` is refused: a name has 1 to 64 letters, digits, `_` and `-`, and does not begin with `-`
        it is not trusted: it runs in a worker without keys (a worker is not a sandbox). To have it run inside jaato:
          jaato plugin trust '$HOUSE/home/.local/share/jaato/plugins/libfixture_commands.so' --sha256 DIGEST
    "#]].assert_eq(&output.to_string());
    // The same file under another plugin's name would take its commands.
    let named = house.run(&["command"]).code(0);
    assert!(named.stdout.contains("note"), "{named}");
}

/// Returns the echo under another plugin name, with the same tool.
fn changed_echo_bytes() -> Vec<u8> {
    crate::support::elf::patch_bytes(
        &fs::read(fixture("echo")).unwrap(),
        "fixture-echo",
        "another-echo",
    )
}

#[test]
fn a_plugin_whose_names_are_taken_is_not_installed() {
    let house = house!();
    let first = house.write_given_file("first.so", &fs::read(fixture("echo")).unwrap());
    house.run(&["plugin", "install", &path_text(&first)]).expect_silent();
    let second = house.write_given_file("second.so", &changed_echo_bytes());
    // Its file name sorts before the other's, so it would take the name.
    let output = house.run(&["plugin", "install", &path_text(&second)]).code(4);
    expect![[r#"
        exit 4
        --- stderr
        error: plugin `another-echo` is not installed, because `fixture-echo` would stop working: its tool name `count_bytes_echo` is taken by `$HOUSE/home/.local/share/jaato/plugins/libanother_echo.so`
        hint: give the plugin and its tools unique names, or remove the other plugin first
    "#]].assert_eq(&output.to_string());
    check_folder(&house, &["libfixture_echo.so"]);

    // A trusted plugin keeps its name, whatever the new file is called.
    let place = path_text(&echo_path(&house));
    let list = house.run(&["plugin", "list", "--json"]).code(0).json();
    let plugins = list["plugins"].as_array().unwrap();
    let digest = plugins.iter().find(|it| it["name"] == "fixture-echo").unwrap()["sha256"].clone();
    house.run(&["plugin", "trust", &place, "--sha256", digest.as_str().unwrap()]).code(0);
    let output = house.run(&["plugin", "install", &path_text(&second)]).code(4);
    expect![[r#"
        exit 4
        --- stderr
        error: plugin `another-echo` could not be used, so it is not installed: its tool name `count_bytes_echo` is taken by `$HOUSE/home/.local/share/jaato/plugins/libfixture_echo.so`
        hint: give the plugin and its tools unique names, or remove the other plugin first
    "#]].assert_eq(&output.to_string());
    check_folder(&house, &["libfixture_echo.so"]);
}

#[test]
fn untrusted_plugin_cannot_take_a_name_from_a_trusted_plugin() {
    let house = house!();
    let echo = house.ship_to_user(&fixture("echo"));
    let active = || {
        let list = house.run(&["plugin", "list", "--json"]).code(0).json();
        let plugins = list["plugins"].as_array().unwrap().clone();
        let active =
            plugins.into_iter().filter(|it| it["status"] != "refused" && it["from"] == "user");
        active
            .map(|it| {
                (it["name"].as_str().unwrap().to_owned(), it["sha256"].as_str().unwrap().to_owned())
            })
            .collect::<Vec<_>>()
    };
    let digest = active()[0].1.clone();
    fs::write(house.user_plugins().join("aaa.so"), changed_echo_bytes()).unwrap();
    assert_eq!(
        active()[0].0,
        "another-echo",
        "of two untrusted plugins, the first file gets the name"
    );
    house.run(&["plugin", "trust", &path_text(&echo), "--sha256", &digest]).code(0);
    assert_eq!(active(), [("fixture-echo".to_owned(), digest)]);
}
