//! Whose words a server understands.

/// Whose words a server understands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// OpenAI's own: `max_completion_tokens`, because its reasoning models refuse the older name;
    /// and what nobody else knows.
    Vendor,
    /// OpenRouter's: everybody's words, and the vendor's for how much a model thinks.
    Router,
    /// Everybody else's: `max_tokens`, and nothing that a server could refuse as unknown.
    Common,
}
