//! The tool `shell_read`.

use jaato_plugin_sdk::prelude::*;
use regex::RegexBuilder;

use super::{given, longest, respond};
use crate::raw::Piece;
use crate::shells::Shells;
use crate::wait::Until;

/// The default number of seconds that a read waits, as in the seed.
const SECONDS: f64 = 2.0;

/// The pattern that represents the next prompt.
const PROMPT: &str = "prompt";

/// The maximum size of a compiled pattern, in bytes.
const PATTERN_BYTES_MAX: usize = 1024 * 1024;

/// The maximum number of raw bytes returned by one call. Each may take six bytes of JSON.
const RAW_BYTES_MAX: usize = 2 * 1024;

/// Get a session's output since the last result, without typing. Waits up to timeout while the
/// program is busy or nothing is new.
#[derive(ToolInput)]
#[tool(
    category = "system",
    read_only,
    available_if(
        environment_has = "shell",
        reason = "in a session whose execution environment runs commands"
    ),
    example(
        "Wait for the server to listen",
        session_id = "session_0",
        timeout = 20,
        wait_for = "[Ll]istening"
    )
)]
struct ShellRead {
    /// The session.
    #[schemars(extend("x-jaato-touches" = { "text": "the name of a terminal" }))]
    session_id: String,
    /// Maximum seconds to wait. Default: 2.
    #[schemars(range(min = 0.0, max = 30.0))]
    timeout: Option<f64>,
    /// Wait until the output matches this regular expression; `prompt` waits for the next prompt.
    #[schemars(extend("x-jaato-touches" = { "text": "a regular expression" }))]
    wait_for: Option<String>,
    /// Return raw bytes with escape sequences instead, oldest first, without waiting.
    raw: Option<bool>,
}

impl Tool for ShellRead {
    type State = Shells;

    async fn call(self, cx: &Cx<Shells>) -> Result<Output> {
        let shells = &cx.state().0;
        let session = shells.get(given("shell_read", "session_id", &self.session_id)?)?;
        if self.raw == Some(true) {
            let mut live = session.live();
            live.used = std::time::Instant::now();
            let Piece { text, lost, left } = live.raw.take(RAW_BYTES_MAX);
            let is_alive = live.end.is_none();
            return Ok(Output::json(json!({
                "raw": text,
                "is_alive": is_alive,
                "bytes_lost": lost,
                "bytes_left": left,
            })));
        }
        let until = until(self.wait_for.as_deref())?;
        let longest = longest(self.timeout, SECONDS);
        let (told, _) = respond(cx, &session, &until, longest).await?;
        Ok(Output::json(Value::Object(told)))
    }
}

tool!(ShellRead);

fn until(wait_for: Option<&str>) -> Result<Until> {
    match wait_for {
        None | Some("") => Ok(Until::News),
        Some(PROMPT) => Ok(Until::Prompt),
        Some(pattern) => {
            let built =
                RegexBuilder::new(pattern).multi_line(true).size_limit(PATTERN_BYTES_MAX).build();
            built.map(Until::Shown).map_err(|error| {
                let text = format!("shell_read: wait_for is not a regular expression: {error}");
                Error::new(ErrorKind::InvalidArguments, text)
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_a_prompt_or_whatever_comes() {
        assert!(matches!(until(None), Ok(Until::News)));
        assert!(matches!(until(Some("prompt")), Ok(Until::Prompt)));
        assert!(matches!(until(Some("^done$")), Ok(Until::Shown(_))));
        let error = until(Some("(")).unwrap_err();
        assert_eq!(error.kind, ErrorKind::InvalidArguments);
        assert!(until(Some(r"\w{1000}{1000}")).is_err());
    }
}
