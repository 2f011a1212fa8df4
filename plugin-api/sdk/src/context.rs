//! The host's side of a call or an instance: [`Cx`], [`Home`] and [`Reporter`].

pub(crate) mod detached;
pub(crate) mod stream;

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use jaato_plugin_api::abi::ContextBox;
use jaato_plugin_api::abi::abi_stable::std_types::{RResult, RVec};
use jaato_plugin_api::abi::async_ffi::FutureExt;
use jaato_types::file_change::FileChange;
use jaato_types::service::{
    self, AssetAnswer, AssetRequest, AttachAnswer, AttachRequest, BlobGet, BlobGetAnswer, BlobPut,
    BlobPutAnswer, FolderAnswer, SessionFacts, StreamAnswer,
};
use jaato_types::work_plan::WorkPlan;
use jaato_types::{DataPart, Delta, Error, ErrorKind, FRAME_BYTES_MAX, Frame, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;

use self::stream::{ServiceStream, StreamPiece};
use crate::blocking;
use crate::fence::FencedFuture;

/// The severity of a line in the host's log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum LogLevel {
    /// Something failed.
    Error = 1,
    /// Something is unexpected.
    Warn = 2,
    /// Something happened.
    Info = 3,
    /// Details for the plugin's author.
    Debug = 4,
}

/// The context of a call: the plugin's state and the host's services, for the duration of the call.
///
/// `S` is the plugin's state. All methods can be used from any thread. None of them blocks, except
/// for the work given to [`Cx::blocking`].
pub struct Cx<S = ()> {
    host: Reporter,
    state: Arc<S>,
}

/// The context of an instance outside of calls, given to [`State::create`](crate::State::create).
///
/// It ends when the instance is closed. It cannot show output to the user, because no call is
/// waiting.
#[derive(Clone)]
pub struct Home {
    host: Reporter,
}

/// A clonable part of a context for blocking work and background tasks. It can emit output, log,
/// use services and check for a cancel.
///
/// It may outlive its call or instance, but then the host refuses all requests on it.
#[derive(Clone)]
pub struct Reporter {
    context: Arc<ContextBox>,
}

/// The session's blobs (images, PDFs and other binary files), kept by the host. Made by
/// [`Reporter::blobs`].
pub struct Blobs {
    host: Reporter,
}

/// A reader that returns a blob piece by piece. Dropping it stops the reading.
pub struct BlobReader {
    head: BlobGetAnswer,
    stream: ServiceStream,
}

/// The number of blob bytes in one request: half of the maximum frame size.
const BLOB_PIECE_BYTES: usize = FRAME_BYTES_MAX / 2;

impl<S> Cx<S> {
    pub(crate) fn new(context: ContextBox, state: Arc<S>) -> Self {
        Self { host: Reporter::new(context), state }
    }

    /// Returns the state that all tools of the plugin share.
    pub fn state(&self) -> &S {
        &self.state
    }

    /// Returns the state as a handle that blocking work can own.
    pub fn shared_state(&self) -> Arc<S> {
        Arc::clone(&self.state)
    }

    /// Returns a clonable part of this context.
    pub fn reporter(&self) -> Reporter {
        self.host.clone()
    }

    /// Runs blocking work on the host's pool and waits for it.
    ///
    /// If the caller drops the future (on a cancel), the work does not stop. It must check
    /// [`Reporter::is_cancelled`] regularly.
    ///
    /// # Errors
    /// `cancelled` if the call ended first; `plugin_panicked` if the work panicked.
    pub async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Reporter) -> T + Send + 'static,
    ) -> Result<T> {
        blocking::run_blocking(&self.host, work).await
    }
}

impl<S> std::ops::Deref for Cx<S> {
    type Target = Reporter;

    fn deref(&self) -> &Reporter {
        &self.host
    }
}

impl Home {
    pub(crate) fn new(context: ContextBox) -> Self {
        Self { host: Reporter::new(context) }
    }

