//! Stores long output of a tool call. The host keeps the whole output in a file, and the model gets
//! its head and tail.

use jaato_types::Result;
use jaato_types::service::{OUTPUT, OutputAnswer, OutputWrite};

use crate::context::Reporter;

/// The number of bytes in one request. With their JSON, they fit into a frame.
const WRITTEN_AT_ONCE: usize = 4 * 1024 * 1024;

impl Reporter {
    /// Appends to a text of this call's result. The host adds it to the result under `key`. If the
    /// text exceeds the limit of a result, the model gets its head and tail, and the path of a file
    /// with the whole text. The call waits while the disk is slow, so that neither the tool nor the
    /// host holds much in memory; [`Reporter::output`] cannot do that.
    ///
    /// # Errors
    /// `unavailable` outside of tool calls, `limit_reached` for more than 16 texts,
    /// `invalid_arguments` for a key of more than 64 bytes.
    pub async fn keep_output(&self, key: &str, bytes: impl AsRef<[u8]> + Send) -> Result<()> {
        self.write_output(key, bytes.as_ref(), false).await
    }

    /// Does the same, and also shows the user the appended text, up to a readable amount.
    ///
    /// # Errors
    /// As [`Reporter::keep_output`].
    pub async fn keep_and_show(&self, key: &str, bytes: impl AsRef<[u8]> + Send) -> Result<()> {
        self.write_output(key, bytes.as_ref(), true).await
    }

    async fn write_output(&self, key: &str, bytes: &[u8], live: bool) -> Result<()> {
        let request = OutputWrite { key: key.to_owned(), live, ..OutputWrite::default() };
        for piece in bytes.chunks(WRITTEN_AT_ONCE) {
            let _: OutputAnswer = self.service_with_bytes(OUTPUT, &request, piece).await?;
        }
        Ok(())
    }
}
