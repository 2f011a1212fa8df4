//! Building blocks for the call bodies of checks.

use std::sync::{Arc, mpsc};
use std::time::Duration;

use jaato_plugin_api::abi::abi_stable::std_types::{ROption, RResult, RVec};
use jaato_plugin_api::abi::async_ffi::FutureExt;
use jaato_plugin_api::abi::{Answer, ContextBox, JobAbi};
use jaato_types::service::StreamAnswer;
use jaato_types::{Error, Frame};

use super::{CallResults, CallUnderTest, HostUnderTest};

/// The longest wait of a check for an expected event. Only a broken host reaches it.
pub(super) const DEADLINE: Duration = Duration::from_secs(20);

/// Longer than any test runs.
pub(super) const FOR_EVER_MS: u64 = 24 * 3600 * 1000;

pub(super) type SharedContext = Arc<ContextBox>;

pub(super) fn into_answer(
    work: impl Future<Output = Result<Vec<u8>, Error>> + Send + 'static,
) -> Answer {
    async move {
        match work.await {
            Ok(frame) => RResult::ROk(frame.into()),
            Err(error) => RResult::RErr(encode_frame(&error).into()),
        }
    }
    .into_ffi()
}

/// Starts a call of async code that shares its context with the check.
pub(super) fn start_body<F>(
    host: &dyn HostUnderTest,
    work: impl FnOnce(SharedContext) -> F + Send + 'static,
) -> Box<dyn CallUnderTest>
where
    F: Future<Output = Result<Vec<u8>, Error>> + Send + 'static,
{
    host.start(Box::new(move |context| into_answer(work(Arc::new(context)))))
}

#[track_caller]
pub(super) fn run_body<F>(
    host: &dyn HostUnderTest,
    work: impl FnOnce(SharedContext) -> F + Send + 'static,
) -> CallResults
where
    F: Future<Output = Result<Vec<u8>, Error>> + Send + 'static,
{
    start_body(host, work).wait()
}

pub(super) fn encode_frame(value: &impl serde::Serialize) -> Vec<u8> {
    Frame::write(value).unwrap_or_else(|error| unreachable!("a small value is a frame: {error}"))
}

pub(super) fn read_answer(answer: RResult<RVec<u8>, RVec<u8>>) -> Result<Vec<u8>, Error> {
    match answer {
        RResult::ROk(frame) => Ok(frame.into()),
        RResult::RErr(error) => Err(read_error(&error)),
    }
}

#[track_caller]
pub(super) fn read_error(frame: &[u8]) -> Error {
    Frame::read(frame).unwrap_or_else(|error| panic!("the host's error is none: {error}"))
}

pub(super) async fn call_service(
    context: &SharedContext,
    operation: &str,
    request: &impl serde::Serialize,
) -> Result<Vec<u8>, Error> {
    let future = context.service(operation.into(), encode_frame(request).into());
    read_answer(future.await)
}

pub(super) async fn open_test_stream(
    context: &SharedContext,
    pieces: &[Option<&str>],
) -> Result<u64, Error> {
    let answer = call_service(context, "test.stream", &pieces).await?;
    let stream: StreamAnswer =
        Frame::read(&answer).map_err(|error| Error::failed(error.to_string()))?;
    Ok(stream.handle)
}

pub(super) async fn next_piece_text(
    context: &SharedContext,
    handle: u64,
) -> Result<Option<String>, Error> {
    match context.next(handle).await {
        RResult::ROk(ROption::RNone) => Ok(None),
        RResult::ROk(ROption::RSome(frame)) => {
            let frame = Frame::parse(&frame).map_err(|error| Error::failed(error.to_string()))?;
            Ok(Some(String::from_utf8_lossy(frame.bytes).into_owned()))
        }
        RResult::RErr(error) => Err(read_error(&error)),
    }
}

/// Blocks this thread until a future is ready.
pub(super) fn block_on<F: Future>(future: F) -> F::Output {
    struct UnparkWaker(std::thread::Thread);
    impl std::task::Wake for UnparkWaker {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Arc::new(UnparkWaker(std::thread::current())).into();
    let mut context = std::task::Context::from_waker(&waker);
    let mut future = std::pin::pin!(future);
    loop {
        if let std::task::Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
        std::thread::park_timeout(DEADLINE);
    }
}

/// A job that reports on which thread it ran.
pub(super) struct ThreadReportJob(pub(super) mpsc::Sender<String>);

impl JobAbi for ThreadReportJob {
    fn run(&mut self) {
        // The check may have failed and ended by then.
        let _ = self.0.send(thread_name());
    }
}

pub(super) fn thread_name() -> String {
    let thread = std::thread::current();
    format!("{:?} {}", thread.id(), thread.name().unwrap_or_default())
}
