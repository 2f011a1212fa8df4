//! The tool `shell_close`.

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::serde_json::Map;

use super::given;
use crate::answer::tell_end;
use crate::cut::{self, TEXT_BYTES_MAX};
use crate::shells::Shells;
use crate::{close, join};

/// End a session and everything that runs in it. Returns the exit status and the last output.
#[derive(ToolInput)]
#[tool(category = "system", destructive, example("Close the session", session_id = "session_0"))]
struct ShellClose {
    /// The session.
    session_id: String,
}

impl Tool for ShellClose {
    type State = Shells;

    async fn call(self, cx: &Cx<Shells>) -> Result<Output> {
        let shells = &cx.state().0;
        let session = shells.get(given("shell_close", "session_id", &self.session_id)?)?;
        let was_alive = session.is_alive();
        if was_alive && !close::end(&session, cx).await {
            let text = format!("session `{}` does not end, not even by SIGKILL", session.id);
            return Err(Error::new(ErrorKind::Timeout, text).with_hint("call shell_close again"));
        }
        let mut told = Map::new();
        {
            let mut live = session.live();
            if let Some(end) = &live.end {
                tell_end(&mut told, end);
            }
            let cut = cut::to(&live.screen.unseen().text, TEXT_BYTES_MAX);
            told.insert("final_output".to_owned(), cut.text.into());
            live.screen.mark_seen();
        }
        join::show(&session).await;
        shells.forget(&session);
        shells.trace.line(format_args!("close: id={}, was_alive={was_alive}", session.id));
        Ok(Output::json(Value::Object(told)))
    }
}

tool!(ShellClose);
