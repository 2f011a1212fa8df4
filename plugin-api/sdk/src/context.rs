//! What a call and an instance may use of the host: [`Cx`], [`Home`] and [`Reporter`].

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
    self, AssetAnswer, AssetRequest, Attach, AttachAnswer, BlobGet, BlobGetAnswer, BlobPut,
    BlobPutAnswer, FolderAnswer, SessionFacts, StreamAnswer,
};
use jaato_types::work_plan::WorkPlan;
use jaato_types::{Data, Delta, Error, ErrorKind, FRAME_BYTES_MAX, Frame, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;

use self::stream::{Piece, Stream};
use crate::blocking;
use crate::fence::Fenced;

/// How urgent a line in the host's log is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Level {
    /// Something failed.
    Error = 1,
    /// Something is odd.
    Warn = 2,
    /// Something happened.
    Info = 3,
    /// For the author.
    Debug = 4,
}

/// What a call may use: the plugin's state and the host's services. Lent for the call's time.
///
/// `S` is the plugin's state. Everything here may be used from any thread; nothing blocks but the
/// work given to [`Cx::blocking`].
pub struct Cx<S = ()> {
    host: Reporter,
    state: Arc<S>,
}

/// What an instance may use outside of calls, given to [`State::create`](crate::State::create).
///
/// It ends when the instance is closed. It shows nothing to a person: there is no call that waits.
#[derive(Clone)]
pub struct Home {
    host: Reporter,
}

/// A clonable part of a context, for blocking work and background tasks: reports, logs, sees the
/// cancel.
///
/// It may be kept; after the end of its call or instance everything on it is refused.
#[derive(Clone)]
pub struct Reporter {
    context: Arc<ContextBox>,
}

/// What is no text (images, files, PDF), kept by the host for the session; made by
/// [`Reporter::blobs`].
pub struct Blobs {
    host: Reporter,
}

/// A blob that is read piece by piece. Dropping it ends that.
pub struct BlobReader {
    head: BlobGetAnswer,
    stream: Stream,
}

