//! Tests how the client handles all kinds of answers, with a real server on loopback.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::sync::mpsc;
use std::time::Duration;

use crate::support::{Server, answer, send, serve_file};
use jaato_http::{
    ByteRange, Client, ContentRange, ExchangeLimits, FileBody, HeaderValue, HttpClientSettings,
    HttpError, HttpErrorKind, Method, OutgoingRequest, Proxies, Retry,
};

fn new_client() -> Client {
    Client::new(HttpClientSettings {
        proxies: Proxies::without_proxies(),
        ..HttpClientSettings::default()
    })
}

fn short_limits() -> ExchangeLimits {
    ExchangeLimits { body_bytes_max: 1024, ..ExchangeLimits::default() }
}

/// Requests `path` and returns status and body.
async fn get_path(server: &Server, path: &str) -> Result<(u16, Vec<u8>), HttpError> {
    let request = OutgoingRequest {
        limits: short_limits(),
        ..OutgoingRequest::get(&server.url(path)).unwrap()
    };
    let response = new_client().send(request).await?;
    let status = response.status().as_u16();
    Ok((status, response.bytes().await?.to_vec()))
}

/// Returns the error of a request, without the server's port.
async fn request_error(server: &Server, path: &str) -> (HttpErrorKind, Retry, String) {
    let error = get_path(server, path).await.expect_err("the fetch must fail");
    let text = error.to_string().replace(&format!(":{}", server.port()), "");
    (error.kind(), error.retry(), text)
}

#[tokio::test]
async fn body_is_received_whole_and_the_user_agent_is_jaato() {
    let server = Server::start(|_, stream| send(stream, answer("200 OK", "", "hello")));
    assert_eq!(get_path(&server, "/a").await.unwrap(), (200, b"hello".to_vec()));
    let seen = server.received_requests().remove(0);
    assert_eq!(seen.line, "GET /a HTTP/1.1");
    assert_eq!(seen.header("user-agent"), Some(concat!("jaato/", env!("CARGO_PKG_VERSION"))));
    assert_eq!(seen.header("accept-encoding"), None);
}

