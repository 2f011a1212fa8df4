//! Builds the result for the model: the new output, the reason why the result is given at this
//! moment, and the kind of input that the program expects.

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::process::{LeftRunning, ProcessExit, signal_name};
use jaato_plugin_sdk::serde_json::Map;
use jaato_plugin_sdk::terminal::{TerminalState, TerminalWait};

use crate::ready::Reason;
use crate::session::{End, Live, Session, Taken};
use crate::wait::{Doing, Waited};
use crate::{changed, join, output};

/// The maximum number of processes listed. Further ones are only counted.
const PROCESSES_LISTED_MAX: usize = 16;

/// Builds a result with the new output, marks that output as reported, and shows the screen to
/// users.
pub async fn answer(
    cx: &Reporter,
    session: &Session,
    waited: &Waited,
) -> Result<Map<String, Value>> {
    let mut answer = Map::new();
    let drawn = output::tell(cx, session, &mut answer, output::OUTPUT_KEY).await?;
    let drawn = {
        let mut live = session.live();
        answer.insert("is_alive".to_owned(), live.end.is_none().into());
        if let Some(end) = &live.end {
            tell_end(&mut answer, end);
        }
        if let Some(code) = live.exit_code.take() {
            answer.insert("command_exit_code".to_owned(), code.into());
        }
        if std::mem::take(&mut live.typed_by_person) {
            answer.insert("typed_by_person".to_owned(), true.into());
        }
        live.told_doing = Some(waited.doing);
        for_people(&mut live, drawn.is_some())
    };
    tell_reason(&mut answer, waited);
    join::show(session).await;
    if !drawn.is_empty() {
        // It does not matter if no user sees this, because the result is for the model.
        cx.output(drawn + "\n");
    }
    Ok(answer)
}

/// Returns what changed on a drawn screen, for users.
fn for_people(live: &mut Live, is_drawn: bool) -> String {
    if !is_drawn {
        live.shown_rows.clear();
        return String::new();
    }
    let rows = live.screen.lines();
    let before = std::mem::replace(&mut live.shown_rows, rows);
    changed::rows(&before, &live.shown_rows)
}

/// Adds how much of an input was typed, if not all of it. In that case the time limit has passed,
/// even if something else happened too.
pub fn tell_taken(answer: &mut Map<String, Value>, taken: Taken, input: &[u8]) {
    let (typed, how_much) = match taken {
        Taken::All => return,
        Taken::Bytes(bytes) => (json!(bytes), format!("{bytes} of {} bytes", input.len())),
        Taken::Unknown => (Value::Null, format!("not all of {} bytes", input.len())),
    };
    answer.insert("typed_bytes".to_owned(), typed);
    answer.insert("input_bytes".to_owned(), input.len().into());
    let exit = Reason::Exit.as_str();
    if answer.get("reason").is_some_and(|reason| reason == exit) {
        return;
    }
    answer.insert("reason".to_owned(), Reason::Limit.as_str().into());
    answer.remove("expects");
    let note = format!(
        "the program does not read its input: {how_much} were typed, the rest was dropped. Interrupt it with \
         shell_control (c-c or `signal`), or wait with shell_read"
    );
    answer.insert("note".to_owned(), note.into());
}

/// Adds how the program ended: an exit code, or a signal.
pub fn tell_end(answer: &mut Map<String, Value>, end: &End) {
    match end {
        End::Exit(ProcessExit { code, signal, left_running, .. }) => {
            answer.insert("exit_status".to_owned(), json!(code));
            tell_processes(answer, "left_running", left_running);
            if let Some(number) = signal {
                let name = signal_name(*number);
                let name = name.map_or_else(|| format!("signal {number}"), str::to_owned);
                answer.insert("signal".to_owned(), json!({ "name": name, "number": number }));
            }
        }
        End::Lost(why) => {
            answer.insert("exit_status".to_owned(), Value::Null);
            answer.insert("lost".to_owned(), why.as_str().into());
        }
    }
}

/// Adds processes with their names.
pub fn tell_processes(answer: &mut Map<String, Value>, key: &str, processes: &[LeftRunning]) {
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

fn tell_reason(answer: &mut Map<String, Value>, waited: &Waited) {
    answer.insert("reason".to_owned(), waited.reason.as_str().into());
    let waited_ms = u64::try_from(waited.took.as_millis()).unwrap_or(u64::MAX);
    answer.insert("waited_ms".to_owned(), waited_ms.into());
    if waited.reason == Reason::Exit {
        return;
    }
    let wanted = wanted(&waited.state);
    if let (Doing::Waits, Some(wanted)) = (waited.doing, wanted) {
        answer.insert("expects".to_owned(), wanted.as_str().into());
    }
    if let Some(note) = note(waited, wanted) {
        answer.insert("note".to_owned(), note.into());
    }
}

/// The kind of input that a program reads from its terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// A line that is visible while it is typed.
    Line,
    /// A line that is hidden because it is a secret.
    HiddenLine,
    /// Single keys.
    Keys,
}

impl Wanted {
    fn as_str(self) -> &'static str {
        match self {
            Self::Line => "line",
            Self::HiddenLine => "hidden_line",
            Self::Keys => "keys",
        }
    }
}

/// Returns the kind of input according to the terminal's modes.
pub fn wanted(state: &TerminalState) -> Option<Wanted> {
    Some(match (state.reads_lines?, state.echoes?) {
        (true, true) => Wanted::Line,
        (true, false) => Wanted::HiddenLine,
        (false, _) => Wanted::Keys,
    })
}

