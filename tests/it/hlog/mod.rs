//! `latency.hlog` as another implementation of the format reads it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use ceteris::results::{LatencyData, LatencyLog};
use hdrhistogram::Histogram;
use serde_json::Value;

/// Python's HdrHistogram, installed once into a folder of the build.
fn peer() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("hdrhistogram-0.10.8");
    if !folder.join("hdrh").exists() {
        let installed = Command::new("python3")
            .args(["-m", "pip", "install", "--quiet", "--target"])
            .arg(&folder)
            .arg("hdrhistogram==0.10.8")
            .output()
            .expect("python3 is installed (apt install python3-pip)");
        assert!(installed.status.success(), "{installed:?}");
    }
    folder
}

#[test]
#[ignore = "needs python3 with pip and PyPI's hdrhistogram"]
fn another_implementation_reads_the_same_latencies() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("latency.hlog");
    let steps = ["list".to_owned(), "fetch-one".to_owned()];
    let mut writer = LatencyLog::create(&log, &steps, 5).unwrap();
    let mut drawn = 1u64;
    for second in 0..23 {
        let mut both = [
            Histogram::<u64>::new(3).unwrap(),
            Histogram::<u64>::new(3).unwrap(),
        ];
        for (step, histogram) in both.iter_mut().enumerate() {
            for _ in 0..200 * (step + 1) {
                // From a microsecond to some minutes, more of the small ones.
                drawn = drawn
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                let bits = 1 + (drawn >> 33) % 28;
                histogram.record(1 + (drawn >> 20) % (1 << bits)).unwrap();
            }
        }
        writer.add(second, &both).unwrap();
    }
    writer.flush(23).unwrap();

    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/hlog/read.py");
    let read = Command::new("python3")
        .arg(script)
        .arg(&log)
        .env("PYTHONPATH", peer())
        .output()
        .unwrap();
    assert!(read.status.success(), "{read:?}");
    let theirs: Value = serde_json::from_slice(&read.stdout).unwrap();

    let mut ours: BTreeMap<String, (u64, Histogram<u64>)> = BTreeMap::new();
    for interval in LatencyData::read(&log).unwrap().intervals() {
        let interval = interval.unwrap();
        let (intervals, total) = ours
            .entry(interval.step)
            .or_insert_with(|| (0, Histogram::new(3).unwrap()));
        *intervals += 1;
        total.add(&interval.histogram).unwrap();
    }
    assert_eq!(ours.len(), 2);
    for (step, (intervals, total)) in &ours {
        let theirs = &theirs[step];
        assert_eq!(theirs["intervals"].as_u64(), Some(*intervals), "{step}");
        assert_eq!(theirs["count"].as_u64(), Some(total.len()), "{step}");
        // 23 seconds in intervals of 5.
        assert_eq!((*intervals, theirs["end_s"].as_f64()), (5, Some(23.0)));
        // Ranks that are whole numbers: the two round others differently.
        for (name, quantile) in [("p50", 0.5), ("p99", 0.99), ("max", 1.0)] {
            let value = total.value_at_quantile(quantile) as f64;
            let other = theirs[name].as_f64().unwrap();
            assert!(
                (value - other).abs() <= value / 1000.0,
                "{step} {name}: {value} {other}"
            );
        }
    }
    assert_eq!(ours["list"].1.len(), 23 * 200);
}
