//! A model server on loopback with scripted answers: the part of OpenAI's chat completions that the
//! benchmarks need. Each kept-alive connection has its own thread. Its cost does not count as the
//! agent's.

use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use parking_lot::Mutex;
use serde_json::Value;

use super::script::{AnsweredRequest, ModelScript, ScriptedAnswer, response_body, streamed_body};

/// More than any request of a benchmark. A longer request is a bug of the agent.
const BODY_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Bytes of a request's body that are reported as one token.
const BYTES_PER_TOKEN: usize = 4;

/// The path of the completions, below the base URL.
const COMPLETIONS: &str = "/v1/chat/completions";

/// The data of one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelRequestRecord {
    /// When the whole request had arrived.
    pub at: Instant,
    /// The time since the last answer was sent, or `None` for the first request of a script.
    pub since_answer: Option<Duration>,
    /// The number of its tool results.
    pub results: usize,
    /// The text of the last result.
    pub last_result: String,
    /// The size of the largest file that it names, measured when the request arrives, because the
    /// file may not outlive the agent.
    pub kept_bytes: u64,
    /// Whether the answer is a stream that hangs.
    pub hangs: bool,
}

/// The server. Dropping it stops it.
pub struct ScriptedModelServer {
    address: SocketAddr,
    shared: Arc<ScriptedServerState>,
    asked: Receiver<ModelRequestRecord>,
    accepting: Option<JoinHandle<()>>,
}

struct ScriptedServerState {
    script: Mutex<ModelScript>,
    asked: Mutex<Sender<ModelRequestRecord>>,
    closing: AtomicBool,
    /// The number of requests so far.
    requests: AtomicUsize,
    /// When the last answer of the script was sent.
    answered: Mutex<Option<Instant>>,
}

impl ScriptedModelServer {
    /// Starts a server on a free port.
    pub fn start_server(script: ModelScript) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("listening")?;
        let address = listener.local_addr().context("listening")?;
        let (sender, asked) = channel();
        let shared = Arc::new(ScriptedServerState {
            script: Mutex::new(script),
            asked: Mutex::new(sender),
            closing: AtomicBool::new(false),
            requests: AtomicUsize::new(0),
            answered: Mutex::new(None),
        });
        let accepting = Arc::clone(&shared);
        let accepting = std::thread::spawn(move || accept_connections(&listener, &accepting));
        Ok(Self { address, shared, asked, accepting: Some(accepting) })
    }

    /// Returns the value for `OPENAI_BASE_URL`.
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Answers from another script.
    pub fn play_script(&self, script: ModelScript) {
        *self.shared.script.lock() = script;
        *self.shared.answered.lock() = None;
    }

    /// Takes the requests since the last time.
    pub fn take_requests(&self) -> Vec<ModelRequestRecord> {
        self.asked.try_iter().collect()
    }

    /// Waits for the next request.
    pub fn next_request(&self, within: Duration) -> Result<ModelRequestRecord> {
        match self.asked.recv_timeout(within) {
            Ok(asked) => Ok(asked),
            Err(RecvTimeoutError::Timeout) => bail!("no request came within {within:?}"),
            Err(RecvTimeoutError::Disconnected) => bail!("the scripted server has ended"),
        }
    }
}

impl Drop for ScriptedModelServer {
    fn drop(&mut self) {
        self.shared.closing.store(true, Ordering::SeqCst);
        // Wakes the accepting thread. If this fails, the thread has already ended.
        let _ = TcpStream::connect(self.address);
        if let Some(accepting) = self.accepting.take() {
            // The thread has no result, and the threads of connections end with their clients.
            let _ = accepting.join();
        }
    }
}

fn accept_connections(listener: &TcpListener, shared: &Arc<ScriptedServerState>) {
    for stream in listener.incoming() {
        if shared.closing.load(Ordering::SeqCst) {
            return;
        }
        let Ok(stream) = stream else { continue };
        let shared = Arc::clone(shared);
        std::thread::spawn(move || {
            if let Err(error) = serve_connection(&stream, &shared) {
                // Half of the benchmarks disconnect the client in the middle.
                let gone = error.downcast_ref::<std::io::Error>().is_some();
                if !gone {
                    eprintln!("the scripted server: {error:#}");
                }
            }
        });
    }
}

