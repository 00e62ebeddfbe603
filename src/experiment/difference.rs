//! `[control]`: makes both arms' documents, each the file with one value replaced.
//!
//! That the arms differ in nothing else holds by construction: both are copies of one tree in which one path is set.

use std::ops::Range;

use super::document::Node;
use super::format;
use super::path;
use super::problem::Problem;
use super::{Control, Difference};
use crate::name::{Arm, Arms};

/// Both arms' documents and what made them differ.
pub(super) struct Resolved {
    pub control: Control,
    pub documents: Arms<Node>,
    /// Where an arm's value is written: there the faults belong that only this arm has.
    pub places: Arms<Range<usize>>,
}

/// Reads `[control]` and makes both documents. With a faulty table both are the file itself, so that all else is still checked.
pub(super) fn resolve(root: &Node, problems: &mut Vec<Problem>) -> Resolved {
    let same = || Arms {
        treatment: root.clone(),
        control: root.clone(),
    };
    let unresolved = |place: Range<usize>| Resolved {
        control: Control::Null,
        documents: same(),
        places: Arms {
            treatment: place.clone(),
            control: place,
        },
    };
    // A missing section or one of another type is told with the file's shape.
    let Some(entry) = root.entry("control").filter(|e| e.node.kind() == "a table") else {
        return unresolved(0..0);
    };
    let table = &entry.node;
    let place = table.span.clone();
    let mut faults = Vec::new();
    format::CONTROL.check(table, "control", &mut faults);
    // The same faults are told with the file's shape; here they only mean that no arm can be made.
    let readable = faults.is_empty();
    if table.get("null").and_then(Node::truth) == Some(true) {
        for other in table.entries().iter().filter(|e| e.key != "null") {
            problems.push(Problem::error(
                other.key_span.clone(),
                format!("`control.{}` stands beside `null = true`", other.key),
                "a null experiment runs the same arm twice: `null = true` stands alone",
            ));
        }
        return unresolved(place);
    }
    let Some(variable) = table.get("variable").filter(|_| readable) else {
        if readable {
            problems.push(Problem::error(
                place.clone(),
                "`control` does not say what differs",
                "add `variable = \"pruning.enabled\"` with `treatment` and `control`, or `null = true`",
            ));
        }
        return unresolved(place);
    };
    let written = variable.text().unwrap_or_default();
    let keys = match path::split(written).and_then(|keys| path::legal(&keys, root).map(|()| keys)) {
        Ok(keys) => keys,
        Err((message, hint)) => {
            problems.push(Problem::error(
                variable.span.clone(),
                format!("`control.variable`: {message}"),
                hint,
            ));
            return unresolved(place);
        }
    };
    let own = path::get(root, &keys);
    let values = Arms {
        treatment: table.get("treatment").or(own),
        control: table.get("control").or(own),
    };
    let same_value = match (values.treatment, values.control) {
        (Some(a), Some(b)) => a.same(b),
        (None, None) => true,
        _ => false,
    };
    if same_value {
        let hint = "give `treatment` and `control` two values of the variable";
        let message = match values.treatment {
            Some(value) => format!(
                "the arms do not differ: `{written}` is {} in both",
                value.toml()
            ),
            None => format!("the arms do not differ: `{written}` has no value in either"),
        };
        let at = table.get("control").or(table.get("treatment"));
        problems.push(Problem::error(
            at.map_or(variable.span.clone(), |n| n.span.clone()),
            message,
            hint,
        ));
        return unresolved(place);
    }
    let document = |arm: Arm| match table.get(arm.as_str()) {
        Some(value) => path::with(root, &keys, value.clone()),
        None => root.clone(),
    };
    let value_place = |arm: Arm| {
        table
            .get(arm.as_str())
            .map_or(variable.span.clone(), |n| n.span.clone())
    };
    if let Some(own) = own
        && table.get("treatment").is_some_and(|v| !v.same(own))
        && table.get("control").is_some_and(|v| !v.same(own))
    {
        problems.push(Problem::warning(
            own.span.clone(),
            format!("this value of `{written}` is used by neither arm"),
            "the values in `[control]` replace it in both",
        ));
    }
    if !written.starts_with("pruning.") && table.get("took_effect").is_none() {
        problems.push(Problem::warning(
            variable.span.clone(),
            "nothing shows that the change took effect",
            "add `took_effect = \"…\"`, an expression over figures that holds only if the arms really differed",
        ));
    }
    Resolved {
        control: Control::Variable(Difference {
            variable: written.to_owned(),
            values: values.map(|_, value| value.map(Node::toml)),
            took_effect: table
                .get("took_effect")
                .and_then(Node::text)
                .map(str::to_owned),
            also_differs: table
                .get("also_differs")
                .map(Node::texts)
                .unwrap_or_default(),
        }),
        documents: Arms {
            treatment: document(Arm::Treatment),
            control: document(Arm::Control),
        },
        places: Arms {
            treatment: value_place(Arm::Treatment),
            control: value_place(Arm::Control),
        },
    }
}

/// One list of both arms' problems: what both have once, what one has at the place of its value.
pub(super) fn merge(found: Arms<Vec<Problem>>, resolved: &Resolved, file: &mut Vec<Problem>) {
    let whole = |place: &Range<usize>, problem: &Problem| {
        place.start <= problem.span.start && problem.span.end <= place.end
    };
    for (arm, problems) in found.iter() {
        let others = found.get(arm.other());
        let place = resolved.places.get(arm);
        for problem in problems {
            let mut problem = problem.clone();
            if others.contains(&problem) {
                if arm == Arm::Control {
                    continue;
                }
            } else if !whole(place, &problem) {
                problem.message = format!("in the {arm} arm: {}", problem.message);
                problem.span = place.clone().into();
            }
            file.push(problem);
        }
    }
}
