//! Services that the host lends to plugins by name. The host implements them, and contexts use
//! them.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;
use jaato_types::{Error, PluginName, Result};

use crate::bytes::FrameBytes;
use crate::runtime::BoxHostFuture;

/// The services of one call or of one instance.
///
/// The engine calls them from plugin threads, inside its fence and with the runtime entered. The
/// returned future is polled there, so it must not block. A panic becomes the error `host_bug`.
pub trait EngineServices: Send + Sync + 'static {
    /// Answers one request, or fails with `unknown_operation` for an unknown name. `frame` is a
    /// checked frame.
    fn call(
        &self,
        caller: ServiceCaller,
        operation: &str,
        frame: Vec<u8>,
    ) -> BoxHostFuture<Result<EngineServiceAnswer>>;
}

/// The caller of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceCaller {
    /// The plugin.
    pub plugin: PluginName,
    /// The context's number, unique within the process.
    pub context: u64,
    /// The kind of the context.
    pub kind: CallerKind,
}

/// The kind of a caller's context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallerKind {
    /// The context of a call.
    Call,
    /// The context of an instance, outside calls.
    Instance,
}

/// The answer of a service.
pub enum EngineServiceAnswer {
    /// A frame.
    Frame(Vec<u8>),
    /// A stream. The plugin gets a handle and reads the stream in pieces.
    Stream(Box<dyn ByteStream>),
    /// A stream, with data that is known before its first byte. The answer is this object, with the
    /// stream's number added as `handle`.
    StreamWith(serde_json::Map<String, serde_json::Value>, Box<dyn ByteStream>),
}

/// Bytes that arrive over time. Every stream of byte buffers is one.
pub trait ByteStream: Send + 'static {
    /// Returns the next piece, of any size, or `None` at the end. An error ends the stream.
    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Vec<u8>>>>;

    /// Returns the next piece without copying it. The host calls this method.
    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<FrameBytes>>> {
        self.poll_piece(cx).map(|piece| piece.map(|piece| piece.map(FrameBytes::from)))
    }

    /// Returns true if each piece is a frame, which is passed on in full.
    fn has_frames(&self) -> bool {
        false
    }
}

/// A stream whose pieces are frames: JSON, optionally with bytes.
pub struct FrameStream<S>(pub S);

impl<S: Stream<Item = Result<Vec<u8>>> + Send + Unpin + 'static> ByteStream for FrameStream<S> {
    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Vec<u8>>>> {
        Pin::new(&mut self.0).poll_next(cx)
    }

    fn has_frames(&self) -> bool {
        true
    }
}

impl<S: Stream<Item = Result<Vec<u8>>> + Send + Unpin + 'static> ByteStream for S {
    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Vec<u8>>>> {
        Pin::new(self).poll_next(cx)
    }
}

/// Services that answer no request.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoServices;

impl EngineServices for NoServices {
    fn call(
        &self,
        _caller: ServiceCaller,
        operation: &str,
        _frame: Vec<u8>,
    ) -> BoxHostFuture<Result<EngineServiceAnswer>> {
        let text = format!("this host has no service `{operation}`");
        let error = Error::new(jaato_types::ErrorKind::UnknownOperation, text);
        Box::pin(std::future::ready(Err(error)))
    }
}
