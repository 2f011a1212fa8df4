//! Searches texts, over a tree and reading.

use std::borrow::Cow;
use std::collections::VecDeque;

use jaato_types::files::{
    FileKind, FileSearch, SEARCH_CONTEXT_LINES_MAX, SEARCH_MATCHES_MAX, SearchedLine, SearchedPage,
};
use jaato_types::{Error, ErrorKind, Result};
use regex::bytes::{Regex, RegexBuilder};

use super::pattern::Pattern;
use super::tree::{Looks, Tree};
use super::{joined, named, whole};
use crate::context::Reporter;
use crate::environment::Files;
use crate::environment::searched::{
    PageFiller, matches_in, searched_line, without_end, wrong_regex,
};

/// Bytes of a regular expression, compiled: one that explodes is refused.
const PROGRAM_BYTES_MAX: usize = 10 * 1024 * 1024;

/// A file with a zero among so many of its first bytes is no text.
const BINARY_LOOK_BYTES: usize = 8 * 1024;

/// Files that are searched before a page tells how far it has come.
const PROGRESS_FILES: usize = 64;

/// A search.
pub(in crate::environment) struct Searching {
    regex: Regex,
    patterns: Vec<Pattern>,
    context_lines: usize,
    file_bytes_max: Option<u64>,
    path: String,
    /// None where the path names a file.
    tree: Option<Tree>,
    /// The file that is searched: its path from where the search began, and whether its size
    /// matters.
    pending: Option<String>,
    /// What was found in a file and is not told.
    lines: VecDeque<SearchedLine>,
    /// The file of these lines.
    lines_of: String,
    filler: PageFiller,
    is_over: bool,
}

impl Searching {
    /// Begins.
    pub(in crate::environment) async fn begin<F: Files + ?Sized>(
        files: &F,
        host: &Reporter,
        search: FileSearch,
    ) -> Result<Self> {
        let regex = compiled(&search.pattern, search.ignore_case)?;
        let patterns = search.files.iter().map(|it| file_pattern(it)).collect::<Result<_>>()?;
        let mut searching = Self {
            regex,
            patterns,
            context_lines: search.context_lines.min(SEARCH_CONTEXT_LINES_MAX),
            file_bytes_max: search.file_bytes_max,
            path: search.path,
            tree: None,
            pending: None,
            lines: VecDeque::new(),
            lines_of: String::new(),
            filler: PageFiller::new(search.limit),
            is_over: false,
        };
        if !searching.path.is_empty() {
            let facts = files.stat(host, named(&searching.path)).await?;
            match facts.kind {
                FileKind::Folder => {}
                FileKind::File => {
                    searching.pending = Some(String::new());
                    return Ok(searching);
                }
                FileKind::Link | FileKind::Other => {
                    let text = format!("cannot search `{}`: it is not a file", searching.path);
                    return Err(Error::new(ErrorKind::Conflict, text));
                }
            }
        }
        let looks = Looks {
            path: searching.path.clone(),
            include_ignored: search.include_ignored,
            include_hidden: search.include_hidden,
            leave_out: search.leave_out,
            ..Looks::default()
        };
        searching.tree = Some(Tree::begin(files, host, looks).await?);
        Ok(searching)
    }

    /// Gives the next page; none at the end.
    pub(in crate::environment) async fn next<F: Files + ?Sized>(
        &mut self,
        files: &F,
        host: &Reporter,
    ) -> Result<Option<SearchedPage>> {
        if self.is_over {
            return Ok(None);
        }
        for _ in 0..PROGRESS_FILES {
            if self.tell() {
                return Ok(Some(self.filler.take()));
            }
            if self.pending.is_none() {
                self.pending = self.next_file(files, host).await?;
            }
            let Some(path) = self.pending.clone() else {
                self.is_over = true;
                break;
            };
            self.search_file(files, host, &path).await?;
            self.pending = None;
        }
        Ok(Some(self.filler.take()))
    }

