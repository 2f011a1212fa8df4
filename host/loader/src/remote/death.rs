//! Describes how a worker ended, for the user.

use std::sync::Arc;
use std::time::Duration;

use jaato_types::{Error, ErrorKind, PluginName};

use super::WorkerProcess;

/// How long a worker whose socket has closed may take to exit before the host ends it.
const END_MAX: Duration = Duration::from_millis(500);
/// The same for a worker that sends invalid messages. It usually still runs, and is ended for that.
const TALK_END_MAX: Duration = Duration::from_millis(50);

/// Waits for the process to end and returns the error for all its calls. `talk` describes an
/// invalid last message.
pub(super) async fn death_error(
    plugin: &PluginName,
    process: &Arc<dyn WorkerProcess>,
    talk: Option<&str>,
) -> Error {
    let patience = if talk.is_some() { TALK_END_MAX } else { END_MAX };
    let ended = tokio::time::timeout(patience, process.wait_for_end()).await.ok();
    // Ends its descendants too, because no one needs them.
    process.end_process().await;
    let what = match (talk, ended) {
        (_, Some(ended)) => ended,
        (Some(talk), None) => format!("sent an invalid message: {talk}"),
        (None, None) => "closed its connection".to_owned(),
    };
    let printed = match process.last_output().trim() {
        "" => String::new(),
        printed => format!("; it printed: {}", printed.replace('\n', " ⏎ ")),
    };
    let text = format!("the worker of the plugin `{plugin}` {what}{printed}");
    Error::new(ErrorKind::PluginCrashed, text).with_hint(
        "try again: the next call starts a new worker; report the crash to the plugin's author",
    )
}
