//! Runs the engine's checks on the services `blob.put` and `blob.get`. The fake host passes the
//! same checks.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use jaato_environments::OutputFolder;
use jaato_loader::testing::LoaderHost;
use jaato_loader::{EngineServiceAnswer, EngineServices, ServiceCaller};
use jaato_plugin_engine::testing::{BLOB_CHECKS, run_checks};
use jaato_types::{Error, SessionId};

use super::answer_blob_operation;
use crate::blobs::{BlobStore, BlobUploads};

struct BlobsOnlyServices(Arc<BlobStore>, Arc<BlobUploads>);

impl EngineServices for BlobsOnlyServices {
    fn call(
        &self,
        _caller: ServiceCaller,
        operation: &str,
        frame: Vec<u8>,
    ) -> BoxFuture<'static, Result<EngineServiceAnswer, Error>> {
        let blobs = self.0.session_blobs(&SessionId::from("s1")).unwrap();
        answer_blob_operation(blobs, Arc::clone(&self.1), operation, frame)
    }
}

#[test]
fn the_real_host_keeps_blobs_as_the_fake_one_does() {
    let folder = tempfile::tempdir().unwrap();
    let blobs =
        Arc::new(BlobStore::next_to_outputs(Arc::new(OutputFolder::in_folder(folder.path()))));
    let services = || {
        Arc::new(BlobsOnlyServices(Arc::clone(&blobs), Arc::default())) as Arc<dyn EngineServices>
    };
    run_checks(BLOB_CHECKS, &LoaderHost::new(services));
    // `abc`, an empty blob, and a large one. Unfinished uploads take no space.
    let blobs = blobs.session_blobs(&SessionId::from("s1")).unwrap();
    assert_eq!(blobs.stored_bytes(), 3 + jaato_types::service::BLOB_BYTES_MAX);
}
