//! Plugins in workers: whatever kills one costs the call, and the session goes on.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{House, fixture};

fn call(name: &str, arguments: Value) -> Value {
    json!({ "call": { "name": name, "arguments": arguments } })
}

fn die(how: &str) -> Value {
    call("die", json!({ "how": how }))
}

/// A house whose model makes these calls, one an answer; each result must hold its text. Then it is done.
fn house_of(calls: &[(Value, &str)]) -> Option<House> {
    let house = House::new()?;
    house.ship(&fixture("hostile"));
    let mut answers = Vec::new();
    let mut expect = json!({});
    for (call, result) in calls {
        answers.push(json!({ "expect": expect, "steps": [call] }));
        expect = json!({ "tool_result": result });
    }
    answers.push(json!({ "expect": expect, "steps": [{ "text": "done" }] }));
    house.script(&json!({ "answers": answers }));
    Some(house)
}

/// Dies so; the model is told how, and the next call has a fresh worker that knows what was saved.
#[track_caller]
fn survives(how: &str, told: &str) {
    let tally = || call("tally", json!({}));
    let Some(house) =
        house_of(&[(tally(), "\"tally\":1"), (die(how), told), (tally(), "\"tally\":2")])
    else {
        return;
    };
    let output = house.run(&["run", "--yes", "go"]).code(0);
    assert_eq!(output.stdout, "done\n", "{output}");
    house.nothing_lives();
}

#[test]
fn a_panic_costs_the_call_and_not_even_the_worker() {
    survives("panic", "of the fixture");
}

#[test]
fn an_abort_is_told_with_what_was_printed() {
    survives("abort", "was ended by signal 6 (abort); it printed: about to abort");
}

#[test]
fn a_segmentation_fault_costs_the_call() {
    survives("segfault", "was ended by signal 11 (segmentation fault)");
}

#[test]
fn an_overflow_of_the_stack_costs_the_call() {
    survives("overflow", "was ended by signal 6 (abort)");
}

#[test]
fn an_exit_costs_the_call() {
    survives("exit", "exited with 7");
}

#[test]
fn an_answer_beyond_the_cap_costs_the_call() {
    survives("large", "limit_reached");
}

#[test]
fn a_death_in_the_middle_of_a_message_costs_the_call() {
    survives("torn", "was ended by signal 6 (abort)");
}

#[test]
fn a_worker_that_sends_nonsense_is_ended() {
    survives("huge", "sent what is no message: a message of 2147483647 bytes");
    survives("nonsense", "sent what is no message");
}

#[test]
fn five_deaths_are_enough() {
    let abort = "was ended by signal 6";
    let Some(house) = house_of(&[
        (die("abort"), abort),
        (die("abort"), abort),
        (die("abort"), abort),
        (die("abort"), abort),
        (die("abort"), abort),
        (call("tally", json!({})), "its worker died 5 times"),
    ]) else {
        return;
    };
    let start = Instant::now();
    house.run(&["run", "--yes", "go"]).code(0);
    // It waited before each worker but the first two: 100, 200 and 400 ms.
    assert!(start.elapsed() >= Duration::from_millis(700), "{:?}", start.elapsed());
}

#[test]
fn a_call_that_cannot_be_stopped_is_stopped() {
    for how in ["loop", "deadlock", "children"] {
        let Some(house) = house_of(&[(die(how), "never")]) else { return };
        let running = house.command(&["run", "--yes", "go"]).no_input().start();
        running.wait_for_error("] die");
        if how == "children" {
            house.wait_for_log("has children");
        } else {
            house.wait_for_log("about to");
        }
        running.signal("INT");
        running.finish().code(130);
        house.nothing_lives();
    }
}

#[test]
fn a_killed_host_takes_a_worker_and_its_children_with_it() {
    let Some(house) = house_of(&[(die("children"), "never")]) else { return };
    let running = house.command(&["run", "--yes", "go"]).no_input().start();
    house.wait_for_log("has children");
    running.signal("KILL");
    running.finish().code(137);
    house.nothing_lives();
}

#[test]
fn a_call_past_its_deadline_ends_its_worker() {
    let Some(house) =
        house_of(&[(die("loop"), "took longer than"), (call("tally", json!({})), "\"tally\":1")])
    else {
        return;
    };
    let run = house.command(&["run", "--yes", "go"]);
    run.variable("JAATO_SESSION_CALL_DEADLINE_MS", "300").run().code(0);
    house.nothing_lives();
}

#[test]
fn a_memory_hog_from_elsewhere_meets_its_limit() {
    let Some(house) = House::new() else { return };
    house.drop_in(&fixture("hostile"));
    let hog = json!({ "steps": [die("hog")] });
    let told = json!({ "tool_result": "was ended by signal 6 (abort)" });
    house.script(&json!({ "answers": [hog, { "expect": told, "steps": [{ "text": "done" }] }] }));
    house.run(&["run", "--yes", "go"]).code(0);
}

#[test]
fn a_plugin_that_a_person_isolates_runs_in_a_worker() {
    let Some(house) = House::new() else { return };
    house.ship(&fixture("probe"));
    let runs = |house: &House| {
        let shown = house.run(&["plugin", "show", "fixture-probe", "--json"]).code(0).json();
        shown["runs"].as_str().unwrap().to_owned()
    };
    assert_eq!(runs(&house), "inside jaato");
    house.configure("[plugins]\nisolated = [\"fixture-probe\"]\n");
    assert_eq!(runs(&house), "in a worker, because `[plugins] isolated` names it");
    let arguments = json!({ "text": "hello" }).to_string();
    let output = house.run(&["call", "echo", &arguments]).silent();
    assert_eq!(output.json()["text"], "hello");
}
