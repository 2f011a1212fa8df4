//! Packs binary and plugins into a package for `npm install -g`.
//!
//! The package has no JavaScript: npm links the binary itself into a folder of `PATH`, and the
//! binary finds its plugins by its real path.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::archive;
use super::release::{ABOUT, LICENSE, LICENSES, README, ReleaseTree};
use crate::build_plugins::HOST;

/// The top folder of every npm package.
const TOP: &str = "package";

/// Packs the release into `folder` and returns the package. The parts are moved out of the
/// release's tree, because they are large.
pub fn pack_npm(release: ReleaseTree<'_>, folder: &Path, stamp: u64) -> Result<PathBuf> {
    let processor = node_processor(std::env::consts::ARCH);
    let top = folder.join(TOP);
    fs::create_dir(&top).with_context(|| format!("making `{}`", top.display()))?;
    for part in ["bin", "lib", README].iter().chain(&LICENSES) {
        let (from, to) = (release.tree.join(part), top.join(part));
        fs::rename(&from, &to).with_context(|| format!("moving `{}`", from.display()))?;
    }
    let text = format!("{:#}\n", package_json(release.version, processor));
    let path = top.join("package.json");
    fs::write(&path, text).with_context(|| format!("writing `{}`", path.display()))?;
    let package = folder.join(format!("{HOST}-{}-npm-linux-{processor}.tgz", release.version));
    archive::pack_archive(folder, TOP, stamp, &package)?;
    Ok(package)
}

/// Returns `package.json`. With it, npm refuses to install the package on another system, processor
/// or C library.
fn package_json(version: &str, processor: &str) -> Value {
    json!({
        "name": HOST,
        "version": version,
        "description": ABOUT,
        "license": LICENSE,
        "bin": { HOST: format!("bin/{HOST}") },
        "os": ["linux"],
        "cpu": [processor],
        "libc": ["glibc"],
    })
}

/// Returns Node.js's name for a processor that Rust names.
fn node_processor(name: &str) -> &str {
    match name {
        "x86_64" => "x64",
        "aarch64" => "arm64",
        "powerpc64" => "ppc64",
        same => same,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dist::release::testing::{GLIBC, create_release_tree};

    #[test]
    fn package_has_the_binary_as_its_program() {
        let tree = create_release_tree();
        let folder = tempfile::tempdir_in(tree.path()).unwrap();
        let release = ReleaseTree { tree: tree.path(), version: "0.2.0-rc.1", glibc: GLIBC };
        let package = pack_npm(release, folder.path(), 0).unwrap();
        let processor = node_processor(std::env::consts::ARCH);
        let name = package.file_name().unwrap().to_str().unwrap();
        assert_eq!(name, format!("jaato-0.2.0-rc.1-npm-linux-{processor}.tgz"));
        let gzip = flate2::read::GzDecoder::new(fs::File::open(&package).unwrap());
        let mut archive = tar::Archive::new(gzip);
        let entries = archive.entries().unwrap().map(Result::unwrap);
        let files = entries.filter(|entry| entry.header().entry_type().is_file());
        let listed = files.map(|entry| {
            format!("{:o} {}", entry.header().mode().unwrap(), entry.path().unwrap().display())
        });
        assert_eq!(
            listed.collect::<Vec<_>>(),
            [
                "644 package/LICENSE-APACHE",
                "644 package/LICENSE-MIT",
                "644 package/README.md",
                "755 package/bin/jaato",
                "644 package/lib/jaato/plugins/libgc_a.so",
                "644 package/lib/jaato/plugins/libtool_b.so",
                "644 package/package.json",
            ]
        );
    }

    #[test]
    fn manifest_names_system_processor_and_c_library() {
        let expected = json!({
            "name": "jaato", "version": "0.1.0", "description": ABOUT, "license": LICENSE,
            "bin": { "jaato": "bin/jaato" },
            "os": ["linux"], "cpu": ["arm64"], "libc": ["glibc"],
        });
        assert_eq!(package_json("0.1.0", node_processor("aarch64")), expected);
    }
}
