//! What the host lends by name: the requests and answers of services.
//!
//! A service is asked by `service(operation, frame)` on a context. A side that does not know an
//! operation answers with the kind `unknown_operation`.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::mcp_entry::AgreedVariables;

crate::operations::service_operations! { $ session_operations, None, answered;
    /// Reads the facts of the session.
    [reads] session SESSION "session": () => SessionFacts, sdk [()];
    /// Reads the plugin's configuration, `[plugins.NAME]`.
    [reads] config CONFIG "config": () => Value;
}

crate::operations::service_operations! { $ asset_operations, None, answered;
    /// Finds a file that the plugin declares as an asset, and downloads it if necessary. The error
    /// is `unavailable` if the host cannot get it.
    asset ASSET "asset": AssetRequest => AssetAnswer, sdk [{ id: &str }];
    /// Finds a folder of the plugin's own in the user's cache, and returns its path.
    cache_folder CACHE_FOLDER "cache_folder": () => FolderAnswer, sdk [().path: String];
}

crate::operations::service_operations! { $ output_operations, None, answered;
    /// Streams a piece of a text of the tool call's result.
    output OUTPUT "output": (Option<OutputWrite>) + bytes => OutputAnswer;
}

crate::operations::service_operations! { $ blob_operations, None, answered;
    /// Keeps bytes for the session, whole or in pieces.
    put BLOB_PUT "blob.put": BlobPut + bytes => BlobPutAnswer;
    /// Reads the bytes of a blob.
    [reads] get BLOB_GET "blob.get": BlobGet => BlobGetAnswer + stream;
}

crate::operations::service_operations! { $ attach_operations, None, answered;
    /// Attaches a blob of the session to the result of the tool call.
    attach ATTACH "attach": Attach => AttachAnswer;
}

/// Most attachments of one tool call.
pub const ATTACHMENTS_MAX: usize = 20;
/// Blobs that one context may have begun and not finished: each is an open file, and the host has
/// 1024 descriptors on many systems.
pub const BLOBS_BEGUN_MAX: usize = 16;
/// Most bytes of one blob: 100 MiB, a long scan or a short video.
pub const BLOB_BYTES_MAX: u64 = 100 * 1024 * 1024;
/// Most bytes of all blobs of a session, those that are being written included: 256 MiB. A tool
/// that attaches without end must not fill the disk.
pub const BLOBS_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// Most blobs of a session, those that are being written included: small ones must not use up the
/// files of a disk.
pub const BLOBS_MAX: usize = 4096;

/// Facts of the session that a call belongs to.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SessionFacts {
    /// The session's id; empty for a call typed by a person.
    pub session_id: String,
    /// The agent's id: `main`, or a subagent's.
    pub agent_id: String,
    /// `main` or `subagent`.
    pub agent_type: String,
    /// The agent's name, where it has one.
    pub agent_name: String,
    /// The value of `JAATO_SESSION_ID` that the host was started with.
    pub env_session_id: String,
    /// Model and tokens; none where the session has no model.
    pub context: Option<ContextFacts>,
    /// The working directory, absolute.
    pub working_directory: String,
    /// The root of the workspace, if the person trusts it as it is; files of another are
    /// a stranger's word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trusted_workspace: Option<String>,
    /// Variables that the user agreed to send to MCP servers of that workspace.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub agreed_variables: Vec<AgreedVariables>,
    /// The terminal that the person sits at.
    pub terminal: TerminalFacts,
    /// The name of the process that started the host, where known: the current shell.
    pub parent_process: Option<String>,
    /// Bytes of a tool's answer, as JSON, that the model is sent. What is longer is cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_bytes_max: Option<usize>,
}

/// Model and tokens of a session.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ContextFacts {
    /// `provider/model`.
    pub model: String,
    /// The context window in tokens.
    pub context_limit: u64,
    /// Tokens of the last prompt.
    pub prompt_tokens: u64,
    /// Tokens that came after it.
    pub output_tokens: u64,
    /// Turns so far, the open one included.
    pub turns: u64,
    /// Settings of the gc, where there is one.
    pub gc: Option<GcFacts>,
}

/// Settings of a session's gc.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct GcFacts {
    /// Usage at which it runs, in percent of the context window.
    pub threshold_percent: f64,
    /// Whether it runs by itself.
    pub auto_trigger: bool,
    /// Turns that it always keeps.
    pub preserve_recent_turns: u64,
    /// Turns at which it runs, where set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<u64>,
}

