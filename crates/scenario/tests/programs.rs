//! `[[program]]`: its faults have places, its names are those of `--set` and variants, and the
//! resolved text gives the same programs.

use millpond_scenario::{Errors, Plan, Scenario, slowed};

const HEAD: &str = "duration = \"10ms\"\ntopology = { kind = \"single-switch\", hosts = 4 }\n";
const TWO: &str = "[[program]]\nname = \"cache\"\nhost = 2\ncommand = \"serve -l {address} \
                   'a b' \\\"5us\\\"\"\n[[program]]\nhost = 0\ncommand = \"1ms\"\nstart = \
                   \"1ms\"\nawaits = true\n";

fn plan(text: &str, variant: Option<&str>, set: &[(&str, &str)]) -> Result<Plan, Errors> {
    let set: Vec<(String, String)> =
        set.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
    Scenario::parse("s.toml", &format!("{HEAD}{text}"))?.plan(variant, &set, None)
}

fn plan_of(text: &str, set: &[(&str, &str)]) -> Plan {
    plan(text, None, set).unwrap()
}

fn fails(text: &str, place: &str, says: &str) {
    let shown = plan(text, None, &[]).expect_err(text).to_string();
    let place = format!("s.toml:{place}: ");
    assert!(shown.contains(&place) && shown.contains(says), "{place} {says:?}: {shown}");
}

#[test]
fn errors_of_programs_have_places() {
    let one = |keys: &str| format!("[[program]]\nhost = 1\ncommand = \"{keys}\"\n");
    fails(&one("a {host4}"), "5:11", "{host4} is no host; hosts are {host0} to {host3}");
    fails(&one("a {hostX}"), "5:11", "{hostX} is no host; hosts are {host0} to {host3}");
    fails(&one(" "), "5:11", "`program.program.command`: is empty");
    fails("[[program]]\nhost = 4\ncommand = \"a\"", "4:8", "4 is no host; there are 4, from 0");
    fails("[[program]]\nhost = 1\nname = \"a/b\"\ncommand = \"a\"", "5:8", "'/'");
    fails("[[program]]\nhost = 1", "3:1", "[[program]] needs `command`");
    fails("[[program]]\ncommand = \"a\"", "3:1", "[[program]] needs `host`");
    fails("[[program]]\nhost = 1\ncomand = \"a\"", "5:1", "did you mean `command`?");
    fails(&format!("{}{}", one("a"), one("b")), "7:1", "two programs are called \"program\"");
}

#[test]
fn a_program_on_several_hosts_is_one_of_each_with_its_arguments() {
    let text = "[[program]]\nname = \"a\"\nhost = [\"0..1\", \"3\"]\ncommand = \"x {address}\"\n\
                arguments = \"-n 1\"\nresponses = \"gets\"\n";
    let plan = plan_of(text, &[("program.a.arguments", "-n 22")]);
    let of: Vec<(&str, u32, &str)> =
        plan.programs.iter().map(|p| (p.name.as_str(), p.host, p.command.as_str())).collect();
    let command = "x {address} -n 22";
    assert_eq!(of, [("a-0", 0, command), ("a-1", 1, command), ("a-3", 3, command)]);
    assert!(plan.programs.iter().all(|p| p.responses.as_deref() == Some("gets")));
    let again = Scenario::parse("r.toml", &plan.resolved).unwrap().plan(None, &[], None).unwrap();
    assert_eq!(again.programs, plan.programs);
    let clash = format!("{text}[[program]]\nname = \"a-1\"\nhost = 2\ncommand = \"x\"\n");
    fails(&clash, "10:1", "two programs are called \"a-1\"");
    let traffic = "[[traffic]]\nname = \"gets\"\nkind = \"permutation\"\nsize = 1\n";
    fails(&format!("{text}{traffic}"), "8:13", "\"gets\" is the class of a traffic");
}

#[test]
fn a_run_that_ends_before_its_programs_is_an_error() {
    let ends = "until = \"flows-complete\"\n";
    let program = "[[program]]\nhost = 1\ncommand = \"a\"\n";
    fails(&format!("{ends}{program}"), "5:1", "awaits no program");
    assert!(plan(&format!("{ends}{program}awaits = true"), None, &[]).is_ok());
}

#[test]
fn resolved_text_gives_the_same_programs() {
    let first = plan(TWO, None, &[]).unwrap();
    assert_eq!(first.programs.len(), 2);
    assert_eq!((first.programs[0].name.as_str(), first.programs[0].host), ("cache", 2));
    assert!(first.programs[1].awaits && first.programs[1].name == "program");
    assert!(!first.warnings.iter().any(|w| w.contains("no traffic")), "{:?}", first.warnings);
    let again = Scenario::parse("r.toml", &first.resolved).unwrap().plan(None, &[], None).unwrap();
    assert_eq!((&again.programs, &again.resolved), (&first.programs, &first.resolved));
}

#[test]
fn slowing_a_plan_slows_starts_and_leaves_commands() {
    let fast = plan(TWO, None, &[]).unwrap();
    let text = slowed(&fast, 10).unwrap();
    let slow = Scenario::parse("r.toml", &text).unwrap().plan(None, &[], None).unwrap();
    for (fast, slow) in fast.programs.iter().zip(&slow.programs) {
        assert_eq!(slow.start.as_ps(), fast.start.as_ps() * 10);
        assert_eq!((&slow.command, &slow.name), (&fast.command, &fast.name));
    }
}

#[test]
fn overrides_and_variants_set_programs_by_name() {
    let set = [("program.cache.start", "2ms"), ("program.program.host", "3")];
    let programs = plan(TWO, None, &set).unwrap().programs;
    assert_eq!((programs[0].start.as_us_f64(), programs[1].host), (2000.0, 3));
    let text = format!("{TWO}[[variant]]\nname = \"v\"\nset = {{ program.cache.command = \"b\" }}");
    assert_eq!(plan(&text, Some("v"), &[]).unwrap().programs[0].command, "b");
    let unknown = plan(TWO, None, &[("program.cach.host", "1")]).unwrap_err().to_string();
    assert!(unknown.contains("did you mean `cache`?"), "{unknown}");
}

#[test]
fn a_start_after_the_end_is_a_warning() {
    let warned = plan(TWO, None, &[("program.cache.start", "20ms")]).unwrap().warnings;
    let says = "program cache starts at 20ms, and the run ends at 10ms";
    assert!(warned.iter().any(|warning| warning.contains(says)), "{warned:?}");
}
