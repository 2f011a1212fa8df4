//! Makes a container for a session.
//!
//! Its first process is the guardian's shell, whose input is jaato's connection. If the connection
//! ends for any reason, the shell ends, and with it the container, which the engine then removes.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use bollard::container::AttachContainerResults;
use bollard::errors::Error as EngineError;
use bollard::models::{
    ContainerCreateBody, HealthConfig, HostConfig, HostConfigLogConfig, Mount, MountType,
};
use bollard::query_parameters::{
    AttachContainerOptionsBuilder, CreateContainerOptionsBuilder, StartContainerOptions,
};
use jaato_plugin_sdk::types::{Error, Result};
use jaato_plugin_sdk_environment::files::FolderAccess;
use tokio::runtime::Handle;

use crate::engine::DockerEngine;
use crate::errors::EngineRequestKind;
use crate::guardian::{self, ContainerGuardian};
use crate::link::ExecStreams;
use crate::owner::{ContainerOwner, LABEL, WORKSPACE_LABEL};
use crate::paths::{ContainerPaths, SharedFolder};
use crate::settings::DockerSettings;
use crate::sweep;
use crate::wrapper;

/// The first process of a container that stays. It waits forever and needs no program of the image.
const WAIT: &str = "while read -r _; do :; done";

/// A container that was made and runs.
pub struct CreatedContainer {
    /// The engine's ID.
    pub id: String,
    /// The first process, or `None` for a container that stays.
    pub guardian: Option<ContainerGuardian>,
    /// Removes the container when dropped.
    pub removal: ContainerRemovalGuard,
}

/// Makes and starts a container with this name from an image.
pub async fn create_and_start(
    engine: &DockerEngine,
    settings: &DockerSettings,
    image: &str,
    name: &str,
    user: Option<&str>,
    paths: &ContainerPaths,
) -> Result<CreatedContainer> {
    engine.ensure_image(image, settings.pull).await?;
    let stays = !settings.cleanup_on_exit;
    let body = container_config(settings, image, user, paths);
    let told = |error: EngineError| explain_start_error(engine, &error, image);
    // Removes it by name, and from before it exists, because the response with the ID may never
    // arrive.
    let mut removal = ContainerRemovalGuard::for_container(engine, name);
    let options = CreateContainerOptionsBuilder::new().name(name).build();
    let created =
        engine.docker_client().create_container(Some(options), body).await.map_err(told)?;
    let id = created.id;
    let guardian =
        if stays { None } else { Some(attach_guardian(engine, &id).await.map_err(told)?) };
    let started = engine.docker_client().start_container(&id, None::<StartContainerOptions>).await;
    started.map_err(told)?;
    if stays {
        removal.keep_container();
    }
    Ok(CreatedContainer { id, guardian, removal })
}

fn container_config(
    settings: &DockerSettings,
    image: &str,
    user: Option<&str>,
    paths: &ContainerPaths,
) -> ContainerCreateBody {
    let stays = !settings.cleanup_on_exit;
    let mut labels = HashMap::from([(
        WORKSPACE_LABEL.to_owned(),
        paths.workspace_folder().host.to_string_lossy().into_owned(),
    )]);
    // A container that stays has no owner, because otherwise it would count as left behind.
    if let Some(owner) = ContainerOwner::current_process().filter(|_| !stays) {
        labels.insert(LABEL.to_owned(), owner.to_label());
    }
    let script = if stays { WAIT } else { guardian::SCRIPT };
    let host = HostConfig {
        mounts: Some(list_mounts(paths)),
        network_mode: settings.network.clone(),
        auto_remove: Some(!stays),
        // The output of the guardian's shell is only for jaato.
        log_config: Some(HostConfigLogConfig { typ: Some("none".to_owned()), config: None }),
        ..HostConfig::default()
    };
    ContainerCreateBody {
        image: Some(image.to_owned()),
        entrypoint: Some(["sh", "-c", script, "jaato"].map(str::to_owned).into()),
        cmd: Some(Vec::new()),
        user: user.map(str::to_owned),
        working_dir: Some(path_to_string(&paths.working_folder().container)),
        labels: Some(labels),
        open_stdin: Some(true),
        stdin_once: Some(!stays),
        attach_stdin: Some(!stays),
        attach_stdout: Some(!stays),
        attach_stderr: Some(!stays),
        // A shell that is the first process of a container ignores other signals.
        stop_signal: Some("SIGKILL".to_owned()),
        healthcheck: Some(HealthConfig {
            test: Some(vec!["NONE".to_owned()]),
            ..HealthConfig::default()
        }),
        host_config: Some(host),
        ..ContainerCreateBody::default()
    }
}

fn list_mounts(paths: &ContainerPaths) -> Vec<Mount> {
    let own = [paths.workspace_folder(), paths.temporary_folder()]
        .map(|shared| to_mount(shared, FolderAccess::Write));
    let more = paths.volumes().iter().map(|volume| to_mount(&volume.folder, volume.access));
    own.into_iter().chain(more).collect()
}

fn to_mount(shared: &SharedFolder, access: FolderAccess) -> Mount {
    Mount {
        typ: Some(MountType::BIND),
        source: Some(path_to_string(&shared.host)),
        target: Some(path_to_string(&shared.container)),
        read_only: Some(access == FolderAccess::Read),
        ..Mount::default()
    }
}

fn path_to_string(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

async fn attach_guardian(
    engine: &DockerEngine,
    id: &str,
) -> Result<ContainerGuardian, EngineError> {
    let options = AttachContainerOptionsBuilder::new();
    let options = options.stream(true).stdin(true).stdout(true).stderr(true).build();
    let attached = engine.docker_client().attach_container(id, Some(options)).await?;
    let AttachContainerResults { output, input } = attached;
    Ok(ContainerGuardian::from_streams(ExecStreams { input, output }))
}

fn explain_start_error(engine: &DockerEngine, error: &EngineError, image: &str) -> Error {
    match error {
        EngineError::DockerResponseServerError { message, .. }
            if message.contains("\"sh\"") && message.contains("exec") =>
        {
            wrapper::command_start_error(message.as_bytes())
        }
        error => engine.explain_error(error, EngineRequestKind::Image(image)),
    }
}

/// Removes a container when dropped.
pub struct ContainerRemovalGuard {
    engine: DockerEngine,
    name: Option<Arc<str>>,
    thread: Handle,
}

impl ContainerRemovalGuard {
    fn for_container(engine: &DockerEngine, name: &str) -> Self {
        Self { engine: engine.clone(), name: Some(name.into()), thread: Handle::current() }
    }

    /// Keeps the container.
    fn keep_container(&mut self) {
        self.name = None;
    }

    /// Removes the container and waits for its removal.
    ///
    /// # Errors
    /// The engine's error. The drop tries again then.
    pub async fn remove_now(&mut self) -> Result<()> {
        let Some(name) = &self.name else { return Ok(()) };
        let removed = sweep::remove_container(&self.engine, name).await;
        removed.map_err(|error| {
            self.engine.explain_error(&error, EngineRequestKind::Container(name))
        })?;
        self.keep_container();
        Ok(())
    }
}

impl Drop for ContainerRemovalGuard {
    fn drop(&mut self) {
        let Some(name) = self.name.take() else { return };
        let engine = self.engine.clone();
        // If the runtime is ending, this has no effect. The end of the connection then ends the
        // container.
        self.thread.spawn(async move { sweep::remove_container(&engine, &name).await });
    }
}
