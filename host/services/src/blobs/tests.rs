//! Tests the blob store on real files.
use std::os::unix::fs::PermissionsExt as _;

use jaato_types::service::{BLOB_BYTES_MAX, BLOBS_BEGUN_MAX, BLOBS_BYTES_MAX, BLOBS_MAX};
use tempfile::TempDir;

use super::upload::FinishedBlob;
use super::*;

const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

fn new_blob_store() -> (TempDir, BlobStore) {
    let folder = tempfile::tempdir().unwrap();
    let outputs = Arc::new(OutputFolder::in_folder(folder.path()));
    (folder, BlobStore::next_to_outputs(outputs))
}

fn new_session_blobs() -> (TempDir, Arc<SessionBlobs>) {
    let (folder, blobs) = new_blob_store();
    (folder, blobs.session_blobs(&SessionId::from("s1")).unwrap())
}

#[track_caller]
fn put_blob(blobs: &Arc<SessionBlobs>, mime_type: &str, bytes: &[u8]) -> FinishedBlob {
    let mut upload = blobs.begin_upload(mime_type).unwrap();
    upload.write(bytes).unwrap();
    upload.finish().unwrap()
}

fn list_files(blobs: &SessionBlobs, id: &str) -> Vec<String> {
    let folder = blobs.find(id).unwrap().path.parent().unwrap().to_owned();
    let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<_> = names.map(|name| name.into_string().unwrap()).collect();
    names.sort_unstable();
    names
}

#[test]
fn blob_is_named_by_its_content_and_equal_content_is_stored_once() {
    let (_folder, blobs) = new_session_blobs();
    assert_eq!(
        put_blob(&blobs, "text/plain", b"abc"),
        FinishedBlob { id: ABC.to_owned(), bytes: 3 }
    );
    assert_eq!(put_blob(&blobs, "text/markdown", b"abc").id, ABC);
    assert_eq!(
        put_blob(&blobs, "text/plain", b""),
        FinishedBlob { id: EMPTY.to_owned(), bytes: 0 }
    );
    assert_eq!(
        (blobs.stored_bytes(), list_files(&blobs, ABC)),
        (3, vec![ABC.to_owned(), EMPTY.to_owned()])
    );
    let kept = blobs.find(ABC).unwrap();
    assert_eq!((kept.bytes, kept.mime_type.as_str()), (3, "text/plain"));
    assert_eq!(blobs.read_blob_start(ABC, 2).unwrap(), b"ab");
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&kept.path), mode(kept.path.parent().unwrap())), (0o600, 0o700));
}

#[test]
fn an_upload_that_is_dropped_leaves_no_file_and_takes_no_room() {
    let (_folder, blobs) = new_session_blobs();
    put_blob(&blobs, "text/plain", b"abc");
    let mut upload = blobs.begin_upload("text/plain").unwrap();
    upload.write(b"never finished").unwrap();
    assert_eq!((blobs.stored_bytes(), list_files(&blobs, ABC).len()), (17, 2));
    drop(upload);
    assert_eq!((blobs.stored_bytes(), list_files(&blobs, ABC).len()), (3, 1));
}

#[test]
fn invalid_blob_id_never_reaches_the_disk() {
    let (_folder, blobs) = new_session_blobs();
    put_blob(&blobs, "text/plain", b"abc");
    let upper = ABC.to_uppercase();
    let ids = ["", "../../x", "/etc/passwd", &upper, &ABC[1..], &format!("../{}", &ABC[3..])];
    for id in ids {
        let error = blobs.open(id).unwrap_err();
        assert_eq!(error.kind, ErrorKind::NotFound, "{id}");
        assert_eq!(error.message, format!("the session has no blob `{id}`"));
    }
    let long = blobs.find(&"x".repeat(100_000)).unwrap_err();
    assert!(long.message.len() < 200, "{long}");
}

#[test]
fn a_blob_whose_file_was_removed_is_gone_and_may_be_put_again() {
    let (_folder, blobs) = new_session_blobs();
    put_blob(&blobs, "text/plain", b"abc");
    std::fs::remove_file(blobs.find(ABC).unwrap().path).unwrap();
    assert_eq!(blobs.open(ABC).unwrap_err().kind, ErrorKind::NotFound);
    assert_eq!((blobs.stored_bytes(), blobs.find(ABC).is_err()), (0, true));
    put_blob(&blobs, "text/plain", b"abc");
    std::fs::remove_file(blobs.find(ABC).unwrap().path).unwrap();
    put_blob(&blobs, "text/plain", b"abc");
    assert_eq!(
        (blobs.stored_bytes(), blobs.read_blob_start(ABC, 9).unwrap()),
        (3, b"abc".to_vec())
    );
}

