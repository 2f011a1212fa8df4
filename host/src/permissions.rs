//! `/permissions` and `/mode` of a conversation: lists and removes remembered answers, shows and
//! changes the approval mode.

use jaato_runtime::policy::{PolicyMode, Rules, SessionRule};
use jaato_runtime::session_loop::SessionHandle;
use jaato_runtime::types::Error;
use jaato_runtime::visible;

use crate::chat::slash;
use crate::exit::{CommandFailure, Exit};
use crate::report;

/// Parses a mode's name.
///
/// # Errors
/// Lists the valid names.
pub fn parse_mode(name: &str) -> Result<PolicyMode, String> {
    PolicyMode::from_name(name.trim()).ok_or_else(|| {
        let names: Vec<&str> = PolicyMode::ALL.iter().map(|mode| mode.name()).collect();
        format!("a mode is {}", names.join(", "))
    })
}

/// Shows the mode, or changes it.
///
/// # Errors
/// If the session is over.
pub fn run_mode_command(session: &SessionHandle, name: &str) -> Result<Exit, Error> {
    if name.is_empty() {
        report::print_remark(&mode_line(&session.rules()?.lock()));
        return Ok(Exit::Done);
    }
    Ok(match parse_mode(name) {
        Ok(mode) => {
            session.set_mode(mode)?;
            report::print_remark(&mode_line(&session.rules()?.lock()));
            Exit::Done
        }
        Err(text) => print_with_hint(text, "/mode shows the current mode"),
    })
}

/// Lists the remembered answers, or removes some of them.
///
/// # Errors
/// If the session is over.
pub fn run_permissions_command(session: &SessionHandle, words: &str) -> Result<Exit, Error> {
    let rules = session.rules()?;
    let words: Vec<&str> = words.split_whitespace().collect();
    Ok(match words.as_slice() {
        [] | ["list"] => {
            let lines = format_answers(&rules.lock());
            report::print_remark(&lines);
            Exit::Done
        }
        ["remove", "all"] => {
            let is_kept = rules.lock().answers().iter().any(is_permanent);
            session.change_rules(Rules::forget_answers)?;
            report::print_remark("Removed all answers: jaato will ask again.");
            remark_permanent_rule(is_kept);
            Exit::Done
        }
        ["remove", number] => {
            let index = number.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
            let taken = match index {
                Some(index) => session.change_rules(|it| it.remove_answer(index))?,
                None => None,
            };
            match taken {
                Some(rule) => {
                    let text = rule.pattern().describe_calls(rule.tool());
                    report::print_remark(&format!("removed: {}", visible::visible_name(&text)));
                    remark_permanent_rule(is_permanent(&rule));
                    Exit::Done
                }
                None => print_with_hint(
                    format!("no answer has the number {number}"),
                    &slash::hint("permissions"),
                ),
            }
        }
        _ => print_with_hint(
            format!("unknown: `/permissions {}`", words.join(" ")),
            &slash::hint("permissions"),
        ),
    })
}

/// Returns true if an answer is also a rule in the user's file.
fn is_permanent(rule: &SessionRule) -> bool {
    rule.decision().duration_name() == "always"
}

/// Tells the user that the rule of a removed answer is still in the file.
fn remark_permanent_rule(is_kept: bool) {
    if is_kept {
        report::print_remark(
            "The rule in your permissions.toml still holds in later sessions: `jaato permission list` \
             shows its number, `jaato permission remove NUMBER` removes it.",
        );
    }
}

/// Formats the answers with their numbers.
fn format_answers(rules: &Rules) -> String {
    let mut lines = vec![mode_line(rules)];
    if rules.answers().is_empty() {
        lines.push("No remembered answers.".to_owned());
    }
    for (rule, number) in rules.answers().iter().zip(1..) {
        let what = if rule.decision().can_run() { "allowed" } else { "denied" };
        let text = rule.pattern().describe_calls(rule.tool());
        let scope = match rule.decision().duration_name() {
            "turn" => "for this turn",
            "always" => "in this folder",
            _ => "in this session",
        };
        let (plugin, text) = (rule.plugin(), visible::visible_name(&text));
        lines.push(format!("{number:>3}  {what} {scope}: {text} ({plugin})"));
    }
    if !rules.answers().is_empty() {
        lines.push("/permissions remove NUMBER|all removes them".to_owned());
    }
    lines.join("\n")
}

fn mode_line(rules: &Rules) -> String {
    match rules.mode {
        PolicyMode::Ask | PolicyMode::AcceptEdits if rules.allow_all => {
            "Mode: --yes, tools run without asking."
        }
        PolicyMode::Ask => "Mode: ask before anything that changes files or runs commands.",
        PolicyMode::AcceptEdits => {
            "Mode: edits in this folder run without asking; commands still ask."
        }
        PolicyMode::ReadOnly => "Mode: read-only, only tools and commands that read run.",
        PolicyMode::Plan => {
            "Mode: plan, only tools and commands that read run until you agree to a plan."
        }
    }
    .to_owned()
}

fn print_with_hint(text: String, hint: &str) -> Exit {
    report::print_failure(&CommandFailure::new(Exit::Usage, text).hint(hint));
    Exit::Usage
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mode_is_parsed_by_name_and_unknown_modes_are_refused() {
        assert_eq!(parse_mode(" read-only "), Ok(PolicyMode::ReadOnly));
        assert_eq!(parse_mode("plan"), Ok(PolicyMode::Plan));
        assert_eq!(parse_mode("accept-edits"), Ok(PolicyMode::AcceptEdits));
        assert_eq!(
            parse_mode("auto"),
            Err("a mode is ask, accept-edits, plan, read-only".to_owned())
        );
    }

    #[test]
    fn list_without_remembered_answers_says_so() {
        let expected = "Mode: ask before anything that changes files or runs commands.\n\
                        No remembered answers.";
        assert_eq!(format_answers(&Rules::default()), expected);
    }
}
