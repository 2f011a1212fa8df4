//! Plugin files, in workers that are the program's own executable.

use jaato_library::{Configuration, Jaato};
use serde_json::json;

use crate::support::child_program;

#[tokio::test]
async fn plugin_file_runs_in_a_worker_of_the_programs_own_executable() {
    let folder = tempfile::tempdir().unwrap();
    let plugins = folder.path().join("plugins");
    std::fs::create_dir(&plugins).unwrap();
    let (start, end) = (std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    let file = format!("{start}word_tool{end}");
    std::fs::copy(child_program().with_file_name(&file), plugins.join(&file)).unwrap();
    let jaato = Jaato::builder()
        .configuration(Configuration::In(folder.path().join("home")))
        .workspace(folder.path())
        .executable(child_program())
        .plugin_folder(plugins)
        .start()
        .await
        .unwrap();
    let counted = jaato.call("count_words", json!({ "text": "a b c" })).await.unwrap();
    assert_eq!(counted["words"], 3);
    let registry = jaato.runtime().registry();
    let plugin = registry.plugin("jaato-library").unwrap();
    assert_eq!(jaato.runtime().worker_reason(plugin), Some("it is not trusted"));
    let ended = jaato.close().await;
    assert!(ended.processes.is_empty() && ended.orphans.is_empty());
}
