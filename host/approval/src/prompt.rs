//! Builds the permission prompt: its title, the call's effects, one line of warning.

use jaato_policy::shell::{self, ShellAnalysis};
use jaato_policy::{CommandLine, PluginSource, PolicyCall};
use jaato_types::file_change::{FileChange, FileChangeKind};
use jaato_types::hooks::Preview;
use jaato_types::permission_prompt::{PermissionPrompt, PromptSubject};

use crate::attempt::ApprovalAttempt;
use crate::offer::OfferedAnswers;
use crate::verdict::PromptReason;
use crate::warning::command_warning;

/// The shipped tool that types into a terminal.
const TYPING_TOOL: &str = "shell_input";

/// The parts of a prompt.
pub(crate) struct PromptParts<'a> {
    pub(crate) attempt: &'a ApprovalAttempt<'a>,
    pub(crate) facts: &'a PolicyCall<'a>,
    pub(crate) environment: Option<String>,
    pub(crate) reason: &'a PromptReason,
    pub(crate) offer: &'a OfferedAnswers,
    pub(crate) preview: Option<Preview>,
    pub(crate) patience_ms: Option<u64>,
}

/// Builds the prompt for a call.
pub(crate) fn permission_prompt(parts: PromptParts<'_>) -> PermissionPrompt {
    let PromptParts { attempt, facts, environment, reason, offer, preview, patience_ms } = parts;
    let line = facts.command_line();
    let analysis = line.as_ref().map(shell::analyse_line).unwrap_or_default();
    let (title, subject) = title_and_subject(facts, line, &analysis, preview.as_ref());
    let answers = offer.allowed_answers(facts, &subject, preview.as_ref(), attempt.times);
    let widest = answers.iter().filter_map(|answer| answer.pattern).max();
    let offered = widest.map_or(0, |widest| widest + 1);
    let mut prompt = PermissionPrompt::default();
    prompt.call_id = attempt.call.id.clone();
    prompt.tool = facts.tool.clone();
    prompt.plugin = facts.plugin.clone();
    prompt.shipped = facts.source == PluginSource::Shipped;
    prompt.arguments = attempt.call.arguments.clone();
    prompt.called_by = attempt.approval.called_by.cloned();
    prompt.agent_type = facts.agent.agent_type.to_owned();
    prompt.agent_name = facts.agent.agent_name.to_owned();
    prompt.environment = environment;
    prompt.warning = match (&reason.changed, &subject) {
        (Some(changed), _) => changed.clone(),
        (None, PromptSubject::Command { .. }) => command_warning(&analysis).unwrap_or_default(),
        (None, _) => String::new(),
    };
    prompt.title = title;
    prompt.subject = subject;
    prompt.rule = reason.rule.to_owned();
    prompt.place = reason.place.clone();
    prompt.why = if reason.is_silence { String::new() } else { reason.why.clone() };
    prompt.commands = analysis.commands.iter().map(|command| command.command_text()).collect();
    prompt.risks = analysis.risks();
    prompt.hosts = facts.argument_hosts();
    prompt.patterns = offer
        .patterns
        .iter()
        .take(offered)
        .map(|pattern| pattern.describe_calls(facts.tool))
        .collect();
    prompt.preview = preview;
    prompt.times = u32::try_from(attempt.times).unwrap_or(u32::MAX);
    prompt.was_edited = attempt.was_edited;
    prompt.answers = answers;
    prompt.patience_ms = patience_ms;
    prompt
}

/// Returns the title and the subject. Only the arguments of shipped tools have a known meaning.
fn title_and_subject(
    facts: &PolicyCall<'_>,
    line: Option<CommandLine>,
    analysis: &ShellAnalysis,
    preview: Option<&Preview>,
) -> (String, PromptSubject) {
    let tool = facts.tool.as_str();
    match facts.source {
        PluginSource::Elsewhere => {
            return (format!("Use `{tool}` of `{}`?", facts.plugin), PromptSubject::Arguments);
        }
        PluginSource::Relayed => return (format!("Use `{tool}`?"), PromptSubject::Arguments),
        PluginSource::Shipped => {}
    }
    if tool == TYPING_TOOL {
        return typing_title(facts, preview);
    }
    if let Some(line) = line {
        let line = format_command_line(line, analysis);
        return ("Run this command?".to_owned(), PromptSubject::Command { line });
    }
    if facts.is_plan_start() {
        let steps = preview.map(|preview| plan_steps(&preview.text)).unwrap_or_default();
        return ("Start this plan?".to_owned(), PromptSubject::Plan { steps });
    }
    match preview.map(|preview| preview.changes.as_slice()) {
        Some([change]) => (edit_title(change), PromptSubject::Edit),
        Some(changes @ [_, ..]) => (edits_title(changes), PromptSubject::Edit),
        Some([]) | None => (arguments_title(facts), PromptSubject::Arguments),
    }
}

/// Names the host of a call that reads from one host.
fn arguments_title(facts: &PolicyCall<'_>) -> String {
    let is_plain =
        |host: &str| host.bytes().all(|it| it.is_ascii_alphanumeric() || b".-:".contains(&it));
    match facts.argument_hosts().as_slice() {
        [host] if facts.annotations.read_only && is_plain(host) => format!("Read from {host}?"),
        _ => format!("Use `{}`?", facts.tool),
    }
}

