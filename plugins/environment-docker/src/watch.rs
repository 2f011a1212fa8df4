//! Notices the end of a container.

use std::time::Duration;

use bollard::errors::Error as EngineError;
use bollard::query_parameters::{InspectContainerOptions, WaitContainerOptionsBuilder};
use futures_util::StreamExt as _;
use tokio::sync::watch;

use crate::engine::DockerEngine;

/// Reports whether and how a container has ended. Clones report the same.
#[derive(Debug, Clone)]
pub struct ContainerWatch {
    how: watch::Receiver<Option<String>>,
}

impl ContainerWatch {
    /// Starts waiting for the end of a container.
    pub fn start_watch(engine: DockerEngine, container: String) -> Self {
        let (sender, how) = watch::channel(None);
        tokio::spawn(async move {
            tokio::select! {
                end = wait_for_end(&engine, &container) => {
                    if end.is_some() {
                        sender.send_replace(end);
                    }
                }
                () = sender.closed() => {}
            }
        });
        Self { how }
    }

    /// Returns how the container has ended, if it has.
    pub fn end_reason(&self) -> Option<String> {
        self.how.borrow().clone()
    }

    /// Returns how the container has ended, or ends within the given time.
    pub async fn end_reason_within(&self, time: Duration) -> Option<String> {
        let mut how = self.how.clone();
        let seen = tokio::time::timeout(time, how.wait_for(Option::is_some)).await;
        // The container did not end in time, or the watcher is gone.
        seen.ok()?.ok()?.clone()
    }
}

/// Waits for the container's end. Returns `None` if the connection broke, because the state is then
/// unknown.
async fn wait_for_end(engine: &DockerEngine, container: &str) -> Option<String> {
    let options = WaitContainerOptionsBuilder::new().condition("not-running").build();
    let mut ends = Box::pin(engine.docker_client().wait_container(container, Some(options)));
    let code = match ends.next().await? {
        Ok(end) => end.status_code,
        Err(EngineError::DockerContainerWaitError { code, .. }) => code,
        Err(EngineError::DockerResponseServerError { status_code: 404, .. }) => {
            return Some("it was removed".to_owned());
        }
        Err(_) => return None,
    };
    let seen =
        engine.docker_client().inspect_container(container, None::<InspectContainerOptions>).await;
    let state = seen.ok().and_then(|seen| seen.state);
    let was_killed_for_memory = state.and_then(|state| state.oom_killed) == Some(true);
    Some(match code {
        _ if was_killed_for_memory => "its memory was used up".to_owned(),
        137 => "it was killed".to_owned(),
        code => format!("exit code {code}"),
    })
}
