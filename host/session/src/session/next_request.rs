//! Lets plugins change the next request, but nothing that was sent before.

use std::sync::Arc;

use jaato_types::hooks::Hook;
use jaato_types::{Error, Event};

use super::Session;
use crate::history::ExpectedMessage;
use crate::hooks::RequestHook;
use crate::{Cancel, HistoryError};

impl Session {
    /// Asks the plugins. Each gets the previous one's result. Returns an error for the user if one
    /// ends the turn.
    pub(crate) async fn ask_before_request(
        &mut self,
        cancel: &Cancel,
    ) -> Result<Option<Error>, HistoryError> {
        self.options_asked = None;
        let hooks = Arc::clone(&self.shared.hooks);
        for plugin in hooks.plugins_to_ask(Hook::BeforeRequest) {
            let Some(newest) = self.history.messages().next_back().cloned() else { break };
            let options = self.options_asked.as_ref().unwrap_or(&self.prefix.options);
            let asked = RequestHook { options, takes: &self.takes, newest };
            let Some(change) = hooks.ask_request_hook(&plugin, asked, cancel).await else {
                continue;
            };
            if let Some(refused) = change.refusal_error(&plugin) {
                return Ok(Some(refused));
            }
            // A message that the model has seen must stay the same.
            let part = change.appended_part(&plugin).filter(|_| self.is_newest_unsent());
            let tokens = part.as_ref().map_or(0, |(_, tokens)| *tokens);
            if let Some((part, _)) = part {
                self.history.add_news(vec![part])?;
            }
            if !change.changed.is_empty() {
                self.options_asked = Some(change.options);
            }
            if !change.changed.is_empty() || tokens > 0 {
                let (source, options) = (plugin.source, change.changed);
                let event = Event::RequestChanged { source, options, tokens };
                self.shared.emitter.emit(event);
            }
        }
        Ok(None)
    }

    fn is_newest_unsent(&self) -> bool {
        self.history.expected_message() == ExpectedMessage::Answer
            && self.paused.is_empty()
            && self.sent_entries < self.history.entries().len()
    }
}
