//! Any text as the file of `millpond limit`: limits with a plan or errors; never a panic. What is
//! installed is kept as text, so what was read must be read back as the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use millpond_linux::limit::cgroup::Cgroup;
use millpond_linux::limit::config::{Config, Target};
use millpond_linux::limit::numbers::Installed;
use millpond_linux::limit::plan::plan;
use millpond_linux::limit::store::Source;

/// Cgroups are there by their paths, and by nothing else.
fn resolve(target: &Target) -> Result<Cgroup, String> {
    let Target::Path(path) = target else { return Err("not by its path".to_string()) };
    let id = path
        .to_string_lossy()
        .bytes()
        .fold(1, |sum: u64, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    Ok(Cgroup { path: path.clone(), id, level: path.components().count() as u32 })
}

fuzz_target!(|text: &str| match Config::parse("fuzz.toml", text, &[]) {
    Ok(config) => {
        let again = Config::parse("written.toml", &config.to_text(), &[])
            .expect("what was written can be read");
        assert_eq!(config, again);
        let sources = [Source { file: "fuzz.toml".to_string(), config }];
        match plan(&sources, &Installed::new(), &resolve) {
            Ok(plan) => {
                assert!(
                    plan.hooks
                        .iter()
                        .all(|hook| hook.chain.iter().all(|c| c.count as usize <= c.scopes.len()))
                )
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
    Err(errors) => assert!(!errors.errors.is_empty() && !errors.to_string().is_empty()),
});
