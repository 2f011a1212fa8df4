//! Long output of a tool call: the host keeps all of it in a file, and the model gets its head and
//! tail.

use jaato_types::Result;
use jaato_types::service::{OUTPUT, OutputAnswer, OutputWrite};

use crate::context::Reporter;

/// Bytes of one request: with their JSON they fit into a frame.
const WRITTEN_AT_ONCE: usize = 4 * 1024 * 1024;

impl Reporter {
    /// Adds to a text of this call's result. The host puts it there under `key`. If it is more than
    /// a result may have, the model gets its head and tail, and the path of a file with every byte.
    /// Waits while the disk is slow, so that neither the tool nor the host holds much in memory;
    /// [`Reporter::output`] cannot do that.
    ///
    /// # Errors
    /// `unavailable` outside of tool calls, `limit_reached` for more than 16 texts,
    /// `invalid_arguments` for a key of more than 64 bytes.
    pub async fn keep_output(&self, key: &str, bytes: impl AsRef<[u8]> + Send) -> Result<()> {
        self.write_output(key, bytes.as_ref(), false).await
    }

    /// Does the same, and shows the user the added text, as much as a person can read.
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
