//! Permission prompts as data: the information to show, and the allowed answers.
//!
//! All front ends use this type: the terminal, `--answers`, the channels and embedding programs.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::preview::Preview;
use crate::{CallId, PluginName, ToolName};

/// A permission prompt for a tool call.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct PermissionPrompt {
    /// The call.
    pub call_id: CallId,
    /// The tool.
    #[serde(rename = "name")]
    pub tool: ToolName,
    /// The plugin that offers the tool.
    pub plugin: PluginName,
    /// Whether that plugin comes with jaato, so that its information about the call can be trusted.
    pub shipped: bool,
    /// The arguments that the call would run with.
    pub arguments: Value,
    /// The plugin that makes the call, if neither the model nor the user makes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub called_by: Option<PluginName>,
    /// The kind of the agent that makes the call: `main`, `subagent`.
    pub agent_type: String,
    /// The name of the agent; empty for the main agent.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub agent_name: String,
    /// The execution environment, if it is not this machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub environment: Option<String>,
    /// The question in one line: `Run this command?`, `Edit app.py? +4 −1`.
    pub title: String,
    /// What the call would do.
    pub subject: PromptSubject,
    /// A warning in one line. Empty if there is nothing to warn about.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub warning: String,
    /// The rule that asks.
    pub rule: String,
    /// The location of that rule, as `FILE:LINE`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// The reason, if a file or a guard asks. Empty if the call is just not allowed yet.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// The commands in the command line, as the rules parse it, including nested ones.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<String>,
    /// All risks of the command line beyond these commands. `warning` is the worst of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub risks: Vec<String>,
    /// The hosts that the arguments name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    /// What the call would change, from the tool's own plugin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preview: Option<Preview>,
    /// The number of equal calls in the model's answer. All of them get the same answer from the
    /// user.
    pub times: u32,
    /// Whether the user already changed the arguments.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub was_edited: bool,
    /// The allowed answers, in display order. The first allows the call once.
    pub answers: Vec<AllowedAnswer>,
    /// Descriptions of the later calls to which an answer can apply, from narrow to wide. The first
    /// matches exactly this call. Empty if each such call needs a prompt.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub patterns: Vec<String>,
    /// The maximum wait for an answer, in milliseconds. After that, the call is denied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patience_ms: Option<u64>,
}

/// The effect of a call, in the form to display.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
#[non_exhaustive]
pub enum PromptSubject {
    /// Run a command line.
    Command {
        /// The line.
        line: String,
    },
    /// Type text into a terminal.
    Input {
        /// The text.
        text: String,
        /// The program that reads it, such as `python3 -q`. Empty if it is unknown.
        reader: String,
    },
    /// Change files. [`PermissionPrompt::preview`] shows the changes.
    Edit,
    /// Start a plan.
    Plan {
        /// The steps.
        steps: Vec<String>,
    },
    /// Anything else: show the arguments.
    #[default]
    #[serde(other)]
    Arguments,
}

/// An answer that a prompt allows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AllowedAnswer {
    /// The decision.
    pub decision: PermissionDecision,
    /// The index of the pattern of later calls. Absent if the answer applies to one call only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<usize>,
    /// The mode to which the session changes with this answer: `ask` or `accept-edits`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// The label: ``Yes, and don't ask again for `cargo test` in this folder``.
    pub label: String,
}

impl AllowedAnswer {
    /// Creates an answer that applies to one call only.
    pub fn once(decision: PermissionDecision, label: impl Into<String>) -> Self {
        Self { decision, pattern: None, mode: None, label: label.into() }
    }

    /// Creates an answer that also applies to later calls that match a pattern.
    pub fn for_pattern(
        decision: PermissionDecision,
        pattern: usize,
        label: impl Into<String>,
    ) -> Self {
        Self { decision, pattern: Some(pattern), mode: None, label: label.into() }
    }

    /// Creates an answer that runs this call and changes the session's mode.
    pub fn with_mode(mode: impl Into<String>, label: impl Into<String>) -> Self {
        Self { mode: Some(mode.into()), ..Self::once(PermissionDecision::AllowOnce, label) }
    }

    /// Returns the answer to send if the user chooses this one.
    pub fn to_answer(&self) -> PermissionAnswer {
        let Self { decision, pattern, mode, .. } = self;
        PermissionAnswer {
            pattern: *pattern,
            mode: mode.clone(),
            ..PermissionAnswer::once(*decision)
        }
    }
}

/// A user's decision about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PermissionDecision {
    /// Run this call.
    AllowOnce,
    /// Run it, and calls like it until the turn ends.
    AllowInTurn,
    /// Run it, and calls like it until the session ends.
    AllowInSession,
    /// Run it, and all later calls like it in this workspace.
    AllowAlways,
    /// Do not run it.
    Deny,
    /// Do not run it, nor calls like it until the turn ends.
    DenyInTurn,
    /// Do not run it, nor calls like it until the session ends.
    DenyInSession,
    /// Do not run it, nor any later calls like it in this workspace.
    DenyAlways,
    /// Change the arguments. The changed call is checked again.
    Edit,
}

impl PermissionDecision {
    /// Returns true if the call runs.
    pub fn can_run(self) -> bool {
        match self {
            Self::AllowOnce | Self::AllowInTurn | Self::AllowInSession | Self::AllowAlways => true,
            Self::Deny | Self::DenyInTurn | Self::DenyInSession | Self::DenyAlways | Self::Edit => {
                false
            }
        }
    }

