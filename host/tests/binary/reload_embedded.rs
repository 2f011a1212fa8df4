//! Tests plugins that are replaced while another program's sessions run.

use std::fs;
use std::sync::Arc;

use jaato_runtime::session_loop::{Cancel, EventSink, Session};
use jaato_runtime::types::{Error, ErrorKind, EventEnvelope};
use jaato_runtime::{Runtime, SessionOptions};
use serde_json::json;

use crate::house;
use crate::reload::{OTHER_TOOL, SECOND, create_edition, place_file};
use crate::support::embedded::read_setup;
use crate::support::fixture;

/// Ignores all events.
struct IgnoringEventSink;

impl EventSink for IgnoringEventSink {
    fn receive_event(&self, _envelope: EventEnvelope) {}
}

/// Calls `edition` in a session of this process. Returns the edition and the number of the call.
async fn edition_of_session(session: &Session) -> Result<(String, u64), Error> {
    let output = session.run_user_call(&"edition".into(), json!({}), &Cancel::new()).await?;
    let (edition, number) = (&output.content["edition"], &output.content["call"]);
    Ok((edition.as_str().unwrap().to_owned(), number.as_u64().unwrap()))
}

#[test]
fn sessions_of_an_embedder_switch_to_a_new_edition_independently() {
    let house = house!();
    let file = house.ship(&fixture("editions"));
    let two = create_edition(&house, "two.so", &[SECOND]);
    let other = create_edition(&house, "other.so", &[OTHER_TOOL]);
    house.configure("");
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    tokio.block_on(async {
        let runtime = Runtime::start(read_setup(&house)).await;
        assert!(runtime.reload_plugins(None).await.is_err(), "plugins are not watched");
        let start = || {
            runtime
                .open_session_for_calls(SessionOptions::unattended(Arc::new(IgnoringEventSink)))
                .unwrap()
        };
        let first = start();
        runtime.watch_plugins().await;
        let saw = |edition: &str, number| Ok((edition.to_owned(), number));
        assert_eq!(edition_of_session(&first).await, saw("ONE", 1));
        place_file(&two, &file);
        let mut second = start();
        assert_eq!(edition_of_session(&second).await, saw("TWO", 1));
        assert_eq!(edition_of_session(&first).await, saw("TWO", 2));
        // Other tools: both sessions keep their edition until they report that they are between
        // turns.
        place_file(&other, &file);
        assert_eq!(edition_of_session(&first).await, saw("TWO", 3));
        second.renew_tools(&Cancel::new()).await;
        assert_eq!(edition_of_session(&second).await, saw("ONE", 2));
        fs::remove_file(&file).unwrap();
        assert_eq!(edition_of_session(&first).await, saw("TWO", 4));
        second.renew_tools(&Cancel::new()).await;
        assert_eq!(edition_of_session(&second).await, saw("ONE", 3));
        let third = start();
        assert_eq!(edition_of_session(&third).await.unwrap_err().kind, ErrorKind::UnknownTool);
        for session in [&first, &second, &third] {
            runtime.close_session(session.id()).await;
        }
        runtime.close().await;
    });
    house.assert_no_processes();
}

#[test]
fn number_of_editions_loaded_inside_the_host_is_limited() {
    let house = house!();
    let file = house.ship(&fixture("editions"));
    let mut bytes = fs::read(&file).unwrap();
    house.configure("");
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    tokio.block_on(async {
        let runtime = Runtime::start(read_setup(&house)).await;
        runtime.watch_plugins().await;
        let options = SessionOptions::unattended(Arc::new(IgnoringEventSink));
        let session = runtime.open_session_for_calls(options).unwrap();
        let mut inside = 0;
        for number in 1..=18 {
            let output =
                session.run_user_call(&"edition".into(), json!({}), &Cancel::new()).await.unwrap();
            assert_eq!(output.content["call"], number, "the saved state is restored");
            inside += usize::from(output.content["pid"] == std::process::id());
            bytes.push(0);
            fs::write(&file, &bytes).unwrap();
        }
        assert_eq!(inside, 16);
        runtime.close_session(session.id()).await;
        runtime.close().await;
    });
    house.assert_no_processes();
}
