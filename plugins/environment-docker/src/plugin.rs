//! The plugin: the environment `docker` for the host.

use std::path::Path;
use std::sync::Arc;

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::types::execution::{
    AllowedPath, EnvironmentFacts, EnvironmentSetup, EnvironmentSpec, OsFacts, ShellFacts,
};
use jaato_plugin_sdk::{schemars, serde_json};
use jaato_plugin_sdk_environment::files::FolderAccess;
use jaato_plugin_sdk_environment::{ExecutionEnvironment, HostFiles};

use crate::address::EngineAddress;
use crate::container::{Container, ContainerOrigin};
use crate::engine::{DockerEngine, PullProgressCallback};
use crate::probe::ContainerFacts;
use crate::pull_progress::ImageDownloadProgress;
use crate::runtime::EngineRuntime;
use crate::settings::DockerSettings;
use crate::shell::DockerShell;
use crate::terminals::DockerTerminals;
use crate::{sweep, temporary_folder, volumes};

/// The plugin's state: the user's configuration.
pub struct DockerPlugin {
    config: Value,
}

impl State for DockerPlugin {
    async fn create(home: &Home, _saved: Option<Value>) -> Result<Self> {
        Ok(Self { config: home.config().await? })
    }

    fn describe(description: &mut Description) {
        description.config_schema =
            serde_json::to_value(schemars::schema_for!(DockerSettings)).ok();
    }
}

/// The ready environment, with a running container.
pub struct DockerEnvironment {
    runtime: EngineRuntime,
    container: Arc<Container>,
    shell: DockerShell,
    terminals: DockerTerminals,
    shell_timeout_ms: u64,
}

impl ExecutionEnvironment for DockerEnvironment {
    type State = DockerPlugin;
    type Files = HostFiles;
    type Shell = DockerShell;
    type Terminals = DockerTerminals;

    fn spec() -> EnvironmentSpec {
        let option = |name: &str, setting: &str| (name.to_owned(), setting.to_owned());
        EnvironmentSpec {
            name: "docker".into(),
            title: "a container of Docker or Podman".into(),
            options: [option("image", "image"), option("container", "container_id")].into(),
        }
    }

    async fn setup(cx: &Cx<DockerPlugin>, setup: EnvironmentSetup) -> Result<Self> {
        let settings = DockerSettings::from_config_and_options(&cx.state().config, &setup.options)?;
        // Checks the settings before any request to the engine.
        settings.requested_container()?;
        let shell_timeout_ms = settings.shell_timeout_ms();
        let runtime = EngineRuntime::start_thread()?;
        let EnvironmentSetup { workspace, root, .. } = setup;
        let root = if root.is_empty() { workspace.clone() } else { root };
        let host: Reporter = (**cx).clone();
        let on_fetched: PullProgressCallback =
            Arc::new(move |image, ImageDownloadProgress { done, total }| {
                let label = format!("fetching the image `{image}`");
                // The progress may be ignored.
                let _ = host.emit(&Delta::progress(label, done, total));
            });
        let opening = runtime.run_future(async move {
            open_container(&settings, Path::new(&root), Path::new(&workspace), on_fetched).await
        });
        let (container, notes) = opening.await?;
        for note in notes {
            cx.log(LogLevel::Info, note);
        }
        let container = Arc::new(container);
        Ok(Self {
            shell: DockerShell::new(runtime.clone(), Arc::clone(&container)),
            terminals: DockerTerminals::new(runtime.clone(), Arc::clone(&container)),
            runtime,
            container,
            shell_timeout_ms,
        })
    }

    async fn teardown(&self, _cx: &Cx<DockerPlugin>) -> Result<()> {
        let container = Arc::clone(&self.container);
        self.runtime.run_future(async move { container.close().await }).await
    }

    async fn facts(&self, cx: &Cx<DockerPlugin>) -> Result<EnvironmentFacts> {
        let container = Arc::clone(&self.container);
        self.runtime.run_future(async move { container.ensure_running().await }).await?;
        notify_user(cx, &self.container);
        let shell_timeout_ms = self.shell_timeout_ms;
        Ok(EnvironmentFacts { shell_timeout_ms, ..environment_facts(&self.container) })
    }

