//! The page for authors who write C shows each service and operation, with the committed JSON.

use jaato_types::hooks::Hook;

const PAGE: &str = include_str!("../../../docs/authors/c.md");
const SHAPES: &str = include_str!("shapes.txt");

/// Words in the snapshot that are neither services nor operations.
const NO_OPERATION: [&str; 6] =
    [".mcp.json", "_REF_ID", "false", "limits", "stream", "tools_changed"];

/// Returns the names of services and operations in the snapshot: lines that begin with a lower-case
/// word.
fn snapshot_operations() -> Vec<&'static str> {
    let is_names = |line: &&str| line.starts_with(|c: char| c.is_ascii_lowercase());
    let names = SHAPES.lines().filter(is_names).flat_map(|line| line.split(' '));
    names.filter(|name| !NO_OPERATION.contains(name)).collect()
}

/// Returns the JSON blocks of the page, each with the paragraph before it.
fn json_blocks() -> Vec<(&'static str, &'static str)> {
    let parts: Vec<&str> = PAGE.split("```json\n").collect();
    let block = |pair: &[&'static str]| {
        let paragraph = pair[0].trim_end().rsplit("\n\n").next().unwrap_or_default();
        (paragraph, pair[1].split("```").next().unwrap_or_default())
    };
    parts.windows(2).map(block).collect()
}

#[test]
fn json_blocks_of_the_c_page_match_the_committed_shapes() {
    let mut count = 0;
    for (paragraph, block) in json_blocks() {
        for json in block.lines() {
            let is_it = |line: &str| {
                let (name, shape) = line.split_once(' ').unwrap_or_default();
                shape == json && paragraph.contains(&format!("`{name}`"))
            };
            assert!(SHAPES.lines().any(is_it), "{paragraph}\n{json}");
            count += 1;
        }
    }
    assert!(count > 100, "{count}");
}

#[test]
fn the_page_has_each_service_and_operation() {
    let headings: Vec<&str> = PAGE.lines().filter(|line| line.starts_with("### ")).collect();
    let operations = snapshot_operations();
    assert!(operations.len() > 90, "{operations:?}");
    let hooks = Hook::ALL.iter().map(|hook| hook.name());
    for name in operations.into_iter().chain(hooks) {
        let heading = format!("`{name}`");
        assert!(headings.iter().any(|line| line.contains(&heading)), "`{name}` is not there");
    }
}
