//! Tests plugins in workers: if a worker is killed, only the call fails, and the session continues.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{House, fixture};

fn tool_call(name: &str, arguments: Value) -> Value {
    json!({ "call": { "name": name, "arguments": arguments } })
}

fn die_call(how: &str) -> Value {
    tool_call("die_of_hostile", json!({ "how": how }))
}

fn tally_call() -> Value {
    tool_call("tally_of_hostile", json!({}))
}

/// Returns an installation whose model makes these calls, one per answer, and then finishes. Each
/// result must contain its text.
fn house_with_calls(calls: &[(Value, &str)]) -> Option<House> {
    let house = House::new()?;
    house.ship(&fixture("hostile"));
    let mut answers = Vec::new();
    let mut expect = json!({});
    for (call, result) in calls {
        answers.push(json!({ "expect": expect, "steps": [call] }));
        expect = json!({ "tool_result": result });
    }
    answers.push(json!({ "expect": expect, "steps": [{ "text": "done" }] }));
    house.set_script(&json!({ "answers": answers }));
    Some(house)
}

/// Kills the worker in this way. The model gets the reason, and the next call has a fresh worker
/// with the saved state.
#[track_caller]
fn assert_survives(how: &str, told: &str) {
    let Some(house) = house_with_calls(&[
        (tally_call(), "\"tally\":1"),
        (die_call(how), told),
        (tally_call(), "\"tally\":2"),
    ]) else {
        return;
    };
    let output = house.run(&["run", "--yes", "go"]).code(0);
    assert_eq!(output.stdout, "done\n", "{output}");
    house.assert_no_processes();
}

#[test]
fn panic_in_a_worker_fails_only_the_call() {
    assert_survives("panic", "of the fixture");
}

#[test]
fn abort_in_a_worker_fails_the_call_and_reports_its_stderr() {
    assert_survives("abort", "was killed by signal 6 (abort); it printed: about to abort");
}

#[test]
fn segmentation_fault_in_a_worker_fails_only_the_call() {
    assert_survives("segfault", "was killed by signal 11 (segmentation fault)");
}

#[test]
fn stack_overflow_in_a_worker_fails_only_the_call() {
    assert_survives("overflow", "was killed by signal 6 (abort)");
}

#[test]
fn exit_of_a_worker_fails_only_the_call() {
    assert_survives("exit", "exited with 7");
}

#[test]
fn answer_of_a_worker_above_the_size_limit_fails_only_the_call() {
    assert_survives("large", "limit_reached");
}

#[test]
fn worker_death_within_a_message_fails_only_the_call() {
    assert_survives("torn", "was killed by signal 6 (abort)");
}

#[test]
fn incomplete_message_of_a_worker_fails_no_later_call() {
    assert_survives("half", "sent an invalid message: only ");
}

#[test]
fn worker_that_sends_invalid_messages_is_ended() {
    assert_survives("huge", "sent an invalid message: a message of 2147483647 bytes");
    assert_survives("nonsense", "sent an invalid message");
}

#[test]
fn plugin_is_disabled_after_five_worker_crashes() {
    let abort = "was killed by signal 6";
    let Some(house) = house_with_calls(&[
        (die_call("abort"), abort),
        (die_call("abort"), abort),
        (die_call("abort"), abort),
        (die_call("abort"), abort),
        (die_call("abort"), abort),
        (tally_call(), "its worker crashed 5 times"),
        (tally_call(), "`/plugin reload fixture-hostile` restarts it in a conversation"),
    ]) else {
        return;
    };
    let start = Instant::now();
    house.run(&["run", "--yes", "go"]).code(1);
    // It waited before each worker except the first two: 100, 200 and 400 ms.
    assert!(start.elapsed() >= Duration::from_millis(700), "{:?}", start.elapsed());
}

