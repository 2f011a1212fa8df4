//! A connection as lines: a transport of `rmcp` over two channels of bytes.
//!
//! What is no message is passed over with a line in the log. While the server is asked which era it
//! speaks, an answer that does not come is given here, in its place: `rmcp` then goes on with
//! `initialize` on the same connection.

use std::collections::VecDeque;
use std::future::Future;
use std::time::Duration;

use jaato_plugin_sdk::serde_json::{self, Value};
use rmcp::RoleClient;
use rmcp::model::{ClientRequest, ErrorCode, ErrorData, JsonRpcMessage, RequestId};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::lines::{Line, Lines};
use crate::log::ServerLog;

/// Pieces of what a server says that wait to be read, each 64 KiB at most: then its pipe fills, and
/// it waits.
pub const HEARD_PIECES_MAX: usize = 16;
/// Messages for a server that wait to be written.
pub const SAID_MESSAGES_MAX: usize = 64;
/// Lines of this size and more are read on another thread.
const LARGE_BYTES: usize = 256 * 1024;
/// Messages in one line: batches of the revision 2025-03-26.
const BATCH_MAX: usize = 1000;
/// Lines that are no messages of which the log shows the beginning; further ones are counted.
const NOISE_LINES_SHOWN: u64 = 20;
/// Characters of such a line that are shown.
const NOISE_CHARS_MAX: usize = 120;

type Incoming = RxJsonRpcMessage<RoleClient>;
type Outgoing = TxJsonRpcMessage<RoleClient>;
type Read = Result<Vec<Incoming>, String>;

/// The two ends of a connection.
pub struct Wire {
    /// What the server says, in pieces of any size. It ends with the server.
    pub heard: mpsc::Receiver<Vec<u8>>,
    /// What it is told, a line each. It ends when the connection is closed.
    pub said: mpsc::Sender<Vec<u8>>,
}

/// A transport of lines.
pub struct LineTransport {
    heard: mpsc::Receiver<Vec<u8>>,
    /// Nothing after the close.
    said: Option<mpsc::Sender<Vec<u8>>>,
    lines: Lines,
    /// A large line that is being read.
    reading: Option<JoinHandle<Read>>,
    /// Messages of a line that held several.
    batch: VecDeque<Incoming>,
    probe: Probe,
    probe_time: Duration,
    noise: u64,
    log: ServerLog,
}

/// Whether the server has been asked for its era.
enum Probe {
    Unasked,
    Waiting {
        id: RequestId,
        until: Instant,
    },
    /// Nothing came in time; what comes later is passed over.
    GivenUp {
        id: RequestId,
    },
    Answered,
}

/// The connection is over.
#[derive(Debug)]
pub struct Closed;

impl std::fmt::Display for Closed {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("the server has closed the connection")
    }
}

impl std::error::Error for Closed {}

impl LineTransport {
    /// Makes a transport. A server is given so much time to say which era it speaks.
    pub fn new(wire: Wire, probe_time: Duration, log: ServerLog) -> Self {
        Self {
            heard: wire.heard,
            said: Some(wire.said),
            lines: Lines::default(),
            reading: None,
            batch: VecDeque::new(),
            probe: Probe::Unasked,
            probe_time,
            noise: 0,
            log,
        }
    }

    /// Waits for the next message. Dropping the wait loses nothing: what was taken is in a field
    /// before each `await`.
    async fn next_message(&mut self) -> Option<Incoming> {
        loop {
            if let Some(message) = self.batch.pop_front() {
                return Some(message);
            }
            if let Some(reading) = &mut self.reading {
                let read = reading.await.unwrap_or_else(|_| Err("a message was lost".to_owned()));
                self.reading = None;
                self.take(read);
                continue;
            }
            match self.lines.next_line() {
                Some(Line::Whole(line)) if line.iter().all(u8::is_ascii_whitespace) => {}
                Some(Line::Whole(line)) if line.len() < LARGE_BYTES => self.take(parse(&line)),
                Some(Line::Whole(line)) => {
                    self.reading = Some(tokio::task::spawn_blocking(move || parse(&line)));
                }
                Some(Line::TooLong) => self.noise("a line of more than 16 MiB was dropped"),
                None => {
                    let piece = self.heard.recv().await?;
                    self.lines.take(&piece);
                }
            }
        }
    }

