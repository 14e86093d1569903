"""The closed form of a training step, its derivative, its points of belief and its update by observations.

theta = (log G, log K, log gamma, log a_r, log a_n, log gamma_net), natural logarithms:
  G      seconds of GPU work per sample
  K      core-seconds of input pipeline per sample
  gamma  how sharply the slower of the two wins
  a_r    seconds per step that two GPUs of one node need to agree on gradients
  a_n    the same for GPUs on several nodes
  gamma_net  how sharply the slower of computing and communicating wins
An allocation ("place") is (cores per GPU, GPUs, nodes, fetch seconds per sample).
"""

import math

import numpy as np

PARAMETERS = ("log_g", "log_k", "log_gamma", "log_ar", "log_an", "log_gamma_net")
BOUNDS = np.array([(-25, 15), (-25, 15), (0, math.log(20)), (-25, 10), (-25, 10), (0, math.log(10))], float)
# Growth of the network term per GPU beyond the second: within a node, across nodes.
GROWTH_NODE, GROWTH_NODES = 0.14, 0.023
# Standard deviation of a measurement against the form (log): on one node, across nodes.
SIGMA_NODE, SIGMA_NODES = 0.03, 0.12
# What the host needs to calibrate with the same form.
CONSTANTS = {"growth_node": GROWTH_NODE, "growth_nodes": GROWTH_NODES, "sigma_node": SIGMA_NODE, "sigma_nodes": SIGMA_NODES}
# One GPU does not communicate: its network term is e^-80 of what it would be.
ALONE = 80.0
FETCH_MIN_S = 1e-12
TRIANGLE = [(i, j) for i in range(6) for j in range(i + 1)]


