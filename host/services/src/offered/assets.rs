//! The services `asset` and `cache_folder`: large files that the plugin declares, and the plugin's
//! own folder in the user's cache.

use std::sync::Arc;

use jaato_types::service::{AssetAnswer, AssetRequest, FolderAnswer};
use jaato_types::{Error, ErrorKind};

use super::ServiceFuture;
use crate::assets::asset_progress_delta;
use crate::call::ServiceCall;

jaato_types::asset_operations!(bodies);

fn asset(call: &ServiceCall, request: AssetRequest) -> Result<ServiceFuture<AssetAnswer>, Error> {
    let (shared, declared, tell) =
        (Arc::clone(&call.shared), Arc::clone(&call.assets), Arc::clone(&call.tell));
    Ok(Box::pin(async move {
        let assets = shared.assets.as_ref().ok_or_else(no_home_error)?;
        let report: jaato_assets::AssetReporter =
            Arc::new(move |event| tell(asset_progress_delta(&event)));
        let found = assets.get(&request.id, &declared, &report).await?;
        Ok(AssetAnswer::new(found.path.display().to_string(), found.sha256))
    }))
}

fn cache_folder(call: &ServiceCall) -> Result<FolderAnswer, Error> {
    let cache = call.shared.folders.cache_folder().map_err(|_| no_home_error())?;
    let folder = cache.join("plugins").join(call.plugin.as_str());
    jaato_places::make_own_folder(&folder).map_err(|error| {
        let made = Error::new(ErrorKind::Io, error.to_string());
        error.hint().into_iter().fold(made, Error::with_hint)
    })?;
    Ok(FolderAnswer::new(folder.display().to_string()))
}

fn no_home_error() -> Error {
    let text = "cannot find the user's home folder, so there is no cache";
    Error::new(ErrorKind::Unavailable, text)
        .with_hint("set HOME, or XDG_CACHE_HOME and XDG_DATA_HOME")
}
