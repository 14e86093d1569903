"""Learns the prior over theta by kind of job from published curves, and evaluates it for one job."""

import itertools
import math

import numpy as np

from . import form

KINDS = ("image", "audio", "text")
# Scale of kinds whose absolute speed nobody has published: 2 ms per sample, within a factor of 20.
LOG_G_SCALE_FREE, SD_G_SCALE_FREE = math.log(2e-3), 3.0
SD_RHO_OTHER = math.sqrt(2.0)
LOG_GAMMA_TYPICAL = math.log(5.0)


def fit_curve(curve, sigma=0.05):
    """(log G, log K, log gamma) of one whole curve; only weakly regularised: log G free, log K/G ~ N(0, 2²)."""
    start = math.log(curve.seconds.min())
    mean = np.array([start, start, LOG_GAMMA_TYPICAL])
    covariance = np.array([[9, 9, 0], [9, 13, 0], [0, 0, 0.49]], float)
    place = np.stack([curve.cores, *np.ones((2, len(curve.cores))), 0 * curve.cores], 1)
    six = lambda t: np.array([*t, 0, 0, 0.4])  # one GPU: the network terms play no part
    fit, _ = form.map_fit(
        mean, np.linalg.inv(covariance), -np.log(curve.seconds), np.full(len(place), sigma**-2.0),
        lambda t: form.log_throughput(six(t), place, 1.0), lambda t: form.jacobian(six(t), place, 1.0)[:, :3],
        steps=30, tolerance=1e-10,
    )
    return fit


def shrunk(values, toward, variance, count=1.0, spread=2.0):
    """Mean and predictive variance of a small sample, pulled toward a guess worth `count` and `spread` samples."""
    x = np.asarray(values, float)
    mean = (x.sum() + count * toward) / (len(x) + count)
    var = (((x - mean) ** 2).sum() + spread * variance) / (len(x) + spread)
    return float(mean), float(var * (1 + 1 / (len(x) + count)))


def features(model):
    return np.array([1.0, model.activations_m, model.gmacs, model.params_m])


def non_negative_fit(models, g):
    """G = w·features with w >= 0, least squares of the relative error (exact: tries every set of columns)."""
    x = np.array([features(m) for m in models]) / np.asarray(g)[:, None]
    best = (math.inf, None)
    for size in range(1, x.shape[1] + 1):
        for columns in map(list, itertools.combinations(range(x.shape[1]), size)):
            part, *_ = np.linalg.lstsq(x[:, columns], np.ones(len(x)), rcond=None)
            residual = ((x[:, columns] @ part - 1) ** 2).sum()
            if (part >= 0).all() and residual < best[0]:
                w = np.zeros(x.shape[1])
                w[columns] = part
                best = (residual, w)
    return best[1]


class Fits:
    """Whole-curve fits by model, averaged over its sources."""

    def __init__(self, curves):
        self.fits = {}
        for curve in curves:
            self.fits.setdefault(curve.model.name, []).append((fit_curve(curve), curve))
        self.models = {c.model.name: c.model for c in curves}

    def of_kind(self, kind):
        return [name for name, m in self.models.items() if m.kind == kind]

    def mean(self, name, pick, only=lambda curve: True):
        return float(np.mean([pick(t) for t, c in self.fits[name] if only(c)]))

    def sensitive(self):
        return [name for name, fits in self.fits.items() if any(c.sensitive for _, c in fits)]


def learn_cpu(curves):
    """Constants of the CPU part of the prior."""
    fits = Fits(curves)
    rho = lambda names: [fits.mean(n, lambda t: t[1] - t[0]) for n in names]
    gamma = [fits.mean(n, lambda t: t[2], lambda c: c.sensitive) for n in fits.sensitive()]
    log_gamma, var_gamma = shrunk(gamma, LOG_GAMMA_TYPICAL, 0.5)
    rho_typical = float(np.mean(rho(fits.sensitive())))
    rho_of = {k: shrunk(rho(fits.of_kind(k)), rho_typical, 1.0) for k in ("image", "audio")}
    rho_of["text"] = shrunk(rho(fits.of_kind("text")), math.log(0.1), 0.5)
    return {
        **learn_image(fits),
        "rho": {"audio": rho_of["audio"][0], "text": rho_of["text"][0], "other": (rho_of["image"][0] + rho_of["audio"][0]) / 2},
        "sd_rho": {"audio": math.sqrt(rho_of["audio"][1]), "text": math.sqrt(rho_of["text"][1]), "other": SD_RHO_OTHER},
        "log_gamma": log_gamma,
        "sd_gamma": math.sqrt(var_gamma),
    }


