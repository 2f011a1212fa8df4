//! The results of a batch: a JSON object per line, appended to a file or printed.
//!
//! A file makes a batch resumable. Next to it, `FILE.unfinished` has the session of each task that
//! began, until all tasks have results.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use jaato_runtime::session_loop::SessionUsage;
use jaato_runtime::types::{Outcome, SessionId};
use serde::{Deserialize, Serialize};

use crate::exit::{CommandFailure, Exit};
use crate::report;

/// The beginning of each line, by which a torn one is recognized.
const LINE_BEGINS: &[u8] = b"{\"id\":";

/// The result of a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskResult {
    /// The id of the task.
    pub id: String,
    /// How it ended.
    pub outcome: Outcome,
    /// The exit code that `jaato run` would have had.
    pub exit_code: u8,
    /// The last answer.
    pub text: String,
    /// Why it did not succeed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<TaskError>,
    /// The model that answered last, `provider/model`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The saved session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// Whether an earlier process began the task.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub continued: bool,
    /// The usage of all of its requests.
    pub usage: SessionUsage,
    /// How long this process worked on it, in milliseconds.
    pub duration_ms: u64,
    /// The prompt.
    pub task: String,
}

/// Why a task did not succeed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskError {
    /// The text.
    pub message: String,
    /// What to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// A task that began.
#[derive(Debug, Serialize, Deserialize)]
struct StartedTask {
    id: String,
    session: SessionId,
}

/// Where results go.
pub enum ResultOutput {
    /// To standard output. The batch cannot be continued.
    Printed,
    /// To a file, next to which the sessions of unfinished tasks are kept.
    File(ResultFile),
}

/// The file of a batch's results. One process has it open at a time.
pub struct ResultFile {
    file: File,
    path: PathBuf,
    unfinished: PathBuf,
    begun: Option<File>,
}

/// The state of a batch at its beginning.
#[derive(Default)]
pub struct EarlierResults {
    /// The results that the file has.
    pub results: HashMap<String, TaskResult>,
    /// The sessions of tasks that began.
    pub sessions: HashMap<String, SessionId>,
}

impl ResultOutput {
    /// Opens the file, or standard output without one, and reads the earlier results.
    ///
    /// # Errors
    /// If the file cannot be used, is in use, or has other lines than results.
    pub fn open(path: Option<&Path>) -> Result<(Self, EarlierResults), CommandFailure> {
        let Some(path) = path else { return Ok((Self::Printed, EarlierResults::default())) };
        let shown = path.display();
        let failure = |error: io::Error| {
            CommandFailure::new(Exit::Usage, format!("cannot write results to `{shown}`: {error}"))
        };
        let mut options = OpenOptions::new();
        let opened = options.read(true).write(true).create(true).truncate(false).open(path);
        let mut file = opened.map_err(failure)?;
        if !file.metadata().map_err(failure)?.is_file() {
            let text = format!("cannot write results to `{shown}`: it is not a file");
            return Err(CommandFailure::new(Exit::Usage, text)
                .hint("without `--out`, results go to standard output"));
        }
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let text = format!("another batch writes its results to `{shown}`");
                return Err(CommandFailure::new(Exit::Usage, text).hint("name another file"));
            }
            Err(TryLockError::Error(error)) => return Err(failure(error)),
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(failure)?;
        let (results, whole) = parse_results(&bytes, path)?;
        file.set_len(whole as u64).map_err(failure)?;
        file.seek(SeekFrom::End(0)).map_err(failure)?;
        if bytes[..whole].last().is_some_and(|last| *last != b'\n') {
            file.write_all(b"\n").map_err(failure)?;
        }
        let mut unfinished = path.as_os_str().to_owned();
        unfinished.push(".unfinished");
        let unfinished = PathBuf::from(unfinished);
        let sessions = read_started_tasks(&unfinished).map_err(failure)?;
        let file = ResultFile { file, path: path.to_owned(), unfinished, begun: None };
        Ok((Self::File(file), EarlierResults { results, sessions }))
    }

    /// Returns true if the batch can be continued.
    pub fn is_file(&self) -> bool {
        matches!(self, Self::File(_))
    }

    /// Records the session of a task that begins.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn record_start(&mut self, id: &str, session: &SessionId) -> Result<(), CommandFailure> {
        let Self::File(results) = self else { return Ok(()) };
        let begun = StartedTask { id: id.to_owned(), session: session.clone() };
        results.append_started_task(&begun).map_err(|error| {
            let shown = results.unfinished.display();
            CommandFailure::new(Exit::Failed, format!("cannot write `{shown}`: {error}"))
        })
    }

    /// Writes a result.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write_result(&mut self, result: &TaskResult) -> Result<(), CommandFailure> {
        match self {
            Self::Printed => report::print_json_line(&result_to_json(result)?),
            Self::File(ResultFile { file, path, .. }) => {
                let line = format!("{}\n", result_to_line(result)?);
                let written = file.write_all(line.as_bytes()).and_then(|()| file.sync_data());
                written.map_err(|error| {
                    let text = format!("cannot write results to `{}`: {error}", path.display());
                    CommandFailure::new(Exit::Failed, text)
                })
            }
        }
    }

    /// Forgets the sessions, because all tasks have results.
    pub fn remove_unfinished_file(self) {
        if let Self::File(results) = self {
            // If it stays, the next run of the command removes it.
            let _ = fs::remove_file(&results.unfinished);
        }
    }
}

