//! A file of memories: an SQLite database with a full-text index.
//!
//! A connection exists for one operation, and only while the lock next to the file is held.
//! SQLite's own locks belong to a process. Two copies of SQLite in one process (a reloaded plugin,
//! and its earlier version in running sessions) would release each other's locks:
//! <https://sqlite.org/howtocorrupt.html>, section 2.2.1. Because only one connection is open at a
//! time, SQLite's write-ahead log would have no benefit.
//!
//! Invariant: a file from a newer jaato or another program, or a damaged file, is never written.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use jaato_plugin_sdk::prelude::*;
use rusqlite::{Connection, OpenFlags, TransactionBehavior};

/// The file's name in its folder.
pub const FILE_NAME: &str = "memories.sqlite";
/// Marks the file as this plugin's in its header: `jmem`.
const APPLICATION_ID: i64 = 0x6a6d_656d;
/// How long a call waits while others use the file.
const CALL_WAIT: Duration = Duration::from_secs(5);
/// How long a prompt waits. The hook itself has 200 ms.
const PROMPT_WAIT: Duration = Duration::from_millis(80);
/// The pause between two attempts to lock the file.
const TRY_AGAIN: Duration = Duration::from_millis(3);

/// The version of the tables.
const VERSION: i64 = 2;
/// The tables. The full-text index contains only words and not a second copy of the texts.
const TABLES: &str = "
    CREATE TABLE memory (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        id TEXT NOT NULL UNIQUE,
        content TEXT NOT NULL,
        description TEXT NOT NULL,
        tags TEXT NOT NULL,
        confidence REAL NOT NULL,
        evidence TEXT NOT NULL,
        stored TEXT NOT NULL,
        usage_count INTEGER NOT NULL DEFAULT 0,
        last_accessed TEXT
    ) STRICT;
    CREATE TABLE memory_tag (
        folded TEXT NOT NULL,
        number INTEGER NOT NULL REFERENCES memory(number) ON DELETE CASCADE,
        PRIMARY KEY (folded, number)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX memory_tag_of ON memory_tag(number);
    CREATE VIRTUAL TABLE memory_words USING fts5(
        description, tags, content,
        content = '', contentless_delete = 1, tokenize = 'unicode61 remove_diacritics 2'
    );
";

/// The file of one scope, which may not exist yet.
#[derive(Debug, Clone)]
pub struct MemoryFile {
    path: PathBuf,
    wait: Duration,
}

/// An open file. The connection closes before the lock is released.
pub struct OpenMemoryFile {
    pub connection: Connection,
    _lock: File,
}

impl MemoryFile {
    /// Returns the file in a folder, without opening it.
    pub fn new(folder: &Path) -> Self {
        Self { path: folder.join(FILE_NAME), wait: CALL_WAIT }
    }

    /// Returns the same file with a short wait.
    #[must_use]
    pub fn with_short_wait(&self) -> Self {
        Self { wait: PROMPT_WAIT, ..self.clone() }
    }

    /// Reads the file. A missing file counts as empty.
    ///
    /// # Errors
    /// The errors of [`MemoryFile::write_in_transaction`].
    pub fn read_with<T: Default>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T> {
        // Reading must not create files in each workspace.
        if !self.path.exists() {
            return Ok(T::default());
        }
        let open = self.open_existing_file()?;
        work(&open.connection).map_err(|error| self.storage_error(&error))
    }

    /// Runs a change in a transaction.
    ///
    /// # Errors
    /// `unavailable` if others use the file for too long, `io` if it is damaged or the disk is
    /// full, `failed` for a file from a newer jaato or another program, or the error of `work`.
    pub fn write_in_transaction<T>(
        &self,
        work: impl FnOnce(&Connection) -> MemoryFileResult<T>,
    ) -> Result<T> {
        let mut open = self.open_existing_file()?;
        let told = |error: rusqlite::Error| self.storage_error(&error);
        let transaction = open.connection.transaction_with_behavior(TransactionBehavior::Immediate);
        let transaction = transaction.map_err(told)?;
        let done = work(&transaction).map_err(|error| match error {
            MemoryFileError::Sqlite(error) => self.storage_error(&error),
            MemoryFileError::Told(error) => error,
        })?;
        transaction.commit().map_err(told)?;
        Ok(done)
    }

    /// Changes an existing file. Returns false if there is none.
    ///
    /// # Errors
    /// The errors of [`MemoryFile::write_in_transaction`].
    pub fn change_existing(
        &self,
        work: impl FnOnce(&Connection) -> MemoryFileResult<bool>,
    ) -> Result<bool> {
        if self.path.exists() { self.write_in_transaction(work) } else { Ok(false) }
    }

    fn open_existing_file(&self) -> Result<OpenMemoryFile> {
        let lock = self.lock_file()?;
        // SQLite would create a file that others can read. Its journals get the file's mode.
        open_private(&self.path).map_err(|error| {
            Error::new(ErrorKind::Io, format!("cannot open `{}`: {error}", self.path.display()))
        })?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
        let told = |error: rusqlite::Error| self.storage_error(&error);
        let mut connection =
            Connection::open_with_flags(&self.path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)
                .map_err(told)?;
        // Programs other than jaato may open the file without its lock.
        connection.busy_timeout(self.wait).map_err(told)?;
        if self.is_new_file(&connection)? {
            create_tables(&mut connection).map_err(told)?;
        }
        connection.pragma_update(None, "foreign_keys", true).map_err(told)?;
        Ok(OpenMemoryFile { connection, _lock: lock })
    }

    /// Returns true for an empty file. Checks any other file before anything is written to it.
    fn is_new_file(&self, connection: &Connection) -> Result<bool> {
        let number = |sql: &str| {
            connection
                .query_row(sql, [], |row| row.get::<_, i64>(0))
                .map_err(|it| self.storage_error(&it))
        };
        let version = number("PRAGMA user_version")?;
        let application = number("PRAGMA application_id")?;
        let is_new = number("SELECT count(*) FROM sqlite_schema")? == 0;
        if is_new && version == 0 && application == 0 {
            return Ok(true);
        }
        let path = self.path.display();
        if application != APPLICATION_ID || version < VERSION {
            let text = format!("`{path}` belongs to another program");
            return Err(Error::new(ErrorKind::Failed, text).with_hint(LEFT_ALONE));
        }
        if version > VERSION {
            let text = format!(
                "a newer jaato wrote `{path}`: its format is {version}, this jaato supports \
                 {VERSION}"
            );
            return Err(Error::new(ErrorKind::Failed, text)
                .with_hint("update jaato; the file stays unchanged"));
        }
        Ok(false)
    }

    fn lock_file(&self) -> Result<File> {
        let path = self.path.with_extension("lock");
        let io = |error: std::io::Error| {
            Error::new(ErrorKind::Io, format!("cannot lock `{}`: {error}", path.display()))
        };
        let lock = open_private(&path).map_err(io)?;
        let begin = Instant::now();
        loop {
            match lock.try_lock() {
                Ok(()) => return Ok(lock),
                Err(TryLockError::Error(error)) => return Err(io(error)),
                Err(TryLockError::WouldBlock) if begin.elapsed() >= self.wait => {
                    let text = format!(
                        "other processes are using the memories in `{}`",
                        self.path.display()
                    );
                    return Err(Error::new(ErrorKind::Unavailable, text).with_hint("try again"));
                }
                Err(TryLockError::WouldBlock) => std::thread::sleep(TRY_AGAIN),
            }
        }
    }

    fn storage_error(&self, error: &rusqlite::Error) -> Error {
        use rusqlite::ErrorCode;
        let path = self.path.display();
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                let text = format!("another program uses the memories in `{path}`");
                Error::new(ErrorKind::Unavailable, text).with_hint("try again")
            }
            Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
                let text = format!("the memories in `{path}` are damaged: {error}");
                Error::new(ErrorKind::Io, text).with_hint(LEFT_ALONE)
            }
            _ => Error::new(ErrorKind::Io, format!("cannot use the memories in `{path}`: {error}")),
        }
    }
}

const LEFT_ALONE: &str = "the file stays unchanged; move it away to start without memories";

/// The error of a change.
pub enum MemoryFileError {
    /// SQLite failed.
    Sqlite(rusqlite::Error),
    /// The change is not possible.
    Told(Error),
}

/// The result of a change.
pub type MemoryFileResult<T> = std::result::Result<T, MemoryFileError>;

impl From<rusqlite::Error> for MemoryFileError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

/// Opens a file. Creates it with access for only this user if it is missing.
fn open_private(path: &Path) -> std::io::Result<File> {
    // Opening a named pipe would block until another process reads it.
    if path.metadata().is_ok_and(|found| !found.is_file()) {
        let kind = std::io::ErrorKind::InvalidInput;
        return Err(std::io::Error::new(kind, "it is not a regular file"));
    }
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.create(true).truncate(false).write(true).open(path)
}

/// Creates the tables, or leaves the file unchanged.
fn create_tables(connection: &mut Connection) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    transaction.execute_batch(TABLES)?;
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", VERSION)?;
    transaction.commit()
}
