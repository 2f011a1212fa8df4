//! The plugin: the environment `docker` for the host.

use std::path::Path;
use std::sync::Arc;

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::types::execution::{
    AllowedPath, EnvironmentFacts, EnvironmentSetup, EnvironmentSpec, OsFacts, ShellFacts,
};
use jaato_plugin_sdk::{schemars, serde_json};
use jaato_plugin_sdk_environment::files::Access;
use jaato_plugin_sdk_environment::{ExecutionEnvironment, HostFiles};

use crate::address::Address;
use crate::container::{Container, Origin};
use crate::engine::{Engine, Telling};
use crate::fetched::Progress;
use crate::probe::Facts;
use crate::runtime::Runtime;
use crate::settings::Settings;
use crate::shell::DockerShell;
use crate::terminals::DockerTerminals;
use crate::{sweep, tmp, volumes};

/// The plugin's state: the user's configuration.
pub struct Docker {
    config: Value,
}

impl State for Docker {
    async fn create(home: &Home, _saved: Option<Value>) -> Result<Self> {
        Ok(Self { config: home.config().await? })
    }

    fn describe(description: &mut Description) {
        description.config_schema = serde_json::to_value(schemars::schema_for!(Settings)).ok();
    }
}

/// The ready environment, with a running container.
pub struct Ready {
    runtime: Runtime,
    container: Arc<Container>,
    shell: DockerShell,
    terminals: DockerTerminals,
    shell_timeout_ms: u64,
}

impl ExecutionEnvironment for Ready {
    type State = Docker;
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

    async fn setup(cx: &Cx<Docker>, setup: EnvironmentSetup) -> Result<Self> {
        let settings = Settings::chosen(&cx.state().config, &setup.options)?;
        // Checks the settings before any request to the engine.
        settings.wanted()?;
        let shell_timeout_ms = settings.shell_timeout_ms();
        let runtime = Runtime::start()?;
        let EnvironmentSetup { workspace, root, .. } = setup;
        let root = if root.is_empty() { workspace.clone() } else { root };
        let host: Reporter = (**cx).clone();
        let on_fetched: Telling = Arc::new(move |image, Progress { done, total }| {
            let label = format!("fetching the image `{image}`");
            // The progress may be ignored.
            let _ = host.emit(&Delta::progress(label, done, total));
        });
        let opening = runtime.run(async move {
            open(&settings, Path::new(&root), Path::new(&workspace), on_fetched).await
        });
        let (container, notes) = opening.await?;
        for note in notes {
            cx.log(Level::Info, note);
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

    async fn teardown(&self, _cx: &Cx<Docker>) -> Result<()> {
        let container = Arc::clone(&self.container);
        self.runtime.run(async move { container.close().await }).await
    }

    async fn facts(&self, cx: &Cx<Docker>) -> Result<EnvironmentFacts> {
        let container = Arc::clone(&self.container);
        self.runtime.run(async move { container.ready().await }).await?;
        tell_notes(cx, &self.container);
        let shell_timeout_ms = self.shell_timeout_ms;
        Ok(EnvironmentFacts { shell_timeout_ms, ..told(&self.container) })
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
async fn open(
    settings: &Settings,
    root: &Path,
    workspace: &Path,
    on_fetched: Telling,
) -> Result<(Container, Vec<String>)> {
    let address = Address::find(settings.engine.as_deref(), |name| std::env::var_os(name))?;
    let engine = Engine::connect(address, settings.engine_deadline()).await?.telling(on_fetched);
    let mounted = volumes::workspace(settings.mount_dir.as_deref(), workspace)?;
    let mut notes = Vec::new();
    match sweep::remove_left_behind(&engine).await {
        Ok(removed) => notes.extend(removed.into_iter().map(|name| {
            format!("removed the container `{name}`, which a killed host had left behind")
        })),
        // A failed cleanup must not prevent this session.
        Err(error) => notes.push(format!("cannot look for containers left behind: {error}")),
    }
    let base = settings.tmp_base_dir.clone().unwrap_or_else(std::env::temp_dir);
    for base in [base.as_path(), mounted.as_path(), root] {
        notes.extend(tmp::remove_left_behind(base).into_iter().map(|path| {
            format!("removed `{}`, which a killed host had left behind", path.display())
        }));
    }
    Ok((Container::open_within(engine, settings, root, workspace).await?, notes))
}

/// Notifies the user that the container was started again.
pub fn tell_notes(host: &Reporter, container: &Container) {
    for note in container.take_notes() {
        host.notice(note);
    }
}

fn told(container: &Container) -> EnvironmentFacts {
    let facts = container.facts();
    let shown = |path: &Path| path.to_string_lossy().into_owned();
    let workspace = shown(&container.paths().workspace().container);
    let tmp = shown(&container.paths().tmp().container);
    let origin = match container.origin() {
        Origin::Made => "made, removed at the end",
        Origin::MadeToStay => "made, stays",
        Origin::Brought => "brought, stays",
    };
    let details = json_object!({
        "container": &*container.name(),
        "container_id": &*container.id(),
        "origin": origin,
        "host_workspace": shown(&container.paths().workspace().host),
    });
    let more = container.paths().volumes().iter().map(|volume| AllowedPath {
        path: shown(&volume.folder.container),
        read_only: volume.access == Access::Read,
    });
    let own = [
        AllowedPath { path: workspace.clone(), read_only: !facts.workspace_is_writable },
        AllowedPath { path: tmp.clone(), read_only: false },
    ];
    EnvironmentFacts {
        name: Ready::spec().name,
        is_host: false,
        working_directory: shown(&container.paths().working().container),
        allowed_paths: own.into_iter().chain(more).collect(),
        temporary_directory: Some(tmp),
        os: Some(os(facts)),
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

fn os(facts: &Facts) -> OsFacts {
    let name = if facts.pretty_name.is_empty() { &facts.kernel } else { &facts.pretty_name };
    OsFacts {
        kind: facts.kernel.to_lowercase(),
        name: facts.kernel.clone(),
        release: facts.release.clone(),
        friendly_name: name.clone(),
    }
}
