//! The commands of a `console` block, and their output.

/// A command and its output in the document.
#[derive(Debug, PartialEq, Eq)]
pub struct ShownStep {
    pub command: String,
    pub shows: Vec<String>,
}

/// Matches any text.
const ANYTHING: char = '…';

/// Parses the commands, each with the output up to the next.
pub fn parse_steps(text: &str) -> Vec<ShownStep> {
    let mut steps: Vec<ShownStep> = Vec::new();
    let mut goes_on = false;
    for line in text.lines() {
        if goes_on {
            let command = &mut steps.last_mut().unwrap().command;
            command.push('\n');
            command.push_str(line);
        } else if let Some(command) = line.strip_prefix("$ ") {
            steps.push(ShownStep { command: command.to_owned(), shows: Vec::new() });
        } else {
            steps.last_mut().expect("a block begins with `$ `").shows.push(line.to_owned());
            continue;
        }
        goes_on = line.ends_with('\\');
    }
    steps
}

/// Returns true if a text matches the lines.
pub fn is_shown(shows: &[String], text: &str) -> bool {
    let lines: Vec<&str> = text.lines().collect();
    let shows: Vec<&str> = shows.iter().map(String::as_str).collect();
    is_block_match(&shows, &lines)
}

fn is_block_match(shows: &[&str], lines: &[&str]) -> bool {
    match shows {
        [] => lines.is_empty(),
        [first, rest @ ..] if first.trim() == "…" => {
            (0..=lines.len()).any(|skip| is_block_match(rest, &lines[skip..]))
        }
        [first, rest @ ..] => lines.split_first().is_some_and(|(line, others)| {
            is_line_match(first, line) && is_block_match(rest, others)
        }),
    }
}

fn is_line_match(shows: &str, line: &str) -> bool {
    let Some((before, after)) = shows.split_once(ANYTHING) else {
        return shows.trim_end() == line.trim_end();
    };
    let Some(rest) = line.strip_prefix(before) else { return false };
    let places = rest.char_indices().map(|(at, _)| at).chain([rest.len()]);
    places.into_iter().any(|at| is_line_match(after, &rest[at..]))
}

#[test]
fn commands_are_distinguished_from_their_output() {
    let step = |command: &str, shows: &[&str]| ShownStep {
        command: command.to_owned(),
        shows: shows.iter().map(|line| (*line).to_owned()).collect(),
    };
    assert_eq!(
        parse_steps("$ a\n$ b \\\n    c\none\n\ntwo\n"),
        [step("a", &[]), step("b \\\n    c", &["one", "", "two"])]
    );
}

#[test]
fn ellipsis_matches_anything_and_other_text_matches_exactly() {
    let check = |shows: &str, text: &str| {
        is_shown(&shows.lines().map(str::to_owned).collect::<Vec<_>>(), text)
    };
    for (shows, text) in
        [("a\nb", "a\nb\n"), ("a\n…\nd", "a\nb\nc\nd\n"), ("…\nd", "d"), ("a … c…", "a b c")]
    {
        assert!(check(shows, text), "{shows} {text}");
    }
    for (shows, text) in [("a", "a\nb"), ("a\n…\nd", "a\nb"), ("a … c", "a b d"), ("a", "")] {
        assert!(!check(shows, text), "{shows} {text}");
    }
}
