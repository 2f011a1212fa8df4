//! Reads the header of a GGUF file, and refuses files that cannot run with an error of one line.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use candle_core::quantized::gguf_file::{Content, Value};
use jaato_plugin_sdk::types::{Error, ErrorKind, Result};
use std::fmt::Display;

/// The only supported architecture.
pub const ARCHITECTURE: &str = "qwen2";

/// Limits of a header, so that a crafted file cannot cause huge allocations.
const LAYERS_MAX: usize = 256;
const WIDTH_MAX: usize = 1 << 16;
const CONTEXT_MAX: usize = 1 << 20;

/// A GGUF file with a parsed header and complete tensors.
pub struct GgufFile {
    path: PathBuf,
    /// The metadata and the positions of the tensors.
    pub content: Content,
    /// Size of the file in bytes.
    pub file_bytes: u64,
}

/// The shape of the model, from the header.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelShape {
    /// Number of transformer layers.
    pub layers: usize,
    /// Width of the residual stream.
    pub hidden: usize,
    /// Number of query heads.
    pub heads: usize,
    /// Number of key and value heads, which divides `heads`.
    pub kv_heads: usize,
    /// Width of one head.
    pub head_width: usize,
    /// Longest context that the model was trained for.
    pub context_limit: usize,
    /// Epsilon of the norms.
    pub norm_epsilon: f64,
    /// Base of the rotary position embedding.
    pub rope_base: f64,
}

impl GgufFile {
    /// Reads the header and checks that the file contains every tensor.
    ///
    /// # Errors
    /// Kind `io` if the file cannot be read, or `configuration` if it is not a GGUF file, is
    /// truncated or has another architecture.
    pub fn open(path: &Path) -> Result<Self> {
        let file = File::open(path).map_err(|error| {
            Error::new(
                ErrorKind::Io,
                format!("cannot open the weights `{}`: {error}", path.display()),
            )
        })?;
        let file_bytes = file.metadata().map(|data| data.len()).unwrap_or_default();
        let content = Content::read(&mut BufReader::with_capacity(1 << 20, file))
            .map_err(|error| broken_file_error(path, &first_line(&error)))?;
        let gguf = Self { path: path.to_owned(), content, file_bytes };
        gguf.check_architecture()?;
        gguf.check_tensors()?;
        Ok(gguf)
    }

    /// Returns the file's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the shape of the model.
    ///
    /// # Errors
    /// Kind `configuration` if a key is missing or invalid.
    pub fn model_shape(&self) -> Result<ModelShape> {
        let heads = self.read_number("attention.head_count", WIDTH_MAX)?;
        let hidden = self.read_number("embedding_length", WIDTH_MAX)?;
        let shape = ModelShape {
            layers: self.read_number("block_count", LAYERS_MAX)?,
            hidden,
            heads,
            kv_heads: self.read_number("attention.head_count_kv", WIDTH_MAX)?,
            head_width: hidden / heads,
            context_limit: self.read_number("context_length", CONTEXT_MAX)?,
            norm_epsilon: self.read_float("attention.layer_norm_rms_epsilon")?,
            rope_base: self.read_float("rope.freq_base")?,
        };
        if !hidden.is_multiple_of(heads)
            || !heads.is_multiple_of(shape.kv_heads)
            || !shape.head_width.is_multiple_of(2)
        {
            return Err(broken_file_error(
                &self.path,
                &format!(
                    "{hidden} values do not divide into {heads} heads over {}",
                    shape.kv_heads
                ),
            ));
        }
        Ok(shape)
    }

    /// Returns a metadata value, or an error that names the key.
    ///
    /// # Errors
    /// Kind `configuration` if the key is missing.
    pub fn metadata_value(&self, key: &str) -> Result<&Value> {
        self.content
            .metadata
            .get(key)
            .ok_or_else(|| broken_file_error(&self.path, &format!("its header has no `{key}`")))
    }

    fn read_number(&self, key: &str, max: usize) -> Result<usize> {
        let key = format!("{ARCHITECTURE}.{key}");
        let number = self
            .metadata_value(&key)?
            .to_u64()
            .ok()
            .and_then(|number| usize::try_from(number).ok());
        number.filter(|&number| number > 0 && number <= max).ok_or_else(|| {
            broken_file_error(&self.path, &format!("its `{key}` is not a number from 1 to {max}"))
        })
    }

    fn read_float(&self, key: &str) -> Result<f64> {
        let key = format!("{ARCHITECTURE}.{key}");
        let float = self
            .metadata_value(&key)?
            .to_f32()
            .ok()
            .filter(|float| float.is_finite() && *float > 0.0);
        float.map(f64::from).ok_or_else(|| {
            broken_file_error(&self.path, &format!("its `{key}` is not a positive number"))
        })
    }

    fn check_architecture(&self) -> Result<()> {
        let has = self
            .metadata_value("general.architecture")?
            .to_string()
            .map_err(|error| broken_file_error(&self.path, &first_line(&error)))?;
        if has == ARCHITECTURE {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::Configuration,
            format!(
                "the model in `{}` has the architecture `{has}`, this plugin runs `{ARCHITECTURE}`",
                self.path.display()
            ),
        )
        .with_hint("import a GGUF of Qwen2 or Qwen2.5, or use another provider for this model"))
    }

    fn check_tensors(&self) -> Result<()> {
        for (name, info) in &self.content.tensor_infos {
            // Not `elem_count`, which overflows on a damaged header.
            let sizes = info.shape.dims().iter();
            let elements = sizes.fold(1_u64, |all, &size| all.saturating_mul(size as u64));
            let blocks = elements.div_ceil(info.ggml_dtype.block_size() as u64);
            let bytes = blocks.saturating_mul(info.ggml_dtype.type_size() as u64);
            let end =
                self.content.tensor_data_offset.saturating_add(info.offset).saturating_add(bytes);
            if end > self.file_bytes {
                return Err(broken_file_error(
                    &self.path,
                    &format!("`{name}` ends at byte {end}, the file has {}", self.file_bytes),
                ));
            }
        }
        Ok(())
    }
}

/// Returns the error for a file that is not a usable GGUF file.
pub fn broken_file_error(path: &Path, why: &str) -> Error {
    Error::new(
        ErrorKind::Configuration,
        format!("the weights `{}` cannot be used: {why}", path.display()),
    )
    .with_hint("remove the file and fetch it again with `jaato model pull`")
}

/// Returns the first line of a runtime's error. The other lines are a backtrace.
pub fn first_line(error: &impl Display) -> String {
    error.to_string().lines().next().unwrap_or("unknown error").to_owned()
}
