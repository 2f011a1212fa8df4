//! The API documentation of the crates for authors, as pages for a browser.
//!
//! It is built in a separate folder, so that it contains no pages of internal crates, and crate by
//! crate, so that the same sources produce the same pages. Dependencies are checked in the folder
//! of the normal build, so this is fast after `cargo xtask test`.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::child;
use crate::gather::place_file;
use crate::workspace::CargoWorkspace;

/// The crates that authors use, with their purpose.
const CRATES: &[(&str, &str)] = &[
    ("jaato-plugin-sdk", "what every plugin uses"),
    ("jaato-types", "what the fields of descriptions, requests, answers and events mean"),
    ("jaato-plugin-sdk-provider", "what providers share"),
    ("jaato-plugin-sdk-gc", "what gcs share"),
    ("jaato-plugin-sdk-environment", "what execution environments are made of"),
    ("jaato-plugin-testkit", "a host in memory and the conformance suites, for tests"),
];

/// The subfolder of the target folder for the pages.
const TARGET: &str = "dist-doc";

/// The path of the sdk's documents, relative to the front page.
const GUIDE: &str = "../share/jaato/sdk/docs";

/// Writes the pages into a folder. Does nothing if the workspace contains none of the crates.
pub fn lay_out_docs(workspace: &CargoWorkspace, folder: &Path) -> Result<()> {
    let is_there = |name: &str| workspace.packages.iter().any(|package| package.name == name);
    let crates: Vec<_> = CRATES.iter().filter(|(name, _)| is_there(name)).copied().collect();
    if crates.is_empty() {
        return Ok(());
    }
    let target = workspace.target.join(TARGET);
    for (words, jobs) in [(&["check"][..], None), (&["doc", "--no-deps"], Some("1"))] {
        let mut cargo = child::cargo_command(&workspace.root);
        cargo.args(words).args(["--locked", "--quiet", "--target-dir"]).arg(&target);
        cargo.args(crates.iter().flat_map(|(name, _)| ["-p", name]));
        cargo.args(jobs.iter().flat_map(|count| ["--jobs", count]));
        cargo.env("CARGO_BUILD_BUILD_DIR", &workspace.target);
        // A broken link is an error.
        child::run_command(cargo.env("RUSTDOCFLAGS", "-D rustdoc::broken_intra_doc_links"))?;
    }
    copy_docs(&target.join("doc"), folder)?;
    let front = folder.join("index.html");
    fs::write(&front, front_page_html(&crates))
        .with_context(|| format!("writing `{}`", front.display()))?;
    for (name, _) in crates {
        let index = folder.join(name.replace('-', "_")).join("index.html");
        if !index.is_file() {
            bail!("`{}` is missing: cargo has documented no `{name}`", index.display());
        }
    }
    Ok(())
}

fn front_page_html(crates: &[(&str, &str)]) -> String {
    let row = |(name, about): &(&str, &str)| {
        let folder = name.replace('-', "_");
        format!("<li><a href=\"{folder}/index.html\">{folder}</a>: {about}</li>\n")
    };
    let rows: String = crates.iter().map(row).collect();
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\"><title>jaato for authors</title></head>\n\
         <body>\n<h1>jaato for authors of plugins</h1>\n\
         <p>Begin with the <a href=\"{GUIDE}/plugin-authors.md\">guide</a> and its \
         <a href=\"{GUIDE}/authors/README.md\">pages</a>. The crates:</p>\n<ul>\n{rows}</ul>\n</body>\n</html>\n"
    )
}

/// Copies cargo's output without its lock file.
fn copy_docs(from: &Path, to: &Path) -> Result<()> {
    let describe = || format!("reading `{}`", from.display());
    fs::create_dir_all(to).with_context(|| format!("making `{}`", to.display()))?;
    for entry in fs::read_dir(from).with_context(describe)? {
        let entry = entry.with_context(describe)?;
        let (path, place) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            copy_docs(&path, &place)?;
        } else if entry.file_name() != ".lock" {
            place_file(&path, &place)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_front_page_leads_to_each_crate_and_to_the_guide() {
        let page = front_page_html(&[("jaato-plugin-sdk", "what every plugin uses")]);
        for link in ["jaato_plugin_sdk/index.html", "plugin-authors.md", "authors/README.md"] {
            assert!(page.contains(&format!("{link}\"")), "{page}");
        }
    }
}
