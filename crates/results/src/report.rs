//! Making a folder's page again from its other files.

use crate::model::summary::Summary;
use crate::model::{
    Kind, Manifest, REPORT, RESULTS, Reproduction, Result, SWEEP, Sweep, check_files, list_again,
    read_compare, replace_file,
};
use crate::render::html;
use std::path::Path;

/// Makes `DIR/report.html` again from the other files of a results folder.
///
/// # Errors
/// If one of these is damaged or missing.
pub fn write_report(dir: &Path) -> Result<()> {
    let manifest = Manifest::read(dir)?;
    let page = match manifest.kind {
        Kind::Run => {
            check_run(dir)?;
            html::run_page(dir, &Summary::read(dir)?, &manifest)?
        }
        Kind::Reproduce => html::reproduction::page(&Reproduction::read(dir)?),
        Kind::Sweep if dir.join(SWEEP).is_file() => {
            check_files(dir, &|name| name == RESULTS)?;
            html::sweep::page(dir, &Sweep::read(dir)?, &manifest)?
        }
        Kind::Compare | Kind::Sweep => {
            let results = read_compare(dir)?;
            results
                .iter()
                .flat_map(|result| result.folders(dir))
                .try_for_each(|run| check_run(&run))?;
            html::compare_page(dir, &results, &manifest)?
        }
    };
    replace_file(dir, REPORT, page.as_bytes())?;
    list_again(dir, REPORT)
}

/// Checks the files of a run that its page is made of.
fn check_run(dir: &Path) -> Result<()> {
    check_files(dir, &|name| name != REPORT)
}
