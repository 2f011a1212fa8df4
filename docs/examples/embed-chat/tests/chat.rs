//! Runs the chat against a server of the test's own, which calls the tool once.
#![allow(clippy::unwrap_used)]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::process::{Command, Stdio};

/// Answers two requests with streamed chat completions, and returns the second one's body.
fn serve_model(listener: TcpListener) -> String {
    let call = r#"{"choices":[{"index":0,"delta":{"role":"assistant","tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"count_letters","arguments":"{\"text\":\"moon\"}"}}]},"finish_reason":"tool_calls"}]}"#;
    let text = r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":"Four."},"finish_reason":"stop"}]}"#;
    let mut last = String::new();
    for answer in [call, text] {
        let (stream, _) = listener.accept().unwrap();
        let mut reader = BufReader::new(stream);
        let mut length = 0;
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            if line.trim().is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        last = String::from_utf8(body).unwrap();
        let events = format!("data: {answer}\n\ndata: [DONE]\n\n");
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n";
        write!(reader.get_mut(), "{head}content-length: {}\r\n\r\n{events}", events.len()).unwrap();
    }
    last
}

#[test]
fn chat_calls_its_function_and_streams_the_answer() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || serve_model(listener));
    let mut chat = Command::new(env!("CARGO_BIN_EXE_embed-chat"))
        .env_clear()
        .envs([("MODEL", "moon-1"), ("API_KEY", "k"), ("BASE_URL", &url)])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    chat.stdin.take().unwrap().write_all(b"How long is moon?\n").unwrap();
    let output = chat.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "Four.\n[Done]\n");
    let second = server.join().unwrap();
    assert!(second.contains("moon") && second.contains("4"), "{second}");
}

#[test]
fn chat_is_as_short_as_the_documentation_says() {
    let source = include_str!("../src/main.rs");
    let start = source.find("#[tokio::main").unwrap();
    assert!(source[start..].lines().count() <= 25);
}