    fn take(&mut self, read: Read) {
        match read {
            Ok(messages) => self.batch.extend(messages),
            Err(why) => self.noise(&why),
        }
    }

    fn noise(&mut self, what: &str) {
        self.noise += 1;
        if self.noise <= NOISE_LINES_SHOWN {
            self.log.line(what);
        } else if self.noise.is_power_of_two() {
            self.log.line(&format!("{} lines of its output were no messages", self.noise));
        }
    }

    /// Returns true for the answer to the probe.
    fn answers_probe(&self, message: &Incoming) -> bool {
        let (Probe::Waiting { id: asked, .. } | Probe::GivenUp { id: asked }) = &self.probe else {
            return false;
        };
        match message {
            JsonRpcMessage::Response(response) => response.id == *asked,
            JsonRpcMessage::Error(error) => error.id.as_ref() == Some(asked),
            _ => false,
        }
    }

    /// Gives the answer of a server that knows nothing of the modern era.
    fn give_up_probe(&mut self, id: RequestId) -> Incoming {
        self.log.line("it does not say which era it speaks: asked by `initialize`");
        self.probe = Probe::GivenUp { id: id.clone() };
        let error = ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "no answer to the probe", None);
        Incoming::error(error, Some(id))
    }
}

impl Transport<RoleClient> for LineTransport {
    type Error = Closed;

    fn send(
        &mut self,
        item: Outgoing,
    ) -> impl Future<Output = Result<(), Closed>> + Send + 'static {
        if let JsonRpcMessage::Request(request) = &item
            && matches!(request.request, ClientRequest::DiscoverRequest(_))
        {
            let until = Instant::now() + self.probe_time;
            self.probe = Probe::Waiting { id: request.id.clone(), until };
        }
        let said = self.said.clone();
        async move {
            let mut line = serde_json::to_vec(&item).map_err(|_| Closed)?;
            line.push(b'\n');
            said.ok_or(Closed)?.send(line).await.map_err(|_| Closed)
        }
    }

    async fn receive(&mut self) -> Option<Incoming> {
        loop {
            let waited = match &self.probe {
                Probe::Waiting { id, until } => Some((id.clone(), *until)),
                Probe::Unasked | Probe::GivenUp { .. } | Probe::Answered => None,
            };
            let message = match waited {
                None => self.next_message().await?,
                Some((id, until)) => {
                    match tokio::time::timeout_at(until, self.next_message()).await {
                        Ok(message) => message?,
                        Err(_) => return Some(self.give_up_probe(id)),
                    }
                }
            };
            if self.answers_probe(&message) {
                let is_late = matches!(self.probe, Probe::GivenUp { .. });
                self.probe = Probe::Answered;
                if is_late {
                    continue;
                }
            }
            return Some(message);
        }
    }

    async fn close(&mut self) -> Result<(), Closed> {
        self.said = None;
        self.heard.close();
        Ok(())
    }
}

