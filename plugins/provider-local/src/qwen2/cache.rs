//! The keys and values of one layer: one buffer each, with a length that the model tracks.

use candle_core::{DType, Device, Result, Tensor};
use half::f16;
use rayon::prelude::*;

/// The initial number of rows, which is enough for a question with its tools.
const ROWS_AT_START: usize = 1024;

/// The keys and values of one layer, `rows × (kv_heads × head_width)`.
///
/// The buffers double in size up to the context limit, because the whole context at once would take
/// two gigabytes. Rows beyond the model's length are leftovers, and are never read.
pub(super) struct LayerCache {
    keys: Tensor,
    values: Tensor,
    rows_max: usize,
    kv_heads: usize,
    head_width: usize,
}

impl LayerCache {
    pub(super) fn new(rows_max: usize, kv_heads: usize, head_width: usize) -> Result<Self> {
        let shape = (ROWS_AT_START.min(rows_max), kv_heads, head_width);
        let keys = Tensor::zeros(shape, DType::F32, &Device::Cpu)?;
        let values = Tensor::zeros(shape, DType::F32, &Device::Cpu)?;
        Ok(Self { keys, values, rows_max, kv_heads, head_width })
    }

    /// Returns the number of values in one row.
    pub(super) fn row_width(&self) -> usize {
        self.kv_heads * self.head_width
    }

    /// Writes rows from position `start`, and returns views of all rows so far, `rows × heads ×
    /// width`.
    pub(super) fn append_rows(
        &mut self,
        start: usize,
        keys: &Tensor,
        values: &Tensor,
    ) -> Result<(Tensor, Tensor)> {
        let len = start + keys.dim(0)?;
        self.reserve_rows(start, len)?;
        self.keys.slice_set(&keys.contiguous()?, 0, start)?;
        self.values.slice_set(&values.contiguous()?, 0, start)?;
        Ok((self.keys.narrow(0, 0, len)?, self.values.narrow(0, 0, len)?))
    }

    /// Makes room for `rows` rows and keeps the first `keep`.
    fn reserve_rows(&mut self, keep: usize, rows: usize) -> Result<()> {
        let has = self.keys.dim(0)?;
        if rows <= has {
            return Ok(());
        }
        let rows = (has * 2).max(rows).min(self.rows_max);
        for buffer in [&mut self.keys, &mut self.values] {
            let larger =
                Tensor::zeros((rows, self.kv_heads, self.head_width), DType::F32, &Device::Cpu)?;
            if keep > 0 {
                larger.slice_set(&buffer.narrow(0, 0, keep)?, 0, 0)?;
            }
            *buffer = larger;
        }
        Ok(())
    }

    /// Appends the first `len` rows of keys, then of values, as little-endian half floats.
    pub(super) fn save_rows(&self, len: usize, out: &mut Vec<u8>) -> Result<()> {
        for buffer in [&self.keys, &self.values] {
            let floats = buffer.narrow(0, 0, len)?.flatten_all()?.to_vec1::<f32>()?;
            out.extend(floats.iter().flat_map(|&float| f16::from_f32(float).to_le_bytes()));
        }
        Ok(())
    }

    /// Loads the first `len` of `stored` rows of keys and values from the output of
    /// [`LayerCache::save_rows`].
    pub(super) fn load_rows(&mut self, bytes: &[u8], stored: usize, len: usize) -> Result<()> {
        let row_bytes = self.row_width() * 2;
        let (keys, values) = bytes.split_at(stored * row_bytes);
        let shape = (len, self.kv_heads, self.head_width);
        let read = |bytes: &[u8]| {
            let floats: Vec<f32> = bytes[..len * row_bytes]
                .par_chunks_exact(2)
                .with_min_len(1 << 14)
                .map(|half| f16::from_le_bytes([half[0], half[1]]).to_f32())
                .collect();
            Tensor::from_vec(floats, shape, &Device::Cpu)
        };
        self.append_rows(0, &read(keys)?, &read(values)?)?;
        Ok(())
    }
}
