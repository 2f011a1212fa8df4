//! The model: embedding, layers, logits, and the cache that implements the engine trait.

use std::sync::Arc;

use candle_core::quantized::QTensor;
use candle_core::{Device, Result as CandleResult, Tensor};
use candle_nn::ops::rms_norm;
use jaato_plugin_sdk::types::{Error, ErrorKind, Result};
use rayon::prelude::*;

use super::cache::LayerCache;
use super::layer::{ForwardPass, Qwen2Layer};
use super::weights::{QuantisedLinear, TensorReader};
use crate::cancel::CancelFlag;
use crate::engine::InferenceEngine;
use crate::gguf::{GgufFile, ModelShape, broken_file_error, first_line};

/// The number of tokens that pass through the layers together. A layer takes about 23 ms for them
/// on two cores, and the cancel flag is checked between layers. Larger chunks are only a few
/// percent faster.
const CHUNK_TOKENS: usize = 64;

/// A Qwen2 model with the cache of one sequence.
pub struct Qwen2 {
    shape: ModelShape,
    context_limit: usize,
    embedding: Arc<QTensor>,
    layers: Vec<Qwen2Layer>,
    final_norm: Tensor,
    logits: QuantisedLinear,
    caches: Vec<LayerCache>,
    len: usize,
}

impl Qwen2 {
    /// Loads the weights. `context_tokens_max` lowers the model's own context limit.
    ///
    /// # Errors
    /// Kind `configuration` if a tensor is missing or has the wrong shape.
    pub fn load_gguf(gguf: &GgufFile, context_tokens_max: usize) -> Result<Self> {
        let shape = gguf.model_shape()?;
        Self::read_weights(gguf, shape, context_tokens_max)
            .map_err(|error| broken_file_error(gguf.path(), &first_line(&error)))
    }

    fn read_weights(
        gguf: &GgufFile,
        shape: ModelShape,
        context_tokens_max: usize,
    ) -> CandleResult<Self> {
        let context_limit = shape.context_limit.min(context_tokens_max);
        let layers = (0..shape.layers)
            .into_par_iter()
            .map_init(
                || TensorReader::open(gguf),
                |weights, index| match weights {
                    Ok(weights) => Qwen2Layer::load_layer(weights, index),
                    Err(error) => Err(candle_core::Error::msg(error.to_string())),
                },
            )
            .collect::<CandleResult<Vec<_>>>()?;
        let mut weights = TensorReader::open(gguf)?;
        let embedding = Arc::new(weights.read_quantised("token_embd.weight")?);
        if embedding.shape().dims().get(1) != Some(&shape.hidden) {
            candle_core::bail!("`token_embd.weight` has the shape {:?}", embedding.shape());
        }
        let logits = if weights.has_tensor("output.weight") {
            weights.read_linear("output")?
        } else {
            QuantisedLinear::from_weight(Arc::clone(&embedding))?
        };
        let caches = (0..shape.layers)
            .map(|_| LayerCache::new(context_limit, shape.kv_heads, shape.head_width))
            .collect::<CandleResult<Vec<_>>>()?;
        Ok(Self {
            final_norm: weights.read_floats("output_norm.weight")?,
            shape,
            context_limit,
            embedding,
            layers,
            logits,
            caches,
            len: 0,
        })
    }

    /// Computes one chunk. Returns the hidden state of its last token, or `None` if cancelled.
    fn compute_chunk(
        &mut self,
        tokens: &[u32],
        cancel: &CancelFlag,
    ) -> CandleResult<Option<Tensor>> {
        let ids = Tensor::new(tokens, &Device::Cpu)?;
        let mut x = self.embedding.embedding(&ids)?;
        let (cos, sin) = position_rotations(&self.shape, self.len, tokens.len())?;
        let mask = if ForwardPass::needs_mask(tokens.len()) {
            Some(causal_mask(self.len, tokens.len())?)
        } else {
            None
        };
        let pass = ForwardPass { shape: &self.shape, start: self.len, cos, sin, mask };
        for (layer, cache) in self.layers.iter().zip(&mut self.caches) {
            if cancel.is_cancelled() {
                return Ok(None);
            }
            x = layer.forward_layer(&x, &pass, cache)?;
        }
        self.len += tokens.len();
        x.narrow(0, tokens.len() - 1, 1).map(Some)
    }

