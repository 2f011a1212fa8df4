//! Fills the placeholders of a prompt: `{{name:default}}`, `{{$1}}` and `$ARGUMENTS`. A command of
//! Claude Code also has `$1`, and commands and files that the model must run and read.
//!
//! Placeholders inside arguments are not filled. An unknown placeholder stays as it is, because a
//! text may contain braces of its own.

use std::collections::BTreeMap;

/// The longest arguments in bytes.
pub const ARGUMENTS_BYTES_MAX: usize = 16 * 1024;
/// The longest filled text in bytes. A prompt may contain its arguments many times.
pub const FILLED_BYTES_MAX: usize = 512 * 1024;

/// The longest placeholder in bytes. A text with many braces must not be searched again for each.
const PLACE_BYTES_MAX: usize = 1024;

/// The placeholder for all arguments.
const ALL: &str = "$ARGUMENTS";

/// Instructions at the end of a Claude Code command. Claude Code runs the commands itself. Here the
/// model calls a tool for each, and the user's rules apply as to any other call.
const RUN_FIRST: &str = "Before you begin, run each command that is written as !`COMMAND` with \
                         `cli_based_tool`, and take its output for it.";
/// The same instructions for files.
const READ_FIRST: &str = "Before you begin, read each file that is written as @PATH.";

/// The placeholders that a prompt supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlaceholderSyntax {
    /// jaato's own placeholders. A `$1` belongs to the shell.
    Own,
    /// Claude Code's placeholders in addition.
    Claude,
}

/// A piece of a prompt.
#[derive(Debug, PartialEq, Eq)]
enum PromptPiece<'a> {
    Text(&'a str),
    All,
    Place {
        number: usize,
        default: Option<&'a str>,
        written: &'a str,
    },
    /// Claude Code's `$1`. Empty if the arguments have fewer words.
    Word(usize),
    Named {
        name: &'a str,
        default: Option<&'a str>,
        written: &'a str,
    },
}

/// Fills a prompt with the arguments after its name. A word `NAME=VALUE` fills the placeholder with
/// that name, and other words fill placeholders in order. Unused words follow the text.
///
/// # Errors
/// An error of one line if the arguments or the filled text are too long.
pub fn fill_placeholders(
    body: &str,
    arguments: &str,
    syntax: PlaceholderSyntax,
) -> Result<String, String> {
    let arguments = arguments.trim();
    let has = arguments.len();
    if has > ARGUMENTS_BYTES_MAX {
        return Err(format!("the arguments have {has} bytes, the limit is {ARGUMENTS_BYTES_MAX}"));
    }
    let pieces = split_placeholders(body, syntax);
    let given = PromptArguments::parse_arguments(&pieces, arguments);
    let mut filled = String::with_capacity(body.len() + has);
    for piece in &pieces {
        let text = match piece {
            PromptPiece::Text(text) => text,
            PromptPiece::All => arguments,
            PromptPiece::Place { number, default, written } => {
                let word = number.checked_sub(1).and_then(|it| given.words.get(it));
                word.map(String::as_str).or(*default).unwrap_or(written)
            }
            PromptPiece::Word(number) => {
                number.checked_sub(1).and_then(|it| given.words.get(it)).map_or("", String::as_str)
            }
            PromptPiece::Named { name, default, written } => {
                given.named.get(name).map(String::as_str).or(*default).unwrap_or(written)
            }
        };
        if filled.len() + text.len() > FILLED_BYTES_MAX {
            return Err(format!("with these arguments it has more than {FILLED_BYTES_MAX} bytes"));
        }
        filled.push_str(text);
    }
    let takes_some = pieces.iter().any(|piece| !matches!(piece, PromptPiece::Text(_)));
    if !arguments.is_empty() && !takes_some {
        filled = format!("{}\n\nARGUMENTS: {arguments}\n", filled.trim_end());
    }
    if syntax == PlaceholderSyntax::Claude {
        for text in preparation_instructions(body) {
            filled = format!("{}\n\n{text}\n", filled.trim_end());
        }
    }
    Ok(filled)
}

/// Returns the instructions for commands and files in the text.
fn preparation_instructions(body: &str) -> impl Iterator<Item = &'static str> {
    let has_command = body.match_indices("!`").any(|(at, _)| body[at + 2..].contains('`'));
    let is_file = |word: &str| {
        let path = word.strip_prefix('@').unwrap_or_default();
        path.contains(['/', '.', '$']) && path.starts_with(|sign: char| !sign.is_whitespace())
    };
    let has_file = body.split_whitespace().any(is_file);
    has_command.then_some(RUN_FIRST).into_iter().chain(has_file.then_some(READ_FIRST))
}

