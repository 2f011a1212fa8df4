//! What the model looks at: asked before the first image, and not again.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use jaato_session::testing::{Beat, Stage, Tool};
use jaato_session::{Cancel, ModelTakes, Prompt, Session, SessionSetup, ToolState, WINDOW_WAIT_MS};
use jaato_types::{Condition, Data, Outcome, Part, Request, SeenKind};
use serde_json::json;

/// A provider of which its description says that its models look at images.
fn setup() -> SessionSetup {
    let media_types = vec!["image/*".to_owned()];
    let mut setup = Stage::setup();
    setup.model.takes = ModelTakes { media_types, ..ModelTakes::default() };
    setup
}

async fn show(stage: &Stage, session: &mut Session, prompt: &str) -> Request {
    stage.provider.then([Beat::text("well")]);
    let image = Data { name: Some("moon.png".to_owned()), ..Data::blob("image/png", "00") };
    let report = session.turn(Prompt::from(prompt).with(image), &Cancel::new()).await;
    assert_eq!(report.outcome, Outcome::Done);
    stage.provider.requests().last().unwrap().clone()
}

fn images(request: &Request) -> usize {
    let parts = request.messages.iter().flat_map(|message| &message.parts);
    parts.filter(|part| matches!(part, Part::Data(_))).count()
}

#[tokio::test(start_paused = true)]
async fn a_model_that_looks_at_nothing_is_told_in_words_and_the_person_a_line() {
    let stage = Stage::new([]);
    stage.provider.tells_sight(&[]);
    let mut session = stage.start(setup()).unwrap();
    let request = show(&stage, &mut session, "what is it?").await;
    assert_eq!((images(&request), stage.provider.window_asked()), (0, 1));
    let words = "[moon.png, image/png: this model cannot look at it]";
    assert_eq!(request.messages[0].parts[0], Part::text(words));
    let notices = stage.events.notices();
    assert!(notices.contains("`test/model` cannot look at moon.png (image/png)"), "{notices}");
    // It is asked once.
    assert_eq!(images(&show(&stage, &mut session, "and this?").await), 0);
    assert_eq!(stage.provider.window_asked(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_conversation_without_images_asks_for_nothing() {
    let stage = Stage::new([]);
    stage.provider.tells_sight(&[]);
    stage.provider.then([Beat::text("well")]);
    let mut session = stage.start(setup()).unwrap();
    let prompt = Prompt::from("hello").with_text("a.txt", "a");
    session.turn(prompt, &Cancel::new()).await;
    assert_eq!(stage.provider.window_asked(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_comes_after_an_image_was_sent_changes_nothing() {
    let stage = Stage::new([]);
    stage.provider.tells_sight(&[]);
    stage.provider.tells_window(4_096, WINDOW_WAIT_MS + 1);
    let mut session = stage.start(setup()).unwrap();
    let first = show(&stage, &mut session, "what is it?").await;
    assert_eq!(images(&first), 1);
    tokio::time::sleep(std::time::Duration::from_millis(WINDOW_WAIT_MS)).await;
    let second = show(&stage, &mut session, "and this?").await;
    assert_eq!(images(&second), 2);
    assert_eq!(first.messages[..], second.messages[..1]);
}

fn view() -> Tool {
    Tool::echo("view")
        .available_if(Condition::model_sees(SeenKind::Images), "where images are seen")
}

async fn names(stage: &Stage, session: &mut Session) -> Vec<String> {
    stage.provider.then([Beat::text("well")]);
    session.turn("go on", &Cancel::new()).await;
    let request = stage.provider.requests().last().unwrap().clone();
    request.tools.iter().map(|tool| tool.name.to_string()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_shows_images_is_offered_where_the_model_looks_at_them() {
    let stage = Stage::new([Tool::echo("a"), view(), Tool::echo("z")]);
    let mut session = stage.start(setup()).unwrap();
    assert_eq!(names(&stage, &mut session).await, ["a", "view", "z"], "in its own place");
    assert_eq!(stage.events.notices(), "");
    // A model that looks at text alone, by what its provider says of all its models.
    let stage = Stage::new([Tool::echo("a"), view()]);
    let mut session = stage.start(Stage::setup()).unwrap();
    assert_eq!(names(&stage, &mut session).await, ["a"]);
    stage.provider.then([Beat::call("1", "view", json!({}))]);
    let request = names(&stage, &mut session).await;
    assert_eq!(request, ["a"]);
    let refused = format!("{:?}", stage.provider.requests().last().unwrap().messages);
    assert!(refused.contains("not available: where images are seen"), "{refused}");
    // Documents are no images.
    let mut setup = Stage::setup();
    setup.model.takes.media_types = vec!["application/pdf".to_owned()];
    let mut session = stage.start(setup).unwrap();
    assert_eq!(names(&stage, &mut session).await, ["a"]);
}

#[tokio::test(start_paused = true)]
async fn what_the_model_itself_looks_at_decides_once_such_a_tool_is_wanted() {
    let stage = Stage::new([view()]);
    stage.provider.tells_sight(&[]);
    let mut session = stage.start(setup()).unwrap();
    assert_eq!(names(&stage, &mut session).await, [""; 0]);
    assert_eq!(stage.provider.window_asked(), 1);
    // Nobody is asked for a tool that no request has.
    let stage = Stage::new([view().state(ToolState::Inactive)]);
    stage.provider.tells_sight(&[]);
    let mut session = stage.start(setup()).unwrap();
    assert!(!names(&stage, &mut session).await.contains(&"view".to_owned()));
    assert_eq!(stage.provider.window_asked(), 0);
}
