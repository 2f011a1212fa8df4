//! Keeps what a call gives to the model within its bound: its two ends, and the whole in a file.
//!
//! An output keeps its shape: where its long texts are what is too much, only they are cut, each
//! with a file of its own. One that is large in another way is shortened wherever it is long, and
//! the whole of its JSON is in one file.

use futures_util::future::BoxFuture;
use jaato_types::{CallId, Error, Output, Result};
use serde_json::{Map, Value, json};

use crate::shape::{self, Cut, escaped_len};

/// The key under which a cut output tells what was left out.
const CUT_KEY: &str = "output_cut";
/// Texts shorter than this, as JSON, are never cut.
const SHORT_BYTES: usize = 512;
/// Room for the line between head and tail, as JSON.
const GAP_BYTES: usize = 64;

/// Keeps what is too long for the model.
pub trait OutputStore: Send + Sync {
    /// Writes bytes to a file of the session and returns its path, for the model to read.
    /// `label` tells two files of one call apart: a key of its output, or `output`.
    fn keep<'a>(
        &'a self,
        call: &'a CallId,
        label: &'a str,
        bytes: &'a [u8],
    ) -> BoxFuture<'a, Result<String>>;
}

/// Makes the JSON object by which the model and `jaato call` are told of an error.
pub fn error_content(error: &Error) -> Map<String, Value> {
    let mut fields = Map::new();
    fields.insert("kind".to_owned(), error.kind.name().into());
    fields.insert("message".to_owned(), error.message.as_str().into());
    if let Some(hint) = &error.hint {
        fields.insert("hint".to_owned(), hint.as_str().into());
    }
    Map::from_iter([("error".to_owned(), Value::Object(fields))])
}

/// Where an output must fit, and where the whole goes.
#[derive(Clone, Copy)]
pub(crate) struct Fitting<'a> {
    pub(crate) call: &'a CallId,
    pub(crate) bytes_max: usize,
    pub(crate) store: &'a dyn OutputStore,
}

/// Makes of an output one JSON object within its bound; raw bytes go to a file. What was attached
/// has its place beside that object, which is the caller's to fill.
pub(crate) async fn content(output: Output, fitting: Fitting<'_>) -> Map<String, Value> {
    let Output { mut content, bytes, .. } = output;
    if !bytes.is_empty() {
        let kept = keep_bytes(fitting.call, &bytes, fitting.store).await;
        note_bytes(&mut content, kept);
    }
    fit(content, fitting).await
}

/// Says in an output what became of the raw bytes beside it: under `bytes`, or where the tool has
/// that key itself under the first of `raw_bytes`, `raw_bytes_2` … that it has not.
pub fn note_bytes(content: &mut Map<String, Value>, note: Value) {
    let numbered = (2..).map(|number| format!("raw_bytes_{number}"));
    let mut keys = ["bytes", "raw_bytes"].map(str::to_owned).into_iter().chain(numbered);
    let Some(free) = keys.find(|key| !content.contains_key(key)) else {
        unreachable!("there are more numbers than keys")
    };
    content.insert(free, note);
}

/// Puts raw bytes into a file; the value tells where.
async fn keep_bytes(call: &CallId, bytes: &[u8], store: &dyn OutputStore) -> Value {
    let mut kept = json!({ "length": bytes.len() });
    note_file(&mut kept, store.keep(call, "bytes", bytes).await);
    kept
}

/// Returns the content itself where it fits, else what is shown of it.
pub(crate) async fn fit(content: Map<String, Value>, fitting: Fitting<'_>) -> Map<String, Value> {
    let json = text_of(&content);
    if json.len() <= fitting.bytes_max {
        return content;
    }
    let long: Vec<String> = long_texts(&content);
    let rest =
        json.len() - long.iter().map(|key| escaped_len(text_at(&content, key))).sum::<usize>();
    let room_each = SHORT_BYTES + GAP_BYTES;
    if long.is_empty() || rest + long.len() * room_each > fitting.bytes_max / 2 {
        return fit_shape(content, &json, fitting).await;
    }
    match fit_texts(content, &long, rest, fitting).await {
        Ok(shown) => shown,
        // Paths so long that nothing else has room: the other form has one of them only.
        Err(content) => fit_shape(content, &json, fitting).await,
    }
}

