//! The tool `readFile`.

use jaato_plugin_sdk::files::{FileFacts, FileRead, READ_BYTES_MAX};
use jaato_plugin_sdk::prelude::*;

use super::{fully_seen_file, require_argument};
use crate::editor::Editor;
use crate::files::{
    CHANGED_BYTES_MAX, FileSnapshot, check_is_file, fetch_contents, not_text_error, read_facts,
};
use crate::page::{LinePage, PageContent};
use crate::plan::{absolute_path, resolve_links};
use crate::recover_changes::recover_unfinished_changes;
use crate::seen_files::SeenFile;
use crate::similar_names::{find_lookalike_path, missing_file_error};
use crate::text::{DecodedText, decode_bytes, detect_image_type, display_text as in_view};

/// The default and the maximum number of lines shown.
const LINES: u64 = 2000;
const LINES_MAX: u64 = 100_000;

/// The maximum number of bytes shown, as JSON, regardless of the session's limit.
const SHOWN_BYTES_MAX: usize = 256 * 1024;

/// Bytes of a result that are not the file's text: its heading and the notes.
const HEADING_BYTES: usize = 1024;

/// The output limit of the session if the host does not set it.
const OUTPUT_BYTES: usize = 16 * 1024;

/// Files up to this size are read completely, so that their lines are counted.
const WHOLE_BYTES_MAX: u64 = 1024 * 1024;

/// The number of bytes that are read first of a larger file.
const FIRST_BYTES: u64 = 256 * 1024;

/// The maximum number of bytes read to reach a line, because a file may have few line ends.
const PASSED_BYTES_MAX: u64 = 512 * 1024 * 1024;

/// The beginning of a PDF document. Some are valid text, but their content is compressed.
const PDF: &[u8] = b"%PDF-";

/// The maximum size of an image.
const IMAGE_BYTES_MAX: u64 = 10 * 1024 * 1024;

/// Read a text file, or look at an image. The first line gives lines, bytes and has_more.
#[derive(ToolInput)]
#[tool(
    name = "readFile",
    core,
    category = "filesystem",
    read_only,
    idempotent,
    open_world = false,
    auto_approval,
    available_if(
        environment_has = "files",
        reason = "in a session whose execution environment has files"
    ),
    example("Show me README.md", path = "README.md"),
    example("Show lines 100 to 150 of main.rs", path = "main.rs", offset = 100, limit = 51)
)]
struct ReadFile {
    /// The file.
    #[schemars(extend("x-jaato-touches" = "read"))]
    path: String,
    /// First line, from 1.
    #[schemars(range(min = 1))]
    offset: Option<u64>,
    /// Maximum lines.
    #[schemars(range(min = 1))]
    limit: Option<u64>,
}

impl Tool for ReadFile {
    type State = Editor;

    async fn call(self, cx: &Cx<Editor>) -> Result<Output> {
        // Without a history, no interrupted changes exist.
        let mended = recover_unfinished_changes(cx).await.unwrap_or_default();
        let path = require_argument("path", &self.path)?;
        self.check_range()?;
        let (path, facts) = match read_facts(cx, path).await? {
            Some(facts) => (path.to_owned(), facts),
            None => {
                let alike = find_lookalike_path(cx, path).await;
                let facts = match &alike {
                    Some(alike) => read_facts(cx, alike).await?,
                    None => None,
                };
                match alike.zip(facts) {
                    Some(found) => found,
                    None => return Err(missing_file_error(cx, path).await),
                }
            }
        };
        let path = path.as_str();
        check_is_file(path, &facts)?;
        let length = if facts.size <= WHOLE_BYTES_MAX { WHOLE_BYTES_MAX } else { FIRST_BYTES };
        let (first, has_more) = read_chunk(cx, path, 0, length).await?;
        if let Some(kind) = detect_image_type(&first) {
            return read_image(cx, path, kind, facts).await;
        }
        if first.starts_with(PDF) {
            let error = not_text_error(path, &first, facts.size);
            return Err(error.with_hint(format!(
                "convert it to text with a command, such as `pdftotext {path} -`, or ask the \
                 user to attach it (`--attach`)"
            )));
        }
        let page = self.new_page(cx).await;
        // The file's actual name may differ from the name in the call.
        let named = Self { path: path.to_owned(), ..self };
        let read = match has_more {
            false => named.show_from_memory(cx, facts, first, page).await?,
            true => named.show_part(cx, facts, first, page).await?,
        };
        let mut text = read.format_excerpt(path, &named);
        for line in mended {
            text.push_str(&format!("\n[{line}]"));
        }
        Ok(Output::text(text))
    }
}

tool!(ReadFile);

/// The part of a file that was read.
struct ReadExcerpt {
    shown: PageContent,
    /// The number of lines in the file, if they were counted.
    total: Option<u64>,
    has_more: bool,
    /// The size of the file in bytes.
    size: u64,
    /// A note about the encoding.
    remark: Option<String>,
    line_ends: LineEnds,
}

/// The line ends of the lines read.
#[derive(Debug, Clone, Copy, Default)]
struct LineEnds {
    lf: usize,
    cr_lf: usize,
}

