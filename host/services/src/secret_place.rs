//! The storage of one of the user's secrets: in the system's secret tool if possible, otherwise in
//! a file that no other user can read.
//!
//! Each secret has a file next to the others of its kind. `STEM.key` holds the secret itself.
//! `STEM.secret-tool` (`STEM.security` on macOS) only records that the tool has it, so that finding
//! a secret does not run the tool.

use std::fs;
use std::io::{ErrorKind as Io, Write as _};
use std::path::{Path, PathBuf};

use jaato_places::{PathProblem, PlaceError};

use crate::key_commands::KeyCommands;

/// The extension of a file that holds its secret.
const FILE_ENDING: &str = "key";

/// The program that keeps secrets on most Linux desktops, or on macOS.
const TOOL: &str = if cfg!(target_os = "macos") { "security" } else { "secret-tool" };

/// The kind of storage of a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecretStorageKind {
    /// In this file.
    File,
    /// In the system's secret tool.
    Tool,
}

/// The place of one secret.
#[derive(Debug, Clone)]
pub(crate) struct SecretLocation {
    /// The folder of the secrets of its kind.
    pub folder: PathBuf,
    /// The name of its file without the extension.
    pub stem: String,
    /// Its kind for the tool: `provider`, `plugin`.
    pub kind: &'static str,
    /// Its name within its kind for the tool: `openai`, `moon/token`.
    pub name: String,
}

/// A secret that was found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FoundSecret {
    /// The secret.
    Here(Vec<u8>),
    /// The tool has it.
    InTool,
}

impl SecretLocation {
    /// Finds the secret without running the tool.
    pub(crate) fn find(&self, bytes_max: u64) -> Result<Option<FoundSecret>, PlaceError> {
        let read = |form| match jaato_places::read_own_file(&self.path(form), bytes_max) {
            // A home that is not a folder, such as `/dev/null`, holds no secret.
            Err(error) if error.has_non_folder_parent() => Ok(None),
            read => read,
        };
        if let Some(bytes) = read(SecretStorageKind::File)? {
            return Ok(Some(FoundSecret::Here(bytes)));
        }
        Ok(read(SecretStorageKind::Tool)?.map(|_| FoundSecret::InTool))
    }

    /// Returns the command that makes the tool print the secret.
    pub(crate) fn lookup_command(&self) -> Vec<&str> {
        match TOOL {
            "security" => {
                vec![TOOL, "find-generic-password", "-s", self.kind, "-a", &self.name, "-w"]
            }
            _ => [&[TOOL, "lookup"][..], &self.lookup_attributes()].concat(),
        }
    }

    /// Runs the tool to get the secret. Returns `None` if that fails.
    pub(crate) async fn run_lookup(&self, commands: &KeyCommands) -> Option<Vec<u8>> {
        let mut printed = commands.run_program(&self.lookup_command(), b"").await?;
        // `security` ends its output with a newline. `secret-tool` does so only on a terminal.
        if TOOL == "security" && printed.last() == Some(&b'\n') {
            printed.pop();
        }
        Some(printed)
    }

    /// Stores the secret and replaces an existing one.
    pub(crate) async fn store_secret(
        &self,
        commands: &KeyCommands,
        secret: &[u8],
    ) -> Result<SecretStorageKind, PlaceError> {
        let form = match self.store_in_tool(commands, secret).await {
            true => SecretStorageKind::Tool,
            false => SecretStorageKind::File,
        };
        let content = if form == SecretStorageKind::File { secret.to_vec() } else { Vec::new() };
        let place = self.clone();
        let written = tokio::task::spawn_blocking(move || {
            place.write(form, &content)?;
            let other = if form == SecretStorageKind::File {
                SecretStorageKind::Tool
            } else {
                SecretStorageKind::File
            };
            // Usually the file does not exist.
            let _ = fs::remove_file(place.path(other));
            Ok(())
        });
        // It does not panic. If it did, nothing would be stored.
        let broken = |error| PlaceError {
            path: self.path(form),
            why: PathProblem::System(std::io::Error::other(error)),
        };
        written.await.map_err(broken)??;
        Ok(form)
    }

