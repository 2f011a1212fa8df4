//! Tests files that cannot be opened (one line each, and a hint) and invalid descriptions.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::*;
use jaato_loader::{LoadError, LoadProblem, PluginLibrary, describe_plugin};
use jaato_types::ErrorKind;

fn load_error(path: &Path) -> LoadError {
    let Err(error) = PluginLibrary::open(path) else { panic!("`{}` was opened", path.display()) };
    error
}

#[track_caller]
fn check_load_error(path: &Path, text: &str, hint: Option<&str>) {
    let error = load_error(path);
    let line = format!("cannot load plugin `{}`: {text}", path.display());
    assert_eq!(error.to_string(), line);
    assert_eq!(error.problem.hint().as_deref(), hint);
}

fn write_changed_copy(folder: &Path, name: &str, change: impl FnOnce(&mut Vec<u8>)) -> PathBuf {
    let mut bytes = fs::read(fixture_path("probe")).unwrap();
    change(&mut bytes);
    let path = folder.join(name);
    fs::write(&path, bytes).unwrap();
    path
}

#[test]
fn file_that_is_not_a_library_is_refused_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let text = path("text.so");
    fs::write(&text, "hello, this is text and no library at all, not even a small one").unwrap();
    check_load_error(&text, "it is not a dynamic library", None);
    fs::write(path("empty.so"), "").unwrap();
    check_load_error(&path("empty.so"), "it is not a dynamic library", None);
    fs::create_dir(path("folder.so")).unwrap();
    check_load_error(&path("folder.so"), "it is a directory", None);
    let missing = load_error(&path("missing.so"));
    assert!(missing.to_string().contains("it cannot be read: No such file"), "{missing}");
}

#[test]
fn a_file_that_was_cut_is_refused_before_it_is_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let whole = fs::metadata(fixture_path("probe")).unwrap().len() as usize;
    for keep in [5, 63, 64, 4096, whole / 2, whole - 1] {
        let path = write_changed_copy(folder.path(), "cut.so", |bytes| bytes.truncate(keep));
        let error = load_error(&path);
        assert!(matches!(error.problem, LoadProblem::File(_)), "{keep}: {error}");
        assert!(!error.to_string().contains('\n'));
    }
}

#[cfg(all(target_os = "linux", target_endian = "little"))]
#[test]
fn library_for_another_processor_is_refused_naming_both() {
    let folder = tempfile::tempdir().unwrap();
    // `e_machine`: s390x on other machines, an older one on s390x.
    let machine: u16 = if cfg!(target_arch = "s390x") { 62 } else { 22 };
    let path = write_changed_copy(folder.path(), "foreign.so", |bytes| {
        bytes[18..20].copy_from_slice(&machine.to_le_bytes());
    });
    let error = load_error(&path).to_string();
    let sides = format!("this machine is {}", std::env::consts::ARCH);
    assert!(error.contains("it is built for") && error.contains(&sides), "{error}");
}

#[cfg(target_os = "linux")]
#[test]
fn system_library_is_refused_as_not_a_plugin() {
    let loaded = fs::read_to_string("/proc/self/maps").unwrap();
    let library = loaded.split_whitespace().find(|word| word.contains("/libc.so")).unwrap();
    check_load_error(
        Path::new(library),
        "it is a library without a jaato manifest",
        Some("a plugin calls `export_plugin!` of jaato-plugin-sdk at its crate's root"),
    );
}

#[test]
fn library_with_a_manifest_but_no_entry_point_is_refused() {
    check_load_error(
        &fixture_path("bare"),
        "it does not export `JAATO_PLUGIN_V1`",
        Some("build the plugin with jaato-plugin-sdk 1.0.0"),
    );
}

#[test]
fn panicking_constructor_is_reported_in_one_line() {
    check_load_error(
        &fixture_path("constructor"),
        "it failed to start: its constructor panicked",
        Some("report this to the plugin's author"),
    );
}

#[test]
fn missing_dependency_is_reported_in_the_linkers_words() {
    let folder = tempfile::tempdir().unwrap();
    let path = write_changed_copy(folder.path(), "lacking.so", |bytes| {
        let name = b"libc.so.6\0";
        let at = bytes.windows(name.len()).position(|window| window == name).unwrap();
        bytes[at..at + 4].copy_from_slice(b"moon");
    });
    let error = load_error(&path).to_string();
    assert!(error.contains("the system's linker refused it: moon.so.6: cannot open"), "{error}");
}

#[test]
fn a_plugin_describes_itself() {
    let description = describe_plugin(&open_probe()).unwrap();
    let names: Vec<_> = description.tools.iter().map(|tool| tool.name.to_string()).collect();
    assert!(names.is_sorted() && names.contains(&"echo".to_owned()), "{names:?}");
    assert_eq!(description.provider.unwrap().name, "probe");
    let error = describe_plugin(&open_fixture("vanished")).unwrap_err();
    assert!(error.message.contains("exports tools but has none"), "{error}");
}

#[test]
fn invalid_description_is_blamed_on_the_plugin() {
    let raw = open_fixture("raw");
    let texts = ["needs 4", "needs 204", "too large", "cannot be read", "needs 204"];
    for text in texts {
        let error = describe_plugin(&raw).unwrap_err();
        assert_eq!(error.kind, ErrorKind::PluginMisbehaved);
        assert!(error.message.contains(text), "{text}: {error}");
        assert!(error.message.contains("`fixture-raw`"), "{error}");
    }
}
