//! Ways on which a question about a call reaches who answers it, where that is neither a terminal
//! nor the program that runs jaato: a server, and a folder.
//!
//! Both have the original's form ([`wire`]). Whatever goes wrong denies the call.

mod folder;
mod webhook;
mod wire;

use std::sync::Arc;

use futures_util::future::BoxFuture;
use jaato_config::{Endpoint, PermissionChannel};
use jaato_http::{Client, Network, Settings};
use jaato_session::{
    Answer, Asker, FormQuestion, Question, SecretAnswer, SecretQuestion,
};
use jaato_types::ask::FormAnswer;
use jaato_types::{Error, ErrorKind};

use crate::Runtime;
use crate::Setup;

pub use folder::FolderAsker;
pub use webhook::WebhookAsker;

/// How long an answer is waited for where nobody says otherwise: nobody sits there who could stop
/// the run.
pub const ANSWER_MS: u64 = 5 * 60 * 1_000;

/// The variable with the secret that a webhook is shown.
const TOKEN: &str = "PERMISSION_WEBHOOK_TOKEN";

impl Runtime {
    /// Returns who is asked about calls where the configuration names a channel, and for all else
    /// these; without a channel these alone.
    ///
    /// # Errors
    /// `configuration` where the channel's endpoint is missing, or none that it can use.
    pub fn asker(&self, others: Arc<dyn Asker>) -> Result<Arc<dyn Asker>, Error> {
        Ok(match configured_channel(self.setup())? {
            Some(calls) => Arc::new(CallsBy { calls, others }),
            None => others,
        })
    }
}

/// Asks about calls on one way, and for all else on another.
pub struct CallsBy {
    /// Is asked about calls.
    pub calls: Arc<dyn Asker>,
    /// Is shown forms, and types secrets.
    pub others: Arc<dyn Asker>,
}

impl Asker for CallsBy {
    fn nobody(&self) -> Option<String> {
        self.calls.nobody()
    }

    fn channel(&self) -> &str {
        self.calls.channel()
    }

    fn patience_ms(&self) -> Option<u64> {
        self.calls.patience_ms()
    }

    fn ask<'a>(&'a self, question: Question<'a>) -> BoxFuture<'a, Answer> {
        self.calls.ask(question)
    }

    fn secret<'a>(&'a self, question: SecretQuestion<'a>) -> BoxFuture<'a, SecretAnswer> {
        self.others.secret(question)
    }

    fn form<'a>(&'a self, question: FormQuestion<'a>) -> BoxFuture<'a, FormAnswer> {
        match self.others.nobody() {
            Some(reason) => Box::pin(std::future::ready(FormAnswer::nobody(reason))),
            None => self.others.form(question),
        }
    }
}

/// Makes the channel that the configuration names; nothing where it is the terminal.
///
/// # Errors
/// `configuration` where its endpoint is missing, or none that it can use.
fn configured_channel(setup: &Setup) -> Result<Option<Arc<dyn Asker>>, Error> {
    let settings = &setup.config.permissions;
    let wrong = |text: String, hint: &str| {
        Err(Error::new(ErrorKind::Configuration, text).with_hint(hint))
    };
    match (settings.channel, &settings.endpoint) {
        (PermissionChannel::Terminal, _) => Ok(None),
        (PermissionChannel::Webhook, Some(Endpoint::Url(url))) => {
            let network = if setup.config.offline { Network::Offline } else { Network::Online };
            let client = Client::new(Settings { network, ..Settings::default() });
            let token = setup.variables.get(TOKEN).and_then(|value| value.to_str().map(str::to_owned));
            Ok(Some(Arc::new(WebhookAsker::new(client, url, token.as_deref())?)))
        }
        (PermissionChannel::File, Some(Endpoint::Folder(folder))) => {
            Ok(Some(Arc::new(FolderAsker::new(folder.clone()))))
        }
        (PermissionChannel::Webhook, Some(Endpoint::Folder(_)) | None) => wrong(
            "`[permissions] channel = \"webhook\"` needs a URL".to_owned(),
            "`endpoint = \"https://…\"` beside it names one",
        ),
        (PermissionChannel::File, Some(Endpoint::Url(_)) | None) => wrong(
            "`[permissions] channel = \"file\"` needs a folder".to_owned(),
            "`endpoint = \"/…\"` beside it names one",
        ),
    }
}

#[cfg(test)]
mod tests;
