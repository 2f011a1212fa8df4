//! Tests which characters stay and which are escaped.

use super::*;

#[track_caller]
fn check_visible_text(written: &str, read: &str, to_be_exact: &str) {
    assert_eq!((&*visible_text(written), &*escape_lines(written)), (read, to_be_exact));
    assert_eq!(
        (visible_text(read), escape_lines(to_be_exact)),
        (read.into(), to_be_exact.into()),
        "not the same when done twice"
    );
}

#[track_caller]
fn assert_unchanged(written: &str) {
    check_visible_text(written, written, written);
}

#[track_caller]
fn is_written_out(sign: char) {
    let (written, shown) = (format!("a{sign}b"), format!("a<U+{:04X}>b", u32::from(sign)));
    check_visible_text(&written, &shown, &shown);
    assert_eq!(visible_name(&written), shown);
    let json_text = serde_json::to_string(&written).unwrap();
    let shown = visible_json(&json_text);
    assert!(shown.is_ascii(), "{shown}");
    assert_eq!(serde_json::from_str::<String>(&shown).unwrap(), written);
}

#[test]
fn terminal_control_characters_are_escaped() {
    for number in (0..0x20).chain(0x7f..0xa0).filter(|it| !matches!(it, 0x09 | 0x0a | 0x0d)) {
        is_written_out(char::from_u32(number).unwrap());
    }
    check_visible_text("a\x1b]0;x\x07", "a<U+001B>]0;x<U+0007>", "a<U+001B>]0;x<U+0007>");
}

#[test]
fn invisible_and_bidirectional_characters_are_escaped() {
    let turning = ('\u{202a}'..='\u{202e}')
        .chain('\u{2066}'..='\u{2069}')
        .chain(['\u{200e}', '\u{200f}', '\u{61c}']);
    let hiding = "\u{ad}\u{34f}\u{180e}\u{200b}\u{2028}\u{2029}\u{2060}\u{2064}\u{206a}\u{3164}\u{115f}\u{feff}\u{fff9}\u{fffe}\u{fdd0}\u{1d173}";
    let tags = ['\u{e0001}', '\u{e0041}', '\u{e007f}', '\u{e0100}', '\u{e01ef}', '\u{10ffff}'];
    turning.chain(hiding.chars()).chain(tags).for_each(is_written_out);
}

#[test]
fn every_zero_width_character_is_a_combining_mark_or_escaped() {
    for sign in '\u{80}'..=char::MAX {
        let written = format!("a{sign}b");
        let is_shown = escape_lines(&written) == written;
        assert!(!is_shown || sign.width().is_some(), "{:04X}", u32::from(sign));
        // Without a base character, not even a mark is shown.
        if sign.width() == Some(0) {
            assert_ne!(
                escape_lines(&sign.to_string()),
                sign.to_string(),
                "{:04X}",
                u32::from(sign)
            );
        }
    }
}

#[test]
fn line_ends_and_tabs_stay_in_texts_and_not_in_names() {
    assert_unchanged("a\n\tb");
    check_visible_text("a\r\nb", "a\nb", "a\nb");
    check_visible_text("a\rb\r", "a<U+000D>b<U+000D>", "a<U+000D>b<U+000D>");
    assert_eq!(visible_name("x\nhint: run\t"), "x<U+000A>hint: run<U+0009>");
    assert_eq!(visible_name("x"), "x");
}

#[test]
fn joined_emoji_and_letters_are_kept_in_readable_text() {
    let family = "👩\u{200d}👧, ❤\u{fe0f}\u{200d}🔥, 1\u{fe0f}\u{20e3}";
    check_visible_text(family, family, "👩<U+200D>👧, ❤<U+FE0F><U+200D>🔥, 1<U+FE0F>\u{20e3}");
    let persian = "می\u{200c}خواهم";
    check_visible_text(persian, persian, "می<U+200C>خواهم");
    let hindi = "क\u{94d}\u{200d}ष";
    check_visible_text(hindi, hindi, "क\u{94d}<U+200D>ष");
    // Characters that join nothing only hide text.
    check_visible_text("rm\u{200d} x\u{fe0f}", "rm<U+200D> x<U+FE0F>", "rm<U+200D> x<U+FE0F>");
}

#[test]
fn combining_marks_are_kept_on_letters_up_to_a_limit() {
    assert_unchanged("Việt e\u{301} हिन्दी ไทย שָׁלוֹם");
    check_visible_text("\u{301}a", "<U+0301>a", "<U+0301>a");
    let tower = format!("a{}", "\u{301}".repeat(6));
    let cut = format!("a{}<U+0301><U+0301>", "\u{301}".repeat(4));
    check_visible_text(&tower, &cut, &cut);
}

#[test]
fn characters_like_the_prompt_mark_are_escaped() {
    let looks = LOOKS_LIKE_THE_MARK.iter().collect::<String>();
    assert!(
        !visible_text(&looks).contains(LOOKS_LIKE_THE_MARK)
            && !escape_lines(&looks).contains(LOOKS_LIKE_THE_MARK)
    );
    assert_unchanged("│ | ┃ ▌");
}

#[test]
fn streamed_pieces_give_the_same_text_as_the_whole() {
    let whole = "👩\u{200d}👧 a\r\nb\rc e\u{301}\u{202e}";
    for at in (0..=whole.len()).filter(|at| whole.is_char_boundary(*at)) {
        let mut visible = VisibleStream::new(VisibilityMode::Read);
        let mut shown = visible.escape_piece(&whole[..at]).into_owned();
        shown.push_str(&visible.escape_piece(&whole[at..]));
        shown.push_str(&visible.end());
        assert_eq!(shown, visible_text(whole), "cut at {at}");
    }
}

#[test]
fn plain_json_is_left_as_it_is() {
    for plain in ["{\"a\":\"b\\n\"}", "{\"ä\":\"日本 │\"}"] {
        assert!(matches!(visible_json(plain), Cow::Borrowed(_)));
    }
}
