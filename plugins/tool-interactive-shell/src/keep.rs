//! Writes what a session's results tell into a file of the execution environment, where the model's
//! programs can read it.

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::types::files::{FileBytes, FileRead, FileWrite, WriteMode};

use crate::session::Session;

/// Most bytes that one read of the file gives: more than fits into a result.
const READ_BYTES: u64 = 64 * 1024;

/// What the writer knows of the file; locked while it is written.
#[derive(Debug, Default)]
pub struct Keeper {
    /// The piece that is being written: where it begins, and how long it is. A call that is
    /// cancelled leaves it here.
    begun: Option<(u64, usize)>,
}

/// How much is to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HowMuch {
    /// What is too much to be held in memory.
    Surplus,
    /// Everything, because a result says that it is there.
    All,
}

/// Writes what is not in the file yet. What cannot be written ends the file, which results then
/// say.
pub async fn write(session: &Session, host: &Reporter, how_much: HowMuch) {
    let is_all_wanted = how_much == HowMuch::All;
    if session.live().transcript.next_piece(is_all_wanted).is_none() {
        return;
    }
    let mut keeper = session.keeper.lock().await;
    loop {
        let (piece, path) = {
            let transcript = &mut session.live().transcript;
            let Some(piece) = transcript.next_piece(is_all_wanted) else { return };
            (piece, transcript.path().map(str::to_owned))
        };
        let written = write_piece(&mut keeper, session, host, (&piece.0, piece.1), path).await;
        let transcript = &mut session.live().transcript;
        match written {
            Ok((path, bytes)) => transcript.written(path, bytes),
            Err(error) if error.kind == ErrorKind::Conflict => transcript.lose_file(error.message),
            Err(error) => transcript.end_file(error.message),
        }
    }
}

/// Writes one piece; returns where the file is, and how much of the piece is in it.
async fn write_piece(
    keeper: &mut Keeper,
    session: &Session,
    host: &Reporter,
    (piece, at): (&str, u64),
    path: Option<String>,
) -> Result<(String, usize)> {
    let Some(path) = path else { return Ok((create(session, host, piece).await?, piece.len())) };
    if let Some((begun_at, bytes)) = keeper.begun.take() {
        // The call that wrote it was cancelled, perhaps after the write.
        let size = host.files().stat(&path).await?.size;
        if size == begun_at + bytes as u64 && begun_at == at {
            return Ok((path, bytes));
        }
    }
    keeper.begun = Some((at, piece.len()));
    let write = FileWrite { path: path.clone(), mode: WriteMode::Append, ..FileWrite::default() };
    let facts = host.files().write(write, piece.as_bytes()).await;
    keeper.begun = None;
    if facts?.size != at + piece.len() as u64 {
        return Err(Error::new(
            ErrorKind::Conflict,
            "a command has changed or removed the file that it was in",
        ));
    }
    Ok((path, piece.len()))
}

/// Makes the file, with its first piece.
async fn create(session: &Session, host: &Reporter, piece: &str) -> Result<String> {
    let folder = host.environment().await?.temporary_directory.ok_or_else(|| {
        Error::new(ErrorKind::Unavailable, "the execution environment has no folder for it")
    })?;
    let path = format!("{folder}/{}-{}.txt", session.id, host.id());
    let mode = WriteMode::CreateNew;
    let write = FileWrite { path: path.clone(), mode, ..FileWrite::default() };
    host.files().write(write, piece.as_bytes()).await?;
    Ok(path)
}

/// Reads the file from a byte on, at most to another one; returns where the text begins, and the
/// text.
///
/// # Errors
/// What keeps it from being read: a command may have removed it.
pub async fn read(host: &Reporter, path: &str, from: u64, to: u64) -> Result<(u64, String)> {
    let length = Some((to - from).min(READ_BYTES));
    let read = FileRead { path: path.to_owned(), offset: from, length };
    let (_, bytes): (FileBytes, Vec<u8>) = host.files().read(read).await?;
    // A character that begins before it is left out, and so is one that ends behind it: the next
    // read begins there.
    let begin = bytes.iter().take_while(|byte| **byte & 0b1100_0000 == 0b1000_0000).count();
    let text = match std::str::from_utf8(&bytes[begin..]) {
        Ok(text) => text,
        Err(error) => {
            std::str::from_utf8(&bytes[begin..begin + error.valid_up_to()]).unwrap_or_default()
        }
    };
    Ok((from + begin as u64, text.to_owned()))
}
