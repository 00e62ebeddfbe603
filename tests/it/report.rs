//! Golden reports: what a reader gets for each kind of run.

use std::path::PathBuf;

use ceteris::analysis::Summary;
use ceteris::name::Arms;
use ceteris::report::{self, TemplateSource};

pub mod fixture;
mod hostile;

/// Compares with `tests/it/golden/NAME`; with `UPDATE_GOLDEN=1` in the environment the file is written anew.
fn golden(name: &str, text: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/it/golden")
        .join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let stored = std::fs::read_to_string(&path).unwrap_or_default();
    for (i, (got, want)) in text.lines().zip(stored.lines()).enumerate() {
        assert_eq!(
            got,
            want,
            "{name}, line {} (UPDATE_GOLDEN=1 writes it anew)",
            i + 1
        );
    }
    assert_eq!(text.len(), stored.len(), "{name} has another length");
}

fn markdown(summary: &Summary) -> String {
    report::markdown(
        summary,
        &fixture::kept(summary),
        &TemplateSource::built_in(),
    )
    .unwrap()
}

/// Every kind of run by the name of its golden file.
fn kinds() -> Vec<(&'static str, Summary)> {
    vec![
        ("valid", fixture::valid()),
        ("refuted", fixture::refuted()),
        ("unclear", fixture::unclear()),
        ("not-valid", fixture::not_valid()),
        ("interrupted", fixture::interrupted()),
        ("smoke", fixture::smoke()),
        ("unequal", fixture::unequal()),
        ("null", fixture::null()),
        ("apart", fixture::apart()),
    ]
}

#[test]
fn each_kind_of_run_reads_as_it_should() {
    for (name, summary) in kinds() {
        golden(&format!("{name}.md"), &markdown(&summary));
    }
}

#[test]
fn the_short_forms_read_as_they_should() {
    let summary = fixture::refuted();
    let kept = fixture::kept(&summary);
    golden("refuted.junit.xml", &report::junit(&summary));
    let short = report::github_summary(&summary, &kept, &TemplateSource::built_in()).unwrap();
    golden("refuted.github-summary.md", &short);
}

#[test]
fn the_picture_of_throughput_is_drawn_as_it_should() {
    let charts = report::charts(&fixture::valid());
    let names: Vec<&str> = charts.iter().map(|chart| chart.name.as_str()).collect();
    assert_eq!(
        names,
        ["throughput", "latency", "histogram", "memory", "rows"]
    );
    golden("throughput.svg", &charts[0].svg);
}

#[test]
fn a_long_value_never_runs_over_another_label_of_a_picture() {
    let labelled = |variable: &str, value: &str| {
        let mut summary = fixture::null();
        let other = fixture::valid();
        summary.difference = other.difference;
        summary.difference.variable = Some(variable.to_owned());
        summary.difference.values = Arms {
            treatment: Some(value.to_owned()),
            control: Some(value.to_owned()),
        };
        let charts = report::charts(&summary);
        assert!(charts.iter().any(|chart| chart.name == "pairs"));
        charts
            .into_iter()
            .map(|chart| chart.svg)
            .collect::<String>()
    };
    let long = labelled("deployment.app.process.command", &"[\"app\"]".repeat(12));
    assert!(!long.contains("process.command") && !long.contains("more characters"));
    assert!(long.contains(">treatment<"), "{long}");
    let short = labelled("deployment.app.process.env.MALLOC_ARENA_MAX", "'1'");
    assert!(short.contains("(MALLOC_ARENA_MAX = "), "{short}");
}

#[test]
fn a_probe_has_a_picture_with_its_knee() {
    let charts = report::charts(&fixture::apart());
    let probe = charts.iter().find(|chart| chart.name == "probe").unwrap();
    golden("probe.svg", &probe.svg);
    assert!(probe.svg.contains("knee: 4 clients"));
    // A knee that may be the driver's own is not marked.
    let mut summary = fixture::apart();
    let found = summary.probe.as_mut().unwrap().found.as_mut().unwrap();
    found.driver_was_the_limit = true;
    let charts = report::charts(&summary);
    let probe = charts.iter().find(|chart| chart.name == "probe").unwrap();
    assert!(!probe.svg.contains("knee"), "{}", probe.svg);
}

/// The lines of the evidence box from one heading to the next.
fn part<'a>(report: &'a str, heading: &str) -> Vec<&'a str> {
    report
        .lines()
        .skip_while(|line| *line != format!("> **{heading}**"))
        .skip(1)
        .take_while(|line| !line.starts_with("> **") && line.starts_with('>'))
        .filter(|line| line.len() > 1)
        .collect()
}

