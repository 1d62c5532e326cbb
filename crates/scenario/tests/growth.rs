//! The cost of checking a scenario grows with its length, and what it names is read once.

use crate::cost::assert_growth;
use millpond_scenario::{Plan, Scenario};
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

const NETWORK: &str = "duration = \"1ms\"\n[topology]\nkind = \"single-switch\"\nhosts = 4\n";
const ONE_FLOW: &str = "[[traffic]]\nkind = \"flows\"\nrows = [[1, 0, 1, 1000]]\n";

/// Eight times as long a text costs some eight times as much; with a search or a copy of all for
/// each part it would be sixty-four times.
fn grows_with_its_text(text: impl Fn(usize) -> String, n: usize) {
    let check = |text: &str| {
        let Ok(scenario) = Scenario::parse("s.toml", text) else { return };
        for variant in scenario.variants().into_iter().map(Some).chain([None]) {
            scenario.plan(variant, &[], None).unwrap_or_else(|e| panic!("{e}"));
        }
    };
    let (short, long) = (text(n), text(8 * n));
    assert_growth(|| check(&short), || check(&long), n);
}

fn repeated(n: usize, head: &str, part: impl Fn(usize) -> String) -> String {
    (0..n).fold(head.to_string(), |text, i| text + &part(i))
}

#[test]
fn many_variants() {
    let head = format!("{NETWORK}{ONE_FLOW}");
    let variant = |i| {
        format!("[[variant]]\nname = \"v{i}\"\nset = {{ \"seed\" = {i}, \"host.mtu\" = 1500 }}\n")
    };
    grows_with_its_text(|n| repeated(n, &head, variant), 250);
}

#[test]
fn many_limits() {
    let head = format!("{NETWORK}{ONE_FLOW}");
    let limit = |i| format!("[[limit]]\nname = \"l{i}\"\nhosts = 0\nscopes = [\"l0\"]\n");
    let first = "[[limit]]\nname = \"l0\"\nhosts = 0\n";
    grows_with_its_text(|n| repeated(n, &format!("{head}{first}"), |i| limit(i + 1)), 2_000);
    // Names of limits that nobody has are looked up, too.
    let scope = |i| format!("[[limit]]\nname = \"l{i}\"\n");
    grows_with_its_text(|n| repeated(n, &head, scope), 2_000);
}

#[test]
fn limits_are_numbered_by_sixteen_bits() {
    let head = format!("{NETWORK}{ONE_FLOW}");
    let text = |n| repeated(n, &head, |i| format!("[[limit]]\nname = \"l{i}\"\nhosts = 0\n"));
    let plan = |n| Scenario::parse("s.toml", &text(n)).unwrap().plan(None, &[], None);
    assert_eq!(plan(65_535).unwrap().limits.last().unwrap().scopes, [65_534]);
    assert!(plan(65_536).unwrap_err().to_string().contains("65535 is the most"));
}

#[test]
fn many_classes() {
    let rows = |n| {
        let rows = repeated(n, "", |i| format!("[{i}, 0, 1, 1000, \"c{i}\"],\n"));
        format!("{}[[traffic]]\nkind = \"flows\"\nrows = [{rows}]\n", NETWORK.replace("1ms", "1s"))
    };
    grows_with_its_text(rows, 2_000);
    let tables =
        |n| repeated(n, NETWORK, |i| format!("[[traffic]]\nname = \"t{i}\"\n{}", &ONE_FLOW[12..]));
    grows_with_its_text(tables, 1_000);
}

#[test]
fn many_mistakes() {
    grows_with_its_text(|n| repeated(n, NETWORK, |i| format!("kee{i} = 1\n")), 1_500);
    grows_with_its_text(
        |n| format!("{NETWORK}x = [{}]\n", repeated(n, "", |_| "1979-05-27, ".into())),
        1_500,
    );
    // All of them are counted, the first are listed.
    let text = repeated(1_000, NETWORK, |i| format!("kee{i} = 1\n"));
    let errors = Scenario::parse("s.toml", &text).unwrap_err();
    assert_eq!(errors.errors.len() + errors.more, 1_000);
    assert!(errors.to_string().ends_with("and 900 more"), "{}", errors.errors.len());
}