#[tokio::test]
async fn a_connection_is_used_again() {
    let (sender, receiver) = mpsc::channel();
    let server = Server::start(move |_, stream| {
        send(stream, "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
        // The second request must use this connection, because the server reads it here.
        let mut byte = [0];
        let read = std::io::Read::read(stream, &mut byte).unwrap_or(0);
        sender.send(read).unwrap();
        send(stream, "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
    });
    let client = new_client();
    for _ in 0..2 {
        let response = client.send(OutgoingRequest::get(&server.url("/")).unwrap()).await.unwrap();
        assert_eq!(response.bytes().await.unwrap(), "ok");
    }
    assert_eq!(receiver.recv().unwrap(), 1);
    assert_eq!(server.received_requests().len(), 1);
}

#[tokio::test]
async fn range_request_returns_the_rest_of_the_file() {
    let server = Server::start(|request, stream| serve_file(request, stream, b"0123456789"));
    let range = ByteRange::From(4);
    let request = OutgoingRequest { range, ..OutgoingRequest::get(&server.url("/f")).unwrap() };
    let response = new_client().send(request).await.unwrap();
    assert_eq!(response.status().as_u16(), 206);
    let expected = ContentRange { first: 4, last: 9, total: Some(10) };
    assert_eq!(response.content_range(), Some(expected));
    assert_eq!(response.content_length(), Some(6));
    assert_eq!(response.bytes().await.unwrap(), "456789");
}

#[tokio::test]
async fn bounded_range_is_sent_in_the_range_header() {
    let server = Server::start(|_, stream| send(stream, answer("206 Partial Content", "", "23")));
    let range = ByteRange::Between(2, 3);
    let request = OutgoingRequest { range, ..OutgoingRequest::get(&server.url("/f")).unwrap() };
    new_client().send(request).await.unwrap();
    assert_eq!(server.received_requests()[0].header("range"), Some("bytes=2-3"));
}

#[tokio::test]
async fn range_past_the_end_is_status_416_and_fails_require_success() {
    let server = Server::start(|request, stream| serve_file(request, stream, b"0123"));
    let request = OutgoingRequest {
        range: ByteRange::From(4),
        ..OutgoingRequest::get(&server.url("/f")).unwrap()
    };
    let response = new_client().send(request).await.unwrap();
    assert_eq!(response.status().as_u16(), 416);
    let error = response.require_success().unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("`{}` answered 416 (range not satisfiable)", server.url("/f"))
    );
    assert_eq!(error.retry(), Retry::Permanent);
}

#[tokio::test]
async fn status_503_is_a_temporary_error_with_its_retry_after() {
    let server = Server::start(|_, stream| {
        send(stream, answer("503 Service Unavailable", "retry-after: 7\r\n", ""));
    });
    let response =
        new_client().send(OutgoingRequest::get(&server.url("/?key=s")).unwrap()).await.unwrap();
    let error = response.require_success().unwrap_err();
    assert_eq!(error.retry(), Retry::Temporary);
    let HttpError::Status { status: 503, retry_after, .. } = &error else { panic!("{error:?}") };
    assert_eq!(*retry_after, Some(Duration::from_secs(7)));
    assert!(error.to_string().ends_with("/?…` answered 503 (service unavailable)"), "{error}");
}

#[tokio::test]
async fn chunks_are_joined() {
    let server = Server::start(|_, stream| {
        let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
        send(stream, format!("{head}3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"));
    });
    assert_eq!(get_path(&server, "/").await.unwrap().1, b"abcde");
}

#[tokio::test]
async fn an_encoded_body_arrives_as_it_was_sent() {
    let bytes = b"\x1f\x8b\x08not really gzip";
    let server = Server::start(move |_, stream| {
        send(stream, answer("200 OK", "content-encoding: gzip\r\n", bytes));
    });
    assert_eq!(get_path(&server, "/").await.unwrap().1, bytes);
}

#[tokio::test]
async fn a_post_carries_its_headers_and_body() {
    let server = Server::start(|_, stream| send(stream, answer("201 Created", "", "")));
    let mut request = OutgoingRequest::new(Method::POST, &server.url("/v1")).unwrap();
    request.body = "{}".into();
    request.headers.insert("x-test", HeaderValue::from_static("yes"));
    let response = new_client().send(request).await.unwrap();
    assert_eq!(response.status().as_u16(), 201);
    let seen = server.received_requests().remove(0);
    assert_eq!((seen.line.as_str(), seen.body.as_slice()), ("POST /v1 HTTP/1.1", &b"{}"[..]));
    assert_eq!(seen.header("x-test"), Some("yes"));
}

#[tokio::test]
async fn a_body_in_a_file_is_sent_whole_with_its_length() {
    let server = Server::start(|_, stream| send(stream, answer("201 Created", "", "")));
    for length in [1, 256 * 1024, 3 * 1024 * 1024 + 7] {
        let bytes: Vec<u8> = (0..length).map(|at: usize| (at / 251) as u8).collect();
        let mut file = tempfile::tempfile().unwrap();
        std::io::Write::write_all(&mut file, &bytes).unwrap();
        let mut request = OutgoingRequest::new(Method::POST, &server.url("/v1")).unwrap();
        request.file = Some(FileBody::new(file, length as u64));
        assert_eq!(new_client().send(request).await.unwrap().status().as_u16(), 201);
        let seen = server.received_requests().pop().unwrap();
        assert_eq!(seen.header("content-length"), Some(length.to_string().as_str()));
        assert!(seen.body == bytes, "{length}");
    }
}

#[tokio::test]
async fn a_body_in_a_file_that_became_shorter_is_an_error() {
    let server = Server::start(|_, stream| send(stream, answer("201 Created", "", "")));
    let mut request = OutgoingRequest::new(Method::POST, &server.url("/v1")).unwrap();
    request.file = Some(FileBody::new(tempfile::tempfile().unwrap(), 9));
    assert!(new_client().send(request).await.is_err());
}

#[tokio::test]
async fn a_body_at_the_limit_passes_and_one_byte_more_does_not() {
    let server = Server::start(|request, stream| {
        let bytes = if request.line.contains("/at") { 1024 } else { 1025 };
        send(stream, answer("200 OK", "", vec![b'x'; bytes]));
    });
    assert_eq!(get_path(&server, "/at").await.unwrap().1.len(), 1024);
    let (kind, retry, text) = request_error(&server, "/past").await;
    assert_eq!((kind, retry), (HttpErrorKind::TooLarge, Retry::Permanent));
    assert_eq!(text, "`http://127.0.0.1/past` sends more than the 1024 bytes allowed");
}

#[tokio::test]
async fn a_body_of_unknown_length_is_bounded_too() {
    let server = Server::start(|_, stream| {
        let head = "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n";
        send(stream, [head.as_bytes(), &[b'x'; 1025]].concat());
    });
    assert_eq!(request_error(&server, "/").await.0, HttpErrorKind::TooLarge);
}

#[tokio::test]
async fn truncated_body_error_names_received_and_expected_bytes() {
    let server = Server::start(|_, stream| {
        send(stream, "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc");
    });
    let (kind, retry, text) = request_error(&server, "/f?sig=s3cret").await;
    assert_eq!((kind, retry), (HttpErrorKind::Truncated, Retry::Temporary));
    assert_eq!(text, "`http://127.0.0.1/f?…` ended after 3 of 10 bytes");
}

#[tokio::test]
async fn a_chunked_body_cut_short_is_noticed() {
    let server = Server::start(|_, stream| {
        send(stream, "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n9\r\nabc");
    });
    let (kind, _, text) = request_error(&server, "/").await;
    assert_eq!(kind, HttpErrorKind::Truncated);
    assert_eq!(text, "`http://127.0.0.1/` ended in the middle, after 3 bytes");
}

#[tokio::test]
async fn stalled_body_times_out() {
    let (keep, held) = mpsc::channel::<()>();
    let held = parking_lot::Mutex::new(held);
    let server = Server::start(move |_, stream| {
        send(stream, "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc");
        let _ = held.lock().recv();
    });
    let mut request = OutgoingRequest::get(&server.url("/")).unwrap();
    request.limits.idle = Duration::from_millis(200);
    let mut response = new_client().send(request).await.unwrap();
    assert_eq!(response.next_chunk().await.unwrap().unwrap(), "abc");
    let error = response.next_chunk().await.unwrap_err();
    assert_eq!((error.kind(), error.retry()), (HttpErrorKind::Timeout, Retry::Temporary));
    assert_eq!(error.to_string(), format!("no more data from `{}` within 0.2 s", server.url("/")));
    drop(keep);
}

#[tokio::test]
async fn dropping_a_response_closes_the_connection() {
    let (closed, noticed) = mpsc::channel();
    let server = Server::start(move |_, stream| {
        send(stream, "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc");
        let mut byte = [0];
        // Returns once the client is gone, with 0 bytes or a reset, never with data.
        closed.send(std::io::Read::read(stream, &mut byte).unwrap_or(0)).unwrap();
    });
    let mut response =
        new_client().send(OutgoingRequest::get(&server.url("/")).unwrap()).await.unwrap();
    response.next_chunk().await.unwrap();
    drop(response);
    let waited = tokio::task::spawn_blocking(move || noticed.recv_timeout(Duration::from_secs(20)));
    assert_eq!(waited.await.unwrap(), Ok(0));
}

#[tokio::test]
async fn a_silent_server_times_out() {
    let (keep, held) = mpsc::channel::<()>();
    let held = parking_lot::Mutex::new(held);
    let server = Server::start(move |_, _| {
        let _ = held.lock().recv();
    });
    let mut request = OutgoingRequest::get(&server.url("/")).unwrap();
    request.limits.answer = Duration::from_millis(200);
    let error = new_client().send(request).await.unwrap_err();
    assert_eq!(error.to_string(), format!("no answer from `{}` within 0.2 s", server.url("/")));
    drop(keep);
}

#[tokio::test]
async fn response_that_is_not_http_1_is_an_error() {
    // The second server speaks only HTTP/2, and sends its settings first.
    for answer in ["SSH-2.0-OpenSSH_9.6\r\n", "\0\0\0\x04\0\0\0\0\0"] {
        let server = Server::start(move |_, stream| send(stream, answer));
        let (kind, _, text) = request_error(&server, "/").await;
        assert_eq!(kind, HttpErrorKind::Transfer);
        let expected = "the exchange with `http://127.0.0.1/` failed: its answer is not valid \
                        http/1.1: invalid HTTP version parsed";
        assert_eq!(text, expected);
    }
}
