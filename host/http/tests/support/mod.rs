//! A tiny server on loopback that answers each request as a test says, byte by byte.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

use parking_lot::Mutex;

/// A client's request.
#[derive(Debug, Clone)]
pub struct ReceivedRequest {
    /// `GET /path HTTP/1.1`.
    pub line: String,
    /// Header lines, with lower-case names.
    pub headers: Vec<(String, String)>,
    /// The body, if a length was given.
    #[allow(dead_code, reason = "not every test binary reads bodies")]
    pub body: Vec<u8>,
}

impl ReceivedRequest {
    /// Returns the value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Returns the first byte of a `range: bytes=N-` header.
    #[allow(dead_code, reason = "not every test binary uses ranges")]
    pub fn range_from(&self) -> Option<usize> {
        self.header("range")?.strip_prefix("bytes=")?.strip_suffix('-')?.parse().ok()
    }
}

/// A server that lives as long as the test's process.
pub struct Server {
    port: u16,
    seen: Arc<Mutex<Vec<ReceivedRequest>>>,
}

impl Server {
    /// Answers each request on its own thread. The connection closes when `answer` returns.
    pub fn start(
        answer: impl Fn(&ReceivedRequest, &mut TcpStream) + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (record, answer) = (seen.clone(), Arc::new(answer));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (record, answer) = (record.clone(), answer.clone());
                std::thread::spawn(move || {
                    let mut stream = stream.unwrap();
                    let Some(request) = read_request(&stream) else { return };
                    record.lock().push(request.clone());
                    answer(&request, &mut stream);
                });
            }
        });
        Self { port, seen }
    }

    /// Returns the server's address with this path.
    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// Returns the port.
    #[allow(dead_code, reason = "not every test binary needs it")]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the requests received so far.
    pub fn received_requests(&self) -> Vec<ReceivedRequest> {
        self.seen.lock().clone()
    }
}

/// Writes to a client. A client that is gone is not a failure of the server.
pub fn send(stream: &mut TcpStream, bytes: impl AsRef<[u8]>) {
    let _ = stream.write_all(bytes.as_ref());
    let _ = stream.flush();
}

/// Returns a complete answer that closes the connection.
pub fn answer(status: &str, headers: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n{headers}\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

/// Serves `content` like a file server: whole, from the requested byte, or `416`.
#[allow(dead_code, reason = "not every test binary serves files")]
pub fn serve_file(request: &ReceivedRequest, stream: &mut TcpStream, content: &[u8]) {
    let Some(first) = request.range_from() else {
        return send(stream, answer("200 OK", "", content));
    };
    let total = content.len();
    if first >= total {
        let header = format!("content-range: bytes */{total}\r\n");
        return send(stream, answer("416 Range Not Satisfiable", &header, ""));
    }
    let header = format!("content-range: bytes {first}-{}/{total}\r\n", total - 1);
    send(stream, answer("206 Partial Content", &header, &content[first..]));
}

fn read_request(stream: &TcpStream) -> Option<ReceivedRequest> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|bytes| *bytes > 0)?;
    let mut headers = Vec::new();
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok().filter(|bytes| *bytes > 0)?;
        let Some((name, value)) = header.trim_end().split_once(':') else { break };
        headers.push((name.to_lowercase(), value.trim().to_owned()));
    }
    let mut seen = ReceivedRequest { line: line.trim_end().to_owned(), headers, body: Vec::new() };
    let length = seen.header("content-length").and_then(|value| value.parse().ok()).unwrap_or(0);
    seen.body = vec![0; length];
    reader.read_exact(&mut seen.body).ok()?;
    Some(seen)
}
