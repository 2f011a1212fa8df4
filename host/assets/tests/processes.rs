//! Tests several processes and a full disk. The test program itself is the other process.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::{Arc, mpsc};

use crate::support::server::{Server, send, serve_file};
use crate::support::{AssetFixture, no_python, test_asset, test_content, url_source};
use jaato_assets::{AssetErrorKind, AssetEvent, AssetReporter, AssetStore};
use parking_lot::Mutex;

const LENGTH: usize = 300_000;

/// Returns a run of [`child`] for this place and URL, after a shell prefix.
fn fetch_command(place: &AssetFixture, url: &str, shell: &str) -> Command {
    let program = std::env::current_exe().unwrap();
    let mut command = Command::new("sh");
    command
        .arg("-c")
        .arg(format!("{shell} exec \"$0\" --exact processes::child --nocapture"))
        .arg(program);
    command.env("JAATO_TEST_FOLDER", place.store.folder()).env("JAATO_TEST_URL", url);
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    command
}

/// Downloads a file and prints each event. Does nothing unless [`fetch_command`] starts it.
#[tokio::test]
async fn child() {
    let Ok(folder) = std::env::var("JAATO_TEST_FOLDER") else { return };
    let url = std::env::var("JAATO_TEST_URL").unwrap();
    let report: AssetReporter = Arc::new(|event| {
        if !matches!(event, AssetEvent::Progress { .. }) {
            println!("child: {event}");
        }
    });
    let store = AssetStore::new(folder);
    let fetcher = crate::support::fetcher(
        &store,
        jaato_http::NetworkAccess::Online,
        jaato_assets::DownloadPolicy::On,
        no_python,
    );
    match fetcher.fetch(&test_asset(&test_content(LENGTH), vec![url_source(url)]), &report).await {
        Ok(_) => println!("child: done"),
        Err(error) => println!("child: {error}"),
    }
}

/// Returns a child's own output, without the text of the test harness.
fn reported_line(line: &str) -> Option<String> {
    line.split_once("child: ").map(|(_, told)| told.to_owned())
}

#[test]
fn full_disk_keeps_the_received_bytes_for_the_next_fetch() {
    let (place, bytes) = (AssetFixture::new(), test_content(LENGTH));
    let served = bytes.clone();
    let server = Server::start(move |request, stream| serve_file(request, stream, &served));
    // No file may grow beyond 64 or 128 KiB (shells differ in the unit), so writing really fails.
    let mut command = fetch_command(&place, &server.url("/"), "trap '' XFSZ; ulimit -f 128;");
    let output = String::from_utf8(command.output().unwrap().stdout).unwrap();
    let last = output.lines().filter_map(reported_line).next_back().unwrap();
    let start = "no space left to write `DIR/small.gguf.part`: ";
    assert!(place.without_folder(&last).starts_with(start), "{output}");
    let kept = place.read_file("small.gguf.part").unwrap();
    assert!(kept.len() >= 64 * 1024 && bytes.starts_with(&kept), "{} bytes kept", kept.len());

    let output = fetch_command(&place, &server.url("/"), "").output().unwrap();
    assert!(String::from_utf8(output.stdout).unwrap().contains("child: done"));
    let range = server.received_requests()[1].header("range").map(str::to_owned);
    assert_eq!(range, Some(format!("bytes={}-", kept.len())));
    assert_eq!(place.read_file("small.gguf").unwrap(), bytes);
}

#[tokio::test]
async fn a_second_process_waits_for_the_first_and_fetches_nothing() {
    let (place, bytes) = (AssetFixture::new(), test_content(LENGTH));
    let (release, held) = mpsc::channel::<()>();
    let (served, held) = (bytes.clone(), Mutex::new(held));
    let server = Server::start(move |_, stream| {
        send(stream, format!("HTTP/1.1 200 OK\r\ncontent-length: {LENGTH}\r\n\r\n"));
        send(stream, &served[..100_000]);
        let _ = held.lock().recv();
        send(stream, &served[100_000..]);
    });
    let asset = test_asset(&bytes, vec![url_source(server.url("/"))]);
    let mut command = fetch_command(&place, &server.url("/"), "");
    let (arrived, is_there) = mpsc::channel();
    let report: AssetReporter = Arc::new(move |event| {
        if matches!(event, AssetEvent::Progress { .. }) {
            let _ = arrived.send(());
        }
    });
    // The child starts once the download has begun, and the rest arrives only after the child
    // waits.
    let other = std::thread::spawn(move || {
        is_there.recv().unwrap();
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut lines = lines.filter_map(|line| reported_line(&line.unwrap()));
        let first = lines.next().unwrap();
        drop(release);
        let rest: Vec<String> = lines.collect();
        child.wait().unwrap();
        (first, rest)
    });
    place.fetcher(no_python).fetch(&asset, &report).await.unwrap();
    let (first, rest) = tokio::task::spawn_blocking(|| other.join().unwrap()).await.unwrap();
    let waiting = "another jaato process uses `DIR/small.gguf.lock`; waiting for it";
    assert_eq!(place.without_folder(&first), waiting);
    assert_eq!(rest, ["done"]);
    assert_eq!(server.received_requests().len(), 1);
    assert_eq!(place.read_file("small.gguf").unwrap(), bytes);
}

#[tokio::test]
async fn an_import_does_not_wait_for_a_fetch() {
    let (place, bytes) = (AssetFixture::new(), test_content(LENGTH));
    let (release, held) = mpsc::channel::<()>();
    let (served, held) = (bytes.clone(), Mutex::new(held));
    let server = Server::start(move |request, stream| {
        let _ = held.lock().recv();
        serve_file(request, stream, &served);
    });
    let asset = test_asset(&bytes, vec![url_source(server.url("/"))]);
    let (fetcher, report) = (place.fetcher(no_python), place.event_reporter());
    let other = {
        let (store, asset) = (place.store.clone(), asset.clone());
        let file = place.folder.path().join("good");
        std::fs::write(&file, &bytes).unwrap();
        let (report, seen) = (place.event_reporter(), server);
        tokio::task::spawn_blocking(move || {
            while seen.received_requests().is_empty() {
                std::thread::yield_now();
            }
            let result = store.import_asset(&file, &asset, &report);
            drop(release);
            result
        })
    };
    fetcher.fetch(&asset, &report).await.unwrap();
    assert_eq!(other.await.unwrap().unwrap_err().kind(), AssetErrorKind::Busy);
}
