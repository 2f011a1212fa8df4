//! Tests histories larger than a frame: through the host to a provider in its process and in a
//! worker, and on to a server over a socket.

use std::sync::Arc;

use jaato_runtime::session_loop::{Cancel, EventSink};
use jaato_runtime::types::{EventEnvelope, Outcome};
use jaato_runtime::{Runtime, SessionOptions};

use crate::house;
use crate::support::House;
use crate::support::command::DEADLINE;
use crate::support::embedded::read_setup_with;
use crate::support::openai::ship_openai;
use crate::support::server::{Answer, Server};

/// Discards all events.
struct UnseenEventSink;

impl EventSink for UnseenEventSink {
    fn receive_event(&self, _envelope: EventEnvelope) {}
}

/// Sends two messages of this size to a server, and returns the sizes of the requests.
fn run_conversation(house: &House, server: &Server, prompt_bytes: usize) -> Vec<usize> {
    let variables = [("OPENAI_BASE_URL", server.base_url()), ("OPENAI_API_KEY", "sk-0".into())];
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    tokio.block_on(async {
        let runtime = Runtime::start(read_setup_with(house, &variables)).await;
        let options = SessionOptions::unattended(Arc::new(UnseenEventSink));
        let mut session = runtime.open_session(options).unwrap();
        for word in ["moon ", "star "] {
            let prompt = word.repeat(prompt_bytes / word.len());
            let cancel = Cancel::new();
            let report = tokio::time::timeout(DEADLINE, session.run_turn(prompt, &cancel)).await;
            let report = report.expect("the turn ends in time");
            assert_eq!((report.error, report.outcome), (None, Outcome::Done));
        }
        runtime.close_session(session.id()).await;
        assert!(runtime.close().await.processes.is_empty());
    });
    house.assert_no_processes();
    server.requests().iter().map(|asked| asked.body.len()).collect()
}

#[test]
fn a_history_of_50_mb_reaches_a_server_whole() {
    // In a worker, exceeding one frame is enough.
    let places = [(25_000_000, ""), (5_000_000, "[plugins]\nisolated = [\"*\"]\n")];
    for (prompt_bytes, isolated) in places {
        let house = house!(ship_openai);
        let window = "[models.\"openai/test\"]\ncontext_limit = 20000000\n";
        house.configure(&format!("model = \"openai/test\"\n{window}{isolated}"));
        let server = Server::start([Answer::text(&["one"]), Answer::text(&["two"])]);
        let [first, second] = run_conversation(&house, &server, prompt_bytes).try_into().unwrap();
        assert!(first > prompt_bytes && second > 2 * prompt_bytes, "{first} {second}");
        let asked = server.requests()[1].json();
        let messages = asked["messages"].as_array().unwrap();
        let said: Vec<_> = messages.iter().filter(|it| it["role"] == "user").collect();
        let begins =
            |at: usize, word: &str| said[at]["content"].as_str().unwrap().starts_with(word);
        assert!(said.len() == 2 && begins(0, "moon moon ") && begins(1, "star star "));
        assert_eq!(said[1]["content"].as_str().unwrap().len(), prompt_bytes);
    }
}
