//! The operations `files.*`.

use std::sync::Arc;

use jaato_plugin_sdk::__private::{bad_frame, value_frame};
use jaato_plugin_sdk::Cx;
use jaato_types::execution::STREAM_KEY;
use jaato_types::files::{
    COPY, DELETE, EDIT, FIND, FileLimits, FileNumber, FilePath, LIMITS_KEY, LIST, MAKE_FOLDER,
    MOVE, READ, READ_STREAM, READ_TEXT, RESOLVE, SEARCH, STAT, WALK, WRITE, WRITE_FINISH,
    WRITE_PIECE, WRITE_STREAM,
};
use jaato_types::{Error, ErrorKind, Frame, Result};
use memchr::memmem;
use serde::Deserialize;
use serde_json::json;

use super::by_path::{AtLink, ByPath};
use super::desk::{Desk, Open};
use super::files::Files;
use super::frames::{done, framed, read, read_with_bytes, unknown, unknown_operation};
use super::held::Held;
use super::streams::NextFrame;
use super::traits::ExecutionEnvironment;
use crate::engine::{CallLimits, Does};
use crate::errors::Verb;

/// Answers a `files.*` operation.
pub(super) async fn answer<E: ExecutionEnvironment>(
    cx: &Cx<E::State>,
    desk: &Desk<E>,
    operation: &str,
    frame: &[u8],
) -> Result<Vec<u8>> {
    let environment = desk.environment()?;
    let files = environment.files().ok_or_else(|| unknown_operation(operation))?;
    let Some(limits) = limits_of(frame)? else {
        return answer_freely(cx, desk, files, operation, frame).await;
    };
    match files.limited(&limits) {
        Some(files) => answer_freely(cx, desk, &files, operation, frame).await,
        None => {
            let by_path = ByPath::new(files, cx, &limits);
            match answer_by_path(desk, &by_path, operation, frame).await? {
                Some(answer) => Ok(answer),
                None => answer_freely(cx, desk, files, operation, frame).await,
            }
        }
    }
}

/// Reads the limits of the call from its frame.
fn limits_of(frame: &[u8]) -> Result<Option<Arc<CallLimits>>> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Limited {
        limits: FileLimits,
    }
    let key = format!("\"{LIMITS_KEY}\"");
    let json = Frame::parse(frame).map_err(bad_frame)?.json;
    if memmem::find(json, key.as_bytes()).is_none() {
        return Ok(None);
    }
    let Limited { limits } = read(frame)?;
    Ok(CallLimits::new(limits))
}

/// Checks an operation by its paths. Also answers it if the limits change the answer.
async fn answer_by_path<E: ExecutionEnvironment>(
    desk: &Desk<E>,
    files: &ByPath<'_, E::Files>,
    operation: &str,
    frame: &[u8],
) -> Result<Option<Vec<u8>>> {
    use Does::{Read, Write};
    let (verb, does, at_link) = match operation {
        READ | READ_TEXT | READ_STREAM => (Verb::Read, Read, AtLink::Refuse),
        WRITE | WRITE_STREAM => (Verb::Write, Write, AtLink::Refuse),
        EDIT => (Verb::Edit, Write, AtLink::Refuse),
        MAKE_FOLDER => (Verb::Make, Write, AtLink::Refuse),
        STAT => match read::<FilePath>(frame)?.itself {
            true => (Verb::Find, Read, AtLink::Stay),
            false => (Verb::Find, Read, AtLink::Refuse),
        },
        DELETE => return files.check_delete(&read(frame)?).await.map(|()| None),
        MOVE => return files.check_pair(Verb::Move, &read(frame)?).await.map(|()| None),
        COPY => return files.check_pair(Verb::Copy, &read(frame)?).await.map(|()| None),
        LIST => return value_frame(&files.list(read(frame)?).await?).map(Some),
        WALK | FIND | SEARCH => {
            desk.has_room()?;
            let stream: Box<dyn NextFrame<E::Files>> = match operation {
                WALK => Box::new(files.walk(read(frame)?).await?),
                FIND => Box::new(files.find(read(frame)?).await?),
                _ => Box::new(files.search(read(frame)?).await?),
            };
            return opened(desk, stream).map(Some);
        }
        _ => return Ok(None),
    };
    let FilePath { path, .. } = read(frame)?;
    files.check(verb, &path, does, at_link).await?;
    Ok(None)
}

