//! A server on loopback that speaks OpenAI's chat completions or Ollama's protocol from a script,
//! or gives a test's own answers, including rude ones.
//!
//! HTTP/1.1 is implemented manually with a thread per connection, because the timing of the bytes
//! matters. A connection is closed after its answer, unless the answer keeps it. The script's
//! completions are returned in order, one per `POST`. A `GET` of models has its own answer.

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};

/// How long a client may keep the server waiting. Far more than any needs, so it only ends hanging
/// clients.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long an answer lags. A client that does not wait for its end is gone by then.
const LAG: Duration = Duration::from_millis(5);

/// Marks an answer without a head.
const NO_HEAD: u16 = 0;

/// A step of an answer's body.
#[derive(Clone)]
pub enum BodyStep {
    /// These bytes, in one piece.
    Bytes(Vec<u8>),
    /// These bytes, one per piece.
    Torn(Vec<u8>),
    /// These bytes repeatedly, until the client leaves.
    Endless(Vec<u8>),
    /// A short pause, in which a client may leave.
    Lag,
    /// A pause until the test opens the gate.
    Wait(AnswerGate),
    /// A pause until the client leaves.
    Hang,
    /// Closes the connection in the middle of the body.
    Cut,
}

/// Holds an answer back until a test opens it. Clones are the same gate.
#[derive(Clone)]
pub struct AnswerGate(Sender<()>, Arc<Mutex<Receiver<()>>>);

impl AnswerGate {
    /// Creates a closed gate.
    pub fn closed() -> Self {
        let (opener, waiter) = channel();
        Self(opener, Arc::new(Mutex::new(waiter)))
    }

    /// Lets one answer pass.
    pub fn open(&self) {
        self.0.send(()).unwrap();
    }
}

/// An answer.
#[derive(Clone)]
pub struct Answer {
    status: u16,
    headers: Vec<(String, String)>,
    steps: Vec<BodyStep>,
    keeps_connection: bool,
}

/// A received request.
#[derive(Debug, Clone)]
pub struct ReceivedRequest {
    pub method: String,
    pub path: String,
    /// Headers with lower-case names.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

/// The server, which ends with the process.
pub struct Server {
    port: u16,
    shared: Arc<ServerState>,
}

/// A test's own answer to each request.
type AnswerFunction = Box<dyn Fn(&ReceivedRequest) -> Answer + Send + Sync>;

struct ServerState {
    script: Mutex<VecDeque<Answer>>,
    /// Answers instead of the script.
    answering: Option<AnswerFunction>,
    models: Mutex<Answer>,
    asked: Mutex<Vec<ReceivedRequest>>,
    /// Number of connections that carried a request.
    connections: AtomicUsize,
    /// Requests that are not completions: for models or a window.
    looked: Mutex<Vec<ReceivedRequest>>,
    /// Receives a message for each client that left during its answer.
    gone: Mutex<Receiver<()>>,
    gone_sender: Sender<()>,
}

impl Answer {
    /// Returns an answer with this status and no body.
    pub fn status(status: u16) -> Self {
        Self { status, headers: Vec::new(), steps: Vec::new(), keeps_connection: false }
    }

    /// Returns an answer that sends nothing, not even a status.
    pub fn silence() -> Self {
        Self { steps: vec![BodyStep::Hang], ..Self::status(NO_HEAD) }
    }

    /// Returns a stream of these steps.
    pub fn stream(steps: Vec<BodyStep>) -> Self {
        Self { steps, ..Self::status(200).header("content-type", "text/event-stream") }
    }

    /// Returns an answer with this text, in these pieces.
    pub fn text(pieces: &[&str]) -> Self {
        let mut events: Vec<Value> =
            pieces.iter().map(|piece| json!({ "delta": { "content": piece } })).collect();
        events.push(json!({ "delta": {}, "finish_reason": "stop" }));
        Self::stream(vec![BodyStep::Bytes(choice_events(&events)), BodyStep::Bytes(stream_end())])
    }

    /// Returns an answer with this text to a request with this many tokens.
    pub fn text_of_prompt(text: &str, prompt_tokens: u64) -> Self {
        let usage = json!({ "prompt_tokens": prompt_tokens, "completion_tokens": 5 });
        let usage = format!("data: {}\n\n", json!({ "choices": [], "usage": usage }));
        let said = [
            json!({ "delta": { "content": text } }),
            json!({ "delta": {}, "finish_reason": "stop" }),
        ];
        let end = [usage.as_bytes(), b"data: [DONE]\n\n"].concat();
        Self::stream(vec![BodyStep::Bytes(choice_events(&said)), BodyStep::Bytes(end)])
    }

