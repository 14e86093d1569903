//! Linear algebra on 6 × 6 matrices.

/// Parameters of a belief.
pub(crate) const N: usize = 6;

pub(crate) type Vector = [f64; N];
pub(crate) type Matrix = [[f64; N]; N];

/// Index of each lower-triangle entry, row-major: how a factor is stored in the model's columns.
pub(crate) fn triangle() -> impl Iterator<Item = (usize, usize)> {
    (0..N).flat_map(|i| (0..=i).map(move |j| (i, j)))
}

/// Lower factor L with L·Lᵀ = `a`; `None` unless `a` is positive definite.
pub(crate) fn cholesky(a: &Matrix) -> Option<Matrix> {
    let mut lower = [[0.0; N]; N];
    for (i, j) in triangle() {
        let known: f64 = (0..j).map(|k| lower[i][k] * lower[j][k]).sum();
        let rest = a[i][j] - known;
        lower[i][j] = if i != j {
            rest / lower[j][j]
        } else if rest > 0.0 && rest.is_finite() {
            libm::sqrt(rest)
        } else {
            return None;
        };
    }
    Some(lower)
}

/// x with L·Lᵀ·x = `b`.
pub(crate) fn solve(lower: &Matrix, b: &Vector) -> Vector {
    let mut x = *b;
    for i in 0..N {
        let known: f64 = (0..i).map(|k| lower[i][k] * x[k]).sum();
        x[i] = (x[i] - known) / lower[i][i];
    }
    for i in (0..N).rev() {
        let known: f64 = (i + 1..N).map(|k| lower[k][i] * x[k]).sum();
        x[i] = (x[i] - known) / lower[i][i];
    }
    x
}

/// Inverse of L·Lᵀ.
pub(crate) fn inverse(lower: &Matrix) -> Matrix {
    let mut out = [[0.0; N]; N];
    for j in 0..N {
        let mut unit = [0.0; N];
        unit[j] = 1.0;
        let column = solve(lower, &unit);
        for i in 0..N {
            out[i][j] = column[i];
        }
    }
    out
}

/// L·Lᵀ.
pub(crate) fn squared(lower: &Matrix) -> Matrix {
    let mut out = [[0.0; N]; N];
    for (i, row) in out.iter_mut().enumerate() {
        for (j, cell) in row.iter_mut().enumerate() {
            *cell = (0..=i.min(j)).map(|k| lower[i][k] * lower[j][k]).sum();
        }
    }
    out
}

/// `a`·`x`.
pub(crate) fn times(a: &Matrix, x: &Vector) -> Vector {
    a.map(|row| dot(&row, x))
}

pub(crate) fn dot(a: &Vector, b: &Vector) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Matrix {
        let mut lower = [[0.0; N]; N];
        for (i, j) in triangle() {
            lower[i][j] = if i == j { 1.0 + i as f64 } else { 0.3 * (i as f64) - 0.2 * (j as f64) };
        }
        lower
    }

    #[test]
    fn factor_solve_and_inverse_agree() {
        let square = squared(&example());
        let lower = cholesky(&square).expect("positive definite");
        assert!(lower.iter().flatten().zip(example().iter().flatten()).all(|(a, b)| (a - b).abs() < 1e-12));
        let b = [1.0, -2.0, 3.0, 0.5, 0.0, 7.0];
        let x = solve(&lower, &b);
        assert!(times(&square, &x).iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-9));
        assert!(times(&inverse(&lower), &b).iter().zip(x).all(|(a, b)| (a - b).abs() < 1e-9));
    }

    #[test]
    fn an_indefinite_matrix_has_no_factor() {
        let mut matrix = squared(&example());
        matrix[2][2] = -1.0;
        assert_eq!(cholesky(&matrix), None);
    }
}