/// Answers requests until the client closes the connection.
fn serve_connection(stream: &TcpStream, shared: &ScriptedServerState) -> Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream);
    while let Some(request) = read_request(&mut reader)? {
        let script = shared.script.lock().clone();
        let at = Instant::now();
        let number = shared.requests.fetch_add(1, Ordering::SeqCst);
        let (reply, asked) = build_reply(&script, &request, at, number)?;
        let hangs = asked.as_ref().is_some_and(|asked| asked.hangs);
        std::thread::sleep(script.pause);
        if let Some(mut asked) = asked {
            let answered = *shared.answered.lock();
            asked.since_answer = answered.map(|answered| at.duration_since(answered));
            // Sent before the answer, which may be the last one that the agent waits for. If the
            // server has ended, no one needs it.
            let _ = shared.asked.lock().send(asked);
        }
        let mut stream = stream;
        stream.write_all(&reply)?;
        *shared.answered.lock() = Some(Instant::now());
        if hangs {
            // Wait until the client gives up.
            std::io::copy(&mut reader, &mut std::io::sink())?;
            return Ok(());
        }
    }
    Ok(())
}

/// An HTTP request.
pub struct ModelHttpRequest {
    pub target: String,
    pub body: Vec<u8>,
}

/// Reads a request. Returns `None` if the client has closed the connection.
pub fn read_request(reader: &mut impl BufRead) -> Result<Option<ModelHttpRequest>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let target = line.split(' ').nth(1).with_context(|| format!("no request: `{line}`"))?;
    let target = target.to_owned();
    let mut length = 0;
    loop {
        line.clear();
        if reader.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let header = line.trim_end();
        if header.is_empty() {
            break;
        }
        let Some((name, value)) = header.split_once(':') else { bail!("no header: `{header}`") };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().with_context(|| format!("no length: `{header}`"))?;
        } else if name.eq_ignore_ascii_case("transfer-encoding") {
            bail!("chunked bodies are not supported: `{header}`");
        }
    }
    if length > BODY_BYTES_MAX {
        bail!("a body of {length} bytes; at most {BODY_BYTES_MAX} are read");
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(Some(ModelHttpRequest { target, body }))
}

/// Returns the bytes of the response, and the data of the request.
fn build_reply(
    script: &ModelScript,
    request: &ModelHttpRequest,
    at: Instant,
    number: usize,
) -> Result<(Vec<u8>, Option<ModelRequestRecord>)> {
    if request.target != COMPLETIONS {
        let text = format!(r#"{{"error":{{"message":"nothing is at `{}`"}}}}"#, request.target);
        return Ok((http_response("404 Not Found", "application/json", text.as_bytes()), None));
    }
    let body: Value = serde_json::from_slice(&request.body).context("reading a request's body")?;
    let mut asked = request_record(&body, at)?;
    let chosen = script.chooser.as_ref().map(|choose| choose(&body));
    let Some(answer) = chosen.as_ref().or_else(|| script.answer_after(asked.results)) else {
        let text = format!(
            r#"{{"error":{{"message":"the script has no answer after {} results"}}}}"#,
            asked.results
        );
        return Ok((
            http_response("400 Bad Request", "application/json", text.as_bytes()),
            Some(asked),
        ));
    };
    asked.hangs = *answer == ScriptedAnswer::Hang;
    let numbered = AnsweredRequest { number, tokens: request.body.len() / BYTES_PER_TOKEN };
    let bytes = if body["stream"] == true {
        encode_chunk(&streamed_body(answer, numbered), answer)
    } else {
        let text = response_body(answer, numbered).context("only a stream can hang")?;
        http_response("200 OK", "application/json", text.as_bytes())
    };
    Ok((bytes, Some(asked)))
}

fn request_record(body: &Value, at: Instant) -> Result<ModelRequestRecord> {
    let messages = body["messages"].as_array().context("a request without messages")?;
    let results: Vec<&Value> =
        messages.iter().filter(|message| message["role"] == "tool").collect();
    let last_result =
        results.last().map(|result| content_text(&result["content"])).unwrap_or_default();
    let kept_bytes =
        serde_json::from_str(&last_result).map_or(0, |result| longest_file_content(&result));
    let (results, since_answer) = (results.len(), None);
    Ok(ModelRequestRecord { at, since_answer, results, last_result, kept_bytes, hangs: false })
}

/// The keys with which a result names a file that holds its full output, at any depth.
const FILE_KEYS: [&str; 2] = ["file", "output_file"];

fn longest_file_content(result: &Value) -> u64 {
    let within = match result {
        Value::Object(fields) => {
            let files = FILE_KEYS.iter().filter_map(|key| fields.get(*key)?.as_str());
            let lengths = files.filter_map(|path| Some(std::fs::metadata(path).ok()?.len()));
            fields.values().map(longest_file_content).chain(lengths).max()
        }
        Value::Array(values) => values.iter().map(longest_file_content).max(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    };
    within.unwrap_or(0)
}

/// Returns the text of a content, which is a text or a list of parts.
pub fn content_text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        other => other.to_string(),
    }
}

