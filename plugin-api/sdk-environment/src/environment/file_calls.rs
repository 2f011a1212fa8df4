//! The operations `files.*`.

use std::sync::Arc;

use jaato_plugin_sdk::__private::{encode_value, invalid_frame_error};
use jaato_plugin_sdk::Cx;
use jaato_types::execution::STREAM_KEY;
use jaato_types::files::{
    COPY, DELETE, EDIT, FIND, FileLimits, FilePath, FileUploadRef, LIMITS_KEY, LIST, MAKE_FOLDER,
    MOVE, READ, READ_STREAM, READ_TEXT, RESOLVE, SEARCH, STAT, WALK, WRITE, WRITE_FINISH,
    WRITE_PIECE, WRITE_STREAM,
};
use jaato_types::{Error, ErrorKind, Frame, Result};
use memchr::memmem;
use serde::Deserialize;
use serde_json::json;

use super::by_path::{FinalLinkHandling, LimitedFiles};
use super::exclusive_value::ExclusiveValue;
use super::files::Files;
use super::frames::{
    empty_answer, encode_frame, parse_frame, parse_frame_with_bytes, unknown_handle_error,
    unknown_operation_error,
};
use super::handle_table::{EnvironmentHandleTable, OpenEnvironmentHandle};
use super::streams::NextFrame;
use super::traits::ExecutionEnvironment;
use crate::engine::{CallLimits, PathOperation};
use crate::errors::FileOperationVerb;

/// Answers a `files.*` operation.
pub(super) async fn answer_file_operation<E: ExecutionEnvironment>(
    cx: &Cx<E::State>,
    desk: &EnvironmentHandleTable<E>,
    operation: &str,
    frame: &[u8],
) -> Result<Vec<u8>> {
    let environment = desk.environment()?;
    let files = environment.files().ok_or_else(|| unknown_operation_error(operation))?;
    let Some(limits) = parse_call_limits(frame)? else {
        return answer_with_files(cx, desk, files, operation, frame).await;
    };
    match files.limited(&limits) {
        Some(files) => answer_with_files(cx, desk, &files, operation, frame).await,
        None => {
            let by_path = LimitedFiles::new(files, cx, &limits);
            match answer_by_path(desk, &by_path, operation, frame).await? {
                Some(answer) => Ok(answer),
                None => answer_with_files(cx, desk, files, operation, frame).await,
            }
        }
    }
}

/// Reads the limits of the call from its frame.
fn parse_call_limits(frame: &[u8]) -> Result<Option<Arc<CallLimits>>> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct CallLimitedFiles {
        limits: FileLimits,
    }
    let key = format!("\"{LIMITS_KEY}\"");
    let json = Frame::parse(frame).map_err(invalid_frame_error)?.json;
    if memmem::find(json, key.as_bytes()).is_none() {
        return Ok(None);
    }
    let CallLimitedFiles { limits } = parse_frame(frame)?;
    Ok(CallLimits::new(limits))
}

/// Checks an operation by its paths. Also answers it if the limits change the answer.
async fn answer_by_path<E: ExecutionEnvironment>(
    desk: &EnvironmentHandleTable<E>,
    files: &LimitedFiles<'_, E::Files>,
    operation: &str,
    frame: &[u8],
) -> Result<Option<Vec<u8>>> {
    use PathOperation::{Read, Write};
    let (verb, does, at_link) = match operation {
        READ | READ_TEXT | READ_STREAM => {
            (FileOperationVerb::Read, Read, FinalLinkHandling::Refuse)
        }
        WRITE | WRITE_STREAM => (FileOperationVerb::Write, Write, FinalLinkHandling::Refuse),
        EDIT => (FileOperationVerb::Edit, Write, FinalLinkHandling::Refuse),
        MAKE_FOLDER => (FileOperationVerb::Make, Write, FinalLinkHandling::Refuse),
        STAT => match parse_frame::<FilePath>(frame)?.itself {
            true => (FileOperationVerb::Find, Read, FinalLinkHandling::Stay),
            false => (FileOperationVerb::Find, Read, FinalLinkHandling::Refuse),
        },
        DELETE => return files.check_delete(&parse_frame(frame)?).await.map(|()| None),
        MOVE => {
            return files
                .check_file_pair(FileOperationVerb::Move, &parse_frame(frame)?)
                .await
                .map(|()| None);
        }
        COPY => {
            return files
                .check_file_pair(FileOperationVerb::Copy, &parse_frame(frame)?)
                .await
                .map(|()| None);
        }
        LIST => return encode_value(&files.list(parse_frame(frame)?).await?).map(Some),
        WALK | FIND | SEARCH => {
            desk.check_has_room()?;
            let stream: Box<dyn NextFrame<E::Files>> = match operation {
                WALK => Box::new(files.walk(parse_frame(frame)?).await?),
                FIND => Box::new(files.find(parse_frame(frame)?).await?),
                _ => Box::new(files.search(parse_frame(frame)?).await?),
            };
            return stream_handle_frame(desk, stream).map(Some);
        }
        _ => return Ok(None),
    };
    let FilePath { path, .. } = parse_frame(frame)?;
    files.check_path(verb, &path, does, at_link).await?;
    Ok(None)
}

