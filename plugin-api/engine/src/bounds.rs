//! Limits on a plugin's state on the host's side, and on the cost of one piece of its JSON.
//!
//! The limits apply to plugins in the host and in a worker. A plugin that sends requests without
//! waiting for answers would use memory and descriptors that other plugins need. The host refuses
//! requests that exceed a limit with `limit_reached`, and other plugins are not affected.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use jaato_types::{Error, ErrorKind, PluginName};

/// The maximum number of unanswered service requests of one context. Enough to process some hundred
/// files in parallel.
pub const QUESTIONS_MAX: usize = 512;

/// The maximum number of unanswered requests of all contexts of one instance.
pub const QUESTIONS_PER_PLUGIN_MAX: usize = 2048;

/// The maximum number of bytes of those requests, each of which may be a frame of 8 MiB.
pub const QUESTION_BYTES_MAX: usize = 64 * 1024 * 1024;

/// The maximum number of open streams of all contexts of one instance. Most streams hold a
/// descriptor, and many systems allow a process only 1024. The limit lets two contexts use their
/// maximum.
pub const STREAMS_PER_PLUGIN_MAX: usize = 320;

/// The maximum number of values in one piece of JSON. Each value needs a hundred bytes or more in
/// the host, even if it is cheap for the plugin: 8 MiB of `[],[],…` would use 400 MiB.
pub const JSON_VALUES_MAX: usize = 250_000;

/// Counts what a plugin holds.
#[derive(Debug, Default)]
pub(crate) struct ResourceCounter(Arc<AtomicUsize>);

impl ResourceCounter {
    /// Takes an amount, unless the sum would exceed `max`.
    pub(crate) fn reserve(&self, amount: usize, max: usize) -> Option<ResourceReservation> {
        let fits = |held: usize| held.checked_add(amount).filter(|sum| *sum <= max);
        self.0.fetch_update(SeqCst, SeqCst, fits).ok()?;
        Some(ResourceReservation { count: Arc::clone(&self.0), amount })
    }
}

/// An amount that is held until it is dropped.
#[derive(Debug)]
pub(crate) struct ResourceReservation {
    count: Arc<AtomicUsize>,
    amount: usize,
}

impl Drop for ResourceReservation {
    fn drop(&mut self) {
        self.count.fetch_sub(self.amount, SeqCst);
    }
}

/// The total of all contexts of one instance.
#[derive(Debug, Default)]
pub(crate) struct PluginResourceCounters {
    pub(crate) questions: ResourceCounter,
    pub(crate) question_bytes: ResourceCounter,
    pub(crate) streams: ResourceCounter,
}

impl PluginResourceCounters {
    /// Reserves room for a request in its context and its instance.
    pub(crate) fn reserve_request(
        &self,
        context: &ResourceCounter,
        bytes: usize,
    ) -> Result<[ResourceReservation; 3], Error> {
        let full = |max: usize, what: &str| {
            let text = format!("{max} {what} are already waiting for answers");
            Error::new(ErrorKind::LimitReached, text)
                .with_hint("wait for answers before you send more requests")
                .temporary()
        };
        Ok([
            context
                .reserve(1, QUESTIONS_MAX)
                .ok_or_else(|| full(QUESTIONS_MAX, "requests of this context"))?,
            self.questions
                .reserve(1, QUESTIONS_PER_PLUGIN_MAX)
                .ok_or_else(|| full(QUESTIONS_PER_PLUGIN_MAX, "requests of this plugin"))?,
            self.question_bytes
                .reserve(bytes, QUESTION_BYTES_MAX)
                .ok_or_else(|| full(QUESTION_BYTES_MAX, "bytes of requests of this plugin"))?,
        ])
    }
}

/// Checks how many values a piece of JSON holds, before it is parsed.
///
/// # Errors
/// `limit_reached` beyond [`JSON_VALUES_MAX`].
pub fn check_json(plugin: &PluginName, json: &[u8]) -> Result<(), Error> {
    if json_values_bound(json) <= JSON_VALUES_MAX {
        return Ok(());
    }
    let text = format!("the plugin `{plugin}` sent JSON of more than {JSON_VALUES_MAX} values");
    Err(Error::new(ErrorKind::LimitReached, text)
        .with_hint("send large data as raw bytes after the JSON"))
}

/// Returns an upper bound for the number of values: each follows a comma, a colon or an opening
/// bracket. The result for malformed JSON is arbitrary, because the parser rejects it.
pub fn json_values_bound(json: &[u8]) -> usize {
    if json.len() <= JSON_VALUES_MAX {
        // Each value takes at least one byte, and most JSON is too short to exceed the limit.
        return json.len();
    }
    count_json_values(json)
}

fn count_json_values(json: &[u8]) -> usize {
    let (mut values, mut in_string, mut is_escaped) = (1, false, false);
    for byte in json {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_string => is_escaped = true,
            b'"' => in_string = !in_string,
            b',' | b'[' | b'{' if !in_string => values += 1,
            _ => {}
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reservations_fit_up_to_the_limit_and_are_released_on_drop() {
        let tally = ResourceCounter::default();
        let held: Vec<ResourceReservation> = (0..3).filter_map(|_| tally.reserve(2, 6)).collect();
        assert_eq!(held.len(), 3);
        assert!(tally.reserve(1, 6).is_none() && tally.reserve(0, 6).is_some());
        drop(held);
        assert!(tally.reserve(6, 6).is_some() && tally.reserve(7, 6).is_none());
        assert!(tally.reserve(usize::MAX, usize::MAX).is_some());
    }

    #[test]
    fn requests_are_limited_per_context_and_bytes_per_plugin() {
        let (holdings, context) = (PluginResourceCounters::default(), ResourceCounter::default());
        let held: Vec<_> =
            (0..QUESTIONS_MAX).map(|_| holdings.reserve_request(&context, 1).unwrap()).collect();
        let error = holdings.reserve_request(&context, 1).unwrap_err();
        assert_eq!(error.kind, ErrorKind::LimitReached);
        assert_eq!(error.message, "512 requests of this context are already waiting for answers");
        // Another context of the plugin has its own limit.
        let other = ResourceCounter::default();
        drop(holdings.reserve_request(&other, 1).unwrap());
        let error = holdings.reserve_request(&other, QUESTION_BYTES_MAX).unwrap_err();
        assert!(error.message.contains("bytes of requests"), "{}", error.message);
        // A refused request holds nothing.
        drop(held);
        assert!(holdings.reserve_request(&context, QUESTION_BYTES_MAX).is_ok());
    }

    #[test]
    fn json_values_are_counted_outside_of_strings_and_limited() {
        assert_eq!(count_json_values(br#"{"a":[1,2,"x,[{\"],"],"b":{}}"#), 7);
        let plugin = PluginName::from("p");
        let list = |values: usize| format!("[{}1]", "1,".repeat(values - 2)).into_bytes();
        assert!(check_json(&plugin, &list(JSON_VALUES_MAX)).is_ok());
        let error = check_json(&plugin, &list(JSON_VALUES_MAX + 1)).unwrap_err();
        assert_eq!(error.kind, ErrorKind::LimitReached);
        let text = format!("\"{}\"", ",[".repeat(JSON_VALUES_MAX));
        assert!(check_json(&plugin, text.as_bytes()).is_ok());
    }
}
