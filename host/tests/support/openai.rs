//! A house with the provider of OpenAI's protocols, led to a server on loopback.

use super::server::Server;
use super::{Command, House};

/// A key, long enough to be one.
pub const SECRET: &str = "sk-secret-0123456789-abcdef";

/// The words of a run.
pub const RUN: [&str; 4] = ["run", "--model", "openai/test", "hello"];

/// Ships the plugin, and lets nothing wait for long.
pub fn furnish(house: &House) {
    super::provider(house, "provider_openai");
}

/// Begins a command line that is led to a server.
pub fn at(house: &House, server: &Server, words: &[&str]) -> Command {
    house
        .command(words)
        .variable("OPENAI_BASE_URL", server.base_url())
        .variable("OPENAI_API_KEY", SECRET)
}

/// Fails where the key stands in any file that a run may have written.
#[track_caller]
pub fn no_file_holds_the_key(house: &House) {
    fn visit(folder: &std::path::Path, found: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                visit(&entry.path(), found);
            } else if kind.is_file() {
                let bytes = std::fs::read(entry.path()).unwrap_or_default();
                if bytes.windows(SECRET.len()).any(|window| window == SECRET.as_bytes()) {
                    found.push(entry.path().display().to_string());
                }
            }
        }
    }
    let mut found = Vec::new();
    // Everything but the program and its plugins.
    for folder in ["home", "workspace", "run"] {
        visit(&house.path().join(folder), &mut found);
    }
    assert!(found.is_empty(), "the key stands in {found:?}");
}
