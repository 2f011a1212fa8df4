//! Tests the totals of `jaato ledger show`, and what it skips.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::io::Cursor;

use expect_test::expect;
use jaato_store::{LINE_BYTES_MAX, LedgerFileSummary, LedgerLine, LedgerReader};

fn summarize_text(text: &[u8], rows_max: usize, session: Option<&str>) -> LedgerFileSummary {
    let mut reader = LedgerReader::new(Cursor::new(text));
    let mut summary = LedgerFileSummary::new(rows_max, session.map(str::to_owned));
    while let Some(line) = reader.next_line().unwrap() {
        summary.add_line(line);
    }
    summary.finish()
}

fn summary_line(session: &str, turn: u64, rest: &str) -> String {
    let start = format!(r#"{{"v":1,"ts":"2026-11-21T19:40:0{turn}.000Z","session":"{session}""#);
    format!("{start},\"turn\":{turn},\"event_index\":1,{rest}}}\n")
}

fn turn_lines(session: &str, number: u64) -> String {
    let response = r#""stage":"response","model":"test/moon","step":1,"attempt":1,"prompt_tokens":20,"output_tokens":5,"total_tokens":25,"cached_tokens":8,"finish_reason":"stop","duration_ms":1"#;
    let failed = r#""stage":"api-error","model":"test/moon","step":1,"attempt":1,"error_kind":"timeout","transient":true,"retry_delay_ms":1"#;
    let denied =
        r#""stage":"permission-check","call_id":"c","tool":"t","allowed":false,"rule":"r""#;
    let call = r#""stage":"tool-call","step":1,"call_id":"c","tool":"t","source":"p","arguments_bytes":2,"result_bytes":2,"ok":false,"error_kind":"permission_denied","duration_ms":0"#;
    let end = r#""stage":"turn","model":"test/moon","outcome":"done","steps":1,"duration_ms":9"#;
    [failed, response, denied, call, end].map(|rest| summary_line(session, number, rest)).concat()
}

fn format_summary(summary: &LedgerFileSummary) -> String {
    let row = |row| format!("{}\n", serde_json::to_string(row).unwrap());
    let rows: String = summary.turns.iter().map(row).collect();
    format!("{rows}{}", serde_json::to_string(&summary.totals).unwrap())
}

#[test]
fn summary_has_a_row_per_turn_and_a_total() {
    let gc = summary_line(
        "b",
        2,
        r#""stage":"gc","reason":"threshold","source":"host","messages_removed":2,"messages_cut":0,"tokens_before":9,"tokens_after":3"#,
    );
    let text = turn_lines("a", 1) + &turn_lines("b", 1) + &gc;
    expect![[r#"
        {"session":"a","turn":1,"started":"2026-11-21T19:40:01.000Z","model":"test/moon","outcome":"done","error_kind":null,"requests":2,"failed_requests":1,"prompt_tokens":20,"cached_tokens":8,"output_tokens":5,"cost_micro_usd":0,"answers_without_cost":1,"tool_calls":1,"failed_tool_calls":1,"denied":1,"commands":0,"gcs":0}
        {"session":"b","turn":1,"started":"2026-11-21T19:40:01.000Z","model":"test/moon","outcome":"done","error_kind":null,"requests":2,"failed_requests":1,"prompt_tokens":20,"cached_tokens":8,"output_tokens":5,"cost_micro_usd":0,"answers_without_cost":1,"tool_calls":1,"failed_tool_calls":1,"denied":1,"commands":0,"gcs":0}
        {"session":"b","turn":2,"started":"2026-11-21T19:40:02.000Z","model":null,"outcome":null,"error_kind":null,"requests":0,"failed_requests":0,"prompt_tokens":0,"cached_tokens":0,"output_tokens":0,"cost_micro_usd":0,"answers_without_cost":0,"tool_calls":0,"failed_tool_calls":0,"denied":0,"commands":0,"gcs":1}
        {"requests":4,"failed_requests":2,"prompt_tokens":40,"cached_tokens":16,"output_tokens":10,"cost_micro_usd":0,"answers_without_cost":2,"tool_calls":2,"failed_tool_calls":2,"denied":2,"commands":0,"gcs":1}"#]]
    .assert_eq(&format_summary(&summarize_text(text.as_bytes(), 10, None)));
}

#[test]
fn the_last_turns_are_listed_and_all_are_counted() {
    let text: String = (1..=5).map(|number| turn_lines("a", number)).collect();
    let summary = summarize_text(text.as_bytes(), 2, None);
    let numbers: Vec<_> = summary.turns.iter().map(|row| row.turn).collect();
    assert_eq!((numbers, summary.turns_read), (vec![4, 5], 5));
    assert_eq!(summary.totals.requests, 10);
}

#[test]
fn turns_of_sessions_that_run_side_by_side_are_told_apart() {
    let (one, two) = (turn_lines("a", 1), turn_lines("b", 1));
    let mixed: String =
        one.lines().zip(two.lines()).map(|(one, two)| format!("{one}\n{two}\n")).collect();
    let summary = summarize_text(mixed.as_bytes(), 10, None);
    assert_eq!(summary.turns.len(), 2);
    assert_eq!(summary.turns[0].totals, summary.turns[1].totals);
}

#[test]
fn session_is_selected_by_the_beginning_of_its_id() {
    let text = turn_lines("abc", 1) + &turn_lines("abd", 1) + &turn_lines("x", 1);
    assert_eq!(summarize_text(text.as_bytes(), 10, Some("ab")).turns_read, 2);
    assert_eq!(summarize_text(text.as_bytes(), 10, Some("abd")).totals.requests, 2);
    assert_eq!(summarize_text(text.as_bytes(), 10, Some("no")).turns_read, 0);
}

#[test]
fn invalid_lines_are_skipped_and_counted() {
    let text = [
        turn_lines("a", 1).as_bytes(),
        b"\n{\"v\":1,\"ts\"\n\xff\xfe\n[]\n{\"stage\":\"response\",\"ts\":12.5}\n",
        turn_lines("a", 2).as_bytes(),
        b"{\"v\":1,\"torn",
    ]
    .concat();
    let summary = summarize_text(&text, 10, None);
    assert_eq!((summary.bad_lines, summary.first_bad_line), (5, Some(7)));
    assert_eq!(summary.totals.requests, 4);
}

#[test]
fn a_line_may_be_as_long_as_its_limit_and_no_longer() {
    let padded = |bytes: usize| {
        let start = summary_line("a", 1, r#""stage":"moon""#);
        let start = start.trim_end().trim_end_matches('}');
        let rest = r#","x":""}"#;
        format!("{start},\"x\":\"{}\"}}\n", "y".repeat(bytes - start.len() - rest.len() - 1))
    };
    let text = padded(LINE_BYTES_MAX) + &padded(LINE_BYTES_MAX + 1) + &padded(3_000_000) + "{}\n";
    let mut reader = LedgerReader::new(Cursor::new(text));
    assert!(matches!(reader.next_line().unwrap(), Some(LedgerLine::Record(_))));
    for expected in 2..=4 {
        assert_eq!(reader.next_line().unwrap(), Some(LedgerLine::Bad { number: expected }));
    }
    assert_eq!(reader.next_line().unwrap(), None);
}
