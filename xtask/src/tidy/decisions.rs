//! Every decision record is found from the index, and their numbers have neither gaps nor twins.

use super::{Finding, TextFile};

const FOLDER: &str = "docs/decisions/";
const INDEX: &str = "docs/decisions/README.md";

/// Finds records that the index does not name, and numbers that are missing or taken twice.
pub fn check(files: &[TextFile]) -> Vec<Finding> {
    let mut findings = not_listed(files);
    findings.extend(numbers(files));
    findings
}

fn numbers(files: &[TextFile]) -> Vec<Finding> {
    let mut names: Vec<&str> = files.iter().filter_map(|f| f.path.strip_prefix(FOLDER)).collect();
    names.retain(|name| *name != "README.md");
    names.sort_unstable();
    let mut findings = Vec::new();
    for (at, name) in names.iter().enumerate() {
        let expected = format!("{:04}", at + 1);
        if name.split('-').next() != Some(expected.as_str()) {
            let what = format!("a record numbered {expected} should stand here");
            let remedy = "number the records from 1 without gaps";
            findings.push(Finding::error(format!("{FOLDER}{name}"), 0, what, remedy));
            // Everything behind it is off by the same.
            break;
        }
    }
    findings
}

fn not_listed(files: &[TextFile]) -> Vec<Finding> {
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

    #[test]
    fn a_gap_and_a_twin_are_found() {
        let found = |names: &[&str]| {
            let records: Vec<_> =
                names.iter().map(|n| file(&format!("{FOLDER}{n}"), "#")).collect();
            lines(&numbers(&records))
        };
        assert_eq!(found(&["0002-b.md", "0001-a.md"]), Vec::<String>::new());
        assert_eq!(
            found(&["0001-a.md", "0003-c.md", "0004-d.md"]),
            ["docs/decisions/0003-c.md: a record numbered 0002 should stand here, \
              number the records from 1 without gaps"]
        );
        assert_eq!(found(&["0001-a.md", "0001-b.md"]).len(), 1);
    }
}