    /// Puts lines on the page; true when that is full.
    fn tell(&mut self) -> bool {
        while let Some(line) = self.lines.pop_front() {
            self.filler.push(&self.lines_of, line);
            if self.filler.is_full() {
                return true;
            }
        }
        false
    }

    /// Finds the next file that is searched.
    async fn next_file<F: Files + ?Sized>(
        &mut self,
        files: &F,
        host: &Reporter,
    ) -> Result<Option<String>> {
        let Some(tree) = &mut self.tree else { return Ok(None) };
        loop {
            let entry = tree.next_entry(files, host).await?;
            tree.take_unreadable().into_iter().for_each(|it| self.filler.push_unreadable(it));
            let Some(entry) = entry else { return Ok(None) };
            let is_wanted = || {
                self.patterns.is_empty() || self.patterns.iter().any(|it| it.matches(&entry.path))
            };
            if entry.kind != FileKind::File || !is_wanted() {
                continue;
            }
            if self.file_bytes_max.is_some_and(|bytes_max| entry.size > bytes_max) {
                self.filler.totals.files_too_large += 1;
                continue;
            }
            return Ok(Some(entry.path));
        }
    }

    async fn search_file<F: Files + ?Sized>(
        &mut self,
        files: &F,
        host: &Reporter,
        path: &str,
    ) -> Result<()> {
        let place = if path.is_empty() { self.path.clone() } else { joined(&self.path, path) };
        let bytes = match whole(files, host, &place).await {
            Ok(bytes) => bytes,
            Err(error) if error.kind == ErrorKind::Cancelled => return Err(error),
            // Nobody asked for this very file: it went meanwhile, or cannot be read.
            Err(error) if error.kind == ErrorKind::NotFound && !path.is_empty() => return Ok(()),
            Err(error) => {
                self.filler.push_unreadable(format!("`{place}`: {}", error.message));
                return Ok(());
            }
        };
        let Some(text) = text(&bytes) else {
            self.filler.totals.files_binary += 1;
            return Ok(());
        };
        let is_told = !self.filler.is_enough();
        let (lines, matches) = found(&self.regex, &text, self.context_lines, is_told);
        let totals = &mut self.filler.totals;
        totals.files_searched += 1;
        totals.matches += matches;
        totals.files_with_matches += u64::from(matches > 0);
        self.lines = lines;
        path.clone_into(&mut self.lines_of);
        Ok(())
    }
}

fn compiled(pattern: &str, ignore_case: bool) -> Result<Regex> {
    let built = RegexBuilder::new(pattern)
        .case_insensitive(ignore_case)
        .multi_line(true)
        .size_limit(PROGRAM_BYTES_MAX)
        .build();
    built.map_err(|error| wrong_regex(pattern, error))
}

fn file_pattern(pattern: &str) -> Result<Pattern> {
    match pattern.contains('/') {
        true => Pattern::new(pattern),
        false => Pattern::new(&format!("**/{pattern}")),
    }
}

/// Makes text of a file's bytes, by the mark at its beginning if there is one; none where it is no
/// text. What is no UTF-8 stays as it is.
fn text(bytes: &[u8]) -> Option<Cow<'_, [u8]>> {
    let wide = |rest: &[u8], unit: fn([u8; 2]) -> u16| {
        let units = rest.chunks_exact(2).map(|pair| unit([pair[0], pair[1]]));
        let text: String =
            char::decode_utf16(units).map(|it| it.unwrap_or(char::REPLACEMENT_CHARACTER)).collect();
        Some(Cow::Owned(text.into_bytes()))
    };
    match bytes {
        [0xef, 0xbb, 0xbf, rest @ ..] => Some(Cow::Borrowed(rest)),
        [0xff, 0xfe, rest @ ..] => wide(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => wide(rest, u16::from_be_bytes),
        _ => {
            let first = &bytes[..bytes.len().min(BINARY_LOOK_BYTES)];
            (!first.contains(&0)).then_some(Cow::Borrowed(bytes))
        }
    }
}

