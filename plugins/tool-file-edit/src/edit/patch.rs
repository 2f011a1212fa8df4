//! Parses patches in the format `*** Begin Patch`, which GPT models write, and applies them to a
//! file's text. Pure.

use super::chunks::{ChunkEdit, ChunkFinder, ChunkMismatch, describe_ambiguous};
use super::{EditFailure, encode_text, quote_start};
use crate::text::{LineView, decode_bytes};

const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";
const END_OF_FILE: &str = "*** End of File";
const MOVE: &str = "*** Move to:";

/// The part of a patch about one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePatch {
    /// The path of the file.
    pub path: String,
    /// The action on the file.
    pub action: PatchAction,
}

/// An action on a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PatchAction {
    /// Writes this text to the file.
    Add(String),
    /// Deletes the file.
    Delete,
    /// Changes lines of the file, and optionally its path.
    Update {
        /// The new path.
        move_to: Option<String>,
        /// The changes, in file order.
        chunks: Vec<PatchChunk>,
    },
}

/// Lines and their replacement.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PatchChunk {
    /// The lines after `@@`, which come before the chunk, in order.
    pub(super) headers: Vec<String>,
    /// The index of the first old line, if `@@` has line numbers. Without old lines, the index of
    /// the line before which the new lines come.
    pub(super) line: Option<usize>,
    pub(super) old: Vec<String>,
    pub(super) new: Vec<String>,
    pub(super) is_at_end: bool,
}

/// Parses a patch.
///
/// # Errors
/// The problem and its line.
pub fn parse_patch(patch: &str) -> Result<Vec<FilePatch>, String> {
    let lines: Vec<&str> = patch.trim().lines().collect();
    let lines = strip_shell_wrapper(&lines);
    let (Some(first), Some(last)) = (lines.first(), lines.last()) else {
        return Err(format!("the first line must be `{BEGIN}`"));
    };
    if first.trim() != BEGIN {
        return Err(format!("the first line must be `{BEGIN}`"));
    }
    if last.trim() != END {
        return Err(format!("the last line must be `{END}`"));
    }
    let mut reader = PatchReader { lines: &lines[1..lines.len() - 1], at: 0 };
    let mut files = Vec::new();
    while reader.skip_blank_lines() {
        files.push(reader.parse_file()?);
    }
    if files.is_empty() {
        return Err("the patch changes no file".to_owned());
    }
    Ok(files)
}

/// Removes a shell here-document, in which some models wrap a patch.
fn strip_shell_wrapper<'a, 'b>(lines: &'a [&'b str]) -> &'a [&'b str] {
    let [first, inside @ .., last] = lines else { return lines };
    let word = first.trim().trim_start_matches("apply_patch").trim_start().strip_prefix("<<");
    let Some(word) = word else { return lines };
    if word.trim().trim_matches(['\'', '"']) == last.trim() { inside } else { lines }
}

struct PatchReader<'a> {
    lines: &'a [&'a str],
    at: usize,
}

