//! A scenario, its overrides and its variants.

use crate::value::toml_of;
use crate::{Error, Plan};
use millpond_results::{Kind, MANIFEST, Manifest};
use millpond_scenario::{Errors, Scenario as Text};
use serde::Serialize;
use std::fmt::Display;
use std::path::Path;
use std::time::Instant;

/// A scenario: a text with variants, and what is changed in it.
///
/// ```
/// use millpond::Scenario;
///
/// let text = r#"
///     duration = "1ms"
///     topology = { kind = "single-switch", hosts = 4 }
///     traffic = [{ kind = "incast", degree = 3, response = "20KB", count = 1 }]
///     [[variant]]
///     name = "cubic"
///     set = { "transport.kind" = "cubic" }
/// "#;
/// let scenario = Scenario::parse("incast.toml", text)?.set("topology.hosts", 8).seed(7);
/// assert_eq!(scenario.variants(), ["cubic"]);
/// let plan = scenario.plan(Some("cubic"))?;
/// assert_eq!((plan.hosts(), plan.seed(), plan.variant()), (8, 7, Some("cubic")));
/// # Ok::<(), millpond::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Scenario {
    text: Text,
    set: Vec<(String, String)>,
    seed: Option<u64>,
    shows: Vec<String>,
    /// The variants that are compared; empty: all.
    chosen: Vec<String>,
    /// Of a run's manifest: the variant that is worked into its scenario, with its description and
    /// the run's warnings. A mechanism's counterpart may be in a variant that the manifest lacks.
    variant: Option<String>,
    variant_about: String,
    warnings: Option<Vec<String>>,
    worked_in: Vec<(String, String)>,
}

impl Scenario {
    /// Reads a TOML file, or the scenario of a run in its results folder or `manifest.json`. Files
    /// that it names are relative to its folder.
    ///
    /// # Errors
    /// If the file cannot be read, or the scenario is wrong: all its errors, each with its place.
    pub fn open(path: impl AsRef<Path>) -> Result<Scenario, Error> {
        let path = path.as_ref();
        let Some(folder) = result_folder(path) else { return Ok(Text::load(path)?.into()) };
        let manifest = of_a_run(folder)?;
        let text = Text::parse(&folder.join(MANIFEST).display().to_string(), &manifest.scenario)?;
        let pairs = manifest.overrides.iter().filter_map(|text| text.split_once('='));
        let worked_in = pairs.map(|(key, value)| (key.to_string(), value.to_string())).collect();
        let text = text.with_base(&manifest.base.unwrap_or_default());
        let Manifest { variant, variant_about, warnings, .. } = manifest;
        let warnings = Some(warnings);
        Ok(Scenario { variant, variant_about, warnings, worked_in, ..text.into() })
    }

    /// Reads a text. Messages call it `name`; without its extension it is the scenario's name where
    /// the text gives none. Files that it names are relative to the current folder.
    ///
    /// # Errors
    /// If the scenario is wrong: all its errors, each with its place.
    pub fn parse(name: &str, text: &str) -> Result<Scenario, Error> {
        Ok(Text::parse(name, text)?.into())
    }

    /// Reads a value with the keys of a scenario: a map, a JSON object, a structure. Members that
    /// are `null` are left out. `name` is that of [`Scenario::parse`].
    ///
    /// ```
    /// use millpond::Scenario;
    /// use std::collections::BTreeMap;
    ///
    /// #[derive(serde::Serialize)]
    /// struct Mine {
    ///     duration: &'static str,
    ///     topology: BTreeMap<&'static str, &'static str>,
    /// }
    ///
    /// let mine = Mine { duration: "1ms", topology: BTreeMap::from([("kind", "leaf-spin")]) };
    /// let errors = Scenario::from_value("mine", &mine).unwrap_err().to_string();
    /// assert!(errors.contains("leaf-spine"));
    /// ```
    ///
    /// # Errors
    /// If the value is no object, or the scenario that it makes is wrong.
    pub fn from_value(name: &str, value: &impl Serialize) -> Result<Scenario, Error> {
        let value =
            serde_json::to_value(value).map_err(|e| Error::Usage(format!("{name}: {e}")))?;
        Scenario::parse(name, &toml_of(name, &value)?)
    }

    /// Overrides a key, in its turn. The value is read as TOML; what is no TOML value is a text.
    /// [`Scenario::plan`] reports a wrong one.
    ///
    /// ```no_run
    /// let scenario = millpond::Scenario::open("web.toml")?;
    /// let plan = scenario.set("transport.kind", "dctcp").set("traffic.web.load", 0.6).plan(None)?;
    /// # Ok::<(), millpond::Error>(())
    /// ```
    #[must_use]
    pub fn set(mut self, key: impl Into<String>, value: impl Display) -> Scenario {
        self.set.push((key.into(), value.to_string()));
        self
    }

