//! Writes the crate of a new plugin: sources that build, a conformance test, a README and a CI file.
//!
//! Knows files and names alone, and nothing of a host; the binary and `cargo xtask` both write with it.

mod error;
mod files;
mod name;

use std::fs;
use std::path::{Path, PathBuf};

pub use error::TemplateError;
pub use name::{NAME_BYTES_MAX, check_name, library_name};

/// What the plugin is to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TemplateKind {
    /// Offers tools.
    Tool,
    /// Plans what leaves the context.
    Gc,
    /// Answers requests.
    Provider,
}

impl TemplateKind {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Tool, Self::Gc, Self::Provider];

    /// Returns the word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Gc => "gc",
            Self::Provider => "provider",
        }
    }
}

/// Where the new crate takes the sdk from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sdk {
    /// A folder with the sources: `sdk`, `testkit` and what they stand on.
    Sources(PathBuf),
    /// A version of a registry.
    Version(String),
}

impl Sdk {
    /// Finds the sources that belong to an executable: `share/jaato/sdk` beside its folder, else those of
    /// the checkout that it was built in.
    pub fn beside(executable: &Path) -> Option<Self> {
        let real = fs::canonicalize(executable).ok()?;
        let folder = real.parent()?;
        let installed = folder.parent().map(|root| root.join("share/jaato/sdk"));
        let checkout = folder.ancestors();
        let places = installed
            .into_iter()
            .flat_map(|shared| [shared.join("plugin-api"), shared])
            .chain(checkout.map(|root| root.join("plugin-api")));
        let mut complete = places.filter(|place| {
            ["sdk", "testkit"].iter().all(|name| place.join(name).join("Cargo.toml").is_file())
        });
        complete.next().map(Self::Sources)
    }

    /// The versions that the sources are tested with, which are on the machine that built them.
    fn lock(&self) -> Option<String> {
        let Self::Sources(folder) = self else { return None };
        let places = [folder.parent().map(Path::to_owned), Some(folder.clone())];
        places
            .into_iter()
            .flatten()
            .find_map(|place| fs::read_to_string(place.join("Cargo.lock")).ok())
    }
}

/// Writes the crate of a plugin into a folder that is not there yet.
///
/// # Errors
/// When the name cannot be one, the folder is there, or it cannot be written.
pub fn write_crate(
    folder: &Path,
    name: &str,
    kind: TemplateKind,
    sdk: &Sdk,
) -> Result<(), TemplateError> {
    check_name(name)?;
    if folder.symlink_metadata().is_ok() {
        return Err(TemplateError::Exists(folder.to_owned()));
    }
    let mut files = files::files(name, kind, sdk);
    files.extend(sdk.lock().map(|lock| ("Cargo.lock", lock)));
    for (file, text) in files {
        let path = folder.join(file);
        let failed = |error| TemplateError::Write(path.clone(), error);
        fs::create_dir_all(path.parent().unwrap_or(folder)).map_err(failed)?;
        fs::write(&path, text).map_err(failed)?;
    }
    Ok(())
}

/// The commands that come after writing, one a line; `jaato` is how the host is called.
pub fn next_steps(folder: &Path, name: &str, jaato: &str) -> String {
    let built = Path::new("target").join("release").join(library_name(name));
    let built = built.display();
    format!(
        "  cd '{}'\n  cargo test\n  cargo build --release\n  {jaato} plugin check {built}\n  \
         {jaato} plugin install {built}",
        folder.display()
    )
}
