//! `environment-docker`: a session's files and commands in a container.
//!
//! The domain is independent of plugins: [`Engine`] is the connection, [`Container`] is made from
//! an image or brought by the user, and [`Command`] and [`Terminal`] run in it. Everything runs on
//! the single thread of [`Runtime`], because the engine's client needs tokio and the boundary has
//! none.
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

pub use address::Address;
pub use command::{Command, Exit, Piece, Spec, Stdin};
pub use container::{Container, Origin};
pub use engine::{Engine, Telling};
pub use onlooker::Sight;
pub use paths::Paths;
pub use probe::Facts;
pub use runtime::Runtime;
pub use settings::{Pull, Settings};
pub use sweep::remove_left_behind;
pub use terminal::{Foreground, Size, Terminal};
pub use tmp::remove_left_behind as remove_folders_left_behind;

jaato_plugin_sdk::export_plugin! {
    state: plugin::Docker,
    environment: plugin::Ready,
    variables: ["DOCKER_HOST", "XDG_RUNTIME_DIR"]
}
