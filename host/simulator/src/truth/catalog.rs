//! Which models the ground truth knows, by key.
//!
//! A key is a model's name or alias (`resnet18`, `res18`), `gavel/` + a job type of Gavel's tables,
//! `portable/` + a name (the same speed on every GPU kind, no effect of memory), or [`CPU_ONLY`].

use std::sync::OnceLock;

use coretuner_core::catalog::{InputKind, ModelDescriptor};

use super::gavel::{self, GavelKind};
use super::ground::KindTruth;
use super::surface::Surface;
use super::table::CpuTable;

const MODELS: &str = include_str!("../../data/models.csv");
const TABLE: &str = include_str!("../../data/synergy_table.csv");

/// Key of jobs without GPUs.
pub(crate) const CPU_ONLY: &str = "cpu-only";
/// Prefix of Gavel's job types.
pub(crate) const GAVEL: &str = "gavel/";
/// Prefix of models that run alike everywhere.
pub(crate) const PORTABLE: &str = "portable/";

/// The ground truth does not know something.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TruthError {
    #[error("unknown model `{0}`: `coretuner trace models` lists the known ones")]
    UnknownModel(String),
    #[error("model `{model}` has no known speed on GPU kind `{gpu_kind}`")]
    UnknownGpuKind { model: String, gpu_kind: String },
    #[error(
        "model `{model}` was not measured on several numbers of GPUs: an elastic job (`workers_max` above `workers`) needs \
         one of `gavel/…`"
    )]
    NotElastic { model: String },
}

/// Synergy's three classes of models, for mixes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelClass {
    Image,
    Language,
    Speech,
}

/// The allocation per GPU that Synergy's released simulator asks for, and the one speed-up that it gives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Demand {
    pub(crate) cores: f64,
    pub(crate) memory_mib: u32,
    pub(crate) speedup: f64,
}

/// A model found by key.
pub(crate) struct Known {
    pub(crate) descriptor: Option<ModelDescriptor>,
    pub(crate) truth: KindTruth,
}

struct Model {
    alias: String,
    class: Option<ModelClass>,
    descriptor: ModelDescriptor,
    truth: KindTruth,
}

/// Keys of all known models, sorted.
pub fn known_models() -> Vec<String> {
    let gavel = GavelKind::names().map(|name| format!("{GAVEL}{name}"));
    let mut names: Vec<String> = models().iter().map(|model| model.descriptor.name.clone()).chain(gavel).collect();
    names.sort();
    names
}

/// Names of the models of `class`, in the file's order.
pub(crate) fn models_of(class: ModelClass) -> Vec<&'static str> {
    models().iter().filter(|model| model.class == Some(class)).map(|model| model.descriptor.name.as_str()).collect()
}

/// Finds what `key` names.
pub(crate) fn lookup(key: &str) -> Result<Known, TruthError> {
    let unknown = || TruthError::UnknownModel(key.to_owned());
    if key == CPU_ONLY {
        return Ok(Known { descriptor: None, truth: KindTruth::CpuOnly });
    }
    if let Some(job_type) = key.strip_prefix(GAVEL) {
        let kind = GavelKind::find(job_type).ok_or_else(unknown)?;
        return Ok(Known { descriptor: Some(gavel_descriptor(job_type)), truth: KindTruth::Gavel(kind) });
    }
    let (name, portable) = match key.strip_prefix(PORTABLE) {
        Some(name) => (name, true),
        None => (key, false),
    };
    let model =
        models().iter().find(|model| model.descriptor.name == name || model.alias == name).ok_or_else(unknown)?;
    Ok(known(model, portable))
}

fn known(model: &Model, portable: bool) -> Known {
    let mut descriptor = model.descriptor.clone();
    let mut truth = model.truth.clone();
    if let (true, KindTruth::Measured(measured)) = (portable, &mut truth) {
        measured.portable = true;
        descriptor.dataset_mib = None;
    }
    Known { descriptor: Some(descriptor), truth }
}

fn gavel_descriptor(job_type: &str) -> ModelDescriptor {
    let name = gavel::model_name(job_type);
    let known = match name {
        "ResNet-18" => "resnet18",
        "ResNet-50" => "resnet50",
        _ => "",
    };
    let input = match name {
        "ResNet-18" | "ResNet-50" | "CycleGAN" => InputKind::Image,
        "LM" | "Transformer" => InputKind::Text,
        _ => InputKind::Other,
    };
    let base = models().iter().find(|model| model.descriptor.name == known).map(|model| model.descriptor.clone());
    // ResNet-18 runs on CIFAR: its parameters are the known ones, its activations are not.
    let mut descriptor = base.unwrap_or_default();
    if name != "ResNet-50" {
        (descriptor.activations_m, descriptor.gmacs, descriptor.bytes_per_sample) = (None, None, None);
    }
    ModelDescriptor {
        name: job_type.to_owned(),
        input,
        batch_per_gpu: gavel::batch_size(job_type),
        dataset_mib: None,
        ..descriptor
    }
}

