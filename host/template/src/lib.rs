//! Writes the crate of a new plugin: sources that build, a conformance test, a README and a CI
//! file. A plugin in C gets a Makefile instead.
//!
//! Knows only files and names, and nothing of a host. Used by the binary and by `cargo xtask`.

mod error;
mod files;
mod name;
mod sdk;
mod shell;

use std::fs;
use std::path::{Path, PathBuf};

pub use error::TemplateError;
pub use name::{NAME_BYTES_MAX, check_name, library_name};
pub use sdk::SdkSources;
pub use shell::shell_word;

/// The kind of plugin to create.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TemplateKind {
    /// Offers tools.
    Tool,
    /// Plans what leaves the context.
    Gc,
    /// Answers requests.
    Provider,
    /// Provides files and runs commands.
    Environment,
    /// Sees and changes what happens in a session.
    Hook,
    /// Offers tools, written in C.
    C,
}

impl TemplateKind {
    /// All kinds.
    pub const ALL: [Self; 6] =
        [Self::Tool, Self::Gc, Self::Provider, Self::Environment, Self::Hook, Self::C];

    /// Returns the kind's name.
    pub fn kind_name(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Gc => "gc",
            Self::Provider => "provider",
            Self::Environment => "environment",
            Self::Hook => "hook",
            Self::C => "c",
        }
    }

    /// Returns true if its plugin is a crate.
    fn is_rust(self) -> bool {
        self != Self::C
    }
}

/// Writes a plugin's sources into a new folder.
///
/// # Errors
/// If the name is invalid, the folder exists, or it cannot be written.
pub fn write_crate(
    folder: &Path,
    name: &str,
    kind: TemplateKind,
    sdk: &SdkSources,
) -> Result<(), TemplateError> {
    check_name(name)?;
    if folder.symlink_metadata().is_ok() {
        return Err(TemplateError::Exists(folder.to_owned()));
    }
    let mut files = files::template_files(name, kind, sdk);
    if kind.is_rust() {
        files.extend(sdk.lock_file().map(|lock| ("Cargo.lock".to_owned(), lock)));
    }
    for (file, text) in files {
        let path = folder.join(file);
        let failed = |error| TemplateError::Write(path.clone(), error);
        fs::create_dir_all(path.parent().unwrap_or(folder)).map_err(failed)?;
        fs::write(&path, text).map_err(failed)?;
    }
    Ok(())
}

/// Returns the commands to run next, one per line. `jaato` is the name of the host's executable.
pub fn next_steps(folder: &Path, name: &str, kind: TemplateKind, jaato: &str) -> String {
    // Cargo's build folder, unless its configuration says otherwise.
    let target = std::env::var_os("CARGO_TARGET_DIR").filter(|folder| !folder.is_empty());
    let target = target.map_or_else(|| PathBuf::from("target"), PathBuf::from);
    let (built, steps) = match kind.is_rust() {
        true => (target.join("release"), "cargo test\n  cargo build --release"),
        false => (PathBuf::from("."), "make"),
    };
    let built = built.join(library_name(name));
    let (built, jaato) = (shell_word(&built.to_string_lossy()), shell_word(jaato));
    let folder = folder.to_string_lossy();
    // `cd` would treat it as an option.
    let here = if folder.starts_with('-') { "./" } else { "" };
    format!(
        "  cd {}\n  {steps}\n  {jaato} plugin check {built}\n  {jaato} plugin install {built}",
        shell_word(&format!("{here}{folder}"))
    )
}
