//! Tests of `readFile`.

use jaato_plugin_sdk::serde_json::{Value, json};
use jaato_plugin_sdk::types::ErrorKind;

use crate::support::EditFixture;

fn call_read_file(desk: &EditFixture, arguments: Value) -> String {
    desk.call_tool("readFile", arguments)["result"].as_str().unwrap().to_owned()
}

#[test]
fn read_file_shows_a_heading_and_the_whole_text() {
    let desk = EditFixture::new().with_file("a.txt", "one\ntwo\nthree");
    assert_eq!(
        desk.read_file_text("a.txt"),
        "path: a.txt | lines: 3 | size: 13\n\none\ntwo\nthree"
    );
    desk.write_file("empty", "");
    assert_eq!(desk.read_file_text("empty"), "path: empty | lines: 0 | size: 0\n\n");
}

#[test]
fn page_shows_its_line_range_and_whether_more_follows() {
    let desk = EditFixture::new().with_file("a.txt", "1\n2\n3\n4\n");
    let of = |offset: u64, limit: u64| {
        call_read_file(&desk, json!({ "path": "a.txt", "offset": offset, "limit": limit }))
    };
    let expected = "path: a.txt | lines: 2-3 of 4 | size: 8 | has_more: True\n\n2\n3\n\
                    [… the next line is 4: readFile with offset=4]";
    assert_eq!(of(2, 2), expected);
    assert_eq!(of(4, 9), "path: a.txt | lines: 4-4 of 4 | size: 8 | has_more: False\n\n4\n");
    let expected = "path: a.txt | lines: none of 4 | size: 8 | has_more: False\n\n\
                    [the file ends before that line]";
    assert_eq!(of(100, 1), expected);
}

#[test]
fn text_in_another_encoding_is_shown_with_lf_line_ends() {
    let desk = EditFixture::new().with_file("a.txt", b"caf\xE9 au lait\r\nd\xE9j\xE0 vu\r\n");
    let expected = "path: a.txt | lines: 2 | size: 23 | line ends: CRLF, shown as LF | \
                    encoding: windows-1252\n\n\
                    café au lait\ndéjà vu\n";
    assert_eq!(desk.read_file_text("a.txt"), expected);
}

#[test]
fn read_file_output_is_limited() {
    let desk = EditFixture::new().with_file("long.txt", "0123456789\n".repeat(10_000));
    let text = desk.read_file_text("long.txt");
    assert!(json!(text).to_string().len() < 16 * 1024, "{}", text.len());
    assert!(
        text.starts_with("path: long.txt | lines: 1-1280 of 10000 | size: 110000 | has_more: True"),
        "{}",
        &text[..90]
    );
    let next = call_read_file(&desk, json!({ "path": "long.txt", "offset": 9_999 }));
    assert!(next.starts_with(
        "path: long.txt | lines: 9999-10000 of 10000 | size: 110000 | has_more: False"
    ));
    desk.write_file("line.txt", "x".repeat(100_000));
    assert!(desk.read_file_text("line.txt").ends_with("x[… 98000 more characters of this line]"));
}

#[test]
fn large_file_is_read_only_as_far_as_needed() {
    let desk = EditFixture::new().with_file("large.txt", "0123456789abcde\n".repeat(1_000_000));
    let text = call_read_file(&desk, json!({ "path": "large.txt", "limit": 200 }));
    let heading = "path: large.txt | lines: 1-200 of ? | size: 16000000 | has_more: True\n\n0123";
    assert!(text.starts_with(heading), "{}", &text[..100]);
    let asked = desk.host().service_requests();
    let reads: Vec<_> = asked.iter().filter(|request| request.operation == "files.read").collect();
    assert_eq!(reads.len(), 1);
    assert!(reads[0].json["length"].as_u64() <= Some(1024 * 1024));
    let text = call_read_file(&desk, json!({ "path": "large.txt", "offset": 900_000, "limit": 1 }));
    assert!(text.contains("| lines: 900000-900000 of 1000000 | size: 16000000 | has_more: True"));
    let text = call_read_file(&desk, json!({ "path": "large.txt", "offset": 500_000, "limit": 1 }));
    assert!(text.contains("| lines: 500000-500000 of ? | size: 16000000 | has_more: True"));
    let text =
        call_read_file(&desk, json!({ "path": "large.txt", "offset": 1_000_000, "limit": 9 }));
    assert!(
        text.contains("| lines: 1000000-1000000 of 1000000 | size: 16000000 | has_more: False")
    );
    let text = call_read_file(&desk, json!({ "path": "large.txt", "offset": 1_000_001 }));
    assert!(text.contains("| lines: none of 1000000 | size: 16000000 | has_more: False"));
}

#[test]
fn large_texts_are_split_between_characters() {
    let desk =
        EditFixture::new().with_file("large.txt", format!("a{}", "ä€𝄞 word\n".repeat(200_000)));
    let text =
        call_read_file(&desk, json!({ "path": "large.txt", "offset": 50_000, "limit": 100 }));
    let lines: Vec<&str> = text.lines().skip(2).take(100).collect();
    assert_eq!(lines, ["ä€𝄞 word"; 100]);
    assert!(!text.contains('\u{FFFD}'));
    let mut damaged = "word word\n".repeat(200_000).into_bytes();
    damaged[25] = 0xFF;
    desk.write_file("damaged.txt", damaged);
    let text = call_read_file(&desk, json!({ "path": "damaged.txt", "limit": 3 }));
    assert!(text.contains("encoding: windows-1252"), "{text}");
}