/// Answers an operation with files that already respect the limits, if there are any.
async fn answer_with_files<E: ExecutionEnvironment>(
    cx: &Cx<E::State>,
    desk: &EnvironmentHandleTable<E>,
    files: &E::Files,
    operation: &str,
    frame: &[u8],
) -> Result<Vec<u8>> {
    match operation {
        READ => {
            let (facts, bytes) = files.read(cx, parse_frame(frame)?).await?;
            encode_frame(&facts, &bytes)
        }
        READ_TEXT => encode_value(&files.read_text(cx, parse_frame(frame)?).await?),
        WRITE => {
            let (write, bytes) = parse_frame_with_bytes(frame)?;
            encode_value(&files.write(cx, write, bytes).await?)
        }
        EDIT => encode_value(&files.edit(cx, parse_frame(frame)?).await?),
        DELETE => files.delete(cx, parse_frame(frame)?).await.and_then(|()| empty_answer()),
        LIST => encode_value(&files.list(cx, parse_frame(frame)?).await?),
        RESOLVE => encode_value(&files.resolve(cx, parse_frame(frame)?).await?),
        STAT => encode_value(&files.stat(cx, parse_frame(frame)?).await?),
        MAKE_FOLDER => {
            files.make_folder(cx, parse_frame(frame)?).await.and_then(|()| empty_answer())
        }
        MOVE => files.rename(cx, parse_frame(frame)?).await.and_then(|()| empty_answer()),
        COPY => files.copy(cx, parse_frame(frame)?).await.and_then(|()| empty_answer()),
        WALK => {
            desk.check_has_room()?;
            stream_handle_frame(desk, Box::new(files.walk(cx, parse_frame(frame)?).await?))
        }
        FIND => {
            desk.check_has_room()?;
            stream_handle_frame(desk, Box::new(files.find(cx, parse_frame(frame)?).await?))
        }
        SEARCH => {
            desk.check_has_room()?;
            stream_handle_frame(desk, Box::new(files.search(cx, parse_frame(frame)?).await?))
        }
        READ_STREAM => {
            desk.check_has_room()?;
            let (size, pieces) = files.open(cx, parse_frame(frame)?).await?;
            let stream = desk
                .add_handle(OpenEnvironmentHandle::Stream(ExclusiveValue::new(Box::new(pieces))));
            encode_value(&json!({ "size": size, STREAM_KEY: stream }))
        }
        WRITE_STREAM => {
            desk.check_has_room()?;
            let writer = files.create(cx, parse_frame(frame)?).await?;
            let file = desk.add_handle(OpenEnvironmentHandle::Writer(ExclusiveValue::new(writer)));
            encode_value(&json!({ "file": file, STREAM_KEY: file }))
        }
        WRITE_PIECE => {
            let (FileUploadRef { file, .. }, bytes) = parse_frame_with_bytes(frame)?;
            match desk.find_handle(file).as_deref() {
                Some(OpenEnvironmentHandle::Writer(writer)) => {
                    writer.try_borrow()?.write(cx, bytes).await?
                }
                _ => return Err(unknown_handle_error("file on its way", file)),
            }
            empty_answer()
        }
        WRITE_FINISH => {
            let FileUploadRef { file, .. } = parse_frame(frame)?;
            match desk.find_handle(file).as_deref() {
                Some(OpenEnvironmentHandle::Writer(writer)) => {
                    encode_value(&writer.try_borrow()?.into_value().finish(files, cx).await?)
                }
                _ => Err(unknown_handle_error("file on its way", file)),
            }
        }
        other => Err(unknown_operation_error(other)),
    }
}

/// Returns the files of an environment that had files before.
pub(super) fn require_files<E: ExecutionEnvironment>(environment: &E) -> Result<&E::Files> {
    let gone = || Error::new(ErrorKind::Unavailable, "the execution environment has no files");
    environment.files().ok_or_else(gone)
}

fn stream_handle_frame<E: ExecutionEnvironment>(
    desk: &EnvironmentHandleTable<E>,
    stream: Box<dyn NextFrame<E::Files>>,
) -> Result<Vec<u8>> {
    let stream = desk.add_handle(OpenEnvironmentHandle::Stream(ExclusiveValue::new(stream)));
    encode_value(&json!({ STREAM_KEY: stream }))
}
