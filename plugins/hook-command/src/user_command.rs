//! The command `hook`: lists the hooks, and tries those of an event.

use jaato_plugin_sdk::hooks::Hook;
use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::serde_json;
use jaato_plugin_sdk::types::CommandSpec;
use jaato_plugin_sdk::types::text::one_line;

use crate::outcome::{HookDecision, HookOutcome, read_outcome};
use crate::session::{HookJob, HookSession};
use crate::settings::{ConfiguredHook, EVENTS};

const HELP: &str =
    "hook list                the hooks: where each comes from, event, matcher, command
hook test EVENT [JSON]   runs the hooks of an event, and shows what each decides; the JSON replaces
                         fields of the example input
hook help                this text

Hooks are listed in .claude/settings.json and .claude/settings.local.json of a workspace that you
trust, and under [[plugins.hook-command.hooks.EVENT]] of your configuration.";

/// Describes the command's syntax.
pub const NAME: &str = "hook";

pub fn hooks_command_spec() -> CommandSpec {
    let text = |description: &str| json!({ "type": "string", "description": description });
    let mut rest = text("For `test`: the input of the event, as JSON.");
    rest["x-capture-rest"] = true.into();
    CommandSpec {
        name: NAME.to_owned(),
        description: "Command hooks: hook list, hook test EVENT".to_owned(),
        parameters: json!({
            "type": "object",
            "properties": {
                "action": text("list, test, help."),
                "name": text("For `test`: the event."),
                "command": rest,
            },
            "additionalProperties": false,
        }),
        ..CommandSpec::default()
    }
}

/// Runs the command.
///
/// # Errors
/// `invalid_arguments` for an unknown action or event, or JSON that cannot be read.
pub async fn run_hooks_command(
    host: &Reporter,
    session: &HookSession,
    arguments: &Value,
) -> Result<Output> {
    let given = |name: &str| arguments[name].as_str().map(str::trim).filter(|it| !it.is_empty());
    match given("action").unwrap_or("list") {
        "list" => Ok(Output::text(list_hooks(session))),
        "help" => Ok(Output::text(HELP)),
        "test" => {
            let event = find_event(given("name"))?;
            test_event_hooks(host, session, event, given("command")).await
        }
        other => {
            let text = format!("unknown `hook` action `{other}`");
            Err(invalid_arguments(text).with_hint("use `list`, `test` or `help`"))
        }
    }
}

fn invalid_arguments(text: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidArguments, text.into())
}

fn list_hooks(session: &HookSession) -> String {
    let loaded = &session.loaded;
    let mut lines: Vec<String> =
        loaded.hooks.iter().map(|hook| format_hook_line(hook, "")).collect();
    lines.extend(
        loaded.untrusted.iter().map(|hook| format_hook_line(hook, "not trusted, does not run")),
    );
    lines.extend(loaded.broken.iter().map(|why| format!("{why}; every tool call is denied")));
    if !loaded.untrusted.is_empty() {
        lines.push("`jaato trust` enables the hooks that are not trusted".to_owned());
    }
    if lines.is_empty() {
        return "no hooks are configured; `hook help` explains where".to_owned();
    }
    lines.join("\n")
}

/// Returns a hook in one line.
fn format_hook_line(hook: &ConfiguredHook, state: &str) -> String {
    let known = EVENTS.contains(&hook.hook.event.as_str());
    let effect = match hook.hook.event.as_str() {
        "PreToolUse" => "it denies each matching call",
        _ => "it does not run",
    };
    let state = match &hook.hook.problem {
        // The line has the problem in place of the command.
        Some(_) if hook.hook.command.is_empty() => effect.to_owned(),
        Some(problem) => format!("{problem}, so {effect}"),
        None if !known => "jaato does not know the event".to_owned(),
        None => state.to_owned(),
    };
    let state = if state.is_empty() { state } else { format!("  ({state})") };
    format!("{}  {}{state}", hook.source, one_line(&hook.hook.to_string()))
}

fn find_event(name: Option<&str>) -> Result<&'static str> {
    let known = EVENTS.join(", ");
    let Some(name) = name else {
        return Err(
            invalid_arguments("the event is missing").with_hint(format!("use one of {known}"))
        );
    };
    let found = EVENTS.iter().find(|event| event.eq_ignore_ascii_case(name));
    found.copied().ok_or_else(|| {
        invalid_arguments(format!("unknown event `{name}`"))
            .with_hint(format!("use one of {known}"))
    })
}

