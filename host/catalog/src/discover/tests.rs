//! Tests discovery in a trusted workspace.

use std::fs;
use std::time::{Duration, SystemTime};

use jaato_config::trust::Workspace;
use jaato_config::{EnvironmentVariables, UserFolders};
use tempfile::TempDir;

use super::*;
use crate::setup::{SetupArguments, supervisor};

/// Returns a workspace that was trusted with one file among its plugins.
fn trusted_plugin_file(name: &str, content: &str) -> (TempDir, PathBuf) {
    let root = tempfile::tempdir().unwrap();
    let work = root.path().canonicalize().unwrap().join("work");
    let plugin = work.join(WORKSPACE_PLUGINS).join(name);
    fs::create_dir_all(plugin.parent().unwrap()).unwrap();
    fs::write(&plugin, content).unwrap();
    let folders = UserFolders::under_root(root.path());
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    TrustStore::in_folder(folders.data_folder().unwrap())
        .trust_workspace(&Workspace::find_workspace(&work, None).unwrap(), now)
        .unwrap();
    (root, plugin)
}

fn test_setup(root: &TempDir) -> Setup {
    let (folders, variables) =
        (UserFolders::under_root(root.path()), EnvironmentVariables::default());
    let work = root.path().join("work");
    let executable = root.path().join("bin/jaato");
    Setup::from_arguments(SetupArguments::default(), executable, folders, variables, &work).unwrap()
}

async fn search_problems(setup: &Setup) -> Vec<String> {
    let how = PluginSearch { workspace: setup.trusted_workspace(), again: RereadFiles::Nothing };
    let searched = search_plugins(setup, &supervisor(setup), how).await;
    searched.files.into_iter().map(|file| file.found.unwrap_err()).collect()
}

#[tokio::test]
async fn plugin_file_replaced_after_the_trust_check_is_not_read() {
    let name = format!("moon{}", std::env::consts::DLL_SUFFIX);
    let (root, plugin) = trusted_plugin_file(&name, "good");
    let setup = test_setup(&root);
    assert!(setup.trusted_workspace().is_some());
    // The change happens between the check of the workspace and the search.
    fs::write(&plugin, "evil").unwrap();
    let added = plugin.with_file_name(format!("added{}", std::env::consts::DLL_SUFFIX));
    fs::write(&added, "evil").unwrap();
    let found = search_problems(&setup).await;
    let [of_added, of_moon] = found.as_slice() else { panic!("{found:?}") };
    assert!(
        of_added.contains("it was not there when the workspace was trusted\nhint: jaato trust")
    );
    assert!(of_moon.contains("changed since it was trusted: expected sha256 "), "{of_moon}");

    // After a valid copy was made, only the copy is read, even if the file is replaced.
    fs::remove_file(&added).unwrap();
    fs::write(&plugin, "good").unwrap();
    let is_no_library =
        format!("cannot use `{}` as a plugin: it is not a dynamic library", plugin.display());
    assert_eq!(search_problems(&setup).await, [is_no_library.as_str()]);
    fs::write(&plugin, "evil").unwrap();
    assert_eq!(search_problems(&setup).await, [is_no_library]);
}
