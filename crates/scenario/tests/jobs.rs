//! Jobs of ranks in a scenario: what is refused, and what the resolved text says.

use millpond_scenario::Scenario;
use millpond_scenario::traffic::SourceKind;

fn text(keys: &str) -> String {
    format!(
        "duration = \"1ms\"\n[topology]\nkind = \"single-switch\"\nhosts = 12\n\
         [[traffic]]\nname = \"job\"\nkind = \"collective\"\n{keys}\n"
    )
}

fn error(keys: &str) -> String {
    let scenario = Scenario::parse("s", &text(keys));
    let planned = scenario.and_then(|scenario| scenario.plan(None, &[], None));
    planned.expect_err(keys).to_string()
}

#[test]
fn errors_name_key_value_and_what_is_valid() {
    for (keys, parts) in [
        ("op = \"all-gather\"\nalgorithm = \"bruck\"", &["algorithm", "\"bruck\"", "ring"][..]),
        ("op = \"all-to-all\"\nalgorithm = \"ring\"", &["algorithm", "pairwise, linear, bruck"]),
        ("algorithm = \"hierarchical\"\ngroup = 5", &["group", "12 ranks", "groups of 5"]),
        ("skew = 2.0", &["skew", "all-to-all"]),
        ("op = \"all-to-all\"\nskew = 13.0", &["skew", "12"]),
        ("ranks = 2\nmatrix = [\"0 1\", \"1 0\"]", &["matrix", "for all-to-all"]),
        ("op = \"all-to-all\"\nmatrix = [\"0 1\", \"1 0\"]", &["2 rows", "12 ranks"]),
        ("op = \"all-to-all\"\nranks = 2\nmatrix = [\"0 1\", \"1\"]", &["row 1", "1 sizes"]),
        ("op = \"all-to-all\"\nranks = 2\nmatrix = [\"0 -1\", \"1 0\"]", &["row 0", "\"-1\""]),
        ("op = \"all-to-all\"\nranks = 2\nmatrix = [\"0 nan\", \"1 0\"]", &["\"nan\""]),
        ("op = \"all-to-all\"\nranks = 2\nmatrix = [\"0 9000TB\", \"1 0\"]", &["out of range"]),
        ("op = \"all-to-all\"\nranks = 2\nmatrix = [\"0 0\", \"0 0\"]", &["no rank sends"]),
        ("op = \"barrier\"\nslices = 2", &["slices", "rings"]),
        ("op = \"barrier\"\nchannels = 2", &["channels", "no data"]),
        ("ranks = 13", &["hosts", "13 ranks"]),
        ("first = 11", &["first", "1 ranks from place 11"]),
        ("hosts = [\"0..3\", \"2\"]", &["hosts", "twice"]),
        ("hosts = [\"3..12\"]", &["hosts", "12 is no host"]),
        ("stragglers = [\"12\"]", &["stragglers", "0 to 11"]),
        ("stop = \"1us\"", &["stop", "repeat"]),
        ("size = \"1GB\"\nchunk = 9", &["chunk", "chunks"]),
        ("after = [\"job\"]", &["after"]),
    ] {
        let found = error(keys);
        assert!(parts.iter().all(|part| found.contains(part)), "{keys}: {found}");
    }
}

#[test]
fn resolved_text_gives_the_same_job() {
    let keys = "op = \"all-to-all\"\nranks = 8\nplacement = \"random\"\nskew = 2.5\nrepeat = 3\n\
                compute = \"5us\"\ncompute-jitter = 0.25\nstragglers = [\"1\", \"3..4\"]";
    let plan = |text: &str| {
        let scenario = Scenario::parse("s", text).unwrap_or_else(|error| panic!("{error}"));
        scenario.plan(None, &[], None).unwrap_or_else(|error| panic!("{error}"))
    };
    let first = plan(&text(keys));
    let again = plan(&first.resolved);
    assert_eq!(first.resolved, again.resolved);
    let job = |plan: &millpond_scenario::Plan| match &plan.traffic.sources[0].kind {
        SourceKind::Job(job) => format!("{:?} {:?}", job.work, job.hosts),
        other => panic!("{other:?}"),
    };
    assert_eq!(job(&first), job(&again));
    assert!(job(&first).contains("stragglers: {1, 3, 4}"), "{}", job(&first));
}

#[test]
fn matrix_has_numbers_and_units_and_its_mean_row_is_the_buffer() {
    let keys = "op = \"all-to-all\"\nalgorithm = \"linear\"\nranks = 3\n\
                matrix = [\"0 2MB 100KB\", \"2MB, 0, 0\", \"7 1MB 0\"]";
    let scenario = Scenario::parse("s", &text(keys)).unwrap();
    let plan = scenario.plan(None, &[], None).unwrap();
    let SourceKind::Job(job) = &plan.traffic.sources[0].kind else { panic!("no job") };
    let shown = format!("{:?}", job.work);
    let blocks = "blocks: [0, 2000000, 100000, 2000000, 0, 0, 7, 1000000, 0]";
    assert!(shown.contains(blocks) && shown.contains("bytes: 1700003"), "{shown}");
}
