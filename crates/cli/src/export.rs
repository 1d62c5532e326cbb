//! `export`, `completions`, `man`: what other programs take in.

use crate::args::{Cli, ExportArgs};
use crate::eprint;
use crate::failure::{Failure, io_error};
use crate::print;
use clap::CommandFactory;
use millpond_results::{Error, default_table, write_csv, write_fct};
use std::ffi::OsString;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// The part of a folder that is written.
enum Content<'a> {
    Csv(&'a str),
    /// The flows, as simulators of the HPCC family write them.
    Fct,
}

impl Content<'_> {
    fn write(&self, dir: &Path, out: &mut dyn Write, name: &Path) -> Result<u64, Error> {
        match self {
            Content::Csv(table) => write_csv(dir, table, out, name),
            Content::Fct => write_fct(dir, out, name),
        }
    }

    fn name(&self) -> &str {
        match self {
            Content::Csv(table) => table,
            Content::Fct => "flows that completed",
        }
    }
}

/// Writes a table, or `fct.txt`.
pub fn export(args: &ExportArgs) -> Result<(), Failure> {
    let file = args.file.as_ref().unwrap_or(&args.csv);
    let is_fct =
        args.file.is_some() && file.extension().is_some_and(|extension| extension == "txt");
    if is_fct && args.table.is_some() {
        return Err(Failure::Usage("--table is of CSV; fct.txt is made of the flows".into()));
    }
    let content = match &args.table {
        _ if is_fct => Content::Fct,
        Some(table) => Content::Csv(table),
        None => Content::Csv(default_table(&args.dir)?),
    };
    if file == Path::new("-") {
        let mut out = BufWriter::new(io::stdout().lock());
        return stream(&args.dir, &content, &mut out, Path::new("stdout"));
    }
    // A new file and a plain one are replaced at once; anything else is somebody's way in, and is
    // written to where it leads.
    let is_plain = |meta: Metadata| meta.is_file();
    match std::fs::symlink_metadata(file).map(is_plain) {
        Ok(false) => {
            let mut out = BufWriter::new(InPlace { path: file, file: None });
            stream(&args.dir, &content, &mut out, file)
        }
        _ => replace(&args.dir, &content, file),
    }
}

/// Writes to a stream. A reader that has gone away (`| head`) is no error.
fn stream(
    dir: &Path,
    content: &Content<'_>,
    out: &mut dyn Write,
    name: &Path,
) -> Result<(), Failure> {
    let written = content.write(dir, out, name);
    let flushed = out.flush().map_err(|e| io_error("write", name, e));
    match written.and_then(|rows| flushed.map(|()| rows)) {
        Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => Ok(other.map(drop)?),
    }
}

/// Writes beside the file and renames, so that a table that is not there leaves the older file
/// alone.
fn replace(dir: &Path, content: &Content<'_>, file: &Path) -> Result<(), Failure> {
    let mut name = OsString::from(".");
    name.push(file.file_name().unwrap_or_default());
    name.push(format!(".{}", std::process::id()));
    let partial = file.with_file_name(name);
    let opened = File::create_new(&partial).map_err(|e| io_error("create", &partial, e))?;
    let mut out = BufWriter::new(opened);
    let rows = content.write(dir, &mut out, file).and_then(|rows| {
        out.flush().map_err(|e| io_error("write", file, e))?;
        std::fs::rename(&partial, file).map_err(|e| io_error("replace", file, e))?;
        Ok(rows)
    });
    if rows.is_err() {
        let _ = std::fs::remove_file(&partial);
    }
    eprint(format_args!("{}: {} rows of {}", file.display(), rows?, content.name()));
    Ok(())
}

/// A device, a pipe, or a link to whatever: opened with the first byte, so that a table that is not
/// there empties nothing.
struct InPlace<'a> {
    path: &'a Path,
    file: Option<File>,
}

impl Write for InPlace<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.file.is_none() {
            self.file =
                Some(OpenOptions::new().write(true).create(true).truncate(true).open(self.path)?);
        }
        self.file.as_mut().map_or(Ok(0), |file| file.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Prints what a shell needs to complete commands.
pub fn completions(shell: clap_complete::Shell) -> Result<(), Failure> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "millpond", &mut text);
    print(&String::from_utf8_lossy(&text));
    Ok(())
}

/// Writes the manual: `millpond.1` and a page for each command.
pub fn man(dir: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(dir).map_err(|e| io_error("create", dir, e))?;
    clap_mangen::generate_to(Cli::command(), dir).map_err(|e| io_error("write", dir, e))?;
    eprint(format_args!(
        "manual pages: {} (man -l {})",
        dir.display(),
        dir.join("millpond.1").display()
    ));
    Ok(())
}
