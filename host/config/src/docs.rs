//! Generates the table of keys in `docs/configuration.md` from the table in the code.

use crate::keys::{KEYS, KeyInfo, KeyOwner, LayerMerge};

/// Returns the known keys as a Markdown table.
pub fn keys_as_markdown() -> String {
    let mut table = String::from(
        "| key | takes | built-in | variable | option | a trusted workspace | what it does |\n|---|---|---|---|---|---|---|\n",
    );
    for key in KEYS {
        table.push_str(&format_key_row(key));
    }
    table
}

fn format_key_row(key: &KeyInfo) -> String {
    let variables: Vec<_> = key.variables.iter().map(|name| format!("`{name}`")).collect();
    let option = key.option.map(|option| format!("`{option}`")).unwrap_or_default();
    let adds = match key.merge {
        LayerMerge::Replace => "",
        LayerMerge::Add => " Layers add up.",
    };
    let workspace = match key.owner {
        KeyOwner::Anyone => "may set it".to_owned(),
        KeyOwner::User => "may not".to_owned(),
        KeyOwner::UserFirst => "may set it if your own file does not".to_owned(),
        KeyOwner::Only(value) => format!("may set `{value}`"),
        KeyOwner::Inside => "may set a file inside it".to_owned(),
    };
    format!(
        "| `{}` | {} | `{}` | {} | {option} | {workspace} | {}{adds} |\n",
        key.path,
        key.value_description(),
        (key.default)(),
        variables.join(", "),
        key.doc.trim(),
    )
}
