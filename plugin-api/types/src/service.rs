//! Requests and answers of the services that the host offers by name.
//!
//! A plugin calls a service with `service(operation, frame)` on a context. A side that does not
//! know an operation answers with the kind `unknown_operation`.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::mcp_entry::AgreedVariables;

crate::operations::service_operations! { $ session_operations, None, answered;
    /// Returns the facts about the session.
    [reads] session SESSION "session": () => SessionFacts, sdk [()];
    /// Returns the plugin's configuration, `[plugins.NAME]`, as JSON.
    [reads] config CONFIG "config": () => Value;
}

crate::operations::service_operations! { $ asset_operations, None, answered;
    /// Returns the path of an asset that the plugin declares, and downloads it if necessary. Fails
    /// with `unavailable` if the host cannot get it.
    asset ASSET "asset": AssetRequest => AssetAnswer, sdk [{ id: &str }];
    /// Returns the path of the plugin's own folder in the user's cache.
    cache_folder CACHE_FOLDER "cache_folder": () => FolderAnswer, sdk [().path: String];
}

crate::operations::service_operations! { $ output_operations, None, answered;
    /// Streams a piece of a text of the tool call's result.
    output OUTPUT "output": (Option<OutputWrite>) + bytes => OutputAnswer;
}

crate::operations::service_operations! { $ blob_operations, None, answered;
    /// Stores bytes for the session, at once or in pieces.
    put BLOB_PUT "blob.put": BlobPut + bytes => BlobPutAnswer;
    /// Reads stored bytes.
    [reads] get BLOB_GET "blob.get": BlobGet => BlobGetAnswer + stream;
}

crate::operations::service_operations! { $ attach_operations, None, answered;
    /// Attaches a blob of the session to the result of the running tool call.
    attach ATTACH "attach": AttachRequest => AttachAnswer;
}

/// The maximum number of attachments of one tool call.
pub const ATTACHMENTS_MAX: usize = 20;
/// The maximum number of blobs that one context may have begun and not finished. Each is an open
/// file, and many systems give the host 1024 descriptors.
pub const BLOBS_BEGUN_MAX: usize = 16;
/// The maximum size of one blob, in bytes: 100 MiB, such as a long scan or a short video.
pub const BLOB_BYTES_MAX: u64 = 100 * 1024 * 1024;
/// The maximum size of all blobs of a session, in bytes, including unfinished ones: 256 MiB. A tool
/// that attaches endlessly must not fill the disk.
pub const BLOBS_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// The maximum number of blobs of a session, including unfinished ones. Small blobs must not use up
/// the disk's file entries.
pub const BLOBS_MAX: usize = 4096;

/// Facts about the session of a call.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SessionFacts {
    /// The session's id. Empty for a call outside a session.
    pub session_id: String,
    /// The agent's id: `main`, or that of a subagent.
    pub agent_id: String,
    /// `main` or `subagent`.
    pub agent_type: String,
    /// The agent's name, if it has one.
    pub agent_name: String,
    /// The value of `JAATO_SESSION_ID` with which the host was started.
    pub env_session_id: String,
    /// The model and token counts. `None` if the session has no model.
    pub context: Option<ContextFacts>,
    /// The working directory, as an absolute path.
    pub working_directory: String,
    /// The root of the workspace, if the user trusts its current state. Files of any other
    /// workspace are untrusted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trusted_workspace: Option<String>,
    /// Variables that the user agreed to send to MCP servers of that workspace.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub agreed_variables: Vec<AgreedVariables>,
    /// The user's terminal.
    pub terminal: TerminalFacts,
    /// The name of the process that started the host, if it is known. Usually the user's shell.
    pub parent_process: Option<String>,
    /// The maximum size of a tool's answer for the model, in bytes of JSON. Longer ones are
    /// truncated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_bytes_max: Option<usize>,
    /// The longest time that a hook may ask for with its deadline, in milliseconds:
    /// `session.hook_deadline_ms`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hook_deadline_ms: Option<u64>,
    /// The approval mode: `ask`, `accept-edits`, `read-only` or `plan`, or `allow-all` if the user
    /// allowed every call (`--yes`). Newer hosts may know others. `None` outside a session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permission_mode: Option<String>,
}

