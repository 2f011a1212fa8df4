//! Finds the position of an edit: the only match of its text.

use std::collections::BTreeSet;
use std::ops::Range;

use memchr::memmem;

/// The maximum number of counted matches. If there are more, the error says "at least".
const PLACES_MAX: usize = 1000;

/// The maximum number of matches that an error names.
const PLACES_NAMED_MAX: usize = 10;

/// The texts directly before and after the replaced text. They stay unchanged. A line end may come
/// between.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EditAnchors<'a> {
    /// The text before.
    pub prologue: &'a str,
    /// The text after.
    pub epilogue: &'a str,
}

/// The reason why there is not exactly one match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MatchFailure {
    /// The text does not occur.
    NotFound,
    /// The text occurs in these lines, but not between the anchors.
    NotBetween(Vec<usize>),
    /// The text occurs several times.
    Ambiguous {
        /// The number of matches.
        count: usize,
        /// The lines of the first matches.
        lines: Vec<usize>,
    },
    /// The text does not occur exactly, but similar texts do.
    Alike {
        /// The number of similar texts.
        count: usize,
        /// The lines of the first ones.
        lines: Vec<usize>,
    },
    /// The searched text is empty.
    Empty,
}

impl EditAnchors<'_> {
    /// Returns true if no anchor is set.
    pub fn is_empty(&self) -> bool {
        self.prologue.is_empty() && self.epilogue.is_empty()
    }
}

/// Finds the only match of a text. All texts use LF.
///
/// # Errors
/// An error if `old` has no match, or more than one.
pub fn find_single_match(
    text: &str,
    old: &str,
    anchors: EditAnchors<'_>,
) -> Result<Range<usize>, MatchFailure> {
    find_single_match_where(text, old, anchors, |_| true)
}

/// Finds the only match of a text for which `holds` returns true.
///
/// # Errors
/// The errors of [`find_single_match`].
pub fn find_single_match_where(
    text: &str,
    old: &str,
    anchors: EditAnchors<'_>,
    holds: impl Fn(usize) -> bool,
) -> Result<Range<usize>, MatchFailure> {
    if old.is_empty() && anchors.is_empty() {
        return if text.is_empty() { Ok(0..0) } else { Err(MatchFailure::Empty) };
    }
    let mut places = match_positions(text, old, anchors);
    places.retain(|place| holds(*place));
    let first = places.first().copied();
    match (places.len(), first) {
        (1, Some(start)) => Ok(start..start + old.len()),
        (0, _) | (_, None) => Err(match_failure(text, old, anchors)),
        (count, Some(_)) => {
            Err(MatchFailure::Ambiguous { count, lines: line_numbers(text, &places) })
        }
    }
}

/// Finds all matches of a text, in order and without overlaps.
///
/// # Errors
/// An error if `old` has no match.
pub fn find_all_matches(
    text: &str,
    old: &str,
    anchors: EditAnchors<'_>,
) -> Result<Vec<Range<usize>>, MatchFailure> {
    if old.is_empty() {
        return Err(MatchFailure::Empty);
    }
    let mut found: Vec<Range<usize>> = Vec::new();
    if anchors.is_empty() {
        let starts = memmem::find_iter(text.as_bytes(), old);
        found.extend(starts.map(|start| start..start + old.len()));
    } else {
        for start in match_positions(text, old, anchors) {
            if found.last().is_none_or(|last| last.end <= start) {
                found.push(start..start + old.len());
            }
        }
    }
    if found.is_empty() { Err(match_failure(text, old, anchors)) } else { Ok(found) }
}

fn match_positions(text: &str, old: &str, anchors: EditAnchors<'_>) -> BTreeSet<usize> {
    let mut places = BTreeSet::new();
    let gaps: [&str; 2] = ["", "\n"];
    // A missing anchor has no gap before or after it.
    let before = if anchors.prologue.is_empty() { &gaps[..1] } else { &gaps };
    let after = if anchors.epilogue.is_empty() { &gaps[..1] } else { &gaps };
    for gap_before in before {
        for gap_after in after {
            let EditAnchors { prologue, epilogue } = anchors;
            let whole = format!("{prologue}{gap_before}{old}{gap_after}{epilogue}");
            let ahead = prologue.len() + gap_before.len();
            places.extend(match_starts(text, &whole).map(|start| start + ahead));
        }
        // An insertion between two anchors has one position, with or without a line end.
        if old.is_empty() && !places.is_empty() {
            break;
        }
    }
    places
}

