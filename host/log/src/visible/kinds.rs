//! Which characters are invisible, and which are meant to be joined by invisible ones.
//!
//! Ranges of Unicode 17: `Default_Ignorable_Code_Point` and the general category `Cf`
//! (<https://www.unicode.org/Public/UCD/latest/ucd/DerivedCoreProperties.txt>), without the visible
//! characters of `Cf` (such as Arabic number signs), and with line and paragraph separators and the
//! noncharacters.

/// Returns true if a character is not drawn, or affects how others are drawn.
pub fn is_invisible(sign: char) -> bool {
    let number = u32::from(sign);
    match number {
        0..0xad => false,
        0xad | 0x34f | 0x61c | 0x115f..=0x1160 | 0x17b4..=0x17b5 | 0x180b..=0x180f => true,
        // Zero-width spaces, joiners, directional marks and overrides, line and paragraph
        // separators.
        0x200b..=0x200f | 0x2028..=0x202e | 0x2060..=0x206f => true,
        0x3164 | 0xfe00..=0xfe0f | 0xfeff | 0xffa0 | 0xfff0..=0xfffb => true,
        0x13430..=0x1343f | 0x1bca0..=0x1bca3 | 0x1d173..=0x1d17a => true,
        // Tags and further variation selectors.
        0xe0000..=0xe0fff => true,
        0xfdd0..=0xfdef => true,
        _ => number & 0xfffe == 0xfffe,
    }
}

/// Returns true if a character is a picture, or can be shown as one.
pub(super) fn is_pictographic(sign: char) -> bool {
    matches!(u32::from(sign),
        0xa9 | 0xae | 0x203c | 0x2049 | 0x2122 | 0x2139
        | 0x2190..=0x21ff | 0x2300..=0x23ff | 0x2460..=0x24ff | 0x25a0..=0x27bf
        | 0x2900..=0x297f | 0x2b00..=0x2bff | 0x3030 | 0x303d | 0x3297 | 0x3299
        | 0x1f000..=0x1faff)
}

/// Returns true if a character is of a script that joins and separates its letters and marks with
/// zero-width characters: Arabic and related scripts, Mongolian, the scripts of and around India.
pub(super) fn is_letter_that_joins(sign: char) -> bool {
    matches!(u32::from(sign), 0x620..=0x8ff | 0x900..=0xdff | 0xf00..=0x109f | 0x1780..=0x18af | 0x1b00..=0x1bff | 0xa840..=0xa87f | 0xa8e0..=0xa8ff)
        && !is_invisible(sign)
}
