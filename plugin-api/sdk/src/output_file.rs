//! The file of a call's output: what is too large for the model, kept where it can be read.

use jaato_types::Result;
use jaato_types::service::{OUTPUT, OutputAnswer, OutputWrite};

use crate::context::Reporter;

/// Bytes that are written in one question: they and their head fit into a frame.
const WRITTEN_AT_ONCE: usize = 4 * 1024 * 1024;

impl Reporter {
    /// Appends to the file of this call's output, which the session's tools and the model can read.
    /// Returns where it is and how many bytes it has. Waits while the disk is slow, so that a tool
    /// which prints faster than anybody reads is held back; [`Reporter::output`] cannot do that.
    ///
    /// # Errors
    /// `unavailable` where this is no tool call, `limit_reached` for more than the session keeps,
    /// `io`.
    pub async fn keep_output(&self, bytes: impl AsRef<[u8]> + Send) -> Result<OutputAnswer> {
        let bytes = bytes.as_ref();
        let (mut pieces, request) = (bytes.chunks(WRITTEN_AT_ONCE), OutputWrite::default());
        let first = pieces.next().unwrap_or_default();
        let mut kept = self.service_with_bytes(OUTPUT, &request, first).await?;
        for piece in pieces {
            kept = self.service_with_bytes(OUTPUT, &request, piece).await?;
        }
        Ok(kept)
    }
}
