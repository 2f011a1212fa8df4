//! What tools are called: the vendor wants a letter or `_` first. Pure.

use std::borrow::Cow;

use jaato_plugin_sdk::types::ToolSpec;

/// Writes a tool's name. One that the vendor takes stays as it is, and so do nearly all: a host's
/// names have letters, digits, `_` and `-`.
pub(crate) fn written(name: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_.:-".contains(c);
    let begins_well = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if begins_well && name.chars().all(is_plain) {
        return Cow::Borrowed(name);
    }
    let mark = if begins_well { "" } else { "_" };
    let rest = name.chars().map(|c| if is_plain(c) { c } else { '_' });
    Cow::Owned(mark.chars().chain(rest).collect())
}

/// Lists the tools whose names are written differently: as written, and as they are.
pub(crate) fn changed(tools: &[ToolSpec]) -> Vec<(String, String)> {
    let names = tools.iter().map(|tool| tool.name.as_str());
    names
        .filter_map(|name| match written(name) {
            Cow::Owned(written) => Some((written, name.to_owned())),
            Cow::Borrowed(_) => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_begin_as_the_vendor_wants_and_are_found_again() {
        for (name, expected) in [
            ("look", "look"),
            ("_a-b.c:d", "_a-b.c:d"),
            ("7up", "_7up"),
            ("-a", "_-a"),
            ("a b", "a_b"),
            ("", "_"),
        ] {
            assert_eq!(written(name), expected, "{name}");
        }
        let tool = |name: &str| ToolSpec { name: name.into(), ..ToolSpec::default() };
        let expected = vec![("_7up".to_owned(), "7up".to_owned())];
        assert_eq!(changed(&[tool("look"), tool("7up")]), expected);
    }
}
