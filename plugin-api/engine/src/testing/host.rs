//! A host under test: an engine with services that the test chooses.

use std::sync::Arc;

use futures_core::Stream;
use jaato_types::{Error, ErrorKind, Frame, PluginName, Result};
use parking_lot::{Condvar, Mutex};

use super::body::DEADLINE;
use super::{Body, CallUnderTest, Ended, HostUnderTest};
use crate::{
    Bytes, Caller, CallerKind, Executor, Guest, HostContext, Outlet, Report, Served, Services,
    Watch, Work,
};

/// Runs each body in its own context.
pub struct EngineHost<S> {
    executor: Executor,
    guest: Arc<Guest>,
    services: S,
}

impl<S: Fn() -> Arc<dyn Services>> EngineHost<S> {
    /// Creates a host. Each call gets its services from `services`.
    pub fn new(executor: Executor, services: S) -> Self {
        let guest = executor.guest(PluginName::from("bodies"));
        Self { executor, guest, services }
    }
}

impl<S: Fn() -> Arc<dyn Services>> HostUnderTest for EngineHost<S> {
    fn start(&self, body: Body) -> Box<dyn CallUnderTest> {
        let (kind, services) = (CallerKind::Call, (self.services)());
        let context = HostContext::new(kind, &self.executor, &self.guest, services);
        let collected = Arc::new(Collected::default());
        context.run_into(body, Arc::clone(&collected) as Arc<dyn Outlet>);
        Box::new(EngineCall { context, collected })
    }
}

struct EngineCall {
    context: Arc<HostContext>,
    collected: Arc<Collected>,
}

/// The results of a call.
#[derive(Default)]
struct Collected {
    emitted: Mutex<Vec<Vec<u8>>>,
    answer: Mutex<Option<Result<Bytes>>>,
    answered: Condvar,
}

impl Outlet for Collected {
    fn emitted(&self, frame: &[u8]) -> bool {
        self.emitted.lock().push(frame.to_vec());
        true
    }

    fn answered(&self, answer: Result<Bytes>) {
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

    fn wait(self: Box<Self>) -> Ended {
        let mut answer = self.collected.answer.lock();
        self.collected.answered.wait_while_for(&mut answer, |answer| answer.is_none(), DEADLINE);
        let Some(answer) = answer.take() else { panic!("the call has no answer") };
        Ended::new(std::mem::take(&mut *self.collected.emitted.lock()), answer.map(Bytes::into_vec))
    }
}

/// The services that [`super::CHECKS`] use. `test.echo` returns its frame, `test.never` never
/// answers, and `test.panic` panics. `test.stream` takes a list of texts as its pieces, and stays
/// open if the last one is null. `test.head` takes an object, which is known before the single
/// piece `a`.
#[derive(Debug, Clone, Copy)]
pub struct TestServices;

impl Services for TestServices {
    fn call(&self, _caller: Caller, operation: &str, frame: Vec<u8>) -> Work<Result<Served>> {
        let served = match operation {
            "test.echo" => Ok(Served::Frame(frame)),
            "test.never" => return Box::pin(std::future::pending()),
            "test.panic" => panic!("the service `{operation}` panics, as the check wants it"),
            "test.stream" => {
                let pieces: Vec<Option<String>> = Frame::read(&frame).unwrap_or_default();
                Ok(Served::Stream(Box::new(Pieces(pieces.into_iter()))))
            }
            "test.head" => {
                let pieces = vec![Some("a".to_owned())];
                let head = Frame::read(&frame).unwrap_or_default();
                Ok(Served::StreamWith(head, Box::new(Pieces(pieces.into_iter()))))
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
struct Pieces(std::vec::IntoIter<Option<String>>);

impl Stream for Pieces {
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
pub struct Silent;

impl Watch for Silent {
    fn log(&self, _plugin: &PluginName, _level: u8, _text: &str) {}

    fn misbehaved(&self, _report: &Report) {}

    fn trouble(&self, _text: &str) {}
}
