//! Builds the tool names for models: `mcp__SERVER__TOOL`.
//!
//! Vendors accept names of up to 64 characters from `[A-Za-z0-9_-]` and refuse a whole request if
//! one name differs. Illegal characters therefore become `_`, and a changed or shortened name ends
//! with part of the original's digest, so that two tools of a server never share a name.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

/// The maximum length of a name.
pub const NAME_CHARS_MAX: usize = 64;
/// The maximum length of the server's part, which leaves room for the tool's name.
const SERVER_CHARS_MAX: usize = 24;
/// Length of a digest: 40 bits, which suffices for a thousand tools of a server.
const DIGEST_CHARS: usize = 10;

/// The prefix of all MCP tool names.
pub const PREFIX: &str = "mcp__";
/// The category of the tools in lists.
pub const CATEGORY: &str = "MCP";

/// Returns the name by which a model calls a tool.
pub fn tool_name(server: &str, tool: &str) -> String {
    let head = server_prefix(server);
    let room = NAME_CHARS_MAX - head.len();
    head + &legal_short_name(tool, room)
}

/// Returns the prefix of a server's tool names.
pub fn server_prefix(server: &str) -> String {
    format!("{PREFIX}{}__", legal_server_name(server))
}

/// Returns a server's name as it appears in tool names.
pub fn legal_server_name(server: &str) -> String {
    // With two underscores, tool `b` of `x__a` would equal tool `a__b` of `x`.
    let part = legal_short_name(server, SERVER_CHARS_MAX);
    match part.contains("__") || part.ends_with('_') {
        true => append_digest(&part.replace('_', "-"), server, SERVER_CHARS_MAX),
        false => part,
    }
}

/// Makes a text legal and short. A changed text ends with part of its digest.
pub fn legal_short_name(text: &str, chars_max: usize) -> String {
    let is_legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let legal: String = text.chars().map(|c| if is_legal(c) { c } else { '_' }).collect();
    match legal == text && legal.len() <= chars_max && !legal.is_empty() {
        true => legal,
        false => append_digest(&legal, text, chars_max),
    }
}

fn append_digest(legal: &str, original: &str, chars_max: usize) -> String {
    let room = chars_max - DIGEST_CHARS - 1;
    let kept = legal.get(..room).unwrap_or(legal);
    let mut name = format!("{kept}-");
    for byte in &Sha256::digest(original.as_bytes())[..DIGEST_CHARS / 2] {
        let _ = write!(name, "{byte:02x}");
    }
    name
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[track_caller]
    fn assert_legal(name: &str) {
        let is_legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        assert!(name.len() <= NAME_CHARS_MAX && name.chars().all(is_legal), "{name}");
    }

    #[test]
    fn valid_tool_name_is_kept_unchanged() {
        assert_eq!(tool_name("gh", "create_issue"), "mcp__gh__create_issue");
        assert_eq!(tool_name("my-server", "a-b_C9"), "mcp__my-server__a-b_C9");
    }

    #[test]
    fn tool_names_are_always_legal_and_unique() {
        let long = "x".repeat(300);
        let tools = [
            "",
            "a b",
            "a.b",
            "a/b",
            "a_b",
            "ü",
            "\u{1b}[31mred",
            "a\nb",
            "mcp__x__y",
            &long,
            &format!("{long}y"),
            &long[..299],
        ];
        let mut seen = HashSet::new();
        for server in
            ["gh", "", "a__b", "a_", "a b", "ein sehr langer Name von einem Server", &long]
        {
            for tool in tools {
                let name = tool_name(server, tool);
                assert_legal(&name);
                assert!(seen.insert(name.clone()), "{name}");
            }
        }
    }

    #[test]
    fn a_server_cannot_take_the_names_of_another() {
        assert_ne!(tool_name("x", "a__b"), tool_name("x__a", "b"));
        assert_ne!(tool_name("x", "_b"), tool_name("x_", "b"));
    }
}