async fn test_event_hooks(
    host: &Reporter,
    session: &HookSession,
    event: &str,
    given: Option<&str>,
) -> Result<Output> {
    let mut more = example_input(event);
    if let Some(given) = given {
        let read = serde_json::from_str(&remove_shell_quotes(given));
        let Ok(Value::Object(given)) = read else {
            return Err(invalid_arguments("the input is not a JSON object")
                .with_hint(r#"for example '{"tool_input": {"command": "ls"}}'"#));
        };
        for (key, value) in given {
            more[key.as_str()] = value;
        }
    }
    let (moment, word) = hook_for_event(event);
    let name = word.map(|key| more[key].as_str().unwrap_or_default().to_owned());
    let names: Vec<&str> = name.as_deref().into_iter().collect();
    let mut input = session.event_input(event, more);
    session.add_current_fields(host, event, std::iter::once(&mut input)).await;
    let jobs = session.event_jobs(event, &names, input.clone(), 0);
    let mut lines = vec![format!("input: {input}")];
    if jobs.is_empty() {
        lines.push(format!("no hook of `{event}` matches"));
    }
    let mut all = HookOutcome::default();
    for job in jobs {
        all.combine(test_single_hook(host, session, (moment, event), &job, &mut lines).await);
    }
    lines.push(format!("together: {}", describe_outcome(&all)));
    Ok(Output::text(lines.join("\n")))
}

/// Returns JSON without the quotes of a shell, which it has if it was a word of a command line.
fn remove_shell_quotes(given: &str) -> String {
    let words = if given.starts_with('{') { None } else { shlex::split(given) };
    words.map_or_else(|| given.to_owned(), |words| words.join(" "))
}

/// Runs one hook and describes its result.
async fn test_single_hook(
    host: &Reporter,
    session: &HookSession,
    (moment, event): (Hook, &str),
    job: &HookJob,
    lines: &mut Vec<String>,
) -> HookOutcome {
    let label = job.hook().label();
    lines.push(format_hook_line(job.hook(), ""));
    let result = match session.run_single_job(host, moment, job).await {
        Ok(result) => result,
        Err(problem) => return HookOutcome::from_failure(event, &label, &problem),
    };
    let took = result.took.as_millis();
    lines.push(match &result.failure {
        Some(failure) => format!("  {failure} (after {took} ms)"),
        None => format!("  exit code {} after {took} ms", result.code),
    });
    for (name, text) in [("output", &result.stdout), ("error output", &result.stderr)] {
        lines.extend(text.lines().map(|line| format!("  {name}: {line}")));
    }
    let outcome = read_outcome(event, &label, &result);
    lines.push(format!("  decision: {}", describe_outcome(&outcome)));
    outcome
}

/// Describes an outcome in one line.
fn describe_outcome(outcome: &HookOutcome) -> String {
    let mut parts = vec![match &outcome.decision {
        HookDecision::None => "none".to_owned(),
        HookDecision::Allow => "allow (your rules still decide)".to_owned(),
        HookDecision::Ask(reason) => format!("ask: {reason}"),
        HookDecision::Block(reason) => format!("block: {reason}"),
    }];
    parts.extend(outcome.stop.as_ref().map(|reason| format!("ends the turn: {reason}")));
    parts.extend(outcome.updated_input.as_ref().map(|it| format!("changes the input: {it}")));
    parts.extend(outcome.updated_output.as_ref().map(|it| format!("changes the result: {it}")));
    parts.extend(outcome.context.iter().map(|text| format!("adds: {text}")));
    parts.extend(outcome.notices.iter().map(|text| format!("tells you: {text}")));
    one_line(&parts.join("; "))
}

/// Returns the host's hook of an event, and the field to which its matchers apply.
fn hook_for_event(event: &str) -> (Hook, Option<&'static str>) {
    match event {
        "PreToolUse" => (Hook::BeforeTool, Some("tool_name")),
        "PostToolUse" => (Hook::AfterTool, Some("tool_name")),
        "UserPromptSubmit" => (Hook::BeforePrompt, None),
        "SessionStart" => (Hook::SessionStart, Some("source")),
        "SessionEnd" => (Hook::SessionEnd, Some("reason")),
        "SubagentStop" => (Hook::TurnEnd, Some("agent_type")),
        "PreCompact" => (Hook::BeforeGc, Some("trigger")),
        "Notification" => (Hook::Event, Some("notification_type")),
        _ => (Hook::TurnEnd, None),
    }
}

/// Returns an example of the fields that an event adds to the common ones.
fn example_input(event: &str) -> Value {
    let call = json!({
        "tool_name": "Bash",
        "tool_input": { "command": "echo hello" },
        "tool_use_id": "test",
    });
    match event {
        "PreToolUse" => call,
        "PostToolUse" => {
            let mut call = call;
            call["tool_response"] = json!({ "stdout": "hello\n", "exit_code": 0 });
            call
        }
        "UserPromptSubmit" => json!({ "prompt": "hello" }),
        "SessionStart" => json!({ "source": "startup", "model": "" }),
        "SessionEnd" => json!({ "reason": "other" }),
        "Stop" => json!({ "stop_hook_active": false, "last_assistant_message": "hello" }),
        "SubagentStop" => json!({
            "stop_hook_active": false,
            "last_assistant_message": "hello",
            "agent_id": "test",
            "agent_type": "test",
        }),
        "PreCompact" => json!({ "trigger": "manual", "custom_instructions": "" }),
        _ => json!({
            "message": "jaato needs your permission",
            "title": "jaato",
            "notification_type": "permission_prompt",
        }),
    }
}