#[test]
fn what_is_not_evidence_supports_nothing_and_something_is_never_supported() {
    for (name, summary) in kinds() {
        let report = markdown(&summary);
        let supports = part(&report, "Supports");
        assert!(!part(&report, "Does not support").is_empty(), "{name}");
        if !summary.validity.valid || summary.run.smoke {
            assert_eq!(supports.len(), 1, "{name}: {supports:?}");
            assert!(
                supports[0].starts_with("> - Nothing"),
                "{name}: {supports:?}"
            );
        }
        if !summary.validity.valid {
            let first = report
                .lines()
                .filter(|line| !line.is_empty())
                .nth(2)
                .unwrap();
            assert!(first.starts_with("**Not valid"), "{name}: {first}");
        }
    }
    let mut bare = fixture::valid();
    bare.limits.clear();
    bare.claims.clear();
    assert!(!part(&markdown(&bare), "Does not support").is_empty());
}

#[test]
fn no_words_of_cause_or_speed_without_a_claim_that_earned_them() {
    for (name, mut summary) in kinds() {
        summary.experiment.question = String::from("q");
        for explanation in &mut summary.explanations {
            explanation.because = String::from("b");
        }
        for claim in &mut summary.claims {
            claim.text = String::from("c");
        }
        let report = markdown(&summary).to_lowercase();
        for word in [
            "caused",
            "causes",
            "proves",
            "proven",
            "faster",
            "slower",
            "because of",
        ] {
            assert!(!report.contains(word), "{name} says {word}");
        }
    }
}

/// A folder with one template.
fn own(name: &str, source: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join(name), source).unwrap();
    dir
}

#[test]
fn a_teams_own_template_is_escaped_too_and_may_use_the_built_in_tables() {
    let dir = own(
        "report.md",
        "{% from \"tables.md\" import table %}\n# Ours: {{ title }}\n\n{{ table(windows) }}\n",
    );
    let mut summary = fixture::valid();
    summary.experiment.title = "a | <b>".into();
    let templates = TemplateSource::folder(dir.path()).unwrap();
    let text = report::markdown(&summary, &[], &templates).unwrap();
    assert!(text.starts_with("# Ours: a \\| &lt;b&gt;\n"), "{text}");
    assert!(text.contains("| 0:00–0:20 | 1,486 |"), "{text}");
}

#[test]
fn a_wrong_template_is_named_with_its_line() {
    let summary = fixture::valid();
    for (source, want) in [
        ("# {{ title }}\n{{ tittle }}\n", "report.md:2"),
        ("# {{ title }}\n\n{% for x in %}\n", "report.md:3"),
        ("{{ evidence.setup[99].text }}", "report.md:1"),
    ] {
        let dir = own("report.md", source);
        let templates = TemplateSource::folder(dir.path()).unwrap();
        let error = report::markdown(&summary, &[], &templates).unwrap_err();
        let text = format!("{error:#}");
        assert!(text.contains(want), "{text}");
    }
}

#[test]
fn a_template_folder_without_templates_is_refused_by_name() {
    let empty = tempfile::tempdir().unwrap();
    for dir in [empty.path().to_owned(), empty.path().join("absent")] {
        let error = format!("{:#}", TemplateSource::folder(&dir).unwrap_err());
        assert!(error.contains(&dir.display().to_string()), "{error}");
    }
}

#[test]
fn a_report_names_each_of_its_files_and_the_page_needs_none() {
    let summary = fixture::valid();
    let kept = fixture::kept(&summary);
    let files = report::render(
        &summary,
        &kept,
        &report::Format::ALL,
        &TemplateSource::built_in(),
    )
    .unwrap();
    let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
    for format in report::Format::ALL {
        assert!(names.contains(&format.file()), "{names:?}");
    }
    let text = |name: &str| {
        let (_, bytes) = files.iter().find(|(file, _)| file == name).unwrap();
        String::from_utf8(bytes.clone()).unwrap()
    };
    let markdown = text("report.md");
    for name in names.iter().filter(|name| name.starts_with("charts/")) {
        assert!(markdown.contains(&format!("]({name})")), "{name}");
    }
    let page = text("report.html");
    for reference in ["src=", "url(", "@import", "<script", "<link"] {
        assert!(!page.contains(reference), "{reference}");
    }
    let read: Vec<report::KeptRun> = serde_json::from_str(&text(report::KEPT_FILE)).unwrap();
    assert_eq!(read, kept);
}

#[test]
fn a_run_of_three_days_makes_a_small_page() {
    let mut summary = fixture::unequal();
    // A bad second every twelve, three days long, and what the picture holds at most of everything else.
    let arm = summary.arms.treatment.as_mut().unwrap();
    let one = arm.episodes[0].clone();
    arm.episodes = (0..21_600)
        .map(|i| {
            let mut episode = one.clone();
            episode.from_s = 12 * i;
            episode.to_s = 12 * i + 1;
            episode
        })
        .collect();
    arm.plot.actions = (0..400)
        .map(|i| (f64::from(i) * 648.0, format!("reload {i}")))
        .collect();
    let built_in = TemplateSource::built_in();
    let page = report::html(&summary, &[], &built_in).unwrap();
    assert!(page.len() < 1_000_000, "{} bytes", page.len());
    let text = report::markdown(&summary, &[], &built_in).unwrap();
    assert!(text.len() < 100_000, "{} bytes", text.len());
    assert!(
        text.contains("12 of 21,600 episodes shown"),
        "the number of episodes is told"
    );
}