    /// Runs background work on the plugin executor until it is done or the instance is closed. It
    /// must not block. Returns false if the instance is already closed.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> bool {
        let fenced = FencedFuture::new(task);
        // A panic is already in the log, and no caller waits for a background task.
        self.host.context.spawn(async move { drop(fenced.await) }.into_ffi())
    }

    /// Runs blocking work on the host's pool and waits for it, as [`Cx::blocking`] does.
    ///
    /// # Errors
    /// As [`Cx::blocking`].
    pub async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Reporter) -> T + Send + 'static,
    ) -> Result<T> {
        blocking::run_blocking(&self.host, work).await
    }
}

impl std::ops::Deref for Home {
    type Target = Reporter;

    fn deref(&self) -> &Reporter {
        &self.host
    }
}

impl Reporter {
    pub(crate) fn new(context: ContextBox) -> Self {
        Self { context: Arc::new(context) }
    }

    pub(crate) fn context(&self) -> &ContextBox {
        &self.context
    }

    /// Runs blocking work on the host's pool and waits for it, as [`Cx::blocking`] does.
    ///
    /// # Errors
    /// As [`Cx::blocking`].
    pub async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Reporter) -> T + Send + 'static,
    ) -> Result<T> {
        blocking::run_blocking(self, work).await
    }

    /// Returns a number that is unique to this call or instance within the host process.
    pub fn id(&self) -> u64 {
        self.context.id()
    }

    /// Returns true if the call was cancelled or has ended. It takes nanoseconds, so check often.
    pub fn is_cancelled(&self) -> bool {
        self.context.is_cancelled()
    }

    /// Waits until the call is cancelled.
    pub async fn cancelled(&self) {
        self.context.cancelled().await;
    }

    /// Writes one line to the host's log. Never log secrets.
    pub fn log(&self, level: LogLevel, text: impl fmt::Display) {
        self.context.log(level as u8, text.to_string().as_str().into());
    }

    /// Shows the user output while the tool runs. If it returns false, the host no longer accepts
    /// output, so stop.
    ///
    /// A line is final when it ends. Until then it changes in the terminal, and a `\r` overwrites
    /// it, as progress bars do.
    pub fn output(&self, text: impl Into<String>) -> bool {
        self.emit(&Delta::output(text.into()))
    }

    /// Shows the user a one-line status until the call shows other output.
    pub fn notice(&self, text: impl Into<String>) -> bool {
        self.emit(&Delta::notice(text.into()))
    }

    /// Reports to clients how the call has changed a file. If it returns false, stop.
    pub fn file_changed(&self, change: FileChange) -> bool {
        self.emit(&Delta::FileChanged(change))
    }

    /// Reports the current work plan to clients. If it returns false, stop.
    pub fn plan_changed(&self, plan: WorkPlan) -> bool {
        self.emit(&Delta::PlanChanged(plan))
    }

    /// Emits a delta of the call. If it returns false, the host no longer accepts deltas, so stop.
    pub fn emit(&self, delta: &Delta) -> bool {
        Frame::write(delta).is_ok_and(|frame| self.context.emit(frame.into()))
    }

    /// Waits for this duration.
    ///
    /// # Errors
    /// `cancelled` if the call ended first.
    pub async fn sleep(&self, time: Duration) -> Result<()> {
        let milliseconds = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        if self.context.sleep_ms(milliseconds).await { Ok(()) } else { Err(Error::cancelled()) }
    }

    /// Calls a service of the host.
    ///
    /// # Errors
    /// The host's error; `unknown_operation` if this host does not have the service.
    pub async fn service<A: DeserializeOwned>(
        &self,
        operation: &str,
        request: &(impl Serialize + ?Sized),
    ) -> Result<A> {
        self.service_with_bytes(operation, request, &[]).await
    }

    /// Calls a service of the host with raw bytes after the request's JSON.
    ///
    /// # Errors
    /// As [`Reporter::service`]; `limit_reached` if the request is too large for a frame.
    pub async fn service_with_bytes<A: DeserializeOwned>(
        &self,
        operation: &str,
        request: &(impl Serialize + ?Sized),
        bytes: &[u8],
    ) -> Result<A> {
        let frame = Frame::write_with_bytes(request, bytes).map_err(request_frame_error)?;
        let future = self.context.service(operation.into(), frame.into());
        let answer = future.await;
        Frame::read(&answer_frame(answer)?).map_err(host_frame_error)
    }

    /// Calls a service of the host that answers with raw bytes after its JSON.
    /// [`Reporter::service`] drops these bytes.
    ///
    /// # Errors
    /// As [`Reporter::service_with_bytes`].
    pub async fn service_for_bytes<A: DeserializeOwned>(
        &self,
        operation: &str,
        request: &(impl Serialize + ?Sized),
        bytes: &[u8],
    ) -> Result<(A, Vec<u8>)> {
        let frame = Frame::write_with_bytes(request, bytes).map_err(request_frame_error)?;
        let answer = answer_frame(self.context.service(operation.into(), frame.into()).await)?;
        let parsed = Frame::parse(&answer).map_err(host_frame_error)?;
        Ok((parsed.json().map_err(host_frame_error)?, parsed.bytes.to_vec()))
    }

    /// Opens a stream of a streaming service.
    ///
    /// # Errors
    /// As [`Reporter::service`].
    pub async fn open(
        &self,
        operation: &str,
        request: &(impl Serialize + ?Sized),
    ) -> Result<ServiceStream> {
        let answer: StreamAnswer = self.service(operation, request).await?;
        Ok(ServiceStream::new(self.clone(), answer.handle))
    }

    jaato_types::session_operations!(methods []);
    jaato_types::asset_operations!(methods []);

    /// Returns the plugin's configuration, `[plugins.NAME]`, or the defaults if there is none.
    ///
    /// # Errors
    /// As [`Reporter::service`].
    pub async fn config<C: DeserializeOwned>(&self) -> Result<C> {
        self.service(service::CONFIG, &()).await
    }

    /// Returns access to the session's blobs: images, files and other bytes.
    pub fn blobs(&self) -> Blobs {
        Blobs { host: self.clone() }
    }
}

