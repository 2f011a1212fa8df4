//! Tests reads from the web: public servers only, redirects, compressed bodies, time.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::io::Write;
use std::net::TcpStream;
use std::time::Duration;

use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};

use crate::connections::secure_server;
use crate::support::{Server, answer, send};
use jaato_http::{
    BodyDecoding, CertificateCheck, Client, ExchangeLimits, HttpClientSettings, HttpError,
    HttpErrorKind, OutgoingRequest, Proxies, PublicServers, ReachableServers, RedirectPolicy,
};

const BYTES_MAX: u64 = 64 * 1024;

/// Creates a client that may reach this host although it is not public.
fn client_for_host(host: &str) -> Client {
    let servers = ReachableServers::Public(PublicServers::new([host.to_owned()]));
    Client::new(HttpClientSettings {
        proxies: Proxies::without_proxies(),
        servers,
        ..HttpClientSettings::default()
    })
}

fn web_request(url: &str) -> OutgoingRequest {
    let limits = ExchangeLimits { body_bytes_max: BYTES_MAX, ..ExchangeLimits::default() };
    OutgoingRequest {
        redirects: RedirectPolicy::SameHost,
        decoding: BodyDecoding::Decompress,
        limits,
        ..OutgoingRequest::get(url).unwrap()
    }
}

async fn read_path(server: &Server, path: &str) -> Result<Vec<u8>, HttpError> {
    let response = client_for_host("127.0.0.1").send(web_request(&server.url(path))).await?;
    Ok(response.bytes().await?.to_vec())
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// `jaato ` 5000 times, in brotli.
const BROTLI_TEXT: &[u8] = b"\x1b\x2f\x75\xf8\x8d\x94\x6e\xde\xaa\x52\x7b\xcb\x30\x10\xba\xb8\
    \x2d\x0e\x40\xce\x06\x80\x07";

/// The letter `x` as often as the limit allows, in brotli.
const BROTLI_AT_LIMIT: &[u8] = b"\x1b\xff\xff\xf8\x25\xf0\xe2\xb1\x40\x20\xf7\x1e\x00";

/// 32 MiB of zeros, in brotli.
const BROTLI_BOMB: &[u8] = b"\xcb\xff\xff\x3f\xf8\x27\x00\xe2\xb1\x40\x20\xf7\xfe\x8f\xff\xff\
    \x7f\xf0\x4f\x00\xc4\x61\x11\x80\xee\xfd\x1f\xff\xff\xff\xe0\x9f\
    \x00\x88\xc3\x02\x00\xdd\xfb\xbf\xfc\xff\xff\xc3\x3f\x01\x10\x87\
    \x05\x00\xba\xf7\x7f";

/// Answers every request with this body in this encoding.
fn encoded_server(encoding: &'static str, body: Vec<u8>) -> Server {
    Server::start(move |_, stream| {
        let header = format!("content-encoding: {encoding}\r\n");
        send(stream, answer("200 OK", &header, &body));
    })
}

#[tokio::test]
async fn server_that_is_not_public_is_refused_unless_its_host_is_named() {
    let server = Server::start(|_, stream| send(stream, answer("200 OK", "", "here")));
    let error =
        client_for_host("other.example").send(web_request(&server.url("/"))).await.unwrap_err();
    assert_eq!(error.kind(), HttpErrorKind::NotPublic);
    assert!(error.hint().unwrap().contains("private_hosts"), "{error}");
    assert_eq!(server.received_requests().len(), 0);
    assert_eq!(read_path(&server, "/").await.unwrap(), b"here");
    assert_eq!(server.received_requests()[0].header("accept-encoding"), Some("gzip, br"));
}

#[tokio::test]
async fn redirect_on_the_same_host_is_followed_and_one_to_another_host_is_the_answer() {
    let server = Server::start(|request, stream| {
        let location = match request.line.split(' ').nth(1).unwrap() {
            "/same" => "/there",
            "/metadata" => "http://169.254.169.254/latest/meta-data/",
            "/other" => "https://other.example/x",
            "/loop" => "/loop2",
            "/loop2" => "/loop",
            _ => return send(stream, answer("200 OK", "", "there")),
        };
        send(stream, answer("302 Found", &format!("location: {location}\r\n"), ""));
    });
    assert_eq!(read_path(&server, "/same").await.unwrap(), b"there");
    for (path, target) in [
        ("/metadata", "http://169.254.169.254/latest/meta-data/"),
        ("/other", "https://other.example/x"),
    ] {
        let response =
            client_for_host("127.0.0.1").send(web_request(&server.url(path))).await.unwrap();
        assert_eq!(response.status().as_u16(), 302);
        assert_eq!(response.headers()["location"], target);
    }
    assert_eq!(read_path(&server, "/loop").await.unwrap_err().kind(), HttpErrorKind::Redirect);
}

#[tokio::test]
async fn redirect_to_an_address_that_is_not_public_is_refused() {
    let server = Server::start(|_, stream| {
        let location = "location: http://169.254.169.254/latest/\r\n";
        send(stream, answer("302 Found", location, ""));
    });
    let followed =
        OutgoingRequest { redirects: RedirectPolicy::Follow, ..web_request(&server.url("/")) };
    let error = client_for_host("127.0.0.1").send(followed).await.unwrap_err();
    assert_eq!(error.kind(), HttpErrorKind::NotPublic);
    let text = "cannot reach `http://169.254.169.254/latest/`: its address 169.254.169.254 is not \
                public";
    assert_eq!(error.to_string(), text);
}

#[tokio::test]
async fn compressed_bodies_are_decompressed() {
    let text = "jaato ".repeat(5000);
    let server = encoded_server("gzip", gzip(text.as_bytes()));
    assert_eq!(read_path(&server, "/").await.unwrap(), text.as_bytes());
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text.as_bytes()).unwrap();
    let server = encoded_server("deflate", encoder.finish().unwrap());
    assert_eq!(read_path(&server, "/").await.unwrap(), text.as_bytes());
    let server = encoded_server("br", BROTLI_TEXT.to_vec());
    assert_eq!(read_path(&server, "/").await.unwrap(), text.as_bytes());
    let server = encoded_server("gzip", Vec::new());
    assert_eq!(read_path(&server, "/").await.unwrap(), b"");
}

