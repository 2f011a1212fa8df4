//! Tests file changes on catalogs without files.

use jaato_types::{Description, Error, Manifest};
use serde_json::json;

use super::*;

/// Returns a file stamp for the state with this number.
fn test_stamp(state: usize) -> PluginFileStamp {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, vec![0; state]).unwrap();
    PluginFileStamp::read_stamp(&file).unwrap()
}

/// The plugin folders of a test.
struct PluginFolder {
    stamps: Vec<PluginFileStamp>,
}

impl PluginFolder {
    fn new() -> Self {
        Self { stamps: (0..4).map(test_stamp).collect() }
    }

    fn file_stamp(&self, state: usize) -> Option<PluginFileStamp> {
        Some(self.stamps[state].clone())
    }

    /// Returns a plugin `name` in `NAME.so`, whose version is its state, with these tools.
    fn plugin_file(
        &self,
        name: &str,
        state: usize,
        trust: PluginFileTrust,
        tools: &[&str],
    ) -> PluginFileCandidate {
        let manifest = json!({
            "v": 1, "name": name, "version": format!("{state}"), "api": "1.0.0", "kinds": ["tool"],
        });
        let tools = tools.iter().map(|tool| {
            let spec = json!({ "name": tool, "description": "", "parameters": {} });
            serde_json::from_value(spec).unwrap()
        });
        let candidate = PluginCandidate {
            path: format!("{name}.so").into(),
            place: "user",
            trust,
            manifest: Manifest::parse(manifest.to_string().as_bytes()).unwrap(),
            description: Some(Ok(Description { tools: tools.collect(), ..Description::default() })),
        };
        let path = candidate.path.clone();
        PluginFileCandidate { path, stamp: self.file_stamp(state), found: Ok(candidate) }
    }

    fn shipped_file(&self, name: &str, state: usize, tools: &[&str]) -> PluginFileCandidate {
        self.plugin_file(name, state, PluginFileTrust::Shipped, tools)
    }

    fn torn_file(&self, name: &str, state: usize) -> PluginFileCandidate {
        let path = format!("{name}.so").into();
        PluginFileCandidate {
            path,
            stamp: self.file_stamp(state),
            found: Err(format!("{name}.so is torn")),
        }
    }
}

/// A catalog, and the edition of its last renewal.
#[derive(Default)]
struct CatalogFixture {
    catalog: Catalog,
    last_edition: u64,
}

impl CatalogFixture {
    /// Renews the catalog and returns the news.
    fn renew(&mut self, files: impl IntoIterator<Item = PluginFileCandidate>) -> Vec<String> {
        self.renew_again(files, &[])
    }

    fn renew_again(
        &mut self,
        files: impl IntoIterator<Item = PluginFileCandidate>,
        again: &[&str],
    ) -> Vec<String> {
        let again: Vec<PluginName> = again.iter().map(|name| PluginName::from(*name)).collect();
        let renewal = CatalogRenewal {
            files: files.into_iter().collect(),
            problems: Vec::new(),
            rules: &RegistryRules::default(),
            again: &again,
            last_edition: &mut self.last_edition,
        };
        let (next, news) = self.catalog.renew(renewal);
        self.catalog = next;
        news.into_iter().map(|news| news.text).collect()
    }

    fn edition(&self, plugin: &str) -> (u64, u64) {
        let edition = self.catalog.edition(plugin);
        (edition.number, edition.content)
    }

    fn version(&self, plugin: &str) -> String {
        self.catalog.registry.plugin(plugin).unwrap().candidate.manifest.version.clone()
    }
}

const NONE: [&str; 0] = [];

#[test]
fn replaced_plugin_file_is_a_new_edition_and_reported_once() {
    let (folder, mut shelf) = (PluginFolder::new(), CatalogFixture::default());
    let news = shelf.renew([folder.shipped_file("moon", 1, &["tide"])]);
    assert_eq!(news, ["plugin `moon` 1 can now be used"]);
    assert_eq!(shelf.edition("moon"), (1, 1));
    assert_eq!(shelf.renew([folder.shipped_file("moon", 1, &["tide"])]), NONE);
    assert_eq!(shelf.edition("moon"), (1, 1));
    let news = shelf.renew([folder.shipped_file("moon", 2, &["tide"])]);
    assert_eq!(news, ["plugin `moon` was replaced, 1 by 2"]);
    assert_eq!(shelf.edition("moon"), (2, 2));
}

#[test]
fn changed_trust_makes_a_new_edition_and_a_touched_file_does_not() {
    let (folder, mut shelf) = (PluginFolder::new(), CatalogFixture::default());
    let no = || PluginFileTrust::No("d".into());
    shelf.renew([folder.plugin_file("moon", 1, no(), &[])]);
    let news =
        shelf.renew([folder.plugin_file("moon", 1, PluginFileTrust::ByHash("d".into()), &[])]);
    assert_eq!(news, ["plugin `moon` 1 restarts: it is trusted"]);
    assert_eq!(shelf.edition("moon"), (2, 1));
    let mut touched = folder.plugin_file("moon", 1, PluginFileTrust::ByHash("d".into()), &[]);
    touched.stamp = folder.file_stamp(2);
    assert_eq!(shelf.renew([touched]), NONE);
    assert_eq!(shelf.edition("moon"), (2, 1));
    assert_eq!(shelf.catalog.edition("moon").stamp, folder.file_stamp(2));
    let news = shelf.renew([folder.plugin_file("moon", 3, PluginFileTrust::No("e".into()), &[])]);
    let text = "plugin `moon` was replaced, 1 by 3: it is not trusted, so it runs in a worker";
    assert_eq!(news, [text]);
}

