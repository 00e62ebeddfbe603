//! Sentences about limits that were felt: time for which a service was held back, processes killed for memory.

use super::arm_figure;
use crate::analysis::Summary;
use crate::analysis::summary::FigureValue;
use crate::name::Arm;
use crate::report::words;

/// One sentence a service and arm; none where no limit was felt.
pub(super) fn sentences(summary: &Summary) -> Vec<String> {
    let mut sentences = Vec::new();
    for arm in Arm::BOTH {
        for service in &summary.setup.services {
            let name = |what: &str| format!("services.{}.{what}", service.service);
            let felt = |what: &str| {
                matches!(
                    summary.figures.get(&format!("{arm}.{}", name(what))),
                    Some(FigureValue::Number(n)) if *n > 0.0
                )
            };
            if felt("throttled_s") {
                let limit = service.cpu_limit.map_or_else(String::new, |cores| {
                    format!(" of {} cores", words::number(cores))
                });
                sentences.push(format!(
                    "In the {arm} {} was held back by its limit{limit} for {} in all.",
                    service.service,
                    arm_figure(summary, arm, &name("throttled_s"), "s")
                ));
            }
            if felt("oom_kills") {
                let limit = service.memory_limit.map_or_else(String::new, |bytes| {
                    format!(" (limit {})", words::bytes(bytes))
                });
                sentences.push(format!(
                    "In the {arm} the kernel killed {} process(es) of {} for want of memory{limit}.",
                    arm_figure(summary, arm, &name("oom_kills"), ""),
                    service.service
                ));
            }
        }
    }
    sentences
}
