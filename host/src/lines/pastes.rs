//! Folds long pastes: the draft shows a label such as `[pasted 200 lines]`, and the whole text is
//! sent.

use rustyline::{CharSearch, Cmd, KeyCode, KeyEvent, Modifiers, Movement};

/// Fewest lines of a paste that is folded.
const LINES_MIN: usize = 5;

/// Fewest characters of a paste that is folded.
const CHARS_MIN: usize = 1000;

/// Folded pastes that are kept at once. An older one is forgotten.
const FOLDED_MAX: usize = 20;

/// The pastes of a conversation.
#[derive(Debug, Default)]
pub struct Pastes {
    /// The beginning of a paste whose end has not arrived.
    begun: Option<String>,
    /// Labels and their texts.
    folded: Vec<(String, String)>,
}

impl Pastes {
    /// Takes a key that belongs to a paste, or that deletes a label. The cursor is at `pos`.
    pub fn take(&mut self, key: KeyEvent, line: &str, pos: usize) -> Option<Cmd> {
        if key == KeyEvent::ctrl('C') {
            self.begun = None;
        }
        match key {
            KeyEvent(KeyCode::BracketedPasteStart, _) => {
                self.begun = Some(String::new());
                return Some(Cmd::Noop);
            }
            KeyEvent(KeyCode::BracketedPasteEnd, _) => {
                let text = self.begun.take()?.replace("\r\n", "\n").replace('\r', "\n");
                return Some(Cmd::Insert(1, self.fold(text)));
            }
            _ => {}
        }
        if let Some(begun) = &mut self.begun {
            begun.extend(char_of(key));
            return Some(Cmd::Noop);
        }
        let (before, after) = (line.get(..pos)?, line.get(pos..)?);
        let delete = |search| Some(Cmd::Kill(Movement::ViCharSearch(1, search)));
        match key {
            KeyEvent(KeyCode::Backspace, _) | KeyEvent(KeyCode::Char('W'), Modifiers::CTRL)
                if self.folded.iter().any(|(label, _)| before.ends_with(label)) =>
            {
                delete(CharSearch::Backward('['))
            }
            KeyEvent(KeyCode::Delete, _) | KeyEvent(KeyCode::Char('D'), Modifiers::CTRL)
                if self.folded.iter().any(|(label, _)| after.starts_with(label)) =>
            {
                delete(CharSearch::Forward(']'))
            }
            _ => None,
        }
    }

    /// Returns the label for a long text, and a short text as it is.
    fn fold(&mut self, text: String) -> String {
        let (lines, chars) = (text.lines().count(), text.chars().count());
        let what = match (lines, chars) {
            (LINES_MIN.., _) => format!("{lines} lines"),
            (_, CHARS_MIN..) => format!("{chars} characters"),
            _ => return text,
        };
        if let Some((label, _)) = self.folded.iter().find(|(_, known)| *known == text) {
            return label.clone();
        }
        let is_free = |label: &String| self.folded.iter().all(|(known, _)| known != label);
        let others = (2..).map(|number| format!("[pasted {what}, {number}]"));
        let label = std::iter::once(format!("[pasted {what}]")).chain(others).find(is_free);
        let label = label.unwrap_or_default();
        if self.folded.len() == FOLDED_MAX {
            self.folded.remove(0);
        }
        self.folded.push((label.clone(), text));
        label
    }

    /// Returns the line with the texts instead of their labels; `None` if it has no label.
    pub fn unfold(&self, line: &str) -> Option<String> {
        let (mut whole, mut rest) = (String::new(), line);
        while let Some((at, index)) = self.first_label(rest) {
            let (label, text) = &self.folded[index];
            whole = whole + &rest[..at] + text;
            rest = &rest[at + label.len()..];
        }
        (rest.len() < line.len()).then(|| whole + rest)
    }

