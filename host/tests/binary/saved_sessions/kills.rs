//! Tests that a session survives the end of its process by SIGKILL.

use std::collections::BTreeMap;
use std::fs;

use serde_json::json;

use super::{
    CONTINUE, RUN, assert_extends, read_records, request_messages, run_all, session_ids,
    sessions_folder, set_up_house, text_answer, wait_for_record,
};
use crate::support::command::{DEADLINE, Running};
use crate::support::openai::openai_command;
use crate::support::server::{Answer, ReceivedRequest, Server};
use crate::support::{House, fixture};

/// The text of a result that says that the call may have had an effect.
const UNKNOWN: &str = "interrupted, outcome unknown";

/// The text of a result that says that the call had no effect.
const NOT_RUN: &str = "interrupted, no record that it started: check before you repeat it";

/// About how many records the whole run has.
const RECORDS_ABOUT: u64 = 30;

/// How often the file may be looked at before the process is killed.
const LOOKS_MAX: u64 = 40;

/// How many runs a test kills.
const INSTANTS: usize = 3;

/// Returns a command that notes that it runs, and waits until the test lets it end.
fn waiting_command(name: &str) -> String {
    format!("echo {name} >> ran; until test -e go; do sleep 0.01; done; echo end of {name}")
}

/// Returns a command that notes that it runs.
fn noting_command(name: &str) -> String {
    format!("echo {name} >> ran; echo end of {name}")
}

fn scripted_answers() -> Vec<Answer> {
    let cli = |command: String| ("cli_based_tool", json!({ "command": command }));
    vec![
        Answer::calls(&[cli(noting_command("call_a"))]),
        Answer::calls(&[
            cli(noting_command("call_b")),
            ("get_environment", json!({ "aspect": "os" })),
            cli(waiting_command("call_c")),
            cli(noting_command("call_d")),
        ]),
        Answer::calls(&[cli(noting_command("call_e"))]),
        text_answer("done"),
    ]
}

/// The numbers of a linear congruential generator, so that a failure can be repeated.
struct RandomNumbers(u64);

impl RandomNumbers {
    fn next_below(&mut self, limit: u64) -> u64 {
        let next = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        self.0 = next;
        (next >> 33) % limit
    }
}

/// How often each call of the script has run.
fn count_executions(house: &House) -> BTreeMap<String, usize> {
    let ran = fs::read_to_string(house.workspace().join("ran")).unwrap_or_default();
    ran.lines().fold(BTreeMap::new(), |mut counts, line| {
        *counts.entry(line.to_owned()).or_default() += 1;
        counts
    })
}

/// Fails unless each call of a request has exactly one result, in the message after it. Returns
/// the calls of commands with their results.
#[track_caller]
fn answered_calls(asked: &ReceivedRequest) -> Vec<(String, String)> {
    let all = request_messages(asked);
    let mut pairs = Vec::new();
    let mut rest = all.iter().peekable();
    while let Some(message) = rest.next() {
        assert_ne!(message["role"], "tool", "a result without a call: {all:#?}");
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            let result = rest.next().unwrap_or_else(|| panic!("no result: {all:#?}"));
            assert_eq!(result["role"], "tool", "{all:#?}");
            assert_eq!(result["tool_call_id"], call["id"], "{all:#?}");
            pairs.push((call["function"].to_string(), result["content"].to_string()));
        }
    }
    pairs
}

/// When a process is killed.
#[derive(Debug)]
struct KillMoment {
    /// When its session's file has this many records.
    records: u64,
    /// After this many looks at the file.
    looks: u64,
    /// While the long call runs, if the process has not been killed before.
    in_long_call: bool,
}

impl KillMoment {
    fn random(numbers: &mut RandomNumbers) -> Self {
        let (records, looks) = (numbers.next_below(RECORDS_ABOUT), numbers.next_below(LOOKS_MAX));
        Self { records, looks, in_long_call: numbers.next_below(3) == 0 }
    }

    /// Kills the process when it is time, or when it has ended.
    fn kill_when_due(&self, house: &House, running: Running) {
        let begun = std::time::Instant::now();
        let (go, mut looks) = (house.workspace().join("go"), 0);
        let stat = format!("/proc/{}/stat", running.id());
        let has_ended = || fs::read_to_string(&stat).is_ok_and(|stat| stat.contains(") Z "));
        while looks < self.looks && !has_ended() {
            assert!(begun.elapsed() < DEADLINE, "jaato neither ended nor reached {self:?}");
            let is_long = count_executions(house).contains_key("call_c");
            if is_long && self.in_long_call {
                break;
            }
            if is_long && !go.exists() {
                fs::write(&go, "").unwrap();
            }
            looks += u64::from(read_records(house).len() as u64 >= self.records);
            std::thread::yield_now();
        }
        running.send_signal("KILL");
        running.wait_with_open_input();
        // The commands end with their own test, not with jaato.
        fs::write(&go, "").unwrap();
        house.assert_no_processes();
    }
}

