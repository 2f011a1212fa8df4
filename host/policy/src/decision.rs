//! A decision: what to do with a call, the rule that decided, and an explanation.

use crate::edits::protected_paths;
use crate::{PluginSource, PolicyCall, RuleId, RuleLayer, RuleOutcome, RuleRef, WrittenRule};

/// A decision about a call, with its reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// What to do.
    pub outcome: RuleOutcome,
    /// The rule that decided.
    pub rule: RuleRef,
}

impl Decision {
    /// Creates the decision of a rule.
    pub(crate) fn from_rule(rule: RuleRef) -> Self {
        Self { outcome: rule.id.outcome(), rule }
    }

    /// Returns the decision and its rule in one line.
    pub fn explain(&self, call: &PolicyCall<'_>) -> String {
        let (tool, plugin) = (call.tool, call.plugin);
        match self.rule.id {
            RuleId::Disabled => format!("tool `{tool}` is disabled by `[tools] disabled`"),
            RuleId::SessionNever => {
                format!("the user denied calls to `{tool}` like this one for this session")
            }
            RuleId::ModeReadOnly => format!(
                "mode `read-only` allows no changes, and tool `{tool}` may change something"
            ),
            RuleId::ModePlan => {
                format!(
                    "mode `plan` allows no changes until the user agrees to a plan, and tool `{tool}` \
                     may change something"
                )
            }
            RuleId::ModeStartPlan => {
                "mode `plan` ends only when the user agrees to the plan".to_owned()
            }
            RuleId::OwnCall => "the user typed this call".to_owned(),
            RuleId::AllowOption => format!("`--allow {}` was given", allow_option_value(call)),
            RuleId::YesOption => "`--yes` was given".to_owned(),
            RuleId::SessionAlways => format!("the user allowed tool `{tool}` for this session"),
            RuleId::ModeAcceptEdits => {
                "mode `accept-edits` allows changes to files in the workspace".to_owned()
            }
            RuleId::UncheckedRead => {
                "the call skips the check of the server's certificate, or the user's proxy"
                    .to_owned()
            }
            RuleId::NewHost => format!(
                "{} is new in this session, and a page may tell a model to send data there",
                quote_names(&call.argument_hosts())
            ),
            RuleId::ReadOnly => {
                format!("tool `{tool}` is read-only, and plugin `{plugin}` is shipped with jaato")
            }
            RuleId::AutoApproval => format!(
                "tool `{tool}` needs no permission, and plugin `{plugin}` is shipped with jaato"
            ),
            RuleId::UnprovenPromise => format!(
                "tool `{tool}` needs permission: it claims to need none, but plugin `{plugin}` is \
                 not shipped with jaato, so the claim does not count"
            ),
            RuleId::Silence => match protected_paths(call).first() {
                None => format!("tool `{tool}` needs permission"),
                Some(path) => {
                    let is_inside = call.directory.is_some_and(|it| path.starts_with(it));
                    let what = if is_inside { "protected" } else { "outside this folder" };
                    format!(
                        "tool `{tool}` needs permission: `{}` is {what}, even in mode \
                         `accept-edits`",
                        path.display()
                    )
                }
            },
            RuleId::FileBroken
            | RuleId::FileDeny
            | RuleId::FileUnclear
            | RuleId::FileAsk
            | RuleId::FileAllow
            | RuleId::FileDefaultDeny
            | RuleId::FileDefaultAsk
            | RuleId::FileDefaultAllow => self
                .rule
                .written
                .as_ref()
                .map_or_else(String::new, |written| explain_file_rule(self.rule.id, written)),
        }
    }

    /// Returns a hint about a refusal. Returns `None` for an allowed call.
    pub fn refusal_hint(&self, call: &PolicyCall<'_>) -> Option<String> {
        match (self.outcome, self.rule.id) {
            (RuleOutcome::Allow, _) | (_, RuleId::SessionNever) => None,
            (_, RuleId::Disabled) => Some(format!(
                "remove `{}` from `[tools] disabled`; `jaato config show` shows where it is set",
                call.tool
            )),
            (_, RuleId::ModeReadOnly) => Some("choose another mode for the session".to_owned()),
            (_, RuleId::ModePlan) => Some(
                "read what you need, write the plan with `createPlan`, then call \
                 `startPlan`: the user decides"
                    .to_owned(),
            ),
            (_, RuleId::ModeStartPlan) => Some("choose another mode for the session".to_owned()),
            (_, RuleId::FileBroken) => {
                Some("fix the file: `jaato permission list` shows what is wrong".to_owned())
            }
            (RuleOutcome::Deny, _) => Some(
                "`jaato permission explain` shows every rule that was tried; respect the rule: do \
                 not try to bypass it"
                    .to_owned(),
            ),
            (RuleOutcome::Ask, RuleId::FileUnclear) => Some(
                "write the command plainly: one simple command without variables and substitutions"
                    .to_owned(),
            ),
            (RuleOutcome::Ask, _) if self.rule.layer == RuleLayer::Enterprise => None,
            (RuleOutcome::Ask, _) => {
                let word = allow_option_value(call);
                Some(format!("allow it with `--allow {word}`, or everything with `--yes`"))
            }
        }
    }
}

fn quote_names(names: &[String]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    quoted.join(", ")
}

/// Explains a rule of a file: its text, its place, and the part of the call that it matched.
fn explain_file_rule(id: RuleId, written: &WrittenRule) -> String {
    let WrittenRule { rule, file, line, why, about } = written;
    let about = about.as_ref().map(|about| format!(" for {about}")).unwrap_or_default();
    let why = why.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
    let perhaps = match id == RuleId::FileUnclear {
        true => "cannot determine whether this rule matches: ",
        false => "",
    };
    format!("{perhaps}`{rule}` at `{file}:{line}`{about}{why}")
}

/// Returns a tool in the form that `--allow` takes.
fn allow_option_value(call: &PolicyCall<'_>) -> String {
    match call.source {
        PluginSource::Shipped | PluginSource::Relayed => call.tool.to_string(),
        PluginSource::Elsewhere => format!("{}:{}", call.plugin, call.tool),
    }
}
