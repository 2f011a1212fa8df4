//! The media types that the model accepts: asked for before the first image, and not again.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use jaato_session::testing::{ScriptedProviderAction, ScriptedTool, TestStage};
use jaato_session::{
    Cancel, Media, MediaFacts, ModelCapabilities, Session, SessionSetup, ToolState, UserPrompt,
    WINDOW_WAIT_MS,
};
use jaato_types::{
    CompletionRequest, Condition, DataPart, Error, ErrorKind, MediaLimit, Outcome, Part,
    VisibleMedia,
};
use serde_json::json;

/// Creates the setup of a provider whose description says that its models accept images.
fn media_setup() -> SessionSetup {
    let media_types = vec!["image/*".to_owned()];
    let mut setup = TestStage::setup();
    setup.model.takes = ModelCapabilities { media_types, ..ModelCapabilities::default() };
    setup
}

async fn show_image(stage: &TestStage, session: &mut Session, prompt: &str) -> CompletionRequest {
    stage.provider.add_answer([ScriptedProviderAction::text("well")]);
    let image = DataPart { name: Some("moon.png".to_owned()), ..DataPart::blob("image/png", "00") };
    let report = session.run_turn(UserPrompt::from(prompt).with_file(image), &Cancel::new()).await;
    assert_eq!(report.outcome, Outcome::Done);
    stage.provider.requests().last().unwrap().clone()
}

