//! Text from outside can't change the structure of a report: whatever names, log lines and bodies hold, a reader of
//! Markdown or HTML finds the same headings, tables, rows and cells.

use std::sync::LazyLock;

use ceteris::analysis::Summary;
use ceteris::measure::{Equality, EqualityItem};
use ceteris::report::{self, Format, KeptRun, TemplateSource};
use proptest::prelude::*;
use pulldown_cmark::{Event, Options, Parser, Tag};

use super::fixture;

/// A run in which every text from outside is `text`.
fn with_text(text: &str) -> (Summary, Vec<KeptRun>) {
    let mut summary = fixture::apart();
    let words = || text.to_owned();
    let header = &mut summary.experiment;
    header.title = words();
    header.question = words();
    header.status = Some(words());
    header.footer = Some(words());
    if let Some(probe) = &mut summary.probe {
        probe.verdict = words();
        probe.not_whole = Some(words());
        for level in &mut probe.levels {
            level.driver_limits = vec![words()];
            level.services[0].service = words();
        }
    }
    for micro in &mut summary.micro {
        micro.name = words();
        micro.not_whole = Some(words());
    }
    summary.setup.machine.cpu_model = words();
    summary.setup.clients = words();
    summary.setup.pruning.control = Some(words());
    for service in &mut summary.setup.services {
        service.service = words();
        service.version = Some(words());
        service.command = vec![words(), words()];
        service.declared_settings = [(words(), words())].into();
    }
    for step in &mut summary.setup.steps {
        step.name = words();
        step.request = words();
    }
    summary.difference.variable = Some(words());
    summary.difference.values = fixture::both(Some(words()), Some(words()));
    for verdict in [
        Equality::Equal,
        Equality::Implied(words()),
        Equality::Permitted(words()),
    ] {
        summary.difference.items.push(EqualityItem {
            what: words(),
            treatment: words(),
            control: words(),
            verdict,
        });
    }
    for explanation in &mut summary.explanations {
        explanation.name = words();
        explanation.because = words();
        for prediction in &mut explanation.predictions {
            prediction.figure = words();
        }
    }
    for claim in &mut summary.claims {
        claim.text = words();
        claim.also_survive = vec![words()];
        for why in &mut claim.refused_by {
            *why = words();
        }
    }
    for criterion in &mut summary.criteria {
        criterion.name = words();
        criterion.holds = words();
    }
    for limit in &mut summary.limits {
        limit.text = words();
    }
    for gate in &mut summary.gates {
        gate.detail = words();
    }
    for note in &mut summary.notes {
        note.text = words();
    }
    summary.run.command_line = vec![words(), words()];
    for arm in [&mut summary.arms.treatment, &mut summary.arms.control] {
        let arm = arm.as_mut().unwrap();
        for series in &mut arm.series {
            series.name = format!("services.x{text}");
            series.unit = words();
        }
        for episode in &mut arm.episodes {
            episode.coincides = vec![words()];
            episode.failed = [(words(), 1)].into();
        }
        for example in &mut arm.failure_examples {
            example.step = words();
            example.class = words();
            example.said = words();
        }
        arm.plot.actions.push((3.0, words()));
        let rows = arm
            .plot
            .sampled
            .remove("services.db.table.jobs.rows")
            .unwrap();
        arm.plot
            .sampled
            .insert(format!("services.db.table.{text}.rows"), rows);
        let memory = arm.plot.sampled.remove("services.db.memory.pss").unwrap();
        arm.plot
            .sampled
            .insert(format!("services.x{text}.memory.pss"), memory);
        arm.plot.sampled.remove("services.db.memory.cgroup");
    }
    let kept = vec![KeptRun {
        id: words(),
        started: words(),
        ended: words(),
        valid: None,
        result: words(),
        smoke: false,
    }];
    (summary, kept)
}

/// What a reader of GitHub's Markdown finds, texts left out.
fn skeleton(markdown: &str) -> Vec<String> {
    let options = Options::ENABLE_TABLES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_MATH;
    let mut found = Vec::new();
    let mut in_picture = false;
    for event in Parser::new_ext(markdown, options) {
        match event {
            Event::Start(Tag::Image { dest_url, .. }) => {
                in_picture = true;
                found.push(format!("picture {dest_url}"));
            }
            Event::End(pulldown_cmark::TagEnd::Image) => in_picture = false,
            Event::Text(_) | Event::Code(_) | Event::SoftBreak => {}
            Event::InlineHtml(tag) if matches!(&*tag, "<code>" | "</code>") => {}
            Event::Start(Tag::Link { dest_url, .. }) => found.push(format!("link {dest_url}")),
            other if in_picture => found.push(format!("in a picture {other:?}")),
            other => found.push(format!("{other:?}")),
        }
    }
    found
}

