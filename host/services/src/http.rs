//! The service `http.answer_request`: one client for all plugins, with secrets that only the host
//! sees.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream;
use jaato_http::header::{HeaderName, HeaderValue};
use jaato_http::{
    Client, ExchangeLimits, HttpError, HttpErrorKind, Method, OutgoingRequest, RedirectPolicy,
    Response, StatusCode,
};
use jaato_instances::NetworkActivityCallback;
use jaato_loader::EngineServiceAnswer;
use jaato_types::http::{HttpPurpose, HttpRequest};
use jaato_types::{Error, ErrorKind, Frame, PluginName};
use parking_lot::Mutex;
use serde_json::{Map, Value};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::credentials::{
    CredentialGrant, HOST_HEADERS, KeySecret, PluginCredentials, SecretScheme,
};
use crate::key_commands::KeyCommands;
use crate::request_bodies::RequestBodies;
use crate::scrub::SecretScrubber;
use crate::web::WebClients;

/// Default time to wait for the answer's head and for each further piece.
const WAIT: Duration = Duration::from_secs(120);

/// Longest wait that a request may set, as in the limit of a session's own patience.
const WAIT_MAX: Duration = Duration::from_secs(60 * 60);

/// Maximum bytes of one answer. A streamed answer with the longest text that a session accepts
/// needs a quarter of it.
const BODY_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// First status whose body describes a failure, and may repeat parts of the request.
const FIRST_FAILURE: u16 = 400;

/// Maximum number of a plugin's running requests, until the end of their bodies. Each is a
/// connection, and many systems allow the host 1024 descriptors.
pub const REQUESTS_MAX: usize = 64;

/// The running requests, by plugin.
#[derive(Debug, Default)]
pub struct RunningHttpRequests(Mutex<HashMap<PluginName, Arc<Semaphore>>>);

impl RunningHttpRequests {
    /// Reserves a slot. Dropping it releases the slot.
    fn acquire_permit(&self, plugin: &PluginName) -> Result<OwnedSemaphorePermit, Error> {
        let mut known = self.0.lock();
        let places =
            known.entry(plugin.clone()).or_insert_with(|| Arc::new(Semaphore::new(REQUESTS_MAX)));
        Arc::clone(places).try_acquire_owned().map_err(|_| {
            let text = format!("the plugin already has {REQUESTS_MAX} running requests");
            Error::new(ErrorKind::LimitReached, text)
                .with_hint("first read some to their end or close them")
                .temporary()
        })
    }
}

/// What a request needs from the host and from its call.
type HttpRequestContext<'a> = (
    (&'a Client, &'a WebClients),
    &'a RunningHttpRequests,
    &'a Arc<RequestBodies>,
    &'a Arc<KeyCommands>,
);

