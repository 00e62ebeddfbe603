//! Whether both arms are the same but for what was declared.
//!
//! Pure: two lists of facts in, one list of comparisons out. It must never call two things equal that it did not compare, and
//! never excuse a difference without saying why.

use std::collections::{BTreeMap, BTreeSet};

use super::database::RowCount;
use crate::experiment::{Control, Difference};
use crate::measure::{Equality, EqualityItem, ServiceFacts};
use crate::name::Arms;

/// What may differ between the arms.
#[derive(Debug, Clone, Default)]
pub struct Exempt {
    variable: Option<Variable>,
    also: Vec<String>,
}

#[derive(Debug, Clone)]
struct Variable {
    path: String,
    service: Option<String>,
    /// What follows the kind: `settings.work_mem`, `command`.
    key: String,
    values: Arms<String>,
}

impl Exempt {
    /// What an experiment's control variable implies, and what it permits besides.
    pub fn new(control: &Control) -> Self {
        match control {
            Control::Null => Self::default(),
            Control::Variable(difference) => Self {
                variable: Some(Variable::new(difference)),
                also: difference.also_differs.clone(),
            },
        }
    }

    fn of(&self, service: &str) -> Option<&Variable> {
        self.variable
            .as_ref()
            .filter(|variable| variable.service.as_deref() == Some(service))
    }

    /// `also_differs` names an item whole, or everything below a dot.
    fn permitted(&self, what: &str) -> Option<&String> {
        self.also.iter().find(|name| {
            what == name.as_str()
                || what
                    .strip_prefix(name.as_str())
                    .is_some_and(|rest| rest.starts_with('.'))
        })
    }
}

impl Variable {
    fn new(difference: &Difference) -> Self {
        let mut parts = difference.variable.splitn(4, '.');
        let deployment = parts.next() == Some("deployment");
        let service = parts.next().filter(|_| deployment).map(str::to_owned);
        let kind = parts.next();
        let key = parts.next().filter(|_| kind.is_some()).unwrap_or_default();
        let bare = |value: &Option<String>| {
            value.as_deref().map_or_else(String::new, |text| {
                text.trim_matches(|c| c == '"' || c == '\'').to_owned()
            })
        };
        Self {
            path: difference.variable.clone(),
            service,
            key: key.to_owned(),
            values: difference.values.map(|_, value| bare(value)),
        }
    }

    /// Whether the variable is this key or stands below it.
    fn is(&self, key: &str) -> bool {
        self.key == key
            || self
                .key
                .strip_prefix(key)
                .is_some_and(|rest| rest.starts_with('.'))
    }

    /// Whether two texts differ only where the variable's value stands.
    fn explains(&self, treatment: &str, control: &str) -> bool {
        let (a, b) = (&self.values.treatment, &self.values.control);
        (!a.is_empty() && treatment.replace(a.as_str(), b) == control)
            || (!b.is_empty() && control.replace(b.as_str(), a) == treatment)
    }
}

/// Compares what both arms consist of. Facts of services that have not started yet hold no settings; they are compared later.
pub fn compare(
    treatment: &[ServiceFacts],
    control: &[ServiceFacts],
    exempt: &Exempt,
) -> Vec<EqualityItem> {
    let mut items = Vec::new();
    let names: BTreeSet<&str> = treatment
        .iter()
        .chain(control)
        .map(|facts| facts.service.as_str())
        .collect();
    let empty = ServiceFacts::default();
    for name in names {
        let find = |all: &'_ [ServiceFacts]| all.iter().position(|facts| facts.service == name);
        let a = find(treatment).map_or(&empty, |at| &treatment[at]);
        let b = find(control).map_or(&empty, |at| &control[at]);
        let service = Compared {
            name,
            exempt,
            computed: a
                .computed_settings
                .iter()
                .chain(&b.computed_settings)
                .collect(),
        };
        service.one(&mut items, "kind", &a.kind, &b.kind);
        service.one(&mut items, "program", &program(a), &program(b));
        service.one(
            &mut items,
            "version",
            a.version.as_deref().unwrap_or(ABSENT),
            b.version.as_deref().unwrap_or(ABSENT),
        );
        service.one(
            &mut items,
            "command",
            &a.command.join(" "),
            &b.command.join(" "),
        );
        service.one(&mut items, "placement", &placement(a), &placement(b));
        service.all(&mut items, "named_files", &a.named_files, &b.named_files);
        service.all(&mut items, "env", &a.env, &b.env);
        service.all(&mut items, "files", &a.files, &b.files);
        service.all(&mut items, "settings", &a.settings, &b.settings);
    }
    items
}

