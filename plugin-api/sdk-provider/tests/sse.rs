//! Tests of event streams that are split at every byte.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use jaato_plugin_sdk::ErrorKind;
use jaato_plugin_sdk_provider::{EVENT_BYTES_MAX, ServerEventReader};

/// Reads a stream that arrives in these pieces. Returns `name|data` for each event.
fn read_events<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<String> {
    let mut events = ServerEventReader::new();
    let read = pieces.into_iter().flat_map(|piece| events.push(piece).unwrap());
    read.map(|event| format!("{}|{}", event.name, event.data)).collect()
}

/// Reads the stream whole, byte by byte, and split at every one and every two positions.
#[track_caller]
fn check_events(stream: &str, expected: &[&str]) {
    let stream = stream.as_bytes();
    assert_eq!(read_events([stream]), expected, "whole");
    assert_eq!(read_events(stream.chunks(1)), expected, "byte by byte");
    for first in 0..=stream.len() {
        for second in first..=stream.len() {
            let pieces = [&stream[..first], &stream[first..second], &stream[second..]];
            assert_eq!(read_events(pieces), expected, "cut at {first} and {second}");
        }
    }
}

#[test]
fn events_end_with_a_blank_line() {
    check_events("data: {\"a\": 1}\n\ndata:[DONE]\n\n", &["message|{\"a\": 1}", "message|[DONE]"]);
}

#[test]
fn line_ends_may_be_crlf_and_cr() {
    check_events(
        "data: a\r\n\r\ndata: b\r\rdata: c\n\r\n",
        &["message|a", "message|b", "message|c"],
    );
}

#[test]
fn comments_blank_lines_ids_and_retry_fields_are_ignored() {
    check_events(
        ": OPENROUTER PROCESSING\n\n\n\n: ping\r\n\r\nid: 7\nretry: 10\ndata: a\n\nretry: 20\n\n",
        &["message|a"],
    );
}

#[test]
fn event_name_and_multiple_data_lines_are_combined() {
    check_events("event: error\ndata: {\ndata: }\n\ndata: b\n\n", &["error|{\n}", "message|b"]);
}

#[test]
fn multibyte_characters_survive_any_chunk_split() {
    check_events("\u{feff}data: größer 漢字 🦀\n\n", &["message|größer 漢字 🦀"]);
}

#[test]
fn unfinished_last_event_is_returned_at_the_end() {
    let last = |stream: &str| {
        let mut events = ServerEventReader::new();
        for byte in stream.as_bytes().chunks(1) {
            assert!(events.push(byte).unwrap().is_empty(), "{stream}");
        }
        events.finish().map(|event| format!("{}|{}", event.name, event.data))
    };
    for end in ["", "\n", "\r", "\r\n"] {
        assert_eq!(last(&format!("data: half a wo{end}")).unwrap(), "message|half a wo");
    }
    assert_eq!(last("event: error\ndata: a").unwrap(), "error|a");
    assert_eq!(last("data: a\nerr").unwrap(), "message|a");
    for none in ["", "\n", ": ping", "err", "id: 7\n"] {
        assert_eq!(last(none), None, "{none}");
    }
    check_events("data: a\n\ndata: half a wo", &["message|a"]);
}

#[test]
fn error_field_becomes_an_event_named_error() {
    check_events("error: {\"a\":1}\n\n", &["error|{\"a\":1}"]);
    check_events(
        "data: error: a\n\nerrors: b\r\nerr\ndata: c\n\n",
        &["message|error: a", "message|c"],
    );
    check_events("data: a\n\r\nerror:b\r\n\r\n", &["message|a", "error|b"]);
}

#[test]
fn json_without_a_field_name_becomes_event_data() {
    let report = "{\n  \"error\": {\n    \"code\": 503\n  }\n}";
    for (line_end, end) in [("\n", "\n\n"), ("\r\n", "\r\n\r\n"), ("\r", "\r\r")] {
        let stream = format!("data: a{end}{}{end}data: b{end}", report.replace('\n', line_end));
        // One blank at the start of each line belongs to the field.
        let expected = report.replace("\n ", "\n");
        check_events(&stream, &["message|a", &format!("message|{expected}"), "message|b"]);
    }
    check_events("[{\"a\":1}]\n\ndata: {\n\n", &["message|[{\"a\":1}]", "message|{"]);
    let mut events = ServerEventReader::new();
    assert!(events.push(report.as_bytes()).unwrap().is_empty());
    assert_eq!(events.finish().unwrap().data, report.replace("\n ", "\n"));
}

#[test]
fn invalid_utf8_is_replaced() {
    assert_eq!(read_events([&b"data: a\xffb\n\n"[..]]), ["message|a\u{fffd}b"]);
}

#[test]
fn an_event_may_be_as_large_as_the_limit_and_no_larger() {
    let fits = format!("data:{}\n\n", "x".repeat(EVENT_BYTES_MAX));
    assert_eq!(ServerEventReader::new().push(fits.as_bytes()).unwrap().len(), 1);
    let larger = format!("data:{}\n\n", "x".repeat(EVENT_BYTES_MAX + 1));
    let error = ServerEventReader::new().push(larger.as_bytes()).unwrap_err();
    assert_eq!(error.kind, ErrorKind::LimitReached);
    // A line without an end fails before the limit is far exceeded.
    let mut events = ServerEventReader::new();
    let piece = vec![b'x'; 1024 * 1024];
    events.push(b"data:").unwrap();
    assert!((0..10).any(|_| events.push(&piece).is_err()));
}
