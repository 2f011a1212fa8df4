//! The tool `shell_control`.

use std::time::{Duration, Instant};

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::process::Signal;

use super::{SECONDS, TypedInput, maximum_wait, respond_to_input, running_session, type_input};
use crate::backend::BackendName;
use crate::keys::{self, CursorKeyMode};
use crate::session::{ConsumedInput, ShellSession};
use crate::shells::InteractiveShellPlugin;

/// Press a key in a session: c-c (interrupt), c-d (end of input), c-z (suspend), c-l (redraw), c-\
/// (quit), or another by name: enter, tab, escape, up, f1, m-x, …. Or send a signal to the
/// foreground program.
#[derive(ToolInput)]
#[tool(
    category = "system",
    destructive,
    open_world,
    available_if(
        environment_has = "shell",
        reason = "in a session whose execution environment runs commands"
    ),
    example("Interrupt what runs in the session", session_id = "session_0", key = "c-c")
)]
struct ShellControl {
    /// The session.
    #[schemars(extend("x-jaato-touches" = { "text": "the name of a terminal" }))]
    session_id: String,
    /// The key.
    #[schemars(extend("x-jaato-touches" = { "text": "the name of a key" }))]
    key: Option<String>,
    /// A signal instead of a key.
    signal: Option<ShellSignal>,
    /// Seconds to wait for a busy program. Default: 10.
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
    /// Continue.
    Cont,
    /// User-defined.
    Usr1,
    /// User-defined.
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
    type State = InteractiveShellPlugin;

    async fn call(self, cx: &Cx<InteractiveShellPlugin>) -> Result<Output> {
        let shells = &cx.state().0;
        let session = running_session(shells, "shell_control", &self.session_id)?;
        let (begun, longest) = (Instant::now(), maximum_wait(self.timeout, SECONDS));
        let key = self.key.as_deref().map(str::trim).filter(|key| !key.is_empty());
        let typed = match (key, self.signal) {
            (Some(key), None) => press_key(cx, &session, key, longest).await?,
            (None, Some(signal)) => {
                session.record_input();
                session.program_control().signal(signal.into()).await?;
                NOTHING_TYPED
            }
            (None, None) => {
                let text = "shell_control: key is required";
                return Err(Error::new(ErrorKind::InvalidArguments, text));
            }
            (Some(_), Some(_)) => {
                let text = "shell_control: give a key or a signal, not both";
                return Err(Error::new(ErrorKind::InvalidArguments, text));
            }
        };
        match (self.key, self.signal) {
            (None, Some(signal)) => {
                let signal = Signal::from(signal);
                shells
                    .trace
                    .write_line(format_args!("control: id={}, signal={signal:?}", session.id));
            }
            (key, _) => {
                let key = key.unwrap_or_default();
                shells.trace.write_line(format_args!("control: id={}, key={key}", session.id));
            }
        }
        let told = respond_to_input(cx, &session, &typed, (begun, longest)).await?;
        Ok(Output::json(Value::Object(told)))
    }
}

tool!(ShellControl);

/// A signal types nothing.
const NOTHING_TYPED: TypedInput = TypedInput { bytes: Vec::new(), taken: ConsumedInput::All };

async fn press_key(
    cx: &Reporter,
    session: &ShellSession,
    key: &str,
    longest: Duration,
) -> Result<TypedInput> {
    let cursor_keys = if session.lock_live().screen.wants_application_cursor() {
        CursorKeyMode::Application
    } else {
        CursorKeyMode::Normal
    };
    let Some(bytes) = keys::key_bytes(key, cursor_keys) else {
        let text = format!("unknown control key: `{key}`");
        let hint = format!("keys are {}", keys::known_keys());
        return Err(Error::new(ErrorKind::InvalidArguments, text).with_hint(hint));
    };
    if session.backend != BackendName::Pipes {
        return type_input(cx, session, bytes, longest).await;
    }
    // Without a terminal driver, keys do not become signals.
    let control = session.program_control();
    match key.to_ascii_lowercase().as_str() {
        "c-c" | "c" => control.signal(Signal::Interrupt).await?,
        "c-\\" | "\\" => control.signal(Signal::Quit).await?,
        "c-d" | "d" => control.end_input().await?,
        _ => return type_input(cx, session, bytes, longest).await,
    }
    session.record_input();
    Ok(NOTHING_TYPED)
}
