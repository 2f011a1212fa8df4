//! Parses patches in the format `*** Begin Patch`, which GPT models write, and applies them to a
//! file's text. Pure.
//!
//! Chunks are found as in `codex`: each one after the previous one, first by its `@@` headers and
//! then by its own lines. Lines match exactly or in a folded form ([`super::forgive`]).

use std::ops::Range;

use super::forgive::{FoldingStep, differences, folded_line, graft_replacement};
use super::nearest::nearest;
use super::{EditFailure, EditResult, encode, quoted};
use crate::text::{LineView, decode};

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
    headers: Vec<String>,
    old: Vec<String>,
    new: Vec<String>,
    is_at_end: bool,
}

/// Parses a patch.
///
/// # Errors
/// The problem and its line.
pub fn parse(patch: &str) -> Result<Vec<FilePatch>, String> {
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
    while reader.skip_blank() {
        files.push(reader.file()?);
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
    fn peek(&self) -> Option<&'a str> {
        self.lines.get(self.at).copied()
    }

    /// Skips blank lines. Returns false at the end.
    fn skip_blank(&mut self) -> bool {
        while self.peek().is_some_and(|line| line.trim().is_empty()) {
            self.at += 1;
        }
        self.peek().is_some()
    }

    /// Returns an error text with the current line number.
    fn parse_error(&self, text: &str) -> String {
        // The reader starts after the patch's first line.
        format!("line {} of the patch: {text}", self.at + 2)
    }

    fn file(&mut self) -> Result<FilePatch, String> {
        let header = self.peek().unwrap_or_default().trim();
        let path = |word: &str| {
            let path = header.strip_prefix(word)?.trim();
            (!path.is_empty()).then(|| path.to_owned())
        };
        if let Some(path) = path("*** Add File:") {
            self.at += 1;
            let mut text = String::new();
            while let Some(line) = self.peek().and_then(|line| line.strip_prefix('+')) {
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
                quoted(header)
            );
            return Err(self.parse_error(&text));
        };
        self.at += 1;
        let moved = self.peek().and_then(|line| line.trim().strip_prefix(MOVE));
        let move_to = moved.map(|path| path.trim().to_owned()).filter(|path| !path.is_empty());
        self.at += usize::from(move_to.is_some());
        let mut chunks = Vec::new();
        while self.skip_blank() && !self.peek().unwrap_or_default().starts_with("***") {
            chunks.push(self.chunk(chunks.is_empty())?);
        }
        if chunks.is_empty() && move_to.is_none() {
            return Err(self.parse_error(&format!("no lines of {path} change")));
        }
        Ok(FilePatch { path, action: PatchAction::Update { move_to, chunks } })
    }

    fn chunk(&mut self, is_first: bool) -> Result<PatchChunk, String> {
        let mut chunk = PatchChunk::default();
        let start = self.at;
        while let Some(header) = self.peek().and_then(header) {
            chunk.headers.extend(header.map(str::to_owned));
            self.at += 1;
        }
        if self.at == start && !is_first {
            let line = quoted(self.peek().unwrap_or_default());
            return Err(self.parse_error(&format!(
                "{line} does not begin a chunk: a chunk begins with a line `@@`"
            )));
        }
        let body = self.at;
        while let Some(line) = self.peek() {
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

/// Parses `@@` and the text after it. Line numbers, which other formats have there, are ignored.
fn header(line: &str) -> Option<Option<&str>> {
    let rest = line.strip_prefix("@@")?;
    if rest.trim().is_empty() {
        return Some(None);
    }
    let rest = rest.strip_prefix(' ')?;
    let is_number = |text: &str, sign| {
        let digits = text.strip_prefix(sign).unwrap_or_default();
        digits.starts_with(|c: char| c.is_ascii_digit())
            && digits.chars().all(|c| c.is_ascii_digit() || c == ',')
    };
    let mut words = rest.splitn(3, ' ');
    let numbers = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    if !is_number(numbers.0, '-') || !is_number(numbers.1, '+') {
        return Some(Some(rest));
    }
    let behind = words.next().unwrap_or_default().trim_start_matches("@@").trim();
    Some(Some(behind).filter(|text| !text.is_empty()))
}

/// Applies chunks to the bytes of a file. All other bytes stay unchanged.
///
/// # Errors
/// The reason why the patch failed.
pub fn apply(bytes: &[u8], chunks: &[PatchChunk]) -> Result<EditResult, EditFailure> {
    let decoded = decode(bytes).map_err(|_| EditFailure::NotText)?;
    let view = LineView::new(&decoded.text);
    let mut finder = ChunkFinder::new(view.text());
    let mut pieces: Vec<(Range<usize>, String)> = Vec::new();
    let mut forgiven: Vec<String> = Vec::new();
    for (index, chunk) in chunks.iter().enumerate() {
        let failed = |ChunkMismatch { what, hint }| {
            let of = chunks.len();
            EditFailure::Chunk(format!("chunk {} of {of}: {what}", index + 1), hint)
        };
        let (range, new, differences) = finder.piece(chunk).map_err(failed)?;
        pieces.push((range, new));
        if !differences.is_empty() && !forgiven.contains(&differences) {
            forgiven.push(differences);
        }
    }
    // Chunks without old lines may be at the end, before a chunk that was found later.
    pieces.sort_by_key(|(range, _)| (range.start, range.end));
    let borrowed: Vec<_> =
        pieces.iter().map(|(range, new)| (range.clone(), new.as_str())).collect();
    let text = view.replace(&borrowed);
    let forgiven = (!forgiven.is_empty()).then(|| forgiven.join("; "));
    Ok(EditResult { bytes: encode(&decoded, text.into())?, replaced: pieces.len(), forgiven })
}

/// The reason why a chunk has no match.
#[derive(Clone)]
struct ChunkMismatch {
    what: String,
    hint: Option<String>,
}

/// Finds chunks in a text, each after the previous one.
struct ChunkFinder<'a> {
    text: &'a str,
    /// The lines without their ends, and their start positions.
    lines: Vec<&'a str>,
    starts: Vec<usize>,
    /// The lines folded by each step.
    folded: Vec<Vec<String>>,
    /// The line after the last match.
    next: usize,
}

impl<'a> ChunkFinder<'a> {
    fn new(text: &'a str) -> Self {
        let (mut lines, mut starts, mut at) = (Vec::new(), Vec::new(), 0);
        for line in text.split_inclusive('\n') {
            lines.push(line.strip_suffix('\n').unwrap_or(line));
            starts.push(at);
            at += line.len();
        }
        Self { text, lines, starts, folded: Vec::new(), next: 0 }
    }

    /// Finds a chunk. Returns its position, its replacement and the differences of the texts.
    fn piece(
        &mut self,
        chunk: &PatchChunk,
    ) -> Result<(Range<usize>, String, String), ChunkMismatch> {
        let mut header_line = None;
        for header in &chunk.headers {
            let found = self.find(std::slice::from_ref(header), false);
            let found = found.map_err(|missing| ChunkMismatch {
                what: format!("the line {} of `@@` is not in the file", quoted(header)),
                hint: missing.hint,
            })?;
            (header_line, self.next) = (Some(found), found + 1);
        }
        let text = |lines: &[String]| lines.iter().map(|line| format!("{line}\n")).collect();
        if chunk.old.is_empty() {
            let line = if chunk.headers.is_empty() || chunk.is_at_end {
                self.lines.len()
            } else {
                self.next
            };
            let at = self.start_of(line);
            let mut new: String = text(&chunk.new);
            if at == self.text.len() && !self.text.is_empty() && !self.text.ends_with('\n') {
                new.insert(0, '\n');
            }
            return Ok((at..at, new, String::new()));
        }
        let (mut old, mut new) = (&chunk.old[..], &chunk.new[..]);
        let found = self.find(old, chunk.is_at_end).or_else(|missing| {
            // Some models repeat the header's line in the chunk.
            let next = std::mem::replace(&mut self.next, header_line.ok_or(missing.clone())?);
            self.find(old, chunk.is_at_end).map_err(|_| {
                self.next = next;
                missing
            })
        });
        let found = match found {
            // The blank line before the next header is not part of the file.
            Err(missing) if old.len() > 1 && old.last().is_some_and(String::is_empty) => {
                old = &old[..old.len() - 1];
                if new.last().is_some_and(String::is_empty) {
                    new = &new[..new.len() - 1];
                }
                self.find(old, chunk.is_at_end).map_err(|_| missing)
            }
            found => found,
        }?;
        self.next = found + old.len();
        let range = self.start_of(found)..self.start_of(self.next);
        let there = &self.text[range.clone()];
        let (mut wanted, mut new): (String, String) = (text(old), text(new));
        if !there.ends_with('\n') {
            // If the last line has no line end, it stays so.
            wanted.pop();
            new.pop();
        }
        if there == wanted {
            return Ok((range, new, String::new()));
        }
        let differences = differences(there, &wanted);
        let new = graft_replacement(there, &wanted, &new);
        Ok((range, new, differences))
    }

    fn start_of(&self, line: usize) -> usize {
        self.starts.get(line).copied().unwrap_or(self.text.len())
    }

    /// Finds lines after the last match: exactly, or the only match in a folded form.
    fn find(&mut self, wanted: &[String], is_at_end: bool) -> Result<usize, ChunkMismatch> {
        let start = match self.lines.len().checked_sub(wanted.len()) {
            Some(last) if is_at_end => last.max(self.next),
            _ => self.next,
        };
        let exact = find_chunk_positions(&self.lines, wanted, start).next();
        if let Some(place) = exact {
            return Ok(place);
        }
        for (number, step) in FoldingStep::ALL.into_iter().enumerate() {
            if self.folded.len() <= number {
                self.folded.push(self.lines.iter().map(|line| folded_line(line, step)).collect());
            }
            let wanted: Vec<String> = wanted.iter().map(|line| folded_line(line, step)).collect();
            if wanted.iter().all(|line| line.trim().is_empty()) {
                continue;
            }
            let found: Vec<usize> =
                find_chunk_positions(&self.folded[number], &wanted, start).take(2).collect();
            match found[..] {
                [] => {}
                [place] => return Ok(place),
                [one, other, ..] => {
                    let what = "its lines are not in the file as written, and several places are \
                                similar"
                        .to_owned();
                    let hint =
                        format!("lines {} and {}; add surrounding lines", one + 1, other + 1);
                    return Err(ChunkMismatch { what, hint: Some(hint) });
                }
            }
        }
        if is_at_end && start > self.next {
            return self.find(wanted, false);
        }
        let before =
            find_chunk_positions(&self.lines, wanted, 0).next().filter(|place| *place < self.next);
        let what = match before {
            Some(place) => format!(
                "its lines are at line {} of the file, before the previous chunk: chunks must be \
                 in file order",
                place + 1
            ),
            None => format!("its lines are not in the file: {}", quoted(&wanted.join("\n"))),
        };
        Err(ChunkMismatch { what, hint: nearest(self.text, &wanted.join("\n")) })
    }
}

/// Returns the positions at which the lines occur.
fn find_chunk_positions<'a, Line: AsRef<str>>(
    lines: &'a [Line],
    wanted: &'a [String],
    start: usize,
) -> impl Iterator<Item = usize> + 'a {
    let last = lines.len().checked_sub(wanted.len());
    let all = start..last.map_or(start, |last| last + 1);
    all.filter(move |at| lines[*at..].iter().zip(wanted).all(|(a, b)| a.as_ref() == b))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Applies the chunks of an update to a text.
    fn patched(text: &str, chunks: &str) -> Result<(String, String), String> {
        let patch = format!("{BEGIN}\n*** Update File: a\n{chunks}\n{END}\n");
        let files = parse(&patch)?;
        let PatchAction::Update { chunks, .. } = &files[0].action else { panic!("{files:?}") };
        match apply(text.as_bytes(), chunks) {
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
    fn check(text: &str, chunks: &str, expected: &str) {
        assert_eq!(patched(text, chunks), Ok((expected.to_owned(), String::new())));
    }

    #[test]
    fn chunks_are_applied_in_order() {
        check("a\nb\nc\nb\n", "@@\n a\n-b\n+x\n@@\n-b\n+y", "a\nx\nc\ny\n");
        check("f\n b\ng\n b\n", "@@ g\n- b\n+ x", "f\n b\ng\n x\n");
        check("A\n f\n x\nB\n f\n x\n", "@@ B\n@@  f\n- x\n+ y", "A\n f\n x\nB\n f\n y\n");
        check("a\nb\n", " a\n-b\n+c", "a\nc\n");
        check("a\r\nb\r\n", "@@\n-b\n+c\n+d", "a\r\nc\r\nd\r\n");
        check("x\na\nx\n", "@@\n-x\n+y\n*** End of File", "x\na\ny\n");
        check("a\nb\n", "@@ -1,2 +1,2 @@ a\n-b\n+c", "a\nc\n");
        check("x\nf\n b\n", "@@ f\n f\n- b\n+ c", "x\nf\n c\n");
        check("a\n\nb\n", "@@\n a\n\n-b\n+c", "a\n\nc\n");
        check("a\nb\n", "@@\n-a\n+c\n\n@@\n-b\n+d\n", "c\nd\n");
        check("a\nb\n", "@@\n-a\n-b", "");
    }

    #[test]
    fn lines_are_added_at_the_end_or_behind_a_header() {
        check("a\n", "@@\n+b", "a\nb\n");
        check("a", "@@\n+b", "a\nb\n");
        check("", "@@\n+b", "b\n");
        check("a\nb\n", "@@ a\n+x", "a\nx\nb\n");
        check("a\nb", "@@\n-b\n+c", "a\nc");
    }

    #[test]
    fn lines_in_another_form_are_found() {
        let (text, forgiven) =
            patched("\tif a:  \n\t\tb\n", "@@\n     if a:\n-        b\n+        c").unwrap();
        assert_eq!(text, "\tif a:  \n\t\tc\n");
        assert_eq!(forgiven, "whitespace at line ends; tabs or spaces in the indent");
        let (text, _) = patched("\u{2013} \u{201C}a\u{201D}\nx\n", "@@ - \"a\"\n-x\n+y").unwrap();
        assert_eq!(text, "\u{2013} \u{201C}a\u{201D}\ny\n");
    }

    #[test]
    fn what_has_no_place_is_told() {
        let refused = |text, chunks| patched(text, chunks).unwrap_err();
        assert_eq!(
            refused("let moon = 1;\n", "@@\n-let moons = 1;\n+x"),
            "chunk 1 of 1: its lines are not in the file: 'let moons = 1;'|the nearest lines are:\n\
             1: let moon = 1;"
        );
        assert!(
            refused("a\n", "@@ zzz\n-a")
                .starts_with("chunk 1 of 1: the line 'zzz' of `@@` is not in the file")
        );
        assert!(refused("a\nb\n", "@@\n-b\n@@\n-a").contains("at line 1 of the file, before"));
        assert!(refused("a \nx\na\t\n", "@@\n-a").contains("|lines 1 and 3"));
    }

    #[test]
    fn a_patch_is_read_with_its_files() {
        let text = "\n*** Begin Patch\n*** Add File: n/a.txt\n+one\n+\n+two\n\n*** Delete File: b\n\
                    *** Update File: c\n*** Move to: d\n@@ f\n x\n*** End Patch\n";
        let files = parse(text).unwrap();
        let paths: Vec<&str> = files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(paths, ["n/a.txt", "b", "c"]);
        assert_eq!(files[0].action, PatchAction::Add("one\n\ntwo\n".to_owned()));
        let PatchAction::Update { move_to, chunks } = &files[2].action else { panic!("{files:?}") };
        assert_eq!((move_to.as_deref(), chunks.len()), (Some("d"), 1));
        let wrapped = format!("apply_patch <<'EOF'\n{}\nEOF", text.trim());
        assert_eq!(parse(&wrapped).as_ref(), Ok(&files));
    }

    #[test]
    fn what_is_wrong_with_a_patch_is_said() {
        let wrong = |inside: &str| parse(&format!("{BEGIN}\n{inside}\n{END}")).unwrap_err();
        assert_eq!(parse("x"), Err(format!("the first line must be `{BEGIN}`")));
        assert_eq!(parse(BEGIN), Err(format!("the last line must be `{END}`")));
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
