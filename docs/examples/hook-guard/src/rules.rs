//! Applies the rules to the texts of a call. Independent of plugins.
//!
//! A rule is a few words, and matches if they occur in sequence in a text: `rm -rf` in
//! `cd x && sudo rm  -rf .`. This catches mistakes of a model, but not deliberate evasion.

use jaato_plugin_sdk::prelude::Value;

/// The option that makes a command only show what it would do.
const DRY_RUN: &str = "--dry-run";

/// Rules, each a few words.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GuardRules {
    /// Calls that must not run.
    pub deny: Vec<String>,
    /// Calls that the user must approve.
    pub ask: Vec<String>,
    /// Commands that get the option `--dry-run`.
    pub dry_run: Vec<String>,
}

/// The decision about a call.
#[derive(Debug, Clone, PartialEq)]
pub enum GuardVerdict {
    /// Run it unchanged.
    GoOn,
    /// Deny it because of this rule.
    Deny(String),
    /// Ask the user because of this rule.
    Ask(String),
    /// Run it with these arguments.
    Rewrite(Value),
}

impl GuardRules {
    /// Judges a call by all texts in its arguments. Deny rules come first and ask rules second, so
    /// a call is never changed before the user decides about it.
    pub fn judge(&self, arguments: &Value) -> GuardVerdict {
        let texts = string_values(arguments);
        let holds = |rules: &[String]| {
            let found =
                rules.iter().find(|rule| texts.iter().any(|text| match_end(text, rule).is_some()));
            found.cloned()
        };
        if let Some(rule) = holds(&self.deny) {
            return GuardVerdict::Deny(rule);
        }
        if let Some(rule) = holds(&self.ask) {
            return GuardVerdict::Ask(rule);
        }
        let mut rewritten = arguments.clone();
        self.add_dry_run(&mut rewritten);
        if rewritten == *arguments { GuardVerdict::GoOn } else { GuardVerdict::Rewrite(rewritten) }
    }

    fn add_dry_run(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                let places = self.dry_run.iter().filter_map(|rule| match_end(text, rule));
                let is_dry = text.split_whitespace().any(|word| word == DRY_RUN);
                if let Some(end) = places.min().filter(|_| !is_dry) {
                    text.insert_str(end, &format!(" {DRY_RUN}"));
                }
            }
            Value::Array(values) => values.iter_mut().for_each(|value| self.add_dry_run(value)),
            Value::Object(fields) => fields.values_mut().for_each(|value| self.add_dry_run(value)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

fn string_values(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(values) => values.iter().flat_map(string_values).collect(),
        Value::Object(fields) => fields.values().flat_map(string_values).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}

/// Returns the offset at which the first occurrence of a rule's words ends in a text.
fn match_end(text: &str, rule: &str) -> Option<usize> {
    let wanted: Vec<&str> = rule.split_whitespace().collect();
    let words = words_with_ends(text);
    let found = words.windows(wanted.len().max(1)).find(|window| {
        !wanted.is_empty() && window.iter().zip(&wanted).all(|((_, word), wanted)| word == wanted)
    })?;
    found.last().map(|(end, _)| *end)
}

/// Returns the words of a text, each with the offset of its end.
fn words_with_ends(text: &str) -> Vec<(usize, &str)> {
    let start_of = |word: &str| word.as_ptr() as usize - text.as_ptr() as usize;
    text.split_whitespace().map(|word| (start_of(word) + word.len(), word)).collect()
}

#[cfg(test)]
mod tests {
    use jaato_plugin_sdk::prelude::json;

    use super::*;

    #[track_caller]
    fn check_verdict(command: &str, expected: GuardVerdict) {
        let list = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let rules = GuardRules {
            deny: list(&["rm -rf", "mkfs"]),
            ask: list(&["git push"]),
            dry_run: list(&["cargo publish"]),
        };
        assert_eq!(rules.judge(&json!({ "command": command, "n": 1 })), expected, "{command}");
    }

    fn dry_run_verdict(command: &str) -> GuardVerdict {
        GuardVerdict::Rewrite(json!({ "command": command, "n": 1 }))
    }

    #[test]
    fn rule_matches_its_words_in_sequence() {
        check_verdict("ls", GuardVerdict::GoOn);
        check_verdict("rm -r -f x", GuardVerdict::GoOn);
        check_verdict("rmdir -rf x", GuardVerdict::GoOn);
        check_verdict("cd /tmp && sudo  rm \t -rf x", GuardVerdict::Deny("rm -rf".to_owned()));
        check_verdict("git  push origin", GuardVerdict::Ask("git push".to_owned()));
        check_verdict("git push; mkfs /dev/sda", GuardVerdict::Deny("mkfs".to_owned()));
    }

    #[test]
    fn dry_run_option_is_inserted_once_after_the_command() {
        check_verdict("cargo publish -p moon", dry_run_verdict("cargo publish --dry-run -p moon"));
        check_verdict(
            "cd é && cargo  publish",
            dry_run_verdict("cd é && cargo  publish --dry-run"),
        );
        check_verdict("cargo publish --dry-run", GuardVerdict::GoOn);
    }

    #[test]
    fn rules_match_texts_at_any_depth_of_the_arguments() {
        let rules = GuardRules { deny: vec!["mkfs".to_owned()], ..GuardRules::default() };
        let arguments = json!({ "all": [{ "run": ["sudo mkfs"] }] });
        assert_eq!(rules.judge(&arguments), GuardVerdict::Deny("mkfs".to_owned()));
        // A rule without words never matches.
        let empty = GuardRules { deny: vec![" ".to_owned()], ..GuardRules::default() };
        assert_eq!(empty.judge(&arguments), GuardVerdict::GoOn);
        assert_eq!(empty.judge(&json!({ "text": "" })), GuardVerdict::GoOn);
    }
}
