//! Tests of the notes on a host in memory: keeping, finding, forgetting, and titles before a
//! prompt.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use jaato_plugin_sdk::hooks::BeforePrompt;
use jaato_plugin_sdk::prelude::*;
use jaato_plugin_testkit::FakeHost;
use tool_notes::{FOUND_MAX, NOTES_MAX, TITLES_MAX};

fn notes_host() -> FakeHost {
    FakeHost::new(tool_notes::__jaato::MODULE)
}

#[track_caller]
fn keep_note(host: &FakeHost, title: &str, text: &str, of: &str) {
    let note = json!({ "title": title, "text": text, "of": of });
    assert_eq!(json!(host.call("keep_note", note).unwrap().content), json!({ "kept": title }));
}

fn text_before_prompt(host: &FakeHost, prompt: &str) -> String {
    let asked = BeforePrompt::new(prompt, Default::default());
    host.instance().unwrap().before_prompt(&asked).unwrap().text
}

#[test]
fn user_and_workspace_notes_are_found_in_a_later_instance() {
    let host = notes_host();
    keep_note(&host, "release", "tag first", "workspace");
    keep_note(&host, "editor", "vi, and nothing for a release", "person");
    keep_note(&host, "moon", "far", "person");
    let next = host.create(None).unwrap();
    let found = next.call("find_notes", json!({ "words": "Release!" })).unwrap();
    assert_eq!(
        json!(found.content),
        json!({ "more_titles": [], "notes": [
            { "title": "release", "text": "tag first", "of": "workspace" },
            { "title": "editor", "text": "vi, and nothing for a release", "of": "person" },
        ] })
    );
    let shown = next.command("notes", json!({})).unwrap();
    assert_eq!(shown.content["result"], "of this workspace:\n  release\nyours:\n  editor\n  moon");
}

#[test]
fn forget_note_removes_only_the_note_in_the_named_place() {
    let host = notes_host();
    keep_note(&host, "moon", "far", "workspace");
    keep_note(&host, "moon", "farther", "person");
    let forget = |of: &str| {
        let asked = json!({ "title": " moon", "of": of });
        host.call("forget_note", asked).unwrap().content["forgotten"].clone()
    };
    assert_eq!((forget("workspace"), forget("workspace")), (json!(true), json!(false)));
    let found = host.call("find_notes", json!({})).unwrap();
    assert_eq!(found.content["notes"][0]["text"], "farther");
    let shown = host.instance().unwrap().command("notes", json!({})).unwrap();
    assert_eq!(shown.content["result"], "yours:\n  moon");
}

#[test]
fn note_titles_that_match_the_prompt_are_put_before_it() {
    let host = notes_host();
    assert_eq!(text_before_prompt(&host, "release it"), "");
    keep_note(&host, "how we release", "a secret of the company", "workspace");
    keep_note(&host, "moon", "far", "person");
    assert_eq!(
        text_before_prompt(&host, "release it"),
        "There are notes, for `find_notes`: how we release"
    );
    assert_eq!(text_before_prompt(&host, "what is the time?"), "");
    for number in 0..TITLES_MAX {
        keep_note(&host, &format!("release {number}"), "x", "person");
    }
    assert_eq!(text_before_prompt(&host, "release it").matches(';').count(), TITLES_MAX - 1);
}

#[test]
fn number_of_notes_is_limited() {
    let host = notes_host();
    for number in 0..NOTES_MAX {
        keep_note(&host, &format!("note {number}"), "x", "person");
    }
    let another = json!({ "title": "one more", "text": "x", "of": "person" });
    let full = host.call("keep_note", another).unwrap_err();
    assert_eq!(full.kind, ErrorKind::LimitReached);
    keep_note(&host, "note 0", "changed", "person");
    keep_note(&host, "one more", "x", "workspace");
    let found = host.call("find_notes", json!({})).unwrap().content;
    let count = |key: &str| found[key].as_array().unwrap().len();
    assert_eq!((count("notes"), count("more_titles")), (FOUND_MAX, NOTES_MAX + 1 - FOUND_MAX));
}
