//! Tests what the checks for all hosts do not cover: files, concurrent processes, damage.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use jaato_types::Frame;
use jaato_types::store::KEYS_MAX;
use tempfile::TempDir;

use super::*;

fn new_plugin_store(folder: &TempDir) -> PluginStore {
    let stores = PluginStores::new(&UserFolders::under_root(folder.path()), Path::new("/w"));
    stores.open_store(&PluginName::from("moon"), StoreOwner::Person).unwrap()
}

fn values_folder(folder: &TempDir) -> PathBuf {
    folder.path().join("data/plugin-data/moon/person/values")
}

#[test]
fn stored_files_are_private_to_the_user() {
    let folder = tempfile::tempdir().unwrap();
    new_plugin_store(&folder).set("k", b"1", &ValueCondition::Anything).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let own = folder.path().join("data/plugin-data/moon");
    for path in [
        own.clone(),
        own.join("person"),
        values_folder(&folder),
        new_plugin_store(&folder).folder().unwrap(),
    ] {
        assert_eq!(mode(&path), 0o700, "{}", path.display());
    }
    let files: Vec<_> = fs::read_dir(values_folder(&folder)).unwrap().flatten().collect();
    assert_eq!(files.len(), 1);
    assert_eq!(mode(&files[0].path()), 0o600);
}

#[test]
fn stores_of_plugins_and_workspaces_are_separate() {
    let folder = tempfile::tempdir().unwrap();
    let folders = UserFolders::under_root(folder.path());
    let set = |workspace: &str, plugin: &str, of| {
        let stores = PluginStores::new(&folders, Path::new(workspace));
        let place = stores.open_store(&PluginName::from(plugin), of).unwrap();
        place.set("k", format!("{workspace} {plugin}").as_bytes(), &ValueCondition::Absent)
    };
    for workspace in ["/a", "/b"] {
        set(workspace, "moon", StoreOwner::Workspace).unwrap();
        set(workspace, "sun", StoreOwner::Workspace).unwrap();
    }
    set("/a", "moon", StoreOwner::Person).unwrap();
    assert_eq!(set("/b", "moon", StoreOwner::Person).unwrap_err().kind, ErrorKind::Conflict);
}

#[test]
fn concurrent_writers_lose_nothing_and_never_read_partial_values() {
    let folder = tempfile::tempdir().unwrap();
    let count = |value: &[u8]| value.len();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..25 {
                    let place = new_plugin_store(&folder);
                    loop {
                        let has = place.get("k").unwrap();
                        let (expected, value) = match has {
                            None => (ValueCondition::Absent, vec![b'x'; 1000]),
                            Some(value) => {
                                assert_eq!(count(&value.bytes) % 1000, 0, "half a value");
                                let more = vec![b'x'; count(&value.bytes) + 1000];
                                (ValueCondition::Digest(value.digest), more)
                            }
                        };
                        match place.set("k", &value, &expected) {
                            Ok(_) => break,
                            Err(error) => assert_eq!(error.kind, ErrorKind::Conflict, "{error}"),
                        }
                    }
                }
            });
        }
    });
    assert_eq!(new_plugin_store(&folder).get("k").unwrap().unwrap().bytes.len(), 100 * 1000);
}

#[test]
fn number_of_stored_values_is_limited_across_processes() {
    let folder = tempfile::tempdir().unwrap();
    let place = new_plugin_store(&folder);
    place.set("k", b"1", &ValueCondition::Anything).unwrap();
    for number in 2..=KEYS_MAX {
        let key = number.to_string();
        fs::write(place.value_file(&key), Frame::write(&key).unwrap()).unwrap();
    }
    let error = place.set("more", b"1", &ValueCondition::Anything).unwrap_err();
    assert_eq!(error.kind, ErrorKind::LimitReached, "{error}");
    place.set("k", b"2", &ValueCondition::Anything).unwrap();
    assert!(place.delete("2", &ValueCondition::Anything).unwrap());
    place.set("more", b"1", &ValueCondition::Anything).unwrap();
    assert_eq!(place.list("").unwrap().len(), KEYS_MAX);
}

#[test]
fn damaged_value_is_reported_and_can_be_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let place = new_plugin_store(&folder);
    place.set("k", b"1", &ValueCondition::Anything).unwrap();
    place.set("other", b"2", &ValueCondition::Anything).unwrap();
    let file = place.value_file("k");
    let other = fs::read(place.value_file("other")).unwrap();
    for damage in [&b""[..], b"\x05", b"\xff\xff\xff\xff", b"\x01\x00\x00\x007", &other] {
        fs::write(&file, damage).unwrap();
        let error = place.get("k").unwrap_err();
        assert_eq!(error.kind, ErrorKind::Io, "{error}");
        assert!(error.message.contains("is damaged"), "{error}");
        let keys: Vec<_> = place.list("").unwrap().into_iter().map(|it| it.key).collect();
        assert_eq!(keys, ["other"]);
    }
    place.set("k", b"3", &ValueCondition::Anything).unwrap();
    assert_eq!(place.get("k").unwrap().unwrap().bytes, b"3");
}

#[test]
fn unfinished_file_of_a_dead_process_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    let place = new_plugin_store(&folder);
    place.set("k", b"1", &ValueCondition::Anything).unwrap();
    let left = values_folder(&folder).join("unfinished-abc");
    fs::write(&left, vec![0; 1000]).unwrap();
    assert_eq!(place.list("").unwrap().len(), 1);
    place.set("k", b"2", &ValueCondition::Anything).unwrap();
    assert!(!left.exists());
}

#[test]
fn value_file_writable_by_others_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let place = new_plugin_store(&folder);
    place.set("k", b"1", &ValueCondition::Anything).unwrap();
    fs::set_permissions(place.value_file("k"), fs::Permissions::from_mode(0o666)).unwrap();
    let error = place.get("k").unwrap_err();
    assert_eq!(error.kind, ErrorKind::Io, "{error}");
}

#[test]
fn without_a_home_nothing_is_kept() {
    let stores = PluginStores::new(&UserFolders::without_home(), Path::new("/w"));
    let error = stores.open_store(&PluginName::from("moon"), StoreOwner::Person).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unavailable);
}
