//! A session of the real `jaato`, with one line in and one line out per call.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::Result;
use serde_json::Value;

use super::services::ProgramFolder;
use crate::batch::BatchSession;

/// The search path of an ordinary user, without the folders that only root can access.
pub const SYSTEM_PATH: &str = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin";

/// A running `jaato call --batch`.
pub struct ToolCaller(BatchSession);

/// The answer to a call, and its time.
#[derive(Debug)]
pub struct TimedToolAnswer {
    pub asked: Instant,
    pub answered: Instant,
    /// `waiting`, `prompt`, `exit`, `silence` or `limit`, or the error message of a failed call.
    pub reason: String,
    pub output: String,
    pub is_alive: bool,
}

impl TimedToolAnswer {
    /// Returns the answer of a call that could not be made.
    pub fn from_failure(begun: Instant, reason: String) -> Self {
        let (asked, answered) = (begun, Instant::now());
        Self { asked, answered, reason, output: String::new(), is_alive: true }
    }
}

impl ToolCaller {
    /// Starts the session in the program's folder, with its own home there.
    pub fn start_session(jaato: &Path, place: &ProgramFolder, user: Option<&str>) -> Result<Self> {
        let own_path = std::env::var_os("PATH").unwrap_or_default();
        let path = if user.is_some() { SYSTEM_PATH.into() } else { own_path };
        let mut command = match user {
            Some(user) => {
                let mut command = Command::new("setpriv");
                command.args(["--reuid", user, "--regid", user, "--init-groups", "--"]).arg(jaato);
                command
            }
            None => Command::new(jaato),
        };
        command.args(["call", "--batch"]).env_clear().current_dir(&place.work);
        command.env("HOME", &place.home).env("PATH", path);
        command.env("LANG", "C.UTF-8").env("JAATO_TRACE_LOG", place.home.join("trace"));
        BatchSession::start_batch(&mut command).map(Self)
    }

    /// Returns the process id, through which its terminals are found.
    pub fn pid(&self) -> u32 {
        self.0.process_id()
    }

    /// Calls a tool and waits for its answer.
    pub fn call_tool(&mut self, tool: &str, arguments: &Value) -> Result<TimedToolAnswer> {
        let asked = Instant::now();
        let answer = self.0.call_tool(tool, arguments)?;
        let answered = Instant::now();
        let result = &answer["result"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let reason = match &answer["error"] {
            Value::Null => text(&result["reason"]),
            error => text(&error["message"]),
        };
        let output = text(&result["output"]);
        Ok(TimedToolAnswer {
            asked,
            answered,
            reason,
            output,
            is_alive: result["is_alive"] == true,
        })
    }

    /// Ends the session and all its child processes.
    pub fn end_session(self) {
        // The exit code reports failed calls, which were already counted.
        let _ = self.0.end_session();
    }
}
