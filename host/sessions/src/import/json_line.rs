//! Reads a file of JSON lines, one line at a time, and helps with the values in it.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::error::ImportError;

/// The largest file that is imported: 1 GiB. A conversation is kept in memory, and one of this size
/// fits no context window.
pub const IMPORT_BYTES_MAX: u64 = 1024 * 1024 * 1024;

/// The longest line that is read. It holds a request with many images. A longer one is damaged.
const LINE_BYTES_MAX: usize = 128 * 1024 * 1024;

/// Times from this one are in milliseconds, earlier ones are in seconds. In seconds it is the year
/// 2286, and in milliseconds it is April 1970.
const FIRST_MILLISECOND: i64 = 10_000_000_000;

/// A JSON object.
pub type JsonObject = Map<String, Value>;

/// A line of a file.
pub enum SourceLine {
    /// An object.
    Object(JsonObject),
    /// Anything else: no JSON, no object, no UTF-8, or too long.
    Damaged,
}

/// Reads a file of JSON lines.
pub struct JsonLines {
    reader: BufReader<File>,
    path: PathBuf,
    /// The number of the last line, from 1.
    number: u64,
}

impl JsonLines {
    /// Opens a file.
    pub fn open(path: &Path) -> Result<Self, ImportError> {
        let file = open_source_file(path)?;
        let mut reader = BufReader::new(file);
        let head = reader.fill_buf().map_err(ImportError::from_io("read", path))?;
        if head.starts_with(&[0xff, 0xfe]) || head.starts_with(&[0xfe, 0xff]) {
            return Err(ImportError::WrongEncoding(path.to_owned()));
        }
        if head.starts_with(&[0xef, 0xbb, 0xbf]) {
            reader.consume(3);
        }
        Ok(Self { reader, path: path.to_owned(), number: 0 })
    }

    /// Reads the next line that is not blank, with its number from 1.
    pub fn next_line(&mut self) -> Result<Option<(u64, SourceLine)>, ImportError> {
        loop {
            let mut line = Vec::new();
            let most = LINE_BYTES_MAX as u64 + 1;
            let read = self.reader.by_ref().take(most).read_until(b'\n', &mut line);
            if read.map_err(ImportError::from_io("read", &self.path))? == 0 {
                return Ok(None);
            }
            self.number += 1;
            if line.len() > LINE_BYTES_MAX && !line.ends_with(b"\n") {
                self.skip_line()?;
                return Ok(Some((self.number, SourceLine::Damaged)));
            }
            if line.trim_ascii().is_empty() {
                continue;
            }
            let line = serde_json::from_slice(&line);
            return Ok(Some((self.number, line.map_or(SourceLine::Damaged, SourceLine::Object))));
        }
    }

    fn skip_line(&mut self) -> Result<(), ImportError> {
        let read = self.reader.skip_until(b'\n');
        read.map(drop).map_err(ImportError::from_io("read", &self.path))
    }
}

/// Opens a file to read it, after checks that also keep a pipe from blocking.
pub fn open_source_file(path: &Path) -> Result<File, ImportError> {
    let facts = fs::metadata(path).map_err(ImportError::from_io("read", path))?;
    if !facts.is_file() {
        return Err(ImportError::NotAFile(path.to_owned()));
    }
    match facts.len() {
        0 => Err(ImportError::Empty(path.to_owned())),
        bytes if bytes > IMPORT_BYTES_MAX => {
            Err(ImportError::TooLarge { path: path.to_owned(), bytes, most: IMPORT_BYTES_MAX })
        }
        _ => File::open(path).map_err(ImportError::from_io("read", path)),
    }
}

/// Returns a field's text, or an empty one.
pub fn text_field<'a>(object: &'a JsonObject, name: &str) -> &'a str {
    object.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// Returns a field's object.
pub fn object_field<'a>(object: &'a JsonObject, name: &str) -> Option<&'a JsonObject> {
    object.get(name).and_then(Value::as_object)
}

/// Returns true if a field is `true`.
pub fn is_true_field(object: &JsonObject, name: &str) -> bool {
    object.get(name).and_then(Value::as_bool).unwrap_or_default()
}

/// Reads a time: a text in RFC 3339, seconds, or milliseconds since 1970.
pub fn parse_time(value: Option<&Value>) -> Option<i64> {
    match value? {
        Value::String(text) => Some(text.parse::<Timestamp>().ok()?.as_millisecond()),
        Value::Number(number) => number.as_i64().map(to_milliseconds),
        _ => None,
    }
}

/// Converts a time in seconds or milliseconds to milliseconds.
pub fn to_milliseconds(time: i64) -> i64 {
    if time >= FIRST_MILLISECOND { time } else { time.saturating_mul(1000) }
}