/// Tags of a page in order, texts and what is said in attributes left out; `code` left out too.
fn tags(page: &str) -> Vec<String> {
    let mut found = Vec::new();
    for piece in page.split('<').skip(1) {
        let (tag, _) = piece
            .split_once('>')
            .unwrap_or_else(|| panic!("an open tag: {piece}"));
        let mut words = tag.splitn(2, ' ');
        let name = words.next().unwrap();
        let attributes = words.next().unwrap_or_default();
        let names: Vec<&str> = attributes
            .split('"')
            .step_by(2)
            .map(|name| name.trim().trim_end_matches('='))
            .collect();
        if !name.ends_with("code") {
            found.push(format!("{name} {}", names.join(",")));
        }
    }
    found
}

fn hidden(text: &str) -> Option<char> {
    text.chars()
        .find(|c| (c.is_control() && *c != '\n') || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}'))
}

/// Fails at the first difference, and says only that one.
fn same(text: &str, got: &[String], want: &[String]) {
    let longest = got.len().max(want.len());
    if let Some(i) = (0..longest).find(|&i| got.get(i) != want.get(i)) {
        panic!(
            "{text:?} changed part {i}: {:?} became {:?}",
            want.get(i),
            got.get(i)
        );
    }
}

/// Every file of the report, and the structure of the Markdown and of the page.
struct Rendered {
    files: Vec<(String, String)>,
    markdown: Vec<String>,
    short: Vec<String>,
    page: Vec<String>,
}

fn rendered(text: &str) -> Rendered {
    let (summary, kept) = with_text(text);
    let files: Vec<(String, String)> =
        report::render(&summary, &kept, &Format::ALL, &TemplateSource::built_in())
            .unwrap()
            .into_iter()
            .map(|(name, bytes)| (name, String::from_utf8(bytes).unwrap()))
            .collect();
    let file = |wanted: &str| &files.iter().find(|(name, _)| name == wanted).unwrap().1;
    Rendered {
        markdown: skeleton(file("report.md")),
        short: skeleton(file("github-summary.md")),
        page: tags(file("report.html")),
        files,
    }
}

fn check(text: &str) {
    static PLAIN: LazyLock<Rendered> = LazyLock::new(|| rendered("plain"));
    let got = rendered(text);
    same(text, &got.markdown, &PLAIN.markdown);
    same(text, &got.short, &PLAIN.short);
    same(text, &got.page, &PLAIN.page);
    for (name, file) in &got.files {
        if !name.ends_with(".json") {
            assert_eq!(hidden(file), None, "{name}");
        }
    }
    // Pictures and JUnit: the same elements with the same attributes, whatever the names are.
    let drawn = |files: &[(String, String)]| -> Vec<(String, Vec<String>)> {
        files
            .iter()
            .filter(|(name, _)| name.ends_with(".svg") || name.ends_with(".xml"))
            .map(|(name, file)| (name.clone(), tags(file)))
            .collect()
    };
    let (got, want) = (drawn(&got.files), drawn(&PLAIN.files));
    assert!(want.len() >= 6, "{}", want.len());
    for ((name, got), (other, want)) in got.iter().zip(&want) {
        assert_eq!(name, other);
        same(text, got, want);
    }
}

#[test]
fn known_attacks_change_nothing() {
    let long = "x|".repeat(5_000);
    for text in [
        "a | b | c",
        "`code` ``x`` ```",
        "<script>alert(1)</script>",
        "</table></details><img src=x onerror=alert(1)>",
        "<!-- hidden",
        "![x](http://evil.example/a.png) [link](javascript:alert(1))",
        "https://evil.example www.evil.example <https://evil.example> a@evil.example",
        "# heading\n\n## another\n---\n===",
        "- item\n- item",
        "1. one",
        "10) ten",
        "> quote",
        "    indented",
        "~~~\nfence",
        "***bold*** __bold__ ~~gone~~ $math$ [^1]",
        "[x]: http://evil.example",
        "&lt;b&gt; &#60;script&#62; &amp;",
        "\u{202e}reversed\u{202c} \u{200b}\u{feff}\0\u{1b}[31m",
        "\" onload=\"alert(1)",
        "' onload='alert(1)",
        "{{ title }} {% raw %}",
        "]]>",
        "\\",
        "\\|",
        "| --- |",
        "=",
        "+",
        &long,
    ] {
        check(text);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn no_text_changes_the_structure(text in "([|`<>&\\\\\\[\\]()*_~#+=.!$:/@{}%\"'\n\r\t\0 -]|[a-z0-9]|script|https://|www\\.|\u{202e}|\\PC){1,40}") {
        prop_assume!(!text.trim().is_empty());
        check(&text);
    }
}
