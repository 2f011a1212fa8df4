//! Checks of the services `blob.put` and `blob.get`: the content names a blob, reading returns what
//! was written, and unfinished blobs end with their call.

use jaato_plugin_api::abi::abi_stable::std_types::{ROption, RResult};
use jaato_types::service::{
    BLOB_BYTES_MAX, BLOB_GET, BLOB_PUT, BlobGet, BlobGetAnswer, BlobPut, BlobPutAnswer,
};
use jaato_types::{Error, ErrorKind, Frame};

use super::body::{
    SharedContext, call_service, encode_frame, read_answer, read_error, run_body, start_body,
};
use super::{CallResults, HostUnderTest};

const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

/// The piece size that the sdk uses.
const PIECE_BYTES: usize = 4 * 1024 * 1024;

async fn put_blob(
    context: &SharedContext,
    request: &BlobPut,
    bytes: &[u8],
) -> Result<BlobPutAnswer, Error> {
    let asked = Frame::write_with_bytes(request, bytes).map_err(frame_error)?;
    let answer = read_answer(context.service(BLOB_PUT.into(), asked.into()).await)?;
    Frame::read(&answer).map_err(frame_error)
}

fn text_put(more: bool) -> BlobPut {
    BlobPut { mime_type: "text/plain".to_owned(), more, ..BlobPut::default() }
}

fn continued_put(put: u64, more: bool) -> BlobPut {
    BlobPut { put: Some(put), more, ..BlobPut::default() }
}

async fn read_blob_head(context: &SharedContext, id: &str) -> Result<BlobGetAnswer, Error> {
    let answer =
        call_service(context, BLOB_GET, &BlobGet { blob: id.to_owned(), ..BlobGet::default() })
            .await?;
    Frame::read(&answer).map_err(frame_error)
}

/// Reads a whole blob: its media type, its length, and its bytes.
async fn get_blob(context: &SharedContext, id: &str) -> Result<(String, u64, Vec<u8>), Error> {
    let head = read_blob_head(context, id).await?;
    let mut all = Vec::new();
    loop {
        match context.next(head.handle).await {
            RResult::ROk(ROption::RNone) => return Ok((head.mime_type, head.bytes, all)),
            RResult::ROk(ROption::RSome(piece)) => {
                all.extend_from_slice(Frame::parse(&piece).map_err(frame_error)?.bytes);
            }
            RResult::RErr(error) => return Err(read_error(&error)),
        }
    }
}

fn frame_error(error: jaato_types::FrameError) -> Error {
    Error::failed(error.to_string())
}

pub(super) fn blobs_are_named_by_their_content(host: &dyn HostUnderTest) {
    let ended = run_body(host, |context| async move {
        let at_once = put_blob(&context, &text_put(false), b"abc").await?;
        let begun = put_blob(&context, &text_put(true), b"a").await?;
        let number = begun.put.unwrap_or_default();
        put_blob(&context, &continued_put(number, true), b"").await?;
        let last = put_blob(&context, &continued_put(number, false), b"bc").await?;
        let other = BlobPut { mime_type: "text/markdown".to_owned(), ..BlobPut::default() };
        let again = put_blob(&context, &other, b"abc").await?;
        let ids = [at_once.blob, last.blob, again.blob];
        Ok(encode_frame(&(begun.blob, begun.bytes, ids, get_blob(&context, ABC).await?)))
    });
    let found = ("text/plain", 3, b"abc".to_vec());
    assert_eq!(ended.answer, Ok(encode_frame(&(None::<()>, 1, [ABC; 3], found))));
}

pub(super) fn empty_blob_is_valid(host: &dyn HostUnderTest) {
    let ended = run_body(host, |context| async move {
        let answer = put_blob(&context, &text_put(false), b"").await?;
        Ok(encode_frame(&(answer.blob, get_blob(&context, EMPTY).await?)))
    });
    assert_eq!(ended.answer, Ok(encode_frame(&(EMPTY, ("text/plain", 0, Vec::<u8>::new())))));
}

pub(super) fn blob_of_another_call_is_found(host: &dyn HostUnderTest) {
    let ended = run_body(host, |context| async move {
        put_blob(&context, &text_put(false), b"abc").await.map(|answer| encode_frame(&answer))
    });
    assert_eq!(ended.answer, Ok(encode_frame(&BlobPutAnswer::complete(ABC, 3))));
    let ended = run_body(host, |context| async move {
        get_blob(&context, ABC).await.map(|it| encode_frame(&it.2))
    });
    assert_eq!(ended.answer, Ok(encode_frame(&b"abc")));
}

