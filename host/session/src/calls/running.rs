//! A call that runs: to its end, its deadline or its cancellation, in front of the turn or as a
//! task.

use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt};
use jaato_types::{Error, ErrorKind, Output, Result, ToolCall};

use crate::clock::sleep_unheld;
use crate::tasks::TaskOutput;
use crate::{Cancel, Clock, Hold, OutputSink};

/// A call that runs. Dropping it ends it: its flag is set and its output refused.
pub(crate) struct Running {
    pub(crate) call: ToolCall,
    pub(crate) source: String,
    /// When it began, on the monotonic clock.
    pub(crate) at_ms: u64,
    /// Set when the call must stop; hears the turn's flag.
    pub(crate) stop: Cancel,
    pub(crate) clock: Arc<dyn Clock>,
    /// What it has shown, where it may become a task.
    pub(crate) kept: Arc<TaskOutput>,
    work: BoxFuture<'static, Result<Output>>,
    output: OutputSink,
    deadline: BoxFuture<'static, ()>,
    deadline_ms: u64,
}

/// What a call is started with.
pub(crate) struct Start {
    pub(crate) call: ToolCall,
    pub(crate) source: String,
    pub(crate) stop: Cancel,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) output: OutputSink,
    pub(crate) work: BoxFuture<'static, Result<Output>>,
    pub(crate) deadline_ms: u64,
    /// Stops the deadline.
    pub(crate) hold: Hold,
}

impl Running {
    pub(crate) fn new(start: Start) -> Self {
        let Start { call, source, stop, clock, output, work, deadline_ms, hold } = start;
        let (at_ms, deadline) =
            (clock.monotonic_ms(), sleep_unheld(clock.clone(), deadline_ms, hold).boxed());
        let kept = output.kept();
        Self { call, source, at_ms, stop, clock, kept, work, output, deadline, deadline_ms }
    }

    /// Runs on until the call is over. May be dropped and asked again as long as it was not ready.
    pub(crate) async fn finish(&mut self) -> Result<Output> {
        // A call that is done at the moment of the cancellation is done: its effects are there.
        let outcome = tokio::select! {
            biased;
            outcome = &mut self.work => match outcome {
                // A tool that hears the flag first says less than is known here.
                Err(error) if error.kind == ErrorKind::Cancelled && self.stop.is_cancelled() => {
                    Err(interrupted())
                }
                outcome => outcome,
            },
            () = self.stop.cancelled() => Err(interrupted()),
            () = &mut self.deadline => Err(self.too_slow()),
        };
        self.end();
        outcome
    }

    /// Returns how long it has run by now.
    pub(crate) fn duration_ms(&self) -> u64 {
        self.clock.monotonic_ms().saturating_sub(self.at_ms)
    }

    fn too_slow(&self) -> Error {
        let (name, seconds) = (&self.call.name, self.deadline_ms.div_ceil(1_000));
        let text = format!("the call of `{name}` took longer than {seconds} s");
        Error::new(ErrorKind::Timeout, text).with_hint("some of its effects may be there")
    }

    /// Closes its output before its flag is set: what it still says then is not seen.
    fn end(&self) {
        self.output.close();
        self.stop.cancel();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

fn interrupted() -> Error {
    Error::new(ErrorKind::Cancelled, "the user cancelled this call while it ran")
        .with_hint("some of its effects may be there")
}
