//! The rules that fill what a trace lacks. Each has an id that every result names.

use serde::{Deserialize, Serialize};

use crate::random::Random;
use crate::truth::ModelClass;
use crate::truth::models_of;

/// Weights of image, language and speech models.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mix {
    pub image: u32,
    pub language: u32,
    pub speech: u32,
}

impl Default for Mix {
    /// Synergy's (20, 70, 10).
    fn default() -> Self {
        Self { image: 20, language: 70, speech: 10 }
    }
}

impl std::fmt::Display for Mix {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "({},{},{})", self.image, self.language, self.speech)
    }
}

impl std::str::FromStr for Mix {
    type Err = String;

    /// `20,70,10`.
    fn from_str(text: &str) -> Result<Self, String> {
        let parts: Result<Vec<u32>, _> = text.split(',').map(|part| part.trim().parse()).collect();
        match parts.as_deref() {
            Ok([image, language, speech]) if image + language + speech > 0 => {
                Ok(Self { image: *image, language: *language, speech: *speech })
            }
            _ => Err(format!("`{text}` is no mix: give weights of image, language and speech models, as 20,70,10")),
        }
    }
}

/// Draws models by class weights, uniform within a class.
pub(crate) struct ModelDraw {
    random: Random,
    weights: [u32; 3],
    names: [Vec<&'static str>; 3],
}

impl ModelDraw {
    pub(crate) fn new(mix: Mix, seed: u64) -> Self {
        Self {
            random: Random::new(seed, "models"),
            weights: [mix.image, mix.language, mix.speech],
            names: [ModelClass::Image, ModelClass::Language, ModelClass::Speech].map(models_of),
        }
    }

    pub(crate) fn next(&mut self) -> &'static str {
        let names = &self.names[self.random.weighted(&self.weights)];
        names[self.random.weighted(&vec![1; names.len()])]
    }
}

/// Ids and one line each; the same text in results and in `docs/traces.md`.
pub(crate) mod rule {
    use super::Mix;

    pub(crate) fn models(mix: Mix) -> String {
        format!("R1 models drawn by class with weights {mix} for image, language, speech, uniform within a class")
    }
    pub(crate) const ITERATIONS: &str = "R2 iterations = duration x true speed at the request";
    pub(crate) const REQUEST: &str = "R3 CPU and memory request = the GPU's proportional share of its node";
    pub(crate) const RANGE: &str =
        "R4 CPU may be tuned from 1 core per worker to all of a node, memory from 20.83 GB per GPU to all of a node";
    pub(crate) fn servers(count: usize) -> String {
        format!("R5 cluster = {count} Synergy servers (8 V100, 24 cores, 500 GB each)")
    }
    pub(crate) fn sized_servers(count: usize, percent: u32) -> String {
        format!(
            "R5 cluster = {count} Synergy servers (8 V100, 24 cores, 500 GB each), {percent} % of whose GPU time is asked for"
        )
    }
    pub(crate) const PORTABLE: &str = "R6 models run alike on every GPU kind of the trace and with any memory";
    pub(crate) const GAVEL_CPU: &str =
        "R7 CPU per step of Gavel's image models = 3.27 core-ms per ImageNet image (1/49 for CIFAR), other models none";
    pub(crate) const ESTIMATE: &str = "R8 the submitter's estimate = the trace's duration";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixes_are_parsed_and_drawn() {
        assert_eq!("50,0,50".parse(), Ok(Mix { image: 50, language: 0, speech: 50 }));
        assert!("1,2".parse::<Mix>().is_err());
        assert!("0,0,0".parse::<Mix>().is_err());
        let mut draw = ModelDraw::new(Mix { image: 0, language: 100, speech: 0 }, 3);
        assert!((0..50).all(|_| ["gnmt", "transformer_xl", "lstm"].contains(&draw.next())));
    }
}
