//! Tests the tool through the plugin boundary, with a simulated user.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::BTreeMap;

use jaato_plugin_sdk::form::{FieldKind, Form, FormAnswer};
use jaato_plugin_sdk::serde_json::{Value, json};
use jaato_plugin_sdk::types::ErrorKind;
use jaato_plugin_testkit::FakeHost;

fn clarification_host() -> FakeHost {
    FakeHost::new(tool_clarification::__jaato::MODULE)
}

#[track_caller]
fn ask_questions(
    person: impl Fn(&Form) -> FormAnswer + Send + Sync + 'static,
    questions: Value,
) -> Value {
    let arguments = json!({ "context": "a page", "questions": questions });
    Value::Object(
        clarification_host()
            .with_person(person)
            .call("request_clarification", arguments)
            .unwrap()
            .content,
    )
}

fn sample_questions() -> Value {
    json!([
        { "text": "Which colour?", "choices": ["red", { "text": "blue" }], "default_choice": 2 },
        { "text": "Which parts?", "question_type": "multiple_choice", "choices": ["a", "b", "c"] },
        { "text": "What is it called?", "question_type": "free_text" },
        { "text": "Anything else?", "required": false },
    ])
}

#[test]
fn answers_are_reported_with_number_and_text() {
    let person = |form: &Form| {
        assert_eq!(form.title, "a page");
        let kinds: Vec<FieldKind> = form.fields.iter().map(|field| field.kind).collect();
        let (choice, text) = (FieldKind::Choice, FieldKind::Text);
        assert_eq!(kinds, [choice, FieldKind::Several, text, text]);
        assert_eq!(form.fields[0].default, Some(json!("2")));
        assert_eq!(form.fields[0].options[1].label, "blue");
        assert!(form.fields[3].is_optional);
        let given = [("1", json!("1")), ("2", json!(["3", "1"])), ("3", json!("Moons"))];
        let given = given.map(|(name, value)| (name.to_owned(), value));
        FormAnswer::answered(BTreeMap::from(given))
    };
    assert_eq!(
        ask_questions(person, sample_questions()),
        json!({ "responses": {
            "1": { "selected": 1, "text": "red", "type": "single_choice" },
            "2": { "selected": [3, 1], "texts": ["c", "a"], "type": "multiple_choice" },
            "3": { "value": "Moons", "type": "free_text" },
            "4": { "skipped": true },
        } })
    );
}

#[test]
fn declined_form_and_missing_user_have_different_messages() {
    assert_eq!(
        ask_questions(|_| FormAnswer::declined(), sample_questions()),
        json!({ "cancelled": true, "message": "User cancelled the clarification request." })
    );
    let nobody =
        ask_questions(|_| FormAnswer::without_user("there is no terminal"), sample_questions());
    assert_eq!(nobody["cancelled"], true);
    assert_eq!(
        nobody["message"],
        "No one can answer: there is no terminal. Decide yourself, and say what you assumed."
    );
}

#[test]
fn invalid_questions_are_refused() {
    let refused = |questions: Value| {
        let arguments = json!({ "context": "a page", "questions": questions });
        clarification_host().call("request_clarification", arguments).unwrap_err()
    };
    assert_eq!(refused(json!([])).kind, ErrorKind::InvalidArguments);
    let error = refused(json!([{ "text": "x", "choices": ["a"], "default_choice": 9 }]));
    assert_eq!(error.message, "question 1: `default_choice` is not one of its 1 choices");
    let many: Vec<Value> = (0..21).map(|number| json!({ "text": number.to_string() })).collect();
    assert_eq!(refused(json!(many)).kind, ErrorKind::InvalidArguments);
    let named = json!([{ "text": "x", "choices": [{ "name": "a" }] }]);
    assert_eq!(refused(named).kind, ErrorKind::InvalidArguments);
}

jaato_plugin_testkit::conformance!(tool_clarification: tool);
