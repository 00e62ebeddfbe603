//! A workload, compiled: per step the request's bytes, what it needs, and what its answer must be.

use anyhow::Context;

use super::draw::{Draw, Lane, Seed};
use super::encode::{Encoding, Unsendable};
use super::environment::Environment;
use super::expect::Expectation;
use super::pick::Picker;
use super::template::{Compiler, Kept, Scene, Shared, Template};
use crate::experiment::{Body, Clients, Step, Workload};

/// Everything that a client needs to know of the workload; shared by all.
#[derive(Debug)]
pub(super) struct Plan {
    /// In file order.
    pub steps: Vec<StepPlan>,
    /// Names of kept values; a client holds them in this order.
    pub names: Vec<String>,
    /// Which step comes next.
    pub picker: Picker,
    shared: Shared,
}

/// Whose turn it is: what draws are keyed by, and what templates see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Turn {
    /// Closed loop: the client's number. Open loop: the same for all, since requests are numbered by arrival.
    pub key: u64,
    /// `{{ client }}`.
    pub client: u64,
    /// `{{ iteration }}`.
    pub iteration: u64,
}

/// One step.
#[derive(Debug)]
pub(super) struct StepPlan {
    /// Its name.
    pub name: String,
    /// What must come back.
    pub expect: Expectation,
    /// Kept values without which it can't be sent.
    pub needs: Vec<usize>,
    head: Template,
    body: Option<Template>,
}

impl Plan {
    /// Compiles a workload for requests to `host` (the value of the Host header).
    pub(super) fn compile(
        clients: &Clients,
        workload: &Workload,
        host: &str,
        environment: Environment,
    ) -> anyhow::Result<Self> {
        anyhow::ensure!(!workload.steps.is_empty(), "the workload has no step");
        let mut names: Vec<String> = Vec::new();
        for name in workload.steps.iter().flat_map(|step| step.keep.keys()) {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        let mut compiler = Compiler::new(names.clone(), environment);
        let steps = workload
            .steps
            .iter()
            .map(|step| {
                StepPlan::compile(step, &clients.headers, host, &names, &mut compiler)
                    .with_context(|| format!("compiling the step '{}'", step.name))
            })
            .collect::<anyhow::Result<Vec<_>>>()?;
        anyhow::ensure!(
            steps.iter().any(|step| step.needs.is_empty()),
            "each step needs a value that another one keeps, so none can be sent first"
        );
        Ok(Plan {
            picker: Picker::new(workload),
            steps,
            names,
            shared: compiler.finish(),
        })
    }

    /// Writes the bytes of a step's request into `out`. Fails when a value is missing or can't be sent.
    pub(super) fn write(
        &self,
        step: usize,
        seed: Seed,
        turn: Turn,
        kept: &[Option<Kept>],
        out: &mut Vec<u8>,
    ) -> Result<(), Unsendable> {
        let step = &self.steps[step];
        out.clear();
        let scene = Scene {
            kept,
            client: turn.client,
            iteration: turn.iteration,
            shared: &self.shared,
        };
        let mut draw = seed.at(Lane::Values, turn.key, turn.iteration);
        step.head.fill(&scene, &mut draw, out)?;
        let Some(body) = &step.body else {
            return Ok(());
        };
        step.write_body(body, &scene, &mut draw, out)
    }

    /// What may be written down of a text from outside.
    pub(super) fn without_secrets(&self, text: String) -> String {
        self.shared.environment().hide(text)
    }

    /// Whether a client that holds `kept` can send a step.
    pub(super) fn can_send(&self, step: usize, kept: &[Option<Kept>]) -> bool {
        self.steps[step].needs.iter().all(|at| kept[*at].is_some())
    }
}

impl StepPlan {
    fn compile(
        step: &Step,
        common: &[(String, String)],
        host: &str,
        names: &[String],
        compiler: &mut Compiler,
    ) -> anyhow::Result<Self> {
        let mut head = Template::default();
        let method = step.method.to_ascii_uppercase();
        head.literal(format!("{method} ").as_bytes());
        let path = step.path.as_str();
        anyhow::ensure!(
            path.starts_with('/'),
            "the path '{path}' must begin with '/'"
        );
        compiler.text(&mut head, path, Encoding::Path)?;
        head.literal(b" HTTP/1.1\r\n");

        let content_type = match &step.body {
            Some(Body::Json(_)) => Some("application/json"),
            Some(Body::Form(_)) => Some("application/x-www-form-urlencoded"),
            _ => None,
        };
        let defaults = [
            ("Host", Some(host)),
            (
                "User-Agent",
                Some(concat!("ceteris/", env!("CARGO_PKG_VERSION"))),
            ),
            ("Accept", Some("*/*")),
            ("Content-Type", content_type),
        ];
        let own = step.headers.iter();
        let given: Vec<_> =
            own.clone()
                .chain(common.iter().filter(|(name, _)| {
                    !own.clone().any(|(mine, _)| mine.eq_ignore_ascii_case(name))
                }))
                .collect();
        for (name, value) in defaults {
            let Some(value) = value else { continue };
            if !given.iter().any(|(n, _)| n.eq_ignore_ascii_case(name)) {
                head.literal(format!("{name}: {value}\r\n").as_bytes());
            }
        }
        for (name, value) in given {
            check_header(name, value)?;
            head.literal(format!("{name}: ").as_bytes());
            compiler.text(&mut head, value, Encoding::Header)?;
            head.literal(b"\r\n");
        }

        let body = compile_body(step, compiler)?;
        let mut needs = head.needs().to_vec();
        needs.extend(body.iter().flat_map(|body| body.needs()));
        // A body without values has a known length: it becomes part of the head, one literal in all.
        let body = match body {
            Some(body) => match body.fixed() {
                Some(bytes) => {
                    let length = bytes.len();
                    head.literal(format!("Content-Length: {length}\r\n\r\n").as_bytes());
                    head.literal(bytes);
                    None
                }
                None => Some(body),
            },
            None => {
                let length = match method.as_str() {
                    "POST" | "PUT" | "PATCH" => "Content-Length: 0\r\n\r\n",
                    _ => "\r\n",
                };
                head.literal(length.as_bytes());
                None
            }
        };
        Ok(StepPlan {
            name: step.name.to_string(),
            expect: Expectation::compile(step, names)?,
            needs,
            head,
            body,
        })
    }

