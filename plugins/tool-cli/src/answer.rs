//! The answer to the model: what was printed, as far as there is room, and how the command ended.
//! Pure.

use std::time::Duration;

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::process::{LeftRunning, ProcessExit, signal_name};
use jaato_plugin_sdk::serde_json::Map;

use crate::collect::{Collected, NotKept};
use crate::kept::{Kept, Shown, json_bytes};

/// Bytes of an answer that a host lets through which does not say how many.
const ANSWER_BYTES: usize = 16 * 1024;

/// Bytes of an answer for what stands beside the outputs; less where the whole has little room.
const BESIDE_BYTES: usize = 2 * 1024;

/// Bytes for the line between head and tail.
const GAP_BYTES: usize = 64;

/// Processes that are listed of those left running.
const LEFT_LISTED_MAX: usize = 16;

/// Returns how many bytes of JSON both outputs may take together, where an answer may have so many
/// (`session.output_bytes_max`).
pub fn text_bytes_max(answer_bytes: Option<usize>) -> usize {
    let answer = answer_bytes.unwrap_or(ANSWER_BYTES);
    answer - BESIDE_BYTES.min(answer / 2)
}

/// How the room is shared between the two outputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Share {
    /// There is enough for both.
    Whole,
    /// Bytes of JSON for each; none where it is shown whole.
    Cut {
        /// For standard output.
        stdout: Option<usize>,
        /// For standard error.
        stderr: Option<usize>,
    },
}

impl Share {
    /// Shares so many bytes: what one does not need of its half goes to the other.
    pub fn of(room: usize, stdout: &Kept, stderr: &Kept) -> Self {
        let cost = |kept: &Kept| kept.whole().map(|text| json_bytes(&text));
        let half = room / 2;
        match (cost(stdout), cost(stderr)) {
            (Some(one), Some(other)) if one + other <= room => Self::Whole,
            (Some(one), _) if one <= half => Self::Cut { stdout: None, stderr: Some(room - one) },
            (_, Some(other)) if other <= half => {
                Self::Cut { stdout: Some(room - other), stderr: None }
            }
            _ => Self::Cut { stdout: Some(half), stderr: Some(half) },
        }
    }
}

/// Makes the answer.
pub fn answer(collected: &Collected, timeout: Duration) -> Map<String, Value> {
    let (for_stdout, for_stderr) = match collected.share {
        Share::Whole => (None, None),
        Share::Cut { stdout, stderr } => (stdout, stderr),
    };
    let stdout = shown(&collected.stdout, for_stdout);
    let stderr = shown(&collected.stderr, for_stderr);
    let notes =
        [note("stdout", &collected.stdout, &stdout), note("stderr", &collected.stderr, &stderr)];
    let mut answer = Map::new();
    answer.insert("stdout".to_owned(), stdout.text.into());
    answer.insert("stderr".to_owned(), stderr.text.into());
    tell_exit(&mut answer, &collected.exit, timeout);
    tell_left(&mut answer, &collected.exit.left_running);
    if collected.share != Share::Whole {
        tell_cut(&mut answer, notes.into_iter().flatten().collect(), collected.file.as_ref());
    }
    answer
}

fn shown(kept: &Kept, room: Option<usize>) -> Shown {
    let whole = || Shown { text: kept.whole().unwrap_or_default(), ends: None };
    room.map_or_else(whole, |room| kept.cut(room.saturating_sub(GAP_BYTES)))
}

fn note(name: &str, kept: &Kept, shown: &Shown) -> Option<String> {
    let (head, tail) = shown.ends?;
    let bytes = kept.printed();
    Some(format!(
        "{name} has {bytes} bytes, shown are {head} of its beginning and {tail} of its end"
    ))
}

fn tell_exit(answer: &mut Map<String, Value>, exit: &ProcessExit, timeout: Duration) {
    answer.insert("returncode".to_owned(), json!(exit.code));
    if let Some(number) = exit.signal {
        let name = signal_name(number).map_or_else(|| format!("signal {number}"), str::to_owned);
        answer.insert("signal".to_owned(), json!({ "name": name, "number": number }));
    }
    if exit.timed_out {
        answer.insert("timed_out".to_owned(), true.into());
        // Whole wherever it is, as calls ask for it.
        let is_whole = timeout.subsec_nanos() == 0;
        let seconds =
            if is_whole { json!(timeout.as_secs()) } else { json!(timeout.as_secs_f64()) };
        answer.insert("timeout_seconds".to_owned(), seconds);
    }
}

fn tell_left(answer: &mut Map<String, Value>, left: &[LeftRunning]) {
    if left.is_empty() {
        return;
    }
    let listed: Vec<_> = left
        .iter()
        .take(LEFT_LISTED_MAX)
        .map(|process| json!({ "pid": process.pid, "name": process.name }))
        .collect();
    answer.insert("left_running".to_owned(), listed.into());
    if left.len() > LEFT_LISTED_MAX {
        answer.insert("left_running_count".to_owned(), left.len().into());
    }
}

