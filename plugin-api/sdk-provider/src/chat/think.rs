//! Separates reasoning that a server leaves in the text, in tags at the start: `<think>…</think>`.
//!
//! Pure, and independent of where the text is split. Only tags at the start count: later tags are
//! part of the text.

/// The opening and closing tags that models write around their reasoning.
const TAGS: [(&str, &str); 2] = [("<think>", "</think>"), ("<thinking>", "</thinking>")];

/// The maximum number of blank bytes before a tag. Models write a line end there. The limit
/// prevents an answer of only blanks from being held back.
const BLANKS_MAX: usize = 64;

/// A piece of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ThinkPiece {
    /// A part of the text.
    Text(String),
    /// A part of the reasoning.
    Thought(String),
}

/// Separates thoughts in tags from text.
#[derive(Debug, Default)]
pub struct ThinkTags {
    place: ThinkTagPosition,
    /// Text that may be the start of a tag.
    held: String,
}

#[derive(Debug, Clone, Copy, Default)]
enum ThinkTagPosition {
    /// Only blanks so far.
    #[default]
    Start,
    /// After an opening tag, before any content.
    Opened { end: &'static str },
    /// Inside a thought.
    Inside { end: &'static str },
    /// After a thought, before any content.
    Closed,
    /// In the text.
    Text,
}

impl ThinkTags {
    /// Takes a piece of the text and returns the pieces that are certain.
    pub fn push_text(&mut self, piece: &str) -> Vec<ThinkPiece> {
        self.held.push_str(piece);
        let mut pieces = Vec::new();
        while self.advance_state(&mut pieces) {}
        pieces
    }

    /// Ends the text and returns what was held back.
    pub fn finish(&mut self) -> Option<ThinkPiece> {
        let held = std::mem::take(&mut self.held);
        let piece = match self.place {
            ThinkTagPosition::Start | ThinkTagPosition::Closed | ThinkTagPosition::Text => {
                ThinkPiece::Text(held)
            }
            ThinkTagPosition::Opened { .. } | ThinkTagPosition::Inside { .. } => {
                ThinkPiece::Thought(held)
            }
        };
        has_content(&piece).then_some(piece)
    }

    /// Moves to the next state. Returns false if that needs more text.
    fn advance_state(&mut self, pieces: &mut Vec<ThinkPiece>) -> bool {
        match self.place {
            ThinkTagPosition::Start => self.find_opening_tag(),
            ThinkTagPosition::Opened { end } => self.skip_blanks(ThinkTagPosition::Inside { end }),
            ThinkTagPosition::Closed => self.skip_blanks(ThinkTagPosition::Text),
            ThinkTagPosition::Inside { end } => match self.held.find(end) {
                Some(at) => {
                    pieces.extend(self.take_bytes(at).map(ThinkPiece::Thought));
                    self.held.drain(..end.len());
                    self.place = ThinkTagPosition::Closed;
                    true
                }
                None => {
                    let known = self.held.len() - partial_tag_length(&self.held, end);
                    pieces.extend(self.take_bytes(known).map(ThinkPiece::Thought));
                    false
                }
            },
            ThinkTagPosition::Text => {
                pieces.extend(self.take_bytes(self.held.len()).map(ThinkPiece::Text));
                false
            }
        }
    }

    /// Looks for a tag at the start.
    fn find_opening_tag(&mut self) -> bool {
        let said = self.held.trim_start();
        let blanks = self.held.len() - said.len();
        if let Some((tag, end)) = TAGS.iter().find(|(tag, _)| said.starts_with(tag)) {
            self.held.drain(..blanks + tag.len());
            self.place = ThinkTagPosition::Opened { end };
            return true;
        }
        let may_become = TAGS.iter().any(|(tag, _)| tag.starts_with(said));
        if may_become && blanks <= BLANKS_MAX {
            return false;
        }
        self.place = ThinkTagPosition::Text;
        true
    }

    fn skip_blanks(&mut self, next: ThinkTagPosition) -> bool {
        let blanks = self.held.len() - self.held.trim_start().len();
        self.held.drain(..blanks);
        if self.held.is_empty() {
            return false;
        }
        self.place = next;
        true
    }

    /// Takes bytes from the front. Returns `None` for zero bytes.
    fn take_bytes(&mut self, bytes: usize) -> Option<String> {
        (bytes > 0).then(|| self.held.drain(..bytes).collect())
    }
}

/// Returns the number of bytes at the end of a text that may be the start of a tag.
fn partial_tag_length(text: &str, tag: &str) -> usize {
    (1..tag.len()).rev().find(|length| text.ends_with(&tag[..*length])).unwrap_or(0)
}

fn has_content(piece: &ThinkPiece) -> bool {
    match piece {
        ThinkPiece::Text(text) | ThinkPiece::Thought(text) => !text.is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a text whole and split at every two positions. Expects this thought and text.
    #[track_caller]
    fn check_think_tags(text: &str, thought: &str, said: &str) {
        let read = |pieces: &[&str]| {
            let mut tags = ThinkTags::default();
            let mut found: Vec<_> = pieces.iter().flat_map(|piece| tags.push_text(piece)).collect();
            found.extend(tags.finish());
            let (mut thought, mut said) = (String::new(), String::new());
            for piece in found {
                match piece {
                    ThinkPiece::Text(text) => said.push_str(&text),
                    ThinkPiece::Thought(text) => {
                        assert!(said.is_empty(), "a thought after the text");
                        thought.push_str(&text);
                    }
                }
            }
            (thought, said)
        };
        let cuts: Vec<usize> = (0..=text.len()).filter(|at| text.is_char_boundary(*at)).collect();
        for (number, &first) in cuts.iter().enumerate() {
            for &second in &cuts[number..] {
                let found = read(&[&text[..first], &text[first..second], &text[second..]]);
                assert_eq!(found, (thought.to_owned(), said.to_owned()), "{first} {second}");
            }
        }
    }

    #[test]
    fn tags_at_the_start_hold_a_thought() {
        check_think_tags("<think>I look.</think>It is ö.", "I look.", "It is ö.");
        check_think_tags("\n<think>\nI <b> look.\n</think>\n\n yes", "I <b> look.\n", "yes");
        check_think_tags("<thinking>a</think></thinking>b", "a</think>", "b");
    }

    #[test]
    fn empty_thought_is_left_out() {
        check_think_tags("<think>\n\n</think>\n\nyes", "", "yes");
        check_think_tags("<think></think>", "", "");
    }

    #[test]
    fn unclosed_thought_is_still_a_thought() {
        check_think_tags("<think>hm </thi", "hm </thi", "");
    }

    #[test]
    fn tags_that_come_later_are_text() {
        for text in ["Use <think> and </think>.", "<thin>", "<", " \n", "a<think>b</think>"] {
            check_think_tags(text, "", text);
        }
        check_think_tags("<think>a</think>b<think>c</think>", "a", "b<think>c</think>");
    }

    #[test]
    fn leading_blanks_are_buffered_up_to_a_limit() {
        let mut tags = ThinkTags::default();
        let most = " ".repeat(BLANKS_MAX);
        assert_eq!(tags.push_text(&most), []);
        assert_eq!(tags.push_text(" "), [ThinkPiece::Text(format!("{most} "))]);
    }
}
