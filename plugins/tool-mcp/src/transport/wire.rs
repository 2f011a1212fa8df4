//! A connection as lines: an `rmcp` transport over two byte channels.
//!
//! Invalid messages are skipped with a line in the log, and end the request that they must belong
//! to. If the server does not answer the probe of its era, this module answers in its place, so
//! that `rmcp` continues with `initialize` on the same connection.

use std::collections::{HashSet, VecDeque};
use std::future::Future;
use std::time::Duration;

use jaato_plugin_sdk::serde_json;
use rmcp::RoleClient;
use rmcp::model::{
    ClientNotification, ClientRequest, ErrorCode, ErrorData, JsonRpcMessage, RequestId,
};
use rmcp::service::TxJsonRpcMessage;
use rmcp::transport::Transport;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::lines::{StdioLine, StdioLineSplitter};
use super::repair::{self, IncomingMessage, ParsedServerText};
use crate::log::ServerLog;

/// The maximum number of unread chunks from a server, of 64 KiB each at most. After that, the
/// server's pipe fills and it waits.
pub const HEARD_PIECES_MAX: usize = 16;
/// The maximum number of unsent messages to a server.
pub const SAID_MESSAGES_MAX: usize = 64;
/// Lines of at least this size are parsed on another thread.
const LARGE_BYTES: usize = 256 * 1024;
/// The maximum number of invalid lines shown in the log. Further ones are only counted.
const NOISE_LINES_SHOWN: u64 = 20;

type OutgoingMessage = TxJsonRpcMessage<RoleClient>;

/// The two channels of a connection.
pub struct StdioWire {
    /// The server's output, in chunks of any size. Ends with the server.
    pub heard: mpsc::Receiver<Vec<u8>>,
    /// The messages to the server, one line each. Ends when the connection is closed.
    pub said: mpsc::Sender<Vec<u8>>,
}

/// A transport of lines.
pub struct LineTransport {
    heard: mpsc::Receiver<Vec<u8>>,
    /// `None` after the close.
    said: Option<mpsc::Sender<Vec<u8>>>,
    lines: StdioLineSplitter,
    /// The lines so far of a message that spans several lines.
    broken_up: Option<Vec<u8>>,
    /// A large line that is being parsed.
    reading: Option<JoinHandle<ParsedServerText>>,
    /// The remaining messages of a line that held several.
    batch: VecDeque<IncomingMessage>,
    /// Requests that wait for a response.
    open: HashSet<RequestId>,
    /// Requests whose response ends a stream. Invalid messages are never attributed to them.
    streams: HashSet<RequestId>,
    probe: EraProbe,
    probe_time: Duration,
    noise: u64,
    log: ServerLog,
}

/// The state of the probe of the server's era.
enum EraProbe {
    Unasked,
    Waiting { id: RequestId, until: Instant },
    Answered,
}

/// The connection is closed.
#[derive(Debug)]
pub struct McpConnectionClosed;

impl std::fmt::Display for McpConnectionClosed {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("the server has closed the connection")
    }
}

impl std::error::Error for McpConnectionClosed {}

impl LineTransport {
    /// Creates a transport. The server must answer the probe of its era within `probe_time`.
    pub fn new(wire: StdioWire, probe_time: Duration, log: ServerLog) -> Self {
        Self {
            heard: wire.heard,
            said: Some(wire.said),
            lines: StdioLineSplitter::default(),
            broken_up: None,
            reading: None,
            batch: VecDeque::new(),
            open: HashSet::new(),
            streams: HashSet::new(),
            probe: EraProbe::Unasked,
            probe_time,
            noise: 0,
            log,
        }
    }

    /// Waits for the next message. Cancel safe, because received data is in a field before each
    /// `await`.
    async fn next_message(&mut self) -> Option<IncomingMessage> {
        loop {
            if let Some(message) = self.batch.pop_front() {
                return Some(message);
            }
            if let Some(reading) = &mut self.reading {
                let heard = reading.await.unwrap_or_default();
                self.reading = None;
                self.add_parsed(heard);
                continue;
            }
            match self.lines.next_line() {
                Some(StdioLine::Whole(line)) if line.iter().all(u8::is_ascii_whitespace) => {}
                Some(StdioLine::Whole(line)) if self.add_split_message_line(&line) => {}
                Some(StdioLine::Whole(line)) if line.len() < LARGE_BYTES => {
                    self.add_parsed(repair::parse_server_text(&line, &self.open));
                }
                Some(StdioLine::Whole(line)) => {
                    let open = self.open.clone();
                    let read = move || repair::parse_server_text(&line, &open);
                    self.reading = Some(tokio::task::spawn_blocking(read));
                }
                Some(StdioLine::TooLong(ends)) => {
                    self.add_parsed(repair::parse_truncated_ends(&ends, &self.open))
                }
                None => {
                    let piece = self.heard.recv().await?;
                    self.lines.add_chunk(&piece);
                }
            }
        }
    }