fn typing_title(facts: &PolicyCall<'_>, preview: Option<&Preview>) -> (String, PromptSubject) {
    let argument = |name: &str| facts.arguments.get(name).and_then(|value| value.as_str());
    let text = argument("input").unwrap_or_default().to_owned();
    let reader = preview.map(|preview| preview.reader.clone()).unwrap_or_default();
    let into = match reader.as_str() {
        "" => argument("session_id").unwrap_or("the terminal").to_owned(),
        command => command.split_whitespace().next().unwrap_or(command).to_owned(),
    };
    let title = match facts.arguments.get("ask_user").and_then(serde_json::Value::as_bool) {
        Some(true) => format!("Type a secret into {into}?"),
        _ => format!("Type this into {into}?"),
    };
    (title, PromptSubject::Input { text, reader })
}

fn edit_title(change: &FileChange) -> String {
    let path = &change.path;
    match (change.kind, &change.moved_from) {
        (FileChangeKind::Created, _) => format!("Create {path}?"),
        (FileChangeKind::Deleted, _) => format!("Delete {path}?"),
        (FileChangeKind::Moved, Some(from)) => format!("Move {from} to {path}?"),
        (FileChangeKind::Changed | FileChangeKind::Moved | FileChangeKind::Unknown, _) => {
            format!(
                "Edit {path}?{}",
                format_line_counts(&[change.lines_added, change.lines_removed])
            )
        }
    }
}

fn edits_title(changes: &[FileChange]) -> String {
    let sum = |count: fn(&FileChange) -> u64| changes.iter().map(count).sum::<u64>();
    let counts = [sum(|it| it.lines_added), sum(|it| it.lines_removed)];
    let is_all = |kind| changes.iter().all(|change| change.kind == kind);
    let number = changes.len();
    if is_all(FileChangeKind::Deleted) {
        return format!("Delete {number} files?");
    }
    if is_all(FileChangeKind::Created) {
        return format!("Create {number} files?");
    }
    format!("Edit {number} files?{}", format_line_counts(&counts))
}

/// Formats ` +4 −1`. Returns an empty text if no lines are counted.
fn format_line_counts([added, removed]: &[u64; 2]) -> String {
    match (added, removed) {
        (0, 0) => String::new(),
        (added, removed) => format!(" +{added} −{removed}"),
    }
}

/// Extracts the steps of a plan from the text of its preview: the lines after the title.
fn plan_steps(text: &str) -> Vec<String> {
    let steps = text.lines().skip(1).map(str::trim).filter(|line| !line.is_empty());
    steps.map(|line| strip_step_number(line).to_owned()).collect()
}

/// Removes `1. pending: ` from a step.
fn strip_step_number(line: &str) -> &str {
    let rest = line.trim_start_matches(|sign: char| sign.is_ascii_digit());
    let Some(rest) = rest.strip_prefix(". ") else { return line };
    rest.strip_prefix("pending: ").unwrap_or(rest)
}

/// Formats a command line as a shell would read it.
fn format_command_line(line: CommandLine, analysis: &ShellAnalysis) -> String {
    match line {
        CommandLine::Shell(line) | CommandLine::Unknown(line) => line,
        CommandLine::Words(_) => {
            analysis.commands.first().map(|command| command.command_text()).unwrap_or_default()
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn sample_change(kind: FileChangeKind, path: &str) -> FileChange {
        FileChange {
            path: path.to_owned(),
            kind,
            lines_added: 4,
            lines_removed: 1,
            ..FileChange::default()
        }
    }

    #[test]
    fn edit_prompt_title_names_the_kind_of_file_change() {
        use FileChangeKind as Is;
        let title = |kind| edit_title(&sample_change(kind, "app.py"));
        assert_eq!(title(Is::Changed), "Edit app.py? +4 −1");
        assert_eq!(title(Is::Created), "Create app.py?");
        assert_eq!(title(Is::Deleted), "Delete app.py?");
        let moved = FileChange { moved_from: Some("a".into()), ..sample_change(Is::Moved, "b") };
        assert_eq!(edit_title(&moved), "Move a to b?");
        let several = |kinds: [Is; 2]| edits_title(&kinds.map(|kind| sample_change(kind, "x")));
        assert_eq!(several([Is::Changed, Is::Created]), "Edit 2 files? +8 −2");
        assert_eq!(several([Is::Deleted, Is::Deleted]), "Delete 2 files?");
    }

    #[test]
    fn foreign_tool_call_is_shown_with_its_arguments_not_as_a_command() {
        let titled = |tool: &str, source, arguments: serde_json::Value| {
            let (tool, plugin) = (tool.into(), "tool-mcp".into());
            let call = PolicyCall { source, ..PolicyCall::new(&tool, &plugin, &arguments) };
            let line = call.command_line();
            let analysis = line.as_ref().map(shell::analyse_line).unwrap_or_default();
            let preview = Preview { changes: vec![FileChange::default()], ..Preview::default() };
            title_and_subject(&call, line, &analysis, Some(&preview))
        };
        let (relayed, elsewhere) = (PluginSource::Relayed, PluginSource::Elsewhere);
        for arguments in [json!({ "command": "ls" }), json!({ "input": "ls" }), json!({})] {
            for tool in ["mcp__moon__do", TYPING_TOOL] {
                let (title, subject) = titled(tool, relayed, arguments.clone());
                assert_eq!((title, subject), (format!("Use `{tool}`?"), PromptSubject::Arguments));
                let (title, subject) = titled(tool, elsewhere, arguments.clone());
                let expected = format!("Use `{tool}` of `tool-mcp`?");
                assert_eq!((title, subject), (expected, PromptSubject::Arguments));
            }
        }
        let (title, _) =
            titled("cli_based_tool", PluginSource::Shipped, json!({ "command": "ls" }));
        assert_eq!(title, "Run this command?");
    }

    #[test]
    fn the_steps_of_a_plan_are_listed_without_their_state() {
        let text = "Fix it (proposed)\n  1. pending: Read the code\n  2. pending: Write a test";
        assert_eq!(plan_steps(text), ["Read the code", "Write a test"]);
    }
}