impl<'a> PatchReader<'a> {
    fn peek_line(&self) -> Option<&'a str> {
        self.lines.get(self.at).copied()
    }

    /// Skips blank lines. Returns false at the end.
    fn skip_blank_lines(&mut self) -> bool {
        while self.peek_line().is_some_and(|line| line.trim().is_empty()) {
            self.at += 1;
        }
        self.peek_line().is_some()
    }

    /// Returns an error text with the current line number.
    fn parse_error(&self, text: &str) -> String {
        // The reader starts after the patch's first line.
        format!("line {} of the patch: {text}", self.at + 2)
    }

    fn parse_file(&mut self) -> Result<FilePatch, String> {
        let header = self.peek_line().unwrap_or_default().trim();
        let path = |word: &str| {
            let path = header.strip_prefix(word)?.trim();
            (!path.is_empty()).then(|| path.to_owned())
        };
        if let Some(path) = path("*** Add File:") {
            self.at += 1;
            let mut text = String::new();
            while let Some(line) = self.peek_line().and_then(|line| line.strip_prefix('+')) {
                text.push_str(line);
                text.push('\n');
                self.at += 1;
            }
            return Ok(FilePatch { path, action: PatchAction::Add(text) });
        }
        if let Some(path) = path("*** Delete File:") {
            self.at += 1;
            return Ok(FilePatch { path, action: PatchAction::Delete });
        }
        let Some(path) = path("*** Update File:") else {
            let text = format!(
                "{} is not a valid header; valid headers are `*** Add File: PATH`, `*** Delete File: PATH` and \
                 `*** Update File: PATH`",
                quote_start(header)
            );
            return Err(self.parse_error(&text));
        };
        self.at += 1;
        let moved = self.peek_line().and_then(|line| line.trim().strip_prefix(MOVE));
        let move_to = moved.map(|path| path.trim().to_owned()).filter(|path| !path.is_empty());
        self.at += usize::from(move_to.is_some());
        let mut chunks = Vec::new();
        while self.skip_blank_lines() && !self.peek_line().unwrap_or_default().starts_with("***") {
            chunks.push(self.parse_chunk(chunks.is_empty())?);
        }
        if chunks.is_empty() && move_to.is_none() {
            return Err(self.parse_error(&format!("no lines of {path} change")));
        }
        Ok(FilePatch { path, action: PatchAction::Update { move_to, chunks } })
    }

    fn parse_chunk(&mut self, is_first: bool) -> Result<PatchChunk, String> {
        let mut chunk = PatchChunk::default();
        let start = self.at;
        while let Some(header) = self.peek_line().and_then(parse_chunk_header) {
            chunk.headers.extend(header.text.map(str::to_owned));
            chunk.line = header.line.or(chunk.line);
            self.at += 1;
        }
        if self.at == start && !is_first {
            let line = quote_start(self.peek_line().unwrap_or_default());
            return Err(self.parse_error(&format!(
                "{line} does not begin a chunk: a chunk begins with a line `@@`"
            )));
        }
        let body = self.at;
        while let Some(line) = self.peek_line() {
            if line.trim_end() == END_OF_FILE {
                chunk.is_at_end = true;
                self.at += 1;
                break;
            }
            let (sign, rest) = match line.chars().next() {
                None => (' ', ""),
                Some(sign) => (sign, line.get(1..).unwrap_or_default()),
            };
            match sign {
                ' ' => {
                    chunk.old.push(rest.to_owned());
                    chunk.new.push(rest.to_owned());
                }
                '+' => chunk.new.push(rest.to_owned()),
                '-' => chunk.old.push(rest.to_owned()),
                _ => break,
            }
            self.at += 1;
        }
        if self.at == body {
            let text =
                "a chunk has lines that begin with ' ' (stays), '+' (added) or '-' (removed)";
            return Err(self.parse_error(text));
        }
        Ok(chunk)
    }
}

/// A line that begins with `@@`.
#[derive(Default)]
struct ChunkHeader<'a> {
    line: Option<usize>,
    text: Option<&'a str>,
}

/// Parses `@@`, the line numbers that other formats have there, and the text after it.
fn parse_chunk_header(line: &str) -> Option<ChunkHeader<'_>> {
    let rest = line.strip_prefix("@@")?;
    if rest.trim().is_empty() {
        return Some(ChunkHeader::default());
    }
    let rest = rest.strip_prefix(' ')?;
    let mut words = rest.splitn(3, ' ');
    let mut index = |sign| parse_first_line_index(words.next()?.strip_prefix(sign)?);
    let (Some(line), Some(_)) = (index('-'), index('+')) else {
        return Some(ChunkHeader { line: None, text: Some(rest) });
    };
    let behind = words.next().unwrap_or_default().trim_start_matches("@@").trim();
    Some(ChunkHeader { line: Some(line), text: Some(behind).filter(|text| !text.is_empty()) })
}

/// Parses `LINE` or `LINE,COUNT`.
fn parse_first_line_index(numbers: &str) -> Option<usize> {
    let (line, count) = numbers.split_once(',').unwrap_or((numbers, "1"));
    let (line, count): (usize, usize) = (line.parse().ok()?, count.parse().ok()?);
    // If the count is 0, lines are added after this line.
    Some(if count == 0 { line } else { line.saturating_sub(1) })
}

/// The result of a patch of a file.
#[derive(Debug)]
pub struct PatchedFile {
    /// The new bytes of the file.
    pub bytes: Vec<u8>,
    /// The differences between the file's text and the patch's, if any.
    pub forgiven: Option<String>,
    /// Descriptions of chunks that match in several places.
    pub ambiguous: Vec<String>,
}