    /// Returns an answer with these calls: name and arguments.
    pub fn calls(calls: &[(&str, Value)]) -> Self {
        let call = |(index, (name, arguments)): (usize, &(&str, Value))| {
            let arguments = arguments.to_string();
            // In two fragments, as servers do.
            let (first, rest) = arguments.split_at(arguments.len() / 2);
            let function = json!({ "name": name, "arguments": first });
            [
                json!({ "delta": { "tool_calls":
                    [{ "index": index, "id": format!("call_{name}_{index}"), "function": function }] } }),
                json!({ "delta": { "tool_calls":
                    [{ "index": index, "function": { "arguments": rest } }] } }),
            ]
        };
        let mut events: Vec<Value> = calls.iter().enumerate().flat_map(call).collect();
        events.push(json!({ "delta": {}, "finish_reason": "tool_calls" }));
        Self::stream(vec![BodyStep::Bytes(choice_events(&events)), BodyStep::Bytes(stream_end())])
    }

    /// Returns an error in the protocol's format.
    pub fn error(status: u16, message: &str) -> Self {
        let body = json!({ "error": { "message": message } }).to_string();
        Self { steps: vec![BodyStep::Bytes(body.into_bytes())], ..Self::status(status) }
            .header("content-type", "application/json")
    }

    /// Adds a header.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Adds a step to the body.
    pub fn then(mut self, step: BodyStep) -> Self {
        self.steps.push(step);
        self
    }

    /// Sets a body that is sent in one piece.
    pub fn body(mut self, body: &str) -> Self {
        self.steps = vec![BodyStep::Bytes(body.as_bytes().to_vec())];
        self
    }

    /// Ends the body a moment after its last bytes, and keeps the connection for the next request.
    pub fn keep_alive(mut self) -> Self {
        self.steps.push(BodyStep::Lag);
        self.keeps_connection = true;
        self
    }

    /// Splits the body into single bytes.
    pub fn in_single_bytes(mut self) -> Self {
        for step in &mut self.steps {
            if let BodyStep::Bytes(bytes) = step {
                *step = BodyStep::Torn(std::mem::take(bytes));
            }
        }
        self
    }
}

/// Returns the stream events of choices.
pub fn choice_events(choices: &[Value]) -> Vec<u8> {
    let event = |choice| format!("data: {}\n\n", json!({ "choices": [choice] }));
    choices.iter().map(event).collect::<String>().into_bytes()
}

/// Returns the end of a stream: the usage and the final marker.
pub fn stream_end() -> Vec<u8> {
    let usage = json!({ "prompt_tokens": 20, "completion_tokens": 5 });
    format!("data: {}\n\ndata: [DONE]\n\n", json!({ "choices": [], "usage": usage })).into_bytes()
}

impl Server {
    /// Starts a server with these answers, one per completion. Further requests are refused.
    pub fn start(script: impl IntoIterator<Item = Answer>) -> Self {
        Self::start_serving(script.into_iter().collect(), None)
    }

    /// Starts a server that gives the test's answer to each request.
    pub fn start_with(answer: impl Fn(&ReceivedRequest) -> Answer + Send + Sync + 'static) -> Self {
        Self::start_serving(VecDeque::new(), Some(Box::new(answer)))
    }

    fn start_serving(script: VecDeque<Answer>, answering: Option<AnswerFunction>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let models = Answer::status(200).body(r#"{"object":"list","data":[{"id":"test"}]}"#);
        let (gone_sender, gone) = channel();
        let shared = Arc::new(ServerState {
            script: Mutex::new(script),
            answering,
            models: Mutex::new(models),
            asked: Mutex::default(),
            connections: AtomicUsize::new(0),
            looked: Mutex::default(),
            gone: Mutex::new(gone),
            gone_sender,
        });
        let serving = Arc::clone(&shared);
        std::thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let shared = Arc::clone(&serving);
                std::thread::spawn(move || shared.serve(connection));
            }
        });
        Self { port, shared }
    }

    /// Returns the value for `OPENAI_BASE_URL`.
    pub fn base_url(&self) -> String {
        format!("{}/v1", self.root_url())
    }

    /// Returns the server's root URL.
    pub fn root_url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Sets the answer to `GET /v1/models`, and to Ollama's `GET /api/tags`.
    pub fn set_models(&self, answer: Answer) {
        *self.shared.models.lock() = answer;
    }

    /// Returns the completion requests so far.
    pub fn requests(&self) -> Vec<ReceivedRequest> {
        self.shared.asked.lock().clone()
    }

    /// Returns the number of connections that carried requests.
    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::SeqCst)
    }

    /// Returns the other requests so far: for models, and for a model's window, sent at the same
    /// time as completions.
    pub fn other_requests(&self) -> Vec<ReceivedRequest> {
        self.shared.looked.lock().clone()
    }

    /// Waits until a client has left in the middle of its answer.
    #[track_caller]
    pub fn wait_until_disconnected(&self) {
        let waited = self.shared.gone.lock().recv_timeout(PATIENCE);
        assert!(waited != Err(RecvTimeoutError::Timeout), "the client keeps its connection open");
    }
}

