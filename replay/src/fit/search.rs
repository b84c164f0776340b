//! A minimum of a function of a few positive parameters: the simplex of Nelder and Mead ("A simplex method for function
//! minimization", 1965) on their logarithms. Deterministic.

/// Looks for parameters near `start` with a small value; `steps` bounds the evaluations.
pub(super) fn minimise<const N: usize>(start: [f64; N], steps: usize, f: impl Fn(&[f64; N]) -> f64) -> ([f64; N], f64) {
    let value = |logs: &[f64; N]| f(&logs.map(f64::exp));
    // Zero has no logarithm; a billionth of the parameters' units is as good.
    let start = start.map(|x| x.max(1e-9).ln());
    let mut simplex: Vec<([f64; N], f64)> = vec![(start, value(&start))];
    for k in 0..N {
        let mut p = start;
        p[k] += 0.5;
        simplex.push((p, value(&p)));
    }
    let mut used = N + 1;
    while used < steps {
        simplex.sort_by(|a, b| a.1.total_cmp(&b.1));
        let (best, worst) = (simplex[0], simplex[N]);
        if worst.1 - best.1 <= 1e-7 * best.1.abs() {
            break;
        }
        let mut centre = [0.0; N];
        for (p, _) in &simplex[..N] {
            centre.iter_mut().zip(p).for_each(|(c, x)| *c += x / N as f64);
        }
        let along = |by: f64| {
            let mut p = centre;
            p.iter_mut().zip(&worst.0).for_each(|(c, w)| *c += by * (*c - w));
            let v = value(&p);
            (p, v)
        };
        let mirrored = along(1.0);
        used += 1;
        if mirrored.1 < best.1 {
            let further = along(2.0);
            used += 1;
            simplex[N] = if further.1 < mirrored.1 { further } else { mirrored };
        } else if mirrored.1 < simplex[N - 1].1 {
            simplex[N] = mirrored;
        } else {
            let inside = if mirrored.1 < worst.1 { along(0.5) } else { along(-0.5) };
            used += 1;
            if inside.1 < worst.1.min(mirrored.1) {
                simplex[N] = inside;
            } else {
                for (p, v) in &mut simplex[1..] {
                    p.iter_mut().zip(&best.0).for_each(|(x, b)| *x = (*x + b) / 2.0);
                    *v = value(p);
                }
                used += N;
            }
        }
    }
    simplex.sort_by(|a, b| a.1.total_cmp(&b.1));
    (simplex[0].0.map(f64::exp), simplex[0].1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_valley_is_found() {
        let (p, v) = minimise([1.0, 1.0], 600, |&[a, b]| (a - 3.0).powi(2) + 10.0 * (b - 40.0).powi(2));
        assert!(v < 1e-3, "{p:?} {v}");
    }
}