impl LineEnds {
    fn count_line_ends(&mut self, text: &str) {
        let cr_lf = memchr::memmem::find_iter(text.as_bytes(), b"\r\n").count();
        self.cr_lf += cr_lf;
        self.lf += memchr::memchr_iter(b'\n', text.as_bytes()).count() - cr_lf;
    }

    /// Describes the line ends, unless all are LF as shown.
    fn line_end_note(self) -> Option<String> {
        match (self.lf, self.cr_lf) {
            (_, 0) => None,
            (0, _) => Some("CRLF".to_owned()),
            (lf, cr_lf) => Some(format!("mixed ({cr_lf} CRLF, {lf} LF)")),
        }
    }
}

impl ReadFile {
    fn check_range(&self) -> Result<()> {
        let wrong = |text: &str| Err(Error::new(ErrorKind::InvalidArguments, text));
        match (self.offset, self.limit) {
            (Some(0), _) => wrong("offset must be a positive integer (1-indexed)"),
            (_, Some(0)) => wrong("limit must be a positive integer"),
            _ => Ok(()),
        }
    }

    /// Returns the number of the last line shown, or of the line before if none is shown.
    fn last_shown_line(&self, shown: &PageContent) -> u64 {
        self.offset.unwrap_or(1).saturating_add(shown.lines).saturating_sub(1)
    }

    async fn new_page(&self, cx: &Reporter) -> LinePage {
        let facts = cx.session().await.ok();
        let bytes = facts.and_then(|facts| facts.output_bytes_max).unwrap_or(OUTPUT_BYTES);
        let bytes = bytes.saturating_sub(HEADING_BYTES).min(SHOWN_BYTES_MAX);
        let lines = self.limit.unwrap_or(LINES).min(LINES_MAX);
        LinePage::new(self.offset.unwrap_or(1), lines, bytes)
    }

    /// Shows part of a file that is completely in memory.
    async fn show_from_memory(
        &self,
        cx: &Cx<Editor>,
        facts: FileFacts,
        bytes: Vec<u8>,
        page: LinePage,
    ) -> Result<ReadExcerpt> {
        let path = self.path.clone();
        let snapshot = FileSnapshot { facts, bytes: bytes.into() };
        let read = move |_: &Reporter| {
            let size = snapshot.bytes.len() as u64;
            let not_text = |_| not_text_error(&path, &snapshot.bytes, size);
            let DecodedText { text, charset } = decode_bytes(&snapshot.bytes).map_err(not_text)?;
            let mut page = page;
            let mut line_ends = LineEnds::default();
            line_ends.count_line_ends(&text);
            page.add_chunk(&in_view(text));
            let (shown, remark) = (page.finish(), charset.encoding_note());
            let total = Some(shown.total);
            let read = ReadExcerpt { shown, total, has_more: false, size, remark, line_ends };
            Ok((read, fully_seen_file(&snapshot)))
        };
        let (mut read, sight) = cx.blocking(read).await??;
        read.has_more = self.last_shown_line(&read.shown) < read.shown.total;
        self.remember_seen_lines(cx, sight).await?;
        Ok(read)
    }

    /// Shows part of a large file and reads no more of it than necessary.
    async fn show_part(
        &self,
        cx: &Cx<Editor>,
        facts: FileFacts,
        first: Vec<u8>,
        mut page: LinePage,
    ) -> Result<ReadExcerpt> {
        let path = self.path.as_str();
        // Its last character may be incomplete.
        if !is_utf_8_so_far(&first)
            && decode_bytes(&first)
                .map_or(true, |decoded| decoded.charset.encoding_note().is_some())
        {
            return self.read_encoded(cx, facts, &first, page).await;
        }
        let version = facts.version.clone();
        let (mut offset, mut size) = (first.len() as u64, facts.size);
        let (mut bytes, mut is_end) = (first, false);
        let (mut is_damaged, mut line_ends) = (false, LineEnds::default());
        loop {
            let text = take_text(&mut bytes, is_end, &mut is_damaged);
            line_ends.count_line_ends(&text);
            page.add_chunk(&text);
            if page.is_full() || is_end {
                break;
            }
            if page.is_before_first_line() && offset > PASSED_BYTES_MAX {
                let line = self.offset.unwrap_or(1);
                let text = format!("line {line} of {path} is after its first {offset} bytes");
                return Err(Error::new(ErrorKind::LimitReached, text)
                    .with_hint("read it with a command, such as `tail -c`"));
            }
            let length = if page.is_before_first_line() { READ_BYTES_MAX } else { FIRST_BYTES };
            let (next, more) = read_chunk(cx, path, offset, length).await?;
            offset += next.len() as u64;
            size = size.max(offset);
            is_end = !more || next.is_empty();
            bytes.extend_from_slice(&next);
        }
        let shown = page.finish();
        let total = is_end.then_some(shown.total);
        let has_more = total.is_none_or(|total| self.last_shown_line(&shown) < total);
        let remark = is_damaged.then(|| "UTF-8 with other bytes, shown as �".to_owned());
        self.remember_seen_lines(cx, SeenFile { version, digest: None, text: None }).await?;
        Ok(ReadExcerpt { shown, total, has_more, size, remark, line_ends })
    }

