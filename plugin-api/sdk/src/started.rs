//! Programs that outlive the call which started them: [`StartedProcess`], started by
//! [`Cx::start_process`](crate::Reporter::start_process).

use std::time::Duration;

use jaato_types::Result;
use jaato_types::process::{
    self, ProcessExit, ProcessFacts, ProcessOutput, ProcessOutputRead, ProcessRef, ProcessSignal,
    ProcessWait, ProcessWaited, ProcessWrite, Signal, Spawn, Started,
};

use crate::context::Reporter;

/// A program of the session's execution environment that outlives its call. Dropping this changes
/// nothing: a later call of any tool of the session finds it again by its number.
///
/// The environment keeps the last MiB of what it prints, and its exit, until it is forgotten.
#[derive(Clone)]
pub struct StartedProcess {
    host: Reporter,
    number: u64,
}

impl Reporter {
    /// Starts a program that outlives the call: a server, a long build. It ends by
    /// [`StartedProcess::forget`] or [`StartedProcess::end`], at its deadline where it has one, or
    /// else with the session.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use jaato_plugin_sdk::prelude::*;
    /// use jaato_plugin_sdk::process::Spawn;
    ///
    /// /// Starts a build; the number is all that the next call needs.
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
    /// As [`Reporter::process`]; `limit_reached` where 64 of them run.
    pub async fn start_process(&self, spawn: &Spawn) -> Result<StartedProcess> {
        let started: Started = self.service(process::START, spawn).await?;
        Ok(self.started_process(started.process))
    }

    /// Names a program that [`Reporter::start_process`] started, in this call or an earlier one.
    /// Whether it is there shows when something is asked of it.
    pub fn started_process(&self, number: u64) -> StartedProcess {
        StartedProcess { host: self.clone(), number }
    }

    /// Lists the programs of the session that [`Reporter::start_process`] started, those that have
    /// ended too.
    ///
    /// # Errors
    /// What the host answers; `unknown_operation` where nothing runs programs.
    pub async fn started_processes(&self) -> Result<Vec<ProcessFacts>> {
        self.service(process::LIST, &()).await
    }
}

impl StartedProcess {
    /// Returns the number by which a later call names it.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Reads what it has printed, both outputs as they came, from a byte on: at most 256 KiB. The
    /// answer says where those bytes begin, which is later than asked for where older ones are no
    /// longer kept, and how many there are in all; what comes next begins at `from` and the length
    /// of the bytes.
    ///
    /// # Errors
    /// `not_found` where it was forgotten or is another session's.
    pub async fn output(&self, from: u64) -> Result<(ProcessOutput, Vec<u8>)> {
        let read = ProcessOutputRead {
            process: self.number,
            from,
            bytes_max: None,
            ..ProcessOutputRead::default()
        };
        self.host.service_for_bytes(process::OUTPUT, &read, &[]).await
    }

    /// Waits for its exit, at most so long, or without a bound until the call ends. Nothing where
    /// it still runs.
    ///
    /// # Errors
    /// As [`StartedProcess::output`]; what it was lost by.
    pub async fn wait(&self, longest: Option<Duration>) -> Result<Option<ProcessExit>> {
        let timeout_ms =
            longest.map(|longest| u64::try_from(longest.as_millis()).unwrap_or(u64::MAX));
        let wait = ProcessWait { process: self.number, timeout_ms, ..ProcessWait::default() };
        let waited: ProcessWaited = self.host.service(process::WAIT, &wait).await?;
        Ok(waited.exit)
    }

    /// Writes to its standard input, which [`Spawn::piped_stdin`] made a pipe; waits while that is
    /// full.
    ///
    /// # Errors
    /// `io` when it reads no more; `invalid_arguments` when its input is no pipe.
    pub async fn write(&self, bytes: &[u8]) -> Result<()> {
        let write = ProcessWrite { process: self.number, close: false, ..ProcessWrite::default() };
        self.host.service_with_bytes(process::WRITE, &write, bytes).await
    }

    /// Ends its standard input.
    ///
    /// # Errors
    /// As [`StartedProcess::write`].
    pub async fn close_input(&self) -> Result<()> {
        let write = ProcessWrite { process: self.number, close: true, ..ProcessWrite::default() };
        self.host.service(process::WRITE, &write).await
    }

    /// Sends a signal to its process group. Does nothing when nothing of it is left.
    ///
    /// # Errors
    /// As [`StartedProcess::output`].
    pub async fn signal(&self, signal: Signal) -> Result<()> {
        let signal = ProcessSignal { process: self.number, signal, ..ProcessSignal::default() };
        self.host.service(process::SIGNAL, &signal).await
    }

    /// Ends it and all that it started, with a moment to tidy up. What it printed and its exit are
    /// kept.
    ///
    /// # Errors
    /// As [`StartedProcess::output`].
    pub async fn end(&self) -> Result<()> {
        self.host
            .service(process::END, &ProcessRef { process: self.number, ..ProcessRef::default() })
            .await
    }

    /// Ends it where it runs, and forgets it and its output.
    ///
    /// # Errors
    /// As [`StartedProcess::output`].
    pub async fn forget(&self) -> Result<()> {
        self.host
            .service(process::FORGET, &ProcessRef { process: self.number, ..ProcessRef::default() })
            .await
    }
}
