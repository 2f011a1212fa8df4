//! A host under test: an engine with services that the test chooses.

use std::sync::Arc;

use futures_core::Stream;
use jaato_types::{Error, ErrorKind, Frame, PluginName, Result};
use parking_lot::{Condvar, Mutex};

use super::body::DEADLINE;
use super::{CallBody, CallResults, CallUnderTest, HostUnderTest};
use crate::{
    BoxHostFuture, CallResultSink, CallerKind, EngineObserver, EngineServiceAnswer, EngineServices,
    Executor, FrameBytes, GuestPlugin, HostContext, MisbehaviorReport, ServiceCaller,
};

/// Runs each body in its own context.
pub struct EngineHost<S> {
    executor: Executor,
    guest: Arc<GuestPlugin>,
    services: S,
}

impl<S: Fn() -> Arc<dyn EngineServices>> EngineHost<S> {
    /// Creates a host. Each call gets its services from `services`.
    pub fn new(executor: Executor, services: S) -> Self {
        let guest = executor.add_guest(PluginName::from("bodies"));
        Self { executor, guest, services }
    }
}

impl<S: Fn() -> Arc<dyn EngineServices>> HostUnderTest for EngineHost<S> {
    fn start(&self, body: CallBody) -> Box<dyn CallUnderTest> {
        let (kind, services) = (CallerKind::Call, (self.services)());
        let context = HostContext::new(kind, &self.executor, &self.guest, services);
        let collected = Arc::new(CollectedResults::default());
        context.run_body_into(body, Arc::clone(&collected) as Arc<dyn CallResultSink>);
        Box::new(EngineCall { context, collected })
    }
}

struct EngineCall {
    context: Arc<HostContext>,
    collected: Arc<CollectedResults>,
}

/// The results of a call.
#[derive(Default)]
struct CollectedResults {
    emitted: Mutex<Vec<Vec<u8>>>,
    answer: Mutex<Option<Result<FrameBytes>>>,
    answered: Condvar,
}

impl CallResultSink for CollectedResults {
    fn on_emission(&self, frame: &[u8]) -> bool {
        self.emitted.lock().push(frame.to_vec());
        true
    }

    fn on_answer(&self, answer: Result<FrameBytes>) {
        *self.answer.lock() = Some(answer);
        self.answered.notify_all();
    }
}

impl CallUnderTest for EngineCall {
    fn cancel(self: Box<Self>) {
        self.context.cancel();
        self.context.wake_call();
        // The answer arrives after the executor has dropped the future and ended the context.
        assert!(self.wait().answer.is_err(), "a cancelled call has no answer");
    }

    fn wait(self: Box<Self>) -> CallResults {
        let mut answer = self.collected.answer.lock();
        self.collected.answered.wait_while_for(&mut answer, |answer| answer.is_none(), DEADLINE);
        let Some(answer) = answer.take() else { panic!("the call has no answer") };
        CallResults::new(
            std::mem::take(&mut *self.collected.emitted.lock()),
            answer.map(FrameBytes::into_vec),
        )
    }
}

/// The services that [`super::CHECKS`] use. `test.echo` returns its frame, `test.never` never
/// answers, and `test.panic` panics. `test.stream` takes a list of texts as its pieces, and stays
/// open if the last one is null. `test.head` takes an object, which is known before the single
/// piece `a`.
#[derive(Debug, Clone, Copy)]
pub struct TestServices;

impl EngineServices for TestServices {
    fn call(
        &self,
        _caller: ServiceCaller,
        operation: &str,
        frame: Vec<u8>,
    ) -> BoxHostFuture<Result<EngineServiceAnswer>> {
        let served = match operation {
            "test.echo" => Ok(EngineServiceAnswer::Frame(frame)),
            "test.never" => return Box::pin(std::future::pending()),
            "test.panic" => panic!("the service `{operation}` panics, as the check wants it"),
            "test.stream" => {
                let pieces: Vec<Option<String>> = Frame::read(&frame).unwrap_or_default();
                Ok(EngineServiceAnswer::Stream(Box::new(TextPieceStream(pieces.into_iter()))))
            }
            "test.head" => {
                let pieces = vec![Some("a".to_owned())];
                let head = Frame::read(&frame).unwrap_or_default();
                Ok(EngineServiceAnswer::StreamWith(
                    head,
                    Box::new(TextPieceStream(pieces.into_iter())),
                ))
            }
            _ => {
                let text = format!("this host has no service `{operation}`");
                Err(Error::new(ErrorKind::UnknownOperation, text))
            }
        };
        Box::pin(std::future::ready(served))
    }
}

/// Pieces of text. A null waits forever.
struct TextPieceStream(std::vec::IntoIter<Option<String>>);

impl Stream for TextPieceStream {
    type Item = Result<Vec<u8>>;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        _cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Self::Item>> {
        match self.0.next() {
            Some(Some(text)) => std::task::Poll::Ready(Some(Ok(text.into_bytes()))),
            Some(None) => std::task::Poll::Pending,
            None => std::task::Poll::Ready(None),
        }
    }
}

/// A watch that ignores everything.
#[derive(Debug, Clone, Copy)]
pub struct SilentObserver;

impl EngineObserver for SilentObserver {
    fn log(&self, _plugin: &PluginName, _level: u8, _text: &str) {}

    fn report_misbehavior(&self, _report: &MisbehaviorReport) {}

    fn log_trouble(&self, _text: &str) {}
}