/// Applies chunks to the bytes of a file. All other bytes stay unchanged.
///
/// # Errors
/// If the patch failed.
pub fn apply_patch_chunks(bytes: &[u8], chunks: &[PatchChunk]) -> Result<PatchedFile, EditFailure> {
    let decoded = decode_bytes(bytes).map_err(|_| EditFailure::NotText)?;
    let view = LineView::new(&decoded.text);
    let mut finder = ChunkFinder::new(view.text());
    let mut edits: Vec<ChunkEdit> = Vec::new();
    let mut forgiven: Vec<String> = Vec::new();
    for (index, chunk) in chunks.iter().enumerate() {
        let failed = |ChunkMismatch { what, hint }| {
            let of = chunks.len();
            EditFailure::Chunk(format!("chunk {} of {of}: {what}", index + 1), hint)
        };
        let edit = finder.locate_chunk(chunk).map_err(failed)?;
        if !edit.differences.is_empty() && !forgiven.contains(&edit.differences) {
            forgiven.push(edit.differences.clone());
        }
        edits.push(edit);
    }
    let ambiguous = describe_ambiguous(&edits);
    // Chunks without old lines may be at the end, before a chunk that was found later.
    edits.sort_by_key(|edit| (edit.lines.start, edit.lines.end));
    let pieces: Vec<_> =
        edits.iter().map(|edit| (finder.byte_range(&edit.lines), &*edit.new)).collect();
    let text = view.replace_pieces(&pieces);
    let forgiven = (!forgiven.is_empty()).then(|| forgiven.join("; "));
    Ok(PatchedFile { bytes: encode_text(&decoded, text.into())?, forgiven, ambiguous })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Applies the chunks of an update to a text.
    fn apply_chunks(text: &str, chunks: &str) -> Result<(String, String), String> {
        let patch = format!("{BEGIN}\n*** Update File: a\n{chunks}\n{END}\n");
        let files = parse_patch(&patch)?;
        let PatchAction::Update { chunks, .. } = &files[0].action else { panic!("{files:?}") };
        match apply_patch_chunks(text.as_bytes(), chunks) {
            Ok(edited) => {
                Ok((String::from_utf8(edited.bytes).unwrap(), edited.forgiven.unwrap_or_default()))
            }
            Err(EditFailure::Chunk(text, hint)) => {
                Err(format!("{text}|{}", hint.unwrap_or_default()))
            }
            Err(other) => panic!("{other:?}"),
        }
    }

    #[track_caller]
    fn check_applied_chunks(text: &str, chunks: &str, expected: &str) {
        assert_eq!(apply_chunks(text, chunks), Ok((expected.to_owned(), String::new())));
    }

    #[test]
    fn chunks_are_applied_in_order() {
        check_applied_chunks("a\nb\nc\nb\n", "@@\n a\n-b\n+x\n@@\n-b\n+y", "a\nx\nc\ny\n");
        check_applied_chunks("f\n b\ng\n b\n", "@@ g\n- b\n+ x", "f\n b\ng\n x\n");
        check_applied_chunks(
            "A\n f\n x\nB\n f\n x\n",
            "@@ B\n@@  f\n- x\n+ y",
            "A\n f\n x\nB\n f\n y\n",
        );
        check_applied_chunks("a\nb\n", " a\n-b\n+c", "a\nc\n");
        check_applied_chunks("a\r\nb\r\n", "@@\n-b\n+c\n+d", "a\r\nc\r\nd\r\n");
        check_applied_chunks("x\na\nx\n", "@@\n-x\n+y\n*** End of File", "x\na\ny\n");
        check_applied_chunks("a\nb\n", "@@ -1,2 +1,2 @@ a\n-b\n+c", "a\nc\n");
        check_applied_chunks("x\nf\n b\n", "@@ f\n f\n- b\n+ c", "x\nf\n c\n");
        check_applied_chunks("a\n\nb\n", "@@\n a\n\n-b\n+c", "a\n\nc\n");
        check_applied_chunks("a\nb\n", "@@\n-a\n+c\n\n@@\n-b\n+d\n", "c\nd\n");
        check_applied_chunks("a\nb\n", "@@\n-a\n-b", "");
    }

    #[test]
    fn line_numbers_choose_the_nearest_of_several_matches() {
        let text = "a\n1\n\nb\n1\n\nc\n1\n";
        for (line, expected) in [(1, "x11"), (3, "x11"), (4, "1x1"), (6, "1x1"), (9, "11x")] {
            let [first, second, third] =
                [0, 1, 2].map(|place: usize| expected.chars().nth(place).unwrap());
            let expected = format!("a\n{first}\n\nb\n{second}\n\nc\n{third}\n");
            let chunk = format!("@@ -{line},1 +{line},1 @@\n-1\n+x");
            assert_eq!(apply_chunks(text, &chunk).unwrap().0, expected, "{line}");
        }
        check_applied_chunks(
            text,
            "@@ -2 +2 @@\n-1\n+x\n@@ -8 +8 @@\n-1\n+y",
            "a\nx\n\nb\n1\n\nc\ny\n",
        );
        // A text after the numbers excludes the lines before it.
        check_applied_chunks("f\n1\ng\n1\n", "@@ -4,1 +4,1 @@ f\n-1\n+x", "f\n1\ng\nx\n");
        // Numbers do not matter if there is one match.
        check_applied_chunks("a\nb\n", "@@ -90,1 +90,1 @@\n-a\n+c", "c\nb\n");
    }

    #[test]
    fn line_numbers_choose_the_place_of_added_lines() {
        check_applied_chunks("a\nb\nc\n", "@@ -2,0 +3,1 @@\n+x", "a\nb\nx\nc\n");
        check_applied_chunks("a\nb\n", "@@ -0,0 +1,1 @@\n+x", "x\na\nb\n");
        check_applied_chunks("a\n", "@@ -9,0 +10,1 @@\n+x", "a\nx\n");
        check_applied_chunks("a\nb\nc\n", "@@ -1,0 +2 @@\n+x\n@@ -3 +4 @@\n-c\n+d", "a\nx\nb\nd\n");
        let error = apply_chunks("a\nb\nc\n", "@@\n-a\n-b\n+x\n@@ -1,0 +1 @@\n+y").unwrap_err();
        assert!(error.contains("it adds lines at line 2, before the previous chunk"), "{error}");
    }

    #[test]
    fn a_chunk_that_matches_several_places_is_noted() {
        let ambiguous = |text: &str, chunks: &str| {
            let files =
                parse_patch(&format!("{BEGIN}\n*** Update File: a\n{chunks}\n{END}")).unwrap();
            let PatchAction::Update { chunks, .. } = &files[0].action else { panic!("{files:?}") };
            apply_patch_chunks(text.as_bytes(), chunks).unwrap().ambiguous.join("|")
        };
        let note = "chunk 1 was applied at line 2 of the old file, but also fits at line 5";
        let text = "f\n1\n\nf\n1\n";
        assert_eq!(ambiguous(text, "@@\n-1\n+x"), note);
        assert_eq!(ambiguous(text, "@@ f\n-1\n+x"), note);
        assert_eq!(ambiguous(text, "@@ f\n+x"), note);
        assert_eq!(ambiguous(text, "@@ -1 +1 @@\n-1\n+x"), note);
        let many = "chunk 1 was applied at line 1 of the old file, but also fits at lines 2, 3, 4, \
                    5, 6, 7, 8, 9, 10, 11 and 2 more";
        assert_eq!(ambiguous(&"1\n".repeat(13), "@@\n-1\n+x"), many);
        // Numbers, a header that occurs once, and chunks for all places leave no doubt.
        for chunks in [
            "@@ -2 +2 @@\n-1\n+x",
            "@@ \n f\n-1\n+x\n@@\n-1\n+x",
            "@@\n-1\n+x\n*** End of File",
            "@@ f\n+x\n@@ f\n+x",
        ] {
            assert_eq!(ambiguous(text, chunks), "", "{chunks}");
        }
        assert_eq!(ambiguous("f\n1\ng\n1\n", "@@ f\n-1\n+x"), "");
    }

    #[test]
    fn patch_adds_lines_at_the_end_or_after_a_header() {
        check_applied_chunks("a\n", "@@\n+b", "a\nb\n");
        check_applied_chunks("a", "@@\n+b", "a\nb\n");
        check_applied_chunks("", "@@\n+b", "b\n");
        check_applied_chunks("a\nb\n", "@@ a\n+x", "a\nx\nb\n");
        check_applied_chunks("a\nb", "@@\n-b\n+c", "a\nc");
    }

    #[test]
    fn patch_finds_lines_despite_formatting_differences() {
        let (text, forgiven) =
            apply_chunks("\tif a:  \n\t\tb\n", "@@\n     if a:\n-        b\n+        c").unwrap();
        assert_eq!(text, "\tif a:  \n\t\tc\n");
        assert_eq!(forgiven, "whitespace at line ends; tabs or spaces in the indent");
        let (text, _) =
            apply_chunks("\u{2013} \u{201C}a\u{201D}\nx\n", "@@ - \"a\"\n-x\n+y").unwrap();
        assert_eq!(text, "\u{2013} \u{201C}a\u{201D}\ny\n");
    }

    #[test]
    fn patch_chunk_without_a_match_is_refused_with_the_reason() {
        let refused = |text, chunks| apply_chunks(text, chunks).unwrap_err();
        assert_eq!(
            refused("let moon = 1;\n", "@@\n-let moons = 1;\n+x"),
            "chunk 1 of 1: its lines are not in the file: 'let moons = 1;'|the nearest lines are:\n\
             1: let moon = 1;"
        );
        assert!(
            refused("a\n", "@@ zzz\n-a")
                .starts_with("chunk 1 of 1: the line of `@@` is not in the file: 'zzz'")
        );
        assert!(refused("a\nb\n", "@@\n-b\n@@\n-a").contains("at line 1 of the file, before"));
        let classes = "class A:\n    def f():\n        1\n\nclass B:\n    def f():\n        2\n";
        let starts = |chunks, expected: &str| {
            let error = refused(classes, chunks);
            assert!(error.starts_with(expected), "{error}");
        };
        starts(
            "@@ class B:\n-    def f():\n+    def g():\n@@ class A:\n-        1",
            "chunk 2 of 2: the line of `@@` is at line 1 of the file, before the previous chunk \
             (chunks must be in file order): 'class A:'",
        );
        starts(
            "@@ class B:\n@@ class A:\n-        1",
            "chunk 1 of 1: the line of `@@` is at line 1 of the file, before the line of `@@` that \
             precedes it in the patch: 'class A:'",
        );
        starts(
            "@@ class B:\n-        1",
            "chunk 1 of 1: its lines are at line 3 of the file, before the line of `@@` that",
        );
        starts(
            "@@ def f():\n-        1",
            "chunk 1 of 1: the line of `@@` is at lines 2, 6 of the file, but not as written: 'def \
             f():'|copy exactly and add surrounding lines",
        );
        assert!(
            refused("a \nx\na\t\n", "@@\n-a")
                .contains("its lines are at lines 1, 3 of the file, but")
        );
    }

    #[test]
    fn patch_is_parsed_into_file_actions() {
        let text = "\n*** Begin Patch\n*** Add File: n/a.txt\n+one\n+\n+two\n\n*** Delete File: b\n\
                    *** Update File: c\n*** Move to: d\n@@ f\n x\n*** End Patch\n";
        let files = parse_patch(text).unwrap();
        let paths: Vec<&str> = files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(paths, ["n/a.txt", "b", "c"]);
        assert_eq!(files[0].action, PatchAction::Add("one\n\ntwo\n".to_owned()));
        let PatchAction::Update { move_to, chunks } = &files[2].action else { panic!("{files:?}") };
        assert_eq!((move_to.as_deref(), chunks.len()), (Some("d"), 1));
        let wrapped = format!("apply_patch <<'EOF'\n{}\nEOF", text.trim());
        assert_eq!(parse_patch(&wrapped).as_ref(), Ok(&files));
    }

    #[test]
    fn malformed_patch_is_refused_with_the_reason() {
        let wrong = |inside: &str| parse_patch(&format!("{BEGIN}\n{inside}\n{END}")).unwrap_err();
        assert_eq!(parse_patch("x"), Err(format!("the first line must be `{BEGIN}`")));
        assert_eq!(parse_patch(BEGIN), Err(format!("the last line must be `{END}`")));
        assert_eq!(wrong(""), "the patch changes no file");
        assert!(
            wrong("*** Change File: a").starts_with("line 2 of the patch: '*** Change File: a'")
        );
        assert_eq!(wrong("*** Update File: a"), "line 3 of the patch: no lines of a change");
        assert!(
            wrong("*** Update File: a\n@@\n-x\nyz").contains("line 5 of the patch: 'yz' does not")
        );
        assert!(wrong("*** Update File: a\n@@").contains("a chunk has lines that begin with"));
    }
}
