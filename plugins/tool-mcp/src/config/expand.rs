//! Expands variables in the texts of an entry: `${NAME}` and `${NAME:-default}`.
//!
//! The rules are those of Claude Code: `$NAME` is not a variable, and defaults are not expanded
//! themselves. An unset variable without a default stays as written and is reported.

use jaato_plugin_sdk::types::mcp_entry::VariableReference;

/// Looks up the value of a variable.
pub type VariableLookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The maximum length of an expanded text, because a variable may hold any amount of text.
pub const EXPANDED_BYTES_MAX: usize = 64 * 1024;

/// The result of an expansion.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ExpandedText {
    /// The expanded text.
    pub text: String,
    /// Variables that are unset and have no default.
    pub unset: Vec<String>,
    /// The texts that replaced variables.
    pub values: Vec<String>,
}

/// Expands the variables of a text.
pub fn expand_variables(text: &str, lookup: VariableLookup<'_>) -> ExpandedText {
    let mut expanded = ExpandedText::default();
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let (before, from) = rest.split_at(at);
        expanded.text.push_str(before);
        let Some(VariableReference { whole, name, default }) =
            VariableReference::parse_prefix(from)
        else {
            expanded.text.push_str("${");
            rest = &from[2..];
            continue;
        };
        match lookup(name).or_else(|| default.map(str::to_owned)) {
            Some(value) => {
                expanded.text.push_str(&value);
                expanded.values.push(value);
            }
            None => {
                expanded.text.push_str(whole);
                expanded.unset.push(name.to_owned());
            }
        }
        rest = &from[whole.len()..];
        if expanded.text.len() > EXPANDED_BYTES_MAX {
            break;
        }
    }
    expanded.text.push_str(rest);
    let end = expanded.text.floor_char_boundary(EXPANDED_BYTES_MAX);
    expanded.text.truncate(end);
    expanded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_expansion(text: &str, expected: &str, unset: &[&str]) {
        let lookup = |name: &str| match name {
            "MOON" => Some("full".to_owned()),
            "NESTED" => Some("${MOON}".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        };
        let expanded = expand_variables(text, &lookup);
        assert_eq!(
            (expanded.text.as_str(), expanded.unset),
            (expected, unset.iter().map(|&it| it.to_owned()).collect())
        );
    }

    #[test]
    fn variables_and_defaults_are_expanded() {
        check_expansion("${MOON}", "full", &[]);
        check_expansion("a ${MOON} b ${SUN:-dark} c", "a full b dark c", &[]);
        check_expansion("${EMPTY:-x}|${SUN:-}", "|", &[]);
        check_expansion("${SUN:-a:-b}", "a:-b", &[]);
    }

    #[test]
    fn expanded_values_are_reported() {
        let lookup = |name: &str| (name == "MOON").then(|| "full".to_owned());
        assert_eq!(
            expand_variables("a ${MOON} ${SUN:-dark} ${STAR}", &lookup).values,
            ["full", "dark"]
        );
    }

    #[test]
    fn unset_variable_stays_as_written_and_is_reported() {
        check_expansion("x${SUN}y", "x${SUN}y", &["SUN"]);
    }

    #[test]
    fn invalid_references_stay_as_written() {
        for text in ["$MOON", "${", "${}", "${1A}", "${MO ON}", "$${", "${MOON", "100 $"] {
            check_expansion(text, text, &[]);
        }
        check_expansion("${${MOON}}", "${full}", &[]);
        check_expansion("${NESTED}", "${MOON}", &[]);
    }

    #[test]
    fn expanded_text_is_limited_in_size() {
        let lookup = |_: &str| Some("x".repeat(EXPANDED_BYTES_MAX));
        assert_eq!(expand_variables(&"${A}".repeat(10), &lookup).text.len(), EXPANDED_BYTES_MAX);
    }
}
