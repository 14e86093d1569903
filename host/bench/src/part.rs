//! Which part of a figure is measured: all of it, or what one wants to look at for a minute.

/// A part of a figure.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct Part {
    /// Seeds per cell, from 1 on; without it as many as the figure takes.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub(crate) seeds: Option<u64>,
    /// Only cells whose name holds each of these words, separated by semicolons: "(33,33,33);1 GPU;rho 0.95;FIFO".
    #[arg(long, value_delimiter = ';')]
    pub(crate) cells: Vec<String>,
}

impl Part {
    /// The seeds to run.
    pub(crate) fn seeds(&self, all: u64) -> std::ops::RangeInclusive<u64> {
        1..=self.seeds.unwrap_or(all)
    }

    /// Whether a cell of this name is wanted.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.cells.iter().all(|word| name.contains(word.trim()))
    }

    /// Goals are for the whole figure only.
    pub(crate) fn is_all(&self) -> bool {
        self.seeds.is_none() && self.cells.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_named_by_words_that_all_must_be_there() {
        let check = |words: &[&str], expected| {
            let part = Part { seeds: None, cells: words.iter().map(|word| (*word).to_owned()).collect() };
            assert_eq!(part.has("(33,33,33), 1 GPU, rho 0.95, FIFO"), expected, "{words:?}");
        };
        check(&[], true);
        check(&["FIFO", " rho 0.95"], true);
        check(&["FIFO", "rho 0.5"], false);
    }

    #[test]
    fn a_part_has_fewer_seeds() {
        assert_eq!(Part::default().seeds(6), 1..=6);
        assert_eq!(Part { seeds: Some(2), cells: Vec::new() }.seeds(6), 1..=2);
        assert!(Part::default().is_all() && !Part { seeds: Some(6), cells: Vec::new() }.is_all());
    }
}
