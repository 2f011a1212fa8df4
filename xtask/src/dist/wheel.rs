//! Packs binary and plugins into a Python wheel, for `pip`, `pipx` and `uv`.
//!
//! The wheel contains no Python code. An installer copies the scripts of a wheel to `bin` and its
//! data to the folder above, so the binary finds its plugins in `../lib/jaato/plugins`, as in the
//! archive.
//! Invariant: the bytes depend only on the content.

use std::fs::{self, File};
use std::io::{BufWriter, Seek, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

use super::release::{ABOUT, LICENSE, LICENSES, README, ReleaseTree};
use crate::build_plugins::HOST;

/// Packs the release into `folder` and returns the wheel.
pub fn pack_wheel(release: &ReleaseTree<'_>, folder: &Path) -> Result<PathBuf> {
    let version = python_version(release.version);
    let stem = format!("{HOST}-{version}");
    let tag = compatibility_tag(release);
    let path = folder.join(format!("{stem}-{tag}.whl"));
    let describe = || format!("packing `{}`", path.display());
    let file = File::create(&path).with_context(describe)?;
    let wheel = WheelWriter { zip: ZipWriter::new(BufWriter::new(file)), record: String::new() };
    fill_wheel(wheel, release, &stem, &tag).with_context(describe)?;
    Ok(path)
}

fn fill_wheel<W: Write + Seek>(
    mut wheel: WheelWriter<W>,
    release: &ReleaseTree<'_>,
    stem: &str,
    tag: &str,
) -> Result<()> {
    let (data, info) = (format!("{stem}.data"), format!("{stem}.dist-info"));
    for plugin in release.plugin_paths()? {
        let content = read_bytes(&release.tree.join(&plugin))?;
        wheel.add_file(&format!("{data}/data/{plugin}"), READ, &content)?;
    }
    wheel.add_file(&format!("{data}/scripts/{HOST}"), RUN, &read_bytes(&release.binary_path())?)?;
    let readme = read_bytes(&release.tree.join(README))?;
    let metadata = [wheel_metadata(release.version).as_bytes(), &readme].concat();
    wheel.add_file(&format!("{info}/METADATA"), READ, &metadata)?;
    wheel.add_file(&format!("{info}/WHEEL"), READ, wheel_info(tag).as_bytes())?;
    for license in LICENSES {
        let content = read_bytes(&release.tree.join(license))?;
        wheel.add_file(&format!("{info}/licenses/{license}"), READ, &content)?;
    }
    wheel.finish_with_record(&format!("{info}/RECORD"))
}

/// Returns the compatibility tag: any Python 3 on Linux, with this glibc or newer and this
/// processor.
fn compatibility_tag(release: &ReleaseTree<'_>) -> String {
    let glibc = release.glibc;
    // Python and Rust have the same names for the processors of Linux.
    format!("py3-none-manylinux_{}_{}_{}", glibc.major, glibc.minor, std::env::consts::ARCH)
}

/// Returns a version in Python's form: `0.2.0-rc.1` becomes `0.2.0rc1`.
fn python_version(version: &str) -> String {
    version.replace("-alpha.", "a").replace("-beta.", "b").replace("-rc.", "rc")
}

fn wheel_metadata(version: &str) -> String {
    let version = python_version(version);
    let licenses = LICENSES.map(|license| format!("License-File: {license}\n")).concat();
    format!(
        "Metadata-Version: 2.4\nName: {HOST}\nVersion: {version}\nSummary: {ABOUT}\n\
         License-Expression: {LICENSE}\n{licenses}\
         Description-Content-Type: text/markdown\n\n"
    )
}

fn wheel_info(tag: &str) -> String {
    format!("Wheel-Version: 1.0\nGenerator: cargo-xtask\nRoot-Is-Purelib: false\nTag: {tag}\n")
}

fn read_bytes(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("reading `{}`", path.display()))
}

/// The mode of a file that is not executable.
const READ: u32 = 0o644;

/// The mode of a program. `pip` keeps the executable bit.
const RUN: u32 = 0o755;

/// An unfinished wheel: a zip file whose last entry lists its files.
struct WheelWriter<W: Write + Seek> {
    zip: ZipWriter<W>,
    /// Lines of path, digest and size.
    record: String,
}