/// Answers one request of a plugin. The waiting call is kept alive by each piece that arrives.
pub fn answer_request(
    ((client, web), requests, bodies, commands): HttpRequestContext<'_>,
    plugin: &PluginName,
    credentials: &Arc<PluginCredentials>,
    frame: &[u8],
    alive: Option<NetworkActivityCallback>,
) -> BoxFuture<'static, Result<EngineServiceAnswer, Error>> {
    let asked = parse_request(frame);
    let begun = requests.acquire_permit(plugin);
    let (client, web, bodies, credentials) =
        (client.clone(), web.clone(), Arc::clone(bodies), Arc::clone(credentials));
    let commands = Arc::clone(commands);
    Box::pin(async move {
        let (asked, bytes) = asked?;
        let place = begun?;
        if asked.purpose == HttpPurpose::Web {
            let response = web.send(&asked, &bytes).await?;
            let mut head = response_head(&response, false, None);
            head.insert("url".to_owned(), response.url().as_str().into());
            return Ok(stream_answer(head, (response, place), None, alive));
        }
        if asked.insecure || asked.no_proxy {
            let text = "`insecure` and `no_proxy` need the purpose `web`";
            return Err(bad_request_error(&text));
        }
        let (variable, is_required) = (asked.credential.clone(), asked.credential_required);
        let run = |line: String, whose: String| {
            let commands = Arc::clone(&commands);
            async move { commands.run(&line, &whose).await }
        };
        let mut request = build_request(&bodies, asked, bytes)?;
        let url = request.url.clone();
        let fetch = async |refused: Option<&KeySecret>| match &variable {
            Some(variable) => credentials.prepare_key(variable, &url, &client, refused, run).await,
            None => Ok(()),
        };
        fetch(None).await?;
        let mut grant = add_credential(&credentials, variable.as_deref(), &mut request)?;
        if let Some(variable) = variable.as_deref().filter(|_| is_required && grant.is_none()) {
            let text = format!("no key is set in `{variable}`");
            return Err(Error::new(ErrorKind::NotFound, text));
        }
        let mut response = send_with_grant(&client, request.clone(), grant.as_ref()).await?;
        // A minted token may expire or be revoked early.
        let refused = grant.as_ref().filter(|_| response.status() == StatusCode::UNAUTHORIZED);
        if let Some(refused) = refused.filter(|grant| grant.is_minted).map(|it| it.secret.clone()) {
            fetch(Some(&refused)).await?;
            grant = add_credential(&credentials, variable.as_deref(), &mut request)?;
            response = send_with_grant(&client, request, grant.as_ref()).await?;
        }
        let scrubber =
            grant.as_ref().and_then(|grant| SecretScrubber::for_secret(grant.secret.reveal()));
        let head = response_head(&response, grant.is_some(), scrubber.as_ref());
        let is_failure = response.status().as_u16() >= FIRST_FAILURE;
        let scrubber = scrubber.filter(|_| is_failure);
        Ok(stream_answer(head, (response, place), scrubber, alive))
    })
}

/// Returns the answer with the body as a stream.
fn stream_answer(
    head: Map<String, Value>,
    held: (Response, OwnedSemaphorePermit),
    scrubber: Option<SecretScrubber>,
    alive: Option<NetworkActivityCallback>,
) -> EngineServiceAnswer {
    if let Some(alive) = &alive {
        alive();
    }
    let body = response_body_stream(held, scrubber, alive);
    EngineServiceAnswer::StreamWith(head, Box::new(Box::pin(body)))
}

/// Parses a request and its body, if the body came with it.
fn parse_request(frame: &[u8]) -> Result<(HttpRequest, Vec<u8>), Error> {
    let parsed = Frame::parse(frame).map_err(|error| bad_request_error(&error))?;
    let asked: HttpRequest = parsed.json().map_err(|error| bad_request_error(&error))?;
    Ok((asked, parsed.bytes.to_vec()))
}

/// Sends a request that contains the granted credential.
async fn send_with_grant(
    client: &Client,
    request: OutgoingRequest,
    grant: Option<&CredentialGrant>,
) -> Result<Response, Error> {
    client.send(request).await.map_err(|error| {
        let mut error = http_to_plugin_error(&error);
        // The server chooses a redirect's target, so it may contain the secret.
        if let Some(scrubber) =
            grant.and_then(|grant| SecretScrubber::for_secret(grant.secret.reveal()))
        {
            error.message = scrubber.mask_secrets(&error.message);
        }
        error
    })
}

