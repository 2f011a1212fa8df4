//! Processes that ended programs left running: kept until the host ends, then reported.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jaato_process::{ChildOutput, ChildProcess, ProcessError};
use jaato_types::text::{one_line, truncate_chars};
use jaato_types::{Error, ErrorKind};
use parking_lot::{Mutex, MutexGuard};
use tokio::task::JoinHandle;

/// Maximum number of programs that may leave processes running. Each takes a keeper and up to three
/// descriptors.
pub const LEFT_RUNNING_MAX: usize = 64;

/// How long listing the remaining processes may take at the host's end. It usually takes
/// milliseconds, but longer on a very busy machine.
const LIST_PATIENCE: Duration = Duration::from_secs(2);

/// Bytes of unwanted output to read at a time.
const THROWN_AWAY_BYTES: usize = 16 * 1024;

/// Pause between two such reads. It slows an endlessly printing process instead of the host.
const THROW_AWAY_PAUSE: Duration = Duration::from_millis(10);

/// Longest label in a line, in characters.
const LABEL_CHARS_MAX: usize = 60;

/// The processes that were left running.
#[derive(Default)]
pub(super) struct LeftoverPrograms(Mutex<Vec<LeftoverProgram>>);

/// The processes of one program.
struct LeftoverProgram {
    /// Keeps its descendants alive.
    child: Arc<ChildProcess>,
    label: String,
    readers: Vec<JoinHandle<()>>,
}

/// A process that ends together with the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedProcess {
    /// Its process id.
    pub pid: u32,
    /// Its name as `ps` shows it.
    pub name: String,
    /// The command that started it, in one line.
    pub left_by: String,
}

impl fmt::Display for EndedProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pid, name, left_by } = self;
        write!(f, "ended process {pid} ({name}), left running by `{left_by}`")
    }
}

impl LeftoverPrograms {
    /// Keeps a program's remaining processes until the host ends. Continues to read its pipes,
    /// because a write to a closed pipe would end the process.
    pub(super) fn add_program(
        &self,
        child: Arc<ChildProcess>,
        pipes: [Option<ChildOutput>; 2],
        label: &str,
    ) {
        let readers = pipes.into_iter().flatten().map(|pipe| tokio::spawn(drain_pipe(pipe)));
        let left = LeftoverProgram {
            child,
            label: truncate_chars(&one_line(label), LABEL_CHARS_MAX),
            readers: readers.collect(),
        };
        self.lock_programs().push(left);
    }

    /// Ends the processes that a program left running. Does nothing if there are none.
    ///
    /// # Errors
    /// If a process cannot be ended. It is kept in that case.
    pub(super) async fn end_program(&self, child: &Arc<ChildProcess>) -> Result<(), ProcessError> {
        if !self.lock_programs().iter().any(|left| Arc::ptr_eq(&left.child, child)) {
            return Ok(());
        }
        child.end().await?;
        self.lock_programs().retain(|left| !Arc::ptr_eq(&left.child, child));
        Ok(())
    }

    /// Returns an error if too many programs have left processes running.
    pub(super) async fn has_room(&self) -> Result<(), Error> {
        if self.lock_programs().len() < LEFT_RUNNING_MAX {
            return Ok(());
        }
        self.remove_ended().await;
        if self.lock_programs().len() < LEFT_RUNNING_MAX {
            return Ok(());
        }
        let text = format!("{LEFT_RUNNING_MAX} commands have left processes running");
        Err(Error::new(ErrorKind::LimitReached, text).with_hint("end some of them with `kill`"))
    }

    async fn remove_ended(&self) {
        let kept: Vec<_> =
            self.lock_programs().iter().map(|left| Arc::clone(&left.child)).collect();
        let mut ended = Vec::new();
        for child in kept {
            if child.leftovers().await.unwrap_or_default().is_empty() {
                ended.push(child);
            }
        }
        let is_ended =
            |left: &LeftoverProgram| ended.iter().any(|child| Arc::ptr_eq(child, &left.child));
        self.lock_programs().retain(|left| !is_ended(left));
    }

    /// Lists the processes that still live.
    pub(super) async fn list_living(&self) -> Vec<EndedProcess> {
        let left = std::mem::take(&mut *self.lock_programs());
        let mut living = Vec::new();
        let look = async {
            for one in &left {
                // If its keeper is gone, nothing is left.
                for process in one.child.leftovers().await.unwrap_or_default() {
                    let (pid, name) = (process.pid, process.name);
                    living.push(EndedProcess { pid, name, left_by: one.label.clone() });
                }
            }
        };
        // Processes that cannot be listed in time are still ended.
        let _ = tokio::time::timeout(LIST_PATIENCE, look).await;
        *self.lock_programs() = left;
        living
    }

    fn lock_programs(&self) -> MutexGuard<'_, Vec<LeftoverProgram>> {
        self.0.lock()
    }
}

impl Drop for LeftoverProgram {
    fn drop(&mut self) {
        self.readers.iter().for_each(JoinHandle::abort);
    }
}

/// Reads a pipe to its end.
async fn drain_pipe(pipe: ChildOutput) {
    let mut buffer = vec![0; THROWN_AWAY_BYTES];
    while pipe.readable().await.is_ok() {
        match pipe.try_read(&mut buffer) {
            Ok(0) => return,
            Ok(_) => tokio::time::sleep(THROW_AWAY_PAUSE).await,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(_) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ended_process_is_described_in_one_line() {
        let left_by = one_line("sleep 300 &\n\n  echo  done");
        let ended = EndedProcess { pid: 12, name: "sleep".into(), left_by };
        assert_eq!(
            ended.to_string(),
            "ended process 12 (sleep), left running by `sleep 300 & echo done`"
        );
    }
}
