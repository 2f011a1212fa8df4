//! The operations `files.*`.

use std::any::TypeId;

use jaato_types::execution::STREAM_KEY;
use jaato_types::files::{
    COPY, DELETE, EDIT, EXISTS, FIND, FileExists, FileNumber, FilePath, FileRead, GLOB, LIST,
    MAKE_FOLDER, MOVE, READ, READ_STREAM, READ_TEXT, SEARCH, STAT, WALK, WRITE, WRITE_FINISH,
    WRITE_PIECE, WRITE_STREAM,
};
use jaato_types::{Error, ErrorKind, Result};
use serde_json::json;

use super::derived::{Draft, Ranges, Tree};
use super::desk::{Desk, Open, unknown};
use super::dispatch::{done, framed, read, read_with_bytes, unknown_operation};
use super::held::Held;
use super::{ByDefault, ExecutionEnvironment, FileWriter, Files};
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
        WALK => {
            desk.has_room()?;
            let walk = read(frame)?;
            let pages = match is_default::<<E::Files as Files>::Pages>() {
                true => Open::Tree(Held::new(Tree::begin(files, cx, walk).await?)),
                false => Open::Pages(Held::new(files.walk(cx, walk).await?)),
            };
            let stream = desk.add(pages);
            value_frame(&json!({ STREAM_KEY: stream }))
        }
        FIND => {
            desk.has_room()?;
            let pages = files.find(cx, read(frame)?).await?;
            let stream = desk.add(Open::Found(Held::new(pages)));
            value_frame(&json!({ STREAM_KEY: stream }))
        }
        SEARCH => {
            desk.has_room()?;
            let pages = files.search(cx, read(frame)?).await?;
            let stream = desk.add(Open::Searched(Held::new(pages)));
            value_frame(&json!({ STREAM_KEY: stream }))
        }
        READ_STREAM => {
            desk.has_room()?;
            let (size, pieces) = open(cx, files, read(frame)?).await?;
            let stream = desk.add(pieces);
            value_frame(&json!({ "size": size, STREAM_KEY: stream }))
        }
        WRITE_STREAM => {
            desk.has_room()?;
            let write = read(frame)?;
            let writer = match is_default::<<E::Files as Files>::Writer>() {
                true => Open::Draft(Held::new(Draft::new(write))),
                false => Open::Writer(Held::new(files.create(cx, write).await?)),
            };
            let file = desk.add(writer);
            value_frame(&json!({ "file": file, STREAM_KEY: file }))
        }
        WRITE_PIECE => {
            let (FileNumber { file, .. }, bytes) = read_with_bytes(frame)?;
            match desk.find(file).as_deref() {
                Some(Open::Writer(writer)) => writer.lend()?.write(cx, bytes).await?,
                Some(Open::Draft(draft)) => draft.lend()?.push(&bytes)?,
                _ => return Err(unknown("file on its way", file)),
            }
            done()
        }
        WRITE_FINISH => {
            let FileNumber { file, .. } = read(frame)?;
            match desk.find(file).as_deref() {
                Some(Open::Writer(writer)) => value_frame(&writer.lend()?.keep().finish(cx).await?),
                Some(Open::Draft(draft)) => {
                    value_frame(&draft.lend()?.keep().finish(files, cx).await?)
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

async fn open<E: ExecutionEnvironment>(
    cx: &Cx<E::State>,
    files: &E::Files,
    read: FileRead,
) -> Result<(u64, Open<E>)> {
    if is_default::<<E::Files as Files>::Pieces>() {
        let (size, ranges) = Ranges::open(files, cx, read).await?;
        return Ok((size, Open::Ranges(Held::new(ranges))));
    }
    let (size, pieces) = files.open(cx, read).await?;
    Ok((size, Open::Pieces(Held::new(pieces))))
}

/// Tells whether a stream is left to the sdk.
fn is_default<T: 'static>() -> bool {
    TypeId::of::<T>() == TypeId::of::<ByDefault>()
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
