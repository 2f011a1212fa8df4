//! The weights of the embedded model in the user's cache. A benchmark never downloads them.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use xtask::child;

/// The embedded default model, as `jaato model list` names it.
const MODEL: &str = "qwen2.5-coder-1.5b";

/// The hint if the weights are missing.
pub const MISSING: &str = "the weights of the embedded model are not in the cache; `cargo xtask setup --model` fetches them";

/// Asks `jaato` for the file without a network, which also verifies it, so that no measured run has
/// to. Returns `None` if it is missing.
pub fn find_weights(jaato: &Path) -> Result<Option<PathBuf>> {
    let mut command = Command::new(jaato);
    command.args(["--offline", "model", "pull", MODEL]);
    let output =
        command.output().with_context(|| format!("starting {}", child::command_text(&command)))?;
    if !output.status.success() {
        return Ok(None);
    }
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let path = parse_weights_path(&text)
        .with_context(|| format!("{} said: {text}", child::command_text(&command)))?;
    Ok(Some(path))
}

fn parse_weights_path(text: &str) -> Option<PathBuf> {
    let path = text.lines().find_map(|line| line.split_once(" is on this machine: "))?.1;
    Some(PathBuf::from(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn model_path_is_read_from_the_line_that_names_it() {
        let text = "a notice\nqwen is on this machine: /home/me/a b.gguf\n";
        assert_eq!(parse_weights_path(text), Some(PathBuf::from("/home/me/a b.gguf")));
        assert_eq!(parse_weights_path("nothing"), None);
    }
}
