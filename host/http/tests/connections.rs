//! Tests how connections succeed or fail: refused, silent, proxied, secure.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use crate::support::{Server, answer, send};
use jaato_http::{
    Client, HttpClientSettings, HttpError, HttpErrorKind, NetworkAccess, OutgoingRequest, Proxies,
    Retry,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

fn client_with_variables(variables: &[(&str, &str)]) -> Client {
    let proxies = Proxies::from_variables(|name| {
        let found = variables.iter().find(|(key, _)| *key == name);
        found.map(|(_, value)| (*value).to_owned())
    });
    Client::new(HttpClientSettings { proxies, ..HttpClientSettings::default() })
}

async fn get_text(client: &Client, url: &str) -> Result<String, HttpError> {
    let response = client.send(OutgoingRequest::get(url).unwrap()).await?;
    Ok(String::from_utf8(response.bytes().await?.to_vec()).unwrap())
}

/// Returns a port on which nothing listens.
fn closed_port() -> u16 {
    TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port()
}

#[tokio::test]
async fn a_refused_connection_says_so_and_hides_the_password() {
    let port = closed_port();
    let url = format!("http://me:hunter2@127.0.0.1:{port}/x?key=s3cret");
    let error = get_text(&client_with_variables(&[]), &url).await.unwrap_err();
    assert_eq!((error.kind(), error.retry()), (HttpErrorKind::Connect, Retry::Permanent));
    let expected = format!("cannot connect to `http://…@127.0.0.1:{port}/x?…`: connection refused");
    assert_eq!(error.to_string().to_lowercase(), expected);
    let shown = format!("{error:?} {:?}", error.hint());
    assert!(!shown.contains("hunter2") && !shown.contains("s3cret"), "{shown}");
}

#[tokio::test]
async fn an_unknown_host_is_a_lookup_error() {
    // Longer than a label may be, so the resolver rejects it without a query.
    let url = format!("http://{}.example/", "a".repeat(64));
    let error = get_text(&client_with_variables(&[]), &url).await.unwrap_err();
    assert_eq!(error.kind(), HttpErrorKind::Lookup);
    assert_eq!(
        error.to_string(),
        format!("cannot reach `{url}`: no address is known for its host")
    );
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_host_that_does_not_answer_times_out() {
    // A listener that accepts nothing and has a full queue. Linux then drops new connections.
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    let mut queue = Vec::new();
    while let Ok(stream) = TcpStream::connect_timeout(&address, Duration::from_millis(300)) {
        queue.push(stream);
        assert!(queue.len() < 100, "the queue never fills");
    }
    let connect_timeout = Duration::from_millis(300);
    let proxies = Proxies::without_proxies();
    let client = Client::new(HttpClientSettings {
        connect_timeout,
        proxies,
        ..HttpClientSettings::default()
    });
    let url = format!("http://{address}/");
    let error = get_text(&client, &url).await.unwrap_err();
    assert_eq!((error.kind(), error.retry()), (HttpErrorKind::Timeout, Retry::Temporary));
    assert_eq!(error.to_string(), format!("cannot connect to `{url}` within 0.3 s"));
}

#[tokio::test]
async fn offline_sends_nothing() {
    let server = Server::start(|_, stream| send(stream, answer("200 OK", "", "")));
    let client = Client::new(HttpClientSettings {
        network: NetworkAccess::Offline,
        ..HttpClientSettings::default()
    });
    let error = get_text(&client, &server.url("/")).await.unwrap_err();
    assert_eq!((error.kind(), error.retry()), (HttpErrorKind::Offline, Retry::Permanent));
    assert_eq!(error.hint().as_deref(), Some("run it without `--offline`"));
    assert!(server.received_requests().is_empty());
}

#[tokio::test]
async fn a_proxy_gets_the_whole_url_and_its_login() {
    let proxy = Server::start(|_, stream| send(stream, answer("200 OK", "", "proxied")));
    let value = format!("http://me:pw@127.0.0.1:{}", proxy.port());
    let client = client_with_variables(&[("http_proxy", &value)]);
    assert_eq!(get_text(&client, "http://h.invalid/x").await.unwrap(), "proxied");
    let seen = proxy.received_requests().remove(0);
    assert_eq!(seen.line, "GET http://h.invalid/x HTTP/1.1");
    assert_eq!(seen.header("proxy-authorization"), Some("Basic bWU6cHc="));
}

#[tokio::test]
async fn no_proxy_and_loopback_are_reached_directly() {
    let proxy = Server::start(|_, stream| send(stream, answer("200 OK", "", "proxied")));
    let server = Server::start(|_, stream| send(stream, answer("200 OK", "", "direct")));
    let value = format!("127.0.0.1:{}", proxy.port());
    // An address of this machine that does not count as loopback.
    let url = format!("http://0.0.0.0:{}/", server.port());
    let through = client_with_variables(&[("HTTP_PROXY", &value)]);
    assert_eq!(get_text(&through, &url).await.unwrap(), "proxied");
    assert_eq!(get_text(&through, &server.url("/")).await.unwrap(), "direct");
    let excepted =
        client_with_variables(&[("HTTP_PROXY", &value), ("no_proxy", "h.example,0.0.0.0")]);
    assert_eq!(get_text(&excepted, &url).await.unwrap(), "direct");
}

#[tokio::test]
async fn a_dead_proxy_is_named_without_its_password() {
    let port = closed_port();
    let value = format!("http://me:hunter2@127.0.0.1:{port}");
    let error = get_text(&client_with_variables(&[("http_proxy", &value)]), "http://h.invalid/")
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string().to_lowercase(),
        format!(
            "cannot connect to `http://h.invalid/` through the proxy `http://…@127.0.0.1:{port}/`: \
             connection refused"
        )
    );
}

#[tokio::test]
async fn a_secure_request_asks_the_proxy_for_a_tunnel() {
    let proxy = Server::start(|_, stream| {
        send(stream, answer("407 Proxy Authentication Required", "", ""));
    });
    let value = format!("http://127.0.0.1:{}", proxy.port());
    let client = client_with_variables(&[("https_proxy", &value)]);
    let error = get_text(&client, "https://h.invalid/x").await.unwrap_err();
    assert_eq!(proxy.received_requests()[0].line, "CONNECT h.invalid:443 HTTP/1.1");
    assert_eq!(
        error.to_string(),
        format!(
            "cannot connect to `https://h.invalid/x` through the proxy `{value}/`: \
             proxy authorization required"
        )
    );
}

#[tokio::test]
async fn invalid_proxy_fails_only_the_requests() {
    let client = client_with_variables(&[("HTTP_PROXY", "gopher://h")]);
    let error = get_text(&client, "http://h.invalid/").await.unwrap_err();
    assert_eq!(error.kind(), HttpErrorKind::BadProxy);
}

#[tokio::test]
async fn server_without_tls_is_reported_as_such() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 1024]);
            send(&mut stream, "HTTP/1.1 400 Bad Request\r\n\r\n");
        }
    });
    let error = get_text(&client_with_variables(&[]), &format!("https://127.0.0.1:{port}/?k=s"))
        .await
        .unwrap_err();
    assert_eq!((error.kind(), error.retry()), (HttpErrorKind::Tls, Retry::Permanent));
    assert_eq!(
        error.to_string(),
        format!(
            "cannot connect securely to `https://127.0.0.1:{port}/?…`: the server does not speak tls"
        )
    );
}

