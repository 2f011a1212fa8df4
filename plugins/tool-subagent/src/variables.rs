//! Replaces `${NAME}` in a text. Pure.

use jaato_plugin_sdk::types::mcp_entry::VariableReference;

/// Replaces the references whose names have a value. Others stay as written.
pub fn expand_variables(text: &str, value: impl Fn(&str) -> Option<String>) -> String {
    let (mut expanded, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find("${") {
        let (before, from) = rest.split_at(at);
        expanded.push_str(before);
        let reference = VariableReference::parse_prefix(from);
        let whole = reference.as_ref().map_or("${", |it| it.whole);
        let value =
            reference.as_ref().filter(|it| it.default.is_none()).and_then(|it| value(it.name));
        expanded.push_str(value.as_deref().unwrap_or(whole));
        rest = &from[whole.len()..];
    }
    expanded + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_names_are_replaced_and_others_stay() {
        let value = |name: &str| (name == "cwd").then(|| "/w".to_owned());
        for (text, expected) in [
            ("${cwd}/a ${cwd}", "/w/a /w"),
            ("${PATH} $cwd ${cwd:-x} ${ ${}", "${PATH} $cwd ${cwd:-x} ${ ${}"),
            ("${${cwd}}", "${/w}"),
            ("", ""),
        ] {
            assert_eq!(expand_variables(text, value), expected);
        }
    }
}
