//! The page in a browser: it renders, its script runs, nothing lands on the console, nothing is
//! asked of the network, a phone does not scroll sideways and can be read, and its charts can be
//! taken away. Skipped, with a message, where there is no Chromium.

use crate::common::Dir;
use millpond_worlds::needs;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

const SCENARIO: &str = r#"
name = "page & more"
seed = 1
until = "flows-complete"

[topology]
kind = "single-switch"
hosts = 12
host-link = { rate = "10Gbps", delay = "1us" }

[switch]
buffer = { kind = "per-port", size = "100KB" }

[transport]
kind = "dctcp"

[[traffic]]
name = "answers"
kind = "incast"
degree = 8
response = "40KB"
rate = 2000
count = 40
receiver = "random"
request = "none"

[[variant]]
name = "small & old"
set = { "switch.buffer.size" = "50KB" }

[[variant]]
name = "large"
set = { "switch.buffer.size" = "1MB" }
"#;

/// Samples over time, and a link that fails meanwhile.
const OVER_TIME: &str = r#"
[capture]
queues = { every = "10us", flows = true }

[[failure]]
link = ["host0", "switch0"]
at = "1ms"
until = "2ms"
"#;

/// A folder with a scenario, and pages of its runs.
struct Pages(Dir);

impl Pages {
    fn new(name: &str) -> Pages {
        let dir = Dir::new(name);
        dir.write("scenario.toml", SCENARIO);
        Pages(dir)
    }

    /// Runs millpond here.
    fn millpond(&self, arguments: &[&str]) -> Output {
        self.0.output(arguments)
    }

    #[track_caller]
    fn done(&self, arguments: &[&str]) {
        let output = self.millpond(arguments);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    fn page(&self, folder: &str) -> String {
        fs::read_to_string(self.0.at(folder).join("report.html")).unwrap()
    }
}

/// The result of a page in a browser.
struct Seen {
    dom: String,
    complaints: Vec<String>,
    requests: Vec<String>,
}

fn browser() -> Result<&'static str, &'static str> {
    let there = |name: &&str| {
        Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success())
    };
    let found = ["chromium", "chromium-browser", "google-chrome"].into_iter().find(there);
    found.ok_or("Chromium, to open the page (apt-get install chromium)")
}

/// Opens a page of text in a window of this width. Whatever it asks for, no name resolves.
fn open(browser: &str, dir: &Pages, page: &str, width: u32) -> Seen {
    let (file, profile, log) = (dir.0.at("page.html"), dir.0.at("profile"), dir.0.at("net.json"));
    let _ = fs::remove_dir_all(&profile);
    fs::write(&file, page).unwrap();
    let with = |flag: &str, path: &Path| format!("--{flag}={}", path.display());
    let output = Command::new(browser)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-sync",
        ])
        .args([
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-dev-shm-usage",
        ])
        .args([
            "--host-resolver-rules=MAP * ~NOTFOUND",
            "--enable-logging=stderr",
            "--v=0",
            "--dump-dom",
        ])
        .arg(format!("--window-size={width},844"))
        .args([
            with("user-data-dir", &profile),
            with("log-net-log", &log),
            with("crash-dumps-dir", &profile),
        ])
        .arg(format!("file://{}", file.display()))
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let complaints =
        errors.lines().filter(|line| line.contains(":CONSOLE")).map(String::from).collect();
    let net: serde_json::Value = serde_json::from_slice(&fs::read(&log).unwrap()).unwrap();
    let events = net["events"].as_array().unwrap();
    // The browser's own requests have no page behind them.
    let of_a_page = |event: &&serde_json::Value| {
        event["params"]["initiator"].as_str().is_some_and(|by| by != "not an origin")
    };
    let urls = events.iter().filter(of_a_page).filter_map(|event| event["params"]["url"].as_str());
    let requests = urls.filter(|url| !url.starts_with("data:")).map(String::from).collect();
    Seen { dom: String::from_utf8_lossy(&output.stdout).into_owned(), complaints, requests }
}

