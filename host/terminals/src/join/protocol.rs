//! What is said on the socket: one JSON object a line.

use jaato_types::terminal::TerminalScreen;
use serde::{Deserialize, Serialize};

/// Bytes of a line that a client may send: far more than it needs.
pub(crate) const REQUEST_BYTES_MAX: usize = 64 * 1024;

/// Bytes of a line that a host sends: a screen with every byte of it escaped.
pub(crate) const REPLY_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Bytes that are typed in one request at most; as numbers in JSON they fit into a line.
pub(crate) const TYPED_BYTES_MAX: usize = 4096;

/// What a client says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "snake_case")]
pub enum Request {
    /// Which terminals are there? Answered with [`Reply::Terminals`].
    List,
    /// Shows a terminal from here on. Answered with [`Reply::Attached`] and screens.
    Attach {
        /// The session.
        session: String,
        /// The terminal's number in it.
        terminal: u64,
        /// Whether something is going to be typed.
        types: bool,
    },
    /// Types into the terminal that is shown.
    Type {
        /// What was typed.
        bytes: Vec<u8>,
    },
}

/// What a host says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "snake_case")]
pub enum Reply {
    /// The terminals of this host.
    Terminals {
        /// All of them.
        terminals: Vec<Listed>,
    },
    /// Screens follow.
    Attached {
        /// What is shown.
        terminal: Listed,
    },
    /// The newest screen.
    Screen {
        /// As it is.
        screen: TerminalScreen,
        /// The same as ANSI text.
        ansi: String,
    },
    /// What was typed could not be handed over.
    NotTyped {
        /// Why.
        message: String,
    },
    /// The terminal has ended; nothing comes after this.
    Ended,
    /// The request is refused; nothing comes after this.
    Refused {
        /// Why.
        message: String,
    },
    /// Something that this side does not know; it is passed over.
    #[serde(other)]
    Unknown,
}

/// A terminal in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listed {
    /// The session.
    pub session: String,
    /// The terminal's number in it.
    pub terminal: u64,
    /// What the plugin calls it.
    pub name: String,
    /// The plugin.
    pub plugin: String,
    /// What runs on it.
    pub command: String,
    /// Lines of the terminal.
    pub rows: u16,
    /// Columns of the terminal.
    pub columns: u16,
    /// How long it has been shown.
    pub age_ms: u64,
    /// Whether the program still runs.
    pub is_alive: bool,
    /// How many people look at it.
    pub watchers: u32,
}

impl Listed {
    /// Returns what people call it: `<session>/session_0`.
    pub fn full_name(&self) -> String {
        format!("{}/{}", self.session, self.name)
    }
}