    /// The length stands before the body, so it is written with room to spare and shifted into place.
    fn write_body(
        &self,
        body: &Template,
        scene: &Scene<'_>,
        draw: &mut Draw,
        out: &mut Vec<u8>,
    ) -> Result<(), Unsendable> {
        const LENGTH: &[u8] = b"Content-Length: ";
        const DIGITS: usize = 20;
        out.extend_from_slice(LENGTH);
        let digits = out.len();
        // Leading spaces are legal optional whitespace of a header's value.
        out.extend_from_slice(&[b' '; DIGITS]);
        out.extend_from_slice(b"\r\n\r\n");
        let start = out.len();
        body.fill(scene, draw, out)?;
        let mut length = out.len() - start;
        let mut at = digits + DIGITS;
        loop {
            at -= 1;
            out[at] = b'0' + (length % 10) as u8;
            length /= 10;
            if length == 0 {
                return Ok(());
            }
        }
    }
}

fn compile_body(step: &Step, compiler: &mut Compiler) -> anyhow::Result<Option<Template>> {
    let mut template = Template::default();
    match &step.body {
        None => return Ok(None),
        Some(Body::Json(document)) => compiler.json(&mut template, document)?,
        Some(Body::Form(fields)) => {
            for (i, (name, value)) in fields.iter().enumerate() {
                template.literal(if i > 0 { b"&" } else { b"" });
                let mut encoded = Vec::new();
                Encoding::Form.literal(name, &mut encoded);
                template.literal(&encoded);
                template.literal(b"=");
                compiler.text(&mut template, value, Encoding::Form)?;
            }
        }
        Some(Body::Raw(text)) => compiler.text(&mut template, text, Encoding::Verbatim)?,
        Some(Body::File { bytes, .. }) => template.literal(bytes),
    }
    Ok(Some(template))
}

fn check_header(name: &str, value: &str) -> anyhow::Result<()> {
    anyhow::ensure!(
        http::HeaderName::from_bytes(name.as_bytes()).is_ok(),
        "'{name}' is no header name"
    );
    anyhow::ensure!(
        !value.bytes().any(|b| b < b' ' && b != b'\t' || b == 0x7f),
        "the header '{name}' has control characters in its value"
    );
    for framing in [
        "content-length",
        "transfer-encoding",
        "connection",
        "upgrade",
        "expect",
    ] {
        anyhow::ensure!(
            !name.eq_ignore_ascii_case(framing),
            "the header '{name}' frames the request and is the driver's to write; remove it"
        );
    }
    Ok(())
}
