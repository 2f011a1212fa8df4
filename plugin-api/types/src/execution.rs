//! The execution environment: where a session's files are and its commands run.
//!
//! The host calls an environment plugin's operations, which are data: those in this module and in
//! [`files`](crate::files), [`process`](crate::process) and [`terminal`](crate::terminal). Tools
//! call services of the host with the same names and types, and the host passes them on to the
//! session's environment. If an answer names a stream ([`STREAM_KEY`]), the host reads it piece by
//! piece with [`STREAM_NEXT`] and gives the tool a handle instead.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Prepares the environment. Takes an [`EnvironmentSetup`], returns [`EnvironmentFacts`]. Only the
/// host calls it, once before anything else. After a failure it may call it again.
pub const SETUP: &str = "environment.setup";
/// Takes the environment down, without JSON in either direction. Only the host calls it, once after
/// all resources are closed.
pub const TEARDOWN: &str = "environment.teardown";

crate::operations::service_operations! { $ environment_operations, None, passed_on;
    /// Describes the session's execution environment. Fails with `unknown_operation` if the session
    /// has no environment, or with the reason why it is not ready.
    [reads] environment DESCRIBE "environment.describe": () => EnvironmentFacts, sdk [()];
}

/// Waits for the next piece of a stream. Takes a [`StreamNext`], returns a frame that the reader
/// gets unchanged; the JSON [`STREAM_END`] marks the end. A frame without JSON holds at most
/// [`PIECE_BYTES_MAX`], other frames 64 KiB. Only the host calls it, with one call at a time for
/// each stream. A dropped wait loses no data.
pub const STREAM_NEXT: &str = "stream.next";
/// Closes a stream and ends the work behind it. Takes a [`StreamClose`], returns no JSON. Only the
/// host calls it.
pub const STREAM_CLOSE: &str = "stream.close";

/// The JSON that marks the end of a stream.
pub const STREAM_END: bool = false;

/// The key in an answer whose value is the number of a stream.
pub const STREAM_KEY: &str = "stream";

/// The maximum size of one piece of a byte stream.
pub const PIECE_BYTES_MAX: usize = 1024 * 1024;

/// The setup request of an environment.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct EnvironmentSetup {
    /// The id of this environment, unique on this machine.
    pub id: String,
    /// The folder on the host in which the user works, as an absolute path.
    pub workspace: String,
    /// The root of the workspace around that folder: the nearest folder upwards that holds `.jaato`
    /// or `.git`. Empty if the host does not set it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub root: String,
    /// The user's options for this environment (`--image`, `--container`), which override its
    /// configuration.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub options: Map<String, Value>,
}

/// The facts about an environment.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct EnvironmentFacts {
    /// Its name: `local`, `docker`.
    pub name: String,
    /// Whether files and commands are those of the host's own machine, so that the host's knowledge
    /// about the machine applies.
    pub is_host: bool,
    /// The base of relative paths and the directory in which commands start, as commands see it.
    pub working_directory: String,
    /// Folders whose files tools may access, as commands see them.
    pub allowed_paths: Vec<AllowedPath>,
    /// The folder for files that last only as long as the environment, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temporary_directory: Option<String>,
    /// The default timeout of a command, in milliseconds; 0 means no timeout. It applies to
    /// programs of a call, but neither to programs that outlive their call nor to terminals.
    #[serde(skip_serializing_if = "is_zero")]
    pub shell_timeout_ms: u64,
    /// Whether commands are confined to those folders too.
    pub confines_commands: bool,
    /// The operating system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub os: Option<OsFacts>,
    /// The shell that runs a user's command line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shell: Option<ShellFacts>,
    /// The machine's architecture as the system names it: `x86_64`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// The user and group of commands (`1000:1000`), if they are not the host's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Further facts for users, such as a container's id and image.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub details: Map<String, Value>,
}

/// A folder whose files tools may access.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AllowedPath {
    /// The path, as commands see it.
    pub path: String,
    /// Whether the folder is read-only.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub read_only: bool,
}

/// An operating system, in the words of the tool `get_environment`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OsFacts {
    /// `linux`, `darwin`.
    #[serde(rename = "type")]
    pub kind: String,
    /// `Linux`, `Darwin`.
    pub name: String,
    /// The kernel's release.
    pub release: String,
    /// A name for users: `Debian GNU/Linux 12`.
    pub friendly_name: String,
}

/// A shell.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ShellFacts {
    /// Its name: `bash`.
    pub name: String,
    /// Its path.
    pub path: String,
}

/// A request for the next piece of a stream.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamNext {
    /// The number of the stream.
    pub stream: u64,
}

/// A request to close a stream.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamClose {
    /// The number of the stream.
    pub stream: u64,
}

/// A part that an execution environment may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EnvironmentPart {
    /// Files: the operations of [`files`](crate::files).
    Files,
    /// Commands: the operations of [`process`](crate::process).
    Shell,
    /// Terminals: the operations of [`terminal`](crate::terminal).
    Terminals,
    /// A part from a newer version. No environment has it.
    #[serde(other)]
    Unknown,
}

impl fmt::Display for EnvironmentPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Files => "files",
            Self::Shell => "a shell",
            Self::Terminals => "terminals",
            Self::Unknown => "something unknown to this version of jaato",
        })
    }
}

/// An execution environment that a plugin offers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct EnvironmentSpec {
    /// The name by which a user chooses it: `docker`.
    pub name: String,
    /// One line for a list.
    pub title: String,
    /// Command line options that choose this environment, each with the setting that it sets:
    /// `image`, `container`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub options: BTreeMap<String, String>,
}

// Takes a reference because serde requires it.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero(number: &u64) -> bool {
    *number == 0
}