/// Describes the arguments for the user: `NAME… WORDS`, or empty if the prompt takes none.
pub fn format_usage(body: &str, syntax: PlaceholderSyntax) -> String {
    let mut words: Vec<String> = Vec::new();
    for piece in split_placeholders(body, syntax) {
        let word = match piece {
            PromptPiece::Text(_) => continue,
            PromptPiece::All => "WORDS".to_owned(),
            PromptPiece::Place { number, .. } | PromptPiece::Word(number) => format!("${number}"),
            PromptPiece::Named { name, default: None, .. } => format!("{name}="),
            PromptPiece::Named { name, default: Some(default), .. } => format!("{name}={default}"),
        };
        if !words.contains(&word) {
            words.push(word);
        }
    }
    words.join(" ")
}

/// The given arguments.
struct PromptArguments<'a> {
    words: Vec<String>,
    named: BTreeMap<&'a str, String>,
}

impl<'a> PromptArguments<'a> {
    fn parse_arguments(pieces: &[PromptPiece<'a>], arguments: &str) -> Self {
        let blanks = || arguments.split_whitespace().map(str::to_owned).collect();
        // An unclosed quote, as in `don't`, is an ordinary character.
        let all: Vec<String> = shlex::split(arguments).unwrap_or_else(blanks);
        let mut names: Vec<&'a str> = Vec::new();
        let mut has_places = false;
        for piece in pieces {
            match piece {
                PromptPiece::Named { name, .. } if !names.contains(name) => names.push(name),
                PromptPiece::Place { .. } | PromptPiece::Word(_) => has_places = true,
                // These do not take single words.
                PromptPiece::Named { .. } | PromptPiece::Text(_) | PromptPiece::All => {}
            }
        }
        let (mut words, mut named) = (Vec::new(), BTreeMap::new());
        for word in all {
            let of_name = word.split_once('=').and_then(|(name, value)| {
                names.iter().find(|it| **it == name).map(|name| (*name, value.to_owned()))
            });
            match of_name {
                Some((name, value)) => drop(named.insert(name, value)),
                None => words.push(word),
            }
        }
        if !has_places {
            names.retain(|name| !named.contains_key(name));
            let mut rest = std::mem::take(&mut words).into_iter();
            if let Some((last, first)) = names.split_last() {
                for name in first {
                    rest.next().map(|word| named.insert(name, word));
                }
                let rest: Vec<String> = rest.collect();
                if !rest.is_empty() {
                    named.insert(last, rest.join(" "));
                }
            }
        }
        Self { words, named }
    }
}

fn split_placeholders(body: &str, syntax: PlaceholderSyntax) -> Vec<PromptPiece<'_>> {
    let (mut pieces, mut rest, mut plain) = (Vec::new(), body, 0);
    while plain < rest.len() {
        let Some(at) = rest[plain..].find(['{', '$']).map(|at| plain + at) else { break };
        match parse_placeholder(&rest[at..], syntax) {
            Some((piece, length)) => {
                pieces.push(PromptPiece::Text(&rest[..at]));
                pieces.push(piece);
                rest = &rest[at + length..];
                plain = 0;
            }
            None => plain = at + 1,
        }
    }
    pieces.push(PromptPiece::Text(rest));
    pieces
}

