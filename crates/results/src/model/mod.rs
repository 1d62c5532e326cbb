//! What a results folder holds: its records, tables and JSON files, and how they are read and
//! written.

pub(crate) mod checksum;
pub(crate) mod claim;
pub(crate) mod columns;
pub(crate) mod error;
pub(crate) mod estimate;
pub(crate) mod files;
pub(crate) mod goodput;
pub(crate) mod guard;
pub(crate) mod interval;
pub(crate) mod manifest;
pub(crate) mod names;
pub(crate) mod ordered;
pub(crate) mod record;
pub(crate) mod reproduction;
pub(crate) mod rows;
pub(crate) mod size_bin;
pub(crate) mod summary;
pub(crate) mod sweep;
pub(crate) mod tables;
pub(crate) mod tree;
pub(crate) mod variant;
pub(crate) mod words;
