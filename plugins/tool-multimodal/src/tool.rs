//! The tool `viewImage`.

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::types::DataPart;
use jaato_plugin_sdk::types::files::{FileKind, FileRead};

use crate::image::{BYTES_MAX, image_media_type, image_size};

/// How much of the file one request reads.
const PIECE_BYTES: u64 = 4 * 1024 * 1024;

/// Look at an image file (PNG, JPEG, GIF or WebP, at most 10 MB). Attaches the image to the
/// result.
#[derive(ToolInput)]
#[tool(
    name = "viewImage",
    read_only,
    idempotent,
    open_world = false,
    auto_approval,
    category = "filesystem",
    available_if(model_sees = "images", reason = "with a model that accepts images"),
    example("What is on screenshot.png?", path = "screenshot.png")
)]
struct ViewImage {
    /// The file.
    #[schemars(extend("x-jaato-touches" = "read"))]
    path: String,
}

impl Tool for ViewImage {
    type State = ();

    async fn call(self, cx: &Cx) -> Result<Output> {
        let path = self.path;
        if path.is_empty() {
            return Err(Error::new(ErrorKind::InvalidArguments, "`path` is required"));
        }
        let facts = cx.files().stat(&path).await?;
        let (media_type, bytes) = match facts.kind {
            FileKind::File if facts.size > BYTES_MAX => {
                return Err(image_too_large_error(&path, facts.size));
            }
            FileKind::File => read_image(cx, &path).await?,
            FileKind::Folder => return Err(not_an_image_error(&path, "it is a folder")),
            FileKind::Link | FileKind::Other => {
                return Err(not_an_image_error(&path, "it is neither a file nor a folder"));
            }
        };
        let blob = cx.blobs().put(media_type, &bytes).await?;
        let name = path.rsplit('/').next().unwrap_or_default();
        let data =
            DataPart { name: Some(name.to_owned()), ..DataPart::blob(media_type, blob.as_str()) };
        cx.attach_data(&data).await?;
        let mut answer = json!({ "path": path, "type": media_type, "size": bytes.len() });
        if let Some((width, height)) = image_size(&bytes) {
            answer["width"] = width.into();
            answer["height"] = height.into();
        }
        Ok(Output::json(answer))
    }
}

/// Reads the file. Checks the first bytes before it reads the rest.
async fn read_image(cx: &Cx, path: &str) -> Result<(&'static str, Vec<u8>)> {
    let mut bytes = Vec::new();
    let mut media_type = None;
    loop {
        let (offset, length) = (bytes.len() as u64, Some(PIECE_BYTES));
        let read = FileRead { path: path.to_owned(), offset, length };
        let (facts, piece) = cx.files().read(read).await?;
        if media_type.is_none() {
            media_type = Some(image_media_type(&piece).ok_or_else(|| {
                let text = "its content is not PNG, JPEG, GIF or WebP";
                not_an_image_error(path, text).with_hint("read it as text, or convert it")
            })?);
        }
        let is_last = piece.is_empty() || offset + piece.len() as u64 >= facts.size;
        bytes.extend(piece);
        // The file may grow during the read.
        if bytes.len() as u64 > BYTES_MAX {
            return Err(image_too_large_error(path, bytes.len() as u64));
        }
        if let (true, Some(media_type)) = (is_last, media_type) {
            return Ok((media_type, bytes));
        }
    }
}

fn not_an_image_error(path: &str, why: &str) -> Error {
    Error::new(ErrorKind::InvalidArguments, format!("`{path}` is not an image: {why}"))
}

fn image_too_large_error(path: &str, bytes: u64) -> Error {
    // One decimal of a megabyte is precise enough for users.
    #[expect(clippy::cast_precision_loss, reason = "it is shown with one decimal")]
    let megabytes = bytes as f64 / (1024.0 * 1024.0);
    let text = format!("`{path}` is too large: {megabytes:.1} MB > 10 MB");
    Error::new(ErrorKind::LimitReached, text).with_hint("make a smaller copy and view that")
}

tool!(ViewImage);
