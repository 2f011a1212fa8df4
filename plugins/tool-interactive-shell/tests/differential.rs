//! Compares the screen with that of another emulator, which gets the same bytes.
//!
//! If the two differ and ours is right, the test explains why.
#![allow(missing_docs)]

use std::fmt::Write as _;
use std::num::NonZero;

use tool_interactive_shell::screen::EmulatedScreen;

const ROWS: NonZero<u16> = NonZero::new(12).unwrap();
const COLUMNS: NonZero<u16> = NonZero::new(40).unwrap();

/// Returns the other emulator's screen in our format.
fn other_emulator_screen(bytes: &[u8]) -> (Vec<String>, (u16, u16), bool) {
    let mut parser = vt100::Parser::new(ROWS, COLUMNS, 0);
    parser.process(bytes);
    let screen = parser.screen();
    let mut rows: Vec<String> =
        screen.rows(0, COLUMNS.get()).map(|row| row.trim_end().to_owned()).collect();
    while rows.last().is_some_and(String::is_empty) {
        rows.pop();
    }
    let (row, column) = screen.cursor_position();
    (rows, (row, column.min(COLUMNS.get() - 1)), screen.alternate_screen())
}

#[track_caller]
fn check_same_screen(name: &str, bytes: &[u8]) {
    let mut screen = EmulatedScreen::new(ROWS.get(), COLUMNS.get());
    screen.feed_output(bytes);
    let cursor = screen.cursor();
    let ours = (screen.visible_lines(), (cursor.row, cursor.column), screen.is_full_screen());
    assert_eq!(ours, other_emulator_screen(bytes), "{name}");
}

#[test]
fn both_emulators_show_the_same_for_program_output() {
    let cases: [(&str, String); 14] = [
        (
            "progress",
            (0..=100).fold(String::new(), |mut s, n| {
                let _ = write!(s, "\r{n:3}% {}", "#".repeat(n / 4));
                s
            }),
        ),
        ("spinner", "|\x08/\x08-\x08\\\x08".repeat(20) + "done\r\n"),
        (
            "bars",
            "a 0%\r\nb 0%\r\n".to_owned() + &"\x1b[2A\x1b[2Ka 5%\r\n\x1b[2Kb 7%\r\n".repeat(9),
        ),
        ("alternate", "shell\r\n\x1b[?1049h\x1b[H\x1b[2Jfull\x1b[5;5Hscreen".to_owned()),
        ("and back", "shell\r\n\x1b[?1049h\x1b[H\x1b[2Jfull\x1b[?1049lback".to_owned()),
        ("wide", "漢字かな交じり文".repeat(6)),
        ("wide at the edge", "x".repeat(39) + "漢x"),
        ("region", "\x1b[3;8r\x1b[8;1H".to_owned() + &"row\r\n".repeat(9) + "\x1b[r\x1b[12;1Hend"),
        ("reverse", "a\r\nb\r\nc\x1b[1;1H\x1bM\x1bMtop".to_owned()),
        ("insert and delete", "one\r\ntwo\r\nthree\x1b[2;1H\x1b[Lnew\x1b[4;1H\x1b[M".to_owned()),
        ("characters", "abcdefgh\x1b[1;3H\x1b[2P\x1b[1@X\x1b[1;6H\x1b[2X".to_owned()),
        ("erase", "aaaa\r\nbbbb\r\ncccc\x1b[2;3H\x1b[K\x1b[1;2H\x1b[1K\x1b[3;1H\x1b[J".to_owned()),
        ("saved", "ab\x1b7\x1b[9;9Hfar\x1b8c\x1b[3Gd\x1b[2dline".to_owned()),
        (
            "pager",
            (0..40).fold(String::new(), |mut s, n| {
                let _ = write!(s, "line {n}\r\n");
                s
            }) + "\x1b[7m--More--\x1b[27m\r\x1b[Kq",
        ),
    ];
    for (name, bytes) in &cases {
        check_same_screen(name, bytes.as_bytes());
    }
}

/// Plain operations in any order. Operations that only one emulator supports are left out: custom
/// tab stops, insert mode, repetition, edits that split wide letters, moves from a full row (the
/// other emulator stays there, but a terminal returns into the row), and the cursor position after
/// setting a region (the other emulator moves into the region, unlike any terminal).
#[test]
fn both_emulators_show_the_same_after_random_edits() {
    for seed in 0..800 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut bytes = String::new();
        // Outside of a region, the other emulator moves and scrolls as if there were no region.
        let has_regions = random.bool();
        for _ in 0..random.usize(1..80) {
            let (a, b) = (random.u8(1..14), random.u8(1..44));
            let _ = match random.u8(0..17) {
                0 => write!(bytes, "\x1b[{a};{b}H"),
                1 | 2 | 14 if !has_regions => {
                    write!(bytes, "\x1b[{a}{}", if random.bool() { 'A' } else { 'B' })
                }
                3 => write!(bytes, "\x1b[{b}C"),
                4 => write!(bytes, "\x1b[{b}D"),
                5 => write!(bytes, "\x1b[{}J", random.u8(0..3)),
                6 => write!(bytes, "\x1b[{}K", random.u8(0..3)),
                7 => write!(bytes, "\x1b[{a}L"),
                8 => write!(bytes, "\x1b[{a}M"),
                9 => write!(bytes, "\x1b[{b}P"),
                10 => write!(bytes, "\x1b[{b}X"),
                11 => write!(bytes, "\r\n"),
                12 if !has_regions => write!(bytes, "\x1bM"),
                13 => write!(bytes, "\x1b[{b}@"),
                14 => write!(bytes, "\x1b[{};{}r\x1b[2H", a.min(6), a.min(6) + random.u8(1..6)),
                _ => write!(
                    bytes,
                    "{}\r",
                    "some text that may wrap at the edge of it"
                        .get(..usize::from(b.min(41)))
                        .unwrap_or("")
                ),
            };
        }
        check_same_screen(&format!("seed {seed}: {bytes:?}"), bytes.as_bytes());
    }
}
