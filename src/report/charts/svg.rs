//! Drawing primitives: a canvas, axes and panels, as SVG text.
//!
//! Pictures are readable at 700 px, light and dark, for the colour-blind (arms differ in dash and label, not in colour
//! alone), and need no script. They must never scale an axis so that a change looks larger than it is: linear axes of
//! amounts start at zero, and the one picture of dots that doesn't says so.

use std::fmt::Write as _;

use crate::report::text;
use crate::report::words;

/// Width of every picture in px.
pub const WIDTH: f64 = 720.0;

/// Style of every picture. Plain classes, so that renderers without CSS variables show the light colours.
pub const STYLE: &str = include_str!("../../../templates/chart.css");

/// A picture being drawn.
pub struct Canvas {
    body: String,
    height: f64,
}

/// Where a text is anchored.
#[derive(Clone, Copy)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

impl Anchor {
    fn as_str(self) -> &'static str {
        match self {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        }
    }
}

impl Canvas {
    /// An empty picture of the given height in px, with its title drawn.
    pub fn new(height: f64, title: &str) -> Self {
        let mut canvas = Canvas {
            body: String::new(),
            height,
        };
        canvas.text(12.0, 22.0, "head", Anchor::Start, title);
        canvas
    }

    pub fn text(&mut self, x: f64, y: f64, class: &str, anchor: Anchor, words: &str) {
        let _ = writeln!(
            self.body,
            "<text class=\"{class}\" x=\"{}\" y=\"{}\" text-anchor=\"{}\">{}</text>",
            px(x),
            px(y),
            anchor.as_str(),
            text::html(words)
        );
    }

    pub fn line(&mut self, from: (f64, f64), to: (f64, f64), class: &str) {
        let _ = writeln!(
            self.body,
            "<line class=\"{class}\" x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"/>",
            px(from.0),
            px(from.1),
            px(to.0),
            px(to.1)
        );
    }

    /// A rectangle with what it stands for, shown when the pointer rests on it.
    pub fn rect(&mut self, corner: (f64, f64), size: (f64, f64), class: &str, tip: Option<&str>) {
        let _ = write!(
            self.body,
            "<rect class=\"{class}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"",
            px(corner.0),
            px(corner.1),
            px(size.0),
            px(size.1)
        );
        self.close_with_tip("rect", tip);
    }

    pub fn dot(&mut self, at: (f64, f64), radius: f64, class: &str, tip: Option<&str>) {
        let _ = write!(
            self.body,
            "<circle class=\"{class}\" cx=\"{}\" cy=\"{}\" r=\"{}\"",
            px(at.0),
            px(at.1),
            px(radius)
        );
        self.close_with_tip("circle", tip);
    }

    fn close_with_tip(&mut self, element: &str, tip: Option<&str>) {
        let _ = match tip {
            Some(tip) => writeln!(self.body, "><title>{}</title></{element}>", text::html(tip)),
            None => writeln!(self.body, "/>"),
        };
    }

    /// A line through the points; it is broken where a point is missing.
    pub fn path(&mut self, points: impl IntoIterator<Item = Option<(f64, f64)>>, class: &str) {
        let mut d = String::new();
        let mut last = None;
        let mut drawn = true;
        for point in points {
            match point {
                Some((x, y)) if x.is_finite() && y.is_finite() => {
                    let _ = write!(
                        d,
                        "{}{} {}",
                        if last.is_none() { "M" } else { "L" },
                        px(x),
                        px(y)
                    );
                    drawn = last.is_some();
                    last = Some((x, y));
                }
                _ => {
                    if let (Some((x, _)), false) = (last, drawn) {
                        // A single point between gaps would be invisible.
                        let _ = write!(d, "H{}", px(x + 0.1));
                    }
                    last = None;
                    drawn = true;
                }
            }
        }
        if let (Some((x, _)), false) = (last, drawn) {
            let _ = write!(d, "H{}", px(x + 0.1));
        }
        if !d.is_empty() {
            let _ = writeln!(self.body, "<path class=\"{class}\" d=\"{d}\"/>");
        }
    }

    /// A legend on one line from `x`: a sample of each line's class and its words.
    pub fn legend(&mut self, x: f64, y: f64, entries: &[(&str, String)]) {
        let mut at = x;
        for (class, words) in entries {
            self.line((at, y - 4.0), (at + 22.0, y - 4.0), class);
            self.text(at + 28.0, y, "label", Anchor::Start, words);
            at += 28.0 + 6.6 * words.chars().count() as f64 + 22.0;
        }
    }

    /// [`Canvas::legend`] for pictures of dots.
    pub fn legend_of_dots(&mut self, x: f64, y: f64, entries: &[(&str, String)]) {
        let mut at = x;
        for (class, words) in entries {
            self.dot((at + 6.0, y - 4.0), 4.0, class, None);
            self.text(at + 16.0, y, "label", Anchor::Start, words);
            at += 16.0 + 6.6 * words.chars().count() as f64 + 22.0;
        }
    }

