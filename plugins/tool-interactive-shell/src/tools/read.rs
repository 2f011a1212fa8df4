//! The tool `shell_read`.

use jaato_plugin_sdk::prelude::*;
use regex::RegexBuilder;

use super::{maximum_wait, non_empty_argument, wait_and_respond};
use crate::raw_bytes::RawOutputPiece;
use crate::shells::InteractiveShellPlugin;
use crate::wait::WaitCondition;

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
    type State = InteractiveShellPlugin;

    async fn call(self, cx: &Cx<InteractiveShellPlugin>) -> Result<Output> {
        let shells = &cx.state().0;
        let session = shells.session_by_id(non_empty_argument(
            "shell_read",
            "session_id",
            &self.session_id,
        )?)?;
        if self.raw == Some(true) {
            let mut live = session.lock_live();
            live.used = std::time::Instant::now();
            let RawOutputPiece { text, lost, left } = live.raw.take_oldest(RAW_BYTES_MAX);
            let is_alive = live.end.is_none();
            return Ok(Output::json(json!({
                "raw": text,
                "is_alive": is_alive,
                "bytes_lost": lost,
                "bytes_left": left,
            })));
        }
        let until = parse_wait_condition(self.wait_for.as_deref())?;
        let longest = maximum_wait(self.timeout, SECONDS);
        let (told, _) = wait_and_respond(cx, &session, &until, longest).await?;
        Ok(Output::json(Value::Object(told)))
    }
}

tool!(ShellRead);

fn parse_wait_condition(wait_for: Option<&str>) -> Result<WaitCondition> {
    match wait_for {
        None | Some("") => Ok(WaitCondition::News),
        Some(PROMPT) => Ok(WaitCondition::Prompt),
        Some(pattern) => {
            let built =
                RegexBuilder::new(pattern).multi_line(true).size_limit(PATTERN_BYTES_MAX).build();
            built.map(WaitCondition::Shown).map_err(|error| {
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
    fn wait_condition_is_a_pattern_a_prompt_or_any_output() {
        assert!(matches!(parse_wait_condition(None), Ok(WaitCondition::News)));
        assert!(matches!(parse_wait_condition(Some("prompt")), Ok(WaitCondition::Prompt)));
        assert!(matches!(parse_wait_condition(Some("^done$")), Ok(WaitCondition::Shown(_))));
        let error = parse_wait_condition(Some("(")).unwrap_err();
        assert_eq!(error.kind, ErrorKind::InvalidArguments);
        assert!(parse_wait_condition(Some(r"\w{1000}{1000}")).is_err());
    }
}
