//! A shell in the container that ends a command's remaining processes, and all processes when the
//! host is gone.
//!
//! It reads requests from its standard input and needs only `sh` and `/proc` in the image. Its
//! input closes when the host ends, even after a crash, and then it ends all processes that it
//! tracks. In a container that was made for one session, it is the first process, so the kernel
//! ends all others with it.

use jaato_plugin_sdk::types::process::{LeftoverProcess, Signal};
use jaato_plugin_sdk::types::{Error, ErrorKind, Result};
use tokio::sync::{mpsc, oneshot};

use crate::link::{self, ExecStreams, HelperShellRequest};

/// The shell's script.
pub const SCRIPT: &str = include_str!("guardian.sh");

/// Returns the name of a signal that every `kill` knows.
fn signal_name(signal: Signal) -> &'static str {
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

/// A handle to the shell. The shell's input closes with the last handle.
#[derive(Debug, Clone)]
pub struct ContainerGuardian {
    // Unbounded, so that a drop can send without waiting. Requests have a few bytes, and each
    // command needs only a few.
    asks: mpsc::UnboundedSender<HelperShellRequest>,
}

impl ContainerGuardian {
    /// Creates a handle to a shell that runs [`SCRIPT`].
    pub fn from_streams(streams: ExecStreams) -> Self {
        let (asks, receiver) = mpsc::unbounded_channel();
        tokio::spawn(link::forward_requests(streams, receiver));
        Self { asks }
    }

    /// Returns true if the shell has ended, because it was killed or the container died.
    pub fn has_ended(&self) -> bool {
        self.asks.is_closed()
    }

    /// Registers a started command.
    pub fn register_command(&self, session: u32) {
        self.send_request(format!("t {session}"));
    }

    /// Unregisters an ended command. Returns the processes that it left running.
    ///
    /// # Errors
    /// `unavailable` if the shell has ended.
    pub async fn unregister_command(&self, session: u32) -> Result<Vec<LeftoverProcess>> {
        Ok(parse_leftover_processes(&self.ask_guardian(format!("u {session}")).await?))
    }

    /// Ends a command and all its processes, without waiting. For use in a drop.
    pub fn request_end(&self, session: u32) {
        self.send_request(format!("e {session}"));
    }

    /// Ends a command and all its processes.
    ///
    /// # Errors
    /// `unavailable` if the shell has ended.
    pub async fn end_command(&self, session: u32) -> Result<()> {
        self.ask_guardian(format!("e {session}")).await.map(drop)
    }

    /// Ends all registered commands and the shell itself, and waits until its output is closed.
    ///
    /// # Errors
    /// `unavailable` if the shell has ended.
    pub async fn end_all_commands(&self) -> Result<()> {
        self.ask_guardian("x".to_owned()).await?;
        self.asks.closed().await;
        Ok(())
    }

    /// Sends a signal to a process group. Returns true if the group exists.
    ///
    /// # Errors
    /// `unavailable` if the shell has ended.
    pub async fn signal_group(&self, group: u32, signal: Signal) -> Result<bool> {
        Ok(self.ask_guardian(format!("s {group} {}", signal_name(signal))).await? == "ok")
    }

    /// Returns the shell's information about a session's terminal: group, state, kernel function in
    /// which it waits, name.
    ///
    /// # Errors
    /// `unavailable` if the shell has ended.
    pub async fn query_foreground(&self, session: u32) -> Result<String> {
        self.ask_guardian(format!("f {session}")).await
    }

    fn send_request(&self, words: String) {
        // If the shell has ended, it or its container has ended all commands.
        let _ = self.asks.send(HelperShellRequest { words, answer: None });
    }

    async fn ask_guardian(&self, words: String) -> Result<String> {
        let ended = || {
            let text = "the shell in the container that sends signals has ended";
            Error::new(ErrorKind::Unavailable, text).temporary()
        };
        let (answer, receiver) = oneshot::channel();
        self.asks.send(HelperShellRequest { words, answer: Some(answer) }).map_err(|_| ended())?;
        receiver.await.map_err(|_| ended())
    }
}

/// Parses `ok PID NAME/PID NAME/`, with a space before each entry.
fn parse_leftover_processes(answer: &str) -> Vec<LeftoverProcess> {
    let list = answer.strip_prefix("ok").unwrap_or_default();
    let parse = |entry: &str| {
        let (pid, name) = entry.trim_start().split_once(' ')?;
        Some(LeftoverProcess { pid: pid.parse().ok()?, name: name.to_owned() })
    };
    list.split('/').filter_map(parse).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leftover_processes_are_parsed_with_their_names() {
        let left = |pid, name: &str| LeftoverProcess { pid, name: name.to_owned() };
        let expected = [left(12, "sleep"), left(13, "my program")];
        assert_eq!(parse_leftover_processes("ok 12 sleep/ 13 my program/"), expected);
        assert_eq!(parse_leftover_processes("ok"), []);
    }
}
