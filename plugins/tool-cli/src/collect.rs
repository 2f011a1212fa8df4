//! Reads a command to its end: two ends of each output for the model, the whole into the call's
//! file.

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::process::{Happened, OutputStream, Process, ProcessExit};
use jaato_plugin_sdk::types::service::{OUTPUT, OutputAnswer, OutputWrite};

use crate::answer::Share;
use crate::kept::Kept;
use crate::live::Live;

/// Bytes that wait before they are written to the file: a command that prints line by line must not
/// cost a write a line.
const WRITE_BYTES: usize = 64 * 1024;

/// What a command printed, and how it ended.
#[derive(Debug)]
pub struct Collected {
    /// Its standard output.
    pub stdout: Kept,
    /// Its standard error.
    pub stderr: Kept,
    /// How the model's room is shared between the two.
    pub share: Share,
    /// How it ended.
    pub exit: ProcessExit,
    /// Where the whole is, where it is more than the model is shown; or why it is nowhere.
    pub file: Option<std::result::Result<String, NotKept>>,
}

/// Why the whole is in no file.
#[derive(Debug)]
pub struct NotKept {
    /// The file with its beginning, and how much that is.
    pub begun: Option<OutputAnswer>,
    /// What went wrong then.
    pub error: Error,
}

/// Reads to the exit. The model is shown at most `room` bytes of JSON of both outputs.
pub async fn collect(host: &Reporter, mut process: Process, room: usize) -> Result<Collected> {
    let (mut stdout, mut stderr) = (Kept::for_room(room), Kept::for_room(room));
    let mut file = WholeFile { shown_bytes: room, ..WholeFile::default() };
    let mut live = Live::new();
    let mut exit = None;
    while let Some(happened) = process.next().await? {
        match happened {
            Happened::Output { stream, bytes } => {
                live.show(host, stream, &bytes);
                match stream {
                    OutputStream::Stdout => stdout.push(&bytes),
                    OutputStream::Stderr => stderr.push(&bytes),
                }
                file.push(host, &bytes).await;
            }
            Happened::Exited(exited) => exit = Some(exited),
        }
    }
    live.finish(host);
    let exit =
        exit.ok_or_else(|| Error::new(ErrorKind::HostBug, "the host told no exit of the command"))?;
    let share = Share::of(room, &stdout, &stderr);
    let is_cut = share != Share::Whole;
    Ok(Collected { stdout, stderr, share, exit, file: file.finish(host, is_cut).await })
}

/// The call's file, made when there is more than fits into an answer.
#[derive(Default)]
struct WholeFile {
    /// What an answer may show: no file is made for less.
    shown_bytes: usize,
    waiting: Vec<u8>,
    state: FileState,
}

#[derive(Default)]
enum FileState {
    #[default]
    None,
    At(OutputAnswer),
    Failed(NotKept),
}

impl WholeFile {
    async fn push(&mut self, host: &Reporter, bytes: &[u8]) {
        if matches!(self.state, FileState::Failed(_)) {
            return;
        }
        self.waiting.extend_from_slice(bytes);
        let enough = match self.state {
            FileState::None => self.shown_bytes,
            FileState::At(_) | FileState::Failed(_) => WRITE_BYTES,
        };
        if self.waiting.len() > enough {
            self.write(host).await;
        }
    }

    async fn write(&mut self, host: &Reporter) {
        let write = OutputWrite { live: false };
        let written: Result<OutputAnswer> =
            host.service_with_bytes(OUTPUT, &write, &self.waiting).await;
        self.waiting.clear();
        let begun = match std::mem::take(&mut self.state) {
            FileState::At(answer) => Some(answer),
            FileState::None | FileState::Failed(_) => None,
        };
        // Without a file the command goes on: it may do more than print.
        self.state = match written {
            Ok(answer) => FileState::At(answer),
            Err(error) => FileState::Failed(NotKept { begun, error }),
        };
    }

    async fn finish(
        mut self,
        host: &Reporter,
        is_wanted: bool,
    ) -> Option<std::result::Result<String, NotKept>> {
        let is_begun = matches!(self.state, FileState::At(_));
        if !self.waiting.is_empty() && (is_begun || is_wanted) {
            self.write(host).await;
        }
        match self.state {
            FileState::None => None,
            FileState::At(answer) => is_wanted.then_some(Ok(answer.path)),
            FileState::Failed(not_kept) => is_wanted.then_some(Err(not_kept)),
        }
    }
}
