//! Previews a call: the tool's own plugin shows the user who is asked what the call would change.

use std::sync::Arc;

use jaato_types::ToolCall;
use jaato_types::file_change::FileChange;
use jaato_types::files::FileLimits;
use jaato_types::hooks::{HOOK_MS_MAX, Preview, PreviewRequest};

use super::CallRunner;
use crate::{AnswerDeadline, CallFiles, CallScope, KnownTool, OutputSink};

/// The longest preview, in bytes of all its texts. One event holds the whole preview.
pub const PREVIEW_BYTES_MAX: usize = 64 * 1024;

/// The note at the end of a truncated text.
const CUT: &str = "\n[… the rest is left out]";

impl CallRunner<'_> {
    /// Asks for a preview. Returns `None` if that fails.
    pub(super) async fn request_preview(
        &self,
        call: &ToolCall,
        tool: &KnownTool,
        limits: FileLimits,
    ) -> Option<Preview> {
        let output = OutputSink::new(self.emitter.clone(), call.id.clone(), tool.source());
        // The call has not begun, so output that its plugin emits now belongs nowhere.
        output.close();
        let files = Arc::new(CallFiles::new(limits));
        let scope = |stop, hold| CallScope {
            session: self.session.clone(),
            call: call.id.clone(),
            cancel: stop,
            output: output.clone(),
            streamed: None,
            facts: self.facts.clone(),
            objects: self.objects.clone(),
            depth: 0,
            hold,
            files: Some(Arc::clone(&files)),
        };
        let request = PreviewRequest::new(call.name.clone(), call.arguments.clone());
        let deadline = AnswerDeadline {
            clock: Arc::clone(&self.ports.clock),
            cancel: self.cancel,
            ms: HOOK_MS_MAX,
            late: format!("its plugin did not answer within {HOOK_MS_MAX} ms"),
        };
        let ask = |stop, hold| self.ports.tools.preview_call(request, scope(stop, hold));
        match deadline.wait_for_answer(ask).await {
            Ok(preview) => Some(truncate_preview(preview)).filter(|preview| !preview.is_empty()),
            Err(_) if self.cancel.is_cancelled() => None,
            Err(error) => {
                let name = &call.name;
                self.emitter.emit_notice(format!("cannot preview the call to `{name}`: {error}"));
                None
            }
        }
    }
}

/// Truncates a preview that is too long, starting with the least important fields.
fn truncate_preview(mut preview: Preview) -> Preview {
    let mut left = PREVIEW_BYTES_MAX;
    for text in [&mut preview.text, &mut preview.command, &mut preview.diff] {
        if text.len() > left {
            text.truncate(text.floor_char_boundary(left.saturating_sub(CUT.len())));
            text.push_str(CUT);
        }
        left = left.saturating_sub(text.len());
    }
    // The user decides by the changed lines, so drop whole file contents before any of those.
    if preview.changes.iter().map(FileChange::text_bytes).sum::<usize>() > left {
        preview.changes.iter_mut().for_each(|change| (change.old, change.new) = (None, None));
    }
    for change in &mut preview.changes {
        change.truncate_texts(left);
        left = left.saturating_sub(change.text_bytes());
    }
    preview.files.retain(|file| {
        let fits = file.len() <= left;
        left = left.saturating_sub(file.len());
        fits
    });
    preview
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preview_is_cut_at_its_bound() {
        let whole = Preview { files: vec!["f".to_owned()], ..Preview::diff("d") };
        assert_eq!(truncate_preview(whole.clone()), whole);
        let long = Preview { diff: "d".repeat(PREVIEW_BYTES_MAX + 1), ..whole };
        let cut = truncate_preview(long);
        assert_eq!((cut.diff.len(), cut.files.len()), (PREVIEW_BYTES_MAX, 0));
        assert!(cut.diff.ends_with(CUT));
    }
}
