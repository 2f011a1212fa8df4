//! Reads events and answers a permission prompt as the page does.
#![allow(clippy::unwrap_used)]

use std::net::SocketAddr;

use jaato_library::Jaato;
use jaato_library::testing::{ScriptedProvider, ScriptedProviderAction as Say};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

async fn start_server() -> SocketAddr {
    let model = ScriptedProvider::default();
    model.add_answer([Say::call("c1", "ring_bell", json!({}))]).add_answer([Say::text("It rang.")]);
    let jaato = Jaato::builder().provider("my", model).tool(embed_axum::ring_tool());
    let jaato = jaato.start().await.unwrap();
    let session = jaato.session().answer_by_handle().open().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, embed_axum::router(session)).await });
    address
}

async fn post_json(to: SocketAddr, path: &str, body: &Value) -> BufReader<TcpStream> {
    let mut stream = TcpStream::connect(to).await.unwrap();
    let body = body.to_string();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: here\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    BufReader::new(stream)
}

#[tokio::test]
async fn browser_follows_a_turn_and_allows_a_call() {
    let address = start_server().await;
    let mut events = post_json(address, "/send", &json!({ "prompt": "Ring." })).await;
    let (mut line, mut shown) = (String::new(), String::new());
    loop {
        line.clear();
        if events.read_line(&mut line).await.unwrap() == 0 {
            break;
        }
        let Some(event) = line.strip_prefix("data:") else { continue };
        let event: Value = serde_json::from_str(event).unwrap();
        match event["event"].as_str().unwrap() {
            "permission_asked" => {
                let call_id = &event["call_id"];
                let answer = json!({ "call_id": call_id, "is_allowed": true });
                let mut answered = String::new();
                post_json(address, "/answer", &answer)
                    .await
                    .read_to_string(&mut answered)
                    .await
                    .unwrap();
                assert!(answered.starts_with("HTTP/1.1 204"), "{answered}");
            }
            "text_delta" | "tool_output" => shown.push_str(event["text"].as_str().unwrap()),
            _ => {}
        }
    }
    assert_eq!(shown, "ding\nIt rang.");
    let mut late = String::new();
    let answer = json!({ "call_id": "c1", "is_allowed": true });
    post_json(address, "/answer", &answer).await.read_to_string(&mut late).await.unwrap();
    assert!(late.starts_with("HTTP/1.1 404"), "{late}");
}
