//! From the figures of the three rules to a word.
//!
//! Must never let a rule that could not be computed count as passed.

use super::super::ends::Ends;
use super::super::linear::{Line, Scale};
use super::super::separation::Separation;
use super::super::warmup::WarmUp;
use super::{
    Direction, FEW_UNDER_SLOW_NOISE, FEWEST_BINS, FEWEST_FOR_DIRECTION, Options, Reason, Rule,
    RuleFigures, SLOW_NOISE_ALLOWANCE, SLOW_NOISE_WIDENING, Trend, Word,
};

/// The three rules on one series, in its own (normalised) units.
pub(super) fn decide(y: &[f64], options: &Options) -> Trend {
    let Options { margin, alpha, .. } = *options;
    let line = Line::on_fitting_scale(y);
    let linear = line.as_ref().and_then(|line| linear_figures(line, alpha));
    let ends = Ends::of(y).and_then(|ends| ends_figures(&ends, alpha));
    let separation = Separation::of(y);
    let mut trend = Trend {
        word: Word::Unclear,
        reason: Reason::Wide,
        rule: None,
        direction: Direction::NotEstablished,
        margin,
        alpha,
        estimate: None,
        flat_interval: None,
        direction_interval: None,
        level: line.as_ref().map(|line| match line.scale {
            Scale::Linear => line.raw.level,
            Scale::Log => line.raw.level.exp(),
        }),
        n: y.len(),
        n_eff: linear.map(|f| f.n_eff),
        phi: linear.map(|f| f.phi),
        smallest_flat_margin: None,
        times_as_long_for_flat: None,
        warm_up: WarmUp::NotSearched,
        word_without_cut: None,
        linear,
        ends,
        separation,
        described: None,
    };
    if let (Some(linear), Some(ends)) = (linear, ends) {
        let reach =
            [linear, ends].map(|f| f.flat_interval.lower.abs().max(f.flat_interval.upper.abs()));
        trend.smallest_flat_margin = Some(reach[0].max(reach[1]));
        trend.times_as_long_for_flat = times_as_long(&[linear, ends], margin);
    }
    if let Some(linear) = linear.filter(|_| y.len() >= FEWEST_FOR_DIRECTION) {
        if linear.direction_interval.upper < 0.0 {
            trend.direction = Direction::Down;
        } else if linear.direction_interval.lower > 0.0 {
            trend.direction = Direction::Up;
        }
    }
    let slow_noise = y.len() < FEW_UNDER_SLOW_NOISE
        && line
            .as_ref()
            .and_then(|line| line.widening(alpha))
            .is_some_and(|w| w >= SLOW_NOISE_WIDENING);
    trend.decide_word(slow_noise);
    trend
}

impl Trend {
    /// Sets word, reason and rule from the figures; under `slow_noise` the intervals must leave room for `flat`.
    pub(super) fn decide_word(&mut self, slow_noise: bool) {
        let margin = self.margin;
        let falls = self.first_rule(
            |f| f.direction_interval.upper < -margin,
            |s| s.below(margin),
        );
        let rises = self.first_rule(|f| f.direction_interval.lower > margin, |s| s.above(margin));
        let inside = |widened: f64| {
            let within = |f: RuleFigures| {
                let bound = |end: f64| f.change + widened * (end - f.change);
                bound(f.flat_interval.lower) > -margin && bound(f.flat_interval.upper) < margin
            };
            self.linear.is_some_and(within) && self.ends.is_some_and(within)
        };
        let flat = inside(1.0);
        let few = slow_noise && flat && !inside(SLOW_NOISE_ALLOWANCE);
        let (word, reason, rule) = match (falls, rises) {
            _ if self.n < FEWEST_BINS => (Word::Unclear, Reason::Few, None),
            (Some(_), Some(_)) => (Word::Unclear, Reason::Contradiction, None),
            (Some(rule), None) => (Word::Falls, reason_of(rule), Some(rule)),
            (None, Some(rule)) => (Word::Rises, reason_of(rule), Some(rule)),
            (None, None) if few => (Word::Unclear, Reason::Few, None),
            (None, None) if flat => (Word::Flat, Reason::InsideMargin, None),
            (None, None) if self.linear.is_none() || self.ends.is_none() => {
                (Word::Unclear, Reason::NoLevel, None)
            }
            (None, None) => (Word::Unclear, Reason::Wide, None),
        };
        self.word = word;
        self.reason = reason;
        match rule {
            Some(rule) => self.name_rule(rule),
            None => self.name_widest_rule(),
        }
        if few || self.n < FEWEST_BINS {
            let enough = if few {
                FEW_UNDER_SLOW_NOISE
            } else {
                FEWEST_BINS
            };
            self.times_as_long_for_flat = self
                .times_as_long_for_flat
                .map(|t| t.max(enough as f64 / self.n as f64));
        }
    }

