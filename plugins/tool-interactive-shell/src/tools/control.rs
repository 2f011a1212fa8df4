//! The tool `shell_control`.

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::process::Signal;

use super::{SECONDS, alive, longest, respond};
use crate::backend::Name;
use crate::keys::{self, CursorKeys};
use crate::session::Session;
use crate::shells::Shells;
use crate::wait::Until;

/// Press a key in a session: c-c (interrupt), c-d (end of input), c-z (suspend), c-l (redraw), c-\ (quit), or
/// another by name: enter, tab, escape, up, f1, m-x, …. Or send a signal to what runs in the foreground.
#[derive(ToolInput)]
#[tool(
    category = "system",
    destructive,
    open_world,
    example("Interrupt what runs in the session", session_id = "session_0", key = "c-c")
)]
struct ShellControl {
    /// The session.
    session_id: String,
    /// The key.
    key: Option<String>,
    /// A signal instead of a key.
    signal: Option<ShellSignal>,
    /// Seconds to wait for a busy program: 10 without it.
    #[schemars(range(min = 0.0, max = 30.0))]
    timeout: Option<f64>,
}

/// A signal.
#[tool_type]
#[derive(Debug, Clone, Copy)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
enum ShellSignal {
    /// Hang up.
    Hup,
    /// Interrupt.
    Int,
    /// Quit.
    Quit,
    /// Terminate.
    Term,
    /// Kill.
    Kill,
    /// Stop.
    Stop,
    /// Go on.
    Cont,
    /// The program's own.
    Usr1,
    /// The program's own.
    Usr2,
}

impl From<ShellSignal> for Signal {
    fn from(signal: ShellSignal) -> Self {
        match signal {
            ShellSignal::Hup => Self::Hangup,
            ShellSignal::Int => Self::Interrupt,
            ShellSignal::Quit => Self::Quit,
            ShellSignal::Term => Self::Terminate,
            ShellSignal::Kill => Self::Kill,
            ShellSignal::Stop => Self::Stop,
            ShellSignal::Cont => Self::Continue,
            ShellSignal::Usr1 => Self::User1,
            ShellSignal::Usr2 => Self::User2,
        }
    }
}

impl Tool for ShellControl {
    type State = Shells;

    async fn call(self, cx: &Cx<Shells>) -> Result<Output> {
        let shells = &cx.state().0;
        let session = alive(shells, "shell_control", &self.session_id)?;
        match (self.key.as_deref().map(str::trim).filter(|key| !key.is_empty()), self.signal) {
            (Some(key), None) => press(&session, key).await?,
            (None, Some(signal)) => {
                session.note_typed();
                session.control().signal(signal.into()).await?;
            }
            (None, None) => {
                let text = "shell_control: key is required";
                return Err(Error::new(ErrorKind::InvalidArguments, text));
            }
            (Some(_), Some(_)) => {
                let text = "shell_control: give a key or a signal, not both";
                return Err(Error::new(ErrorKind::InvalidArguments, text));
            }
        }
        match (self.key, self.signal) {
            (None, Some(signal)) => {
                let signal = Signal::from(signal);
                shells.trace.line(format_args!("control: id={}, signal={signal:?}", session.id));
            }
            (key, _) => {
                let key = key.unwrap_or_default();
                shells.trace.line(format_args!("control: id={}, key={key}", session.id));
            }
        }
        let longest = longest(self.timeout, SECONDS);
        let (told, _) = respond(cx, &session, &Until::Ready, longest).await?;
        Ok(Output::json(Value::Object(told)))
    }
}

tool!(ShellControl);

async fn press(session: &Session, key: &str) -> Result<()> {
    let cursor_keys = if session.live().screen.wants_application_cursor() {
        CursorKeys::Application
    } else {
        CursorKeys::Normal
    };
    let Some(bytes) = keys::bytes(key, cursor_keys) else {
        let text = format!("unknown control key: `{key}`");
        let hint = format!("keys are {}", keys::known());
        return Err(Error::new(ErrorKind::InvalidArguments, text).with_hint(hint));
    };
    if session.backend != Name::Pipes {
        return session.write(&bytes).await;
    }
    // No driver makes signals of keys there.
    session.note_typed();
    match key.to_ascii_lowercase().as_str() {
        "c-c" | "c" => session.control().signal(Signal::Interrupt).await,
        "c-\\" | "\\" => session.control().signal(Signal::Quit).await,
        "c-d" | "d" => session.control().end_input().await,
        _ => session.control().write(&bytes).await,
    }
}
