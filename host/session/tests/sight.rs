//! What the model looks at: asked before the first image, and not again.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use jaato_session::testing::{Beat, Stage};
use jaato_session::{Cancel, ModelTakes, Prompt, Session, SessionSetup, WINDOW_WAIT_MS};
use jaato_types::{Data, Outcome, Part, Request};

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