/// Builds the request without a credential.
fn build_request(
    bodies: &Arc<RequestBodies>,
    asked: HttpRequest,
    bytes: Vec<u8>,
) -> Result<OutgoingRequest, Error> {
    let method = Method::from_bytes(asked.method.as_bytes())
        .ok()
        .filter(|method| *method != Method::CONNECT)
        .ok_or_else(|| bad_request_error(&format!("`{}` is not a method", asked.method)))?;
    let mut request =
        OutgoingRequest::new(method, &asked.url).map_err(|error| http_to_plugin_error(&error))?;
    for (name, value) in &asked.headers {
        let (name, value) = parse_header(name, value)?;
        request.headers.append(name, value);
    }
    match asked.body {
        Some(_) if !bytes.is_empty() => {
            return Err(bad_request_error(&"the request names a body and also contains one"));
        }
        Some(number) => bodies.finish(number)?.send_with(&mut request),
        None => request.body = bytes.into(),
    }
    let wait = asked.timeout_ms.map_or(WAIT, |ms| Duration::from_millis(ms).min(WAIT_MAX));
    let body_bytes_max = BODY_BYTES_MAX;
    request.limits = ExchangeLimits { answer: wait, idle: wait, total: None, body_bytes_max };
    if asked.credential.is_some() {
        request.redirects = RedirectPolicy::Refuse;
    }
    Ok(request)
}

/// Adds the credential that a request names, and the user's headers.
fn add_credential(
    credentials: &PluginCredentials,
    variable: Option<&str>,
    request: &mut OutgoingRequest,
) -> Result<Option<CredentialGrant>, Error> {
    let Some(variable) = variable else { return Ok(None) };
    for (name, value) in credentials.headers(&request.url) {
        request.headers.insert(name, value.clone());
    }
    let grant = credentials.grant_secret(variable, &request.url)?;
    if let Some(grant) = &grant {
        add_key(request, grant, variable)?;
    }
    Ok(grant)
}

pub(crate) fn parse_header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), Error> {
    let wrong = |what: &str| bad_request_error(&format!("the header `{name}` {what}"));
    let known = HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong("has no usable name"))?;
    if HOST_HEADERS.contains(&known.as_str()) {
        return Err(wrong("is set only by the host"));
    }
    let value = HeaderValue::from_str(value).map_err(|_| wrong("has no usable value"))?;
    Ok((known, value))
}

fn add_key(
    request: &mut OutgoingRequest,
    grant: &CredentialGrant,
    variable: &str,
) -> Result<(), Error> {
    let secret = grant.secret.reveal();
    let unusable = || {
        let text =
            format!("the credential `{variable}` contains characters that a header cannot contain");
        Error::new(ErrorKind::Configuration, text).with_hint("look for line breaks in it")
    };
    let (name, value) = match &grant.scheme {
        SecretScheme::Query(name) => {
            request.url.query_pairs_mut().append_pair(name, secret);
            return Ok(());
        }
        SecretScheme::Bearer => {
            (HeaderName::from_static("authorization"), format!("Bearer {secret}"))
        }
        SecretScheme::Header(name) => {
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| unusable())?;
            (name, secret.to_owned())
        }
    };
    let mut value = HeaderValue::from_str(&value).map_err(|_| unusable())?;
    value.set_sensitive(true);
    request.headers.insert(name, value);
    if let Some((header, project)) = &grant.project {
        let project = HeaderValue::from_str(project).map_err(|_| unusable())?;
        request.headers.insert(header, project);
    }
    Ok(())
}

/// Returns the answer's head without its handle.
fn response_head(
    response: &Response,
    granted: bool,
    scrubber: Option<&SecretScrubber>,
) -> Map<String, Value> {
    let headers = response.headers().iter().map(|(name, value)| {
        let value = String::from_utf8_lossy(value.as_bytes());
        let value = match scrubber {
            Some(scrubber) => scrubber.mask_secrets(&value),
            None => value.into_owned(),
        };
        Value::from(vec![name.as_str().to_owned(), value])
    });
    let mut head = Map::new();
    head.insert("status".to_owned(), response.status().as_u16().into());
    head.insert("headers".to_owned(), headers.collect());
    head.insert("with_credential".to_owned(), granted.into());
    head
}