impl ResultFile {
    fn append_started_task(&mut self, begun: &StartedTask) -> io::Result<()> {
        let mut file = match self.begun.take() {
            Some(file) => file,
            None => OpenOptions::new().append(true).create(true).open(&self.unfinished)?,
        };
        // A line of its own, even after one that another process did not complete.
        let line = format!("\n{}\n", serde_json::to_string(begun)?);
        file.write_all(line.as_bytes())?;
        file.sync_data()?;
        self.begun = Some(file);
        Ok(())
    }
}

fn result_to_line(result: &TaskResult) -> Result<String, CommandFailure> {
    // The fields are texts and numbers, so this cannot fail.
    serde_json::to_string(result).map_err(|error| CommandFailure::new(Exit::Failed, error))
}

fn result_to_json(result: &TaskResult) -> Result<serde_json::Value, CommandFailure> {
    serde_json::to_value(result).map_err(|error| CommandFailure::new(Exit::Failed, error))
}

/// Reads results, and returns the length without a torn last line. Any other line that is not a
/// result is an error, because the file has another purpose.
fn parse_results(
    bytes: &[u8],
    path: &Path,
) -> Result<(HashMap<String, TaskResult>, usize), CommandFailure> {
    let (mut results, mut whole) = (HashMap::new(), 0);
    for (number, line) in (1..).zip(bytes.split_inclusive(|byte| *byte == b'\n')) {
        let is_ended = line.ends_with(b"\n");
        match serde_json::from_slice::<TaskResult>(line) {
            Ok(result) => drop(results.insert(result.id.clone(), result)),
            Err(_) if is_ended && line.trim_ascii().is_empty() => {}
            Err(_) if !is_ended && is_torn(line) => return Ok((results, whole)),
            Err(_) => {
                let text = format!("`{}`, line {number}: not a result of a batch", path.display());
                return Err(
                    CommandFailure::new(Exit::Usage, text).hint("name another file with `--out`")
                );
            }
        }
        whole += line.len();
    }
    Ok((results, whole))
}

/// Returns true for the beginning of a result.
fn is_torn(line: &[u8]) -> bool {
    line.starts_with(LINE_BEGINS) || LINE_BEGINS.starts_with(line)
}

/// Reads the sessions of tasks that began. The last one of a task counts.
fn read_started_tasks(path: &Path) -> io::Result<HashMap<String, SessionId>> {
    let text = match fs::read(path) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(HashMap::new()),
        Err(error) => return Err(error),
    };
    // A torn line is that of a task that had sent no request.
    let begun = text.lines().filter_map(|line| serde_json::from_str::<StartedTask>(line).ok());
    Ok(begun.map(|begun| (begun.id, begun.session)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample_result(id: &str) -> TaskResult {
        TaskResult {
            id: id.to_owned(),
            outcome: Outcome::Done,
            exit_code: 0,
            text: "é\n".to_owned(),
            error: None,
            model: None,
            session: None,
            continued: false,
            usage: SessionUsage::default(),
            duration_ms: 1,
            task: "t".to_owned(),
        }
    }

    #[test]
    fn torn_last_line_is_dropped_wherever_it_ends() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let [first, second] = ["a", "b"].map(|id| result_to_line(&sample_result(id)).unwrap());
        for end in 0..second.len() {
            fs::write(&path, [first.as_bytes(), b"\n", &second.as_bytes()[..end]].concat())
                .unwrap();
            let (mut output, earlier) = ResultOutput::open(Some(&path)).unwrap();
            assert_eq!(earlier.results.into_values().collect::<Vec<_>>(), [sample_result("a")]);
            output.write_result(&sample_result("c")).unwrap();
            let third = result_to_line(&sample_result("c")).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), format!("{first}\n{third}\n"), "{end}");
        }
        // Only the end of the line is missing.
        fs::write(&path, format!("{first}\n{second}")).unwrap();
        let (_output, earlier) = ResultOutput::open(Some(&path)).unwrap();
        assert_eq!(earlier.results.len(), 2);
        assert_eq!(fs::read_to_string(&path).unwrap(), format!("{first}\n{second}\n"));
    }

    #[test]
    fn file_with_another_purpose_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notes");
        for text in ["hello", "{\"id\": 1}\n", "hello\n{\"id\":"] {
            fs::write(&path, text).unwrap();
            let failure = ResultOutput::open(Some(&path)).err().unwrap();
            assert!(failure.message.ends_with("not a result of a batch"), "{}", failure.message);
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
    }

    #[test]
    fn results_have_one_writer_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let first = ResultOutput::open(Some(&path)).unwrap();
        let refused = ResultOutput::open(Some(&path)).err().unwrap();
        assert!(refused.message.starts_with("another batch writes"), "{}", refused.message);
        drop(first);
        assert!(ResultOutput::open(Some(&path)).is_ok());
    }

    #[test]
    fn last_session_of_a_task_counts_and_a_torn_line_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let (mut output, _) = ResultOutput::open(Some(&path)).unwrap();
        for session in ["s1", "s2"] {
            output.record_start("a", &SessionId::from(session)).unwrap();
        }
        drop(output);
        let unfinished = folder.path().join("out.unfinished");
        let torn = [fs::read(&unfinished).unwrap(), b"\n{\"id\":\"b\"".to_vec()].concat();
        fs::write(&unfinished, torn).unwrap();
        let (mut output, earlier) = ResultOutput::open(Some(&path)).unwrap();
        assert_eq!(earlier.sessions, HashMap::from([("a".to_owned(), SessionId::from("s2"))]));
        output.record_start("c", &SessionId::from("s3")).unwrap();
        drop(output);
        let (output, earlier) = ResultOutput::open(Some(&path)).unwrap();
        assert_eq!(earlier.sessions.len(), 2);
        output.remove_unfinished_file();
        assert!(!unfinished.exists());
    }
}
