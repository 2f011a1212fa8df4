//! The rules of the Agent Skills format, as in its validator. A skill that breaks a rule is loaded
//! anyway, and the user gets a notice.

use front_matter::FrontMatter;
use jaato_plugin_sdk::serde_json::Value;

/// The maximum length of a name, in characters.
pub const NAME_CHARS_MAX: usize = 64;
/// The maximum length of a description, in characters.
pub const DESCRIPTION_CHARS_MAX: usize = 1024;
/// The maximum length of a compatibility note, in characters.
const COMPATIBILITY_CHARS_MAX: usize = 500;

/// Lists the violations that the format's validator would find in a skill in `folder`.
pub fn broken_rules(fields: &FrontMatter, folder: &str) -> Vec<String> {
    let mut broken = Vec::new();
    match fields.get("name") {
        Some(Value::String(name)) if !name.is_empty() => {
            broken.extend(broken_name_rules(name, folder))
        }
        _ => broken.push("it has no `name`".to_owned()),
    }
    match fields.get("description") {
        Some(Value::String(text)) if !text.is_empty() => {
            broken.extend(too_long_message("description", text, DESCRIPTION_CHARS_MAX));
        }
        _ => broken.push("it has no `description`".to_owned()),
    }
    match fields.get("compatibility") {
        None => {}
        Some(Value::String(text)) => {
            broken.extend(too_long_message("compatibility", text, COMPATIBILITY_CHARS_MAX));
        }
        Some(_) => broken.push("its `compatibility` is not a text".to_owned()),
    }
    let is_map_of_texts = |value: &Value| {
        value.as_object().is_some_and(|map| !map.values().any(|it| it.is_array() || it.is_object()))
    };
    if fields.get("metadata").is_some_and(|it| !is_map_of_texts(it)) {
        broken.push("its `metadata` is not a map of texts".to_owned());
    }
    broken
}

fn broken_name_rules(name: &str, folder: &str) -> Vec<String> {
    let mut broken: Vec<String> =
        too_long_message("name", name, NAME_CHARS_MAX).into_iter().collect();
    if name.chars().any(char::is_uppercase) {
        broken.push(format!("its name `{name}` has capital letters"));
    }
    if name.starts_with('-') || name.ends_with('-') || name.contains("--") {
        broken.push(format!("its name `{name}` has a `-` at an end, or two in a row"));
    }
    if !name.chars().all(|sign| sign.is_alphanumeric() || sign == '-') {
        broken.push(format!("its name `{name}` has characters other than letters, digits and `-`"));
    }
    if name != folder {
        broken.push(format!("its name `{name}` is not the name of its folder, `{folder}`"));
    }
    broken
}

fn too_long_message(key: &str, text: &str, max: usize) -> Option<String> {
    let count = text.chars().count();
    (count > max).then(|| format!("its `{key}` has {count} characters, the format allows {max}"))
}

#[cfg(test)]
mod tests {
    use front_matter::{ScalarTypes, parse_front_matter};

    use super::*;

    #[track_caller]
    fn check_broken_rules(front: &str, folder: &str, expected: &[&str]) {
        let broken = broken_rules(&parse_front_matter(front, ScalarTypes::Text).unwrap().0, folder);
        assert_eq!(broken.len(), expected.len(), "{broken:?}");
        for (broken, expected) in broken.iter().zip(expected) {
            assert!(broken.contains(expected), "{broken}");
        }
    }

    #[test]
    fn valid_skill_breaks_no_rule() {
        let whole = "name: pdf-2\ndescription: Reads PDF.\nlicense: MIT\ncompatibility: needs git\n\
                     metadata:\n  author: me\n  version: '1'\nallowed-tools: Bash(git:*) Read\n";
        check_broken_rules(whole, "pdf-2", &[]);
        // Other clients have their own keys, which the validator refuses, but which cause no
        // problem here.
        check_broken_rules("name: a\ndescription: b\ndisable-model-invocation: true\n", "a", &[]);
    }

    #[test]
    fn each_broken_skill_rule_is_reported() {
        check_broken_rules("description: b\n", "a", &["no `name`"]);
        check_broken_rules("name: ''\ndescription: b\n", "a", &["no `name`"]);
        check_broken_rules("name: a\n", "a", &["no `description`"]);
        check_broken_rules("name: a\ndescription:\n", "a", &["no `description`"]);
        check_broken_rules("name: Moon\ndescription: b\n", "Moon", &["capital"]);
        for name in ["-a", "a-", "a--b"] {
            check_broken_rules(&format!("name: {name}\ndescription: b\n"), name, &["two in a row"]);
        }
        check_broken_rules("name: a_b\ndescription: b\n", "a_b", &["characters other"]);
        check_broken_rules("name: a b\ndescription: b\n", "a b", &["characters other"]);
        check_broken_rules("name: a\ndescription: b\n", "c", &["not the name of its folder"]);
        check_broken_rules("name: a\ndescription: b\nmetadata: [x]\n", "a", &["`metadata`"]);
        check_broken_rules(
            "name: a\ndescription: b\nmetadata: {x: {y: z}}\n",
            "a",
            &["`metadata`"],
        );
        check_broken_rules(
            "name: a\ndescription: b\ncompatibility: [x]\n",
            "a",
            &["`compatibility`"],
        );
    }

    #[test]
    fn skill_field_lengths_are_checked_at_their_limits() {
        let name = |count: usize| "a".repeat(count);
        let of = |name: &str, description: usize, compatibility: usize| {
            format!(
                "name: {name}\ndescription: {}\ncompatibility: {}\n",
                "d".repeat(description),
                "c".repeat(compatibility)
            )
        };
        check_broken_rules(&of(&name(64), 1024, 500), &name(64), &[]);
        check_broken_rules(&of(&name(65), 1024, 500), &name(65), &["65 characters"]);
        check_broken_rules(&of("a", 1025, 500), "a", &["1025 characters"]);
        check_broken_rules(&of("a", 1, 501), "a", &["501 characters"]);
    }
}
