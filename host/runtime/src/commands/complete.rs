//! Offers the next words while a user types a command: values from its schema, and words from its
//! plugin.

use std::collections::BTreeSet;
use std::sync::Arc;

use jaato_instances::{CallSite, FacetRequest, invalid_answer_error};
use jaato_session::{AnswerDeadline, Cancel, Session, SharedFacts, SystemClock};
use jaato_types::hooks::{CompleteWords, HOOK_MS_MAX, WordChoice, WordChoices};
use jaato_types::{CommandSpec, Error, ErrorKind, Frame, PluginName, SessionId};

use super::{own, words};
use crate::host::RuntimeHost;
use crate::runtime::Runtime;

/// Maximum number of words offered at once. No one reads more.
pub const WORD_CHOICES_MAX: usize = 100;
/// Longest word that is offered, in bytes.
const WORD_BYTES_MAX: usize = 200;
/// Longest description of a word, in characters.
const DESCRIPTION_CHARS_MAX: usize = 120;

/// Offers words in one session without borrowing it.
#[derive(Clone)]
pub struct WordCompleter {
    host: Arc<RuntimeHost>,
    session: SessionId,
    facts: SharedFacts,
}

impl Runtime {
    /// Returns a completer for the commands that a user types in a session.
    pub fn word_completer(&self, session: &Session) -> WordCompleter {
        let (host, session_id) = (Arc::clone(self.host()), session.id().clone());
        WordCompleter { host, session: session_id, facts: session.shared_facts() }
    }
}

impl WordCompleter {
    /// Lists the commands whose names have this prefix, sorted by name.
    pub fn complete_names(&self, begun: &str) -> Vec<WordChoice> {
        let registry = self.host.registry();
        let of_plugins = registry.commands().map(|entry| entry.spec.clone());
        let set = self.host.plugins.plugins.set_commands(Some(&self.session));
        let set = set.into_iter().map(|(_, spec)| spec);
        let mut specs: Vec<CommandSpec> =
            own::built_in_specs().into_iter().chain(of_plugins).chain(set).collect();
        specs.retain(|spec| !spec.unlisted);
        specs.sort_by(|a, b| a.name.cmp(&b.name));
        let choices = specs.into_iter().map(|it| WordChoice::new(it.name, it.description));
        usable_choices(choices.collect(), begun)
    }

    /// Lists words that may follow a command's name. The list is empty if the command does not
    /// exist, or its plugin does not answer in time.
    pub async fn complete_words(
        &self,
        command: &str,
        words: &[String],
        begun: &str,
    ) -> Vec<WordChoice> {
        let Some((spec, plugin)) = self.find_command(command) else { return Vec::new() };
        let mut choices = words::listed_choices(&spec, words.len());
        if let Some(plugin) = plugin.filter(|_| spec.completes) {
            let asked = CompleteWords::new(command, words.to_vec(), begun);
            match self.ask_plugin_for_words(&plugin, &asked).await {
                Ok(answer) => choices.extend(answer.choices),
                Err(error) => {
                    // An error must not disturb the line that the user is typing.
                    let text = format!("words of the command `{command}`: {error}");
                    self.host.log.write_line(2, plugin.as_str(), &text);
                }
            }
        }
        usable_choices(choices, begun)
    }

    fn find_command(&self, command: &str) -> Option<(CommandSpec, Option<PluginName>)> {
        if let Some(spec) = own::built_in_specs().into_iter().find(|spec| spec.name == command) {
            return Some((spec, None));
        }
        let registry = self.host.registry();
        if let Some(entry) = registry.command(command) {
            return Some((entry.spec.clone(), Some(entry.plugin.clone())));
        }
        let set = self.host.plugins.plugins.set_commands(Some(&self.session)).into_iter();
        let mut found = set.filter(|(_, spec)| spec.name == command);
        found.next().map(|(plugin, spec)| (spec, Some(plugin)))
    }

    async fn ask_plugin_for_words(
        &self,
        plugin: &PluginName,
        asked: &CompleteWords,
    ) -> Result<WordChoices, Error> {
        let frame = Frame::write(asked)
            .map_err(|error| Error::new(ErrorKind::InvalidArguments, error.to_string()))?;
        let site = self.host.environments.call_site(&self.session).read_only();
        let deadline = AnswerDeadline {
            clock: Arc::new(SystemClock::new()),
            cancel: &Cancel::new(),
            ms: HOOK_MS_MAX,
            late: format!("its plugin did not answer within {HOOK_MS_MAX} ms"),
        };
        let (plugins, tell) = (&self.host.plugins, Arc::new(|_| {}) as _);
        let answer = deadline.wait_for_answer(async |stop, hold| {
            let site = CallSite { facts: Some(self.facts.clone()), hold, ..site };
            let (name, facet) = (plugin.as_str(), FacetRequest::CompleteWords);
            plugins.call_plugin(name, facet, site, frame, &tell, &stop).await
        });
        Frame::read(&answer.await?).map_err(invalid_answer_error(plugin.as_str()))
    }
}

/// Keeps the words that continue the typed text and form a single word, without duplicates.
fn usable_choices(choices: Vec<WordChoice>, begun: &str) -> Vec<WordChoice> {
    let is_word = |text: &str| {
        let is_sign = |sign: char| !sign.is_whitespace() && !sign.is_control();
        !text.is_empty() && text.len() <= WORD_BYTES_MAX && text.chars().all(is_sign)
    };
    let mut seen = BTreeSet::new();
    let mut kept = Vec::new();
    for WordChoice { text, description } in choices {
        if kept.len() >= WORD_CHOICES_MAX {
            break;
        }
        if text.starts_with(begun) && is_word(&text) && seen.insert(text.clone()) {
            let line = description.lines().next().unwrap_or_default();
            let description: String = line.chars().take(DESCRIPTION_CHARS_MAX).collect();
            kept.push(WordChoice { text, description });
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn completions_that_match_the_typed_prefix_are_kept_once() {
        let offered = ["milk", "mint", "milk", "bread", "two words", "mi\u{1b}[2J", ""];
        let offered = WordChoices::from_words(offered).choices;
        let kept: Vec<_> = usable_choices(offered, "mi").into_iter().map(|it| it.text).collect();
        assert_eq!(kept, ["milk", "mint"]);
    }

    #[test]
    fn number_and_length_of_completions_are_limited() {
        let many = (0..10_000).map(|number| WordChoice::new(number.to_string(), "x\ny"));
        let kept = usable_choices(many.collect(), "");
        assert_eq!((kept.len(), kept[0].description.as_str()), (WORD_CHOICES_MAX, "x"));
        let long = vec![WordChoice::new("x".repeat(WORD_BYTES_MAX + 1), "")];
        assert_eq!(usable_choices(long, ""), []);
    }
}