/// A folder for one test's files.
fn folder(name: &str) -> PathBuf {
    let dir = std::env::temp_dir().join(format!("millpond-growth-{}-{name}", std::process::id()));
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).unwrap();
    dir
}

fn arrivals(plan: &Plan) -> Vec<String> {
    plan.traffic.arrivals().take(50).map(|event| format!("{event:?}")).collect()
}

/// A scenario's files are read for its first plan; the others share what was in them.
#[test]
fn a_file_is_read_once_for_all_plans() {
    let dir = folder("once");
    fs::write(dir.join("flows.csv"), "start_us,src,dst,bytes\n1,0,1,1000\n2,2,3,500\n").unwrap();
    fs::write(dir.join("sizes.txt"), "100 0.5\n200 1\n").unwrap();
    let graph = r#"{ "hosts": 4, "switches": [{ "name": "s" }], "links": [LINKS] }"#;
    let link =
        |host| format!(r#"{{ "a": "host{host}", "b": "s", "rate": "10Gbps", "delay": "1us" }}"#);
    fs::write(
        dir.join("net.json"),
        graph.replace("LINKS", &(0..4).map(link).collect::<Vec<_>>().join(", ")),
    )
    .unwrap();
    let text = "duration = \"1ms\"\n[topology]\nkind = \"file\"\npath = \
                \"net.json\"\n[[traffic]]\nkind = \"flows\"\nfile = \
                \"flows.csv\"\n[[traffic]]\nkind = \"poisson\"\nload = 0.1\nsizes = { file = \
                \"sizes.txt\" }\n";
    fs::write(dir.join("s.toml"), text).unwrap();
    let scenario = Scenario::load(&dir.join("s.toml")).unwrap();
    let first = scenario.plan(None, &[], Some(7)).unwrap();
    for file in ["flows.csv", "sizes.txt", "net.json"] {
        fs::remove_file(dir.join(file)).unwrap();
    }
    let again = scenario.plan(None, &[], Some(7)).unwrap();
    assert_eq!((arrivals(&again), &again.resolved), (arrivals(&first), &first.resolved));
    assert!(
        scenario.with_base(&dir).plan(None, &[], None).is_err(),
        "files of another folder are other files"
    );
    fs::remove_dir_all(dir).unwrap();
}

/// A distribution of many points stays in its file, and is known by its digest.
#[test]
fn a_long_distribution_is_not_written_out() {
    let dir = folder("long");
    let write = |points: usize, file: &str| {
        let mut text = String::new();
        for i in 1..=points {
            writeln!(text, "{i} {}", if i == points { 1.0 } else { i as f64 / points as f64 })
                .unwrap();
        }
        fs::write(dir.join(file), text).unwrap();
    };
    write(10_000, "few.txt");
    write(10_001, "many.txt");
    let text = |sizes: &str| {
        format!("{NETWORK}[[traffic]]\nkind = \"poisson\"\nload = 0.1\nsizes = {sizes}\n")
    };
    let plan =
        |text: &str| Scenario::parse("s.toml", text).unwrap().with_base(&dir).plan(None, &[], None);
    let few = plan(&text("{ file = \"few.txt\" }")).unwrap();
    assert!(few.base.is_none() && few.resolved.contains("[10000.0, 1.0]"));
    let many = plan(&text("{ file = \"many.txt\", interpolation = \"steps\" }")).unwrap();
    assert!(many.resolved.len() < 5_000, "{} bytes", many.resolved.len());
    assert_eq!(many.base.as_deref(), Some(dir.as_path()));
    let again = plan(&many.resolved).unwrap();
    assert_eq!((arrivals(&again), &again.resolved), (arrivals(&many), &many.resolved));
    // The digest of its former content is known, should it change.
    write(10_002, "many.txt");
    let changed = plan(&many.resolved).unwrap_err().to_string();
    assert!(changed.contains("it has changed"), "{changed}");
    let wrong = Scenario::parse("s.toml", &text("{ points = [[1, 1]], digest = \"x\" }"));
    assert!(wrong.unwrap_err().to_string().contains("digest is a text, and of a file"));
    fs::remove_dir_all(dir).unwrap();
}
