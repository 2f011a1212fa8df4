//! Opens goose's database so that nothing changes next to it.
//!
//! goose uses a write-ahead log. To read it, SQLite would create a file of shared memory next to
//! the database. So a database with a log is copied into a temporary folder first. A database
//! without one is opened as unchangeable.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};
use tempfile::TempDir;

use super::error::ImportError;
use super::json_line::open_source_file;

/// How each SQLite database begins.
pub const SQLITE_START: &[u8] = b"SQLite format 3\0";

/// An open database, and the folder of its copy if there is one.
pub struct GooseDatabase {
    /// The open database. It is closed before the folder of the copy is removed.
    pub connection: Connection,
    _copy: Option<TempDir>,
}

impl GooseDatabase {
    /// Opens a database.
    pub fn open(path: &Path) -> Result<Self, ImportError> {
        let mut file = open_source_file(path)?;
        let log = log_path(path);
        let has_log = fs::metadata(&log).is_ok_and(|facts| facts.len() > 0);
        let url = unchangeable_url(path).filter(|_| !has_log);
        if let Some(url) = url {
            let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
                | OpenFlags::SQLITE_OPEN_URI
                | OpenFlags::SQLITE_OPEN_NO_MUTEX;
            let opened = Connection::open_with_flags(url, flags);
            let connection = opened.map_err(ImportError::from_database(path))?;
            return Self::check_connection(connection, None, path);
        }
        let folder = tempfile::tempdir().map_err(ImportError::from_io("copy", path))?;
        let copy = folder.path().join("sessions.db");
        copy_into(&mut file, &copy).map_err(ImportError::from_io("copy", path))?;
        if has_log {
            let mut file = open_source_file(&log)?;
            copy_into(&mut file, &log_path(&copy)).map_err(ImportError::from_io("copy", log))?;
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let opened = Connection::open_with_flags(copy, flags);
        let connection = opened.map_err(ImportError::from_database(path))?;
        Self::check_connection(connection, Some(folder), path)
    }

    fn check_connection(
        connection: Connection,
        copy: Option<TempDir>,
        path: &Path,
    ) -> Result<Self, ImportError> {
        // A hostile database could run functions from its views.
        let set = connection.pragma_update(None, "trusted_schema", false);
        set.map_err(ImportError::from_database(path))?;
        Ok(Self { connection, _copy: copy })
    }

    /// Lists the columns of a table. A missing table has no columns.
    pub fn table_columns(&self, table: &str) -> rusqlite::Result<Vec<String>> {
        let mut statement = self.connection.prepare("SELECT name FROM pragma_table_info(?1)")?;
        statement.query_map([table], |row| row.get(0))?.collect()
    }
}

fn copy_into(file: &mut File, path: &Path) -> io::Result<u64> {
    io::copy(file, &mut File::create(path)?)
}

fn log_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push("-wal");
    PathBuf::from(name)
}

/// Returns the URL that tells SQLite that the file does not change. `None` if the path is not text.
fn unchangeable_url(path: &Path) -> Option<String> {
    let path = std::path::absolute(path).ok()?;
    let path = path.to_str()?.replace('\\', "/");
    let path = path.replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    let root = if path.starts_with('/') { "" } else { "/" };
    Some(format!("file://{root}{path}?immutable=1"))
}
