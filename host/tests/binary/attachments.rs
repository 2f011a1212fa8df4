//! Tests the attachments of tools, written to files for a user who called a tool.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::{House, fixture, is_isolated};

/// Returns an installation with the fixture: shipped or, if plugins run in workers, as an untrusted
/// plugin of the user.
fn set_up_house() -> Option<House> {
    let house = House::without_plugins()?;
    match is_isolated() {
        true => house.ship_to_user(&fixture("attaches")),
        false => house.ship(&fixture("attaches")),
    };
    Some(house)
}

fn run_draw(house: &House, how: &str) -> Value {
    let arguments = json!({ "how": how }).to_string();
    house.run(&["call", "draw", &arguments]).code(0).json()
}

#[test]
fn attached_image_and_text_are_kept_as_private_files() {
    let Some(house) = set_up_house() else { return };
    let answer = run_draw(&house, "image");
    assert_eq!(answer["drawn"], "a moon");
    let attachments = answer["attachments"].as_array().unwrap();
    assert_eq!(attachments.len(), 2, "{answer:#}");
    let file = |at: usize| attachments[at]["file"].as_str().unwrap().to_owned();
    assert_eq!(attachments[0], json!({ "mime_type": "image/png", "file": file(0) }));
    let text = json!({ "mime_type": "text/plain", "name": "moon.txt", "file": file(1) });
    assert_eq!(attachments[1], text);
    assert!(file(0).ends_with(".png") && file(1).ends_with(".txt"), "{answer:#}");
    assert!(fs::read(file(0)).unwrap().starts_with(b"\x89PNG"));
    assert_eq!(fs::read(file(1)).unwrap(), b"a moon over the sea");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let (path, kept) = (file(0), house.cache_folder().join("attachments"));
    assert!(Path::new(&path).starts_with(&kept), "{path}");
    assert_eq!((mode(Path::new(&path)), mode(&kept)), (0o600, 0o700));
    // The blobs themselves are gone with the session.
    assert_eq!(fs::read_dir(house.cache_folder().join("outputs")).unwrap().count(), 0);
    house.assert_no_processes();
}

#[test]
fn attachment_larger_than_a_frame_is_transferred_and_own_keys_are_kept() {
    let Some(house) = set_up_house() else { return };
    let answer = run_draw(&house, "large");
    assert_eq!(answer["attachments"], "its own");
    let file = answer["attachments_2"][0]["file"].as_str().unwrap();
    assert!(file.ends_with(".bin"), "{file}");
    assert_eq!(fs::metadata(file).unwrap().len(), 20 * 1024 * 1024);
}

#[test]
fn invalid_attachments_are_errors_and_the_session_continues() {
    let Some(house) = set_up_house() else { return };
    let lines = ["lie", "storm", "gone", "path", "abandoned", "abandoned", "left"]
        .map(|how| json!({ "tool": "draw", "args": { "how": how } }).to_string());
    let output = house.command(&["call", "--batch"]).input(lines.join("\n")).run();
    let answers = output.json_lines();
    let told: Vec<_> = answers.iter().map(|it| it["error"]["kind"].as_str()).collect();
    let kinds = ["invalid_arguments", "limit_reached", "not_found", "not_found"].map(Some);
    assert_eq!(told[..4], kinds, "{output}");
    let lie = "the attachment is declared as `image/png`, but its bytes are \
               `application/octet-stream`";
    assert_eq!(answers[0]["error"]["message"], lie);
    let path = "the session has no blob `../../../../etc/passwd`";
    assert_eq!(answers[3]["error"]["message"], path);
    // The first call's unfinished upload is gone with it.
    for answer in &answers[4..6] {
        assert_eq!(answer["result"]["begun"], 16, "{output}");
    }
    assert_eq!(answers[6]["result"]["attachments"][0]["mime_type"], "image/png");
}
