//! Tests of tool calls in the fragments that servers send.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use jaato_plugin_sdk::ErrorKind;
use jaato_plugin_sdk_provider::{ARGUMENTS_BYTES_MAX, CALLS_MAX, CallFragment, CallFragments};

type TestFragment<'a> = (Option<u64>, &'a str, &'a str, &'a str);

/// Takes index, id, name and arguments of each piece, and expects `id name arguments` of each call.
#[track_caller]
fn check_calls(pieces: &[TestFragment<'_>], expected: &[&str]) {
    let mut fragments = CallFragments::new();
    for &(index, id, name, arguments) in pieces {
        fragments
            .add_fragment(&CallFragment { index, id, name, arguments, ..CallFragment::default() })
            .unwrap();
    }
    let calls = fragments.finish();
    let shown: Vec<_> =
        calls.iter().map(|call| format!("{} {} {}", call.id, call.name, call.arguments)).collect();
    assert_eq!(shown, expected);
}

const ZERO: Option<u64> = Some(0);
const ONE: Option<u64> = Some(1);

#[test]
fn interleaved_argument_fragments_are_joined_by_index() {
    check_calls(
        &[
            (ZERO, "a", "one", ""),
            (ONE, "b", "two", "{\"x\""),
            (ZERO, "", "", "{\"y\":"),
            (ONE, "", "", ":1}"),
            (ZERO, "", "", "2}"),
        ],
        &["a one {\"y\":2}", "b two {\"x\":1}"],
    );
}

#[test]
fn call_in_a_single_fragment_is_read() {
    check_calls(&[(ZERO, "a", "one", "{}")], &["a one {}"]);
    check_calls(&[(None, "", "one", "{\"x\":1}")], &["call-0 one {\"x\":1}"]);
}

#[test]
fn calls_with_the_same_index_are_separated_by_id() {
    check_calls(
        &[(ZERO, "a", "one", "{}"), (ZERO, "b", "one", "{"), (ZERO, "", "", "}")],
        &["a one {}", "b one {}"],
    );
}

#[test]
fn calls_without_index_and_id_are_separated_by_name() {
    check_calls(
        &[
            (None, "", "one", "{\"x\""),
            (None, "", "", ":1}"),
            (None, "", "one", "{}"),
            (None, "", "two", ""),
        ],
        &["call-0 one {\"x\":1}", "call-1 one {}", "call-2 two {}"],
    );
}

#[test]
fn calls_without_index_are_separated_by_id() {
    check_calls(
        &[
            (None, "a", "one", "{"),
            (None, "b", "two", "{"),
            (None, "a", "", "}"),
            (None, "b", "", "}"),
        ],
        &["a one {}", "b two {}"],
    );
}

#[test]
fn id_and_name_may_repeat_in_each_fragment() {
    check_calls(
        &[(ZERO, "a", "one", ""), (ZERO, "a", "one", "{\"x\":"), (ZERO, "a", "one", "1}")],
        &["a one {\"x\":1}"],
    );
}

#[test]
fn name_split_over_fragments_is_joined() {
    check_calls(
        &[(ZERO, "a", "get_", ""), (ZERO, "", "time", ""), (ZERO, "", "", "{}")],
        &["a get_time {}"],
    );
}

#[test]
fn complete_call_with_repeated_id_is_dropped_only_if_identical() {
    for index in [None, ZERO] {
        let one = (index, "a", "one", "{\"x\":1}");
        check_calls(&[one, one], &["a one {\"x\":1}"]);
        check_calls(
            &[one, (index, "a", "one", "{\"x\":2}")],
            &["a one {\"x\":1}", "call-1 one {\"x\":2}"],
        );
        check_calls(
            &[(index, "a", "one", "{}"), (index, "a", "two", "{}")],
            &["a one {}", "call-1 two {}"],
        );
    }
    check_calls(
        &[(None, "", "one", "{}"), (None, "", "one", "{}")],
        &["call-0 one {}", "call-1 one {}"],
    );
}

#[test]
fn missing_arguments_become_an_empty_object() {
    check_calls(
        &[(ZERO, "a", "one", ""), (ONE, "b", "two", " \n"), (Some(2), "c", "three", "null")],
        &["a one {}", "b two {}", "c three {}"],
    );
}

#[test]
fn id_wins_over_index_when_fragments_are_assigned() {
    check_calls(
        &[(ZERO, "a", "one", "{\"x\""), (ONE, "a", "", ":1"), (Some(2), "a", "one", "}")],
        &["a one {\"x\":1}"],
    );
    check_calls(
        &[
            (ZERO, "a", "one", "{"),
            (ONE, "b", "two", "{"),
            (ZERO, "b", "", "}"),
            (ONE, "a", "", "}"),
        ],
        &["a one {}", "b two {}"],
    );
}

#[test]
fn fragment_without_a_name_does_not_start_a_call() {
    check_calls(&[(ZERO, "a", "one", "{"), (ZERO, "b", "", "}")], &["a one {}"]);
    check_calls(&[(ZERO, "a", "one", "{"), (ONE, "", "", "}")], &["a one {}"]);
    check_calls(&[(ZERO, "a", "one", "{"), (ONE, "b", "", "}")], &["a one {}"]);
    check_calls(&[(ZERO, "a", "one", "{}"), (ONE, "b", "", ""), (ONE, "", "", " ")], &["a one {}"]);
    check_calls(&[(None, "", "", ""), (ZERO, "", "one", "{}")], &["call-0 one {}"]);
    // It cannot belong to another call, so the model learns that the tool does not exist.
    check_calls(&[(ZERO, "a", "", "{}")], &["a  {}"]);
}

#[test]
fn a_name_may_come_after_the_arguments() {
    check_calls(&[(ZERO, "a", "", "{\"x\":1}"), (ZERO, "", "one", "")], &["a one {\"x\":1}"]);
}

#[test]
fn different_name_starts_a_call_and_repeated_name_continues_it() {
    check_calls(
        &[(None, "", "one", ""), (None, "", "two", "")],
        &["call-0 one {}", "call-1 two {}"],
    );
    check_calls(&[(None, "", "one", ""), (None, "", "one", "{}")], &["call-0 one {}"]);
}

#[test]
fn braces_in_texts_do_not_end_arguments() {
    check_calls(
        &[(ZERO, "", "one", "{\"x\":\"}\\\"}"), (ZERO, "", "one", "\"}"), (ZERO, "", "one", "{}")],
        &["call-0 one {\"x\":\"}\\\"}\"}", "call-1 one {}"],
    );
}

/// Like [`check_calls`], for lists.
#[track_caller]
fn check_fragment_lists(lists: &[&[TestFragment<'_>]], expected: &[&str]) {
    let mut fragments = CallFragments::new();
    for list in lists {
        let piece = |&(index, id, name, arguments)| CallFragment {
            index,
            id,
            name,
            arguments,
            ..CallFragment::default()
        };
        fragments.add_fragments(&list.iter().map(piece).collect::<Vec<_>>()).unwrap();
    }
    let shown: Vec<_> = fragments
        .finish()
        .iter()
        .map(|call| format!("{} {} {}", call.id, call.name, call.arguments))
        .collect();
    assert_eq!(shown, expected);
}

#[test]
fn entries_of_one_list_are_separate_calls() {
    let expected = ["call-0 one {\"x\":1}", "call-1 two {\"y\":2}"];
    for index in [None, ZERO] {
        check_fragment_lists(
            &[
                &[(index, "", "one", ""), (index, "", "two", "")],
                &[(index, "", "", "{\"x\""), (index, "", "", "{\"y\"")],
                &[(index, "", "", ":1}"), (index, "", "", ":2}")],
            ],
            &expected,
        );
    }
    check_fragment_lists(
        &[&[(ZERO, "a", "one", "{}"), (ZERO, "a", "one", "{}")]],
        &["a one {}", "call-1 one {}"],
    );
    check_fragment_lists(
        &[&[(ZERO, "a", "one", "{")], &[(ZERO, "", "", "}"), (ONE, "b", "two", "{}")]],
        &["a one {}", "b two {}"],
    );
}

#[test]
fn truncated_call_without_arguments_gets_no_empty_object() {
    let cut = |pieces: &[TestFragment<'_>]| {
        let mut fragments = CallFragments::new();
        for &(index, id, name, arguments) in pieces {
            fragments
                .add_fragment(&CallFragment {
                    index,
                    id,
                    name,
                    arguments,
                    ..CallFragment::default()
                })
                .unwrap();
        }
        let calls = fragments.finish_truncated();
        calls.iter().map(|call| call.arguments.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(cut(&[(ZERO, "a", "one", ""), (ONE, "b", "two", " ")]), ["{}", "\"\""]);
    assert_eq!(cut(&[(ZERO, "a", "one", "{\"x\": 1}")]), ["{\"x\":1}"]);
    assert_eq!(cut(&[(ZERO, "a", "one", "{\"x\"")]), ["\"{\\\"x\\\"\""]);
    assert!(cut(&[]).is_empty());
}

#[test]
fn invalid_json_arguments_are_kept_as_text() {
    check_calls(&[(ZERO, "a", "one", "{\"x\": tru")], &["a one \"{\\\"x\\\": tru\""]);
    check_calls(&[(ZERO, "a", "one", "[1]")], &["a one [1]"]);
}

#[test]
fn missing_or_duplicate_call_ids_are_replaced_by_unique_ones() {
    check_calls(
        &[
            (ZERO, "", "one", "{}"),
            (ONE, "call-0", "two", "{}"),
            (Some(2), "call-0", "three", "{}"),
        ],
        &["call-0x one {}", "call-0 two {}", "call-2 three {}"],
    );
}

#[test]
fn the_number_of_calls_is_bounded() {
    let mut fragments = CallFragments::new();
    let mut push = |number: usize| {
        let id = format!("id-{number}");
        fragments.add_fragment(&CallFragment {
            id: &id,
            name: "one",
            arguments: "{}",
            ..CallFragment::default()
        })
    };
    assert!((0..CALLS_MAX).all(|number| push(number) == Ok(true)));
    assert_eq!(push(CALLS_MAX).unwrap_err().kind, ErrorKind::LimitReached);
}

#[test]
fn the_bytes_of_arguments_are_bounded() {
    let push = |bytes: usize| {
        let arguments = "x".repeat(bytes);
        CallFragments::new()
            .add_fragment(&CallFragment { arguments: &arguments, ..CallFragment::default() })
    };
    assert_eq!(push(ARGUMENTS_BYTES_MAX), Ok(true));
    assert_eq!(push(ARGUMENTS_BYTES_MAX + 1).unwrap_err().kind, ErrorKind::LimitReached);
}
