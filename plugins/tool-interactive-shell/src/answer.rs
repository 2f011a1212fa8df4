//! Builds the result for the model: the new output, the reason why the result is given at this
//! moment, and the kind of input that the program expects.

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::process::{LeftoverProcess, ProcessExit, signal_name};
use jaato_plugin_sdk::serde_json::Map;
use jaato_plugin_sdk::terminal::{TerminalState, TerminalWait};

use crate::ready::ResultReason;
use crate::session::{ConsumedInput, LiveSessionState, ProgramEnd, ShellSession};
use crate::wait::{ProgramActivity, WaitResult};
use crate::{changed_rows, output, watch_sessions};

/// The maximum number of processes listed. Further ones are only counted.
const PROCESSES_LISTED_MAX: usize = 16;

/// Builds a result with the new output, marks that output as reported, and shows the screen to
/// users.
pub async fn build_result(
    cx: &Reporter,
    session: &ShellSession,
    waited: &WaitResult,
) -> Result<Map<String, Value>> {
    let mut answer = Map::new();
    let drawn = output::stream_new_output(cx, session, &mut answer, output::OUTPUT_KEY).await?;
    let drawn = {
        let mut live = session.lock_live();
        answer.insert("is_alive".to_owned(), live.end.is_none().into());
        if let Some(end) = &live.end {
            add_program_end(&mut answer, end);
        }
        if let Some(code) = live.exit_code.take() {
            answer.insert("command_exit_code".to_owned(), code.into());
        }
        if std::mem::take(&mut live.typed_by_person) {
            answer.insert("typed_by_person".to_owned(), true.into());
        }
        live.told_doing = Some(waited.doing);
        screen_change_text(&mut live, drawn.is_some())
    };
    add_reason(&mut answer, waited);
    watch_sessions::show_screen(session).await;
    if !drawn.is_empty() {
        // It does not matter if no user sees this, because the result is for the model.
        cx.output(drawn + "\n");
    }
    Ok(answer)
}

/// Returns what changed on a drawn screen, for users.
fn screen_change_text(live: &mut LiveSessionState, is_drawn: bool) -> String {
    if !is_drawn {
        live.shown_rows.clear();
        return String::new();
    }
    let rows = live.screen.visible_lines();
    let before = std::mem::replace(&mut live.shown_rows, rows);
    changed_rows::changed_rows(&before, &live.shown_rows)
}

/// Adds how much of an input was typed, if not all of it. In that case the time limit has passed,
/// even if something else happened too.
pub fn add_consumed_input(answer: &mut Map<String, Value>, taken: ConsumedInput, input: &[u8]) {
    let (typed, how_much) = match taken {
        ConsumedInput::All => return,
        ConsumedInput::Bytes(bytes) => (json!(bytes), format!("{bytes} of {} bytes", input.len())),
        ConsumedInput::Unknown => (Value::Null, format!("not all of {} bytes", input.len())),
    };
    answer.insert("typed_bytes".to_owned(), typed);
    answer.insert("input_bytes".to_owned(), input.len().into());
    let exit = ResultReason::Exit.as_str();
    if answer.get("reason").is_some_and(|reason| reason == exit) {
        return;
    }
    answer.insert("reason".to_owned(), ResultReason::Limit.as_str().into());
    answer.remove("expects");
    let note = format!(
        "the program does not read its input: {how_much} were typed, the rest was dropped. Interrupt it with \
         shell_control (c-c or `signal`), or wait with shell_read"
    );
    answer.insert("note".to_owned(), note.into());
}

/// Adds how the program ended: an exit code, or a signal.
pub fn add_program_end(answer: &mut Map<String, Value>, end: &ProgramEnd) {
    match end {
        ProgramEnd::Exit(ProcessExit { code, signal, left_running, .. }) => {
            answer.insert("exit_status".to_owned(), json!(code));
            add_processes(answer, "left_running", left_running);
            if let Some(number) = signal {
                let name = signal_name(*number);
                let name = name.map_or_else(|| format!("signal {number}"), str::to_owned);
                answer.insert("signal".to_owned(), json!({ "name": name, "number": number }));
            }
        }
        ProgramEnd::Lost(why) => {
            answer.insert("exit_status".to_owned(), Value::Null);
            answer.insert("lost".to_owned(), why.as_str().into());
        }
    }
}

