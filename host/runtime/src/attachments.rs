//! Writes the attachments of tools to files for a user who called a tool directly. The files
//! outlive the process, unlike the session's blobs.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use jaato_terminals::own_temporary_folder;
use jaato_types::{DataPart, Error, ErrorKind, SessionId};

use crate::runtime::Runtime;

/// How long a file is kept. Older files are removed when others are written.
const KEPT_FOR: Duration = Duration::from_secs(7 * 24 * 3600);

/// Digits of a blob's id in a file name: enough to be unique within a session.
const NAME_DIGITS: usize = 16;

impl Runtime {
    /// Writes a tool's attachment to a file and returns its absolute path. The file is in the
    /// session's folder inside the user's cache and is kept for at least a week.
    ///
    /// # Errors
    /// `not_found` if the session has no such blob, `io` if it cannot be written.
    pub async fn keep_attachment(
        &self,
        session: &SessionId,
        attachment: &DataPart,
    ) -> Result<PathBuf, Error> {
        let blobs = self.host().services.shared_services().blobs().session_blobs(session)?;
        let id = attachment.blob_id().ok_or_else(|| {
            let text = "this version of jaato cannot find where the attachment is stored";
            Error::new(ErrorKind::NotFound, text)
        })?;
        let from = blobs.find(id)?.path;
        let cache = self.setup().folders.cache_folder().ok();
        let cache = cache.filter(|cache| jaato_places::make_own_folder(cache).is_ok());
        let own = || own_temporary_folder(&std::env::temp_dir());
        let parent = cache.map_or_else(own, Path::to_path_buf).join("attachments");
        let end = file_extension(&attachment.mime_type);
        let name = format!("{}.{end}", id.get(..NAME_DIGITS).unwrap_or(id));
        let folder = parent.join(session.as_str());
        let kept = tokio::task::spawn_blocking(move || {
            remove_old_folders(&parent, SystemTime::now());
            jaato_places::make_own_folder(&folder).map_err(|error| error.to_string())?;
            let to = folder.join(name);
            // The name is the hash of the content, so an existing file has the same bytes.
            std::fs::copy(from, &to).map_err(|error| error.to_string())?;
            Ok::<_, String>(to)
        });
        let kept = kept.await.map_err(|error| Error::new(ErrorKind::HostBug, error.to_string()))?;
        kept.map_err(|why| {
            Error::new(ErrorKind::Io, format!("cannot save an attachment to a file: {why}"))
        })
    }
}

/// Removes the folders of old sessions.
fn remove_old_folders(parent: &Path, now: SystemTime) {
    let Ok(entries) = std::fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let written = entry.metadata().and_then(|it| it.modified());
        let is_old = written.is_ok_and(|at| now.duration_since(at).is_ok_and(|age| age > KEPT_FOR));
        if is_old {
            // The next sweep tries again if this fails.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// Returns the file extension for a media type.
fn file_extension(mime_type: &str) -> &'static str {
    let essence = mime_type.split(';').next().unwrap_or_default().trim_end();
    match essence.to_ascii_lowercase().as_str() {
        "image/png" => "png",
        "image/jpeg" => "jpg",
        "image/gif" => "gif",
        "image/webp" => "webp",
        "image/svg+xml" => "svg",
        "application/pdf" => "pdf",
        "application/json" => "json",
        "audio/mpeg" => "mp3",
        "audio/wav" => "wav",
        "video/mp4" => "mp4",
        "text/csv" => "csv",
        "text/html" => "html",
        "text/markdown" => "md",
        text if text.starts_with("text/") => "txt",
        _ => "bin",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attachment_extension_comes_from_a_known_media_type_only() {
        assert_eq!(file_extension("image/jpeg"), "jpg");
        assert_eq!(file_extension("TEXT/plain; charset=utf-8"), "txt");
        assert_eq!(file_extension("application/x-sh"), "bin");
        assert_eq!(file_extension("../sh"), "bin");
    }

    #[test]
    fn attachment_folders_older_than_the_limit_are_removed() {
        let parent = tempfile::tempdir().unwrap();
        std::fs::create_dir(parent.path().join("s1")).unwrap();
        let now = SystemTime::now();
        remove_old_folders(parent.path(), now + KEPT_FOR - Duration::from_secs(60));
        assert!(parent.path().join("s1").exists());
        remove_old_folders(parent.path(), now + KEPT_FOR + Duration::from_secs(60));
        assert!(!parent.path().join("s1").exists());
    }
}