impl<W: Write + Seek> WheelWriter<W> {
    fn add_file(&mut self, path: &str, mode: u32, content: &[u8]) -> Result<()> {
        let digest = BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(content));
        self.record.push_str(&format!("{path},sha256={digest},{}\n", content.len()));
        self.write_member(path, mode, content)
    }

    fn finish_with_record(mut self, path: &str) -> Result<()> {
        let record = format!("{}{path},,\n", self.record);
        self.write_member(path, READ, record.as_bytes())?;
        self.zip.finish()?.flush()?;
        Ok(())
    }

    fn write_member(&mut self, path: &str, mode: u32, content: &[u8]) -> Result<()> {
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Deflated)
            // The earliest time of the format. Installers ignore it.
            .last_modified_time(DateTime::default())
            .unix_permissions(mode);
        self.zip.start_file(path, options)?;
        self.zip.write_all(content)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;
    use crate::dist::release::testing::{GLIBC, create_release_tree};

    #[test]
    fn wheel_installs_the_binary_next_to_the_folder_of_its_plugins() {
        let tree = create_release_tree();
        let release = ReleaseTree { tree: tree.path(), version: "0.2.0-rc.1", glibc: GLIBC };
        let wheel = pack_wheel(&release, tree.path()).unwrap();
        let name = wheel.file_name().unwrap().to_str().unwrap();
        let tag = format!("py3-none-manylinux_2_34_{}", std::env::consts::ARCH);
        assert_eq!(name, format!("jaato-0.2.0rc1-{tag}.whl"));
        let mut zip = zip::ZipArchive::new(File::open(&wheel).unwrap()).unwrap();
        let mut files = Vec::new();
        for index in 0..zip.len() {
            let mut file = zip.by_index(index).unwrap();
            let mut content = Vec::new();
            file.read_to_end(&mut content).unwrap();
            files.push((file.name().unwrap().into_owned(), file.unix_mode().unwrap(), content));
        }
        let listed: Vec<_> =
            files.iter().map(|(name, mode, _)| format!("{mode:o} {name}")).collect();
        assert_eq!(
            listed,
            [
                "100644 jaato-0.2.0rc1.data/data/lib/jaato/plugins/libgc_a.so",
                "100644 jaato-0.2.0rc1.data/data/lib/jaato/plugins/libtool_b.so",
                "100755 jaato-0.2.0rc1.data/scripts/jaato",
                "100644 jaato-0.2.0rc1.dist-info/METADATA",
                "100644 jaato-0.2.0rc1.dist-info/WHEEL",
                "100644 jaato-0.2.0rc1.dist-info/licenses/LICENSE-APACHE",
                "100644 jaato-0.2.0rc1.dist-info/licenses/LICENSE-MIT",
                "100644 jaato-0.2.0rc1.dist-info/RECORD",
            ]
        );
        let text = |index: usize| String::from_utf8(files[index].2.clone()).unwrap();
        assert!(text(3).starts_with("Metadata-Version: 2.4\nName: jaato\nVersion: 0.2.0rc1\n"));
        assert!(text(3).ends_with("text/markdown\n\nREADME.md"), "{}", text(3));
        assert!(text(4).ends_with(&format!("\nTag: {tag}\n")), "{}", text(4));
        let record = text(7);
        let rows: Vec<_> = record.lines().map(|line| line.split(',').next().unwrap()).collect();
        assert_eq!(rows, files.iter().map(|file| file.0.as_str()).collect::<Vec<_>>());
        // `printf bin/jaato | openssl dgst -sha256 -binary | basenc --base64url`
        let digest = "5er6_yD317vw-hxZqrF8bkcrqIF9ust5D_5PRroLwJY";
        assert_eq!(
            record.lines().nth(2).unwrap(),
            format!("jaato-0.2.0rc1.data/scripts/jaato,sha256={digest},9")
        );
    }

    #[test]
    fn same_content_gives_the_same_wheel() {
        let wheel = || {
            let tree = create_release_tree();
            let release = ReleaseTree { tree: tree.path(), version: "0.1.0", glibc: GLIBC };
            fs::read(pack_wheel(&release, tree.path()).unwrap()).unwrap()
        };
        assert_eq!(wheel(), wheel());
    }
}
