//! Reads text files with front matter, which is the YAML between two `---` lines at the top, and
//! whole YAML files.
//!
//! Untrusted authors may have written the files: sizes and depths are limited, and aliases are
//! refused.
//!
//! A library of plugins, not a plugin.
#![forbid(unsafe_code)]

mod read_text;
mod yaml;

use std::borrow::Cow;

use jaato_plugin_sdk::serde_json::{Map, Value};

use yaml::{HAS_ALIAS, YamlReader, parse_scalar};

pub use read_text::{decode_text, read_text};
pub use yaml::{DEPTH_MAX, ScalarTypes, parse_yaml};

/// The longest front matter in bytes. It is usually a few lines, and YAML is expensive to parse.
pub const FRONT_BYTES_MAX: usize = 16 * 1024;

/// The keys of a front matter.
pub type FrontMatter = Map<String, Value>;

/// Splits a file into its front matter and the rest.
///
/// # Errors
/// An error of one line if the front matter has no end or is too long.
pub fn split_front_matter(text: &str) -> Result<(Option<&str>, &str), String> {
    let Some(rest) = text.trim_start().strip_prefix("---").and_then(|rest| {
        let (first, rest) = rest.split_once('\n')?;
        first.trim().is_empty().then_some(rest)
    }) else {
        return Ok((None, text));
    };
    let mut end = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim_end() == "---" {
            if end > FRONT_BYTES_MAX {
                return Err(format!(
                    "its front matter has {end} bytes, the limit is {FRONT_BYTES_MAX}"
                ));
            }
            return Ok((Some(&rest[..end]), rest[end + line.len()..].trim_start_matches('\n')));
        }
        end += line.len();
    }
    Err("its front matter has no end: a line `---` is missing".to_owned())
}

/// Parses a front matter. If it is not valid YAML, it is parsed again with quoted values, because a
/// text often contains a colon, and then line by line. Also returns a note about such a repair.
///
/// # Errors
/// An error of one line if it cannot be parsed.
pub fn parse_front_matter(
    text: &str,
    scalars: ScalarTypes,
) -> Result<(FrontMatter, Option<String>), String> {
    let why = match read_front_matter(text, scalars) {
        Ok(fields) => return Ok((fields, None)),
        Err(why) => why,
    };
    if let Cow::Owned(quoted) = quote_value(text, scalars)
        && let Ok(fields) = read_front_matter(&quoted, scalars)
    {
        return Ok((fields, None));
    }
    // A text with aliases is meant as YAML and is not parsed in another way.
    match parse_line_by_line(text, scalars).filter(|_| why != HAS_ALIAS) {
        Some(fields) => Ok((fields, Some(format!("{why}; it was read line by line")))),
        None => Err(why),
    }
}

/// Reads keys at the start of lines, each with the text up to the next key. The last of several
/// equal keys wins.
fn parse_line_by_line(text: &str, scalars: ScalarTypes) -> Option<FrontMatter> {
    let mut keys: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in text.lines() {
        let begun = line.split_once(':').filter(|(key, value)| {
            let is_known = matches!(*key, "name" | "description");
            is_field_key(key) && (is_known || value.is_empty() || value.starts_with([' ', '\t']))
        });
        match (begun, keys.last_mut()) {
            (Some((key, value)), _) => keys.push((key, vec![value.trim()])),
            (None, Some((_, lines))) => lines.push(line.trim()),
            (None, None) if line.trim().is_empty() || line.starts_with('#') => {}
            (None, None) => return None,
        }
    }
    let fields =
        keys.into_iter().map(|(key, lines)| (key.to_owned(), parse_field(&lines, scalars)));
    Some(fields.collect()).filter(|fields: &FrontMatter| !fields.is_empty())
}

