//! Background programs, which outlive the call that started them. Keeps the end of their output,
//! and their exit.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use jaato_plugin_sdk::process::ProcessUpdate;
use jaato_types::process::{
    KEPT_BYTES_MAX, ProcessExit, ProcessFacts, ProcessOutput, ProcessOutputRead, STARTED_MAX,
};
use jaato_types::{Error, ErrorKind, Result};
use parking_lot::{Mutex, MutexGuard};

use super::frames::unknown_handle_error;
use super::shell::ProgramEvents;
use super::watched_value::WatchedValue;

/// The maximum number of bytes of output in one answer.
const READ_BYTES_MAX: usize = 256 * 1024;

/// The programs that outlive their calls.
pub(super) struct BackgroundPrograms<P>(Mutex<BTreeMap<u64, Arc<BackgroundProgram<P>>>>);

impl<P> Default for BackgroundPrograms<P> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

/// One background program.
pub(super) struct BackgroundProgram<P> {
    pub(super) program: P,
    pid: Option<u32>,
    label: String,
    started: Instant,
    printed: Arc<WatchedValue<BackgroundProgramOutput>>,
}

/// The output and exit of a program.
#[derive(Default)]
struct BackgroundProgramOutput {
    /// The end of the output.
    tail: VecDeque<u8>,
    /// The number of all bytes that were printed.
    bytes: u64,
    exit: Option<ProcessExit>,
    /// Why the program was lost.
    lost: Option<Error>,
}

impl BackgroundProgramOutput {
    fn push_output(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        let bytes = &bytes[bytes.len().saturating_sub(KEPT_BYTES_MAX)..];
        let over = (self.tail.len() + bytes.len()).saturating_sub(KEPT_BYTES_MAX);
        self.tail.drain(..over);
        self.tail.extend(bytes);
    }

    /// Returns the kept output, starting at an offset.
    fn read_from(&self, from: u64, bytes_max: usize) -> (u64, Vec<u8>) {
        let first = self.bytes - self.tail.len() as u64;
        let from = from.clamp(first, self.bytes);
        let skip = usize::try_from(from - first).unwrap_or(usize::MAX);
        (from, self.tail.iter().skip(skip).take(bytes_max).copied().collect())
    }

    fn has_ended(&self) -> bool {
        self.exit.is_some() || self.lost.is_some()
    }

    /// Returns the exit, or the error that makes it unknown, if the program has ended.
    fn exit_result(&self) -> Option<Result<ProcessExit>> {
        match (&self.exit, &self.lost) {
            (Some(exit), _) => Some(Ok(exit.clone())),
            (None, Some(error)) => Some(Err(error.clone())),
            (None, None) => None,
        }
    }
}

impl<P> BackgroundPrograms<P> {
    /// Makes room for one more program by forgetting the oldest one that has ended. Fails if all of
    /// them still run.
    pub(super) fn remove_ended_program(&self) -> Result<()> {
        let mut programs = self.lock_programs();
        if programs.len() < STARTED_MAX {
            return Ok(());
        }
        let ended = programs
            .iter()
            .find(|(_, kept)| kept.printed.with_value(BackgroundProgramOutput::has_ended));
        let Some(number) = ended.map(|(&number, _)| number) else {
            let text = format!("{STARTED_MAX} programs run in the background");
            return Err(Error::new(ErrorKind::LimitReached, text).with_hint("end some of them"));
        };
        programs.remove(&number);
        Ok(())
    }

