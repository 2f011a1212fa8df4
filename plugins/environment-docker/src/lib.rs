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
mod engine;
mod errors;
mod fetched;
mod guardian;
mod link;
mod made;
mod mounts;
mod onlooker;
mod owner;
mod paths;
mod place;
mod plugin;
mod probe;
mod raw;
mod runtime;
mod settings;
mod shared;
mod shell;
mod sweep;
mod terminal;
mod terminals;
mod tmp;
mod volumes;
mod watch;
mod wrapper;

pub use address::EngineAddress;
pub use command::{
    CommandEvent, CommandExit, CommandInput, ContainerCommand, ContainerCommandSpec,
};
pub use container::{Container, ContainerOrigin};
pub use engine::{DockerEngine, PullProgressCallback};
pub use onlooker::TerminalObservation;
pub use paths::ContainerPaths;
pub use probe::ContainerFacts;
pub use runtime::EngineRuntime;
pub use settings::{DockerSettings, ImagePullPolicy};
pub use sweep::remove_left_behind;
pub use terminal::{ContainerTerminal, TerminalForeground, TerminalSize};
pub use tmp::remove_left_behind as remove_folders_left_behind;

jaato_plugin_sdk::export_plugin! {
    state: plugin::DockerPlugin,
    environment: plugin::DockerEnvironment,
    variables: ["DOCKER_HOST", "XDG_RUNTIME_DIR"]
}
