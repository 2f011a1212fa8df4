//! Tests plugins that interfere with the host's exit code, signals, output, threads, connections or
//! log. Inside the host and in a worker, only the plugin is affected.

use std::fs;
use std::thread::sleep;

use serde_json::{Value, json};

use crate::house;
use crate::support::cli::{cli_house, script_of_one_call};
use crate::support::command::LOOK_AGAIN;
use crate::support::server::{Answer, Server};
use crate::support::{Command, House, Output, fixture};

/// Maximum size of the log: its limit, and what is written between two checks.
const LOG_BYTES_MAX: u64 = 5 * 1024 * 1024;

/// Maximum number of one plugin's running requests.
const REQUESTS_MAX: usize = 64;

fn unruly_call(what: &str) -> Value {
    json!({ "call": { "name": "do_of_unruly", "arguments": { "what": what } } })
}

#[track_caller]
fn run_unruly(house: &House, what: &str) -> Output {
    house.run(&["call", "do_of_unruly", &json!({ "what": what }).to_string()])
}

/// Tests with the plugin inside the host and in a worker.
#[track_caller]
fn in_host_and_worker(work: impl Fn(&House)) {
    for isolated in ["", "[plugins]\nisolated = [\"fixture-unruly\"]\n"] {
        let house = house!(ships "unruly");
        house.configure(isolated);
        work(&house);
        house.assert_no_processes();
    }
}

#[test]
fn plugin_exit_inside_the_host_is_an_error_that_names_the_plugin() {
    let house = house!(ships "unruly");
    let output = run_unruly(&house, "exit").code(4);
    let told = "error: a call of `exit` in plugin `fixture-unruly`, which runs inside jaato, ends jaato\n\
                hint: in a worker it would end only its own calls: `[plugins] isolated = [\"fixture-unruly\"]`\n";
    assert_eq!((output.stdout.as_str(), output.stderr.as_str()), ("", told), "{output}");
    house.assert_no_processes();
    assert!(
        fs::read_to_string(house.cache_folder().join("jaato.log"))
            .unwrap()
            .contains(" error host: a call of `exit`")
    );
}

#[test]
fn plugin_crash_inside_the_host_names_the_plugin_and_keeps_its_signal() {
    let house = house!(ships "unruly");
    for (what, signal, word) in [("segfault", 11, "segmentation fault"), ("abort", 6, "abort")] {
        let output = run_unruly(&house, what).code(128 + signal);
        let told = format!(
            "error: {word} in plugin `fixture-unruly`, which runs inside jaato, ends jaato\n"
        );
        assert!(output.stderr.contains(&told), "{output}");
        let log = fs::read_to_string(house.cache_folder().join("jaato.log")).unwrap();
        assert!(log.contains(&format!(" error host: {word} in plugin `fixture-unruly`")), "{log}");
        house.assert_no_processes();
    }
}

#[test]
fn panic_in_a_thread_local_destructor_does_not_change_the_exit_code() {
    let house = house!(ships "unruly");
    let output = run_unruly(&house, "end_of_thread").code(0);
    assert_eq!(output.json(), json!({ "result": "done" }), "{output}");
}

#[test]
fn text_printed_by_a_plugin_goes_to_the_log_not_to_standard_output() {
    let house = house!(ships "unruly");
    let line = json!({ "tool": "do_of_unruly", "args": { "what": "print" } }).to_string();
    let output =
        house.command(&["call", "--batch"]).input(format!("{line}\n{line}\n")).run().code(0);
    let answer = json!({ "tool": "do_of_unruly", "result": { "result": "done" } });
    assert_eq!(output.json_lines(), [answer.clone(), answer], "{output}");
    house.wait_for_log("printed: {\"printed\": \"by a plugin\"}");
}

