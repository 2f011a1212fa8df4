//! Channels that carry permission prompts to someone other than the terminal or the embedding
//! program: a server or a folder.
//!
//! Both use the original's format ([`wire`]). Every failure denies the call.

mod folder;
mod webhook;
mod wire;

use std::path::Path;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use jaato_config::permissions::AskingChannel;
use jaato_config::{PermissionChannel, PromptEndpoint};
use jaato_http::{Client, HttpClientSettings, NetworkAccess};
use jaato_session::{
    FormQuestion, NoAnswer, PermissionAsker, SecretAnswer, SecretQuestion, UserAsker,
};
use jaato_types::ask::FormAnswer;
use jaato_types::permission_prompt::{PermissionAnswer, PermissionPrompt};
use jaato_types::{Error, ErrorKind, SessionId};

use crate::gate::own_rule_files;
use crate::{Runtime, Setup};

/// How long to wait for an answer by default, because no user is present who could stop the run.
pub const ANSWER_MS: u64 = 5 * 60 * 1_000;

/// The variable with the token that a webhook receives.
const TOKEN: &str = "PERMISSION_WEBHOOK_TOKEN";

/// A channel that sends a permission prompt and returns its answer.
pub trait ApprovalChannel: Send + Sync {
    /// The channel's name in the ledger.
    const NAME: &str;

    /// Sends a prompt and waits for its answer.
    fn request_answer<'a>(
        &'a self,
        session: &'a SessionId,
        prompt: &'a PermissionPrompt,
    ) -> BoxFuture<'a, Result<PermissionAnswer, NoAnswer>>;
}

/// Asks about tool calls through a channel. Without an answer, the user counts as absent.
pub struct ChannelAsker<C>(C);

/// Asks a server.
pub type WebhookAsker = ChannelAsker<webhook::ApprovalWebhook>;
/// Asks through a folder.
pub type FolderAsker = ChannelAsker<folder::ApprovalFolder>;

impl<C: ApprovalChannel> PermissionAsker for ChannelAsker<C> {
    fn unavailable_reason(&self) -> Option<String> {
        None
    }

    fn channel(&self) -> &str {
        C::NAME
    }

    fn answer_timeout_ms(&self) -> Option<u64> {
        Some(ANSWER_MS)
    }

    fn ask_permission<'a>(
        &'a self,
        session: &'a SessionId,
        prompt: &'a PermissionPrompt,
    ) -> BoxFuture<'a, Result<PermissionAnswer, NoAnswer>> {
        self.0.request_answer(session, prompt)
    }
}

/// The asker for tool calls only.
struct PermissionOnlyAsker {
    calls: Arc<dyn PermissionAsker>,
    patience_ms: Option<u64>,
}

impl Runtime {
    /// Returns an asker that sends permission prompts to the configured channel and everything else
    /// to `others`. Without a channel, returns `others`.
    ///
    /// # Errors
    /// `configuration` if the channel's endpoint is missing or cannot be used.
    pub fn asker_with_channel(
        &self,
        others: Arc<dyn UserAsker>,
    ) -> Result<Arc<dyn UserAsker>, Error> {
        Ok(match configured_channel(self.setup())? {
            Some(PermissionOnlyAsker { calls, patience_ms }) => {
                Arc::new(SplitAsker { calls, patience_ms, others })
            }
            None => others,
        })
    }
}

/// Sends permission prompts to one asker and everything else to another.
pub struct SplitAsker {
    /// Answers permission prompts.
    pub calls: Arc<dyn PermissionAsker>,
    /// How long to wait for an answer. `None` waits forever.
    pub patience_ms: Option<u64>,
    /// Answers forms and asks for secrets.
    pub others: Arc<dyn UserAsker>,
}

impl PermissionAsker for SplitAsker {
    fn unavailable_reason(&self) -> Option<String> {
        self.calls.unavailable_reason()
    }

    fn channel(&self) -> &str {
        self.calls.channel()
    }

    fn answer_timeout_ms(&self) -> Option<u64> {
        self.patience_ms
    }

    fn ask_permission<'a>(
        &'a self,
        session: &'a SessionId,
        prompt: &'a PermissionPrompt,
    ) -> BoxFuture<'a, Result<PermissionAnswer, NoAnswer>> {
        self.calls.ask_permission(session, prompt)
    }
}

