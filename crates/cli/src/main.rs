//! The `millpond` command: thin. It reads arguments, calls the crates, prints.

// `print` and `eprint` do not panic.
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod args;
mod compare;
mod export;
mod failure;
mod huge_pages;
mod import;
mod inform;
#[cfg(all(feature = "linux", target_os = "linux"))]
mod linux;
#[cfg(not(all(feature = "linux", target_os = "linux")))]
#[path = "without_linux.rs"]
mod linux;
mod new;
mod pages;
mod plot;
mod report;
mod reproduce;
mod run;
mod span;
mod stderr;
mod stdout;
mod sweep;
mod watch;
mod worlds;

use args::{Cli, Command};
use clap::Parser;
use failure::Failure;
use millpond_scenario::Errors;
use std::io::ErrorKind;
use std::process::ExitCode;

pub(crate) use stderr::eprint;
pub(crate) use stdout::print;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return no_command(&error),
    };
    let done = match &cli.command {
        Command::Run(args) => run::run(args),
        Command::Compare(args) => compare::compare(args),
        Command::New(args) => new::new(args),
        Command::Report { dir } => report::report(dir),
        Command::Plot { results, figures, out } => plot::plot(results, figures, out),
        Command::Sweep(args) => sweep::sweep(args),
        Command::Reproduce(args) => reproduce::reproduce(args),
        Command::Export(args) => export::export(args),
        Command::Import { from } => import::import(from),
        Command::Lab(args) => linux::lab(args),
        Command::Limit(args) => linux::limit(args),
        Command::Switch(args) => linux::switch(args),
        Command::Check(args) => inform::check(args),
        Command::List(args) => inform::list(args.json),
        Command::Explain { name, json } => inform::explain(name, *json),
        Command::Schema => inform::schema(),
        Command::Completions { shell } => export::completions(*shell),
        Command::Man { out } => export::man(out),
        Command::Reference => inform::reference(),
    };
    let printed = stdout::failure().map_err(Failure::Stdout);
    match done.and(printed) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            explain(&failure);
            failure.exit_code()
        }
    }
}

/// Bad usage on stderr; help and version on stdout, which must get there.
fn no_command(error: &clap::Error) -> ExitCode {
    match error.print() {
        Err(lost) if !error.use_stderr() && lost.kind() != ErrorKind::BrokenPipe => {
            let failure = Failure::Stdout(lost);
            explain(&failure);
            failure.exit_code()
        }
        _ => ExitCode::from(error.exit_code() as u8),
    }
}

/// Prints the error on stderr, with the place in the scenario where there is one.
fn explain(failure: &Failure) {
    match failure {
        Failure::Scenario(errors) => show(errors),
        Failure::Point(at, errors) => {
            eprint(format_args!("at {at}: (--skip-invalid leaves such points out)"));
            show(errors);
        }
        Failure::Interrupted | Failure::Stopped(_) => eprint(failure),
        other => eprint(format_args!("error: {other}")),
    }
}

/// The errors of a text, each with its place.
fn show(errors: &Errors) {
    for error in &errors.errors {
        eprint(format_args!("{:?}", miette::Report::new(error.clone())));
    }
    if errors.more > 0 {
        eprint(format_args!("and {} more errors", errors.more));
    }
}