fn http_response(status: &str, kind: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

/// Encodes one chunk, and the end mark unless the answer hangs.
fn encode_chunk(text: &str, answer: &ScriptedAnswer) -> Vec<u8> {
    let end = if *answer == ScriptedAnswer::Hang { "" } else { "0\r\n\r\n" };
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked";
    format!("{head}\r\n\r\n{:x}\r\n{text}\r\n{end}", text.len()).into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::agent::script::LAST_WORDS;
    use serde_json::json;
    use std::io::Read;

    /// Sends the bodies over one connection, closes it, and returns everything that was received.
    fn exchange_requests(server: &ScriptedModelServer, bodies: &[Value]) -> String {
        let mut stream = TcpStream::connect(server.address).unwrap();
        for body in bodies {
            let body = body.to_string();
            let head = format!(
                "POST {COMPLETIONS} HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            );
            stream.write_all(head.as_bytes()).unwrap();
        }
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    }

    fn tool_result(text: &str) -> Value {
        json!({ "role": "tool", "tool_call_id": "call_0_0", "content": text })
    }

    #[test]
    fn one_connection_serves_a_conversation_and_requests_are_recorded() {
        let server =
            ScriptedModelServer::start_server(ModelScript::with_command_per_step(&["echo 1"]))
                .unwrap();
        let text = exchange_requests(
            &server,
            &[
                json!({ "messages": [{ "role": "user", "content": "go" }], "stream": true }),
                json!({ "messages": [{ "role": "user", "content": "go" }, tool_result("one")] }),
            ],
        );
        let (first, second) = text.split_once("0\r\n\r\n").unwrap();
        assert!(first.contains("text/event-stream") && first.contains("call_0_0"), "{first}");
        assert!(second.contains("application/json") && second.contains(LAST_WORDS), "{second}");
        let asked = server.take_requests();
        assert_eq!(asked.iter().map(|asked| asked.results).collect::<Vec<_>>(), [0, 1]);
        assert_eq!(asked[1].last_result, "one");
        assert!(server.take_requests().is_empty());
    }

    #[test]
    fn a_request_beyond_the_script_is_refused() {
        let server =
            ScriptedModelServer::start_server(ModelScript::with_command_per_step(&[])).unwrap();
        let text = exchange_requests(&server, &[json!({ "messages": [tool_result("x")] })]);
        assert!(text.starts_with("HTTP/1.1 400 ") && text.contains("after 1 results"), "{text}");
    }

    #[test]
    fn output_file_of_a_result_is_measured_when_the_request_arrives() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("stdout");
        std::fs::write(&file, "twelve bytes").unwrap();
        let content = json!({ "bytes": { "length": 12, "file": file } });
        let asked = request_record(
            &json!({ "messages": [tool_result(&content.to_string())] }),
            Instant::now(),
        );
        let asked = asked.unwrap();
        assert_eq!(asked.kept_bytes, 12);
        let content = json!({ "stdout": "twelve", "output_file": file }).to_string();
        assert_eq!(request_with_content(&content).kept_bytes, 12);
        assert_eq!(request_with_content("no JSON").kept_bytes, 0);
        let missing = json!({ "file": folder.path().join("missing") }).to_string();
        assert_eq!(request_with_content(&missing).kept_bytes, 0);
    }

    fn request_with_content(content: &str) -> ModelRequestRecord {
        request_record(&json!({ "messages": [tool_result(content)] }), Instant::now()).unwrap()
    }

    #[test]
    fn contents_in_parts_are_read_as_one_text() {
        let parts = json!([{ "type": "text", "text": "a" }, { "type": "text", "text": "b" }]);
        assert_eq!(content_text(&parts), "ab");
        assert_eq!(content_text(&json!("ab")), "ab");
    }
}
