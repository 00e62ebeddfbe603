//! A judged trend in the form of the summary, and what follows from it in shares an hour.
//!
//! Chooses nothing: the word is the statistics' own. What can't be judged is `unclear` with its reason, never `flat`.

use anyhow::Result;

use super::stats::ends::Ends;
use super::stats::trend::{self, Options, Reason, Rule, Trend};
use super::stats::warmup::WarmUp;
use super::summary::{TrendFinding, Word};

/// A series in equal bins, judged.
#[derive(Debug, Clone)]
pub(super) struct Judged {
    pub(super) finding: TrendFinding,
    /// As the statistics tell it; absent when there was nothing to judge.
    pub(super) trend: Option<Trend>,
}

/// How trends are judged in this experiment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Rules {
    /// The declared margin.
    pub(super) margin: Option<f64>,
    /// One-sided error rate of `flat`, shared by several claims where they are several.
    pub(super) alpha: f64,
}

/// A margin to compute intervals with where none is declared; the word is then `unclear` whatever they say.
const UNDECLARED: f64 = 0.1;

/// Judges ok requests a bin, or any series whose head may be a warm-up.
///
/// # Errors
/// When the series holds a value that is no finite number.
pub(super) fn judge(y: &[f64], bin_s: f64, rules: Rules, warm_up: bool) -> Result<Judged> {
    let margin = rules.margin.unwrap_or(UNDECLARED);
    if y.is_empty() {
        return Ok(Judged {
            finding: nothing(margin, bin_s),
            trend: None,
        });
    }
    let trend = trend::judge(
        y,
        &Options {
            margin,
            alpha: rules.alpha,
            search_warm_up: warm_up,
        },
    )?;
    let mut finding = finding(&trend, bin_s, y.len());
    if rules.margin.is_none() {
        finding.word = Word::Unclear;
        finding.reason = "no_margin".to_owned();
        finding.margin = 0.0;
    }
    Ok(Judged {
        finding,
        trend: Some(trend),
    })
}

/// Judges a sampled series: the verdict alone, since a description of hundreds of series would take as long as the rest.
///
/// # Errors
/// When the series is empty or holds a value that is no finite number.
pub(super) fn verdict(y: &[f64], bin_s: f64, margin: f64, alpha: f64) -> Result<TrendFinding> {
    let trend = trend::verdict(
        y,
        &Options {
            margin,
            alpha,
            search_warm_up: true,
        },
    )?;
    Ok(finding(&trend, bin_s, y.len()))
}

fn nothing(margin: f64, bin_s: f64) -> TrendFinding {
    TrendFinding {
        word: Word::Unclear,
        reason: "few".to_owned(),
        rule: String::new(),
        margin,
        estimate: None,
        ci90: None,
        ci95: None,
        n: 0,
        bin_s,
        n_eff: None,
        smallest_flat_margin: None,
        more_s: None,
        warmup: "declared warm-up only".to_owned(),
        detail: serde_json::Value::Null,
    }
}

fn finding(trend: &Trend, bin_s: f64, bins: usize) -> TrendFinding {
    let pair = |i: super::stats::series::Interval| [i.lower, i.upper];
    TrendFinding {
        word: word(trend.word),
        reason: reason(trend).to_owned(),
        rule: trend.rule.map_or("", rule).to_owned(),
        margin: trend.margin,
        estimate: trend.estimate,
        ci90: trend.flat_interval.map(pair),
        ci95: trend.direction_interval.map(pair),
        n: trend.n,
        bin_s,
        n_eff: trend.n_eff,
        smallest_flat_margin: trend.smallest_flat_margin,
        // A warm-up in the series or rules that disagree are not mended by more time.
        more_s: matches!(trend.reason, Reason::Wide | Reason::Few)
            .then_some(trend.times_as_long_for_flat)
            .flatten()
            .filter(|times| *times > 1.0)
            .map(|times| ((times - 1.0) * bins as f64 * bin_s).ceil()),
        warmup: warm_up(trend.warm_up),
        detail: serde_json::to_value(trend).unwrap_or_default(),
    }
}

/// The summary's word.
pub(super) fn word(word: trend::Word) -> Word {
    match word {
        trend::Word::Flat => Word::Flat,
        trend::Word::Falls => Word::Falls,
        trend::Word::Rises => Word::Rises,
        trend::Word::Unclear => Word::Unclear,
    }
}

fn rule(rule: Rule) -> &'static str {
    match rule {
        Rule::Linear => "linear",
        Rule::Ends => "ends",
        Rule::Separation => "separation",
    }
}

