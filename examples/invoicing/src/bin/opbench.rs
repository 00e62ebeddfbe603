//! What one call of the service's JSON encoder costs: calls it many times and prints the time.
//! With `--empty` the same loop without the call, to be subtracted.

use std::hint::black_box;
use std::io::Write;
use std::time::Instant;

use anyhow::Context;
use clap::Parser;
use invoicing::{answer, invoice};

/// Encodes an invoice of two lines N times and prints {"calls": N, "seconds": S}.
#[derive(Debug, Parser)]
#[command(name = "opbench", version)]
struct Arguments {
    /// How often
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    calls: u64,

    /// The loop alone
    #[arg(long)]
    empty: bool,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let sample = invoice::sample();
    let start = Instant::now();
    if arguments.empty {
        for _ in 0..arguments.calls {
            black_box(&sample);
        }
    } else {
        for _ in 0..arguments.calls {
            let body = answer::encode(black_box(&sample)).context("the sample has no JSON form")?;
            black_box(body);
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    let line = serde_json::json!({ "calls": arguments.calls, "seconds": seconds });
    writeln!(std::io::stdout(), "{line}").context("the result cannot be printed")
}
