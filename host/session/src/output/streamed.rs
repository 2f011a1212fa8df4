//! Output that a call streams: every byte goes to a file, and memory holds two ends of each text.

use std::sync::Arc;

use jaato_types::service::OutputWrite;
use jaato_types::{CallId, Error, ErrorKind, Result};
use serde_json::{Map, Value};
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::cut::{FullOutputLocation, LongText, escaped_len};
use super::head_and_tail::TextEnds;
use super::live::LiveOutputLimit;
use super::plain::PlainTextReader;
use super::{OutputStore, OutputWriter, ResultLimit, add_file_note, content_json, truncate_texts};

/// The key of a text that is streamed without a key.
const DEFAULT_KEY: &str = "output";

/// The maximum number of texts that one call may stream.
const STREAMS_MAX: usize = 16;

/// The longest key of a streamed text. Keys are shown in full and must leave room for the texts.
const KEY_BYTES_MAX: usize = 64;

/// How many bytes wait before they are written to the file, so that a command that prints line by
/// line does not cause a write for each line.
const WRITE_BYTES: usize = 64 * 1024;

/// The output that one call streams. Clones share it.
#[derive(Clone)]
pub struct StreamedOutput(Arc<StreamedOutputInner>);

/// Shows the user a piece of text.
pub(crate) type ShowText = Box<dyn Fn(String) + Send + Sync>;

struct StreamedOutputInner {
    call: CallId,
    store: Arc<dyn OutputStore>,
    show: ShowText,
    bytes_max: usize,
    state: Mutex<StreamedOutputState>,
}

struct StreamedOutputState {
    streams: Vec<StreamedOutputPart>,
    live: LiveOutputLimit,
    bytes: u64,
    /// Bytes that are not in the file yet.
    waiting: Vec<u8>,
    file: StreamFile,
}

struct StreamedOutputPart {
    key: String,
    plain: PlainTextReader,
    ends: TextEnds,
    bytes: u64,
}

/// The file with all streamed bytes, in the order in which they arrived. No file exists while all
/// of them fit into a result.
enum StreamFile {
    None,
    Open(Box<dyn OutputWriter>),
    Failed(FullOutputLocation),
}

impl StreamedOutput {
    /// Creates the output of a call whose result has at most this many bytes of JSON.
    pub(crate) fn new(
        call: CallId,
        store: Arc<dyn OutputStore>,
        show: ShowText,
        bytes_max: usize,
    ) -> Self {
        let state = StreamedOutputState {
            streams: Vec::new(),
            live: LiveOutputLimit::new(),
            bytes: 0,
            waiting: Vec::new(),
            file: StreamFile::None,
        };
        Self(Arc::new(StreamedOutputInner {
            call,
            store,
            show,
            bytes_max,
            state: Mutex::new(state),
        }))
    }

    /// Takes a piece of one text. Returns how many bytes the call has streamed. Waits for the disk.
    /// A file that cannot be written does not stop the call, but the result reports it.
    ///
    /// # Errors
    /// `limit_reached` for too many texts, `invalid_arguments` for a key that is too long.
    pub async fn push(&self, write: &OutputWrite, bytes: &[u8]) -> Result<u64> {
        let mut state = self.0.state.lock().await;
        let key = if write.key.is_empty() { DEFAULT_KEY } else { &write.key };
        let stream = state.stream_part(key, self.0.bytes_max)?;
        stream.bytes += bytes.len() as u64;
        let text = stream.plain.decode_text(bytes);
        stream.ends.push(&text);
        if write.live
            && let Some(shown) = state.live.next_shown_text(&text, Instant::now())
        {
            // The user does not have to see it, because the output is for the model.
            (self.0.show)(shown);
        }
        state.bytes += bytes.len() as u64;
        let enough = match state.file {
            StreamFile::None => self.0.bytes_max,
            StreamFile::Open(_) => WRITE_BYTES,
            StreamFile::Failed(_) => return Ok(state.bytes),
        };
        state.waiting.extend_from_slice(bytes);
        if state.waiting.len() > enough {
            self.0.write_pending(&mut state).await;
        }
        Ok(state.bytes)
    }

    /// Puts the streamed texts into the call's result, truncated if they are too long.
    pub(crate) async fn finish_into(&self, content: Map<String, Value>) -> Map<String, Value> {
        let mut state = self.0.state.lock().await;
        let mut shown = state.live.finish();
        let mut texts = Vec::new();
        for StreamedOutputPart { key, mut plain, mut ends, bytes } in
            std::mem::take(&mut state.streams)
        {
            let rest = plain.finish();
            ends.push(rest);
            shown += rest;
            let (head, tail) = ends.into_texts();
            let json_bytes = if tail.is_none() { escaped_len(&head) } else { usize::MAX };
            texts.push(LongText { key, head, tail, bytes, json_bytes, whole: None });
        }
        if !shown.is_empty() {
            (self.0.show)(shown);
        }
        self.0.insert_texts(content, texts, &mut state).await
    }
}

