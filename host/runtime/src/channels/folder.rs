//! Asks through a folder: each question is a file in `requests/`, each answer a file of the same
//! name in `responses/`. Both files are removed when the question is settled.
//!
//! Anyone who can write to the folder can answer. Only the user has access, but that does not keep
//! out programs that run as the user.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures_util::future::BoxFuture;
use jaato_places::{TrustedOwners, check_folder, make_missing_folders, read_own_file};
use jaato_session::NoAnswer;
use jaato_types::SessionId;
use jaato_types::permission_prompt::{PermissionAnswer, PermissionPrompt};

use super::{ApprovalChannel, FolderAsker, wire};

/// How often the host looks for an answer.
const LOOKED_AT_EVERY: Duration = Duration::from_millis(500);

/// How often an answer that is not valid JSON is read again, because its writer may not be done.
const HALF_WRITTEN_MAX: u32 = 4;

/// A folder for questions and answers.
pub struct ApprovalFolder {
    folder: PathBuf,
}

/// The files of a question, removed on drop.
struct ApprovalFiles {
    request: PathBuf,
    response: PathBuf,
}

impl FolderAsker {
    /// Creates an asker. Touches no file yet.
    pub fn new(folder: PathBuf) -> Self {
        Self(ApprovalFolder { folder })
    }
}

impl ApprovalFolder {
    async fn request_answer(
        &self,
        session: &SessionId,
        prompt: &PermissionPrompt,
    ) -> Result<PermissionAnswer, String> {
        let id = wire::new_prompt_id()?;
        let [requests, responses] = ["requests", "responses"].map(|name| self.folder.join(name));
        for folder in [&requests, &responses] {
            make_missing_folders(folder).map_err(|error| error.to_string())?;
            check_folder(folder, &TrustedOwners::this_user_and_root())
                .map_err(|error| error.to_string())?;
        }
        let name = format!("{id}.json");
        let files =
            ApprovalFiles { request: requests.join(&name), response: responses.join(&name) };
        let body = wire::prompt_json((session, prompt), &id, &wire::current_timestamp());
        write_atomically(&files.request, &body.to_string())
            .map_err(|error| format!("cannot write `{}`: {error}", files.request.display()))?;
        let mut half_written = 0;
        loop {
            tokio::time::sleep(LOOKED_AT_EVERY).await;
            let read = read_own_file(&files.response, wire::ANSWER_BYTES_MAX);
            let Some(bytes) = read.map_err(|error| error.to_string())? else { continue };
            match wire::parse_answer(&bytes, &id, prompt) {
                Err(_) if half_written < HALF_WRITTEN_MAX => half_written += 1,
                answer => return answer,
            }
        }
    }
}

/// Writes a file atomically, readable only by the user.
fn write_atomically(path: &Path, text: &str) -> std::io::Result<()> {
    let begun = path.with_extension("part");
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&begun)?;
    file.write_all(text.as_bytes())?;
    fs::rename(&begun, path)
}

impl Drop for ApprovalFiles {
    fn drop(&mut self) {
        // The files may be gone because the answering program removed them.
        for file in [&self.request, &self.response] {
            let _ = fs::remove_file(file);
        }
    }
}

impl ApprovalChannel for ApprovalFolder {
    const NAME: &str = "file";

    fn request_answer<'a>(
        &'a self,
        session: &'a SessionId,
        prompt: &'a PermissionPrompt,
    ) -> BoxFuture<'a, Result<PermissionAnswer, NoAnswer>> {
        Box::pin(async move { self.request_answer(session, prompt).await.map_err(NoAnswer::new) })
    }
}
