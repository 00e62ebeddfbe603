//! Numbers, durations and verdicts as text.
//!
//! The one place where a figure becomes words. It must never combine two figures into a third, and never choose a word
//! that its verdict doesn't carry.

pub use super::text::{glance, one_line};
use crate::analysis::Verdict;
use crate::analysis::summary::{FigureValue, TrendFinding, Word};

/// Reason code of a trend that nothing was declared to judge by.
const NO_MARGIN: &str = "no_margin";

/// What stands where a figure is missing.
pub const NOT_OBSERVED: &str = "not observed";

/// A number with at most three significant digits and thousands separated: `1,662`, `63.2`, `0.94`.
pub fn number(value: f64) -> String {
    if !value.is_finite() {
        return NOT_OBSERVED.to_owned();
    }
    let magnitude = value.abs();
    let decimals = match magnitude {
        m if m == 0.0 || m >= 99.95 => 0,
        m if m >= 9.995 => 1,
        m if m >= 0.9995 => 2,
        m if m >= 0.0001 => (2 - m.log10().floor() as i32).clamp(0, 7) as usize,
        _ => return signed(format!("{value:.2e}")),
    };
    let text = format!("{value:.decimals$}");
    signed(grouped(strip_zeros(&text)))
}

/// A ratio with three significant digits, zeros kept: `1.00` says more than `1`.
pub fn ratio(value: f64) -> String {
    match value.abs() {
        m if !m.is_finite() => NOT_OBSERVED.to_owned(),
        m if m >= 99.95 => number(value),
        m if m >= 9.995 => signed(format!("{value:.1}")),
        m if m >= 0.9995 => signed(format!("{value:.2}")),
        _ => signed(format!("{value:.3}")),
    }
}

/// A whole number with thousands separated: `1,234,567`.
pub fn count(value: u64) -> String {
    grouped(&value.to_string())
}

/// A share as per cent without sign: `64 %`, `0.4 %`, `0.03 %`. What is not zero never reads as zero.
pub fn percent(share: f64) -> String {
    if !share.is_finite() {
        return NOT_OBSERVED.to_owned();
    }
    let value = share * 100.0;
    let decimals = match value.abs() {
        m if m == 0.0 || m >= 9.95 => 0,
        m if m >= 0.05 => 1,
        m if m >= 0.0005 => (-m.log10().floor()) as usize,
        _ if value > 0.0 => return "under 0.001 %".to_owned(),
        _ => return "above −0.001 %".to_owned(),
    };
    let text = format!("{value:.decimals$}");
    format!("{} %", signed(grouped(strip_zeros(&text))))
}

/// A share as per cent with its sign: `+1.2 %`, `−64 %`.
pub fn change(share: f64) -> String {
    let text = percent(share);
    if share > 0.0 && text.starts_with(|c: char| c.is_ascii_digit()) {
        format!("+{text}")
    } else {
        text
    }
}

/// A duration in the unit that reads best: `20 s`, `9 minutes`, `72 hours`.
pub fn duration(seconds: f64) -> String {
    if !seconds.is_finite() {
        return NOT_OBSERVED.to_owned();
    }
    let unit = |value: f64, name: &str| {
        let text = number((value * 10.0).round() / 10.0);
        let plural = if text == "1" { "" } else { "s" };
        format!("{text} {name}{plural}")
    };
    match seconds.abs() {
        s if s < 120.0 => format!("{} s", number(seconds)),
        s if s < 7_200.0 => unit(seconds / 60.0, "minute"),
        _ => unit(seconds / 3_600.0, "hour"),
    }
}

/// A moment of the measured time: `0:20`, `1:02:05`.
pub fn clock(seconds: f64) -> String {
    if !seconds.is_finite() {
        return NOT_OBSERVED.to_owned();
    }
    let whole = seconds.max(0.0).round() as u64;
    let (hours, minutes, seconds) = (whole / 3_600, whole / 60 % 60, whole % 60);
    if hours > 0 {
        format!("{hours}:{minutes:02}:{seconds:02}")
    } else {
        format!("{minutes}:{seconds:02}")
    }
}

