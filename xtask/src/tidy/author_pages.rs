//! The pages of the authors' guide: each is in the index, and the index names nothing else.

use std::collections::BTreeSet;

use super::{Finding, TextFile};

/// Their folder.
const PAGES: &str = "docs/authors/";

/// What lists them.
const INDEX: &str = "docs/authors/README.md";

/// Where authors begin.
const GUIDE: &str = "docs/plugin-authors.md";

/// Finds pages that nobody comes to, and entries of the index that lead nowhere.
pub fn check(files: &[TextFile]) -> Vec<Finding> {
    let find = |path: &str| files.iter().find(|file| file.path == path);
    let inside = files.iter().filter_map(|file| file.path.strip_prefix(PAGES));
    let pages: BTreeSet<&str> =
        inside.filter(|name| name.ends_with(".md") && *name != "README.md").collect();
    let Some(index) = find(INDEX) else {
        let first = pages.first().map(|page| format!("{PAGES}{page}"));
        let missing = |page| Finding::error(page, 0, "nothing lists it", "write the index");
        return first.map(missing).into_iter().collect();
    };
    let mut findings = Vec::new();
    let named: BTreeSet<&str> = links(&index.text).collect();
    for page in pages.difference(&named) {
        let remedy = format!("add `[…]({page})` to `{INDEX}`");
        findings.push(Finding::error(format!("{PAGES}{page}"), 0, "nothing lists it", remedy));
    }
    for page in named.difference(&pages) {
        let what = format!("it lists `{page}`, which is not there");
        findings.push(Finding::error(INDEX, 0, what, "take it out"));
    }
    if let Some(guide) = find(GUIDE).filter(|guide| !guide.text.contains("authors/README.md")) {
        let what = "it does not lead to the pages";
        findings.push(Finding::error(&guide.path, 0, what, "name `authors/README.md` there"));
    }
    findings
}

/// The files of its own folder to which a document leads.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    targets.filter(|target| target.ends_with(".md") && !target.contains('/'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tests::{file, lines};

    #[track_caller]
    fn check_index(index: &str, expected: &[&str]) {
        let files = [
            file(GUIDE, "[pages](authors/README.md)"),
            file(INDEX, index),
            file("docs/authors/store.md", ""),
            file("docs/authors/ask.md", ""),
        ];
        assert_eq!(lines(&check(&files)), expected);
    }

    #[test]
    fn every_page_is_in_the_index_and_nothing_else_is() {
        check_index("[a](ask.md) [b](store.md) [c](../abi.md) [d](https://a.example/b.md)", &[]);
        check_index(
            "[a](ask.md)",
            &["docs/authors/store.md: nothing lists it, \
               add `[…](store.md)` to `docs/authors/README.md`"],
        );
        check_index(
            "[a](ask.md) [b](store.md) [c](gone.md)",
            &["docs/authors/README.md: it lists `gone.md`, which is not there, take it out"],
        );
    }

    #[test]
    fn pages_without_an_index_and_a_guide_without_the_pages_are_found() {
        let page = file("docs/authors/ask.md", "");
        assert_eq!(check(std::slice::from_ref(&page)).len(), 1);
        let files = [page, file(INDEX, "[a](ask.md)"), file(GUIDE, "nothing")];
        assert_eq!(
            lines(&check(&files)),
            ["docs/plugin-authors.md: it does not lead to the pages, \
              name `authors/README.md` there"]
        );
        assert_eq!(check(&[]), []);
    }
}