/// A page that holds another in a frame, and reports the widths of the frame and of what is in it.
fn in_a_frame(page: &str, width: u32) -> String {
    let page = page.replace('&', "&amp;").replace('"', "&quot;");
    format!(
        "<!doctype html><iframe style=\"border:0;width:{width}px;height:9999px\" \
         srcdoc=\"{page}\"></iframe><script>onload=()=>{{const \
         d=document.querySelector('iframe').contentDocument.documentElement;d.style.overflowY='\
         hidden';d.querySelectorAll('details').forEach(e=>e.open=true);const \
         least=[...d.querySelectorAll('figure \
         svg')].map(s=>s.getBoundingClientRect().width/s.viewBox.baseVal.width*Math.min(...[...s.\
         querySelectorAll('text')].map(t=>parseFloat(getComputedStyle(t).fontSize))));document.\
         body.dataset.letters=Math.min(...least);document.body.dataset.widths=d.clientWidth+' \
         '+d.scrollWidth}}</script>"
    )
}

#[track_caller]
fn is_quiet(seen: &Seen) {
    assert_eq!(seen.complaints, Vec::<String>::new());
    assert_eq!(seen.requests, Vec::<String>::new());
    assert!(seen.dom.contains("data-ready=\"yes\""), "the script did not run to its end");
    assert!(seen.dom.contains("<svg class=\"chart\""));
}

#[test]
fn the_pages_render_quietly() {
    let dir = Pages::new("quiet");
    dir.done(&["compare", "scenario.toml", "--seeds", "1..2", "--out", "both", "--quiet"]);
    dir.done(&["run", "scenario.toml", "--variant", "large", "--out", "one", "--quiet"]);
    let browser = needs!(browser());
    for folder in ["both", "one"] {
        let page = dir.page(folder);
        is_quiet(&open(browser, &dir, &page, 1280));
        // A window is never as narrow as a phone, but a frame is.
        let narrow = open(browser, &dir, &in_a_frame(&page, 390), 1280);
        assert_eq!(narrow.complaints, Vec::<String>::new());
        assert!(
            narrow.dom.contains("data-widths=\"390 390\""),
            "{folder}: the page scrolls sideways on a phone"
        );
    }
}

/// Presses the buttons of the figure with this caption and leaves what they hand out in the page.
fn taken_away(caption: &str) -> String {
    format!(
        "<script>
        const seen = {{}};
        window.Blob = class {{ constructor([text], {{ type }}) {{ seen[type] = text; }} }};
        URL.createObjectURL = () => 'data:,';
        HTMLAnchorElement.prototype.click = function () {{ seen.name = this.download; }};
        const figure = [...document.querySelectorAll('figure')].find((f) => \
         f.textContent.includes('{caption}'));
        const press = (name) => [...figure.querySelectorAll('button')].find((b) => b.textContent \
         === name).click();
        press('SVG');
        press('CSV');
        const parsed = new DOMParser().parseFromString(seen['image/svg+xml'], 'image/svg+xml');
        seen.sound = parsed.querySelector('parsererror') === null && \
         parsed.documentElement.localName === 'svg';
        seen.lines = parsed.querySelectorAll('path').length;
        const scale = () => figure.querySelector('svg.chart').dataset.y.split(' ')[0];
        seen.scales = [scale()];
        press('log');
        seen.scales.push(scale());
        press('log');
        seen.scales.push(scale());
        const out = document.createElement('pre');
        out.id = 'taken';
        out.textContent = JSON.stringify(seen);
        document.body.append(out);
        </script></body>"
    )
}

