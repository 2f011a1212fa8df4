//! `template-name`: asks the user before a tool call that deletes something.
#![forbid(unsafe_code)]
use jaato_plugin_sdk::hooks::{BeforeTool, GuardAnswer, Hook, Hooks};
use jaato_plugin_sdk::prelude::*;

/// Words that mean a deletion, wherever they are in the arguments.
const DELETIONS: [&str; 3] = ["rm ", "delete", "remove"];

struct TemplateName;

impl Hooks for TemplateName {
    type State = ();

    // The host calls only the hooks that are listed here.
    const ASKED: &'static [Hook] = &[Hook::BeforeTool];

    async fn before_tool(_cx: &Cx, call: BeforeTool) -> Result<GuardAnswer> {
        if call.annotations.read_only {
            return Ok(GuardAnswer::GoOn);
        }
        Ok(match deletion(&call.arguments.to_string()) {
            Some(word) => GuardAnswer::ask(format!("it has `{}`", word.trim())),
            None => GuardAnswer::GoOn,
        })
    }
}

export_plugin! { state: (), hook: TemplateName }

/// Finds the first word that means a deletion.
fn deletion(arguments: &str) -> Option<&'static str> {
    DELETIONS.into_iter().find(|word| arguments.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_words_for_a_deletion_are_found() {
        assert_eq!(deletion(r#"{"command":"rm -r target"}"#), Some("rm "));
        assert_eq!(deletion(r#"{"path":"a","delete":true}"#), Some("delete"));
        assert_eq!(deletion(r#"{"command":"ls"}"#), None);
    }
}
