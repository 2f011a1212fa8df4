//! A conversation as a document: Markdown, an HTML page, JSON lines, or a sequence diagram.
//!
//! The functions are pure. They read a [`Transcript`] and return a text. Markdown and HTML are for
//! readers: opaque parts and signatures are missing, and control characters are shown as symbols,
//! so that a tool's output cannot change a terminal or a page. JSON lines hold everything.

mod answer_html;
mod blocks;
mod html;
mod json_lines;
mod markdown;
mod sequence;
mod transcript;
mod visible;

pub use html::{to_html, to_html_with_blobs};
pub(crate) use json_lines::{AttachmentLine, TranscriptHeader, TranscriptLine};
pub use json_lines::{TRANSCRIPT_FORMAT, TRANSCRIPT_VERSION, to_json_lines};
pub use markdown::to_markdown;
pub use sequence::{AgentTranscript, to_mermaid, to_plantuml, to_sequence_json};
pub use transcript::{Transcript, TranscriptMessage, transcript_note};
