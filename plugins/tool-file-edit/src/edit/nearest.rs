//! Finds the lines of a text that are most similar to a missing text.

use jaato_plugin_sdk::types::text::truncate_chars;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;

use similar::TextDiff;

use super::loose_match::describe_differences;

/// The maximum number of lines searched in a file.
const LINES_MAX: usize = 50_000;

/// The maximum number of lines of the searched text that are compared and shown.
const WANTED_LINES_MAX: usize = 12;

/// The maximum number of candidates that are compared by letters, because that is slow.
const CANDIDATES_MAX: usize = 8;

/// The maximum number of characters compared of a candidate, and shown of a line.
const COMPARED_CHARS_MAX: usize = 600;
const SHOWN_CHARS_MAX: usize = 160;

/// A line that occurs more often in a file does not identify a position.
const VOTES_MAX: usize = 200;

/// The minimum similarity of a result.
const RATIO_MIN: f32 = 0.5;

/// Returns the lines that are most similar to the searched ones, and describes the difference if it
/// is simple. Returns `None` if no lines are similar.
pub fn find_nearest_lines(text: &str, wanted: &str) -> Option<String> {
    let lines: Vec<&str> = text.lines().take(LINES_MAX).collect();
    let wanted: Vec<&str> = wanted.lines().skip_while(|line| line.trim().is_empty()).collect();
    let wanted = &wanted[..wanted.len().min(WANTED_LINES_MAX)];
    let ratio = |start: &usize| (*start, similarity_ratio(&lines, *start, wanted));
    let mut candidates = rank_by_same_lines(&lines, wanted);
    if candidates.is_empty() {
        candidates = rank_by_letter_pairs(&lines, wanted);
    }
    // Among equally similar candidates, the first one wins.
    let best = candidates.iter().rev().map(ratio).max_by(|a, b| a.1.total_cmp(&b.1));
    let (start, _) = best.filter(|(_, ratio)| *ratio >= RATIO_MIN)?;
    Some(format_nearest(&lines, start, wanted))
}

/// Returns the positions of equal lines, ignoring surrounding blanks. The most likely ones come
/// first.
fn rank_by_same_lines(lines: &[&str], wanted: &[&str]) -> Vec<usize> {
    let mut where_wanted: HashMap<&str, Vec<usize>> = HashMap::new();
    for (position, line) in wanted.iter().enumerate() {
        let line = line.trim();
        // A bracket alone occurs everywhere.
        if line.chars().filter(|c| c.is_alphanumeric()).count() >= 2 {
            where_wanted.entry(line).or_default().push(position);
        }
    }
    let mut seen: HashMap<&str, usize> = HashMap::new();
    let mut votes: BTreeMap<usize, usize> = BTreeMap::new();
    for (number, line) in lines.iter().enumerate() {
        let Some((line, positions)) = where_wanted.get_key_value(line.trim()) else { continue };
        let often = seen.entry(line).or_default();
        *often += 1;
        if *often <= VOTES_MAX {
            for position in positions {
                *votes.entry(number.saturating_sub(*position)).or_default() += 1;
            }
        }
    }
    let mut places: Vec<_> = votes.into_iter().collect();
    places.sort_by_key(|(start, votes)| (usize::MAX - votes, *start));
    places.into_iter().take(CANDIDATES_MAX).map(|(start, _)| start).collect()
}

/// Returns the positions of lines that share many letter pairs with the longest searched line.
fn rank_by_letter_pairs(lines: &[&str], wanted: &[&str]) -> Vec<usize> {
    let longest = wanted.iter().enumerate().max_by_key(|(_, line)| line.trim().len());
    let Some((position, line)) = longest else { return Vec::new() };
    let letters = letter_pairs(line);
    if letters.is_empty() {
        return Vec::new();
    }
    let mut places = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        let other = letter_pairs(line);
        let common = other.intersection(&letters).count();
        // At least a third of the pairs must be shared.
        if common * 3 >= letters.len().max(other.len()) {
            places.push((common, number.saturating_sub(position)));
        }
    }
    places.sort_by_key(|(common, start)| (usize::MAX - common, *start));
    places.into_iter().take(CANDIDATES_MAX).map(|(_, start)| start).collect()
}

fn letter_pairs(line: &str) -> BTreeSet<(char, char)> {
    let letters = || line.chars().filter(|c| !c.is_whitespace()).take(COMPARED_CHARS_MAX);
    letters().zip(letters().skip(1)).collect()
}

fn similarity_ratio(lines: &[&str], start: usize, wanted: &[&str]) -> f32 {
    let text = |lines: &[&str]| {
        let trimmed: Vec<&str> = lines.iter().map(|line| line.trim()).collect();
        trimmed.join("\n").chars().take(COMPARED_CHARS_MAX).collect::<String>()
    };
    TextDiff::from_chars(text(lines_at(lines, start, wanted)), text(wanted)).ratio()
}

fn lines_at<'a, 'b>(lines: &'a [&'b str], start: usize, wanted: &[&str]) -> &'a [&'b str] {
    let start = start.min(lines.len());
    &lines[start..(start + wanted.len()).min(lines.len())]
}

fn format_nearest(lines: &[&str], start: usize, wanted: &[&str]) -> String {
    let place = lines_at(lines, start, wanted);
    let why = match describe_differences(&place.join("\n"), &wanted.join("\n")) {
        why if why.is_empty() => why,
        why => format!(" (they differ in: {why})"),
    };
    let mut text = format!("the nearest lines{why} are:");
    for (number, line) in place.iter().enumerate() {
        let line = truncate_chars(line, SHOWN_CHARS_MAX);
        // Writing to a string cannot fail.
        let _ = write!(text, "\n{}: {line}", start + number + 1);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "fn main() {\n    let moon = 1;\n    println!(\"{moon}\");\n}\n";

    #[track_caller]
    fn check_nearest(wanted: &str, expected: Option<&str>) {
        assert_eq!(find_nearest_lines(TEXT, wanted).as_deref(), expected);
    }

    #[test]
    fn nearest_lines_with_other_whitespace_are_found() {
        let expected = "the nearest lines (they differ in: tabs or spaces in the indent) are:\n2:     let moon = 1;\n\
                        3:     println!(\"{moon}\");";
        check_nearest("let moon = 1;\n  println!(\"{moon}\");", Some(expected));
    }

    #[test]
    fn nearest_lines_with_similar_text_are_found() {
        check_nearest("    let moons = 12;", Some("the nearest lines are:\n2:     let moon = 1;"));
        let expected = "the nearest lines are:\n1: fn main() {\n2:     let moon = 1;";
        check_nearest("fn main() {\n    let sun = 2;\n", Some(expected));
    }

    #[test]
    fn dissimilar_text_has_no_nearest_lines() {
        check_nearest("SELECT * FROM planets", None);
        check_nearest("", None);
        check_nearest("}\n", None);
        assert_eq!(find_nearest_lines("", "a"), None);
    }

    #[test]
    fn nearest_lines_search_handles_large_texts_and_long_lines() {
        let text = format!("{}\n{}", "let moon = 1;\n".repeat(200_000), "x".repeat(1_000_000));
        assert!(find_nearest_lines(&text, "let moons = 1;").is_some());
        let long = find_nearest_lines(&"y".repeat(1_000_000), &"y".repeat(900_000)).unwrap();
        assert!(long.len() < 300 && long.ends_with('…'), "{long}");
    }
}
