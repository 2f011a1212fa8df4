//! The events that clients read as JSON lines match the committed ones. Names and keys are only
//! ever added.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use jaato_types::{Event, EventEnvelope};

const EXAMPLES: &str = include_str!("events.jsonl");

#[test]
fn event_examples_are_read_and_written_unchanged() {
    for (at, line) in EXAMPLES.lines().enumerate() {
        let envelope: EventEnvelope =
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert_ne!(envelope.event, Event::Unknown, "{line}");
        assert_eq!(usize::try_from(envelope.seq), Ok(at + 1), "{line}");
        assert_eq!(serde_json::to_string(&envelope).unwrap(), line);
    }
}

#[test]
fn every_event_has_an_example() {
    let source = include_str!("../src/event.rs");
    let (_, body) = source.split_once("pub enum Event {\n").unwrap();
    let (body, _) = body.split_once("\n}\n").unwrap();
    let variants = body.lines().filter_map(|line| line.strip_prefix("    "));
    let variants = variants.filter(|line| line.starts_with(|sign: char| sign.is_ascii_uppercase()));
    let names = variants.map(|line| {
        let name = line.split(['(', ' ', ',']).next().unwrap();
        name.chars().fold(String::new(), |mut name, sign| {
            if sign.is_uppercase() && !name.is_empty() {
                name.push('_');
            }
            name.extend(sign.to_lowercase());
            name
        })
    });
    let without: Vec<String> =
        names.filter(|name| !EXAMPLES.contains(&format!("\"event\":\"{name}\""))).collect();
    assert_eq!(without, ["unknown"]);
}
