//! Ranks passages by words (BM25), and selects them by turn and path.
//!
//! A word counts more the fewer passages have it, so a whole question can be the query: its common
//! words hardly matter. Two words that follow each other in the query are a term too, so that a
//! name of common words, such as `build-12`, finds its own passages.

use std::collections::HashSet;

use jaato_plugin_sdk::types::CallId;

use crate::passage::Passage;
use crate::words::{for_each_word, word_similarity};

/// The maximum number of words of a query.
const WORDS_MAX: usize = 64;

/// BM25: how quickly repetitions of a word stop counting.
const SATURATION: f64 = 1.2;
/// BM25: how much the length of a passage matters.
const LENGTH_WEIGHT: f64 = 0.5;

/// The user's words count this much more than others, because they state the constraints.
const USER_WEIGHT: f64 = 1.25;

/// What a passage is searched for: a word, after another one if `before` is not empty.
#[derive(Debug, PartialEq, Eq)]
struct SearchTerm {
    before: String,
    word: String,
}

/// What to find.
#[derive(Debug, Clone, Default)]
pub struct PassageQuery {
    /// Words, or a blank text.
    pub query: String,
    /// The number of a turn.
    pub turn: Option<u64>,
    /// A path or its end, or an empty text.
    pub path: String,
}

impl PassageQuery {
    /// Returns true if nothing is named.
    pub fn is_empty(&self) -> bool {
        self.query.trim().is_empty() && self.turn.is_none() && self.path.is_empty()
    }
}

/// Returns the places of the passages that were asked for, best first. Without a query, passages of
/// a turn are in their order, and passages about a path have the newest first.
pub fn search_passages(passages: &[Passage], wanted: &PassageQuery) -> Vec<usize> {
    let about_path =
        (!wanted.path.is_empty()).then(|| calls_mentioning_path(passages, &wanted.path));
    let is_selected = |passage: &Passage| {
        let is_about = about_path.as_ref().is_none_or(|calls| {
            passage.call.as_ref().is_some_and(|call| calls.contains(call))
                || has_whole_path(&passage.text, &wanted.path)
        });
        is_about && wanted.turn.is_none_or(|turn| passage.turn == turn)
    };
    let selected = (0..passages.len()).filter(|at| is_selected(&passages[*at]));
    if !wanted.query.trim().is_empty() {
        return rank_passages(passages, selected.collect(), &wanted.query);
    }
    let mut selected: Vec<usize> = selected.collect();
    if wanted.turn.is_none() {
        // The pieces of one message keep their order.
        selected.sort_by_key(|at| std::cmp::Reverse(passages[*at].message));
    }
    selected
}

/// Returns the calls whose arguments or results mention a path.
fn calls_mentioning_path<'a>(passages: &'a [Passage], path: &str) -> HashSet<&'a CallId> {
    let about = passages.iter().filter(|passage| has_whole_path(&passage.text, path));
    about.filter_map(|passage| passage.call.as_ref()).collect()
}

/// Returns true if a text has the path, not as a part of a longer name.
fn has_whole_path(text: &str, path: &str) -> bool {
    let path = path.trim_start_matches("./");
    let is_of_name = |sign: char| sign.is_alphanumeric() || matches!(sign, '_' | '-');
    text.match_indices(path).any(|(at, found)| {
        let before = text[..at].chars().next_back();
        let after = text[at + found.len()..].chars().next();
        !before.is_some_and(is_of_name) && !after.is_some_and(is_of_name)
    })
}

/// Ranks the selected passages that have a word of the query. Of equal ones, the newest is first.
fn rank_passages(passages: &[Passage], selected: Vec<usize>, query: &str) -> Vec<usize> {
    let terms = query_terms(query);
    let counted: Vec<(Vec<f64>, f64)> =
        selected.iter().map(|at| count_terms(&passages[*at].text, &terms)).collect();
    let all = counted.len() as f64;
    let average = counted.iter().map(|(_, length)| length).sum::<f64>() / all.max(1.0);
    let weights: Vec<f64> = (0..terms.len())
        .map(|term| {
            let with = counted.iter().filter(|(counts, _)| counts[term] > 0.0).count() as f64;
            ((all - with + 0.5) / (with + 0.5)).ln_1p()
        })
        .collect();
    let all_weights: f64 = weights.iter().sum();
    let score = |at: usize, (counts, length): &(Vec<f64>, f64)| {
        let longer = 1.0 - LENGTH_WEIGHT + LENGTH_WEIGHT * length / average.max(1.0);
        let of_term = |(count, weight): (&f64, &f64)| {
            weight * count * (SATURATION + 1.0) / (count + SATURATION * longer)
        };
        let total: f64 = counts.iter().zip(&weights).map(of_term).sum();
        // A short passage with the common words only must not win over a long one with all words.
        let has = |(count, weight): (&f64, &f64)| count.min(1.0) * weight;
        let covered: f64 = counts.iter().zip(&weights).map(has).sum();
        let total = total * covered / all_weights.max(f64::MIN_POSITIVE);
        if passages[at].from == "user" { total * USER_WEIGHT } else { total }
    };
    let scores = selected.iter().zip(&counted).map(|(at, counted)| (score(*at, counted), *at));
    let mut scores: Vec<(f64, usize)> = scores.filter(|(score, _)| *score > 0.0).collect();
    scores.sort_by(|a, b| b.0.total_cmp(&a.0).then(b.1.cmp(&a.1)));
    scores.into_iter().map(|(_, at)| at).collect()
}

