//! Every decision record is found from the index.

use super::{Finding, TextFile};

const FOLDER: &str = "docs/decisions/";
const INDEX: &str = "docs/decisions/README.md";

/// Finds records that the index does not name.
pub fn check(files: &[TextFile]) -> Vec<Finding> {
    let index = files.iter().find(|file| file.path == INDEX).map_or("", |file| &file.text);
    let records = files.iter().filter_map(|file| file.path.strip_prefix(FOLDER));
    records
        .filter(|name| name.ends_with(".md") && *name != "README.md")
        .filter(|name| !index.contains(&format!("]({name})")))
        .map(|name| {
            let what = format!("`{INDEX}` does not list it");
            Finding::error(format!("{FOLDER}{name}"), 0, what, format!("add `[…]({name})` there"))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tests::{file, lines};

    #[test]
    fn a_record_that_nobody_finds_is_a_finding() {
        let index = file(INDEX, "- [One](0001-one.md)\n- 0002-two.md is to be written\n");
        let records = ["0001-one.md", "0002-two.md"].map(|n| file(&format!("{FOLDER}{n}"), "#"));
        let found = lines(&check(&[&[index], &records[..]].concat()));
        assert_eq!(
            found,
            ["docs/decisions/0002-two.md: `docs/decisions/README.md` does not list it, \
              add `[…](0002-two.md)` there"]
        );
        assert_eq!(check(&records).len(), 2, "without an index none is listed");
    }
}
