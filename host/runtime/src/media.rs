//! Reads the size and shape of a session's images from their bytes.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use jaato_services::SessionBlobs;
use jaato_session::{Media, MediaFacts};
use jaato_types::SessionId;

use crate::host::RuntimeHost;
use crate::image_shape::{ImageShape, detect_image_shape};

/// Largest blob whose bytes are examined. For a larger blob only the length is known, and no
/// provider accepts it.
const LOOKED_AT_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// The blobs of one session.
pub(crate) struct SessionMedia {
    pub(crate) host: Arc<RuntimeHost>,
    pub(crate) session: SessionId,
}

impl Media for SessionMedia {
    fn media_facts<'a>(&'a self, blob: &'a str) -> BoxFuture<'a, Option<MediaFacts>> {
        let blobs = self.host.services.shared_services().blobs().session_blobs(&self.session).ok();
        let blob = blob.to_owned();
        Box::pin(async move {
            let blobs = blobs?;
            tokio::task::spawn_blocking(move || media_facts(&blobs, &blob)).await.ok()?
        })
    }
}

fn media_facts(blobs: &SessionBlobs, id: &str) -> Option<MediaFacts> {
    let kept = blobs.find(id).ok()?;
    let mut facts = MediaFacts { bytes: kept.bytes, ..MediaFacts::default() };
    if kept.bytes <= LOOKED_AT_BYTES_MAX {
        let bytes = blobs.read_blob_start(id, kept.bytes).ok()?;
        match detect_image_shape(&bytes) {
            ImageShape::Image { width, height } => facts.sides = Some((width, height)),
            ImageShape::Damaged(why) => facts.damage = Some(why),
            ImageShape::Unknown => {}
        }
    }
    Some(facts)
}
