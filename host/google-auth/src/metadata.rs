//! Requests tokens from the token server of Google's machines, over plain http and without a proxy.

use std::time::Duration;

use jaato_http::header::HeaderValue;
use jaato_http::{
    Client, ExchangeLimits, HttpClientSettings, NetworkAccess, OutgoingRequest, Proxies,
    RedirectPolicy,
};
use jaato_types::Error;

use crate::exchange::{TokenResponse, parse_response};
use crate::token::MintedToken;

/// How long a machine's token server may take to respond. Other machines do not wait longer,
/// because there the name may lead nowhere.
const WAIT: Duration = Duration::from_secs(1);

/// The maximum number of bytes of an answer.
const ANSWER_BYTES_MAX: u64 = 256 * 1024;

/// The header that marks the request as intended for this server, and the answer as its own.
const FLAVOR: &str = "metadata-flavor";

/// Requests a token. Returns `None` if the server does not exist, or the machine has no account.
///
/// # Errors
/// The problem with an answer.
pub(crate) async fn request_machine_token(
    host: &str,
    network: NetworkAccess,
) -> Result<Option<MintedToken>, Error> {
    let path = "computeMetadata/v1/instance/service-accounts/default/token";
    let Ok(mut request) = OutgoingRequest::get(&format!("http://{host}/{path}")) else {
        return Ok(None);
    };
    request.headers.insert(FLAVOR, HeaderValue::from_static("Google"));
    request.redirects = RedirectPolicy::Refuse;
    request.limits = ExchangeLimits {
        answer: WAIT,
        idle: WAIT,
        body_bytes_max: ANSWER_BYTES_MAX,
        ..ExchangeLimits::default()
    };
    let proxies = Proxies::without_proxies();
    let client =
        Client::new(HttpClientSettings { network, proxies, ..HttpClientSettings::default() });
    let Ok(Ok(answer)) = tokio::time::timeout(WAIT, client.send(request)).await else {
        return Ok(None);
    };
    let is_google = answer.headers().get(FLAVOR).is_some_and(|value| value == "Google");
    if !is_google || !answer.status().is_success() {
        return Ok(None);
    }
    let Ok(body) = answer.bytes().await else { return Ok(None) };
    let answer: TokenResponse = parse_response(&body)?;
    Ok(Some(answer.into_minted(None)))
}
