//! How well the order of a column's values agrees with the clustered order.
//!
//! The coefficient of correlation between the position of a row in the clustered tree and the position of its value
//! among all values: 1 if both orders are the same, -1 if one is the other reversed, near 0 if they have nothing to do
//! with each other. An index scan on a column near 1 or -1 reads the rows almost sequentially. PostgreSQL has the same
//! number as pg_stats.correlation.
//!
//! Equal values are put in clustered order, because the entries of a secondary index are: behind the column comes the
//! primary key.

/// The correlation, -1 to 1, of a sample of rows: `positions[i]` is the place in clustered order (0, 1, 2, ...) of the
/// row with the i-th smallest value. 0 if there are fewer than two rows.
pub(crate) fn correlation(positions: impl Iterator<Item = usize>) -> f64 {
    let (mut count, mut products) = (0.0, 0.0);
    for (rank, position) in positions.enumerate() {
        count += 1.0;
        products += rank as f64 * position as f64;
    }
    if count < 2.0 {
        return 0.0;
    }
    // Both are permutations of 0 .. count, so their sums and sums of squares are known.
    let mean = (count - 1.0) / 2.0;
    let variance = (count * count - 1.0) / 12.0;
    let covariance = products / count - mean * mean;
    (covariance / variance).clamp(-1.0, 1.0)
}

#[cfg(test)]
mod tests {
    use sheaf_storage::Random;

    use super::*;

    #[test]
    fn orders_agree_or_not() {
        assert_eq!(correlation(0..1000), 1.0);
        assert_eq!(correlation((0..1000).rev()), -1.0);
        let mut shuffled: Vec<usize> = (0..10_000).collect();
        Random::new(1).shuffle(&mut shuffled);
        // The standard deviation is 1 / sqrt(10,000).
        assert!(correlation(shuffled.into_iter()).abs() < 0.04);
        let nearby = (0..1000).map(|rank| rank ^ 7);
        assert!(correlation(nearby) > 0.99);
        assert_eq!(correlation(std::iter::empty()), 0.0);
        assert_eq!(correlation(std::iter::once(0)), 0.0);
    }
}
