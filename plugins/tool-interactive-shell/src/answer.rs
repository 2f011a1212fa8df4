//! The answer to the model: what is new on the screen, why it is told at this moment, and what may be typed.

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::process::{ProcessExit, signal_name};
use jaato_plugin_sdk::serde_json::Map;
use jaato_plugin_sdk::terminal::{TerminalState, TerminalWait};

use crate::cut::{self, TEXT_BYTES_MAX};
use crate::ready::Reason;
use crate::session::{End, Live, Session, Taken};
use crate::wait::Waited;
use crate::{echo, join};

/// Tells what is new, shows people the screen, and marks it as told.
pub async fn answer(cx: &Reporter, session: &Session, waited: &Waited) -> Map<String, Value> {
    let mut answer = Map::new();
    let text = {
        let mut live = session.live();
        let text = tell_output(&mut answer, &mut live);
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
        text
    };
    tell_reason(&mut answer, waited);
    join::show(session).await;
    if !text.is_empty() {
        // Nobody need be there: the output is for the model.
        cx.output(if text.ends_with('\n') { text } else { text + "\n" });
    }
    answer
}

/// Adds how much of an input was typed, where that is not all: then the time is over, whatever else was seen.
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
        "the program does not read: {how_much} were typed, and the rest is dropped. shell_control with c-c, or with \
         `signal`, interrupts it; shell_read waits for it"
    );
    answer.insert("note".to_owned(), note.into());
}

/// Adds the output; returns it, as a person is shown it.
fn tell_output(answer: &mut Map<String, Value>, live: &mut Live) -> String {
    let is_screen = live.screen.is_drawn();
    let (whole, lines_lost) = if is_screen {
        (live.screen.lines().join("\n"), 0)
    } else {
        let unseen = live.screen.unseen();
        let text = echo::without(&unseen.text, &live.typed).to_owned();
        if !unseen.text.is_empty() {
            live.typed.clear();
        }
        (text, unseen.lines_lost)
    };
    let cut = cut::to(&whole, TEXT_BYTES_MAX);
    answer.insert("output".to_owned(), cut.text.clone().into());
    if is_screen {
        let cursor = live.screen.cursor();
        answer.insert("full_screen".to_owned(), true.into());
        let (row, column) = (cursor.row + 1, cursor.column + 1);
        answer.insert("cursor".to_owned(), json!({ "row": row, "column": column }));
    }
    if cut.bytes > 0 || lines_lost > 0 {
        answer.insert("truncated".to_owned(), true.into());
        let message = format!(
            "{} bytes with {} line ends were shown in all since the session began; of those not told yet \
             {lines_lost} lines scrolled away and {} more are left out in the middle",
            live.screen.bytes(),
            live.screen.line_feeds(),
            cut.lines
        );
        answer.insert("truncation_message".to_owned(), message.into());
    }
    live.screen.mark_seen();
    if lines_lost > 0 {
        live.screen.release_memory();
    }
    cut.text
}

/// Adds how the program ended: a code and a signal are two things.
pub fn tell_end(answer: &mut Map<String, Value>, end: &End) {
    match end {
        End::Exit(ProcessExit { code, signal, .. }) => {
            answer.insert("exit_status".to_owned(), json!(code));
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

fn tell_reason(answer: &mut Map<String, Value>, waited: &Waited) {
    answer.insert("reason".to_owned(), waited.reason.as_str().into());
    let waited_ms = u64::try_from(waited.took.as_millis()).unwrap_or(u64::MAX);
    answer.insert("waited_ms".to_owned(), waited_ms.into());
    if waited.reason == Reason::Exit {
        return;
    }
    let wanted = wanted(&waited.state);
    if let (Reason::Waiting | Reason::Prompt, Some(wanted)) = (waited.reason, wanted) {
        answer.insert("expects".to_owned(), wanted.as_str().into());
    }
    if let Some(note) = note(waited.reason, &waited.state, wanted) {
        answer.insert("note".to_owned(), note.into());
    }
}

/// What a program wants that reads from its terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// A line, shown while it is typed.
    Line,
    /// A line that is not shown: a secret.
    HiddenLine,
    /// Keys, each by itself.
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

/// Returns what the terminal's modes say of what a program wants.
pub fn wanted(state: &TerminalState) -> Option<Wanted> {
    Some(match (state.reads_lines?, state.echoes?) {
        (true, true) => Wanted::Line,
        (true, false) => Wanted::HiddenLine,
        (false, _) => Wanted::Keys,
    })
}

fn note(reason: Reason, state: &TerminalState, wanted: Option<Wanted>) -> Option<&'static str> {
    let is_relay = state.waits == Some(TerminalWait::Relaying);
    match reason {
        Reason::Limit => Some("the program is busy; shell_read waits for more"),
        _ if wanted == Some(Wanted::HiddenLine) => Some(
            "a secret is asked for: shell_input with `ask_user` lets the user type it, unseen by you",
        ),
        Reason::Silence if is_relay => Some(
            "silent, and what happens behind the connection cannot be seen; at a shell's prompt, \
             shell_input with `mark_prompts` makes later results exact",
        ),
        Reason::Silence => Some("silent; whether the program waits for input cannot be known"),
        Reason::Waiting | Reason::Prompt | Reason::Found | Reason::Exit => None,
    }
}

#[cfg(test)]
mod tests {
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

    #[test]
    fn the_model_is_told_what_to_do_where_it_must_not_guess() {
        let unknown = TerminalState::default();
        assert!(note(Reason::Limit, &unknown, None).unwrap().contains("shell_read"));
        let relay =
            TerminalState { waits: Some(TerminalWait::Relaying), ..TerminalState::default() };
        assert!(note(Reason::Silence, &relay, None).unwrap().contains("mark_prompts"));
        let secret = note(Reason::Waiting, &unknown, Some(Wanted::HiddenLine));
        assert!(secret.unwrap().contains("ask_user"));
        assert_eq!(note(Reason::Waiting, &unknown, Some(Wanted::Line)), None);
    }
}
