//! Reads and writes text files, with errors that name them.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use jaato_library::{Error, ErrorKind, Result};
use serde::Serialize;

/// The largest file that is read. A program of this size has about 100,000 lines, far more than
/// fits into the context of a model.
const TEXT_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// Reads a text file.
///
/// # Errors
/// If it cannot be read, is empty, too large, or not UTF-8.
pub fn read_text(path: &Path) -> Result<String> {
    let refused = |why: String| {
        Error::new(ErrorKind::InvalidArguments, format!("cannot use `{}`: {why}", path.display()))
    };
    let facts = fs::metadata(path).map_err(|error| refused(error.to_string()))?;
    if !facts.is_file() {
        return Err(refused("it is not a file".to_owned()));
    }
    if facts.len() > TEXT_BYTES_MAX {
        return Err(refused(format!("it has more than {TEXT_BYTES_MAX} bytes")));
    }
    let bytes = fs::read(path).map_err(|error| refused(error.to_string()))?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let place = error.utf8_error().valid_up_to();
        refused(format!("it is not UTF-8 at byte {place}"))
            .with_hint("convert it, for example with `iconv -f ISO-8859-1 -t UTF-8`")
    })?;
    match text.trim().is_empty() {
        true => Err(refused("it is empty".to_owned())),
        false => Ok(text),
    }
}

/// Converts values to lines of JSON.
///
/// # Errors
/// Only by a bug.
pub fn to_json_lines(values: &[impl Serialize]) -> Result<String> {
    let line = |value| {
        let line = serde_json::to_string(value).map_err(|it| Error::failed(it.to_string()))?;
        Ok(line + "\n")
    };
    values.iter().map(line).collect()
}

/// Replaces a file.
///
/// # Errors
/// If it cannot be written.
pub fn write_text(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).map_err(|error| unwritable_file_error(path, &error))
}

/// Appends to a file, which need not exist.
///
/// # Errors
/// If it cannot be written.
pub fn append_text(path: &Path, text: &str) -> Result<()> {
    let file = fs::File::options().create(true).append(true).open(path);
    file.and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(|error| unwritable_file_error(path, &error))
}

/// Returns the error of a file that cannot be written.
pub fn unwritable_file_error(path: &Path, error: &std::io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("cannot write `{}`: {error}", path.display()))
}
