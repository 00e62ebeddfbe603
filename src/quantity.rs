//! Quantities as an experiment file writes them: durations, sizes, rates and shares, each with its unit.
//!
//! A bare number is refused, since "30" of what is exactly the mistake that a unit prevents. This module knows nothing else
//! and never guesses a unit.

use std::fmt;
use std::time::Duration;

/// Longest duration that is accepted: far beyond any soak, short enough that sums never overflow.
const LONGEST: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// Why a text is no quantity, and what would be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuantityError {
    /// What is wrong.
    pub message: String,
    /// What to write instead.
    pub hint: String,
}

impl fmt::Display for QuantityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message, self.hint)
    }
}

impl std::error::Error for QuantityError {}

fn error(message: impl Into<String>, hint: impl Into<String>) -> QuantityError {
    QuantityError {
        message: message.into(),
        hint: hint.into(),
    }
}

/// Splits "250ms" into 250.0 and "ms". The number is decimal without a sign or exponent.
fn split<'t>(text: &'t str, what: &str, example: &str) -> Result<(f64, &'t str), QuantityError> {
    let hint = || format!("write a number and a unit, as in \"{example}\"");
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    if number.is_empty() {
        let message = if text.starts_with('-') {
            format!("\"{text}\" is negative: {what} can't be")
        } else {
            format!("\"{text}\" is not {what}")
        };
        return Err(error(message, hint()));
    }
    let value: f64 = number
        .replace('_', "")
        .parse()
        .map_err(|_| error(format!("\"{number}\" is not a number"), hint()))?;
    if !value.is_finite() {
        return Err(error(format!("\"{number}\" is too large"), hint()));
    }
    Ok((value, unit.trim()))
}

/// Reads "250ms", "10s", "2m", "72h".
///
/// # Errors
/// Without a unit, with an unknown one, or beyond ten years.
pub fn duration(text: &str) -> Result<Duration, QuantityError> {
    let (value, unit) = split(text, "a duration", "10s")?;
    let seconds = match unit {
        "us" | "µs" => value / 1e6,
        "ms" => value / 1e3,
        "s" => value,
        "m" => value * 60.0,
        "h" => value * 3600.0,
        "d" => value * 86_400.0,
        "" => {
            return Err(error(
                format!("\"{text}\" has no unit"),
                format!("write \"{text}s\" for seconds, \"{text}ms\", \"{text}m\" or \"{text}h\""),
            ));
        }
        other => {
            return Err(error(
                format!("\"{other}\" is no unit of time"),
                "units are us, ms, s, m, h and d",
            ));
        }
    };
    let duration = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
    if duration > LONGEST {
        return Err(error(
            format!("\"{text}\" is longer than ten years"),
            "write a duration that a run can last",
        ));
    }
    Ok(duration)
}

/// Reads "512MiB" as bytes. Binary units are KiB, MiB, GiB and TiB, decimal ones kB, MB, GB and TB.
///
/// # Errors
/// Without a unit, with an unknown one, or beyond 2^53 bytes.
pub fn size(text: &str) -> Result<u64, QuantityError> {
    let (value, unit) = split(text, "a size", "512MiB")?;
    let factor = match unit {
        "B" => 1.0,
        "kB" => 1e3,
        "MB" => 1e6,
        "GB" => 1e9,
        "TB" => 1e12,
        "KiB" => 1024.0,
        "MiB" => 1024.0 * 1024.0,
        "GiB" => 1024.0 * 1024.0 * 1024.0,
        "TiB" => 1024.0 * 1024.0 * 1024.0 * 1024.0,
        "" => {
            return Err(error(
                format!("\"{text}\" has no unit"),
                format!("write \"{text}MiB\" or \"{text}MB\""),
            ));
        }
        other => {
            return Err(error(
                format!("\"{other}\" is no unit of size"),
                "units are B, KiB, MiB, GiB, TiB (powers of 1024) and kB, MB, GB, TB (powers of 1000)",
            ));
        }
    };
    let bytes = value * factor;
    if bytes > 9_007_199_254_740_992.0 {
        return Err(error(
            format!("\"{text}\" is too large"),
            "write a size that a machine can hold",
        ));
    }
    Ok(bytes.round() as u64)
}