    /// Sets the seed of every random stream. It wins over all others.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Scenario {
        self.seed = Some(seed);
        self
    }

    /// Chooses the numbers that tables and reports show: `queries.qct.p99`, `timeouts`. Without any
    /// they are those of the scenario's key `shows`.
    #[must_use]
    pub fn shows<T: Into<String>>(mut self, names: impl IntoIterator<Item = T>) -> Scenario {
        self.shows = names.into_iter().map(Into::into).collect();
        self
    }

    /// Chooses the variants of a comparison, in their order: the others are compared with the
    /// first.
    ///
    /// ```
    /// let text = "duration = \"1ms\"\ntopology = { kind = \"single-switch\", hosts = 4 }\n\
    ///             variant = [{ name = \"a\" }, { name = \"b\" }, { name = \"c\" }]";
    /// let scenario = millpond::Scenario::parse("a.toml", text)?;
    /// assert_eq!(scenario.only(["c", "a"])?.variants(), ["c", "a"]);
    /// # Ok::<(), millpond::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the scenario has no such variant; the error names the nearest. If a name is there twice.
    pub fn only<T: Into<String>>(
        mut self,
        names: impl IntoIterator<Item = T>,
    ) -> Result<Scenario, Error> {
        let names: Vec<String> = names.into_iter().map(Into::into).collect();
        for (at, name) in names.iter().enumerate() {
            if names[..at].contains(name) {
                return Err(Error::Usage(format!("variant {name} is chosen twice")));
            }
            self.text.plan(Some(name), &self.set, None)?;
        }
        self.chosen = names;
        Ok(self)
    }

    /// The scenario's name.
    pub fn name(&self) -> &str {
        self.text.name()
    }

    /// The text as it was read.
    pub fn text(&self) -> &str {
        self.text.text()
    }

    /// The names of the variants, in order; those of [`Scenario::only`] if it chose some.
    pub fn variants(&self) -> Vec<&str> {
        match self.chosen.is_empty() {
            true => self.text.variants(),
            false => self.chosen.iter().map(String::as_str).collect(),
        }
    }

    /// A sentence for each key that is written and that neither the scenario nor any variant uses.
    pub fn idle(&self) -> Vec<String> {
        self.text.idle(&self.set)
    }

    /// Plans a variant, or the scenario as it stands.
    ///
    /// ```no_run
    /// let scenario = millpond::Scenario::open("five.toml")?;
    /// for variant in scenario.variants() {
    ///     println!("{variant}: {} hosts", scenario.plan(Some(variant))?.hosts());
    /// }
    /// # Ok::<(), millpond::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there is no such variant, an override is wrong, a file cannot be read, or the numbers
    /// make no network or no traffic.
    pub fn plan(&self, variant: Option<&str>) -> Result<Plan, Error> {
        let began = Instant::now();
        let mut plan = self.text.plan(variant, &self.set, self.seed)?;
        if !self.shows.is_empty() {
            plan.shows = self.numbers("--shows", &self.shows, variant, &self.set)?;
        }
        if plan.variant.is_none() {
            plan.variant.clone_from(&self.variant);
            plan.variant_about.clone_from(&self.variant_about);
        }
        if let Some(known) = self.warnings.as_ref().filter(|_| self.set.is_empty()) {
            plan.warnings.retain(|warning| known.contains(warning));
        }
        let overrides: Vec<_> = self.worked_in.iter().chain(&self.set).cloned().collect();
        Ok(Plan::new(plan, &overrides).since(began))
    }

    /// The text with its places.
    pub(crate) fn inner(&self) -> &Text {
        &self.text
    }

    /// The overrides.
    pub(crate) fn overrides(&self) -> &[(String, String)] {
        &self.set
    }

    /// The seed given to [`Scenario::seed`].
    pub(crate) fn chosen_seed(&self) -> Option<u64> {
        self.seed
    }

    /// The names given to [`Scenario::shows`], checked; `None` without any.
    pub(crate) fn chosen(
        &self,
        variant: Option<&str>,
        overrides: &[(String, String)],
    ) -> Result<Option<Vec<String>>, Error> {
        match self.shows.is_empty() {
            true => Ok(None),
            false => Ok(Some(self.numbers("--shows", &self.shows, variant, overrides)?)),
        }
    }

    /// The names of numbers that an option has. One that means nothing is an error that names the
    /// nearest.
    pub(crate) fn numbers(
        &self,
        option: &str,
        names: &[String],
        variant: Option<&str>,
        overrides: &[(String, String)],
    ) -> Result<Vec<String>, Errors> {
        let names: Vec<String> = names.iter().map(|name| format!("{:?}", name.trim())).collect();
        let shows = ("shows".to_string(), format!("[{}]", names.join(", ")));
        let changed: Vec<_> = overrides.iter().cloned().chain([shows]).collect();
        let plan = self.text.plan(variant, &changed, None);
        Ok(plan.map_err(|errors| errors.given_by(option, overrides.len()))?.shows)
    }
}

impl From<Text> for Scenario {
    fn from(text: Text) -> Scenario {
        Scenario {
            text,
            set: Vec::new(),
            seed: None,
            shows: Vec::new(),
            chosen: Vec::new(),
            variant: None,
            variant_about: String::new(),
            warnings: None,
            worked_in: Vec::new(),
        }
    }
}

/// The results folder that a path means, if it is one or its manifest.
fn result_folder(path: &Path) -> Option<&Path> {
    if path.is_dir() {
        return Some(path);
    }
    path.file_name()
        .is_some_and(|name| name == MANIFEST)
        .then(|| millpond_scenario::folder_of(path))
}

/// The manifest of a run. Those of several runs hold the scenario as it was given, without what was
/// changed for each.
fn of_a_run(folder: &Path) -> Result<Manifest, Error> {
    if folder.is_dir() && !folder.join(MANIFEST).exists() {
        let what = "is a folder without a result's manifest.json: name a scenario file, or the \
                    folder of a run";
        return Err(Error::Usage(format!("{} {what}", folder.display())));
    }
    let manifest = Manifest::read(folder)?;
    let of = match manifest.kind {
        Kind::Run => return Ok(manifest),
        Kind::Compare => "a compare",
        Kind::Sweep => "a sweep",
        Kind::Reproduce => "a reproduction",
    };
    let folder = folder.display();
    Err(Error::Usage(format!(
        "{folder} holds {of}: name one of the runs below it, or the scenario it was made of"
    )))
}
