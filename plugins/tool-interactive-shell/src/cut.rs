//! Cuts a text to what fits into an answer. Pure.

/// Bytes of JSON that an output may take. The host lets 16 KiB of an answer through; the rest is for what stands
/// beside it.
pub const TEXT_BYTES_MAX: usize = 12 * 1024;

/// The part of them that the beginning gets: what was shown last says most of what the program does.
const HEAD_PART: usize = 4;

/// Bytes for the line between head and tail.
const GAP_BYTES: usize = 80;

/// A text, cut in the middle where it must be.
#[derive(Debug, PartialEq, Eq)]
pub struct Cut {
    /// The text.
    pub text: String,
    /// Bytes of it that were left out.
    pub bytes: usize,
    /// Line ends among them.
    pub lines: usize,
}

/// Cuts a text at so many bytes of JSON.
pub fn to(text: &str, json_bytes: usize) -> Cut {
    if text.chars().map(json_len).sum::<usize>() <= json_bytes {
        return Cut { text: text.to_owned(), bytes: 0, lines: 0 };
    }
    let room = json_bytes.saturating_sub(GAP_BYTES);
    let head = text[..fitting(text.char_indices(), room / HEAD_PART)].to_owned();
    let rest = &text[head.len()..];
    let backward = rest.char_indices().rev();
    let mut left = room - room / HEAD_PART;
    let mut from = rest.len();
    for (at, character) in backward {
        let Some(less) = left.checked_sub(json_len(character)) else { break };
        (left, from) = (less, at);
    }
    let (gone, tail) = rest.split_at(from);
    let (bytes, lines) = (gone.len(), gone.matches('\n').count());
    let text = format!("{head}\n[… {bytes} bytes with {lines} line ends left out …]\n{tail}");
    Cut { text, bytes, lines }
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

    #[test]
    fn a_short_text_is_whole() {
        assert_eq!(to("a\nb", 4), Cut { text: "a\nb".to_owned(), bytes: 0, lines: 0 });
    }

    #[test]
    fn a_long_one_keeps_its_ends_and_counts_what_is_gone() {
        let text: String = (0..10_000).map(|number| format!("{number}\n")).collect();
        let cut = to(&text, 2000);
        assert!(cut.text.starts_with("0\n1\n") && cut.text.ends_with("9998\n9999\n"));
        assert!(cut.text.len() + cut.text.matches('\n').count() <= 2000);
        let kept: usize = cut.text.lines().filter(|line| line.parse::<u32>().is_ok()).count();
        assert!(cut.lines.abs_diff(10_000 - kept) <= 1, "{} {kept}", cut.lines);
        let shown = cut.text.split("\n[… ").collect::<Vec<_>>();
        let tail = shown[1].split_once("…]\n").unwrap().1;
        assert_eq!(shown[0].len() + tail.len() + cut.bytes, text.len());
    }

    #[test]
    fn characters_stay_whole() {
        let cut = to(&"日".repeat(5000), 1000);
        assert!(cut.bytes.is_multiple_of(3) && cut.bytes > 0);
        assert!(serde_json_len(&cut.text) <= 1000);
        for hostile in ["\u{7}", "\"", "\\", "\u{85}"] {
            assert!(serde_json_len(&to(&hostile.repeat(5000), 1000).text) <= 1000, "{hostile:?}");
        }
    }

    fn serde_json_len(text: &str) -> usize {
        jaato_plugin_sdk::serde_json::to_string(text).unwrap().len() - 2
    }
}
