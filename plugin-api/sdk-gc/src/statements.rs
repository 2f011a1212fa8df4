//! The user's own words: they are kept verbatim, because no summary can tell which of them bind.
//! Pure.

use jaato_plugin_sdk::prelude::*;

use crate::lines::drop_oldest_lines;

/// Messages of at most this many characters are kept whole.
const WHOLE_CHARS: usize = 600;

/// Sentences of at most this many characters are kept. Longer ones are content, such as logs.
const SENTENCE_CHARS: usize = 400;

/// How much of a long message is kept beside sentences that seem to bind, in characters: half of it
/// from the beginning and half from the end.
const LONG_MESSAGE_CHARS: usize = 2_000;

/// The beginnings of texts that the session itself puts in front of a prompt.
const HOST_NOTES: [&str; 2] =
    ["[Earlier turns of this conversation were removed here", "[Left out here to save room: "];

/// Words of sentences that often bind. They only decide which sentences go last if there is no room
/// for all: a list of words can never know every language.
const BINDING_WORDS: [&str; 47] = [
    "must",
    "never",
    "always",
    "don't",
    "do not",
    "only",
    "should",
    "shall",
    "avoid",
    "prefer",
    "require",
    "without",
    "instead",
    "no ",
    "not ",
    "use ",
    "keep ",
    "remember",
    "important",
    "please",
    "need",
    "want",
    "muss",
    "nie",
    "immer",
    "nur",
    "nicht",
    "kein",
    "soll",
    "bitte",
    "jamais",
    "toujours",
    "doit",
    "pas ",
    "seulement",
    "nunca",
    "siempre",
    "debe",
    "solo",
    "sempre",
    "deve",
    "não",
    "必须",
    "不要",
    "请",
    "禁止",
    "нельзя",
];

/// Lists the statements in a user's message: the whole message if it is short, else its sentences.
pub(crate) fn extract_statements(text: &str) -> Vec<String> {
    let text = text.trim();
    if HOST_NOTES.iter().any(|note| text.starts_with(note)) || is_attached_file(text) {
        return Vec::new();
    }
    if text.chars().nth(WHOLE_CHARS).is_none() {
        return if text.is_empty() { Vec::new() } else { vec![text.to_owned()] };
    }
    let sentences: Vec<&str> =
        split_sentences(text).into_iter().filter(|it| is_prose(it)).collect();
    let mut is_kept: Vec<bool> = sentences.iter().map(|sentence| is_binding(sentence)).collect();
    keep_first_sentences(&sentences, &mut is_kept, false);
    keep_first_sentences(&sentences, &mut is_kept, true);
    let kept = sentences.iter().zip(is_kept).filter(|(_, is_kept)| *is_kept);
    kept.map(|(sentence, _)| (*sentence).to_owned()).collect()
}

/// Returns true for a text file that the user attached. It is content.
fn is_attached_file(text: &str) -> bool {
    text.strip_prefix("The file `").is_some_and(|rest| rest.contains("`:\n\n"))
}

/// Keeps the first or last sentences, as many as fit.
fn keep_first_sentences(sentences: &[&str], is_kept: &mut [bool], from_end: bool) {
    let mut room = LONG_MESSAGE_CHARS / 2;
    for step in 0..sentences.len() {
        let at = if from_end { sentences.len() - 1 - step } else { step };
        let Some(rest) = room.checked_sub(sentences[at].chars().count()) else { return };
        room = rest;
        is_kept[at] = true;
    }
}

/// Returns true if a statement seems to bind the model.
pub(crate) fn is_binding(statement: &str) -> bool {
    let lower = statement.to_lowercase();
    BINDING_WORDS.iter().any(|word| lower.contains(word))
}

/// Removes statements until the rest fits: first those that do not seem to bind, beyond
/// `soft_bytes`, then any beyond `hard_bytes`. Of each kind, the oldest go first. Returns how many
/// were removed.
pub(crate) fn fit_statements(
    statements: &mut Vec<String>,
    soft_bytes: u64,
    hard_bytes: u64,
) -> usize {
    let soft = drop_oldest_lines(statements, soft_bytes, |statement| !is_binding(statement));
    let hard = drop_oldest_lines(statements, hard_bytes, |_| true);
    soft.len() + hard.len()
}

