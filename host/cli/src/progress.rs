//! A progress bar with the time left on standard error; silent off a terminal.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// Finished jobs of all runs.
pub(crate) struct Bar(ProgressBar);

impl Bar {
    /// A bar to `total` jobs.
    pub(crate) fn new(total: u64) -> Self {
        let bar = ProgressBar::new(total);
        if let Ok(style) =
            ProgressStyle::with_template("{bar:40} {percent:>3} %  {human_pos} of {human_len} jobs  {eta} left")
        {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(200));
        Self(bar)
    }

    /// `jobs` more are done.
    pub(crate) fn advance(&self, jobs: u64) {
        if jobs > 0 {
            self.0.inc(jobs);
        }
    }

    /// Clears the line.
    pub(crate) fn finish(&self) {
        self.0.finish_and_clear();
    }
}
