//! The operations `files.*`.

use jaato_types::execution::STREAM_KEY;
use jaato_types::files::{
    COPY, CUT_RESULT, DELETE, EDIT, EXISTS, FileExists, FileNumber, FilePath, GLOB, LIST,
    MAKE_FOLDER, MOVE, READ, READ_STREAM, READ_TEXT, ResultCut, STAT, WALK, WRITE, WRITE_FINISH,
    WRITE_PIECE, WRITE_STREAM,
};
use jaato_types::{Error, ErrorKind, Result};
use serde_json::json;

use super::desk::{Desk, Open, unknown};
use super::dispatch::{done, framed, read, read_with_bytes, unknown_operation};
use super::held::Held;
use super::{ExecutionEnvironment, FileWriter, Files};
use crate::context::Cx;
use crate::instance::value_frame;

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
        EXISTS => value_frame(&exists(cx, files, read(frame)?).await?),
        STAT => value_frame(&files.stat(cx, read(frame)?).await?),
        MAKE_FOLDER => files.make_folder(cx, read(frame)?).await.and_then(|()| done()),
        MOVE => files.rename(cx, read(frame)?).await.and_then(|()| done()),
        COPY => files.copy(cx, read(frame)?).await.and_then(|()| done()),
        GLOB => value_frame(&files.glob(cx, read(frame)?).await?),
        CUT_RESULT => {
            let (cut, bytes): (ResultCut, _) = read_with_bytes(frame)?;
            let text = String::from_utf8(bytes).map_err(|error| {
                let text = format!("the result is no UTF-8: {error}");
                Error::new(ErrorKind::InvalidArguments, text)
            })?;
            value_frame(&files.cut_result(cx, cut, text).await?)
        }
        WALK => {
            desk.has_room()?;
            let pages = files.walk(cx, read(frame)?).await?;
            let stream = desk.add(Open::Pages(Held::new(pages)));
            value_frame(&json!({ STREAM_KEY: stream }))
        }
        READ_STREAM => {
            desk.has_room()?;
            let (size, pieces) = files.open(cx, read(frame)?).await?;
            let stream = desk.add(Open::Pieces(Held::new(pieces)));
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
                Some(Open::Writer(writer)) => value_frame(&writer.lend()?.keep().finish(cx).await?),
                _ => Err(unknown("file on its way", file)),
            }
        }
        other => Err(unknown_operation(other)),
    }
}

async fn exists<S, F: Files>(cx: &Cx<S>, files: &F, path: FilePath) -> Result<FileExists> {
    match files.stat(cx, path).await {
        Ok(facts) => Ok(FileExists { kind: Some(facts.kind), ..FileExists::default() }),
        Err(error) if error.kind == ErrorKind::NotFound => {
            Ok(FileExists { kind: None, ..FileExists::default() })
        }
        Err(error) => Err(error),
    }
}