/// The terminal that the person sits at, as the host found it at start.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TerminalFacts {
    /// Whether standard input is a terminal.
    pub input_is_terminal: bool,
    /// Whether standard output is a terminal.
    pub output_is_terminal: bool,
    /// `TERM`.
    pub term: Option<String>,
    /// `TERM_PROGRAM`.
    pub term_program: Option<String>,
    /// `COLORTERM`.
    pub colorterm: Option<String>,
    /// Whether `TMUX` is set.
    pub tmux: bool,
    /// Whether `STY` is set (GNU screen).
    pub screen: bool,
    /// `JAATO_GRAPHICS_PROTOCOL` as set; what follows without it is concluded from the other
    /// fields.
    pub graphics: Option<String>,
}

/// Asks for an asset.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AssetRequest {
    /// The id in the plugin's description, or the name of an imported file.
    pub id: String,
}

/// Where an asset lies.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AssetAnswer {
    /// Absolute path; the file is verified and stays as it is.
    pub path: String,
    /// Its digest, in hex.
    pub sha256: String,
}

crate::operations::made_by_host!(AssetAnswer(path: impl Into<String>, sha256: impl Into<String>));

/// A folder that the plugin may write to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FolderAnswer {
    /// Absolute path; exists, mode 0700.
    pub path: String,
}

crate::operations::made_by_host!(FolderAnswer(path: impl Into<String>));

/// Adds the frame's bytes to a text of the call's result. The host keeps all of them in a file and
/// truncates what the model gets.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OutputWrite {
    /// The key of the text in the result; `output` if it is empty.
    pub key: String,
    /// Whether the user sees it live, as an event.
    pub live: bool,
}

/// What the call has streamed so far.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct OutputAnswer {
    /// Bytes of all its texts.
    pub bytes: u64,
}

crate::operations::made_by_host!(OutputAnswer(bytes: u64));

/// Writes the frame's bytes to a blob of the session.
///
/// Without `put` a new one begins, and with `more` it stays open for further pieces. So what fits
/// into one frame is one request of nothing but its media type.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BlobPut {
    /// The media type of a new blob, such as `image/png`. Where the session has the same bytes
    /// already, the type that was said first stays.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub mime_type: String,
    /// The number of the blob that goes on, as its first answer told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub put: Option<u64>,
    /// Whether more pieces follow. A blob that is not finished goes with its call.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub more: bool,
}

/// What a blob is by then.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct BlobPutAnswer {
    /// The number to go on by, while more may follow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub put: Option<u64>,
    /// The id, once it is whole: the SHA-256 of the bytes, in lower-case hex.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blob: Option<String>,
    /// Bytes in it.
    #[serde(default)]
    pub bytes: u64,
}

impl BlobPutAnswer {
    /// Makes the answer for a blob that goes on under this number; the host does.
    pub fn begun(put: u64, bytes: u64) -> Self {
        Self { put: Some(put), blob: None, bytes }
    }

    /// Makes the answer for a blob that is whole; the host does.
    pub fn whole(blob: impl Into<String>, bytes: u64) -> Self {
        Self { put: None, blob: Some(blob.into()), bytes }
    }
}

/// Asks for a blob.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlobGet {
    /// Its id.
    pub blob: String,
}

/// What is known of a blob before its first byte.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct BlobGetAnswer {
    /// Its media type, as who put it said: nobody has looked.
    #[serde(default)]
    pub mime_type: String,
    /// Bytes in it.
    #[serde(default)]
    pub bytes: u64,
    /// The stream of its bytes.
    pub handle: u64,
}

/// Attaches a blob.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attach {
    /// What it is. The host looks at images and PDF, and refuses a lie.
    pub mime_type: String,
    /// The blob's id.
    pub blob: String,
    /// A file name without folders, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// What a call has attached by then.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AttachAnswer {
    /// How many attachments it has.
    #[serde(default)]
    pub attached: u64,
}

crate::operations::made_by_host!(AttachAnswer(attached: u64));

/// What a streaming service answers: a stream to be read by `next` and ended by `close`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamAnswer {
    /// The handle.
    pub handle: u64,
}
