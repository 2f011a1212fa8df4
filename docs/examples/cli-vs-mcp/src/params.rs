//! The values for `{{KEY}}` in templates: those of the command line, and the domain's defaults.

use std::collections::BTreeMap;
use std::path::Path;

use jaato_library::Result;
use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::domain::BenchDomain;
use crate::{Arguments, usage_error};

/// The largest file with a page's body, because it becomes a part of a prompt.
const BODY_BYTES_MAX: u64 = 1024 * 1024;

/// Returns the values of all keys. Given values override built-in ones.
///
/// # Errors
/// Parameters that are not a JSON object, or a file that cannot be read.
pub fn parameter_values(
    domain: &BenchDomain,
    args: &Arguments,
    now: Timestamp,
) -> Result<BTreeMap<String, String>> {
    let given: Map<String, Value> = serde_json::from_str(&args.domain_params)
        .map_err(|error| usage_error(format!("`--domain-params` is not a JSON object: {error}")))?;
    let mut values: BTreeMap<String, String> =
        domain.defaults.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect();
    values.insert("NOW_UTC".to_owned(), now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
    values.insert("CLI".to_owned(), cli_program(domain, args.cli_path.as_deref()));
    if let Ok(here) = std::env::current_dir() {
        values.insert("REPO_PATH".to_owned(), here.display().to_string());
    }
    if let Some(page) = &args.page_id {
        values.insert("PAGE_ID".to_owned(), page.clone());
    }
    for (key, value) in given {
        values.insert(
            key.to_uppercase(),
            match value {
                Value::String(text) => text,
                other => other.to_string(),
            },
        );
    }
    if let Some(path) = values.remove("CURRENT_BODY_FILE") {
        values.insert("CURRENT_BODY".to_owned(), read_body(Path::new(&path)).map_err(usage_error)?);
    }
    if let (None, Some(page)) = (values.get("PARENT_PAGE_ID"), values.get("PAGE_ID")) {
        values.insert("PARENT_PAGE_ID".to_owned(), page.clone());
    }
    Ok(values)
}

/// Returns the command of the CLI side's program.
fn cli_program(domain: &BenchDomain, path: Option<&Path>) -> String {
    match path {
        None => domain.program.to_owned(),
        Some(path) if path.is_dir() => path.join(domain.program).display().to_string(),
        Some(path) => path.display().to_string(),
    }
}

fn read_body(path: &Path) -> Result<String, String> {
    let shown = path.display();
    let facts = path.metadata().map_err(|error| format!("cannot read `{shown}`: {error}"))?;
    if facts.len() > BODY_BYTES_MAX {
        return Err(format!("`{shown}` has more than {BODY_BYTES_MAX} bytes"));
    }
    std::fs::read_to_string(path).map_err(|error| format!("cannot read `{shown}`: {error}"))
}

/// Fills a template. Values are inserted unchanged: a key inside a value is text.
///
/// # Errors
/// The keys that have no value.
pub fn fill_template(template: &str, values: &BTreeMap<String, String>) -> Result<String> {
    let mut filled = String::new();
    let mut missing: Vec<&str> = Vec::new();
    let mut rest = template;
    while let Some((before, from)) = rest.split_once("{{") {
        filled.push_str(before);
        let Some((key, after)) = from.split_once("}}") else {
            filled.push_str("{{");
            rest = from;
            continue;
        };
        match values.get(key.trim()) {
            Some(value) => filled.push_str(value),
            None => missing.push(key.trim()),
        }
        rest = after;
    }
    filled.push_str(rest);
    if missing.is_empty() {
        return Ok(filled.trim_end().to_owned());
    }
    missing.dedup();
    let keys = missing.iter().map(|key| format!("\"{key}\": \"…\"")).collect::<Vec<_>>();
    let text = format!("the template needs a value for {}", missing.join(", "));
    let page = if missing.contains(&"PAGE_ID") { "--page-id ID, or " } else { "" };
    let hint = format!("{page}--domain-params '{{{}}}'", keys.join(", "));
    Err(usage_error(text).with_hint(hint))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn template_placeholders_are_filled_and_missing_values_are_named() {
        let values = [("A", "{{B}}"), ("B", "b")].map(|(k, v)| (k.to_owned(), v.to_owned()));
        let values = BTreeMap::from(values);
        assert_eq!(fill_template("x {{A}} {{ B }} {{ y\n", &values).unwrap(), "x {{B}} b {{ y");
        let failure = fill_template("{{C}} {{PAGE_ID}}", &values).unwrap_err();
        assert_eq!(failure.message, "the template needs a value for C, PAGE_ID");
        assert_eq!(
            failure.hint.as_deref(),
            Some("--page-id ID, or --domain-params '{\"C\": \"…\", \"PAGE_ID\": \"…\"}'")
        );
    }
}