/// Bytes of a blob that cross at once: half of what a frame may hold.
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
    /// Dropping the wait (a cancel) does not stop the work: it must look at
    /// [`Reporter::is_cancelled`] now and then.
    ///
    /// # Errors
    /// `cancelled` when the call ended before, `plugin_panicked` when the work panicked.
    pub async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Reporter) -> T + Send + 'static,
    ) -> Result<T> {
        blocking::run(&self.host, work).await
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

    /// Runs background work on the plugin executor until it is done or the instance is closed.
    /// It must not block. False when the instance is closed already.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> bool {
        let fenced = Fenced::new(task);
        // A panic is in the log by then; nobody waits for a background task.
        self.host.context.spawn(async move { drop(fenced.await) }.into_ffi())
    }

    /// Runs blocking work on the host's pool and waits for it; as [`Cx::blocking`].
    ///
    /// # Errors
    /// As [`Cx::blocking`].
    pub async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Reporter) -> T + Send + 'static,
    ) -> Result<T> {
        blocking::run(&self.host, work).await
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

    /// Runs blocking work on the host's pool and waits for it; as [`Cx::blocking`].
    ///
    /// # Errors
    /// As [`Cx::blocking`].
    pub async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Reporter) -> T + Send + 'static,
    ) -> Result<T> {
        blocking::run(self, work).await
    }

    /// Returns a number that is unique to this call or instance within the host process.
    pub fn id(&self) -> u64 {
        self.context.id()
    }

    /// Tells whether the call was cancelled or has ended. Costs nanoseconds: look often.
    pub fn is_cancelled(&self) -> bool {
        self.context.is_cancelled()
    }

    /// Waits for the cancel.
    pub async fn cancelled(&self) {
        self.context.cancelled().await;
    }

    /// Writes one line to the host's log. Never log secrets.
    pub fn log(&self, level: Level, text: impl fmt::Display) {
        self.context.log(level as u8, text.to_string().as_str().into());
    }

    /// Shows a person what the tool does, while it does it. False when nobody takes it: stop then.
    ///
    /// A line is shown when it has ended; until then it moves at the terminal, and a `\r` begins it
    /// anew, as progress bars do.
    pub fn output(&self, text: impl Into<String>) -> bool {
        self.emit(&Delta::output(text.into()))
    }

    /// Shows a person one line of what is going on while nothing else is to be seen.
    pub fn notice(&self, text: impl Into<String>) -> bool {
        self.emit(&Delta::notice(text.into()))
    }

    /// Tells who watches how the call has changed a file. False when nobody takes it: stop then.
    pub fn file_changed(&self, change: FileChange) -> bool {
        self.emit(&Delta::FileChanged(change))
    }

    /// Tells who watches what the model works through, as it is now. False when nobody takes it:
    /// stop then.
    pub fn plan_changed(&self, plan: WorkPlan) -> bool {
        self.emit(&Delta::PlanChanged(plan))
    }

    /// Emits a piece of what the call produces. False when nobody takes it: stop then.
    pub fn emit(&self, delta: &Delta) -> bool {
        Frame::write(delta).is_ok_and(|frame| self.context.emit(frame.into()))
    }

    /// Sleeps.
    ///
    /// # Errors
    /// `cancelled` when the call ended before.
    pub async fn sleep(&self, time: Duration) -> Result<()> {
        let milliseconds = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        if self.context.sleep_ms(milliseconds).await { Ok(()) } else { Err(Error::cancelled()) }
    }

    /// Asks a service of the host.
    ///
    /// # Errors
    /// What the host answers; `unknown_operation` when this host does not have the service.
    pub async fn service<A: DeserializeOwned>(
        &self,
        operation: &str,
        request: &(impl Serialize + ?Sized),
    ) -> Result<A> {
        self.service_with_bytes(operation, request, &[]).await
    }

    /// Asks a service of the host, with raw bytes beside the request.
    ///
    /// # Errors
    /// As [`Reporter::service`]; `limit_reached` when that is more than a frame may hold.
    pub async fn service_with_bytes<A: DeserializeOwned>(
        &self,
        operation: &str,
        request: &(impl Serialize + ?Sized),
        bytes: &[u8],
    ) -> Result<A> {
        let frame = Frame::write_with_bytes(request, bytes).map_err(own_frame)?;
        let future = self.context.service(operation.into(), frame.into());
        let answer = future.await;
        Frame::read(&open(answer)?).map_err(host_frame)
    }

    /// Asks a service of the host that answers with raw bytes beside its JSON, which
    /// [`Reporter::service`] drops.
    ///
    /// # Errors
    /// As [`Reporter::service_with_bytes`].
    pub async fn service_for_bytes<A: DeserializeOwned>(
        &self,
        operation: &str,
        request: &(impl Serialize + ?Sized),
        bytes: &[u8],
    ) -> Result<(A, Vec<u8>)> {
        let frame = Frame::write_with_bytes(request, bytes).map_err(own_frame)?;
        let answer = open(self.context.service(operation.into(), frame.into()).await)?;
        let parsed = Frame::parse(&answer).map_err(host_frame)?;
        Ok((parsed.json().map_err(host_frame)?, parsed.bytes.to_vec()))
    }

    /// Opens a stream of a streaming service.
    ///
    /// # Errors
    /// As [`Reporter::service`].
    pub async fn open(
        &self,
        operation: &str,
        request: &(impl Serialize + ?Sized),
    ) -> Result<Stream> {
        let answer: StreamAnswer = self.service(operation, request).await?;
        Ok(Stream::new(self.clone(), answer.handle))
    }

    jaato_types::session_operations!(methods []);
    jaato_types::asset_operations!(methods []);

    /// Asks for the plugin's configuration, `[plugins.NAME]`; the defaults where there is none.
    ///
    /// # Errors
    /// As [`Reporter::service`].
    pub async fn config<C: DeserializeOwned>(&self) -> Result<C> {
        self.service(service::CONFIG, &()).await
    }

    /// Reaches what the host keeps of images, files and other bytes for the session.
    pub fn blobs(&self) -> Blobs {
        Blobs { host: self.clone() }
    }
}