/// Splits a text into sentences and lines, without fenced code.
fn split_sentences(text: &str) -> Vec<&str> {
    let mut sentences = Vec::new();
    let mut is_code = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        } else if !is_code {
            split_line(line, &mut sentences);
        }
    }
    sentences
}

fn split_line<'a>(line: &'a str, sentences: &mut Vec<&'a str>) {
    let mut start = 0;
    let mut signs = line.char_indices().peekable();
    while let Some((at, sign)) = signs.next() {
        let next = signs.peek().map(|(_, next)| *next);
        let ends = match sign {
            '.' | '!' | '?' => next.is_none_or(char::is_whitespace),
            '。' | '！' | '？' => true,
            _ => false,
        };
        if ends {
            let end = at + sign.len_utf8();
            sentences.push(line[start..end].trim());
            start = end;
        }
    }
    sentences.push(line[start..].trim());
}

/// Returns true for words that a person says, and false for logs, code and data.
fn is_prose(sentence: &str) -> bool {
    let signs = sentence.chars().filter(|sign| !sign.is_whitespace()).count();
    let letters = sentence.chars().filter(|sign| sign.is_alphabetic()).count();
    (3..=SENTENCE_CHARS).contains(&signs) && letters * 10 >= signs * 7
}

/// Returns the user's own texts in a message.
pub(crate) fn user_texts(message: &Message) -> impl Iterator<Item = &str> {
    let is_users = matches!(message.role, Role::User | Role::Tool);
    message.parts.iter().filter(move |_| is_users).filter_map(|part| match part {
        Part::Text { text, .. } => Some(text.as_str()),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_message_is_kept_whole_and_notes_of_the_host_are_not_the_users() {
        assert_eq!(extract_statements(" Use tabs.\nNever push. "), ["Use tabs.\nNever push."]);
        assert_eq!(extract_statements("  "), [""; 0]);
        let note = "[Left out here to save room: 3 calls that this turn began with]";
        assert_eq!(extract_statements(note), [""; 0]);
    }

    #[test]
    fn sentences_of_a_long_message_are_kept_without_code_and_logs() {
        let log = "0x00 [2026-01-01 00:00:00.000] 12345 {\"a\":1}\n".repeat(100);
        let code = format!("```\n{}```\n", "you must not keep this line\n".repeat(40));
        let text = format!("Fix the parser.\n{log}{code}The tests stay green! Ohne Panik");
        assert_eq!(
            extract_statements(&text),
            ["Fix the parser.", "The tests stay green!", "Ohne Panik"]
        );
    }

    #[test]
    fn long_text_keeps_both_ends_and_each_sentence_that_binds() {
        let filler = "This is a sentence about the weather today. ".repeat(200);
        let text = format!("Begin here. {filler}Never touch main. {filler}The end.");
        let kept = extract_statements(&text);
        assert_eq!(kept.first().map(String::as_str), Some("Begin here."));
        assert_eq!(kept.last().map(String::as_str), Some("The end."));
        assert!(kept.iter().any(|it| it == "Never touch main."));
        assert!(kept.concat().len() < 2_200, "{}", kept.concat().len());
    }

    #[test]
    fn old_statements_that_do_not_bind_go_first() {
        let all = || ["hello there", "never do that", "good work", "always test"];
        let fitted = |soft, hard| {
            let mut statements = all().map(str::to_owned).to_vec();
            let gone = fit_statements(&mut statements, soft, hard);
            (gone, statements)
        };
        assert_eq!(fitted(100, 100).0, 0);
        assert_eq!(fitted(40, 100), (1, all()[1..].iter().map(|it| (*it).to_owned()).collect()));
        let binding = vec!["never do that".to_owned(), "always test".to_owned()];
        assert_eq!(fitted(0, 100), (2, binding));
        assert_eq!(fitted(0, 12), (3, vec!["always test".to_owned()]));
    }
}
