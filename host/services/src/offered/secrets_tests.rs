//! Runs the engine's checks on the services `secret.*`. The fake host passes the same checks.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use jaato_config::{EnvironmentVariables, UserFolders};
use jaato_loader::testing::LoaderHost;
use jaato_loader::{EngineServiceAnswer, EngineServices, ServiceCaller};
use jaato_plugin_engine::testing::SECRET_CHECKS;
use jaato_process::{GuardianCommand, Supervisor};
use jaato_types::{ErrorKind, PluginName};

use super::*;
use crate::key_commands::KeyCommands;

struct SecretsOnlyServices(Arc<PluginSecrets>, PluginName);

impl EngineServices for SecretsOnlyServices {
    fn call(
        &self,
        _caller: ServiceCaller,
        operation: &str,
        frame: Vec<u8>,
    ) -> BoxFuture<'static, Result<EngineServiceAnswer, Error>> {
        answer_secrets_operation(&self.0, &self.1, operation, frame)
    }
}

/// Creates secrets whose keyring tool cannot start, so that they use files.
fn new_plugin_secrets(folder: &std::path::Path) -> Arc<PluginSecrets> {
    let guardian = GuardianCommand { program: folder.join("missing"), args: Vec::new() };
    let commands = KeyCommands::new(Supervisor::new(guardian), &EnvironmentVariables::default());
    Arc::new(PluginSecrets::new(&UserFolders::under_root(folder), Arc::new(commands)))
}

#[test]
fn the_real_host_keeps_secrets_as_the_fake_one_does() {
    for (_, check) in SECRET_CHECKS {
        let folder = tempfile::tempdir().unwrap();
        let secrets = new_plugin_secrets(folder.path());
        let name = PluginName::from("moon");
        let services = || {
            Arc::new(SecretsOnlyServices(Arc::clone(&secrets), name.clone()))
                as Arc<dyn EngineServices>
        };
        check(&LoaderHost::new(services));
    }
}

#[tokio::test]
async fn secret_is_readable_only_by_its_plugin_and_its_user() {
    let folder = tempfile::tempdir().unwrap();
    let secrets = new_plugin_secrets(folder.path());
    let (moon, sun) = (PluginName::from("moon"), PluginName::from("sun"));
    secrets.set(&moon, "token", b"moonlight".to_vec()).await.unwrap();
    assert_eq!(secrets.get(&sun, "token").await.unwrap(), None);
    let own = folder.path().join("data/plugin-secrets/moon");
    assert_eq!(fs::metadata(&own).unwrap().permissions().mode() & 0o777, 0o700);
    for entry in fs::read_dir(&own).unwrap().flatten() {
        assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }
}

#[tokio::test]
async fn stored_secrets_are_masked_in_texts_of_their_plugin() {
    let folder = tempfile::tempdir().unwrap();
    let secrets = new_plugin_secrets(folder.path());
    let moon = PluginName::from("moon");
    let token = "0123456789-moonlight-0123456789";
    secrets.set(&moon, "token", token.into()).await.unwrap();
    let text = format!("the server said: bad token {token}!");
    let cleaned = secrets.without_secrets("moon", text.clone());
    assert_eq!(cleaned, "the server said: bad token ********!");
    // The other plugin never received the secret.
    assert_eq!(secrets.without_secrets("sun", text.clone()), text);
}

#[tokio::test]
async fn secret_file_writable_by_others_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let secrets = new_plugin_secrets(folder.path());
    let moon = PluginName::from("moon");
    secrets.set(&moon, "token", b"moonlight".to_vec()).await.unwrap();
    let own = folder.path().join("data/plugin-secrets/moon");
    for entry in fs::read_dir(&own).unwrap().flatten() {
        fs::set_permissions(entry.path(), fs::Permissions::from_mode(0o666)).unwrap();
    }
    let error = secrets.get(&moon, "token").await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Io);
    assert!(!error.message.contains("moonlight"), "{error}");
}