    /// Returns how long the answer applies, for events and records: `once`, `turn`, `session`,
    /// `always`.
    pub fn duration_name(self) -> &'static str {
        match self {
            Self::AllowOnce | Self::Deny | Self::Edit => "once",
            Self::AllowInTurn | Self::DenyInTurn => "turn",
            Self::AllowInSession | Self::DenyInSession => "session",
            Self::AllowAlways | Self::DenyAlways => "always",
        }
    }

    /// Returns true if the answer applies to this call only.
    pub fn is_for_one_call(self) -> bool {
        self.duration_name() == "once"
    }
}

/// The answer to a [`PermissionPrompt`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PermissionAnswer {
    /// The decision.
    pub decision: PermissionDecision,
    /// The pattern of later calls, as in [`AllowedAnswer::pattern`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<usize>,
    /// The new mode of the session, as in [`AllowedAnswer::mode`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// The user's comment for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    /// The changed arguments, for [`PermissionDecision::Edit`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
}

impl PermissionAnswer {
    /// Creates an answer that applies to one call, without a comment.
    pub fn once(decision: PermissionDecision) -> Self {
        Self { decision, pattern: None, mode: None, comment: None, arguments: None }
    }
}

impl PermissionPrompt {
    /// Returns true if the prompt allows an answer.
    ///
    /// An answer that is narrower than an allowed one is allowed too: for a shorter time, or for an
    /// earlier pattern. Denying an existing pattern and changing the arguments are always allowed.
    pub fn is_allowed(&self, answer: &PermissionAnswer) -> bool {
        use PermissionDecision as Is;
        let is_known = answer.pattern.is_none_or(|pattern| pattern < self.patterns.len());
        let has_mode = answer.mode.is_some();
        match answer.decision {
            Is::Deny => answer.pattern.is_none() && !has_mode,
            Is::DenyInTurn | Is::DenyInSession | Is::DenyAlways => is_known && !has_mode,
            Is::Edit => answer.pattern.is_none() && !has_mode && answer.arguments.is_some(),
            Is::AllowOnce => {
                let is_same =
                    |it: &AllowedAnswer| it.decision == answer.decision && it.mode == answer.mode;
                answer.pattern.is_none() && self.answers.iter().any(is_same)
            }
            Is::AllowInTurn | Is::AllowInSession | Is::AllowAlways => {
                // Without a pattern, the answer applies to exactly this call.
                let pattern = answer.pattern.unwrap_or(0);
                let covers = |it: &AllowedAnswer| {
                    it.pattern.is_some_and(|widest| pattern <= widest)
                        && is_at_least_as_long(it.decision, answer.decision)
                };
                is_known && !has_mode && self.answers.iter().any(covers)
            }
        }
    }
}

/// Returns true if an allowance lasts at least as long as another one.
fn is_at_least_as_long(one: PermissionDecision, other: PermissionDecision) -> bool {
    let rank = |decision| match decision {
        PermissionDecision::AllowAlways => 3,
        PermissionDecision::AllowInSession => 2,
        PermissionDecision::AllowInTurn => 1,
        PermissionDecision::AllowOnce
        | PermissionDecision::Deny
        | PermissionDecision::DenyInTurn
        | PermissionDecision::DenyInSession
        | PermissionDecision::DenyAlways
        | PermissionDecision::Edit => 0,
    };
    rank(one) >= rank(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_offered_answers_and_narrower_ones_are_allowed() {
        use PermissionDecision as Is;
        let prompt = PermissionPrompt {
            answers: vec![
                AllowedAnswer::once(Is::AllowOnce, "Yes"),
                AllowedAnswer::for_pattern(Is::AllowInSession, 1, "Yes, any `ls`"),
            ],
            patterns: ["exactly this", "`ls`"].map(str::to_owned).into(),
            ..PermissionPrompt::default()
        };
        let like =
            |decision, pattern| PermissionAnswer { pattern, ..PermissionAnswer::once(decision) };
        let allowed = [
            (Is::AllowOnce, None),
            (Is::AllowInSession, Some(1)),
            (Is::AllowInSession, Some(0)),
            (Is::AllowInSession, None),
            (Is::AllowInTurn, Some(1)),
            (Is::Deny, None),
            (Is::DenyInSession, None),
            (Is::DenyAlways, Some(1)),
        ];
        for (decision, pattern) in allowed {
            assert!(prompt.is_allowed(&like(decision, pattern)), "{decision:?} {pattern:?}");
        }
        let refused = [
            (Is::AllowInSession, Some(99)),
            (Is::AllowInSession, Some(2)),
            (Is::AllowAlways, Some(0)),
            (Is::AllowOnce, Some(0)),
            (Is::DenyInSession, Some(2)),
            (Is::Edit, None),
        ];
        for (decision, pattern) in refused {
            assert!(!prompt.is_allowed(&like(decision, pattern)), "{decision:?} {pattern:?}");
        }
        let mode = PermissionAnswer { mode: Some("ask".into()), ..like(Is::AllowOnce, None) };
        assert!(!prompt.is_allowed(&mode));
        let words = serde_json::to_value(like(Is::AllowInSession, Some(1))).unwrap();
        assert_eq!(words, serde_json::json!({ "decision": "allow_in_session", "pattern": 1 }));
    }

    #[test]
    fn default_prompt_allows_no_answer() {
        let answer = PermissionAnswer::once(PermissionDecision::AllowOnce);
        assert!(!PermissionPrompt::default().is_allowed(&answer));
    }
}
