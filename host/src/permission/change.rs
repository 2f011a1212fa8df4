//! `jaato permission allow`, `deny` and `remove`: rules in the user's file, or the workspace's.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use clap::Args;
use jaato_runtime::config::permissions::{
    NewRule, RULES_FILE, add_rule, edit_rules, load_text_rules, remove_rule,
};
use jaato_runtime::config::trust::{TrustStore, WorkspaceState, refuse_inside_session};
use jaato_runtime::policy::{CommandPattern, RestOfCommand};
use jaato_runtime::types::ToolName;
use jaato_runtime::{Setup, visible};

use crate::args::GlobalArgs;
use crate::exit::{CommandFailure, CommandResult, Exit};
use crate::{report, start, trust};

/// The conditions of a rule to add.
#[derive(Debug, Args)]
pub struct RuleArgs {
    /// The tool; `*` matches any characters
    pub tool: Option<String>,

    /// A command: a program and its first words
    #[arg(long, value_name = "WORDS")]
    pub command: Option<String>,

    /// What may follow these words
    #[arg(long, value_name = "WHICH", requires = "command", value_parser = ["safe", "read", "any", "none"])]
    pub options: Option<String>,

    /// A file, or a folder and everything in it
    #[arg(long, value_name = "PATH")]
    pub path: Option<String>,

    /// The host of a URL
    #[arg(long, value_name = "HOST")]
    pub host: Option<String>,

    /// An argument of the tool; repeatable
    #[arg(long, value_name = "NAME=TEXT")]
    pub argument: Vec<String>,

    /// The reason, shown when a call is denied
    #[arg(long, value_name = "TEXT")]
    pub why: Option<String>,

    /// Write to the workspace's file instead of your own
    #[arg(long)]
    pub workspace: bool,
}

/// Adds a rule.
pub fn add_rule_command(global: GlobalArgs, decision: &str, args: RuleArgs) -> CommandResult {
    let setup = start::read_setup(start::setup_arguments(global))?;
    args.tool.as_deref().map_or(Ok(()), check_tool_name)?;
    let rule = new_rule(decision, &args)?;
    let place = EditedRulesFile::locate(&setup, args.workspace)?;
    let changed = place.edit_text(&setup, |text| {
        let text = add_rule(text, &rule)?;
        // Never write text that would break the file.
        text.map(|text| place.check_rules_text(text)).transpose()
    })?;
    let path = visible::visible_name(&place.path.display().to_string()).into_owned();
    let said = if changed { "is in" } else { "is already in" };
    report::print_sentence(&format!("the rule {said} `{path}`"))?;
    if let Some(command) = args.command.as_deref().filter(|_| decision == "allow")
        && !can_allow(command, args.options.as_deref())
    {
        let text = format!(
            "the rule allows no call yet, because `{command}` can run or write anything; name more \
             words, for example the script, or add `--options any` to allow every option"
        );
        report::print_problems(&[text]);
    }
    Ok(Exit::Done)
}

/// Returns true if a rule for this command allows a call of it.
fn can_allow(command: &str, options: Option<&str>) -> bool {
    let rest = match options {
        Some("any") => RestOfCommand::AnyOptions,
        Some("none") => RestOfCommand::Nothing,
        Some("read") => RestOfCommand::Reading,
        _ => RestOfCommand::SafeOptions,
    };
    CommandPattern::parse(command, rest).is_some_and(|pattern| pattern.can_allow())
}

/// Refuses a command line that was given as a tool's name.
fn check_tool_name(tool: &str) -> Result<(), CommandFailure> {
    let letters = tool.replace(['*', '?'], "x");
    if ToolName::from(letters.as_str()).is_valid() {
        return Ok(());
    }
    let text = format!("`{tool}` is not a tool name; did you mean `--command '{tool}'`?");
    Err(CommandFailure::new(Exit::Usage, text))
}

