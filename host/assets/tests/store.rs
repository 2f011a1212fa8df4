//! Tests recorded checks, imports, and lists.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fs::{self, File};
use std::path::PathBuf;

use crate::support::{AssetFixture, test_asset, test_content};
use jaato_assets::{Asset, AssetEntry, AssetEntryKind, AssetErrorKind, AssetFileState};

const LENGTH: usize = 10_000;

/// Changes a byte in place and restores the old time, so that only the content differs.
fn change_secretly(path: &PathBuf) {
    let time = fs::metadata(path).unwrap().modified().unwrap();
    let mut bytes = fs::read(path).unwrap();
    bytes[0] ^= 1;
    fs::write(path, bytes).unwrap();
    File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
}

#[test]
fn a_verified_file_is_not_hashed_again_until_it_changes() {
    let (place, bytes) = (AssetFixture::new(), test_content(LENGTH));
    let asset = test_asset(&bytes, vec![]);
    assert_eq!(place.store.find(&asset).unwrap(), None);
    let path = place.write_file("small.gguf", &bytes);
    assert_eq!(place.store.find(&asset).unwrap().unwrap().path, path);
    change_secretly(&path);
    assert!(place.store.find(&asset).unwrap().is_some(), "it was hashed a second time");
    File::options().write(true).open(&path).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
    let error = place.store.find(&asset).unwrap_err();
    assert_eq!(error.kind(), AssetErrorKind::WrongDigest);
    let has = crate::support::sha256_digest(&fs::read(&path).unwrap());
    assert_eq!(
        place.without_folder(&error.to_string()),
        format!(
            "`DIR/small.gguf` does not match the pinned file: sha-256 `{has}`, expected `{}`",
            asset.sha256
        )
    );
    assert!(place.without_folder(&error.hint().unwrap()).starts_with("remove `DIR/small.gguf`"));
}

#[test]
fn replaced_file_with_equal_size_and_time_is_hashed_again() {
    let (place, bytes) = (AssetFixture::new(), test_content(LENGTH));
    let asset = test_asset(&bytes, vec![]);
    let path = place.write_file("small.gguf", &bytes);
    place.store.find(&asset).unwrap().unwrap();
    let time = fs::metadata(&path).unwrap().modified().unwrap();
    let other = place.write_file("other", &[7; LENGTH]);
    File::options().write(true).open(&other).unwrap().set_modified(time).unwrap();
    fs::rename(other, path).unwrap();
    assert_eq!(place.store.find(&asset).unwrap_err().kind(), AssetErrorKind::WrongDigest);
}

#[test]
fn verification_record_with_another_digest_or_garbage_is_ignored() {
    let (place, bytes) = (AssetFixture::new(), test_content(LENGTH));
    let path = place.write_file("small.gguf", &bytes);
    place.store.find(&test_asset(&bytes, vec![])).unwrap().unwrap();
    let other = Asset { sha256: "0".repeat(64), ..test_asset(&bytes, vec![]) };
    assert_eq!(place.store.find(&other).unwrap_err().kind(), AssetErrorKind::WrongDigest);
    change_secretly(&path);
    place.write_file("small.gguf.verified", b"{not json");
    let error = place.store.find(&test_asset(&bytes, vec![])).unwrap_err();
    assert_eq!(error.kind(), AssetErrorKind::WrongDigest);
}

#[test]
fn file_is_used_though_its_verification_record_cannot_be_written() {
    let (place, bytes) = (AssetFixture::new(), test_content(LENGTH));
    place.write_file("small.gguf", &bytes);
    fs::create_dir(place.path("small.gguf.verified")).unwrap();
    let found = place.store.find(&test_asset(&bytes, vec![])).unwrap().unwrap();
    let told = place.without_folder(&found.not_remembered.unwrap());
    assert!(told.starts_with("cannot write `DIR/small.gguf.verified`: "), "{told}");
}

#[test]
fn folder_in_place_of_the_file_is_an_error() {
    let place = AssetFixture::new();
    fs::create_dir_all(place.path("small.gguf")).unwrap();
    let error = place.store.find(&test_asset(b"x", vec![])).unwrap_err();
    assert_eq!(place.without_folder(&error.to_string()), "`DIR/small.gguf` is not a regular file");
}

