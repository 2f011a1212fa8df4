//! `environment-docker`: a session's files and commands in a container.
//!
//! The domain is independent of plugins: [`DockerEngine`] is the connection, [`Container`] is made
//! from an image or brought by the user, and [`ContainerCommand`] and [`ContainerTerminal`] run in
//! it. Everything runs on the single thread of [`EngineRuntime`], because the engine's client needs
//! tokio, which does not cross the boundary.
#![forbid(unsafe_code)]

mod address;
mod command;
mod container;
mod container_context;
mod create_container;
mod engine;
mod errors;
mod guardian;
mod link;
mod mounts;
mod owner;
mod paths;
mod plugin;
mod probe;
mod pull_progress;
mod raw;
mod runtime;
mod settings;
mod shared;
mod shell;
mod sweep;
mod temporary_folder;
mod terminal;
mod terminals;
mod volumes;
mod wait_observer;
mod watch;
mod wrapper;

pub use address::EngineAddress;
pub use command::{
    CommandEvent, CommandExit, CommandInput, ContainerCommand, ContainerCommandSpec,
};
pub use container::{Container, ContainerOrigin};
pub use engine::{DockerEngine, PullProgressCallback};
pub use paths::ContainerPaths;
pub use probe::ContainerFacts;
pub use runtime::EngineRuntime;
pub use settings::{DockerSettings, ImagePullPolicy};
pub use sweep::remove_leftover_containers;
pub use temporary_folder::remove_leftover_folders as remove_folders_left_behind;
pub use terminal::{ContainerTerminal, TerminalForeground, TerminalSize};
pub use wait_observer::TerminalObservation;

jaato_plugin_sdk::export_plugin! {
    state: plugin::DockerPlugin,
    environment: plugin::DockerEnvironment,
    variables: ["DOCKER_HOST", "XDG_RUNTIME_DIR"]
}
