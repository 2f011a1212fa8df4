//! What is found in folders and archives, and what is refused, without a real plugin.

use std::env::consts::DLL_SUFFIX;
use std::fs;
use std::io::Write as _;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use tempfile::TempDir;

use super::*;

/// Creates an archive of files with these paths. Their content is not a plugin, so the error shows
/// which of them was read.
fn create_archive(paths: &[&str]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for path in paths {
        let mut header = tar::Header::new_gnu();
        header.set_size(4);
        header.set_mode(0o644);
        // Not `append_data`, which refuses the paths of a hostile archive.
        let name = &mut header.as_old_mut().name;
        name[..path.len()].copy_from_slice(path.as_bytes());
        header.set_cksum();
        builder.append(&header, &b"text"[..]).unwrap();
    }
    builder.into_inner().unwrap()
}

fn find_error(given: &Path, scratch: &Path) -> String {
    let error = InstallSource::find(given, scratch).unwrap_err().to_string();
    let left: Vec<_> = fs::read_dir(scratch).unwrap().flatten().collect();
    assert!(left.is_empty(), "{left:?}");
    error.replace(&scratch.display().to_string(), "$S")
}

#[track_caller]
fn check_archive(paths: &[&str], expected: &str) {
    let folder = tempfile::tempdir().unwrap();
    let scratch = tempfile::tempdir().unwrap();
    let plain = folder.path().join("a.tar");
    fs::write(&plain, create_archive(paths)).unwrap();
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(&create_archive(paths)).unwrap();
    let gzip = folder.path().join("a.tar.gz");
    fs::write(&gzip, packed.finish().unwrap()).unwrap();
    for path in [plain, gzip] {
        let error = find_error(&path, scratch.path());
        assert!(error.contains(expected), "{error}");
    }
}

fn library_file_name(name: &str) -> String {
    format!("{name}{DLL_SUFFIX}")
}

#[test]
fn the_library_of_this_system_is_found_in_an_archive() {
    let top = library_file_name("libmoon");
    let ours = format!("lib/{}/{top}", target_triple());
    let other = format!("lib/sparc-sun-solaris/{top}");
    check_archive(&["README.md", &top], &format!("/{top}` as a plugin"));
    check_archive(&["moon-1.0/README.md", &format!("moon-1.0/{top}")], &format!("moon-1.0/{top}"));
    check_archive(&["README.md", &ours, &other], &format!("/{ours}` as a plugin"));
    check_archive(&[&format!("moon/{other}"), &format!("moon/{ours}")], &format!("moon/{ours}"));
    check_archive(&[&other], "holds plugins for `sparc-sun-solaris`, this system is");
    check_archive(&["README.md"], "contains no dynamic library");
    check_archive(
        &[&library_file_name("a"), &library_file_name("b")],
        "more than one dynamic library",
    );
}

#[test]
fn archive_paths_that_leave_the_folder_are_ignored() {
    let folder = tempfile::tempdir().unwrap();
    let scratch = folder.path().join("scratch");
    fs::create_dir(&scratch).unwrap();
    let packed = folder.path().join("a.tar");
    let deep = format!("{}{}", "a/".repeat(8), library_file_name("deep"));
    let (up, root) = (
        format!("../../{}", library_file_name("up")),
        format!("/tmp/{}", library_file_name("jaato-root")),
    );
    fs::write(&packed, create_archive(&[&up, &root, &deep])).unwrap();
    assert!(find_error(&packed, &scratch).contains("contains no dynamic library"));
    let names: Vec<_> = fs::read_dir(folder.path()).unwrap().flatten().collect();
    assert_eq!(names.len(), 2, "{names:?}");
    assert!(!Path::new(&root).exists());
}

#[test]
fn truncated_archive_or_zip_is_refused_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let scratch = tempfile::tempdir().unwrap();
    let given = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        find_error(&path, scratch.path())
    };
    assert!(given("a.zip", b"PK\x03\x04zip").ends_with("it is a zip"));
    assert!(given("a.gz", &[0x1f, 0x8b, 8]).starts_with("cannot unpack"));
    let whole = create_archive(&[&library_file_name("a")]);
    assert!(given("cut.tar", &whole[..514]).starts_with("cannot unpack"));
    assert!(given("text.so", b"text").ends_with("it is not a dynamic library"));
}

#[test]
fn stream_longer_than_its_limit_is_an_error() {
    use std::io::Read as _;
    let long = |left| {
        let mut text = String::new();
        let mut bounded = archive::BoundedReader { stream: &b"abcd"[..], left };
        bounded.read_to_string(&mut text).map(|_| text)
    };
    assert_eq!(long(4).unwrap(), "abcd");
    assert!(long(3).is_err());
}

