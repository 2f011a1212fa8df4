//! What plugins keep of their own: values under keys and a folder, for the person and for each
//! workspace, in the data folder of the person.
//!
//! A value is one file, the frame of its key with the value as bytes, named by the SHA-256 of the
//! key: any text is a key, also where the system takes two cases for one. It is written beside and
//! renamed under a lock, so that no process ever reads half of one, and what fails leaves the value
//! that was there.
//!
//! Not here: who may ask. A plugin is given the place of its own name and no other.

mod place;
mod used;
mod values;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use jaato_config::Folders;
use jaato_types::store::StoreOf;
use jaato_types::{Error, ErrorKind, PluginName};
use sha2::{Digest as _, Sha256};
use tokio::sync::Semaphore;

use crate::blobs::blocking;

use used::Remembered;

pub use place::StorePlace;
pub use values::Expected;

/// Requests that are worked on at once, of all plugins: each holds a thread that may wait for the
/// lock of another process, and the others wait without one.
const REQUESTS_MAX: usize = 4;

/// The stores of all plugins.
#[derive(Debug)]
pub struct Stores {
    /// Absent where the system names no home.
    folder: Option<PathBuf>,
    /// The name of the process's workspace.
    workspace: String,
    requests: Semaphore,
    used: Arc<Remembered>,
}

impl Stores {
    /// Keeps them in the person's data folder. Makes no folder.
    pub fn new(folders: &Folders, workspace: &Path) -> Self {
        let folder = folders.plugin_data().ok();
        let root = workspace.as_os_str().as_encoded_bytes();
        let requests = Semaphore::new(REQUESTS_MAX);
        Self { folder, workspace: hex(&Sha256::digest(root)), requests, used: Arc::default() }
    }

    /// Returns where a plugin keeps what is meant.
    ///
    /// # Errors
    /// `unavailable` where the system names no home.
    pub fn place(&self, plugin: &PluginName, of: StoreOf) -> Result<StorePlace, Error> {
        let Some(folder) = &self.folder else {
            let text = "the system does not say where the user's home is, so nothing can be kept";
            return Err(
                Error::new(ErrorKind::Unavailable, text).with_hint("set HOME, or XDG_DATA_HOME")
            );
        };
        let own = folder.join(plugin.as_str());
        let folder = match of {
            StoreOf::Person => own.join("person"),
            StoreOf::Workspace => own.join("workspaces").join(&self.workspace),
        };
        Ok(StorePlace::new(folder, Arc::clone(&self.used)))
    }

    /// Works on a place where it may block.
    ///
    /// # Errors
    /// What the work answers.
    pub async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        // Nobody closes it.
        let _turn = self.requests.acquire().await;
        blocking(work).await
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests;
