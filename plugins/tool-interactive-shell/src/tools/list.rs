//! The tool `shell_list`.

use std::time::{Duration, Instant};

use jaato_plugin_sdk::prelude::*;

use crate::shells::InteractiveShellPlugin;

/// List interactive sessions with their commands, whether they run, and their age.
#[derive(ToolInput)]
#[tool(
    category = "system",
    read_only,
    idempotent,
    auto_approval,
    available_if(
        environment_has = "shell",
        reason = "in a session whose execution environment runs commands"
    ),
    example("Which sessions are open?")
)]
struct ShellList {}

impl Tool for ShellList {
    type State = InteractiveShellPlugin;

    async fn call(self, cx: &Cx<InteractiveShellPlugin>) -> Result<Output> {
        let shells = &cx.state().0;
        let now = Instant::now();
        let seconds = |time: Duration| (time.as_secs_f64() * 10.0).round() / 10.0;
        let listed = shells.list_sessions();
        let sessions: Vec<Value> = listed
            .iter()
            .map(|session| {
                let live = session.lock_live();
                json!({
                    "session_id": session.id,
                    "command": session.command,
                    "is_alive": live.end.is_none(),
                    "age_seconds": seconds(now.saturating_duration_since(session.begun)),
                    "idle_seconds": seconds(now.saturating_duration_since(live.used)),
                    "backend": session.backend.as_str(),
                })
            })
            .collect();
        let mut told = json!({ "count": sessions.len(), "sessions": sessions });
        told["backend"] = shells.current_backend().as_str().into();
        match shells.trace.path_or_reason() {
            Ok(path) => told["trace_log"] = path.into(),
            Err(why) => told["trace_log_missing"] = why.into(),
        }
        Ok(Output::json(told))
    }
}

tool!(ShellList);
