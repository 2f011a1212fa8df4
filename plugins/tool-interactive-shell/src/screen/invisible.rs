//! Detects invisible characters, which must not reach the reader of the text.

/// The first character without width (combining marks begin here).
pub(super) const FIRST_WITHOUT_WIDTH: char = '\u{300}';

/// Returns true for the most common characters beyond Latin, which have a width. Avoiding a table
/// lookup for them makes wide text a fifth faster.
pub(super) fn is_common_letter(character: char) -> bool {
    matches!(character,
        '\u{2500}'..='\u{27bf}'
        | '\u{3041}'..='\u{3096}'
        | '\u{30a1}'..='\u{30fa}'
        | '\u{3400}'..='\u{9fff}'
        | '\u{ac00}'..='\u{d7a3}')
}

/// Returns true for a character that shows nothing and only reverses, hides or smuggles text:
/// directions, invisible operators, tags. Characters that shape adjacent letters (joiners,
/// variation selectors) stay.
pub(super) fn is_invisible(character: char) -> bool {
    matches!(character,
        '\u{61c}'
        | '\u{180e}'
        | '\u{200b}'
        | '\u{200e}'..='\u{200f}'
        | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}'
        | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use unicode_width::UnicodeWidthChar as _;

    use super::*;

    /// The function is called only for characters without width.
    #[test]
    fn invisible_characters_have_no_width() {
        for character in ('\0'..=char::MAX).filter(|character| is_invisible(*character)) {
            assert!(matches!(character.width(), Some(0) | None), "{character:?}");
            assert!(character >= FIRST_WITHOUT_WIDTH);
        }
    }

    #[test]
    fn common_letters_have_a_width() {
        for character in ('\0'..=char::MAX).filter(|character| is_common_letter(*character)) {
            assert!(character.width() > Some(0), "{character:?}");
        }
    }

    #[test]
    fn letters_marks_and_joiners_are_not_invisible() {
        for seen in ['a', 'é', '\u{301}', '漢', '\u{200d}', '\u{fe0f}', '🦀', '\u{2027}'] {
            assert!(!is_invisible(seen), "{seen:?}");
        }
        for unseen in ['\u{202e}', '\u{2066}', '\u{200b}', '\u{feff}', '\u{e0041}'] {
            assert!(is_invisible(unseen), "{unseen:?}");
        }
    }
}