/// Adds processes with their names.
pub fn add_processes(answer: &mut Map<String, Value>, key: &str, processes: &[LeftoverProcess]) {
    if processes.is_empty() {
        return;
    }
    let listed: Vec<_> = processes
        .iter()
        .take(PROCESSES_LISTED_MAX)
        .map(|process| json!({ "pid": process.pid, "name": process.name }))
        .collect();
    answer.insert(key.to_owned(), listed.into());
    if processes.len() > PROCESSES_LISTED_MAX {
        answer.insert(format!("{key}_count"), processes.len().into());
    }
}

fn add_reason(answer: &mut Map<String, Value>, waited: &WaitResult) {
    answer.insert("reason".to_owned(), waited.reason.as_str().into());
    let waited_ms = u64::try_from(waited.took.as_millis()).unwrap_or(u64::MAX);
    answer.insert("waited_ms".to_owned(), waited_ms.into());
    if waited.reason == ResultReason::Exit {
        return;
    }
    let wanted = expected_input(&waited.state);
    if let (ProgramActivity::Waits, Some(wanted)) = (waited.doing, wanted) {
        answer.insert("expects".to_owned(), wanted.as_str().into());
    }
    if let Some(note) = activity_note(waited, wanted) {
        answer.insert("note".to_owned(), note.into());
    }
}

/// The kind of input that a program reads from its terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExpectedInput {
    /// A line that is visible while it is typed.
    Line,
    /// A line that is hidden because it is a secret.
    HiddenLine,
    /// Single keys.
    Keys,
}

impl ExpectedInput {
    fn as_str(self) -> &'static str {
        match self {
            Self::Line => "line",
            Self::HiddenLine => "hidden_line",
            Self::Keys => "keys",
        }
    }
}

/// Returns the kind of input according to the terminal's modes.
pub fn expected_input(state: &TerminalState) -> Option<ExpectedInput> {
    Some(match (state.reads_lines?, state.echoes?) {
        (true, true) => ExpectedInput::Line,
        (true, false) => ExpectedInput::HiddenLine,
        (false, _) => ExpectedInput::Keys,
    })
}

