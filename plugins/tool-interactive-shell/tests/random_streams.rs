//! Any input, split in any way, gives the same screen, no panic and limited memory.
#![allow(clippy::unwrap_used, missing_docs)]

use std::fmt::Write as _;

use jaato_plugin_testkit::skip;
use tool_interactive_shell::screen::{EmulatedScreen, HISTORY_ROWS_MAX, ScreenCursor, UnseenText};

/// Pieces of test streams. Each kind has broken terminals before.
const PIECES: &[&[u8]] = &[
    b"plain text ",
    b"\r\n",
    b"\n",
    b"\r",
    b"\t",
    b"\x08",
    b"\x1b[A",
    b"\x1b[3;4H",
    b"\x1b[2J",
    b"\x1b[J",
    b"\x1b[1J",
    b"\x1b[3J",
    b"\x1b[K",
    b"\x1b[1K",
    b"\x1b[H",
    b"\x1b[2;4r",
    b"\x1b[r",
    b"\x1b[?6h",
    b"\x1b[?6l",
    b"\x1b[L",
    b"\x1b[2M",
    b"\x1b[3P",
    b"\x1b[4@",
    b"\x1b[5X",
    b"\x1b[2S",
    b"\x1b[2T",
    b"\x1bM",
    b"\x1bD",
    b"\x1bE",
    b"\x1b7",
    b"\x1b8",
    b"\x1bc",
    b"\x1b#8",
    b"\x1b[4h",
    b"\x1b[4l",
    b"\x1b[?7l",
    b"\x1b[?7h",
    b"\x1b[?1049h",
    b"\x1b[?1049l",
    b"\x1b[?47h",
    b"\x1b[?47l",
    b"\x1b[?3h",
    b"\x1b[9b",
    b"\x1b[99b",
    b"\x1b[6n",
    b"\x1b[c",
    b"\x1b[1;31m",
    b"\x1b[m",
    b"\x1b[38;2;1;2;3m",
    b"\x1b]0;title\x07",
    b"\x1b]8;;u\x1b\\",
    b"\x1b]",
    b"\x1bP",
    b"\x1b_",
    b"\x1b\\",
    b"\x07",
    b"\x18",
    b"\x1b(0",
    b"\x1b(B",
    b"\x0e",
    b"\x0f",
    b"\x1bH",
    b"\x1b[3g",
    b"\x1b[I",
    b"\x1b[Z",
    b"\x1b[?2026h",
    b"\x1b[?2026l",
    b"\x1b[99999;99999H",
    b"\x1b[65535S",
    b"\x1b[65535T",
    b"\x1b[65535L",
    b"\x1b[65535P",
    b"\x1b[65535@",
    "漢字".as_bytes(),
    "e\u{301}".as_bytes(),
    "👩\u{200d}🔬".as_bytes(),
    "\u{202e}".as_bytes(),
    b"\xff",
    b"\xc3",
    b"\xe6\xbc",
    b"\xf0\x9f",
    b"\x80",
    b"\x9b",
    b"0123456789abcdefghijklmnopq",
];

fn random_stream(random: &mut fastrand::Rng) -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..random.usize(1..120) {
        match random.u8(0..10) {
            0 => bytes.extend((0..random.usize(1..12)).map(|_| random.u8(..))),
            1 => {
                let mut sequence = String::from("\x1b[");
                for _ in 0..random.usize(0..4) {
                    let _ = write!(sequence, "{};", random.u16(0..30));
                }
                sequence.push(char::from(random.u8(b'@'..=b'~')));
                bytes.extend_from_slice(sequence.as_bytes());
            }
            _ => bytes.extend_from_slice(random.choice(PIECES).unwrap()),
        }
    }
    bytes
}

type SeenScreen =
    (Vec<String>, String, ScreenCursor, UnseenText, Vec<u8>, String, bool, Option<UnseenText>);

/// Returns everything that can be observed from outside.
fn seen_screen(screen: &mut EmulatedScreen) -> SeenScreen {
    let replies = screen.take_replies();
    let scrolled = screen.take_scrolled();
    (
        screen.visible_lines(),
        screen.ansi_text(),
        screen.cursor(),
        screen.unseen_text(),
        replies,
        screen.cursor_line(),
        screen.is_full_screen(),
        scrolled,
    )
}

#[test]
fn stream_split_anywhere_gives_the_same_screen() {
    for seed in 0..1500 {
        let mut random = fastrand::Rng::with_seed(seed);
        let bytes = random_stream(&mut random);
        let mut whole = EmulatedScreen::new(6, 17);
        whole.feed_output(&bytes);
        let expected = seen_screen(&mut whole);
        let mut single = EmulatedScreen::new(6, 17);
        bytes.chunks(1).for_each(|byte| single.feed_output(byte));
        assert_eq!(seen_screen(&mut single), expected, "seed {seed}, byte by byte: {bytes:?}");
        let mut cut = EmulatedScreen::new(6, 17);
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let (piece, others) = rest.split_at(random.usize(1..=rest.len().min(40)));
            cut.feed_output(piece);
            rest = others;
        }
        assert_eq!(seen_screen(&mut cut), expected, "seed {seed}: {bytes:?}");
    }
}

