//! Tests of file streams and truncated results.

use std::fs;

use jaato_plugin_sdk_environment::files::PIECE_BYTES;
use jaato_types::ErrorKind;
use jaato_types::files::*;

use crate::support::TestFolders;

fn write_request(mode: WriteMode) -> FileWrite {
    FileWrite { path: "file".into(), mode, ..FileWrite::default() }
}

#[test]
fn a_file_is_read_piece_by_piece_from_anywhere() {
    let ground = TestFolders::new();
    let content: Vec<u8> = (0..PIECE_BYTES * 2 + 5).map(|at| (at % 251) as u8).collect();
    ground.put_file("work/file", &content);
    let confined = ground.open_confined();
    for (offset, length, expected) in [
        (0, None, &content[..]),
        (7, Some(PIECE_BYTES as u64 + 1), &content[7..PIECE_BYTES + 8]),
        (content.len() as u64, None, &[]),
        (u64::MAX, None, &[]),
    ] {
        let request = FileRead { path: "file".into(), offset, length };
        let (facts, mut pieces) = confined.read_stream(&request).unwrap();
        assert_eq!(facts.size, content.len() as u64);
        let mut read = Vec::new();
        while let Some(piece) = pieces.read_piece().unwrap() {
            assert!(piece.len() <= PIECE_BYTES);
            read.extend(piece);
        }
        assert!(read == expected);
    }
}

#[test]
fn the_old_file_is_there_until_the_new_one_is_finished() {
    let ground = TestFolders::new();
    ground.put_file("work/file", "old");
    let confined = ground.open_confined();
    let count = || fs::read_dir(ground.path("work")).unwrap().count();
    for (mode, expected) in [(WriteMode::Replace, "onetwo"), (WriteMode::Append, "onetwoonetwo")] {
        let before = ground.read_text("work/file");
        let mut dropped = confined.write_stream(&write_request(mode)).unwrap();
        dropped.write(b"dropped").unwrap();
        drop(dropped);
        assert_eq!((ground.read_text("work/file"), count()), (before.clone(), 1));
        let mut writer = confined.write_stream(&write_request(mode)).unwrap();
        writer.write(b"one").unwrap();
        writer.write(b"two").unwrap();
        assert_eq!(ground.read_text("work/file"), before);
        assert_eq!(writer.finish().unwrap().size, expected.len() as u64);
        assert_eq!((ground.read_text("work/file"), count()), (expected.to_owned(), 1));
    }
}

#[test]
fn create_new_stream_does_not_overwrite_a_file_created_meanwhile() {
    let ground = TestFolders::new();
    let confined = ground.open_confined();
    let mut writer = confined.write_stream(&write_request(WriteMode::CreateNew)).unwrap();
    writer.write(b"ours").unwrap();
    ground.put_file("work/file", "theirs");
    assert_eq!(writer.finish().unwrap_err().kind, ErrorKind::Conflict);
    let again = confined.write_stream(&write_request(WriteMode::CreateNew));
    assert_eq!(again.unwrap_err().kind, ErrorKind::Conflict);
    assert_eq!(ground.read_text("work/file"), "theirs");
    assert_eq!(fs::read_dir(ground.path("work")).unwrap().count(), 1);
}
