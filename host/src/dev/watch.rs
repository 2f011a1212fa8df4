//! Waits for changes in a crate's sources, and shows its plugin's log until then.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use jaato_runtime::session_loop::Cancel;

use super::DevelopmentRun;
use crate::exit::CommandFailure;
use crate::report;

/// Interval between two looks. An author needs longer to switch to the terminal.
const LOOK_EVERY: Duration = Duration::from_millis(300);

/// Maximum number of watched files. A crate has fewer sources.
const FILES_MAX: usize = 10_000;

/// Maximum number of bytes of the log to read at once.
const LOG_BYTES_MAX: u64 = 1024 * 1024;

/// Size and time of each source file.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct SourceStamp(BTreeMap<PathBuf, (u64, Option<SystemTime>)>);

impl SourceStamp {
    /// Reads the present state of a crate.
    pub fn read(folder: &Path) -> Self {
        let mut stamp = Self::default();
        let mut folders = vec![folder.to_owned()];
        while let Some(folder) = folders.pop() {
            // A folder that is gone has no sources.
            let Ok(entries) = fs::read_dir(&folder) else { continue };
            for entry in entries.flatten() {
                let name = entry.file_name();
                let is_output = name.as_encoded_bytes().starts_with(b".")
                    || name == "target"
                    // cargo writes it while it builds.
                    || name == "Cargo.lock";
                let Ok(metadata) = entry.metadata() else { continue };
                if is_output || stamp.0.len() >= FILES_MAX {
                    continue;
                }
                if metadata.is_dir() {
                    folders.push(entry.path());
                } else {
                    stamp.0.insert(entry.path(), (metadata.len(), metadata.modified().ok()));
                }
            }
        }
        stamp
    }
}

/// The end of the host's log.
pub struct LogTail {
    path: Option<PathBuf>,
    read: u64,
}

impl LogTail {
    /// Begins at the end of the log in a folder.
    pub fn at_end(folder: Option<&Path>) -> Self {
        let path = folder.map(|folder| folder.join("jaato.log"));
        let length = path.as_ref().and_then(|path| path.metadata().ok());
        Self { path, read: length.map_or(0, |metadata| metadata.len()) }
    }

    /// Returns the plugin's new lines.
    fn new_lines_of(&mut self, plugin: &str) -> Vec<String> {
        let Some(text) = self.read_new_text() else { return Vec::new() };
        let source = format!(" {plugin}: ");
        let level_and_text = |line: &str| {
            let (_time, rest) = line.split_once(' ')?;
            let (level, _) = rest.split_once(' ')?;
            rest[level.len()..].starts_with(&source).then(|| rest.to_owned())
        };
        text.lines().filter_map(level_and_text).collect()
    }

    /// Reads complete new lines. A log that became shorter was started again.
    fn read_new_text(&mut self) -> Option<String> {
        let mut file = File::open(self.path.as_ref()?).ok()?;
        let length = file.metadata().ok()?.len();
        if length < self.read {
            self.read = 0;
        }
        file.seek(SeekFrom::Start(self.read)).ok()?;
        let mut bytes = Vec::new();
        file.take(LOG_BYTES_MAX).read_to_end(&mut bytes).ok()?;
        let complete = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        bytes.truncate(complete);
        self.read += complete as u64;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// Waits until the sources differ from a state. Returns the new one, or `None` after a cancel.
/// Until then it prints what the plugin logs, if its name is known.
pub async fn next_change(
    run: &DevelopmentRun,
    before: &SourceStamp,
    (log, plugin): (&mut LogTail, Option<&str>),
    cancel: &Cancel,
) -> Result<Option<SourceStamp>, CommandFailure> {
    loop {
        tokio::select! {
            biased;
            () = cancel.cancelled() => return Ok(None),
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
        for line in plugin.map(|plugin| log.new_lines_of(plugin)).unwrap_or_default() {
            report::print_line(&format!("  log  {line}"))?;
        }
        let now = SourceStamp::read(run.folder());
        if now != *before {
            return Ok(Some(now));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_changed_sources_change_the_stamp() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("src/lib.rs", "a");
        let before = SourceStamp::read(folder.path());
        for output in ["target/debug/x", ".git/index", "Cargo.lock"] {
            write(output, "b");
        }
        assert_eq!(SourceStamp::read(folder.path()), before);
        write("src/lib.rs", "longer");
        assert_ne!(SourceStamp::read(folder.path()), before);
    }

    #[test]
    fn log_shows_only_new_complete_lines_of_the_plugin() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("jaato.log");
        let earlier = "1.000 info tool-moon: earlier\n";
        fs::write(&path, earlier).unwrap();
        let mut tail = LogTail::at_end(Some(folder.path()));
        let more = "2.000 warn tool-moon: full\n3.000 info tool-sun: up\n4.000 info tool-moon: ha";
        fs::write(&path, format!("{earlier}{more}")).unwrap();
        assert_eq!(tail.new_lines_of("tool-moon"), ["warn tool-moon: full"]);
        fs::write(&path, format!("{earlier}{more}lf\n")).unwrap();
        assert_eq!(tail.new_lines_of("tool-moon"), ["info tool-moon: half"]);
    }
}
