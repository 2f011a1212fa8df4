//! Plugins' own data: values under keys and a folder, for the user and for each workspace, in the
//! user's data folder.
//!
//! A value is one file that contains the key and, as raw bytes, the value. The SHA-256 of the key
//! is its name, so any text is a valid key, even on file systems that ignore case. It is written to
//! a temporary file and renamed under a lock, so that no process reads half a value, and a failure
//! leaves the previous value.
//!
//! Not here: access control. A plugin gets the place of its own name and no other.

mod store_folder;
mod usage;
mod values;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use jaato_config::UserFolders;
use jaato_types::store::StoreOwner;
use jaato_types::{Error, ErrorKind, PluginName};
use sha2::{Digest as _, Sha256};
use tokio::sync::Semaphore;

use crate::blobs::run_blocking;

use usage::StoreUsageCache;

pub use store_folder::PluginStore;
pub use values::ValueCondition;

/// Maximum number of concurrent requests of all plugins. Each holds a thread that may wait for
/// another process's lock. Further requests wait without a thread.
const REQUESTS_MAX: usize = 4;

/// The stores of all plugins.
#[derive(Debug)]
pub struct PluginStores {
    /// `None` if the system reports no home directory.
    folder: Option<PathBuf>,
    /// The name of the process's workspace.
    workspace: String,
    requests: Semaphore,
    used: Arc<StoreUsageCache>,
}

impl PluginStores {
    /// Uses the user's data folder. Creates no folder.
    pub fn new(folders: &UserFolders, workspace: &Path) -> Self {
        let folder = folders.plugin_data_folder().ok();
        let root = workspace.as_os_str().as_encoded_bytes();
        let requests = Semaphore::new(REQUESTS_MAX);
        Self {
            folder,
            workspace: hex_digest(&Sha256::digest(root)),
            requests,
            used: Arc::default(),
        }
    }

    /// Returns the place of a plugin's store.
    ///
    /// # Errors
    /// `unavailable` if the system reports no home directory.
    pub fn open_store(&self, plugin: &PluginName, of: StoreOwner) -> Result<PluginStore, Error> {
        let Some(folder) = &self.folder else {
            let text = "the user's home folder is unknown, so nothing can be saved";
            return Err(
                Error::new(ErrorKind::Unavailable, text).with_hint("set HOME, or XDG_DATA_HOME")
            );
        };
        let own = folder.join(plugin.as_str());
        let folder = match of {
            StoreOwner::Person => own.join("person"),
            StoreOwner::Workspace => own.join("workspaces").join(&self.workspace),
        };
        Ok(PluginStore::new(folder, Arc::clone(&self.used)))
    }

    /// Runs blocking work on a store.
    ///
    /// # Errors
    /// The work's error.
    pub async fn run_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        // The semaphore is never closed.
        let _turn = self.requests.acquire().await;
        run_blocking(work).await
    }
}

fn hex_digest(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests;
