//! Reasons why a lab cannot run.

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A key of the scenario asks for something that kernel TCP or this world lacks.
    #[error("`{key}`: {reason}")]
    Unsupported {
        /// The key, such as `transport.kind`.
        key: String,
        /// The missing part, and a remedy.
        reason: String,
    },
    /// A namespace, a mount or a process cannot be made.
    #[error(transparent)]
    World(#[from] millpond_worlds::Error),
    #[error(transparent)]
    Port(#[from] millpond_linux::dataplane::port::Error),
    /// The kernel refuses limits, or the project's congestion control.
    #[error(transparent)]
    Limit(#[from] millpond_linux::limit::Error),
    /// A system call of the lab's own failed.
    #[error("{what}: {source}")]
    System { what: String, source: std::io::Error },
}

impl Error {
    pub(crate) fn system(what: impl Into<String>, source: impl Into<std::io::Error>) -> Error {
        Error::System { what: what.into(), source: source.into() }
    }
    pub(crate) fn unsupported(key: impl Into<String>, reason: impl Into<String>) -> Error {
        Error::Unsupported { key: key.into(), reason: reason.into() }
    }
}
