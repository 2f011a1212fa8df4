//! Streams that services of the host answer with: [`Stream`] and its [`Piece`]s.

use jaato_plugin_api::abi::abi_stable::std_types::{RResult, RVec};
use jaato_types::{Frame, Result};
use serde::de::DeserializeOwned;

use super::{Reporter, host_frame, read_error};

/// A stream that a service of the host answered with. Dropping it ends it.
pub struct Stream {
    host: Reporter,
    handle: u64,
    /// What [`Stream::next`] has not yet given of a piece.
    rest: Option<Piece>,
}

/// A piece of a stream, in the memory in which it came.
pub struct Piece {
    frame: RVec<u8>,
    /// Where its bytes begin.
    from: usize,
}

impl std::ops::Deref for Piece {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.frame.as_slice()[self.from..]
    }
}

/// Bytes that [`Stream::next`] gives at most.
const NEXT_BYTES_MAX: usize = 64 * 1024;

impl Stream {
    pub(crate) fn new(host: Reporter, handle: u64) -> Self {
        Self { host, handle, rest: None }
    }

    /// Waits for the next frame, as it is.
    async fn next_frame(&mut self) -> Result<Option<RVec<u8>>> {
        let future = self.host.context().next(self.handle);
        match future.await {
            RResult::ROk(frame) => Ok(frame.into_option()),
            RResult::RErr(error) => Err(read_error(&error)),
        }
    }

    /// Waits for the next frame of a stream of frames: its JSON, and the bytes behind that.
    pub(crate) async fn next_event<T: DeserializeOwned>(&mut self) -> Result<Option<(T, Vec<u8>)>> {
        let Some(frame) = self.next_frame().await? else { return Ok(None) };
        let parsed = Frame::parse(&frame).map_err(host_frame)?;
        Ok(Some((parsed.json().map_err(host_frame)?, parsed.bytes.to_vec())))
    }

    /// Waits for what comes next, at most 64 KiB; nothing at the end. Dropping the wait loses
    /// nothing.
    ///
    /// # Errors
    /// What the host answers when the stream broke; `cancelled` when the call ended.
    pub async fn next(&mut self) -> Result<Option<Vec<u8>>> {
        let Some(mut piece) = self.next_piece().await? else { return Ok(None) };
        let bytes = piece[..piece.len().min(NEXT_BYTES_MAX)].to_vec();
        piece.from += bytes.len();
        if !piece.is_empty() {
            self.rest = Some(piece);
        }
        Ok(Some(bytes))
    }

    /// Waits for what comes next, as large as it comes (1 MiB at most of a file) and uncopied;
    /// nothing at the end. Dropping the wait loses nothing.
    ///
    /// # Errors
    /// As [`Stream::next`].
    pub async fn next_piece(&mut self) -> Result<Option<Piece>> {
        if let Some(rest) = self.rest.take() {
            return Ok(Some(rest));
        }
        let Some(frame) = self.next_frame().await? else { return Ok(None) };
        let bytes = Frame::parse(&frame).map_err(host_frame)?.bytes.len();
        let from = frame.len() - bytes;
        Ok(Some(Piece { frame, from }))
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.host.context().close(self.handle);
    }
}
