//! One transformer layer.

use candle_core::{D, Result, Tensor};
use candle_nn::attention::{AttnMask, flash_attn};
use candle_nn::ops::{rms_norm, softmax_last_dim};
use candle_nn::rotary_emb::rope_thd;

use super::cache::LayerCache;
use super::weights::{QuantisedLinear, TensorReader};
use crate::gguf::ModelShape;

/// The maximum number of new tokens for which the fused attention is faster than matrix products.
const FUSED_TOKENS_MAX: usize = 7;

/// The weights of one layer.
pub(super) struct Qwen2Layer {
    attention_norm: Tensor,
    queries: QuantisedLinear,
    keys: QuantisedLinear,
    values: QuantisedLinear,
    output: QuantisedLinear,
    feed_norm: Tensor,
    gate: QuantisedLinear,
    up: QuantisedLinear,
    down: QuantisedLinear,
}

/// The state that all layers share while some tokens pass through.
pub(super) struct ForwardPass<'a> {
    pub(super) shape: &'a ModelShape,
    /// The position of the first new token.
    pub(super) start: usize,
    pub(super) cos: Tensor,
    pub(super) sin: Tensor,
    /// The mask that is added to the scores. `None` if the fused attention applies the mask itself.
    pub(super) mask: Option<Tensor>,
}

impl ForwardPass<'_> {
    /// Returns true if this many new tokens need a mask.
    pub(super) fn needs_mask(tokens: usize) -> bool {
        tokens > FUSED_TOKENS_MAX
    }
}

impl Qwen2Layer {
    pub(super) fn load_layer(weights: &mut TensorReader<'_>, index: usize) -> Result<Self> {
        let name = |part: &str| format!("blk.{index}.{part}");
        Ok(Self {
            attention_norm: weights.read_floats(&name("attn_norm.weight"))?,
            queries: weights.read_linear(&name("attn_q"))?,
            keys: weights.read_linear(&name("attn_k"))?,
            values: weights.read_linear(&name("attn_v"))?,
            output: weights.read_linear(&name("attn_output"))?,
            feed_norm: weights.read_floats(&name("ffn_norm.weight"))?,
            gate: weights.read_linear(&name("ffn_gate"))?,
            up: weights.read_linear(&name("ffn_up"))?,
            down: weights.read_linear(&name("ffn_down"))?,
        })
    }

    pub(super) fn forward_layer(
        &self,
        x: &Tensor,
        pass: &ForwardPass<'_>,
        cache: &mut LayerCache,
    ) -> Result<Tensor> {
        let epsilon = pass.shape.norm_epsilon as f32;
        let normed = rms_norm(x, &self.attention_norm, epsilon)?;
        let x = (x + self.attend(&normed, pass, cache)?)?;
        let normed = rms_norm(&x, &self.feed_norm, epsilon)?;
        let gated = (self.gate.multiply(&normed)?.silu()? * self.up.multiply(&normed)?)?;
        x + self.down.multiply(&gated)?
    }

    fn attend(&self, x: &Tensor, pass: &ForwardPass<'_>, cache: &mut LayerCache) -> Result<Tensor> {
        let tokens = x.dim(0)?;
        let ModelShape { heads, kv_heads, head_width, .. } = *pass.shape;
        let queries = self.queries.multiply(x)?.reshape((1, tokens, heads, head_width))?;
        let keys = self.keys.multiply(x)?.reshape((1, tokens, kv_heads, head_width))?;
        let values = self.values.multiply(x)?.reshape((tokens, kv_heads, head_width))?;
        let queries = rope_thd(&queries, &pass.cos, &pass.sin)?;
        let keys = rope_thd(&keys, &pass.cos, &pass.sin)?.squeeze(0)?;
        let (keys, values) = cache.append_rows(pass.start, &keys, &values)?;
        let mixed = match &pass.mask {
            Some(mask) => attend_by_products(&queries.squeeze(0)?, &keys, &values, mask)?,
            None => attend_fused(&queries, &keys, &values, pass.start)?,
        };
        self.output.multiply(&mixed.reshape((tokens, heads * head_width))?)
    }
}

/// Maps queries `1 × tokens × heads × width` to `tokens × heads × width`.
fn attend_fused(queries: &Tensor, keys: &Tensor, values: &Tensor, start: usize) -> Result<Tensor> {
    let scale = 1.0 / (queries.dim(D::Minus1)? as f32).sqrt();
    let mask = AttnMask::causal_with_offset(start);
    let (keys, values) = (keys.unsqueeze(0)?, values.unsqueeze(0)?);
    flash_attn::<f32>(queries, &keys, &values, scale, mask, None, None)?
        .squeeze(0)?
        .transpose(0, 1)?
        .contiguous()
}

/// Maps queries `tokens × heads × width` to `tokens × heads × width`.
///
/// Heads that share keys are stacked as rows of one product, so that keys are not repeated.
fn attend_by_products(
    queries: &Tensor,
    keys: &Tensor,
    values: &Tensor,
    mask: &Tensor,
) -> Result<Tensor> {
    let (tokens, heads, width) = queries.dims3()?;
    let (rows, kv_heads, _) = keys.dims3()?;
    let group = heads / kv_heads;
    let scale = 1.0 / (width as f64).sqrt();
    let queries = (queries.transpose(0, 1)?.contiguous()? * scale)?;
    let queries = queries.reshape((kv_heads, group * tokens, width))?;
    let keys = keys.transpose(0, 1)?.transpose(1, 2)?;
    let scores = queries.matmul(&keys)?.reshape((heads, tokens, rows))?;
    let weights = softmax_last_dim(&scores.broadcast_add(mask)?)?;
    let weights = weights.reshape((kv_heads, group * tokens, rows))?;
    let mixed = weights.matmul(&values.transpose(0, 1)?)?.reshape((heads, tokens, width))?;
    mixed.transpose(0, 1)?.contiguous()
}
