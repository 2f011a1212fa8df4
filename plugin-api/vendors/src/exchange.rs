//! A request and its answer, in plain HTTP terms.

use jaato_plugin_testkit::FakeHttpAnswer;

/// A request that arrives.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VendorRequest {
    /// `GET` or `POST`.
    pub method: String,
    /// The path with its query: `/v1/messages`.
    pub path: String,
    /// The headers, with names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

/// The vendor's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VendorAnswer {
    /// The status.
    pub status: u16,
    /// The headers, with names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl VendorAnswer {
    /// Converts it to the answer for a plugin on a fake host.
    pub(super) fn into_plugin_answer(self, with_credential: bool) -> FakeHttpAnswer {
        let empty = FakeHttpAnswer::status(self.status);
        let answer = self.headers.iter().fold(empty, |it, (name, value)| it.header(name, value));
        let answer = if with_credential { answer.with_credential() } else { answer };
        answer.body(self.body)
    }
}

impl VendorRequest {
    /// Returns a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }
}
