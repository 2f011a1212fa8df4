//! A permission prompt as a question: title, command or changes, notes, numbered answers.

use std::borrow::Cow;

use jaato_runtime::types::file_change::{FileChange, FileChangeKind};
use jaato_runtime::types::hooks::Preview;
use jaato_runtime::types::permission_prompt::{
    AllowedAnswer, PermissionDecision, PermissionPrompt, PromptSubject,
};
use serde_json::Value;

use crate::diff::{self, ChangeTense};
use crate::terminal::{self, Dialog, Look, Manner};

/// The answer that denies. Here the user can also type a sentence.
const NO: &str = "No (or say what to do instead)";

/// The possible input if the full answers do not fit.
const SHORT_PROMPT: &str = "y yes, n no, e edit, ? help";

/// Which answers are possible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerChoices {
    /// All answers.
    Full,
    /// Only answers about this call, on a terminal without room for more.
    Short,
}

/// Returns the answers in the order of their numbers. One of them denies.
pub fn all_answers(prompt: &PermissionPrompt) -> Vec<Cow<'_, AllowedAnswer>> {
    let mut answers: Vec<_> = prompt.answers.iter().map(Cow::Borrowed).collect();
    if !answers.iter().any(|answer| answer.decision == PermissionDecision::Deny) {
        answers.push(Cow::Owned(AllowedAnswer::once(PermissionDecision::Deny, NO)));
    }
    answers
}

/// Builds the question.
pub fn permission_question(prompt: &PermissionPrompt, form: AnswerChoices) -> Dialog {
    let (mut subject, mut values) = (String::new(), Vec::new());
    match &prompt.subject {
        PromptSubject::Command { line } => subject.clone_from(line),
        PromptSubject::Input { text, .. } => subject = typed_text(text),
        PromptSubject::Edit => values = edit_values(prompt),
        PromptSubject::Plan { steps } => {
            let steps = (1..).zip(steps).map(|(number, step)| format!("{number}. {step}"));
            values.push(terminal::Value::new(None, steps.collect::<Vec<_>>().join("\n")));
        }
        _ => {
            values = argument_values(&prompt.arguments);
            if let Some(preview) = &prompt.preview {
                values.extend(preview_values(preview, prompt.plugin.as_str()));
            }
        }
    }
    let label = |answer: Cow<'_, AllowedAnswer>| match answer.decision {
        PermissionDecision::Deny => NO.to_owned(),
        _ => answer.label.clone(),
    };
    let labels = all_answers(prompt).into_iter().map(label);
    Dialog {
        title: prompt.title.clone(),
        subject,
        values,
        details: call_details(prompt),
        notes: prompt_notes(prompt, form),
        answers: if form == AnswerChoices::Full { labels.collect() } else { Vec::new() },
        prompt: if form == AnswerChoices::Full { String::new() } else { SHORT_PROMPT.to_owned() },
        begun: String::new(),
        manner: Manner::Keys,
    }
}

/// Shows text that is typed into a terminal, with its line ends.
fn typed_text(text: &str) -> String {
    let shown = text.replace("\r\n", "\n").replace('\r', "\n").replace('\n', " ⏎\n");
    shown.strip_suffix('\n').unwrap_or(&shown).to_owned()
}

/// Returns the lines that the user should know before answering.
fn prompt_notes(prompt: &PermissionPrompt, form: AnswerChoices) -> Vec<(Look, String)> {
    let mut notes = Vec::new();
    let origin = call_origin(prompt);
    if !origin.is_empty() {
        notes.push((Look::Dim, format!("({})", origin.join("; "))));
    }
    if !prompt.warning.is_empty() {
        notes.push((Look::Yellow, format!("warning: {}", prompt.warning)));
    }
    if !prompt.why.is_empty() && form == AnswerChoices::Full {
        let place = prompt.place.as_ref().map(|place| format!("{place}: ")).unwrap_or_default();
        notes.push((Look::Dim, format!("reason: {place}{}", prompt.why)));
    }
    notes
}

/// Describes the origin and place of the call, if they are unusual.
fn call_origin(prompt: &PermissionPrompt) -> Vec<String> {
    let mut origin = Vec::new();
    match (prompt.agent_name.as_str(), prompt.agent_type.as_str()) {
        ("", "" | "main") => {}
        ("", kind) => origin.push(format!("from a {kind}")),
        (name, _) => origin.push(format!("from {name}")),
    }
    if let Some(plugin) = &prompt.called_by {
        origin.push(format!("called by {plugin}"));
    }
    if let Some(environment) = &prompt.environment {
        origin.push(format!("runs in {environment}"));
    }
    if let PromptSubject::Input { reader, .. } = &prompt.subject
        && !reader.is_empty()
        && !prompt.title.contains(reader.as_str())
    {
        origin.push(format!("goes to {reader}"));
    }
    if prompt.times > 1 {
        origin.push(format!("{} times", prompt.times));
    }
    if prompt.was_edited {
        origin.push("as you changed it".to_owned());
    }
    origin
}

