//! Closes a turn that was open when the process before ended.

use jaato_types::{Error, ErrorKind, ToolCall};

use crate::calls::failed_result;
use crate::history::ExpectedMessage;
use crate::turn::MARK_PROCESS_ENDED;
use crate::{HistoryError, InterruptedCalls, Session};

impl Session {
    /// Closes a turn that was open when the process before ended. Its open calls get their results:
    /// those that had come, or whether the call may have changed something.
    pub(crate) fn close_interrupted_turn(
        &mut self,
        mut known: InterruptedCalls,
    ) -> Result<(), HistoryError> {
        if self.history.expected_message() != ExpectedMessage::Results {
            return self.close_turn(MARK_PROCESS_ENDED);
        }
        let open: Vec<ToolCall> = self.history.open_calls().cloned().collect();
        let results = open.iter().map(|call| {
            known.results.remove(&call.id).unwrap_or_else(|| {
                let text = match known.started.contains(&call.id) {
                    true => "interrupted, outcome unknown: jaato ended while it ran",
                    false => "interrupted, no record that it started: check before you repeat it",
                };
                failed_result(call, &Error::new(ErrorKind::Cancelled, text))
            })
        });
        self.history.append_results(results.collect(), Vec::new())?;
        self.close_turn(MARK_PROCESS_ENDED)
    }
}
