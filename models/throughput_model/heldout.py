"""Held-out error: leave one model out (all its curves of all sources), predict its curves with the shipped form."""

import math

import numpy as np

from . import data, form, prior

# Cores per GPU at which the first, second and third observation are made.
PROBES = (12, 1, 3)
# Without observations only the shape is judged, relative to this.
SHAPE_CORES = 3
BAND_80 = 1.2816
GROUPS = (
    ("image", lambda c: c.model.kind == "image"),
    ("sensitive", lambda c: c.sensitive),
    ("text", lambda c: c.model.kind == "text"),
    ("audio", lambda c: c.model.kind == "audio"),
    ("all", lambda c: True),
)


def places(cores):
    one = np.ones(len(cores))
    return np.stack([cores, one, one, 0 * one], 1)


def belief_after(constants, curve, probes):
    """Belief of an unseen curve after the first `probes` observations, as the host would calibrate."""
    mu, lower = prior.of(constants, curve.model)
    if not probes:
        return mu, lower
    at = [list(curve.cores).index(c) for c in PROBES[:probes]]
    return form.calibrate(mu, lower, places(curve.cores)[at], 1 / curve.seconds[at], curve.model.batch)


def errors(constants, curve):
    """(probes, error over the whole curve, covered share of the 80 % band) for 0, 1, 2 and 3 observations."""
    truth = -np.log(curve.seconds)
    anchor = list(curve.cores).index(SHAPE_CORES)
    for probes in range(len(PROBES) + 1):
        mu, lower = belief_after(constants, curve, probes)
        curves = form.log_throughput(mu + form.POINTS @ lower.T, places(curve.cores), curve.model.batch)
        goal, hidden = truth, ~np.isin(curve.cores, PROBES[:probes])
        if probes == 0:
            curves, goal = curves - curves[:, [anchor]], truth - truth[anchor]
            hidden = curve.cores != SHAPE_CORES
        mean = curves.mean(0)
        low, high = curves.min(0) - form.SIGMA_NODE, curves.max(0) + form.SIGMA_NODE
        covered = ((low <= goal) & (goal <= high))[hidden].mean()
        yield probes, float(np.abs(np.exp(mean - goal) - 1).mean()), float(covered)


def report():
    """Rows {group, curves, probes, error_percent, band_cover_percent}: mean over the curves of each group."""
    curves, network = data.cpu_curves(), prior.learn_network(data.scalings())
    found = []
    for name in sorted({c.model.name for c in curves}):
        constants = prior.learn([c for c in curves if c.model.name != name], network)
        for curve in (c for c in curves if c.model.name == name):
            found += [(curve, *e) for e in errors(constants, curve)]
    out = []
    for group, member in GROUPS:
        for probes in range(len(PROBES) + 1):
            cells = [(e, cover) for curve, p, e, cover in found if p == probes and member(curve)]
            error, cover = np.mean(cells, 0)
            out.append({
                "group": group, "curves": len(cells), "probes": probes,
                "error_percent": round(100 * float(error), 1), "band_cover_percent": round(100 * float(cover)),
            })
    return out


# Memory bandwidth, GB/s, of the kinds in Gavel's table; the host's table has the same for these.
BANDWIDTH = {"K80": 240.0, "P100": 732.0, "V100": 900.0}


def gpu_kind_error():
    """Error (%) of carrying a speed to another GPU kind by memory bandwidth: mean over models and ordered pairs of kinds."""
    speed = {}
    for r in data.rows("gavel_single_gpu.csv"):
        speed.setdefault((r["model"], r["batch_per_gpu"]), {})[r["gpu_kind"]] = float(r["steps_per_s"])
    by_pair = {}
    for (model, _), s in speed.items():
        if len(s) < len(BANDWIDTH):
            continue
        for a in s:
            for b in s:
                if a != b:
                    miss = abs(BANDWIDTH[b] / BANDWIDTH[a] * s[a] / s[b] - 1)
                    by_pair.setdefault((a, b), {}).setdefault(model, []).append(miss)
    means = [np.mean([np.mean(v) for v in models.values()]) for models in by_pair.values()]
    return round(100 * float(np.mean(means)), 1)


def knee(constants, model, slowness=0.0):
    """Cores per GPU where the prior expects the input pipeline and the GPU to be equally slow."""
    mu, _ = prior.of(constants, model)
    return math.exp(mu[1] - mu[0] - slowness)
