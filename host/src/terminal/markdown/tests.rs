//! Tests the styles, and that no part of a text is lost, in any division into pieces.

use expect_test::{Expect, expect};
use jaato_runtime::visible;
use pulldown_cmark::{Event, Options, Parser, Tag};

use super::*;

/// Draws a text that arrives in these pieces.
fn draw_markdown<'a>(pieces: impl IntoIterator<Item = &'a str>, columns: usize) -> String {
    let mut markdown = Markdown::new(false);
    let rows: String = pieces.into_iter().map(|piece| markdown.piece(piece, columns)).collect();
    rows + &markdown.end(columns)
}

/// Draws a text that is complete before anything is drawn.
fn at_once(text: &str, columns: usize) -> String {
    let mut markdown = Markdown::new(false);
    let lines = text.split_inclusive('\n');
    markdown.held = lines.skip_while(|line| line.trim().is_empty()).collect();
    markdown.end(columns)
}

/// Cuts a text in two at each place.
#[track_caller]
fn check_cuts(text: &str, columns: usize) {
    let whole = draw_markdown([text], columns);
    for at in (0..text.len()).filter(|at| text.is_char_boundary(*at)) {
        let (begin, rest) = text.split_at(at);
        assert_eq!(draw_markdown([begin, rest], columns), whole, "cut at {at}: {text:?}");
    }
}

#[track_caller]
fn check(text: &str, columns: usize, expected: Expect) {
    expected.assert_eq(&draw_markdown([text], columns));
    check_nothing_is_lost(text, columns);
    check_cuts(text, columns);
}

/// Checks that each character that the parser takes for text is drawn.
#[track_caller]
fn check_nothing_is_lost(text: &str, columns: usize) {
    let is_seen = |sign: &char| !sign.is_whitespace() && !"│├┼┤─▐•".contains(*sign);
    let rows = draw_markdown([text], columns);
    let mut shown = rows.chars().filter(is_seen);
    // Link definitions are drawn as text.
    let mut markdown = Markdown::new(false);
    markdown.held = text.to_owned();
    let screen = Screen { room: columns, has_looks: false };
    while markdown.escape(&page(&markdown.held, 0, screen, Extent::Whole)) {}
    let options = Options::ENABLE_TABLES | Options::ENABLE_TASKLISTS;
    let events = Parser::new_ext(&markdown.held, options).into_offset_iter();
    let mut has_table = false;
    let (mut said, mut end) = (String::new(), 0);
    for (event, range) in events {
        match event {
            Event::Text(text) | Event::Code(text) | Event::Html(text) | Event::InlineHtml(text) => {
                said += &operators(&markdown.held, end, range.start);
                said += &visible::visible_text(&text);
                end = range.end;
            }
            // The language of code is not drawn.
            Event::Start(Tag::CodeBlock(_)) => end = usize::MAX,
            Event::Start(Tag::Table(_)) => has_table = true,
            _ => {}
        }
    }
    let mut rest: Vec<char> = rows.chars().collect();
    for sign in said.chars().filter(is_seen) {
        // The parts of broken table cells are side by side.
        let is_there = match has_table {
            true => rest.iter().position(|other| *other == sign).map(|at| rest.swap_remove(at)),
            false => shown.by_ref().find(|other| *other == sign),
        };
        assert!(
            is_there.is_some(),
            "`{sign}` is lost at {columns} columns:\n{text:?}\n{said:?}\n{rows}"
        );
    }
}

/// Returns the asterisks and underscores between letters or digits in this part of a text. The
/// parser reads some of them as markup.
fn operators(text: &str, begin: usize, end: usize) -> String {
    let is_operator = |sign: char| matches!(sign, '*' | '_');
    let is_word = |sign: Option<char>| sign.is_some_and(|sign| sign.is_ascii_alphanumeric());
    let gap = text.get(begin..end).unwrap_or_default();
    let is_between = |at: &usize| {
        let (before, after) = text.split_at(begin + at);
        is_word(before.trim_end_matches(is_operator).chars().next_back())
            && is_word(after.trim_start_matches(is_operator).chars().next())
    };
    gap.match_indices(is_operator).filter(|(at, _)| is_between(at)).map(|(_, sign)| sign).collect()
}