def hadamard(size):
    return np.array([[1]]) if size == 1 else np.block([[h := hadamard(size // 2), h], [h, -h]])


# 16 points with mean 0 and covariance I; a belief is the 16 curves of mu + L·point.
POINTS = np.concatenate([hadamard(8)[:, 1:7], -hadamard(8)[:, 1:7]]).astype(float)


def soft_max(a, b, sharpness):
    """log(e^(s·a) + e^(s·b))/s without overflow."""
    return np.maximum(a, b) + np.log1p(np.exp(-sharpness * np.abs(a - b))) / sharpness


def log_throughput(theta, place, batch):
    """log samples/s of the whole job; theta [..., 6], place [n, 4] -> [..., n]."""
    t = np.clip(np.asarray(theta, float), BOUNDS[:, 0], BOUNDS[:, 1])[..., None, :]
    cores, gpus, nodes, fetch = np.asarray(place, float).T
    gamma, gamma_net = np.exp(t[..., 2]), np.exp(t[..., 5])
    sample = soft_max(t[..., 0], t[..., 1] - np.log(cores), gamma)
    sample = soft_max(sample, np.log(np.maximum(fetch, FETCH_MIN_S)), gamma)
    step = soft_max(sample + math.log(batch), log_network(t, gpus, nodes), gamma_net)
    return np.log(gpus) + math.log(batch) - step


def log_network(t, gpus, nodes):
    more = np.maximum(gpus - 2, 0)
    across = t[..., 4] + np.log1p(GROWTH_NODES * more)
    within = t[..., 3] + np.log1p(GROWTH_NODE * more)
    return np.where(nodes > 1, across, within) - np.where(gpus > 1, 0.0, ALONE)


def jacobian(theta, place, batch):
    """d log_throughput / d theta at one theta: [n, 6]; 0 for a parameter at or beyond its bounds."""
    theta = np.asarray(theta, float)
    inside = (theta > BOUNDS[:, 0]) & (theta < BOUNDS[:, 1])
    t = np.clip(theta, BOUNDS[:, 0], BOUNDS[:, 1])
    cores, gpus, nodes, fetch = np.asarray(place, float).T
    gamma, gamma_net = math.exp(t[2]), math.exp(t[5])
    every = np.ones(len(cores))
    w, top, h = soft_weights(np.stack([t[0] * every, t[1] - np.log(cores), np.log(np.maximum(fetch, FETCH_MIN_S))]), gamma)
    u, _, h_net = soft_weights(np.stack([top + math.log(batch), log_network(t, gpus, nodes)]), gamma_net)
    across = nodes > 1
    columns = [-u[0] * w[0], -u[0] * w[1], u[0] * h / gamma, -u[1] * ~across, -u[1] * across, h_net / gamma_net]
    return np.stack(columns, 1) * inside


def soft_weights(terms, sharpness):
    """Shares of each term (first axis) in the soft maximum, the soft maximum itself, and the entropy of the shares."""
    top = terms.max(0)
    e = np.exp(sharpness * (terms - top))
    w = e / e.sum(0)
    return w, top + np.log(e.sum(0)) / sharpness, -(w * np.log(np.maximum(w, 1e-30))).sum(0)


def sigma(place):
    return np.where(np.asarray(place, float)[:, 2] > 1, SIGMA_NODES, SIGMA_NODE)


def belief(mu, lower, place, batch):
    """Outputs of the graph for one job: mean, sd, lowest and highest log throughput, each [n]."""
    curves = log_throughput(np.asarray(mu) + POINTS @ np.asarray(lower).T, place, batch)
    s = sigma(place)
    return curves.mean(0), np.sqrt(curves.var(0) + s**2), curves.min(0) - s, curves.max(0) + s


def map_fit(mean, precision, y, weights, value, slope, steps=12, tolerance=1e-6):
    """Levenberg-damped Gauss-Newton for a Gaussian prior and Gaussian noise; returns the mode and its covariance."""

    def cost(t):
        return 0.5 * (t - mean) @ precision @ (t - mean) + 0.5 * (weights * (y - value(t)) ** 2).sum()

    t, damping, best = mean.copy(), 1e-3, cost(mean)
    for _ in range(steps):
        j = slope(t)
        a = precision + j.T @ (weights[:, None] * j)
        b = -precision @ (t - mean) + j.T @ (weights * (y - value(t)))
        step, new = None, math.inf
        while damping <= 1e8:
            step = np.linalg.solve(a + damping * np.diag(np.diag(a)), b)
            new = cost(t + step)
            if new <= best:
                break
            damping *= 4
        if new > best:
            break
        t, damping, fall, best = t + step, max(damping / 3, 1e-6), best - new, new
        if fall < tolerance:
            break
    j = slope(t)
    return t, np.linalg.inv(precision + j.T @ (weights[:, None] * j))


# A prior whose log G is wider than this knows no absolute scale: the first observation sets it.
SCALE_FREE_SD = 2.0


# Student-t noise with four degrees of freedom: a straggler's weight shrinks with its residual.
FREEDOM, REWEIGHTS = 4.0, 8


def calibrate(mu, lower, places, observed, batch):
    """Belief after observations (samples/s at each place), in any order: mean and lower Cholesky factor."""
    samples = sorted((tuple(map(float, p)), math.log(s)) for p, s in zip(places, observed))
    places, y = np.array([p for p, _ in samples]), np.array([s for _, s in samples])
    mu, lower = np.array(mu, float), np.array(lower, float)
    if lower[0, 0] > SCALE_FREE_SD:
        mu[:2] += log_throughput(mu, places[:1], batch)[0] - y[0]
    precision = np.linalg.inv(lower @ lower.T)
    variance = sigma(places) ** 2.0
    weights = 1 / variance
    for _ in range(REWEIGHTS):
        theta, covariance = map_fit(
            mu, precision, y, weights, lambda t: log_throughput(t, places, batch), lambda t: jacobian(t, places, batch)
        )
        residual = y - log_throughput(theta, places, batch)
        weights = (FREEDOM + 1) / (FREEDOM + residual**2 / variance) / variance
    return theta, np.linalg.cholesky(covariance)
