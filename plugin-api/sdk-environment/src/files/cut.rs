//! Results that are too large to be told: their beginning, and a file with the whole.

use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use jaato_types::Result;
use jaato_types::files::{RESULT_CHARS_MAX, ResultCut, ResultKept};
use rustix::fs::{AtFlags, Mode, OFlags, openat, unlinkat};
use rustix::io::Errno;

use super::draft::errno_of;
use super::errors::{self, Verb};
use super::{Confined, RACES_MAX};

/// Characters of a file's name, without its number.
const NAME_CHARS_MAX: usize = 64;

/// A text is cut at a line's end where that keeps so much of it.
const KEPT_PERCENT_MIN: usize = 80;

impl Confined {
    /// Cuts a large result; the whole goes into a file of its own in the temporary folder. Bytes
    /// that are no text are told as `\u{fffd}`; the file has them as they are.
    pub fn cut_result(&self, request: &ResultCut, result: &[u8]) -> Result<ResultKept> {
        let chars_max = request.chars_max.unwrap_or(RESULT_CHARS_MAX).min(RESULT_CHARS_MAX);
        // A character has at most four bytes, and what is no text at most becomes three of one.
        let looked_at = result.len().min(chars_max.saturating_mul(4).saturating_add(8));
        let text = String::from_utf8_lossy(&result[..looked_at]);
        let bytes = result.len() as u64;
        let Some((end, _)) = text.char_indices().nth(chars_max) else {
            let text = text.into_owned();
            return Ok(ResultKept {
                text,
                path: None,
                bytes,
                is_cut: false,
                ..ResultKept::default()
            });
        };
        let text = told(&text[..end]).to_owned();
        let path = self.keep(&request.name, result)?;
        Ok(ResultKept { text, path, bytes, is_cut: true, ..ResultKept::default() })
    }

    fn keep(&self, name: &str, result: &[u8]) -> Result<Option<String>> {
        let Some(temporary) = &self.temporary else { return Ok(None) };
        let folder = Arc::clone(temporary.handle());
        let (stem, ending) = sanitized(name);
        for _ in 0..RACES_MAX {
            let number = self.results.fetch_add(1, Ordering::Relaxed) + 1;
            let name = format!("{stem}-{number}{ending}");
            let shown = temporary.shown().join(&name);
            let failed = |errno| errors::failed(Verb::Write, &shown, errno);
            let flags =
                OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            // What runs in the environment may be another user.
            let file = match openat(&*folder, &name, flags, Mode::from_raw_mode(0o644)) {
                Ok(file) => file,
                Err(Errno::EXIST) => continue,
                Err(errno) => return Err(failed(errno)),
            };
            if let Err(error) = std::fs::File::from(file).write_all(result) {
                // The error tells more than what becomes of half a file.
                let _ = unlinkat(&*folder, &name, AtFlags::empty());
                return Err(failed(errno_of(&error)));
            }
            return Ok(Some(shown.to_string_lossy().into_owned()));
        }
        Err(errors::keeps_changing(Verb::Write, &temporary.shown().join(stem)))
    }
}

fn told(text: &str) -> &str {
    match text.rfind('\n') {
        Some(end) if (end + 1) * 100 > text.len() * KEPT_PERCENT_MIN => &text[..=end],
        _ => text,
    }
}

/// Makes a file's name of whatever it is: letters, digits, `-`, `_` and `.`, not hidden, its ending
/// apart.
fn sanitized(name: &str) -> (String, String) {
    let is_plain = |sign: char| sign.is_ascii_alphanumeric() || "-_.".contains(sign);
    let plain: String = name.chars().map(|sign| if is_plain(sign) { sign } else { '_' }).collect();
    let plain = plain.trim_start_matches(['.', '_', '-']);
    let plain = &plain[..plain.len().min(NAME_CHARS_MAX)];
    let path = Path::new(plain);
    let stem = path.file_stem().and_then(|it| it.to_str()).filter(|it| !it.is_empty());
    let ending = path.extension().and_then(|it| it.to_str()).filter(|it| !it.is_empty());
    let ending = ending.map(|it| format!(".{it}")).unwrap_or_else(|| ".txt".to_owned());
    (stem.unwrap_or("result").to_owned(), ending)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, stem: &str, ending: &str) {
        assert_eq!(sanitized(name), (stem.to_owned(), ending.to_owned()));
    }

    #[test]
    fn a_name_is_plain_whatever_was_asked() {
        check("build.log", "build", ".log");
        check("../../etc/passwd", "etc_passwd", ".txt");
        check("/etc/cron.d/x", "etc_cron", ".d_x");
        check("", "result", ".txt");
        check("...", "result", ".txt");
        check(".bashrc", "bashrc", ".txt");
        check("a\0b\nc.js on", "a_b_c", ".js_on");
        check("ümläut", "ml_ut", ".txt");
        check("a.tar.gz", "a.tar", ".gz");
        check(&"x".repeat(500), &"x".repeat(64), ".txt");
        check("a.", "a", ".txt");
    }

    #[test]
    fn a_text_is_cut_at_a_line_where_that_keeps_most() {
        assert_eq!(told("123456789\nab"), "123456789\n");
        assert_eq!(told("1\nabcdefghij"), "1\nabcdefghij");
        assert_eq!(told("abc"), "abc");
    }
}