/// Finds the lines that are told, and counts all matches.
fn found(
    regex: &Regex,
    text: &[u8],
    context_lines: usize,
    is_told: bool,
) -> (VecDeque<SearchedLine>, u64) {
    let (mut told, mut count) = (VecDeque::new(), 0);
    let mut before: VecDeque<(u64, &[u8])> = VecDeque::new();
    let (mut after, mut matches_told) = (0, 0);
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    let lines = (!text.is_empty()).then(|| text.split(|byte| *byte == b'\n'));
    for (number, line) in (1..).zip(lines.into_iter().flatten()) {
        let line = without_end(line);
        let matches = matches_in(|each| {
            regex.find_iter(line).for_each(|found| each(found.start(), found.end()));
        });
        count += matches.len() as u64;
        if !is_told || matches_told > SEARCH_MATCHES_MAX {
            continue;
        }
        if matches.is_empty() {
            if after > 0 {
                after -= 1;
                told.push_back(searched_line(number, line, &[]));
            } else if context_lines > 0 {
                before.truncate(context_lines - 1);
                before.push_front((number, line));
            }
            continue;
        }
        while let Some((number, line)) = before.pop_back() {
            told.push_back(searched_line(number, line, &[]));
        }
        matches_told += matches.len();
        told.push_back(searched_line(number, line, &matches));
        after = context_lines;
    }
    (told, count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(
        pattern: &str,
        text: &str,
        context_lines: usize,
        expected: &[(u64, &[(usize, usize)])],
    ) {
        let regex = compiled(pattern, false).unwrap();
        let (lines, _) = found(&regex, text.as_bytes(), context_lines, true);
        let lines: Vec<_> = lines.iter().map(|it| (it.number, it.matches.as_slice())).collect();
        assert_eq!(lines, expected, "`{pattern}`");
    }

    #[test]
    fn lines_around_a_match_are_told_once_each() {
        let text = "1\n2 x x\n3\n4\n5 x\n6\n7\n8\n";
        check("x", text, 0, &[(2, &[(2, 3), (4, 5)]), (5, &[(2, 3)])]);
        let x = &[(2, 3)][..];
        check(
            "5 x|2",
            text,
            1,
            &[(1, &[]), (2, &[(0, 1)]), (3, &[]), (4, &[]), (5, &[(0, 3)]), (6, &[])],
        );
        check(
            "[25] x",
            text,
            2,
            &[(1, &[]), (2, &[(0, 3)]), (3, &[]), (4, &[]), (5, &[(0, 3)]), (6, &[]), (7, &[])],
        );
        assert_eq!(x.len(), 1);
    }

    #[test]
    fn an_end_of_a_line_is_no_part_of_it() {
        check("b$", "ab\r\nb\n", 0, &[(1, &[(1, 2)]), (2, &[(0, 1)])]);
        check("^$", "a\n\nb", 0, &[(2, &[(0, 0)])]);
        check("x*", "xx y\nz\n", 0, &[(1, &[(0, 2)]), (2, &[(0, 0)])]);
        check(".", "", 0, &[]);
    }

    #[test]
    fn a_mark_at_the_beginning_says_what_text_it_is() {
        assert_eq!(text(b"\xef\xbb\xbfa").unwrap().as_ref(), b"a");
        assert_eq!(text(b"\xff\xfea\0\xe9\0").unwrap().as_ref(), "a\u{e9}".as_bytes());
        assert_eq!(text(b"\xfe\xff\0a").unwrap().as_ref(), b"a");
        assert_eq!(text(b"a\xff").unwrap().as_ref(), b"a\xff");
        assert!(text(b"a\0b").is_none());
    }

    #[test]
    fn a_regular_expression_that_explodes_is_refused() {
        for pattern in ["((a{1000}){1000}){1000}", "(a", r"(a)\1", "(?=a)"] {
            let error = compiled(pattern, false).unwrap_err();
            assert_eq!(error.kind, ErrorKind::InvalidArguments, "{pattern}");
            assert!(!error.message.contains('\n') && error.message.len() < 200, "{error:?}");
        }
    }
}