    fn first_rule(
        &self,
        beyond: impl Fn(RuleFigures) -> bool,
        separated: impl Fn(Separation) -> bool,
    ) -> Option<Rule> {
        if self.linear.is_some_and(&beyond) {
            Some(Rule::Linear)
        } else if self.ends.is_some_and(&beyond) {
            Some(Rule::Ends)
        } else if self.separation.is_some_and(separated) {
            Some(Rule::Separation)
        } else {
            None
        }
    }

    fn name_rule(&mut self, rule: Rule) {
        let figures = match rule {
            Rule::Linear => self.linear,
            Rule::Ends | Rule::Separation => self.ends,
        };
        self.rule = Some(rule);
        self.estimate = figures.map(|f| f.change);
        self.flat_interval = figures.map(|f| f.flat_interval);
        self.direction_interval = figures.map(|f| f.direction_interval);
    }

    /// Names the interval that reaches furthest from zero: the one that stands in the way of `flat`, or would.
    pub(super) fn name_widest_rule(&mut self) {
        let reach = |f: RuleFigures| f.flat_interval.lower.abs().max(f.flat_interval.upper.abs());
        match (self.linear, self.ends) {
            (Some(linear), Some(ends)) if reach(ends) > reach(linear) => self.name_rule(Rule::Ends),
            (Some(_), _) => self.name_rule(Rule::Linear),
            (None, Some(_)) => self.name_rule(Rule::Ends),
            (None, None) => self.rule = None,
        }
    }
}

fn reason_of(rule: Rule) -> Reason {
    match rule {
        Rule::Linear | Rule::Ends => Reason::BeyondMargin,
        Rule::Separation => Reason::Separated,
    }
}

fn linear_figures(line: &Line, alpha: f64) -> Option<RuleFigures> {
    let flat = line.counted(alpha)?;
    let direction = line.counted(alpha / 2.0)?;
    RuleFigures {
        change: flat.change,
        flat_interval: flat.interval,
        direction_interval: direction.interval,
        phi: flat.fit.rho,
        n_eff: flat.fit.n_eff,
        batch: flat.batch,
        scale: line.scale,
    }
    .if_finite()
}

fn ends_figures(ends: &Ends, alpha: f64) -> Option<RuleFigures> {
    let (contrast, flat_interval) = ends.counted(alpha);
    let (_, direction_interval) = ends.counted(alpha / 2.0);
    RuleFigures {
        change: contrast.change,
        flat_interval,
        direction_interval,
        phi: contrast.rho,
        n_eff: 2.0 * contrast.m as f64 / contrast.variance_factor,
        batch: contrast.batch,
        scale: Scale::Linear,
    }
    .if_finite()
}

impl RuleFigures {
    fn if_finite(self) -> Option<Self> {
        let Self {
            change,
            flat_interval,
            direction_interval,
            ..
        } = self;
        [
            change,
            flat_interval.lower,
            flat_interval.upper,
            direction_interval.lower,
            direction_interval.upper,
        ]
        .iter()
        .all(|v| v.is_finite())
        .then_some(self)
    }
}

/// An interval shrinks with the square root of the length; the change itself is taken to stay.
fn times_as_long(rules: &[RuleFigures], margin: f64) -> Option<f64> {
    let mut times = 1.0f64;
    for rule in rules {
        let room = margin - rule.change.abs();
        if room <= 0.0 {
            return None;
        }
        let reach = rule
            .flat_interval
            .lower
            .abs()
            .max(rule.flat_interval.upper.abs());
        let half = (reach - rule.change.abs()).max(0.0);
        times = times.max((half / room).powi(2));
    }
    times.is_finite().then_some(times)
}
