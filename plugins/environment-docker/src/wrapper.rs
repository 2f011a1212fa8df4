//! Wraps a command so that it can be ended, because the engine has no call for that.
//!
//! Engines run each command in its own session, which its first process leads. A shell as that
//! process reports its process ID, then executes the command. The ID then identifies all processes
//! of the command.

use std::path::Path;

use jaato_plugin_sdk::types::text::one_line;
use jaato_plugin_sdk::types::{Error, ErrorKind, Result};

/// Changes to the folder `$1`, checks that the program exists, reports the shell's process ID on
/// standard error, and executes the remaining words. The shell itself may print warnings before
/// that (about a missing locale or library), possibly without a line end.
const PLAIN: &str = r#"cd -- "$1" 2>/dev/null || { echo '
jaato-wrapper !' >&2; exit 126; }
shift
command -v "$1" >/dev/null 2>&1 || { echo '
jaato-wrapper ?' >&2; exit 127; }
echo "
jaato-wrapper $$" >&2
exec "$@""#;

/// The same on a terminal. Also waits for a line, so that the terminal's size is set first.
const TERMINAL: &str = r#"cd -- "$1" 2>/dev/null || { echo '
jaato-wrapper !'; exit 126; }
shift
command -v "$1" >/dev/null 2>&1 || { echo '
jaato-wrapper ?'; exit 127; }
echo "
jaato-wrapper $$"
IFS= read -r _
exec "$@""#;

/// The beginning of the line with the process ID.
const MARK: &[u8] = b"jaato-wrapper ";

/// The maximum number of bytes before that line. More output is an error message.
const BEFORE_BYTES_MAX: usize = 16 * 1024;

/// Returns the words that start a command in a folder of the container.
pub fn plain_command_words(folder: &Path, words: &[String]) -> Vec<String> {
    wrap_command(PLAIN, folder, words)
}

/// Returns the words that start a command on a terminal.
pub fn terminal_command_words(folder: &Path, words: &[String]) -> Vec<String> {
    wrap_command(TERMINAL, folder, words)
}

fn wrap_command(script: &str, folder: &Path, words: &[String]) -> Vec<String> {
    let folder = folder.to_string_lossy().into_owned();
    let head = ["sh", "-c", script, "sh"].map(str::to_owned);
    head.into_iter().chain([folder]).chain(words.iter().cloned()).collect()
}

/// The report of the shell.
#[derive(Debug, PartialEq, Eq)]
pub enum WrapperReport {
    /// The shell's process ID, which is the session number. The command follows.
    Session(u32),
    /// The folder does not exist.
    NoFolder,
    /// The program does not exist.
    NoProgram,
}

/// Removes the shell's line, and the output before it. Returns `None` until the line is complete.
///
/// # Errors
/// `failed` if there is much output without such a line. The error contains that output.
pub fn take_report(bytes: &mut Vec<u8>) -> Result<Option<WrapperReport>> {
    let Some((told, end)) = find_report(bytes) else {
        let is_too_much = bytes.len() > BEFORE_BYTES_MAX;
        return if is_too_much { Err(command_start_error(bytes)) } else { Ok(None) };
    };
    bytes.drain(..end);
    Ok(Some(told))
}

/// Finds the line and its end.
fn find_report(bytes: &[u8]) -> Option<(WrapperReport, usize)> {
    let mut begin = 0;
    while let Some(length) = bytes[begin..].iter().position(|byte| *byte == b'\n') {
        let (line, end) = (&bytes[begin..begin + length], begin + length + 1);
        if let Some(word) = line.strip_prefix(MARK) {
            // A terminal uses other line ends.
            match std::str::from_utf8(word).unwrap_or_default().trim_end() {
                "!" => return Some((WrapperReport::NoFolder, end)),
                "?" => return Some((WrapperReport::NoProgram, end)),
                number => {
                    if let Ok(session) = number.parse() {
                        return Some((WrapperReport::Session(session), end));
                    }
                }
            }
        }
        begin = end;
    }
    None
}

/// Returns the error for a command that did not start, from the output that came instead of the
/// process ID.
pub fn command_start_error(bytes: &[u8]) -> Error {
    let said = one_line(&String::from_utf8_lossy(bytes));
    if said.contains("\"sh\"") {
        let text = format!("the container has no `sh`, or no permission to run it: {said}");
        return Error::failed(text).with_hint("commands need a shell: use an image that has one");
    }
    let said = if said.is_empty() { "it printed nothing".to_owned() } else { said };
    Error::failed(format!("the command did not start in the container: {said}"))
}

/// Returns the error for a missing folder.
pub fn missing_folder_error(folder: &Path) -> Error {
    let text = format!("no folder `{}` in the container", folder.display());
    Error::new(ErrorKind::NotFound, text)
}

/// Returns the error for a missing program.
pub fn missing_program_error(words: &[String]) -> Error {
    let program = words.first().map_or("", String::as_str);
    let text = format!("no program `{program}` in the container");
    Error::new(ErrorKind::NotFound, text).with_hint("use an image that contains it")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_report(text: &str, told: Option<WrapperReport>, rest: &str) {
        let mut bytes = text.as_bytes().to_vec();
        assert_eq!(take_report(&mut bytes).unwrap(), told);
        assert_eq!(bytes, rest.as_bytes());
    }

    #[test]
    fn complete_wrapper_report_is_removed_with_the_output_before_it() {
        check_report("\njaato-wrapper 12", None, "\njaato-wrapper 12");
        check_report("\njaato-wrapper 12\nrest\n", Some(WrapperReport::Session(12)), "rest\n");
        check_report("\r\njaato-wrapper 12\r\n", Some(WrapperReport::Session(12)), "");
        check_report("\njaato-wrapper !\n", Some(WrapperReport::NoFolder), "");
        check_report("\njaato-wrapper ?\n", Some(WrapperReport::NoProgram), "");
        let warning = "sh: warning: setlocale: LC_ALL: cannot change locale (en_US.UTF-8)";
        let told = Some(WrapperReport::Session(12));
        check_report(&format!("{warning}\n\njaato-wrapper 12\nrest"), told, "rest");
        check_report(
            &format!("{warning}\njaato-wrapper 12\nrest"),
            Some(WrapperReport::Session(12)),
            "rest",
        );
        check_report("12\njaato-wrapper x\n", None, "12\njaato-wrapper x\n");
    }

    #[test]
    fn output_without_a_wrapper_report_becomes_the_start_error() {
        let text = b"OCI runtime exec failed: exec: \"sh\": executable file not found\n";
        let error = command_start_error(text);
        assert!(error.message.starts_with("the container has no `sh`"), "{error}");
        let said = |bytes: usize| take_report(&mut vec![b'x'; bytes]);
        assert_eq!(said(BEFORE_BYTES_MAX).unwrap(), None);
        assert!(said(BEFORE_BYTES_MAX + 1).is_err());
    }

    #[test]
    fn command_words_are_passed_unchanged() {
        let words = ["a b", "$(c)", ""].map(str::to_owned);
        let all = plain_command_words(Path::new("/f"), &words);
        assert_eq!(all[4..], ["/f", "a b", "$(c)", ""]);
    }
}
