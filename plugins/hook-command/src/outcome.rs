//! What a hook's command decided: its exit code and its output as a decision, a changed input and
//! texts.
//!
//! Invariant: before a tool call, a command that could not decide (it did not run, or its answer
//! cannot be read) denies the call.

use jaato_plugin_sdk::prelude::{Value, json};
use jaato_plugin_sdk::serde_json;
use jaato_plugin_sdk::types::text::{one_line, truncate_chars};

use crate::run::CommandResult;

/// The exit code with which a command blocks.
const BLOCKS: i32 = 2;
/// The exit codes of `sh` for a program that cannot be run, and for one that does not exist.
const CANNOT_RUN: [i32; 2] = [126, 127];
/// The longest part of an output in a notice, in characters.
const SHOWN_CHARS_MAX: usize = 300;
/// The reason of a command that gives none.
const NO_REASON: &str = "it gives no reason";

/// A decision. The greatest of several counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum HookDecision {
    /// No decision.
    #[default]
    None,
    /// The hook has no objection. The user's rules decide.
    Allow,
    /// The user must be asked, for this reason.
    Ask(String),
    /// It must not happen, for this reason.
    Block(String),
}

/// The outcome of one hook, or of several together.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HookOutcome {
    /// The decision.
    pub decision: HookDecision,
    /// The changed input of the tool.
    pub updated_input: Option<Value>,
    /// The changed result of the tool.
    pub updated_output: Option<Value>,
    /// Texts for the model.
    pub context: Vec<String>,
    /// The reason why the turn must end.
    pub stop: Option<String>,
    /// Lines for the user.
    pub notices: Vec<String>,
}

impl HookDecision {
    fn severity_rank(&self) -> u8 {
        match self {
            Self::None => 0,
            Self::Allow => 1,
            Self::Ask(_) => 2,
            Self::Block(_) => 3,
        }
    }
}

impl HookOutcome {
    /// Adds the outcome of another hook. Of two equal decisions the first one counts, and of two
    /// changes the later one.
    pub fn combine(&mut self, other: Self) {
        if other.decision.severity_rank() > self.decision.severity_rank() {
            self.decision = other.decision;
        }
        self.updated_input = other.updated_input.or(self.updated_input.take());
        self.updated_output = other.updated_output.or(self.updated_output.take());
        self.context.extend(other.context);
        self.stop = self.stop.take().or(other.stop);
        self.notices.extend(other.notices);
    }

    /// Creates the outcome of a hook that could not decide: it denies a tool call, and otherwise
    /// tells the user.
    pub fn from_failure(event: &str, label: &str, why: &str) -> Self {
        let text = format!("the hook {label} failed: {why}");
        match event {
            "PreToolUse" => Self { decision: HookDecision::Block(text), ..Self::default() },
            _ => Self { notices: vec![text], ..Self::default() },
        }
    }
}

/// Reads the outcome of a command. `label` is its name for users.
pub fn read_outcome(event: &str, label: &str, result: &CommandResult) -> HookOutcome {
    if let Some(why) = &result.failure {
        return HookOutcome::from_failure(event, label, why);
    }
    match result.code {
        0 => read_output(event, label, result.stdout.trim()),
        BLOCKS => blocked_outcome(event, label, result.stderr.trim()),
        code => {
            let said = shorten_for_display(&result.stderr);
            let why = format!("it ended with the code {code}{}{said}", separator_before(&said));
            if CANNOT_RUN.contains(&code) {
                return HookOutcome::from_failure(event, label, &why);
            }
            let text = format!("the hook {label} failed: {why}");
            HookOutcome { notices: vec![text], ..HookOutcome::default() }
        }
    }
}

fn blocked_outcome(event: &str, label: &str, reason: &str) -> HookOutcome {
    let reason = if reason.is_empty() { NO_REASON.to_owned() } else { reason.to_owned() };
    match can_block(event) {
        true => HookOutcome { decision: HookDecision::Block(reason), ..HookOutcome::default() },
        false => {
            let text = format!(
                "the hook {label} cannot block `{event}`: {}",
                shorten_for_display(&reason)
            );
            HookOutcome { notices: vec![text], ..HookOutcome::default() }
        }
    }
}

