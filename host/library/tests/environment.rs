//! An environment that the program uses itself, and lends.

use std::sync::Arc;
use std::time::Duration;

use jaato_library::{Configuration, Jaato, PluginFiles, Resource, ResourceRegistry, Result};
use parking_lot::Mutex;
use serde_json::Map;
use tempfile::TempDir;

use crate::support::{child_program, scripted_model, text_answer};

async fn start_host(folder: &TempDir) -> Jaato {
    let model = scripted_model([text_answer("Hello."), text_answer("Hello.")]);
    let jaato = Jaato::builder().shared_provider("my", model).plugin(crate::__jaato::MODULE);
    let jaato = jaato.executable(child_program()).plugin_files(PluginFiles::Ignored);
    let jaato = jaato.configuration(Configuration::None).workspace(folder.path());
    jaato.start().await.unwrap()
}

#[tokio::test]
async fn program_uses_files_and_shell_of_an_environment_without_a_session() {
    let folder = tempfile::tempdir().unwrap();
    let jaato = start_host(&folder).await;
    let environment = jaato.environment("folder", Map::new()).await.unwrap();
    assert_eq!(environment.facts().name, "folder");
    environment.files().write("test.txt", "hello").await.unwrap();
    assert_eq!(environment.files().read_text("test.txt").await.unwrap().text, "hello");
    let ran = environment.shell().execute("cat test.txt; echo no >&2; exit 3").await.unwrap();
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (Some(3), "hello", "no\n"));
    let slow = environment.shell().execute_within("sleep 60", Duration::from_millis(50)).await;
    assert!(slow.unwrap().timed_out);
    assert_eq!(environment.files().list("").await.unwrap().count, 1);
    environment.files().delete("test.txt").await.unwrap();
    let error = environment.files().stat("test.txt").await.unwrap_err();
    assert_eq!(error.kind, jaato_library::ErrorKind::NotFound);
    environment.close().await.unwrap();
    jaato.close().await;
}

#[tokio::test]
async fn sessions_share_a_lent_environment_which_ends_with_the_last_one() {
    let folder = tempfile::tempdir().unwrap();
    let jaato = start_host(&folder).await;
    let environment = jaato.environment("folder", Map::new()).await.unwrap();
    let first = jaato.session().environment(&environment).open().unwrap();
    let second = jaato.session().environment(&environment).open().unwrap();
    first.send("Hello.").await.unwrap();
    first.close().await;
    environment.files().write("shared.txt", "still there").await.unwrap();
    second.send("Hello.").await.unwrap();
    second.close().await;
    environment.close().await.unwrap();
    let unknown = jaato.environment("submarine", Map::new()).await.err().unwrap();
    assert!(unknown.message.contains("`submarine`"), "{unknown}");
    jaato.close().await;
}

/// Records that it was closed.
struct Browser {
    name: &'static str,
    closed: Arc<Mutex<Vec<&'static str>>>,
}

impl Resource for Browser {
    async fn close(&self) -> Result<()> {
        self.closed.lock().push(self.name);
        Ok(())
    }
}

#[tokio::test]
async fn resources_have_types_and_close_in_reverse_order() {
    struct Database;
    impl Resource for Database {
        async fn close(&self) -> Result<()> {
            Err(jaato_library::Error::failed("the disk is full"))
        }
    }
    let closed = Arc::new(Mutex::new(Vec::new()));
    let browser = |name| Arc::new(Browser { name, closed: Arc::clone(&closed) });
    let registry = ResourceRegistry::default();
    assert!(registry.set("a", browser("a")).is_none());
    assert!(registry.set("data", Arc::new(Database)).is_none());
    assert!(registry.set("b", browser("b")).is_none());
    registry.set("a", browser("new a")).unwrap().close().await.unwrap();
    assert_eq!(registry.get_typed::<Browser>("b").unwrap().name, "b");
    assert!(registry.get_typed::<Database>("b").is_none() && !registry.contains("c"));
    let error = registry.close_all().await.unwrap_err();
    assert_eq!(error.message, "the disk is full");
    assert_eq!(*closed.lock(), ["a", "new a", "b"]);
    assert!(!registry.contains("a"));
}
