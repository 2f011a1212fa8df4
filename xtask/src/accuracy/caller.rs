//! One session of the real `jaato`: a line in, a line out.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::services::Place;

/// Where an ordinary user finds programs: what root has in folders of its own is none of them.
pub const SYSTEM_PATH: &str = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin";

/// A `jaato call --batch`.
pub struct Caller {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

/// What a call answered, and when.
#[derive(Debug)]
pub struct Answer {
    pub asked: Instant,
    pub answered: Instant,
    /// `waiting`, `prompt`, `exit`, `silence`, `limit`; the error's words for a call that failed.
    pub reason: String,
    pub output: String,
    pub is_alive: bool,
}

impl Answer {
    /// In place of an answer, where nothing could be asked.
    pub fn failed(begun: Instant, reason: String) -> Self {
        let (asked, answered) = (begun, Instant::now());
        Self { asked, answered, reason, output: String::new(), is_alive: true }
    }
}

impl Caller {
    /// Starts it in the program's folder, with a home of its own there.
    pub fn start(jaato: &Path, place: &Place, user: Option<&str>) -> Result<Self> {
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
        // What it shows a person is in the answers too.
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child =
            command.spawn().with_context(|| format!("starting `{}`", jaato.display()))?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let output = BufReader::new(output.context("no output")?);
        Ok(Self { child, input, output })
    }

    /// The process, by which its terminals are found.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Calls a tool and waits for its answer.
    pub fn call(&mut self, tool: &str, arguments: &Value) -> Result<Answer> {
        let line = json!({ "tool": tool, "args": arguments }).to_string() + "\n";
        let asked = Instant::now();
        let input = self.input.as_mut().context("it is closed")?;
        input.write_all(line.as_bytes()).context("asking jaato")?;
        let mut line = String::new();
        if self.output.read_line(&mut line).context("reading jaato's answer")? == 0 {
            bail!("jaato ended without an answer");
        }
        let answered = Instant::now();
        let answer: Value = serde_json::from_str(&line).context("reading jaato's answer")?;
        let result = &answer["result"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let reason = match &answer["error"] {
            Value::Null => text(&result["reason"]),
            error => text(&error["message"]),
        };
        let output = text(&result["output"]);
        Ok(Answer { asked, answered, reason, output, is_alive: result["is_alive"] == true })
    }

    /// Ends it, and with it all that it started.
    pub fn finish(mut self) {
        drop(self.input.take());
        // The exit code tells of calls that failed, which were counted one by one.
        let _ = self.child.wait();
    }
}