/// Cuts the long texts, each to its share; the short ones among them stay whole.
async fn fit_texts(
    mut content: Map<String, Value>,
    long: &[String],
    rest: usize,
    fitting: Fitting<'_>,
) -> std::result::Result<Map<String, Value>, Map<String, Value>> {
    let whole = content.clone();
    let mut by_length: Vec<(usize, &String)> =
        long.iter().map(|key| (escaped_len(text_at(&content, key)), key)).collect();
    by_length.sort_unstable();
    // What was cut before keeps its file, which holds the whole.
    let mut notes = content.get(CUT_KEY).and_then(Value::as_object).cloned().unwrap_or_default();
    let mut room = fitting.bytes_max.saturating_sub(rest + CUT_KEY.len() + 8);
    let mut files = Vec::new();
    // From the shortest on: what one text does not need of its share goes to the longer ones.
    for (position, (length, key)) in by_length.iter().enumerate() {
        let share = room / (by_length.len() - position);
        if *length <= share {
            room -= length;
            continue;
        }
        let text = text_at(&content, key);
        let known = notes.get(key.as_str()).filter(|note| note.get("file").is_some());
        let note = match known {
            Some(known) => known.clone(),
            None => {
                let mut note = widest_note();
                note_file(&mut note, fitting.store.keep(fitting.call, key, text.as_bytes()).await);
                note["bytes"] = text.len().into();
                note
            }
        };
        room = room.saturating_sub(escaped_len(key) + note.to_string().len() + 8 + GAP_BYTES);
        files.push((*key, note));
    }
    let share = room / files.len().max(1);
    for (key, mut note) in files {
        let mut cut = Cut::of(text_at(&content, key), share);
        let whole = note["bytes"].as_u64().and_then(|bytes| usize::try_from(bytes).ok());
        cut.bytes = whole.unwrap_or(cut.bytes);
        cut.note(&mut note);
        let shown = format!("{}\n[… {} bytes left out …]\n{}", cut.head, cut.left_out(), cut.tail);
        notes.insert(key.clone(), note);
        content.insert(key.clone(), shown.into());
    }
    content.insert(CUT_KEY.to_owned(), Value::Object(notes));
    if text_of(&content).len() <= fitting.bytes_max { Ok(content) } else { Err(whole) }
}

/// Shortens whatever is long, and keeps the whole as JSON.
async fn fit_shape(
    mut content: Map<String, Value>,
    json: &str,
    fitting: Fitting<'_>,
) -> Map<String, Value> {
    // What was cut before is told in the file.
    content.remove(CUT_KEY);
    let widest = u64::from(u32::MAX);
    let mut note = json!({ "bytes": json.len(), "left_out_bytes": widest });
    note_file(&mut note, fitting.store.keep(fitting.call, "output", json.as_bytes()).await);
    let note_bytes = CUT_KEY.len() + 4 + note.to_string().len();
    let mut shown = shape::shortened(&content, fitting.bytes_max.saturating_sub(note_bytes));
    note["left_out_bytes"] = json.len().saturating_sub(text_of(&shown).len()).into();
    shown.insert(CUT_KEY.to_owned(), note);
    shown
}

/// A note as long as it can become, so that room can be kept for it.
fn widest_note() -> Value {
    let widest = u64::from(u32::MAX);
    json!({ "bytes": widest, "head_bytes": widest, "tail_bytes": widest, "left_out_bytes": widest })
}

fn note_file(note: &mut Value, kept: Result<String>) {
    match kept {
        Ok(path) => note["file"] = path.into(),
        Err(error) => note["not_kept"] = error.message.into(),
    }
}

fn long_texts(content: &Map<String, Value>) -> Vec<String> {
    let is_long =
        |value: &Value| value.as_str().is_some_and(|text| escaped_len(text) > SHORT_BYTES);
    let long = content.iter().filter(|(key, value)| *key != CUT_KEY && is_long(value));
    long.map(|(key, _)| key.clone()).collect()
}

fn text_at<'a>(content: &'a Map<String, Value>, key: &str) -> &'a str {
    content.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn text_of(content: &Map<String, Value>) -> String {
    // A map of JSON values always has a text; an empty one would only skip the cutting.
    serde_json::to_string(content).unwrap_or_default()
}
