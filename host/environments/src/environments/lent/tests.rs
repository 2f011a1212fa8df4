//! Lent files of every kind: what can be used is read and written here, the rest is the
//! environment's.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::*;

/// Reads more than once round all bounds.
const LARGE_BYTES: usize = TURN_BYTES + PIECE_BYTES_MAX + 7;

fn file(folder: &Path, bytes: &[u8]) -> PathBuf {
    let path = folder.join("file");
    std::fs::write(&path, bytes).unwrap();
    path
}

fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|number| (number % 251) as u8).collect()
}

fn lent(file: impl Into<OwnedFd>, how: Value) -> Option<Lent> {
    let mut answer = Map::from_iter([(DESCRIPTOR_KEY.to_owned(), how), ("size".into(), 1.into())]);
    let lent = Lent::taken(&mut answer, Some(file.into()));
    assert_eq!(Value::Object(answer), json!({ "size": 1 }), "a tool sees nothing of it");
    lent
}

fn reader(path: &Path, how: Value, takes: Takes) -> LentReader {
    LentReader::new(lent(File::open(path).unwrap(), how).unwrap(), takes).unwrap()
}

async fn came(reader: &mut LentReader) -> Came {
    std::future::poll_fn(|cx| reader.poll(&Handle::current(), cx)).await
}

/// Reads to the end: the bytes, and the largest piece; none where it fails.
async fn read_whole(mut reader: LentReader) -> Option<(Vec<u8>, usize)> {
    let (mut bytes, mut largest) = (Vec::new(), 0);
    loop {
        match came(&mut reader).await {
            Came::Piece(frame) => {
                let piece = Frame::parse(&frame).unwrap().bytes;
                largest = largest.max(piece.len());
                bytes.extend_from_slice(piece);
            }
            Came::End => return Some((bytes, largest)),
            Came::Failed(read) => {
                assert_eq!(read, bytes.len() as u64);
                return None;
            }
        }
    }
}

#[tokio::test]
async fn a_lent_file_is_read_from_its_place_on_in_the_pieces_that_its_reader_takes() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = pattern(LARGE_BYTES);
    let path = file(folder.path(), &bytes);
    let (whole, cut) = (json!({ "number": 9 }), json!({ "number": 9, "offset": 5, "length": 6 }));
    let read = read_whole(reader(&path, whole.clone(), Takes::WholePieces)).await.unwrap();
    assert!(read.0 == bytes && read.1 <= PIECE_BYTES_MAX, "{}", read.1);
    let read = read_whole(reader(&path, whole, Takes::Slices)).await.unwrap();
    assert!(read.0 == bytes && read.1 == SLICE_BYTES, "{}", read.1);
    let read = read_whole(reader(&path, cut, Takes::WholePieces)).await.unwrap();
    assert_eq!(read.0, bytes[5..11]);
    let past = json!({ "number": 9, "offset": LARGE_BYTES + 1 });
    assert_eq!(read_whole(reader(&path, past, Takes::Slices)).await, Some((Vec::new(), 0)));
}

#[tokio::test]
async fn a_file_that_grows_or_shrinks_ends_where_it_ends() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), &pattern(LARGE_BYTES));
    let mut grows = reader(&path, json!({ "number": 9 }), Takes::WholePieces);
    let Came::Piece(first) = came(&mut grows).await else { panic!("it has bytes") };
    let mut more = File::options().append(true).open(&path).unwrap();
    more.write_all(b"more").unwrap();
    let (rest, _) = read_whole_of(grows).await;
    assert_eq!(first.len() - HEAD_BYTES + rest.len(), LARGE_BYTES + 4);
    let mut shrinks = reader(&path, json!({ "number": 9 }), Takes::WholePieces);
    assert!(matches!(came(&mut shrinks).await, Came::Piece(_)));
    more.set_len(1).unwrap();
    assert!(read_whole_of(shrinks).await.0.is_empty());
}

/// The same, from where the reader is.
async fn read_whole_of(mut reader: LentReader) -> (Vec<u8>, usize) {
    reader.handed_out = 0;
    read_whole(reader).await.unwrap()
}