def learn_image(fits):
    """Image jobs have an absolute scale: G from descriptors where known, K from the JPEG pipeline they share."""
    names = fits.of_kind("image")
    log_k = [fits.mean(n, lambda t: t[1]) for n in names]
    log_g = [fits.mean(n, lambda t: t[0]) for n in names]
    between_sources = float(np.mean([np.var([t[1] for t, _ in fits.fits[n]]) for n in names]))
    k_mean, k_var = shrunk(log_k, float(np.mean(log_k)), 0.02, count=0.0)
    g_mean, g_var = shrunk(log_g, float(np.mean(log_g)), 0.3, count=0.0)
    models = [fits.models[n] for n in names]
    left_out = []
    for i in range(len(names)):
        rest = [j for j in range(len(names)) if j != i]
        w = non_negative_fit([models[j] for j in rest], np.exp([log_g[j] for j in rest]))
        left_out.append(math.log(features(models[i]) @ w) - log_g[i])
    described_var = (np.sum(np.square(left_out)) + 2 * 0.04) / (len(left_out) + 2) + between_sources
    return {
        "g_weights": [float(v) for v in non_negative_fit(models, np.exp(log_g))],
        "sd_g_described": math.sqrt(described_var),
        "log_g_image": g_mean,
        "sd_g_image": math.sqrt(g_var),
        "log_k_image": k_mean,
        "sd_k_image": math.sqrt(k_var + between_sources),
    }


def fit_network(job):
    """(log T, log a_r, log a_n, log gamma_net) of one scaling table: computing time known from its one-GPU row."""
    one = float(np.log(job.seconds[job.gpus == 1]).mean())
    mean = np.array([one, one - 1, one, math.log(2)])
    place = np.stack([np.ones(len(job.gpus)), job.gpus, job.nodes, 0 * job.gpus], 1)
    six = lambda t: np.array([t[0], -25, math.log(5), t[1], t[2], t[3]])  # no CPU axis in these tables
    columns = [0, 3, 4, 5]
    fit, _ = form.map_fit(
        mean, np.linalg.inv(np.diag([0.01, 4, 4, 0.25])), np.log(job.gpus) - np.log(job.seconds),
        np.full(len(place), 0.08**-2.0), lambda t: form.log_throughput(six(t), place, 1.0),
        lambda t: form.jacobian(six(t), place, 1.0)[:, columns], steps=30, tolerance=1e-10,
    )
    return fit


def learn_network(jobs):
    """Constants of the network part: per million parameters where the size is known, else over all applications."""
    by_application = {}
    for job in jobs:
        by_application.setdefault(job.application, []).append(fit_network(job))
    fits = {a: np.median(np.array(v), 0) for a, v in by_application.items()}
    size = {job.application: job.params_m for job in jobs}
    known = [a for a in fits if size[a]]

    def moments(x, guess):
        x = np.array(x)
        return float(x.mean()), math.sqrt((((x - x.mean()) ** 2).sum() + 2 * guess**2) / (len(x) + 1))

    out = {}
    for name, column, guess in (("ar", 1, 0.5), ("an", 2, 0.2)):
        relative = [fits[a][column] - math.log(size[a]) for a in known]
        out[f"log_{name}_per_mparam"], out[f"sd_{name}"] = moments(relative, guess)
        out[f"log_{name}_unknown"], out[f"sd_{name}_unknown"] = moments([v[column] for v in fits.values()], 1.0)
    out["log_gamma_net"], out["sd_gamma_net"] = moments([v[3] for v in fits.values()], 0.4)
    return out


def rounded(value):
    """Seven significant digits, so that another BLAS trains the same model."""
    if isinstance(value, dict):
        return {k: rounded(v) for k, v in value.items()}
    if isinstance(value, list):
        return [rounded(v) for v in value]
    return float(f"{value:.6e}")


def learn(curves, network):
    """All constants of the prior; `network` comes from `learn_network`."""
    return rounded({**learn_cpu(curves), "network": network})


def of(constants, model, described=True):
    """Prior of one job: mean [6] and lower Cholesky factor [6, 6]. The reference for what the graph computes."""
    mu, lower = np.zeros(6), np.zeros((6, 6))
    if model.kind == "image":
        known = described and model.described
        mu[0] = math.log(features(model) @ constants["g_weights"]) if known else constants["log_g_image"]
        lower[0, 0] = constants["sd_g_described" if known else "sd_g_image"]
        mu[1], lower[1, 1] = constants["log_k_image"], constants["sd_k_image"]
    else:
        kind = model.kind if model.kind in constants["rho"] else "other"
        mu[0], mu[1] = LOG_G_SCALE_FREE, LOG_G_SCALE_FREE + constants["rho"][kind]
        lower[0, 0] = lower[1, 0] = SD_G_SCALE_FREE
        lower[1, 1] = constants["sd_rho"][kind]
    mu[2], lower[2, 2] = constants["log_gamma"], constants["sd_gamma"]
    net = constants["network"]
    for i, name in ((3, "ar"), (4, "an")):
        if model.params_m:
            mu[i], lower[i, i] = math.log(model.params_m) + net[f"log_{name}_per_mparam"], net[f"sd_{name}"]
        else:
            mu[i], lower[i, i] = net[f"log_{name}_unknown"], net[f"sd_{name}_unknown"]
    mu[5], lower[5, 5] = net["log_gamma_net"], net["sd_gamma_net"]
    return mu, lower
