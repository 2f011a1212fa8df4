//! Shared helpers of the gc tests: turns with prepared token counts, and short summaries of the
//! results.

use jaato_session::testing::{ScriptedProviderAction, TestStage};
use jaato_session::{Cancel, GcSettings, Session, SessionSetup, TurnReport};
use jaato_types::{CompletionRequest, Error, ErrorKind, Event, Message, Outcome, Usage};

/// Creates a provider's token count.
pub fn usage_action(prompt_tokens: u64) -> ScriptedProviderAction {
    ScriptedProviderAction::Usage(Usage { prompt_tokens, output_tokens: 10, ..Usage::default() })
}

pub fn overflow_action() -> ScriptedProviderAction {
    ScriptedProviderAction::Fail(Error::new(ErrorKind::ContextOverflow, "prompt is too long"))
}

pub fn gc_setup(settings: GcSettings) -> SessionSetup {
    SessionSetup { gc: settings, ..TestStage::setup() }
}

/// Starts a session and runs this many turns, each answered with `so`.
pub async fn session_after_turns(stage: &TestStage, setup: SessionSetup, turns: usize) -> Session {
    let mut session = stage.start(setup).unwrap();
    for turn in 0..turns {
        stage.provider.add_answer([ScriptedProviderAction::text("so"), usage_action(100)]);
        let report = session.run_turn(format!("prompt {turn}"), &Cancel::new()).await;
        assert_eq!(report.outcome, Outcome::Done);
    }
    session
}

pub async fn run_turn(session: &mut Session, prompt: &str) -> TurnReport {
    session.run_turn(prompt, &Cancel::new()).await
}

/// Lists the gc events: reason, source, removed, cut, note or error.
pub fn recorded_collections(stage: &TestStage) -> Vec<String> {
    let lines = stage.events.events().into_iter().filter_map(|event| match event {
        Event::Gc { reason, source, messages_removed, turns_removed, messages_cut, note, error, .. } => {
            let end = error.map(|error| error.message).or(note).unwrap_or_default();
            Some(format!(
                "{reason:?} {source}: {messages_removed}/{turns_removed} removed, {messages_cut} cut. {end}"
            ))
        }
        _ => None,
    });
    lines.collect()
}

/// The note that replaces removed turns, for the model.
pub const REMOVED: &str = "[Earlier turns of this conversation were removed here to save room. \
                           If you need them, ask the user or use tools again.]\n\n";

/// Returns the texts of a request, without the note about removed turns.
pub fn request_texts(request: &CompletionRequest) -> Vec<String> {
    let text = |message: &Message| message.text().replace(REMOVED, "");
    request.messages.iter().map(text).collect()
}

pub fn last_request(stage: &TestStage) -> CompletionRequest {
    stage.provider.requests().pop().unwrap()
}
