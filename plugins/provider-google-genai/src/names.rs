//! Adapts tool names. The vendor requires a letter or `_` at the start. Pure.

use std::borrow::Cow;

use jaato_plugin_sdk::types::ToolSpec;

/// Writes a tool's name. A valid name stays as it is. Nearly all are valid, because a host's names
/// contain only letters, digits, `_` and `-`.
pub(crate) fn format_name(name: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_.:-".contains(c);
    let begins_well = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if begins_well && name.chars().all(is_plain) {
        return Cow::Borrowed(name);
    }
    let mark = if begins_well { "" } else { "_" };
    let rest = name.chars().map(|c| if is_plain(c) { c } else { '_' });
    Cow::Owned(mark.chars().chain(rest).collect())
}

/// The module in which Gemini models were shown functions. They sometimes prefix a name with it.
const MODULE: &str = "default_api";

/// The names of a request's tools.
#[derive(Debug)]
pub(crate) struct GoogleToolNames {
    /// Written names with the original names.
    names: Vec<(String, String)>,
}

impl GoogleToolNames {
    /// Reads the tools of a request.
    pub(crate) fn from_tools(tools: &[ToolSpec]) -> Self {
        let names = tools.iter().map(|tool| tool.name.as_str());
        let both = names.map(|name| (format_name(name).into_owned(), name.to_owned()));
        Self { names: both.collect() }
    }

    /// Returns the name of the tool that a model means. An unknown name is returned unchanged.
    pub(crate) fn original_name<'a>(&'a self, called: &'a str) -> &'a str {
        let find = |called: &str| self.names.iter().find(|(written, _)| written == called);
        let inside = || find(called.strip_prefix(MODULE)?.strip_prefix(['.', ':'])?);
        find(called).or_else(inside).map_or(called, |(_, own)| own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_tool_names_are_rewritten_and_mapped_back() {
        for (name, expected) in [
            ("look", "look"),
            ("_a-b.c:d", "_a-b.c:d"),
            ("7up", "_7up"),
            ("-a", "_-a"),
            ("a b", "a_b"),
            ("", "_"),
        ] {
            assert_eq!(format_name(name), expected, "{name}");
        }
        let tool = |name: &str| ToolSpec { name: name.into(), ..ToolSpec::default() };
        let names =
            GoogleToolNames::from_tools(&[tool("look"), tool("7up"), tool("default_api.own")]);
        for (called, expected) in [
            ("look", "look"),
            ("_7up", "7up"),
            ("default_api.look", "look"),
            ("default_api:_7up", "7up"),
            ("default_api.own", "default_api.own"),
            ("default_api.moon", "default_api.moon"),
            ("default_apilook", "default_apilook"),
            ("moon", "moon"),
        ] {
            assert_eq!(names.original_name(called), expected);
        }
    }
}
