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


# Cores per GPU of the machines behind the scaling tables (g4dn.12xlarge: 48 for 4 GPUs).
SCALING_CORES = 12.0
# (GPUs, nodes) of the first, second and third observation of a scaling table.
SCALING_PROBES = ((1, 1), (2, 2), (2, 1))


def scaling_errors(constants, job):
    """(observations, error, covered share) over allocations of several GPUs that were not observed.

    Every (GPUs, one or several nodes) counts once.
    """
    place = np.stack([np.full(len(job.gpus), SCALING_CORES), job.gpus, job.nodes, 0 * job.gpus], 1)
    cells = list(zip(job.gpus.astype(int), job.nodes.astype(int)))
    model = data.Model(job.application, "other", job.params_m or 0.0, None, None, 1)
    speed = job.gpus / job.seconds
    several = [(g, n > 1) for g, n in cells]
    weight = np.array([1 / several.count(s) for s in several])
    for count in range(1, len(SCALING_PROBES) + 1):
        if any(p not in cells for p in SCALING_PROBES[:count]):
            return
        at = [cells.index(p) for p in SCALING_PROBES[:count]]
        hidden = (job.gpus > 1) & ~np.isin(np.arange(len(cells)), at)
        if not hidden.any():
            return
        belief = form.calibrate(*prior.of(constants, model), place[at], speed[at], model.batch)
        mean, _, low, high = form.belief(*belief, place, model.batch)
        miss, inside = np.abs(np.exp(mean) / speed - 1), (low <= np.log(speed)) & (np.log(speed) <= high)
        total = weight[hidden].sum()
        yield count, float((miss * weight)[hidden].sum() / total), float((inside * weight)[hidden].sum() / total)


def scaling_report():
    """Rows as in `report`, for applications left out of training: mean over the tables of each, then over all."""
    jobs, cpu = data.scalings(), prior.learn_cpu(data.cpu_curves())
    by_count = {}
    for name in sorted({j.application for j in jobs}):
        network = prior.learn_network([j for j in jobs if j.application != name])
        found = [e for j in jobs if j.application == name for e in scaling_errors({**cpu, "network": network}, j)]
        for count in sorted({c for c, *_ in found}):
            by_count.setdefault(count, []).append(np.mean([e for c, *e in found if c == count], 0))
    return [row("gpus and nodes", len(cells), count, cells) for count, cells in sorted(by_count.items())]


def row(group, curves, probes, cells):
    error, cover = np.mean(cells, 0)
    return {
        "group": group, "curves": curves, "probes": probes,
        "error_percent": round(100 * float(error), 1), "band_cover_percent": round(100 * float(cover)),
    }


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
            out.append(row(group, len(cells), probes, cells))
    return out + scaling_report()


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
