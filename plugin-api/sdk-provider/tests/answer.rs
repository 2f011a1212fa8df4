//! Tests of answers that arrive in pieces, and of their completions.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use jaato_plugin_sdk::serde_json::json;
use jaato_plugin_sdk::types::{Delta, FinishReason, Part, ToolCall, Usage};
use jaato_plugin_sdk_provider::StreamingAnswer;

fn tool_call(id: &str) -> ToolCall {
    ToolCall::new(id, "run", json!({}))
}

#[track_caller]
fn check_parts(answer: StreamingAnswer, expected: &[Part]) {
    assert_eq!(answer.finish(FinishReason::Stop).parts, expected);
}

#[test]
fn signature_after_a_thought_signs_it_and_emits_no_delta() {
    let mut answer = StreamingAnswer::new();
    assert_eq!(answer.add_thought("hm", None), Some(Delta::thought("hm")));
    assert_eq!(answer.add_thought("", Some("sig")), None);
    answer.add_text("Yes.");
    check_parts(answer, &[Part::thought("hm").with_signature("sig"), Part::text("Yes.")]);
}

#[test]
fn signature_pieces_are_joined_even_after_the_end_of_the_part() {
    let mut answer = StreamingAnswer::new();
    answer.add_thought("hm", None);
    assert!(answer.sign_last_part("si"));
    answer.end_part();
    assert!(answer.sign_last_part("g"));
    check_parts(answer, &[Part::thought("hm").with_signature("sig")]);
}

#[test]
fn a_signature_without_a_thought_makes_an_empty_one() {
    let mut answer = StreamingAnswer::new();
    assert_eq!(answer.add_thought("", Some("sig")), None);
    answer.add_text("Yes.");
    assert_eq!(answer.add_thought("", Some("again")), None);
    let expected = [
        Part::thought("").with_signature("sig"),
        Part::text("Yes."),
        Part::thought("").with_signature("again"),
    ];
    check_parts(answer, &expected);
    // A thought that is signed in pieces must be started first.
    let mut answer = StreamingAnswer::new();
    assert!(!answer.sign_last_part("sig"), "there is nothing to sign");
    answer.begin_thought();
    assert!(answer.sign_last_part("si") && answer.sign_last_part("g"));
    check_parts(answer, &[Part::thought("").with_signature("sig")]);
}

#[test]
fn thoughts_with_different_signatures_are_separate_parts() {
    let mut answer = StreamingAnswer::new();
    answer.add_thought("a", Some("one"));
    answer.add_thought("b", Some("one"));
    answer.add_thought("c", Some("two"));
    answer.add_thought("d", None);
    let expected = [
        Part::thought("ab").with_signature("one"),
        Part::thought("c").with_signature("two"),
        Part::thought("d"),
    ];
    check_parts(answer, &expected);
}

#[test]
fn consecutive_blocks_of_the_same_kind_stay_separate() {
    let mut answer = StreamingAnswer::new();
    answer.begin_text();
    answer.add_text("o");
    answer.add_text("ne");
    answer.begin_text();
    answer.add_text("two");
    answer.end_part();
    answer.add_text("three");
    answer.begin_thought();
    answer.add_thought("hm", None);
    answer.end_part();
    answer.add_thought("so", None);
    let texts = ["one", "two", "three"].map(Part::text);
    check_parts(answer, &[&texts[..], &[Part::thought("hm"), Part::thought("so")]].concat());
}

#[test]
fn empty_part_is_kept_only_if_signed() {
    let mut answer = StreamingAnswer::new();
    answer.begin_text();
    answer.begin_thought();
    answer.begin_text();
    assert!(answer.sign_last_part("sig"));
    answer.begin_text();
    assert_eq!((answer.add_text(""), answer.add_thought("", None)), (None, None));
    check_parts(answer, &[Part::text("").with_signature("sig")]);
}

#[test]
fn opaque_part_keeps_its_position_and_cannot_be_signed() {
    let mut answer = StreamingAnswer::new();
    answer.add_text("a");
    answer.add_opaque(json!({ "id": "rs_1" }));
    answer.add_text("b");
    answer.add_opaque(json!({ "id": "rs_2" }));
    assert!(!answer.sign_last_part("sig"), "an opaque part has no signature");
    let [one, two] = ["rs_1", "rs_2"].map(|id| Part::opaque(json!({ "id": id })));
    check_parts(answer, &[Part::text("a"), one, Part::text("b"), two]);
}

