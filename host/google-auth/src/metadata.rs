//! Asks the server of tokens that machines of Google's have, which is reached over plain http and
//! through no proxy.

use std::time::Duration;

use jaato_http::header::HeaderValue;
use jaato_http::{Client, Limits, Network, Proxies, Redirects, Request, Settings};
use jaato_types::Error;

use crate::exchange::{Answer, read};
use crate::token::Minted;

/// How long a machine that has such a server may take to show that it does. On all others nobody
/// waits longer, as names may lead nowhere there.
const WAIT: Duration = Duration::from_secs(1);

/// Most bytes of an answer.
const ANSWER_BYTES_MAX: u64 = 256 * 1024;

/// The header by which the server knows that it is meant, and we that it is the server.
const FLAVOR: &str = "metadata-flavor";

/// Asks for a token; none where there is no such server, or the machine has no account.
///
/// # Errors
/// What is wrong with an answer.
pub(crate) async fn ask(host: &str, network: Network) -> Result<Option<Minted>, Error> {
    let path = "computeMetadata/v1/instance/service-accounts/default/token";
    let Ok(mut request) = Request::get(&format!("http://{host}/{path}")) else { return Ok(None) };
    request.headers.insert(FLAVOR, HeaderValue::from_static("Google"));
    request.redirects = Redirects::Refuse;
    request.limits = Limits { answer: WAIT, idle: WAIT, body_bytes_max: ANSWER_BYTES_MAX };
    let proxies = Proxies::none();
    let client = Client::new(Settings { network, proxies, ..Settings::default() });
    let Ok(Ok(answer)) = tokio::time::timeout(WAIT, client.send(request)).await else {
        return Ok(None);
    };
    let is_google = answer.headers().get(FLAVOR).is_some_and(|value| value == "Google");
    if !is_google || !answer.status().is_success() {
        return Ok(None);
    }
    let Ok(body) = answer.bytes().await else { return Ok(None) };
    let answer: Answer = read(&body)?;
    Ok(Some(answer.into_minted(None)))
}
