//! Synergy-Opt's first linear programme (OSDI '22): the most that any division of the cluster's CPU and memory among its
//! jobs can give, as if the cluster were one server and allocations could be mixed in time.
//!
//! Solved exactly by column generation (Dantzig and Wolfe): a column is what all jobs together hold at some prices, so
//! the programme that is left has three rows, and its basis is three columns.

use super::response::{Class, Point};

/// Reduced value, relative to the optimum, up to which a column is not worth taking.
const TOLERANCE: f64 = 1e-9;
/// Far more than ever needed; then the bound is a little too high.
const STEPS_MAX: u32 = 10_000;

/// A column of the programme: what it uses of cores, memory and the one mixture, and its value.
type Column = ([f64; 3], f64);

/// The largest sum of values of so many jobs per class on `cores` and `units`. None when not even the cheapest fit.
pub(super) fn bound(classes: &[(Class, f64)], cores: f64, units: f64) -> Option<f64> {
    // A little more than there is: at a full cluster a basis is else degenerate and the method may go in circles.
    let have = [cores * (1.0 + 1e-10), units * (1.0 + 1e-10), 1.0];
    let cheapest = together(classes, (1e6, 1e6))?;
    let mut basis: [Column; 3] = [([1.0, 0.0, 0.0], 0.0), ([0.0, 1.0, 0.0], 0.0), column(&cheapest)];
    let mut least = f64::INFINITY;
    for _ in 0..STEPS_MAX {
        let inverse = inverse(&basis)?;
        let amounts = times(&inverse, &have);
        if amounts.iter().any(|amount| *amount < -1e-6) {
            return None;
        }
        let duals = duals(&basis, &inverse);
        let entering = if duals[0] < -TOLERANCE {
            ([1.0, 0.0, 0.0], 0.0)
        } else if duals[1] < -TOLERANCE {
            ([0.0, 1.0, 0.0], 0.0)
        } else {
            let prices = (duals[0].max(0.0), duals[1].max(0.0));
            let all = together(classes, prices)?;
            // Any prices bound the optimum from above.
            least = least.min(all.net(prices) + prices.0 * cores + prices.1 * units);
            if all.net(prices) - duals[2] <= TOLERANCE * all.value {
                return Some(least);
            }
            column(&all)
        };
        let step = times(&inverse, &entering.0);
        basis[leaving(&amounts, &step)?] = entering;
    }
    Some(least).filter(|least| least.is_finite())
}

/// What all jobs hold at these prices.
fn together(classes: &[(Class, f64)], prices: (f64, f64)) -> Option<Point> {
    let add = |sum: Point, (class, jobs): &(Class, f64)| Some(sum.plus(*jobs, &class.response(prices)?));
    classes.iter().try_fold(Point::default(), add)
}

fn column(all: &Point) -> Column {
    ([all.cores, all.units, 1.0], all.value)
}

/// Values of the basis times its inverse.
fn duals(basis: &[Column; 3], inverse: &[[f64; 3]; 3]) -> [f64; 3] {
    [0, 1, 2].map(|column| (0..3).map(|row| basis[row].1 * inverse[row][column]).sum())
}

fn times(matrix: &[[f64; 3]; 3], vector: &[f64; 3]) -> [f64; 3] {
    [0, 1, 2].map(|row| (0..3).map(|at| matrix[row][at] * vector[at]).sum())
}

/// The first column of the basis that the entering one drives to nothing.
fn leaving(amounts: &[f64; 3], step: &[f64; 3]) -> Option<usize> {
    let ratio = |at: usize| amounts[at].max(0.0) / step[at];
    (0..3).filter(|at| step[*at] > 1e-12).min_by(|one, other| ratio(*one).total_cmp(&ratio(*other)))
}

