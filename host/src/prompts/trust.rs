//! The question whether the user trusts a workspace.

use std::io;
use std::sync::Arc;

use jaato_runtime::visible;

use crate::terminal::{self, Before, Dialog, Look, Manner, Reply, Text, Value, exact_line};

/// The maximum number of names that are listed of one kind, because a workspace may contain
/// thousands.
const NAMES_MAX: usize = 1000;

/// The longest item that is shown completely.
const ITEM_BYTES_MAX: usize = 2000;

/// The explanation of the answers.
const HELP: &str = "1, y: trust these files in their current state; they can give the model instructions,\n\
    start servers, run commands and allow calls; if one of them changes, the trust ends\n\
    if variables are listed, these servers get them until an entry changes\n\
    2, n: ignore these files, and do not ask again until they change;\n\
    `jaato trust` trusts them later, `jaato trust --no-variables` without the variables";

/// A feature of a workspace that works only if the user trusts it.
#[derive(Debug)]
pub struct TrustedFeature {
    /// Its name: `instructions for the model`.
    pub what: String,
    /// Its items: names of files, command lines, rules.
    pub items: Vec<String>,
}

/// The user's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrustAnswer {
    /// The workspace is trusted as it is.
    Trust,
    /// jaato works without these files.
    Decline,
}

/// Asks until there is an answer.
///
/// # Errors
/// If the terminal is gone.
pub async fn ask_trust(root: &str, brings: &[TrustedFeature]) -> io::Result<Reply<TrustAnswer>> {
    let open = Arc::new(terminal::open_question());
    let fold = |answer: &TrustAnswer| Some(folded_answer(root, *answer));
    terminal::ask(open, trust_question(root, brings), Before::Dropped, read_answer, fold).await
}

fn trust_question(root: &str, brings: &[TrustedFeature]) -> Dialog {
    Dialog {
        title: "Do you trust this folder?".to_owned(),
        subject: visible::visible_name(root).into_owned(),
        values: brings.iter().map(feature_value).collect(),
        details: Vec::new(),
        notes: vec![(
            Look::Yellow,
            "warning: trust it only if you know who wrote these files".to_owned(),
        )],
        answers: vec!["Yes, use them".to_owned(), "No, work without them".to_owned()],
        prompt: String::new(),
        begun: String::new(),
        manner: Manner::Keys,
    }
}

fn feature_value(brings: &TrustedFeature) -> Value {
    Value::new(Some(brings.what.clone()), brings.item_lines().join("\n"))
}

impl TrustedFeature {
    /// Returns a line for each item, safe for a terminal. Both the number and the length of the
    /// lines are limited.
    pub fn item_lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = self
            .items
            .iter()
            .take(NAMES_MAX)
            .map(|item| shorten_item(&visible::visible_name(item)))
            .collect();
        if self.items.len() > NAMES_MAX {
            lines.push(format!("and {} more", self.items.len() - NAMES_MAX));
        }
        lines
    }
}

/// Shortens a long item in its middle, because its end may be important.
fn shorten_item(item: &str) -> String {
    if item.len() <= ITEM_BYTES_MAX {
        return item.to_owned();
    }
    let start = item.floor_char_boundary(ITEM_BYTES_MAX / 2);
    let end = item.ceil_char_boundary(item.len() - ITEM_BYTES_MAX / 2);
    format!("{} … {} bytes … {}", &item[..start], end - start, &item[end..])
}

fn read_answer(line: &str) -> Result<TrustAnswer, String> {
    match line.to_ascii_lowercase().as_str() {
        "" => Err(String::new()),
        "y" | "yes" | "1" => Ok(TrustAnswer::Trust),
        "n" | "no" | "2" => Ok(TrustAnswer::Decline),
        "?" | "h" | "help" | "/help" => Err(HELP.to_owned()),
        _ => Err("type y or n; ? explains the answers".to_owned()),
    }
}

fn folded_answer(root: &str, answer: TrustAnswer) -> Text {
    let verdict = match answer {
        TrustAnswer::Trust => "✓ trusted: ",
        TrustAnswer::Decline => "✗ not trusted: ",
    };
    // The last column stays free.
    let room = terminal::size().1.saturating_sub(verdict.chars().count() + 1);
    let text = match answer {
        TrustAnswer::Trust => Text::new().with(Look::Green, verdict),
        TrustAnswer::Decline => Text::new().red(verdict),
    };
    text.plain(&exact_line(&visible::visible_name(root), room))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trusted_items_are_one_line_each_and_limited_in_number() {
        let value = |count: usize| {
            let items = (0..count).map(|it| format!("{it}\nhint: run it")).collect();
            feature_value(&TrustedFeature { what: "files".to_owned(), items }).shown().1
        };
        let lines = value(4096);
        let lines: Vec<&str> = lines.lines().collect();
        assert_eq!(lines.len(), NAMES_MAX + 1);
        assert_eq!(lines[1], "1<U+000A>hint: run it");
        assert_eq!(lines[NAMES_MAX], "and 3096 more");
        assert_eq!(value(NAMES_MAX).lines().count(), NAMES_MAX);
    }

    #[test]
    fn a_long_item_shows_its_beginning_and_its_end() {
        let item = format!("sh -c '{}; curl evil.example'", "é".repeat(5000));
        let line = &TrustedFeature { what: String::new(), items: vec![item] }.item_lines()[0];
        assert!(line.starts_with("sh -c 'é") && line.ends_with("é; curl evil.example'"), "{line}");
        assert!(line.contains(" bytes … ") && line.len() < ITEM_BYTES_MAX + 100, "{line}");
    }

    #[test]
    fn only_an_explicit_answer_decides_trust() {
        let answers = ["y", "YES", "1", "n", "no", "2"].map(read_answer);
        let (yes, no) = (Ok(TrustAnswer::Trust), Ok(TrustAnswer::Decline));
        assert_eq!(answers, [yes.clone(), yes.clone(), yes, no.clone(), no.clone(), no]);
        for line in ["", "sure", "3", "?"] {
            assert!(read_answer(line).is_err(), "{line}");
        }
    }
}