#[test]
fn correct_file_is_imported_and_removes_the_partial_download() {
    let (place, bytes) = (AssetFixture::new(), test_content(LENGTH));
    place.write_file("small.gguf.part", b"half");
    let file = place.folder.path().join("from-usb.gguf");
    fs::write(&file, &bytes).unwrap();
    let asset = test_asset(&bytes, vec![]);
    let found = place.store.import_asset(&file, &asset, &place.event_reporter()).unwrap();
    assert_eq!(found.path, place.path("small.gguf"));
    assert_eq!(place.read_file("small.gguf").unwrap(), bytes);
    assert_eq!(place.list_names(), ["small.gguf", "small.gguf.lock", "small.gguf.verified"]);
    change_secretly(&found.path);
    assert!(place.store.find(&asset).unwrap().is_some(), "an import was hashed a second time");
    assert!(file.exists());
}

#[test]
fn an_import_replaces_a_damaged_file() {
    let (place, bytes) = (AssetFixture::new(), test_content(LENGTH));
    place.write_file("small.gguf", b"damaged");
    let file = place.folder.path().join("good");
    fs::write(&file, &bytes).unwrap();
    place.store.import_asset(&file, &test_asset(&bytes, vec![]), &place.event_reporter()).unwrap();
    assert_eq!(place.read_file("small.gguf").unwrap(), bytes);
}

#[track_caller]
fn check_refused_import(made: impl Fn(&PathBuf), expected: &str) {
    let (place, bytes) = (AssetFixture::new(), test_content(LENGTH));
    let file = place.folder.path().join("file");
    made(&file);
    let error = place
        .store
        .import_asset(&file, &test_asset(&bytes, vec![]), &place.event_reporter())
        .unwrap_err();
    let text = error.to_string().replace(file.to_str().unwrap(), "FILE");
    assert_eq!(text, expected);
    assert_eq!(place.read_file("small.gguf"), None);
    assert_eq!(place.read_file("small.gguf.import"), None);
}

#[test]
fn import_of_a_wrong_file_is_refused_with_expected_and_found_value() {
    check_refused_import(|_| {}, "file `FILE` does not exist");
    check_refused_import(|file| fs::create_dir(file).unwrap(), "`FILE` is not a regular file");
    check_refused_import(|file| fs::write(file, b"").unwrap(), "`FILE` is empty");
    check_refused_import(
        |file| fs::write(file, b"short").unwrap(),
        "`FILE` does not match the pinned file: 5 bytes, expected 10000",
    );
    let wrong = [7; LENGTH];
    check_refused_import(
        |file| fs::write(file, wrong).unwrap(),
        &format!(
            "`FILE` does not match the pinned file: sha-256 `{}`, expected `{}`",
            crate::support::sha256_digest(&wrong),
            crate::support::sha256_digest(&test_content(LENGTH))
        ),
    );
}

#[cfg(unix)]
#[test]
fn a_device_is_refused_without_opening_it() {
    let place = AssetFixture::new();
    let device = PathBuf::from("/dev/zero");
    let error = place
        .store
        .import_asset(&device, &test_asset(b"x", vec![]), &place.event_reporter())
        .unwrap_err();
    assert_eq!(error.to_string(), "`/dev/zero` is not a regular file");
}

/// Returns the smallest header that names an architecture.
fn gguf_file(architecture: &str) -> Vec<u8> {
    let text = |value: &str| [&(value.len() as u64).to_le_bytes()[..], value.as_bytes()].concat();
    let entry = [text("general.architecture"), 8_u32.to_le_bytes().to_vec(), text(architecture)];
    let head = [&b"GGUF"[..], &3_u32.to_le_bytes(), &0_u64.to_le_bytes(), &1_u64.to_le_bytes()];
    [head.concat(), entry.concat(), vec![1; 1000]].concat()
}

