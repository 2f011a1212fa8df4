//! Entries of a modification log, their classes, and their files.

use std::path::Path;

use jaato_library::{Error, ErrorKind, Result};
use serde::Serialize;
use serde_json::Value;

use crate::files;

/// The classes of changes, each with the words of a description by which it is found. The first
/// word that a description contains decides.
const CLASSES: [(&str, &[&str]); 6] = [
    ("bug_fix", &["bug", "abend", "fix"]),
    ("performance", &["performance", "tuning"]),
    ("security", &["security", "mask", "encrypt"]),
    ("enhancement", &["enhancement", "multi-currency"]),
    ("refactor", &["refactor"]),
    ("other", &[]),
];

/// The fields of an entry in a file, all of which are required.
const FIELDS: [&str; 5] = ["change_type", "date", "delimiter", "description", "programmer"];

/// One modification of a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LogEntry {
    /// The date, as the log has it.
    pub date: String,
    /// The author, if the log names one.
    pub programmer: Option<String>,
    /// The class of the change.
    pub change_type: String,
    /// The description.
    pub description: String,
    /// The tag that marks the changed lines, if there is one.
    pub delimiter: Option<String>,
}

impl LogEntry {
    /// Creates an entry. Returns `None` without a description.
    pub fn new(
        date: &str,
        programmer: Option<&str>,
        description: &str,
        delimiter: Option<&str>,
    ) -> Option<Self> {
        let description = description.trim();
        let optional = |text: Option<&str>| {
            text.map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned)
        };
        (!description.is_empty()).then(|| Self {
            date: date.trim().to_owned(),
            programmer: optional(programmer),
            change_type: classify(description).to_owned(),
            description: description.to_owned(),
            delimiter: optional(delimiter),
        })
    }

    /// Converts an object of a model or of a file. Returns `None` if it has no description. A file
    /// may say which class the entry has.
    pub fn from_json(value: &Value) -> Option<Self> {
        let text = |name: &str| value.get(name).and_then(Value::as_str);
        let [date, description] = ["date", "description"].map(|name| text(name).unwrap_or(""));
        let mut entry = Self::new(date, text("programmer"), description, text("delimiter"))?;
        if let Some(class) = text("change_type") {
            class.clone_into(&mut entry.change_type);
        }
        Some(entry)
    }
}

/// Classifies a description.
pub fn classify(description: &str) -> &'static str {
    let description = description.to_lowercase();
    let is_in = |words: &[&str]| words.iter().any(|word| description.contains(word));
    CLASSES.iter().find(|(_, words)| is_in(words)).map_or("other", |(class, _)| class)
}

/// Finds the JSON array in the answer of a model, which may have text around it.
pub fn entries_from_answer(answer: &str) -> Vec<LogEntry> {
    let array = answer.find('[').zip(answer.rfind(']')).filter(|(start, end)| start < end);
    let inner = array.map_or("", |(start, end)| &answer[start..=end]);
    let parsed = [answer.trim(), inner].iter().find_map(|text| serde_json::from_str(text).ok());
    let Some(Value::Array(items)) = parsed else { return Vec::new() };
    // The class is always found by the words of the description, whatever the model says.
    let entry = |item: &Value| {
        let entry = LogEntry::from_json(item)?;
        Some(LogEntry { change_type: classify(&entry.description).to_owned(), ..entry })
    };
    items.iter().filter_map(entry).collect()
}

/// Writes entries, one a line.
///
/// # Errors
/// If the file cannot be written.
pub fn write_entries(path: &Path, entries: &[LogEntry]) -> Result<()> {
    files::write_text(path, &files::to_json_lines(entries)?)
}

/// Reads a file of entries, one a line, without checking their fields.
///
/// # Errors
/// If the file cannot be read, or a line is not valid JSON.
pub fn read_entries(path: &Path) -> Result<Vec<Value>> {
    let text = files::read_text(path)?;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let parsed = lines.map(|(index, line)| {
        serde_json::from_str(line).map_err(|error| {
            let text = format!("`{}`, line {}: not valid JSON: {error}", path.display(), index + 1);
            Error::new(ErrorKind::InvalidArguments, text)
        })
    });
    parsed.collect()
}

/// Checks the fields of entries, and returns the problems.
pub fn validate_entries(entries: &[Value]) -> Vec<String> {
    let mut problems = Vec::new();
    for (entry, number) in entries.iter().zip(1..) {
        let Value::Object(fields) = entry else {
            problems.push(format!("Entry {number} not an object"));
            continue;
        };
        let missing: Vec<&str> =
            FIELDS.into_iter().filter(|name| !fields.contains_key(*name)).collect();
        if !missing.is_empty() {
            problems.push(format!("Entry {number} missing keys: {}", missing.join(", ")));
        }
        let text = |name: &str| fields.get(name).and_then(Value::as_str);
        if text("description").is_none_or(|text| text.trim().is_empty()) {
            problems.push(format!("Entry {number} empty description"));
        }
        if !CLASSES.iter().any(|(class, _)| Some(*class) == text("change_type")) {
            let found = fields.get("change_type").unwrap_or(&Value::Null);
            problems.push(format!("Entry {number} invalid change_type: {found}"));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn first_word_of_the_table_decides_about_the_class() {
        for (description, class) in [
            ("Fix S0C7 abend", "bug_fix"),
            ("Performance tuning of the read loop", "performance"),
            ("Mask the card number", "security"),
            ("Multi-currency balances", "enhancement"),
            ("Refactor the report", "refactor"),
            ("New logo", "other"),
            ("Refactor after a bug", "bug_fix"),
        ] {
            assert_eq!(classify(description), class, "{description}");
        }
    }

    #[test]
    fn array_is_found_in_an_answer_with_other_text() {
        let entry = json!({ "date": "2020-01-02", "programmer": null, "description": " Fix [A] ",
            "delimiter": "RA01", "change_type": "security" });
        let array = json!([entry, "text", { "description": "" }]).to_string();
        let expected = LogEntry::new("2020-01-02", None, "Fix [A]", Some("RA01"));
        let expected: Vec<LogEntry> = expected.into_iter().collect();
        assert_eq!(entries_from_answer(&array), expected);
        assert_eq!(entries_from_answer(&format!("Here:\n```json\n{array}\n```")), expected);
        assert_eq!(expected[0].change_type, "bug_fix");
        for answer in ["", "no", "]x[", "[{]", "{\"a\": [1]}"] {
            assert_eq!(entries_from_answer(answer), [], "{answer}");
        }
    }

    #[test]
    fn each_problem_of_an_entry_is_named() {
        let good = json!({ "date": "", "programmer": null, "change_type": "other",
            "description": "x", "delimiter": null });
        let problems =
            validate_entries(&[good, json!(1), json!({ "description": " ", "date": "d" })]);
        assert_eq!(
            problems,
            [
                "Entry 2 not an object",
                "Entry 3 missing keys: change_type, delimiter, programmer",
                "Entry 3 empty description",
                "Entry 3 invalid change_type: null",
            ]
        );
    }
}
