//! The tools, one file each.

mod close;
mod control;
mod input;
mod list;
mod read;
mod spawn;

use std::time::Duration;

use jaato_plugin_sdk::prelude::*;

/// Seconds that a call waits for a busy program, where nobody says otherwise.
const SECONDS: f64 = 10.0;

/// Most seconds that a call may wait: the original's bound.
const SECONDS_MAX: f64 = 30.0;

/// Returns how long a call waits at most.
fn longest(asked: Option<f64>, default: f64) -> Duration {
    Duration::from_secs_f64(asked.unwrap_or(default).clamp(0.0, SECONDS_MAX))
}

/// Refuses an argument that is empty.
fn given<'a>(tool: &str, name: &str, value: &'a str) -> Result<&'a str> {
    if value.trim().is_empty() {
        let text = format!("{tool}: {name} is required");
        return Err(Error::new(ErrorKind::InvalidArguments, text));
    }
    Ok(value)
}

/// Says that a program can be typed at no more.
fn has_exited(id: &str) -> Error {
    let text = format!("session `{id}` has exited");
    Error::new(ErrorKind::Failed, text)
        .with_hint("shell_read gives what it showed last, shell_close its exit status")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_bounded() {
        assert_eq!(longest(None, SECONDS), Duration::from_secs(10));
        assert_eq!(longest(Some(1e9), SECONDS), Duration::from_secs(30));
        assert_eq!(longest(Some(-1.0), SECONDS), Duration::ZERO);
        assert_eq!(longest(Some(0.25), SECONDS), Duration::from_millis(250));
    }

    #[test]
    fn what_is_required_is_named() {
        let error = given("shell_input", "session_id", " ").unwrap_err();
        assert_eq!(error.message, "shell_input: session_id is required");
    }
}
