//! Applies the rules to the texts of a call. Independent of plugins.
//!
//! A rule is a few words, and matches if they occur in sequence in a text: `rm -rf` in
//! `cd x && sudo rm  -rf .`. This catches mistakes of a model, but not deliberate evasion.

use jaato_plugin_sdk::prelude::Value;

/// The option that makes a command only show what it would do.
const DRY_RUN: &str = "--dry-run";

/// Rules, each a few words.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rules {
    /// Calls that must not run.
    pub deny: Vec<String>,
    /// Calls that the user must approve.
    pub ask: Vec<String>,
    /// Commands that get the option `--dry-run`.
    pub dry_run: Vec<String>,
}

/// The decision about a call.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// Run it unchanged.
    GoOn,
    /// Deny it because of this rule.
    Deny(String),
    /// Ask the user because of this rule.
    Ask(String),
    /// Run it with these arguments.
    Rewrite(Value),
}

impl Rules {
    /// Judges a call by all texts in its arguments. Deny rules come first and ask rules second, so
    /// a call is never changed before the user decides about it.
    pub fn judge(&self, arguments: &Value) -> Verdict {
        let texts = texts(arguments);
        let holds = |rules: &[String]| {
            let found =
                rules.iter().find(|rule| texts.iter().any(|text| place(text, rule).is_some()));
            found.cloned()
        };
        if let Some(rule) = holds(&self.deny) {
            return Verdict::Deny(rule);
        }
        if let Some(rule) = holds(&self.ask) {
            return Verdict::Ask(rule);
        }
        let mut rewritten = arguments.clone();
        self.make_dry(&mut rewritten);
        if rewritten == *arguments { Verdict::GoOn } else { Verdict::Rewrite(rewritten) }
    }

    fn make_dry(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                let places = self.dry_run.iter().filter_map(|rule| place(text, rule));
                let is_dry = text.split_whitespace().any(|word| word == DRY_RUN);
                if let Some(end) = places.min().filter(|_| !is_dry) {
                    text.insert_str(end, &format!(" {DRY_RUN}"));
                }
            }
            Value::Array(values) => values.iter_mut().for_each(|value| self.make_dry(value)),
            Value::Object(fields) => fields.values_mut().for_each(|value| self.make_dry(value)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

fn texts(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(values) => values.iter().flat_map(texts).collect(),
        Value::Object(fields) => fields.values().flat_map(texts).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}

/// Returns the offset at which the first occurrence of a rule's words ends in a text.
fn place(text: &str, rule: &str) -> Option<usize> {
    let wanted: Vec<&str> = rule.split_whitespace().collect();
    let words = words(text);
    let found = words.windows(wanted.len().max(1)).find(|window| {
        !wanted.is_empty() && window.iter().zip(&wanted).all(|((_, word), wanted)| word == wanted)
    })?;
    found.last().map(|(end, _)| *end)
}

/// Returns the words of a text, each with the offset of its end.
fn words(text: &str) -> Vec<(usize, &str)> {
    let start_of = |word: &str| word.as_ptr() as usize - text.as_ptr() as usize;
    text.split_whitespace().map(|word| (start_of(word) + word.len(), word)).collect()
}

#[cfg(test)]
mod tests {
    use jaato_plugin_sdk::prelude::json;

    use super::*;

    #[track_caller]
    fn check(command: &str, expected: Verdict) {
        let list = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let rules = Rules {
            deny: list(&["rm -rf", "mkfs"]),
            ask: list(&["git push"]),
            dry_run: list(&["cargo publish"]),
        };
        assert_eq!(rules.judge(&json!({ "command": command, "n": 1 })), expected, "{command}");
    }

    fn dry(command: &str) -> Verdict {
        Verdict::Rewrite(json!({ "command": command, "n": 1 }))
    }

    #[test]
    fn rule_matches_its_words_in_sequence() {
        check("ls", Verdict::GoOn);
        check("rm -r -f x", Verdict::GoOn);
        check("rmdir -rf x", Verdict::GoOn);
        check("cd /tmp && sudo  rm \t -rf x", Verdict::Deny("rm -rf".to_owned()));
        check("git  push origin", Verdict::Ask("git push".to_owned()));
        check("git push; mkfs /dev/sda", Verdict::Deny("mkfs".to_owned()));
    }

    #[test]
    fn dry_run_option_is_inserted_once_after_the_command() {
        check("cargo publish -p moon", dry("cargo publish --dry-run -p moon"));
        check("cd é && cargo  publish", dry("cd é && cargo  publish --dry-run"));
        check("cargo publish --dry-run", Verdict::GoOn);
    }

    #[test]
    fn rules_match_texts_at_any_depth_of_the_arguments() {
        let rules = Rules { deny: vec!["mkfs".to_owned()], ..Rules::default() };
        let arguments = json!({ "all": [{ "run": ["sudo mkfs"] }] });
        assert_eq!(rules.judge(&arguments), Verdict::Deny("mkfs".to_owned()));
        // A rule without words never matches.
        let empty = Rules { deny: vec![" ".to_owned()], ..Rules::default() };
        assert_eq!(empty.judge(&arguments), Verdict::GoOn);
        assert_eq!(empty.judge(&json!({ "text": "" })), Verdict::GoOn);
    }
}