#[test]
fn charts_can_be_taken_away_and_drawn_on_the_other_scale() {
    let dir = Pages::new("taken");
    dir.0.write("scenario.toml", &format!("{SCENARIO}{OVER_TIME}"));
    let sampled = ["duration=100ms", "until=flows-complete", "capture.goodput=100us"];
    let mut compare =
        vec!["compare", "scenario.toml", "--seeds", "1..2", "--out", "both", "--quiet"];
    compare.extend(sampled.iter().flat_map(|set| ["--set", set]));
    dir.done(&compare);
    let page = dir.page("both");
    assert!(page.contains("class=\"failure\"") && page.contains(">host0–switch0 down</text>"));
    assert!(page.contains("class=\"seeds\"") && page.contains("data-steps"));
    assert!(page.contains("back at 95 % of that after"), "recovery times");
    assert!(page.contains("\u{202f}% flow ") && page.contains(" (host"), "contents of the peaks");
    let browser = needs!(browser());
    let page = page.replace("</body>", &taken_away("The fullest queue anywhere"));
    let seen = open(browser, &dir, &page, 1280);
    is_quiet(&seen);
    let text = seen.dom.split("<pre id=\"taken\">").nth(1).unwrap().split("</pre>").next().unwrap();
    let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    let taken: serde_json::Value = serde_json::from_str(&text).unwrap();
    let csv: Vec<&str> = taken["text/csv"].as_str().unwrap().lines().collect();
    assert_eq!(csv[0], "series,seed,time since the start (us),waiting bytes (bytes),low,high");
    // The first sample is taken after one period; each variant has its points under its own name.
    assert!(
        csv[1].starts_with("small & old,,10,")
            && csv.iter().any(|line| line.starts_with("large,,")),
        "{csv:?}"
    );
    let values =
        csv[1..].iter().map(|line| line.split(',').nth(3).unwrap().parse::<f64>().unwrap());
    assert!(
        values.clone().fold(0.0, f64::max) > 50_000.0
            && values.fold(f64::INFINITY, f64::min) == 0.0
    );
    assert_eq!(taken["sound"], true);
    assert_eq!(taken["name"], "page-more-queues-over-time-the-fullest-queue-anywhere.csv");
    assert_eq!(taken["scales"], serde_json::json!(["linear", "log", "linear"]));
    let svg = taken["image/svg+xml"].as_str().unwrap();
    // By itself: its colours are resolved, and its series have names.
    assert!(
        !svg.contains("var(")
            && !svg.contains("data-p")
            && svg.contains("xmlns=\"http://www.w3.org/2000/svg\"")
    );
    assert!(
        svg.contains(">small &amp; old</text>") && svg.contains("The fullest queue anywhere"),
        "{svg}"
    );
}

/// Drags over a quarter of the first chart of time, points at its middle, and restores the whole.
const ZOOM: &str = "<script>{
    const svg = [...document.querySelectorAll('svg.chart')].find((s) => \
     /^linear .* time$/.test(s.dataset.x) && s.dataset.read === 'x');
    const box = svg.getBoundingClientRect();
    const [left, top, right] = svg.dataset.box.split(' ').map(Number);
    const send = (type, part) => svg.dispatchEvent(new PointerEvent(type, { \
     clientX: box.left + (left + (right - left) * part) / svg.viewBox.baseVal.width * box.width, \
     clientY: box.top + box.height / 2, bubbles: true }));
    const seen = { whole: svg.dataset.x };
    const ticks = () => [...svg.querySelectorAll('text.fresh')].map((t) => t.textContent);
    send('pointerdown', 0.5); send('pointermove', 0.6); send('pointerup', 0.75);
    [seen.range, seen.ticks] = [svg.dataset.x, ticks()];
    send('pointermove', 0.5);
    seen.middle = document.querySelector('.readout').textContent;
    [...svg.closest('figure').querySelectorAll('button')].find((b) => b.textContent === \
     'whole').click();
    [seen.back, seen.left] = [svg.dataset.x, ticks()];
    const out = document.createElement('pre');
    out.id = 'taken';
    out.textContent = JSON.stringify(seen);
    document.body.append(out);}
    </script></body>";

#[test]
fn a_drag_over_a_chart_of_time_shows_that_range() {
    let dir = Pages::new("zoom");
    dir.0.write("scenario.toml", &format!("{SCENARIO}{OVER_TIME}"));
    dir.done(&["run", "scenario.toml", "--variant", "large", "--out", "one", "--quiet"]);
    let browser = needs!(browser());
    let seen = open(browser, &dir, &dir.page("one").replace("</body>", ZOOM), 1280);
    is_quiet(&seen);
    let text = seen.dom.split("<pre id=\"taken\">").nth(1).unwrap();
    let text = text.split("</pre>").next().unwrap();
    let seen: serde_json::Value = serde_json::from_str(text).unwrap();
    let range = |key: &str| -> Vec<f64> {
        let words = seen[key].as_str().unwrap().split(' ');
        words.filter_map(|word| word.parse().ok()).collect()
    };
    let (whole, part) = (range("whole"), range("range"));
    let at = |share: f64| whole[0] + (whole[1] - whole[0]) * share;
    let is_near = |a: f64, b: f64| (a - b).abs() < (whole[1] - whole[0]) * 0.01;
    assert!(is_near(part[0], at(0.5)) && is_near(part[1], at(0.75)), "{seen}");
    assert!((2..=6).contains(&seen["ticks"].as_array().unwrap().len()), "{seen}");
    let middle = seen["middle"].as_str().unwrap();
    assert!(middle.contains("µs") || middle.contains("ms"), "{seen}");
    assert_eq!((range("back"), seen["left"].as_array().unwrap().len()), (whole, 0), "{seen}");
}

