use super::*;

fn declared() -> Declared {
    let mut declared = Declared::default();
    declared.services.insert(
        "db".into(),
        DeclaredService {
            started: true,
            postgres: true,
            ..Default::default()
        },
    );
    declared.services.insert(
        "app".into(),
        DeclaredService {
            started: true,
            patterns: ["warn".to_owned()].into(),
            fields: [
                ("queue_depth".to_owned(), StatusKind::Gauge),
                ("jobs_done".to_owned(), StatusKind::Counter),
            ]
            .into(),
            ..Default::default()
        },
    );
    declared.steps = ["list".to_owned(), "create".to_owned()].into();
    declared.pruned = ["jobs".to_owned()].into();
    declared
}

fn parse(path: &str) -> Result<Figure, NoFigure> {
    Figure::parse(path, Place::Claim, &declared())
}

#[test]
fn every_kind_of_name_is_found_with_its_type() {
    for (path, kind) in [
        ("treatment.throughput.trend", Kind::Word),
        ("treatment.throughput.fall", Kind::Number),
        ("control.requests.steps.list.ok", Kind::Number),
        ("control.latency.p99_first", Kind::Number),
        ("control.latency.steps.create.p999", Kind::Number),
        ("control.failures.status_503", Kind::Number),
        ("control.windows", Kind::List),
        ("treatment.services.app.memory.rss.trend", Kind::Word),
        ("treatment.services.app.memory.rss", Kind::Number),
        ("treatment.services.app.log.warn", Kind::Number),
        (
            "treatment.services.app.status.queue_depth.max",
            Kind::Number,
        ),
        (
            "treatment.services.app.status.jobs_done.per_request",
            Kind::Number,
        ),
        (
            "treatment.services.db.table.anything.rows.last",
            Kind::Number,
        ),
        ("treatment.pruned.jobs", Kind::Number),
        ("ratio.throughput.low", Kind::Number),
        ("margin", Kind::Number),
    ] {
        assert_eq!(parse(path).map(|f| f.kind), Ok(kind), "{path}");
    }
}

#[test]
fn what_is_not_in_the_catalogue_is_refused_with_the_nearest() {
    for (path, hint) in [
        ("treatment.throughput.trnd", "`treatment.throughput.trend`"),
        ("treatment.latency.p98", "`treatment.latency.p9"),
        ("treatment.pruned.job", "`jobs`"),
        ("treatment.services.ap.threads", "`app`"),
        (
            "treatment.services.db.status.queue_depth",
            "treatment.services.app.status.queue_depth",
        ),
        (
            "treatment.services.app.table.jobs.rows",
            "`treatment.services.db.table.jobs.rows`",
        ),
        ("throughput.mean", "`treatment.throughput.mean`"),
        ("arm.throughput.mean", "`treatment.throughput.mean`"),
        ("treatment.throughput", "`treatment.throughput.mean`"),
        ("treatmnt.throughput.mean", "`treatment.…`"),
        ("treatment.requests.steps.lst.ok", "`list`"),
    ] {
        let error = parse(path).unwrap_err();
        assert!(error.hint.contains(hint), "{path}: {error:?}");
    }
}

#[test]
fn only_throughput_and_sampled_series_bear_a_trend() {
    let declared = declared();
    for good in [
        "throughput",
        "services.app.memory.rss",
        "services.app.status.queue_depth",
        "host.busy",
    ] {
        assert_eq!(bears_trend(good, &declared), Ok(()), "{good}");
    }
    for bad in [
        "latency.p99",
        "requests.ok",
        "throughput.trend",
        "treatment.throughput",
        "services.app.status.jobs_done",
        "thruput",
        "",
    ] {
        assert!(bears_trend(bad, &declared).is_err(), "{bad}");
    }
}

#[test]
fn a_criterion_may_say_arm() {
    let figure = Figure::parse("arm.failures.timeout", Place::Criterion, &declared());
    assert_eq!(figure.map(|f| f.scope), Ok(Scope::EachArm));
}

#[test]
fn no_two_entries_have_one_pattern() {
    let all: Vec<&str> = OF_AN_ARM
        .iter()
        .chain(OF_NO_ARM)
        .map(|e| e.pattern)
        .collect();
    let unique: std::collections::BTreeSet<&&str> = all.iter().collect();
    assert_eq!(all.len(), unique.len());
}
