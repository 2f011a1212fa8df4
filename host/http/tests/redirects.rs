//! Tests which redirects are followed, and which headers are sent.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::support::{Server, answer, send};
use jaato_http::{
    ByteRange, Client, HeaderValue, HttpClientSettings, HttpError, HttpErrorKind, Method,
    OutgoingRequest, Proxies,
};

fn client() -> Client {
    Client::new(HttpClientSettings {
        proxies: Proxies::without_proxies(),
        ..HttpClientSettings::default()
    })
}

/// Redirects every path to the target after `/to/`. A target with `/` is a path on the same server.
fn redirecting(
    status: &'static str,
    location: impl Fn(&str) -> String + Send + Sync + 'static,
) -> Server {
    Server::start(move |request, stream| {
        let path = request.line.split(' ').nth(1).unwrap();
        let header = format!("location: {}\r\n", location(path));
        send(stream, answer(status, &header, ""));
    })
}

async fn error_of(server: &Server, request: OutgoingRequest) -> (HttpErrorKind, String) {
    let error: HttpError = client().send(request).await.expect_err("the redirect must fail");
    (error.kind(), error.to_string().replace(&format!(":{}", server.port()), ""))
}

fn get_request(server: &Server, path: &str) -> OutgoingRequest {
    OutgoingRequest::get(&server.url(path)).unwrap()
}

#[tokio::test]
async fn relative_redirect_keeps_range_and_headers() {
    let server = Server::start(|request, stream| {
        let reply = if request.line.contains("/old") {
            answer("302 Found", "location: new?x=1#part\r\n", "")
        } else {
            answer("200 OK", "", "there")
        };
        send(stream, reply);
    });
    let mut request =
        OutgoingRequest { range: ByteRange::From(0), ..get_request(&server, "/dir/old") };
    request.headers.insert("x-api-key", HeaderValue::from_static("k"));
    let response = client().send(request).await.unwrap();
    assert_eq!(response.url().path(), "/dir/new");
    assert_eq!(response.bytes().await.unwrap(), "there");
    let last = server.received_requests().pop().unwrap();
    assert_eq!(last.line, "GET /dir/new?x=1 HTTP/1.1");
    assert_eq!((last.header("x-api-key"), last.header("range")), (Some("k"), Some("bytes=0-")));
}

#[tokio::test]
async fn another_origin_gets_the_range_and_no_secret() {
    let other = Server::start(|_, stream| send(stream, answer("200 OK", "", "there")));
    let target = other.url("/f");
    let server = redirecting("307 Temporary Redirect", move |_| target.clone());
    let mut request = OutgoingRequest { range: ByteRange::From(3), ..get_request(&server, "/") };
    request.url.set_password(Some("pw")).unwrap();
    request.headers.insert("x-api-key", HeaderValue::from_static("k"));
    assert_eq!(client().send(request).await.unwrap().bytes().await.unwrap(), "there");
    let first = server.received_requests().remove(0);
    assert_eq!(first.header("x-api-key"), Some("k"));
    assert_eq!(first.header("authorization"), Some("Basic OnB3"));
    let names: Vec<_> =
        other.received_requests().remove(0).headers.into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["range", "accept", "user-agent", "host"]);
}

#[tokio::test]
async fn redirect_loop_is_an_error() {
    let server = redirecting("301 Moved Permanently", |path| {
        if path == "/a" { "/b".to_owned() } else { "/a".to_owned() }
    });
    let (kind, text) = error_of(&server, get_request(&server, "/a")).await;
    assert_eq!(kind, HttpErrorKind::Redirect);
    assert_eq!(text, "`http://127.0.0.1/a` redirects in a circle");
    assert_eq!(server.received_requests().len(), 2);
}

#[tokio::test]
async fn ten_redirects_pass_and_eleven_do_not() {
    let counting = |last: usize| {
        Server::start(move |request, stream| {
            let number: usize =
                request.line.split(['/', ' ']).find_map(|part| part.parse().ok()).unwrap();
            let reply = if number == last {
                answer("200 OK", "", "")
            } else {
                answer("302 Found", &format!("location: /{}\r\n", number + 1), "")
            };
            send(stream, reply);
        })
    };
    let ten = counting(10);
    client().send(get_request(&ten, "/0")).await.unwrap();
    let eleven = counting(11);
    let (_, text) = error_of(&eleven, get_request(&eleven, "/0")).await;
    assert_eq!(text, "`http://127.0.0.1/0` redirects more than 10 times");
}

#[tokio::test]
async fn request_with_a_body_is_not_redirected() {
    let server = redirecting("307 Temporary Redirect", |_| "http://h.example/x?t=s".to_owned());
    let mut request = OutgoingRequest::new(Method::POST, &server.url("/")).unwrap();
    request.body = "secret".into();
    let (_, text) = error_of(&server, request).await;
    assert_eq!(
        text,
        "`http://127.0.0.1/` redirects to `http://h.example/x?…`, but only read requests follow redirects"
    );
}

#[tokio::test]
async fn redirect_to_an_unusable_url_is_refused() {
    for (location, shown) in [("file:///etc/passwd", "file:///etc/passwd"), ("", "")] {
        let server = redirecting("302 Found", move |_| location.to_owned());
        let (_, text) = error_of(&server, get_request(&server, "/")).await;
        let expected =
            format!("`http://127.0.0.1/` redirects to `{shown}`, which is not a usable url");
        assert_eq!(text, expected);
    }
}

#[tokio::test]
async fn status_304_is_a_response_and_not_a_redirect() {
    let server = Server::start(|_, stream| send(stream, answer("304 Not Modified", "", "")));
    assert_eq!(client().send(get_request(&server, "/")).await.unwrap().status().as_u16(), 304);
}
