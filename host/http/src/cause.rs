//! Extracts the cause from errors of the library below: kinds and lower-case reasons.

use std::error::Error;
use std::io;

use crate::servers::NotPublicError;
use crate::{HttpError, MaskedUrl, is_loopback};

/// Converts an error that occurred before any answer.
pub(crate) fn error_before_answer(
    error: reqwest::Error,
    url: MaskedUrl,
    proxy: Option<MaskedUrl>,
    connect_timeout: std::time::Duration,
) -> HttpError {
    let is_here = error.url().is_some_and(is_loopback);
    // The library's own text repeats the URL with its secrets.
    let error = error.without_url();
    if let Some(tls) = find_cause::<rustls::Error>(&error) {
        return HttpError::Tls { url, reason: tls_reason(tls) };
    }
    if !error.is_connect() {
        return HttpError::Transfer { url, reason: error_reason(&error) };
    }
    if error.is_timeout() {
        let phase = crate::RequestPhase::Connect;
        return HttpError::Timeout { url, phase, after: connect_timeout };
    }
    if let Some(NotPublicError(address)) = find_cause(&error) {
        return HttpError::NotPublic { url, address: Some(*address) };
    }
    if error_chain(&error).any(|cause| cause.to_string() == "dns error") {
        return HttpError::Lookup { url, proxy };
    }
    let is_refused = find_cause::<io::Error>(&error)
        .is_some_and(|error| error.kind() == io::ErrorKind::ConnectionRefused);
    let is_nobody_here = is_here && is_refused;
    HttpError::Connect { url, proxy, reason: error_reason(&error), is_nobody_here }
}

/// Converts an error in the middle of a body.
pub(crate) fn error_in_body(
    error: reqwest::Error,
    url: MaskedUrl,
    received: u64,
    expected: Option<u64>,
) -> HttpError {
    let error = error.without_url();
    let cut = find_cause::<hyper::Error>(&error).is_some_and(|e| e.is_incomplete_message())
        || find_cause::<io::Error>(&error)
            .is_some_and(|e| e.kind() == io::ErrorKind::UnexpectedEof);
    if cut {
        return HttpError::Truncated { url, received, expected };
    }
    HttpError::Transfer { url, reason: error_reason(&error) }
}

/// Returns the innermost cause in lower case, without error numbers of the operating system.
fn error_reason(error: &reqwest::Error) -> String {
    if let Some(io) = find_cause::<io::Error>(error)
        && io.raw_os_error().is_some()
    {
        let text = io.to_string();
        let text = text.split(" (os error").next().unwrap_or_default();
        return lower_first(text);
    }
    let last = error_chain(error).last().map(|cause| cause.to_string()).unwrap_or_default();
    let last = lower_first(last.strip_prefix("tunnel error: ").unwrap_or(&last));
    // For example, the server speaks only HTTP/2.
    if find_cause::<hyper::Error>(error).is_some_and(hyper::Error::is_parse) {
        return format!("its answer is not valid http/1.1: {last}");
    }
    last
}

fn tls_reason(error: &rustls::Error) -> String {
    use rustls::{CertificateError, Error};
    match error {
        Error::InvalidMessage(_) => "the server does not speak tls".to_owned(),
        Error::InvalidCertificate(CertificateError::UnknownIssuer) => {
            "its certificate comes from an issuer that this system does not trust".to_owned()
        }
        Error::InvalidCertificate(
            CertificateError::Expired | CertificateError::ExpiredContext { .. },
        ) => "its certificate has expired".to_owned(),
        Error::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
        ) => "its certificate is for another name".to_owned(),
        // The library's enums grow, so other errors use their own texts.
        other => lower_first(&other.to_string()),
    }
}

fn lower_first(text: &str) -> String {
    let mut characters = text.trim().trim_end_matches('.').chars();
    characters.next().map_or_else(String::new, |first| {
        first.to_lowercase().chain(characters).collect::<String>()
    })
}

/// Returns all causes, outermost first. An `io::Error` hides its inner error from `source`, so look
/// inside.
fn error_chain<'a>(
    error: &'a (dyn Error + 'static),
) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |current: &&'a (dyn Error + 'static)| {
        let current: &'a (dyn Error + 'static) = *current;
        let wrapped = current.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        wrapped.map(|inner| inner as &(dyn Error + 'static)).or_else(|| current.source())
    })
}

fn find_cause<'a, T: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a T> {
    error_chain(error).find_map(|cause| cause.downcast_ref::<T>())
}