fn reason(trend: &Trend) -> &'static str {
    match trend.reason {
        Reason::InsideMargin => "inside_margin",
        Reason::BeyondMargin if trend.word == trend::Word::Rises => "above_margin",
        Reason::BeyondMargin => "below_margin",
        Reason::Separated => "separated",
        Reason::Few => "few",
        Reason::Wide => "wide",
        Reason::WarmUpSensitive => "warm_up_sensitive",
        Reason::Contradiction => "contradiction",
        Reason::NoLevel => "no_level",
    }
}

fn warm_up(handling: WarmUp) -> String {
    match handling {
        WarmUp::NotSearched | WarmUp::None => "declared warm-up only".to_owned(),
        WarmUp::Cut { bins } => format!("cut {bins} bins"),
        WarmUp::NotCutFew { .. } => "not cut (few)".to_owned(),
        WarmUp::NoSteadyState => "no steady state".to_owned(),
    }
}

/// Estimate, lower and upper end of a 95 % interval.
pub(super) type Estimate = [f64; 3];

/// The Prais-Winsten slope as share of the level an hour, with its interval for directions.
pub(super) fn slope_per_hour(judged: &Judged) -> Option<Estimate> {
    let trend = judged.trend.as_ref()?;
    let linear = trend.linear?;
    let hours = (trend.n.checked_sub(1)? as f64) * judged.finding.bin_s / 3_600.0;
    (hours > 0.0).then(|| {
        let interval = linear.direction_interval;
        [linear.change, interval.lower, interval.upper].map(|change| change / hours)
    })
}

/// The change from the first to the last window as a share with its 95 % interval: the ends contrast on these two.
pub(super) fn change_between(first: &[f64], last: &[f64]) -> Option<Estimate> {
    let m = first.len().min(last.len());
    let (first, last) = (&first[..m], &last[last.len() - m..]);
    // The rule compares thirds; the middle one is not looked at.
    let thirds = [first, first, last].concat();
    let (contrast, interval) = Ends::of(&thirds)?.counted(0.025);
    [contrast.change, interval.lower, interval.upper]
        .iter()
        .all(|v| v.is_finite())
        .then_some([contrast.change, interval.lower, interval.upper])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(margin: Option<f64>) -> Rules {
        Rules {
            margin,
            alpha: 0.05,
        }
    }

    fn wavy(n: usize, slope: f64) -> Vec<f64> {
        (0..n)
            .map(|t| 100.0 + slope * t as f64 + [0.0, 2.0, -1.0, 1.0, -2.0, 3.0, -3.0][t * t % 7])
            .collect()
    }

    #[test]
    fn without_a_margin_nothing_is_flat() {
        let y = wavy(120, 0.0);
        assert_eq!(
            judge(&y, 1.0, rules(Some(0.2)), true).unwrap().finding.word,
            Word::Flat
        );
        let judged = judge(&y, 1.0, rules(None), true).unwrap();
        assert_eq!(judged.finding.word, Word::Unclear);
        assert_eq!(judged.finding.reason, "no_margin");
    }

    #[test]
    fn an_empty_series_is_unclear_and_has_no_number() {
        let judged = judge(&[], 1.0, rules(Some(0.2)), true).unwrap();
        assert_eq!(judged.finding.word, Word::Unclear);
        assert_eq!(judged.finding.estimate, None);
        let zeros = judge(&[0.0; 100], 1.0, rules(Some(0.2)), true).unwrap();
        assert_eq!(zeros.finding.word, Word::Unclear);
    }

    #[test]
    fn slopes_are_per_hour() {
        let judged = judge(&wavy(361, -0.1), 10.0, rules(Some(0.2)), true).unwrap();
        let [slope, low, high] = slope_per_hour(&judged).unwrap();
        // An hour's change is the whole change.
        assert!((slope - judged.trend.unwrap().linear.unwrap().change).abs() < 1e-12);
        assert!(low < slope && slope < high);
    }

    #[test]
    fn the_change_between_windows_brackets_its_estimate() {
        let y = wavy(120, -0.4);
        let [change, low, high] = change_between(&y[..20], &y[100..]).unwrap();
        let by_hand = y[100..].iter().sum::<f64>() / y[..20].iter().sum::<f64>() - 1.0;
        assert!((change - by_hand).abs() < 0.05, "{change} {by_hand}");
        assert!(low < change && change < high);
        assert_eq!(change_between(&[0.0; 20], &[0.0; 20]), None);
    }
}
