//! Removes containers that a killed host left behind.

use std::collections::HashMap;
use std::time::Duration;

use bollard::errors::Error as EngineError;
use bollard::query_parameters::{
    ListContainersOptionsBuilder, RemoveContainerOptionsBuilder, WaitContainerOptionsBuilder,
};
use futures_util::StreamExt as _;
use jaato_plugin_sdk::types::Result;

use crate::engine::DockerEngine;
use crate::errors::EngineRequestKind;
use crate::owner::{self, ContainerOwner};

/// The maximum wait for a removal that the engine has begun. It usually takes less than a second.
const REMOVAL_MAX: Duration = Duration::from_secs(5);

/// Removes the containers whose host has ended, and returns their names. Containers of running
/// hosts and other machines, and those that were made to stay, are left alone.
///
/// # Errors
/// The engine's first error. All other containers are still removed, and the next call tries the
/// failed one again.
pub async fn remove_leftover_containers(engine: &DockerEngine) -> Result<Vec<String>> {
    let Some(me) = ContainerOwner::current_process() else { return Ok(Vec::new()) };
    let filters = HashMap::from([("label", vec![owner::LABEL])]);
    let options = ListContainersOptionsBuilder::new().all(true).filters(&filters).build();
    let listed = engine.docker_client().list_containers(Some(options)).await;
    let listed =
        listed.map_err(|error| engine.explain_error(&error, EngineRequestKind::Connecting))?;
    let (mut removed, mut failure) = (Vec::new(), None);
    for container in listed {
        let labels = container.labels.unwrap_or_default();
        let owner = labels.get(owner::LABEL).and_then(|label| ContainerOwner::parse(label));
        let Some(id) = container.id.filter(|_| owner.is_some_and(|owner| owner.has_ended(&me)))
        else {
            continue;
        };
        if let Err(error) = remove_container(engine, &id).await {
            failure.get_or_insert(engine.explain_error(&error, EngineRequestKind::Container(&id)));
            continue;
        }
        let name = container.names.unwrap_or_default().into_iter().next().unwrap_or(id);
        removed.push(name.trim_start_matches('/').to_owned());
    }
    failure.map_or(Ok(removed), Err)
}

/// Removes a container, running or not, and waits for the removal. A missing container counts as
/// removed.
pub async fn remove_container(engine: &DockerEngine, id: &str) -> Result<(), EngineError> {
    let options = RemoveContainerOptionsBuilder::new().force(true).v(true).build();
    match engine.docker_client().remove_container(id, Some(options)).await {
        Err(EngineError::DockerResponseServerError { status_code: 404, .. }) => Ok(()),
        Err(EngineError::DockerResponseServerError { status_code: 409, message })
            if message.contains("already in progress") =>
        {
            // The engine removes the container itself after its end.
            wait_until_removed(engine, id).await;
            Ok(())
        }
        other => other,
    }
}

/// Waits for a removal in progress, up to a limit, because the engine completes it.
async fn wait_until_removed(engine: &DockerEngine, id: &str) {
    let options = WaitContainerOptionsBuilder::new().condition("removed").build();
    let mut removed = engine.docker_client().wait_container(id, Some(options));
    // The container is gone, whether the engine returns an exit code or an error for a missing
    // container.
    let _ = tokio::time::timeout(REMOVAL_MAX, removed.next()).await;
}