/// A self-signed certificate for `localhost`, valid until 2126, only for these tests.
const CERTIFICATE: &str = include_str!("support/localhost.pem");
const KEY: &str = include_str!("support/localhost.key.pem");

/// Starts a server with that certificate.
pub(crate) fn secure_server() -> u16 {
    let certificate = CertificateDer::from_pem_slice(CERTIFICATE.as_bytes()).unwrap();
    let key = PrivateKeyDer::from_pem_slice(KEY.as_bytes()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let connection = rustls::ServerConnection::new(config.clone()).unwrap();
            let mut stream = rustls::StreamOwned::new(connection, stream);
            if stream.read(&mut [0; 1024]).is_ok() {
                let _ = std::io::Write::write_all(&mut stream, &answer("200 OK", "", "secure"));
                stream.conn.send_close_notify();
                let _ = std::io::Write::flush(&mut stream);
            }
        }
    });
    port
}

#[tokio::test]
async fn certificate_of_an_unknown_issuer_is_refused_with_a_hint() {
    let port = secure_server();
    let error = get_text(&client_with_variables(&[]), &format!("https://localhost:{port}/"))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), HttpErrorKind::Tls, "{error}");
    assert!(error.hint().unwrap().contains("SSL_CERT_FILE"), "{error}");
}

/// Certificates are read once per process, so each case is a run of [`child_process_entry`] with
/// its variables.
#[track_caller]
fn run_child(url: &str, certificates: &str) -> String {
    let program = std::env::current_exe().unwrap();
    let mut command = Command::new(program);
    command
        .args(["--exact", "connections::child_process_entry", "--nocapture"])
        .env("JAATO_TEST_URL", url);
    command.env("SSL_CERT_FILE", certificates).env_remove("SSL_CERT_DIR");
    let output = String::from_utf8(command.output().unwrap().stdout).unwrap();
    let (_, rest) = output.split_once("child: ").expect("the child tells its result");
    rest.lines().next().unwrap().to_owned()
}

/// Does nothing unless [`run_child`] starts it.
#[tokio::test]
async fn child_process_entry() {
    let Ok(url) = std::env::var("JAATO_TEST_URL") else { return };
    let result = get_text(&client_with_variables(&[]), &url).await;
    println!("child: {}", result.unwrap_or_else(|error| error.to_string()));
}

#[cfg(target_os = "linux")]
#[test]
fn system_certificates_decide_which_servers_are_trusted() {
    let port = secure_server();
    let folder = tempfile::tempdir().unwrap();
    let trusted = folder.path().join("trusted.pem");
    std::fs::write(&trusted, CERTIFICATE).unwrap();
    let url = format!("https://localhost:{port}/");
    assert_eq!(run_child(&url, trusted.to_str().unwrap()), "secure");
    let other_name = format!("https://127.0.0.1:{port}/");
    assert_eq!(
        run_child(&other_name, trusted.to_str().unwrap()),
        format!("cannot connect securely to `{other_name}`: its certificate is for another name")
    );
}

#[cfg(target_os = "linux")]
#[test]
fn without_any_certificates_plain_http_works_and_https_says_what_is_missing() {
    let server = Server::start(|_, stream| send(stream, answer("200 OK", "", "plain")));
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing.pem");
    assert_eq!(run_child(&server.url("/"), missing.to_str().unwrap()), "plain");
    assert_eq!(
        run_child("https://localhost:1/", missing.to_str().unwrap()),
        "cannot set up secure connections: this system has no root certificates"
    );
}
