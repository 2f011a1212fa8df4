//! Streams of an environment's files: pages, file pieces, and files that are written.
//!
//! An environment's own stream is self-contained. A default stream uses the required methods of
//! [`Files`], and borrows the files for each step.

use std::future::Future;
use std::pin::Pin;

use jaato_plugin_sdk::__private::encode_value;
use jaato_plugin_sdk::Reporter;
use jaato_types::files::FileFacts;
use jaato_types::{Frame, Result};
use serde::Serialize;

use super::files::Files;

/// A sequence of pages.
pub trait PageSource<P: 'static>: Send + 'static {
    /// Returns the next page, with at most 64 KiB of JSON, or `None` at the end.
    ///
    /// # Errors
    /// The error that ends the search.
    fn next(&mut self, host: &Reporter) -> impl Future<Output = Result<Option<P>>> + Send;
}

/// A file that is read in pieces.
pub trait FilePieces: Send + 'static {
    /// Appends the next piece, at most [`PIECE_BYTES_MAX`](jaato_types::execution::PIECE_BYTES_MAX)
    /// bytes, to the buffer and returns the buffer. At the end, appends nothing.
    ///
    /// # Errors
    /// The error that ends the reading.
    fn next(
        &mut self,
        host: &Reporter,
        buffer: Vec<u8>,
    ) -> impl Future<Output = Result<Vec<u8>>> + Send;
}

/// A file that is written in pieces. Dropping it keeps the old file.
pub trait FileWriter: Send + 'static {
    /// Appends bytes.
    ///
    /// # Errors
    /// If the bytes could not be written.
    fn write(&mut self, host: &Reporter, bytes: Vec<u8>)
    -> impl Future<Output = Result<()>> + Send;

    /// Replaces the target file with the written content.
    ///
    /// # Errors
    /// If the target could not be replaced.
    fn finish(self, host: &Reporter) -> impl Future<Output = Result<FileFacts>> + Send;
}

/// The pages of a search or a walk in the files `F`.
pub struct PageStream<F: ?Sized, P: 'static>(Box<dyn NextPage<F, P>>);

/// A file of `F` that is read in pieces.
pub struct PieceStream<F: ?Sized>(Box<dyn NextPiece<F>>);

/// A file of `F` that is written in pieces.
pub struct FileSink<F: ?Sized>(Box<dyn BorrowingFileSink<F>>);

/// One step of a stream.
pub(super) type StreamStep<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'a>>;

/// Produces pages with borrowed files.
pub(super) trait NextPage<F: ?Sized, P>: Send {
    fn next<'a>(&'a mut self, files: &'a F, host: &'a Reporter) -> StreamStep<'a, Option<P>>;
}

/// Produces pieces with borrowed files.
pub(super) trait NextPiece<F: ?Sized>: Send {
    fn next<'a>(
        &'a mut self,
        files: &'a F,
        host: &'a Reporter,
        buffer: Vec<u8>,
    ) -> StreamStep<'a, Vec<u8>>;
}

/// Receives pieces with borrowed files.
pub(super) trait BorrowingFileSink<F: ?Sized>: Send {
    fn write<'a>(&'a mut self, host: &'a Reporter, bytes: Vec<u8>) -> StreamStep<'a, ()>;

    fn finish<'a>(self: Box<Self>, files: &'a F, host: &'a Reporter) -> StreamStep<'a, FileFacts>;
}

/// Produces frames for the host.
pub(super) trait NextFrame<F: ?Sized>: Send {
    /// Returns the next frame, or `None` at the end.
    fn next<'a>(&'a mut self, files: &'a F, host: &'a Reporter) -> StreamStep<'a, Option<Vec<u8>>>;
}

/// A stream that does not need the files.
struct OwnedStream<T>(T);

impl<F: ?Sized, P: 'static> PageStream<F, P> {
    /// Wraps an environment's own pages.
    pub fn new(pages: impl PageSource<P>) -> Self {
        Self(Box::new(OwnedStream(pages)))
    }

    pub(super) fn from_pages(pages: impl NextPage<F, P> + 'static) -> Self {
        Self(Box::new(pages))
    }
}

impl<F: ?Sized> PieceStream<F> {
    /// Wraps an environment's own pieces.
    pub fn new(pieces: impl FilePieces) -> Self {
        Self(Box::new(OwnedStream(pieces)))
    }

    pub(super) fn from_pieces(pieces: impl NextPiece<F> + 'static) -> Self {
        Self(Box::new(pieces))
    }
}

impl<F: ?Sized> FileSink<F> {
    /// Wraps an environment's own writer.
    pub fn new(writer: impl FileWriter) -> Self {
        Self(Box::new(OwnedStream(writer)))
    }

    pub(super) fn from_sink(sink: impl BorrowingFileSink<F> + 'static) -> Self {
        Self(Box::new(sink))
    }

    pub(super) async fn write(&mut self, host: &Reporter, bytes: Vec<u8>) -> Result<()> {
        self.0.write(host, bytes).await
    }

    pub(super) async fn finish(self, files: &F, host: &Reporter) -> Result<FileFacts>
    where
        F: Files,
    {
        self.0.finish(files, host).await
    }
}

impl<F: ?Sized, P: 'static, T: PageSource<P>> NextPage<F, P> for OwnedStream<T> {
    fn next<'a>(&'a mut self, _files: &'a F, host: &'a Reporter) -> StreamStep<'a, Option<P>> {
        Box::pin(self.0.next(host))
    }
}

impl<F: ?Sized, T: FilePieces> NextPiece<F> for OwnedStream<T> {
    fn next<'a>(
        &'a mut self,
        _: &'a F,
        host: &'a Reporter,
        buffer: Vec<u8>,
    ) -> StreamStep<'a, Vec<u8>> {
        Box::pin(self.0.next(host, buffer))
    }
}

impl<F: ?Sized, T: FileWriter> BorrowingFileSink<F> for OwnedStream<T> {
    fn write<'a>(&'a mut self, host: &'a Reporter, bytes: Vec<u8>) -> StreamStep<'a, ()> {
        Box::pin(self.0.write(host, bytes))
    }

    fn finish<'a>(self: Box<Self>, _files: &'a F, host: &'a Reporter) -> StreamStep<'a, FileFacts> {
        Box::pin(self.0.finish(host))
    }
}

impl<F: Files + ?Sized, P: Serialize + Send + 'static> NextFrame<F> for PageStream<F, P> {
    fn next<'a>(&'a mut self, files: &'a F, host: &'a Reporter) -> StreamStep<'a, Option<Vec<u8>>> {
        Box::pin(async move {
            let page = self.0.next(files, host).await?;
            page.map(|page| encode_value(&page)).transpose()
        })
    }
}

impl<F: Files + ?Sized> NextFrame<F> for PieceStream<F> {
    fn next<'a>(&'a mut self, files: &'a F, host: &'a Reporter) -> StreamStep<'a, Option<Vec<u8>>> {
        Box::pin(async move {
            // Start with the frame's head, so that the bytes do not have to be moved later.
            let head = Frame::empty();
            let length = head.len();
            let piece = self.0.next(files, host, head).await?;
            Ok((piece.len() > length).then_some(piece))
        })
    }
}
