//! Parses front matter, which is the text between two `---` lines at the top of a file. Knows
//! nothing about files and plugins.
//!
//! YAML is read as a flat list of keys. Aliases are refused, so that a small text cannot expand.

use jaato_plugin_sdk::types::text::one_line;

use std::borrow::Cow;
use std::collections::BTreeMap;

use saphyr_parser::{Event, Parser, ScalarStyle};

/// The longest front matter in bytes. It is usually a few lines, and YAML is expensive to parse.
pub const FRONT_BYTES_MAX: usize = 16 * 1024;

/// The value of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FrontMatterValue {
    /// A text exactly as written. Numbers and booleans are texts too.
    Text(String),
    /// No value.
    Nothing,
    /// A list or a map. No key needs one.
    Nested {
        /// Whether it is a map whose values are all texts.
        is_map_of_texts: bool,
    },
}

/// The keys of a front matter.
pub type FrontMatter = BTreeMap<String, FrontMatterValue>;

/// Splits a file into its front matter and the rest.
///
/// # Errors
/// An error of one line if the front matter has no end or is too long.
pub fn split(text: &str) -> Result<(Option<&str>, &str), String> {
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
pub fn parse(text: &str) -> Result<(FrontMatter, Option<String>), String> {
    let why = match read_front_matter(text) {
        Ok(fields) => return Ok((fields, None)),
        Err(why) => why,
    };
    if let Cow::Owned(quoted) = quote_value(text)
        && let Ok(fields) = read_front_matter(&quoted)
    {
        return Ok((fields, None));
    }
    // A text with aliases is meant as YAML and is not parsed in another way.
    match parse_line_by_line(text).filter(|_| why != HAS_ALIAS) {
        Some(fields) => Ok((fields, Some(format!("{why}; it was read line by line")))),
        None => Err(why),
    }
}

const HAS_ALIAS: &str = "it has an alias (`*`)";

/// Reads keys at the start of lines, each with the text up to the next key. The last of several
/// equal keys wins.
fn parse_line_by_line(text: &str) -> Option<FrontMatter> {
    let mut keys: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in text.lines() {
        let begun = line.split_once(':').filter(|(key, value)| {
            let is_known = matches!(*key, "name" | "description");
            is_key(key) && (is_known || value.is_empty() || value.starts_with([' ', '\t']))
        });
        match (begun, keys.last_mut()) {
            (Some((key, value)), _) => keys.push((key, vec![value.trim()])),
            (None, Some((_, lines))) => lines.push(line.trim()),
            (None, None) if line.trim().is_empty() || line.starts_with('#') => {}
            (None, None) => return None,
        }
    }
    let fields = keys.into_iter().map(|(key, lines)| (key.to_owned(), field_of(&lines)));
    Some(fields.collect()).filter(|fields: &FrontMatter| !fields.is_empty())
}

fn field_of(lines: &[&str]) -> FrontMatterValue {
    let (first, more) = lines.split_first().unwrap_or((&"", &[]));
    let is_pair = |line: &&&str| {
        line.split_once(':')
            .is_some_and(|(key, value)| is_key(key) && value.starts_with([' ', '\t']))
    };
    let is_item = |line: &&&str| line.starts_with("- ");
    let inner: Vec<&&str> = more.iter().filter(|line| !line.is_empty()).collect();
    if first.is_empty() && inner.first().is_some_and(|line| is_item(line) || is_pair(line)) {
        return FrontMatterValue::Nested { is_map_of_texts: inner.iter().all(is_pair) };
    }
    let is_block = first.starts_with(['|', '>']) && first.len() <= 3;
    let begin = if is_block { "" } else { first };
    let text: Vec<&str> = std::iter::once(begin).chain(more.iter().copied()).collect();
    let text = text.join(" ");
    let text = text.trim();
    let unquoted = ['"', '\''].into_iter().find_map(|quote| {
        let inner = text.strip_prefix(quote)?.strip_suffix(quote)?;
        (!inner.contains(quote)).then_some(inner)
    });
    match unquoted.unwrap_or(text) {
        "" => FrontMatterValue::Nothing,
        text => FrontMatterValue::Text(text.to_owned()),
    }
}

/// Quotes values that YAML would not read as texts.
fn quote_value(text: &str) -> Cow<'_, str> {
    let mut changed = false;
    let lines: Vec<Cow<'_, str>> = text
        .lines()
        .map(|line| match line.split_once(": ") {
            Some((key, value)) if is_key(key) && wants_quotes(value.trim()) => {
                changed = true;
                Cow::Owned(format!("{key}: '{}'", value.trim().replace('\'', "''")))
            }
            _ => Cow::Borrowed(line),
        })
        .collect();
    if changed { Cow::Owned(lines.join("\n")) } else { Cow::Borrowed(text) }
}

fn is_key(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|it| it.is_ascii_alphanumeric() || b"-_".contains(&it))
}

fn wants_quotes(value: &str) -> bool {
    let is_whole =
        |quote: char| value.len() > 1 && value.starts_with(quote) && value.ends_with(quote);
    !value.is_empty() && !value.starts_with(['|', '>']) && !is_whole('"') && !is_whole('\'')
}

