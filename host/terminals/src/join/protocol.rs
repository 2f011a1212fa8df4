//! The protocol of the socket: one JSON object per line.

use jaato_types::terminal::TerminalScreen;
use serde::{Deserialize, Serialize};

/// Longest line from a client, in bytes: far more than it needs.
pub(crate) const REQUEST_BYTES_MAX: usize = 64 * 1024;

/// Longest line from a host, in bytes: a screen with every byte escaped.
pub(crate) const REPLY_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Maximum bytes typed in one request. As JSON numbers they fit into a line.
pub(crate) const TYPED_BYTES_MAX: usize = 4096;

/// A client's message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "snake_case")]
pub enum JoinRequest {
    /// Lists the terminals. Answered with [`JoinReply::Terminals`].
    List,
    /// Follows a terminal. Answered with [`JoinReply::Attached`] and screens.
    Attach {
        /// The session.
        session: String,
        /// The terminal's number in it.
        terminal: u64,
        /// Whether the client is going to type.
        types: bool,
    },
    /// Types into the attached terminal.
    Type {
        /// The input.
        bytes: Vec<u8>,
    },
}

/// A host's message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "snake_case")]
pub enum JoinReply {
    /// The terminals of this host.
    Terminals {
        /// All of them.
        terminals: Vec<JoinableTerminal>,
    },
    /// Screens follow.
    Attached {
        /// The attached terminal.
        terminal: JoinableTerminal,
    },
    /// The newest screen.
    Screen {
        /// The screen.
        screen: TerminalScreen,
        /// The same as ANSI text.
        ansi: String,
    },
    /// The input could not be delivered.
    NotTyped {
        /// Why.
        message: String,
    },
    /// The terminal has ended. This is the last message.
    Ended,
    /// The request is refused. This is the last message.
    Refused {
        /// Why.
        message: String,
    },
    /// An unknown message, to be ignored.
    #[serde(other)]
    Unknown,
}

/// A terminal in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JoinableTerminal {
    /// The session.
    pub session: String,
    /// The terminal's number in it.
    pub terminal: u64,
    /// The plugin's name for it.
    pub name: String,
    /// The plugin.
    pub plugin: String,
    /// The command that runs on it.
    pub command: String,
    /// Lines of the terminal.
    pub rows: u16,
    /// Columns of the terminal.
    pub columns: u16,
    /// How long it has been shown.
    pub age_ms: u64,
    /// Whether the program still runs.
    pub is_alive: bool,
    /// Number of users who look at it.
    pub watchers: u32,
}

impl JoinableTerminal {
    /// Returns its full name: `<session>/session_0`.
    pub fn full_name(&self) -> String {
        format!("{}/{}", self.session, self.name)
    }
}