impl StreamedOutputInner {
    async fn insert_texts(
        &self,
        mut content: Map<String, Value>,
        mut texts: Vec<LongText>,
        state: &mut StreamedOutputState,
    ) -> Map<String, Value> {
        if texts.is_empty() {
            return content;
        }
        for text in &texts {
            content.insert(text.key.clone(), "".into());
        }
        let all = texts
            .iter()
            .fold(content_json(&content).len(), |sum, text| sum.saturating_add(text.json_bytes));
        if all > self.bytes_max {
            self.write_pending(state).await;
            let whole = match &mut state.file {
                StreamFile::Open(file) => FullOutputLocation::In(file.finish().await),
                StreamFile::Failed(whole) => whole.clone(),
                StreamFile::None => FullOutputLocation::Nowhere("nothing was printed".to_owned()),
            };
            // Text that the tool streams after this is not part of the result.
            state.file = StreamFile::Failed(whole.clone());
            add_file_note(&mut content, &whole);
            texts.iter_mut().for_each(|text| text.whole = Some(whole.clone()));
        }
        let fitting =
            ResultLimit { call: &self.call, bytes_max: self.bytes_max, store: &*self.store };
        truncate_texts(content, texts, fitting).await
    }

    /// Writes the waiting bytes. The call continues without a file, because it may do more than
    /// print.
    async fn write_pending(&self, state: &mut StreamedOutputState) {
        let bytes = std::mem::take(&mut state.waiting);
        // The tool may drop this future while it waits. Then bytes are missing from the file, so
        // the file counts as failed until the write is done.
        let dropped = || "the tool stopped while its output was written".to_owned();
        let begun = StreamFile::Failed(FullOutputLocation::Nowhere(dropped()));
        let mut file = match std::mem::replace(&mut state.file, begun) {
            StreamFile::None => match self.store.create(&self.call, DEFAULT_KEY).await {
                Ok(file) => file,
                Err(error) => {
                    state.file = StreamFile::Failed(FullOutputLocation::Nowhere(error.message));
                    return;
                }
            },
            StreamFile::Open(file) => file,
            failed @ StreamFile::Failed(_) => {
                state.file = failed;
                return;
            }
        };
        state.file = StreamFile::Failed(incomplete_output_location(&*file, dropped()));
        state.file = match file.write(&bytes).await {
            Ok(()) => StreamFile::Open(file),
            Err(Error { message: why, .. }) => {
                StreamFile::Failed(incomplete_output_location(&*file, why))
            }
        };
    }
}

/// Describes how much of the output is in a file that lacks the rest for this reason.
fn incomplete_output_location(file: &dyn OutputWriter, why: String) -> FullOutputLocation {
    match file.byte_count() {
        0 => FullOutputLocation::Nowhere(why),
        bytes => FullOutputLocation::Begun { path: file.path(), bytes, why },
    }
}

impl StreamedOutputState {
    fn stream_part(&mut self, key: &str, bytes_max: usize) -> Result<&mut StreamedOutputPart> {
        if key.len() > KEY_BYTES_MAX {
            let bytes = key.len();
            let text = format!(
                "the key of a streamed text has {bytes} bytes, at most {KEY_BYTES_MAX} are allowed"
            );
            return Err(Error::new(ErrorKind::InvalidArguments, text));
        }
        let at = match self.streams.iter().position(|stream| stream.key == key) {
            Some(at) => at,
            None if self.streams.len() < STREAMS_MAX => {
                let (key, ends) = (key.to_owned(), TextEnds::new(bytes_max));
                self.streams.push(StreamedOutputPart {
                    key,
                    plain: PlainTextReader::default(),
                    ends,
                    bytes: 0,
                });
                self.streams.len() - 1
            }
            None => {
                let text = format!("a call streams at most {STREAMS_MAX} texts");
                return Err(Error::new(ErrorKind::LimitReached, text));
            }
        };
        Ok(&mut self.streams[at])
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use futures_util::future::{BoxFuture, pending, ready};

    use super::*;

    /// A store with one file. Its first write ends. Later writes never do.
    struct Slow;

    struct SlowFile(u64);

    impl OutputStore for Slow {
        fn create<'a>(
            &'a self,
            _call: &'a CallId,
            _label: &'a str,
        ) -> BoxFuture<'a, Result<Box<dyn OutputWriter>>> {
            ready(Ok(Box::new(SlowFile(0)) as Box<dyn OutputWriter>)).boxed()
        }
    }

    impl OutputWriter for SlowFile {
        fn path(&self) -> String {
            "/slow".to_owned()
        }

        fn byte_count(&self) -> u64 {
            self.0
        }

        fn write<'a>(&'a mut self, bytes: &'a [u8]) -> BoxFuture<'a, Result<()>> {
            if self.0 > 0 {
                return pending().boxed();
            }
            self.0 = bytes.len() as u64;
            ready(Ok(())).boxed()
        }
    }

    #[test]
    fn output_file_is_incomplete_after_a_dropped_write() {
        let show = Box::new(|_| {});
        let streamed = StreamedOutput::new(CallId::new("0"), Arc::new(Slow), show, 16 * 1024);
        let push = || {
            let piece = [b'x'; 100_000];
            let write = OutputWrite { key: "out".to_owned(), live: false };
            streamed.push(&write, &piece).now_or_never().map(Result::unwrap)
        };
        assert_eq!((push(), push(), push()), (Some(100_000), None, Some(300_000)));
        let content = streamed.finish_into(Map::new()).now_or_never().unwrap();
        let text = content["out"].as_str().unwrap();
        let note = "only the first 100000 bytes of the output are in /slow: the tool stopped while";
        assert!(text.contains(note), "{text}");
    }
}
