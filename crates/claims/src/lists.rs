//! Lists of a paper's file, which live as long as the process.

use serde::de::{Deserialize, Deserializer, Error as _};

/// Keys and values, as `--set` takes them.
pub(crate) type Settings = &'static [(&'static str, &'static str)];

/// `KEY=VALUE` texts, as `--set` takes them.
pub(crate) fn settings<'de: 'static, D: Deserializer<'de>>(from: D) -> Result<Settings, D::Error> {
    let pair = |text: &'static str| {
        let wrong = || D::Error::custom(format!("`set` has KEY=VALUE pairs (got \"{text}\")"));
        text.split_once('=').ok_or_else(wrong)
    };
    let texts = Vec::<&'static str>::deserialize(from)?;
    Ok(texts.into_iter().map(pair).collect::<Result<Vec<_>, _>>()?.leak())
}

/// A list that lives as long as the process.
pub(crate) fn list<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    from: D,
) -> Result<&'static [T], D::Error> {
    Vec::<T>::deserialize(from).map(|list| &*list.leak())
}

/// A list of such lists.
pub(crate) fn lists<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    from: D,
) -> Result<&'static [&'static [T]], D::Error> {
    let lists = Vec::<Vec<T>>::deserialize(from)?;
    Ok(lists.into_iter().map(|list| &*list.leak()).collect::<Vec<_>>().leak())
}