impl ReceivedRequest {
    /// Returns the first header with this name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Returns the body as JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

impl ServerState {
    fn serve(&self, mut connection: TcpStream) {
        connection.set_nodelay(true).unwrap();
        connection.set_read_timeout(Some(PATIENCE)).unwrap();
        connection.set_write_timeout(Some(PATIENCE)).unwrap();
        let mut is_first = true;
        while let Some(asked) = read_request(&connection) {
            self.connections.fetch_add(usize::from(is_first), Ordering::SeqCst);
            is_first = false;
            let answer = self.answer_request(&asked);
            let is_completion = asked.path.ends_with("/completions")
                || ["/api/chat", "/v1/messages"].contains(&asked.path.as_str());
            let record = if is_completion { &self.asked } else { &self.looked };
            record.lock().push(asked);
            if self.write_answer(&mut connection, &answer).is_err() {
                // The receiver may be gone.
                let _ = self.gone_sender.send(());
                return;
            }
            if !answer.keeps_connection {
                return;
            }
        }
    }

    fn answer_request(&self, asked: &ReceivedRequest) -> Answer {
        if let Some(answering) = &self.answering {
            return answering(asked);
        }
        match (asked.method.as_str(), asked.path.as_str()) {
            ("GET", "/v1/models" | "/api/tags") => self.models.lock().clone(),
            ("POST", "/v1/chat/completions" | "/api/chat") => {
                let next = self.script.lock().pop_front();
                next.unwrap_or_else(|| Answer::error(400, "the script has no more answers"))
            }
            _ => Answer::status(404).body("404 page not found"),
        }
    }

    fn write_answer(&self, connection: &mut TcpStream, answer: &Answer) -> std::io::Result<()> {
        let connection_header = if answer.keeps_connection { "keep-alive" } else { "close" };
        let status = answer.status;
        let mut head = format!("HTTP/1.1 {status} X\r\nconnection: {connection_header}\r\n");
        for (name, value) in &answer.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("transfer-encoding: chunked\r\n\r\n");
        if answer.status != NO_HEAD {
            connection.write_all(head.as_bytes())?;
        }
        for step in &answer.steps {
            match step {
                BodyStep::Bytes(bytes) => write_chunk(connection, bytes)?,
                BodyStep::Torn(bytes) => {
                    for byte in bytes.chunks(1) {
                        write_chunk(connection, byte)?;
                    }
                }
                BodyStep::Endless(bytes) => loop {
                    write_chunk(connection, bytes)?;
                },
                BodyStep::Lag => pause_briefly(connection)?,
                BodyStep::Wait(AnswerGate(_, waiter)) => {
                    let opened = waiter.lock().recv_timeout(PATIENCE);
                    assert!(opened.is_ok(), "the test never opens the gate");
                }
                // A client that leaves closes its side, and nothing else can come from it.
                BodyStep::Hang => {
                    let read = connection.read(&mut [0])?;
                    assert_eq!(read, 0, "the client sent more than one request");
                    return Err(std::io::ErrorKind::BrokenPipe.into());
                }
                BodyStep::Cut => return Ok(()),
            }
        }
        connection.write_all(b"0\r\n\r\n")
    }
}

/// Waits a moment. Returns an error if the client leaves.
fn pause_briefly(connection: &mut TcpStream) -> std::io::Result<()> {
    connection.set_read_timeout(Some(LAG))?;
    let read = connection.read(&mut [0]);
    connection.set_read_timeout(Some(PATIENCE))?;
    match read {
        Ok(0) => Err(std::io::ErrorKind::BrokenPipe.into()),
        Ok(_) => panic!("the client sent data before the answer"),
        Err(_) => Ok(()),
    }
}

fn write_chunk(connection: &mut TcpStream, bytes: &[u8]) -> std::io::Result<()> {
    connection.write_all(format!("{:x}\r\n", bytes.len()).as_bytes())?;
    connection.write_all(bytes)?;
    connection.write_all(b"\r\n")
}

/// Reads one request, or returns `None` if the client sends none.
fn read_request(connection: &TcpStream) -> Option<ReceivedRequest> {
    let mut reader = BufReader::new(connection);
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
    let mut words = line.split_whitespace().map(str::to_owned);
    let (method, path) = (words.next()?, words.next()?);
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.push((name.to_lowercase(), value.trim().to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length = length.map_or(0, |(_, value)| value.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(ReceivedRequest { method, path, headers, body })
}