/// Reads "200/s" (also "/m" and "/h") as events a second.
///
/// # Errors
/// Without a unit or with an unknown one.
pub fn rate(text: &str) -> Result<f64, QuantityError> {
    let (value, unit) = split(text, "a rate", "200/s")?;
    match unit {
        "/s" => Ok(value),
        "/m" => Ok(value / 60.0),
        "/h" => Ok(value / 3600.0),
        "" => Err(error(
            format!("\"{text}\" has no unit"),
            format!("write \"{text}/s\""),
        )),
        other => Err(error(
            format!("\"{other}\" is no unit of a rate"),
            "units are /s, /m and /h",
        )),
    }
}

/// Reads "20%" as 0.2.
///
/// # Errors
/// Without a percent sign.
pub fn share(text: &str) -> Result<f64, QuantityError> {
    let (value, unit) = split(text, "a share", "20%")?;
    match unit {
        "%" => Ok(value / 100.0),
        "" => Err(error(
            format!("\"{text}\" has no unit"),
            format!(
                "write \"{}%\"",
                if value <= 1.0 { value * 100.0 } else { value }
            ),
        )),
        other => Err(error(
            format!("\"{other}\" is no unit of a share"),
            "write a percentage, as in \"20%\"",
        )),
    }
}

/// Writes a duration the way a file would: "250ms", "10s", "2m", "1h 30m", "1.5s".
pub fn write_duration(duration: Duration) -> String {
    let micros = duration.subsec_micros();
    let seconds = duration.as_secs();
    if micros != 0 {
        return if seconds > 0 {
            format!("{}s", duration.as_secs_f64())
        } else if micros.is_multiple_of(1000) {
            format!("{}ms", micros / 1000)
        } else {
            format!("{micros}us")
        };
    }
    let parts = [
        (seconds / 3600, "h"),
        (seconds % 3600 / 60, "m"),
        (seconds % 60, "s"),
    ];
    let words: Vec<String> = parts
        .iter()
        .filter(|(n, _)| *n > 0)
        .map(|(n, unit)| format!("{n}{unit}"))
        .collect();
    if words.is_empty() {
        "0s".to_owned()
    } else {
        words.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn quantities_read_in_their_base_unit() {
        assert_eq!(duration("250ms").unwrap(), Duration::from_millis(250));
        assert_eq!(duration("2m").unwrap(), Duration::from_secs(120));
        assert_eq!(duration("72h").unwrap(), Duration::from_secs(72 * 3600));
        assert_eq!(duration("1.5 s").unwrap(), Duration::from_millis(1500));
        assert_eq!(size("512MiB").unwrap(), 512 << 20);
        assert_eq!(size("1.2GiB").unwrap(), 1_288_490_189);
        assert_eq!(size("1kB").unwrap(), 1000);
        assert_eq!(rate("200/s").unwrap(), 200.0);
        assert_eq!(rate("60/m").unwrap(), 1.0);
        assert_eq!(share("20%").unwrap(), 0.2);
        assert_eq!(share("0.5%").unwrap(), 0.005);
    }

    #[test]
    fn a_bare_number_is_refused_with_what_to_write() {
        assert_eq!(
            duration("10").unwrap_err().hint,
            "write \"10s\" for seconds, \"10ms\", \"10m\" or \"10h\""
        );
        assert!(size("512").unwrap_err().hint.contains("512MiB"));
        assert!(rate("200").unwrap_err().hint.contains("200/s"));
        assert_eq!(share("0.2").unwrap_err().hint, "write \"20%\"");
    }

    #[test]
    fn wrong_units_signs_and_sizes_are_refused() {
        for bad in ["", "s", "-1s", "1min", "1 hour", "1e3s", "99999999h", "..s"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
        assert!(size("1Gib").is_err());
        assert!(size("99999999TiB").is_err());
        assert!(rate("200rps").is_err());
        assert!(share("20pct").is_err());
    }

    #[test]
    fn durations_are_written_as_a_file_would() {
        for (millis, text) in [
            (0, "0s"),
            (250, "250ms"),
            (1500, "1.5s"),
            (120_000, "2m"),
            (5_400_000, "1h 30m"),
            (259_200_000, "72h"),
        ] {
            assert_eq!(write_duration(Duration::from_millis(millis)), text);
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in ".{0,40}") {
            let _ = (duration(&text), size(&text), rate(&text), share(&text));
        }
    }
}