fn read_front_matter(text: &str) -> Result<FrontMatter, String> {
    let mut events = Parser::new_from_str(text).map(|event| match event {
        Ok((Event::Alias(_), _)) => Err(HAS_ALIAS.to_owned()),
        Ok((event, _)) => Ok(event),
        Err(error) => {
            Err(format!("its front matter is not valid YAML: {}", one_line(&error.to_string())))
        }
    });
    let mut next = || events.next().unwrap_or(Ok(Event::StreamEnd));
    let mut fields = FrontMatter::new();
    loop {
        match next()? {
            Event::StreamStart | Event::DocumentStart(_) | Event::Nothing => {}
            Event::MappingStart(..) => break,
            Event::StreamEnd | Event::DocumentEnd => return Ok(fields),
            _ => return Err("its front matter is not a list of keys".to_owned()),
        }
    }
    loop {
        let key = match next()? {
            Event::Scalar(key, ..) => key.into_owned(),
            Event::MappingEnd => return Ok(fields),
            _ => return Err("a key in its front matter is not a text".to_owned()),
        };
        let field = match next()? {
            Event::Scalar(text, style, ..) => scalar(&text, style),
            Event::MappingStart(..) => {
                FrontMatterValue::Nested { is_map_of_texts: skip_collection(&mut next, true)? }
            }
            Event::SequenceStart(..) => {
                skip_collection(&mut next, false)?;
                FrontMatterValue::Nested { is_map_of_texts: false }
            }
            _ => return Err(format!("the key `{key}` refers to nothing")),
        };
        if fields.contains_key(&key) {
            return Err(format!("the key `{key}` appears twice in its front matter"));
        }
        fields.insert(key, field);
    }
}

fn scalar(text: &str, style: ScalarStyle) -> FrontMatterValue {
    let is_nothing = style == ScalarStyle::Plain && matches!(text, "" | "~" | "null");
    if is_nothing {
        FrontMatterValue::Nothing
    } else {
        FrontMatterValue::Text(text.trim().to_owned())
    }
}

/// Skips a list or a map. Returns true if all its values are texts.
fn skip_collection<'a>(
    next: &mut impl FnMut() -> Result<Event<'a>, String>,
    is_map: bool,
) -> Result<bool, String> {
    let (mut depth, mut is_flat) = (1_usize, is_map);
    while depth > 0 {
        match next()? {
            Event::MappingStart(..) | Event::SequenceStart(..) => {
                is_flat = false;
                depth += 1;
            }
            Event::MappingEnd | Event::SequenceEnd => depth -= 1,
            Event::StreamEnd => return Err("its front matter ends too early".to_owned()),
            _ => {}
        }
    }
    Ok(is_flat)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(fields: &FrontMatter, key: &str) -> String {
        match &fields[key] {
            FrontMatterValue::Text(text) => text.clone(),
            other => panic!("{key} is {other:?}"),
        }
    }

    #[test]
    fn front_matter_is_split_from_the_body() {
        assert_eq!(split("---\na: b\n---\n\nbody\n"), Ok((Some("a: b\n"), "body\n")));
        assert_eq!(split("body\n---\n"), Ok((None, "body\n---\n")));
        assert_eq!(split("---\n---\n"), Ok((Some(""), "")));
        assert!(split("---\na: b\n").unwrap_err().contains("no end"));
        let at = format!("---\n{}\n---\n", "#".repeat(FRONT_BYTES_MAX - 1));
        assert!(split(&at).is_ok());
        let above = format!("---\n{}\n---\n", "#".repeat(FRONT_BYTES_MAX));
        assert!(split(&above).unwrap_err().contains("16385 bytes"));
    }

    #[test]
    fn front_matter_values_are_texts_and_nested_values_are_ignored() {
        let fields = parse(
            "name: moon\ndescription: >\n  Two\n  lines\nversion: 1.0\nempty:\nuse: true\n\
             metadata:\n  author: me\nlist: [a, {b: c}]\nlast: \"x: y\"\n",
        )
        .unwrap()
        .0;
        assert_eq!(text(&fields, "description"), "Two lines");
        assert_eq!((text(&fields, "version"), text(&fields, "use")), ("1.0".into(), "true".into()));
        assert_eq!(fields["empty"], FrontMatterValue::Nothing);
        assert_eq!(fields["metadata"], FrontMatterValue::Nested { is_map_of_texts: true });
        assert_eq!(fields["list"], FrontMatterValue::Nested { is_map_of_texts: false });
        assert_eq!(text(&fields, "last"), "x: y");
    }

    #[test]
    fn unquoted_values_with_colons_are_read_as_text() {
        let fields = parse("name: a\ndescription: Use it when: the moon's full\n").unwrap().0;
        assert_eq!(text(&fields, "description"), "Use it when: the moon's full");
        let (fields, _) = parse("description: @moon and more\nhint: [a] [b]\n").unwrap();
        assert_eq!(text(&fields, "description"), "@moon and more");
        assert_eq!(text(&fields, "hint"), "[a] [b]");
    }

    #[test]
    fn invalid_yaml_is_read_line_by_line() {
        let read = |front: &str| {
            let (fields, odd) = parse(front).unwrap();
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
            assert_eq!(text(&read(front), "description"), expected, "{front}");
        }
        let nested = read("a:\n\tb: c\n\td: e\nf:\n\t- g\n");
        assert_eq!(nested["a"], FrontMatterValue::Nested { is_map_of_texts: true });
        assert_eq!(nested["f"], FrontMatterValue::Nested { is_map_of_texts: false });
    }

    #[test]
    fn unreadable_front_matter_is_refused_in_one_line() {
        let refused = |text: &str| {
            let why = parse(text).unwrap_err();
            assert_eq!(why.lines().count(), 1, "{why}");
            why
        };
        assert!(refused("- a\n- b\n").contains("not a list of keys"));
        let laughs = "a: &a\n  - x\nb:\n  - *a\n  - *a\n";
        assert!(refused(laughs).contains("alias"));
        assert!(refused("? [a]\n: b\n").contains("not a text"));
        assert!(refused(&"[".repeat(FRONT_BYTES_MAX)).len() < 300);
        // Parsed as a text, because a text may start with a brace.
        assert!(parse(&format!("a: {}", "{a: ".repeat(4000))).is_ok());
    }
}