/// Compares exact row counts of both arms before their loads.
pub fn compare_rows(
    treatment: &[RowCount],
    control: &[RowCount],
    exempt: &Exempt,
) -> Vec<EqualityItem> {
    let by_service = |rows: &[RowCount]| {
        let mut map: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
        for row in rows {
            map.entry(row.service.to_string()).or_default().insert(
                format!("{}.{}", row.database, row.table),
                row.rows.to_string(),
            );
        }
        map
    };
    let (a, b) = (by_service(treatment), by_service(control));
    let mut items = Vec::new();
    let empty = BTreeMap::new();
    for name in a.keys().chain(b.keys()).collect::<BTreeSet<_>>() {
        let service = Compared {
            name,
            exempt,
            computed: BTreeSet::new(),
        };
        let rows = (a.get(name).unwrap_or(&empty), b.get(name).unwrap_or(&empty));
        service.all(&mut items, "rows", rows.0, rows.1);
    }
    items
}

const ABSENT: &str = "(absent)";

fn program(facts: &ServiceFacts) -> String {
    match (&facts.program, &facts.sha256) {
        (Some(path), Some(sha256)) => format!("{path} sha256:{sha256}"),
        (Some(path), None) => path.clone(),
        (None, _) => ABSENT.to_owned(),
    }
}

fn placement(facts: &ServiceFacts) -> String {
    let number = |value: Option<String>| value.unwrap_or_else(|| "none".to_owned());
    format!(
        "memory limit {}, processor limit {}, pinned to {}",
        number(facts.memory_limit.map(|bytes| format!("{bytes} bytes"))),
        number(facts.cpu_limit.map(|cores| cores.to_string())),
        number((!facts.pin.is_empty()).then(|| format!("{:?}", facts.pin)))
    )
}

struct Compared<'a> {
    name: &'a str,
    exempt: &'a Exempt,
    computed: BTreeSet<&'a String>,
}

impl Compared<'_> {
    fn all(
        &self,
        items: &mut Vec<EqualityItem>,
        group: &str,
        a: &BTreeMap<String, String>,
        b: &BTreeMap<String, String>,
    ) {
        for key in a.keys().chain(b.keys()).collect::<BTreeSet<_>>() {
            let value = |map: &BTreeMap<String, String>| {
                map.get(key).map_or(ABSENT, String::as_str).to_owned()
            };
            self.one(items, &format!("{group}.{key}"), &value(a), &value(b));
        }
    }

    fn one(&self, items: &mut Vec<EqualityItem>, key: &str, a: &str, b: &str) {
        let what = format!("{}.{key}", self.name);
        let verdict = if a == b {
            Equality::Equal
        } else if let Some(because) = self.implied(key, a, b) {
            Equality::Implied(because)
        } else if let Some(name) = self.exempt.permitted(&what) {
            Equality::Permitted(format!("also_differs names {name}"))
        } else {
            Equality::Undeclared
        };
        items.push(EqualityItem {
            what,
            treatment: a.to_owned(),
            control: b.to_owned(),
            verdict,
        });
    }

    /// Why a difference follows from the control variable, if it does.
    fn implied(&self, key: &str, a: &str, b: &str) -> Option<String> {
        let variable = self.exempt.variable.as_ref()?;
        let path = &variable.path;
        if let Some(own) = self.exempt.of(self.name) {
            let setting = key.strip_prefix("settings.");
            let same = match key.split('.').next().unwrap_or_default() {
                "program" => {
                    own.is("command") || own.is("build") || own.is("bin") || own.is("version")
                }
                "version" => own.is("version") || own.is("bin"),
                "command" => own.is("command"),
                "named_files" => own.is("command") || own.is("dir") || own.is("build"),
                "placement" => own.is("limits") || own.is("pin"),
                // Another major version has other settings and defaults.
                "settings" => own.is(key) || own.is("version") || own.is("bin"),
                "env" => own.is(key),
                "rows" => own.is("schema") || own.is("databases"),
                "files" => own.is("config") || own.is("upstream"),
                _ => false,
            };
            if same {
                return Some(format!(
                    "it is the control variable {path}, or follows from it"
                ));
            }
            if own.is("settings")
                && setting.is_some_and(|name| self.computed.contains(&name.to_owned()))
            {
                return Some(format!("the server computes it from {path}"));
            }
        }
        let rendered = ["command", "env.", "files."]
            .iter()
            .any(|part| key.starts_with(part));
        (rendered && variable.explains(a, b))
            .then(|| format!("it differs only where the value of {path} stands"))
    }
}