#[test]
fn only_the_named_plugin_restarts() {
    let (folder, mut shelf) = (PluginFolder::new(), CatalogFixture::default());
    let both = || [folder.shipped_file("moon", 1, &[]), folder.shipped_file("sun", 1, &[])];
    shelf.renew(both());
    assert_eq!(shelf.renew_again(both(), &["sun"]), ["plugin `sun` 1 restarts"]);
    assert_eq!((shelf.edition("moon"), shelf.edition("sun")), ((1, 1), (3, 2)));
}

#[test]
fn unusable_new_file_leaves_the_previous_edition_in_use() {
    let (folder, mut shelf) = (PluginFolder::new(), CatalogFixture::default());
    shelf.renew([folder.shipped_file("moon", 1, &["tide"])]);
    let kept = |why: &str| {
        format!("plugin `moon` stays as it was because its new file cannot be used: {why}")
    };
    assert_eq!(shelf.renew([folder.torn_file("moon", 2)]), [kept("moon.so is torn")]);
    assert_eq!(shelf.renew([folder.torn_file("moon", 2)]), NONE);
    assert_eq!((shelf.version("moon").as_str(), shelf.edition("moon")), ("1", (1, 1)));
    assert_eq!(shelf.catalog.kept_reason("moon"), Some("moon.so is torn"));

    // A file that cannot be described is reported for another reason.
    let mut hangs = folder.shipped_file("moon", 3, &[]);
    hangs.found.as_mut().unwrap().description = Some(Err(Error::failed("it hangs")));
    assert_eq!(shelf.renew([hangs]), [kept("it hangs")]);
    assert_eq!(shelf.version("moon"), "1");

    let news = shelf.renew([folder.shipped_file("moon", 2, &["tide"])]);
    assert_eq!(news, ["plugin `moon` was replaced, 1 by 2"]);
    assert_eq!(shelf.catalog.kept_reason("moon"), None);
}

#[test]
fn new_file_that_takes_a_name_of_another_plugin_is_not_used() {
    let (folder, mut shelf) = (PluginFolder::new(), CatalogFixture::default());
    shelf.renew([
        folder.shipped_file("moon", 1, &["tide"]),
        folder.shipped_file("sun", 1, &["light"]),
    ]);
    let news = shelf.renew([
        folder.shipped_file("moon", 1, &["tide"]),
        folder.shipped_file("sun", 2, &["tide"]),
    ]);
    let [news] = news.as_slice() else { panic!("{news:?}") };
    assert!(news.starts_with("plugin `sun` stays as it was because "), "{news}");
    assert!(news.contains("`tide`") && news.contains("moon.so"), "{news}");
    assert_eq!(shelf.version("sun"), "1");
    // A new plugin with higher trust takes the names it lists, as at a start.
    let files =
        [folder.shipped_file("dawn", 1, &["light"]), folder.shipped_file("sun", 1, &["light"])];
    let news = shelf.renew(files);
    assert!(
        news.iter().any(|it| it.starts_with("plugin `sun` (`sun.so`) cannot be used: ")),
        "{news:?}"
    );
    assert!(!shelf.catalog.is_in_use("sun"));
}

#[test]
fn removed_files_and_unusable_files_are_reported() {
    let (folder, mut shelf) = (PluginFolder::new(), CatalogFixture::default());
    shelf.renew([folder.shipped_file("moon", 1, &[])]);
    assert_eq!(shelf.renew([]), ["the file of plugin `moon` was removed: `moon.so`"]);
    assert_eq!(shelf.renew([folder.torn_file("sun", 1)]), ["sun.so is torn"]);
    assert_eq!(shelf.renew([folder.torn_file("sun", 1)]), NONE);
    let news = shelf.renew([folder.shipped_file("sun", 2, &[])]);
    assert_eq!(news, ["plugin `sun` 2 can now be used"]);
}

#[test]
fn running_plugins_stay_when_their_workspace_is_no_longer_trusted() {
    let (folder, mut shelf) = (PluginFolder::new(), CatalogFixture::default());
    let both = |states: [usize; 2], trust: [PluginFileTrust; 2]| {
        let [moon, sun] = trust;
        [
            folder.plugin_file("moon", states[0], moon, &[]),
            folder.plugin_file("sun", states[1], sun, &[]),
        ]
    };
    let no = |digest: &str| PluginFileTrust::No(digest.into());
    shelf.renew(both([1, 1], [no("m"), no("s")]));
    let news =
        shelf.renew(both([1, 2], [PluginFileTrust::WorkspaceNot, PluginFileTrust::WorkspaceNot]));
    let [news] = news.as_slice() else { panic!("{news:?}") };
    assert!(news.starts_with("plugin `sun` stays as it was because "), "{news}");
    assert!(news.ends_with("it is no longer trusted; jaato trust"), "{news}");
    assert_eq!((shelf.edition("moon"), shelf.edition("sun")), ((1, 1), (2, 2)));
}

#[test]
fn offers_are_equal_if_tools_and_origin_are_equal() {
    let (folder, mut shelf) = (PluginFolder::new(), CatalogFixture::default());
    let mut offer = |file| {
        shelf.renew([file]);
        std::mem::take(&mut shelf.catalog)
    };
    let first = offer(folder.shipped_file("moon", 1, &["tide"]));
    let same = offer(folder.shipped_file("moon", 2, &["tide"]));
    let others = offer(folder.shipped_file("moon", 2, &["tide", "ebb"]));
    let strangers =
        offer(folder.plugin_file("moon", 2, PluginFileTrust::ByHash("d".into()), &["tide"]));
    assert!(first.has_same_offer(&same, "moon"));
    assert!(!first.has_same_offer(&others, "moon"));
    assert!(!first.has_same_offer(&strangers, "moon"), "the gate believes what is shipped");
    assert!(!first.has_same_offer(&Catalog::default(), "moon"));
}