#[test]
fn a_sweep_of_two_keys_has_heat_maps_that_a_phone_shows() {
    let dir = Pages::new("heat");
    let grid =
        ["--grid", "traffic.answers.degree=4,8", "--grid", "switch.buffer.size=50KB,100KB,300KB"];
    let common = ["sweep", "scenario.toml", "--seeds", "1..2", "--out", "grid", "--quiet"];
    dir.done(&[&common[..], &grid[..]].concat());
    let page = dir.page("grid");
    assert!(page.contains("<svg class=\"heat\"") && page.contains("class=\"seeds\""));
    let browser = needs!(browser());
    is_quiet(&open(browser, &dir, &page, 1280));
    let narrow = open(browser, &dir, &in_a_frame(&page, 390), 1280);
    assert!(narrow.dom.contains("data-widths=\"390 390\""), "the page scrolls sideways on a phone");
    // Letters of a drawing are as large on the phone as those of a footnote.
    let letters = narrow.dom.split("data-letters=\"").nth(1).unwrap().split('"').next().unwrap();
    assert!(letters.parse::<f64>().unwrap() >= 11.0, "letters of {letters} px");
}

/// A page in a dark or light frame of this width: a window is never as narrow as a phone. `scheme`
/// is what the frame's author asks for, which a page without a preference of its user takes.
fn shown_as(page: &str, scheme: &str) -> String {
    let media = format!("prefers-color-scheme:{scheme}");
    // Headless Chromium has the scheme light; for the test the page's question is turned.
    match scheme {
        "dark" => page.replace("(prefers-color-scheme:dark)", "(prefers-color-scheme:light)"),
        _ => {
            assert!(!page.contains(&media), "the page asks for light");
            page.to_string()
        }
    }
}

/// Leaves the page's colours and the contrast of its text in the document.
const COLOURS: &str = "<script>addEventListener('load',()=>{const c=e=>getComputedStyle(e);\
    const l=t=>t.match(/[0-9.]+/g).slice(0,3).map(v=>{v/=255;return v<=.03928?v/12.92:\
    ((v+.055)/1.055)**2.4}).reduce((s,v,i)=>s+v*[.2126,.7152,.0722][i],0);\
    const b=l(c(document.body).backgroundColor);\
    const r=t=>{const f=l(t);return (Math.max(f,b)+.05)/(Math.min(f,b)+.05)};\
    document.body.dataset.dark=b<.2;\
    document.body.dataset.contrast=Math.min(r(c(document.body).color),\
    r(c(document.querySelector('.facts')).color))})</script></body>";

#[test]
fn the_gallery_renders_quietly_light_and_dark_on_a_screen_and_a_phone() {
    let dir = Pages::new("gallery");
    dir.done(&["reproduce", "all", "--page", "all", "--recorded", "--quiet"]);
    let page = fs::read_to_string(dir.0.at("all/gallery.html")).unwrap();
    assert!(page.contains("default-src 'none'") && !page.contains("://"));
    let browser = needs!(browser());
    for scheme in ["light", "dark"] {
        let page = shown_as(&page, scheme).replace("</body>", COLOURS);
        let seen = open(browser, &dir, &page, 1280);
        is_quiet(&seen);
        let dark = format!("data-dark=\"{}\"", scheme == "dark");
        assert!(seen.dom.contains(&dark), "the page is not {scheme}");
        let contrast =
            seen.dom.split("data-contrast=\"").nth(1).unwrap().split('"').next().unwrap();
        assert!(contrast.parse::<f64>().unwrap() >= 4.5, "{scheme}: a contrast of {contrast}");
        for width in [390, 1280] {
            let framed = open(browser, &dir, &in_a_frame(&page, width), 1400);
            assert_eq!(framed.complaints, Vec::<String>::new());
            let widths = format!("data-widths=\"{width} {width}\"");
            assert!(framed.dom.contains(&widths), "{scheme}: scrolls sideways at {width} px");
        }
    }
}

