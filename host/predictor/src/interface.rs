//! What a throughput model must look like: its tensors, the meaning of their columns, and what its metadata carries.

use serde::{Deserialize, Serialize};

use crate::form::Form;

/// Inputs in the order in which a row stores them: name and columns, float32 `[N, columns]`.
pub(crate) const INPUTS: [(&str, usize); 6] =
    [("job", 9), ("gpu", 2), ("place", 4), ("post_mu", 6), ("post_l", 21), ("use_post", 1)];

/// Outputs, likewise.
pub(crate) const OUTPUTS: [(&str, usize); 6] =
    [("log_tput", 1), ("sd", 1), ("log_lo", 1), ("log_hi", 1), ("prior_mu", 6), ("prior_l", 21)];

/// Meaning of every column; a model trained for other columns says so in its metadata and is refused.
pub(crate) const FEATURES: &str = "job=kind_image,kind_audio,kind_text,described,activations_m,gmacs,params_m,\
params_known,batch_per_gpu;gpu=log_slowness,sd_log_slowness;place=cores_per_gpu,gpus,nodes,fetch_s_per_sample;\
theta=log_g,log_k,log_gamma,log_ar,log_an,log_gamma_net";

/// One row of the model's inputs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Row {
    pub job: [f32; 9],
    pub gpu: [f32; 2],
    pub place: [f32; 4],
    /// Mean and lower triangle (row-major) of a calibrated belief; `None` = the model's own prior.
    pub belief: Option<([f32; 6], [f32; 21])>,
}

/// One row of the model's outputs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Output {
    /// Natural logarithms of samples/s of the whole job.
    pub log_tput: f32,
    pub sd: f32,
    pub log_lo: f32,
    pub log_hi: f32,
    pub prior_mu: [f32; 6],
    pub prior_l: [f32; 21],
}

/// Error of a model on jobs that it was not trained on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HeldOut {
    /// Which curves: `image`, `sensitive`, …
    pub group: String,
    pub curves: u32,
    /// Observations of the unseen job before predicting; with 0 only the shape is judged.
    pub probes: u32,
    /// Mean absolute error of throughput over whole curves.
    pub error_percent: f64,
    /// How often the truth lies within low and high.
    pub band_cover_percent: f64,
}

/// What a model file says about itself.
#[derive(Clone, Debug)]
pub(crate) struct Card {
    pub version: String,
    pub form: Form,
    pub self_test: SelfTest,
    pub held_out: Vec<HeldOut>,
}

/// Inputs with expected outputs that the host replays before it trusts a file.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct SelfTest {
    /// Largest allowed difference of an output.
    pub tolerance: f64,
    pub cases: Vec<Case>,
}

/// One job at several allocations.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Case {
    pub name: String,
    pub job: [f32; 9],
    pub gpu: [f32; 2],
    pub place: Vec<[f32; 4]>,
    pub use_post: f32,
    pub post_mu: Option<[f32; 6]>,
    pub post_l: Option<Vec<f32>>,
    pub log_tput: Vec<f64>,
    pub sd: Vec<f64>,
    pub log_lo: Vec<f64>,
    pub log_hi: Vec<f64>,
}

impl Case {
    /// Rows to run; `None` when the belief is incomplete.
    pub fn rows(&self) -> Option<Vec<Row>> {
        let belief = match (self.use_post > 0.0, self.post_mu, &self.post_l) {
            (false, ..) => None,
            (true, Some(mu), Some(lower)) => Some((mu, <[f32; 21]>::try_from(lower.as_slice()).ok()?)),
            _ => return None,
        };
        Some(self.place.iter().map(|&place| Row { job: self.job, gpu: self.gpu, place, belief }).collect())
    }

    /// Expected (log_tput, sd, log_lo, log_hi) by row; `None` when the columns differ in length.
    pub fn expected(&self) -> Option<Vec<[f64; 4]>> {
        let n = self.place.len();
        if [&self.log_tput, &self.sd, &self.log_lo, &self.log_hi].iter().any(|column| column.len() != n) {
            return None;
        }
        let columns = self.log_tput.iter().zip(&self.sd).zip(self.log_lo.iter().zip(&self.log_hi));
        Some(columns.map(|((&mean, &sd), (&low, &high))| [mean, sd, low, high]).collect())
    }
}
