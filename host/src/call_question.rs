//! Turns the session's question into a permission prompt, and its answer back.

use jaato_runtime::session_loop::{Answer, Question, Scope};
use jaato_runtime::types::permission_prompt::{
    AllowedAnswer, PermissionAnswer, PermissionDecision, PermissionPrompt, PromptSubject,
};
use serde_json::Value;

/// Makes the prompt.
pub fn prompt_of(question: &Question<'_>) -> PermissionPrompt {
    let mut prompt = PermissionPrompt::default();
    prompt.call_id = question.call.id.clone();
    prompt.tool = question.call.name.clone();
    prompt.plugin = question.tool.plugin.clone();
    prompt.arguments = question.call.arguments.clone();
    prompt.called_by = question.by.cloned();
    prompt.agent_name = question.agent.map(str::to_owned).unwrap_or_default();
    prompt.environment.clone_from(&question.environment);
    prompt.warning = question.reading.risks.first().cloned().unwrap_or_default();
    prompt.rule = question.why.clone();
    prompt.commands.clone_from(&question.reading.commands);
    prompt.risks.clone_from(&question.reading.risks);
    prompt.hosts.clone_from(&question.reading.hosts);
    prompt.preview.clone_from(&question.preview);
    prompt.times = u32::try_from(question.times).unwrap_or(u32::MAX);
    prompt.was_edited = question.was_edited;
    prompt.patience_ms = question.patience_ms;
    let command = question.call.arguments.get("command").and_then(Value::as_str);
    let changes = question.preview.as_ref().map(|preview| preview.changes.as_slice());
    (prompt.title, prompt.subject) = match (command, changes) {
        (Some(line), _) if question.tool.shipped => {
            ("Run this command?".to_owned(), PromptSubject::Command { line: line.to_owned() })
        }
        (_, Some([change])) if question.tool.shipped => (
            format!("Edit {}? +{} −{}", change.path, change.lines_added, change.lines_removed),
            PromptSubject::Edit,
        ),
        (_, Some([_, _, ..])) if question.tool.shipped => {
            ("Edit these files?".to_owned(), PromptSubject::Edit)
        }
        _ => {
            let title = format!("Run {} of {}?", question.call.name, question.tool.plugin);
            (title, PromptSubject::Arguments)
        }
    };
    prompt.answers = vec![AllowedAnswer::once(PermissionDecision::AllowOnce, "Yes")];
    for (at, pattern) in question.patterns.iter().enumerate() {
        let label = format!("Yes, and don't ask again in this session for {pattern}");
        let decision = PermissionDecision::AllowInSession;
        prompt.answers.push(AllowedAnswer::like(decision, at, label));
    }
    prompt
}

/// Turns the answer back.
pub fn answer_of(answer: PermissionAnswer) -> Answer {
    let comment = answer.comment;
    let pattern = answer.pattern;
    let allow = |scope| match pattern {
        Some(pattern) => Answer::AllowLike { scope, pattern },
        None => Answer::AllowOnce,
    };
    match answer.decision {
        PermissionDecision::AllowOnce => Answer::AllowOnce,
        PermissionDecision::AllowInTurn => allow(Scope::Turn),
        PermissionDecision::AllowInSession => allow(Scope::Session),
        PermissionDecision::AllowAlways => allow(Scope::Always),
        PermissionDecision::Deny => Answer::Deny { comment },
        PermissionDecision::DenyInTurn => Answer::DenyLike { scope: Scope::Turn, pattern, comment },
        PermissionDecision::DenyInSession => {
            Answer::DenyLike { scope: Scope::Session, pattern, comment }
        }
        PermissionDecision::DenyAlways => {
            Answer::DenyLike { scope: Scope::Always, pattern, comment }
        }
        PermissionDecision::Edit => match answer.arguments {
            Some(arguments) => Answer::Edit { arguments },
            None => Answer::Deny { comment },
        },
    }
}
