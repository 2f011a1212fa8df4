//! Tool calls in the fragments that servers send.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use jaato_plugin_sdk::ErrorKind;
use jaato_plugin_sdk_provider::{ARGUMENTS_BYTES_MAX, CALLS_MAX, Fragment, Fragments};

type Piece<'a> = (Option<u64>, &'a str, &'a str, &'a str);

/// Index, id, name and arguments of each piece; `id name arguments` of each call.
#[track_caller]
fn check(pieces: &[Piece<'_>], expected: &[&str]) {
    let mut fragments = Fragments::new();
    for &(index, id, name, arguments) in pieces {
        fragments.push(&Fragment { index, id, name, arguments }).unwrap();
    }
    let calls = fragments.finish();
    let shown: Vec<_> =
        calls.iter().map(|call| format!("{} {} {}", call.id, call.name, call.arguments)).collect();
    assert_eq!(shown, expected);
}

const ZERO: Option<u64> = Some(0);
const ONE: Option<u64> = Some(1);

#[test]
fn arguments_are_joined_by_number_and_calls_may_alternate() {
    check(
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
fn a_call_may_come_whole() {
    check(&[(ZERO, "a", "one", "{}")], &["a one {}"]);
    check(&[(None, "", "one", "{\"x\":1}")], &["call-0 one {\"x\":1}"]);
}

#[test]
fn one_number_for_all_calls_is_told_apart_by_the_ids() {
    check(
        &[(ZERO, "a", "one", "{}"), (ZERO, "b", "one", "{"), (ZERO, "", "", "}")],
        &["a one {}", "b one {}"],
    );
}

#[test]
fn neither_numbers_nor_ids_are_told_apart_by_names() {
    check(
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
fn ids_without_numbers_tell_calls_apart() {
    check(
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
fn id_and_name_may_come_again_with_each_fragment() {
    check(
        &[(ZERO, "a", "one", ""), (ZERO, "a", "one", "{\"x\":"), (ZERO, "a", "one", "1}")],
        &["a one {\"x\":1}"],
    );
}

#[test]
fn a_name_may_come_in_pieces() {
    check(
        &[(ZERO, "a", "get_", ""), (ZERO, "", "time", ""), (ZERO, "", "", "{}")],
        &["a get_time {}"],
    );
}

#[test]
fn no_arguments_are_an_empty_object() {
    check(&[(ZERO, "a", "one", ""), (ONE, "b", "two", " \n")], &["a one {}", "b two {}"]);
}

#[test]
fn arguments_that_are_no_json_stay_what_the_model_gave() {
    check(&[(ZERO, "a", "one", "{\"x\": tru")], &["a one \"{\\\"x\\\": tru\""]);
    check(&[(ZERO, "a", "one", "[1]")], &["a one [1]"]);
}

#[test]
fn ids_that_are_missing_or_taken_are_made_and_unique() {
    check(
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
    let mut fragments = Fragments::new();
    let mut push = |number: usize| {
        let id = format!("id-{number}");
        fragments.push(&Fragment { index: None, id: &id, name: "one", arguments: "{}" })
    };
    assert!((0..CALLS_MAX).all(|number| push(number) == Ok(true)));
    assert_eq!(push(CALLS_MAX).unwrap_err().kind, ErrorKind::LimitReached);
}

#[test]
fn the_bytes_of_arguments_are_bounded() {
    let push = |bytes: usize| {
        let arguments = "x".repeat(bytes);
        Fragments::new().push(&Fragment { arguments: &arguments, ..Fragment::default() })
    };
    assert_eq!(push(ARGUMENTS_BYTES_MAX), Ok(true));
    assert_eq!(push(ARGUMENTS_BYTES_MAX + 1).unwrap_err().kind, ErrorKind::LimitReached);
}