/// Bytes in the unit that reads best: `7.7 GiB`.
pub fn bytes(value: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = value as f64;
    let mut unit = 0;
    while value >= 1_024.0 && unit + 1 < UNITS.len() {
        value /= 1_024.0;
        unit += 1;
    }
    format!("{} {}", number(value), UNITS[unit])
}

/// A value in its unit, as the catalogue writes units: shares become per cent, `–` and `count` vanish.
pub fn in_unit(value: f64, unit: &str) -> String {
    match unit {
        "share" => percent(value),
        "s" => duration(value),
        "bytes" if value >= 0.0 => bytes(value as u64),
        "" | "–" | "-" | "count" | "as served" | "word" => number(value),
        unit => format!("{} {unit}", number(value)),
    }
}

/// An optional number in a unit.
pub fn maybe(value: Option<f64>, unit: &str) -> String {
    value.map_or_else(|| NOT_OBSERVED.to_owned(), |v| in_unit(v, unit))
}

/// A figure as observed.
pub fn figure(value: Option<&FigureValue>) -> String {
    match value {
        Some(FigureValue::Number(value)) => number(*value),
        Some(FigureValue::Word(word)) => word.clone(),
        None => NOT_OBSERVED.to_owned(),
    }
}

/// An arm's or series' trend in one sentence part: `fell by 64 % to 68 %; "flat" would have needed a change under 20 %`.
pub fn trend(finding: &TrendFinding) -> String {
    let margin = percent(finding.margin);
    let needed = format!("\"flat\" would have needed a change under {margin}");
    match finding.word {
        Word::Falls => format!("{}; {needed}", moved("fell", finding, -1.0)),
        Word::Rises => format!("{}; {needed}", moved("rose", finding, 1.0)),
        Word::Flat => match finding.ci90 {
            Some([low, high]) => format!(
                "stayed flat: {} to {} (90 % interval) lies inside ±{margin}",
                change(low),
                change(high)
            ),
            None => format!("stayed flat at a margin of {margin}"),
        },
        Word::Unclear => {
            let mut text = unclear(finding);
            if let Some([low, high]) = finding.ci90 {
                text.push_str(&format!(
                    "; the change lies between {} and {} (90 % interval)",
                    change(low),
                    change(high)
                ));
            }
            if finding.reason == NO_MARGIN {
                return text;
            }
            format!("{text}; {}", reason(&finding.reason))
        }
    }
}

/// `unclear at 10 % (would need about 9 more minutes)`.
pub fn unclear(finding: &TrendFinding) -> String {
    if finding.reason == NO_MARGIN {
        return "unclear (no margin was declared)".to_owned();
    }
    let margin = percent(finding.margin);
    match finding.more_s {
        Some(more) => format!("unclear at {margin} (would need {})", more_time(more)),
        None => format!("unclear at {margin}"),
    }
}

/// The word alone, `unclear` with what it would take.
pub fn trend_word(finding: &TrendFinding) -> String {
    match finding.word {
        Word::Unclear => unclear(finding),
        word => word.as_str().to_owned(),
    }
}

fn moved(verb: &str, finding: &TrendFinding, sign: f64) -> String {
    let margin = percent(finding.margin);
    match (finding.ci95, finding.estimate) {
        (Some([low, high]), _) if sign * low > 0.0 && sign * high > 0.0 => {
            let (near, far) = if low.abs() <= high.abs() {
                (low, high)
            } else {
                (high, low)
            };
            format!(
                "{verb} by {} to {} (95 % interval)",
                percent(near.abs()),
                percent(far.abs())
            )
        }
        (_, Some(estimate)) if sign * estimate > 0.0 => format!(
            "{verb} by about {} (the last third lies apart from the first by more than {margin})",
            percent(estimate.abs())
        ),
        _ => format!("{verb} by more than {margin}"),
    }
}

fn more_time(seconds: f64) -> String {
    // An extrapolation: seconds below five, or digits behind the point, would only look exact.
    if seconds < 5.0 {
        return "a few more seconds".to_owned();
    }
    let unit = match seconds {
        s if s >= 72_000.0 => 3_600.0,
        s if (600.0..7_200.0).contains(&s) => 60.0,
        s if s < 120.0 => 1.0,
        _ => 0.1,
    };
    let seconds = (seconds / unit).round() * unit;
    let text = duration(seconds);
    match text.split_once(' ') {
        Some((value, unit)) => format!("about {value} more {unit}"),
        None => text,
    }
}

