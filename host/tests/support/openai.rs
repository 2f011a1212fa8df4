//! An installation with the provider of OpenAI's protocols, using a server on loopback.

use super::server::Server;
use super::{Command, House};

/// A key that is long enough to count as one.
pub const SECRET: &str = "sk-secret-0123456789-abcdef";

/// The words of a run.
pub const RUN: [&str; 4] = ["run", "--model", "openai/test", "hello"];

/// Ships the plugin with short waits.
pub fn ship_openai(house: &House) {
    super::ship_provider(house, "provider_openai");
}

/// Builds a command that uses a server.
pub fn openai_command(house: &House, server: &Server, words: &[&str]) -> Command {
    house
        .command(words)
        .variable("OPENAI_BASE_URL", server.base_url())
        .variable("OPENAI_API_KEY", SECRET)
}

/// Builds a command of a program that embeds this installation's jaato and uses a server.
pub fn openai_program(
    house: &House,
    server: &Server,
    program: &std::path::Path,
    words: &[&str],
) -> Command {
    Command::program(house, program.to_str().unwrap(), words)
        .variable("JAATO", house.binary())
        .variable("OPENAI_BASE_URL", server.base_url())
        .variable("OPENAI_API_KEY", SECRET)
}

/// Fails if any file that a run may have written contains the key.
#[track_caller]
pub fn assert_key_not_saved(house: &House) {
    fn find_key_files(folder: &std::path::Path, found: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                find_key_files(&entry.path(), found);
            } else if kind.is_file() {
                let bytes = std::fs::read(entry.path()).unwrap_or_default();
                if bytes.windows(SECRET.len()).any(|window| window == SECRET.as_bytes()) {
                    found.push(entry.path().display().to_string());
                }
            }
        }
    }
    let mut found = Vec::new();
    // All files except the program and its plugins.
    for folder in ["home", "workspace", "run"] {
        find_key_files(&house.path().join(folder), &mut found);
    }
    assert!(found.is_empty(), "these files contain the key: {found:?}");
}
