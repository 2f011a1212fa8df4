//! The tool `shell_close`.

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::serde_json::Map;

use super::non_empty_argument;
use crate::answer::{add_processes, add_program_end};
use crate::shells::InteractiveShellPlugin;
use crate::{close, output, watch_sessions};

/// End a session and everything that runs in it, also in the background. Returns the exit status,
/// the last output, and which other processes were ended.
#[derive(ToolInput)]
#[tool(
    category = "system",
    destructive,
    available_if(
        environment_has = "shell",
        reason = "in a session whose execution environment runs commands"
    ),
    example("Close the session", session_id = "session_0")
)]
struct ShellClose {
    /// The session.
    #[schemars(extend("x-jaato-touches" = { "text": "the name of a terminal" }))]
    session_id: String,
}

impl Tool for ShellClose {
    type State = InteractiveShellPlugin;

    async fn call(self, cx: &Cx<InteractiveShellPlugin>) -> Result<Output> {
        let shells = &cx.state().0;
        let session = shells.session_by_id(non_empty_argument(
            "shell_close",
            "session_id",
            &self.session_id,
        )?)?;
        let was_alive = session.is_alive();
        let Some(ended) = close::close_session(&session, cx).await? else {
            let text = format!("session `{}` did not end, even after SIGKILL", session.id);
            return Err(Error::new(ErrorKind::Timeout, text).with_hint("call shell_close again"));
        };
        let mut told = Map::new();
        if let Some(end) = &session.lock_live().end {
            add_program_end(&mut told, end);
        }
        add_processes(&mut told, "ended", &ended);
        output::stream_new_output(cx, &session, &mut told, "final_output").await?;
        watch_sessions::show_screen(&session).await;
        shells.remove_session(&session);
        shells.trace.write_line(format_args!("close: id={}, was_alive={was_alive}", session.id));
        Ok(Output::json(Value::Object(told)))
    }
}

tool!(ShellClose);
