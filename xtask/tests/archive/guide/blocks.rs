//! The code blocks of a document, and the use of each.

/// A block between fences.
pub struct GuideBlock {
    /// Its line in the document.
    pub line: usize,
    pub text: String,
    pub does: BlockKind,
}

/// The use of a block.
#[derive(Debug, PartialEq, Eq)]
pub enum BlockKind {
    /// Written to this file.
    File(String),
    /// Compared with this file.
    Same(String),
    /// Run in a shell.
    Console,
    /// Built, and checked or run.
    Snippet,
    /// Parsed as JSON: a value per line, or one value over all lines.
    Json,
    /// Parsed as TOML.
    Toml,
    /// Compiled against the header, but not run.
    C,
}

/// Reads all blocks. Fails the test for a block that would not be tested.
#[track_caller]
pub fn read_blocks(document: &str) -> Vec<GuideBlock> {
    let mut blocks: Vec<GuideBlock> = Vec::new();
    let (mut before, mut is_open) = ("", false);
    for (at, line) in document.lines().enumerate() {
        match (line.strip_prefix("```"), is_open) {
            (Some(language), false) => {
                blocks.push(GuideBlock {
                    line: at + 1,
                    text: String::new(),
                    does: block_kind(before, language, at),
                });
                is_open = true;
            }
            (Some(_), true) => (before, is_open) = ("", false),
            (None, true) => {
                let text = &mut blocks.last_mut().unwrap().text;
                text.push_str(line);
                text.push('\n');
            }
            (None, false) => before = line,
        }
    }
    assert!(!is_open, "the last block has no end");
    blocks
}

#[track_caller]
fn block_kind(before: &str, language: &str, at: usize) -> BlockKind {
    let comment = before.strip_prefix("<!-- ").and_then(|rest| rest.strip_suffix(" -->"));
    match comment.and_then(|comment| comment.split_once(": ")) {
        Some(("file", path)) => return BlockKind::File(path.to_owned()),
        Some(("same", path)) => return BlockKind::Same(path.to_owned()),
        Some(_) | None => {}
    }
    match language {
        "console" => BlockKind::Console,
        "rust" => BlockKind::Snippet,
        "json" => BlockKind::Json,
        "toml" => BlockKind::Toml,
        "c" => BlockKind::C,
        other => panic!("line {}: nothing tests a block of `{other}` without a file", at + 1),
    }
}

/// Quotes a path for the shell. `~` is the home, and `$JAATO` the folder of the archive.
pub fn shell_path(path: &str) -> String {
    match (path.strip_prefix("~/"), path.starts_with("$JAATO/")) {
        (Some(rest), _) => format!("\"$HOME/{rest}\""),
        (None, true) => format!("\"{path}\""),
        (None, false) => format!("'{path}'"),
    }
}

#[test]
fn each_code_block_gets_its_use() {
    let document = "text\n\n<!-- file: a/b.rs -->\n```rust\nfn a() {}\n\n```\n\n```console\n$ ls\n```\n\
        ```rust\n```\n<!-- same: c.toml -->\n```toml\n```\n```json\n{}\n```\n```toml\n```\n```c\n```\n";
    let blocks = read_blocks(document);
    let uses: Vec<&BlockKind> = blocks.iter().map(|block| &block.does).collect();
    let (file, same) = (BlockKind::File("a/b.rs".into()), BlockKind::Same("c.toml".into()));
    let read = [
        &file,
        &BlockKind::Console,
        &BlockKind::Snippet,
        &same,
        &BlockKind::Json,
        &BlockKind::Toml,
        &BlockKind::C,
    ];
    assert_eq!(uses, read);
    assert_eq!((blocks[0].line, blocks[0].text.as_str()), (4, "fn a() {}\n\n"));
}

#[test]
fn a_path_may_begin_at_home_or_in_the_archive() {
    let paths = ["~/a b", "$JAATO/share/a", "src/$a"].map(shell_path);
    assert_eq!(paths, ["\"$HOME/a b\"", "\"$JAATO/share/a\"", "'src/$a'"]);
}