impl Reporter {
    /// Attaches bytes to the result of the tool call, such as an image or a PDF, for the model to
    /// look at. Returns the blob's id. If the call fails, its attachments are lost.
    ///
    /// ```
    /// # use jaato_plugin_sdk::prelude::*;
    /// # async fn look(cx: &Cx, png: Vec<u8>) -> Result<Output> {
    /// cx.attach("image/png", png).await?;
    /// Ok(Output::text("the moon over the sea"))
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Blobs::put`]; `invalid_arguments` if the bytes do not have the media type;
    /// `limit_reached` for more than [`ATTACHMENTS_MAX`](service::ATTACHMENTS_MAX); `unavailable`
    /// outside of a tool call.
    pub async fn attach(&self, mime_type: &str, bytes: impl AsRef<[u8]> + Send) -> Result<String> {
        let blob = self.blobs().put(mime_type, bytes).await?;
        self.attach_data(&DataPart::blob(mime_type, blob.as_str())).await?;
        Ok(blob)
    }

    /// Attaches an existing blob of the session to the result of the tool call, with its file name
    /// if it has one.
    ///
    /// # Errors
    /// As [`Reporter::attach`]; `not_found` if the session does not have the blob.
    pub async fn attach_data(&self, data: &DataPart) -> Result<()> {
        let Some(blob) = data.blob_id() else {
            let text = "only a blob can be attached: put it first";
            return Err(Error::new(ErrorKind::InvalidArguments, text));
        };
        let (mime_type, blob) = (data.mime_type.clone(), blob.to_owned());
        let request =
            AttachRequest { mime_type, blob, name: data.name.clone(), ..AttachRequest::default() };
        self.service::<AttachAnswer>(service::ATTACH, &request).await?;
        Ok(())
    }
}

impl Blobs {
    /// Stores bytes and returns their id, which is their SHA-256 in hex. The same bytes have the
    /// same id. Messages and results refer to blobs by id. An example of a media type is
    /// `image/png`.
    ///
    /// # Errors
    /// As [`Reporter::service`]; `limit_reached` for more than
    /// [`BLOB_BYTES_MAX`](service::BLOB_BYTES_MAX), or if the session's blobs use up their space;
    /// `unavailable` without a session.
    pub async fn put(&self, mime_type: &str, bytes: impl AsRef<[u8]> + Send) -> Result<String> {
        let mut rest = bytes.as_ref();
        let mut request = BlobPut { mime_type: mime_type.to_owned(), ..BlobPut::default() };
        loop {
            let (piece, after) = rest.split_at(rest.len().min(BLOB_PIECE_BYTES));
            request.more = !after.is_empty();
            let answer: BlobPutAnswer =
                self.host.service_with_bytes(service::BLOB_PUT, &request, piece).await?;
            match (answer.blob, answer.put) {
                (Some(blob), _) if !request.more => return Ok(blob),
                (_, Some(put)) if request.more => request.put = Some(put),
                _ => return Err(Error::new(ErrorKind::HostBug, "the host lost a blob's piece")),
            }
            rest = after;
        }
    }

    /// Opens a blob of the session to read it piece by piece.
    ///
    /// # Errors
    /// As [`Reporter::service`]; `not_found` if the session has no blob with this id.
    pub async fn open(&self, id: &str) -> Result<BlobReader> {
        let request = BlobGet { blob: id.to_owned(), ..BlobGet::default() };
        let head: BlobGetAnswer = self.host.service(service::BLOB_GET, &request).await?;
        let stream = ServiceStream::new(self.host.clone(), head.handle);
        Ok(BlobReader { head, stream })
    }

    /// Reads a blob of the session, at most `bytes_max` bytes.
    ///
    /// # Errors
    /// As [`Blobs::open`]; `limit_reached` if the blob is larger. Then nothing is read.
    pub async fn get(&self, id: &str, bytes_max: usize) -> Result<Vec<u8>> {
        let mut reader = self.open(id).await?;
        let too_large = |bytes: u64| {
            let text = format!("the blob has {bytes} bytes, more than {bytes_max}");
            Error::new(ErrorKind::LimitReached, text)
        };
        if reader.len() > bytes_max as u64 {
            return Err(too_large(reader.len()));
        }
        let mut bytes = Vec::new();
        while let Some(piece) = reader.next_piece().await? {
            if bytes.len() + piece.len() > bytes_max {
                return Err(too_large((bytes.len() + piece.len()) as u64));
            }
            bytes.extend_from_slice(&piece);
        }
        Ok(bytes)
    }
}

impl BlobReader {
    /// Returns the media type with which the blob was stored.
    pub fn mime_type(&self) -> &str {
        &self.head.mime_type
    }

    /// Returns the length in bytes.
    pub fn len(&self) -> u64 {
        self.head.bytes
    }

    /// Returns true if the blob is empty.
    pub fn is_empty(&self) -> bool {
        self.head.bytes == 0
    }

    /// Waits for the next piece, at most 1 MiB, without copying it. Returns `None` at the end.
    /// Dropping the wait loses nothing.
    ///
    /// # Errors
    /// The host's error if the blob can no longer be read; `cancelled` if the call ended.
    pub async fn next_piece(&mut self) -> Result<Option<StreamPiece>> {
        self.stream.next_piece().await
    }
}

fn answer_frame(answer: RResult<RVec<u8>, RVec<u8>>) -> Result<RVec<u8>> {
    match answer {
        RResult::ROk(frame) => Ok(frame),
        RResult::RErr(error) => Err(read_error(&error)),
    }
}

pub(crate) fn read_error(frame: &[u8]) -> Error {
    Frame::read(frame).unwrap_or_else(host_frame_error)
}

fn request_frame_error(error: jaato_types::FrameError) -> Error {
    let kind = match error {
        jaato_types::FrameError::TooLarge { .. } => ErrorKind::LimitReached,
        jaato_types::FrameError::Short { .. } | jaato_types::FrameError::Json(_) => {
            ErrorKind::InvalidArguments
        }
    };
    Error::new(kind, error.to_string())
}

pub(crate) fn host_frame_error(error: jaato_types::FrameError) -> Error {
    Error::new(ErrorKind::HostBug, error.to_string())
}
