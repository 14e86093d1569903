//! Fewer points than the data has, without lying: time-weighted means and documented picks.

/// A value that holds from its time until the next sample's.
pub(crate) type Step = (f64, f64);

/// Time-weighted means of `steps` over `bins` equal intervals up to `end`, as corner points of a step line. Data with
/// fewer steps than bins is drawn as it is.
pub(crate) fn step_line(steps: &[Step], end: f64, bins: usize) -> Vec<(f64, f64)> {
    let Some(start) = steps.first().map(|(at, _)| *at) else { return Vec::new() };
    if steps.len() <= bins || end <= start {
        return corners(steps.iter().copied(), end);
    }
    let width = (end - start) / bins as f64;
    let mut sums = vec![(0.0, 0.0); bins];
    for (at, (from, value)) in steps.iter().enumerate() {
        let until = steps.get(at + 1).map_or(end, |(next, _)| *next).min(end);
        spread(&mut sums, (from - start) / width, (until - start) / width, *value);
    }
    let means = sums.iter().enumerate().map(|(at, (sum, weight))| (start + at as f64 * width, sum / weight));
    corners(means, end)
}

/// Adds `value` to each bin by the part of it that `from..until` (in bins) covers.
fn spread(sums: &mut [(f64, f64)], from: f64, until: f64, value: f64) {
    let first = from.max(0.0).floor() as usize;
    for (at, slot) in sums.iter_mut().enumerate().skip(first) {
        let covered = (until.min(at as f64 + 1.0) - from.max(at as f64)).max(0.0);
        if covered <= 0.0 {
            break;
        }
        slot.0 += value * covered;
        slot.1 += covered;
    }
}

fn corners(steps: impl Iterator<Item = Step>, end: f64) -> Vec<(f64, f64)> {
    let mut points: Vec<(f64, f64)> = Vec::new();
    for (at, value) in steps {
        if let Some((_, before)) = points.last().copied() {
            points.push((at, before));
        }
        points.push((at, value));
    }
    if let Some((_, last)) = points.last().copied().filter(|(at, _)| *at < end) {
        points.push((end, last));
    }
    points
}

/// `most` positions spread evenly over `0..len`, first and last included; all when there are no more than that.
pub(crate) fn even_picks(len: usize, most: usize) -> Vec<usize> {
    if len <= most || most < 2 {
        return (0..len.min(most.max(1))).collect();
    }
    (0..most).map(|n| n * (len - 1) / (most - 1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn averages_over_time() {
        let steps: Vec<Step> = (0..8).map(|n| (f64::from(n), f64::from(n % 2))).collect();
        let line = step_line(&steps, 8.0, 4);
        assert!(line.iter().all(|(_, value)| (value - 0.5).abs() < 1e-12), "{line:?}");
        assert_eq!(line.last(), Some(&(8.0, 0.5)));
        let uneven = step_line(&[(0.0, 4.0), (1.0, 0.0), (1.5, 8.0)], 4.0, 2);
        assert_eq!(uneven, [(0.0, (4.0 + 0.5 * 8.0) / 2.0), (2.0, 4.0), (2.0, 8.0), (4.0, 8.0)]);
    }

    #[test]
    fn draws_few_steps_as_they_are() {
        assert_eq!(step_line(&[(0.0, 1.0), (2.0, 3.0)], 5.0, 10), [(0.0, 1.0), (2.0, 1.0), (2.0, 3.0), (5.0, 3.0)]);
        assert_eq!(step_line(&[], 5.0, 10), []);
    }

    #[test]
    fn picks_evenly() {
        let check = |len, most, expected: &[usize]| assert_eq!(even_picks(len, most), expected);
        check(3, 5, &[0, 1, 2]);
        check(9, 3, &[0, 4, 8]);
        check(10, 4, &[0, 3, 6, 9]);
        check(0, 4, &[]);
    }
}