#[test]
fn ctrl_c_works_although_a_plugin_replaces_signal_handlers() {
    let house = house!(ships "unruly");
    house.set_script(&json!({ "answers": [{ "steps": [unruly_call("take_signals")] }] }));
    for signal in ["INT", "TERM"] {
        let running = house.command(&["run", "--yes", "go"]).no_input().start();
        running.wait_for_error("has taken the signals");
        let status = format!("/proc/{}/stat", running.id());
        // Like a user: send it again until the program stops.
        while !fs::read_to_string(&status).unwrap_or_default().contains(") Z ") {
            running.send_signal(signal);
            sleep(LOOK_AGAIN);
        }
        running.finish().code(130);
        house.assert_no_processes();
    }
}

#[test]
fn exit_codes_are_collected_although_sigchld_is_ignored() {
    let house = cli_house!();
    house.ship(&fixture("unruly"));
    let echo = json!({ "call": { "name": "cli_based_tool", "arguments": { "command": "echo hi; exit 7" } } });
    house.set_script(&json!({ "answers": [
        { "steps": [unruly_call("ignore_children")] },
        { "steps": [echo] },
        { "expect": { "tool_result": "\"returncode\":7" }, "steps": [{ "text": "done" }] },
    ] }));
    let output = house.run(&["run", "--yes", "go"]).code(0);
    assert_eq!(output.stdout, "done\n", "{output}");
    let ignoring = ["-c", "trap '' CHLD; exec \"$0\" \"$@\""];
    let arguments = json!({ "command": "echo hi; exit 7" }).to_string();
    let words = ["call", "cli_based_tool", arguments.as_str()];
    let output = Command::wrapped_in(&house, "/bin/sh", &ignoring, &words).run().code(0);
    assert_eq!(output.json()["returncode"], 7, "{output}");
    house.assert_no_processes();
}

#[test]
fn concurrent_requests_of_a_plugin_are_limited_and_others_continue() {
    in_host_and_worker(|house| {
        house.ship(&fixture("echo"));
        let server = Server::start([]);
        server.set_models(Answer::silence());
        let url = format!("{}/v1/models", server.root_url());
        let storm = json!({ "url": url, "count": 2000, "keeps": REQUESTS_MAX });
        let lines = [
            json!({ "tool": "storm_of_unruly", "args": storm }),
            json!({ "tool": "count_bytes_echo", "args": { "text": "well" } }),
            json!({ "tool": "get_environment", "args": { "aspect": "os" } }),
        ];
        let lines = lines.map(|line| format!("{line}\n")).concat();
        let output = house.command(&["call", "--batch"]).input(lines).run().code(0);
        let answers = output.json_lines();
        let storm = &answers[0]["result"];
        let going_on = storm["going_on"].as_u64().unwrap();
        assert!(going_on > 0 && going_on <= REQUESTS_MAX as u64, "{output}");
        // A few more requests may have started before and ended normally.
        assert!(storm["limited"].as_u64().unwrap() > 2000 - 4 * REQUESTS_MAX as u64, "{output}");
        assert!(answers[1..].iter().all(|answer| answer.get("result").is_some()), "{output}");
    });
}

#[test]
fn log_output_of_a_plugin_is_limited_with_a_note() {
    in_host_and_worker(|house| {
        run_unruly(house, "flood_log").code(0);
        let log = house.cache_folder().join("jaato.log");
        assert!(fs::metadata(&log).unwrap().len() <= LOG_BYTES_MAX);
        let text = fs::read_to_string(&log).unwrap();
        assert_eq!(text.matches("`fixture-unruly` has written 524288 bytes").count(), 1);
    });
}

#[test]
fn json_with_too_many_values_is_refused_before_parsing() {
    in_host_and_worker(|house| {
        let output = run_unruly(house, "much_json").code(6);
        let told = "error: the plugin `fixture-unruly` sent JSON of more than 250000 values\n";
        assert!(output.stderr.contains(told), "{output}");
    });
}

