//! Formats the results of a [`AnswerReader`], one per line. They must not depend on how a stream is
//! split.

use jaato_plugin_sdk::Result;
use jaato_plugin_sdk::types::{Completion, Delta, Part, Usage};
use jaato_plugin_sdk_provider::{AnswerReader, ServerEvent, ServerEventReader, SurrogateRepair};

/// The formatting of a completion's parts and usage in a test.
pub struct CompletionFormat {
    pub part: fn(&Part) -> String,
    pub usage: fn(&Usage) -> String,
}

impl CompletionFormat {
    /// Reads a stream and returns the deltas, then the completion or the error, one per line.
    pub fn format_stream<'a>(
        &self,
        reply: impl AnswerReader,
        pieces: impl IntoIterator<Item = &'a [u8]>,
    ) -> String {
        let mut lines = Vec::new();
        let result = run_reader(reply, pieces, &mut lines);
        lines.push(self.format_result(result));
        lines.join("\n")
    }

    pub fn format_result(&self, result: Result<Completion>) -> String {
        match result {
            Ok(completion) => {
                let parts: Vec<_> = completion.parts.iter().map(self.part).collect();
                format!(
                    "= {} {:?}{} {}",
                    parts.join(" "),
                    completion.finish_reason,
                    completion.finish_word.map(|word| format!(" ({word})")).unwrap_or_default(),
                    (self.usage)(&completion.usage),
                )
            }
            Err(error) => {
                let wait =
                    error.retry_after_ms.map(|wait| format!(" {wait} ms")).unwrap_or_default();
                format!("! {:?} {:?}{wait} {}", error.kind, error.retry, error.message)
            }
        }
    }
}

fn run_reader<'a>(
    mut reply: impl AnswerReader,
    pieces: impl IntoIterator<Item = &'a [u8]>,
    lines: &mut Vec<String>,
) -> Result<Completion> {
    let mut characters = SurrogateRepair::default();
    let mut events = ServerEventReader::new();
    let mut take = |deltas: Vec<Delta>, characters: &mut SurrogateRepair| {
        lines.extend(deltas.into_iter().map(|it| format_delta(&characters.join_delta(it))));
    };
    for piece in pieces {
        for event in events.push(piece)? {
            let event = repair_event(event, &mut characters);
            take(reply.handle_event(&event)?, &mut characters);
        }
    }
    if let Some(event) = events.finish() {
        let event = repair_event(event, &mut characters);
        take(reply.handle_last_event(&event)?, &mut characters);
    }
    let (deltas, mut completion) = reply.finish()?;
    take(deltas, &mut characters);
    characters.join_completion(&mut completion);
    Ok(completion)
}

fn repair_event(event: ServerEvent, characters: &mut SurrogateRepair) -> ServerEvent {
    let data = characters.repair_json(&event.data).into_owned();
    ServerEvent { data, ..event }
}

pub fn format_delta(delta: &Delta) -> String {
    match delta {
        Delta::Text { text, .. } => format!("text {text:?}"),
        Delta::Thought { text, .. } => format!("thought {text:?}"),
        Delta::ToolCall(call) => format!("call {} {} {}", call.id, call.name, call.arguments),
        Delta::Notice { text, .. } => format!("notice {text}"),
        other => format!("{other:?}"),
    }
}

/// Reads a stream whole, byte by byte, and split at every byte. All results must be equal.
#[track_caller]
pub fn read_split_anywhere(
    stream: &str,
    read: impl Fn(&mut dyn Iterator<Item = &[u8]>) -> String,
) -> String {
    let bytes = stream.as_bytes();
    let whole = read(&mut [bytes].into_iter());
    assert_eq!(read(&mut bytes.chunks(1)), whole, "byte by byte");
    for cut in 0..=bytes.len() {
        let (start, end) = bytes.split_at(cut);
        assert_eq!(read(&mut [start, end].into_iter()), whole, "cut at {cut}");
    }
    whole
}
