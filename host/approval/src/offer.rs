//! The answers that a prompt offers, as text.

use jaato_policy::{CallPattern, PluginSource, PolicyCall, PolicyMode, Rules, propose_patterns};
use jaato_types::file_change::{FileChange, FileChangeKind};
use jaato_types::hooks::Preview;
use jaato_types::permission_prompt::{AllowedAnswer, PermissionDecision, PromptSubject};

/// The calls that the user can allow beyond this one.
pub(crate) struct OfferedAnswers {
    /// The patterns of later calls, from narrow to wide. Empty if every such call asks.
    pub(crate) patterns: Vec<CallPattern>,
    /// Whether the mode `accept-edits` would allow the call.
    is_plain_edit: bool,
    /// Whether `--yes` allows every later call.
    allows_all: bool,
}

impl OfferedAnswers {
    pub(crate) fn for_call(rules: &Rules, facts: &PolicyCall<'_>, is_each: bool) -> Self {
        let patterns = if is_each { Vec::new() } else { propose_patterns(rules, facts) };
        let is_plain_edit = !is_each && PolicyMode::AcceptEdits.allows_call(facts);
        Self { patterns, is_plain_edit, allows_all: rules.allow_all }
    }

    /// Lists the answers, in display order.
    pub(crate) fn allowed_answers(
        &self,
        facts: &PolicyCall<'_>,
        subject: &PromptSubject,
        preview: Option<&Preview>,
        times: usize,
    ) -> Vec<AllowedAnswer> {
        let yes = match times {
            0 | 1 => "Yes".to_owned(),
            times => format!("Yes, all {times} times"),
        };
        let mut answers = vec![AllowedAnswer::once(PermissionDecision::AllowOnce, yes)];
        match subject {
            PromptSubject::Plan { .. } => answers = self.plan_answers(),
            PromptSubject::Edit => answers.extend(self.edit_answers(preview)),
            _ => answers.extend(self.pattern_answers(facts)),
        }
        answers.push(AllowedAnswer::once(PermissionDecision::Deny, "No"));
        answers
    }

    /// Offers the modes in which the session carries out the plan.
    fn plan_answers(&self) -> Vec<AllowedAnswer> {
        let modes = [
            (PolicyMode::Ask, "Yes, and ask before each change"),
            (PolicyMode::AcceptEdits, "Yes, and edit files in this folder without asking"),
        ];
        let modes = match self.allows_all {
            true => &[(PolicyMode::Ask, "Yes, and run everything without asking (--yes)")][..],
            false => &modes,
        };
        let answer =
            |(mode, label): &(PolicyMode, &str)| AllowedAnswer::with_mode(mode.name(), *label);
        modes.iter().map(answer).collect()
    }

    fn edit_answers(&self, preview: Option<&Preview>) -> Vec<AllowedAnswer> {
        let changes = preview.map_or(&[][..], |preview| &preview.changes);
        let is_kept = |change: &FileChange| {
            matches!(change.kind, FileChangeKind::Changed | FileChangeKind::Created)
        };
        let at = self.patterns.iter().position(|pattern| matches!(pattern, CallPattern::Path(_)));
        let mut answers = Vec::new();
        if let ([change], Some(at)) = (changes, at)
            && is_kept(change)
        {
            let label = format!("Yes, all edits of {} in this session", change.path);
            answers.push(AllowedAnswer::for_pattern(PermissionDecision::AllowInSession, at, label));
        }
        if self.is_plain_edit {
            let label = "Yes, all edits in this folder in this session";
            answers.push(AllowedAnswer::with_mode(PolicyMode::AcceptEdits.name(), label));
        }
        answers
    }

    /// Offers the widest pattern, for this session and for this folder. For a foreign tool it also
    /// offers exactly this call, because the meaning of its arguments is unknown.
    fn pattern_answers(&self, facts: &PolicyCall<'_>) -> Vec<AllowedAnswer> {
        let Some(widest) = self.patterns.len().checked_sub(1) else { return Vec::new() };
        let like = |decision, at: usize, place: &str| {
            let what = describe_pattern(&self.patterns[at], facts);
            let label = format!("Yes, and don't ask again for {what} in this {place}");
            AllowedAnswer::for_pattern(decision, at, label)
        };
        let mut answers = Vec::new();
        if facts.source != PluginSource::Shipped && widest > 0 {
            answers.push(like(PermissionDecision::AllowInSession, 0, "session"));
        }
        answers.push(like(PermissionDecision::AllowInSession, widest, "session"));
        if self.patterns[widest].can_be_saved(facts) {
            answers.push(like(PermissionDecision::AllowAlways, widest, "folder"));
        }
        answers
    }
}

/// Describes the later calls of a pattern within an answer.
fn describe_pattern(pattern: &CallPattern, facts: &PolicyCall<'_>) -> String {
    match pattern {
        CallPattern::Exact { .. } if facts.command_line().is_some() => {
            "this exact command".to_owned()
        }
        CallPattern::Exact { .. } => "exactly this".to_owned(),
        CallPattern::Command { program, words } => {
            let words: String = words.iter().map(|word| format!(" {word}")).collect();
            format!("`{program}{words}`")
        }
        CallPattern::Path(path) => format!("`{}` in {}", facts.tool, path.display()),
        CallPattern::Host(host) => host.clone(),
        CallPattern::Terminal(name) => format!("typing into {name}"),
        CallPattern::Tool => match facts.source {
            PluginSource::Shipped | PluginSource::Relayed => format!("`{}`", facts.tool),
            PluginSource::Elsewhere => format!("`{}` of `{}`", facts.tool, facts.plugin),
        },
    }
}