#[test]
fn tool_calls_can_be_signed() {
    let mut answer = StreamingAnswer::new();
    assert_eq!(answer.add_call(tool_call("a")), Delta::ToolCall(tool_call("a")));
    assert!(answer.sign_last_part("sig"));
    answer.add_call(tool_call("b"));
    let expected =
        [Part::ToolCall(tool_call("a")).with_signature("sig"), Part::ToolCall(tool_call("b"))];
    check_parts(answer, &expected);
}

#[test]
fn finish_reason_depends_on_tool_calls() {
    use FinishReason as R;
    for (said, with_calls, without) in [
        (R::Stop, R::ToolUse, R::Stop),
        (R::ToolUse, R::ToolUse, R::Stop),
        (R::MaxTokens, R::MaxTokens, R::MaxTokens),
        (R::ContextExceeded, R::ContextExceeded, R::ContextExceeded),
        (R::Safety, R::ToolUse, R::Safety),
        (R::Refused, R::ToolUse, R::Refused),
        (R::Paused, R::ToolUse, R::Paused),
        (R::Error, R::ToolUse, R::Error),
        (R::Cancelled, R::ToolUse, R::Cancelled),
        (R::Unknown, R::ToolUse, R::Unknown),
    ] {
        let mut answer = StreamingAnswer::new();
        answer.add_text("a");
        assert_eq!(answer.finish(said).finish_reason, without, "{said:?}");
        let mut answer = StreamingAnswer::new();
        answer.add_call(tool_call("a"));
        assert_eq!(answer.finish(said).finish_reason, with_calls, "{said:?} next to a call");
    }
}

#[test]
fn unknown_finish_word_is_kept_unless_there_are_calls() {
    let mut answer = StreamingAnswer::new();
    answer.set_usage(Usage { output_tokens: 7, ..Usage::default() });
    let completion = answer.finish_with_word("moon");
    assert_eq!(completion.finish_reason, FinishReason::Unknown);
    assert_eq!(completion.finish_word.as_deref(), Some("moon"));
    assert_eq!(completion.usage.output_tokens, 7);
    let mut answer = StreamingAnswer::new();
    answer.add_call(tool_call("a"));
    let completion = answer.finish_with_word("moon");
    assert_eq!((completion.finish_reason, completion.finish_word), (FinishReason::ToolUse, None));
}

#[test]
fn parts_are_counted_during_streaming() {
    let mut answer = StreamingAnswer::new();
    assert!(answer.is_empty());
    answer.add_text("a");
    answer.add_text("b");
    answer.add_opaque(json!(1));
    assert_eq!((answer.part_count(), answer.is_empty()), (2, false));
}

#[test]
fn calls_received_in_pieces_keep_their_positions() {
    let mut answer = StreamingAnswer::new();
    answer.begin_call();
    answer.add_thought("hm", Some("sig"));
    answer.begin_call();
    answer.add_text("so");
    let deltas = answer.end_calls(vec![tool_call("a"), tool_call("b"), tool_call("c")]);
    assert_eq!(deltas, ["a", "b", "c"].map(|id| Delta::ToolCall(tool_call(id))));
    let [a, b, c] = ["a", "b", "c"].map(|id| Part::ToolCall(tool_call(id)));
    check_parts(answer, &[a, Part::thought("hm").with_signature("sig"), b, Part::text("so"), c]);
}

#[test]
fn position_without_a_call_adds_no_part() {
    let mut answer = StreamingAnswer::new();
    answer.begin_call();
    answer.add_text("so");
    answer.begin_call();
    assert_eq!(answer.end_calls(vec![tool_call("a")]).len(), 1);
    answer.add_text("and");
    check_parts(answer, &[Part::ToolCall(tool_call("a")), Part::text("so"), Part::text("and")]);
    let mut declined = StreamingAnswer::new();
    declined.add_text("no");
    declined.begin_call();
    assert_eq!(declined.end_calls(Vec::new()), []);
    let completion = declined.finish(FinishReason::Refused);
    assert_eq!(completion.finish_reason, FinishReason::Refused);
    assert_eq!(completion.parts, [Part::text("no")]);
}