/// Answers an operation with files that already respect the limits, if there are any.
async fn answer_freely<E: ExecutionEnvironment>(
    cx: &Cx<E::State>,
    desk: &Desk<E>,
    files: &E::Files,
    operation: &str,
    frame: &[u8],
) -> Result<Vec<u8>> {
    match operation {
        READ => {
            let (facts, bytes) = files.read(cx, read(frame)?).await?;
            framed(&facts, &bytes)
        }
        READ_TEXT => value_frame(&files.read_text(cx, read(frame)?).await?),
        WRITE => {
            let (write, bytes) = read_with_bytes(frame)?;
            value_frame(&files.write(cx, write, bytes).await?)
        }
        EDIT => value_frame(&files.edit(cx, read(frame)?).await?),
        DELETE => files.delete(cx, read(frame)?).await.and_then(|()| done()),
        LIST => value_frame(&files.list(cx, read(frame)?).await?),
        RESOLVE => value_frame(&files.resolve(cx, read(frame)?).await?),
        STAT => value_frame(&files.stat(cx, read(frame)?).await?),
        MAKE_FOLDER => files.make_folder(cx, read(frame)?).await.and_then(|()| done()),
        MOVE => files.rename(cx, read(frame)?).await.and_then(|()| done()),
        COPY => files.copy(cx, read(frame)?).await.and_then(|()| done()),
        WALK => {
            desk.has_room()?;
            opened(desk, Box::new(files.walk(cx, read(frame)?).await?))
        }
        FIND => {
            desk.has_room()?;
            opened(desk, Box::new(files.find(cx, read(frame)?).await?))
        }
        SEARCH => {
            desk.has_room()?;
            opened(desk, Box::new(files.search(cx, read(frame)?).await?))
        }
        READ_STREAM => {
            desk.has_room()?;
            let (size, pieces) = files.open(cx, read(frame)?).await?;
            let stream = desk.add(Open::Stream(Held::new(Box::new(pieces))));
            value_frame(&json!({ "size": size, STREAM_KEY: stream }))
        }
        WRITE_STREAM => {
            desk.has_room()?;
            let writer = files.create(cx, read(frame)?).await?;
            let file = desk.add(Open::Writer(Held::new(writer)));
            value_frame(&json!({ "file": file, STREAM_KEY: file }))
        }
        WRITE_PIECE => {
            let (FileNumber { file, .. }, bytes) = read_with_bytes(frame)?;
            match desk.find(file).as_deref() {
                Some(Open::Writer(writer)) => writer.lend()?.write(cx, bytes).await?,
                _ => return Err(unknown("file on its way", file)),
            }
            done()
        }
        WRITE_FINISH => {
            let FileNumber { file, .. } = read(frame)?;
            match desk.find(file).as_deref() {
                Some(Open::Writer(writer)) => {
                    value_frame(&writer.lend()?.keep().finish(files, cx).await?)
                }
                _ => Err(unknown("file on its way", file)),
            }
        }
        other => Err(unknown_operation(other)),
    }
}

/// Returns the files of an environment that had files before.
pub(super) fn files_of<E: ExecutionEnvironment>(environment: &E) -> Result<&E::Files> {
    let gone = || Error::new(ErrorKind::Unavailable, "the execution environment has no files");
    environment.files().ok_or_else(gone)
}

fn opened<E: ExecutionEnvironment>(
    desk: &Desk<E>,
    stream: Box<dyn NextFrame<E::Files>>,
) -> Result<Vec<u8>> {
    let stream = desk.add(Open::Stream(Held::new(stream)));
    value_frame(&json!({ STREAM_KEY: stream }))
}
