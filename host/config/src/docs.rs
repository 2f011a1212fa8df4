//! Generates the table of keys in `docs/configuration.md` from the table in the code.

use crate::keys::{KEYS, KeyInfo, Merge, Owner};

/// Returns the known keys as a Markdown table.
pub fn keys_as_markdown() -> String {
    let mut table = String::from(
        "| key | takes | built-in | variable | option | a trusted workspace | what it does |\n|---|---|---|---|---|---|---|\n",
    );
    for key in KEYS {
        table.push_str(&row(key));
    }
    table
}

fn row(key: &KeyInfo) -> String {
    let variables: Vec<_> = key.variables.iter().map(|name| format!("`{name}`")).collect();
    let option = key.option.map(|option| format!("`{option}`")).unwrap_or_default();
    let adds = match key.merge {
        Merge::Replace => "",
        Merge::Add => " Layers add up.",
    };
    let workspace = match key.owner {
        Owner::Anyone => "may set it".to_owned(),
        Owner::User => "may not".to_owned(),
        Owner::UserFirst => "may set it if your own file does not".to_owned(),
        Owner::Only(value) => format!("may set `{value}`"),
        Owner::Inside => "may set a file inside it".to_owned(),
    };
    format!(
        "| `{}` | {} | `{}` | {} | {option} | {workspace} | {}{adds} |\n",
        key.path,
        key.wants(),
        (key.default)(),
        variables.join(", "),
        key.doc.trim(),
    )
}