/// Returns the body piece by piece. Dropping it ends the exchange.
fn response_body_stream(
    held: (Response, OwnedSemaphorePermit),
    scrubber: Option<SecretScrubber>,
    alive: Option<NetworkActivityCallback>,
) -> impl futures_util::Stream<Item = Result<Vec<u8>, Error>> + Send {
    let begin = (Some(held), scrubber, alive);
    stream::try_unfold(begin, |(held, mut scrubber, alive)| async move {
        let Some((mut response, place)) = held else { return Ok(None) };
        match response.next_chunk().await.map_err(|error| http_to_plugin_error(&error))? {
            Some(chunk) => {
                if let Some(alive) = &alive {
                    alive();
                }
                let piece = match &mut scrubber {
                    Some(scrubber) => scrubber.push(&chunk),
                    None => chunk.to_vec(),
                };
                Ok(Some((piece, (Some((response, place)), scrubber, alive))))
            }
            None => {
                let rest = scrubber.map(SecretScrubber::finish).filter(|rest| !rest.is_empty());
                Ok(rest.map(|rest| (rest, (None, None, None))))
            }
        }
    })
}

pub(crate) fn bad_request_error(what: &dyn std::fmt::Display) -> Error {
    Error::new(ErrorKind::InvalidArguments, what.to_string())
}

pub(crate) fn http_to_plugin_error(error: &HttpError) -> Error {
    let kind = match error.kind() {
        HttpErrorKind::BadUrl => ErrorKind::InvalidArguments,
        HttpErrorKind::BadProxy | HttpErrorKind::SetUp => ErrorKind::Configuration,
        HttpErrorKind::Timeout => ErrorKind::Timeout,
        HttpErrorKind::TooLarge => ErrorKind::LimitReached,
        HttpErrorKind::NotPublic => ErrorKind::PermissionDenied,
        HttpErrorKind::Offline
        | HttpErrorKind::Lookup
        | HttpErrorKind::Connect
        | HttpErrorKind::Tls
        | HttpErrorKind::Redirect
        | HttpErrorKind::Status
        | HttpErrorKind::Truncated
        | HttpErrorKind::Transfer => ErrorKind::Unavailable,
    };
    let mut made = Error::new(kind, error.to_string());
    made.hint = error.hint();
    made.retry = error.retry();
    made
}

#[cfg(test)]
mod tests {
    use jaato_config::{Config, EnvironmentVariables};
    use jaato_types::{CredentialSpec, PluginName};

    use super::*;
    use crate::credentials::CredentialSources;
    use crate::section::SettingsSection;

    const SECRET: &str = "sk-0123456789abcdef";

    /// Prepares a request to the vendor with a credential of this scheme.
    fn prepare_with_scheme(
        asked: &HttpRequest,
        scheme: &str,
    ) -> Result<(OutgoingRequest, Option<CredentialGrant>), Error> {
        let spec = CredentialSpec {
            variable: "KEY".to_owned(),
            scheme: scheme.to_owned(),
            origin: "https://vendor.example".to_owned(),
            ..CredentialSpec::default()
        };
        let variables: EnvironmentVariables = [("KEY", SECRET)].into_iter().collect();
        let (plugin, config) = (PluginName::from("provider-x"), Config::default());
        let section = SettingsSection::Plugin(plugin.clone());
        let (config, variables) = (&config, &variables);
        let found = CredentialSources {
            section: &section,
            settings: None,
            preset: None,
            config,
            variables,
            stored: None,
        };
        let credentials = PluginCredentials::from_sources(&plugin, &[spec], &found)?;
        let mut request = build_request(&Arc::default(), asked.clone(), b"body".to_vec())?;
        let grant = add_credential(&credentials, asked.credential.as_deref(), &mut request)?;
        Ok((request, grant))
    }

    fn vendor_request() -> HttpRequest {
        HttpRequest {
            method: "POST".to_owned(),
            url: "https://vendor.example/v1?a=b".to_owned(),
            headers: vec![("x-a".to_owned(), "1".to_owned()), ("X-A".to_owned(), "2".to_owned())],
            timeout_ms: None,
            credential: Some("KEY".to_owned()),
            ..HttpRequest::default()
        }
    }