    /// Adds a program. The returned future reads its events to the end.
    pub(super) fn add_program<V: ProgramEvents>(
        &self,
        number: u64,
        (program, pid): (P, Option<u32>),
        mut events: V,
        label: String,
    ) -> impl Future<Output = ()> + Send + 'static + use<P, V> {
        let printed = Arc::new(WatchedValue::new(BackgroundProgramOutput::default()));
        let read = Arc::clone(&printed);
        let kept = BackgroundProgram { program, pid, label, started: Instant::now(), printed };
        self.lock_programs().insert(number, Arc::new(kept));
        async move {
            loop {
                match events.next().await {
                    Ok(Some(ProcessUpdate::Output { bytes, .. })) => {
                        read.change_value(|it| it.push_output(&bytes))
                    }
                    Ok(Some(ProcessUpdate::Exited(exit))) => {
                        read.change_value(|it| it.exit = Some(exit))
                    }
                    Ok(None) => return,
                    Err(error) => return read.change_value(|it| it.lost = Some(error)),
                }
            }
        }
    }

    pub(super) fn find_program(&self, number: u64) -> Option<Arc<BackgroundProgram<P>>> {
        self.lock_programs().get(&number).cloned()
    }

    pub(super) fn remove_program(&self, number: u64) -> Option<Arc<BackgroundProgram<P>>> {
        self.lock_programs().remove(&number)
    }

    /// Removes and returns all programs.
    pub(super) fn take_programs(&self) -> Vec<Arc<BackgroundProgram<P>>> {
        std::mem::take(&mut *self.lock_programs()).into_values().collect()
    }

    /// Lists the programs.
    pub(super) fn list_programs(&self) -> Vec<ProcessFacts> {
        let programs = self.lock_programs();
        programs.iter().map(|(&process, kept)| kept.process_facts(process)).collect()
    }

    /// Reads the output of a program.
    pub(super) fn read_output(&self, read: ProcessOutputRead) -> Result<(ProcessOutput, Vec<u8>)> {
        let kept = self
            .find_program(read.process)
            .ok_or_else(|| unknown_handle_error("program", read.process))?;
        let wanted = read.bytes_max.and_then(|bytes| usize::try_from(bytes).ok());
        let bytes_max = wanted.unwrap_or(READ_BYTES_MAX).min(READ_BYTES_MAX);
        Ok(kept.printed.with_value(|printed| {
            let (from, bytes) = printed.read_from(read.from, bytes_max);
            let exit = printed.exit.clone();
            (
                ProcessOutput { from, printed: printed.bytes, exit, ..ProcessOutput::default() },
                bytes,
            )
        }))
    }

    fn lock_programs(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<BackgroundProgram<P>>>> {
        self.0.lock()
    }
}

impl<P> BackgroundProgram<P> {
    fn process_facts(&self, process: u64) -> ProcessFacts {
        let age_ms = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let (pid, label) = (self.pid, self.label.clone());
        let (printed, exit) = self.printed.with_value(|it| (it.bytes, it.exit.clone()));
        ProcessFacts { process, pid, label, age_ms, printed, exit, ..ProcessFacts::default() }
    }

    /// Waits for the program's exit.
    pub(super) async fn wait_for_exit(&self) -> Result<ProcessExit> {
        self.printed.wait_until(BackgroundProgramOutput::exit_result).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_tail_is_kept_and_all_bytes_are_counted() {
        let mut printed = BackgroundProgramOutput::default();
        for number in 0..300_000_u32 {
            printed.push_output(format!("{number:07}\n").as_bytes());
        }
        assert_eq!((printed.bytes, printed.tail.len()), (2_400_000, KEPT_BYTES_MAX));
        let (from, bytes) = printed.read_from(0, 16);
        assert_eq!(from, 2_400_000 - KEPT_BYTES_MAX as u64);
        assert_eq!(String::from_utf8(bytes).unwrap(), "0168928\n0168929\n");
        assert_eq!(printed.read_from(2_399_992, 100), (2_399_992, b"0299999\n".to_vec()));
        assert_eq!(printed.read_from(9_000_000, 100), (2_400_000, Vec::new()));
        printed.push_output(&vec![b'x'; 2 * KEPT_BYTES_MAX]);
        assert_eq!(printed.tail.len(), KEPT_BYTES_MAX);
    }
}