    /// Returns a text for the draft, with labels instead of the pasted texts.
    pub fn fold_again(&self, text: String) -> String {
        self.folded.iter().fold(text, |text, (label, paste)| text.replace(paste.trim(), label))
    }

    /// Returns where the first label of a line is, and which one it is.
    fn first_label(&self, line: &str) -> Option<(usize, usize)> {
        let labels = self.folded.iter().enumerate();
        labels.filter_map(|(index, (label, _))| Some((line.find(label)?, index))).min()
    }
}

/// Returns the character of a key in a paste. Control characters are dropped.
fn char_of(key: KeyEvent) -> Option<char> {
    match key {
        KeyEvent(KeyCode::Char('J'), Modifiers::CTRL) => Some('\n'),
        KeyEvent(KeyCode::Enter, _) => Some('\r'),
        KeyEvent(KeyCode::Tab, _) => Some('\t'),
        KeyEvent(KeyCode::Char(sign), modifiers) if !modifiers.contains(Modifiers::CTRL) => {
            Some(sign)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_folded_and_unfolded_whole() {
        let mut pastes = Pastes::default();
        let (short, long) = ("a\nb\nc\nd".to_owned(), "line\n".repeat(5));
        assert_eq!(pastes.fold(short.clone()), short);
        let labels = [pastes.fold(long.clone()), pastes.fold("[pasted 5 lines]\n".repeat(5))];
        assert_eq!(labels, ["[pasted 5 lines]", "[pasted 5 lines, 2]"]);
        assert_eq!(pastes.fold("x".repeat(5000)), "[pasted 5000 characters]");
        assert_eq!(pastes.unfold("no label"), None);
        assert_eq!(pastes.fold(long.clone()), labels[0]);
        let line = "see [pasted 5 lines, 2] and [pasted 5 lines] and [pasted 5 lines]";
        let whole = format!("see {} and {long} and {long}", "[pasted 5 lines]\n".repeat(5));
        assert_eq!(pastes.unfold(line), Some(whole));
        // A returned message has its label again, and typed text stays.
        let typed = "a\nb\nc\nd\ne\n";
        assert_eq!(pastes.fold_again(format!("{typed}{long}")), format!("{typed}{}\n", labels[0]));
    }

    #[test]
    fn keys_between_the_marks_of_a_paste_are_text() {
        let mut pastes = Pastes::default();
        let none = Modifiers::NONE;
        let mark = |code| KeyEvent(code, none);
        let mut last = None;
        let typed = "a\tb\r\n\u{1b}\u{7f}c".chars().map(|sign| KeyEvent::new(sign, none));
        let begin = std::iter::once(mark(KeyCode::BracketedPasteStart));
        for key in begin.chain(typed).chain([mark(KeyCode::BracketedPasteEnd)]) {
            last = pastes.take(key, "", 0);
        }
        assert_eq!(last, Some(Cmd::Insert(1, "a\tb\nc".to_owned())));
        assert_eq!(pastes.take(KeyEvent::new('x', none), "", 0), None);
        pastes.take(mark(KeyCode::BracketedPasteStart), "", 0);
        assert_eq!(pastes.take(KeyEvent::ctrl('C'), "", 0), None);
        assert_eq!(pastes.take(KeyEvent::new('x', none), "", 0), None);
    }

    #[test]
    fn a_label_is_deleted_whole_and_only_from_its_ends() {
        let mut pastes = Pastes::default();
        let line = format!("see {}", pastes.fold("line\n".repeat(9)));
        let [backspace, delete] =
            [KeyCode::Backspace, KeyCode::Delete].map(|code| KeyEvent(code, Modifiers::NONE));
        let mut deletes = |key, pos| matches!(pastes.take(key, &line, pos), Some(Cmd::Kill(_)));
        assert!(deletes(backspace, line.len()) && deletes(delete, "see ".len()));
        assert!(!deletes(backspace, "see ".len()) && !deletes(delete, line.len()));
        assert!(!deletes(backspace, "see [pa".len()));
    }
}
