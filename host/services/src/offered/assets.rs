//! The service `asset`: a big file that the plugin declares, fetched if need be.

use std::sync::Arc;

use jaato_types::Frame;
use jaato_types::service::{ASSET, AssetAnswer, AssetRequest};

use super::{Answer, Service, bad_request, frame, no_home};
use crate::assets::delta_of;
use crate::call::Call;

/// The big files of a plugin.
pub struct AssetFiles;

impl Service for AssetFiles {
    fn has(&self, operation: &str) -> bool {
        operation == ASSET
    }

    fn call(&self, call: &Call, _operation: &str, request: Vec<u8>) -> Answer {
        let (shared, declared, tell) =
            (Arc::clone(&call.shared), Arc::clone(&call.assets), Arc::clone(&call.tell));
        Box::pin(async move {
            let request: AssetRequest = Frame::read(&request).map_err(bad_request)?;
            let assets = shared.assets.as_ref().ok_or_else(no_home)?;
            let report: jaato_assets::Report = Arc::new(move |event| tell(delta_of(&event)));
            let found = assets.get(&request.id, &declared, &report).await?;
            let path = found.path.display().to_string();
            frame(&AssetAnswer::new(path, found.sha256))
        })
    }
}
