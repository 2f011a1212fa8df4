//! Measures how well pages of different kinds become text: the words of the Markdown against those
//! of a reference text, as the harmonic mean of precision and recall (F1).
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use jaato_plugin_sdk::prelude::json;
use jaato_plugin_testkit::{FakeHost, FakeHttpAnswer};

/// The lowest acceptable F1.
const F1_MIN: f64 = 0.9;

/// Counts the words of a text. Targets of links are not words.
fn count_words(text: &str) -> HashMap<String, usize> {
    let mut counts = HashMap::new();
    let without_targets = text.split("](").enumerate().map(|(at, part)| match at {
        0 => part,
        _ => part.split_once(')').map_or("", |(_, rest)| rest),
    });
    let text = without_targets.collect::<Vec<_>>().join(" ").to_lowercase();
    for word in text.split(|letter: char| !letter.is_alphanumeric()).filter(|it| !it.is_empty()) {
        *counts.entry(word.to_owned()).or_default() += 1;
    }
    counts
}

#[expect(clippy::cast_precision_loss, reason = "pages have few words")]
fn f1_score(text: &str, reference: &str) -> f64 {
    let (found, wanted) = (count_words(text), count_words(reference));
    let common: usize = found
        .iter()
        .map(|(word, count)| (*count).min(wanted.get(word).copied().unwrap_or(0)))
        .sum();
    let total: usize = found.values().sum::<usize>() + wanted.values().sum::<usize>();
    2.0 * common as f64 / total as f64
}

fn page_to_markdown(html: Vec<u8>) -> String {
    let host = FakeHost::new(tool_web_fetch::__jaato::MODULE).with_http(move |_| {
        Ok(FakeHttpAnswer::status(200).header("content-type", "text/html").body(html.clone()))
    });
    let output = host.call("web_fetch", json!({ "url": "https://a.example/" })).unwrap();
    let content = output.content["content"].as_str().unwrap();
    let content = content.strip_suffix("\n</web-page>").unwrap();
    content.split_once(">\n").unwrap().1.to_owned()
}

#[test]
fn text_of_pages_of_different_kinds_is_found() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pages");
    let mut pages = 0;
    let mut bad = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|ending| ending != "html") {
            continue;
        }
        pages += 1;
        let markdown = page_to_markdown(fs::read(&path).unwrap());
        let f1 = f1_score(&markdown, &fs::read_to_string(path.with_extension("txt")).unwrap());
        if f1 < F1_MIN {
            bad.push(format!("{}: {f1:.2}\n{markdown}", path.display()));
        }
    }
    assert!(pages >= 20 && bad.is_empty(), "{}", bad.join("\n\n"));
}
