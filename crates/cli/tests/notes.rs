//! Warnings of `check`: each is printed where its condition holds and not where it does not, and
//! none has a number that nobody can read.

use crate::common::Dir;

const NETWORK: &str = "[topology]\nkind = \"dumbbell\"\nhosts-per-side = 1\n\
                       bottleneck = { rate = \"50Mbps\", delay = \"10ms\" }\n";
const FLOW: &str = "[[traffic]]\nkind = \"flows\"\nrows = [{ start = \"0us\", src = 0, dst = 1, \
                    bytes = 1000000 }]\n";
const SECOND: &str = "duration = \"1s\"\n";
const COMPLETE: &str = "until = \"flows-complete\"\n";

fn failure(rest: &str) -> String {
    format!("[[failure]]\nlink = [\"switch0\", \"switch1\"]\n{rest}\n")
}

fn program(rest: &str) -> String {
    format!("[[program]]\nhost = 0\ncommand = \"true\"\n{rest}\n")
}

fn timeout(rto: &str) -> String {
    format!("[transport]\nkind = \"cubic\"\ninitial-rto = \"{rto}\"\nmin-rto = \"1ms\"\n")
}

/// Words of a warning, a scenario that has it, and one that does not; each its head and the rest.
type Case = (&'static str, [String; 2], [String; 2]);

fn cases() -> Vec<Case> {
    let with = |head: &str, rest: String| [head.to_string(), rest];
    let flow = |rest: String| rest + FLOW;
    let goodput = |every: &str| format!("[capture]\ngoodput = \"{every}\"\n{FLOW}");
    let down = || with(COMPLETE, flow(failure("at = \"0us\"")));
    let lossy = failure("at = \"0us\"\nloss = 0.02");
    let early = "at = \"0us\"\ndetect = \"2ms\"";
    let stopped = FLOW.replace("rows", "stop = \"100ms\"\nrows");
    vec![
        ("a link fails for good", down(), with(COMPLETE, flow(lossy.clone()))),
        ("a link fails for good", down(), with(SECOND, flow(failure("at = \"0us\"")))),
        (
            "a link fails for good",
            down(),
            with(COMPLETE, flow(failure("at = \"0us\"\nuntil = \"1ms\""))),
        ),
        (
            "both together lose",
            with(SECOND, flow(lossy.clone() + &lossy)),
            with(SECOND, flow(lossy.clone())),
        ),
        (
            "before the switches at the link's ends notice it",
            with(SECOND, flow(failure(early))),
            with(SECOND, flow(failure(&format!("{early}\nloss = 0.5")))),
        ),
        (
            "begins at 2s, and the run ends at 1s",
            with(SECOND, flow(failure("at = \"2s\""))),
            with(SECOND, flow(failure("at = \"2ms\""))),
        ),
        (
            "has awaits, and the run a duration",
            with(SECOND, program("awaits = true")),
            with(COMPLETE, program("awaits = true")),
        ),
        (
            "has awaits, and the run a duration",
            with(SECOND, program("awaits = true")),
            with(SECOND, program("")),
        ),
        (
            "starts at 2s, and the run ends at 1s",
            with(SECOND, program("start = \"2s\"")),
            with(SECOND, program("start = \"2ms\"")),
        ),
        ("there is no traffic", with(SECOND, String::new()), with(SECOND, FLOW.into())),
        ("there is no traffic", with(SECOND, String::new()), with(SECOND, program(""))),
        ("there is no sample", with(SECOND, goodput("2s")), with(SECOND, goodput("10ms"))),
        (
            "no flow is counted",
            with("duration = \"1s\"\nwarm-up = \"500ms\"\n", stopped),
            with(SECOND, FLOW.into()),
        ),
        (
            "the longest round trip of the empty network",
            with(SECOND, flow(timeout("1ms"))),
            with(SECOND, flow(timeout("1s"))),
        ),
    ]
}

/// Runs `check` on a scenario and returns its output.
fn check(dir: &Dir, [head, rest]: &[String; 2]) -> String {
    dir.write("a.toml", &format!("{head}{NETWORK}{rest}"));
    let ran = dir.run(&["check", "a.toml"]).ends(0);
    let text = ran.out + &ran.err;
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn each_warning_is_printed_only_where_its_condition_holds() {
    let dir = Dir::new("notes");
    for (words, holds, fails) in cases() {
        let found = check(&dir, &holds);
        assert!(found.contains(words), "{words}: {holds:?}\n{found}");
        let found = check(&dir, &fails);
        assert!(!found.contains(words), "{words}: {fails:?}\n{found}");
    }
}

/// Digits before a unit, such as those of "30195840ns".
fn longest_number(text: &str) -> usize {
    let digits = |word: &str| word.chars().take_while(char::is_ascii_digit).count();
    let is_amount = |word: &&str| {
        let unit = word.trim_start_matches(|c: char| c.is_ascii_digit());
        let unit = unit.trim_end_matches(|c: char| !c.is_alphanumeric());
        ["ps", "ns", "us", "ms", "s", "B", "bps"].contains(&unit)
    };
    text.split([' ', '(', '\n']).filter(is_amount).map(digits).max().unwrap_or(0)
}

#[test]
fn warnings_round_computed_durations_and_sizes() {
    assert_eq!(longest_number("is (30195840ns), and 12ms"), 8);
    let dir = Dir::new("notes-rounded");
    for (_, holds, _) in cases() {
        let found = check(&dir, &holds);
        assert!(longest_number(&found) < 5, "{found}");
    }
}