impl Reporter {
    /// Puts bytes beside the result of the tool call, where a model can look at them: an image, a
    /// PDF. Returns the blob's id. Attachments of a call that fails go with it.
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
    /// As [`Blobs::put`]; `invalid_arguments` when the bytes are not what is said of them;
    /// `limit_reached` for more than [`ATTACHMENTS_MAX`](service::ATTACHMENTS_MAX); `unavailable`
    /// outside of a tool call.
    pub async fn attach(&self, mime_type: &str, bytes: impl AsRef<[u8]> + Send) -> Result<String> {
        let blob = self.blobs().put(mime_type, bytes).await?;
        self.attach_data(&Data::blob(mime_type, blob.as_str())).await?;
        Ok(blob)
    }

    /// Puts a blob that the session has beside the result of the tool call, under the name of a
    /// file if it has one.
    ///
    /// # Errors
    /// As [`Reporter::attach`]; `not_found` when the session has no such blob.
    pub async fn attach_data(&self, data: &Data) -> Result<()> {
        let Some(blob) = data.blob_id() else {
            let text = "what is attached is a blob: put it first";
            return Err(Error::new(ErrorKind::InvalidArguments, text));
        };
        let (mime_type, blob) = (data.mime_type.clone(), blob.to_owned());
        let request = Attach { mime_type, blob, name: data.name.clone(), ..Attach::default() };
        self.service::<AttachAnswer>(service::ATTACH, &request).await?;
        Ok(())
    }
}

impl Blobs {
    /// Keeps bytes and returns their id, the SHA-256 of them in hex: the same bytes have the same
    /// id. Messages and results name them by it. The media type is one such as `image/png`.
    ///
    /// # Errors
    /// As [`Reporter::service`]; `limit_reached` for more than
    /// [`BLOB_BYTES_MAX`](service::BLOB_BYTES_MAX), or where the session's room is used up;
    /// `unavailable` where there is no session.
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

    /// Opens a blob of the session, to read it piece by piece.
    ///
    /// # Errors
    /// As [`Reporter::service`]; `not_found` when the session has none of that id.
    pub async fn open(&self, id: &str) -> Result<BlobReader> {
        let request = BlobGet { blob: id.to_owned(), ..BlobGet::default() };
        let head: BlobGetAnswer = self.host.service(service::BLOB_GET, &request).await?;
        let stream = Stream::new(self.host.clone(), head.handle);
        Ok(BlobReader { head, stream })
    }

    /// Reads a blob of the session, at most so many bytes.
    ///
    /// # Errors
    /// As [`Blobs::open`]; `limit_reached` when it has more bytes, and then none is read.
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
    /// Returns the media type, as who put it said.
    pub fn mime_type(&self) -> &str {
        &self.head.mime_type
    }

    /// Returns the length in bytes.
    pub fn len(&self) -> u64 {
        self.head.bytes
    }

    /// Tells whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.head.bytes == 0
    }

    /// Waits for what comes next, 1 MiB at most and uncopied; nothing at the end. Dropping the wait
    /// loses nothing.
    ///
    /// # Errors
    /// What the host answers when the blob cannot be read any more; `cancelled` when the call
    /// ended.
    pub async fn next_piece(&mut self) -> Result<Option<Piece>> {
        self.stream.next_piece().await
    }
}

fn open(answer: RResult<RVec<u8>, RVec<u8>>) -> Result<RVec<u8>> {
    match answer {
        RResult::ROk(frame) => Ok(frame),
        RResult::RErr(error) => Err(read_error(&error)),
    }
}

pub(crate) fn read_error(frame: &[u8]) -> Error {
    Frame::read(frame).unwrap_or_else(host_frame)
}

fn own_frame(error: jaato_types::FrameError) -> Error {
    let kind = match error {
        jaato_types::FrameError::TooLarge { .. } => ErrorKind::LimitReached,
        jaato_types::FrameError::Short { .. } | jaato_types::FrameError::Json(_) => {
            ErrorKind::InvalidArguments
        }
    };
    Error::new(kind, error.to_string())
}

pub(crate) fn host_frame(error: jaato_types::FrameError) -> Error {
    Error::new(ErrorKind::HostBug, error.to_string())
}
