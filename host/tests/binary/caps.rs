//! Tests limits on a session's usage, and the cost in the ledger.

use serde_json::json;

use crate::house;
use crate::support::House;

/// Scripts a call and then the answer. Each request has 20 tokens, each answer 5.
fn script_call_and_answer(house: &House) {
    let usage = json!({ "prompt_tokens": 20, "output_tokens": 5 });
    let call = json!({ "id": "c1", "name": "get_environment", "arguments": { "aspect": "os" } });
    house.set_script(&json!({ "answers": [
        { "steps": [{ "call": call }], "usage": usage },
        { "steps": [{ "text": "It is Linux." }], "usage": usage },
    ] }));
}

/// Sets the scripted model's price: 0.0001 dollars per token.
fn set_price(house: &House) {
    let line = "price = { input = 100, output = 100 }";
    house.configure_more(&format!("[models.\"scripted/test\"]\n{line}\n"));
}

#[test]
fn reached_cap_ends_the_run_with_exit_code_6_and_its_name() {
    for (option, value, said) in [
        ("--max-steps", "1", "it has made 1 of 1 requests"),
        ("--max-tokens", "25", "it has used 25 of 25 tokens"),
        ("--max-cost", "0.0025", "it has cost 0.0025 of 0.0025 US dollars"),
    ] {
        let house = house!(script_call_and_answer);
        set_price(&house);
        let output = house.run(&["run", option, value, "hello"]).code(6);
        assert!(output.stderr.contains(option) && output.stderr.contains(said), "{output}");
    }
}

#[test]
fn command_line_cap_overrides_the_configured_cap() {
    let house = house!(script_call_and_answer);
    house.configure_more("[caps]\nsteps = 1\n");
    house.run(&["run", "hello"]).code(6);
    script_call_and_answer(&house);
    house.run(&["run", "--max-steps", "2", "hello"]).code(0);
    let refused = house.run(&["run", "--max-cost", "much", "hello"]).code(2);
    assert!(refused.stderr.contains("a number of US dollars"), "{refused}");
}

#[test]
fn cost_cap_with_an_unknown_price_ends_the_run_with_an_error() {
    let house = house!(script_call_and_answer);
    let output = house.run(&["run", "--max-cost", "1", "hello"]).code(3);
    assert!(output.stderr.contains("the price of `scripted/test` is unknown"), "{output}");
    let ledger = house.run(&["ledger", "show"]).code(0);
    assert!(ledger.stdout.contains("$0 if a price is known"), "{ledger}");
}

#[test]
fn ledger_adds_up_the_cost_of_a_run() {
    let house = house!(script_call_and_answer);
    set_price(&house);
    let output = house.run(&["run", "--output", "json", "hello"]).code(0);
    let estimate = r#""cost_micro_usd":2500,"cost_is_estimate":true"#;
    assert_eq!(output.stdout.matches(estimate).count(), 2, "{output}");
    let ledger = house.run(&["ledger", "show"]).code(0);
    assert!(ledger.stdout.contains("$0.005 "), "{ledger}");
    assert!(ledger.stdout.contains("$0.005 if a price is known"), "{ledger}");
}
