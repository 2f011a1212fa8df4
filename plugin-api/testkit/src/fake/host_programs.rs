//! Programs that the fake host itself runs, as an execution environment prepared them.

use jaato_types::process::{SPAWN, Spawn, WRITE};
use jaato_types::{Error, ErrorKind, Frame, Result};
use serde_json::json;

use super::context::frame_bug_error;
use super::host::FakeHost;
use super::services::FakeServiceReply;
use super::stream::FakeStream;

/// The context of the host's own requests, a number that no call or instance has.
const HOST_CONTEXT: u64 = u64::MAX;

/// A program of the host. Dropping it ends the program.
pub(crate) struct HostProgram<'a> {
    host: &'a FakeHost,
    number: u64,
    stream: FakeStream,
}

impl FakeHost {
    /// Starts a program.
    pub(crate) fn start_program(&self, spawn: &Spawn) -> Result<HostProgram<'_>> {
        let frame = Frame::write(spawn).map_err(frame_bug_error)?;
        match self.shared_state().services.answer(HOST_CONTEXT, SPAWN, &frame)? {
            FakeServiceReply::StreamWith(head, stream) => {
                let number = head["process"].as_u64().unwrap_or_default();
                Ok(HostProgram { host: self, number, stream })
            }
            _ => Err(Error::new(ErrorKind::HostBug, "the test's host gives a program no stream")),
        }
    }
}

impl HostProgram<'_> {
    /// Writes to its standard input and closes it.
    pub(crate) fn write(&self, bytes: &[u8]) -> Result<()> {
        let write = json!({ "process": self.number, "close": true });
        let frame = Frame::write_with_bytes(&write, bytes).map_err(frame_bug_error)?;
        self.host.shared_state().services.answer(HOST_CONTEXT, WRITE, &frame).map(drop)
    }

    /// Waits for the next frame of its stream. Returns `None` after its exit.
    pub(crate) fn next(&self) -> Result<Option<Vec<u8>>> {
        self.stream.wait_next(self.host.shared_state().patience())
    }
}

impl Drop for HostProgram<'_> {
    fn drop(&mut self) {
        self.stream.close();
    }
}
