//! A session without a model: `jaato call --batch`, which reads its calls line by line.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use xtask::child;

/// A session that calls tools.
pub struct BatchSession {
    child: Child,
    input: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl BatchSession {
    /// Starts the session. Ignores its output for the user, which the answers contain too.
    pub fn start_batch(command: &mut Command) -> Result<Self> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("starting {}", child::command_text(command)))?;
        let input = child.stdin.take().context("the session has no standard input")?;
        let answers = child.stdout.take().context("the session has no standard output")?;
        Ok(Self { child, input, answers: BufReader::new(answers) })
    }

    /// Calls a tool and waits for its whole answer: the result or the error.
    pub fn call_tool(&mut self, tool: &str, arguments: &Value) -> Result<Value> {
        let line = json!({ "tool": tool, "args": arguments }).to_string() + "\n";
        self.input.write_all(line.as_bytes()).context("telling the session what to call")?;
        let mut answer = String::new();
        let bytes = self.answers.read_line(&mut answer).context("reading the session's answer")?;
        if bytes == 0 {
            bail!("the session ended without an answer");
        }
        serde_json::from_str(&answer)
            .with_context(|| format!("the session answered `{tool}` with `{answer}`"))
    }

    /// Returns the session's process id.
    pub fn process_id(&self) -> u32 {
        self.child.id()
    }

    /// Ends the session and all its child processes. A failed call makes its exit code fail again.
    pub fn end_session(self) -> Result<()> {
        let Self { mut child, input, answers } = self;
        drop((input, answers));
        let status = child.wait().context("waiting for the session")?;
        if status.success() { Ok(()) } else { bail!("the session ended with {status}") }
    }
}
