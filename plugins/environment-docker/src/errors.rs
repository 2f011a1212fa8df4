//! Converts the engine's errors to errors for users, with hints.

use std::error::Error as _;
use std::io;

use bollard::errors::Error as EngineError;
use jaato_plugin_sdk::types::text::one_line;
use jaato_plugin_sdk::types::{Error, ErrorKind};

use crate::address::EngineAddress;

/// The request to the engine, for the text of the error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EngineRequestKind<'a> {
    /// Connecting to the engine.
    Connecting,
    /// An image.
    Image(&'a str),
    /// A container, by name or id.
    Container(&'a str),
    /// A command in a container, by name or id.
    Command(&'a str),
}

/// Converts an error of the engine's client to an error for the user.
pub fn explain_engine_error(
    error: &EngineError,
    address: &EngineAddress,
    doing: EngineRequestKind<'_>,
) -> Error {
    match error {
        EngineError::DockerResponseServerError { status_code, message } => {
            engine_refusal_error(*status_code, message, doing)
        }
        EngineError::DockerStreamError { error } => engine_refusal_error(500, error, doing),
        EngineError::RequestTimeoutError => engine_timeout_error(address),
        EngineError::SocketNotFoundError(_) => engine_missing_error(address),
        EngineError::HyperLegacyError { .. }
        | EngineError::HyperResponseError { .. }
        | EngineError::IOError { .. } => unreachable_engine_error(error, address, doing),
        other => {
            let text = format!("the engine at `{address}` sent an unexpected answer: {other}");
            Error::new(ErrorKind::Failed, text)
        }
    }
}

/// Returns the error for an engine that did not answer in time.
pub fn engine_timeout_error(address: &EngineAddress) -> Error {
    let text = format!("the engine at `{address}` did not answer in time");
    let hint = "check whether `docker info` answers; `engine_deadline_ms` sets the time limit";
    Error::new(ErrorKind::Timeout, text).with_hint(hint).temporary()
}

/// Returns the error for an engine that does not exist.
pub fn engine_missing_error(address: &EngineAddress) -> Error {
    let text = format!("no engine at `{address}`");
    let hint = "install and start Docker or Podman, or set another engine with `DOCKER_HOST`";
    Error::new(ErrorKind::Unavailable, text).with_hint(hint)
}

/// Returns the error for a container that has ended.
pub fn container_ended_error(container: &str, how: &str) -> Error {
    let text = format!("the container `{container}` has ended ({how})");
    let hint = format!(
        "the workspace's files are kept, but all programs in the container have ended. If it was made for the session, \
         the next command makes a new one, without installed software; start your own with `docker start {container}`"
    );
    Error::new(ErrorKind::Unavailable, text).with_hint(hint)
}

/// Returns the error for a connection that broke while a command ran.
pub fn connection_lost_error(address: &EngineAddress, container: &str) -> Error {
    let text = format!(
        "the engine at `{address}` went away or was restarted while a command ran in the container \
         `{container}`; it is unknown whether the command ended"
    );
    let hint = "see `docker info` and `docker ps`; an engine that stops also ends its containers, \
                unless `live-restore` is set";
    Error::new(ErrorKind::Unavailable, text).with_hint(hint).temporary()
}

/// Converts a refusal by its status and text, because engines have no error codes.
fn engine_refusal_error(status: u16, message: &str, doing: EngineRequestKind<'_>) -> Error {
    let lower = message.to_lowercase();
    if lower.contains("no space left on device") || lower.contains("disk quota exceeded") {
        let text = format!("the engine's disk is full: {}", one_line(message));
        let hint = "free some space: `docker system df` shows the usage, `docker system prune` \
                    removes unused data";
        return Error::new(ErrorKind::Io, text).with_hint(hint);
    }
    match (status, doing) {
        (404, EngineRequestKind::Image(image)) => image_missing_error(image),
        (404, _) if lower.contains("no such image") => image_missing_error(&one_line(message)),
        (404, EngineRequestKind::Container(name) | EngineRequestKind::Command(name)) => {
            let text = format!("no container `{name}`");
            Error::new(ErrorKind::NotFound, text)
                .with_hint("`docker ps` lists the running containers")
        }
        (409, EngineRequestKind::Container(name) | EngineRequestKind::Command(name))
            if lower.contains("paused") =>
        {
            let text = format!("the container `{name}` is paused");
            let hint = format!("`docker unpause {name}`");
            Error::new(ErrorKind::Unavailable, text).with_hint(hint)
        }
        (409, EngineRequestKind::Container(name) | EngineRequestKind::Command(name))
            if lower.contains("running") =>
        {
            not_running_error(name)
        }
        (_, EngineRequestKind::Container(_) | EngineRequestKind::Image(_))
            if is_mount_error(&lower) =>
        {
            let text = format!("the engine cannot mount the workspace: {}", one_line(message));
            let hint = "the engine must see the same files: an engine on another machine, or in a \
                        virtual machine that does not share this folder, does not";
            Error::new(ErrorKind::Failed, text).with_hint(hint)
        }
        _ => Error::failed(format!("the engine refused the request: {}", one_line(message))),
    }
}

/// Returns the error for a container that exists but does not run.
pub fn not_running_error(name: &str) -> Error {
    Error::new(ErrorKind::Unavailable, format!("the container `{name}` is not running"))
        .with_hint(format!("`docker start {name}`"))
}

fn image_missing_error(image: &str) -> Error {
    Error::new(ErrorKind::NotFound, format!("no image `{image}` at the engine"))
        .with_hint(format!("`docker pull {image}`, or set `pull = \"missing\"`"))
}

fn is_mount_error(lower: &str) -> bool {
    lower.contains("bind source path does not exist")
        || lower.contains("mounts denied")
        || lower.contains("error mounting")
}

fn unreachable_engine_error(
    error: &EngineError,
    address: &EngineAddress,
    doing: EngineRequestKind<'_>,
) -> Error {
    match io_kind(error) {
        Some(io::ErrorKind::NotFound) => engine_missing_error(address),
        Some(io::ErrorKind::ConnectionRefused) => {
            let text = format!("the engine at `{address}` does not listen");
            let hint = "start it: `sudo systemctl start docker`, or open Docker Desktop";
            Error::new(ErrorKind::Unavailable, text).with_hint(hint).temporary()
        }
        Some(io::ErrorKind::PermissionDenied) => {
            let text = format!("no permission for the engine's socket `{address}`");
            let hint = "`sudo usermod -aG docker $USER` and log in again (its members are as \
                        powerful as root), or run a rootless engine";
            Error::new(ErrorKind::PermissionDenied, text).with_hint(hint)
        }
        Some(io::ErrorKind::TimedOut) => engine_timeout_error(address),
        _ => match doing {
            EngineRequestKind::Command(container) => connection_lost_error(address, container),
            EngineRequestKind::Connecting
            | EngineRequestKind::Image(_)
            | EngineRequestKind::Container(_) => {
                let text = format!("the connection to the engine at `{address}` broke: {error}");
                Error::new(ErrorKind::Unavailable, text).temporary()
            }
        },
    }
}

/// Returns the kind of the system error inside the client's error.
fn io_kind(error: &EngineError) -> Option<io::ErrorKind> {
    if let EngineError::IOError { err } = error {
        return Some(err.kind());
    }
    let mut source = error.source();
    while let Some(error) = source {
        if let Some(error) = error.downcast_ref::<io::Error>() {
            return Some(error.kind());
        }
        source = error.source();
    }
    None
}

/// Returns the error for a folder of this machine that cannot be created.
pub fn folder_creation_error(what: &str, error: &io::Error) -> Error {
    if error.kind() == io::ErrorKind::StorageFull {
        let text = format!("cannot create {what}: the disk is full");
        return Error::new(ErrorKind::Io, text).with_hint("free some space");
    }
    Error::new(ErrorKind::Io, format!("cannot create {what}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_refusal(
        status_code: u16,
        message: &str,
        doing: EngineRequestKind<'_>,
        expected: (ErrorKind, &str),
    ) {
        let error =
            EngineError::DockerResponseServerError { status_code, message: message.to_owned() };
        let error = explain_engine_error(&error, &EngineAddress::Tcp("e:1".to_owned()), doing);
        assert_eq!((error.kind, error.message.as_str()), expected);
    }

    #[test]
    fn a_missing_image_and_a_missing_container_are_told_apart() {
        let image = "No such image: debian:12";
        let expected = (ErrorKind::NotFound, "no image `debian:12` at the engine");
        check_refusal(404, image, EngineRequestKind::Image("debian:12"), expected);
        let container = "No such container: web";
        check_refusal(
            404,
            container,
            EngineRequestKind::Container("web"),
            (ErrorKind::NotFound, "no container `web`"),
        );
    }

    #[test]
    fn stopped_or_paused_container_is_named_in_the_error() {
        let expected = (ErrorKind::Unavailable, "the container `web` is not running");
        check_refusal(
            409,
            "Container 12ab is not running",
            EngineRequestKind::Command("web"),
            expected,
        );
        let expected = (ErrorKind::Unavailable, "the container `web` is paused");
        let text = "Container web is paused, unpause the container before exec";
        check_refusal(409, text, EngineRequestKind::Command("web"), expected);
    }

    #[test]
    fn full_engine_disk_is_reported_for_every_request() {
        let text = "mkdir /var/lib/docker/x: no space left on device";
        let expected =
            "the engine's disk is full: mkdir /var/lib/docker/x: no space left on device";
        for doing in [
            EngineRequestKind::Connecting,
            EngineRequestKind::Image("a"),
            EngineRequestKind::Command("b"),
        ] {
            check_refusal(500, text, doing, (ErrorKind::Io, expected));
        }
    }

    #[test]
    fn other_refusals_are_passed_on_in_one_line() {
        let expected = (ErrorKind::Failed, "the engine refused the request: a b");
        check_refusal(500, "a\n  b", EngineRequestKind::Connecting, expected);
    }

    #[test]
    fn connection_loss_leaves_the_end_of_a_command_unknown() {
        let error = EngineError::IOError { err: io::Error::from(io::ErrorKind::ConnectionReset) };
        let address = EngineAddress::Tcp("e:1".to_owned());
        let told = explain_engine_error(&error, &address, EngineRequestKind::Command("web"));
        assert!(told.message.contains("it is unknown whether the command ended"), "{told}");
        let told = explain_engine_error(&error, &address, EngineRequestKind::Connecting);
        assert!(told.message.starts_with("the connection to the engine at `tcp://e:1` broke"));
    }
}
