//! The row that replaces an answered permission prompt.

use jaato_runtime::types::permission_prompt::{
    PermissionAnswer, PermissionDecision, PermissionPrompt, PromptSubject,
};

use crate::terminal::{self, Text, exact_line};

/// The minimum number of columns for the call. The rest of the row is shortened first.
const CALL_COLUMNS_MIN: usize = 12;

/// Builds the row.
pub fn folded_row(prompt: &PermissionPrompt, answer: &PermissionAnswer) -> Text {
    build_row(prompt, answer, terminal::size().1)
}

fn build_row(prompt: &PermissionPrompt, answer: &PermissionAnswer, columns: usize) -> Text {
    let is_allowed = answer.decision.can_run();
    let verdict = if is_allowed { "✓ allowed: " } else { "✗ denied: " };
    let comment = answer.comment.as_deref().map(|comment| format!("“{comment}”"));
    let mode = answer.mode.as_deref().map(|mode| format!("mode is now {mode}"));
    let more = comment.or(mode).or_else(|| decision_scope(answer.decision).map(str::to_owned));
    let more = more.map(|more| format!(" ({more})")).unwrap_or_default();
    // The last column stays free.
    let room = columns.saturating_sub(verdict.chars().count() + 1);
    let wanted = console::measure_text_width(&more);
    let call = exact_line(call_title(prompt), room.saturating_sub(wanted).max(CALL_COLUMNS_MIN));
    let room = room.saturating_sub(console::measure_text_width(&call));
    let text = match is_allowed {
        true => Text::new().with(terminal::Look::Green, verdict),
        false => Text::new().red(verdict),
    };
    let text = text.plain(&call);
    if more.is_empty() { text } else { text.dim(&exact_line(&more, room)) }
}

/// Returns the call's command, or the question.
fn call_title(prompt: &PermissionPrompt) -> &str {
    match &prompt.subject {
        PromptSubject::Command { line } => line.trim(),
        PromptSubject::Input { text, .. } => text.trim(),
        _ => prompt.title.trim_end_matches('?'),
    }
}

fn decision_scope(decision: PermissionDecision) -> Option<&'static str> {
    match decision {
        PermissionDecision::AllowOnce | PermissionDecision::Deny | PermissionDecision::Edit => None,
        PermissionDecision::AllowInTurn | PermissionDecision::DenyInTurn => {
            Some("until this turn ends")
        }
        PermissionDecision::AllowInSession | PermissionDecision::DenyInSession => {
            Some("in this session")
        }
        PermissionDecision::AllowAlways | PermissionDecision::DenyAlways => {
            Some("in this folder, from now on")
        }
    }
}

#[cfg(test)]
mod tests {
    use console::Style;

    use super::*;

    #[track_caller]
    fn check_row(line: &str, answer: PermissionAnswer, columns: usize, expected: &str) {
        let mut prompt = PermissionPrompt::default();
        prompt.subject = PromptSubject::Command { line: line.to_owned() };
        let shown = build_row(&prompt, &answer, columns).styled(Style::new);
        assert_eq!(shown, expected);
        assert!(console::measure_text_width(&shown) < columns, "{shown}");
    }

    #[test]
    fn folded_row_shows_the_decision_and_the_call() {
        let once = PermissionAnswer::once;
        check_row("ls -la", once(PermissionDecision::AllowOnce), 80, "✓ allowed: ls -la");
        let always = once(PermissionDecision::AllowAlways);
        check_row("ls", always.clone(), 80, "✓ allowed: ls (in this folder, from now on)");
        check_row(
            "python3 -m unittest -q 2>&1 | tail -5",
            always,
            60,
            "✓ allowed: python3 -m unitte… (in this folder, from now on)",
        );
        let denied = PermissionAnswer {
            comment: Some("no, use\nthe package".to_owned()),
            ..once(PermissionDecision::Deny)
        };
        check_row("rm -rf b", denied.clone(), 80, "✗ denied: rm -rf b (“no, use the package”)");
        check_row("rm -rf build/\u{202e}", denied, 30, "✗ denied: rm -rf buil… (“no,…");
        let edits = Some("accept-edits".to_owned());
        let edits = PermissionAnswer { mode: edits, ..once(PermissionDecision::AllowOnce) };
        check_row("x", edits, 80, "✓ allowed: x (mode is now accept-edits)");
        let mut edit = PermissionPrompt::default();
        edit.title = "Edit app.py? +4 −1".to_owned();
        let row = build_row(&edit, &once(PermissionDecision::AllowOnce), 80).styled(Style::new);
        assert_eq!(row, "✓ allowed: Edit app.py? +4 −1");
    }
}