#[test]
fn blob_size_and_session_blob_size_are_limited_to_the_byte() {
    let (_folder, blobs) = new_session_blobs();
    let large = vec![7; usize::try_from(BLOB_BYTES_MAX).unwrap()];
    let mut upload = blobs.begin_upload("a/b").unwrap();
    upload.write(&large).unwrap();
    let error = upload.write(b"1").unwrap_err();
    assert_eq!(error.kind, ErrorKind::LimitReached);
    assert_eq!(error.message, "a blob has at most 104857600 bytes");
    upload.finish().unwrap();
    let mut other = blobs.begin_upload("a/b").unwrap();
    other.write(&large[1..]).unwrap();
    other.finish().unwrap();
    let rest = usize::try_from(BLOBS_BYTES_MAX - blobs.stored_bytes()).unwrap();
    let mut last = blobs.begin_upload("a/b").unwrap();
    let error = last.write(&large[..=rest]).unwrap_err();
    assert_eq!(error.kind, ErrorKind::LimitReached);
    assert_eq!(error.message, "the blobs of a session have at most 268435456 bytes");
    last.write(&large[..rest]).unwrap();
    assert_eq!(blobs.stored_bytes(), BLOBS_BYTES_MAX);
    last.finish().unwrap();
}

#[test]
fn number_of_blobs_per_session_is_limited() {
    let (_folder, blobs) = new_session_blobs();
    for number in 0..BLOBS_MAX - 1 {
        put_blob(&blobs, "a/b", &number.to_le_bytes());
    }
    let last = blobs.begin_upload("a/b").unwrap();
    let error = blobs.begin_upload("a/b").unwrap_err();
    assert_eq!(error.kind, ErrorKind::LimitReached);
    drop(last);
    put_blob(&blobs, "a/b", b"one more");
    assert!(blobs.begin_upload("a/b").is_err());
}

#[test]
fn invalid_media_type_is_refused() {
    let (_folder, blobs) = new_session_blobs();
    assert!(blobs.begin_upload("image/png").is_ok());
    for bad in ["", "png", "/", "image/", "a/b\r\nx: y", "a/b\u{1b}[2J"] {
        assert_eq!(blobs.begin_upload(bad).unwrap_err().kind, ErrorKind::InvalidArguments, "{bad}");
    }
}

fn blob_piece(number: Option<u64>, bytes: &[u8], more: bool) -> BlobPiece {
    BlobPiece { number, mime_type: "text/plain".to_owned(), bytes: bytes.to_vec(), more }
}

#[tokio::test]
async fn blob_is_uploaded_in_pieces_and_unfinished_uploads_end_with_the_call() {
    let (_folder, blobs) = new_session_blobs();
    let uploads: Arc<BlobUploads> = Arc::default();
    let write = |piece| Arc::clone(&uploads).write(Arc::clone(&blobs), piece);
    assert_eq!(
        write(blob_piece(None, b"a", true)).await,
        Ok(PieceWriteResult::Begun { number: 1, bytes: 1 })
    );
    assert_eq!(
        write(blob_piece(Some(1), b"b", true)).await,
        Ok(PieceWriteResult::Begun { number: 1, bytes: 2 })
    );
    let whole = PieceWriteResult::Whole(FinishedBlob { id: ABC.to_owned(), bytes: 3 });
    assert_eq!(write(blob_piece(Some(1), b"c", false)).await, Ok(whole));
    let error = write(blob_piece(Some(1), b"d", false)).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::NotFound);
    for number in 0..BLOBS_BEGUN_MAX as u64 {
        let number = number + 2;
        let begun = write(blob_piece(None, b"0", true)).await;
        assert_eq!(begun, Ok(PieceWriteResult::Begun { number, bytes: 1 }));
    }
    assert_eq!(
        write(blob_piece(None, b"0", true)).await.unwrap_err().kind,
        ErrorKind::LimitReached
    );
    assert_eq!(blobs.stored_bytes(), 3 + BLOBS_BEGUN_MAX as u64);
    let other: Arc<BlobUploads> = Arc::default();
    let foreign = other.write(Arc::clone(&blobs), blob_piece(Some(2), b"", false)).await;
    assert_eq!(foreign.unwrap_err().kind, ErrorKind::NotFound);
    drop(uploads);
    assert_eq!((blobs.stored_bytes(), list_files(&blobs, ABC)), (3, vec![ABC.to_owned()]));
}

#[tokio::test]
async fn sessions_have_separate_blobs_that_are_removed_with_the_session() {
    let (_folder, all) = new_blob_store();
    let (one, other) = (SessionId::from("../s1"), SessionId::from("s2"));
    let (mine, others) = (all.session_blobs(&one).unwrap(), all.session_blobs(&other).unwrap());
    put_blob(&mine, "text/plain", b"abc");
    assert!(others.find(ABC).is_err());
    let path = mine.find(ABC).unwrap().path;
    all.remove_session(&one).await;
    assert!(!path.parent().unwrap().exists());
    assert!(all.session_blobs(&one).unwrap().find(ABC).is_err());
    let error = all.session_blobs(&SessionId::from("")).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unavailable);
}