/// Returns the details that are shown only together with everything else.
fn call_details(prompt: &PermissionPrompt) -> Vec<terminal::Value> {
    let named = |name: &str, lines: &[String]| {
        let value = || terminal::Value::new(Some(name.to_owned()), lines.join("\n"));
        (!lines.is_empty()).then(value)
    };
    let tool = format!("{} of {}", prompt.tool, prompt.plugin);
    let rule = match &prompt.place {
        Some(place) => format!("{} ({place})", prompt.rule),
        None => prompt.rule.clone(),
    };
    let mut details: Vec<_> = [
        named("runs", &prompt.commands),
        named("note", &prompt.risks),
        named("hosts", &prompt.hosts),
        named("tool", &[tool]),
        named("rule", &[rule]).filter(|_| !prompt.rule.is_empty()),
    ]
    .into_iter()
    .flatten()
    .collect();
    let shows_arguments = !matches!(
        &prompt.subject,
        PromptSubject::Command { .. }
            | PromptSubject::Input { .. }
            | PromptSubject::Edit
            | PromptSubject::Plan { .. }
    );
    if !shows_arguments {
        details.extend(argument_values(&prompt.arguments));
    }
    details
}

/// Returns the changes of an edit. If they do not show everything, the arguments follow.
fn edit_values(prompt: &PermissionPrompt) -> Vec<terminal::Value> {
    let Some(preview) = &prompt.preview else { return argument_values(&prompt.arguments) };
    let mut values = Vec::new();
    if !is_complete_preview(preview) {
        values.extend(argument_values(&prompt.arguments).into_iter().map(terminal::Value::briefly));
    }
    let drawn = preview.changes.iter().map(|change| {
        // The title names the file only if there is one.
        let heading =
            (preview.changes.len() > 1).then(|| diff::change_heading(change, ChangeTense::ToCome));
        terminal::Value::of_lines(heading, diff::change_lines(change), diff::changed_lines(change))
    });
    values.extend(drawn);
    values.extend(
        files_without_diff(preview)
            .map(|files| terminal::Value::new(Some("files".to_owned()), files)),
    );
    values
}

/// Returns a plugin's claims about the changes of its call, each with the plugin's name, because it
/// may lie.
fn preview_values(preview: &Preview, plugin: &str) -> Vec<terminal::Value> {
    let said = |what: &str, text: &str| {
        let name = Some(format!("{what}, says {plugin}"));
        (!text.trim().is_empty()).then(|| terminal::Value::new(name, text.to_owned()))
    };
    let changes = &preview.changes;
    let summary = if changes.len() > 1 { diff::summarize_changes(changes) } else { String::new() };
    let before = [
        said("effect", &preview.text),
        said("command", &preview.command),
        said("changes", &summary),
    ];
    let drawn = changes.iter().map(|change| {
        let heading = diff::change_heading(change, ChangeTense::ToCome);
        let (lines, core) = (diff::change_lines(change), diff::changed_lines(change));
        terminal::Value::of_lines(Some(format!("{heading}, says {plugin}")), lines, core)
    });
    let files = files_without_diff(preview).unwrap_or_default();
    let after = [said("changes", &preview.diff), said("files", &files)];
    before.into_iter().flatten().chain(drawn).chain(after.into_iter().flatten()).collect()
}

/// Returns the changed files without a diff.
fn files_without_diff(preview: &Preview) -> Option<String> {
    let is_of = |change: &FileChange, file: &String| {
        change.path == *file || change.moved_from.as_ref() == Some(file)
    };
    let changes = &preview.changes;
    let files = preview.files.iter().filter(|file| !changes.iter().any(|it| is_of(it, file)));
    let files = files.map(String::as_str).collect::<Vec<_>>().join("\n");
    (!files.is_empty()).then_some(files)
}

/// Returns true if a preview shows each change completely, so that the arguments add nothing.
fn is_complete_preview(preview: &Preview) -> bool {
    let is_whole = |change: &FileChange| {
        let has_lines = !change.hunks.is_empty() || change.kind == FileChangeKind::Moved;
        !change.is_cut && has_lines
    };
    !preview.changes.is_empty() && preview.changes.iter().all(is_whole)
}

/// Returns arguments as a user reads them: texts without JSON escapes.
pub fn argument_values(arguments: &Value) -> Vec<terminal::Value> {
    let Some(arguments) = arguments.as_object() else {
        return vec![terminal::Value::new(None, arguments.to_string())];
    };
    let value_of = |(name, value): (&String, &Value)| {
        let text = value.as_str().map_or_else(|| format!("{value:#}"), str::to_owned);
        terminal::Value::new(Some(name.clone()), text)
    };
    arguments.iter().map(value_of).collect()
}

#[cfg(test)]
mod tests;
