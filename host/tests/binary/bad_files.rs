//! Tests bad files among the plugins: each causes one clear line, and the good plugins still work.

use std::fs;
use std::os::unix::fs::symlink;

use expect_test::{Expect, expect};

use crate::house;
use crate::support::elf::{self, Elf};
use crate::support::{House, NOBODY, can_start_as_nobody, fixture, is_root, set_mode, skip};

/// Lists an installation with bad files in its given folder. Apart from one line for each, the
/// output must be the same as without them.
#[track_caller]
fn check_bad_files(house: &House, expected: Expect) {
    let folder = house.given_folder().display().to_string();
    let good = house.run(&["tool", "list"]).expect_silent();
    let words = ["tool", "list", "--plugin-dir", &folder];
    let output = house.run(&words).code(0);
    assert_eq!(output.stdout, good.stdout, "{output}");
    expected.assert_eq(&house.normalize_output(&output.stderr));
    // The second run uses the cache and must print the same.
    assert_eq!(house.run(&words).code(0).to_string(), output.to_string());
    // A good tool can still be called.
    let called = house.run(&["--plugin-dir", &folder, "call", "get_environment"]);
    assert_eq!(called.code, 0, "{called}");
}

fn probe_library() -> Vec<u8> {
    fs::read(fixture("probe")).unwrap()
}

