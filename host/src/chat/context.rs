//! Draws what fills the context: a bar, and a table of the parts.

use serde_json::{Map, Value};

use crate::exit::CommandFailure;
use crate::report;

/// The width of the bar, in characters.
const BAR_CHARS: u64 = 40;

/// The character of each part in the bar, in the order in which parts are drawn.
const MARKS: [(&str, char); 5] = [
    ("system prompt", 'S'),
    ("instructions", 'I'),
    ("tools", 'T'),
    ("history", 'H'),
    ("objects", 'O'),
];

/// Draws the answer of the command `context`.
///
/// # Errors
/// If the reader closed the output.
pub fn draw(usage: &Map<String, Value>) -> Result<(), CommandFailure> {
    let number = |name: &str| usage.get(name).and_then(Value::as_u64).unwrap_or_default();
    let (total, limit) = (number("total_tokens"), number("context_limit"));
    let text = |name: &str| usage.get(name).and_then(Value::as_str).unwrap_or_default();
    let percent = usage.get("percent_used").map(Value::to_string).unwrap_or_default();
    report::print_line(&format!(
        "{}/{}: {total} of {limit} tokens ({percent} %), counted by: {}",
        text("provider"),
        text("model"),
        text("counted_by")
    ))?;
    report::print_line(&bar(usage, limit))?;
    let mut rows = rows(usage, limit);
    for (name, tokens) in [
        ("free", number("tokens_remaining")),
        ("pinned", number("pinned_tokens")),
        ("a gc would free", number("gc_would_free")),
    ] {
        rows.push(vec![name.to_owned(), String::new(), tokens.to_string(), share(tokens, limit)]);
    }
    report::print_table(&["part", "name", "tokens", "%"], &rows)
}

fn parts(usage: &Map<String, Value>) -> impl Iterator<Item = (&str, &str, u64)> {
    let parts = usage.get("parts").and_then(Value::as_array).into_iter().flatten();
    parts.map(|part| {
        let text = |name: &str| part[name].as_str().unwrap_or_default();
        (text("part"), text("name"), part["tokens"].as_u64().unwrap_or_default())
    })
}

fn rows(usage: &Map<String, Value>, limit: u64) -> Vec<Vec<String>> {
    let row = |(part, name, tokens): (&str, &str, u64)| {
        let mark = MARKS.iter().find(|(known, _)| *known == part).map(|(_, mark)| *mark);
        let part = mark.map(|mark| format!("{mark} {part}")).unwrap_or_else(|| part.to_owned());
        vec![part, name.to_owned(), tokens.to_string(), share(tokens, limit)]
    };
    parts(usage).map(row).collect()
}

/// Draws each part with its mark, and the rest of the window with dots.
fn bar(usage: &Map<String, Value>, limit: u64) -> String {
    let mut bar = String::new();
    let (mut tokens, mut drawn) = (0, 0);
    for (part, mark) in MARKS {
        tokens += parts(usage).filter(|(known, ..)| *known == part).map(|it| it.2).sum::<u64>();
        // Rounding the sum keeps the whole exact.
        let end = (tokens.saturating_mul(BAR_CHARS) / limit.max(1)).min(BAR_CHARS);
        (drawn..end).for_each(|_| bar.push(mark));
        drawn = drawn.max(end);
    }
    (drawn..BAR_CHARS).for_each(|_| bar.push('.'));
    format!("[{bar}]")
}

fn share(tokens: u64, limit: u64) -> String {
    format!("{}", tokens.saturating_mul(100) / limit.max(1))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn bar_shows_each_part_by_its_share_of_the_window() {
        let part = |part: &str, tokens: u64| json!({ "part": part, "name": "x", "tokens": tokens });
        let drawn = |parts: Value, limit: u64| {
            let usage = json!({ "parts": parts });
            bar(usage.as_object().unwrap(), limit)
        };
        let parts = json!([part("system prompt", 10), part("tools", 20), part("history", 25)]);
        assert_eq!(drawn(parts.clone(), 100), "[SSSSTTTTTTTTHHHHHHHHHH..................]");
        assert_eq!(drawn(parts, 10), format!("[{}]", "S".repeat(40)));
        assert_eq!(drawn(json!([]), 0), format!("[{}]", ".".repeat(40)));
    }
}
