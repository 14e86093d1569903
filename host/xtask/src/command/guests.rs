//! `cargo xtask guests`.

use crate::error::Error;
use crate::setup::guests;
use crate::step::Steps;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Only these components (crate name without the `coretuner-policy-` prefix); all when none is named.
    names: Vec<String>,
}

impl Arguments {
    pub(crate) fn run(self) -> Result<(), Error> {
        guests::build(&mut Steps::new(), &self.names)
    }
}