/// Continues the session of a killed process, and checks the results that the model gets.
#[track_caller]
fn check_continued(house: &House, at: &KillMoment) {
    let ran = count_executions(house);
    if session_ids(house).is_empty() {
        assert_eq!(ran, BTreeMap::new(), "{at:?}");
        return;
    }
    let server = Server::start([text_answer("well")]);
    let output = run_all(house, &server, &[&CONTINUE, &["please continue"]]);
    assert_eq!((output.code, output.stdout.as_str()), (0, "well\n"), "{at:?}: {output}");
    assert_eq!(count_executions(house), ran, "{at:?}: nothing runs again");
    let calls = answered_calls(&server.requests()[0]);
    for (name, count) in &ran {
        assert_eq!(*count, 1, "{at:?}: {name}");
        assert!(calls.iter().any(|(call, _)| call.contains(name)), "{at:?}: {name}: {calls:#?}");
    }
    for (call, result) in calls {
        let Some(at_name) = call.find("call_") else { continue };
        let name = &call[at_name..at_name + "call_x".len()];
        let may_have_run = result.contains(UNKNOWN);
        let has_run = result.contains(&format!("end of {name}"));
        let has_not_run = result.contains(NOT_RUN);
        assert!(has_run || may_have_run || has_not_run, "{at:?}: {call}: {result}");
        if !may_have_run {
            assert_eq!(ran.contains_key(name), has_run, "{at:?}: {call}: {result}");
        }
    }
}

/// Kills a run at random instants.
fn kill_at_random(seed: u64) {
    let Some(house) = set_up_house() else { return };
    let mut numbers = RandomNumbers(seed);
    for _ in 0..INSTANTS {
        let server = Server::start(scripted_answers());
        let words = [RUN.as_slice(), &["begin"]].concat();
        let running = openai_command(&house, &server, &words).no_input().start();
        let instant = KillMoment::random(&mut numbers);
        instant.kill_when_due(&house, running);
        check_continued(&house, &instant);
        let made = ["ran", "go"].map(|name| house.workspace().join(name));
        made.iter().for_each(|path| _ = fs::remove_file(path));
        _ = fs::remove_dir_all(sessions_folder(&house));
    }
}

#[test]
fn killed_run_continues_and_repeats_no_call_with_seed_1() {
    kill_at_random(1);
}

#[test]
fn killed_run_continues_and_repeats_no_call_with_seed_2() {
    kill_at_random(2);
}

#[test]
fn killed_run_continues_and_repeats_no_call_with_seed_3() {
    kill_at_random(3);
}

#[test]
fn killed_run_continues_and_repeats_no_call_with_seed_4() {
    kill_at_random(4);
}

#[test]
fn call_that_ran_has_an_unknown_outcome_and_finished_ones_keep_their_results() {
    let Some(house) = set_up_house() else { return };
    house.ship(&fixture("probe"));
    let cli = |command: String| ("cli_based_tool", json!({ "command": command }));
    let server = Server::start([Answer::calls(&[
        cli(waiting_command("call_a")),
        cli(noting_command("call_b")),
        ("get_environment", json!({ "aspect": "os" })),
        // It may not run in parallel, so it waits for the others.
        ("count", json!({})),
    ])]);
    let words = [RUN.as_slice(), &["begin"]].concat();
    let running = openai_command(&house, &server, &words).no_input().start();
    for finished in ["end of call_b", "linux"] {
        wait_for_record(&house, |record| {
            record["type"] == "call_ended" && record["data"].to_string().contains(finished)
        });
    }
    house.wait_for_file(&house.workspace().join("ran"));
    running.send_signal("KILL");
    running.wait_with_open_input().code(137);
    fs::write(house.workspace().join("go"), "").unwrap();
    house.assert_no_processes();
    let server = Server::start([text_answer("well"), text_answer("better")]);
    run_all(&house, &server, &[&CONTINUE, &["please continue"]]).code(0);
    let results: Vec<String> =
        answered_calls(&server.requests()[0]).into_iter().map(|(_, result)| result).collect();
    let texts = [UNKNOWN, "end of call_b", "linux", NOT_RUN];
    assert_eq!(results.len(), texts.len(), "{results:#?}");
    for (result, text) in results.iter().zip(texts) {
        assert!(result.contains(text), "{text}: {results:#?}");
    }
    // The results are part of the conversation from then on.
    run_all(&house, &server, &[&CONTINUE, &["once more"]]).code(0);
    let asked = server.requests();
    assert_extends(&asked[0], &asked[1]);
    assert_eq!(count_executions(&house).into_values().collect::<Vec<_>>(), [1, 1]);
}

#[test]
fn session_killed_again_and_again_can_still_be_continued() {
    let Some(house) = set_up_house() else { return };
    let waiting =
        || Answer::calls(&[("cli_based_tool", json!({ "command": waiting_command("call_a") }))]);
    let server = Server::start((0..3).map(|_| waiting()).chain([text_answer("well")]));
    for (words, count) in [(RUN.as_slice(), 1), (&CONTINUE, 2), (&CONTINUE, 3)] {
        let words = [words, &["please continue"]].concat();
        let running = openai_command(&house, &server, &words).no_input().start();
        while count_executions(&house).get("call_a") != Some(&count) {
            std::thread::yield_now();
        }
        running.send_signal("KILL");
        running.wait_with_open_input().code(137);
    }
    fs::write(house.workspace().join("go"), "").unwrap();
    house.assert_no_processes();
    run_all(&house, &server, &[&CONTINUE, &["please continue"]]).code(0);
    let calls = answered_calls(&server.requests()[3]);
    assert_eq!(calls.len(), 3);
    assert!(calls.iter().all(|(_, result)| result.contains(UNKNOWN)), "{calls:#?}");
    assert_eq!(count_executions(&house)["call_a"], 3);
}