/// Returns a flood of lines, most of them plain, mixed with pieces of other kinds.
fn random_flood(random: &mut fastrand::Rng) -> Vec<u8> {
    let mut bytes = if random.bool() { random_stream(random) } else { b"$ \r\n".to_vec() };
    for number in 0..random.usize(0..6000) {
        match random.u16(0..4000) {
            0 => bytes.extend_from_slice(random.choice(PIECES).unwrap()),
            1..10 => bytes.extend_from_slice(b"a line that does not fit into one row"),
            10..400 => {}
            400..500 => bytes.extend_from_slice(b"\ta\tb"),
            _ => bytes.extend_from_slice(format!("line {number}").as_bytes()),
        }
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(random.choice(PIECES).unwrap());
    bytes
}

#[test]
fn flood_in_large_pieces_gives_the_same_screen() {
    for seed in 0..60 {
        let mut random = fastrand::Rng::with_seed(seed);
        let (mut whole, mut cut) = (EmulatedScreen::new(6, 17), EmulatedScreen::new(6, 17));
        for _ in 0..random.u8(1..5) {
            let bytes = random_flood(&mut random);
            whole.feed_output(&bytes);
            bytes.chunks(1000).for_each(|piece| cut.feed_output(piece));
            match random.u8(0..6) {
                0 => [&mut whole, &mut cut].map(|screen| screen.resize(9, 30)).into(),
                1 => [&mut whole, &mut cut].map(|screen| screen.resize(6, 17)).into(),
                2..4 => [&mut whole, &mut cut].map(EmulatedScreen::mark_seen).into(),
                _ => vec![],
            };
        }
        assert_eq!(seen_screen(&mut whole), seen_screen(&mut cut), "seed {seed}");
        assert_eq!(
            (whole.processed_bytes(), whole.line_feeds()),
            (cut.processed_bytes(), cut.line_feeds())
        );
    }
}

#[test]
fn random_input_and_resizes_never_panic_or_show_control_characters() {
    for seed in 0..600 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut screen = EmulatedScreen::new(random.u16(1..30), random.u16(1..90));
        for _ in 0..40 {
            screen.feed_output(&random_stream(&mut random));
            match random.u8(0..6) {
                0 => screen.resize(random.u16(0..60), random.u16(0..140)),
                1 => screen.mark_seen(),
                _ => {}
            }
            let (lines, ansi, cursor, unseen, _, line, _, scrolled) = seen_screen(&mut screen);
            assert!(cursor.row < screen.rows() && cursor.column < screen.columns(), "seed {seed}");
            assert!(lines.len() <= usize::from(screen.rows()));
            for text in lines.iter().chain([&line]) {
                assert!(!text.contains(char::is_control), "seed {seed}: {text:?}");
            }
            for text in [unseen.text, scrolled.unwrap_or_default().text] {
                assert!(!text.contains(|c: char| c.is_control() && c != '\n'), "seed {seed}");
            }
            let controls = ansi.chars().filter(|c| c.is_control());
            assert!(controls.clone().all(|c| "\x1b\r\n".contains(c)), "seed {seed}: {ansi:?}");
        }
    }
}

#[test]
fn mark_seen_leaves_no_unseen_text_after_any_input() {
    for seed in 0..600 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut screen = EmulatedScreen::new(6, 17);
        for _ in 0..5 {
            screen.feed_output(&random_stream(&mut random));
            screen.mark_seen();
            if !screen.is_full_screen() {
                assert_eq!(screen.unseen_text(), UnseenText::default(), "seed {seed}");
            }
        }
    }
}

#[test]
fn resizes_during_a_flood_keep_unseen_text_limited() {
    let mut random = fastrand::Rng::with_seed(7);
    let mut screen = EmulatedScreen::new(24, 80);
    for _ in 0..300 {
        screen
            .feed_output("a line that stays unread, and is rather long\r\n".repeat(40).as_bytes());
        screen.resize(random.u16(1..100), random.u16(2..200));
    }
    let unseen = screen.unseen_text();
    assert!(unseen.text.lines().count() <= HISTORY_ROWS_MAX + 256 + 500 + 100);
    let scrolled = screen.take_scrolled().unwrap_or_default().text;
    let all = (unseen.text.lines().count() + scrolled.lines().count()) as u64;
    assert!(all <= screen.line_feeds() + 1, "no line is counted twice");
}

/// Returns the memory of this process in bytes, if the system reports it.
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/statm").ok()?;
    status.split(' ').nth(1)?.parse::<u64>().ok().map(|pages| pages * 4096)
}

/// Each of these accumulates without a limit in an unprotected emulator.
#[test]
fn endless_input_takes_limited_memory() {
    let Some(before) = resident_bytes() else {
        return skip("the system does not report memory usage");
    };
    let floods: [(&str, Vec<u8>); 5] = [
        ("\x1b]0;", vec![b'x'; 1 << 20]),
        ("a", "\u{301}".repeat(1 << 19).into_bytes()),
        ("", "\x1b]0;a long title\x07\x1b[22;0t".repeat(1 << 15).into_bytes()),
        ("\x1b[?2026h", b"held back?\r\n".repeat(1 << 16)),
        ("\x1bP", vec![b'q'; 1 << 20]),
    ];
    let mut screens = Vec::new();
    for (begin, flood) in &floods {
        let mut screen = EmulatedScreen::new(24, 80);
        screen.feed_output(begin.as_bytes());
        for _ in 0..24 {
            screen.feed_output(flood);
            drop(screen.take_scrolled());
        }
        screens.push(screen);
    }
    // The limit covers five histories of a thousand rows, the allocator's reserve and parallel
    // tests. Each flood has at least 24 MB.
    let grown = resident_bytes().unwrap().saturating_sub(before);
    assert!(grown < 64 << 20, "{grown} bytes");
}
