//! A running call: until its end, its deadline or its cancellation, within the turn or as a
//! background task.

use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt};
use jaato_types::{Error, ErrorKind, Output, Result, ToolCall};

use crate::clock::sleep_while_unheld;
use crate::tasks::TaskOutput;
use crate::{Cancel, DeadlineHold, OutputSink, SessionClock};

/// A running call. Dropping it ends the call: its cancel flag is set and its output refused.
pub(crate) struct RunningToolCall {
    pub(crate) call: ToolCall,
    pub(crate) source: String,
    /// When it began, on the monotonic clock.
    pub(crate) at_ms: u64,
    /// Set when the call must stop. It also follows the turn's flag.
    pub(crate) stop: Cancel,
    pub(crate) clock: Arc<dyn SessionClock>,
    /// The output so far, if the call may become a task.
    pub(crate) kept: Arc<TaskOutput>,
    work: BoxFuture<'static, Result<Output>>,
    output: OutputSink,
    deadline: BoxFuture<'static, ()>,
    deadline_ms: u64,
}

/// The parameters for starting a call.
pub(crate) struct CallStart {
    pub(crate) call: ToolCall,
    pub(crate) source: String,
    pub(crate) stop: Cancel,
    pub(crate) clock: Arc<dyn SessionClock>,
    pub(crate) output: OutputSink,
    pub(crate) work: BoxFuture<'static, Result<Output>>,
    pub(crate) deadline_ms: u64,
    /// Pauses the deadline.
    pub(crate) hold: DeadlineHold,
}

impl RunningToolCall {
    pub(crate) fn new(start: CallStart) -> Self {
        let CallStart { call, source, stop, clock, output, work, deadline_ms, hold } = start;
        let (at_ms, deadline) =
            (clock.monotonic_ms(), sleep_while_unheld(clock.clone(), deadline_ms, hold).boxed());
        let kept = output.kept_output();
        Self { call, source, at_ms, stop, clock, kept, work, output, deadline, deadline_ms }
    }

    /// Waits until the call is over. This future may be dropped and called again until it was
    /// ready.
    pub(crate) async fn finish(&mut self) -> Result<Output> {
        // A call that is done at the moment of the cancellation counts as done, because its effects
        // exist.
        let outcome = tokio::select! {
            biased;
            outcome = &mut self.work => match outcome {
                // If a tool noticed the flag first, its error says less than the one made here.
                Err(error) if error.kind == ErrorKind::Cancelled && self.stop.is_cancelled() => {
                    Err(interrupted_error())
                }
                outcome => outcome,
            },
            () = self.stop.cancelled() => Err(interrupted_error()),
            () = &mut self.deadline => Err(self.timeout_error()),
        };
        self.stop_call();
        outcome
    }

    /// Returns how long it has been running.
    pub(crate) fn duration_ms(&self) -> u64 {
        self.clock.monotonic_ms().saturating_sub(self.at_ms)
    }

    fn timeout_error(&self) -> Error {
        let (name, seconds) = (&self.call.name, self.deadline_ms.div_ceil(1_000));
        let text = format!("the call to `{name}` took longer than {seconds} s");
        Error::new(ErrorKind::Timeout, text).with_hint("it may have had some effects")
    }

    /// Closes its output before setting its flag, so that no output after that is shown.
    fn stop_call(&self) {
        self.output.close();
        self.stop.cancel();
    }
}

impl Drop for RunningToolCall {
    fn drop(&mut self) {
        self.stop_call();
    }
}

fn interrupted_error() -> Error {
    Error::new(ErrorKind::Cancelled, "the user cancelled this call while it ran")
        .with_hint("it may have had some effects")
}