    fn compute_logits(&self, hidden: &Tensor) -> CandleResult<Vec<f32>> {
        let normed = rms_norm(hidden, &self.final_norm, self.shape.norm_epsilon as f32)?;
        self.logits.multiply(&normed)?.flatten_all()?.to_vec1()
    }
}

impl InferenceEngine for Qwen2 {
    fn context_limit(&self) -> usize {
        self.context_limit
    }

    fn len(&self) -> usize {
        self.len
    }

    fn forward_tokens(&mut self, tokens: &[u32], cancel: &CancelFlag) -> Result<Vec<f32>> {
        if tokens.is_empty() || self.len + tokens.len() > self.context_limit {
            return Err(Error::new(
                ErrorKind::ContextOverflow,
                format!(
                    "{} tokens after {} do not fit into a context of {}",
                    tokens.len(),
                    self.len,
                    self.context_limit
                ),
            ));
        }
        let mut last = None;
        for chunk in tokens.chunks(CHUNK_TOKENS) {
            cancel.check_cancelled()?;
            last = self.compute_chunk(chunk, cancel).map_err(|error| model_error(&error))?;
            if last.is_none() {
                return Err(Error::cancelled());
            }
        }
        let hidden = last.ok_or_else(Error::cancelled)?;
        self.compute_logits(&hidden).map_err(|error| model_error(&error))
    }

    fn truncate_cache(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    fn state_bytes_per_token(&self) -> usize {
        self.caches.iter().map(|cache| cache.row_width() * 4).sum()
    }

    fn save_state(&self, len: usize) -> Result<Vec<u8>> {
        if len > self.len {
            return Err(Error::new(
                ErrorKind::Provider,
                format!("cannot save the state of {len} tokens, the cache holds {}", self.len),
            ));
        }
        let mut out = Vec::with_capacity(len * self.state_bytes_per_token());
        for cache in &self.caches {
            cache.save_rows(len, &mut out).map_err(|error| model_error(&error))?;
        }
        Ok(out)
    }

    fn load_state(&mut self, bytes: &[u8], stored: usize, len: usize) -> Result<()> {
        self.len = 0;
        let has = bytes.len();
        let wants = stored.checked_mul(self.state_bytes_per_token());
        if wants != Some(has) || len > stored || len > self.context_limit {
            return Err(Error::new(
                ErrorKind::Provider,
                format!(
                    "a saved state of {has} bytes does not match {stored} tokens; it is ignored"
                ),
            ));
        }
        let mut rest = bytes;
        for cache in &mut self.caches {
            let (layer, others) = rest.split_at(stored * cache.row_width() * 4);
            cache.load_rows(layer, stored, len).map_err(|error| model_error(&error))?;
            rest = others;
        }
        self.len = len;
        Ok(())
    }
}

fn model_error(error: &candle_core::Error) -> Error {
    Error::new(ErrorKind::Provider, format!("the local model failed: {}", first_line(error)))
}

/// Returns cosine and sine for the positions from `start`, `tokens × head_width / 2`.
///
/// They are computed for every chunk, because a table for the whole context would be larger and not
/// faster.
fn position_rotations(
    shape: &ModelShape,
    start: usize,
    tokens: usize,
) -> CandleResult<(Tensor, Tensor)> {
    let half = shape.head_width / 2;
    let angles: Vec<f64> = (start..start + tokens)
        .flat_map(|position| {
            (0..half).map(move |index| {
                let exponent = (2 * index) as f64 / shape.head_width as f64;
                position as f64 / shape.rope_base.powf(exponent)
            })
        })
        .collect();
    let table = |of: fn(f64) -> f64| {
        let values = angles.iter().map(|&angle| of(angle) as f32).collect();
        Tensor::from_vec(values, (tokens, half), &Device::Cpu)
    };
    Ok((table(f64::cos)?, table(f64::sin)?))
}

/// Returns the mask that is added to the scores of `tokens` new tokens over all rows so far: 0 or
/// minus infinity.
fn causal_mask(start: usize, tokens: usize) -> CandleResult<Tensor> {
    let rows = start + tokens;
    let values = (0..tokens)
        .flat_map(|token| {
            (0..rows).map(move |row| if row <= start + token { 0.0 } else { f32::NEG_INFINITY })
        })
        .collect();
    Tensor::from_vec(values, (tokens, rows), &Device::Cpu)
}
