//! Shows the user as much of a running call's output as a human can read.
//!
//! Shown text waits in the host for a slow terminal, so it is limited: a burst, then a rate.

use tokio::time::Instant;

/// The bytes that are shown in one piece.
const BURST_BYTES: u64 = 64 * 1024;

/// The bytes that are shown per second after that.
const BYTES_PER_SECOND: u64 = 64 * 1024;

/// Limits the text that the user sees.
pub(super) struct LiveOutputLimit {
    room: u64,
    since: Instant,
    skipped: u64,
}

impl LiveOutputLimit {
    /// Starts with room for a burst.
    pub(super) fn new() -> Self {
        Self { room: BURST_BYTES, since: Instant::now(), skipped: 0 }
    }

    /// Returns the text to show for a piece at this time, and counts the bytes that are not shown.
    pub(super) fn next_shown_text(&mut self, text: &str, now: Instant) -> Option<String> {
        let passed_ms = now.saturating_duration_since(self.since).as_millis();
        // Not for less than a millisecond, because frequent pieces would otherwise stop the clock.
        if passed_ms > 0 {
            let passed_ms = u64::try_from(passed_ms).unwrap_or(u64::MAX);
            let refill = passed_ms.saturating_mul(BYTES_PER_SECOND) / 1000;
            self.room = self.room.saturating_add(refill).min(BURST_BYTES);
            self.since = now;
        }
        let fits = text.floor_char_boundary(usize::try_from(self.room).unwrap_or(usize::MAX));
        // After skipped bytes, the start of a piece is shown only when the burst is available
        // again. Otherwise the user would see a note after every few bytes.
        let is_shown = fits == text.len() || self.skipped == 0 || self.room == BURST_BYTES;
        let (begin, rest) = text.split_at(if is_shown { fits } else { 0 });
        let mut shown = String::new();
        if is_shown {
            shown = self.finish() + begin;
            self.room -= begin.len() as u64;
        }
        self.skipped += rest.len() as u64;
        (!shown.is_empty()).then_some(shown)
    }

    /// Returns a note about the bytes skipped last.
    pub(super) fn finish(&mut self) -> String {
        match std::mem::take(&mut self.skipped) {
            0 => String::new(),
            skipped => format!("\n[… {skipped} bytes not shown …]\n"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn live_output_shows_a_burst_and_then_limits_the_rate() {
        let mut live = LiveOutputLimit::new();
        let (begin, piece) = (live.since, "x".repeat(16 * 1024));
        let mut take =
            |after_ms| live.next_shown_text(&piece, begin + Duration::from_millis(after_ms));
        for _ in 0..4 {
            assert_eq!(take(0).map(|text| text.len()), Some(16 * 1024));
        }
        assert_eq!((take(0), take(200)), (None, None));
        let later = take(300).unwrap();
        assert!(later.starts_with("\n[… 32768 bytes not shown …]\nxxx"), "{:.60}", later);
        assert_eq!(take(310).map(|text| text.len()), Some(3_931), "the beginning that fits");
        assert_eq!(take(320), None);
    }

    #[test]
    fn beginning_of_a_piece_that_is_too_large_is_shown_and_the_rest_is_counted() {
        let mut live = LiveOutputLimit::new();
        let (begin, piece) = (live.since, format!("xx{}", "€".repeat(30_000)));
        let shown = live.next_shown_text(&piece, begin).unwrap();
        assert_eq!((shown.len(), piece.starts_with(&shown)), (64 * 1024 - 2, true));
        assert_eq!(live.next_shown_text("more", begin), None);
        let later = live.next_shown_text(&piece, begin + Duration::from_secs(2)).unwrap();
        let note = format!("\n[… {} bytes not shown …]\nxx€", piece.len() - shown.len() + 4);
        assert!(later.starts_with(&note), "{later:.60}");
    }
}
