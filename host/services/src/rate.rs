//! Counts a plugin's requests, in total and per minute.

use std::collections::VecDeque;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// The requests of one call or instance.
#[derive(Debug, Default)]
pub struct RequestRateLimit(Mutex<RateWindow>);

#[derive(Debug, Default)]
struct RateWindow {
    taken: u32,
    /// The times of requests within the last minute.
    recent: VecDeque<Instant>,
}

impl RequestRateLimit {
    /// Counts one request. Returns false if the total of `max` is already reached.
    pub fn take_of_total(&self, max: u32) -> bool {
        let mut state = self.0.lock();
        let has_room = state.taken < max;
        state.taken += u32::from(has_room);
        has_room
    }

    /// Counts one request. Returns false if `max` requests were already made within a minute.
    pub fn take_in_minute(&self, max: u32) -> bool {
        let (mut state, now) = (self.0.lock(), Instant::now());
        while state.recent.front().is_some_and(|at| now - *at >= Duration::from_secs(60)) {
            state.recent.pop_front();
        }
        let has_room = state.recent.len() < max as usize;
        if has_room {
            state.recent.push_back(now);
        }
        has_room
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn rate_limit_allows_a_request_again_after_one_minute() {
        let rate = RequestRateLimit::default();
        assert_eq!([rate.take_of_total(1), rate.take_of_total(1)], [true, false]);
        assert_eq!([rate.take_in_minute(1), rate.take_in_minute(1)], [true, false]);
        tokio::time::advance(Duration::from_secs(59)).await;
        assert!(!rate.take_in_minute(1));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(rate.take_in_minute(1));
    }
}