#[test]
fn untrusted_plugin_is_reported_once_despite_worker_restarts() {
    let Some(house) = House::new() else { return };
    house.ship_to_user(&fixture("hostile"));
    let expect = json!({ "tool_result": "was killed by signal 6" });
    house.set_script(&json!({ "answers": [
        { "steps": [die_call("abort")] },
        { "expect": expect, "steps": [die_call("abort")] },
        { "expect": expect, "steps": [tally_call()] },
        { "expect": { "tool_result": "\"tally\":1" }, "steps": [{ "text": "done" }] },
    ] }));
    let output = house.run(&["run", "--yes", "go"]).code(0);
    assert_eq!(output.stderr.matches("is not trusted").count(), 1, "{output}");
}

#[test]
fn ctrl_c_ends_a_worker_call_that_ignores_cancellation() {
    for how in ["loop", "deadlock", "children"] {
        let Some(house) = house_with_calls(&[(die_call(how), "never")]) else { return };
        let running = house.command(&["run", "--yes", "go"]).no_input().start();
        running.wait_for_error("] die_of_hostile");
        if how == "children" {
            house.wait_for_log("has children");
        } else {
            house.wait_for_log("about to");
        }
        running.send_signal("INT");
        running.finish().code(130);
        house.assert_no_processes();
    }
}

#[test]
fn a_killed_host_takes_a_worker_and_its_children_with_it() {
    let Some(house) = house_with_calls(&[(die_call("children"), "never")]) else { return };
    let running = house.command(&["run", "--yes", "go"]).no_input().start();
    house.wait_for_log("has children");
    running.send_signal("KILL");
    running.finish().code(137);
    house.assert_no_processes();
}

#[test]
fn a_call_past_its_deadline_ends_its_worker() {
    let Some(house) =
        house_with_calls(&[(die_call("loop"), "took longer than"), (tally_call(), "\"tally\":1")])
    else {
        return;
    };
    let run = house.command(&["run", "--yes", "go"]);
    run.variable("JAATO_SESSION_CALL_DEADLINE_MS", "300").run().code(0);
    house.assert_no_processes();
}

#[test]
fn untrusted_worker_aborts_at_its_memory_limit() {
    let Some(house) = House::new() else { return };
    house.ship_to_user(&fixture("hostile"));
    let hog = json!({ "steps": [die_call("hog")] });
    let told = json!({ "tool_result": "was killed by signal 6 (abort)" });
    house.set_script(
        &json!({ "answers": [hog, { "expect": told, "steps": [{ "text": "done" }] }] }),
    );
    house.run(&["run", "--yes", "go"]).code(1);
}

#[test]
fn open_files_are_limited_in_all_workers_and_memory_in_untrusted_ones() {
    for (shipped, memory) in [(true, "unlimited"), (false, "2147483648")] {
        let Some(house) = House::new() else { return };
        let hostile = fixture("hostile");
        let _ = if shipped { house.ship(&hostile) } else { house.ship_to_user(&hostile) };
        house.set_script(
            &json!({ "answers": [{ "steps": [tally_call()] }, { "steps": [{ "text": "done" }] }] }),
        );
        let mut chat = house.command(&["chat", "--yes"]).start();
        chat.write(b"go\n");
        let mut told = chat.wait_for_error("pid ");
        if !told.ends_with('\n') {
            told += &chat.wait_for_error("\n");
        }
        let pid = told.split_once("pid ").and_then(|(_, pid)| pid.lines().next()).unwrap();
        let limits = std::fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
        let limit = |name: &str| {
            let line = limits.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            line.split_whitespace().next().unwrap().to_owned()
        };
        assert_eq!(
            (limit("Max open files").as_str(), limit("Max address space").as_str()),
            ("512", memory)
        );
        chat.finish().code(0);
        house.assert_no_processes();
    }
}

#[test]
fn plugin_isolated_by_the_user_runs_in_a_worker() {
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
    let output = house.run(&["call", "echo", &arguments]).expect_silent();
    assert_eq!(output.json()["text"], "hello");
}

