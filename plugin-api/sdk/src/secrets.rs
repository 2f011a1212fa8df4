//! A plugin's own secrets, kept in the system's secret store.

use jaato_types::secret::{self, SecretDeleteAnswer, SecretGetAnswer, SecretName, SecretSetAnswer};
use jaato_types::{Error, ErrorKind, Result};

use crate::context::Reporter;

/// The plugin's own secrets: at most 64, of 16 KiB each. Made by [`Reporter::secrets`].
#[derive(Clone)]
pub struct Secrets {
    host: Reporter,
}

impl Reporter {
    /// Returns access to the plugin's own secrets, such as a token from a login. The plugin must
    /// list `secret` in [`Description::services`](jaato_types::Description::services), and the user
    /// must grant it. For a provider's API key, use credentials, which the plugin never sees.
    ///
    /// ```
    /// # use jaato_plugin_sdk::prelude::*;
    /// # async fn log_in(cx: &Cx) -> Result<()> {
    /// cx.secrets().set("token", "moonlight").await?;
    /// let token = cx.secrets().get("token").await?;
    /// # drop(token); Ok(())
    /// # }
    /// ```
    pub fn secrets(&self) -> Secrets {
        Secrets { host: self.clone() }
    }
}

impl Secrets {
    jaato_types::secret_operations!(methods [.host]);

    /// Reads a secret as text. Returns `None` if it does not exist.
    ///
    /// # Errors
    /// As [`Reporter::service`]; `permission_denied` without the grant; `unavailable` if the
    /// system's tool does not return the secret.
    pub async fn get(&self, name: &str) -> Result<Option<String>> {
        let Some(bytes) = self.get_bytes(name).await? else { return Ok(None) };
        let text = String::from_utf8(bytes);
        let wrong = format!("the secret `{name}` is not text");
        text.map(Some).map_err(|_| Error::new(ErrorKind::InvalidArguments, wrong))
    }

    /// Reads a secret. Returns `None` if it does not exist.
    ///
    /// # Errors
    /// As [`Secrets::get`].
    pub async fn get_bytes(&self, name: &str) -> Result<Option<Vec<u8>>> {
        let (answer, bytes): (SecretGetAnswer, _) =
            self.host.service_for_bytes(secret::GET, &secret_name(name), &[]).await?;
        Ok(answer.found.then_some(bytes))
    }

    /// Stores a secret and replaces its previous value.
    ///
    /// # Errors
    /// As [`Secrets::get`]; `limit_reached` if it is too large or there are too many.
    pub async fn set(&self, name: &str, value: impl AsRef<[u8]> + Send) -> Result<()> {
        let request = secret_name(name);
        let answer = self.host.service_with_bytes(secret::SET, &request, value.as_ref());
        answer.await.map(|_: SecretSetAnswer| ())
    }
}

fn secret_name(name: &str) -> SecretName {
    SecretName { name: name.to_owned(), ..SecretName::default() }
}