#[test]
fn custom_model_is_imported_under_a_name_and_later_changes_are_found() {
    let place = AssetFixture::new();
    let file = place.folder.path().join("m.gguf");
    fs::write(&file, gguf_file("qwen2")).unwrap();
    let import = |name: &str| {
        place.store.import_custom(&file, name, "qwen2", &["reserved"], &place.event_reporter())
    };
    let found = import("mine").unwrap();
    assert_eq!(found.path, place.path("custom/mine.gguf"));
    assert_eq!(found.sha256, crate::support::sha256_digest(&gguf_file("qwen2")));
    assert_eq!(place.store.find_custom("mine").unwrap(), Some(found.clone()));
    assert_eq!(place.store.find_custom("other").unwrap(), None);
    let text = |name| place.without_folder(&import(name).unwrap_err().to_string());
    assert_eq!(
        text("mine"),
        "cannot use `mine` as the name of a model: `DIR/custom/mine.gguf` has this name; remove it first"
    );
    assert_eq!(
        text("reserved"),
        "cannot use `reserved` as the name of a model: a model that ships with jaato has this name"
    );
    assert!(text("../x").starts_with("cannot use `../x` as the name of a model: "));
    fs::write(&found.path, b"changed").unwrap();
    let error = place.store.find_custom("mine").unwrap_err();
    assert_eq!(
        place.without_folder(&error.to_string()),
        "`DIR/custom/mine.gguf` has changed since it was imported"
    );
}

#[test]
fn a_model_that_cannot_be_run_is_refused() {
    let place = AssetFixture::new();
    let file = place.folder.path().join("m.gguf");
    let refusal = |bytes: &[u8]| {
        fs::write(&file, bytes).unwrap();
        let result = place.store.import_custom(&file, "m", "qwen2", &[], &place.event_reporter());
        result.unwrap_err().to_string().replace(file.to_str().unwrap(), "FILE")
    };
    assert_eq!(
        refusal(&gguf_file("llama")),
        "`FILE` has the architecture `llama`, but jaato runs only `qwen2`"
    );
    assert_eq!(
        refusal(b"PK\x03\x04"),
        "cannot read `FILE` as a model: it does not begin with `GGUF`"
    );
    assert_eq!(
        refusal(&gguf_file("qwen2")[..30]),
        "cannot read `FILE` as a model: it ends within its header"
    );
    assert_eq!(refusal(b""), "`FILE` is empty");
    assert!(!place.path("custom").exists());
}

#[test]
fn asset_list_shows_the_state_of_each_file() {
    let (place, bytes) = (AssetFixture::new(), test_content(LENGTH));
    let named = |id: &str| Asset {
        id: id.to_owned(),
        file_name: format!("{id}.gguf"),
        ..test_asset(&bytes, vec![])
    };
    let assets = ["verified", "put", "half", "missing"].map(named);
    assert_eq!(place.store.list(&assets[3..]).unwrap().len(), 1, "a folder is not needed");
    place.write_file("verified.gguf", &bytes);
    place.store.find(&assets[0]).unwrap().unwrap();
    place.write_file("put.gguf", &bytes);
    place.write_file("half.gguf.part", &bytes[..5000]);
    place.write_file("older.gguf", b"1234");
    place.write_file("oldest.gguf.part", b"12");
    let file = place.folder.path().join("m.gguf");
    fs::write(&file, gguf_file("qwen2")).unwrap();
    place.store.import_custom(&file, "mine", "qwen2", &[], &place.event_reporter()).unwrap();

    let length = LENGTH as u64;
    let entry = |name: &str, kind: AssetEntryKind, path: &str, state: AssetFileState| AssetEntry {
        name: name.to_owned(),
        kind,
        path: place.path(path),
        state,
    };
    let declared = || AssetEntryKind::Asset { bytes: length };
    let custom = AssetEntryKind::Custom { architecture: Some("qwen2".to_owned()) };
    let size = gguf_file("qwen2").len() as u64;
    let expected = [
        entry("verified", declared(), "verified.gguf", AssetFileState::Verified { bytes: length }),
        entry("put", declared(), "put.gguf", AssetFileState::Unverified { bytes: length }),
        entry("half", declared(), "half.gguf", AssetFileState::Partial { bytes: 5000 }),
        entry("missing", declared(), "missing.gguf", AssetFileState::Missing),
        entry("mine", custom, "custom/mine.gguf", AssetFileState::Verified { bytes: size }),
        entry(
            "older.gguf",
            AssetEntryKind::Other,
            "older.gguf",
            AssetFileState::Unverified { bytes: 4 },
        ),
        entry(
            "oldest.gguf.part",
            AssetEntryKind::Other,
            "oldest.gguf.part",
            AssetFileState::Partial { bytes: 2 },
        ),
    ];
    assert_eq!(place.store.list(&assets).unwrap(), expected);
}