#[test]
fn binary_files_and_folders_are_refused_with_their_type() {
    let desk = EditFixture::new().with_file("a.bin", b"\x7FELF\x02\x01\0\0").with_file("dir/x", "");
    let error = desk.call_refused_tool("readFile", json!({ "path": "a.bin" }));
    let text = "Not a text file: a.bin (a program or library (ELF), 8 bytes)";
    assert_eq!((error.kind, &*error.message), (ErrorKind::InvalidArguments, text));
    let error = desk.call_refused_tool("readFile", json!({ "path": "dir" }));
    assert_eq!(
        (&*error.message, error.hint.as_deref()),
        ("Not a file: dir", Some("it is a folder"))
    );
    let error = desk.call_refused_tool("readFile", json!({ "path": "no" }));
    assert_eq!((error.kind, &*error.message), (ErrorKind::NotFound, "File not found: no"));
    let error = desk.call_refused_tool("readFile", json!({ "path": " " }));
    assert_eq!(&*error.message, "path is required");
    let error = desk.call_refused_tool("readFile", json!({ "path": "../../etc/passwd" }));
    assert_eq!(error.kind, ErrorKind::PermissionDenied);
    for bad in [json!({ "path": "a", "offset": 0 }), json!({ "path": "a", "limit": "some" })] {
        assert_eq!(desk.call_refused_tool("readFile", bad).kind, ErrorKind::InvalidArguments);
    }
}

#[test]
fn images_are_attached() {
    let png = b"\x89PNG\r\n\x1A\n\0\0\0\rIHDR";
    let desk = EditFixture::new().with_file("a.dat", png);
    let output = desk.host().call("readFile", json!({ "path": "a.dat" })).unwrap();
    let expected =
        json!({ "path": "a.dat", "size": 16, "type": "image", "mime_type": "image/png" });
    assert_eq!(Value::Object(output.content), expected);
    assert_eq!(output.attachments.len(), 1);
}

#[test]
fn lookalike_file_name_is_found_and_similar_paths_are_suggested() {
    let desk = EditFixture::new()
        .with_file("shots/Shot at 9.41\u{202F}AM.txt", "narrow\n")
        .with_file("v\u{A0}1/re\u{301}sume\u{301}.txt", "accents\n")
        .with_file("it\u{2019}s.txt", "quote\n")
        .with_file("src/main.rs", "")
        .with_file("src/two  .txt", "")
        .with_file("src/two \u{A0}.txt", "")
        .with_file("doc.pdf", "%PDF-1.7\ntext");
    assert!(desk.read_file_text("shots/Shot at 9.41 AM.txt").contains("narrow"));
    assert!(desk.read_file_text("./v 1/r\u{E9}sum\u{E9}.txt").contains("accents"));
    let edit = json!({ "path": "it's.txt", "old": "quote", "new": "new" });
    desk.call_tool("updateFile", edit);
    assert!(desk.read_file_text("it\u{2019}s.txt").contains("new"));
    let hint = |path: &str| {
        let error = desk.call_refused_tool("readFile", json!({ "path": path }));
        assert_eq!(error.kind, ErrorKind::NotFound, "{path}");
        error.hint.unwrap_or_default()
    };
    assert_eq!(hint("main.rs"), "near: `src/main.rs`");
    assert_eq!(hint("lib/main.rs"), "near: `src/main.rs`");
    assert_eq!(hint("src/mian.rs"), "near: `src/main.rs`");
    assert!(hint("src/two   .txt").contains("two"));
    assert!(hint("caf\u{FFFD}").contains("not UTF-8"));
    let error = desk.call_refused_tool("readFile", json!({ "path": "doc.pdf" }));
    assert!(error.hint.unwrap().contains("pdftotext doc.pdf"));
}

#[test]
fn invalid_utf8_bytes_are_shown_and_kept() {
    let body =
        [&b"# \xC3\x9Cber \xE6\x97\xA5\xE6\x9C\xAC\n"[..], b"price = 5\r\n# caf\xE9\n"].concat();
    let desk = EditFixture::new().with_file("f.py", &body);
    let text = desk.read_file_text("f.py");
    assert!(
        text.contains("line ends: mixed (1 CRLF, 2 LF), shown as LF | encoding: UTF-8 with other")
    );
    assert!(text.contains("# Über 日本\nprice = 5\n# caf\u{FFFD}\n"), "{text}");
    let edit = json!({ "path": "f.py", "old": "price = 5", "new": "price = 7  # für später" });
    let told = desk.call_tool("updateFile", edit);
    assert!(!told.to_string().contains('\u{10FFE9}'), "{told}");
    let expected = String::from_utf8_lossy(&body).replace("price = 5", "price = 7  # für später");
    let bytes = std::fs::read(desk.path("f.py")).unwrap();
    assert!(bytes.ends_with(b"# caf\xE9\n"));
    assert_eq!(String::from_utf8_lossy(&bytes), expected);
}