/// Reads a line into messages.
fn parse(line: &[u8]) -> Read {
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
    let shown = |why: &str| {
        let head = String::from_utf8_lossy(&line[..line.len().min(4 * NOISE_CHARS_MAX)]);
        let head: String = head.chars().take(NOISE_CHARS_MAX).collect();
        format!("{why}: {head}")
    };
    if line.first() != Some(&b'[') {
        return match serde_json::from_slice(line) {
            Ok(message) => Ok(vec![message]),
            Err(error) if error.is_data() => Err(shown("no message of the protocol")),
            Err(_) => Err(shown("it printed")),
        };
    }
    let values: Vec<Value> = serde_json::from_slice(line).map_err(|_| shown("it printed"))?;
    if values.len() > BATCH_MAX {
        return Err(format!("a batch of {} messages was dropped", values.len()));
    }
    Ok(values.into_iter().filter_map(|value| serde_json::from_value(value).ok()).collect())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rmcp::model::{DiscoverRequest, DiscoverRequestParams, ErrorCode};

    use super::*;
    use crate::log::Lines as LogLines;

    struct Ends {
        transport: LineTransport,
        server: mpsc::Sender<Vec<u8>>,
        told: mpsc::Receiver<Vec<u8>>,
        log: Arc<LogLines>,
    }

    fn ends() -> Ends {
        let (server, heard) = mpsc::channel(HEARD_PIECES_MAX);
        let (said, told) = mpsc::channel(SAID_MESSAGES_MAX);
        let log = Arc::new(LogLines::default());
        let wire = Wire { heard, said };
        let transport = LineTransport::new(wire, Duration::from_secs(3), log.of("moon"));
        Ends { transport, server, told, log }
    }

    fn discover(id: i64) -> Outgoing {
        let request = DiscoverRequest::new(DiscoverRequestParams {});
        Outgoing::request(ClientRequest::DiscoverRequest(request), RequestId::Number(id))
    }

    fn logged(log: &LogLines) -> Vec<String> {
        log.list(None).into_iter().map(|line| line.text).collect()
    }

    #[tokio::test]
    async fn what_is_no_message_is_passed_over() {
        let mut ends = ends();
        let text =
            "starting…\n{\"a\":1}\n\n\u{1b}[1m{\n{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}\n";
        ends.server.send(text.into()).await.unwrap();
        let (_, id) = ends.transport.receive().await.unwrap().into_response().unwrap();
        assert_eq!(id, RequestId::Number(7));
        assert_eq!(
            logged(&ends.log),
            ["it printed: starting…", "no message of the protocol: {\"a\":1}", "it printed:  [1m{"]
        );
    }

    #[tokio::test]
    async fn a_flood_of_noise_costs_few_lines() {
        let mut ends = ends();
        let noise = "x\n".repeat(10_000) + "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}\n";
        ends.server.send(noise.into()).await.unwrap();
        assert!(ends.transport.receive().await.is_some());
        assert!(logged(&ends.log).len() < 40);
    }

    #[tokio::test]
    async fn large_messages_and_batches_come_whole() {
        let mut ends = ends();
        let large = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{{\"x\":\"{}\"}}}}",
            "y".repeat(LARGE_BYTES)
        );
        let small = "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}";
        let text = format!("{large}\n[{small},{{}},{small}]\n");
        ends.server.send(text.into()).await.unwrap();
        for expected in [1, 2, 2] {
            let (_, id) = ends.transport.receive().await.unwrap().into_response().unwrap();
            assert_eq!(id, RequestId::Number(expected));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_server_is_taken_for_a_legacy_one() {
        let mut ends = ends();
        ends.transport.send(discover(0)).await.unwrap();
        assert!(ends.told.recv().await.is_some_and(|line| line.ends_with(b"\n")));
        let (error, id) = ends.transport.receive().await.unwrap().into_error().unwrap();
        assert_eq!((error.code, id), (ErrorCode::METHOD_NOT_FOUND, Some(RequestId::Number(0))));
        // The late answer is nobody's.
        let late = "{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{}}\n{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n";
        ends.server.send(late.into()).await.unwrap();
        let (_, id) = ends.transport.receive().await.unwrap().into_response().unwrap();
        assert_eq!(id, RequestId::Number(1));
    }

    #[tokio::test]
    async fn it_ends_with_the_server_and_closes_for_it() {
        let mut ends = ends();
        drop(ends.server);
        assert!(ends.transport.receive().await.is_none());
        ends.transport.close().await.unwrap();
        assert!(ends.told.recv().await.is_none());
        assert!(ends.transport.send(discover(1)).await.is_err());
    }
}
