//! A shell in the container that ends what is left of a command, and everything when the host is
//! gone.
//!
//! It reads requests from its standard input and needs nothing of the image but `sh` and `/proc`.
//! Its input closes when the host ends, however that dies; then it ends what it was told of. In a
//! container that was made for one session it is the first process: with its end, the kernel ends
//! all others.

use jaato_plugin_sdk::types::process::{LeftRunning, Signal};
use jaato_plugin_sdk::types::{Error, ErrorKind, Result};
use tokio::sync::{mpsc, oneshot};

use crate::link::{self, Ask, Streams};

/// What the shell runs.
pub const SCRIPT: &str = include_str!("guardian.sh");

/// By the name that every `kill` knows.
fn word(signal: Signal) -> &'static str {
    match signal {
        Signal::Hangup => "HUP",
        Signal::Interrupt => "INT",
        Signal::Quit => "QUIT",
        Signal::Terminate => "TERM",
        Signal::Kill => "KILL",
        Signal::User1 => "USR1",
        Signal::User2 => "USR2",
        Signal::Stop => "STOP",
        Signal::Continue => "CONT",
    }
}

/// A handle to the shell; its input closes with the last one.
#[derive(Debug, Clone)]
pub struct Guardian {
    // Unbounded, so that a drop can ask without waiting: requests are a few bytes, a handful for
    // each command.
    asks: mpsc::UnboundedSender<Ask>,
}

impl Guardian {
    /// Speaks to a shell that runs [`SCRIPT`].
    pub fn over(streams: Streams) -> Self {
        let (asks, receiver) = mpsc::unbounded_channel();
        tokio::spawn(link::serve(streams, receiver));
        Self { asks }
    }

    /// Whether the shell has ended: somebody killed it, or the container died.
    pub fn has_ended(&self) -> bool {
        self.asks.is_closed()
    }

    /// Tells of a command that was started.
    pub fn track(&self, session: u32) {
        self.tell(format!("t {session}"));
    }

    /// Tells of a command that has ended; gives what it left running.
    ///
    /// # Errors
    /// Kind `unavailable` when the shell has ended.
    pub async fn ended(&self, session: u32) -> Result<Vec<LeftRunning>> {
        Ok(parse_left(&self.ask(format!("u {session}")).await?))
    }

    /// Ends a command and all that belongs to it, without waiting: for a drop.
    pub fn end(&self, session: u32) {
        self.tell(format!("e {session}"));
    }

    /// Ends a command and all that belongs to it.
    ///
    /// # Errors
    /// Kind `unavailable` when the shell has ended.
    pub async fn end_now(&self, session: u32) -> Result<()> {
        self.ask(format!("e {session}")).await.map(drop)
    }

    /// Ends all commands that it was told of, and the shell itself.
    ///
    /// # Errors
    /// Kind `unavailable` when the shell has ended.
    pub async fn end_all(&self) -> Result<()> {
        self.ask("x".to_owned()).await.map(drop)
    }

    /// Sends a signal to a process group; tells whether there was one.
    ///
    /// # Errors
    /// Kind `unavailable` when the shell has ended.
    pub async fn signal(&self, group: u32, signal: Signal) -> Result<bool> {
        Ok(self.ask(format!("s {group} {}", word(signal))).await? == "ok")
    }

    /// What the shell says of the terminal of a session: group, state, what it waits in, name.
    ///
    /// # Errors
    /// Kind `unavailable` when the shell has ended.
    pub async fn foreground(&self, session: u32) -> Result<String> {
        self.ask(format!("f {session}")).await
    }

    fn tell(&self, words: String) {
        // A shell that has ended has ended all it was told of, or its container has.
        let _ = self.asks.send(Ask { words, answer: None });
    }

    async fn ask(&self, words: String) -> Result<String> {
        let ended = || {
            let text = "the shell in the container that sends signals has ended";
            Error::new(ErrorKind::Unavailable, text).temporary()
        };
        let (answer, receiver) = oneshot::channel();
        self.asks.send(Ask { words, answer: Some(answer) }).map_err(|_| ended())?;
        receiver.await.map_err(|_| ended())
    }
}

/// Reads `ok PID NAME/PID NAME/`, with a space before each.
fn parse_left(answer: &str) -> Vec<LeftRunning> {
    let list = answer.strip_prefix("ok").unwrap_or_default();
    let parse = |entry: &str| {
        let (pid, name) = entry.trim_start().split_once(' ')?;
        Some(LeftRunning { pid: pid.parse().ok()?, name: name.to_owned() })
    };
    list.split('/').filter_map(parse).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_left_is_read_with_its_names() {
        let left = |pid, name: &str| LeftRunning { pid, name: name.to_owned() };
        let expected = [left(12, "sleep"), left(13, "my program")];
        assert_eq!(parse_left("ok 12 sleep/ 13 my program/"), expected);
        assert_eq!(parse_left("ok"), []);
    }
}
