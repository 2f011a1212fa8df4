//! Describes plugins in short-lived children, so that code of strangers never runs in the host.

use std::path::Path;
use std::time::Duration;

use jaato_process::{Command, ErrorOutput, Exit, Limits, Output, ProcessError, Supervisor};
use jaato_types::{Description, Error, ErrorKind, FRAME_BYTES_MAX};
use jaato_worker::{Answer, DESCRIBE_ARGUMENTS};
use tokio::io::{AsyncRead, AsyncReadExt as _};

/// How long a description may take. It only lists what the plugin has.
pub const DESCRIBE_DEADLINE: Duration = Duration::from_secs(5);

/// Address space of the describing child: a plugin with a model runtime maps much code, no data.
const DESCRIBE_MEMORY_BYTES: u64 = 1024 * 1024 * 1024;

/// Descriptors of the describing child.
const DESCRIBE_OPEN_FILES: u64 = 64;

/// Most of what a child printed that an error repeats.
const PRINTED_BYTES_MAX: usize = 400;

/// Describes one plugin file.
///
/// # Errors
/// One line that says what happened: refused by the loader, panicked, crashed, hung.
pub async fn describe(
    supervisor: &Supervisor,
    executable: &Path,
    plugin: &Path,
) -> Result<Description, Error> {
    let (ours, theirs) = std::io::pipe().map_err(no_pipe)?;
    let mut command = Command::new(executable, std::env::temp_dir());
    command.args = DESCRIBE_ARGUMENTS.iter().map(Into::into).collect();
    command.args.push(plugin.into());
    command.variables = [("PATH", "/usr/bin:/bin"), ("LANG", "C.UTF-8")]
        .map(|(name, value)| (name.into(), value.into()))
        .into();
    command.stdout = Output::Piped;
    command.stderr = ErrorOutput::Merged;
    command.descriptor3 = Some(theirs.into());
    command.limits = Limits {
        memory_bytes: Some(DESCRIBE_MEMORY_BYTES),
        open_files: Some(DESCRIBE_OPEN_FILES),
        cpu_seconds: Some(DESCRIBE_DEADLINE.as_secs() + 1),
    };
    let mut child = supervisor.spawn(command).await.map_err(not_started)?;

    let ours = tokio::net::unix::pipe::Receiver::from_owned_fd(ours.into()).map_err(no_pipe)?;
    let printed = child.stdout.take();
    let talk = async {
        let (answer, printed) =
            tokio::join!(read_at_most(ours, FRAME_BYTES_MAX + 1), read_printed(printed));
        (answer, printed, child.wait().await)
    };
    let Ok((answer, printed, exit)) = tokio::time::timeout(DESCRIBE_DEADLINE, talk).await else {
        // Ended by force; an error of that would say less than the deadline does.
        let _ = child.end().await;
        let text = format!("describing it took longer than {} s", DESCRIBE_DEADLINE.as_secs());
        return Err(Error::new(ErrorKind::Timeout, text));
    };
    answer_of(&answer, &printed, exit)
}

fn answer_of(
    answer: &[u8],
    printed: &str,
    exit: Result<Exit, ProcessError>,
) -> Result<Description, Error> {
    if answer.len() > FRAME_BYTES_MAX {
        let text = format!("its description has more than {FRAME_BYTES_MAX} bytes");
        return Err(Error::new(ErrorKind::LimitReached, text));
    }
    match (serde_json::from_slice(answer), exit) {
        (Ok(Answer::Ok(description)), _) => Ok(*description),
        (Ok(Answer::Error(error)), _) => Err(error),
        (Err(_), Ok(exit)) => {
            let end = match exit {
                Exit::Code(code) => format!("exited with {code}"),
                Exit::Signal(signal) => format!("was ended by signal {signal}"),
            };
            let printed = match printed.trim() {
                "" => String::new(),
                text => format!("; it printed: {}", text.replace('\n', " ⏎ ")),
            };
            let text = format!("describing it failed: its process {end}{printed}");
            Err(Error::new(ErrorKind::PluginMisbehaved, text))
        }
        (Err(_), Err(error)) => Err(not_started(error)),
    }
}

async fn read_at_most(mut from: impl AsyncRead + Unpin, bytes_max: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    // What was read before an error is judged like a short answer.
    let _ = (&mut from).take(bytes_max as u64).read_to_end(&mut bytes).await;
    bytes
}

/// Reads all that the child prints, so that it cannot stand still, and keeps the end of it.
async fn read_printed(from: Option<impl AsyncRead + Unpin>) -> String {
    let Some(mut from) = from else { return String::new() };
    let (mut kept, mut buffer) = (Vec::new(), vec![0; 4096]);
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        kept.extend_from_slice(&buffer[..read]);
        let surplus = kept.len().saturating_sub(PRINTED_BYTES_MAX);
        kept.drain(..surplus);
    }
    String::from_utf8_lossy(&kept).into_owned()
}

fn no_pipe(error: std::io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("cannot make a pipe for the describing process: {error}"))
}

fn not_started(error: ProcessError) -> Error {
    let text = format!("cannot run the describing process: {error}");
    let described = Error::new(ErrorKind::Io, text);
    match error.hint() {
        Some(hint) => described.with_hint(hint),
        None => described,
    }
}
