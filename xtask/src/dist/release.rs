//! The parts of a release that every package contains.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::PLUGINS;
use super::needed_libraries::GlibcVersion;
use crate::build_plugins::HOST;

/// The first sentence of the README.
pub const ABOUT: &str = "jaato runs AI agents in your terminal";

/// The licences, as SPDX writes them.
pub const LICENSE: &str = "Apache-2.0 OR MIT";

/// The files with the text of the licences.
pub const LICENSES: [&str; 2] = ["LICENSE-APACHE", "LICENSE-MIT"];

/// The page that a registry shows.
pub const README: &str = "README.md";

/// The tree of a release, and its facts for the packages.
pub struct ReleaseTree<'a> {
    /// The tree: `bin`, `lib`, and the files above.
    pub tree: &'a Path,
    pub version: &'a str,
    /// The oldest glibc with which the binary and the plugins start.
    pub glibc: GlibcVersion,
}

impl ReleaseTree<'_> {
    /// Returns the path of the binary.
    pub fn binary_path(&self) -> PathBuf {
        self.tree.join("bin").join(HOST)
    }

    /// Returns the paths of the plugins in the tree, sorted.
    pub fn plugin_paths(&self) -> Result<Vec<String>> {
        let folder = self.tree.join(PLUGINS);
        let describe = || format!("reading `{}`", folder.display());
        let mut plugins = Vec::new();
        for entry in fs::read_dir(&folder).with_context(describe)? {
            let name = entry.with_context(describe)?.file_name();
            plugins.push(format!("{PLUGINS}/{}", name.to_string_lossy()));
        }
        plugins.sort();
        Ok(plugins)
    }
}

#[cfg(test)]
pub mod testing {
    use super::*;

    pub const GLIBC: GlibcVersion = GlibcVersion { major: 2, minor: 34 };

    /// A tree with a binary, two plugins and the files of every package.
    pub fn create_release_tree() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let plugins = ["tool_b", "gc_a"].map(|name| format!("{PLUGINS}/lib{name}.so"));
        let files = [format!("bin/{HOST}"), README.to_owned()].into_iter().chain(plugins);
        for file in files.chain(LICENSES.map(str::to_owned)) {
            let path = folder.path().join(&file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, &file).unwrap();
        }
        folder
    }
}