const TEXT: &str = "# Moons\n\nThere are **two** moons of `mars`, and this is a longer line that does not fit.\n\n\
    - Phobos\n  - small\n- Deimos\n\n1. first\n2. second\n\n> said\n\n\
    | moon | km | what is known of it |\n|---|---:|---|\n| Phobos | 22 | it comes nearer, and will break one day |\n| Deimos | 12 | it goes away |\n\n\
    ```rust\nfn main() { // **not bold**, and a line of code that is long stays as it is written\n}\n```\nend";

#[test]
fn a_text_is_drawn_at_forty_columns() {
    check(
        TEXT,
        40,
        expect![[r#"
        Moons

        There are two moons of mars, and this
        is a longer line that does not fit.

        • Phobos
          • small
        • Deimos

        1. first
        2. second

        ▐ said

        │ moon   │ km │ what is known of it   │
        ├────────┼────┼───────────────────────┤
        │ Phobos │ 22 │ it comes nearer, and  │
        │        │    │ will break one day    │
        │ Deimos │ 12 │ it goes away          │

        fn main() { // **not bold**, and a line of code that is long stays as it is written
        }
        end
    "#]],
    );
}

#[test]
fn a_text_is_drawn_at_eighty_columns() {
    check(
        TEXT,
        80,
        expect![[r#"
        Moons

        There are two moons of mars, and this is a longer line that does not fit.

        • Phobos
          • small
        • Deimos

        1. first
        2. second

        ▐ said

        │ moon   │ km │ what is known of it                     │
        ├────────┼────┼─────────────────────────────────────────┤
        │ Phobos │ 22 │ it comes nearer, and will break one day │
        │ Deimos │ 12 │ it goes away                            │

        fn main() { // **not bold**, and a line of code that is long stays as it is written
        }
        end
    "#]],
    );
}

#[test]
fn signs_that_are_no_markup_are_drawn() {
    let text = "The area is 2 * 3 * 4 = 24.\n\
        Globs: *.rs and *.toml; pass *args and **kwargs on\n\
        int **p, *q; and a_b_c; 5 ~~ 6 ~~ 7; snake_case_name\n\
        AT&amp;T &lt;b> <b>bold</b> <!-- note --> Vec<String> a < b\n\
        a\\*b \\_ \\` C:\\new `a  b` ``x ` y`` [not a link] [a][1] ![p](q.png)\n\
        see [the docs](https://x.org/a_b \"t\"), <https://y.org>, a note[^1]\n\n\
        [1]: https://z.org\n[^1]: the note\n";
    check(
        text,
        60,
        expect![[r#"
        The area is 2 * 3 * 4 = 24.
        Globs: *.rs and *.toml; pass *args and **kwargs on
        int **p, *q; and a_b_c; 5 ~~ 6 ~~ 7; snake_case_name
        AT&T <b> <b>bold</b> <!-- note --> Vec<String> a < b
        a*b _ ` C:\new a  b x ` y [not a link] [a][1] p (q.png)
        see the docs (https://x.org/a_b), https://y.org, a note[^1]

        [1]: https://z.org
        [^1]: the note
    "#]],
    );
}

/// Code and formulas, parts of which CommonMark reads as markup.
const NO_MARKUP: &[&str] = &[
    "2**10 = 1024 and 3**2 = 9",
    "10*20*30 and 2**3**2",
    "$5*2 and 5*3*2 = 30",
    "x*y and y*z",
    "(a*b)*(c*d)",
    "f(x)*g(x)*h(x) and π*r*r",
    "int *a, *b; int* c, d*;",
    "/**doc**/ and (x)**2 + (y)**2",
    "src/**/*.rs and **/*.toml and *.{a,b}*",
    "**/node_modules/** and src/**, lib/**",
    "--include=*.rs --exclude=*.toml",
    "/usr/*/bin/*",
    "*/5 * * * * and 0 */2 * * *",
    "__init__.py and __init__(self)",
    "if __name__ == \"__main__\":",
    "_foo_.py and _foo_1_",
    "re.sub(r'_+', '_', s) and '*'.join('*')",
    "count(*) and sum(*)",
    "https://a.b/c_d_e*f*g",
    "b[0](x) and m[\"k\"](v) and f()[0](x)",
    "vec![a](b) and [a](b) and []() and [a]()",
];

#[test]
fn code_that_resembles_markup_is_drawn_as_it_is() {
    for text in NO_MARKUP {
        let forms = [
            (format!("It is {text}"), format!("It is {text}\n")),
            (text.to_string(), format!("{text}\n")),
            (format!("# {text}"), format!("{text}\n")),
            (format!("> {text}"), format!("▐ {text}\n")),
            (format!("- {text}"), format!("• {text}\n")),
        ];
        for (source, expected) in forms {
            check_cuts(&source, 80);
            assert_eq!(draw_markdown([&*source], 80), expected);
            // No part of it has a style.
            let mut markdown = Markdown::new(true);
            let mut looks = markdown.piece(&source, 80) + &markdown.end(80);
            if source.starts_with('#') {
                looks = looks.replace("\x1b[1m", "").replace("\x1b[0m", "");
            }
            assert!(!looks.contains('\x1b'), "{looks:?}");
        }
        let table = draw_markdown([&*format!("| a |\n|---|\n| {text} |\n")], 80);
        assert!(table.contains(&format!("│ {text} ")), "{table}");
    }
}

#[test]
fn emphasis_and_links_have_their_looks() {
    let mut markdown = Markdown::new(true);
    let text = "**bold** *it* _it_ (**bold**) **Note:** text \"*x*\" word **bold**, more\n\
        ***both*** **_both_** **2*3*4** **-5**% *a, b*: **a**! `x` — **y** … **\"z\"**\n\
        这是**粗体**字。用Linux**系统**做 ภาษา**หนา**ไทย **굵게**는\n\
        [docs](https://x) see [docs](https://x). [a](b.md), [c](#d)[1](https://y)\n\
        **a wrapped\nline**\n";
    let drawn = markdown.piece(text, 200) + &markdown.end(200);
    let drawn = drawn.replace("\x1b[", "<").replace("<1m", "<b>").replace("<3m", "<i>");
    expect![[r#"
        <b>bold<0m <i>it<0m <i>it<0m (<b>bold<0m) <b>Note:<0m text "<i>x<0m" word <b>bold<0m, more
        <b><i>both<0m <b><i>both<0m <b>2*3*4<0m <b>-5<0m% <i>a, b<0m: <b>a<0m! <36mx<0m — <b>y<0m … <b>"z"<0m
        这是<b>粗体<0m字。用Linux<b>系统<0m做 ภาษา<b>หนา<0mไทย <b>굵게<0m는
        docs <2m(https://x)<0m see docs <2m(https://x)<0m. a <2m(b.md)<0m, c <2m(#d)<0m1 <2m(https://y)<0m
        <b>a wrapped<0m
        <b>line<0m
    "#]]
    .assert_eq(&drawn);
}

#[test]
fn cells_keep_their_bars_and_those_that_are_too_many() {
    let text = "| a * b | c |\n|---|---|\n| `x \\| y` | **z** |\n| 1 | 2 | 3 | 4 |\n| only |\n";
    check(
        text,
        60,
        expect![[r#"
        │ a * b │ c         │
        ├───────┼───────────┤
        │ x | y │ z         │
        │ 1     │ 2 | 3 | 4 │
        │ only  │           │
    "#]],
    );
    check(
        text,
        14,
        expect![[r#"
        a * b: x | y
        c: z

        a * b: 1
        c: 2 | 3 | 4

        a * b: only
        c:
    "#]],
    );
}

#[test]
fn fences_are_as_long_as_they_are() {
    let text = "````md\n```rust\nlet a = 1;\n```\n\n- no item\n````\n~~~\n```\n~~~\n\
        - item\n\n  ```sh\n  ls\n\n  pwd\n  ```\n- next\n\n    indented\n      more\n\n```\nunclosed *x*\n";
    check(
        text,
        40,
        expect![[r#"
        ```rust
        let a = 1;
        ```

        - no item
        ```
        • item

          ls

          pwd
        • next

          indented
          more

        unclosed *x*
    "#]],
    );
}

#[test]
fn lists_headings_and_rules() {
    let text = "- [x] done\n- [ ] open\n-\n  below\n\n1. a\n1. b\n   1. c\n\n7) d\n9) e\n\n\
        Title\n=====\ntext\n---\n\n***\n\n> q\n> > deep **b**\n>\n> - item\nlazy\n\n## H2 `c` ##\n<div>\nhtml *x*\n</div>\n";
    check(
        text,
        40,
        expect![[r#"
        • [x] done
        • [ ] open
        • below

        1. a
        2. b
           1. c

        7) d
        9) e

        Title
        =====
        text
        ---

        ───────────────────────────────────────

        ▐ q
        ▐ ▐ deep b
        ▐
        ▐ • item
        ▐   lazy

        H2 c
        <div>
        html *x*
        </div>
    "#]],
    );
}

#[test]
fn rows_of_an_open_paragraph_come_as_they_are_full() {
    let mut markdown = Markdown::new(false);
    let mut pieces = "one two three four five six seven".split_inclusive(' ');
    let mut next = || markdown.piece(pieces.next().unwrap(), 14);
    assert_eq!([next(), next(), next(), next()], ["", "", "", "one two three\n"]);
    assert_eq!(markdown.coming(), Some("four"));
    // Text that may become bold waits for its end. In scripts without spaces, rows end between
    // characters, too.
    let mut markdown = Markdown::new(false);
    assert_eq!(markdown.piece("- a b c d e **f g h i j k ", 10), "• a b c d\n");
    assert_eq!(markdown.piece("l** m n o p q ", 10), "  e f g h\n  i j k l\n");
    let mut markdown = Markdown::new(false);
    assert_eq!(markdown.piece("日本語日本語日本語", 9), "日本語日\n");
}

#[test]
fn of_long_blocks_nothing_is_lost_and_little_is_held() {
    let deep = "*".repeat(30_000);
    assert!(draw_markdown([&*format!("{deep}a{deep}")], 80).contains("***a***"));
    let line = "word *.rs ";
    let code = format!("```\n{}", "let a = 1;\n".repeat(7000));
    let lines = ["", "\n", "\n- "].map(|end| format!("{line}{end}").repeat(7000));
    for text in lines.into_iter().chain([code]) {
        let mut markdown = Markdown::new(false);
        let mut rows = markdown.piece(&text, 80);
        assert!(markdown.held.len() <= HELD_BYTES_MAX);
        rows += &markdown.end(80);
        let signs = |text: &str| text.matches(['o', 'l', '.']).count();
        assert_eq!(signs(&rows), signs(&text), "{text:.20}");
    }
}

#[test]
fn nothing_that_a_model_says_can_drive_the_terminal() {
    let evil = draw_markdown(["**a\x1b]0;evil\x07b** `\x1b[2J`\n"], 80);
    assert!(!evil.contains('\x1b') && !evil.contains('\x07'), "{evil:?}");
    let mut markdown = Markdown::new(true);
    let drawn = markdown.piece("**\x1b[2J**\n\n", 80);
    assert!(drawn.contains("<U+001B>[2J") && !drawn.contains("\x1b[2J"), "{drawn:?}");
}

#[test]
fn code_has_a_colour_that_is_read_on_light_terminals_too() {
    let drawn = Markdown::new(true).piece("`a` and\n", 80);
    assert_eq!(drawn, "\x1b[36ma\x1b[0m and\n");
}

#[test]
fn blank_lines_before_the_first_word_are_not_drawn() {
    for blanks in ["\n", "\n\n", "   \n", "\n\n   \n\n", " \t\r\n\r\n  \n", &" \n".repeat(50)] {
        let text = format!("{blanks}first\n\nsecond");
        check_cuts(&text, 40);
        assert_eq!(draw_markdown([&*text], 40), "first\n\nsecond\n");
    }
    // Spaces of the first line itself may make it code.
    assert_eq!(draw_markdown(["  \n    *code*\n"], 40), "*code*\n");
}

#[test]
fn an_emoji_of_several_characters_is_not_broken() {
    let skin = "\u{1f44d}\u{1f3fd}";
    let joined = "\u{1f469}\u{1f3fd}\u{200d}\u{1f4bb}";
    for emoji in [skin, joined, "\u{1f1e9}\u{1f1ea}", "\u{2764}\u{fe0f}", "e\u{301}"] {
        check_cuts(&emoji.repeat(8), 8);
        let table = format!("| x |\n|---|\n| {emoji} |\n| {} |\n", emoji.repeat(20));
        for columns in [4, 5, 6, 7, 8, 12, 30] {
            for text in [&table, &emoji.repeat(20), &format!("日{emoji}").repeat(20)] {
                let rows = draw_markdown([&**text], columns);
                let count = text.matches(emoji).count();
                assert_eq!(rows.matches(emoji).count(), count, "{columns} columns:\n{rows}");
            }
        }
    }
    let table =
        draw_markdown([&*format!("| x |\n|---|\n| {skin} |\n| {} |\n", skin.repeat(14))], 30);
    expect![[r#"
        │ x                         │
        ├───────────────────────────┤
        │ 👍                        │
        │ 👍👍👍👍👍👍👍👍👍👍👍👍  │
        │ 👍👍                      │
    "#]]
    .assert_eq(&table.replace('\u{1f3fd}', ""));
}

/// The parts of random texts. Each has a meaning in Markdown, or nearly one.
const PIECES: &[&str] = &[
    "word",
    "word ",
    " ",
    "  ",
    "\n",
    "\n",
    "\n\n",
    "    ",
    "*",
    "**",
    "_",
    "__",
    "`",
    "``",
    "```",
    "```\n",
    "~~~\n",
    "````\n",
    "[",
    "]",
    "](",
    "](x)",
    ")",
    "[a]: b\n",
    "![",
    "<",
    ">",
    "<b>",
    "<div>\n",
    "<!--",
    "-->",
    "http://x.org/a_b*c",
    "<http://x>",
    "&amp;",
    "&",
    "\\",
    "\\\n",
    "- ",
    "-",
    "* ",
    "+ ",
    "1. ",
    "2) ",
    "> ",
    ">",
    "# ",
    "#",
    "===\n",
    "---\n",
    "***\n",
    "|",
    "| a | b |\n|---|---|\n",
    "| c `d \\| e` |\n",
    "a | b\n",
    "-|-\n",
    "[ ] ",
    "[x] ",
    "~~",
    "日本",
    "🚀",
    "\u{1f44d}\u{1f3fd}",
    "\u{1f469}\u{200d}\u{1f4bb}",
    "e\u{301}",
    "\u{202e}",
    "\x1b[2J",
    "║",
    "\t",
    "2 * 3",
    "*.rs",
    "**kwargs",
    "snake_case",
    "2**3",
    "x*y*z",
    "__init__.py",
    "b[0](x)",
];

#[test]
fn whatever_a_model_writes_nothing_of_it_is_lost_however_it_is_cut() {
    for seed in 0..1000 {
        let mut random = fastrand::Rng::with_seed(seed);
        let count = random.usize(1..40);
        let text: String = (0..count).map(|_| PIECES[random.usize(0..PIECES.len())]).collect();
        let columns = [6, 20, 40, 80][random.usize(0..4)];
        check_nothing_is_lost(&text, columns);
        let cuts = random.usize(1..9);
        let letters: Vec<char> = text.chars().collect();
        let pieces: Vec<String> = letters.chunks(cuts).map(|it| it.iter().collect()).collect();
        assert_eq!(
            draw_markdown(pieces.iter().map(String::as_str), columns),
            draw_markdown([&*text], columns)
        );
        // Text that is drawn early looks like text that is drawn late.
        assert_eq!(draw_markdown([&*text], 1000), at_once(&text, 1000), "{text:?}");
    }
}
