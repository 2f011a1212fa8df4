//! A request and its answer, as any server of HTTP has them.

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

impl Asked {
    /// Returns a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }
}