fn query_terms(query: &str) -> Vec<SearchTerm> {
    let mut words: Vec<String> = Vec::new();
    for_each_word(query, |word| {
        if words.len() < WORDS_MAX {
            words.push(word.to_owned());
        }
    });
    let single = words.iter().map(|word| SearchTerm { before: String::new(), word: word.clone() });
    let pairs = words.windows(2);
    let pairs = pairs.map(|pair| SearchTerm { before: pair[0].clone(), word: pair[1].clone() });
    let mut terms: Vec<SearchTerm> = Vec::new();
    for term in single.chain(pairs) {
        if !terms.contains(&term) {
            terms.push(term);
        }
    }
    terms
}

/// Counts how often a text has each term, and all its words.
fn count_terms(text: &str, terms: &[SearchTerm]) -> (Vec<f64>, f64) {
    let (mut counts, mut length) = (vec![0.0; terms.len()], 0.0);
    let mut before = String::new();
    for_each_word(text, |word| {
        length += 1.0;
        for (term, count) in terms.iter().zip(&mut counts) {
            let mut found = word_similarity(&term.word, word);
            if found > 0.0 && !term.before.is_empty() {
                found *= word_similarity(&term.before, &before);
            }
            *count += found;
        }
        word.clone_into(&mut before);
    });
    (counts, length)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_passage(turn: u64, from: &str, text: &str) -> Passage {
        let text = text.to_owned();
        Passage { turn, message: turn, from: from.to_owned(), text, piece: None, call: None }
    }

    fn sample_conversation() -> Vec<Passage> {
        vec![
            text_passage(1, "user", "Use port 5433 for the staging database, never 5432."),
            text_passage(1, "assistant", "Understood. The tests use a database in memory."),
            text_passage(2, "user", "Which of the tests is the slowest?"),
            text_passage(2, "tool cli_based_tool", "stdout: test src/data.rs took 3 s\nport open"),
            text_passage(3, "user", "Résumé: обновить ПОРТ сервера до пятницы"),
            text_passage(4, "assistant", "I changed src/data.rs and lib/other_data.rs."),
        ]
    }

    fn found_turns(wanted: &PassageQuery) -> Vec<u64> {
        let passages = sample_conversation();
        search_passages(&passages, wanted).into_iter().map(|at| passages[at].turn).collect()
    }

    fn query_of_words(query: &str) -> PassageQuery {
        PassageQuery { query: query.to_owned(), ..PassageQuery::default() }
    }

    #[test]
    fn question_finds_the_fact_before_passages_with_its_common_words() {
        let question = "Which port did I say that the staging database uses?";
        assert_eq!(found_turns(&query_of_words(question))[0], 1);
        assert_eq!(found_turns(&query_of_words("what is the SLOWEST test"))[0], 2);
        assert_eq!(found_turns(&query_of_words("resume порт"))[0], 3);
        assert!(found_turns(&query_of_words("nothing like this")).is_empty());
    }

    #[test]
    fn name_of_common_words_finds_its_own_passage() {
        let around = "the service and its tests run every night. ".repeat(20);
        let mut passages: Vec<Passage> = (0..30)
            .map(|at| {
                let port = format!("The port of heron-otter-{at} is {}. {around}", 4000 + at);
                text_passage(at, "user", &format!("{around}{port}"))
            })
            .collect();
        let counting = (0..30).map(|at| at.to_string()).collect::<Vec<_>>().join(" ");
        passages.extend((30..60).map(|at| text_passage(at, "tool cli_based_tool", &counting)));
        let question = |at: u64| format!("What is the port of heron-otter-{at}?");
        passages.extend((60..80).map(|at| text_passage(at, "user", &question(at))));
        for at in 0..30 {
            let found = search_passages(
                &passages,
                &query_of_words(&format!("the port of heron-otter-{at}")),
            );
            assert_eq!(passages[found[0]].turn, at);
        }
    }

    #[test]
    fn path_matches_as_a_whole_and_the_newest_is_first() {
        let path = |path: &str| PassageQuery { path: path.to_owned(), ..PassageQuery::default() };
        assert_eq!(found_turns(&path("data.rs")), [4, 2]);
        assert_eq!(found_turns(&path("./src/data.rs")), [4, 2]);
        assert!(found_turns(&path("src/dat")).is_empty());
        assert_eq!(
            found_turns(&PassageQuery { query: "slow test took".to_owned(), ..path("data.rs") }),
            [2]
        );
    }

    #[test]
    fn result_of_a_call_about_a_path_is_found() {
        let mut passages = sample_conversation();
        let call = Some(CallId::from("c1"));
        passages.push(Passage { call: call.clone(), ..text_passage(5, "call of cat", "notes.md") });
        passages.push(Passage { call, ..text_passage(5, "tool cat", "the whole text") });
        let wanted = PassageQuery { path: "notes.md".to_owned(), ..PassageQuery::default() };
        assert_eq!(search_passages(&passages, &wanted), [6, 7]);
    }

    #[test]
    fn turn_is_returned_in_its_order() {
        let wanted = PassageQuery { turn: Some(2), ..PassageQuery::default() };
        assert_eq!(search_passages(&sample_conversation(), &wanted), [2, 3]);
    }
}
