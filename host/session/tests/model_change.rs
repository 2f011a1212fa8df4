//! Switching the model of a conversation: because the user wants it, or because the first model
//! fails permanently.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::sync::Arc;

use jaato_session::testing::{ScriptedProvider, ScriptedProviderAction, ScriptedTool, TestStage};
use jaato_session::{AnsweringModel, Cancel, ModelCapabilities, ModelSetup, SessionSetup};
use jaato_types::{DataPart, Error, ErrorKind, Event, ModelId, Outcome, Part, Usage};
use serde_json::json;

fn other_model() -> ModelSetup {
    ModelSetup::new(ModelId::from("other/big"), 20_000)
}

fn recorded_model_changes(stage: &TestStage) -> Vec<(String, Vec<String>)> {
    let change = |event| match event {
        Event::ModelChanged { model, left_out, .. } => Some((model, left_out)),
        _ => None,
    };
    stage.events.envelopes().into_iter().filter_map(|it| change(it.event)).collect()
}

#[tokio::test(start_paused = true)]
async fn new_model_continues_the_conversation_without_foreign_thoughts() {
    let stage = TestStage::new([ScriptedTool::echo("look")]);
    stage.provider.add_answer([
        ScriptedProviderAction::Thought("hm".to_owned()),
        ScriptedProviderAction::call("1", "look", json!({})),
    ]);
    stage.provider.add_answer([ScriptedProviderAction::text("blue")]);
    let mut session = stage.start(TestStage::setup()).unwrap();
    session.run_turn("what colour?", &Cancel::new()).await;
    let next = Arc::new(ScriptedProvider::default());
    next.add_answer([ScriptedProviderAction::text("still blue")]);
    session.change_model(other_model(), next.clone());
    let report = session.run_turn("and now?", &Cancel::new()).await;
    assert_eq!((report.outcome, report.text.as_str()), (Outcome::Done, "still blue"));
    let request = &next.requests()[0];
    assert_eq!((request.model.as_str(), request.messages.len()), ("big", 5));
    let parts = || request.messages.iter().flat_map(|message| &message.parts);
    assert!(parts().all(|part| !matches!(part, Part::Thought { .. })));
    assert_eq!(parts().filter(|part| matches!(part, Part::ToolCall(_))).count(), 1);
    assert_eq!(stage.provider.requests().len(), 2, "the first is asked no more");
    let told = vec!["1 thought of another model".to_owned()];
    assert_eq!(recorded_model_changes(&stage), [("other/big".to_owned(), told)]);
    let facts = session.facts();
    assert_eq!((facts.model.as_str(), facts.context_limit), ("other/big", 20_000));
}

#[tokio::test(start_paused = true)]
async fn model_change_reports_files_the_new_model_cannot_view() {
    let stage = TestStage::new([]);
    let mut setup = TestStage::setup();
    setup.model.takes = ModelCapabilities {
        media_types: vec!["image/*".to_owned()],
        ..ModelCapabilities::default()
    };
    stage.provider.add_answer([ScriptedProviderAction::text("a cat")]);
    let mut session = stage.start(setup).unwrap();
    let mut prompt = jaato_session::UserPrompt::from("what is it?");
    prompt.files.push(Part::Data(DataPart::blob("image/png", "0".repeat(64))));
    session.run_turn(prompt, &Cancel::new()).await;
    session.change_model(other_model(), Arc::<ScriptedProvider>::default());
    let told = &recorded_model_changes(&stage)[0].1;
    assert_eq!(*told, ["1 file that it cannot read and gets only as a note"]);
}

fn setup_with_fallback(next: &Arc<ScriptedProvider>) -> SessionSetup {
    let provider = Arc::clone(next) as _;
    SessionSetup {
        fallbacks: vec![AnsweringModel { model: other_model(), provider }],
        ..TestStage::setup()
    }
}