/// The model and token counts of a session.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ContextFacts {
    /// `provider/model`.
    pub model: String,
    /// The context window in tokens.
    pub context_limit: u64,
    /// Tokens of the last prompt.
    pub prompt_tokens: u64,
    /// Tokens of the output after it.
    pub output_tokens: u64,
    /// The number of turns so far, including the current one.
    pub turns: u64,
    /// The settings of the gc, if there is one.
    pub gc: Option<GcFacts>,
}

/// The settings of a session's gc.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct GcFacts {
    /// The usage that triggers it, in percent of the context window.
    pub threshold_percent: f64,
    /// Whether it runs automatically.
    pub auto_trigger: bool,
    /// The number of recent turns that it always keeps.
    pub preserve_recent_turns: u64,
    /// The number of turns that triggers it, if it is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<u64>,
}

/// The user's terminal, as the host found it at its start.
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
    /// The value of `JAATO_GRAPHICS_PROTOCOL`. If it is not set, derive the protocol from the other
    /// fields.
    pub graphics: Option<String>,
}

/// A request for an asset.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AssetRequest {
    /// The id from the plugin's description, or the name of an imported file.
    pub id: String,
}

/// The path of an asset.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AssetAnswer {
    /// The absolute path. The file is verified and does not change.
    pub path: String,
    /// The SHA-256 digest, in hex.
    pub sha256: String,
}

crate::operations::made_by_host!(AssetAnswer(path: impl Into<String>, sha256: impl Into<String>));

/// A folder to which the plugin may write.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FolderAnswer {
    /// The absolute path. The folder exists and has the mode 0700.
    pub path: String,
}

crate::operations::made_by_host!(FolderAnswer(path: impl Into<String>));

/// A request to append the bytes of the frame to a text of the call's result. The host keeps the
/// whole text in a file and truncates the text for the model.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OutputWrite {
    /// The key of the text in the result. If empty, `output`.
    pub key: String,
    /// Whether the user sees the text live, as an event.
    pub live: bool,
}

/// The amount that the call has streamed so far.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct OutputAnswer {
    /// The number of bytes of all its texts.
    pub bytes: u64,
}

crate::operations::made_by_host!(OutputAnswer(bytes: u64));

/// A request to write the bytes of the frame to a blob of the session.
///
/// Without `put`, a new blob begins. With `more`, it stays open for further pieces. A blob that
/// fits into one frame therefore needs a single request with only its media type.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BlobPut {
    /// The media type of a new blob, such as `image/png`. If the session already has the same
    /// bytes, the first media type stays.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub mime_type: String,
    /// The number of the blob to continue, from its first answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub put: Option<u64>,
    /// Whether more pieces follow. An unfinished blob is deleted at the end of its call.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub more: bool,
}

/// The state of a blob.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct BlobPutAnswer {
    /// The number with which to continue, while more pieces may follow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub put: Option<u64>,
    /// The id of a complete blob: the SHA-256 of the bytes, in lower-case hex.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blob: Option<String>,
    /// The number of bytes in the blob.
    #[serde(default)]
    pub bytes: u64,
}

impl BlobPutAnswer {
    /// Creates the answer for a blob that continues under this number. Only the host needs this.
    pub fn unfinished(put: u64, bytes: u64) -> Self {
        Self { put: Some(put), blob: None, bytes }
    }

    /// Creates the answer for a complete blob. Only the host needs this.
    pub fn complete(blob: impl Into<String>, bytes: u64) -> Self {
        Self { put: None, blob: Some(blob.into()), bytes }
    }
}

/// A request to read a blob.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlobGet {
    /// The id of the blob.
    pub blob: String,
}

/// Facts about a blob, sent before its bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct BlobGetAnswer {
    /// The media type that its creator declared. It is not verified.
    #[serde(default)]
    pub mime_type: String,
    /// The size of the blob, in bytes.
    #[serde(default)]
    pub bytes: u64,
    /// The stream of its bytes.
    pub handle: u64,
}

/// A request to attach a blob.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttachRequest {
    /// The media type. The host checks images and PDF documents, and refuses a wrong type.
    pub mime_type: String,
    /// The blob's id.
    pub blob: String,
    /// A file name without folders, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// The number of attachments of a call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AttachAnswer {
    /// The number of attachments so far.
    #[serde(default)]
    pub attached: u64,
}

crate::operations::made_by_host!(AttachAnswer(attached: u64));

/// The answer of a streaming service: a stream to read with `next` and to close with `close`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamAnswer {
    /// The handle.
    pub handle: u64,
}
