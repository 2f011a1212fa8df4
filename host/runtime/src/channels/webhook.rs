//! Asks a server by HTTP: the POST body is the question, the response body is the answer.

use std::time::Duration;

use futures_util::future::BoxFuture;
use jaato_http::header::{AUTHORIZATION, CONTENT_TYPE};
use jaato_http::{
    Client, ExchangeLimits, HeaderMap, HeaderValue, Method, OutgoingRequest, RedirectPolicy,
    StatusCode,
};
use jaato_session::NoAnswer;
use jaato_types::permission_prompt::{PermissionAnswer, PermissionPrompt};
use jaato_types::{Error, ErrorKind, SessionId};

use super::{ANSWER_MS, ApprovalChannel, WebhookAsker, wire};

/// How much longer the exchange may last than the question waits, so that the session times out
/// first.
const BEYOND: Duration = Duration::from_secs(5);

/// A server for questions.
pub struct ApprovalWebhook {
    client: Client,
    url: String,
    headers: HeaderMap,
}

impl WebhookAsker {
    /// Creates an asker that sends this token to the server.
    ///
    /// # Errors
    /// `configuration` if the URL cannot be used, or would send the call's data unencrypted over a
    /// network.
    pub fn new(client: Client, url: &str, token: Option<&str>) -> Result<Self, Error> {
        let wrong = |text: String| Error::new(ErrorKind::Configuration, text);
        let request =
            OutgoingRequest::new(Method::POST, url).map_err(|error| wrong(error.to_string()))?;
        let is_own_machine = request
            .url
            .host_str()
            .is_some_and(|host| matches!(host, "localhost" | "127.0.0.1" | "[::1]"));
        if request.url.scheme() != "https" && !is_own_machine {
            let text =
                "the webhook for permissions must use https or be on this machine".to_owned();
            return Err(
                wrong(text).with_hint("calls and answers would otherwise be sent unencrypted")
            );
        }
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(token) = token {
            let mut value = HeaderValue::from_str(&format!("Bearer {token}")).map_err(|_| {
                wrong("`PERMISSION_WEBHOOK_TOKEN` is not a valid header value".to_owned())
            })?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        Ok(Self(ApprovalWebhook { client, url: url.to_owned(), headers }))
    }
}

impl ApprovalWebhook {
    /// Asks.
    ///
    /// # Errors
    /// The reason for the missing answer. The text contains nothing from the exchange.
    async fn request_answer(
        &self,
        session: &SessionId,
        prompt: &PermissionPrompt,
    ) -> Result<PermissionAnswer, String> {
        let id = wire::new_prompt_id()?;
        let body = wire::prompt_json((session, prompt), &id, &wire::current_timestamp());
        let mut request =
            OutgoingRequest::new(Method::POST, &self.url).map_err(|error| error.to_string())?;
        request.headers = self.headers.clone();
        request.body = body.to_string().into();
        // Only this server's own answer counts.
        request.redirects = RedirectPolicy::Refuse;
        let patience = Duration::from_millis(prompt.patience_ms.unwrap_or(ANSWER_MS)) + BEYOND;
        let body_bytes_max = wire::ANSWER_BYTES_MAX;
        request.limits = ExchangeLimits {
            answer: patience,
            idle: patience,
            body_bytes_max,
            ..ExchangeLimits::default()
        };
        let response = self.client.send(request).await.map_err(|error| error.to_string())?;
        let status = response.status();
        if status != StatusCode::OK {
            return Err(format!("the webhook answered with status {}", status.as_u16()));
        }
        let bytes = response.bytes().await.map_err(|error| error.to_string())?;
        wire::parse_answer(&bytes, &id, prompt)
    }
}

impl ApprovalChannel for ApprovalWebhook {
    const NAME: &str = "webhook";

    fn request_answer<'a>(
        &'a self,
        session: &'a SessionId,
        prompt: &'a PermissionPrompt,
    ) -> BoxFuture<'a, Result<PermissionAnswer, NoAnswer>> {
        Box::pin(async move { self.request_answer(session, prompt).await.map_err(NoAnswer::new) })
    }
}
