//! What a run of `sheaf-bench plans` found, as a section of `docs/plans.md`.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use super::{GOOD, Measured, NOISE_SECONDS, Options, Outcome, Results, Timed, WORST};
use crate::chart::{Series, scatter_chart};
use crate::error::BenchError;
use crate::machine;
use crate::reference::write_section;

/// Which of a plan's times is looked at.
pub type Time = fn(&Measured) -> Option<Timed>;

const TIMES: [(&str, Time); 2] = [("cold", |plan| plan.cold), ("warm", |plan| plan.warm)];

const GROUPS: [&str; 3] = ["reference", "tpch", "generated"];

/// Plans that take less are all planning and answering, which costs do not contain; in seconds.
const LEAST_COMPARED_SECONDS: f64 = 0.005;

const HEAD: &str = "# Plans

Written by `sheaf-bench plans`: each query is timed under every plan that hints and switches lead to, and under the free
choice. The *ratio* of a query is the time of the free choice over that of the best plan; differences of less than a
millisecond count as none. *Predicted* is the optimizer's cost, in seconds.
";

/// The free choice's time over that of the best plan, and which one that is.
pub fn ratio(plans: &[Measured], time: Time) -> Option<(f64, usize)> {
    let seconds = |plan: &Measured| time(plan).map(|timed| timed.elapsed.as_secs_f64());
    let free = seconds(plans.first()?)?;
    let timed = plans.iter().enumerate();
    let timed = timed.filter_map(|(at, plan)| Some((at, seconds(plan)?)));
    let (best, fastest) = timed.min_by(|a, b| a.1.total_cmp(&b.1))?;
    let ratio = match free - fastest < NOISE_SECONDS {
        true => 1.0,
        false => free / fastest,
    };
    Some((ratio, best))
}

fn shown(timed: Option<Timed>) -> String {
    timed.map_or("-".to_string(), |timed| {
        format!("{:.4}", timed.elapsed.as_secs_f64())
    })
}

fn predicted(timed: Option<Timed>) -> String {
    timed.map_or("-".to_string(), |timed| {
        format!("{:.4}", timed.predicted_us / 1e6)
    })
}

/// One query in a line, to show while the others run.
pub fn line(outcome: &Outcome) -> String {
    let mut text = format!(
        "{} {}: {} plans",
        outcome.query.group,
        outcome.query.name,
        outcome.plans.len()
    );
    for (name, time) in TIMES {
        let Some((ratio, best)) = ratio(&outcome.plans, time) else {
            continue;
        };
        let free = outcome.plans.first().and_then(time);
        let _ = write!(text, ", {name} {} s", shown(free));
        if ratio > GOOD {
            let plan = &outcome.plans[best];
            let _ = write!(text, " ({ratio:.2} x {}: {})", plan.label, plan.plan);
        }
    }
    text
}

/// All plans of a query as lines of tabs: what was asked, what it took and was thought to take, and the query.
pub fn lines(outcome: &Outcome) -> String {
    let mut text = String::new();
    for plan in &outcome.plans {
        let sql = outcome.query.sql.split_whitespace().collect::<Vec<_>>();
        let _ = writeln!(
            text,
            "{} {}\t{}\t{}\t{}\t{}\t{}\t{}\t{}",
            outcome.query.group,
            outcome.query.name,
            plan.label,
            shown(plan.cold),
            predicted(plan.cold),
            shown(plan.warm),
            predicted(plan.warm),
            plan.plan,
            sql.join(" ")
        );
    }
    text
}

/// Writes the section of a pool in place of an older one, and returns it.
pub fn write(options: &Options, memory: usize, results: &Results) -> Result<String, BenchError> {
    let mut text = String::new();
    let _ = writeln!(
        text,
        "## Scale {}, {} MiB of pool\n\n{}. Machine: {}. {} generated queries over {} rows, seed {}.\n",
        options.scale,
        memory >> 20,
        machine::today(),
        machine::describe(),
        options.generated,
        options.rows,
        options.seed
    );
    if results.open > 0 {
        let _ = writeln!(text, "Not measured: {} queries.\n", results.open);
    }
    for failure in &results.failures {
        let _ = writeln!(text, "Failed: {failure}\n");
    }
    choices(&mut text, &results.outcomes);
    multi_range_reads(&mut text, &results.outcomes);
    if options.out != "-" {
        let path = Path::new(&options.out);
        let chart = format!("plans-{}-{}M.svg", options.scale, memory >> 20);
        let _ = writeln!(text, "### Predicted against measured\n\n![]({chart})\n");
        let chart = path.with_file_name(chart);
        fs::write(&chart, draw(options, memory, &results.outcomes))
            .map_err(|error| BenchError::file(&chart, error))?;
    }
    predictions(&mut text, &results.outcomes);
    if !results.planning.is_empty() {
        let _ = writeln!(text, "### Planning\n\n| query | EXPLAIN, ms |\n|---|---|");
        for (name, time) in &results.planning {
            let _ = writeln!(text, "| {name} | {:.3} |", time.as_secs_f64() * 1e3);
        }
    }
    if options.out != "-" {
        replace_section(Path::new(&options.out), &text)?;
    }
    Ok(text)
}

/// Puts a section into the document, which is begun if it is not there yet.
pub fn replace_section(path: &Path, section: &str) -> Result<(), BenchError> {
    if !path.exists() {
        fs::write(path, HEAD).map_err(|error| BenchError::file(path, error))?;
    }
    write_section(path, section)
}