/// The undeclared differences as one message; `None` when there are none.
pub fn undeclared(items: &[EqualityItem]) -> Option<String> {
    let lines: Vec<String> = items
        .iter()
        .filter(|item| item.verdict == Equality::Undeclared)
        .map(|item| {
            let (a, b) = first_difference(&item.treatment, &item.control);
            format!("  {}: treatment {a}, control {b}", item.what)
        })
        .collect();
    (!lines.is_empty()).then(|| {
        format!(
            "the arms differ in what was not declared:\n{}\nmake it equal, or name it in also_differs (the report then lists it \
             under what it does not support)",
            lines.join("\n")
        )
    })
}

/// The first lines that differ, of texts with several.
fn first_difference<'a>(a: &'a str, b: &'a str) -> (String, String) {
    let quote =
        |line: Option<&str>| line.map_or_else(|| ABSENT.to_owned(), |line| format!("'{line}'"));
    let (mut left, mut right) = (a.lines(), b.lines());
    loop {
        match (left.next(), right.next()) {
            (Some(x), Some(y)) if x == y => {}
            (x, y) => return (quote(x), quote(y)),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn facts() -> ServiceFacts {
        ServiceFacts {
            service: "db".into(),
            kind: "postgres".into(),
            program: Some("/bin/postgres".into()),
            sha256: Some("aa".into()),
            version: Some("15.19".into()),
            settings: BTreeMap::from([
                ("work_mem".into(), "4096 kB".into()),
                ("wal_buffers".into(), "512 8kB".into()),
            ]),
            computed_settings: vec!["wal_buffers".into()],
            files: BTreeMap::from([("ceteris.conf".into(), "port = 1\nwork_mem = '4MB'\n".into())]),
            ..ServiceFacts::default()
        }
    }

    fn exempt(variable: &str, treatment: &str, control: &str, also: &[&str]) -> Exempt {
        Exempt::new(&Control::Variable(Difference {
            variable: variable.into(),
            values: Arms {
                treatment: Some(treatment.into()),
                control: Some(control.into()),
            },
            took_effect: None,
            also_differs: also.iter().map(|name| (*name).to_owned()).collect(),
        }))
    }

    fn verdict(items: &[EqualityItem], what: &str) -> Equality {
        items
            .iter()
            .find(|item| item.what == what)
            .unwrap_or_else(|| panic!("{what} was not compared"))
            .verdict
            .clone()
    }

    #[test]
    fn equal_arms_have_no_undeclared_difference() {
        let items = compare(&[facts()], &[facts()], &Exempt::default());
        assert!(items.len() >= 8);
        assert!(items.iter().all(|item| item.verdict == Equality::Equal));
        assert_eq!(undeclared(&items), None);
    }

    #[test]
    fn one_setting_or_one_other_program_is_named() {
        let mut other = facts();
        other.settings.insert("work_mem".into(), "8192 kB".into());
        other.sha256 = Some("bb".into());
        let items = compare(&[facts()], &[other], &Exempt::default());
        let text = undeclared(&items).unwrap();
        for part in [
            "db.settings.work_mem",
            "'4096 kB'",
            "'8192 kB'",
            "db.program",
            "sha256:bb",
        ] {
            assert!(text.contains(part), "{text}");
        }
    }

    #[test]
    fn the_variable_excuses_itself_and_what_follows_and_nothing_else() {
        let mut other = facts();
        other.settings.insert("work_mem".into(), "8192 kB".into());
        other
            .settings
            .insert("wal_buffers".into(), "1024 8kB".into());
        other
            .files
            .insert("ceteris.conf".into(), "port = 1\nwork_mem = '8MB'\n".into());
        let exempt_it = exempt(
            "deployment.db.postgres.settings.work_mem",
            "\"4MB\"",
            "\"8MB\"",
            &[],
        );
        let items = compare(&[facts()], &[other.clone()], &exempt_it);
        assert_eq!(undeclared(&items), None);
        assert!(matches!(
            verdict(&items, "db.settings.work_mem"),
            Equality::Implied(_)
        ));
        assert!(matches!(
            verdict(&items, "db.files.ceteris.conf"),
            Equality::Implied(_)
        ));
        other.version = Some("16.1".into());
        other.files.insert(
            "ceteris.conf".into(),
            "port = 1\nwork_mem = '8MB'\nfsync = 'off'\n".into(),
        );
        let items = compare(&[facts()], &[other], &exempt_it);
        assert_eq!(verdict(&items, "db.version"), Equality::Undeclared);
        assert_eq!(
            verdict(&items, "db.files.ceteris.conf"),
            Equality::Undeclared
        );
        // The variable of one service excuses nothing in another.
        let elsewhere = exempt("deployment.app.process.env.X", "\"1\"", "\"2\"", &[]);
        let mut other = facts();
        other.settings.insert("work_mem".into(), "1".into());
        let items = compare(&[facts()], &[other], &elsewhere);
        assert_eq!(
            verdict(&items, "db.settings.work_mem"),
            Equality::Undeclared
        );
    }

    #[test]
    fn also_differs_permits_what_it_names() {
        let mut other = facts();
        other.version = Some("16.1".into());
        other.settings.insert("work_mem".into(), "1".into());
        let named = exempt("clients.closed", "8", "9", &["db.settings"]);
        let items = compare(&[facts()], &[other], &named);
        assert!(matches!(
            verdict(&items, "db.settings.work_mem"),
            Equality::Permitted(_)
        ));
        assert_eq!(verdict(&items, "db.version"), Equality::Undeclared);
    }

    #[test]
    fn a_service_or_table_of_one_arm_alone_is_a_difference() {
        let items = compare(&[facts()], &[], &Exempt::default());
        assert_eq!(verdict(&items, "db.kind"), Equality::Undeclared);
        let row = |rows| RowCount {
            service: crate::name::ServiceName::new("db").unwrap(),
            database: "shop".into(),
            table: "items".into(),
            rows,
        };
        let items = compare_rows(&[row(1)], &[row(2)], &Exempt::default());
        assert_eq!(verdict(&items, "db.rows.shop.items"), Equality::Undeclared);
        let items = compare_rows(&[row(1)], &[], &Exempt::default());
        assert_eq!(verdict(&items, "db.rows.shop.items"), Equality::Undeclared);
    }

    proptest! {
        /// Whatever single setting is changed, it is found.
        #[test]
        fn no_changed_setting_goes_unseen(
            settings in proptest::collection::btree_map("[a-z]{1,6}", "[0-9]{1,4}", 1..20),
            at in any::<proptest::sample::Index>(),
        ) {
            let a = ServiceFacts { settings: settings.clone(), ..facts() };
            let mut b = a.clone();
            let key = settings.keys().nth(at.index(settings.len())).unwrap().clone();
            b.settings.insert(key.clone(), "changed".into());
            let items = compare(&[a], &[b], &Exempt::default());
            let found: Vec<&str> = items.iter().filter(|i| i.verdict != Equality::Equal).map(|i| i.what.as_str()).collect();
            prop_assert_eq!(found, [format!("db.settings.{key}")]);
        }
    }
}
