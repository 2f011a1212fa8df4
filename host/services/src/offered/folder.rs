//! The service `cache_folder`: a folder of the plugin's own in the user's cache.

use jaato_loader::Served;
use jaato_types::service::{CACHE_FOLDER, FolderAnswer};
use jaato_types::{Error, ErrorKind};

use super::{Answer, Service, frame, no_home, ready};
use crate::call::Call;

/// The folder of a plugin.
pub struct CacheFolder;

impl Service for CacheFolder {
    fn has(&self, operation: &str) -> bool {
        operation == CACHE_FOLDER
    }

    fn call(&self, call: &Call, _operation: &str, _request: Vec<u8>) -> Answer {
        ready(folder(call))
    }
}

fn folder(call: &Call) -> Result<Served, Error> {
    let cache = call.shared.folders.cache().map_err(|_| no_home())?;
    let folder = cache.join("plugins").join(call.plugin.as_str());
    jaato_places::make(&folder).map_err(|error| {
        let made = Error::new(ErrorKind::Io, error.to_string());
        error.hint().into_iter().fold(made, Error::with_hint)
    })?;
    frame(&FolderAnswer::new(folder.display().to_string()))
}
