//! How a worker came to its end, in words for a person.

use std::sync::Arc;
use std::time::Duration;

use jaato_types::{Error, ErrorKind, PluginName};

use super::WorkerProcess;

/// How long a worker whose socket has ended may take to end itself before it is ended.
const END_MAX: Duration = Duration::from_millis(500);
/// The same for one that sends what is no message: mostly it lives, and is ended for that.
const TALK_END_MAX: Duration = Duration::from_millis(50);

/// Waits for the process's end and makes the error of every call that it takes with it. `talk` is
/// what was wrong with the last thing that it said.
pub(super) async fn cause(
    plugin: &PluginName,
    process: &Arc<dyn WorkerProcess>,
    talk: Option<&str>,
) -> Error {
    let patience = if talk.is_some() { TALK_END_MAX } else { END_MAX };
    let ended = tokio::time::timeout(patience, process.ended()).await.ok();
    // Its descendants too: nobody is left who would want them.
    process.end().await;
    let what = match (talk, ended) {
        (_, Some(ended)) => ended,
        (Some(talk), None) => format!("sent what is no message: {talk}"),
        (None, None) => "closed its connection".to_owned(),
    };
    let printed = match process.printed().trim() {
        "" => String::new(),
        printed => format!("; it printed: {}", printed.replace('\n', " ⏎ ")),
    };
    let text = format!("the worker of the plugin `{plugin}` {what}{printed}");
    Error::new(ErrorKind::PluginCrashed, text)
        .with_hint("the next call gets a fresh worker; tell the plugin's author")
}
