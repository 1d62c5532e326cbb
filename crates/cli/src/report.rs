//! `millpond report`: makes the page of a results folder again from its other files.

use crate::args::ReportArgs;
use crate::failure::Failure;
use crate::say;

pub fn report(args: &ReportArgs) -> Result<(), Failure> {
    if !millpond_results::is_result(&args.dir) {
        let what = "is not a results folder: it has no manifest.json of millpond";
        return Err(Failure::Usage(format!("{} {what}", args.dir.display())));
    }
    millpond_results::write_report(&args.dir)?;
    say(&args.dir.join("report.html").display().to_string());
    Ok(())
}