#[test]
fn state_that_cannot_be_saved_is_reported_once_and_logged() {
    for (how, told) in [
        ("error", "there is no room for it"),
        ("big", "may cross"),
        ("hang", "it took longer than 2 s"),
    ] {
        let house = house!(ships "unruly");
        house.set_script(&json!({ "answers": [
            { "steps": [unruly_call("print")] }, { "steps": [unruly_call("print")] }, { "steps": [{ "text": "done" }] },
        ] }));
        house.configure_more(&format!(
            "[plugins.fixture-unruly]\nhow = \"{how}\"\n[plugins]\nisolated = [\"fixture-unruly\"]\n"
        ));
        let output = house.run(&["run", "--yes", "go"]).code(0);
        let notice = "plugin `fixture-unruly` could not save its state";
        assert_eq!(output.stderr.matches(notice).count(), 1, "{how}: {output}");
        assert!(output.stderr.contains(told), "{how}: {output}");
        house.wait_for_log(notice);
    }
}

#[test]
fn stopped_worker_is_resumed_when_an_answer_is_missing() {
    let house = house!(ships "unruly");
    house.configure("[plugins]\nisolated = [\"fixture-unruly\"]\n");
    let output = run_unruly(&house, "stop").code(0);
    assert_eq!(output.json(), json!({ "result": "done" }), "{output}");
    house.wait_for_log("the stopped worker of plugin `fixture-unruly` was resumed");
}

#[test]
fn blocking_call_that_ignores_cancellation_does_not_block_the_plugin() {
    in_host_and_worker(|house| {
        let block = |until: &str| json!({ "call": { "name": "block_of_unruly", "arguments": { "until": until } } });
        let never = house.path().join("never").display().to_string();
        let isolated = fs::read_to_string(house.path().join("home/.config/jaato/config.toml"));
        house.set_script(&json!({ "answers": [
            { "steps": vec![block(&never); 8] },
            { "expect": { "tool_result": "took longer than" }, "steps": [block("/")] },
            { "expect": { "tool_result": "done" }, "steps": [{ "text": "done" }] },
        ] }));
        house.configure_more(&format!("{}[session]\ncall_deadline_ms = 4000\n", isolated.unwrap()));
        let output = house.run(&["run", "--yes", "go"]).code(0);
        assert_eq!(output.stdout, "done\n", "{output}");
        house.wait_for_log("continues 2 s after its call was cancelled");
    });
}

#[test]
fn raw_bytes_of_a_result_do_not_replace_the_tools_own_key() {
    let house = house!(ships "unruly");
    let output = run_unruly(&house, "own_bytes").code(0);
    assert_eq!(output.json(), json!({ "bytes": "its own", "raw_bytes": { "length": 3 } }));
    house.set_script(&json!({ "answers": [
        { "steps": [unruly_call("own_bytes")] },
        { "expect": { "tool_result": "\"bytes\":\"its own\",\"raw_bytes\":{\"length\":3" }, "steps": [{ "text": "done" }] },
    ] }));
    house.run(&["run", "--yes", "go"]).code(0);
}

#[test]
fn command_of_a_session_cannot_trust_by_hiding_its_origin() {
    let house = cli_house!();
    house.write("workspace/AGENTS.md", "be bold\n");
    let away = house.path().join("away");
    let command = format!(
        "cp {binary} {away}; T='env -i HOME=$HOME {away} trust'; \
         unshare -pf --mount-proc sh -c \"$T\" 2>&1; setsid -w sh -c \"$T\" 2>&1; \
         (read -r _ _ _ guardian _ < /proc/$PPID/stat; kill -STOP $PPID; kill -9 $guardian $PPID; eval $T > {told} 2>&1)",
        binary = house.binary().display(),
        away = away.display(),
        told = house.path().join("told").display(),
    );
    house.set_script(&script_of_one_call(&command));
    let output = house.run(&["run", "--yes", "go"]);
    let said =
        format!("{output}{}", fs::read_to_string(house.path().join("told")).unwrap_or_default());
    assert!(said.contains("only a user can trust"), "{said}");
    assert!(!house.home().join(".local/share/jaato/trust.json").exists(), "{said}");
    house.assert_no_processes();
}