#[tokio::test(start_paused = true)]
async fn streaming_changes_only_for_models_whose_provider_has_the_option() {
    for (options, expected) in [(vec!["stream".to_owned()], Some(false)), (Vec::new(), None)] {
        let (stage, next) = (TestStage::new([]), Arc::<ScriptedProvider>::default());
        let refused = Error::new(ErrorKind::Provider, "no such model");
        stage.provider.add_answer([ScriptedProviderAction::Fail(refused)]);
        next.add_answer([ScriptedProviderAction::text("blue")]);
        let mut setup = setup_with_fallback(&next);
        for model in [&mut setup.model, &mut setup.fallbacks[0].model] {
            model.takes.options.clone_from(&options);
        }
        let mut session = stage.start(setup).unwrap();
        session.set_streaming(false);
        session.run_turn("what colour?", &Cancel::new()).await;
        for provider in [&stage.provider, &next] {
            assert_eq!(provider.requests()[0].options.stream, expected);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn permanent_model_failure_switches_to_the_fallback_with_a_notice() {
    let stage = TestStage::new([]);
    stage.provider.add_answer([ScriptedProviderAction::Fail(Error::new(
        ErrorKind::Provider,
        "no such model",
    ))]);
    let next = Arc::new(ScriptedProvider::default());
    next.add_answer([
        ScriptedProviderAction::text("here"),
        ScriptedProviderAction::Usage(Usage { prompt_tokens: 3, ..Usage::default() }),
    ]);
    next.add_answer([ScriptedProviderAction::text("again")]);
    let mut session = stage.start(setup_with_fallback(&next)).unwrap();
    let report = session.run_turn("go", &Cancel::new()).await;
    assert_eq!((report.outcome, report.text.as_str()), (Outcome::Done, "here"));
    assert_eq!(recorded_model_changes(&stage).len(), 1);
    let is_notice = |event: &Event| {
        matches!(event, Event::Notice { text, .. }
            if text == "`test/model` failed: no such model; trying `other/big` instead")
    };
    assert!(stage.events.envelopes().iter().any(|envelope| is_notice(&envelope.event)));
    assert_eq!(session.run_turn("more", &Cancel::new()).await.text, "again");
    assert_eq!(stage.provider.requests().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn fallback_is_not_used_after_partial_output_or_a_reached_limit() {
    let gone = || Error::new(ErrorKind::Provider, "gone");
    for beats in [
        vec![ScriptedProviderAction::text("It is"), ScriptedProviderAction::Fail(gone())],
        vec![ScriptedProviderAction::Fail(Error::new(ErrorKind::LimitReached, "too long"))],
    ] {
        let stage = TestStage::new([]);
        stage.provider.add_answer(beats);
        let next = Arc::<ScriptedProvider>::default();
        let mut session = stage.start(setup_with_fallback(&next)).unwrap();
        assert!(session.run_turn("go", &Cancel::new()).await.error.is_some());
        assert_eq!((next.requests().len(), recorded_model_changes(&stage).len()), (0, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn last_fallback_error_is_reported_if_all_models_fail() {
    let stage = TestStage::new([]);
    stage
        .provider
        .add_answer([ScriptedProviderAction::Fail(Error::new(ErrorKind::Provider, "first"))]);
    let next = Arc::new(ScriptedProvider::default());
    next.add_answer([ScriptedProviderAction::Fail(Error::new(ErrorKind::Provider, "second"))]);
    let mut session = stage.start(setup_with_fallback(&next)).unwrap();
    let report = session.run_turn("go", &Cancel::new()).await;
    assert_eq!(
        (report.outcome, report.error.unwrap().message.as_str()),
        (Outcome::Failed, "second")
    );
}

#[tokio::test(start_paused = true)]
async fn model_chosen_by_the_user_has_no_fallback() {
    let stage = TestStage::new([]);
    let fallback = Arc::<ScriptedProvider>::default();
    let mut session = stage.start(setup_with_fallback(&fallback)).unwrap();
    let chosen = Arc::new(ScriptedProvider::default());
    chosen.add_answer([ScriptedProviderAction::Fail(Error::new(ErrorKind::Provider, "gone"))]);
    let model = ModelSetup::new(ModelId::from("own/model"), 20_000);
    session.change_model(model, Arc::clone(&chosen) as _);
    let report = session.run_turn("go", &Cancel::new()).await;
    assert_eq!((report.outcome, fallback.requests().len()), (Outcome::Failed, 0));
}
