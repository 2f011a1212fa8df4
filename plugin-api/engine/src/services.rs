//! What the host lends to plugins by name: implemented by the host, reached through contexts.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;
use jaato_types::{Error, PluginName, Result};

use crate::bytes::Bytes;
use crate::runtime::Work;

/// The services of one call or of one instance.
///
/// Called from threads of plugins, inside the engine's fence and with the runtime entered: what it
/// returns is polled there, so it must not block. A panic is answered with `host_bug`.
pub trait Services: Send + Sync + 'static {
    /// Answers one request; `unknown_operation` for a name that it does not know. `frame` is a
    /// checked frame.
    fn call(&self, caller: Caller, operation: &str, frame: Vec<u8>) -> Work<Result<Served>>;
}

/// Who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// The plugin.
    pub plugin: PluginName,
    /// The context's number, unique within the process.
    pub context: u64,
    /// Whose context it is.
    pub kind: CallerKind,
}

/// Whose context asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallerKind {
    /// A call's.
    Call,
    /// An instance's, outside of calls.
    Instance,
}

/// What a service answers.
pub enum Served {
    /// A frame.
    Frame(Vec<u8>),
    /// A stream; the plugin gets a handle and reads it piece by piece.
    Stream(Box<dyn ByteStream>),
    /// A stream, and what is known before its first byte: the answer is this object with the
    /// stream's number added as `handle`.
    StreamWith(serde_json::Map<String, serde_json::Value>, Box<dyn ByteStream>),
}

/// Bytes that arrive over time. Every stream of byte buffers is one.
pub trait ByteStream: Send + 'static {
    /// Gives the next piece, of any size; none at the end. An error ends it.
    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Vec<u8>>>>;

    /// Gives the next piece in the memory in which it came; what the host asks for.
    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes>>> {
        self.poll_piece(cx).map(|piece| piece.map(|piece| piece.map(Bytes::from)))
    }

    /// Tells whether each piece is a frame, which is handed out as it is, rather than bytes.
    fn gives_frames(&self) -> bool {
        false
    }
}

/// A stream each of whose pieces is a frame: JSON and, where there are any, bytes.
pub struct Frames<S>(pub S);

impl<S: Stream<Item = Result<Vec<u8>>> + Send + Unpin + 'static> ByteStream for Frames<S> {
    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Vec<u8>>>> {
        Pin::new(&mut self.0).poll_next(cx)
    }

    fn gives_frames(&self) -> bool {
        true
    }
}

impl<S: Stream<Item = Result<Vec<u8>>> + Send + Unpin + 'static> ByteStream for S {
    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Vec<u8>>>> {
        Pin::new(self).poll_next(cx)
    }
}

/// Services that know nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoServices;

impl Services for NoServices {
    fn call(&self, _caller: Caller, operation: &str, _frame: Vec<u8>) -> Work<Result<Served>> {
        let text = format!("this host has no service `{operation}`");
        let error = Error::new(jaato_types::ErrorKind::UnknownOperation, text);
        Box::pin(std::future::ready(Err(error)))
    }
}
