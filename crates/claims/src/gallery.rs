//! The gallery: papers with their claims on one page, of records or of runs.

use crate::error::Error;
use crate::found::Found;
use crate::page::Recorded;
use crate::paper::Paper;
use millpond_results::{Exhibit, Reproduction, gallery};
use std::path::{Path, PathBuf};

/// The page's name in its folder.
const GALLERY: &str = "gallery.html";

impl Recorded {
    /// The paper as the gallery shows it. `reproduction` has the charts of runs that were just
    /// made; without it the page has the recorded claims alone.
    pub fn exhibit(&self, paper: &Paper, reproduction: Option<&Reproduction>) -> Exhibit {
        let recorded = || {
            let (version, effort) = (&self.version, &self.effort);
            let mut of = Reproduction::new(&paper.name, &paper.title, version, effort);
            (of.reading, of.causes) = (paper.reading.clone(), paper.causes.clone());
            of.claims = self.claims.clone();
            let nothing = Found::default();
            let shown = paper.experiments.iter().map(|one| one.shown(&[], &nothing, ""));
            of.experiments = shown.collect();
            of
        };
        let reproduction = reproduction.cloned().unwrap_or_else(recorded);
        Exhibit { year: paper.year, run: self.run(), reproduction }
    }
}

/// Writes the page of these papers into a folder, which is made if need be. Returns its path.
///
/// # Errors
///
/// If the folder or the file cannot be written.
pub fn write_gallery(papers: &[Exhibit], folder: &Path) -> Result<PathBuf, Error> {
    let path = folder.join(GALLERY);
    let cannot = |doing: &str, path: &Path, e: std::io::Error| {
        Error::Runs(format!("cannot {doing} {}: {e}", path.display()))
    };
    std::fs::create_dir_all(folder).map_err(|e| cannot("create", folder, e))?;
    std::fs::write(&path, gallery(papers)).map_err(|e| cannot("write", &path, e))?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::papers;
    use millpond_results::Verdict;
    use std::sync::Arc;

    #[test]
    fn the_gallery_has_every_recorded_claim_of_every_paper() {
        let of = |paper: &Arc<Paper>| {
            let recorded = Recorded::find(paper, &paper.name).unwrap();
            (recorded.exhibit(paper, None), recorded)
        };
        let all: Vec<(Exhibit, Recorded)> = papers().iter().map(of).collect();
        let exhibits: Vec<Exhibit> = all.iter().map(|(exhibit, _)| exhibit.clone()).collect();
        let page = gallery(&exhibits);
        let mut verdicts = 0;
        for (exhibit, recorded) in &all {
            assert!(page.contains(&format!("id=\"paper-{}\"", exhibit.reproduction.paper)));
            for claim in &recorded.claims {
                let anchor = format!("id=\"claim-{}\"", claim.id);
                assert_eq!(page.matches(&anchor).count(), 1, "{}", claim.id);
            }
            verdicts +=
                recorded.claims.iter().filter(|c| c.status != Verdict::NotEvaluated).count();
        }
        let shown = page.matches("<td class=\"better\">").count();
        assert_eq!(shown + page.matches("<td class=\"worse\">").count(), verdicts);
        assert!(!page.contains("://"), "the page names an address");
    }
}
