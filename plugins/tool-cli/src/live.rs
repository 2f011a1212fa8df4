//! Shows a person what a command prints, while it does: as much as somebody can read.
//!
//! What is emitted waits in the host for a slow terminal. So it is bounded: a burst, and then a
//! rate.

use std::time::Instant;

use jaato_plugin_sdk::Reporter;
use jaato_plugin_sdk::process::OutputStream;

use crate::plain::Plain;

/// Bytes that are shown at once.
const BURST_BYTES: u64 = 64 * 1024;

/// Bytes that are shown a second after that.
const BYTES_PER_SECOND: u64 = 64 * 1024;

/// What a person is shown.
pub struct Live {
    stdout: Plain,
    stderr: Plain,
    room: u64,
    since: Instant,
    skipped: u64,
}

impl Live {
    /// Begins.
    pub fn new() -> Self {
        let (stdout, stderr) = (Plain::default(), Plain::default());
        Self { stdout, stderr, room: BURST_BYTES, since: Instant::now(), skipped: 0 }
    }

    /// Shows a piece, or counts it as skipped.
    pub fn show(&mut self, host: &Reporter, stream: OutputStream, bytes: &[u8]) {
        if let Some(text) = self.take(stream, bytes, Instant::now()) {
            // Nobody need be there: the output is for the model.
            host.output(text);
        }
    }

    /// Says what was skipped last.
    pub fn finish(&mut self, host: &Reporter) {
        let mut rest = String::from(self.stdout.finish());
        rest += self.stderr.finish();
        if let Some(note) = self.note() {
            rest += &note;
        }
        if !rest.is_empty() {
            host.output(rest);
        }
    }

    fn take(&mut self, stream: OutputStream, bytes: &[u8], now: Instant) -> Option<String> {
        let passed_ms = now.saturating_duration_since(self.since).as_millis();
        // Not for less than a millisecond, or pieces that come faster would stop the clock.
        if passed_ms > 0 {
            let passed_ms = u64::try_from(passed_ms).unwrap_or(u64::MAX);
            let refill = passed_ms.saturating_mul(BYTES_PER_SECOND) / 1000;
            self.room = self.room.saturating_add(refill).min(BURST_BYTES);
            self.since = now;
        }
        let Some(room) = self.room.checked_sub(bytes.len() as u64) else {
            self.skipped += bytes.len() as u64;
            return None;
        };
        self.room = room;
        let note = self.note();
        let plain = match stream {
            OutputStream::Stdout => &mut self.stdout,
            OutputStream::Stderr => &mut self.stderr,
        };
        let text = note.unwrap_or_default() + &plain.text(bytes);
        (!text.is_empty()).then_some(text)
    }

    fn note(&mut self) -> Option<String> {
        let skipped = std::mem::take(&mut self.skipped);
        (skipped > 0).then(|| {
            // What was begun before the gap does not go on behind it.
            (self.stdout, self.stderr) = (Plain::default(), Plain::default());
            format!("\n[… {skipped} bytes not shown …]\n")
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_burst_is_shown_and_then_as_much_as_time_allows() {
        let mut live = Live::new();
        let (begin, piece) = (live.since, vec![b'x'; 16 * 1024]);
        let mut take = |after_ms| {
            let now = begin + Duration::from_millis(after_ms);
            live.take(OutputStream::Stdout, &piece, now)
        };
        for _ in 0..4 {
            assert_eq!(take(0).map(|text| text.len()), Some(16 * 1024));
        }
        assert_eq!((take(0), take(200)), (None, None));
        let later = take(300).unwrap();
        assert!(later.starts_with("\n[… 32768 bytes not shown …]\nxxx"), "{:.60}", later);
        assert_eq!(take(310), None);
    }
}
