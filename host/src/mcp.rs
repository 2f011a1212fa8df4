//! `jaato mcp`: the command `mcp` of the plugin for servers, with its answer as text.

use serde_json::json;

use crate::args::Global;
use crate::command::{self, AnswerForm};
use crate::exit::Outcome;
use crate::terminal;

/// The plugin's command.
const COMMAND: &str = "mcp";

/// Runs it. What follows the name of a server stays as many words as the shell made of it.
pub async fn mcp(global: Global, words: &[String]) -> Outcome {
    terminal::reserve();
    let mut arguments = json!({});
    let mut words = words.iter();
    for key in ["action", "name"] {
        if let Some(word) = words.next() {
            arguments[key] = word.as_str().into();
        }
    }
    let rest: Vec<String> = words.map(|word| quoted(word)).collect();
    if !rest.is_empty() {
        arguments["command"] = rest.join(" ").into();
    }
    command::run(global, COMMAND, &[arguments.to_string()], AnswerForm::Text).await
}

/// Quotes a word for whoever splits the line again.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stay_words() {
        assert_eq!(quoted("npx"), "npx");
        assert_eq!(quoted("my server"), "'my server'");
        assert_eq!(quoted("it's"), "'it'\\''s'");
        assert_eq!(quoted(""), "''");
    }
}
