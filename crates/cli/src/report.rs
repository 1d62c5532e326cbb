//! `millpond report`: makes the page of a results folder again from its other files.

use crate::failure::Failure;
use crate::print;
use std::path::Path;

pub fn report(dir: &Path) -> Result<(), Failure> {
    if !millpond_results::is_result(dir) {
        let what = "is not a results folder: it has no manifest.json of millpond";
        return Err(Failure::Usage(format!("{} {what}", dir.display())));
    }
    millpond_results::write_report(dir)?;
    print(&dir.join("report.html").display().to_string());
    Ok(())
}