/// A reason code in plain words; an unknown code is printed as it is.
pub fn reason(code: &str) -> String {
    let words = match code {
        "inside_margin" => "both intervals lie inside the margin",
        "below_margin" => "an interval lies wholly below the margin",
        "above_margin" => "an interval lies wholly above the margin",
        "separated" => {
            "the last third of the rates lies apart from the first by more than the margin"
        }
        "few" => "too few points to judge",
        "restarted" => "its processes were started anew in between, so it is no one trend",
        "wide" => "the interval reaches across the margin",
        "between" => "the interval touches the margin",
        "warm_up_sensitive" | "warm-up sensitive" => {
            "the verdict with the warm-up cut differs from the one without"
        }
        "no_steady_state" => "no steady state was reached",
        "described" => "described, not judged",
        "runs_disagree" => "the runs of this arm do not share one verdict",
        NO_MARGIN => "no margin was declared",
        "no_level" => "the level is zero, so a relative change has no meaning",
        "contradiction" => "the rules point in opposite directions",
        "not_applied" => "the change did not take effect",
        "causal_conditions" => "a condition of a causal claim does not hold",
        "run_to_run_variation" => "the difference does not stand out from run-to-run variation",
        "gate_5" => "gate 5 (client time accounted for) does not hold",
        "gate_6" => "gate 6 (the driver is not the limit) does not hold",
        // A code reads as words; anything else is a text or a figure's name already.
        code if code
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_') =>
        {
            return code.replace('_', " ");
        }
        text => return text.to_owned(),
    };
    words.to_owned()
}

/// A verdict in one or two words, for tables.
pub fn verdict(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Supported => "supported".to_owned(),
        Verdict::Undetermined(why) => because("undetermined", why),
        Verdict::NotObserved(why) => because(NOT_OBSERVED, why),
        Verdict::Refuted => "refuted".to_owned(),
        Verdict::Invalid(why) => because("not valid", why),
    }
}

/// A verdict whose good and bad ends have words of their own: `holds` and `does not hold`, `passed` and `failed`.
pub fn verdict_as(verdict: &Verdict, good: &str, bad: &str) -> String {
    match verdict {
        Verdict::Supported => good.to_owned(),
        Verdict::Refuted => bad.to_owned(),
        other => self::verdict(other),
    }
}

fn because(word: &str, why: &str) -> String {
    if why.is_empty() {
        word.to_owned()
    } else {
        format!("{word}: {}", reason(why))
    }
}

/// Clauses as one sentence part: `a; b; c`.
pub fn clauses(parts: &[String]) -> String {
    let parts: Vec<&str> = parts
        .iter()
        .map(|part| part.trim_end_matches('.'))
        .collect();
    parts.join("; ")
}

/// `a`, `a and b`, `a, b and c`.
pub fn list(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [head @ .., last] => format!("{} and {last}", head.join(", ")),
    }
}

fn strip_zeros(text: &str) -> &str {
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.')
    } else {
        text
    }
}

fn grouped(text: &str) -> String {
    let (sign, rest) = text
        .strip_prefix('-')
        .map_or(("", text), |rest| ("-", rest));
    let (whole, tail) = match rest.find(|c: char| !c.is_ascii_digit()) {
        Some(at) => rest.split_at(at),
        None => (rest, ""),
    };
    let mut out = String::with_capacity(text.len() + text.len() / 3);
    out.push_str(sign);
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    out.push_str(tail);
    out
}

