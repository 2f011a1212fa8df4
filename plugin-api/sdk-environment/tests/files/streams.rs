//! Files piece by piece, and results that are cut.

use std::fs;

use jaato_plugin_sdk_environment::files::{Confined, PIECE_BYTES, Settings};
use jaato_types::ErrorKind;
use jaato_types::files::*;

use crate::support::Ground;

fn request(mode: WriteMode) -> FileWrite {
    FileWrite { path: "file".into(), mode, ..FileWrite::default() }
}

#[test]
fn a_file_is_read_piece_by_piece_from_anywhere() {
    let ground = Ground::new();
    let content: Vec<u8> = (0..PIECE_BYTES * 2 + 5).map(|at| (at % 251) as u8).collect();
    ground.put("work/file", &content);
    let confined = ground.open();
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
        while let Some(piece) = pieces.read().unwrap() {
            assert!(piece.len() <= PIECE_BYTES);
            read.extend(piece);
        }
        assert!(read == expected);
    }
}

#[test]
fn the_old_file_is_there_until_the_new_one_is_finished() {
    let ground = Ground::new();
    ground.put("work/file", "old");
    let confined = ground.open();
    let count = || fs::read_dir(ground.path("work")).unwrap().count();
    for (mode, expected) in [(WriteMode::Replace, "onetwo"), (WriteMode::Append, "onetwoonetwo")] {
        let before = ground.text("work/file");
        let mut dropped = confined.write_stream(&request(mode)).unwrap();
        dropped.write(b"dropped").unwrap();
        drop(dropped);
        assert_eq!((ground.text("work/file"), count()), (before.clone(), 1));
        let mut writer = confined.write_stream(&request(mode)).unwrap();
        writer.write(b"one").unwrap();
        writer.write(b"two").unwrap();
        assert_eq!(ground.text("work/file"), before);
        assert_eq!(writer.finish().unwrap().size, expected.len() as u64);
        assert_eq!((ground.text("work/file"), count()), (expected.to_owned(), 1));
    }
}

#[test]
fn a_new_file_that_somebody_else_made_meanwhile_is_not_overwritten() {
    let ground = Ground::new();
    let confined = ground.open();
    let mut writer = confined.write_stream(&request(WriteMode::CreateNew)).unwrap();
    writer.write(b"ours").unwrap();
    ground.put("work/file", "theirs");
    assert_eq!(writer.finish().unwrap_err().kind, ErrorKind::Conflict);
    let again = confined.write_stream(&request(WriteMode::CreateNew));
    assert_eq!(again.unwrap_err().kind, ErrorKind::Conflict);
    assert_eq!(ground.text("work/file"), "theirs");
    assert_eq!(fs::read_dir(ground.path("work")).unwrap().count(), 1);
}

#[test]
fn a_large_result_is_cut_and_the_whole_is_in_a_file_of_its_own() {
    let ground = Ground::new();
    let confined = ground.open();
    let cut = |chars_max, text: &str| {
        let request = ResultCut { name: "build.log".into(), chars_max };
        confined.cut_result(&request, text.as_bytes()).unwrap()
    };
    let small = cut(Some(5), "äöü\nx");
    let expected = ResultKept { text: "äöü\nx".into(), path: None, bytes: 8, is_cut: false };
    assert_eq!(small, expected);
    let large = "ä".repeat(RESULT_CHARS_MAX + 1);
    let (first, second) = (cut(None, &large), cut(Some(10), "12345678\n0123"));
    assert_eq!(first.text.chars().count(), RESULT_CHARS_MAX);
    assert_eq!((second.text.as_str(), second.bytes, second.is_cut), ("12345678\n", 13, true));
    let (first, second) = (first.path.unwrap(), second.path.unwrap());
    assert!(first.ends_with("/build-1.log") && second.ends_with("/build-2.log"), "{first}");
    assert_eq!(fs::read_to_string(&second).unwrap(), "12345678\n0123");
    // The model reads it as any other file.
    let read = FileRead { path: first, offset: 0, length: Some(2) };
    assert_eq!(confined.read(&read).unwrap().1, "ä".as_bytes());
}

#[test]
fn without_a_temporary_folder_a_result_is_cut_all_the_same() {
    let ground = Ground::new();
    let confined = Confined::open(&Settings { temporary: None, ..ground.settings() }).unwrap();
    let request = ResultCut { name: "x".into(), chars_max: Some(2) };
    let kept = confined.cut_result(&request, b"\xff\xffabc").unwrap();
    let text = "\u{fffd}\u{fffd}".to_owned();
    assert_eq!(kept, ResultKept { text, path: None, bytes: 5, is_cut: true });
}