    /// The finished picture: as a file of its own, and for embedding beside others in a page that brings [`STYLE`].
    pub fn finish(self, name: &str, title: &str, alt: &str) -> (String, String) {
        let draw = |style: &str| {
            format!(
                "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart\" viewBox=\"0 0 {w} {h}\" width=\"{w}\" height=\"{h}\" role=\"img\" aria-labelledby=\"{name}-title {name}-desc\">\n<title id=\"{name}-title\">{}</title>\n<desc id=\"{name}-desc\">{}</desc>\n{style}<rect class=\"ground\" width=\"{w}\" height=\"{h}\"/>\n{}</svg>\n",
                text::html(title),
                text::html(alt),
                self.body,
                w = px(WIDTH),
                h = px(self.height),
            )
        };
        (draw(&format!("<style>\n{STYLE}</style>\n")), draw(""))
    }
}

/// A coordinate with at most one decimal.
pub fn px(value: f64) -> String {
    if !value.is_finite() {
        return "0".to_owned();
    }
    let text = format!("{value:.1}");
    let text = text.strip_suffix(".0").unwrap_or(&text);
    if text == "-0" {
        "0".to_owned()
    } else {
        text.to_owned()
    }
}

/// One axis: values on pixels.
#[derive(Debug, Clone, Copy)]
pub struct Axis {
    low: f64,
    high: f64,
    log: bool,
}

impl Axis {
    /// From zero to a round value at or above `high`.
    pub fn from_zero(high: f64) -> Self {
        let high = if high.is_finite() && high > 0.0 {
            high
        } else {
            1.0
        };
        let step = round_step(high, 5.0);
        Axis {
            low: 0.0,
            high: (high / step - 1e-9).ceil() * step,
            log: false,
        }
    }

    /// Round values around `low` and `high`, zero or not: for dots only, and the picture must say so.
    pub fn around(low: f64, high: f64) -> Self {
        let span = if high > low {
            high - low
        } else {
            high.abs().max(1.0)
        };
        let step = round_step(span, 5.0);
        let low = ((low / step).floor() * step).max(0.0);
        Axis {
            low,
            high: ((high / step).floor() + 1.0) * step,
            log: false,
        }
    }

    /// Exactly from `low` to `high`.
    pub fn exact(low: f64, high: f64) -> Self {
        let high = if high > low { high } else { low + 1.0 };
        Axis {
            low,
            high,
            log: false,
        }
    }

    /// Logarithmic, whole decades around the positive values; `None` without any.
    pub fn decades(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let (mut low, mut high) = (f64::INFINITY, 0.0_f64);
        for value in values {
            if value.is_finite() && value > 0.0 {
                low = low.min(value);
                high = high.max(value);
            }
        }
        (high > 0.0).then(|| {
            let low = 10_f64.powf(low.log10().floor());
            let top = 10_f64.powf(high.log10().ceil());
            Axis {
                low,
                high: if top > low { top } else { low * 10.0 },
                log: true,
            }
        })
    }

