//! Command hooks as settings files list them: an event, a matcher and a command.
//!
//! The host and the plugin for command hooks read entries in the same way, so that the trust
//! question hides nothing.

use std::fmt;

use serde_json::{Map, Value};

/// The files of a workspace that may list hooks. Files of Claude Code, read by several programs.
pub const SETTINGS_FILES: [&str; 2] = [".claude/settings.json", ".claude/settings.local.json"];

/// The folder of a workspace in which the scripts of its hooks usually are.
pub const SCRIPT_FOLDER: &str = ".claude/hooks";

/// The maximum size of a settings file, in bytes.
pub const SETTINGS_BYTES_MAX: u64 = 1024 * 1024;

/// The maximum number of hooks that one file may list, because each may be a process.
pub const HOOKS_MAX: usize = 200;

/// The longest timeout, in milliseconds: one day.
const TIMEOUT_MS_MAX: f64 = 86_400_000.0;

/// A hook of a settings file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandHook {
    /// The event: `PreToolUse`.
    pub event: String,
    /// The pattern of tool names, or of the word that the event has instead. Empty matches all.
    pub matcher: String,
    /// The command line for `sh`. Empty if it is missing.
    pub command: String,
    /// The time limit, in milliseconds.
    pub timeout_ms: Option<u64>,
    /// The reason why the entry cannot run. `None` if it can.
    pub problem: Option<String>,
}

impl fmt::Display for CommandHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.event)?;
        if !self.matcher.is_empty() {
            write!(f, " ({})", self.matcher)?;
        }
        match &self.problem {
            Some(problem) if self.command.is_empty() => write!(f, ": {problem}"),
            _ => write!(f, ": {}", self.command),
        }
    }
}

/// Reads the hooks from the text of a settings file.
///
/// # Errors
/// A text for users, if the file is not a JSON object or its `hooks` have another form.
pub fn parse_settings_hooks(text: &str) -> Result<Vec<CommandHook>, String> {
    let text = text.trim_start_matches('\u{feff}');
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    let settings: Value =
        serde_json::from_str(text).map_err(|error| format!("it is not valid JSON: {error}"))?;
    let Value::Object(settings) = settings else { return Err("it is not a JSON object".into()) };
    if settings.get("disableAllHooks") == Some(&Value::Bool(true)) {
        return Ok(Vec::new());
    }
    match settings.get("hooks") {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Object(hooks)) => parse_command_hooks(hooks),
        Some(_) => Err("`hooks` is not an object".to_owned()),
    }
}

/// Reads hooks by event. Each event has a list of groups, and each group a matcher and a list of
/// commands. A group with a command of its own is one hook.
///
/// # Errors
/// A text for users, if there are too many, or an event has no list.
///
/// ```
/// use jaato_types::command_hooks::parse_command_hooks;
/// use serde_json::json;
///
/// let hooks = json!({ "PreToolUse": [
///     { "matcher": "Bash", "hooks": [{ "type": "command", "command": "./guard.sh" }] },
/// ] });
/// let hooks = parse_command_hooks(hooks.as_object().unwrap()).unwrap();
/// assert_eq!(hooks[0].to_string(), "PreToolUse (Bash): ./guard.sh");
/// ```
pub fn parse_command_hooks(hooks: &Map<String, Value>) -> Result<Vec<CommandHook>, String> {
    let mut found = Vec::new();
    for (event, groups) in hooks {
        let Value::Array(groups) = groups else {
            return Err(format!("`hooks.{event}` is not a list"));
        };
        for group in groups {
            let matcher = group["matcher"].as_str().unwrap_or_default();
            match &group["hooks"] {
                Value::Array(entries) => {
                    found
                        .extend(entries.iter().map(|entry| read_hook_entry(event, matcher, entry)));
                }
                Value::Null if group.is_object() => {
                    found.push(read_hook_entry(event, matcher, group))
                }
                _ => return Err(format!("an entry of `hooks.{event}` has no list `hooks`")),
            }
            if found.len() > HOOKS_MAX {
                return Err(format!("it has more than {HOOKS_MAX} hooks"));
            }
        }
    }
    Ok(found)
}

