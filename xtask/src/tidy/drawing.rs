//! The drawing of crates in `docs/architecture.md` is what cargo says.
//!
//! An arrow says that a crate stands on another. One that a longer way of arrows already tells is
//! left out, so that the drawing can be read; plugins are drawn as one box.

use std::collections::{BTreeMap, BTreeSet};

use super::{Finding, TextFile};
use crate::workspace::{DependencyKind, Package};

const FILE: &str = "docs/architecture.md";

/// How the drawing begins; it ends with the block.
const BEGIN: &str = "```mermaid";

/// The box of all plugins.
const PLUGINS: &str = "plugins";

/// Finds arrows that are missing in the drawing, and arrows that are not there.
pub fn check(packages: &[Package], files: &[TextFile]) -> Vec<Finding> {
    let Some(file) = files.iter().find(|file| file.path == FILE) else { return Vec::new() };
    let drawn = drawn(&file.text);
    let real = reduced(&edges(packages));
    let missing = real.difference(&drawn).map(|edge| (edge, "is missing in", "add it"));
    let extra = drawn.difference(&real).map(|edge| (edge, "is only in", "take it out"));
    missing
        .chain(extra)
        .map(|((from, to), fault, remedy)| {
            let what = format!("the arrow `{from} --> {to}` {fault} the drawing");
            Finding::error(FILE, 0, what, remedy)
        })
        .collect()
}

type Edges = BTreeSet<(String, String)>;

fn drawn(text: &str) -> Edges {
    let lines = text.lines().skip_while(|line| *line != BEGIN).skip(1);
    lines
        .take_while(|line| !line.starts_with("```"))
        .filter_map(|line| line.split_once("-->"))
        .map(|(from, to)| (from.trim().to_owned(), to.trim().to_owned()))
        .collect()
}

fn edges(packages: &[Package]) -> Edges {
    let box_of = |package: &Package| {
        if package.folder.starts_with("plugins/") {
            PLUGINS.to_owned()
        } else {
            package.name.clone()
        }
    };
    let mut edges = Edges::new();
    for package in packages {
        let normal = package.dependencies.iter().filter(|d| d.kind == DependencyKind::Normal);
        let ours = normal.filter_map(|d| packages.iter().find(|other| other.name == d.name));
        edges.extend(ours.map(|other| (box_of(package), box_of(other))));
    }
    edges
}

/// The arrows without those that a longer way tells.
fn reduced(edges: &Edges) -> Edges {
    let mut next: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (from, to) in edges {
        next.entry(from).or_default().insert(to);
    }
    let longer_way = |from: &str, to: &str| {
        let mut open: Vec<&str> = next[from].iter().copied().filter(|step| *step != to).collect();
        let mut seen = BTreeSet::new();
        while let Some(at) = open.pop() {
            if at == to {
                return true;
            }
            if seen.insert(at) {
                open.extend(next.get(at).into_iter().flatten());
            }
        }
        false
    };
    edges.iter().filter(|(from, to)| !longer_way(from, to)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tests::{file, lines};
    use crate::workspace::Dependency;

    fn package(name: &str, folder: &str, uses: &[&str]) -> Package {
        let normal =
            |name: &&str| Dependency { name: (*name).into(), kind: DependencyKind::Normal };
        Package {
            name: name.into(),
            folder: folder.into(),
            dependencies: uses.iter().map(normal).collect(),
            ..Package::default()
        }
    }

    #[track_caller]
    fn check_drawing(arrows: &[&str], expected: &[&str]) {
        let packages = [
            package("types", "plugin-api/types", &["serde"]),
            package("sdk", "plugin-api/sdk", &["types"]),
            package("host", "host", &["sdk", "types"]),
            package("tool-a", "plugins/tool-a", &["sdk"]),
            package("tool-b", "plugins/tool-b", &["sdk"]),
        ];
        let text = format!("# A\n\n{BEGIN}\ngraph LR\n{}\n```\nx --> y\n", arrows.join("\n"));
        assert_eq!(lines(&check(&packages, &[file(FILE, &text)])), expected);
    }

    #[test]
    fn what_a_longer_way_tells_is_not_drawn_and_plugins_are_one_box() {
        check_drawing(&["  host --> sdk", "  sdk --> types", "  plugins --> sdk"], &[]);
    }

    #[test]
    fn arrows_too_few_and_too_many_are_found() {
        check_drawing(
            &["  host --> sdk", "  sdk --> types", "  host --> types"],
            &[
                "docs/architecture.md: the arrow `plugins --> sdk` is missing in the drawing, add it",
                "docs/architecture.md: the arrow `host --> types` is only in the drawing, take it out",
            ],
        );
    }
}