fn match_failure(text: &str, old: &str, anchors: EditAnchors<'_>) -> MatchFailure {
    if anchors.is_empty() || old.is_empty() {
        return MatchFailure::NotFound;
    }
    let places: BTreeSet<usize> = match_starts(text, old).collect();
    if places.is_empty() {
        MatchFailure::NotFound
    } else {
        MatchFailure::NotBetween(line_numbers(text, &places))
    }
}

/// Returns the positions of all matches, including overlapping ones.
fn match_starts<'a>(text: &'a str, wanted: &str) -> impl Iterator<Item = usize> + use<'a> {
    let finder = memmem::Finder::new(wanted.as_bytes()).into_owned();
    let mut from = 0;
    let next = move || {
        let start = from + finder.find(text.as_bytes().get(from..)?)?;
        from = start + 1;
        Some(start)
    };
    std::iter::from_fn(next).take(PLACES_MAX)
}

/// Returns the line numbers of positions.
fn line_numbers(text: &str, places: &BTreeSet<usize>) -> Vec<usize> {
    let (mut line, mut done) = (1, 0);
    let number = |at: &usize| {
        line += memchr::memchr_iter(b'\n', &text.as_bytes()[done..*at]).count();
        done = *at;
        line
    };
    places.iter().take(PLACES_NAMED_MAX).map(number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "one\n  x = 1\ntwo\n  x = 1\nthree\n";

    fn anchors_between<'a>(prologue: &'a str, epilogue: &'a str) -> EditAnchors<'a> {
        EditAnchors { prologue, epilogue }
    }

    #[test]
    fn unique_text_is_found() {
        assert_eq!(find_single_match(TEXT, "two", EditAnchors::default()), Ok(12..15));
        assert_eq!(find_single_match("", "", EditAnchors::default()), Ok(0..0));
    }

    #[test]
    fn anchors_choose_one_of_several_places() {
        assert_eq!(find_single_match(TEXT, "x = 1", anchors_between("two\n  ", "")), Ok(18..23));
        assert_eq!(find_single_match(TEXT, "x = 1", anchors_between("", "\ntwo")), Ok(6..11));
        assert_eq!(find_single_match(TEXT, "x = 1", anchors_between("  ", "\nthree")), Ok(18..23));
        // The line end at the seam may be left out.
        assert_eq!(find_single_match(TEXT, "  x = 1", anchors_between("two", "three")), Ok(16..23));
        // Inserts between the anchors.
        assert_eq!(find_single_match(TEXT, "", anchors_between("two\n", "")), Ok(16..16));
        assert_eq!(find_single_match(TEXT, "", anchors_between("one", "  x")), Ok(3..3));
    }

    #[test]
    fn missing_or_ambiguous_text_is_refused() {
        let ambiguous =
            |count, lines: &[usize]| Err(MatchFailure::Ambiguous { count, lines: lines.to_vec() });
        assert_eq!(find_single_match(TEXT, "x = 1", EditAnchors::default()), ambiguous(2, &[2, 4]));
        assert_eq!(find_single_match("aaa", "aa", EditAnchors::default()), ambiguous(2, &[1, 1]));
        assert_eq!(
            find_single_match(TEXT, "zzz", EditAnchors::default()),
            Err(MatchFailure::NotFound)
        );
        assert_eq!(
            find_single_match(TEXT, "x = 1", anchors_between("no", "")),
            Err(MatchFailure::NotBetween(vec![2, 4]))
        );
        assert_eq!(find_single_match(TEXT, "", EditAnchors::default()), Err(MatchFailure::Empty));
        assert_eq!(find_single_match(TEXT, "", anchors_between("  x", "")), ambiguous(2, &[2, 4]));
    }
}
