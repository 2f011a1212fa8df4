//! Shows the user results while a search runs, up to a limit.

use jaato_plugin_sdk::Reporter;
use jaato_plugin_sdk::types::Delta;

/// The maximum number of lines to show for one search.
const LINES_MAX: usize = 200;

/// The maximum length of a shown line, in characters.
const LINE_CHARS_MAX: usize = 200;

/// The live display of a search.
#[derive(Default)]
pub struct LiveSearchOutput {
    shown: usize,
    left_out: usize,
    text: String,
}

impl LiveSearchOutput {
    /// Adds a line.
    pub fn add_line(&mut self, line: &str) {
        if self.shown == LINES_MAX {
            self.left_out += 1;
            return;
        }
        self.shown += 1;
        // Control characters could move the cursor.
        let signs = line.chars().map(|sign| if sign.is_control() { ' ' } else { sign });
        self.text.extend(signs.take(LINE_CHARS_MAX));
        self.text.push('\n');
    }

    /// Shows the added lines and the progress.
    pub fn show_progress(&mut self, host: &Reporter, label: &str, done: u64) {
        if self.text.is_empty() {
            host.emit(&Delta::progress_so_far(label, done));
            return;
        }
        // No one has to receive it, because the result is for the model.
        host.output(std::mem::take(&mut self.text));
    }

    /// Shows the last line.
    pub fn show_last_line(mut self, host: &Reporter, last: &str) {
        if self.left_out > 0 {
            self.text.push_str(&format!("[… {} lines not shown …]\n", self.left_out));
        }
        self.text.push_str(last);
        self.text.push('\n');
        host.output(self.text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn live_lines_are_limited_and_contain_no_cursor_movement() {
        let mut live = LiveSearchOutput::default();
        for _ in 0..LINES_MAX + 2 {
            live.add_line(&format!("\u{1b}[2J\r{}", "é".repeat(500)));
        }
        assert_eq!((live.shown, live.left_out), (LINES_MAX, 2));
        assert!(!live.text.contains(['\u{1b}', '\r']));
        assert_eq!(live.text.lines().next().unwrap().chars().count(), LINE_CHARS_MAX);
    }
}
