//! The table of keys in `docs/configuration.md`, made from the table of keys in the code.

use crate::keys::{KEYS, KeyInfo, Merge, Owner};

/// The known keys as a Markdown table.
pub fn keys_as_markdown() -> String {
    let mut table = String::from(
        "| key | takes | built-in | variable | option | what it does |\n|---|---|---|---|---|---|\n",
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
    let owner = match key.owner {
        Owner::Anyone => "",
        Owner::User => " No workspace may say it.",
    };
    format!(
        "| `{}` | {} | `{}` | {} | {option} | {}{adds}{owner} |\n",
        key.path,
        key.wants(),
        (key.default)(),
        variables.join(", "),
        key.doc.trim(),
    )
}