    /// Handles a line of a message that the server pretty-prints over several lines: its first line
    /// is a brace, and the others are indented. Returns false for any other line.
    fn add_split_message_line(&mut self, line: &[u8]) -> bool {
        let text = line.trim_ascii_end();
        match (text, &mut self.broken_up) {
            (b"{", begun) => *begun = Some(b"{".to_vec()),
            (b"}", Some(begun)) => {
                begun.push(b'}');
                let whole = self.broken_up.take().unwrap_or_default();
                self.add_parsed(repair::parse_server_text(&whole, &self.open));
            }
            ([b' ' | b'\t', ..], Some(begun)) if begun.len() + text.len() <= LARGE_BYTES => {
                begun.extend_from_slice(text);
            }
            (_, begun) => {
                *begun = None;
                return false;
            }
        }
        true
    }

    fn add_parsed(&mut self, heard: ParsedServerText) {
        self.batch.extend(heard.messages);
        heard.noise.iter().for_each(|line| self.log_noise(line));
    }

    fn log_noise(&mut self, what: &str) {
        self.noise += 1;
        if self.noise <= NOISE_LINES_SHOWN {
            self.log.add_line(what);
        } else if self.noise.is_power_of_two() {
            self.log.add_line(&format!("{} lines of its output were not messages", self.noise));
        }
    }

    /// Closes the request that a message answers. Returns false for a response to no open request,
    /// for example one that was cancelled or already answered.
    fn close_request(&mut self, message: &IncomingMessage) -> bool {
        let id = match message {
            JsonRpcMessage::Response(response) => Some(&response.id),
            JsonRpcMessage::Error(error) => error.id.as_ref(),
            _ => return true,
        };
        let is_open = id.is_some_and(|id| self.open.remove(id) || self.streams.remove(id));
        if matches!(&self.probe, EraProbe::Waiting { id: asked, .. } if Some(asked) == id) {
            self.probe = EraProbe::Answered;
        }
        is_open
    }

    /// Returns the response of a server that does not know the modern era.
    fn give_up_probe(&mut self, id: RequestId) -> IncomingMessage {
        self.log.add_line("it did not answer the probe of its era: trying `initialize`");
        self.probe = EraProbe::Answered;
        self.open.remove(&id);
        let error = ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "no answer to the probe", None);
        IncomingMessage::error(error, Some(id))
    }
}

impl Transport<RoleClient> for LineTransport {
    type Error = McpConnectionClosed;

