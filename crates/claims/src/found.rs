//! The findings of an experiment: the complete runs of every scheme at every load.

use crate::statistic::Run;

/// A variant, and the variant that it is compared with or that stands in its place.
pub type Off = (String, String);

/// One scheme at one load: what there is of it.
#[derive(Clone, Debug, Default)]
pub struct Arm {
    pub variant: String,
    pub load: f64,
    /// Seeds that are to be run.
    pub planned: Vec<u64>,
    pub runs: Vec<Run>,
}

impl Arm {
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }
}

#[derive(Clone, Debug, Default)]
pub struct Found {
    pub name: String,
    /// Why nothing was to be run.
    pub left_out: Option<String>,
    pub arms: Vec<Arm>,
}

impl Found {
    /// Whether a run that is planned is not there.
    pub fn lacks_runs(&self) -> bool {
        self.arms.iter().any(|arm| arm.runs.len() < arm.planned.len())
    }

    /// With the runs of the second variant of each pair in the place of the first one's.
    pub fn without(&self, pairs: &[Off]) -> Found {
        let stand_in = |arm: &Arm| {
            let Some((_, off)) = pairs.iter().find(|(on, _)| *on == arm.variant) else {
                return arm.clone();
            };
            let other =
                self.arms.iter().find(|other| other.variant == *off && other.load == arm.load);
            Arm {
                variant: arm.variant.clone(),
                load: arm.load,
                ..other.cloned().unwrap_or_default()
            }
        };
        Found { arms: self.arms.iter().map(stand_in).collect(), ..self.clone() }
    }
}