/// Returns true if a hook of this event can block, or make the model continue.
fn can_block(event: &str) -> bool {
    matches!(
        event,
        "PreToolUse" | "PostToolUse" | "UserPromptSubmit" | "Stop" | "SubagentStop" | "PreCompact"
    )
}

fn read_output(event: &str, label: &str, output: &str) -> HookOutcome {
    if !output.starts_with('{') {
        // Plain text is for the model only where a hook gives context.
        let is_context = matches!(event, "UserPromptSubmit" | "SessionStart") && !output.is_empty();
        let context = if is_context { vec![output.to_owned()] } else { Vec::new() };
        return HookOutcome { context, ..HookOutcome::default() };
    }
    match serde_json::from_str(output) {
        Ok(answer) => read_answer(event, label, &answer),
        Err(error) => HookOutcome::from_failure(
            event,
            label,
            &format!("its output is not valid JSON: {error}"),
        ),
    }
}

fn read_answer(event: &str, label: &str, answer: &Value) -> HookOutcome {
    let text = |value: &Value| value.as_str().map(str::to_owned).filter(|it| !it.trim().is_empty());
    let reason = |value: &Value| text(value).unwrap_or_else(|| NO_REASON.to_owned());
    let specific = &answer["hookSpecificOutput"];
    let mut outcome = HookOutcome {
        context: text(&specific["additionalContext"]).into_iter().collect(),
        notices: text(&answer["systemMessage"])
            .into_iter()
            .map(|it| shorten_for_display(&it))
            .collect(),
        ..HookOutcome::default()
    };
    if answer["continue"] == json!(false) {
        outcome.stop = Some(reason(&answer["stopReason"]));
    }
    match answer["decision"].as_str() {
        None => {}
        Some("block" | "deny") => {
            outcome.combine(blocked_outcome(event, label, &reason(&answer["reason"])))
        }
        Some("approve" | "allow") => outcome.decision = HookDecision::Allow,
        Some(other) => {
            outcome.combine(HookOutcome::from_failure(
                event,
                label,
                &unknown_word_message("decision", other),
            ));
        }
    }
    if event == "PreToolUse" {
        let why = reason(&specific["permissionDecisionReason"]);
        let decided = match specific["permissionDecision"].as_str() {
            None => HookOutcome::default(),
            Some("allow") => outcome_with_decision(HookDecision::Allow),
            Some("ask" | "defer") => outcome_with_decision(HookDecision::Ask(why)),
            Some("deny") => outcome_with_decision(HookDecision::Block(why)),
            Some(other) => HookOutcome::from_failure(
                event,
                label,
                &unknown_word_message("permissionDecision", other),
            ),
        };
        outcome.combine(decided);
        outcome.updated_input = non_null_value(&specific["updatedInput"]);
    }
    if event == "PostToolUse" {
        outcome.updated_output = non_null_value(&specific["updatedToolOutput"]);
    }
    outcome
}

fn non_null_value(value: &Value) -> Option<Value> {
    (!value.is_null()).then(|| value.clone())
}

fn outcome_with_decision(decision: HookDecision) -> HookOutcome {
    HookOutcome { decision, ..HookOutcome::default() }
}

fn unknown_word_message(key: &str, word: &str) -> String {
    format!("its output has an unknown `{key}`: `{}`", shorten_for_display(word))
}

fn shorten_for_display(text: &str) -> String {
    truncate_chars(&one_line(text.trim()), SHOWN_CHARS_MAX).to_string()
}