/// Collectives of two sizes, whose 70 ranks share rows, and a job that computes.
const JOBS: &str = r#"
name = "jobs"
until = "flows-complete"
duration = "1s"
topology = { kind = "single-switch", hosts = 74 }
transport = { kind = "dcqcn" }

[[traffic]]
name = "reduce"
kind = "collective"
ranks = 70
size = "70KB"
compute = "5us"
repeat = 2

[[traffic]]
name = "stages"
kind = "collective"
op = "pipeline"
first = 70
size = "10KB"

[[variant]]
name = "70 KB"

[[variant]]
name = "700 KB"
set = { "traffic.reduce.size" = "700KB" }
"#;

#[test]
fn ranks_over_time_render_light_and_dark_on_a_screen_and_a_phone() {
    let dir = Pages::new("ranks");
    dir.0.write("scenario.toml", JOBS);
    dir.done(&["compare", "scenario.toml", "--out", "both", "--quiet"]);
    let page = dir.page("both");
    assert_eq!(page.matches("<svg class=\"gantt\"").count(), 4);
    assert!(page.contains(">Bus bandwidth by size</b>") && page.contains(">64–65</text>"));
    // Stages alone compute within a round: forward 100 us, backward 200.
    let stages = page.split("<svg class=\"gantt\"").nth(2).unwrap();
    assert!(stages.contains("&#10;3,computes,"), "{stages}");
    dir.done(&["sweep", "scenario.toml", "--grid", "traffic.reduce.size=70KB,700KB", "--quiet"]);
    assert!(dir.page("out/jobs-sweep").contains("<b>reduce: bus bandwidth, GB/s</b>"));
    let browser = needs!(browser());
    for scheme in ["light", "dark"] {
        let page = shown_as(&page, scheme);
        is_quiet(&open(browser, &dir, &page, 1280));
        let narrow = open(browser, &dir, &in_a_frame(&page, 390), 1280);
        assert_eq!(narrow.complaints, Vec::<String>::new());
        assert!(narrow.dom.contains("data-widths=\"390 390\""), "{scheme}: scrolls sideways");
        let letters = narrow.dom.split("data-letters=\"").nth(1).unwrap().split('"').next();
        assert!(letters.unwrap().parse::<f64>().unwrap() >= 11.0, "{scheme}: {letters:?} px");
    }
}

#[test]
fn what_is_wrong_would_be_seen() {
    let dir = Pages::new("wrong");
    dir.done(&["run", "scenario.toml", "--variant", "large", "--out", "one", "--quiet"]);
    let browser = needs!(browser());
    let page = dir.page("one");
    let with =
        |what: &str| open(browser, &dir, &page.replace("</body>", &format!("{what}</body>")), 1280);
    assert_eq!(with("<script>throw new Error('x')</script>").complaints.len(), 1);
    let image = "<img src=\"http://localhost:1/x.png\">";
    assert!(!with(image).complaints.is_empty(), "the page's policy lets a request through");
    let policy = "http-equiv=\"Content-Security-Policy\"";
    let page =
        page.replace(policy, "name=\"nothing\"").replace("</body>", &format!("{image}</body>"));
    assert!(!open(browser, &dir, &page, 1280).requests.is_empty(), "a request would go unseen");
}

#[test]
fn the_page_is_made_again_byte_for_byte() {
    let dir = Pages::new("again");
    dir.done(&["compare", "scenario.toml", "--seeds", "1..2", "--out", "both", "--quiet"]);
    let page = dir.page("both");
    assert!(
        page.contains("small &amp; old") && !page.contains("small & old") && !page.contains("://")
    );
    assert!(page.contains("default-src 'none'"));
    fs::remove_file(dir.0.at("both/report.html")).unwrap();
    dir.done(&["report", "both"]);
    assert_eq!(dir.page("both"), page);
    let refused = dir.millpond(&["report", "."]);
    assert_eq!(refused.status.code(), Some(2));
}
