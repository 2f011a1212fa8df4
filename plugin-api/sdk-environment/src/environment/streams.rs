//! Streams of an environment's files: pages, pieces and files that are written.
//!
//! An environment's own stream works by itself. One that comes by default works over the required
//! methods of [`Files`], which are lent to it for each step.

use std::future::Future;
use std::pin::Pin;

use jaato_plugin_sdk::__private::value_frame;
use jaato_plugin_sdk::Reporter;
use jaato_types::files::FileFacts;
use jaato_types::{Frame, Result};
use serde::Serialize;

use super::files::Files;

/// Pages of a kind, one after the other.
pub trait Pages<P: 'static>: Send + 'static {
    /// Gives the next page, as much as fits into 64 KiB of JSON; none at the end.
    ///
    /// # Errors
    /// What ends the search.
    fn next(&mut self, host: &Reporter) -> impl Future<Output = Result<Option<P>>> + Send;
}

/// A file that is read piece by piece.
pub trait FilePieces: Send + 'static {
    /// Appends the next piece to the buffer, at most
    /// [`PIECE_BYTES_MAX`](jaato_types::execution::PIECE_BYTES_MAX) bytes, and gives that back;
    /// nothing is appended at the end.
    ///
    /// # Errors
    /// What ends the reading.
    fn next(
        &mut self,
        host: &Reporter,
        buffer: Vec<u8>,
    ) -> impl Future<Output = Result<Vec<u8>>> + Send;
}

/// A file that is written piece by piece. Dropping it leaves what was there.
pub trait FileWriter: Send + 'static {
    /// Writes behind what was written.
    ///
    /// # Errors
    /// What keeps it from being written.
    fn write(&mut self, host: &Reporter, bytes: Vec<u8>)
    -> impl Future<Output = Result<()>> + Send;

    /// Puts what was written in its place.
    ///
    /// # Errors
    /// What keeps it from its place.
    fn finish(self, host: &Reporter) -> impl Future<Output = Result<FileFacts>> + Send;
}

/// The pages of a search or a walk in the files `F`.
pub struct PageStream<F: ?Sized, P: 'static>(Box<dyn NextPage<F, P>>);

/// A file of `F` that is read piece by piece.
pub struct PieceStream<F: ?Sized>(Box<dyn NextPiece<F>>);

/// A file of `F` that is written piece by piece.
pub struct FileSink<F: ?Sized>(Box<dyn Sink<F>>);

/// One step of a stream.
pub(super) type Step<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'a>>;

/// Gives pages, over the files that are lent to it.
pub(super) trait NextPage<F: ?Sized, P>: Send {
    fn next<'a>(&'a mut self, files: &'a F, host: &'a Reporter) -> Step<'a, Option<P>>;
}

/// Gives pieces, over the files that are lent to it.
pub(super) trait NextPiece<F: ?Sized>: Send {
    fn next<'a>(
        &'a mut self,
        files: &'a F,
        host: &'a Reporter,
        buffer: Vec<u8>,
    ) -> Step<'a, Vec<u8>>;
}

/// Takes pieces, over the files that are lent to it.
pub(super) trait Sink<F: ?Sized>: Send {
    fn write<'a>(&'a mut self, host: &'a Reporter, bytes: Vec<u8>) -> Step<'a, ()>;

    fn finish<'a>(self: Box<Self>, files: &'a F, host: &'a Reporter) -> Step<'a, FileFacts>;
}

/// Gives frames: what a stream is to the host.
pub(super) trait NextFrame<F: ?Sized>: Send {
    /// Gives the next frame; none at the end.
    fn next<'a>(&'a mut self, files: &'a F, host: &'a Reporter) -> Step<'a, Option<Vec<u8>>>;
}

/// A stream that does not need the files.
struct Own<T>(T);

impl<F: ?Sized, P: 'static> PageStream<F, P> {
    /// Takes an environment's own pages.
    pub fn new(pages: impl Pages<P>) -> Self {
        Self(Box::new(Own(pages)))
    }

    pub(super) fn over(pages: impl NextPage<F, P> + 'static) -> Self {
        Self(Box::new(pages))
    }
}

impl<F: ?Sized> PieceStream<F> {
    /// Takes an environment's own pieces.
    pub fn new(pieces: impl FilePieces) -> Self {
        Self(Box::new(Own(pieces)))
    }

    pub(super) fn over(pieces: impl NextPiece<F> + 'static) -> Self {
        Self(Box::new(pieces))
    }
}

impl<F: ?Sized> FileSink<F> {
    /// Takes an environment's own writer.
    pub fn new(writer: impl FileWriter) -> Self {
        Self(Box::new(Own(writer)))
    }

    pub(super) fn over(sink: impl Sink<F> + 'static) -> Self {
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

impl<F: ?Sized, P: 'static, T: Pages<P>> NextPage<F, P> for Own<T> {
    fn next<'a>(&'a mut self, _files: &'a F, host: &'a Reporter) -> Step<'a, Option<P>> {
        Box::pin(self.0.next(host))
    }
}

impl<F: ?Sized, T: FilePieces> NextPiece<F> for Own<T> {
    fn next<'a>(&'a mut self, _: &'a F, host: &'a Reporter, buffer: Vec<u8>) -> Step<'a, Vec<u8>> {
        Box::pin(self.0.next(host, buffer))
    }
}

impl<F: ?Sized, T: FileWriter> Sink<F> for Own<T> {
    fn write<'a>(&'a mut self, host: &'a Reporter, bytes: Vec<u8>) -> Step<'a, ()> {
        Box::pin(self.0.write(host, bytes))
    }

    fn finish<'a>(self: Box<Self>, _files: &'a F, host: &'a Reporter) -> Step<'a, FileFacts> {
        Box::pin(self.0.finish(host))
    }
}

impl<F: Files + ?Sized, P: Serialize + Send + 'static> NextFrame<F> for PageStream<F, P> {
    fn next<'a>(&'a mut self, files: &'a F, host: &'a Reporter) -> Step<'a, Option<Vec<u8>>> {
        Box::pin(async move {
            let page = self.0.next(files, host).await?;
            page.map(|page| value_frame(&page)).transpose()
        })
    }
}

impl<F: Files + ?Sized> NextFrame<F> for PieceStream<F> {
    fn next<'a>(&'a mut self, files: &'a F, host: &'a Reporter) -> Step<'a, Option<Vec<u8>>> {
        Box::pin(async move {
            // A frame's head comes first, so that the bytes need not be moved.
            let head = Frame::empty();
            let length = head.len();
            let piece = self.0.next(files, host, head).await?;
            Ok((piece.len() > length).then_some(piece))
        })
    }
}