fn tell_cut(
    answer: &mut Map<String, Value>,
    notes: Vec<String>,
    file: Option<&std::result::Result<String, NotKept>>,
) {
    let notes = notes.join("; ");
    let (path, place) = match file {
        Some(Ok(path)) => {
            let place = "the whole, stdout and stderr as they came, is in output_file";
            (Some(path.as_str()), place.to_owned())
        }
        Some(Err(NotKept { begun: Some(begun), error })) => {
            let place = format!(
                "only the first {} bytes, stdout and stderr as they came, are in output_file: {}",
                begun.bytes, error.message
            );
            (Some(begun.path.as_str()), place)
        }
        Some(Err(NotKept { begun: None, error })) => {
            (None, format!("the whole could not be kept: {}", error.message))
        }
        None => (None, "the whole was not kept".to_owned()),
    };
    if let Some(path) = path {
        answer.insert("output_file".to_owned(), path.into());
    }
    answer.insert("truncated".to_owned(), true.into());
    answer.insert("truncation_message".to_owned(), format!("{notes}; {place}").into());
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT_BYTES_MAX: usize = 14 * 1024;
    const TEN_SECONDS: Duration = Duration::from_secs(10);

    fn collected(stdout: &[u8], stderr: &[u8]) -> Collected {
        collected_for(TEXT_BYTES_MAX, stdout, stderr)
    }

    fn collected_for(room: usize, stdout: &[u8], stderr: &[u8]) -> Collected {
        let (mut out, mut err) = (Kept::for_room(room), Kept::for_room(room));
        out.push(stdout);
        err.push(stderr);
        let share = Share::of(room, &out, &err);
        let exit = ProcessExit { code: Some(0), ..ProcessExit::default() };
        Collected { stdout: out, stderr: err, share, exit, file: Some(Ok("/o/f.txt".into())) }
    }

    #[test]
    fn a_short_output_is_told_as_it_is() {
        let short = collected(b"one\n", b"");
        let expected = json!({ "stdout": "one\n", "stderr": "", "returncode": 0 });
        assert_eq!(Value::Object(answer(&short, TEN_SECONDS)), expected);
    }

    #[test]
    fn a_signal_and_a_deadline_are_told_apart_from_a_code() {
        let mut ended = collected(b"", b"");
        ended.exit = ProcessExit { signal: Some(9), timed_out: true, ..ProcessExit::default() };
        let expected = json!({
            "stdout": "",
            "stderr": "",
            "returncode": null,
            "signal": { "name": "SIGKILL", "number": 9 },
            "timed_out": true,
            "timeout_seconds": 10,
        });
        assert_eq!(Value::Object(answer(&ended, TEN_SECONDS)), expected);
        let half = answer(&ended, Duration::from_millis(500));
        assert_eq!(half["timeout_seconds"], 0.5);
    }

    #[test]
    fn the_room_that_one_output_does_not_need_is_the_others() {
        let long = vec![b'x'; 100_000];
        let share = |out: &[u8], err: &[u8]| collected(out, err).share;
        assert_eq!(share(&[b'x'; TEXT_BYTES_MAX], b""), Share::Whole);
        let cut = |stdout, stderr| Share::Cut { stdout, stderr };
        assert_eq!(share(&[b'x'; TEXT_BYTES_MAX + 1], b""), cut(Some(TEXT_BYTES_MAX), None));
        assert_eq!(share(b"ab", &long), cut(None, Some(TEXT_BYTES_MAX - 2)));
        assert_eq!(share(&long, b"ab"), cut(Some(TEXT_BYTES_MAX - 2), None));
        let half = Some(TEXT_BYTES_MAX / 2);
        assert_eq!(share(&long, &long), cut(half, half));
    }

    #[test]
    fn whatever_was_printed_fits_into_what_the_host_lets_through() {
        let path = format!("/{}", "p".repeat(400));
        let alike = [b'x', b'"', b'\n', 0, 0xff, 0x1b].map(|byte| vec![byte; 300_000]);
        // A line that was begun anew, and another.
        let anew = b"ab\rcde\r\nfghij\n".repeat(20_000);
        for printed in [&alike[..], &[anew]].concat() {
            let mut large = collected(&printed, &printed);
            large.file = Some(Ok(path.clone()));
            let one = LeftRunning { pid: 4_000_000, name: "n".repeat(15) };
            large.exit.left_running = vec![one; 100];
            large.exit.signal = Some(15);
            large.exit.timed_out = true;
            let json = Value::Object(answer(&large, TEN_SECONDS)).to_string();
            assert!(json.len() <= 16 * 1024, "{:?}: {}", &printed[..3], json.len());
            let bytes = format!("stdout has {} bytes", printed.len());
            assert!(json.contains(&bytes), "{:?}", &printed[..3]);
        }
    }

    #[test]
    fn what_is_shown_follows_what_an_answer_may_have() {
        assert_eq!(text_bytes_max(None), TEXT_BYTES_MAX);
        for answer_bytes in [1024, 4096, 65_536, 1 << 20] {
            let room = text_bytes_max(Some(answer_bytes));
            let mut large = collected_for(room, &[b'x'; 3 << 20], b"bad\n");
            large.file = Some(Ok(format!("/{}", "p".repeat(99))));
            let answer = answer(&large, TEN_SECONDS);
            assert_eq!((&answer["stderr"], &answer["returncode"]), (&json!("bad\n"), &json!(0)));
            let bytes = Value::Object(answer).to_string().len();
            let least = answer_bytes - BESIDE_BYTES.min(answer_bytes / 2);
            assert!((least..=answer_bytes).contains(&bytes), "{bytes} of {answer_bytes}");
        }
    }

    #[test]
    fn a_file_that_could_not_be_kept_is_told() {
        let mut large = collected(&[b'x'; 300_000], b"");
        let error = Error::new(ErrorKind::Io, "the disk is full");
        large.file = Some(Err(NotKept { begun: None, error }));
        let answer = answer(&large, TEN_SECONDS);
        let message = answer["truncation_message"].as_str().unwrap();
        assert!(message.ends_with("the whole could not be kept: the disk is full"), "{message}");
        assert!(!answer.contains_key("output_file"));
    }
}
