//! The packages of `dist`, made once from the test house for all tests of this program, and the
//! unpacked archive.
//!
//! It is at the same path in each run, so that builds against its sdk are reused.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use super::skip::skip;

/// An unpacked archive, and the folders of its users.
pub struct InstalledArchive {
    /// The archive's single top folder.
    pub top: PathBuf,
    archive: PathBuf,
    wheel: PathBuf,
    npm: PathBuf,
    /// The folder that contains everything.
    around: PathBuf,
    /// A lock, because two runs at a time would build in the same folders.
    _alone: File,
}

/// Unpacks the archive once. Skips the test without a test house.
pub fn installed_archive() -> Option<&'static InstalledArchive> {
    static INSTALLED: OnceLock<Option<InstalledArchive>> = OnceLock::new();
    let installed =
        INSTALLED.get_or_init(|| test_house().map(|house| InstalledArchive::new(&house))).as_ref();
    if installed.is_none() {
        skip("the test house is missing; `cargo xtask test` builds it");
    }
    installed
}

/// Returns cargo's output folder.
pub fn target_folder() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().to_owned()
}

/// Returns the root of the checkout.
pub fn checkout_root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// Returns everything that a program printed.
pub fn printed_text(output: &Output) -> String {
    let (out, err) = (&output.stdout, &output.stderr);
    format!("{}{}", String::from_utf8_lossy(out), String::from_utf8_lossy(err))
}

/// Runs a command to its successful end and returns its standard output.
#[track_caller]
pub fn successful_stdout(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", printed_text(&output));
    String::from_utf8(output.stdout).unwrap()
}

/// Returns this machine's target triple.
pub fn target_triple() -> String {
    let rustc = successful_stdout(Command::new("rustc").arg("-vV"));
    rustc.lines().find_map(|line| line.strip_prefix("host: ")).unwrap().to_owned()
}

fn test_house() -> Option<PathBuf> {
    let named = std::env::var_os("JAATO_TEST_HOUSE").map(PathBuf::from);
    let house = named.unwrap_or_else(|| target_folder().join("house"));
    house.join("bin/jaato").is_file().then_some(house)
}

impl InstalledArchive {
    fn new(house: &Path) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("archive");
        fs::create_dir_all(&folder).unwrap();
        let alone = File::create(folder.join("lock")).unwrap();
        alone.lock().unwrap();
        let mut dist = Command::new(env!("CARGO_BIN_EXE_xtask"));
        let house = strip_debug_info(house, &folder);
        dist.args(["dist", "--from"]).arg(house).arg("--dest").arg(&folder);
        let printed = successful_stdout(&mut dist);
        let sizes = printed.lines().filter_map(|line| line.split_once(" MB  "));
        let packages: Vec<PathBuf> = sizes.map(|(_, path)| path.into()).collect();
        let [archive, wheel, npm] = packages.try_into().unwrap();
        let fresh = folder.join("fresh");
        let _ = fs::remove_dir_all(&fresh);
        fs::create_dir(&fresh).unwrap();
        // Uses the time of unpacking, because cargo compares times and the sources may have
        // changed.
        successful_stdout(Command::new("tar").arg("-xzmf").arg(&archive).arg("-C").arg(&fresh));
        let name = archive.file_name().unwrap().to_str().unwrap();
        let name = name.strip_suffix(".tar.gz").unwrap();
        let (unpacked, top) = (fresh.join(name), folder.join("jaato"));
        keep_unchanged_sdk(&top, &unpacked);
        let _ = fs::remove_dir_all(&top);
        fs::rename(unpacked, &top).unwrap();
        Self { top, archive, wheel, npm, around: folder, _alone: alone }
    }

    /// Returns the unpacked binary.
    pub fn jaato_path(&self) -> PathBuf {
        self.top.join("bin/jaato")
    }

    /// Returns the path of the archive.
    pub fn archive_path(&self) -> &Path {
        &self.archive
    }

    /// The Python wheel.
    pub fn wheel_path(&self) -> &Path {
        &self.wheel
    }

    /// The npm package.
    pub fn npm_path(&self) -> &Path {
        &self.npm
    }

    /// Returns an empty folder next to the archive, for one test.
    pub fn empty_folder(&self, name: &str) -> PathBuf {
        let folder = self.around.join(name);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        folder
    }
}

/// Copies the house without symbols and debug information, because packing them takes longer than
/// all tests with the packages.
fn strip_debug_info(house: &Path, folder: &Path) -> PathBuf {
    let stripped = folder.join("stripped");
    let _ = fs::remove_dir_all(&stripped);
    for part in ["bin", "plugins"] {
        fs::create_dir_all(stripped.join(part)).unwrap();
        for entry in fs::read_dir(house.join(part)).unwrap() {
            let name = entry.unwrap().file_name();
            // The list of gathered files is not a program.
            if !name.to_string_lossy().starts_with('.') {
                let mut strip = Command::new("strip");
                strip.arg("-o").arg(stripped.join(part).join(&name));
                successful_stdout(strip.arg(house.join(part).join(&name)));
            }
        }
    }
    stripped
}

/// Keeps unchanged sources with their times, so that builds against them are reused.
fn keep_unchanged_sdk(before: &Path, unpacked: &Path) {
    let [old, new] = [before, unpacked].map(|top| top.join("share"));
    let mut diff = Command::new("diff");
    if old.is_dir() && diff.arg("-rq").args([&old, &new]).output().unwrap().status.success() {
        fs::remove_dir_all(&new).unwrap();
        fs::rename(old, new).unwrap();
    }
}