fn parse_field(lines: &[&str], scalars: ScalarTypes) -> Value {
    let (first, more) = lines.split_first().unwrap_or((&"", &[]));
    let pair = |line: &&str| {
        let (key, value) = line.split_once(':')?;
        let is_pair = is_field_key(key) && value.starts_with([' ', '\t']);
        is_pair.then(|| (key.to_owned(), parse_plain_field(value, scalars)))
    };
    let inner: Vec<&str> = more.iter().copied().filter(|line| !line.is_empty()).collect();
    if first.is_empty() {
        if let Some(pairs) = inner.iter().map(pair).collect::<Option<Map<_, _>>>()
            && !pairs.is_empty()
        {
            return Value::Object(pairs);
        }
        if inner.first().is_some_and(|line| line.starts_with("- ") || pair(line).is_some()) {
            let items = inner.iter().map(|line| line.strip_prefix("- ").unwrap_or(line));
            return items.map(|item| parse_plain_field(item, scalars)).collect();
        }
    }
    let is_block = first.starts_with(['|', '>']) && first.len() <= 3;
    let begin = if is_block { "" } else { first };
    let text: Vec<&str> = std::iter::once(begin).chain(more.iter().copied()).collect();
    parse_plain_field(&text.join(" "), scalars)
}

/// Reads a value that is not valid YAML.
fn parse_plain_field(text: &str, scalars: ScalarTypes) -> Value {
    let text = text.trim();
    let unquoted = ['"', '\''].into_iter().find_map(|quote| {
        let inner = text.strip_prefix(quote)?.strip_suffix(quote)?;
        (!inner.contains(quote)).then_some(inner)
    });
    match unquoted {
        Some("") => Value::Null,
        Some(text) => parse_scalar(text, None),
        None => parse_scalar(text, Some(scalars)),
    }
}

/// Quotes values that YAML would not read as texts.
fn quote_value(text: &str, scalars: ScalarTypes) -> Cow<'_, str> {
    let mut changed = false;
    let lines: Vec<Cow<'_, str>> = text
        .lines()
        .map(|line| match line.split_once(": ") {
            Some((key, value)) if is_field_key(key) && should_quote(value.trim(), scalars) => {
                changed = true;
                Cow::Owned(format!("{key}: '{}'", value.trim().replace('\'', "''")))
            }
            _ => Cow::Borrowed(line),
        })
        .collect();
    if changed { Cow::Owned(lines.join("\n")) } else { Cow::Borrowed(text) }
}

fn is_field_key(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|it| it.is_ascii_alphanumeric() || b"-_".contains(&it))
}

fn should_quote(value: &str, scalars: ScalarTypes) -> bool {
    let is_whole =
        |quote: char| value.len() > 1 && value.starts_with(quote) && value.ends_with(quote);
    let is_typed = || {
        let read = YamlReader::new(value, "it", scalars).read_document();
        match read {
            Ok(Value::Array(_)) => value.starts_with('['),
            Ok(value) => value.is_boolean() || value.is_number(),
            Err(_) => false,
        }
    };
    let is_quoted = value.starts_with(['|', '>']) || is_whole('"') || is_whole('\'');
    !value.is_empty() && !is_quoted && (scalars == ScalarTypes::Text || !is_typed())
}