fn models() -> &'static [Model] {
    static ALL: OnceLock<Vec<Model>> = OnceLock::new();
    // The files are compiled in; a test checks that no line is lost here.
    ALL.get_or_init(|| MODELS.lines().skip(1).filter_map(parse_model).collect())
}

fn parse_model(line: &str) -> Option<Model> {
    let cells: Vec<&str> = line.split(',').collect();
    let number = |index: usize| cells.get(index).and_then(|cell| cell.parse::<f64>().ok());
    let whole = |index: usize| cells.get(index).and_then(|cell| cell.parse::<u32>().ok());
    let descriptor = ModelDescriptor {
        name: (*cells.first()?).to_owned(),
        input: parse_input(cells.get(3)?),
        activations_m: number(4),
        gmacs: number(5),
        params_m: number(6),
        batch_per_gpu: whole(7)?,
        bytes_per_sample: number(8),
        dataset_mib: whole(9),
    };
    let demand = match (number(11), whole(12), number(13)) {
        (Some(cores), Some(memory_mib), Some(speedup)) => Some(Demand { cores, memory_mib, speedup }),
        _ => None,
    };
    let iteration_s = number(10)?;
    let truth = Measured {
        iteration_s,
        table: parse_table(&descriptor.name),
        figure: parse_figure(&number, iteration_s),
        demand,
        portable: false,
    };
    Some(Model {
        alias: (*cells.get(1)?).to_owned(),
        class: parse_class(cells.get(2)?),
        descriptor,
        truth: KindTruth::Measured(Box::new(truth)),
    })
}

/// What was measured of one model on one V100.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Measured {
    /// Seconds per iteration with 3 cores and 62.5 GB per GPU.
    pub(crate) iteration_s: f64,
    pub(crate) table: Option<CpuTable>,
    /// Figure 2's curve, scaled so that 3 cores give `iteration_s`.
    pub(crate) figure: Option<Surface>,
    pub(crate) demand: Option<Demand>,
    /// The same speed on every GPU kind and with any memory (rule R6).
    pub(crate) portable: bool,
}

fn parse_figure(number: &dyn Fn(usize) -> Option<f64>, iteration_s: f64) -> Option<Surface> {
    let epoch = Surface { gpu_s: number(14)?, cpu_core_s: number(15)?, gamma: number(16)? };
    Some(epoch.scaled(iteration_s / epoch.iteration_s(3.0)))
}

fn parse_table(name: &str) -> Option<CpuTable> {
    let mut rows = [[0.0; 5]; 9];
    let mut lines = TABLE.lines().filter(|line| line.split(',').next() == Some(name));
    for row in &mut rows {
        let mut cells = lines.next()?.split(',').skip(2);
        for cell in row {
            *cell = cells.next()?.parse().ok()?;
        }
    }
    Some(CpuTable { rows })
}

fn parse_class(cell: &str) -> Option<ModelClass> {
    match cell {
        "image" => Some(ModelClass::Image),
        "language" => Some(ModelClass::Language),
        "speech" => Some(ModelClass::Speech),
        _ => None,
    }
}

fn parse_input(cell: &str) -> InputKind {
    match cell {
        "image" => InputKind::Image,
        "audio" => InputKind::Audio,
        "text" => InputKind::Text,
        _ => InputKind::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_of_the_files_is_lost() {
        assert_eq!(models().len(), MODELS.lines().count() - 1);
        let measured = |model: &&Model| matches!(&model.truth, KindTruth::Measured(m) if m.table.is_some());
        assert_eq!(models().iter().filter(measured).count() * 9, TABLE.lines().count() - 1);
        assert_eq!(known_models().len(), models().len() + 26);
    }

    #[test]
    fn keys_name_models_aliases_and_variants() {
        let name = |key| lookup(key).map(|known| known.descriptor.map(|descriptor| descriptor.name));
        assert_eq!(name("res18"), Ok(Some("resnet18".to_owned())));
        assert_eq!(name("portable/resnet18"), Ok(Some("resnet18".to_owned())));
        assert_eq!(name("gavel/A3C"), Ok(Some("A3C".to_owned())));
        assert_eq!(name("cpu-only"), Ok(None));
        assert_eq!(name("resnet99"), Err(TruthError::UnknownModel("resnet99".to_owned())));
    }

    #[test]
    fn classes_are_those_of_the_published_mix() {
        assert_eq!(models_of(ModelClass::Image), ["alexnet", "mobilenet", "resnet18", "resnet50", "shufflenet"]);
        assert_eq!(models_of(ModelClass::Language), ["gnmt", "transformer_xl", "lstm"]);
        assert_eq!(models_of(ModelClass::Speech), ["audio_m5", "deepspeech"]);
    }
}