fn read_hook_entry(event: &str, matcher: &str, entry: &Value) -> CommandHook {
    let kind = entry["type"].as_str().unwrap_or("command");
    let command = entry["command"].as_str().unwrap_or_default().trim();
    let seconds = entry["timeout"].as_f64();
    let problem = if kind != "command" {
        Some(format!("jaato does not run hooks of the type `{kind}`"))
    } else if command.is_empty() {
        Some("it has no `command`".to_owned())
    } else if !matches!(entry["timeout"], Value::Null) && seconds.is_none_or(|it| it <= 0.0) {
        Some("its `timeout` is not a positive number of seconds".to_owned())
    } else {
        None
    };
    CommandHook {
        event: event.to_owned(),
        matcher: matcher.to_owned(),
        command: command.to_owned(),
        timeout_ms: seconds.filter(|it| *it > 0.0).map(whole_milliseconds),
        problem,
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn whole_milliseconds(seconds: f64) -> u64 {
    (seconds * 1000.0).clamp(1.0, TIMEOUT_MS_MAX) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_settings_hooks(text: &str, expected: Result<&[&str], &str>) {
        let found = parse_settings_hooks(text);
        let found = found.map(|hooks| hooks.iter().map(ToString::to_string).collect::<Vec<_>>());
        let expected = expected.map(|lines| lines.iter().map(|it| (*it).to_owned()).collect());
        assert_eq!(found, expected.map_err(str::to_owned), "{text}");
    }

    #[test]
    fn hooks_are_listed_by_event_matcher_and_command() {
        check_settings_hooks("", Ok(&[]));
        check_settings_hooks(r#"{"model": "x"}"#, Ok(&[]));
        check_settings_hooks(
            r#"{"hooks": {"PreToolUse": [{"matcher": "A|B", "hooks": [
                {"type": "command", "command": "one"}, {"command": " two "}]}],
                "Stop": [{"hooks": [{"type": "prompt", "prompt": "x"}]}, {"command": "three"}]}}"#,
            Ok(&[
                "PreToolUse (A|B): one",
                "PreToolUse (A|B): two",
                "Stop: jaato does not run hooks of the type `prompt`",
                "Stop: three",
            ]),
        );
        check_settings_hooks(
            r#"{"disableAllHooks": true, "hooks": {"Stop": [{"command": "x"}]}}"#,
            Ok(&[]),
        );
    }

    #[test]
    fn hooks_in_another_form_are_an_error() {
        check_settings_hooks("[]", Err("it is not a JSON object"));
        check_settings_hooks(r#"{"hooks": []}"#, Err("`hooks` is not an object"));
        check_settings_hooks(r#"{"hooks": {"Stop": {}}}"#, Err("`hooks.Stop` is not a list"));
        check_settings_hooks(
            r#"{"hooks": {"Stop": [{"hooks": 1}]}}"#,
            Err("an entry of `hooks.Stop` has no list `hooks`"),
        );
        assert!(parse_settings_hooks("{").unwrap_err().starts_with("it is not valid JSON: "));
    }

    #[test]
    fn timeout_is_a_positive_number_of_seconds() {
        let read = |timeout: &str| {
            let text =
                format!(r#"{{"hooks": {{"Stop": [{{"command": "x", "timeout": {timeout}}}]}}}}"#);
            let hook = parse_settings_hooks(&text).unwrap().remove(0);
            (hook.timeout_ms, hook.problem.is_some())
        };
        assert_eq!(read("1.5"), (Some(1500), false));
        assert_eq!(read("1e12"), (Some(86_400_000), false));
        assert_eq!(read("0"), (None, true));
        assert_eq!(read("\"5\""), (None, true));
        assert_eq!(read("null"), (None, false));
    }
}
