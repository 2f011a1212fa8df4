//! Programs that outlive the call that started them: [`StartedProcess`], started by
//! [`Cx::start_process`](crate::Reporter::start_process).

use std::time::Duration;

use jaato_types::Result;
use jaato_types::process::{
    self, ProcessExit, ProcessFacts, ProcessOutput, ProcessOutputRead, ProcessRef, ProcessSignal,
    ProcessStartAnswer, ProcessWait, ProcessWaitAnswer, ProcessWrite, Signal, Spawn,
};

use crate::context::Reporter;

/// A program of the session's execution environment that outlives its call. Dropping it does not
/// end the program. Later calls of any tool in the session can find it by its number.
///
/// The environment keeps the last MiB of the program's output, and its exit, until it is forgotten.
#[derive(Clone)]
pub struct StartedProcess {
    host: Reporter,
    number: u64,
}

impl Reporter {
    /// Starts a program that outlives the call, such as a server or a long build. It ends with
    /// [`StartedProcess::forget`] or [`StartedProcess::end`], at its deadline if it has one, or
    /// with the session.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use jaato_plugin_sdk::prelude::*;
    /// use jaato_plugin_sdk::process::Spawn;
    ///
    /// /// Starts a build. The next call needs only the number.
    /// async fn begin(cx: &Cx) -> Result<u64> {
    ///     Ok(cx.start_process(&Spawn::shell("make all")).await?.number())
    /// }
    ///
    /// /// Gives what the build has printed since byte `from`, and its exit code once it has ended.
    /// async fn look(cx: &Cx, number: u64, from: u64) -> Result<Output> {
    ///     let build = cx.started_process(number);
    ///     let exit = build.wait(Some(Duration::from_secs(1))).await?;
    ///     let (read, bytes) = build.output(from).await?;
    ///     Ok(Output::json(json!({
    ///         "text": String::from_utf8_lossy(&bytes),
    ///         "from": read.from,
    ///         "code": exit.and_then(|exit| exit.code),
    ///     })))
    /// }
    /// ```
    ///
    /// # Errors
    /// As [`Reporter::process`]; `limit_reached` if 64 of them run.
    pub async fn start_process(&self, spawn: &Spawn) -> Result<StartedProcess> {
        let started: ProcessStartAnswer = self.service(process::START, spawn).await?;
        Ok(self.started_process(started.process))
    }

    /// Returns a handle to a program that [`Reporter::start_process`] started, in this call or an
    /// earlier one. It does not check that the program exists.
    pub fn started_process(&self, number: u64) -> StartedProcess {
        StartedProcess { host: self.clone(), number }
    }

    /// Lists the session's programs that [`Reporter::start_process`] started, including those that
    /// have ended.
    ///
    /// # Errors
    /// The host's error; `unknown_operation` if no environment runs programs.
    pub async fn started_processes(&self) -> Result<Vec<ProcessFacts>> {
        self.service(process::LIST, &()).await
    }
}

impl StartedProcess {
    /// Returns the number with which later calls can find the program.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Reads the program's output, both streams in their original order, from a byte offset: at
    /// most 256 KiB. The answer contains the offset of the returned bytes, which is larger than the
    /// requested one if older bytes were discarded, and the total number of bytes. The next
    /// bytes begin at `from` plus the length of the returned bytes.
    ///
    /// # Errors
    /// `not_found` if the program was forgotten or belongs to another session.
    pub async fn output(&self, from: u64) -> Result<(ProcessOutput, Vec<u8>)> {
        let read = ProcessOutputRead {
            process: self.number,
            from,
            bytes_max: None,
            ..ProcessOutputRead::default()
        };
        self.host.service_for_bytes(process::OUTPUT, &read, &[]).await
    }

    /// Waits for the exit, up to this duration, or without a limit until the call ends. Returns
    /// `None` if the program is still running.
    ///
    /// # Errors
    /// As [`StartedProcess::output`]; the error with which the program was lost.
    pub async fn wait(&self, longest: Option<Duration>) -> Result<Option<ProcessExit>> {
        let timeout_ms =
            longest.map(|longest| u64::try_from(longest.as_millis()).unwrap_or(u64::MAX));
        let wait = ProcessWait { process: self.number, timeout_ms, ..ProcessWait::default() };
        let waited: ProcessWaitAnswer = self.host.service(process::WAIT, &wait).await?;
        Ok(waited.exit)
    }

    /// Writes to standard input, which [`Spawn::piped_stdin`] makes a pipe. Waits while the pipe is
    /// full.
    ///
    /// # Errors
    /// `io` if the program no longer reads; `invalid_arguments` if its input is not a pipe.
    pub async fn write(&self, bytes: &[u8]) -> Result<()> {
        let write = ProcessWrite { process: self.number, close: false, ..ProcessWrite::default() };
        self.host.service_with_bytes(process::WRITE, &write, bytes).await
    }

    /// Closes standard input.
    ///
    /// # Errors
    /// As [`StartedProcess::write`].
    pub async fn close_input(&self) -> Result<()> {
        let write = ProcessWrite { process: self.number, close: true, ..ProcessWrite::default() };
        self.host.service(process::WRITE, &write).await
    }

    /// Sends a signal to the program's process group. Does nothing if no process of the group is
    /// left.
    ///
    /// # Errors
    /// As [`StartedProcess::output`].
    pub async fn signal(&self, signal: Signal) -> Result<()> {
        let signal = ProcessSignal { process: self.number, signal, ..ProcessSignal::default() };
        self.host.service(process::SIGNAL, &signal).await
    }

    /// Ends the program and all its child processes, and gives them a moment to clean up. Its
    /// output and exit are kept.
    ///
    /// # Errors
    /// As [`StartedProcess::output`].
    pub async fn end(&self) -> Result<()> {
        self.host
            .service(process::END, &ProcessRef { process: self.number, ..ProcessRef::default() })
            .await
    }

    /// Ends the program if it is running, and forgets it and its output.
    ///
    /// # Errors
    /// As [`StartedProcess::output`].
    pub async fn forget(&self) -> Result<()> {
        self.host
            .service(process::FORGET, &ProcessRef { process: self.number, ..ProcessRef::default() })
            .await
    }
}
