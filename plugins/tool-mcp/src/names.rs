//! Names of tools that models may call: `mcp__SERVER__TOOL`.
//!
//! Vendors take 64 characters of `[A-Za-z0-9_-]`, and refuse a whole request for one name that is
//! anything else. So what is illegal becomes `_`, and a name that was changed or is too long ends
//! with a piece of the digest of what it was: two tools of a server never share one.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

/// Longest name.
pub const NAME_CHARS_MAX: usize = 64;
/// Characters of a server's part: what a server is called leaves room for its tools.
const SERVER_CHARS_MAX: usize = 24;
/// Characters of a digest: 40 bits, among the thousand tools of a server.
const DIGEST_CHARS: usize = 10;

/// Begins the name of every tool of a server.
pub const PREFIX: &str = "mcp__";
/// Groups the tools in lists.
pub const CATEGORY: &str = "MCP";

/// Returns the name by which a model calls a tool.
pub fn tool_name(server: &str, tool: &str) -> String {
    let head = server_prefix(server);
    let room = NAME_CHARS_MAX - head.len();
    head + &fitted(tool, room)
}

/// Returns how the names of a server's tools begin.
pub fn server_prefix(server: &str) -> String {
    format!("{PREFIX}{}__", server_part(server))
}

/// Returns how a server is written in names.
pub fn server_part(server: &str) -> String {
    // What holds two underscores would let `a__b` of `x` be `b` of `x__a`.
    let part = fitted(server, SERVER_CHARS_MAX);
    match part.contains("__") || part.ends_with('_') {
        true => with_digest(&part.replace('_', "-"), server, SERVER_CHARS_MAX),
        false => part,
    }
}

/// Makes a text legal and short. One that was changed ends with a piece of its digest.
pub fn fitted(text: &str, chars_max: usize) -> String {
    let is_legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let legal: String = text.chars().map(|c| if is_legal(c) { c } else { '_' }).collect();
    match legal == text && legal.len() <= chars_max && !legal.is_empty() {
        true => legal,
        false => with_digest(&legal, text, chars_max),
    }
}

fn with_digest(legal: &str, original: &str, chars_max: usize) -> String {
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
    fn is_legal(name: &str) {
        let is_legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        assert!(name.len() <= NAME_CHARS_MAX && name.chars().all(is_legal), "{name}");
    }

    #[test]
    fn a_name_that_fits_stays() {
        assert_eq!(tool_name("gh", "create_issue"), "mcp__gh__create_issue");
        assert_eq!(tool_name("my-server", "a-b_C9"), "mcp__my-server__a-b_C9");
    }

    #[test]
    fn names_of_any_shape_are_legal_and_never_one() {
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
                is_legal(&name);
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
