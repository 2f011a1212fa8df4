//! The services, one file each, and the table in which each has its row.

mod ask;
mod assets;
mod attach;
pub mod blobs;
mod children;
mod config;
mod count;
mod environment;
mod folder;
mod history;
mod host_processes;
mod http;
mod model;
mod notify;
mod objects;
mod output;
mod processes;
mod reading;
mod request;
mod resources;
mod secrets;
mod session;
mod store;
mod tasks;
mod tool_calls;
mod tools_set;
mod workspace_file;

use futures_util::future::BoxFuture;
use jaato_loader::{Caller, Served};
use jaato_types::{Error, ErrorKind, Frame, FrameError};
use serde::Serialize;

use crate::call::Call;

/// What a service answers with.
pub type Answer = BoxFuture<'static, Result<Served, Error>>;

/// Something that plugins may ask of the host by name.
trait Service: Sync {
    /// Returns true if an operation is of this service.
    fn has(&self, operation: &str) -> bool;

    /// Returns true if the service is offered to this caller.
    fn is_for(&self, _call: &Call, _caller: &Caller) -> bool {
        true
    }

    /// Answers an operation. Called on the thread that serves plugins, so it must not block.
    fn call(&self, call: &Call, operation: &str, request: Vec<u8>) -> Answer;
}

/// All services. The first that has an operation and is offered answers it.
const SERVICES: &[&dyn Service] = &[
    &session::Session,
    &config::Configuration,
    &request::OfCall,
    &folder::CacheFolder,
    &store::Store,
    &secrets::Secrets,
    &assets::AssetFiles,
    &http::Http,
    &output::Output,
    &blobs::Blobs,
    &attach::ToResult,
    &objects::Objects,
    &resources::Resources,
    &history::History,
    &tool_calls::ToolCalls,
    &tools_set::SettingTools,
    &tasks::Tasks,
    &notify::Notifications,
    &ask::Forms,
    &model::Models,
    &children::Children,
    &count::Counts,
    &host_processes::HostProcesses,
    &workspace_file::WorkspaceFiles,
    &processes::Processes,
    &environment::OfEnvironment,
];

/// Answers an operation of a call. The grant that it needs is looked up each time, so
/// that one which is taken back ends with the request that goes on.
pub fn call(call: &Call, caller: Caller, operation: &str, request: Vec<u8>) -> Answer {
    for service in SERVICES {
        if service.has(operation) && service.is_for(call, &caller) {
            let allowed =
                reading::check(call, operation).and_then(|()| call.check_grant(operation));
            return match allowed {
                Ok(()) => service.call(call, operation, request),
                Err(error) => ready(Err(error)),
            };
        }
    }
    ready(Err(unknown(operation)))
}

fn unknown(operation: &str) -> Error {
    let text = format!("this host has no service `{operation}`");
    Error::new(ErrorKind::UnknownOperation, text)
}

fn ready(served: Result<Served, Error>) -> Answer {
    Box::pin(std::future::ready(served))
}

fn frame<T: Serialize + ?Sized>(value: &T) -> Result<Served, Error> {
    let written = Frame::write(value);
    written.map(Served::Frame).map_err(host_bug)
}

fn host_bug(error: FrameError) -> Error {
    Error::new(ErrorKind::HostBug, error.to_string())
}

fn bad_request(error: FrameError) -> Error {
    Error::new(ErrorKind::InvalidArguments, error.to_string())
}

fn no_home() -> Error {
    let text = "the system does not say where the user's home is, so there is no cache";
    Error::new(ErrorKind::Unavailable, text)
        .with_hint("set HOME, or XDG_CACHE_HOME and XDG_DATA_HOME")
}

#[cfg(test)]
mod tests {
    use jaato_types::large::REQUEST;
    use jaato_types::service::{
        ASSET, ATTACH, BLOB_GET, BLOB_PUT, CACHE_FOLDER, CONFIG, OUTPUT, SESSION,
    };
    use jaato_types::{
        execution, files, http, objects, process, resources, secret, store, terminal,
    };

    use super::*;

    /// How many rows of the table have an operation.
    fn rows(operation: &str) -> usize {
        SERVICES.iter().filter(|service| service.has(operation)).count()
    }

    #[test]
    fn each_operation_is_of_one_service() {
        let of_plugins = [
            SESSION,
            CONFIG,
            REQUEST,
            CACHE_FOLDER,
            store::SET,
            secret::SET,
            ASSET,
            OUTPUT,
            http::HTTP_REQUEST,
            http::HTTP_BODY,
        ];
        let of_sessions = [objects::RESULT, resources::GET_OR_CREATE, BLOB_PUT, BLOB_GET, ATTACH];
        for operation in of_plugins.into_iter().chain(of_sessions) {
            assert_eq!(rows(operation), 1, "{operation}");
        }
        // Programs of this machine for environments, those of the environment for all others.
        for operation in [execution::DESCRIBE, files::WRITE, process::SPAWN, terminal::SHOW] {
            assert_eq!(rows(operation), 2, "{operation}");
        }
    }

    #[test]
    fn what_is_of_no_service_is_told_by_its_name() {
        assert_eq!(rows("moon.phase"), 0);
        let error = unknown("moon.phase");
        assert_eq!(error.kind, ErrorKind::UnknownOperation);
        assert_eq!(error.message, "this host has no service `moon.phase`");
    }
}