pub(super) fn unknown_blob_is_reported(host: &dyn HostUnderTest) {
    let unknown = "0".repeat(64);
    let upper = ABC.to_uppercase();
    for id in ["", "b-1", "../../../etc/passwd", &unknown, &upper] {
        let id = id.to_owned();
        let text = format!("the session has no blob `{id}`");
        let ended = run_body(host, |context| async move {
            put_blob(&context, &text_put(false), b"abc").await?;
            read_blob_head(&context, &id).await.map(|head| encode_frame(&head))
        });
        let error = ended.answer.map_err(|error| read_error(&error));
        let error = error.map_err(|error| (error.kind, error.message));
        assert_eq!(error, Err((ErrorKind::NotFound, text)));
    }
}

pub(super) fn invalid_media_type_is_refused(host: &dyn HostUnderTest) {
    for mime_type in ["", "png", "a/b\r\nx: y"] {
        let request = BlobPut { mime_type: mime_type.to_owned(), ..BlobPut::default() };
        let ended = run_body(host, |context| async move {
            put_blob(&context, &request, b"abc").await.map(|answer| encode_frame(&answer))
        });
        assert_refused(ended, ErrorKind::InvalidArguments);
    }
}

/// Checks that the number of an unfinished blob is invalid in other calls and after its call.
pub(super) fn unfinished_blob_ends_with_its_call(host: &dyn HostUnderTest) {
    let (sender, numbers) = std::sync::mpsc::channel();
    let call = start_body(host, move |context| async move {
        let begun = put_blob(&context, &text_put(true), b"a").await?;
        // The check may have failed and ended by then.
        let _ = sender.send(begun.put);
        put_blob(&context, &text_put(true), b"b").await?;
        std::future::pending().await
    });
    let number = numbers.recv_timeout(super::body::DEADLINE).ok().flatten();
    let number = number.unwrap_or_else(|| panic!("an unfinished blob has no number"));
    let other = move |context: SharedContext| async move {
        put_blob(&context, &continued_put(number, false), b"")
            .await
            .map(|answer| encode_frame(&answer))
    };
    assert_refused(run_body(host, other), ErrorKind::NotFound);
    call.cancel();
    assert_refused(run_body(host, other), ErrorKind::NotFound);
}

/// Checks a blob of the maximum size, in frames of a twelfth of that size.
pub(super) fn large_blobs_come_in_pieces(host: &dyn HostUnderTest) {
    let ended = run_body(host, |context| async move {
        let mut piece = vec![0; PIECE_BYTES];
        let mut number = None;
        for position in 0..BLOB_BYTES_MAX / PIECE_BYTES as u64 {
            piece[0] = u8::try_from(position).unwrap_or_default();
            let request = BlobPut { put: number, ..text_put(true) };
            number = put_blob(&context, &request, &piece).await?.put;
        }
        let whole =
            put_blob(&context, &continued_put(number.unwrap_or_default(), false), b"").await?;
        let (_, length, all) = get_blob(&context, &whole.blob.unwrap_or_default()).await?;
        let firsts: Vec<u8> = all.iter().step_by(PIECE_BYTES).copied().collect();
        let rest = all.iter().filter(|byte| **byte != 0).count();
        Ok(encode_frame(&(whole.bytes, length, all.len(), firsts, rest)))
    });
    let firsts: Vec<u8> = (0..25).collect();
    let all = (BLOB_BYTES_MAX, BLOB_BYTES_MAX, BLOB_BYTES_MAX, firsts, 24);
    assert_eq!(ended.answer, Ok(encode_frame(&all)));
}

pub(super) fn too_large_blobs_are_refused(host: &dyn HostUnderTest) {
    let ended = run_body(host, |context| async move {
        let piece = vec![1; PIECE_BYTES];
        let mut number = None;
        for _ in 0..BLOB_BYTES_MAX / PIECE_BYTES as u64 {
            let request = BlobPut { put: number, ..text_put(true) };
            number = put_blob(&context, &request, &piece).await?.put;
        }
        let answer =
            put_blob(&context, &continued_put(number.unwrap_or_default(), false), b"1").await;
        answer.map(|answer| encode_frame(&answer))
    });
    assert_refused(ended, ErrorKind::LimitReached);
}

#[track_caller]
fn assert_refused(ended: CallResults, kind: ErrorKind) {
    let found = ended.answer.map_err(|frame| read_error(&frame).kind);
    assert_eq!(found, Err(kind));
}