fn manifest_json(fields: &str) -> String {
    format!(r#"{{"v":1,"name":"moon","version":"1.0.0","api":"1.0.0","kinds":["tool"]{fields}}}"#)
}

#[test]
fn files_that_are_not_plugins_for_this_machine_are_reported() {
    let house = house!();
    let mut windows = b"MZ".to_vec();
    windows.resize(0x3c, 0);
    windows.extend(0x40_u32.to_le_bytes());
    windows.extend(b"PE\0\0\x64\x86\0\0");
    windows.resize(512, 0);
    let huge = manifest_json(&format!(r#","more":"{}""#, "x".repeat(20_000)));
    house.write_given_file("empty.so", b"");
    house.write_given_file(
        "foreign.so",
        &elf::with_machine(&probe_library(), elf::foreign_machine()),
    );
    house.write_given_file("huge.so", &elf::library_with_manifest(huge));
    // Modern programs are position-independent, and so look like libraries.
    house.write_given_file("program.so", &fs::read("/bin/sh").unwrap());
    house.write_given_file("text.so", b"I am a plugin, honestly.\n");
    house.write_given_file("windows.so", &windows);
    check_bad_files(
        &house,
        expect![[r#"
        note: cannot use `$HOUSE/given/empty.so` as a plugin: it is not a dynamic library
        note: cannot use `$HOUSE/given/foreign.so` as a plugin: it is built for aarch64, but this machine is x86_64
        hint: build the plugin for this machine, or get the author's build for it
        note: cannot use `$HOUSE/given/huge.so` as a plugin: its manifest has 20080 bytes, but the limit is 16384
        note: cannot use `$HOUSE/given/program.so` as a plugin: it is a library without a jaato manifest
        hint: a plugin calls `export_plugin!` of jaato-plugin-sdk at its crate's root
        note: cannot use `$HOUSE/given/text.so` as a plugin: it is not a dynamic library
        note: cannot use `$HOUSE/given/windows.so` as a plugin: it is not a dynamic library
    "#]],
    );
}

#[test]
fn library_without_a_manifest_is_reported() {
    let house = house!();
    let found = ["/lib/x86_64-linux-gnu", "/lib/aarch64-linux-gnu", "/lib64", "/usr/lib", "/lib"]
        .iter()
        .map(|folder| std::path::Path::new(folder).join("libm.so.6"))
        .find(|path| path.is_file());
    let Some(library) = found else { return skip("`libm.so.6` was not found") };
    house.write_given_file("moon.so", &fs::read(library).unwrap());
    check_bad_files(
        &house,
        expect![[r#"
        note: cannot use `$HOUSE/given/moon.so` as a plugin: it is a library without a jaato manifest
        hint: a plugin calls `export_plugin!` of jaato-plugin-sdk at its crate's root
    "#]],
    );
}

#[test]
fn executable_and_object_file_and_core_dump_are_reported() {
    let house = house!();
    for (name, kind) in
        [("core", elf::CORE), ("executable", elf::EXECUTABLE), ("object", elf::OBJECT)]
    {
        let file = Elf { kind, machine: elf::own_machine(), manifest: manifest_json("").into() };
        house.write_given_file(&format!("{name}.so"), &file.write());
    }
    check_bad_files(
        &house,
        expect![[r#"
        note: cannot use `$HOUSE/given/core.so` as a plugin: it is a core dump, not a dynamic library
        note: cannot use `$HOUSE/given/executable.so` as a plugin: it is an executable, not a dynamic library
        note: cannot use `$HOUSE/given/object.so` as a plugin: it is an object file, not a dynamic library
    "#]],
    );
}

#[test]
fn truncated_library_of_any_length_is_reported() {
    let house = house!();
    let whole = probe_library();
    let lengths = [4, 16, 63, 64, 65, 4096, whole.len() / 2, whole.len() - 4096, whole.len() - 1];
    for (number, length) in lengths.into_iter().enumerate() {
        house.write_given_file(&format!("cut{number}.so"), &whole[..length]);
    }
    check_bad_files(
        &house,
        expect![[r#"
        note: cannot use `$HOUSE/given/cut0.so` as a plugin: it is truncated or damaged: its headers are incomplete
        hint: copy or build the file again
        note: cannot use `$HOUSE/given/cut1.so` as a plugin: it is truncated or damaged: its headers are incomplete
        hint: copy or build the file again
        note: cannot use `$HOUSE/given/cut2.so` as a plugin: it is truncated or damaged: its headers are incomplete
        hint: copy or build the file again
        note: cannot use `$HOUSE/given/cut3.so` as a plugin: it is truncated or damaged: its headers are incomplete
        hint: copy or build the file again
        note: cannot use `$HOUSE/given/cut4.so` as a plugin: it is truncated or damaged: its headers are incomplete
        hint: copy or build the file again
        note: cannot use `$HOUSE/given/cut5.so` as a plugin: it is truncated or damaged: its headers are incomplete
        hint: copy or build the file again
        note: cannot use `$HOUSE/given/cut6.so` as a plugin: it is truncated or damaged: its headers are incomplete
        hint: copy or build the file again
        note: cannot use `$HOUSE/given/cut7.so` as a plugin: it is truncated or damaged: its headers are incomplete
        hint: copy or build the file again
        note: cannot use `$HOUSE/given/cut8.so` as a plugin: it is truncated or damaged: its headers are incomplete
        hint: copy or build the file again
    "#]],
    );
}

#[test]
fn library_with_false_header_values_is_reported() {
    let house = house!();
    let whole = elf::library_with_manifest(manifest_json(""));
    let lie = |at: usize, value: u64| {
        let mut bytes = whole.clone();
        bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
        bytes
    };
    // The positions of the section table and the manifest, and the manifest's length.
    house.write_given_file("sections.so", &lie(40, u64::MAX - 8));
    let table = u64::from_le_bytes(whole[40..48].try_into().unwrap()) as usize;
    house.write_given_file("start.so", &lie(table + 64 + 24, u64::MAX - 8));
    house.write_given_file("length.so", &lie(table + 64 + 32, 4000));
    house.write_given_file("endless.so", &lie(table + 64 + 32, u64::MAX));
    check_bad_files(
        &house,
        expect![[r#"
        note: cannot use `$HOUSE/given/endless.so` as a plugin: its manifest has 18446744073709551615 bytes, but the limit is 16384
        note: cannot use `$HOUSE/given/length.so` as a plugin: it is truncated or damaged: Invalid ELF section size or offset
        hint: copy or build the file again
        note: cannot use `$HOUSE/given/sections.so` as a plugin: it is truncated or damaged: its headers are incomplete
        hint: copy or build the file again
        note: cannot use `$HOUSE/given/start.so` as a plugin: it is truncated or damaged: Invalid ELF section size or offset
        hint: copy or build the file again
    "#]],
    );
}

#[test]
fn invalid_manifest_is_reported() {
    let house = house!();
    house.write_given_file("a-empty.so", &elf::library_with_manifest(""));
    house.write_given_file("b-text.so", &elf::library_with_manifest("moon"));
    house.write_given_file("c-array.so", &elf::library_with_manifest("[]"));
    house.write_given_file("d-missing.so", &elf::library_with_manifest(r#"{"v":1,"name":"moon"}"#));
    house.write_given_file(
        "e-name.so",
        &elf::library_with_manifest(manifest_json("").replace("moon", "../moon")),
    );
    house.write_given_file(
        "f-api.so",
        &elf::library_with_manifest(
            manifest_json("").replace("\"1.0.0\",\"kinds", "\"one\",\"kinds"),
        ),
    );
    house.write_given_file(
        "g-utf8.so",
        &elf::library_with_manifest(b"{\"v\":1,\"name\":\"\xff\"}".to_vec()),
    );
    house.write_given_file("h-deep.so", &elf::library_with_manifest("[".repeat(10_000)));
    house.write_given_file(
        "i-kinds.so",
        &elf::library_with_manifest(manifest_json("").replace("tool", "oracle")),
    );
    check_bad_files(
        &house,
        expect![[r#"
        note: cannot use `$HOUSE/given/a-empty.so` as a plugin: its manifest cannot be read: EOF while parsing a value at line 1 column 0
        note: cannot use `$HOUSE/given/b-text.so` as a plugin: its manifest cannot be read: expected value at line 1 column 1
        note: cannot use `$HOUSE/given/c-array.so` as a plugin: its manifest cannot be read: invalid length 0, expected struct Manifest with 8 elements at line 1 column 2
        note: cannot use `$HOUSE/given/d-missing.so` as a plugin: its manifest cannot be read: missing field `version` at line 1 column 21
        note: cannot use `$HOUSE/given/e-name.so` as a plugin: its manifest names it `../moon`; a name is 1 to 64 of a-z, A-Z, 0-9, `-` and `_`
        note: cannot use `$HOUSE/given/f-api.so` as a plugin: its manifest has the plugin-api version `one`, not `1.2.3`
        note: cannot use `$HOUSE/given/g-utf8.so` as a plugin: its manifest cannot be read: invalid unicode code point at line 1 column 16
        note: cannot use `$HOUSE/given/h-deep.so` as a plugin: its manifest cannot be read: invalid type: sequence, expected u32 at line 1 column 1
        note: cannot use `$HOUSE/given/i-kinds.so` as a plugin: this host supports none of its kinds
        hint: update jaato
    "#]],
    );
}

#[test]
fn plugin_of_another_major_api_version_is_reported() {
    let house = house!();
    house.write_given_file(
        "newer.so",
        &elf::patch_bytes(&probe_library(), r#""api":"1.0.0""#, r#""api":"9.0.0""#),
    );
    house.write_given_file(
        "older.so",
        &elf::patch_bytes(&probe_library(), r#""api":"1.0.0""#, r#""api":"0.9.0""#),
    );
    check_bad_files(
        &house,
        expect![[r#"
            note: cannot use `$HOUSE/given/newer.so` as a plugin: it was built against plugin-api 9.0.0, this host speaks 1.0.0
            hint: update jaato
            note: cannot use `$HOUSE/given/older.so` as a plugin: it was built against plugin-api 0.9.0, this host speaks 1.0.0
            hint: build the plugin with jaato-plugin-sdk 1.0.0
        "#]],
    );
}

#[test]
fn directory_and_broken_or_circular_links_are_reported() {
    let house = house!();
    let folder = house.given_folder();
    fs::create_dir(folder.join("folder.so")).unwrap();
    symlink(folder.join("gone"), folder.join("gone-link.so")).unwrap();
    symlink(folder.join("loop-b.so"), folder.join("loop-a.so")).unwrap();
    symlink(folder.join("loop-a.so"), folder.join("loop-b.so")).unwrap();
    check_bad_files(
        &house,
        expect![[r#"
        note: cannot use `$HOUSE/given/folder.so` as a plugin: it is a directory
        note: cannot use `$HOUSE/given/gone-link.so` as a plugin: it cannot be read: No such file or directory (os error 2)
        note: cannot use `$HOUSE/given/loop-a.so` as a plugin: it cannot be read: Too many levels of symbolic links (os error 40)
        note: cannot use `$HOUSE/given/loop-b.so` as a plugin: it cannot be read: Too many levels of symbolic links (os error 40)
    "#]],
    );
}

#[test]
fn pipes_sockets_and_devices_are_not_opened() {
    let house = house!();
    let folder = house.given_folder();
    // Opening a pipe without a writer would block forever.
    let made = std::process::Command::new("mkfifo").arg(folder.join("pipe.so")).status();
    assert!(made.unwrap().success());
    symlink("/dev/zero", folder.join("zero.so")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(folder.join("socket.so"));
    check_bad_files(
        &house,
        expect![[r#"
        note: cannot use `$HOUSE/given/pipe.so` as a plugin: it is not a regular file
        note: cannot use `$HOUSE/given/socket.so` as a plugin: it is not a regular file
        note: cannot use `$HOUSE/given/zero.so` as a plugin: it is not a regular file
    "#]],
    );
}

#[test]
fn unreadable_file_is_reported() {
    let house = house!();
    house.forget_descriptions();
    let file = house.write_given_file("secret.so", &probe_library());
    set_mode(&file, 0o000);
    if !is_root() {
        return check_bad_files(&house, UNREADABLE);
    }
    // Root can read everything, so another user must do it.
    let folder = house.given_folder().display().to_string();
    for path in [house.home(), house.path().join("run"), house.path().to_owned()] {
        std::os::unix::fs::chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    }
    let command = || house.command(&["tool", "list", "--plugin-dir", &folder]).user(NOBODY);
    if !can_start_as_nobody(&house) {
        return skip("other users cannot reach the test folder");
    }
    let output = command().run().code(0);
    assert!(output.stdout.contains("get_environment"), "{output}");
    UNREADABLE.assert_eq(&house.normalize_output(&output.stderr));
}

const UNREADABLE: Expect = expect![[r#"
    note: cannot use `$HOUSE/given/secret.so` as a plugin: it cannot be read: Permission denied (os error 13)
"#]];

#[test]
fn manifest_without_code_is_refused_by_the_linker() {
    let house = house!();
    let file = house.write_given_file("moon.so", &elf::library_with_manifest(manifest_json("")));
    let output = house.run(&["plugin", "check", &file.display().to_string()]).code(4);
    assert_eq!(output.stdout, "manifest     ok: moon 1.0.0, plugin-api 1.0.0\n");
    // The rest is the message of the system's linker.
    let expected =
        "error: cannot use `$HOUSE/given/moon.so` as a plugin: the system's linker refused it: ";
    assert!(house.normalize_output(&output.stderr).starts_with(expected), "{output}");
}

#[test]
fn plugin_check_names_the_problem() {
    let house = house!();
    let file = house.write_given_file("moon.so", b"I am a plugin, honestly.\n");
    let output = house.run(&["plugin", "check", &file.display().to_string()]).code(4);
    expect![[r#"
        exit 4
        --- stderr
        error: cannot use `$HOUSE/given/moon.so` as a plugin: it is not a dynamic library
    "#]]
    .assert_eq(&output.to_string());
    let missing = house.given_folder().join("sun.so").display().to_string();
    let output = house.run(&["plugin", "check", &missing]).code(4);
    expect![[r#"
        exit 4
        --- stderr
        error: cannot use `$HOUSE/given/sun.so` as a plugin: it cannot be read: No such file or directory (os error 2)
        hint: name a file; `jaato plugin list` and `show` print the file of each plugin
    "#]].assert_eq(&output.to_string());
}