fn separator_before(said: &str) -> &'static str {
    if said.is_empty() { "" } else { ": " }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test_outcome(event: &str, code: i32, stdout: &str, stderr: &str) -> HookOutcome {
        let (stdout, stderr) = (stdout.to_owned(), stderr.to_owned());
        let result = CommandResult { code, stdout, stderr, ..CommandResult::default() };
        read_outcome(event, "`x`", &result)
    }

    fn block_decision(reason: &str) -> HookDecision {
        HookDecision::Block(reason.to_owned())
    }

    #[test]
    fn exit_code_two_blocks_with_standard_error_as_the_reason() {
        assert_eq!(test_outcome("PreToolUse", 2, "", "no\n").decision, block_decision("no"));
        assert_eq!(test_outcome("Stop", 2, "", "").decision, block_decision(NO_REASON));
        assert_eq!(test_outcome("PreCompact", 2, "", "later").decision, block_decision("later"));
        let cannot = test_outcome("SessionEnd", 2, "", "later");
        assert_eq!(cannot.decision, HookDecision::None);
        assert_eq!(cannot.notices, ["the hook `x` cannot block `SessionEnd`: later"]);
    }

    #[test]
    fn a_guard_that_cannot_decide_blocks_and_another_hook_is_reported() {
        let missing = "the hook `x` failed: it ended with the code 127: sh: no";
        assert_eq!(
            test_outcome("PreToolUse", 127, "", "sh: no\n").decision,
            block_decision(missing)
        );
        assert_eq!(test_outcome("PostToolUse", 127, "", "sh: no\n").notices, [missing]);
        let HookDecision::Block(why) = test_outcome("PreToolUse", 0, "{\"a\":", "").decision else {
            panic!("a guard with broken output must block");
        };
        assert!(why.contains("its output is not valid JSON"), "{why}");
        let odd = r#"{"hookSpecificOutput": {"permissionDecision": "perhaps"}}"#;
        let why = "the hook `x` failed: its output has an unknown `permissionDecision`: `perhaps`";
        assert_eq!(test_outcome("PreToolUse", 0, odd, "").decision, block_decision(why));
        let late = CommandResult { failure: Some("late".to_owned()), ..CommandResult::default() };
        let late = read_outcome("PreToolUse", "`x`", &late).decision;
        assert_eq!(late, block_decision("the hook `x` failed: late"));
        // By the contract, any other code is an error that blocks nothing.
        let other = test_outcome("PreToolUse", 1, "", "oops");
        assert_eq!(other.decision, HookDecision::None);
        assert_eq!(other.notices, ["the hook `x` failed: it ended with the code 1: oops"]);
    }

    #[test]
    fn output_of_a_successful_hook_is_read() {
        let asks = r#"{"systemMessage": "hi", "hookSpecificOutput": {
            "permissionDecision": "ask", "permissionDecisionReason": "why",
            "updatedInput": {"command": "ls"}, "additionalContext": "it is night"}}"#;
        let asks = test_outcome("PreToolUse", 0, asks, "");
        assert_eq!(asks.decision, HookDecision::Ask("why".to_owned()));
        assert_eq!(asks.updated_input, Some(json!({ "command": "ls" })));
        assert_eq!(
            (asks.context, asks.notices),
            (vec!["it is night".to_owned()], vec!["hi".into()])
        );
        let stops =
            test_outcome("PostToolUse", 0, r#"{"continue": false, "stopReason": "enough"}"#, "");
        assert_eq!(stops.stop.as_deref(), Some("enough"));
        let blocks =
            test_outcome("Stop", 0, r#"{"decision": "block", "reason": "run the tests"}"#, "");
        assert_eq!(blocks.decision, block_decision("run the tests"));
        let approves = test_outcome("PreToolUse", 0, r#"{"decision": "approve"}"#, "");
        assert_eq!(approves.decision, HookDecision::Allow);
    }

    #[test]
    fn plain_output_is_context_only_before_a_prompt() {
        assert_eq!(
            test_outcome("UserPromptSubmit", 0, "branch: main\n", "").context,
            ["branch: main"]
        );
        assert_eq!(test_outcome("PreToolUse", 0, "logged\n", ""), HookOutcome::default());
        assert_eq!(test_outcome("SessionStart", 0, " ", ""), HookOutcome::default());
    }

    #[test]
    fn strictest_decision_and_last_change_of_several_hooks_count() {
        let with = |decision| HookOutcome { decision, ..HookOutcome::default() };
        let mut all = with(HookDecision::Ask("a".to_owned()));
        all.combine(with(HookDecision::Allow));
        all.combine(with(block_decision("b")));
        all.combine(with(block_decision("c")));
        assert_eq!(all.decision, block_decision("b"));
        let changed =
            |to: i32| HookOutcome { updated_input: Some(json!(to)), ..HookOutcome::default() };
        all.combine(changed(1));
        all.combine(changed(2));
        all.combine(HookOutcome::default());
        assert_eq!(all.updated_input, Some(json!(2)));
    }
}
