//! `export`, `completions`, `man`: what other programs take in.

use crate::args::{Cli, CompletionArgs, ExportArgs, ManArgs};
use crate::failure::Failure;
use crate::say;
use clap::CommandFactory;
use millpond_results::{Error, default_table, write_csv};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Writes a table as CSV.
pub fn export(args: &ExportArgs) -> Result<(), Failure> {
    let table = match &args.table {
        Some(table) => table.as_str(),
        None => default_table(&args.dir)?,
    };
    let to_stdout = args.csv == Path::new("-");
    if to_stdout {
        let stdout = Path::new("stdout");
        let mut out = BufWriter::new(io::stdout().lock());
        let written = write_csv(&args.dir, table, &mut out, stdout);
        let flushed = out.flush().map_err(|e| io_error("write", stdout, e));
        return match written.and(flushed) {
            // A reader that has gone away (`| head`) is no error.
            Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            other => Ok(other?),
        };
    }
    // Beside the file and renamed, so that a table that is not there leaves the older file alone.
    let mut name = args.csv.file_name().unwrap_or_default().to_os_string();
    name.push(".partial");
    let partial = args.csv.with_file_name(name);
    let file = File::create(&partial).map_err(|e| io_error("create", &partial, e))?;
    let mut out = BufWriter::new(file);
    let rows = write_csv(&args.dir, table, &mut out, &partial).and_then(|rows| {
        out.flush().map_err(|e| io_error("write", &partial, e))?;
        std::fs::rename(&partial, &args.csv).map_err(|e| io_error("rename", &partial, e))?;
        Ok(rows)
    });
    if rows.is_err() {
        let _ = std::fs::remove_file(&partial);
    }
    eprintln!("{}: {} rows of {table}", args.csv.display(), rows?);
    Ok(())
}

/// Prints what a shell needs to complete commands.
pub fn completions(args: &CompletionArgs) -> Result<(), Failure> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "millpond", &mut text);
    say(&String::from_utf8_lossy(&text));
    Ok(())
}

/// Writes the manual: `millpond.1` and a page for each command.
pub fn man(args: &ManArgs) -> Result<(), Failure> {
    let dir = &args.out;
    std::fs::create_dir_all(dir).map_err(|e| io_error("create", dir, e))?;
    clap_mangen::generate_to(Cli::command(), dir).map_err(|e| io_error("write", dir, e))?;
    eprintln!("manual pages: {} (man -l {})", dir.display(), dir.join("millpond.1").display());
    Ok(())
}

fn io_error(doing: &'static str, path: &Path, source: io::Error) -> Error {
    Error::Io { doing, path: path.to_path_buf(), source }
}
