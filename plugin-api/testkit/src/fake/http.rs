//! The service `http.request` of a fake host. The test answers each request, and nothing leaves the
//! process.

use jaato_types::http::{HTTP_REQUEST, HttpPurpose, HttpRequest};
use jaato_types::{Error, Result};
use serde_json::json;

use super::host::FakeHost;
use super::services::{FakeServiceReply, ServiceRequest};
use super::stream::FakeStream;

/// A request of the plugin.
#[derive(Debug, Clone, PartialEq)]
pub struct FakeHttpRequest {
    /// The method, the URL, the headers, and the name of the credential.
    pub head: HttpRequest,
    /// The body.
    pub body: Vec<u8>,
}

/// The answer of a fake server.
#[derive(Clone)]
pub struct FakeHttpAnswer {
    status: u16,
    headers: Vec<(String, String)>,
    with_credential: bool,
    url: Option<String>,
    body: FakeStream,
}

impl FakeHttpAnswer {
    /// Creates an answer with this status, without headers and body.
    pub fn status(status: u16) -> Self {
        let body = FakeStream::from_pieces(Vec::<Vec<u8>>::new());
        Self { status, headers: Vec::new(), with_credential: false, url: None, body }
    }

    /// Adds a header. Write its name in lower case, as the host returns it.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Marks that the request contained the credential.
    #[must_use]
    pub fn with_credential(self) -> Self {
        Self { with_credential: true, ..self }
    }

    /// Sets the URL that answered, if it differs from that of the request. Plugins see it only if
    /// the purpose is `web`.
    #[must_use]
    pub fn url(self, url: &str) -> Self {
        Self { url: Some(url.to_owned()), ..self }
    }

    /// Sets a body that arrives in one piece.
    #[must_use]
    pub fn body(self, body: impl Into<Vec<u8>>) -> Self {
        Self { body: FakeStream::from_pieces([body]), ..self }
    }

    /// Sets a body that the test feeds, breaks, or lets hang.
    #[must_use]
    pub fn stream(self, body: FakeStream) -> Self {
        Self { body, ..self }
    }

    fn into_reply(self, asked: &FakeHttpRequest) -> FakeServiceReply {
        let Self { status, headers, with_credential, url, body } = self;
        let mut head =
            json!({ "status": status, "headers": headers, "with_credential": with_credential });
        if asked.head.purpose == HttpPurpose::Web {
            head["url"] = url.unwrap_or_else(|| asked.head.url.clone()).into();
        }
        FakeServiceReply::StreamWith(head, body)
    }
}

impl FakeHost {
    /// Answers HTTP requests. Without it, the service `http.request` is unknown.
    ///
    /// An error means that no answer arrives, for example because of a missing server, network or
    /// key.
    #[must_use]
    pub fn with_http(
        self,
        answer: impl Fn(&FakeHttpRequest) -> Result<FakeHttpAnswer, Error> + Send + Sync + 'static,
    ) -> Self {
        self.with_service(HTTP_REQUEST, move |request| {
            let asked = parse_request(request)?;
            answer(&asked).map(|answer| answer.into_reply(&asked))
        })
    }

    /// Returns the HTTP requests of the plugin, in order.
    pub fn http_requests(&self) -> Vec<FakeHttpRequest> {
        let asked = self.service_requests();
        let of_http = asked.iter().filter(|request| request.operation == HTTP_REQUEST);
        of_http.filter_map(|request| parse_request(request).ok()).collect()
    }
}

fn parse_request(request: &ServiceRequest) -> Result<FakeHttpRequest> {
    Ok(FakeHttpRequest { head: request.read()?, body: request.bytes.clone() })
}
