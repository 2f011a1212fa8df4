//! Reads tensors from a GGUF file in the form that the computation needs.

use std::fs::File;
use std::io::BufReader;
use std::sync::Arc;

use candle_core::quantized::{GgmlDType, QMatMul, QTensor};
use candle_core::{Device, Module, Result, Tensor};

use crate::gguf::GgufFile;

/// Reads the tensors of one file. Each loading thread has its own reader.
pub(super) struct TensorReader<'a> {
    gguf: &'a GgufFile,
    file: BufReader<File>,
}

impl<'a> TensorReader<'a> {
    pub(super) fn open(gguf: &'a GgufFile) -> Result<Self> {
        Ok(Self { gguf, file: BufReader::new(File::open(gguf.path())?) })
    }

    pub(super) fn has_tensor(&self, name: &str) -> bool {
        self.gguf.content.tensor_infos.contains_key(name)
    }

    /// Reads a tensor as it is stored.
    ///
    /// Q5_0 has no vector kernel and would be eight times slower. It is requantised to Q8_0, which
    /// is a little larger and preserves the precision of Q5_0.
    pub(super) fn read_quantised(&mut self, name: &str) -> Result<QTensor> {
        let tensor = self.gguf.content.tensor(&mut self.file, name, &Device::Cpu)?;
        if tensor.dtype() == GgmlDType::Q5_0 {
            return QTensor::quantize(&tensor.dequantize(&Device::Cpu)?, GgmlDType::Q8_0);
        }
        Ok(tensor)
    }

    /// Reads a small tensor, such as a norm or a bias, as floats.
    pub(super) fn read_floats(&mut self, name: &str) -> Result<Tensor> {
        self.read_quantised(name)?.dequantize(&Device::Cpu)
    }

    pub(super) fn read_linear(&mut self, name: &str) -> Result<QuantisedLinear> {
        let weight = QMatMul::from_arc(Arc::new(self.read_quantised(&format!("{name}.weight"))?))?;
        let bias_name = format!("{name}.bias");
        let bias =
            if self.has_tensor(&bias_name) { Some(self.read_floats(&bias_name)?) } else { None };
        Ok(QuantisedLinear { weight, bias })
    }
}

/// A quantised matrix with an optional bias.
pub(super) struct QuantisedLinear {
    weight: QMatMul,
    bias: Option<Tensor>,
}

impl QuantisedLinear {
    pub(super) fn from_weight(weight: Arc<QTensor>) -> Result<Self> {
        Ok(Self { weight: QMatMul::from_arc(weight)?, bias: None })
    }

    pub(super) fn multiply(&self, x: &Tensor) -> Result<Tensor> {
        let y = self.weight.forward(x)?;
        match &self.bias {
            Some(bias) => y.broadcast_add(bias),
            None => Ok(y),
        }
    }
}
