//! Big files that plugins declare. `jaato-assets` finds, downloads or imports them.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::sync::Arc;

use jaato_assets::{
    Asset, AssetEntry, AssetError, AssetErrorKind, AssetEvent, AssetReporter, AssetStore,
    DownloadPolicy, FetchSettings, Fetcher, ProgramCommand as RunCommand, ProgramExit,
    ProgramFuture, ProgramRunner, VerifiedAsset,
};
use jaato_catalog::Setup;
use jaato_config::{EnvironmentVariables, NoHomeFolder};
use jaato_http::Client;
use jaato_process::{ChildCommand, ErrorOutput, Exit, ProcessError, StandardOutput, Supervisor};
use jaato_types::{Delta, Error, ErrorKind};
use tokio::io::AsyncReadExt as _;

/// Maximum bytes to keep of a helper program's error output.
const STDERR_BYTES_MAX: usize = 64 * 1024;

/// The assets of a host.
#[derive(Clone)]
pub struct Assets {
    store: AssetStore,
    fetcher: Fetcher,
}

impl Assets {
    /// Creates the assets of a setup. Opens nothing.
    ///
    /// # Errors
    /// If the system reports no home directory, so that the cache has no location.
    pub fn new(
        setup: &Setup,
        supervisor: &Supervisor,
        client: Client,
    ) -> Result<Self, NoHomeFolder> {
        let store = AssetStore::new(setup.folders.models_folder()?);
        let download =
            if setup.config.local_download { DownloadPolicy::On } else { DownloadPolicy::Off };
        let variables = helper_variables(&setup.variables);
        let run = Arc::new(SupervisedInstaller { supervisor: supervisor.clone(), variables });
        let settings = FetchSettings { download, ..FetchSettings::default() };
        let fetcher = Fetcher::new(store.clone(), client, run, settings);
        Ok(Self { store, fetcher })
    }

    /// Returns a declared file, downloading it if needed, or an imported file by its name.
    ///
    /// # Errors
    /// `not_found` if the id is unknown, `unavailable` if the file cannot be obtained.
    pub async fn get(
        &self,
        id: &str,
        declared: &[Asset],
        report: &AssetReporter,
    ) -> Result<VerifiedAsset, Error> {
        if let Some(asset) = declared.iter().find(|asset| asset.id == id) {
            return self
                .fetcher
                .fetch(asset, report)
                .await
                .map_err(|error| asset_to_plugin_error(&error));
        }
        let found = self.store.find_custom(id).map_err(|error| asset_to_plugin_error(&error))?;
        found.ok_or_else(|| {
            let text = format!("model `{id}` is not on this machine");
            Error::new(ErrorKind::NotFound, text)
                .with_hint(format!("`jaato model import FILE --name {id}` imports it from a file"))
        })
    }

    /// Lists declared files and all others in the store.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn list(&self, declared: &[Asset]) -> Result<Vec<AssetEntry>, Error> {
        self.store.list(declared).map_err(|error| asset_to_plugin_error(&error))
    }

    /// Imports a declared file from a path. Blocks until it is copied and verified.
    ///
    /// # Errors
    /// If it is not the declared file, or cannot be copied.
    pub fn import_asset(
        &self,
        file: &Path,
        asset: &Asset,
        report: &AssetReporter,
    ) -> Result<VerifiedAsset, Error> {
        self.store.import_asset(file, asset, report).map_err(|error| asset_to_plugin_error(&error))
    }

    /// Imports another model under a name. Blocks until it is copied and verified.
    ///
    /// # Errors
    /// If it is not a GGUF file of that architecture, the name is taken or malformed, or it cannot
    /// be copied.
    pub fn import_custom(
        &self,
        file: &Path,
        name: &str,
        architecture: &str,
        reserved: &[&str],
        report: &AssetReporter,
    ) -> Result<VerifiedAsset, Error> {
        let taken = self.store.import_custom(file, name, architecture, reserved, report);
        taken.map_err(|error| asset_to_plugin_error(&error))
    }
}

