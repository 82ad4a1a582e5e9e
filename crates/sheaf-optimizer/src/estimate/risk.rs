//! What a plan may cost if an estimate is wrong by any factor.

/// What is expected of the estimates that may be wrong by any factor.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Expectation {
    /// They are right.
    #[default]
    Estimates,
    /// No LIMIT stops a scan before its end.
    NoEarlyStop,
    /// In addition, index conditions let every entry through.
    Worst,
}

/// What a plan may cost if what it counts on does not happen, in microseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Risk {
    /// See [`Expectation::NoEarlyStop`].
    pub unstopped_us: f64,
    /// See [`Expectation::Worst`].
    pub worst_us: f64,
}

impl Risk {
    /// Of a plan whose cost is not doubted.
    pub(crate) fn none(cost_us: f64) -> Risk {
        Risk {
            unstopped_us: cost_us,
            worst_us: cost_us,
        }
    }

    pub(crate) fn under(self, expectation: Expectation) -> f64 {
        match expectation {
            Expectation::Estimates => 0.0,
            Expectation::NoEarlyStop => self.unstopped_us,
            Expectation::Worst => self.worst_us,
        }
    }
}