/// How many choices are good, and those that are not.
fn choices(text: &mut String, outcomes: &[Outcome]) {
    let _ = writeln!(
        text,
        "| group | pool | queries | plans | within {GOOD} x | worst |\n|---|---|---|---|---|---|"
    );
    for group in GROUPS {
        for (name, time) in TIMES {
            let of_group = outcomes.iter().filter(|one| one.query.group == group);
            let ratios: Vec<f64> = of_group
                .clone()
                .filter_map(|outcome| Some(ratio(&outcome.plans, time)?.0))
                .collect();
            if ratios.is_empty() {
                continue;
            }
            let plans: usize = of_group.map(|outcome| outcome.plans.len()).sum();
            let good = ratios.iter().filter(|ratio| **ratio <= GOOD).count();
            let worst = ratios.iter().copied().fold(1.0, f64::max);
            let _ = writeln!(
                text,
                "| {group} | {name} | {} | {plans} | {:.1}% | {worst:.2} x |",
                ratios.len(),
                100.0 * good as f64 / ratios.len() as f64,
            );
        }
    }
    let _ = writeln!(
        text,
        "\n### Choices beyond {GOOD} x (the limit is {WORST} x)\n\n\
         | query | pool | ratio | free choice, s | best, s | free choice | best plan | how |\n|---|---|---|---|---|---|---|---|"
    );
    for (name, time) in TIMES {
        for outcome in outcomes {
            let plans = &outcome.plans;
            let Some((ratio, best)) = ratio(plans, time).filter(|(ratio, _)| *ratio > GOOD) else {
                continue;
            };
            let (free, best) = (&plans[0], &plans[best]);
            let _ = writeln!(
                text,
                "| {} {} | {name} | {ratio:.2} | {} | {} | {} | {} | {} |",
                outcome.query.group,
                outcome.query.name,
                shown(time(free)),
                shown(time(best)),
                free.plan,
                best.plan,
                best.label
            );
        }
    }
    text.push('\n');
}

/// What multi-range read gains where it was chosen.
fn multi_range_reads(text: &mut String, outcomes: &[Outcome]) {
    let mut table = String::new();
    for (name, time) in TIMES {
        let gains = outcomes.iter().filter_map(|outcome| {
            let free = outcome.plans.first().filter(|free| free.uses_mrr)?;
            let without = outcome.plans.iter().find(|plan| plan.label == "mrr=off")?;
            let (free, without) = (time(free)?.elapsed, time(without)?.elapsed);
            Some(without.as_secs_f64() / free.as_secs_f64())
        });
        let gains = sorted(gains);
        if !gains.is_empty() {
            let _ = writeln!(
                table,
                "| {name} | {} | {:.2} | {:.2} | {:.2} |",
                gains.len(),
                quantile(&gains, 0.0),
                quantile(&gains, 0.5),
                quantile(&gains, 1.0)
            );
        }
    }
    if !table.is_empty() {
        let _ = writeln!(
            text,
            "### Multi-range read where it was chosen: the time of `mrr=off` over the free choice's\n\n\
             | pool | queries | least | median | most |\n|---|---|---|---|---|\n{table}"
        );
    }
}

/// How far predictions are from times, and those of the free choices that have a name.
fn predictions(text: &mut String, outcomes: &[Outcome]) {
    let _ = writeln!(
        text,
        "Measured over predicted, of all plans that took more than {} ms:\n\n\
         | group | pool | plans | 10% | median | 90% |\n|---|---|---|---|---|---|",
        LEAST_COMPARED_SECONDS * 1e3
    );
    for group in GROUPS {
        for (name, time) in TIMES {
            let of_group = outcomes.iter().filter(|one| one.query.group == group);
            let plans = of_group.flat_map(|outcome| &outcome.plans);
            let factors = sorted(plans.filter_map(|plan| {
                let (predicted, measured) = both_seconds(time(plan)?)?;
                Some(measured / predicted)
            }));
            if factors.is_empty() {
                continue;
            }
            let _ = writeln!(
                text,
                "| {group} | {name} | {} | {:.2} | {:.2} | {:.2} |",
                factors.len(),
                quantile(&factors, 0.1),
                quantile(&factors, 0.5),
                quantile(&factors, 0.9)
            );
        }
    }
    let _ = writeln!(
        text,
        "\n| query | free choice | predicted cold, s | cold, s | predicted warm, s | warm, s |\n|---|---|---|---|---|---|"
    );
    for outcome in outcomes {
        let Some(free) = outcome.plans.first() else {
            continue;
        };
        if outcome.query.group != "generated" {
            let _ = writeln!(
                text,
                "| {} {} | {} | {} | {} | {} | {} |",
                outcome.query.group,
                outcome.query.name,
                free.plan,
                predicted(free.cold),
                shown(free.cold),
                predicted(free.warm),
                shown(free.warm)
            );
        }
    }
    text.push('\n');
}

/// Predicted and measured seconds of a run that both are worth comparing of.
fn both_seconds(timed: Timed) -> Option<(f64, f64)> {
    let measured = timed.elapsed.as_secs_f64();
    let predicted = timed.predicted_us / 1e6;
    (measured >= LEAST_COMPARED_SECONDS && predicted > 0.0).then_some((predicted, measured))
}

/// All plans, predicted against measured.
fn draw(options: &Options, memory: usize, outcomes: &[Outcome]) -> String {
    let series = TIMES.map(|(name, time)| {
        let plans = outcomes.iter().flat_map(|outcome| &outcome.plans);
        let points = plans.filter_map(|plan| both_seconds(time(plan)?));
        Series {
            name: name.to_string(),
            points: points.collect(),
        }
    });
    let title = format!("Scale {}, {} MiB of pool", options.scale, memory >> 20);
    scatter_chart(&title, "predicted, s", "measured, s", &series)
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}

/// The value that a share of the sorted values does not exceed; NaN if there are none.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of a length"
    )]
    let position = (sorted.len().saturating_sub(1) as f64 * share).round() as usize;
    sorted.get(position).copied().unwrap_or(f64::NAN)
}
