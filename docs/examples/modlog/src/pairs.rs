//! Training pairs: a question about a modification, and the answer that a model learns.

use serde::Serialize;

use crate::entries::LogEntry;
use crate::lines::ChangedLine;

/// One line of the training set.
#[derive(Debug, Serialize)]
pub struct TrainingPair {
    messages: [PairMessage; 2],
    metadata: PairMetadata,
}

#[derive(Debug, Serialize)]
struct PairMessage {
    role: &'static str,
    content: String,
}

#[derive(Debug, Serialize)]
struct PairMetadata {
    date: String,
    programmer: Option<String>,
    change_type: String,
    description: String,
    delimiter: Option<String>,
    changed_item_count: usize,
    heuristic: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    changed_items: Vec<ChangedLine>,
}

impl TrainingPair {
    /// Creates a pair whose answer a model wrote.
    pub fn with_explanation(entry: &LogEntry, explanation: String) -> Self {
        Self::new(entry, explanation, Vec::new(), false)
    }

    /// Creates a pair whose answer is the changed lines, as fixed rules found them.
    pub fn with_heuristic_lines(entry: &LogEntry, lines: Vec<ChangedLine>) -> Self {
        let answer = match &lines[..] {
            [] => "No line of the program contains a word of this modification.".to_owned(),
            lines => {
                format!(
                    "Likely affected lines (heuristic):\n{}",
                    crate::lines::format_excerpt(lines)
                )
            }
        };
        Self::new(entry, answer, lines, true)
    }

    fn new(
        entry: &LogEntry,
        answer: String,
        changed_items: Vec<ChangedLine>,
        heuristic: bool,
    ) -> Self {
        let LogEntry { date, programmer, change_type, description, delimiter } = entry.clone();
        let author = programmer.as_deref().unwrap_or("an unknown programmer");
        let question = format!(
            "Identify the concrete COBOL code changed by the logged modification ({change_type}) \
             from {date} by {author}: {description}"
        );
        let message = |role, content| PairMessage { role, content };
        Self {
            messages: [message("user", question), message("assistant", answer)],
            metadata: PairMetadata {
                date,
                programmer,
                change_type,
                description,
                delimiter,
                changed_item_count: changed_items.len(),
                heuristic,
                changed_items,
            },
        }
    }
}
