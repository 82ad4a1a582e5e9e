//! The part of a walk in order that a LIMIT needs.
//!
//! ```text
//!   start of the walk                                       its end
//!     |- - - - - - - - -|===x====x=====x==x====|- - - - - - - -|
//!        no match        matches, evenly spread     no match
//!                       first                  last
//! ```
//!
//! Where the matches lie is the question: evenly spread from end to end, if nothing is known; otherwise the walk has to
//! get through to the first of them. Matches of several kinds (the values of an IN) may each lie somewhere else.

/// Matches that are evenly spread over a part of a walk.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Piece {
    /// Where the part begins and ends, as shares (0 to 1) of the walk.
    pub first: f64,
    pub last: f64,
    /// Share of all matches; with those of the other pieces, 1.
    pub share: f64,
}

/// Where the rows that match lie along a walk.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct MatchPositions {
    /// None at all: nothing matches.
    pub pieces: Vec<Piece>,
}

impl Default for MatchPositions {
    /// From end to end.
    fn default() -> Self {
        MatchPositions::between(0.0, 1.0)
    }
}

/// Halvings of the walk in search of the place where it stops.
const HALVINGS: usize = 30;

impl MatchPositions {
    pub(crate) fn between(first: f64, last: f64) -> MatchPositions {
        MatchPositions {
            pieces: vec![Piece {
                first,
                last,
                share: 1.0,
            }],
        }
    }

    fn map(&self, change: impl Fn(&Piece) -> (f64, f64)) -> MatchPositions {
        let pieces = self.pieces.iter().map(|piece| {
            let (first, last) = change(piece);
            Piece {
                first,
                last,
                ..*piece
            }
        });
        MatchPositions {
            pieces: pieces.collect(),
        }
    }

    /// The same for a walk from the other end.
    pub(crate) fn reversed(&self) -> MatchPositions {
        self.map(|piece| (1.0 - piece.last, 1.0 - piece.first))
    }

    /// Between no knowledge and this, as far as it can be relied on (0 to 1).
    pub(crate) fn weakened(&self, weight: f64) -> MatchPositions {
        self.map(|piece| (piece.first * weight, 1.0 - (1.0 - piece.last) * weight))
    }

    /// The same for a walk over a part of it, from `start` on and so long.
    pub(crate) fn within(&self, start: f64, length: f64) -> MatchPositions {
        let relative =
            |position: f64| ((position - start) / length.max(f64::MIN_POSITIVE)).clamp(0.0, 1.0);
        self.map(|piece| (relative(piece.first), relative(piece.last)))
    }

    /// The same for a walk the first part of which, so long, is like this; no more is known of the rest.
    pub(crate) fn in_first_group(&self, length: f64) -> MatchPositions {
        let mut spread = self.map(|piece| (piece.first * length, piece.last * length));
        for piece in &mut spread.pieces {
            piece.share *= length;
        }
        spread.pieces.push(Piece {
            first: length,
            last: 1.0,
            share: 1.0 - length,
        });
        spread
    }

    /// What two independent conditions leave: both have to match.
    pub(crate) fn intersect(&self, other: &MatchPositions) -> MatchPositions {
        let mut pieces = Vec::new();
        for a in &self.pieces {
            for b in &other.pieces {
                let (first, last) = (a.first.max(b.first), a.last.min(b.last));
                if first <= last {
                    let within = |piece: &Piece| {
                        let length = piece.last - piece.first;
                        match length > 0.0 {
                            true => piece.share * (last - first) / length,
                            false => piece.share,
                        }
                    };
                    let share = within(a) * within(b);
                    pieces.push(Piece { first, last, share });
                }
            }
        }
        let all: f64 = pieces.iter().map(|piece| piece.share).sum();
        pieces.retain(|_| all > 0.0);
        for piece in &mut pieces {
            piece.share /= all;
        }
        MatchPositions { pieces }
    }

    /// Share of the walk until `limit` of `matches` rows are found.
    ///
    /// ```text
    ///   the least x for which  matches x sum of (share x part of the piece before x)  >=  limit
    /// ```
    ///
    /// All of it if there are no more matches than that.
    pub(crate) fn walked(&self, limit: f64, matches: f64) -> f64 {
        let found = |walked: f64| -> f64 {
            let before = self.pieces.iter().map(|piece| {
                let length = (piece.last - piece.first).max(f64::MIN_POSITIVE);
                piece.share * ((walked - piece.first) / length).clamp(0.0, 1.0)
            });
            matches * before.sum::<f64>()
        };
        if limit >= matches || found(1.0) < limit {
            return 1.0;
        }
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..HALVINGS {
            let middle = (low + high) / 2.0;
            if found(middle) < limit {
                low = middle;
            } else {
                high = middle;
            }
        }
        high
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: f64, wanted: f64) {
        assert!((found - wanted).abs() < 1e-6, "{found}, not {wanted}");
    }

    #[test]
    fn a_walk_stops_where_the_matches_are() {
        near(MatchPositions::default().walked(20.0, 200.0), 0.1);
        let at_the_end = MatchPositions::between(0.9, 1.0);
        near(at_the_end.walked(20.0, 200.0), 0.91);
        near(at_the_end.reversed().walked(20.0, 200.0), 0.01);
        near(at_the_end.walked(200.0, 200.0), 1.0);
        near(at_the_end.within(0.8, 0.2).walked(20.0, 200.0), 0.55);
        let in_group = at_the_end.in_first_group(0.1);
        near(in_group.walked(20.0, 1_000.0), 0.092);
        near(in_group.walked(100.0 + 90.0, 1_000.0), 0.19);
        near(at_the_end.in_first_group(0.0).walked(20.0, 200.0), 0.1);
        near(at_the_end.in_first_group(1.0).walked(20.0, 200.0), 0.91);
        assert_eq!(at_the_end.weakened(0.0), MatchPositions::default());
        assert_eq!(at_the_end.weakened(1.0), at_the_end);
    }

    #[test]
    fn matches_of_two_kinds() {
        let piece = |first, last, share| Piece { first, last, share };
        let kinds = MatchPositions {
            pieces: vec![piece(0.0, 1.0, 0.1), piece(0.95, 1.0, 0.9)],
        };
        near(kinds.walked(20.0, 400.0), 0.5);
        near(
            kinds.reversed().walked(20.0, 400.0),
            20.0 / 400.0 * 0.05 / 0.905,
        );
        let near_the_end = kinds.intersect(&MatchPositions::between(0.95, 1.0));
        near(near_the_end.walked(0.001, 400.0), 0.95);
        let nowhere =
            MatchPositions::between(0.0, 0.1).intersect(&MatchPositions::between(0.9, 1.0));
        near(nowhere.walked(1.0, 10.0), 1.0);
    }
}