/// A test's facts about blobs.
struct KnownMedia(BTreeMap<&'static str, MediaFacts>);

impl Media for KnownMedia {
    fn media_facts<'a>(&'a self, blob: &'a str) -> BoxFuture<'a, Option<MediaFacts>> {
        Box::pin(std::future::ready(self.0.get(blob).cloned()))
    }
}

/// Creates a stage with an image `00` of this many pixels a side.
fn stage_with_image(side: u32) -> TestStage {
    let facts = MediaFacts { bytes: 10, sides: Some((side, 1)), damage: None };
    let media = Arc::new(KnownMedia(BTreeMap::from([("00", facts)])));
    TestStage { media, ..TestStage::new([]) }
}

/// A vendor's answer to a request with an image that it does not accept.
fn refusal_action(words: &str) -> ScriptedProviderAction {
    let text = format!("`http://h` answered 400 (bad request): {words}");
    ScriptedProviderAction::Fail(Error::new(ErrorKind::Provider, text))
}

fn text_at(request: &CompletionRequest, at: usize) -> String {
    request.messages[at].text()
}

#[tokio::test(start_paused = true)]
async fn too_large_image_is_not_sent_and_is_reported_once() {
    let stage = stage_with_image(9_001);
    let mut setup = media_setup();
    setup.model.takes.media_limits =
        vec![MediaLimit { mime_type: "image/*".into(), side_max: 8_000, ..MediaLimit::default() }];
    let mut session = stage.start(setup).unwrap();
    for prompt in ["what is it?", "and now?"] {
        let request = show_image(&stage, &mut session, prompt).await;
        assert_eq!(count_images(&request), 0);
        let told = "[moon.png, image/png: it was left out: it has 9001 x 1 pixels, and the model \
                    takes at most 8000 a side]";
        assert!(text_at(&request, 0).starts_with(told), "{request:?}");
    }
    let notices = stage.events.notices();
    assert_eq!(notices.matches("moon.png (image/png) is not sent").count(), 1, "{notices}");
}

#[tokio::test(start_paused = true)]
async fn an_image_that_the_provider_refuses_is_taken_out_for_good() {
    for said in ["messages.0.content.1.image: Could not process image", "invalid argument"] {
        let stage = stage_with_image(9_001);
        let mut session = stage.start(media_setup()).unwrap();
        stage.provider.add_answer([refusal_action(said)]);
        let request = show_image(&stage, &mut session, "what is it?").await;
        assert_eq!((count_images(&request), stage.provider.requests().len()), (0, 2), "{said}");
        assert_eq!(count_images(&stage.provider.requests()[0]), 1);
        let told = "[moon.png, image/png: it was left out: the provider refused it]";
        assert!(text_at(&request, 0).starts_with(told), "{request:?}");
        assert!(
            stage
                .events
                .notices()
                .contains("refused the request: trying again without moon.png (image/png)")
        );
        // The conversation continues, and the sent messages stay the same.
        stage.provider.add_answer([ScriptedProviderAction::text("well")]);
        session.run_turn("continue", &Cancel::new()).await;
        let next = stage.provider.requests().last().unwrap().clone();
        assert_eq!(next.messages[..1], request.messages[..]);
        // The user may try it again.
        let again = show_image(&stage, &mut session, "again").await;
        assert_eq!(count_images(&again), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn server_error_that_names_the_image_is_retried_once() {
    let stage = stage_with_image(1);
    let mut session = stage.start(media_setup()).unwrap();
    let text = "`http://h` answered 500 (internal server error): image input is not supported";
    let error = Error::new(ErrorKind::Provider, text).temporary();
    let fails = || ScriptedProviderAction::Fail(error.clone());
    stage.provider.add_answer([fails()]).add_answer([fails()]);
    let request = show_image(&stage, &mut session, "what is it?").await;
    let sent: Vec<usize> = stage.provider.requests().iter().map(count_images).collect();
    assert_eq!((count_images(&request), sent), (0, vec![1, 1, 0]));
}

#[tokio::test(start_paused = true)]
async fn image_is_kept_if_the_request_fails_without_it_too() {
    let stage = stage_with_image(1);
    let mut session = stage.start(media_setup()).unwrap();
    stage
        .provider
        .add_answer([refusal_action("no such model")])
        .add_answer([refusal_action("no such model")]);
    let image = DataPart { name: Some("moon.png".to_owned()), ..DataPart::blob("image/png", "00") };
    let report =
        session.run_turn(UserPrompt::from("what is it?").with_file(image), &Cancel::new()).await;
    assert!(report.error.unwrap().message.ends_with("no such model"));
    stage.provider.add_answer([ScriptedProviderAction::text("well")]);
    assert_eq!(session.repeat_last_turn(&Cancel::new()).await.outcome, Outcome::Done);
    let images = stage.provider.requests().iter().map(count_images).collect::<Vec<_>>();
    assert_eq!(images, [1, 0, 1]);
}

fn count_images(request: &CompletionRequest) -> usize {
    let parts = request.messages.iter().flat_map(|message| &message.parts);
    parts.filter(|part| matches!(part, Part::Data(_))).count()
}

#[tokio::test(start_paused = true)]
async fn text_only_model_gets_text_instead_of_an_image_with_a_notice() {
    let stage = TestStage::new([]);
    stage.provider.set_accepted_media(&[]);
    let mut session = stage.start(media_setup()).unwrap();
    let request = show_image(&stage, &mut session, "what is it?").await;
    assert_eq!((count_images(&request), stage.provider.window_query_count()), (0, 1));
    let words = "[moon.png, image/png: this model cannot look at it]";
    assert_eq!(request.messages[0].parts[0], Part::text(words));
    let notices = stage.events.notices();
    assert!(notices.contains("`test/model` cannot look at moon.png (image/png)"), "{notices}");
    // The provider is asked once.
    assert_eq!(count_images(&show_image(&stage, &mut session, "and this?").await), 0);
    assert_eq!(stage.provider.window_query_count(), 1);
}

#[tokio::test(start_paused = true)]
async fn image_support_is_not_queried_in_a_conversation_without_images() {
    let stage = TestStage::new([]);
    stage.provider.set_accepted_media(&[]);
    stage.provider.add_answer([ScriptedProviderAction::text("well")]);
    let mut session = stage.start(media_setup()).unwrap();
    let prompt = UserPrompt::from("hello").with_text("a.txt", "a");
    session.run_turn(prompt, &Cancel::new()).await;
    assert_eq!(stage.provider.window_query_count(), 0);
}

#[tokio::test(start_paused = true)]
async fn late_image_support_answer_does_not_change_sent_messages() {
    let stage = TestStage::new([]);
    stage.provider.set_accepted_media(&[]);
    stage.provider.set_window(4_096, WINDOW_WAIT_MS + 1);
    let mut session = stage.start(media_setup()).unwrap();
    let first = show_image(&stage, &mut session, "what is it?").await;
    assert_eq!(count_images(&first), 1);
    tokio::time::sleep(std::time::Duration::from_millis(WINDOW_WAIT_MS)).await;
    let second = show_image(&stage, &mut session, "and this?").await;
    assert_eq!(count_images(&second), 2);
    assert_eq!(first.messages[..], second.messages[..1]);
}

fn view_tool() -> ScriptedTool {
    ScriptedTool::echo("view")
        .available_if(Condition::model_sees(VisibleMedia::Images), "where images are seen")
}

async fn offered_tool_names(stage: &TestStage, session: &mut Session) -> Vec<String> {
    stage.provider.add_answer([ScriptedProviderAction::text("well")]);
    session.run_turn("continue", &Cancel::new()).await;
    let request = stage.provider.requests().last().unwrap().clone();
    request.tools.iter().map(|tool| tool.name.to_string()).collect()
}

#[tokio::test(start_paused = true)]
async fn image_viewing_tool_is_offered_only_to_models_that_accept_images() {
    let stage = TestStage::new([ScriptedTool::echo("a"), view_tool(), ScriptedTool::echo("z")]);
    let mut session = stage.start(media_setup()).unwrap();
    assert_eq!(
        offered_tool_names(&stage, &mut session).await,
        ["a", "view", "z"],
        "in its own place"
    );
    assert_eq!(stage.events.notices(), "");
    // A model that accepts only text, according to its provider's description of all models.
    let stage = TestStage::new([ScriptedTool::echo("a"), view_tool()]);
    let mut session = stage.start(TestStage::setup()).unwrap();
    assert_eq!(offered_tool_names(&stage, &mut session).await, ["a"]);
    stage.provider.add_answer([ScriptedProviderAction::call("1", "view", json!({}))]);
    let request = offered_tool_names(&stage, &mut session).await;
    assert_eq!(request, ["a"]);
    let refused = format!("{:?}", stage.provider.requests().last().unwrap().messages);
    assert!(refused.contains("not available: where images are seen"), "{refused}");
    // Documents are not images.
    let mut setup = TestStage::setup();
    setup.model.takes.media_types = vec!["application/pdf".to_owned()];
    let mut session = stage.start(setup).unwrap();
    assert_eq!(offered_tool_names(&stage, &mut session).await, ["a"]);
}

#[tokio::test(start_paused = true)]
async fn image_support_is_queried_only_if_an_image_tool_is_active() {
    let stage = TestStage::new([view_tool()]);
    stage.provider.set_accepted_media(&[]);
    let mut session = stage.start(media_setup()).unwrap();
    assert_eq!(offered_tool_names(&stage, &mut session).await, [""; 0]);
    assert_eq!(stage.provider.window_query_count(), 1);
    // The provider is not asked for a tool that no request has.
    let stage = TestStage::new([view_tool().with_state(ToolState::Inactive)]);
    stage.provider.set_accepted_media(&[]);
    let mut session = stage.start(media_setup()).unwrap();
    assert!(!offered_tool_names(&stage, &mut session).await.contains(&"view".to_owned()));
    assert_eq!(stage.provider.window_query_count(), 0);
}
