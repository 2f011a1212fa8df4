//! The service `session.history`, which returns the conversation message by message.

use std::sync::Arc;

use futures_util::{StreamExt as _, stream};
use jaato_loader::{EngineServiceAnswer, FrameStream};
use jaato_session::{HistoryEntry, MessageMark};
use jaato_types::history::{HistoryMessage, HistoryRead};
use jaato_types::{Error, Frame, FrameError, Message, Part};
use serde_json::{Map, json};

use super::host_bug_error;
use crate::call::ServiceCall;

/// The size from which a part is left out of a message that is larger than a frame, in bytes.
const LARGE_PART_BYTES: usize = 64 * 1024;
/// The text that replaces a part that was left out.
const LEFT_OUT: &str = "[left out: the message is larger than a frame]";

jaato_types::history_operations!(bodies);

fn history(call: &ServiceCall, asked: Option<HistoryRead>) -> Result<EngineServiceAnswer, Error> {
    let asked = asked.unwrap_or_default();
    let record = call.shared.sessions.find(&call.site.session)?.published_record()?;
    let messages = record.entries.len() as u64;
    let first = asked.from.max(asked.last.map_or(0, |last| messages.saturating_sub(last)));
    let mut turn = record.turns_forgotten;
    let numbered = (0..).zip(record.entries).map(move |(number, entry)| {
        let is_unsent = entry.mark == Some(MessageMark::Unsent);
        turn += u64::from(entry.message.is_prompt() && !is_unsent);
        (number, turn, entry)
    });
    let is_asked = move |(number, _, entry): &(u64, u64, Arc<HistoryEntry>)| {
        *number >= first && (!asked.only_collected || entry.is_collected() || entry.is_shortened())
    };
    let frames = stream::iter(numbered.filter(is_asked))
        .map(|(number, turn, entry)| history_frame(number, turn, &entry));
    let head = Map::from_iter([("messages".to_owned(), json!(messages))]);
    Ok(EngineServiceAnswer::StreamWith(head, Box::new(FrameStream(frames))))
}

fn history_frame(number: u64, turn: u64, entry: &HistoryEntry) -> Result<Vec<u8>, Error> {
    let mut told = HistoryMessage::new(number, entry.message.clone());
    told.turn = turn;
    told.is_collected = entry.is_collected();
    told.is_shortened = entry.is_shortened();
    told.is_unsent = entry.mark == Some(MessageMark::Unsent);
    let frame = Frame::write(&told).or_else(|error| match error {
        FrameError::TooLarge { .. } => {
            told.message = without_large_parts(&entry.message);
            Frame::write(&told)
        }
        error => Err(error),
    });
    frame.map_err(host_bug_error)
}

fn without_large_parts(message: &Message) -> Message {
    let is_large =
        |part: &Part| serde_json::to_vec(part).map_or(true, |json| json.len() > LARGE_PART_BYTES);
    let part = |part: &Part| if is_large(part) { Part::text(LEFT_OUT) } else { part.clone() };
    Message { parts: message.parts.iter().map(part).collect(), ..message.clone() }
}
