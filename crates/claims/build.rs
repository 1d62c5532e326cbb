//! A file that is new in `papers` is built in, too: the macro that reads them sees changes alone.

fn main() {
    println!("cargo::rerun-if-changed=../../papers");
}
