//! JUnit XML for continuous integration: a case a criterion and arm, and one for the run's validity.

use std::fmt::Write as _;

use super::{text, words};
use crate::analysis::{Summary, Verdict};

/// The run as a JUnit test suite. What was not observed or not decided is an error, never a pass.
pub fn junit(summary: &Summary) -> String {
    let mut cases = String::new();
    let (mut failures, mut errors) = (0, 0);
    let suite = &summary.experiment.name;
    let invalid = (!summary.validity.valid).then(|| words::clauses(&summary.validity.reasons));
    open(&mut cases, suite, "the run is valid");
    match &invalid {
        None => cases.push_str("/>\n"),
        Some(why) => {
            errors += 1;
            child(&mut cases, "error", "the run is not valid", why);
        }
    }
    for criterion in &summary.criteria {
        open(
            &mut cases,
            suite,
            &format!("{} ({})", criterion.name, criterion.arm),
        );
        let observed: Vec<String> = criterion
            .observed
            .iter()
            .map(|(name, value)| format!("{name} = {}", words::figure(value.as_ref())))
            .collect();
        let detail = format!("{}; observed {}", criterion.holds, observed.join(", "));
        match &criterion.verdict {
            _ if invalid.is_some() => {
                errors += 1;
                child(&mut cases, "error", "the run is not valid", &detail);
            }
            Verdict::Supported => cases.push_str("/>\n"),
            Verdict::Refuted => {
                failures += 1;
                child(&mut cases, "failure", "does not hold", &detail);
            }
            other => {
                errors += 1;
                child(&mut cases, "error", &words::verdict(other), &detail);
            }
        }
    }
    let tests = 1 + summary.criteria.len();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites tests=\"{tests}\" failures=\"{failures}\" errors=\"{errors}\">\n<testsuite name=\"{}\" tests=\"{tests}\" failures=\"{failures}\" errors=\"{errors}\" timestamp=\"{}\">\n{cases}</testsuite>\n</testsuites>\n",
        text::html(suite),
        text::html(&summary.run.started),
    )
}

fn open(out: &mut String, suite: &str, name: &str) {
    let _ = write!(
        out,
        "<testcase classname=\"{}\" name=\"{}\"",
        text::html(suite),
        text::html(name)
    );
}

fn child(out: &mut String, element: &str, message: &str, detail: &str) {
    let _ = writeln!(
        out,
        "><{element} message=\"{}\">{}</{element}></testcase>",
        text::html(message),
        text::html(detail)
    );
}
