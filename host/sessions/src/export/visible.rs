//! Text for readers: control characters as symbols, and times.

use jiff::Timestamp;

/// Replaces control characters by visible symbols, so that a text cannot change a terminal or the
/// direction of the text around it. Keeps tabs, and writes each end of a line as `\n`.
pub fn visible_text(text: &str) -> String {
    text.replace("\r\n", "\n").chars().map(visible_character).collect()
}

fn visible_character(character: char) -> char {
    /// Where Unicode has a symbol for each of the first 32 control characters.
    const SYMBOLS: u32 = 0x2400;
    match character {
        '\n' | '\t' => character,
        '\0'..='\u{1f}' => {
            char::from_u32(SYMBOLS + u32::from(character)).unwrap_or(char::REPLACEMENT_CHARACTER)
        }
        '\u{7f}' => '\u{2421}',
        // The other control characters, and those that reorder the text after them.
        '\u{80}'..='\u{9f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
            char::REPLACEMENT_CHARACTER
        }
        _ => character,
    }
}

/// Formats a time in UTC for users.
pub fn format_time(at_ms: i64) -> String {
    match Timestamp::from_millisecond(at_ms) {
        Ok(at) => at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string(),
        Err(_) => "unknown time".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_become_symbols_and_lines_stay() {
        assert_eq!(visible_text("a\tb\r\nc\u{1b}[2J\0\u{7f}\r"), "a\tb\nc␛[2J␀␡␍");
        assert_eq!(visible_text("\u{202e}evil\u{2066}\u{9b}é"), "\u{fffd}evil\u{fffd}\u{fffd}é");
    }

    #[test]
    fn time_is_in_utc_and_impossible_times_are_unknown() {
        assert_eq!(format_time(1_795_876_665_332), "2026-11-28 14:37:45 UTC");
        assert_eq!(format_time(i64::MAX), "unknown time");
    }
}
