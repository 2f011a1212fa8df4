//! Streams returned by services of the host: [`ServiceStream`] and its [`StreamPiece`]s.

use jaato_plugin_api::abi::abi_stable::std_types::{RResult, RVec};
use jaato_types::{Frame, Result};
use serde::de::DeserializeOwned;

use super::{Reporter, host_frame_error, read_error};

/// A stream returned by a service of the host. Dropping it closes the stream.
pub struct ServiceStream {
    host: Reporter,
    handle: u64,
    /// The rest of a piece that [`ServiceStream::next`] has not returned yet.
    rest: Option<StreamPiece>,
}

/// A piece of a stream, without copying its bytes.
pub struct StreamPiece {
    frame: RVec<u8>,
    /// The offset of the bytes in the frame.
    from: usize,
}

impl std::ops::Deref for StreamPiece {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.frame.as_slice()[self.from..]
    }
}

/// The maximum number of bytes that [`ServiceStream::next`] returns.
const NEXT_BYTES_MAX: usize = 64 * 1024;

impl ServiceStream {
    pub(crate) fn new(host: Reporter, handle: u64) -> Self {
        Self { host, handle, rest: None }
    }

    /// Waits for the next whole frame.
    async fn next_frame(&mut self) -> Result<Option<RVec<u8>>> {
        let future = self.host.context().next(self.handle);
        match future.await {
            RResult::ROk(frame) => Ok(frame.into_option()),
            RResult::RErr(error) => Err(read_error(&error)),
        }
    }

    /// Waits for the next frame of a stream of frames, and returns its JSON and bytes.
    pub(crate) async fn next_event<T: DeserializeOwned>(&mut self) -> Result<Option<(T, Vec<u8>)>> {
        let Some(frame) = self.next_frame().await? else { return Ok(None) };
        let parsed = Frame::parse(&frame).map_err(host_frame_error)?;
        Ok(Some((parsed.json().map_err(host_frame_error)?, parsed.bytes.to_vec())))
    }

    /// Waits for the next bytes, at most 64 KiB. Returns `None` at the end. Dropping the wait loses
    /// nothing.
    ///
    /// # Errors
    /// The host's error if the stream broke; `cancelled` if the call ended.
    pub async fn next(&mut self) -> Result<Option<Vec<u8>>> {
        let Some(mut piece) = self.next_piece().await? else { return Ok(None) };
        let bytes = piece[..piece.len().min(NEXT_BYTES_MAX)].to_vec();
        piece.from += bytes.len();
        if !piece.is_empty() {
            self.rest = Some(piece);
        }
        Ok(Some(bytes))
    }

    /// Waits for the next piece in its original size (at most 1 MiB from a file), without copying
    /// it. Returns `None` at the end. Dropping the wait loses nothing.
    ///
    /// # Errors
    /// As [`ServiceStream::next`].
    pub async fn next_piece(&mut self) -> Result<Option<StreamPiece>> {
        if let Some(rest) = self.rest.take() {
            return Ok(Some(rest));
        }
        let Some(frame) = self.next_frame().await? else { return Ok(None) };
        let bytes = Frame::parse(&frame).map_err(host_frame_error)?.bytes.len();
        let from = frame.len() - bytes;
        Ok(Some(StreamPiece { frame, from }))
    }
}

impl Drop for ServiceStream {
    fn drop(&mut self) {
        self.host.context().close(self.handle);
    }
}