/// Parses the placeholder at the start of a text, and returns it with its length.
fn parse_placeholder(text: &str, syntax: PlaceholderSyntax) -> Option<(PromptPiece<'_>, usize)> {
    if let (Some(rest), PlaceholderSyntax::Claude) = (text.strip_prefix('$'), syntax) {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        if let Some(number) = rest[..digits].parse().ok().filter(|number| (1..100).contains(number))
        {
            return Some((PromptPiece::Word(number), 1 + digits));
        }
    }
    if let Some(rest) = text.strip_prefix(ALL) {
        let goes_on = rest.starts_with(|next: char| next.is_alphanumeric() || next == '_');
        return (!goes_on).then_some((PromptPiece::All, ALL.len()));
    }
    let rest = text.strip_prefix("{{")?;
    let seen = &rest.as_bytes()[..rest.len().min(PLACE_BYTES_MAX)];
    let end = seen.windows(2).position(|signs| signs == b"}}" || signs[0] == b'\n')?;
    let inner = rest.get(..end).filter(|_| rest[end..].starts_with('}'))?;
    let length = inner.len() + 4;
    let written = &text[..length];
    let (name, default) = match inner.split_once(':') {
        Some((name, default)) => (name, Some(default)),
        None => (inner, None),
    };
    if let Some(number) = name.strip_prefix('$') {
        let number = number.parse().ok().filter(|number| *number > 0)?;
        return Some((PromptPiece::Place { number, default, written }, length));
    }
    let is_name = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && name.bytes().all(|it| it.is_ascii_alphanumeric() || b"_-".contains(&it));
    is_name.then_some((PromptPiece::Named { name, default, written }, length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_filled(body: &str, arguments: &str, expected: &str) {
        assert_eq!(fill_placeholders(body, arguments, PlaceholderSyntax::Own).unwrap(), expected);
    }

    #[test]
    fn named_placeholder_takes_a_word_next_to_all_arguments() {
        let body = "Review {{path}} as {{who:a friend}}. What matters most: $ARGUMENTS";
        let expected = "Review src/main.rs as a friend. What matters most: src/main.rs";
        check_filled(body, "src/main.rs", expected);
    }

    #[test]
    fn commands_of_claude_have_their_own_placeholders() {
        let claude = |body: &str, arguments: &str| {
            fill_placeholders(body, arguments, PlaceholderSyntax::Claude).unwrap()
        };
        assert_eq!(claude("$1 and $2, $3! $ARGUMENTS", "a 'b c'"), "a and b c, ! a 'b c'");
        assert_eq!(claude("$1", "$2 $1"), "$2");
        assert_eq!(claude("It costs $5.", ""), "It costs .");
        assert_eq!(claude("$0 $x $$", ""), "$0 $x $$");
        let told = claude("Status: !`git status`\nSee @docs/a.md and a@b.", "");
        assert_eq!(
            told,
            format!(
                "Status: !`git status`\nSee @docs/a.md and a@b.\n\n{RUN_FIRST}\n\n{READ_FIRST}\n"
            )
        );
        assert_eq!(claude("Wow! `code` for @someone", ""), "Wow! `code` for @someone");
        check_filled("$1 !`x` @a.md", "", "$1 !`x` @a.md");
    }

    #[test]
    fn named_placeholders_take_their_argument_or_default() {
        check_filled("{{a}} in {{b:red}}", "a=moon", "moon in red");
        check_filled("{{a}} in {{b:red}}", "b='dark blue' a=moon", "moon in dark blue");
        check_filled("{{a}} {{a}}", "moon", "moon moon");
        check_filled("{{a}} | {{b}}", "moon and more", "moon | and more");
        check_filled("{{a}}{{b:}}", "", "{{a}}");
    }

    #[test]
    fn numbered_placeholders_and_all_arguments_are_filled() {
        check_filled("{{$2}} {{$1}} {{$3}} {{$4:x}}", "a 'b c'", "b c a {{$3}} x");
        check_filled("do $ARGUMENTS, $ARGUMENTS.", " a  b ", "do a  b, a  b.");
        check_filled("$ARGUMENTSX $ARGUMENTS_ $1 {{$0}}", "", "$ARGUMENTSX $ARGUMENTS_ $1 {{$0}}");
        check_filled("say {{$1}}", "don't", "say don't");
    }

    #[test]
    fn unknown_placeholders_stay_unchanged() {
        check_filled(
            "{{ jinja }} {{a b}} {{}} {x} {{{a}}} {{",
            "",
            "{{ jinja }} {{a b}} {{}} {x} {{{a}}} {{",
        );
        check_filled("{{a\n}}", "x", "{{a\n}}\n\nARGUMENTS: x\n");
        check_filled("no places\n", "x y", "no places\n\nARGUMENTS: x y\n");
        check_filled("no places\n", " ", "no places\n");
        check_filled("é{{a}}é", "ü", "éüé");
    }

    #[test]
    fn placeholders_in_arguments_are_not_filled() {
        check_filled("{{a}} {{b:2}}", "a={{b}}", "{{b}} 2");
        check_filled("$ARGUMENTS", "$ARGUMENTS {{a}}", "$ARGUMENTS {{a}}");
    }

    #[test]
    fn overlong_arguments_and_results_are_refused() {
        let long = "x".repeat(ARGUMENTS_BYTES_MAX);
        assert!(fill_placeholders("$ARGUMENTS", &long, PlaceholderSyntax::Own).is_ok());
        assert!(
            fill_placeholders("$ARGUMENTS", &format!("{long}x"), PlaceholderSyntax::Own)
                .unwrap_err()
                .contains("16385 bytes")
        );
        let often = "$ARGUMENTS".repeat(FILLED_BYTES_MAX / ARGUMENTS_BYTES_MAX);
        assert_eq!(
            fill_placeholders(&often, &long, PlaceholderSyntax::Own).unwrap().len(),
            FILLED_BYTES_MAX
        );
        assert!(
            fill_placeholders(&format!("{often}$ARGUMENTS"), &long, PlaceholderSyntax::Own)
                .unwrap_err()
                .contains("more than")
        );
    }

    #[test]
    fn usage_lists_the_placeholders() {
        assert_eq!(
            format_usage("{{a}} {{b:red}} {{a}} {{$1}} $ARGUMENTS", PlaceholderSyntax::Own),
            "a= b=red $1 WORDS"
        );
        assert_eq!(format_usage("none", PlaceholderSyntax::Own), "");
    }
}