    #[test]
    fn running_requests_are_limited_per_plugin() {
        let (requests, plugin) = (RunningHttpRequests::default(), PluginName::from("tool-x"));
        let mut going_on: Vec<_> =
            (0..REQUESTS_MAX).map(|_| requests.acquire_permit(&plugin).unwrap()).collect();
        let error = requests.acquire_permit(&plugin).unwrap_err();
        assert_eq!(error.kind, ErrorKind::LimitReached);
        assert_eq!(error.message, "the plugin already has 64 running requests");
        assert!(requests.acquire_permit(&PluginName::from("tool-y")).is_ok());
        going_on.pop();
        assert!(requests.acquire_permit(&plugin).is_ok());
    }

    #[test]
    fn each_scheme_puts_the_secret_in_its_place_and_nothing_shows_it() {
        let header = |scheme: &str, name: &str| {
            let (request, grant) = prepare_with_scheme(&vendor_request(), scheme).unwrap();
            assert!(grant.is_some() && !format!("{request:?} {grant:?}").contains(SECRET));
            assert!(!format!("{:?}", request.headers).contains(SECRET));
            assert_eq!(
                (request.redirects, &request.body[..]),
                (RedirectPolicy::Refuse, &b"body"[..])
            );
            assert_eq!(request.headers.get_all("x-a").iter().count(), 2);
            (request.headers.get(name).map(|it| it.to_str().unwrap().to_owned()), request.url)
        };
        assert_eq!(header("bearer", "authorization").0.unwrap(), format!("Bearer {SECRET}"));
        assert_eq!(header("header:x-api-key", "x-api-key").0.unwrap(), SECRET);
        let (none, url) = header("query:key", "authorization");
        assert_eq!((none, url.query()), (None, Some("a=b&key=sk-0123456789abcdef")));
    }

    #[test]
    fn without_a_credential_nothing_is_added() {
        let asked = HttpRequest { credential: None, ..vendor_request() };
        let (request, grant) = prepare_with_scheme(&asked, "bearer").unwrap();
        assert_eq!((grant, request.redirects), (None, RedirectPolicy::Follow));
        assert!(!request.headers.contains_key("authorization"));
    }

    #[test]
    fn plugin_cannot_set_connection_headers() {
        for name in ["Host", "content-length", "transfer-encoding", "connection", "bad name", ""] {
            let headers = vec![(name.to_owned(), "x".to_owned())];
            let error = prepare_with_scheme(&HttpRequest { headers, ..vendor_request() }, "bearer")
                .unwrap_err();
            assert_eq!(error.kind, ErrorKind::InvalidArguments, "{name}");
        }
        let headers = vec![("x-a".to_owned(), "a\r\nx-b: c".to_owned())];
        assert!(
            prepare_with_scheme(&HttpRequest { headers, ..vendor_request() }, "bearer").is_err()
        );
    }

    #[test]
    fn methods_urls_and_waits_are_checked() {
        for method in ["", "CONNECT", "GE T"] {
            let asked = HttpRequest { method: method.to_owned(), ..vendor_request() };
            assert_eq!(
                prepare_with_scheme(&asked, "bearer").unwrap_err().kind,
                ErrorKind::InvalidArguments
            );
        }
        let file = HttpRequest { url: "file:///etc/passwd".to_owned(), ..vendor_request() };
        assert_eq!(
            prepare_with_scheme(&file, "bearer").unwrap_err().kind,
            ErrorKind::InvalidArguments
        );
        let wait = |timeout_ms| {
            let asked = HttpRequest { timeout_ms, ..vendor_request() };
            prepare_with_scheme(&asked, "bearer").unwrap().0.limits.answer
        };
        assert_eq!((wait(None), wait(Some(7))), (WAIT, Duration::from_millis(7)));
        assert_eq!(wait(Some(u64::MAX)), WAIT_MAX);
        let bad = parse_request(&Frame::empty()).unwrap_err();
        assert_eq!(bad.kind, ErrorKind::InvalidArguments);
    }
}