    /// Place of a value between 0 and 1; values outside are held at the edge.
    fn place(&self, value: f64) -> f64 {
        let place = if self.log {
            (value.max(self.low) / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        place.clamp(0.0, 1.0)
    }

    /// Round values to mark.
    fn ticks(&self) -> Vec<f64> {
        if self.log {
            let (first, last) = (
                self.low.log10().round() as i32,
                self.high.log10().round() as i32,
            );
            return (first..=last).map(|power| 10_f64.powi(power)).collect();
        }
        let step = round_step(self.high - self.low, 5.0);
        let first = (self.low / step - 1e-9).ceil() as i64;
        let last = (self.high / step + 1e-9).floor() as i64;
        (first..=last).map(|i| i as f64 * step).collect()
    }

    /// Seconds at which a time axis is marked.
    fn time_ticks(&self) -> Vec<f64> {
        const STEPS: [f64; 16] = [
            1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1_800.0, 3_600.0, 7_200.0,
            21_600.0, 43_200.0, 86_400.0,
        ];
        let span = self.high - self.low;
        let step = STEPS
            .into_iter()
            .find(|step| span / step <= 8.0)
            .unwrap_or_else(|| 86_400.0 * (span / 86_400.0 / 8.0).ceil());
        let last = (self.high / step + 1e-9).floor() as i64;
        (0..=last).map(|i| i as f64 * step).collect()
    }
}

/// A step of 1, 2 or 5 times a power of ten that divides `span` into about `parts`.
fn round_step(span: f64, parts: f64) -> f64 {
    let rough = span / parts;
    let power = 10_f64.powf(rough.log10().floor());
    let factor = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .find(|factor| factor * power >= rough * 0.999)
        .unwrap_or(10.0);
    factor * power
}

/// An area with two axes.
#[derive(Debug, Clone, Copy)]
pub struct Panel {
    pub left: f64,
    pub top: f64,
    pub width: f64,
    pub height: f64,
    pub x: Axis,
    pub y: Axis,
}

impl Panel {
    /// A panel as wide as the picture.
    pub fn wide(top: f64, height: f64, x: Axis, y: Axis) -> Self {
        Panel {
            left: 78.0,
            top,
            width: WIDTH - 78.0 - 30.0,
            height,
            x,
            y,
        }
    }

    pub fn bottom(&self) -> f64 {
        self.top + self.height
    }

    pub fn x(&self, value: f64) -> f64 {
        self.left + self.x.place(value) * self.width
    }

    pub fn y(&self, value: f64) -> f64 {
        self.bottom() - self.y.place(value) * self.height
    }

    pub fn at(&self, x: f64, y: f64) -> (f64, f64) {
        (self.x(x), self.y(y))
    }

    /// Horizontal grid lines with their values, and the axis title above them.
    pub fn draw_y(&self, canvas: &mut Canvas, title: &str) {
        for tick in self.y.ticks() {
            let y = self.y(tick);
            canvas.line((self.left, y), (self.left + self.width, y), "grid");
            canvas.text(
                self.left - 8.0,
                y + 4.0,
                "tick",
                Anchor::End,
                &words::number(tick),
            );
        }
        canvas.text(12.0, self.top - 10.0, "axis", Anchor::Start, title);
    }

    /// The time axis.
    pub fn draw_time(&self, canvas: &mut Canvas, title: bool) {
        self.baseline(canvas);
        // From two hours on every mark is a whole minute, so seconds would only take room.
        let long = self.x.high >= 7_200.0;
        for tick in self.x.time_ticks() {
            let label = words::clock(tick);
            let label = if long && tick > 0.0 {
                label.strip_suffix(":00").unwrap_or(&label)
            } else {
                &label
            };
            self.x_tick(canvas, tick, label);
        }
        if title {
            let unit = match self.x.high {
                _ if long => "hours:minutes",
                high if high >= 3_600.0 => "hours:minutes:seconds",
                _ => "minutes:seconds",
            };
            self.x_title(canvas, &format!("measured time ({unit})"));
        }
    }

    /// Any other horizontal axis.
    pub fn draw_x(&self, canvas: &mut Canvas, title: &str) {
        self.baseline(canvas);
        for tick in self.x.ticks() {
            self.x_tick(canvas, tick, &words::number(tick));
        }
        self.x_title(canvas, title);
    }

    pub fn baseline(&self, canvas: &mut Canvas) {
        canvas.line(
            (self.left, self.bottom()),
            (self.left + self.width, self.bottom()),
            "base",
        );
    }

    pub fn x_tick(&self, canvas: &mut Canvas, value: f64, label: &str) {
        let x = self.x(value);
        canvas.line((x, self.bottom()), (x, self.bottom() + 4.0), "base");
        canvas.text(x, self.bottom() + 18.0, "tick", Anchor::Middle, label);
    }

    pub fn x_title(&self, canvas: &mut Canvas, title: &str) {
        canvas.text(
            self.left + self.width / 2.0,
            self.bottom() + 36.0,
            "axis",
            Anchor::Middle,
            title,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_of_amounts_begin_at_zero_and_hold_every_value() {
        for high in [0.0, 0.3, 1.0, 7.0, 99.0, 1_662.0, 2.5e9, f64::NAN] {
            let axis = Axis::from_zero(high);
            let ticks = axis.ticks();
            assert_eq!(ticks.first(), Some(&0.0), "{high}");
            assert!((3..=7).contains(&ticks.len()), "{high}: {ticks:?}");
            let top = ticks.last().copied().unwrap_or_default();
            assert!(
                high.is_nan() || high <= top * 1.000_001,
                "{high}: {ticks:?}"
            );
        }
    }

    #[test]
    fn decades_span_what_they_must() {
        let axis = Axis::decades([0.4, 247.0, 0.0, f64::NAN]).unwrap();
        assert_eq!(axis.ticks(), [0.1, 1.0, 10.0, 100.0, 1_000.0]);
        assert!(Axis::decades([0.0]).is_none());
    }

    #[test]
    fn time_axes_have_few_marks_from_seconds_to_weeks() {
        for seconds in [5.0, 120.0, 3_600.0, 259_200.0, 3e6] {
            let marks = Axis::exact(0.0, seconds).time_ticks();
            assert!((3..=10).contains(&marks.len()), "{seconds}: {marks:?}");
        }
    }

    #[test]
    fn a_path_breaks_at_gaps_and_shows_lonely_points() {
        let mut canvas = Canvas::new(10.0, "");
        canvas.path(
            [
                Some((0.0, 0.0)),
                None,
                Some((2.0, 1.0)),
                Some((3.0, 1.0)),
                Some((f64::NAN, 0.0)),
            ],
            "t",
        );
        assert!(
            canvas.body.contains("d=\"M0 0H0.1M2 1L3 1\""),
            "{}",
            canvas.body
        );
    }
}
