//! Tests the tool on a host in memory, with the conformance suite.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fs;
use std::path::Path;

use jaato_plugin_sdk::prelude::{Error, ErrorKind, Output, json};
use jaato_plugin_sdk::types::service::SessionFacts;
use jaato_plugin_testkit::FakeHost;
use tempfile::TempDir;

// The file of the tool's example is next to the test programs.
jaato_plugin_testkit::conformance!(tool_multimodal: tool; |suite| suite.with_host(|host| {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("tool-multimodal");
    fs::create_dir_all(&folder).unwrap();
    let image = folder.join("screenshot.png");
    if !image.exists() {
        // Parallel tests must see a complete file.
        let beside = folder.join(format!("{:?}", std::thread::current().id()));
        fs::write(&beside, PNG).unwrap();
        fs::rename(beside, image).unwrap();
    }
    host.with_session(session_at(&folder))
}));

/// The start of an image of 2 × 3 pixels.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x02\0\0\0\x03\x08\x02\0\0\0";

const MEGABYTES: usize = 1024 * 1024;

fn session_at(folder: &Path) -> SessionFacts {
    let working_directory = folder.to_str().unwrap().to_owned();
    SessionFacts { working_directory, ..SessionFacts::default() }
}

fn view_image(folder: &TempDir, path: &str) -> Result<Output, Error> {
    let host =
        FakeHost::new(tool_multimodal::__jaato::MODULE).with_session(session_at(folder.path()));
    host.call("viewImage", json!({ "path": path }))
}

#[test]
fn image_is_attached_under_its_name_with_any_extension() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("a")).unwrap();
    fs::write(folder.path().join("a/moon.txt"), PNG).unwrap();
    let output = view_image(&folder, "a/moon.txt").unwrap();
    let told =
        json!({ "path": "a/moon.txt", "type": "image/png", "size": 29, "width": 2, "height": 3 });
    assert_eq!(json!(output.content), told);
    let [data] = &output.attachments[..] else { panic!("{:?}", output.attachments) };
    assert_eq!((data.mime_type.as_str(), data.name.as_deref()), ("image/png", Some("moon.txt")));
}

#[test]
fn image_larger_than_ten_megabytes_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large.png");
    let mut image = PNG.to_vec();
    image.resize(10 * MEGABYTES, 0);
    fs::write(&path, &image).unwrap();
    assert_eq!(view_image(&folder, "large.png").unwrap().content["size"], json!(10 * MEGABYTES));
    image.push(0);
    fs::write(&path, &image).unwrap();
    let error = view_image(&folder, "large.png").unwrap_err();
    assert_eq!(error.kind, ErrorKind::LimitReached);
    assert_eq!(error.message, "`large.png` is too large: 10.0 MB > 10 MB");
}

#[test]
fn file_that_is_not_an_image_is_refused_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("words.png"), "hello").unwrap();
    fs::write(folder.path().join("empty.png"), "").unwrap();
    let of_file = "its content is not PNG, JPEG, GIF or WebP";
    for (path, why) in [("words.png", of_file), ("empty.png", of_file), (".", "it is a folder")] {
        let error = view_image(&folder, path).unwrap_err();
        assert_eq!(error.kind, ErrorKind::InvalidArguments, "{path}");
        assert_eq!(error.message, format!("`{path}` is not an image: {why}"));
    }
    assert_eq!(view_image(&folder, "none.png").unwrap_err().kind, ErrorKind::NotFound);
    assert_eq!(view_image(&folder, "").unwrap_err().message, "`path` is required");
}
