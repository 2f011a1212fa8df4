//! Attaches the user's files to a prompt: stores them with the session or adds their text.

use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::path::{Path, PathBuf};

use jaato_session::UserPrompt;
use jaato_types::media_type::{MEDIA_TYPE_HEAD_BYTES, detect_media_type};
use jaato_types::{DataPart, Error, ErrorKind, SessionId};

use crate::runtime::Runtime;

/// Largest text file that is added to a prompt, in bytes. Larger files are a task for tools.
pub const TEXT_BYTES_MAX: u64 = 1024 * 1024;

/// How much of a file is read at a time, in bytes.
const PIECE_BYTES: usize = 1024 * 1024;

/// An attachment of a prompt.
enum PromptAttachment {
    Data(DataPart),
    Text { name: String, text: String },
}

impl Runtime {
    /// Attaches files to a prompt, in their order. The first bytes decide what a file is, not its
    /// name: images and PDF files go into the session's store, text goes into the prompt.
    ///
    /// # Errors
    /// `not_found`, `io`, `limit_reached` if a file is too large, `invalid_arguments` if no model
    /// can read its content. Each error names the file.
    pub async fn attach_files(
        &self,
        session: &SessionId,
        prompt: UserPrompt,
        files: &[PathBuf],
    ) -> Result<UserPrompt, Error> {
        let mut prompt = prompt;
        for path in files {
            let blobs = self.host().services.shared_services().blobs().session_blobs(session)?;
            let file = path.clone();
            let read = tokio::task::spawn_blocking(move || read_attachment(&file, &blobs)).await;
            let beside = read.unwrap_or_else(|error| {
                let text = format!("reading `{}` panicked: {error}", path.display());
                Err(Error::new(ErrorKind::HostBug, text))
            })?;
            prompt = match beside {
                PromptAttachment::Data(data) => prompt.with_file(data),
                PromptAttachment::Text { name, text } => prompt.with_text(&name, &text),
            };
        }
        Ok(prompt)
    }
}

fn read_attachment(
    path: &Path,
    blobs: &std::sync::Arc<jaato_services::SessionBlobs>,
) -> Result<PromptAttachment, Error> {
    let shown = path.display();
    let io = |error: &std::io::Error| {
        let kind = match error.kind() {
            std::io::ErrorKind::NotFound => ErrorKind::NotFound,
            _ => ErrorKind::Io,
        };
        Error::new(kind, format!("cannot attach `{shown}`: {error}"))
    };
    let facts = std::fs::metadata(path).map_err(|error| io(&error))?;
    if !facts.is_file() {
        let text = format!("cannot attach `{shown}`: it is not a file");
        return Err(Error::new(ErrorKind::InvalidArguments, text));
    }
    let mut file = File::open(path).map_err(|error| io(&error))?;
    let mut head = [0; MEDIA_TYPE_HEAD_BYTES];
    let length = read_up_to(&mut file, &mut head).map_err(|error| io(&error))?;
    file.rewind().map_err(|error| io(&error))?;
    let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into());
    let Some(mime_type) = detect_media_type(&head[..length]) else {
        return text_attachment(file, path, name, facts.len());
    };
    let mut upload = blobs.begin_upload(mime_type)?;
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let length = read_up_to(&mut file, &mut piece).map_err(|error| io(&error))?;
        if length == 0 {
            break;
        }
        upload.write(&piece[..length]).map_err(|error| with_file_name(path, error))?;
    }
    let put = upload.finish().map_err(|error| with_file_name(path, error))?;
    Ok(PromptAttachment::Data(DataPart::blob(mime_type, put.id).with_name(name)))
}

fn text_attachment(
    mut file: File,
    path: &Path,
    name: String,
    bytes: u64,
) -> Result<PromptAttachment, Error> {
    let shown = path.display();
    if bytes > TEXT_BYTES_MAX {
        let text = format!(
            "cannot attach `{shown}`: it has {bytes} bytes, but the limit for text is {TEXT_BYTES_MAX}"
        );
        return Err(Error::new(ErrorKind::LimitReached, text)
            .with_hint("name the file in the prompt: the model reads it with its tools"));
    }
    let mut read = Vec::new();
    // Bounds a file that grows while it is read.
    let read_all = file.by_ref().take(TEXT_BYTES_MAX + 1).read_to_end(&mut read);
    read_all
        .map_err(|error| Error::new(ErrorKind::Io, format!("cannot attach `{shown}`: {error}")))?;
    match String::from_utf8(read) {
        Ok(text) if !text.contains('\0') => Ok(PromptAttachment::Text { name, text }),
        Ok(_) | Err(_) => {
            let text = format!("cannot attach `{shown}`: models cannot read this kind of file");
            Err(Error::new(ErrorKind::InvalidArguments, text)
                .with_hint("attach an image (PNG, JPEG, GIF, WebP), a PDF, or UTF-8 text"))
        }
    }
}

/// Adds the file's name to an error of the store.
fn with_file_name(path: &Path, error: Error) -> Error {
    let message = format!("cannot attach `{}`: {}", path.display(), error.message);
    Error { message, ..error }
}

fn read_up_to(file: &mut File, buffer: &mut [u8]) -> std::io::Result<usize> {
    let mut length = 0;
    while length < buffer.len() {
        match file.read(&mut buffer[length..])? {
            0 => break,
            more => length += more,
        }
    }
    Ok(length)
}
