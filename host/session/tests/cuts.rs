//! Tests which bytes stay the same between cuts, what a cut removes, and answers that a server
//! pauses.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use jaato_session::testing::{ScriptedGcAction, ScriptedProviderAction, ScriptedTool, TestStage};
use jaato_session::{Cancel, ModelCapabilities, Session, ToolState};
use jaato_types::{
    CompletionRequest, FinishReason, Message, ModelId, OpaqueData, Outcome, Part, TOOLS_CHANGED,
};
use serde_json::json;

async fn run_turn(session: &mut Session, prompt: &str) -> Outcome {
    session.run_turn(prompt, &Cancel::new()).await.outcome
}

fn signed_actions() -> [ScriptedProviderAction; 4] {
    [
        ScriptedProviderAction::Unseen(Part::thought("hm").with_signature("t")),
        ScriptedProviderAction::Unseen(Part::opaque(json!({ "id": "rs_1" }))),
        ScriptedProviderAction::Unseen(Part::text("yes").with_signature("s")),
        ScriptedProviderAction::Unseen(Part::text("").with_signature("end")),
    ]
}

fn offered_tool_names(request: &CompletionRequest) -> Vec<&str> {
    request.tools.iter().map(|spec| spec.name.as_str()).collect()
}

#[tokio::test(start_paused = true)]
async fn signed_parts_are_sent_back_only_to_their_own_model() {
    let stage = TestStage::new([]);
    let mut session = stage.start(TestStage::setup()).unwrap();
    stage.provider.add_answer(signed_actions());
    stage.provider.add_answer([ScriptedProviderAction::text("done")]);
    run_turn(&mut session, "one").await;
    run_turn(&mut session, "two").await;
    let requests = stage.provider.requests();
    let item = json!({ "id": "rs_1" });
    let (provider, model) = ("test".to_owned(), "model".to_owned());
    let expected = [
        Part::thought("hm").with_signature("t"),
        Part::Opaque(OpaqueData { provider, model, item }),
        Part::text("yes").with_signature("s"),
        Part::text("").with_signature("end"),
    ];
    assert_eq!(requests[1].messages[1].parts, expected);
    assert_eq!(requests[0].messages[..], requests[1].messages[..1]);

    // Another model continues, and gets only the text.
    let mut setup = TestStage::setup();
    setup.model.id = ModelId::from("other/model");
    setup.history = session.history().clone();
    let other = TestStage::new([]);
    let mut session = other.start(setup).unwrap();
    other.provider.add_answer([ScriptedProviderAction::text("as said")]);
    run_turn(&mut session, "three").await;
    let request = &other.provider.requests()[0];
    assert_eq!(request.messages[1], Message::model(vec![Part::text("yes")]));
    assert_eq!(request.messages.len(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_signature_of_a_megabyte_goes_back_whole() {
    let stage = TestStage::new([]);
    let mut session = stage.start(TestStage::setup()).unwrap();
    let signature = "s".repeat(1024 * 1024);
    let signed = Part::thought("hm").with_signature(signature.as_str());
    stage.provider.add_answer([
        ScriptedProviderAction::Unseen(signed.clone()),
        ScriptedProviderAction::text("yes"),
    ]);
    stage.provider.add_answer([ScriptedProviderAction::text("done")]);
    run_turn(&mut session, "one").await;
    assert_eq!(run_turn(&mut session, "two").await, Outcome::Done);
    assert_eq!(stage.provider.requests()[1].messages[1].parts[0], signed);
}

#[tokio::test(start_paused = true)]
async fn new_tool_causes_a_cut_unless_the_provider_can_add_tools() {
    let hidden = || ScriptedTool::echo("dig").with_state(ToolState::Inactive);
    let dig = || [ScriptedProviderAction::call("1", "dig", json!({}))];
    let play = |takes: ModelCapabilities| async move {
        let stage = TestStage::new([ScriptedTool::echo("look"), hidden()]);
        let mut setup = TestStage::setup();
        setup.model.takes = takes;
        let mut session = stage.start(setup).unwrap();
        stage.provider.add_answer(signed_actions());
        stage.provider.add_answer(dig());
        stage.provider.add_answer([ScriptedProviderAction::text("done")]);
        run_turn(&mut session, "one").await;
        run_turn(&mut session, "dig").await;
        stage.provider.requests()
    };
    let requests = play(ModelCapabilities::default()).await;
    assert_eq!(offered_tool_names(&requests[1]), ["look", "list_tools", "get_tool_schemas"]);
    assert_eq!(offered_tool_names(&requests[2]), ["look", "list_tools", "get_tool_schemas", "dig"]);
    assert_eq!(requests[1].messages[1].parts.len(), 4);
    assert_eq!(requests[2].messages[1].parts, [Part::text("yes")], "signed over other tools");

    let mut takes = ModelCapabilities::default();
    takes.options.push(TOOLS_CHANGED.to_owned());
    let requests = play(takes).await;
    assert_eq!(requests[2].tools, requests[1].tools);
    let (before, last) = requests[2].messages.split_at(requests[1].messages.len() + 1);
    assert_eq!(before[..before.len() - 1], requests[1].messages[..]);
    let Some(Part::ToolsChanged(change)) = last[0].parts.last() else { panic!("{last:?}") };
    let added: Vec<&str> = change.added.iter().map(|spec| spec.name.as_str()).collect();
    assert_eq!((added, change.removed.len()), (vec!["dig"], 0));
}

#[tokio::test(start_paused = true)]
async fn gc_causes_a_cut_and_sends_a_new_tool_list() {
    let stage = TestStage::new([ScriptedTool::echo("look"), ScriptedTool::echo("dig")]);
    stage.gc.add_gc([ScriptedGcAction::drop_messages([0, 1])]);
    let mut session = stage.start(TestStage::setup()).unwrap();
    stage.provider.add_answer([ScriptedProviderAction::text("first")]);
    stage.provider.add_answer(signed_actions());
    run_turn(&mut session, "one").await;
    run_turn(&mut session, "two").await;
    stage.tools.replace_tools([ScriptedTool::echo("look")], "less");
    stage.provider.add_answer([ScriptedProviderAction::text("third")]);
    run_turn(&mut session, "three").await;
    session.collect_for_user(&Cancel::new()).await.unwrap();
    stage.provider.add_answer([ScriptedProviderAction::text("fourth")]);
    run_turn(&mut session, "four").await;
    let requests = stage.provider.requests();
    assert_eq!(offered_tool_names(&requests[2]), ["look", "dig"], "what went stays listed");
    assert_eq!(requests[2].messages[3].parts.len(), 4);
    assert_eq!(offered_tool_names(&requests[3]), ["look"]);
    assert_eq!(requests[3].messages[1].parts, [Part::text("yes")]);
    let record = &session.history().entries()[3].message.parts;
    assert_eq!(record.len(), 4, "the record keeps all of it");
}

#[tokio::test(start_paused = true)]
async fn paused_response_continues_in_the_next_request_as_one_message() {
    let stage = TestStage::new([]);
    let mut session = stage.start(TestStage::setup()).unwrap();
    let beats = [
        ScriptedProviderAction::text("one "),
        ScriptedProviderAction::Finish(FinishReason::Paused),
    ];
    stage.provider.add_answer(beats);
    stage.provider.add_answer([ScriptedProviderAction::text("two")]);
    let report = session.run_turn("count", &Cancel::new()).await;
    assert_eq!((report.outcome, report.text.as_str()), (Outcome::Done, "one two"));
    let requests = stage.provider.requests();
    let paused = Message::model(vec![Part::text("one ")]);
    assert_eq!(requests[1].messages, [Message::user("count"), paused]);
    let whole = Message::model(vec![Part::text("one "), Part::text("two")]);
    assert_eq!(session.history().messages().last(), Some(&whole));

    // The next request fails, and the partial answer stays.
    stage.provider.add_answer([
        ScriptedProviderAction::text("three "),
        ScriptedProviderAction::Finish(FinishReason::Paused),
    ]);
    stage.provider.add_answer([ScriptedProviderAction::Fail(jaato_types::Error::failed("gone"))]);
    let report = session.run_turn("more", &Cancel::new()).await;
    assert_eq!(report.outcome, Outcome::Failed);
    assert!(report.text.starts_with("three \n\n[Generation"), "{:?}", report.text);
}

#[tokio::test(start_paused = true)]
async fn model_refusal_and_full_window_end_the_turn_with_specific_errors() {
    let ends = [
        (FinishReason::Refused, Outcome::Failed, "the model declined to answer"),
        (FinishReason::ContextExceeded, Outcome::Limit, "the context window was full before"),
    ];
    for (reason, outcome, says) in ends {
        let stage = TestStage::new([]);
        let mut session = stage.start(TestStage::setup()).unwrap();
        stage.provider.add_answer([
            ScriptedProviderAction::text("well"),
            ScriptedProviderAction::Finish(reason),
        ]);
        let report = session.run_turn("go", &Cancel::new()).await;
        assert_eq!(report.outcome, outcome);
        let error = report.error.unwrap();
        assert!(error.message.starts_with(says) && error.hint.is_some(), "{error}");
    }
}
