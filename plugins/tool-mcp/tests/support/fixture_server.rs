//! A loopback server that sends the responses of a test, including invalid ones.

use std::sync::Arc;

use jaato_plugin_sdk::serde_json::{self, Value, json};
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// A received request.
#[derive(Debug, Clone, Default)]
pub struct ReceivedRequest {
    pub method: String,
    /// The path with its query.
    pub path: String,
    /// The headers, with names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: String,
}

/// The response to a request.
pub enum FixtureResponse {
    /// Status, headers, body.
    Whole(u16, Vec<(&'static str, String)>, String),
    /// A stream of these texts, which then ends.
    Events(Vec<String>),
    /// A stream of these texts, which then stays open and silent.
    Held(Vec<String>),
    /// A stream that repeats this text forever.
    Endless(String),
    /// No response.
    Silence,
}

type RequestHandler = dyn Fn(&ReceivedRequest) -> FixtureResponse + Send + Sync;

/// A server that ends when this is dropped.
pub struct FixtureServer {
    /// The server's URL, without a path.
    pub url: String,
    seen: Arc<Mutex<Vec<ReceivedRequest>>>,
    accepting: JoinHandle<()>,
}

impl Drop for FixtureServer {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl ReceivedRequest {
    /// Returns the first header with this name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Returns the message in the body.
    pub fn body_message(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }

    /// Returns the method of the message, or the HTTP method.
    pub fn requested_method(&self) -> String {
        self.body_message()["method"].as_str().map_or_else(|| self.method.clone(), str::to_owned)
    }

    /// Returns a field of the form in the body, or of the query.
    pub fn form_field(&self, name: &str) -> Option<String> {
        let query = self.path.split_once('?').map_or("", |(_, query)| query);
        let fields = url::form_urlencoded::parse(self.body.as_bytes())
            .chain(url::form_urlencoded::parse(query.as_bytes()));
        let mut found = fields.filter(|(known, _)| known == name);
        found.next().map(|(_, value)| value.into_owned())
    }
}

impl FixtureResponse {
    /// Answers with JSON.
    pub fn json_response(status: u16, body: &Value) -> Self {
        let kind = ("content-type", "application/json".to_owned());
        Self::Whole(status, vec![kind], body.to_string())
    }

    /// Answers a protocol request.
    pub fn protocol_response(seen: &ReceivedRequest, result: Value) -> Self {
        Self::json_response(200, &result_message(&seen.body_message()["id"], result))
    }

    /// Answers with a status alone.
    pub fn status_response(status: u16) -> Self {
        Self::Whole(status, Vec::new(), String::new())
    }

    /// Adds a header.
    pub fn with_response_header(self, name: &'static str, value: &str) -> Self {
        match self {
            Self::Whole(status, mut headers, body) => {
                headers.push((name, value.to_owned()));
                Self::Whole(status, headers, body)
            }
            other => other,
        }
    }
}

/// Builds a protocol response.
pub fn result_message(id: &Value, result: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

/// Formats an event.
pub fn format_event(data: &Value) -> String {
    format!("data: {data}\n\n")
}

impl FixtureServer {
    /// Starts a server.
    pub async fn start(
        handler: impl Fn(&ReceivedRequest) -> FixtureResponse + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let seen: Arc<Mutex<Vec<ReceivedRequest>>> = Arc::default();
        let (handler, all): (Arc<RequestHandler>, _) = (Arc::new(handler), Arc::clone(&seen));
        let accepting = tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(serve_connection(stream, Arc::clone(&handler), Arc::clone(&all)));
            }
        });
        Self { url, seen, accepting }
    }

    /// Lists the received requests, in order.
    pub fn received_requests(&self) -> Vec<ReceivedRequest> {
        self.seen.lock().clone()
    }

    /// Lists the requests with this method.
    pub fn requests_with_method(&self, what: &str) -> Vec<ReceivedRequest> {
        self.received_requests()
            .into_iter()
            .filter(|seen| seen.requested_method() == what)
            .collect()
    }

    /// Lists the requests to this path.
    pub fn requests_to_path(&self, path: &str) -> Vec<ReceivedRequest> {
        let is_there = |seen: &ReceivedRequest| seen.path.split('?').next() == Some(path);
        self.received_requests().into_iter().filter(is_there).collect()
    }
}

/// Answers one request and closes the connection.
async fn serve_connection(
    mut stream: TcpStream,
    handler: Arc<RequestHandler>,
    all: Arc<Mutex<Vec<ReceivedRequest>>>,
) -> Option<()> {
    let seen = read_request(&mut stream).await?;
    all.lock().push(seen.clone());
    match handler(&seen) {
        FixtureResponse::Whole(status, headers, body) => {
            let mut head = format!("HTTP/1.1 {status} Said\r\nconnection: close\r\n");
            for (name, value) in headers {
                head += &format!("{name}: {value}\r\n");
            }
            head += &format!("content-length: {}\r\n\r\n", body.len());
            stream.write_all(head.as_bytes()).await.ok()?;
            stream.write_all(body.as_bytes()).await.ok()?;
        }
        FixtureResponse::Events(texts) => write_events(&mut stream, &texts).await?,
        FixtureResponse::Held(texts) => {
            write_events(&mut stream, &texts).await?;
            // Waits until the client closes the connection.
            let _ = stream.read(&mut [0]).await;
        }
        FixtureResponse::Endless(text) => {
            write_events(&mut stream, &[]).await?;
            loop {
                stream.write_all(text.as_bytes()).await.ok()?;
            }
        }
        FixtureResponse::Silence => {
            let _ = stream.read(&mut [0]).await;
        }
    }
    stream.shutdown().await.ok()
}

async fn write_events(stream: &mut TcpStream, texts: &[String]) -> Option<()> {
    let head = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: text/event-stream\r\n\r\n";
    stream.write_all(head.as_bytes()).await.ok()?;
    for text in texts {
        stream.write_all(text.as_bytes()).await.ok()?;
    }
    Some(())
}

async fn read_request(stream: &mut TcpStream) -> Option<ReceivedRequest> {
    let mut read = Vec::new();
    let mut piece = vec![0; 64 * 1024];
    loop {
        let count = stream.read(&mut piece).await.ok().filter(|&count| count > 0)?;
        read.extend_from_slice(&piece[..count]);
        let Some(end) = read.windows(4).position(|end| end == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&read[..end]).into_owned();
        let mut lines = head.lines();
        let mut first = lines.next()?.split(' ').map(str::to_owned);
        let (method, path) = (first.next()?, first.next()?);
        let headers: Vec<(String, String)> = lines
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.to_lowercase(), value.trim().to_owned()))
            .collect();
        let length = headers.iter().find(|(name, _)| name == "content-length");
        let length: usize = length.map_or(0, |(_, value)| value.parse().unwrap());
        if read.len() >= end + 4 + length {
            let body = String::from_utf8_lossy(&read[end + 4..]).into_owned();
            return Some(ReceivedRequest { method, path, headers, body });
        }
    }
}
