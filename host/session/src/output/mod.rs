//! Truncates the output of tool calls for the model. No other code truncates it.
//!
//! A tool returns its whole output, or it streams output that may be long ([`StreamedOutput`]). If
//! the result's JSON is larger than `session.output_bytes_max`, the model gets the head and the
//! tail of each long text. Between them a note says how much is left out and which file has the
//! whole text. A result without a long text is shown as the head and tail of its JSON.
//!
//! Invariant: no result is larger than the limit, and texts are cut between characters.

mod cut;
mod head_and_tail;
mod live;
mod plain;
mod session_files;
mod streamed;

use futures_util::future::BoxFuture;
use jaato_types::{CallId, Error, Output, Result};
use serde_json::{Map, Value, json};

pub(crate) use cut::{head_and_tail, largest_share};
pub(crate) use session_files::SessionOutputFiles;
pub use streamed::StreamedOutput;

use cut::{FullOutputLocation, LongText, escaped_len};

/// The key of the file with the whole output, in a truncated result.
const OUTPUT_FILE: &str = "output_file";

/// The key of a result that is shown as the head and tail of its JSON.
const JSON_KEY: &str = "json";

/// Texts shorter than this, as JSON, are never truncated.
const SHORT_BYTES: usize = 512;

/// Stores output that is too long for the model.
pub trait OutputStore: Send + Sync {
    /// Creates a file of the session. `label` distinguishes two files of one call: `output` is the
    /// file of streamed output.
    fn create<'a>(
        &'a self,
        call: &'a CallId,
        label: &'a str,
    ) -> BoxFuture<'a, Result<Box<dyn OutputWriter>>>;

    /// Returns true if the session made a file at this path. The session itself remembers the paths
    /// of new files, so a store need not.
    fn has_file(&self, _path: &str) -> bool {
        false
    }
}

/// A file of a call's output, written piece by piece.
pub trait OutputWriter: Send {
    /// Returns the path with which the session's tools read it.
    fn path(&self) -> String;

    /// Returns the number of bytes in it.
    fn byte_count(&self) -> u64;

    /// Appends a whole piece.
    ///
    /// # Errors
    /// When the file would be too large, in which case nothing is added, or when it cannot be
    /// written.
    fn write<'a>(&'a mut self, bytes: &'a [u8]) -> BoxFuture<'a, Result<()>>;

    /// Ends the file, which is complete. Returns its path, which may be a new one.
    fn finish<'a>(&'a mut self) -> BoxFuture<'a, String> {
        Box::pin(std::future::ready(self.path()))
    }
}

/// Writes a whole file. Returns its path.
///
/// # Errors
/// When it cannot be written.
pub(crate) async fn write_whole_file(
    store: &dyn OutputStore,
    call: &CallId,
    label: &str,
    bytes: &[u8],
) -> Result<String> {
    let mut file = store.create(call, label).await?;
    file.write(bytes).await?;
    Ok(file.finish().await)
}

/// Returns the JSON object that describes an error to the model and in `jaato call`.
pub fn error_content(error: &Error) -> Map<String, Value> {
    let mut fields = Map::new();
    fields.insert("kind".to_owned(), error.kind.name().into());
    fields.insert("message".to_owned(), error.message.as_str().into());
    if let Some(hint) = &error.hint {
        fields.insert("hint".to_owned(), hint.as_str().into());
    }
    Map::from_iter([("error".to_owned(), Value::Object(fields))])
}

/// The limit of a result, and where the whole output goes.
#[derive(Clone, Copy)]
pub(crate) struct ResultLimit<'a> {
    pub(crate) call: &'a CallId,
    pub(crate) bytes_max: usize,
    pub(crate) store: &'a dyn OutputStore,
}

/// Turns an output into one JSON object within its limit. Raw bytes go to a file. The caller places
/// the attachments next to that object.
pub(crate) async fn output_content(output: Output, fitting: ResultLimit<'_>) -> Map<String, Value> {
    let Output { mut content, bytes, .. } = output;
    if !bytes.is_empty() {
        let note = match write_whole_file(fitting.store, fitting.call, "bytes", &bytes).await {
            Ok(path) => json!({ "length": bytes.len(), "file": path }),
            Err(error) => json!({ "length": bytes.len(), "not_kept": error.message }),
        };
        add_bytes_note(&mut content, note);
    }
    fit_to_limit(content, fitting).await
}

/// Adds a note about the raw bytes next to an output: under `bytes`, or, if the tool uses that key
/// itself, under the first free key of `raw_bytes`, `raw_bytes_2` …
pub fn add_bytes_note(content: &mut Map<String, Value>, note: Value) {
    let numbered = (2..).map(|number| format!("raw_bytes_{number}"));
    let mut keys = ["bytes", "raw_bytes"].map(str::to_owned).into_iter().chain(numbered);
    let Some(free) = keys.find(|key| !content.contains_key(key)) else {
        unreachable!("there are more numbers than keys")
    };
    content.insert(free, note);
}

