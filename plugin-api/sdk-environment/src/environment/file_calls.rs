//! The operations `files.*`.

use jaato_plugin_sdk::__private::value_frame;
use jaato_plugin_sdk::Cx;
use jaato_types::execution::STREAM_KEY;
use jaato_types::files::{
    COPY, DELETE, EDIT, FIND, FileNumber, LIST, MAKE_FOLDER, MOVE, READ, READ_STREAM, READ_TEXT,
    SEARCH, STAT, WALK, WRITE, WRITE_FINISH, WRITE_PIECE, WRITE_STREAM,
};
use jaato_types::{Error, ErrorKind, Result};
use serde_json::json;

use super::desk::{Desk, Open};
use super::files::Files;
use super::frames::{done, framed, read, read_with_bytes, unknown, unknown_operation};
use super::held::Held;
use super::streams::NextFrame;
use super::traits::ExecutionEnvironment;

/// Answers one of them.
pub(super) async fn answer<E: ExecutionEnvironment>(
    cx: &Cx<E::State>,
    desk: &Desk<E>,
    operation: &str,
    frame: &[u8],
) -> Result<Vec<u8>> {
    let environment = desk.environment()?;
    let files = environment.files().ok_or_else(|| unknown_operation(operation))?;
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

/// The files of an environment that has had some.
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
