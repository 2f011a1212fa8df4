//! The engine for tests, an image built on the spot, and a workspace.

mod gate;
mod image;

use std::future::Future;
use std::path::Path;
use std::time::Duration;

use bollard::query_parameters::{InspectContainerOptions, RemoveContainerOptionsBuilder};
use environment_docker::{
    CommandEvent, Container, ContainerCommand, ContainerCommandSpec, DockerEngine, DockerSettings,
    EngineAddress,
};
use jaato_plugin_sdk::types::Result;
use jaato_plugin_testkit::skip;
use tempfile::TempDir;

pub use gate::EngineGate;
pub use image::{IMAGE, IMAGE_WITHOUT_SHELL};

/// A generous limit, which only failing tests reach.
pub const DEADLINE: Duration = Duration::from_secs(60);

/// Runs a test with the engine, or reports that it is skipped.
pub fn with_engine<F: Future<Output = ()>>(test: impl FnOnce(EngineLab) -> F) {
    run_future(async {
        match EngineLab::find_engine().await {
            Ok(lab) => tokio::time::timeout(DEADLINE, test(lab)).await.expect("in time"),
            Err(reason) => skip(&reason),
        }
    });
}

/// Runs a test with a container on its own workspace, and closes the container.
pub fn with_container(test: impl AsyncFnOnce(&Container)) {
    with_engine(async move |lab| {
        let folder = temporary_workspace();
        let container = lab.make_container(folder.path()).await;
        test(&container).await;
        container.close().await.unwrap();
    });
}

/// Runs a future as the plugin's thread does.
pub fn run_future<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let answer = runtime.block_on(future);
    // Lets tasks that drops started finish.
    runtime.shutdown_timeout(Duration::from_secs(2));
    answer
}

/// An engine with the image for tests.
pub struct EngineLab {
    pub engine: DockerEngine,
    pub docker: bollard::Docker,
}

impl EngineLab {
    async fn find_engine() -> std::result::Result<Self, String> {
        let address = engine_address();
        let engine = DockerEngine::connect_to_engine(address.clone(), DEADLINE).await;
        let engine = engine.map_err(|error| format!("no engine: {}", error.message))?;
        let docker = match &address {
            EngineAddress::Unix(path) => bollard::Docker::connect_with_unix(
                path.to_str().unwrap(),
                60,
                bollard::API_DEFAULT_VERSION,
            ),
            EngineAddress::Tcp(host) => bollard::Docker::connect_with_http(
                &format!("tcp://{host}"),
                60,
                bollard::API_DEFAULT_VERSION,
            ),
        };
        let docker = docker.unwrap().negotiate_version().await.unwrap();
        image::import_images(&docker).await?;
        Ok(Self { engine, docker })
    }

    /// Makes a container from the test image with this workspace.
    pub async fn make_container(&self, workspace: &Path) -> Container {
        Container::open_container(self.engine.clone(), &test_settings(), workspace).await.unwrap()
    }

    /// Returns true if a container with this name or ID runs.
    pub async fn is_running(&self, name: &str) -> bool {
        let seen = self.docker.inspect_container(name, None::<InspectContainerOptions>).await;
        seen.ok().and_then(|seen| seen.state?.running) == Some(true)
    }

    /// Returns true if a container with this name or ID exists.
    pub async fn container_exists(&self, name: &str) -> bool {
        self.docker.inspect_container(name, None::<InspectContainerOptions>).await.is_ok()
    }

    /// Waits until a container is gone.
    pub async fn wait_until_gone(&self, name: &str) {
        while self.container_exists(name).await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Removes a container that a test made itself.
    pub async fn remove_container(&self, name: &str) {
        let options = RemoveContainerOptionsBuilder::new().force(true).v(true).build();
        self.docker.remove_container(name, Some(options)).await.unwrap();
    }

    /// Lists the running programs in a container, without zombies.
    pub async fn list_programs(&self, id: &str) -> Vec<String> {
        use bollard::query_parameters::TopOptionsBuilder;
        let options = TopOptionsBuilder::new().ps_args("-eo pid,stat,args").build();
        let top = self.docker.top_processes(id, Some(options)).await.unwrap();
        let lines = top.processes.unwrap_or_default().into_iter();
        lines.filter(|line| !line[1].starts_with('Z')).map(|line| line[2].clone()).collect()
    }

    /// Kills a container without the environment's knowledge.
    pub async fn kill_container(&self, name: &str) {
        use bollard::query_parameters::KillContainerOptions;
        self.docker.kill_container(name, None::<KillContainerOptions>).await.unwrap();
    }
}

/// Returns the address of the engine set for tests, or of the user's own.
pub fn engine_address() -> EngineAddress {
    EngineAddress::find_engine(None, |name| std::env::var_os(name)).unwrap()
}

/// Returns settings for the test image.
pub fn test_settings() -> DockerSettings {
    DockerSettings { image: Some(IMAGE.to_owned()), ..DockerSettings::default() }
}

/// Creates a workspace.
pub fn temporary_workspace() -> TempDir {
    tempfile::Builder::new().prefix("jaato-workspace-").tempdir().unwrap()
}

/// Returns a shell command.
pub fn shell_command(line: &str) -> ContainerCommandSpec {
    ContainerCommandSpec {
        words: vec!["sh".to_owned(), "-c".to_owned(), line.to_owned()],
        ..ContainerCommandSpec::default()
    }
}

/// The complete output of a command.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct CommandOutput {
    pub stdout: String,
    pub stderr: String,
    pub code: Option<i64>,
}

/// Reads a command to its end.
pub async fn read_to_end(command: &ContainerCommand) -> Result<CommandOutput> {
    let mut told = CommandOutput::default();
    while let Some(piece) = command.next().await? {
        match piece {
            CommandEvent::Stdout(bytes) => told.stdout.push_str(&String::from_utf8(bytes).unwrap()),
            CommandEvent::Stderr(bytes) => told.stderr.push_str(&String::from_utf8(bytes).unwrap()),
            CommandEvent::Exit(exit) => told.code = Some(exit.code),
        }
    }
    Ok(told)
}

/// Runs a shell command to its end.
pub async fn run_shell(container: &Container, line: &str) -> CommandOutput {
    read_to_end(&container.start_command(shell_command(line)).await.unwrap()).await.unwrap()
}

/// Returns the output of a shell command, which must succeed.
pub async fn shell_stdout(container: &Container, line: &str) -> String {
    let told = run_shell(container, line).await;
    assert_eq!((told.stderr.as_str(), told.code), ("", Some(0)), "{line}");
    told.stdout
}

/// Reads until the text was printed.
pub async fn read_until_text(command: &ContainerCommand, text: &str) -> String {
    let mut seen = String::new();
    while !seen.contains(text) {
        match command.next().await.unwrap().expect("more") {
            CommandEvent::Stdout(bytes) => seen.push_str(&String::from_utf8(bytes).unwrap()),
            other => panic!("{other:?} before `{text}`"),
        }
    }
    seen
}
