//! Searches the files of a batch in sequence.

use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use grep_matcher::{LineTerminator, Matcher as _};
use grep_regex::RegexMatcher;
use grep_searcher::{
    BinaryDetection, MmapChoice, Searcher, SearcherBuilder, Sink, SinkContext, SinkContextKind,
    SinkMatch,
};
use jaato_types::files::{FileSearch, SEARCH_MATCHES_MAX, SearchTotals, SearchedLine};

use super::super::folder::SearchableFolder;
use super::super::lines::{collect_matches, searched_line, without_line_end};
use super::coordinator::{
    FileMatches, FileSearchBatch, FileSearchJob, FileSearchSource, SearchCoordinator,
};
use crate::errors;

/// A file is binary if this many of its first bytes contain a zero.
const BINARY_LOOK_BYTES: usize = 8 * 1024;
/// Files up to this size are read in full. Larger files are read through a buffer.
const WHOLE_BYTES_MAX: u64 = 1024 * 1024;
/// The longest line, with its context, in a file that is not read in full.
const LINE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// The approximate bytes of lines that are passed on at once.
const PIECE_BYTES: usize = 64 * 1024;

/// Searches files on one thread.
pub(super) struct FileSearcher {
    matcher: RegexMatcher,
    searcher: Searcher,
    file_bytes_max: Option<u64>,
    counts: bool,
    bytes: Vec<u8>,
}

/// The counts of a batch.
#[derive(Default)]
struct BatchCounts {
    totals: SearchTotals,
    unreadable: Vec<String>,
}

impl Clone for FileSearcher {
    fn clone(&self) -> Self {
        Self {
            matcher: self.matcher.clone(),
            searcher: self.searcher.clone(),
            file_bytes_max: self.file_bytes_max,
            counts: self.counts,
            bytes: Vec::new(),
        }
    }
}

impl FileSearcher {
    pub(super) fn new(matcher: RegexMatcher, context_lines: usize, request: &FileSearch) -> Self {
        let searcher = SearcherBuilder::new()
            .line_terminator(LineTerminator::crlf())
            .line_number(true)
            .multi_line(request.multi_line)
            .before_context(context_lines)
            .after_context(context_lines)
            .binary_detection(BinaryDetection::none())
            // If a mapped file shrinks, the process dies.
            .memory_map(MmapChoice::never())
            .heap_limit(Some(LINE_BYTES_MAX))
            .build();
        let (file_bytes_max, counts) = (request.file_bytes_max, request.counts);
        Self { matcher, searcher, file_bytes_max, counts, bytes: Vec::new() }
    }

    /// Searches a batch and passes on its results.
    pub(super) fn search_batch<F: SearchableFolder>(
        &mut self,
        coordinator: &Arc<SearchCoordinator<F>>,
        number: u64,
        batch: FileSearchBatch<F>,
    ) {
        let mut known = BatchCounts::default();
        for job in batch.jobs {
            if coordinator.is_cancelled() {
                break;
            }
            self.search_job(coordinator, number, job, &mut known);
        }
        coordinator.finish_batch(number, &known.totals, known.unreadable);
    }

    fn search_job<F: SearchableFolder>(
        &mut self,
        coordinator: &Arc<SearchCoordinator<F>>,
        number: u64,
        job: FileSearchJob<F>,
        known: &mut BatchCounts,
    ) {
        let (file, size, shown) = match job.source {
            FileSearchSource::Open { file, size, shown } => (file, size, Some(shown)),
            FileSearchSource::In { folder, name_bytes } => {
                let name = OsStr::from_bytes(&job.path[job.path.len() - name_bytes..]);
                // One extra byte shows that a file is too large.
                let bytes_max = self.file_bytes_max.map_or(u64::MAX, |max| max.saturating_add(1));
                match folder.open_child(name, bytes_max) {
                    Ok(Some((_, size))) if self.file_bytes_max.is_some_and(|max| size > max) => {
                        known.totals.files_too_large += 1;
                        return;
                    }
                    Ok(Some((file, size))) => (file, size, None),
                    // The file is gone, or no longer a file.
                    Ok(None) => return,
                    Err(error) => return known.count_unreadable(&job.path, None, &error),
                }
            }
        };
        let mut sink = MatchLineBuilder {
            matcher: &self.matcher,
            coordinator,
            number,
            path: &job.path,
            lines: Vec::new(),
            bytes: 0,
            told: 0,
            is_over: self.counts || coordinator.is_limit_reached(),
            matches: 0,
        };
        let source = CancellableFile { file, left: size, coordinator };
        let searched = search_file(&mut self.searcher, &mut self.bytes, source, size, &mut sink);
        sink.send_matches();
        let matches = sink.matches;
        if self.counts && matches > 0 && !coordinator.is_limit_reached() {
            coordinator.add_matches(number, FileMatches::from_count(&job.path, matches));
        }
        match searched {
            Ok(TextDetection::Is) => known.totals.files_searched += 1,
            Ok(TextDetection::IsNot) => known.totals.files_binary += 1,
            Err(_) if coordinator.is_cancelled() => {}
            Err(error) => known.count_unreadable(&job.path, shown.as_deref(), &error),
        }
        known.totals.matches += matches;
        known.totals.files_with_matches += u64::from(matches > 0);
    }
}

/// Whether a file is text.
enum TextDetection {
    Is,
    IsNot,
}

