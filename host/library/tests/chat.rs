//! Turns: streamed, reported, stopped, dropped, many at the same time.

use std::sync::Arc;

use jaato_library::testing::{ScriptedProvider, ScriptedProviderAction as Say};
use jaato_library::types::{Event, Outcome, Role};
use jaato_library::{Jaato, Tool, blocking};
use serde_json::json;

use crate::support::{call_add, collect_events, host_builder, scripted_model, text_answer};

async fn check_chat() {
    let model = scripted_model([call_add("1"), text_answer("It is 42."), text_answer("Bye.")]);
    let jaato = host_builder(&model).start().await.unwrap();
    let session = jaato.session().allow("add").open().unwrap();
    let mut turn = session.send("What is 2 + 40?");
    let events = collect_events(&mut turn).await;
    let texts: String = events
        .iter()
        .filter_map(|event| match event {
            Event::TextDelta { text, .. } | Event::ToolOutput { text, .. } => Some(text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(texts, "adding\nIt is 42.");
    let results: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            Event::ToolCallFinished { result, is_error, .. } => Some((result.clone(), *is_error)),
            _ => None,
        })
        .collect();
    assert_eq!(results, [(json!({ "sum": 42.0 }).as_object().unwrap().clone(), false)]);
    assert_eq!(turn.await.unwrap().text, "It is 42.");
    assert_eq!(session.send("Thanks.").await.unwrap().text, "Bye.");
    let roles: Vec<_> = session.history().iter().map(|entry| entry.message.role).collect();
    use Role::{Model, Tool, User};
    assert_eq!(roles, [User, Model, Tool, Model, User, Model]);
    session.close().await;
    jaato.close().await;
}

#[tokio::test(flavor = "current_thread")]
async fn turn_streams_events_and_ends_with_its_report_on_one_thread() {
    check_chat().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn turn_streams_events_and_ends_with_its_report_on_many_threads() {
    check_chat().await;
}

#[tokio::test]
async fn turn_that_fails_ends_with_the_error() {
    let model = scripted_model([]);
    let jaato = host_builder(&model).start().await.unwrap();
    let session = jaato.session().open().unwrap();
    let error = session.send("Hello.").await.unwrap_err();
    assert!(error.message.contains("the script has no answer"), "{error}");
}

#[tokio::test]
async fn turn_with_many_buffered_events_yields_all_of_them() {
    // More than tokio lets one task take at once.
    let deltas = vec![Say::text("x"); 300];
    let jaato = host_builder(&scripted_model([deltas.clone(), deltas])).start().await.unwrap();
    let session = jaato.session().open().unwrap();
    let events = collect_events(&mut session.send("Tell me a story.")).await;
    let pieces = events.iter().filter(|event| matches!(event, Event::TextDelta { .. })).count();
    assert_eq!(pieces, 300);
    assert!(matches!(events.last(), Some(Event::TurnFinished { .. })), "{:?}", events.last());
    assert_eq!(session.send("Again.").await.unwrap().text.len(), 300);
}

#[tokio::test(start_paused = true)]
async fn turn_that_no_one_polls_delays_neither_the_end_nor_a_call() {
    let jaato =
        host_builder(&scripted_model([vec![Say::text("Once "), Say::Hang]])).start().await.unwrap();
    let session = jaato.session().open().unwrap();
    let mut turn = session.send("Tell me a story.");
    while !matches!(turn.next().await.unwrap(), Event::TextDelta { .. }) {}
    let sum = session.call("add", json!({ "a": 1, "b": 2 })).await.unwrap();
    assert_eq!(sum["sum"], 3.0);
    session.close().await;
    assert_eq!(turn.await.unwrap().outcome, Outcome::Cancelled);
}

#[tokio::test]
async fn function_of_a_tool_calls_its_own_session() {
    let shared = Arc::<std::sync::OnceLock<jaato_library::Session>>::default();
    let own = Arc::clone(&shared);
    let twice = Tool::new("twice", "Adds twice.", json!({ "type": "object" }), move |_, _| {
        let own = Arc::clone(&own);
        async move { own.get().unwrap().call("add", json!({ "a": 2, "b": 2 })).await }
    });
    let model = scripted_model([vec![Say::call("1", "twice", json!({}))], text_answer("Four.")]);
    let jaato = host_builder(&model).tool(twice.allowed()).start().await.unwrap();
    assert!(shared.set(jaato.session().open().unwrap()).is_ok());
    let session = shared.get().unwrap();
    assert_eq!(session.send("What is 2 + 2?").await.unwrap().text, "Four.");
    let said = serde_json::to_string(&session.history()).unwrap();
    assert!(said.contains("4.0"), "{said}");
}

#[tokio::test]
async fn dropped_turn_is_cancelled_and_the_next_one_works() {
    let model = scripted_model([vec![Say::text("Once "), Say::Hang], text_answer("Hello again.")]);
    let jaato = host_builder(&model).start().await.unwrap();
    let session = jaato.session().open().unwrap();
    let handle = session.handle();
    let mut turn = session.send("Tell me a story.");
    let cancel = turn.cancel();
    while !matches!(turn.next().await.unwrap(), Event::TextDelta { .. }) {}
    assert!(handle.is_processing() && !cancel.is_cancelled());
    drop(turn);
    assert!(!handle.is_processing() && cancel.is_cancelled());
    assert_eq!(session.send("Hello?").await.unwrap().text, "Hello again.");
}

#[tokio::test]
async fn handle_stops_a_turn_from_another_thread() {
    let model = scripted_model([vec![Say::text("Once "), Say::Hang]]);
    let jaato = host_builder(&model).start().await.unwrap();
    let session = jaato.session().open().unwrap();
    let mut turn = session.send("Tell me a story.");
    while !matches!(turn.next().await.unwrap(), Event::TextDelta { .. }) {}
    let handle = session.handle();
    std::thread::spawn(move || {
        assert!(handle.is_processing());
        handle.stop();
    })
    .join()
    .unwrap();
    let report = turn.await.unwrap();
    assert_eq!(report.outcome, Outcome::Cancelled);
    assert_eq!(report.text, "Once \n\n[Generation cancelled]");
    assert!(!session.handle().is_processing());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_sessions_run_at_once() {
    let jaato = Jaato::builder().provider("my", NumberedProvider).start().await.unwrap();
    let tasks: Vec<_> = (0..50)
        .map(|number| {
            let session = jaato.session().open().unwrap();
            tokio::spawn(async move { (number, session.send(number.to_string()).await.unwrap()) })
        })
        .collect();
    for task in tasks {
        let (number, report) = task.await.unwrap();
        assert_eq!(report.text, number.to_string());
    }
}

/// Repeats the prompt.
struct NumberedProvider;

impl jaato_library::ports::Provider for NumberedProvider {
    fn source(&self) -> &str {
        "numbered"
    }

    fn complete<'a>(
        &'a self,
        request: &'a jaato_library::types::CompletionRequest,
        sink: jaato_library::ports::DeltaSink,
        _cancel: jaato_library::ports::Cancel,
    ) -> futures_util::future::BoxFuture<'a, jaato_library::Result<jaato_library::types::Completion>>
    {
        use jaato_library::types::{Completion, Delta, FinishReason, Part, Usage};
        let text = request.messages.last().unwrap().text();
        Box::pin(async move {
            tokio::task::yield_now().await;
            sink.emit_delta(Delta::text(text.clone()));
            Ok(Completion::new(vec![Part::text(text)], FinishReason::Stop, Usage::default()))
        })
    }
}

#[test]
fn program_without_tokio_waits_for_turns() {
    let model = scripted_model([call_add("1"), text_answer("It is 42.")]);
    let jaato = blocking::BlockingJaato::start(host_builder(&model)).unwrap();
    let session = jaato.open(jaato.session().allow_all()).unwrap();
    let mut turn = session.send("What is 2 + 40?");
    let texts = turn.by_ref().filter(|event| matches!(event, Event::TextDelta { .. })).count();
    assert_eq!((texts, turn.wait().unwrap().text.as_str()), (1, "It is 42."));
    assert_eq!(session.history().len(), 4);
    let sum = jaato.call("add", json!({ "a": 1, "b": 2 })).unwrap();
    assert_eq!(sum["sum"], 3.0);
    session.close();
    let ended = jaato.close();
    assert!(ended.processes.is_empty() && ended.resources.is_empty());
}

#[test]
fn thread_stops_a_turn_for_which_another_one_waits() {
    let model = scripted_model([vec![Say::text("Once "), Say::Hang]]);
    let jaato = blocking::BlockingJaato::start(host_builder(&model)).unwrap();
    let session = jaato.open(jaato.session()).unwrap();
    let handle = session.handle();
    let mut turn = session.send("Tell me a story.");
    while !matches!(turn.next().unwrap(), Event::TextDelta { .. }) {}
    let stopper = std::thread::spawn(move || handle.stop());
    assert_eq!(turn.wait().unwrap().outcome, Outcome::Cancelled);
    stopper.join().unwrap();
}

#[tokio::test]
async fn blocking_library_inside_tokio_is_an_error_and_no_panic() {
    let model = Arc::new(ScriptedProvider::default());
    let error = blocking::BlockingJaato::start(host_builder(&model)).err().unwrap();
    assert!(error.message.contains("called from a tokio task"), "{error}");
}
