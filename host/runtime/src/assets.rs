//! Big files that plugins declare: found, fetched or imported for them, by `jaato-assets`.

use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::sync::Arc;

use jaato_assets::{
    Asset, AssetError, AssetErrorKind, Command as RunCommand, Download, Ended, Entry, Event,
    FetchSettings, Fetcher, Found, Report, Run, Running, Store,
};
use jaato_config::NoHome;
use jaato_http::Client;
use jaato_process::{Command, ErrorOutput, Exit, Output, ProcessError, Supervisor};
use jaato_types::{Delta, Error, ErrorKind};
use tokio::io::AsyncReadExt as _;

use crate::setup::Setup;

/// Most of what a helper program printed to its error output that is kept, in bytes.
const STDERR_BYTES_MAX: usize = 64 * 1024;

/// The assets of a host.
#[derive(Clone)]
pub struct Assets {
    store: Store,
    fetcher: Fetcher,
}

impl Assets {
    /// Makes them for a setup; opens nothing.
    ///
    /// # Errors
    /// When the system names no home, so that there is no cache.
    pub fn new(setup: &Setup, supervisor: &Supervisor, client: Client) -> Result<Self, NoHome> {
        let store = Store::new(setup.folders.models()?);
        let download = if setup.config.local_download { Download::On } else { Download::Off };
        let run = Arc::new(Supervised {
            supervisor: supervisor.clone(),
            directory: setup.workspace.working_directory().to_owned(),
        });
        let settings = FetchSettings { download, ..FetchSettings::default() };
        let fetcher = Fetcher::new(store.clone(), client, run, settings);
        Ok(Self { store, fetcher })
    }

    /// Returns a declared file, fetched if need be, or an imported one by its name.
    ///
    /// # Errors
    /// `not_found` for an id that is neither, `unavailable` when it cannot be had.
    pub async fn get(&self, id: &str, declared: &[Asset], report: &Report) -> Result<Found, Error> {
        if let Some(asset) = declared.iter().find(|asset| asset.id == id) {
            return self.fetcher.fetch(asset, report).await.map_err(|error| to_error(&error));
        }
        let found = self.store.find_custom(id).map_err(|error| to_error(&error))?;
        found.ok_or_else(|| {
            let text = format!("there is no model `{id}` on this machine");
            Error::new(ErrorKind::NotFound, text)
                .with_hint(format!("`jaato model import FILE --name {id}` takes one from a file"))
        })
    }

    /// Lists declared files and what else is kept.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn list(&self, declared: &[Asset]) -> Result<Vec<Entry>, Error> {
        self.store.list(declared).map_err(|error| to_error(&error))
    }

    /// Takes in a declared file from a path. Blocks until it is copied and checked.
    ///
    /// # Errors
    /// When it is not the declared file, or cannot be copied.
    pub fn import(&self, file: &Path, asset: &Asset, report: &Report) -> Result<Found, Error> {
        self.store.import(file, asset, report).map_err(|error| to_error(&error))
    }

    /// Takes in another model under a name. Blocks until it is copied and checked.
    ///
    /// # Errors
    /// When it is no GGUF of that architecture, the name is taken or malformed, or it cannot be copied.
    pub fn import_custom(
        &self,
        file: &Path,
        name: &str,
        architecture: &str,
        reserved: &[&str],
        report: &Report,
    ) -> Result<Found, Error> {
        let taken = self.store.import_custom(file, name, architecture, reserved, report);
        taken.map_err(|error| to_error(&error))
    }
}

/// Turns what a fetch tells into what a call emits, so that a person sees it where the call is shown.
pub fn delta_of(event: &Event) -> Delta {
    match event {
        Event::Progress { done, total } => {
            Delta::Progress { label: "fetching".to_owned(), done: *done, total: *total }
        }
        other => Delta::Notice { text: other.to_string() },
    }
}

fn to_error(error: &AssetError) -> Error {
    let kind = match error.kind() {
        AssetErrorKind::Cancelled => ErrorKind::Cancelled,
        AssetErrorKind::Offline
        | AssetErrorKind::DownloadOff
        | AssetErrorKind::NoSource
        | AssetErrorKind::Busy => ErrorKind::Unavailable,
        AssetErrorKind::Missing => ErrorKind::NotFound,
        AssetErrorKind::NoSpace | AssetErrorKind::Io => ErrorKind::Io,
        AssetErrorKind::Invalid
        | AssetErrorKind::WrongDigest
        | AssetErrorKind::WrongSize
        | AssetErrorKind::Changed
        | AssetErrorKind::NotAFile
        | AssetErrorKind::Empty
        | AssetErrorKind::NotGguf
        | AssetErrorKind::WrongArchitecture
        | AssetErrorKind::BadName => ErrorKind::Failed,
    };
    let made = Error::new(kind, error.to_string());
    match error.hint() {
        Some(hint) => made.with_hint(hint),
        None => made,
    }
}

/// Runs helper programs (pip) under the guardian, with the person's own variables: index and proxy
/// settings are theirs.
struct Supervised {
    supervisor: Supervisor,
    directory: std::path::PathBuf,
}

impl Run for Supervised {
    fn run(&self, command: RunCommand) -> Running<'_> {
        Box::pin(async move {
            let mut child = Command::new(command.program, &self.directory);
            child.args = command.arguments;
            child.variables = std::env::vars_os().collect();
            child
                .variables
                .extend(command.variables.into_iter().map(|(name, value)| (name.into(), value)));
            child.stderr = ErrorOutput::Separate(Output::Piped);
            let mut child = self.supervisor.spawn(child).await.map_err(to_io)?;
            let stderr = child.stderr.take();
            let read = async {
                let mut kept = VecDeque::new();
                let Some(mut stderr) = stderr else { return kept };
                let mut buffer = vec![0; 4096];
                while let Ok(read @ 1..) = stderr.read(&mut buffer).await {
                    kept.extend(&buffer[..read]);
                    kept.drain(..kept.len().saturating_sub(STDERR_BYTES_MAX));
                }
                kept
            };
            let (stderr, exit) = tokio::join!(read, child.wait());
            let stderr: Vec<u8> = stderr.into();
            Ok(Ended {
                success: exit.map_err(to_io)? == Exit::Code(0),
                stderr: String::from_utf8_lossy(&stderr).into_owned(),
            })
        })
    }
}

fn to_io(error: ProcessError) -> io::Error {
    let kind = match error {
        ProcessError::ProgramNotFound { .. } => io::ErrorKind::NotFound,
        _ => io::ErrorKind::Other,
    };
    io::Error::new(kind, error.to_string())
}