/// A true minus sign, and none before a zero.
fn signed(text: String) -> String {
    match text.strip_prefix('-') {
        Some(rest) if rest.chars().all(|c| matches!(c, '0' | '.')) => rest.to_owned(),
        Some(rest) => format!("−{rest}"),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_three_digits_and_group_thousands() {
        for (value, text) in [
            (0.0, "0"),
            (-0.0, "0"),
            (1_662.4, "1,662"),
            (1_234_567.0, "1,234,567"),
            (99.94, "99.9"),
            (99.96, "100"),
            (63.25, "63.2"),
            (1.2, "1.2"),
            (0.944, "0.944"),
            (0.012345, "0.0123"),
            (-12.0, "−12"),
            (f64::NAN, NOT_OBSERVED),
            (f64::INFINITY, NOT_OBSERVED),
        ] {
            assert_eq!(number(value), text, "{value}");
        }
        assert_eq!(count(1_000), "1,000");
        assert_eq!(count(999), "999");
    }

    #[test]
    fn shares_and_times_read_as_people_write_them() {
        assert_eq!(percent(0.644), "64 %");
        assert_eq!(percent(0.2), "20 %");
        assert_eq!(percent(0.004), "0.4 %");
        assert_eq!(percent(1.5), "150 %");
        assert_eq!(percent(0.000_26), "0.03 %");
        assert_eq!(percent(-0.000_26), "−0.03 %");
        assert_eq!(percent(0.000_000_1), "under 0.001 %");
        assert_eq!(percent(0.0), "0 %");
        assert_eq!(change(0.012), "+1.2 %");
        assert_eq!(change(-0.64), "−64 %");
        assert_eq!(duration(20.0), "20 s");
        assert_eq!(duration(540.0), "9 minutes");
        assert_eq!(duration(72.0 * 3_600.0), "72 hours");
        assert_eq!(clock(3_725.0), "1:02:05");
        assert_eq!(clock(20.0), "0:20");
        assert_eq!(bytes(8 * 1024 * 1024 * 1024), "8 GiB");
        assert_eq!(in_unit(0.5, "share"), "50 %");
        assert_eq!(in_unit(12.0, "MiB"), "12 MiB");
    }

    fn finding(word: Word) -> TrendFinding {
        TrendFinding {
            word,
            reason: "wide".into(),
            rule: "linear".into(),
            margin: 0.2,
            estimate: Some(-0.66),
            ci90: Some([-0.675, -0.645]),
            ci95: Some([-0.68, -0.64]),
            n: 120,
            bin_s: 1.0,
            n_eff: Some(60.0),
            smallest_flat_margin: Some(0.7),
            more_s: Some(540.0),
            warmup: String::new(),
            detail: serde_json::Value::Null,
        }
    }

    #[test]
    fn a_trend_says_its_interval_and_what_flat_would_have_needed() {
        assert_eq!(
            trend(&finding(Word::Falls)),
            "fell by 64 % to 68 % (95 % interval); \"flat\" would have needed a change under 20 %"
        );
        let unclear = trend(&finding(Word::Unclear));
        assert!(
            unclear.starts_with("unclear at 20 % (would need about 9 more minutes); "),
            "{unclear}"
        );
        for word in ["fell", "rose", "flat"] {
            assert!(!unclear.contains(word), "{unclear}");
        }
    }

    #[test]
    fn without_a_margin_nothing_is_unclear_at_a_margin() {
        let mut finding = finding(Word::Unclear);
        finding.reason = "no_margin".into();
        finding.margin = 0.0;
        let text = trend(&finding);
        assert!(
            text.starts_with("unclear (no margin was declared); "),
            "{text}"
        );
        assert!(!text.contains("0 %)"), "{text}");
    }

    #[test]
    fn an_extrapolated_time_looks_no_more_exact_than_it_is() {
        for (seconds, text) in [
            (0.2, "a few more seconds"),
            (54.4, "about 54 more s"),
            (1_984.0, "about 33 more minutes"),
            (150.0, "about 2.5 more minutes"),
            (100_000.0, "about 28 more hours"),
        ] {
            assert_eq!(more_time(seconds), text);
        }
    }

    #[test]
    fn a_fall_known_by_separation_alone_claims_no_interval() {
        let mut separated = finding(Word::Falls);
        separated.ci95 = Some([-0.9, 0.1]);
        let text = trend(&separated);
        assert!(
            text.starts_with("fell by about 66 % (the last third"),
            "{text}"
        );
        assert!(!text.contains("95 %"), "{text}");
    }
}