/// Returns the fixture's bytes under another plugin name, with other tool names.
fn renamed_plugin(letter: char) -> Vec<u8> {
    let mut bytes = std::fs::read(fixture("hostile")).unwrap();
    for (name, count_min) in [("fixture-hostile", 1), ("_of_hostile", 3)] {
        let places: Vec<usize> = bytes
            .windows(name.len())
            .enumerate()
            .filter_map(|(at, window)| (window == name.as_bytes()).then_some(at))
            .collect();
        assert!(places.len() >= count_min, "{name} stands {} times", places.len());
        for at in places {
            bytes[at + name.len() - 1] = letter as u8;
        }
    }
    bytes
}

#[test]
fn session_survives_every_kind_of_worker_death() {
    let Some(house) = House::new() else { return };
    let ways = [
        ("panic", "of the fixture"),
        ("abort", "was killed by signal 6 (abort)"),
        ("exit", "exited with 7"),
        ("segfault", "was killed by signal 11"),
        ("overflow", "was killed by signal 6"),
        ("loop", "took longer than"),
        ("deadlock", "took longer than"),
        ("endless", "took longer than"),
        ("children", "took longer than"),
        ("hog", "was killed by signal 6"),
        ("large", "limit_reached"),
        ("torn", "was killed by signal 6"),
        ("huge", "sent an invalid message"),
        ("nonsense", "sent an invalid message"),
        ("garbage", "printed"),
    ];
    let (mut answers, mut expect) = (Vec::new(), json!({}));
    for (letter, (how, told)) in ('A'..).zip(ways) {
        let name = fixture("hostile").file_name().unwrap().to_str().unwrap().to_owned();
        let place = house.user_plugins().join(name.replace("hostile", &format!("hostil{letter}")));
        std::fs::create_dir_all(house.user_plugins()).unwrap();
        std::fs::write(&place, renamed_plugin(letter)).unwrap();
        let step = tool_call(&format!("die_of_hostil{letter}"), json!({ "how": how }));
        answers.push(json!({ "expect": expect, "steps": [step] }));
        expect = json!({ "tool_result": told });
    }
    let question = tool_call("get_environment", json!({ "aspect": "os" }));
    answers.push(json!({ "expect": expect, "steps": [question] }));
    let expect = json!({ "tool_result": "\"type\":\"linux\"", "messages": 2 * ways.len() + 3 });
    answers.push(json!({ "expect": expect, "steps": [{ "text": "It is Linux." }] }));
    house.set_script(&json!({ "answers": answers }));
    let run = house.command(&["run", "--yes", "Which system is this?"]);
    let output = run.variable("JAATO_SESSION_CALL_DEADLINE_MS", "2000").run().code(0);
    assert_eq!(output.stdout, "It is Linux.\n", "{output}");
    house.assert_no_processes();
}

#[test]
fn worker_gets_only_variables_of_its_manifest_and_untrusted_gets_no_secret() {
    let Some(house) = House::new() else { return };
    let secret = "hunter2-hunter2";
    let database = format!("postgres://bob:{secret}@db.example/work");
    let variables = |house: &House| {
        let told = house
            .command(&["call", "variables_of_hostile", "{}"])
            .variable("HOSTILE_WANTS", "this")
            .variable("HOSTILE_TOKEN", secret)
            .variable("HOSTILE_DATABASE", &database)
            .variable("NOT_NAMED", "that")
            .run()
            .code(0);
        assert!(!told.stderr.contains(secret), "{told}");
        let json = told.json();
        assert_eq!(json["HOSTILE_WANTS"], "this", "{json}");
        assert!(json.get("NOT_NAMED").is_none(), "{json}");
        json
    };
    let file = house.ship_to_user(&fixture("hostile"));
    let json = variables(&house);
    assert!(json.get("HOSTILE_TOKEN").is_none(), "{json}");
    assert!(json.get("HOSTILE_DATABASE").is_none(), "{json}");
    let shown = house.run(&["plugin", "show", "fixture-hostile", "--json"]).expect_silent().json();
    let (file, digest) = (file.to_str().unwrap(), shown["sha256"].as_str().unwrap());
    house.run(&["plugin", "trust", file, "--sha256", digest]).code(0);
    let json = variables(&house);
    assert_eq!(
        (&json["HOSTILE_TOKEN"], &json["HOSTILE_DATABASE"]),
        (&json!(secret), &json!(database))
    );
}
