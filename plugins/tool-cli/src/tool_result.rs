//! The tool result: how the command ended. The host adds the output. Pure.

use std::time::Duration;

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::process::{LeftoverProcess, ProcessExit, signal_name};
use jaato_plugin_sdk::serde_json::Map;

/// The maximum number of processes to list among those left running.
const LEFT_LISTED_MAX: usize = 16;

/// The key of the standard output.
pub const STDOUT: &str = "stdout";

/// The key of the standard error.
pub const STDERR: &str = "stderr";

/// Creates the answer, with empty texts for the output.
pub fn exit_result(exit: &ProcessExit, timeout: Duration) -> Map<String, Value> {
    let mut answer = Map::new();
    answer.insert(STDOUT.to_owned(), "".into());
    answer.insert(STDERR.to_owned(), "".into());
    add_exit(&mut answer, exit, timeout);
    add_left_running(&mut answer, &exit.left_running);
    answer
}

fn add_exit(answer: &mut Map<String, Value>, exit: &ProcessExit, timeout: Duration) {
    answer.insert("returncode".to_owned(), json!(exit.code));
    if let Some(number) = exit.signal {
        let name = signal_name(number).map_or_else(|| format!("signal {number}"), str::to_owned);
        answer.insert("signal".to_owned(), json!({ "name": name, "number": number }));
    }
    if exit.timed_out {
        answer.insert("timed_out".to_owned(), true.into());
        // A whole number if possible, as calls specify it.
        let is_whole = timeout.subsec_nanos() == 0;
        let seconds =
            if is_whole { json!(timeout.as_secs()) } else { json!(timeout.as_secs_f64()) };
        answer.insert("timeout_seconds".to_owned(), seconds);
    }
}

fn add_left_running(answer: &mut Map<String, Value>, left: &[LeftoverProcess]) {
    if left.is_empty() {
        return;
    }
    let listed: Vec<_> = left
        .iter()
        .take(LEFT_LISTED_MAX)
        .map(|process| json!({ "pid": process.pid, "name": process.name }))
        .collect();
    answer.insert("left_running".to_owned(), listed.into());
    if left.len() > LEFT_LISTED_MAX {
        answer.insert("left_running_count".to_owned(), left.len().into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEN_SECONDS: Duration = Duration::from_secs(10);

    #[test]
    fn signal_and_timeout_are_reported_apart_from_an_exit_code() {
        let ended = ProcessExit { code: Some(0), ..ProcessExit::default() };
        let expected = json!({ "stdout": "", "stderr": "", "returncode": 0 });
        assert_eq!(Value::Object(exit_result(&ended, TEN_SECONDS)), expected);
        let ended = ProcessExit { signal: Some(9), timed_out: true, ..ProcessExit::default() };
        let expected = json!({
            "stdout": "",
            "stderr": "",
            "returncode": null,
            "signal": { "name": "SIGKILL", "number": 9 },
            "timed_out": true,
            "timeout_seconds": 10,
        });
        assert_eq!(Value::Object(exit_result(&ended, TEN_SECONDS)), expected);
        let half = exit_result(&ended, Duration::from_millis(500));
        assert_eq!(half["timeout_seconds"], 0.5);
    }

    #[test]
    fn only_some_of_many_leftover_processes_are_listed() {
        let one = LeftoverProcess { pid: 4_000_000, name: "n".repeat(15) };
        let left = |count| {
            let left_running = vec![one.clone(); count];
            exit_result(&ProcessExit { left_running, ..ProcessExit::default() }, TEN_SECONDS)
        };
        let (all, some) = (left(LEFT_LISTED_MAX), left(LEFT_LISTED_MAX + 1));
        assert_eq!(all["left_running"].as_array().unwrap().len(), LEFT_LISTED_MAX);
        assert_eq!(all.get("left_running_count"), None);
        assert_eq!(some["left_running"], all["left_running"]);
        assert_eq!(some["left_running_count"], LEFT_LISTED_MAX + 1);
    }
}