impl UserAsker for SplitAsker {
    fn ask_secret<'a>(&'a self, question: SecretQuestion<'a>) -> BoxFuture<'a, SecretAnswer> {
        self.others.ask_secret(question)
    }

    fn ask_form<'a>(&'a self, question: FormQuestion<'a>) -> BoxFuture<'a, FormAnswer> {
        match self.others.unavailable_reason() {
            Some(reason) => Box::pin(std::future::ready(FormAnswer::without_user(reason))),
            None => self.others.ask_form(question),
        }
    }
}

/// A channel and its settings.
#[derive(Debug, PartialEq)]
struct ConfiguredChannel {
    channel: PermissionChannel,
    endpoint: Option<PromptEndpoint>,
    /// How long to wait for an answer. `None` waits forever.
    patience_ms: Option<u64>,
}

/// Returns the configured channel or, without one, the channel of the user's `permissions.json`. A
/// workspace cannot choose a channel, because its own server would allow its own calls.
fn selected_channel(setup: &Setup) -> ConfiguredChannel {
    let settings = &setup.config.permissions;
    let patience_ms = Some(ANSWER_MS);
    let configured = ConfiguredChannel {
        channel: settings.channel,
        endpoint: settings.endpoint.clone(),
        patience_ms,
    };
    if settings.channel != PermissionChannel::Terminal {
        return configured;
    }
    match own_rule_files(setup).channel {
        Some(original) => channel_from_original(original, setup.workspace.working_directory()),
        None => configured,
    }
}

/// Reads the `channel` of a `permissions.json`. `console` and `queue` mean the terminal.
fn channel_from_original(original: AskingChannel, directory: &Path) -> ConfiguredChannel {
    let channel = match original.kind.as_str() {
        "webhook" => PermissionChannel::Webhook,
        "file" => PermissionChannel::File,
        _ => PermissionChannel::Terminal,
    };
    let endpoint = original.endpoint.map(|text| match text.contains("://") {
        true => PromptEndpoint::Url(text),
        false => PromptEndpoint::Folder(directory.join(text)),
    });
    let seconds = u64::try_from(original.timeout_s).ok().filter(|seconds| *seconds > 0);
    ConfiguredChannel { channel, endpoint, patience_ms: seconds.map(|it| it.saturating_mul(1_000)) }
}

/// Creates the channel that the user configured, or `None` if it is the terminal.
///
/// # Errors
/// `configuration` if its endpoint is missing or cannot be used.
fn configured_channel(setup: &Setup) -> Result<Option<PermissionOnlyAsker>, Error> {
    let wrong = |text: &str, hint: &str| {
        Err(Error::new(ErrorKind::Configuration, text.to_owned()).with_hint(hint))
    };
    let ConfiguredChannel { channel, endpoint, patience_ms } = selected_channel(setup);
    let calls: Arc<dyn PermissionAsker> = match (channel, endpoint) {
        (PermissionChannel::Terminal, _) => return Ok(None),
        (PermissionChannel::Webhook, Some(PromptEndpoint::Url(url))) => {
            let network =
                if setup.config.offline { NetworkAccess::Offline } else { NetworkAccess::Online };
            let client =
                Client::new(HttpClientSettings { network, ..HttpClientSettings::default() });
            let token =
                setup.variables.get(TOKEN).and_then(|value| value.to_str().map(str::to_owned));
            Arc::new(WebhookAsker::new(client, &url, token.as_deref())?)
        }
        (PermissionChannel::File, Some(PromptEndpoint::Folder(folder))) => {
            Arc::new(FolderAsker::new(folder))
        }
        (PermissionChannel::Webhook, Some(PromptEndpoint::Folder(_)) | None) => {
            let text = "the channel `webhook` of permissions needs a URL";
            return wrong(text, "set `endpoint = \"https://…\"` in `[permissions]`");
        }
        (PermissionChannel::File, Some(PromptEndpoint::Url(_)) | None) => {
            let text = "the channel `file` of permissions needs a folder";
            return wrong(text, "set `endpoint = \"/…\"` in `[permissions]`");
        }
    };
    Ok(Some(PermissionOnlyAsker { calls, patience_ms }))
}

#[cfg(test)]
mod tests;