/// Searches a file, up to the size that it had when it was opened.
fn search_file<F: SearchableFolder>(
    searcher: &mut Searcher,
    bytes: &mut Vec<u8>,
    mut source: CancellableFile<'_, F>,
    size: u64,
    sink: &mut MatchLineBuilder<'_, F>,
) -> io::Result<TextDetection> {
    bytes.clear();
    let matcher = sink.matcher;
    if size <= WHOLE_BYTES_MAX {
        source.read_all(bytes)?;
        if is_binary(bytes) {
            return Ok(TextDetection::IsNot);
        }
        searcher.search_slice(matcher, bytes, sink)?;
        return Ok(TextDetection::Is);
    }
    source.by_ref().take(BINARY_LOOK_BYTES as u64).read_to_end(bytes)?;
    if is_binary(bytes) {
        return Ok(TextDetection::IsNot);
    }
    searcher.search_reader(matcher, bytes.as_slice().chain(source), sink)?;
    Ok(TextDetection::Is)
}

/// Returns true if the file is binary. UTF-16 text has zeros too, but starts with a byte order
/// mark.
fn is_binary(bytes: &[u8]) -> bool {
    let first = &bytes[..bytes.len().min(BINARY_LOOK_BYTES)];
    let is_wide = first.starts_with(&[0xff, 0xfe]) || first.starts_with(&[0xfe, 0xff]);
    !is_wide && memchr::memchr(0, first).is_some()
}

impl BatchCounts {
    fn count_unreadable(&mut self, path: &[u8], shown: Option<&str>, error: &io::Error) {
        let path = String::from_utf8_lossy(path);
        let reason = errors::search_failure_reason(error);
        self.unreadable.push(format!("`{}`: {reason}", shown.unwrap_or(&path)));
    }
}

/// A file that is read up to its size when opened, unless the search is cancelled.
struct CancellableFile<'a, F: SearchableFolder> {
    file: F::File,
    left: u64,
    coordinator: &'a SearchCoordinator<F>,
}

impl<F: SearchableFolder> CancellableFile<'_, F> {
    /// Reads a small file into the buffer, in one call if possible.
    fn read_all(&mut self, bytes: &mut Vec<u8>) -> io::Result<()> {
        bytes.resize(usize::try_from(self.left).unwrap_or(0), 0);
        let mut filled = 0;
        while filled < bytes.len() {
            match self.read(&mut bytes[filled..]) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        bytes.truncate(filled);
        Ok(())
    }
}

impl<F: SearchableFolder> Read for CancellableFile<'_, F> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.coordinator.is_cancelled() {
            return Err(io::Error::from(io::ErrorKind::BrokenPipe));
        }
        let wanted = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        let count = self.file.read(&mut buffer[..wanted])?;
        self.left -= count as u64;
        Ok(count)
    }
}

/// Builds the answer's lines from the searcher's matches.
struct MatchLineBuilder<'a, F: SearchableFolder> {
    matcher: &'a RegexMatcher,
    coordinator: &'a SearchCoordinator<F>,
    number: u64,
    path: &'a [u8],
    lines: Vec<SearchedLine>,
    bytes: usize,
    /// The number of this file's matches in the answer.
    told: usize,
    /// Further matches are only counted.
    is_over: bool,
    matches: u64,
}

impl<F: SearchableFolder> MatchLineBuilder<'_, F> {
    /// Returns false if the search was cancelled.
    fn push_line(&mut self, line: SearchedLine) -> bool {
        self.bytes += line.text.len() + size_of::<SearchedLine>();
        self.lines.push(line);
        let is_enough = self.bytes >= PIECE_BYTES || self.coordinator.is_caller_waiting();
        !is_enough || self.send_matches()
    }

    fn send_matches(&mut self) -> bool {
        if self.lines.is_empty() {
            return true;
        }
        let (lines, bytes) = (std::mem::take(&mut self.lines), std::mem::take(&mut self.bytes));
        let piece = FileMatches { path: self.path.into(), lines, bytes, matches: None };
        self.coordinator.add_matches(self.number, piece)
    }
}

impl<F: SearchableFolder> Sink for MatchLineBuilder<'_, F> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        let block = without_line_end(found.bytes());
        let matches = collect_matches(|each| {
            let _: Result<(), _> = self.matcher.find_iter(block, |it| {
                each(it.start(), it.end());
                true
            });
        });
        self.matches += matches.len() as u64;
        self.is_over |= self.told >= SEARCH_MATCHES_MAX || self.coordinator.is_limit_reached();
        if self.is_over {
            return Ok(!self.coordinator.is_cancelled());
        }
        self.told += matches.len();
        let mut number = found.line_number().unwrap_or_default();
        // The block has several lines only if a match may span lines.
        let mut start = 0;
        loop {
            let end = memchr::memchr(b'\n', &block[start..]).map(|at| start + at + 1);
            let (line, is_last) = (&block[start..end.unwrap_or(block.len())], end.is_none());
            let in_line = |at: usize| at >= start && (is_last || at < start + line.len());
            let of_line: Vec<_> = matches
                .iter()
                .filter(|(begin, _)| in_line(*begin))
                .map(|(begin, end)| (begin - start, (end - start).min(line.len())))
                .collect();
            let continues = of_line.is_empty();
            let told = SearchedLine { continues, ..searched_line(number, line, &of_line) };
            if !self.push_line(told) || is_last {
                return Ok(!self.coordinator.is_cancelled());
            }
            (number, start) = (number + 1, start + line.len());
        }
    }

    fn context(&mut self, _: &Searcher, around: &SinkContext<'_>) -> io::Result<bool> {
        if self.is_over || *around.kind() == SinkContextKind::Other {
            return Ok(true);
        }
        let number = around.line_number().unwrap_or_default();
        Ok(self.push_line(searched_line(number, around.bytes(), &[])))
    }
}
