//! Tests that the archive contains the API documentation of the crates for authors.

use std::fs;
use std::path::{Path, PathBuf};

use super::installed::installed_archive;

const CRATES: [&str; 6] = [
    "jaato_plugin_sdk",
    "jaato_plugin_sdk_environment",
    "jaato_plugin_sdk_gc",
    "jaato_plugin_sdk_provider",
    "jaato_plugin_testkit",
    "jaato_types",
];

/// Returns the targets of a page's links inside the archive. Ignores links that a script builds.
fn page_links(page: &Path) -> Vec<PathBuf> {
    let text = fs::read_to_string(page).unwrap();
    let targets = text.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next());
    let own = targets.filter(|target| !["://", "${"].iter().any(|part| target.contains(part)));
    let own = own.filter(|target| !target.starts_with('#'));
    let files = own.map(|target| target.split(['#', '?']).next().unwrap_or_default());
    files.map(|target| page.parent().unwrap().join(target)).collect()
}

#[track_caller]
fn check_links(page: &Path, least: usize) {
    let links = page_links(page);
    assert!(links.len() >= least, "{}: {links:?}", page.display());
    for link in links {
        assert!(link.exists(), "`{}` leads to `{}`", page.display(), link.display());
    }
}

#[test]
fn every_author_crate_is_documented_and_front_page_links_work() {
    let Some(installed) = installed_archive() else { return };
    let doc = installed.top.join("doc");
    check_links(&doc.join("index.html"), CRATES.len() + 2);
    for name in CRATES {
        check_links(&doc.join(name).join("index.html"), 3);
    }
    let folders = fs::read_dir(&doc).unwrap().map(|entry| entry.unwrap().path());
    let documented = folders.filter(|folder| folder.join("all.html").is_file());
    let mut names: Vec<_> =
        documented.map(|folder| folder.file_name().unwrap().to_owned()).collect();
    names.sort();
    assert_eq!(names, CRATES, "nothing of the house is among them");
    let methods = fs::read_to_string(doc.join("jaato_plugin_sdk/struct.Reporter.html")).unwrap();
    assert!(methods.contains("keep_output"), "methods are documented");
}