fn read_front_matter(text: &str, scalars: ScalarTypes) -> Result<FrontMatter, String> {
    match YamlReader::new(text, "its front matter", scalars).read_document()? {
        Value::Object(fields) => Ok(fields),
        Value::Null => Ok(FrontMatter::new()),
        _ => Err("its front matter is not a list of keys".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use jaato_plugin_sdk::prelude::json;

    use super::*;

    fn field_text(fields: &FrontMatter, key: &str) -> String {
        fields[key].as_str().unwrap_or_else(|| panic!("{key}: {fields:?}")).to_owned()
    }

    fn parse_texts(text: &str) -> Result<(FrontMatter, Option<String>), String> {
        parse_front_matter(text, ScalarTypes::Text)
    }

    #[test]
    fn front_matter_is_split_from_the_body() {
        assert_eq!(split_front_matter("---\na: b\n---\n\nbody\n"), Ok((Some("a: b\n"), "body\n")));
        assert_eq!(split_front_matter("body\n---\n"), Ok((None, "body\n---\n")));
        assert_eq!(split_front_matter("---\n---\n"), Ok((Some(""), "")));
        assert!(split_front_matter("---\na: b\n").unwrap_err().contains("no end"));
        let at = format!("---\n{}\n---\n", "#".repeat(FRONT_BYTES_MAX - 1));
        assert!(split_front_matter(&at).is_ok());
        let above = format!("---\n{}\n---\n", "#".repeat(FRONT_BYTES_MAX));
        assert!(split_front_matter(&above).unwrap_err().contains("16385 bytes"));
    }

    #[test]
    fn front_matter_scalars_are_texts_as_written() {
        let fields = parse_texts(
            "name: moon\ndescription: >\n  Two\n  lines\nversion: 1.0\nempty:\nuse: true\n\
             metadata:\n  author: me\nlist: [a, {b: c}]\nlast: \"x: y\"\n",
        )
        .unwrap()
        .0;
        assert_eq!(field_text(&fields, "description"), "Two lines");
        assert_eq!(
            (field_text(&fields, "version"), field_text(&fields, "use")),
            ("1.0".into(), "true".into())
        );
        assert_eq!(fields["empty"], Value::Null);
        assert_eq!(fields["metadata"], json!({ "author": "me" }));
        assert_eq!(fields["list"], json!(["a", { "b": "c" }]));
        assert_eq!(field_text(&fields, "last"), "x: y");
    }

    #[test]
    fn unquoted_values_with_colons_are_read_as_text() {
        let fields = parse_texts("name: a\ndescription: Use it when: the moon's full\n").unwrap().0;
        assert_eq!(field_text(&fields, "description"), "Use it when: the moon's full");
        let (fields, _) = parse_texts("description: @moon and more\nhint: [a] [b]\n").unwrap();
        assert_eq!(field_text(&fields, "description"), "@moon and more");
        assert_eq!(field_text(&fields, "hint"), "[a] [b]");
    }

    #[test]
    fn invalid_yaml_is_read_line_by_line() {
        let read = |front: &str| {
            let (fields, odd) = parse_texts(front).unwrap();
            assert!(odd.unwrap().ends_with("it was read line by line"), "{front}");
            fields
        };
        for (front, expected) in [
            (
                "description: Use when\n  doing this: that or\n  more\n",
                "Use when doing this: that or more",
            ),
            ("description: \"A\" or \"B: b\"\nx: 'a' isn't\n", "\"A\" or \"B: b\""),
            ("description: 'a' isn't 'b'\nx: [\n", "'a' isn't 'b'"),
            ("description:\tx\nmetadata:\n\tauthor: me\n", "x"),
            ("description: one\ndescription: two\n", "two"),
            ("description: \"C:\\Users\\x\"\n", "C:\\Users\\x"),
            ("description:x y\nname: a\n", "x y"),
            ("description: >-\n  a: b\n  c\n d\nx: \"a\" b \"c\"\n", "a: b c d"),
        ] {
            assert_eq!(field_text(&read(front), "description"), expected, "{front}");
        }
        let nested = read("a:\n\tb: c\n\td: e\nf:\n\t- g\n");
        assert_eq!(nested["a"], json!({ "b": "c", "d": "e" }));
        assert_eq!(nested["f"], json!(["g"]));
    }

    #[test]
    fn unreadable_front_matter_is_refused_in_one_line() {
        let refused = |text: &str| {
            let why = parse_texts(text).unwrap_err();
            assert_eq!(why.lines().count(), 1, "{why}");
            why
        };
        assert!(refused("- a\n- b\n").contains("not a list of keys"));
        let laughs = "a: &a\n  - x\nb:\n  - *a\n  - *a\n";
        assert!(refused(laughs).contains("alias"));
        assert!(refused("? [a]\n: b\n").contains("not a text"));
        assert!(refused(&"[".repeat(FRONT_BYTES_MAX)).len() < 300);
        // Parsed as a text, because a text may start with a brace.
        assert!(parse_texts(&format!("a: {}", "{a: ".repeat(4000))).is_ok());
    }

    #[test]
    fn numbers_and_lists_survive_the_repair_of_other_values() {
        let front = "description: Use when: asked\ntools: [Read, Grep]\nturns: 5\nhint: [a] [b]\n";
        let expected = json!({
            "description": "Use when: asked", "tools": ["Read", "Grep"], "turns": 5, "hint": "[a] [b]",
        });
        assert_eq!(json!(parse_front_matter(front, ScalarTypes::Core).unwrap().0), expected);
        let front = "description: 'a' isn't 'b'\ntools:\n  - Read\n  - 'Grep'\nturns: 5\nx: [\n";
        let (fields, note) = parse_front_matter(front, ScalarTypes::Core).unwrap();
        assert!(note.is_some());
        assert_eq!((&fields["tools"], &fields["turns"]), (&json!(["Read", "Grep"]), &json!(5)));
    }
}
