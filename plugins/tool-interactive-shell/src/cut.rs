//! Cuts a text to what fits into an answer. Pure.

/// Bytes of an answer that a host lets through which does not say how many.
const ANSWER_BYTES: usize = 16 * 1024;

/// Bytes of an answer for what stands beside an output; less where the whole has little room.
const BESIDE_BYTES: usize = 4 * 1024;

/// The part of them that the beginning gets: the first error of a build stands there, and what was
/// shown last says most of what the program does.
const HEAD_PART: usize = 3;

/// Bytes for the line between head and tail.
const GAP_BYTES: usize = 80;

/// A part is cut at a line's end where that keeps so much of it.
const KEPT_PERCENT_MIN: usize = 50;

/// Returns how many bytes of JSON an output may take, where an answer may have so many
/// (`session.output_bytes_max`).
pub fn text_bytes_max(answer_bytes: Option<usize>) -> usize {
    let answer = answer_bytes.unwrap_or(ANSWER_BYTES);
    answer - BESIDE_BYTES.min(answer * 2 / 3)
}

/// A text of which the middle was left out. `rest` is what follows the beginning, or the end of
/// that.
#[derive(Debug, PartialEq, Eq)]
pub struct Ends<'a> {
    /// Its beginning.
    pub head: &'a str,
    /// Its end.
    pub tail: &'a str,
}

impl<'a> Ends<'a> {
    /// Cuts a text at so many bytes of JSON: the beginning of `text`, and the end of what `rest`
    /// returns for what follows that. Both are cut between lines where that keeps most of them.
    pub fn of(text: &'a str, json_bytes: usize, rest: impl FnOnce(&'a str) -> &'a str) -> Self {
        let room = json_bytes.saturating_sub(GAP_BYTES);
        let head = page(text, room / HEAD_PART);
        let left = room - head.chars().map(json_len).sum::<usize>();
        let rest = rest(&text[head.len()..]);
        let mut from = rest.len();
        let mut free = left;
        for (at, character) in rest.char_indices().rev() {
            let Some(less) = free.checked_sub(json_len(character)) else { break };
            (free, from) = (less, at);
        }
        let tail = &rest[from..];
        let line = tail.find('\n').map_or("", |end| &tail[end + 1..]);
        let is_kept = line.len() * 100 >= tail.len() * KEPT_PERCENT_MIN;
        Self { head, tail: if is_kept && !line.is_empty() { line } else { tail } }
    }

    /// Joins them around a line that says what is left out.
    pub fn joined(&self, bytes: u64, lines: u64) -> String {
        let Self { head, tail } = self;
        let end = if head.is_empty() || head.ends_with('\n') { "" } else { "\n" };
        format!("{head}{end}[… {bytes} bytes with {lines} line ends left out …]\n{tail}")
    }
}

/// Returns whether a text takes no more than so many bytes of JSON.
pub fn fits(text: &str, json_bytes: usize) -> bool {
    text.len() <= json_bytes && text.chars().map(json_len).sum::<usize>() <= json_bytes
}

/// Returns as much of the beginning of a text as takes so many bytes of JSON: up to a line's end
/// where that keeps most of it.
pub fn page(text: &str, json_bytes: usize) -> &str {
    let page = &text[..fitting(text.char_indices(), json_bytes)];
    if page.len() == text.len() {
        return page;
    }
    match page.rfind('\n') {
        Some(end) if (end + 1) * 100 >= page.len() * KEPT_PERCENT_MIN => &page[..=end],
        _ => page,
    }
}

/// Returns where the characters end that fit.
fn fitting(characters: impl Iterator<Item = (usize, char)>, mut room: usize) -> usize {
    let mut end = 0;
    for (at, character) in characters {
        let Some(less) = room.checked_sub(json_len(character)) else { break };
        (room, end) = (less, at + character.len_utf8());
    }
    end
}

fn json_len(character: char) -> usize {
    match character {
        '"' | '\\' | '\n' | '\t' | '\r' => 2,
        character if character.is_control() => 6,
        character => character.len_utf8(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json_bytes(text: &str) -> usize {
        jaato_plugin_sdk::serde_json::to_string(text).unwrap().len() - 2
    }

    #[test]
    fn what_fits_is_counted_as_json_counts_it() {
        assert!(fits("a\nb", 4) && !fits("a\nb", 3));
        for hostile in ["\u{7}", "\"", "\\", "日", "x"] {
            let text = hostile.repeat(100);
            assert!(fits(&text, json_bytes(&text)), "{hostile:?}");
        }
        assert!(!fits(&"\u{7}".repeat(100), 599));
    }

    #[test]
    fn an_output_follows_what_an_answer_may_have() {
        let bounds = [None, Some(1024), Some(65_536), Some(1 << 20)].map(text_bytes_max);
        assert_eq!(bounds, [12 * 1024, 342, 60 * 1024, 1020 * 1024]);
    }

    #[test]
    fn a_long_one_keeps_whole_lines_of_its_ends() {
        let text: String = (0..10_000).map(|number| format!("{number}\n")).collect();
        let ends = Ends::of(&text, 2000, |rest| rest);
        assert!(ends.head.starts_with("0\n1\n") && ends.head.ends_with('\n'));
        assert!(ends.tail.ends_with("\n9998\n9999\n") && ends.tail.starts_with("97"));
        let bytes = (text.len() - ends.head.len() - ends.tail.len()) as u64;
        let joined = ends.joined(bytes, 1234);
        assert!(joined.contains(&format!("\n[… {bytes} bytes with 1234 line ends left out …]\n")));
        assert!(json_bytes(&joined) <= 2000, "{}", json_bytes(&joined));
    }

    #[test]
    fn characters_stay_whole_where_there_are_no_lines() {
        let text = "日".repeat(5000);
        let ends = Ends::of(&text, 1000, |rest| rest);
        assert!(ends.head.len().is_multiple_of(3) && ends.tail.len().is_multiple_of(3));
        let all = json_bytes(ends.head) + json_bytes(ends.tail);
        assert!((900..=1000 - GAP_BYTES).contains(&all), "{all}");
        for hostile in ["\u{7}", "\"", "\\", "\u{85}"] {
            let text = hostile.repeat(5000);
            let joined = Ends::of(&text, 1000, |rest| rest).joined(1, 1);
            assert!(json_bytes(&joined) <= 1000, "{hostile:?}");
        }
    }

    #[test]
    fn a_page_ends_with_a_line_if_one_ends_in_its_second_half() {
        assert_eq!(page("ab\ncd\n", 100), "ab\ncd\n");
        assert_eq!(page("abcdef\nghij", 10), "abcdef\n");
        assert_eq!(page("a\nbcdefghijkl", 10), "a\nbcdefgh");
        assert_eq!(page("", 10), "");
    }
}
