//! Predicts how fast training jobs run: an ONNX model run through ONNX Runtime, calibrated by observations.
//!
//! [`OnnxRuntime`] loads the library, [`OnnxPredictor`] opens a model (refusing one whose interface or self-test does not
//! match) and answers [`coretuner_core::port::Predictor`]. The model's form, inputs and training: `models/README.md`.
#![deny(unsafe_code)]

mod assignment;
mod cache;
mod calibration;
mod features;
mod form;
mod gpu;
mod interface;
mod matrix;
mod model;
mod predictor;
mod probe;
mod runtime;
mod session;
mod surface;

pub use calibration::{Observation, ObserveError};
pub use interface::HeldOut;
pub use model::{ModelError, ModelSource};
pub use predictor::{OnnxPredictor, Options};
pub use runtime::{OnnxRuntime, RuntimeError};
pub use session::Provider;
