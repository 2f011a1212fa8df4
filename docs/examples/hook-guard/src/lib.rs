//! `hook-guard`: sees each tool call before it runs, and denies it, asks the user, or changes it,
//! by rules in the user's configuration.
//!
//! Shows a plugin with a hook and without any tool.
#![forbid(unsafe_code)]

mod rules;

use jaato_plugin_sdk::hooks::{BeforeTool, GuardAnswer, Hook, Hooks};
use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::{schemars, serde_json};

pub use rules::{GuardRules, GuardVerdict};

/// `[plugins.hook-guard]` of the user's configuration.
#[tool_type]
#[serde(default)]
struct Config {
    /// Deny a call whose arguments contain one of these phrases.
    deny: Vec<String>,
    /// Ask the user if the arguments contain one of these phrases.
    ask: Vec<String>,
    /// Commands, by their first words, that get `--dry-run`.
    dry_run: Vec<String>,
    /// The tools to check. Empty means all tools.
    tools: Vec<String>,
}

impl Default for Config {
    fn default() -> Self {
        let list = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        Self {
            deny: list(&["rm -rf /", "rm -rf ~", "git push --force"]),
            ask: list(&["git push", "rm -rf"]),
            dry_run: list(&["cargo publish", "npm publish"]),
            tools: Vec::new(),
        }
    }
}

/// The rules of one session.
pub struct Guard {
    rules: GuardRules,
    tools: Vec<String>,
}

impl State for Guard {
    async fn create(home: &Home, _saved: Option<Value>) -> Result<Self> {
        let Config { deny, ask, dry_run, tools } = home.config().await?;
        Ok(Self { rules: GuardRules { deny, ask, dry_run }, tools })
    }

    fn describe(description: &mut Description) {
        description.config_schema = serde_json::to_value(schemars::schema_for!(Config)).ok();
    }
}

impl Hooks for Guard {
    type State = Self;

    const ASKED: &'static [Hook] = &[Hook::BeforeTool];

    async fn before_tool(cx: &Cx<Self>, asked: BeforeTool) -> Result<GuardAnswer> {
        let Guard { rules, tools } = cx.state();
        if !tools.is_empty() && !tools.iter().any(|tool| tool == asked.tool.as_str()) {
            return Ok(GuardAnswer::GoOn);
        }
        Ok(match rules.judge(&asked.arguments) {
            GuardVerdict::GoOn => GuardAnswer::GoOn,
            GuardVerdict::Deny(rule) => GuardAnswer::deny(format!("`{rule}` must not run here")),
            GuardVerdict::Ask(rule) => GuardAnswer::ask(format!("it has `{rule}`")),
            GuardVerdict::Rewrite(arguments) => GuardAnswer::rewrite(arguments),
        })
    }
}

export_plugin! { state: Guard, hook: Guard }
