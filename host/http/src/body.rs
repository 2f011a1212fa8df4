//! A body in a file that is read while it is sent, so that it is never completely in memory.

use std::fs::File;
use std::future::Future as _;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::task::JoinHandle;

/// Bytes per read.
const PIECE_BYTES: u64 = 256 * 1024;

/// The bytes of a file from its beginning. A clone reads the same file.
#[derive(Debug, Clone)]
pub struct FileBody {
    file: Arc<File>,
    bytes: u64,
}

impl FileBody {
    /// Creates a body from the first bytes of a file, which must have that many.
    pub fn new(file: File, bytes: u64) -> Self {
        Self { file: Arc::new(file), bytes }
    }

    /// Returns its length in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the body to send.
    pub(crate) fn to_reqwest_body(&self) -> reqwest::Body {
        reqwest::Body::wrap(FileBodyStream { body: self.clone(), at: 0, reading: None })
    }
}

/// A body that is being sent.
struct FileBodyStream {
    body: FileBody,
    at: u64,
    reading: Option<JoinHandle<io::Result<Bytes>>>,
}

impl Body for FileBodyStream {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let this = &mut *self;
        let length = (this.body.bytes - this.at).min(PIECE_BYTES);
        if length == 0 {
            return Poll::Ready(None);
        }
        let (file, at) = (Arc::clone(&this.body.file), this.at);
        let reading = this.reading.get_or_insert_with(|| {
            tokio::task::spawn_blocking(move || {
                // At most one piece, which fits into a `usize`.
                let mut piece = vec![0; length as usize];
                file.read_exact_at(&mut piece, at)?;
                Ok(piece.into())
            })
        });
        let read = ready!(Pin::new(reading).poll(cx));
        this.reading = None;
        let piece = read.map_err(io::Error::other).and_then(|read| read);
        if piece.is_ok() {
            this.at += length;
        }
        Poll::Ready(Some(piece.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        self.at == self.body.bytes
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.body.bytes - self.at)
    }
}
