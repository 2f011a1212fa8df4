//! Shared by the asset tests: a small asset, a store in its own folder, recorded events.
#![allow(dead_code, reason = "the server of another crate's tests can do more")]

#[path = "../../../http/tests/support/mod.rs"]
pub mod server;

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jaato_assets::{
    Asset, AssetEvent, AssetReporter, AssetSource, AssetStore, DownloadPolicy, FetchSettings,
    Fetcher, ProgramCommand, ProgramExit, ProgramRunner,
};
use jaato_http::{Client, HttpClientSettings, NetworkAccess, Proxies};
use parking_lot::Mutex;
use sha2::{Digest, Sha256};

/// Returns bytes without repetition, so that a shifted piece is detected.
pub fn test_content(length: usize) -> Vec<u8> {
    (0..length as u64 / 8 + 1)
        .flat_map(|i| i.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_le_bytes())
        .take(length)
        .collect()
}

pub fn sha256_digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

pub fn test_asset(bytes: &[u8], sources: Vec<AssetSource>) -> Asset {
    Asset {
        id: "small".to_owned(),
        file_name: "small.gguf".to_owned(),
        bytes: bytes.len() as u64,
        sha256: sha256_digest(bytes),
        license: "apache-2.0".to_owned(),
        title: "a small model".to_owned(),
        sources,
    }
}

pub fn url_source(url: String) -> AssetSource {
    AssetSource::url(url)
}

/// A store in a folder that is removed with the test.
pub struct AssetFixture {
    pub folder: tempfile::TempDir,
    pub store: AssetStore,
    events: Arc<Mutex<Vec<AssetEvent>>>,
}

impl AssetFixture {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = AssetStore::new(folder.path().join("models"));
        Self { folder, store, events: Arc::default() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.store.folder().join(name)
    }

    /// Writes a file to the folder of models.
    pub fn write_file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        std::fs::create_dir_all(self.store.folder()).unwrap();
        std::fs::write(self.path(name), bytes).unwrap();
        self.path(name)
    }

    pub fn read_file(&self, name: &str) -> Option<Vec<u8>> {
        std::fs::read(self.path(name)).ok()
    }

    /// Returns the names of all files in the folder of models.
    pub fn list_names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.store.folder()).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.collect();
        names.sort();
        names
    }

    pub fn fetcher(&self, run: impl ProgramRunner + 'static) -> Fetcher {
        fetcher(&self.store, NetworkAccess::Online, DownloadPolicy::On, run)
    }

    pub fn event_reporter(&self) -> AssetReporter {
        let events = self.events.clone();
        Arc::new(move |event| events.lock().push(event))
    }

    /// Returns all events except progress, with the folder's path as `DIR`.
    pub fn event_lines(&self) -> Vec<String> {
        let events = self.events.lock();
        let told = events.iter().filter(|event| !matches!(event, AssetEvent::Progress { .. }));
        told.map(|event| self.without_folder(&event.to_string())).collect()
    }

    pub fn progress_bytes(&self) -> Vec<u64> {
        let events = self.events.lock();
        let done = events.iter().filter_map(|event| match event {
            AssetEvent::Progress { done, .. } => Some(*done),
            _ => None,
        });
        done.collect()
    }

    /// Returns a text with the folder's path as `DIR`.
    pub fn without_folder(&self, text: &str) -> String {
        text.replace(self.store.folder().to_str().unwrap(), "DIR")
    }
}

pub fn fetcher(
    store: &AssetStore,
    network: NetworkAccess,
    download: DownloadPolicy,
    run: impl ProgramRunner + 'static,
) -> Fetcher {
    let settings = HttpClientSettings {
        network,
        proxies: Proxies::without_proxies(),
        ..HttpClientSettings::default()
    };
    let (client, retry_wait) = (Client::new(settings), Duration::ZERO);
    let settings = FetchSettings { download, retry_wait, ..FetchSettings::default() };
    Fetcher::new(store.clone(), client, Arc::new(run), settings)
}

/// Simulates a machine without Python.
pub async fn no_python(_: ProgramCommand) -> std::io::Result<ProgramExit> {
    Err(std::io::ErrorKind::NotFound.into())
}
