//! The execution environment: where a session's files lie and its commands run.
//!
//! An environment plugin is asked by operations, which are data: those here, those of
//! [`files`](crate::files), [`process`](crate::process) and [`terminal`](crate::terminal). Tools
//! ask the host for services of the same names and shapes, and the host passes them on to the
//! session's environment. What an answer names as a stream ([`STREAM_KEY`]) the host reads piece by
//! piece by [`STREAM_NEXT`], and gives the tool a handle in its place.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Makes the environment ready: [`EnvironmentSetup`], [`EnvironmentFacts`]. Asked once, by the host
/// alone, before anything else; one that failed may be asked again.
pub const SETUP: &str = "environment.setup";
/// Takes the environment down: no JSON either way. Asked once, by the host alone, after all
/// resources are closed.
pub const TEARDOWN: &str = "environment.teardown";

crate::operations::service_operations! { $ environment_operations, None, passed_on;
    /// Describes the session's execution environment. The error is `unknown_operation` if the
    /// session has none, or the reason why it is not ready.
    [reads] environment DESCRIBE "environment.describe": () => EnvironmentFacts, sdk [()];
}

/// Waits for the next piece of a stream: [`StreamNext`], and a frame that is handed to the reader
/// as it is; the JSON [`STREAM_END`] is the end. Bytes without JSON may be [`PIECE_BYTES_MAX`],
/// other frames hold 64 KiB. Asked by the host alone, once at a time for each stream; dropping the
/// wait loses nothing.
pub const STREAM_NEXT: &str = "stream.next";
/// Ends a stream and what it stands for: [`StreamClose`]; no answer JSON. Asked by the host alone.
pub const STREAM_CLOSE: &str = "stream.close";

/// The JSON of a stream's end.
pub const STREAM_END: bool = false;

/// The key of an answer that names a stream, by number.
pub const STREAM_KEY: &str = "stream";

/// Bytes at most in a piece of a stream of bytes.
pub const PIECE_BYTES_MAX: usize = 1024 * 1024;

/// What an environment is made ready for.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct EnvironmentSetup {
    /// Names this environment: unique on this machine.
    pub id: String,
    /// The folder of the host that the person works in, absolute.
    pub workspace: String,
    /// The root of the workspace around that folder: the nearest folder upwards that holds `.jaato`
    /// or `.git`. Empty where a host does not say it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub root: String,
    /// What the person chose for this environment (`--image`, `--container`), over its
    /// configuration.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub options: Map<String, Value>,
}

/// What an environment is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct EnvironmentFacts {
    /// Its name: `local`, `docker`.
    pub name: String,
    /// Whether files and commands are those of the host's own machine, so that what the host knows
    /// of that holds.
    pub is_host: bool,
    /// Where a relative path and a command begin, as commands see it.
    pub working_directory: String,
    /// Folders in which files may be touched, as commands see them.
    pub allowed_paths: Vec<AllowedPath>,
    /// The folder for what is to last only as long as the environment, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temporary_directory: Option<String>,
    /// How long a command may take which says nothing itself, in milliseconds; as long as it likes
    /// where 0. It holds for programs of a call, neither for those that outlive it nor for
    /// terminals.
    #[serde(skip_serializing_if = "is_zero")]
    pub shell_timeout_ms: u64,
    /// Whether commands, too, are kept to those folders.
    pub confines_commands: bool,
    /// The operating system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub os: Option<OsFacts>,
    /// The shell for a person's line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shell: Option<ShellFacts>,
    /// The machine's architecture as the system names it: `x86_64`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// Whom commands run as: `1000:1000`, where that is not the host's own user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// What else a person may want to know: a container's id, its image.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub details: Map<String, Value>,
}

/// A folder in which files may be touched.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AllowedPath {
    /// As commands see it.
    pub path: String,
    /// Whether nothing there may be changed.
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
    /// For people: `Debian GNU/Linux 12`.
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

/// Asks for the next piece of a stream.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamNext {
    /// Its number.
    pub stream: u64,
}

/// Ends a stream.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamClose {
    /// Its number.
    pub stream: u64,
}

/// Something that an execution environment may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EnvironmentPart {
    /// Files: the operations of [`files`](crate::files).
    Files,
    /// Commands: those of [`process`](crate::process).
    Shell,
    /// Terminals: those of [`terminal`](crate::terminal).
    Terminals,
    /// A part that this side does not know. No environment has it.
    #[serde(other)]
    Unknown,
}

impl fmt::Display for EnvironmentPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Files => "files",
            Self::Shell => "a shell",
            Self::Terminals => "terminals",
            Self::Unknown => "something that this version of jaato does not know",
        })
    }
}

/// An execution environment that a plugin is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct EnvironmentSpec {
    /// The name by which a person chooses it: `docker`.
    pub name: String,
    /// One line for a list.
    pub title: String,
    /// Options of the command line that choose this environment, and the setting for which each
    /// stands: `image`, `container`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub options: BTreeMap<String, String>,
}

// By reference, as serde asks for it.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero(number: &u64) -> bool {
    *number == 0
}
