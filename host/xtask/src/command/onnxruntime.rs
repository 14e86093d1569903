//! `cargo xtask onnxruntime`.

use crate::error::Error;
use crate::setup::onnxruntime;
use crate::step::Steps;

#[derive(clap::Args)]
pub(crate) struct Arguments {}

impl Arguments {
    pub(crate) fn run(self) -> Result<(), Error> {
        let library = onnxruntime::fetch(&mut Steps::new())?;
        println!("{}", library.display());
        Ok(())
    }
}
