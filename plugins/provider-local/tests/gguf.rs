//! Tests files that are not usable weights. Each is refused with an error of one line.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fs;
use std::path::Path;

use crate::support::{GgufQuirks, write_model};
use jaato_plugin_sdk::types::ErrorKind;
use provider_local::local::LocalModel;

#[track_caller]
fn assert_refused(path: &Path, kind: ErrorKind, expected: &str) {
    let Err(error) = LocalModel::load_model(path, 512) else { panic!("was loaded") };
    assert_eq!(error.kind, kind, "{error}");
    assert!(error.message.contains(expected), "{error}");
    assert_eq!(error.message.lines().count(), 1, "{error}");
}

#[test]
fn truncated_model_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = write_model(folder.path(), GgufQuirks::default());
    let bytes = fs::read(&path).unwrap();
    for keep in [0, 3, 20, 300, 2000, bytes.len() / 2, bytes.len() - 1000] {
        fs::write(&path, &bytes[..keep]).unwrap();
        assert_refused(&path, ErrorKind::Configuration, "cannot be used");
    }
}

#[test]
fn file_that_is_not_gguf_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.gguf");
    fs::write(&path, "#!/bin/sh\necho hello, this is not a model\n").unwrap();
    assert_refused(&path, ErrorKind::Configuration, "unknown magic");
    assert_refused(&folder.path().join("none.gguf"), ErrorKind::Io, "cannot open the weights");
}

#[test]
fn unsupported_architecture_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let quirks = GgufQuirks { architecture: Some("llama"), ..GgufQuirks::default() };
    let path = write_model(folder.path(), quirks);
    assert_refused(
        &path,
        ErrorKind::Configuration,
        "has the architecture `llama`, this plugin runs `qwen2`",
    );
}

#[test]
fn missing_metadata_key_is_named_in_the_error() {
    let folder = tempfile::tempdir().unwrap();
    for key in [
        "general.architecture",
        "qwen2.block_count",
        "qwen2.attention.head_count_kv",
        "qwen2.rope.freq_base",
        "tokenizer.ggml.tokens",
        "tokenizer.ggml.token_type",
    ] {
        let path = write_model(
            folder.path(),
            GgufQuirks { without_key: Some(key), ..GgufQuirks::default() },
        );
        assert_refused(&path, ErrorKind::Configuration, key);
    }
}

#[test]
fn damaged_model_file_never_panics() {
    let folder = tempfile::tempdir().unwrap();
    let path = write_model(folder.path(), GgufQuirks::default());
    let bytes = fs::read(&path).unwrap();
    let mut random = crate::support::RandomFloats(7);
    for _ in 0..60 {
        let mut damaged = bytes.clone();
        let at = ((random.next() + 1.0) / 2.0 * 7000.0) as usize;
        damaged[at] ^= 1 << (at % 8);
        fs::write(&path, damaged).unwrap();
        // Many single bits change only a name, or a number that is still valid.
        if let Err(error) = LocalModel::load_model(&path, 512) {
            assert_eq!(error.kind, ErrorKind::Configuration, "byte {at}: {error}");
        }
    }
}
