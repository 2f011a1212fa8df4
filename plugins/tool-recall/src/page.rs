//! Writes one page of the passages that were found.

use jaato_plugin_sdk::prelude::*;

use crate::passage::Passage;

/// The size of a page, in bytes of text. A model looks for one fact, and the answer should not fill
/// the room that the gc has made.
const PAGE_BYTES: usize = 6_000;

/// Returns one page of the passages at these places, in this order. Pages count from 1.
pub fn passage_page(passages: &[Passage], found: &[usize], page: u64) -> Value {
    let pages = split_into_pages(passages, found);
    let at = usize::try_from(page.saturating_sub(1)).unwrap_or(usize::MAX);
    let shown = pages.get(at).copied().unwrap_or_default();
    let matches: Vec<Value> = shown.iter().map(|at| passage_json(&passages[*at])).collect();
    let mut answer = json!({ "found": found.len(), "matches": matches });
    if pages.len() > 1 {
        answer["page"] = json!(page);
        answer["pages"] = json!(pages.len());
    }
    if shown.is_empty() {
        answer["hint"] = format_hint(passages, pages.len()).into();
    }
    answer
}

fn split_into_pages<'a>(passages: &[Passage], found: &'a [usize]) -> Vec<&'a [usize]> {
    let mut pages = Vec::new();
    let (mut start, mut bytes) = (0, 0);
    for (place, at) in found.iter().enumerate() {
        let of_passage = passages[*at].text.len();
        if bytes + of_passage > PAGE_BYTES && place > start {
            pages.push(&found[start..place]);
            (start, bytes) = (place, 0);
        }
        bytes += of_passage;
    }
    if start < found.len() {
        pages.push(&found[start..]);
    }
    pages
}

fn passage_json(passage: &Passage) -> Value {
    let Passage { turn, from, text, piece, .. } = passage;
    let mut written = json!({ "turn": turn, "from": from });
    if let Some((piece, pieces)) = piece {
        written["piece"] = format!("{piece} of {pieces}").into();
    }
    written["text"] = text.as_str().into();
    written
}

fn format_hint(passages: &[Passage], pages: usize) -> String {
    let turns = passages.iter().map(|passage| passage.turn);
    match (turns.clone().min(), turns.max(), pages) {
        (Some(_), Some(_), 1..) => format!("the last page is {pages}"),
        (Some(first), Some(last), 0) => {
            format!("removed messages are from turns {first} to {last}; try fewer or other words")
        }
        _ => "nothing was removed from this conversation".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbered_passages(count: u64, bytes: usize) -> Vec<Passage> {
        let passage = |turn| Passage {
            turn,
            message: turn,
            from: "user".to_owned(),
            text: "x".repeat(bytes),
            piece: None,
            call: None,
        };
        (1..=count).map(passage).collect()
    }

    #[test]
    fn pages_are_bounded_and_complete() {
        let passages = numbered_passages(9, 1_500);
        let found: Vec<usize> = (0..9).collect();
        let page = |page| passage_page(&passages, &found, page);
        let turns = |page: &Value| -> Vec<u64> {
            let matches = page["matches"].as_array().unwrap().iter();
            matches.map(|found| found["turn"].as_u64().unwrap()).collect()
        };
        assert_eq!((&page(1)["found"], &page(1)["pages"]), (&json!(9), &json!(3)));
        assert_eq!(turns(&page(1)), [1, 2, 3, 4]);
        assert_eq!(turns(&page(2)), [5, 6, 7, 8]);
        assert_eq!(turns(&page(3)), [9]);
        assert_eq!(page(4)["hint"], "the last page is 3");
        assert_eq!(page(u64::MAX)["matches"], json!([]));
    }

    #[test]
    fn no_match_hint_names_the_removed_turns() {
        let hint = passage_page(&numbered_passages(3, 5), &[], 1)["hint"].clone();
        assert_eq!(hint, "removed messages are from turns 1 to 3; try fewer or other words");
        let hint = passage_page(&[], &[], 1)["hint"].clone();
        assert_eq!(hint, "nothing was removed from this conversation");
    }
}