/// Describes what the program does, if the reason and `expects` do not show it.
fn activity_note(waited: &WaitResult, wanted: Option<ExpectedInput>) -> Option<&'static str> {
    let is_relay = waited.state.waits == Some(TerminalWait::Relaying);
    let is_over = waited.reason == ResultReason::Limit;
    match waited.doing {
        ProgramActivity::Ended => None,
        ProgramActivity::Waits | ProgramActivity::Unknown if wanted == Some(ExpectedInput::HiddenLine) => Some(
            "the program asks for a secret: use shell_input with `ask_user` to let the user type it",
        ),
        ProgramActivity::Waits => is_over.then_some("the time limit has passed, and the program waits for input"),
        ProgramActivity::Works => is_over.then_some("the program is busy; shell_read waits for more"),
        ProgramActivity::WorksSilently => (is_over || waited.reason == ResultReason::Silence).then_some(
            "the program runs without reading or printing: it computes, sleeps or serves; wait for its next output \
             with shell_read and `wait_for`",
        ),
        ProgramActivity::Unknown if is_relay => Some(
            "silent, and the state of the remote program is unknown; at a shell prompt, shell_input \
             with `mark_prompts` makes later results exact",
        ),
        ProgramActivity::Unknown => (is_over || waited.reason == ResultReason::Silence)
            .then_some("it is unknown whether the program waits for input; shell_read waits for more"),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn encode_end(end: &ProgramEnd) -> Value {
        let mut answer = Map::new();
        add_program_end(&mut answer, end);
        Value::Object(answer)
    }

    #[test]
    fn signal_is_reported_apart_from_an_exit_code() {
        let exit =
            |code, signal| ProgramEnd::Exit(ProcessExit { code, signal, ..ProcessExit::default() });
        assert_eq!(encode_end(&exit(Some(1), None)), json!({ "exit_status": 1 }));
        let hung_up = json!({ "exit_status": null, "signal": { "name": "SIGHUP", "number": 1 } });
        assert_eq!(encode_end(&exit(None, Some(1))), hung_up);
        let lost = json!({ "exit_status": null, "lost": "the worker died" });
        assert_eq!(encode_end(&ProgramEnd::Lost("the worker died".to_owned())), lost);
    }

    #[test]
    fn incompletely_typed_input_is_reported_and_not_as_a_prompt() {
        let told = |reason: &str, taken| {
            let mut answer = Map::new();
            answer.insert("reason".to_owned(), reason.into());
            answer.insert("expects".to_owned(), "line".into());
            add_consumed_input(&mut answer, taken, &[b'x'; 9]);
            answer.remove("note");
            Value::Object(answer)
        };
        assert_eq!(
            told("waiting", ConsumedInput::All),
            json!({ "reason": "waiting", "expects": "line" })
        );
        let cut = json!({ "reason": "limit", "typed_bytes": 4, "input_bytes": 9 });
        assert_eq!(told("silence", ConsumedInput::Bytes(4)), cut);
        let unknown = json!({ "reason": "limit", "typed_bytes": null, "input_bytes": 9 });
        assert_eq!(told("limit", ConsumedInput::Unknown), unknown);
        assert_eq!(told("exit", ConsumedInput::Bytes(0))["reason"], "exit");
    }

    #[test]
    fn terminal_modes_determine_the_expected_input() {
        let state = |reads_lines, echoes| TerminalState {
            reads_lines: Some(reads_lines),
            echoes: Some(echoes),
            ..TerminalState::default()
        };
        assert_eq!(expected_input(&state(true, true)), Some(ExpectedInput::Line));
        assert_eq!(expected_input(&state(true, false)), Some(ExpectedInput::HiddenLine));
        assert_eq!(expected_input(&state(false, false)), Some(ExpectedInput::Keys));
        assert_eq!(expected_input(&TerminalState::default()), None);
    }

    #[track_caller]
    fn check_note(
        reason: ResultReason,
        doing: ProgramActivity,
        wanted: Option<ExpectedInput>,
        expected: Option<&str>,
    ) {
        let waited =
            WaitResult { reason, doing, state: TerminalState::default(), took: Duration::ZERO };
        let said = activity_note(&waited, wanted);
        match expected {
            Some(part) => assert!(said.is_some_and(|note| note.contains(part)), "{said:?}"),
            None => assert_eq!(said, None),
        }
    }

    #[test]
    fn note_describes_the_program_activity_for_every_result_reason() {
        let line = Some(ExpectedInput::Line);
        check_note(ResultReason::Limit, ProgramActivity::Works, None, Some("busy"));
        check_note(ResultReason::Limit, ProgramActivity::WorksSilently, None, Some("serves"));
        check_note(ResultReason::Silence, ProgramActivity::WorksSilently, None, Some("serves"));
        check_note(ResultReason::Limit, ProgramActivity::Waits, line, Some("waits for input"));
        check_note(ResultReason::Limit, ProgramActivity::Unknown, None, Some("unknown whether"));
        check_note(ResultReason::Silence, ProgramActivity::Unknown, None, Some("unknown whether"));
        check_note(ResultReason::Waiting, ProgramActivity::Waits, line, None);
        check_note(ResultReason::Found, ProgramActivity::Waits, line, None);
        check_note(ResultReason::Found, ProgramActivity::Works, None, None);
        check_note(ResultReason::Exit, ProgramActivity::Ended, line, None);
        let hidden = Some(ExpectedInput::HiddenLine);
        check_note(ResultReason::Waiting, ProgramActivity::Waits, hidden, Some("ask_user"));
        check_note(ResultReason::Limit, ProgramActivity::Works, hidden, Some("busy"));
        check_note(ResultReason::Limit, ProgramActivity::WorksSilently, hidden, Some("serves"));
        let state =
            TerminalState { waits: Some(TerminalWait::Relaying), ..TerminalState::default() };
        let (reason, doing) = (ResultReason::Silence, ProgramActivity::Unknown);
        let relay = WaitResult { reason, doing, state, took: Duration::ZERO };
        assert!(activity_note(&relay, None).unwrap().contains("mark_prompts"));
    }

    #[test]
    fn processes_are_listed_up_to_a_limit_and_counted_beyond_it() {
        let processes = |count| {
            let one = LeftoverProcess { pid: 7, name: "sleep".to_owned() };
            let mut answer = Map::new();
            add_processes(&mut answer, "ended", &vec![one; count]);
            Value::Object(answer)
        };
        assert_eq!(processes(0), json!({}));
        assert_eq!(processes(1), json!({ "ended": [{ "pid": 7, "name": "sleep" }] }));
        assert_eq!(processes(PROCESSES_LISTED_MAX).as_object().unwrap().len(), 1);
        let many = processes(PROCESSES_LISTED_MAX + 1);
        assert_eq!(many["ended"].as_array().unwrap().len(), PROCESSES_LISTED_MAX);
        assert_eq!(many["ended_count"], PROCESSES_LISTED_MAX + 1);
    }
}
