//! Reads the text of a profile's file: JSON, YAML, or Markdown with front matter. Pure.

use std::path::Path;

use front_matter::ScalarTypes;
use jaato_plugin_sdk::serde_json::{self, Map, Value};
use jaato_plugin_sdk::types::text::one_line;

use crate::profile::{CheckedProfile, Profile, ProfileFormat};

/// The largest file, in bytes. Its instructions are part of each request of a subagent.
pub const FILE_BYTES_MAX: u64 = 64 * 1024;

/// The syntax of a file, by the end of its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProfileSyntax {
    /// `.json`.
    Json,
    /// `.yaml` and `.yml`.
    Yaml,
    /// `.md`.
    Markdown,
}

impl ProfileSyntax {
    /// Returns the syntax of a file, or `None` if no profile has such a name.
    pub fn from_path(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()? {
            "json" => Some(Self::Json),
            "yaml" | "yml" => Some(Self::Yaml),
            "md" => Some(Self::Markdown),
            _ => None,
        }
    }

    /// Checks the text of a file. `name` is as for [`Profile::from_checked_fields`].
    pub fn check_text(self, text: &str, name: Option<&str>) -> CheckedProfile {
        let (fields, note) = match self.read_fields(text) {
            Ok(read) => read,
            Err(why) => return CheckedProfile { errors: vec![why], ..CheckedProfile::default() },
        };
        let format = match self {
            Self::Json | Self::Yaml => ProfileFormat::Keys,
            Self::Markdown => ProfileFormat::Markdown,
        };
        let mut checked = Profile::from_checked_fields(&fields, format, name);
        if text.contains(char::REPLACEMENT_CHARACTER) {
            checked.warnings.push("bytes that are not UTF-8 are read as �".to_owned());
        }
        checked.warnings.extend(note);
        checked
    }

    /// Reads the keys. The second result is a note about a repair.
    fn read_fields(self, text: &str) -> Result<(Map<String, Value>, Option<String>), String> {
        let value = match self {
            Self::Json => serde_json::from_str(text)
                .map_err(|error| format!("Invalid JSON: {}", one_line(&error.to_string())))?,
            Self::Yaml => {
                front_matter::parse_yaml(text).map_err(|why| format!("Invalid YAML: {why}"))?
            }
            Self::Markdown => return read_markdown(text),
        };
        match value {
            Value::Object(fields) => Ok((fields, None)),
            _ => Err("a profile must be an object with keys".to_owned()),
        }
    }
}

/// Reads the front matter, and the body as `system_instructions`.
fn read_markdown(text: &str) -> Result<(Map<String, Value>, Option<String>), String> {
    let (front, body) = front_matter::split_front_matter(text)?;
    let front = front.ok_or("it has no front matter between two lines `---`")?;
    let (mut fields, note) = front_matter::parse_front_matter(front, ScalarTypes::Core)?;
    if !body.trim().is_empty() {
        fields.insert("system_instructions".to_owned(), Value::from(body.trim_end()));
    }
    Ok((fields, note))
}

#[cfg(test)]
mod tests {
    use jaato_plugin_sdk::prelude::json;

    use super::*;

    const REVIEWER: &str = "---\nname: reviewer\ndescription: Use when: code was written\n\
                            tools: Read, Grep\nmodel: sonnet\nmaxTurns: 7\ncolor: red\n---\n\n\
                            You review.\nBe strict.\n";

    #[test]
    fn markdown_profile_has_its_body_as_instructions() {
        let checked = ProfileSyntax::Markdown.check_text(REVIEWER, Some("stem"));
        assert!(checked.errors.is_empty() && checked.warnings.is_empty(), "{checked:?}");
        let profile = checked.profile.unwrap();
        assert_eq!(profile.instructions.as_deref(), Some("You review.\nBe strict."));
        let expected = json!({
            "name": "reviewer", "description": "Use when: code was written",
            "tools": ["readFile", "viewImage", "grep_content"], "model": "sonnet", "max_turns": 7,
            "auto_approved": false, "source": "",
        });
        assert_eq!(profile.to_json(), expected);
    }

    #[test]
    fn json_and_yaml_give_the_same_profile() {
        let json =
            r#"{"description": "d", "plugins": ["cli"], "max_turns": 3, "gc": {"type": "hybrid"}}"#;
        let yaml = "description: d\nplugins: [cli]\nmax_turns: 3\ngc:\n  type: hybrid\n";
        let read =
            |syntax: ProfileSyntax, text: &str| syntax.check_text(text, Some("x")).profile.unwrap();
        assert_eq!(read(ProfileSyntax::Json, json), read(ProfileSyntax::Yaml, yaml));
    }

    #[test]
    fn hostile_files_are_refused_with_one_line_each() {
        let deep = |open: &str, close: &str| format!("{}{}", open.repeat(5000), close.repeat(5000));
        for (syntax, text, expected) in [
            (ProfileSyntax::Json, String::new(), "Invalid JSON: EOF while parsing a value"),
            (ProfileSyntax::Json, "[]".to_owned(), "a profile must be an object with keys"),
            (ProfileSyntax::Json, deep("[", "]"), "Invalid JSON: recursion limit exceeded"),
            (
                ProfileSyntax::Json,
                "{\"name\": \"\u{0}\"}".to_owned(),
                "Invalid JSON: control character",
            ),
            (ProfileSyntax::Yaml, String::new(), "a profile must be an object with keys"),
            (ProfileSyntax::Yaml, "just text".to_owned(), "a profile must be an object with keys"),
            (ProfileSyntax::Yaml, deep("[", "]"), "Invalid YAML: "),
            (ProfileSyntax::Yaml, "a: &a\n  b: *a\n".to_owned(), "Invalid YAML: it has an alias"),
            (ProfileSyntax::Markdown, String::new(), "it has no front matter"),
            (ProfileSyntax::Markdown, "# Title\n".to_owned(), "it has no front matter"),
            (ProfileSyntax::Markdown, "---\nname: a\n".to_owned(), "its front matter has no end"),
            (ProfileSyntax::Markdown, "---\na: &a\n  - *a\n---\n".to_owned(), "it has an alias"),
            (
                ProfileSyntax::Markdown,
                format!("---\n{}\n---\n", "a".repeat(17_000)),
                "its front matter has 17001 bytes",
            ),
            (
                ProfileSyntax::Markdown,
                "---\nname: [x]\n---\n".to_owned(),
                "'name' must be a string",
            ),
        ] {
            let checked = syntax.check_text(&text, Some("x"));
            assert!(checked.profile.is_none(), "{text:.40}");
            let [why] = checked.errors.as_slice() else { panic!("{text:.40}: {checked:?}") };
            assert!(why.starts_with(expected) && !why.contains('\n'), "{text:.40}: {why}");
        }
    }

    #[test]
    fn invalid_bytes_are_a_warning() {
        let checked = ProfileSyntax::Yaml.check_text("description: caf\u{fffd}\n", Some("x"));
        assert_eq!(checked.warnings, ["bytes that are not UTF-8 are read as �"]);
    }
}
