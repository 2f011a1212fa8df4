//! A request and its answer, as any server of HTTP has them.

use jaato_plugin_testkit::FakeHttpAnswer;

/// A request as it arrives.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Asked {
    /// `GET` or `POST`.
    pub method: String,
    /// The path with its query: `/v1/messages`.
    pub path: String,
    /// Headers, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

/// What the vendor answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answered {
    /// The status.
    pub status: u16,
    /// Headers, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Answered {
    /// Makes it the answer that a plugin on a fake host gets.
    pub(super) fn for_plugin(self, with_credential: bool) -> FakeHttpAnswer {
        let empty = FakeHttpAnswer::status(self.status);
        let answer = self.headers.iter().fold(empty, |it, (name, value)| it.header(name, value));
        let answer = if with_credential { answer.with_credential() } else { answer };
        answer.body(self.body)
    }
}

impl Asked {
    /// Returns a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }
}