/// Inverse of the matrix whose columns are those of the basis, by cofactors.
fn inverse(basis: &[Column; 3]) -> Option<[[f64; 3]; 3]> {
    let at = |row: usize, column: usize| basis[column % 3].0[row % 3];
    let cofactor = |row: usize, column: usize| {
        at(row + 1, column + 1) * at(row + 2, column + 2) - at(row + 1, column + 2) * at(row + 2, column + 1)
    };
    let determinant: f64 = (0..3).map(|column| at(0, column) * cofactor(0, column)).sum();
    let scaled = |row: usize, column: usize| cofactor(column, row) / determinant;
    (determinant.abs() > 1e-12).then(|| [0, 1, 2].map(|row| [0, 1, 2].map(|column| scaled(row, column))))
}

#[cfg(test)]
mod tests {
    use super::super::response::tests::points;
    use super::*;

    /// A few odd numbers.
    fn draw(state: &mut u64) -> f64 {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*state >> 40) as f64 / f64::from(1 << 24)
    }

    /// Classes whose cheapest point is their floor, as a proportional share is.
    fn classes(seed: u64, count: usize) -> Vec<(Class, f64)> {
        let mut state = seed;
        (0..count)
            .map(|_| {
                let mut list = vec![(1.0, 1.0, 0.4), (3.0, 3.0, 1.0)];
                for at in 0..6 {
                    let more = draw(&mut state) * 2.0;
                    list.push((4.0 + f64::from(at), 3.0 + (draw(&mut state) * 6.0).floor(), 1.0 + more));
                }
                (Class::new(points(&list), 1.0), 1.0 + (draw(&mut state) * 4.0).floor())
            })
            .collect()
    }

    /// The dual by nested search: least over both prices of what the jobs net and the cluster costs.
    fn by_search(classes: &[(Class, f64)], cores: f64, units: f64) -> f64 {
        fn least(high: f64, of: &dyn Fn(f64) -> f64) -> f64 {
            let (mut low, mut high) = (0.0, high);
            for _ in 0..50 {
                let third = (high - low) / 3.0;
                if of(low + third) <= of(high - third) { high -= third } else { low += third }
            }
            of((low + high) / 2.0)
        }
        let cost = |a: f64, b: f64| together(classes, (a, b)).expect("points").net((a, b)) + a * cores + b * units;
        least(3.0, &|a| least(3.0, &|b| cost(a, b)))
    }

    #[test]
    fn bounds_are_those_of_a_search_over_prices() {
        for seed in 0..30 {
            let classes = classes(seed, 1 + seed as usize % 5);
            let jobs: f64 = classes.iter().map(|(_, jobs)| jobs).sum();
            for (cores, units) in [(3.0, 3.0), (4.2, 3.5), (3.5, 9.0), (20.0, 20.0)] {
                let found = bound(&classes, cores * jobs, units * jobs).expect("fits");
                let expected = by_search(&classes, cores * jobs, units * jobs);
                assert!((found / expected - 1.0).abs() < 1e-6, "{seed}, {cores}, {units}: {found}, not {expected}");
            }
        }
    }

    #[test]
    fn bounds_are_those_of_all_mixtures() {
        let list = [vec![(3.0, 3.0, 1.0), (5.0, 3.0, 1.8)], vec![(1.0, 1.0, 1.0), (4.0, 6.0, 1.5)]];
        let classes: Vec<(Class, f64)> = list.iter().map(|list| (Class::new(points(list), 1.0), 1.0)).collect();
        for (cores, units) in [(4.0, 4.0), (6.0, 5.0), (7.0, 9.0), (8.0, 6.0), (9.0, 9.0)] {
            let mut best = f64::NEG_INFINITY;
            for (one, other) in (0..=600).flat_map(|one| (0..=600).map(move |other| (one, other))) {
                let (one, other) = (f64::from(one) / 600.0, f64::from(other) / 600.0);
                if 4.0 + 2.0 * one + 3.0 * other <= cores + 1e-9 && 4.0 + 5.0 * other <= units + 1e-9 {
                    best = best.max(2.0 + 0.8 * one + 0.5 * other);
                }
            }
            let found = bound(&classes, cores, units).expect("fits");
            assert!((found - best).abs() < 2e-3, "{cores}, {units}: {found}, not {best}");
        }
    }

    #[test]
    fn what_does_not_fit_has_no_bound() {
        assert_eq!(bound(&classes(1, 2), 1.0, 1.0), None);
    }
}
