//! Charts as SVG, for the documents: lines, one for each server, the x axis by powers of two; and points, both axes by
//! powers of ten.

use std::fmt::Write as _;

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 360.0;
/// Space around the plot for the axes' labels, in pixels.
const LEFT: f64 = 80.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 50.0;
/// Lines of the grid.
const STEPS: u32 = 5;
/// Colours that colour-blind readers can tell apart (Okabe and Ito).
const COLOURS: [&str; 6] = [
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9",
];

/// One line of a chart.
pub struct Series {
    /// What the legend calls it.
    pub name: String,
    /// (x, y), x ascending and positive.
    pub points: Vec<(f64, f64)>,
}

/// A chart with a logarithmic x axis and a y axis from 0.
pub fn line_chart(title: &str, x_label: &str, y_label: &str, series: &[Series]) -> String {
    let points = || series.iter().flat_map(|series| &series.points);
    let largest_y = points().map(|point| point.1).fold(0.0, f64::max).max(1e-9);
    let mut xs: Vec<f64> = points().map(|point| point.0.max(1e-9)).collect();
    xs.sort_by(f64::total_cmp);
    xs.dedup();
    let (first, last) = (
        xs.first().copied().unwrap_or(1.0).log2(),
        xs.last().copied().unwrap_or(2.0).log2(),
    );
    let top = round_up(largest_y);
    let x = |value: f64| {
        LEFT + (value.max(1e-9).log2() - first) / (last - first).max(1e-9) * (WIDTH - LEFT - RIGHT)
    };
    let y = |value: f64| HEIGHT - BOTTOM - value / top * (HEIGHT - TOP - BOTTOM);
    let mut svg = frame(title, x_label, y_label);
    for step in 0..=STEPS {
        let value = top * f64::from(step) / f64::from(STEPS);
        let _ = writeln!(
            svg,
            "<line x1=\"{LEFT}\" x2=\"{}\" y1=\"{:.1}\" y2=\"{:.1}\" stroke=\"#dddddd\"/>\
             <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            WIDTH - RIGHT,
            y(value),
            y(value),
            LEFT - 6.0,
            y(value) + 4.0,
            number(value)
        );
    }
    for value in &xs {
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            x(*value),
            HEIGHT - BOTTOM + 18.0,
            number(*value)
        );
    }
    for (position, series) in series.iter().enumerate() {
        let colour = COLOURS[position % COLOURS.len()];
        let line: Vec<String> = series
            .points
            .iter()
            .map(|point| format!("{:.1},{:.1}", x(point.0), y(point.1)))
            .collect();
        let _ = writeln!(
            svg,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
            line.join(" ")
        );
        for point in &line {
            let (x, y) = point.split_once(',').unwrap_or(("0", "0"));
            let _ = writeln!(
                svg,
                "<circle cx=\"{x}\" cy=\"{y}\" r=\"3\" fill=\"{colour}\"/>"
            );
        }
        svg.push_str(&legend(position, &series.name));
    }
    svg.push_str("</svg>\n");
    svg
}

/// The smallest and the largest power of ten of a chart's axis when there is nothing to show.
const EMPTY_AXIS: (f64, f64) = (1e-3, 1.0);

/// A chart of points with logarithmic axes of the same range, and the line on which both coordinates are equal.
pub fn scatter_chart(title: &str, x_label: &str, y_label: &str, series: &[Series]) -> String {
    let points = || series.iter().flat_map(|series| &series.points);
    let values = || points().flat_map(|point| [point.0, point.1]);
    let (least, most) = match points().next() {
        Some(_) => (
            values().fold(f64::MAX, f64::min).max(1e-9),
            values().fold(0.0, f64::max).max(1e-9),
        ),
        None => EMPTY_AXIS,
    };
    let (first, last) = (
        least.log10().floor(),
        most.log10().ceil().max(least.log10().floor() + 1.0),
    );
    let share = |value: f64| (value.max(1e-9).log10() - first) / (last - first);
    let x = |value: f64| LEFT + share(value) * (WIDTH - LEFT - RIGHT);
    let y = |value: f64| HEIGHT - BOTTOM - share(value) * (HEIGHT - TOP - BOTTOM);
    let mut svg = frame(title, x_label, y_label);
    let mut power = first;
    while power <= last {
        let value = 10f64.powf(power);
        let (x, y) = (x(value), y(value));
        let _ = writeln!(
            svg,
            "<line x1=\"{LEFT}\" x2=\"{}\" y1=\"{y:.1}\" y2=\"{y:.1}\" stroke=\"#dddddd\"/>\
             <line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{TOP}\" y2=\"{}\" stroke=\"#dddddd\"/>\
             <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{value}</text>\
             <text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{value}</text>",
            WIDTH - RIGHT,
            HEIGHT - BOTTOM,
            LEFT - 6.0,
            y + 4.0,
            HEIGHT - BOTTOM + 18.0,
        );
        power += 1.0;
    }
    let _ = writeln!(
        svg,
        "<line x1=\"{LEFT}\" y1=\"{}\" x2=\"{}\" y2=\"{TOP}\" stroke=\"#888888\"/>",
        HEIGHT - BOTTOM,
        WIDTH - RIGHT
    );
    for (position, series) in series.iter().enumerate() {
        let colour = COLOURS[position % COLOURS.len()];
        for point in &series.points {
            let _ = writeln!(
                svg,
                "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"2\" fill=\"{colour}\" fill-opacity=\"0.6\"/>",
                x(point.0),
                y(point.1)
            );
        }
        svg.push_str(&legend(position, &series.name));
    }
    svg.push_str("</svg>\n");
    svg
}

/// What every chart begins with: its title and the names of its axes.
fn frame(title: &str, x_label: &str, y_label: &str) -> String {
    let (middle, centre) = (WIDTH / 2.0, HEIGHT / 2.0);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n\
         <text x=\"{middle}\" y=\"20\" text-anchor=\"middle\" font-size=\"14\">{}</text>\n\
         <text x=\"{middle}\" y=\"{}\" text-anchor=\"middle\">{}</text>\
         <text x=\"16\" y=\"{centre}\" text-anchor=\"middle\" transform=\"rotate(-90 16 {centre})\">{}</text>\n",
        escape(title),
        HEIGHT - 12.0,
        escape(x_label),
        escape(y_label)
    )
}

/// The line of the legend for the series at `position`.
fn legend(position: usize, name: &str) -> String {
    let colour = COLOURS[position % COLOURS.len()];
    let y = TOP + 8.0 + 16.0 * position as f64;
    format!(
        "<rect x=\"{}\" y=\"{}\" width=\"10\" height=\"10\" fill=\"{colour}\"/><text x=\"{}\" y=\"{y}\">{}</text>\n",
        LEFT + 8.0,
        y - 9.0,
        LEFT + 22.0,
        escape(name)
    )
}

/// The next number of the form 1, 2 or 5 times a power of ten.
fn round_up(value: f64) -> f64 {
    let power = 10f64.powf(value.log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .iter()
        .map(|factor| factor * power)
        .find(|rounded| *rounded >= value)
        .unwrap_or(value)
}

fn number(value: f64) -> String {
    if value >= 10_000.0 {
        format!("{:.0}k", value / 1000.0)
    } else if value >= 10.0 || value.fract() == 0.0 {
        format!("{value:.0}")
    } else {
        format!("{value:.2}")
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