    /// Shows part of a large file in an encoding other than UTF-8. Such a file is read completely.
    async fn read_encoded(
        &self,
        cx: &Cx<Editor>,
        facts: FileFacts,
        first: &[u8],
        page: LinePage,
    ) -> Result<ReadExcerpt> {
        let head = &first[..first.len().min(8 * 1024)];
        if decode_bytes(head).is_err() || facts.size > CHANGED_BYTES_MAX {
            return Err(not_text_error(&self.path, head, facts.size));
        }
        let snapshot = fetch_contents(cx, &self.path, facts).await?;
        self.show_from_memory(cx, snapshot.facts, snapshot.bytes.into_bytes(), page).await
    }

    async fn remember_seen_lines(&self, cx: &Cx<Editor>, sight: SeenFile) -> Result<()> {
        let folder = &cx.state().editor_context(cx).await?.folder;
        let target = resolve_links(cx, &absolute_path(folder, &self.path)).await;
        cx.state().remember_seen_file(&target, sight);
        Ok(())
    }
}

impl ReadExcerpt {
    fn format_excerpt(&self, path: &str, asked: &ReadFile) -> String {
        let first = asked.offset.unwrap_or(1);
        let last = asked.last_shown_line(&self.shown);
        let size = self.size;
        let of = self.total.map_or_else(|| "?".to_owned(), |total| total.to_string());
        let lines = match self.shown.lines {
            0 => format!("none of {of}"),
            _ => format!("{first}-{last} of {of}"),
        };
        let is_whole = asked.offset.is_none() && asked.limit.is_none() && !self.has_more;
        let mut heading = match is_whole {
            true => format!("path: {path} | lines: {of} | size: {size}"),
            false => {
                let has_more = if self.has_more { "True" } else { "False" };
                format!("path: {path} | lines: {lines} | size: {size} | has_more: {has_more}")
            }
        };
        if let Some(line_ends) = self.line_ends.line_end_note() {
            heading.push_str(&format!(" | line ends: {line_ends}, shown as LF"));
        }
        if let Some(remark) = &self.remark {
            heading.push_str(&format!(" | encoding: {remark}"));
        }
        let mut text = format!("{heading}\n\n{}", self.shown.text);
        if self.has_more {
            text.push_str(&format!(
                "[… the next line is {}: readFile with offset={}]",
                last + 1,
                last + 1
            ));
        } else if self.shown.lines == 0 && first > 1 {
            text.push_str("[the file ends before that line]");
        }
        text
    }
}

/// Reads a chunk of a file. Returns true if more follows.
async fn read_chunk(
    cx: &Reporter,
    path: &str,
    offset: u64,
    length: u64,
) -> Result<(Vec<u8>, bool)> {
    let (path, length) = (path.to_owned(), Some(length));
    let read = FileRead { path, offset, length, ..FileRead::default() };
    let (told, bytes) = cx.files().read(read).await?;
    Ok((bytes, told.has_more))
}

/// Returns true if bytes are UTF-8 text whose last character may be incomplete.
fn is_utf_8_so_far(bytes: &[u8]) -> bool {
    match std::str::from_utf8(bytes) {
        Ok(_) => decode_bytes(bytes).is_ok(),
        Err(error) => {
            error.error_len().is_none() && decode_bytes(&bytes[..error.valid_up_to()]).is_ok()
        }
    }
}

/// Takes the text out of bytes, except an incomplete last character.
fn take_text(bytes: &mut Vec<u8>, is_end: bool, is_damaged: &mut bool) -> String {
    let mut text = String::new();
    let mut done = 0;
    while let Err(error) = std::str::from_utf8(&bytes[done..]) {
        let valid = done + error.valid_up_to();
        text.push_str(std::str::from_utf8(&bytes[done..valid]).unwrap_or_default());
        done = valid;
        match error.error_len() {
            None if !is_end => {
                bytes.drain(..done);
                return text;
            }
            length => {
                *is_damaged = true;
                text.push(char::REPLACEMENT_CHARACTER);
                done += length.unwrap_or(bytes.len() - done);
            }
        }
    }
    text.push_str(std::str::from_utf8(&bytes[done..]).unwrap_or_default());
    bytes.clear();
    text
}

/// Returns an image to the model.
async fn read_image(cx: &Cx<Editor>, path: &str, kind: &str, facts: FileFacts) -> Result<Output> {
    if facts.size > IMAGE_BYTES_MAX {
        let text = format!(
            "Image too large: {path} has {} bytes, but at most {IMAGE_BYTES_MAX} can be shown",
            facts.size
        );
        return Err(Error::new(ErrorKind::LimitReached, text));
    }
    let bytes = fetch_contents(cx, path, facts).await?.bytes.into_bytes();
    let size = bytes.len();
    cx.attach(kind, bytes).await?;
    Ok(Output::json(json!({ "path": path, "size": size, "type": "image", "mime_type": kind })))
}