/// Describes what the program does, if the reason and `expects` do not show it.
fn note(waited: &Waited, wanted: Option<Wanted>) -> Option<&'static str> {
    let is_relay = waited.state.waits == Some(TerminalWait::Relaying);
    let is_over = waited.reason == Reason::Limit;
    match waited.doing {
        Doing::Ended => None,
        Doing::Waits | Doing::Unknown if wanted == Some(Wanted::HiddenLine) => Some(
            "the program asks for a secret: use shell_input with `ask_user` to let the user type it",
        ),
        Doing::Waits => is_over.then_some("the time limit has passed, and the program waits for input"),
        Doing::Works => is_over.then_some("the program is busy; shell_read waits for more"),
        Doing::WorksSilently => (is_over || waited.reason == Reason::Silence).then_some(
            "the program runs without reading or printing: it computes, sleeps or serves; wait for its next output \
             with shell_read and `wait_for`",
        ),
        Doing::Unknown if is_relay => Some(
            "silent, and the state of the remote program is unknown; at a shell prompt, shell_input \
             with `mark_prompts` makes later results exact",
        ),
        Doing::Unknown => (is_over || waited.reason == Reason::Silence)
            .then_some("it is unknown whether the program waits for input; shell_read waits for more"),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn told(end: &End) -> Value {
        let mut answer = Map::new();
        tell_end(&mut answer, end);
        Value::Object(answer)
    }

    #[test]
    fn a_signal_is_told_apart_from_a_code() {
        let exit = |code, signal| End::Exit(ProcessExit { code, signal, ..ProcessExit::default() });
        assert_eq!(told(&exit(Some(1), None)), json!({ "exit_status": 1 }));
        let hung_up = json!({ "exit_status": null, "signal": { "name": "SIGHUP", "number": 1 } });
        assert_eq!(told(&exit(None, Some(1))), hung_up);
        let lost = json!({ "exit_status": null, "lost": "the worker died" });
        assert_eq!(told(&End::Lost("the worker died".to_owned())), lost);
    }

    #[test]
    fn what_was_not_typed_is_told_and_is_no_prompt() {
        let told = |reason: &str, taken| {
            let mut answer = Map::new();
            answer.insert("reason".to_owned(), reason.into());
            answer.insert("expects".to_owned(), "line".into());
            tell_taken(&mut answer, taken, &[b'x'; 9]);
            answer.remove("note");
            Value::Object(answer)
        };
        assert_eq!(told("waiting", Taken::All), json!({ "reason": "waiting", "expects": "line" }));
        let cut = json!({ "reason": "limit", "typed_bytes": 4, "input_bytes": 9 });
        assert_eq!(told("silence", Taken::Bytes(4)), cut);
        let unknown = json!({ "reason": "limit", "typed_bytes": null, "input_bytes": 9 });
        assert_eq!(told("limit", Taken::Unknown), unknown);
        assert_eq!(told("exit", Taken::Bytes(0))["reason"], "exit");
    }

    #[test]
    fn modes_tell_what_is_wanted() {
        let state = |reads_lines, echoes| TerminalState {
            reads_lines: Some(reads_lines),
            echoes: Some(echoes),
            ..TerminalState::default()
        };
        assert_eq!(wanted(&state(true, true)), Some(Wanted::Line));
        assert_eq!(wanted(&state(true, false)), Some(Wanted::HiddenLine));
        assert_eq!(wanted(&state(false, false)), Some(Wanted::Keys));
        assert_eq!(wanted(&TerminalState::default()), None);
    }

    #[track_caller]
    fn check_note(reason: Reason, doing: Doing, wanted: Option<Wanted>, expected: Option<&str>) {
        let waited =
            Waited { reason, doing, state: TerminalState::default(), took: Duration::ZERO };
        let said = note(&waited, wanted);
        match expected {
            Some(part) => assert!(said.is_some_and(|note| note.contains(part)), "{said:?}"),
            None => assert_eq!(said, None),
        }
    }

    #[test]
    fn a_note_says_what_the_program_does_whatever_the_result_is_given_for() {
        let line = Some(Wanted::Line);
        check_note(Reason::Limit, Doing::Works, None, Some("busy"));
        check_note(Reason::Limit, Doing::WorksSilently, None, Some("serves"));
        check_note(Reason::Silence, Doing::WorksSilently, None, Some("serves"));
        check_note(Reason::Limit, Doing::Waits, line, Some("waits for input"));
        check_note(Reason::Limit, Doing::Unknown, None, Some("unknown whether"));
        check_note(Reason::Silence, Doing::Unknown, None, Some("unknown whether"));
        check_note(Reason::Waiting, Doing::Waits, line, None);
        check_note(Reason::Found, Doing::Waits, line, None);
        check_note(Reason::Found, Doing::Works, None, None);
        check_note(Reason::Exit, Doing::Ended, line, None);
        let hidden = Some(Wanted::HiddenLine);
        check_note(Reason::Waiting, Doing::Waits, hidden, Some("ask_user"));
        check_note(Reason::Limit, Doing::Works, hidden, Some("busy"));
        check_note(Reason::Limit, Doing::WorksSilently, hidden, Some("serves"));
        let state =
            TerminalState { waits: Some(TerminalWait::Relaying), ..TerminalState::default() };
        let (reason, doing) = (Reason::Silence, Doing::Unknown);
        let relay = Waited { reason, doing, state, took: Duration::ZERO };
        assert!(note(&relay, None).unwrap().contains("mark_prompts"));
    }

    #[test]
    fn processes_are_listed_up_to_a_limit_and_counted_beyond_it() {
        let processes = |count| {
            let one = LeftRunning { pid: 7, name: "sleep".to_owned() };
            let mut answer = Map::new();
            tell_processes(&mut answer, "ended", &vec![one; count]);
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