    /// Removes the secret. Returns false if there was none.
    pub(crate) async fn remove_secret(&self, commands: &KeyCommands) -> std::io::Result<bool> {
        let mut was_there = false;
        for form in [SecretStorageKind::File, SecretStorageKind::Tool] {
            match fs::remove_file(self.path(form)) {
                Ok(()) => was_there = true,
                Err(error) if error.kind() == Io::NotFound => continue,
                Err(error) => return Err(error),
            }
            if form == SecretStorageKind::Tool {
                self.clear_secret(commands).await;
            }
        }
        Ok(was_there)
    }

    /// Stores a text in the tool and checks that the tool has it. A machine without a desktop often
    /// has the program but not its service, and the tool truncates long texts.
    async fn store_in_tool(&self, commands: &KeyCommands, secret: &[u8]) -> bool {
        let is_text =
            std::str::from_utf8(secret).is_ok_and(|text| !text.contains(char::is_control));
        if !is_text || secret.is_empty() {
            return false;
        }
        let stored = match TOOL {
            "security" => {
                // Not as an argument, which every user on the machine can read.
                let hex: String = secret.iter().map(|byte| format!("{byte:02x}")).collect();
                let (kind, name) = (self.kind, self.name.replace(['"', '\\'], "_"));
                let line =
                    format!("add-generic-password -U -s \"{kind}\" -a \"{name}\" -X {hex}\n");
                commands.run_program(&[TOOL, "-i"], line.as_bytes()).await
            }
            _ => {
                let label = format!("--label=jaato: {} {}", self.kind, self.name);
                let words = [&[TOOL, "store", &label][..], &self.lookup_attributes()].concat();
                commands.run_program(&words, secret).await
            }
        };
        if stored.is_none() {
            return false;
        }
        let is_kept = self.run_lookup(commands).await.is_some_and(|printed| printed == secret);
        if !is_kept {
            self.clear_secret(commands).await;
        }
        is_kept
    }

    /// Removes the secret from the tool. A failure means that the tool does not have it.
    async fn clear_secret(&self, commands: &KeyCommands) {
        let words = match TOOL {
            "security" => vec![TOOL, "delete-generic-password", "-s", self.kind, "-a", &self.name],
            _ => [&[TOOL, "clear"][..], &self.lookup_attributes()].concat(),
        };
        commands.run_program(&words, b"").await;
    }

    /// Returns the attributes by which `secret-tool` finds the secret.
    fn lookup_attributes(&self) -> [&str; 4] {
        ["service", "jaato", self.kind, &self.name]
    }

    fn write(&self, form: SecretStorageKind, content: &[u8]) -> Result<(), PlaceError> {
        jaato_places::make_own_folder(&self.folder)?;
        let path = self.path(form);
        let write = || -> std::io::Result<()> {
            // Created with mode 0600.
            let mut file = tempfile::NamedTempFile::new_in(&self.folder)?;
            file.write_all(content)?;
            file.as_file().sync_all()?;
            file.persist(&path)?;
            Ok(())
        };
        write().map_err(|error| PlaceError { path: path.clone(), why: PathProblem::System(error) })
    }

    pub(crate) fn path(&self, form: SecretStorageKind) -> PathBuf {
        let ending = if form == SecretStorageKind::File { FILE_ENDING } else { TOOL };
        self.folder.join(format!("{}.{ending}", self.stem))
    }
}

/// Counts the secrets in a folder other than this one.
pub(crate) fn count_stored_secrets(folder: &Path, stem: &str) -> usize {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    let endings = [FILE_ENDING, TOOL];
    let mut stems: Vec<_> = entries
        .flatten()
        .map(|entry| PathBuf::from(entry.file_name()))
        .filter(|name| name.extension().is_some_and(|it| endings.iter().any(|end| it == *end)))
        .filter_map(|name| Some(name.file_stem()?.to_owned()))
        .filter(|found| found != stem)
        .collect();
    stems.sort();
    stems.dedup();
    stems.len()
}
