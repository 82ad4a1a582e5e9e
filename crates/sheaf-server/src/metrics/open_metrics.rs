//! Counters and gauges in the text format of OpenMetrics.
//!
//! ```text
//!   # TYPE sheaf_questions counter
//!   # HELP sheaf_questions Statements that clients sent.
//!   sheaf_questions_total 42
//! ```
//!
//! Status variables `Com_*` are one family, with the statement as a label.

use std::fmt::Write;

use sheaf_sql::{Metric, SERVER_VERSION};

pub(super) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The statements of `Com_select` and the like.
const COMMANDS: &str = "Com_";

/// The text of all of them. Those of one family stand together.
pub(super) fn text(metrics: &[Metric]) -> String {
    let mut text = String::with_capacity(256 * metrics.len());
    let mut push = |line: std::fmt::Arguments<'_>| {
        // A text takes whatever is written to it.
        let _ = text.write_fmt(line);
    };
    push(format_args!(
        "# TYPE sheaf_build info\n# HELP sheaf_build The version, as VERSION() tells it.\n\
         sheaf_build_info{{version=\"{SERVER_VERSION}\"}} 1\n"
    ));
    push(format_args!(
        "# TYPE sheaf_commands counter\n# HELP sheaf_commands Statements by kind, as Com_* of SHOW STATUS.\n"
    ));
    for metric in metrics {
        if let Some(command) = metric.name.strip_prefix(COMMANDS) {
            let value = metric.value;
            push(format_args!(
                "sheaf_commands_total{{command=\"{command}\"}} {value}\n"
            ));
        }
    }
    for metric in metrics
        .iter()
        .filter(|metric| !metric.name.starts_with(COMMANDS))
    {
        let name = format!("sheaf_{}", metric.name.to_ascii_lowercase());
        let (kind, suffix) = match metric.is_counter {
            true => ("counter", "_total"),
            false => ("gauge", ""),
        };
        let help = metric
            .meaning
            .replace('\\', "\\\\")
            .replace('\n', " ")
            .replace('"', "\\\"");
        let value = metric.value;
        push(format_args!(
            "# TYPE {name} {kind}\n# HELP {name} {help}\n{name}{suffix} {value}\n"
        ));
    }
    push(format_args!("# EOF\n"));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_have_a_type_and_help() {
        let metric = |name, is_counter| Metric {
            name,
            meaning: "What \"it\" is.",
            value: 7,
            is_counter,
        };
        let metrics = [
            metric("Com_select", true),
            metric("Questions", true),
            metric("Uptime", false),
        ];
        let text = text(&metrics);
        let (info, families) = text.split_once(" 1\n").expect("the version");
        assert_eq!(
            info,
            format!(
                "# TYPE sheaf_build info\n# HELP sheaf_build The version, as VERSION() tells it.\n\
                 sheaf_build_info{{version=\"{SERVER_VERSION}\"}}"
            )
        );
        assert_eq!(
            families,
            "# TYPE sheaf_commands counter\n\
             # HELP sheaf_commands Statements by kind, as Com_* of SHOW STATUS.\n\
             sheaf_commands_total{command=\"select\"} 7\n\
             # TYPE sheaf_questions counter\n\
             # HELP sheaf_questions What \\\"it\\\" is.\n\
             sheaf_questions_total 7\n\
             # TYPE sheaf_uptime gauge\n\
             # HELP sheaf_uptime What \\\"it\\\" is.\n\
             sheaf_uptime 7\n\
             # EOF\n"
        );
    }
}