/// Converts a download event to a delta of the call, so that the user sees it with the call.
pub fn asset_progress_delta(event: &AssetEvent) -> Delta {
    match event {
        AssetEvent::Progress { done, total } => Delta::progress("fetching", *done, *total),
        other => Delta::notice(other.to_string()),
    }
}

fn asset_to_plugin_error(error: &AssetError) -> Error {
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

/// Variables to pass to a helper program, if they are set: those that locate programs and
/// configuration, and those that pip needs for the user's mirror, proxy and certificates. None of
/// them may hold a key for anything else.
#[rustfmt::skip]
const HELPER_VARIABLES: &[&str] = &[
    "HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "TZ", "USER", "XDG_CONFIG_DIRS", "XDG_CONFIG_HOME",
    "ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "all_proxy", "https_proxy", "http_proxy", "no_proxy",
    "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "SSL_CERT_DIR", "SSL_CERT_FILE",
    "PIP_CERT", "PIP_CLIENT_CERT", "PIP_CONFIG_FILE", "PIP_DEFAULT_TIMEOUT", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS",
    "PIP_INDEX_URL", "PIP_NO_INDEX", "PIP_PROXY", "PIP_RETRIES", "PIP_TIMEOUT", "PIP_TRUSTED_HOST",
];

/// Returns the variables for a helper program. Keeps only absolute folders of `PATH`, so that the
/// program is never found in a workspace.
fn helper_variables(variables: &EnvironmentVariables) -> BTreeMap<OsString, OsString> {
    let listed = HELPER_VARIABLES
        .iter()
        .filter_map(|name| Some((OsString::from(name), variables.get(name)?.to_owned())));
    let folders = variables.get("PATH").map(|path| {
        std::env::split_paths(path).filter(|folder| folder.is_absolute()).collect::<Vec<_>>()
    });
    let path = folders.and_then(|folders| std::env::join_paths(folders).ok());
    listed.chain(path.map(|path| ("PATH".into(), path))).collect()
}

/// Runs helper programs (pip) under the guardian, in jaato's own folder and with few of the user's
/// variables.
struct SupervisedInstaller {
    supervisor: Supervisor,
    variables: BTreeMap<OsString, OsString>,
}

impl ProgramRunner for SupervisedInstaller {
    fn run(&self, command: RunCommand) -> ProgramFuture<'_> {
        Box::pin(async move {
            let mut child = ChildCommand::new(command.program, &command.directory);
            child.args = command.arguments;
            child.variables = self.variables.clone();
            child
                .variables
                .extend(command.variables.into_iter().map(|(name, value)| (name.into(), value)));
            child.stderr = ErrorOutput::Separate(StandardOutput::Piped);
            let mut child = self.supervisor.spawn(child).await.map_err(to_io_error)?;
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
            Ok(ProgramExit {
                success: exit.map_err(to_io_error)? == Exit::Code(0),
                stderr: String::from_utf8_lossy(&stderr).into_owned(),
            })
        })
    }
}

fn to_io_error(error: ProcessError) -> io::Error {
    let kind = match error {
        ProcessError::ProgramNotFound { .. } => io::ErrorKind::NotFound,
        _ => io::ErrorKind::Other,
    };
    io::Error::new(kind, error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn download_helper_gets_network_variables_but_no_keys() {
        let set = [
            ("HOME", "/h"),
            ("https_proxy", "http://p:1"),
            ("PIP_INDEX_URL", "https://mirror"),
            ("OPENAI_API_KEY", "sk"),
            ("PYTHONPATH", "."),
            ("LD_PRELOAD", "/x.so"),
            ("PATH", ".:/usr/bin::node_modules/.bin:/bin"),
        ];
        let found = helper_variables(&set.into_iter().collect());
        let found: Vec<_> =
            found.iter().map(|(name, value)| (name.to_str(), value.to_str())).collect();
        let expected = [
            ("HOME", "/h"),
            ("PATH", "/usr/bin:/bin"),
            ("PIP_INDEX_URL", "https://mirror"),
            ("https_proxy", "http://p:1"),
        ];
        assert_eq!(found, expected.map(|(name, value)| (Some(name), Some(value))));
    }
}
