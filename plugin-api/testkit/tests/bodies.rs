//! Tests of request bodies that are larger than a frame.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_testkit::{FakeHost, FakeHttpAnswer};
use jaato_types::http::HTTP_BODY_BYTES_MAX;

const URL: &str = "https://vendor.example/v1";

/// Sends something.
#[derive(ToolInput)]
#[tool(read_only, example("send it", what = "parts"))]
struct Send {
    /// What: `parts`, `large`, `gone`, `beyond`, `small`.
    what: String,
}

impl Tool for Send {
    type State = ();

    async fn call(self, cx: &Cx) -> Result<Output> {
        let request = cx.http("POST", URL);
        let request = match self.what.as_str() {
            "parts" => {
                let id = cx.blobs().put("image/png", b"any moon").await?;
                let request = request.body("{\"a\":\"").append_base64(&id).append("\",\"b\":\"");
                request.append_blob(id).append("\"}")
            }
            "large" => request.body(vec![7; 9 * 1024 * 1024]),
            "gone" => request.append_blob("0".repeat(64)),
            "beyond" => {
                let id = cx.blobs().put("a/b", vec![7; 100 * 1024 * 1024]).await?;
                request.append_blob(&id).append_blob(id).append("1")
            }
            _ => request.body("small"),
        };
        let status = request.send().await?.status();
        Ok(Output::json(json!({ "status": status })))
    }
}

tool!(Send);
export_plugin! { state: (), tools }

/// Returns the body of the tool's single request.
fn sent_bytes(what: &str) -> Result<Vec<u8>> {
    let host = FakeHost::new(__jaato::MODULE).with_http(|_| Ok(FakeHttpAnswer::status(200)));
    host.call("send", json!({ "what": what }))?;
    Ok(host.http_requests().remove(0).body)
}

#[test]
fn bytes_and_blobs_are_sent_in_order_and_a_blob_may_be_base64() {
    let body = String::from_utf8(sent_bytes("parts").unwrap()).unwrap();
    assert_eq!(body, r#"{"a":"YW55IG1vb24=","b":"any moon"}"#);
    assert_eq!(sent_bytes("small").unwrap(), b"small");
}

#[test]
fn body_larger_than_a_frame_is_sent_whole() {
    assert!(sent_bytes("large").unwrap() == vec![7; 9 * 1024 * 1024]);
}

#[test]
fn body_with_missing_blob_or_above_limit_is_refused() {
    assert_eq!(sent_bytes("gone").unwrap_err().kind, ErrorKind::NotFound);
    let error = sent_bytes("beyond").unwrap_err();
    assert_eq!(error.kind, ErrorKind::LimitReached);
    let text = format!("the body of a request has at most {HTTP_BODY_BYTES_MAX} bytes");
    assert_eq!(error.message, text);
}
