//! Tests the tools through the plugin boundary.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use jaato_plugin_sdk::serde_json::{Value, json};
use jaato_plugin_sdk::types::ErrorKind;
use jaato_plugin_testkit::FakeHost;

fn calculator_host() -> FakeHost {
    FakeHost::new(tool_calculator::__jaato::MODULE)
}

#[track_caller]
fn check_calculation(expression: &str, expected: &str) {
    let answer =
        calculator_host().call("calculate", json!({ "expression": expression })).unwrap().content;
    assert_eq!(answer["result"], expected, "{expression}");
    assert_eq!(answer["expression"], expression);
}

#[track_caller]
fn assert_refused(expression: &str, expected: &str) {
    let error =
        calculator_host().call("calculate", json!({ "expression": expression })).unwrap_err();
    assert_eq!((error.kind, error.message.as_str()), (ErrorKind::InvalidArguments, expected));
}

#[test]
fn decimals_are_exact() {
    check_calculation("0.1 + 0.2", "0.3");
    check_calculation("(19.99 * 3 + 4.5) * 1.19", "76.7193");
    check_calculation("2**100", "1267650600228229401496703205376");
    check_calculation("2**-3", "0.125");
    check_calculation("1/3", "0.33333333333333333333333333333333333333333333333333");
    check_calculation("2/3", "0.66666666666666666666666666666666666666666666666667");
    check_calculation("1e3 / 8", "125");
    check_calculation("(10**60 + 2) / 2", &format!("5{}1", "0".repeat(58)));
    check_calculation("1_000.50 * 2", "2001");
}

#[test]
fn arithmetic_follows_the_rules_of_python() {
    check_calculation("2 + 3 * 4", "14");
    check_calculation("-2**2", "-4");
    check_calculation("2**3**2", "512");
    check_calculation("2 ** -1", "0.5");
    check_calculation("7 // 2 + 7 % 2", "4");
    check_calculation("-7 // 2", "-4");
    check_calculation("-7 % 3", "2");
    check_calculation("7 % -3", "-2");
    check_calculation("--2", "2");
    check_calculation("round(2.5) + round(3.5)", "6");
    check_calculation("round(1234.567, 2)", "1234.57");
    check_calculation("round(1234, -2)", "1200");
    check_calculation("abs(-3) + min(4, 2, 9) + max(1, 5) + pow(2, 3)", "18");
    check_calculation("0**0 + 1**99999999999999999999 + (-1)**99999999999999999999999", "1");
}

#[test]
fn invalid_expressions_are_refused_with_a_reason() {
    assert_refused("", "at character 1: expected a number, found nothing");
    assert_refused("2 +", "at character 4: expected a number, found nothing");
    assert_refused("(2", "at character 3: expected `)`, found nothing");
    assert_refused("2 3", "at character 3: expected an operator (+ - * / // % **), found `3`");
    assert_refused("ä", "at character 1: expected a number, found `ä`");
    assert_refused("1..2", "`1..2` is not a number");
    assert_refused("sqrt(4)", "unknown function `sqrt`, use abs, max, min, pow or round");
    assert_refused("x", "unknown function `x`, use abs, max, min, pow or round");
    assert_refused("pow(2)", "`pow` does not take 1 numbers");
    assert_refused("1 / 0", "division by zero");
    assert_refused("1 % (1 - 1)", "division by zero");
    assert_refused("0 ** -1", "division by zero");
    assert_refused("2 ** 0.5", "the exponent or the number of places is not a whole number");
    let too_large = "a number has more than 1000 digits";
    assert_refused("9**9**9**9", too_large);
    assert_refused("1.5**99999999999999", too_large);
    assert_refused("1e999999999", too_large);
    assert_refused("1e-999999999 * 2", too_large);
    assert_refused("10**-999 / 10**999", too_large);
    assert_refused(&"(".repeat(5000), "more than 100 nested brackets and signs");
    assert_refused(&"-".repeat(5000), "more than 100 nested brackets and signs");
    assert_refused(&"1+".repeat(6000), "an expression has at most 10000 bytes");
}

#[test]
fn the_four_tools_take_two_numbers() {
    let call = |name: &str, a: Value, b: Value| {
        Value::Object(calculator_host().call(name, json!({ "a": a, "b": b })).unwrap().content)
    };
    let answer = call("add", json!(0.1), json!(0.2));
    assert_eq!(answer, json!({ "operation": "addition", "operands": [0.1, 0.2], "result": "0.3" }));
    assert_eq!(call("subtract", json!(1), json!(0.9))["result"], "0.1");
    assert_eq!(call("multiply", json!(-1.5), json!(4))["result"], "-6");
    assert_eq!(call("divide", json!(1), json!(8))["result"], "0.125");
    let error = calculator_host().call("divide", json!({ "a": 1, "b": 0 })).unwrap_err();
    assert_eq!(error.message, "division by zero");
}

#[test]
fn numbers_that_json_cannot_hold_exactly_must_be_given_as_text() {
    let add = |a: Value, b: Value| calculator_host().call("add", json!({ "a": a, "b": b }));
    let sum = |a: Value, b: Value| add(a, b).unwrap().content["result"].clone();
    assert_eq!(sum(json!("18446744073709551616"), json!(1)), "18446744073709551617");
    assert_eq!(sum(json!("0.1"), json!(0.2)), "0.3");
    assert_eq!(sum(json!(u64::MAX), json!(1)), "18446744073709551616");
    assert_eq!(sum(json!(1e30), json!(0)), format!("1{}", "0".repeat(30)));
    for lost in [json!(18_446_744_073_709_551_616_f64), json!(0.123_456_789_012_345_67)] {
        let error = add(lost, json!(1)).unwrap_err();
        assert!(error.hint.unwrap().contains("as text"), "{}", error.message);
    }
    assert_eq!(add(json!("one"), json!(1)).unwrap_err().message, "`one` is not a number");
}

jaato_plugin_testkit::conformance!(tool_calculator: tool);