#[tokio::test]
async fn limit_counts_decompressed_bytes() {
    let at_limit = vec![b'x'; BYTES_MAX as usize];
    let server = encoded_server("gzip", gzip(&at_limit));
    assert_eq!(read_path(&server, "/").await.unwrap().len(), at_limit.len());
    let server = encoded_server("br", BROTLI_AT_LIMIT.to_vec());
    assert_eq!(read_path(&server, "/").await.unwrap(), at_limit);
    // 1,000 times as large as what is sent.
    let bomb = gzip(&vec![0; 32 * 1024 * 1024]);
    assert!((bomb.len() as u64) < BYTES_MAX);
    for (encoding, bomb) in [("gzip", bomb), ("br", BROTLI_BOMB.to_vec())] {
        let server = encoded_server(encoding, bomb);
        assert_eq!(read_path(&server, "/").await.unwrap_err().kind(), HttpErrorKind::TooLarge);
    }
}

#[tokio::test]
async fn broken_and_unrequested_encodings_are_refused() {
    let mut broken = gzip("jaato ".repeat(5000).as_bytes());
    broken.truncate(broken.len() / 2);
    // The window of the last body has 1 GiB.
    let half = BROTLI_TEXT[..BROTLI_TEXT.len() / 2].to_vec();
    let trailing = [BROTLI_TEXT, b"more"].concat();
    let large_window = b"\x11\x1e\x03".to_vec();
    for (encoding, body) in [("gzip", broken), ("br", half), ("br", trailing), ("br", large_window)]
    {
        let server = encoded_server(encoding, body);
        let error = read_path(&server, "/").await.unwrap_err();
        assert_eq!(error.kind(), HttpErrorKind::Transfer);
        assert!(error.to_string().contains("cannot decompress the body"), "{error}");
    }
    let server = encoded_server("zstd", vec![0x5b; 1024]);
    let error = read_path(&server, "/").await.unwrap_err();
    assert!(error.to_string().contains("encoding `zstd`, which was not requested"), "{error}");
}

/// Sends one byte after another for as long as the client reads.
fn send_endless_body(stream: &mut TcpStream) {
    send(stream, "HTTP/1.1 200 OK\r\n\r\n");
    while stream.write_all(b"x").is_ok() {
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[tokio::test]
async fn body_without_end_is_ended_by_the_total_time_or_the_limit() {
    let server = Server::start(|_, stream| send_endless_body(stream));
    let mut slow = web_request(&server.url("/"));
    slow.limits.total = Some(Duration::from_millis(300));
    let error = client_for_host("127.0.0.1").send(slow).await.unwrap().bytes().await.unwrap_err();
    assert_eq!(error.kind(), HttpErrorKind::Timeout);
    assert!(error.to_string().ends_with("within 0.3 s"), "{error}");
    let server = Server::start(|_, stream| {
        send(stream, "HTTP/1.1 200 OK\r\n\r\n");
        while stream.write_all(&[b'x'; 1024]).is_ok() {}
    });
    assert_eq!(read_path(&server, "/").await.unwrap_err().kind(), HttpErrorKind::TooLarge);
}

#[tokio::test]
async fn certificate_is_checked_unless_the_check_is_skipped() {
    let url = format!("https://localhost:{}/", secure_server());
    let error = client_for_host("localhost").send(web_request(&url)).await.unwrap_err();
    assert_eq!(error.kind(), HttpErrorKind::Tls);
    let servers = ReachableServers::Public(PublicServers::new(["localhost".to_owned()]));
    let unchecked = Client::new(HttpClientSettings {
        proxies: Proxies::without_proxies(),
        servers,
        certificates: CertificateCheck::Skipped,
        ..HttpClientSettings::default()
    });
    let response = unchecked.send(web_request(&url)).await.unwrap();
    assert_eq!(response.bytes().await.unwrap(), "secure");
}