    fn send(
        &mut self,
        item: OutgoingMessage,
    ) -> impl Future<Output = Result<(), McpConnectionClosed>> + Send + 'static {
        match &item {
            JsonRpcMessage::Request(request) => {
                if matches!(request.request, ClientRequest::DiscoverRequest(_)) {
                    let until = Instant::now() + self.probe_time;
                    self.probe = EraProbe::Waiting { id: request.id.clone(), until };
                }
                let is_stream =
                    matches!(request.request, ClientRequest::SubscriptionsListenRequest(_));
                let waiting = if is_stream { &mut self.streams } else { &mut self.open };
                waiting.insert(request.id.clone());
            }
            JsonRpcMessage::Notification(told) => {
                if let ClientNotification::CancelledNotification(cancelled) = &told.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.open.remove(id);
                    self.streams.remove(id);
                }
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {}
        }
        let said = self.said.clone();
        async move {
            let mut line = serde_json::to_vec(&item).map_err(|_| McpConnectionClosed)?;
            line.push(b'\n');
            said.ok_or(McpConnectionClosed)?.send(line).await.map_err(|_| McpConnectionClosed)
        }
    }

    async fn receive(&mut self) -> Option<IncomingMessage> {
        loop {
            let waited = match &self.probe {
                EraProbe::Waiting { id, until } => Some((id.clone(), *until)),
                EraProbe::Unasked | EraProbe::Answered => None,
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
            if self.close_request(&message) {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> Result<(), McpConnectionClosed> {
        self.said = None;
        self.heard.close();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rmcp::model::{DiscoverRequest, DiscoverRequestParams, ErrorCode};

    use super::*;
    use crate::log::ServerLogStore as LogLines;

    struct WireTestEnds {
        transport: LineTransport,
        server: mpsc::Sender<Vec<u8>>,
        told: mpsc::Receiver<Vec<u8>>,
        log: Arc<LogLines>,
    }

    fn wire_ends() -> WireTestEnds {
        let (server, heard) = mpsc::channel(HEARD_PIECES_MAX);
        let (said, told) = mpsc::channel(SAID_MESSAGES_MAX);
        let log = Arc::new(LogLines::default());
        let wire = StdioWire { heard, said };
        let transport = LineTransport::new(wire, Duration::from_secs(3), log.server_log("moon"));
        WireTestEnds { transport, server, told, log }
    }

    /// Sends requests with these IDs and ignores their content.
    async fn send_requests(ends: &mut WireTestEnds, ids: impl IntoIterator<Item = i64>) {
        for id in ids {
            let request = ClientRequest::PingRequest(<_>::default());
            ends.transport
                .send(OutgoingMessage::request(request, RequestId::Number(id)))
                .await
                .unwrap();
            ends.told.recv().await.unwrap();
        }
    }

    fn discover_request(id: i64) -> OutgoingMessage {
        let request = DiscoverRequest::new(DiscoverRequestParams {});
        OutgoingMessage::request(ClientRequest::DiscoverRequest(request), RequestId::Number(id))
    }

    fn logged_texts(log: &LogLines) -> Vec<String> {
        log.list_lines(None).into_iter().map(|line| line.text).collect()
    }

    #[tokio::test]
    async fn lines_that_are_not_messages_are_skipped_and_logged() {
        let mut ends = wire_ends();
        send_requests(&mut ends, [7]).await;
        let text =
            "starting…\n{\"a\":1}\n\n\u{1b}[1m{\n{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}\n";
        ends.server.send(text.into()).await.unwrap();
        let (_, id) = ends.transport.receive().await.unwrap().into_response().unwrap();
        assert_eq!(id, RequestId::Number(7));
        assert_eq!(
            logged_texts(&ends.log),
            [
                "it sent a line that is not a message: starting…",
                "not an MCP message: {\"a\":1}",
                "it sent a line that is not a message:  [1m{"
            ]
        );
    }

    #[tokio::test]
    async fn flood_of_invalid_lines_is_logged_in_few_lines() {
        let mut ends = wire_ends();
        send_requests(&mut ends, [7]).await;
        let noise = "x\n".repeat(10_000) + "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}\n";
        ends.server.send(noise.into()).await.unwrap();
        assert!(ends.transport.receive().await.is_some());
        assert!(logged_texts(&ends.log).len() < 40);
    }

    #[tokio::test]
    async fn large_messages_and_batches_are_received_complete() {
        let mut ends = wire_ends();
        send_requests(&mut ends, [1, 2, 3]).await;
        let large = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{{\"x\":\"{}\"}}}}",
            "y".repeat(LARGE_BYTES)
        );
        let small = "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}";
        let last = small.replace('2', "3").replace("3.0", "2.0");
        let text = format!("{large}\n[{small},{{}},{small},{last}]\n");
        ends.server.send(text.into()).await.unwrap();
        for expected in [1, 2, 3] {
            let (_, id) = ends.transport.receive().await.unwrap().into_response().unwrap();
            assert_eq!(id, RequestId::Number(expected));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn silent_server_is_treated_as_legacy() {
        let mut ends = wire_ends();
        ends.transport.send(discover_request(0)).await.unwrap();
        assert!(ends.told.recv().await.is_some_and(|line| line.ends_with(b"\n")));
        let (error, id) = ends.transport.receive().await.unwrap().into_error().unwrap();
        assert_eq!((error.code, id), (ErrorCode::METHOD_NOT_FOUND, Some(RequestId::Number(0))));
        // The late response belongs to no open request.
        send_requests(&mut ends, [1]).await;
        let late = "{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{}}\n{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n";
        ends.server.send(late.into()).await.unwrap();
        let (_, id) = ends.transport.receive().await.unwrap().into_response().unwrap();
        assert_eq!(id, RequestId::Number(1));
    }

    #[tokio::test]
    async fn a_message_over_several_lines_is_read() {
        let mut ends = wire_ends();
        send_requests(&mut ends, [1, 2]).await;
        let text = "{\n{\n  \"jsonrpc\": \"2.0\",\r\n  \"id\": 1,\n  \"result\": {\n  }\n}\n{\n  odd\n\
                    {\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}\n";
        ends.server.send(text.into()).await.unwrap();
        for expected in [1, 2] {
            let (_, id) = ends.transport.receive().await.unwrap().into_response().unwrap();
            assert_eq!(id, RequestId::Number(expected));
        }
    }

    #[tokio::test]
    async fn overlong_message_fails_its_request() {
        let mut ends = wire_ends();
        send_requests(&mut ends, [1, 2]).await;
        let text = "x".repeat(super::super::lines::LINE_BYTES_MAX);
        let late = format!("{{\"jsonrpc\":\"2.0\",\"result\":{{\"x\":\"{text}\"}},\"id\":2}}\n");
        ends.server.send(late.into()).await.unwrap();
        let (error, id) = ends.transport.receive().await.unwrap().into_error().unwrap();
        assert_eq!(id, Some(RequestId::Number(2)));
        assert!(error.message.starts_with("the server sent a message of more than 16 MiB: "));
    }

    #[tokio::test]
    async fn transport_ends_with_the_server_and_closes_the_server_input() {
        let mut ends = wire_ends();
        drop(ends.server);
        assert!(ends.transport.receive().await.is_none());
        ends.transport.close().await.unwrap();
        assert!(ends.told.recv().await.is_none());
        assert!(ends.transport.send(discover_request(1)).await.is_err());
    }
}
