//! How each enum reads a word from a newer version, line by line as in the table of `docs/abi.md`.
//!
//! The test fails if an enum that is read from JSON is missing here.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fmt::Debug;

use jaato_types::ask::{FieldKind, FormOutcome};
use jaato_types::child::ObjectSharing;
use jaato_types::execution::EnvironmentPart;
use jaato_types::file_change::{FileChangeKind, HunkLineKind};
use jaato_types::files::*;
use jaato_types::hooks::{GuardAnswer, Hook, ToolCallOrigin};
use jaato_types::http::HttpPurpose;
use jaato_types::large::LargeRequestKind;
use jaato_types::model::ObjectVisibility;
use jaato_types::permission_prompt::{PermissionDecision, PromptSubject};
use jaato_types::process::*;
use jaato_types::resources::ResourceAction;
use jaato_types::store::StoreOwner;
use jaato_types::tasks::TaskStatus;
use jaato_types::terminal::{TerminalAskOutcome, TerminalEvent, TerminalUserAction, TerminalWait};
use jaato_types::work_plan::{PlanStatus, PlanStepStatus};
use jaato_types::*;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// A word that no version knows.
const WORD: &str = "moonlight";

#[track_caller]
fn assert_reads<T: DeserializeOwned + PartialEq + Debug>(json: Value, as_what: T) {
    assert_eq!(serde_json::from_value::<T>(json).unwrap(), as_what);
}

#[track_caller]
fn assert_refused<T: DeserializeOwned + Debug>(json: Value, naming: &str) {
    let error = serde_json::from_value::<T>(json).unwrap_err().to_string();
    assert!(error.contains(WORD) && error.contains(naming), "{error}");
    assert!(!error.contains('\n'), "{error}");
}

#[test]
fn unknown_events_and_deltas_are_read_as_unknown() {
    assert_reads(json!({ "delta": WORD, "of": 1 }), Delta::Unknown);
    assert_reads(json!({ "event": WORD, "of": 1 }), ProcessEvent::Unknown);
    assert_reads(json!({ "event": WORD, "of": 1 }), Event::Unknown);
    assert_reads(json!({ "event": WORD, "of": 1 }), TerminalEvent::Unknown);
    assert_reads(json!({ "event": WORD, "of": 1 }), TerminalUserAction::Unknown);
    assert_reads(json!({ "kind": WORD, "of": 1 }), AssetSource::Unknown);
    assert_reads(json!(WORD), Hook::Unknown);
}

#[test]
fn unknown_history_parts_are_kept_unchanged() {
    let part = json!({ "type": WORD, "of": [1, 2.5, null] });
    assert_reads(part.clone(), Part::Unknown(part.as_object().unwrap().clone()));
    let data = json!({ "mime_type": "a/b", WORD: 1 });
    let read: DataPart = serde_json::from_value(data.clone()).unwrap();
    assert!(matches!(read.content, DataContent::Unknown(_)));
    assert_eq!(serde_json::to_value(read).unwrap(), data);
}

#[test]
fn unknown_gc_edit_is_skipped() {
    assert_reads(
        json!({ "message": 1, "part": 2, "change": WORD, "more": 3 }),
        GcEdit::new(1, 2, GcChange::Unknown),
    );
}

#[test]
fn unknown_class_value_is_read_as_other_or_unknown() {
    assert_reads(json!(WORD), ErrorKind::Other);
    assert_reads(json!(WORD), Retry::Other);
    assert_reads(json!(WORD), FinishReason::Unknown);
    assert_reads(json!(WORD), GcReason::Other);
    assert_reads(json!(WORD), Outcome::Unknown);
    assert_reads(json!(WORD), PluginKind::Unknown);
    assert_reads(json!(WORD), Role::Unknown);
    assert_reads(json!(WORD), FileKind::Other);
    assert_reads(json!(WORD), FileChangeKind::Unknown);
    assert_reads(json!(WORD), HunkLineKind::Unknown);
    assert_reads(json!(WORD), PlanStatus::Unknown);
    assert_reads(json!(WORD), PlanStepStatus::Unknown);
    assert_reads(json!(WORD), TerminalWait::Unknown);
    assert_reads(json!(WORD), Effort::Unknown);
    assert_reads(json!(WORD), ToolChoice::Unknown);
    assert_reads(json!(WORD), SecretOutcome::Unknown);
    assert_reads(json!(WORD), ToolCallOrigin::Unknown);
    assert_reads(json!(WORD), TaskStatus::Unknown);
    assert_reads(json!(WORD), FormOutcome::Unknown);
    // The host refuses a form with such a field.
    assert_reads(json!(WORD), FieldKind::Unknown);
    assert_reads(json!({ "outcome": WORD, "of": 1 }), TerminalAskOutcome::Unknown);
    assert_reads(json!({ "kind": WORD, "of": 1 }), PromptSubject::Arguments);
}

#[test]
fn unknown_safety_values_are_read_as_the_careful_choice() {
    assert_reads(json!(WORD), PluginScope::Session);
    assert_reads(json!(WORD), Isolation::Worker);
    assert_reads(json!(WORD), Availability::Discoverable);
    assert_reads(json!({ "when": WORD, "of": 1 }), Condition::Unknown);
    assert_reads(json!(WORD), EnvironmentPart::Unknown);
    assert_reads(json!(WORD), VisibleMedia::Unknown);
    assert_reads(json!(WORD), ConditionDecision::Unknown);
    assert_reads(json!({ "decision": WORD, "of": 1 }), GuardAnswer::Unknown);
    assert_reads(json!(WORD), LargeRequestKind::Unknown);
    assert_reads(json!(WORD), ObjectVisibility::None);
    assert_reads(json!(WORD), ObjectSharing::None);
}

#[test]
fn unknown_instructions_are_refused_with_the_known_words() {
    assert_refused::<Stdin>(json!(WORD), "`closed` or `piped`");
    assert_refused::<Signal>(json!(WORD), "`terminate`");
    assert_refused::<WriteMode>(json!(WORD), "`create_new`");
    assert_refused::<TextUnit>(json!(WORD), "`characters` or `lines`");
    assert_refused::<FileOrder>(json!(WORD), "`newest` or `path`");
    assert_refused::<FindKind>(json!(WORD), "`files`, `folders`, `all`");
    assert_refused::<ResourceAction>(json!(WORD), "`create`");
    assert_refused::<StoreOwner>(json!(WORD), "`person` or `workspace`");
    assert_refused::<OutputStream>(json!(WORD), "`stdout` or `stderr`");
    assert_refused::<PermissionDecision>(json!(WORD), "`allow_once`");
    assert_refused::<HttpPurpose>(json!(WORD), "`api` or `web`");
}

#[test]
fn every_deserialized_enum_is_tested_with_an_unknown_value() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src");
    let mut missing = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            continue;
        }
        let source = std::fs::read_to_string(path).unwrap();
        for (at, _) in source.match_indices("\npub enum ") {
            let name: String =
                source[at + 10..].chars().take_while(|sign| sign.is_alphanumeric()).collect();
            let attributes = source[..at].rsplit("\n\n").next().unwrap();
            let by_hand = source.contains(&format!("Deserialize<'de> for {name} "));
            let is_read = attributes.contains("Deserialize") || by_hand;
            if is_read && !include_str!("future.rs").contains(&name) {
                missing.push(name);
            }
        }
    }
    assert_eq!(missing, Vec::<String>::new(), "what do they make of a word from the future?");
}