    fn files(&self) -> Option<&HostFiles> {
        Some(self.container.files())
    }

    fn shell(&self) -> Option<&DockerShell> {
        Some(&self.shell)
    }

    fn terminals(&self) -> Option<&DockerTerminals> {
        Some(&self.terminals)
    }
}

/// Removes the remains of killed hosts, then opens the container. Also returns lines for the log.
async fn open_container(
    settings: &DockerSettings,
    root: &Path,
    workspace: &Path,
    on_fetched: PullProgressCallback,
) -> Result<(Container, Vec<String>)> {
    let address =
        EngineAddress::find_engine(settings.engine.as_deref(), |name| std::env::var_os(name))?;
    let engine = DockerEngine::connect_to_engine(address, settings.engine_deadline())
        .await?
        .with_progress_callback(on_fetched);
    let mounted = volumes::workspace_folder(settings.mount_dir.as_deref(), workspace)?;
    let mut notes = Vec::new();
    match sweep::remove_leftover_containers(&engine).await {
        Ok(removed) => notes.extend(removed.into_iter().map(|name| {
            format!("removed the container `{name}`, which a killed host had left behind")
        })),
        // A failed cleanup must not prevent this session.
        Err(error) => notes.push(format!("cannot look for containers left behind: {error}")),
    }
    let base = settings.tmp_base_dir.clone().unwrap_or_else(std::env::temp_dir);
    for base in [base.as_path(), mounted.as_path(), root] {
        notes.extend(temporary_folder::remove_leftover_folders(base).into_iter().map(|path| {
            format!("removed `{}`, which a killed host had left behind", path.display())
        }));
    }
    Ok((Container::open_for_subfolder(engine, settings, root, workspace).await?, notes))
}

/// Notifies the user that the container was started again.
pub fn notify_user(host: &Reporter, container: &Container) {
    for note in container.take_user_notes() {
        host.notice(note);
    }
}

fn environment_facts(container: &Container) -> EnvironmentFacts {
    let facts = container.facts();
    let shown = |path: &Path| path.to_string_lossy().into_owned();
    let workspace = shown(&container.paths().workspace_folder().container);
    let tmp = shown(&container.paths().temporary_folder().container);
    let origin = match container.origin() {
        ContainerOrigin::Made => "made, removed at the end",
        ContainerOrigin::MadeToStay => "made, stays",
        ContainerOrigin::Brought => "brought, stays",
    };
    let details = json_object!({
        "container": &*container.name(),
        "container_id": &*container.id(),
        "origin": origin,
        "host_workspace": shown(&container.paths().workspace_folder().host),
    });
    let more = container.paths().volumes().iter().map(|volume| AllowedPath {
        path: shown(&volume.folder.container),
        read_only: volume.access == FolderAccess::Read,
    });
    let own = [
        AllowedPath { path: workspace.clone(), read_only: !facts.workspace_is_writable },
        AllowedPath { path: tmp.clone(), read_only: false },
    ];
    EnvironmentFacts {
        name: DockerEnvironment::spec().name,
        is_host: false,
        working_directory: shown(&container.paths().working_folder().container),
        allowed_paths: own.into_iter().chain(more).collect(),
        temporary_directory: Some(tmp),
        os: Some(os_facts(facts)),
        shell: Some(ShellFacts {
            name: facts.shell.rsplit('/').next().unwrap_or_default().to_owned(),
            path: facts.shell.clone(),
        }),
        machine: Some(facts.machine.clone()),
        user: Some(format!("{}:{}", facts.uid, facts.gid)),
        details,
        ..EnvironmentFacts::default()
    }
}

fn os_facts(facts: &ContainerFacts) -> OsFacts {
    let name = if facts.pretty_name.is_empty() { &facts.kernel } else { &facts.pretty_name };
    OsFacts {
        kind: facts.kernel.to_lowercase(),
        name: facts.kernel.clone(),
        release: facts.release.clone(),
        friendly_name: name.clone(),
    }
}