#[test]
fn crate_folders_urls_and_missing_files_get_different_errors() {
    let folder = TempDir::new().unwrap();
    let scratch = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("Cargo.toml"), "").unwrap();
    assert!(
        find_error(folder.path(), scratch.path()).ends_with("is a crate's sources, not a plugin")
    );
    fs::write(folder.path().join(library_file_name("a")), "text").unwrap();
    assert!(find_error(folder.path(), scratch.path()).ends_with("it is not a dynamic library"));
    for address in ["https://example.org/moon.so", "git@example.org:moon"] {
        let error = find_error(Path::new(address), scratch.path());
        assert!(error.contains("is a URL"), "{error}");
    }
    assert!(
        find_error(Path::new("/no/moon.so"), scratch.path())
            .starts_with("cannot read `/no/moon.so`")
    );
}

/// Appends an entry of a special kind: a name or metadata for the entry after it.
fn append_entry(
    builder: &mut tar::Builder<Vec<u8>>,
    kind: tar::EntryType,
    name: &str,
    bytes: &[u8],
) {
    let mut header = tar::Header::new_ustar();
    header.set_size(bytes.len() as u64);
    header.set_entry_type(kind);
    header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
    header.set_cksum();
    builder.append(&header, bytes).unwrap();
}

#[track_caller]
fn check_entries(entries: &[(tar::EntryType, &str, &[u8])], expected: &str) {
    let (folder, scratch) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut builder = tar::Builder::new(Vec::new());
    for (kind, name, bytes) in entries {
        append_entry(&mut builder, *kind, name, bytes);
    }
    let packed = folder.path().join("a.tar");
    fs::write(&packed, builder.into_inner().unwrap()).unwrap();
    let error = find_error(&packed, scratch.path());
    assert!(error.contains(expected), "{error}");
}

fn pax_record(key: &str, value: &str) -> Vec<u8> {
    let rest = format!(" {key}={value}\n");
    let mut length = rest.len() + 1;
    while length != rest.len() + length.to_string().len() {
        length += 1;
    }
    format!("{length}{rest}").into_bytes()
}

#[test]
fn long_tar_entry_names_are_read_in_gnu_and_pax_form() {
    use tar::EntryType::{GNULongLink, GNULongName, Regular, XGlobalHeader, XHeader};
    let name = library_file_name("moon");
    let named = format!("{}/{name}", "n".repeat(120));
    let read = format!("/{named}` as a plugin: it is not a dynamic library");
    let gnu = [named.as_bytes(), b"\0"].concat();
    check_entries(&[(GNULongName, "x", &gnu), (Regular, "cut", b"text")], &read);
    let link =
        [(GNULongLink, "x", &b"far"[..]), (GNULongName, "x", &gnu), (Regular, "cut", b"text")];
    check_entries(&link, &read);
    check_entries(&[(XHeader, "x", &pax_record("path", &named)), (Regular, "cut", b"text")], &read);
    let global = (XGlobalHeader, "x", &pax_record("comment", "hello")[..]);
    check_entries(&[global, (Regular, &name, b"text")], &format!("/{name}` as a plugin"));
    // A name holds only for the next entry.
    let two = [
        (GNULongName, "x", &gnu[..]),
        (tar::EntryType::Directory, "d", b""),
        (Regular, "cut", b"text"),
    ];
    check_entries(&two, "contains no dynamic library");
}

#[test]
fn archive_with_too_long_names_or_too_many_folders_is_refused() {
    use tar::EntryType::{GNULongLink, GNULongName, Regular, XGlobalHeader, XHeader};
    let too_long = "a name in it is too long";
    let at = |bytes: usize| vec![b'n'; bytes];
    check_entries(
        &[(GNULongName, "x", &at(4096)), (Regular, "a", b"")],
        "contains no dynamic library",
    );
    check_entries(&[(GNULongName, "x", &at(4097)), (Regular, "a", b"")], too_long);
    check_entries(&[(GNULongLink, "x", &at(65_537)), (Regular, "a", b"")], too_long);
    check_entries(&[(XGlobalHeader, "x", &at(65_537)), (Regular, "a", b"")], too_long);
    check_entries(&[(XHeader, "x", &at(65_537)), (Regular, "a", b"")], too_long);
    check_entries(
        &[(XHeader, "x", &pax_record("path", &"n".repeat(4097))), (Regular, "a", b"")],
        too_long,
    );

    let folders =
        |count: usize| (0..count).map(|number| format!("f{number}/x")).collect::<Vec<_>>();
    let check = |count, expected| {
        let names = folders(count);
        check_archive(&names.iter().map(String::as_str).collect::<Vec<_>>(), expected);
    };
    check(1000, "contains no dynamic library");
    check(1001, "it has too many folders");
}
