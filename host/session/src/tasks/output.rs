//! A task's newest output, read by exact offsets.

use jaato_types::tasks::TASK_OUTPUT_BYTES_MAX;
use parking_lot::Mutex;
use tokio::sync::Notify;

/// The output of a call that is, or may become, a task.
#[derive(Default)]
pub(crate) struct TaskOutput {
    kept: Mutex<TaskOutputBuffer>,
    /// Wakes code that waits for more.
    more: Notify,
}

#[derive(Default)]
struct TaskOutputBuffer {
    text: String,
    /// Bytes before the text that are not kept.
    before: u64,
    /// Whether the task has ended, so that no more output will come.
    is_whole: bool,
}

/// A piece of the output.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct OutputPiece {
    /// The text.
    pub text: String,
    /// The offset of the byte after it.
    pub offset: u64,
    /// Bytes between the requested offset and the text that are not kept.
    pub lost_bytes: u64,
}

impl TaskOutput {
    /// Adds a piece. The oldest text is dropped to make room.
    pub(crate) fn push(&self, text: &str) {
        let mut kept = self.kept.lock();
        kept.text.push_str(text);
        let surplus = kept.text.len().saturating_sub(TASK_OUTPUT_BYTES_MAX);
        if surplus > 0 {
            let cut = kept.text.ceil_char_boundary(surplus);
            kept.text.drain(..cut);
            kept.before += cut as u64;
        }
        drop(kept);
        self.more.notify_waiters();
    }

    /// Counts all bytes, kept or not.
    pub(crate) fn total_bytes(&self) -> u64 {
        let kept = self.kept.lock();
        kept.before + kept.text.len() as u64
    }

    /// Returns at most the first `bytes_max` bytes of the last line that is not blank.
    pub(crate) fn last_line(&self, bytes_max: usize) -> String {
        let kept = self.kept.lock();
        let line = kept.text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
        line[..line.floor_char_boundary(bytes_max)].trim().to_owned()
    }

    /// Reads whole characters from an offset on, at most this many bytes.
    pub(crate) fn read_piece(&self, offset: u64, bytes_max: u64) -> OutputPiece {
        let kept = self.kept.lock();
        let end = kept.before + kept.text.len() as u64;
        let from = offset.clamp(kept.before, end);
        // Fits into `usize`, because it is an offset into a text in memory.
        let start = kept.text.ceil_char_boundary((from - kept.before) as usize);
        let wanted = usize::try_from(bytes_max).unwrap_or(usize::MAX);
        let stop = kept.text.floor_char_boundary(start.saturating_add(wanted).min(kept.text.len()));
        let text = kept.text[start..stop.max(start)].to_owned();
        let offset_behind = kept.before + (start + text.len()) as u64;
        let lost_bytes = kept.before.saturating_sub(offset);
        OutputPiece { text, offset: offset_behind, lost_bytes }
    }

    /// Becomes ready when there are more than this many bytes, or no more will come.
    pub(crate) async fn wait_for_more_than(&self, bytes: u64) {
        let more = self.more.notified();
        tokio::pin!(more);
        // Registers before it checks, so that it does not miss output between the two.
        more.as_mut().enable();
        let is_whole = self.kept.lock().is_whole;
        if !is_whole && self.total_bytes() <= bytes {
            more.await;
        }
    }

    /// Marks the output as complete.
    pub(crate) fn mark_complete(&self) {
        self.kept.lock().is_whole = true;
        self.more.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_line_skips_blank_lines_and_has_a_maximum_length() {
        let output = TaskOutput::default();
        assert_eq!(output.last_line(9), "");
        output.push("one\n two\n\n  \n");
        assert_eq!(output.last_line(9), "two");
        output.push("aä");
        assert_eq!(output.last_line(2), "a");
    }

    #[test]
    fn task_output_is_read_by_offset_and_lost_bytes_are_counted() {
        let output = TaskOutput::default();
        output.push("aäb");
        assert_eq!(
            output.read_piece(0, 2),
            OutputPiece { text: "a".into(), offset: 1, lost_bytes: 0 }
        );
        assert_eq!(
            output.read_piece(1, 9),
            OutputPiece { text: "äb".into(), offset: 4, lost_bytes: 0 }
        );
        assert_eq!(
            output.read_piece(9, 9),
            OutputPiece { text: String::new(), offset: 4, lost_bytes: 0 }
        );
        output.push(&"x".repeat(TASK_OUTPUT_BYTES_MAX - 2));
        let piece = output.read_piece(0, 1);
        assert_eq!((piece.text.as_str(), piece.offset, piece.lost_bytes), ("b", 4, 3));
        assert_eq!(output.total_bytes(), TASK_OUTPUT_BYTES_MAX as u64 + 2);
    }
}