#[tokio::test]
async fn what_cannot_be_read_is_left_to_the_environment() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), b"moon");
    let to_write = File::options().write(true).open(&path).unwrap();
    let how = json!({ "number": 9 });
    let reader = LentReader::new(lent(to_write, how).unwrap(), Takes::Slices).unwrap();
    assert_eq!(read_whole(reader).await, None);
}

#[test]
fn what_is_no_stored_file_is_not_used() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), b"moon");
    let how = json!({ "number": 9 });
    assert!(lent(File::open(folder.path()).unwrap(), how.clone()).is_none(), "a folder");
    assert!(lent(File::open("/dev/zero").unwrap(), how.clone()).is_none(), "a device");
    let (pipe, _) = std::io::pipe().unwrap();
    assert!(lent(pipe, how.clone()).is_none(), "a pipe");
    for wrong in [json!(9), json!({ "number": "nine" }), json!({ "number": 9, "length": -1 })] {
        assert!(lent(File::open(&path).unwrap(), wrong).is_none());
    }
    let kernels = lent(File::open("/proc/self/status").unwrap(), how.clone()).unwrap();
    assert!(LentReader::new(kernels, Takes::Slices).is_none(), "it may wait for ever");
    let mut answer = Map::from_iter([(DESCRIPTOR_KEY.to_owned(), how)]);
    assert!(Lent::taken(&mut answer, None).is_none() && answer.is_empty(), "nothing came");
    assert!(Lent::taken(&mut answer, Some(File::open(&path).unwrap().into())).is_none());
}

fn piece(bytes: &[u8]) -> Vec<u8> {
    Frame::write_with_bytes(&json!({ "file": 3 }), bytes).unwrap()
}

fn held(file: File) -> Arc<Turns<Writing>> {
    Arc::new(Turns::new(Writing::Here(file)))
}

async fn nobody(_rest: Vec<u8>) -> Result<Vec<u8>, Error> {
    panic!("it is written here")
}

#[tokio::test]
async fn pieces_are_written_behind_what_is_there_and_the_file_is_let_go_of_at_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), b"");
    let mut lender = File::options().write(true).open(&path).unwrap();
    lender.write_all(b"copied ").unwrap();
    let writing = held(lender.try_clone().unwrap());
    for text in ["moon ", "", "and sun"] {
        let answer = write_in_turn(&writing, piece(text.as_bytes()), nobody).await;
        assert_eq!(answer, Ok(Frame::empty()));
    }
    let_go(&writing).await.unwrap();
    assert!(matches!(*writing.lock().await, Writing::There), "nobody may have it open to write");
    lender.write_all(b" behind").unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "copied moon and sun behind");
}

#[tokio::test]
async fn what_cannot_be_written_is_passed_on_and_so_is_what_follows() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), b"moon");
    let writing = held(File::open(&path).unwrap());
    for text in ["one", "two"] {
        let passed = write_in_turn(&writing, piece(text.as_bytes()), async |rest| {
            assert_eq!(rest, piece(text.as_bytes()));
            Ok(b"the environment's answer".to_vec())
        });
        assert_eq!(passed.await, Ok(b"the environment's answer".to_vec()));
    }
    let_go(&writing).await.unwrap();
}

#[tokio::test]
async fn a_write_that_failed_is_not_forgotten_though_nobody_waited_for_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), b"moon");
    let writing = held(File::open(&path).unwrap());
    let full = Error::new(ErrorKind::Io, "the disk is full");
    let told = write_in_turn(&writing, piece(b"one"), async |_| Err(full.clone())).await;
    assert_eq!(told, Err(full));
    assert_eq!(write_in_turn(&writing, piece(b"two"), nobody).await, Err(has_failed()));
    assert_eq!(let_go(&writing).await, Err(has_failed()));
    // Whoever waited is gone before it has failed.
    let writing = held(File::open(&path).unwrap());
    let passed_on = |_| std::future::pending::<Result<Vec<u8>, Error>>();
    assert_eq!(write_in_turn(&writing, piece(b"one"), passed_on).now_or_never(), None);
    assert_eq!(let_go(&writing).await, Err(has_failed()));
    let mut text = String::new();
    File::open(&path).unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(text, "moon");
}