/// Returns the content itself if it fits, or as much of it as the limit allows.
pub(crate) async fn fit_to_limit(
    mut content: Map<String, Value>,
    fitting: ResultLimit<'_>,
) -> Map<String, Value> {
    let json = content_json(&content);
    if json.len() <= fitting.bytes_max {
        return content;
    }
    // A tool may name any file. Its text is kept only in a file of this store.
    let file = content.get(OUTPUT_FILE).and_then(Value::as_str);
    let file = file.filter(|path| fitting.store.has_file(path)).map(str::to_owned);
    let mut texts = Vec::new();
    for (key, value) in &mut content {
        match value {
            Value::String(text) if is_long_text(key, text) => {
                texts.push(LongText::new(key, std::mem::take(text), file.as_deref()));
            }
            _ => {}
        }
    }
    if !texts.is_empty() && content_json(&content).len() <= fitting.bytes_max / 2 {
        let shown = truncate_texts(content, texts, fitting).await;
        if content_json(&shown).len() <= fitting.bytes_max {
            return shown;
        }
    }
    let whole = LongText::new(JSON_KEY, json, None);
    truncate_texts(Map::new(), vec![whole], fitting).await
}

fn is_long_text(key: &str, text: &str) -> bool {
    key != OUTPUT_FILE && escaped_len(text) > SHORT_BYTES
}

/// Adds texts to a result. Long texts get the room that short ones do not need.
async fn truncate_texts(
    mut content: Map<String, Value>,
    mut texts: Vec<LongText>,
    fitting: ResultLimit<'_>,
) -> Map<String, Value> {
    for text in &texts {
        content.insert(text.key.clone(), "".into());
    }
    // `fit` later truncates long texts that the tool returned next to streamed ones, to their
    // share.
    let returned = content.iter().filter_map(|(key, value)| Some((key, value.as_str()?)));
    let returned = returned.filter(|(key, text)| is_long_text(key, text));
    let returned: Vec<usize> = returned.map(|(_, text)| escaped_len(text)).collect();
    let share = loop {
        let fixed = content_json(&content).len() - returned.iter().sum::<usize>();
        let room = fitting.bytes_max.saturating_sub(fixed);
        let sizes = texts.iter().map(|text| text.json_bytes).chain(returned.iter().copied());
        let share = largest_share(sizes.map(|bytes| bytes as u64), room as u64);
        let share = usize::try_from(share).unwrap_or(usize::MAX);
        let is_new = |text: &&mut LongText| text.json_bytes > share && text.whole.is_none();
        let Some(text) = texts.iter_mut().find(is_new) else { break share };
        let label = format!("result-{}", text.key);
        let kept =
            write_whole_file(fitting.store, fitting.call, &label, text.head.as_bytes()).await;
        let whole = text.whole.insert(kept.into());
        // The path takes room, too.
        add_file_note(&mut content, whole);
    };
    for text in texts {
        let shown = text.truncated_text(share);
        content.insert(text.key, shown.into());
    }
    content
}

/// Names the file of the first truncated text.
fn add_file_note(content: &mut Map<String, Value>, whole: &FullOutputLocation) {
    if let (Some(path), false) = (whole.path(), content.contains_key(OUTPUT_FILE)) {
        content.insert(OUTPUT_FILE.to_owned(), path.into());
    }
}

fn content_json(content: &Map<String, Value>) -> String {
    // A map of JSON values always serializes. An empty text would only skip the truncation.
    serde_json::to_string(content).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;
    use crate::testing::MemoryOutputStore;

    #[test]
    fn already_truncated_text_that_fits_keeps_its_note_and_tail() {
        let store = SessionOutputFiles::new(std::sync::Arc::new(MemoryOutputStore::default()));
        let call = &CallId::new("0");
        let file =
            write_whole_file(&store, call, "output", b"all").now_or_never().unwrap().unwrap();
        let note = format!("\n[… 90 bytes left out; the whole output: {file} …]\n");
        let cut = format!("{}{note}{}", "h".repeat(600), "t".repeat(600));
        let content = json!({ "cut": cut, "long": "l".repeat(9_000), "output_file": file });
        let fitting = ResultLimit { call, bytes_max: 8_000, store: &store };
        let fitted = fit_to_limit(Output::json(content).content, fitting).now_or_never().unwrap();
        assert_eq!(fitted["cut"], cut);
        assert!(fitted["long"].as_str().unwrap().len() < 7_000);
    }
}