/// Removes a rule by its number.
pub fn remove_rule_command(global: GlobalArgs, number: usize, workspace: bool) -> CommandResult {
    let setup = start::read_setup(start::setup_arguments(global))?;
    let place = EditedRulesFile::locate(&setup, workspace)?;
    place.edit_text(&setup, |text| remove_rule(text, number).map(Some))?;
    let path = visible::visible_name(&place.path.display().to_string()).into_owned();
    report::print_sentence(&format!("removed rule {number} from `{path}`"))?;
    Ok(Exit::Done)
}

fn new_rule(decision: &str, args: &RuleArgs) -> Result<NewRule, CommandFailure> {
    let mut keys = Vec::new();
    let mut add = |name: &str, value: &Option<String>| {
        keys.extend(value.clone().map(|value| (name.to_owned(), value)));
    };
    add("tool", &args.tool);
    add("command", &args.command);
    add("options", &args.options);
    add("path", &args.path);
    add("host", &args.host);
    for argument in &args.argument {
        let (name, value) = argument.split_once('=').ok_or_else(|| {
            CommandFailure::new(Exit::Usage, format!("`--argument {argument}` is not NAME=TEXT"))
        })?;
        keys.push((format!("argument.{name}"), value.to_owned()));
    }
    if keys.is_empty() {
        let text = "a rule needs a tool, --command, --path, --host or --argument";
        return Err(CommandFailure::new(Exit::Usage, text));
    }
    keys.extend(args.why.clone().map(|why| ("why".to_owned(), why)));
    Ok(NewRule { decision: decision.to_owned(), keys })
}

/// The file to change.
struct EditedRulesFile {
    path: PathBuf,
    /// The file's name from the workspace's root, if it is the workspace's.
    of_workspace: Option<String>,
    root: PathBuf,
}

impl EditedRulesFile {
    fn locate(setup: &Setup, workspace: bool) -> Result<Self, CommandFailure> {
        refuse_inside_session(&setup.variables).map_err(trust::trust_failure)?;
        let root = setup.workspace.root().to_owned();
        if !workspace {
            let path = setup.folders.config_folder()?.join(RULES_FILE);
            return Ok(Self { path, of_workspace: None, root });
        }
        let name = format!(".jaato/{RULES_FILE}");
        Ok(Self { path: root.join(&name), of_workspace: Some(name), root })
    }

    /// Changes the file. A trusted workspace stays trusted.
    fn edit_text(
        &self,
        setup: &Setup,
        edit: impl FnOnce(&str) -> Result<Option<String>, String>,
    ) -> Result<bool, CommandFailure> {
        let failed = |error| CommandFailure::new(Exit::Configuration, format!("{error}"));
        let (Some(name), WorkspaceState::Trusted(trusted)) =
            (&self.of_workspace, &setup.workspace_state)
        else {
            return edit_rules(&self.path, edit).map_err(failed);
        };
        let wrong = |what: String| {
            let path = visible::visible_name(&self.path.display().to_string()).into_owned();
            CommandFailure::new(Exit::Configuration, format!("cannot change `{path}`: {what}"))
        };
        let bytes = trusted.read_file(name).map_err(trust::trust_failure)?.unwrap_or_default();
        let text = String::from_utf8(bytes).map_err(|error| wrong(error.to_string()))?;
        let Some(text) = edit(&text).map_err(wrong)? else { return Ok(false) };
        let store = TrustStore::in_folder(setup.folders.data_folder()?);
        let now = SystemTime::now();
        store
            .rewrite_file(&setup.workspace, name, text.as_bytes(), now)
            .map_err(trust::trust_failure)?;
        Ok(true)
    }

    fn check_rules_text(&self, text: String) -> Result<String, String> {
        let is_workspace = self.of_workspace.is_some();
        let home: Option<&Path> = None;
        match load_text_rules(&self.path, &text, is_workspace, home, &self.root) {
            Some((line, what)) => Err(format!("line {line}: {what}")),
            None => Ok(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_is_not_the_name_of_a_tool() {
        assert!(check_tool_name("mcp__*").is_ok() && check_tool_name("readFile").is_ok());
        let failure = check_tool_name("git log").unwrap_err();
        assert!(failure.message.contains("--command 'git log'"), "{}", failure.message);
    }
}
