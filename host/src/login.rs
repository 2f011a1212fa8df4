//! `jaato provider login` and `logout`: stores an API key where only the user can read it.

use std::io::{self, Read as _};

use jaato_runtime::{KeyCommands, KeyStore, SecretStorageKind, Setup, supervisor};

use crate::args::GlobalArgs;
use crate::exit::{CommandFailure, CommandResult, Exit};
use crate::{report, start, terminal};

/// The maximum number of bytes of a piped key.
const KEY_BYTES_MAX: u64 = 64 * 1024;

/// Takes a key for a provider: typed without echo, or from a pipe.
pub async fn login(global: GlobalArgs, name: String) -> CommandResult {
    let runtime = start::start_runtime(start::setup_arguments(global)).await?;
    let found = runtime.provider(&name);
    let setup = runtime.setup();
    let (stored, commands) = (KeyStore::new(&setup.folders), key_commands(setup));
    runtime.close().await;
    let provider = found.map_err(CommandFailure::from)?;
    if provider.keys.is_empty() {
        let text = format!("the provider `{name}` does not use an API key");
        return Err(CommandFailure::new(Exit::Usage, text));
    }
    let key = read_key(&name)?;
    if key.is_empty() || key.contains(char::is_whitespace) {
        let text = "nothing was saved: an API key cannot be empty or contain spaces";
        return Err(CommandFailure::new(Exit::Usage, text));
    }
    // The name under which the key is looked up, however the user wrote it.
    let name = provider.name.clone();
    let form = stored.store_key(&commands, &name, &key).await.map_err(CommandFailure::from)?;
    let place = match form {
        SecretStorageKind::Tool => "the system's secret tool",
        SecretStorageKind::File => "a file that only you can read",
    };
    report::print_line(&format!(
        "saved the API key for `{name}` in {place}; `jaato provider check {name}` tests it"
    ))?;
    let before = provider.keys.first().and_then(|key| key.found.clone());
    if let Some(place) = before.filter(|place| !place.starts_with("`jaato provider login")) {
        report::print_remark(&format!("{place} takes precedence"));
    }
    Ok(Exit::Done)
}

/// Deletes a key.
pub async fn logout(global: GlobalArgs, name: String) -> CommandResult {
    let setup = start::read_setup(start::setup_arguments(global))?;
    let (stored, commands) = (KeyStore::new(&setup.folders), key_commands(&setup));
    let is_name = name.chars().all(|sign| sign.is_ascii_alphanumeric() || "-_".contains(sign));
    let dashed = name.replace('_', "-");
    let mut removed = false;
    for name in [&name, &dashed].into_iter().filter(|_| is_name) {
        removed =
            removed || stored.remove_key(&commands, name).await.map_err(CommandFailure::from)?;
    }
    if !removed {
        let text = format!("no saved API key for `{name}`");
        return Err(CommandFailure::new(Exit::Usage, text)
            .hint("remove a key in a variable or in config.toml yourself"));
    }
    report::print_line(&format!("removed the API key for `{name}`"))?;
    Ok(Exit::Done)
}

/// Returns the commands of the system's tool for secrets.
fn key_commands(setup: &Setup) -> KeyCommands {
    KeyCommands::new(supervisor(setup), &setup.variables)
}

fn read_key(name: &str) -> Result<String, CommandFailure> {
    let failed = |error: io::Error| {
        CommandFailure::new(Exit::Failed, format!("cannot read the key: {error}"))
    };
    if terminal::input_is_terminal() {
        let typed = rpassword::prompt_password(format!("API key for {name} (input is hidden): "));
        return typed.map(|key| key.trim().to_owned()).map_err(failed);
    }
    let mut text = String::new();
    io::stdin().take(KEY_BYTES_MAX).read_to_string(&mut text).map_err(failed)?;
    Ok(text.trim().to_owned())
}
