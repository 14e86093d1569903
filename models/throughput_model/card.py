"""Test vectors and the model card."""

import math

import numpy as np

from . import data, form, graph, prior

VERSION = "1"
TOLERANCE = 1e-3
CORES = (1, 2, 3, 6, 12, 24)


def job_row(model, described=True):
    """The graph's `job` input."""
    known = described and model.described
    kind = [float(model.kind == k) for k in prior.KINDS]
    sizes = [model.activations_m, model.gmacs] if known else [0.0, 0.0]
    return [*kind, float(known), *sizes, model.params_m or 0.0, float(bool(model.params_m)), float(model.batch)]


def triangle(lower):
    return [float(lower[i, j]) for i, j in form.TRIANGLE]


def numbers(values, digits=6):
    return [round(float(v), digits) + 0.0 for v in np.ravel(values)]


def case(name, model, place, belief=None, described=True, prior_outputs=None):
    """One job at several allocations with every output that the float64 formulas expect."""
    place = np.asarray(place, float)
    mu, lower = belief or prior_outputs
    outputs = form.belief(mu, lower, place, model.batch)
    out = {
        "name": name, "job": job_row(model, described), "gpu": [0.0, 0.0], "place": [numbers(p) for p in place],
        "use_post": float(belief is not None), "prior_mu": numbers(prior_outputs[0]), "prior_l": numbers(triangle(prior_outputs[1])),
    }
    if belief is not None:
        out |= {"post_mu": numbers(mu), "post_l": numbers(triangle(lower))}
    return out | dict(zip(("log_tput", "sd", "log_lo", "log_hi"), map(numbers, outputs)))


def calibrated(name, constants, curve, cores):
    """A case after observations of a published curve, with the observations."""
    one = lambda c: [float(c), 1.0, 1.0, 0.0]
    places = [one(c) for c in cores]
    observed = [1 / float(curve.seconds[list(curve.cores).index(c)]) for c in cores]
    first = prior.of(constants, curve.model)
    belief = form.calibrate(*first, places, observed, curve.model.batch)
    out = case(name, curve.model, [one(c) for c in CORES], belief, prior_outputs=first)
    return out | {"observations": [{"place": p, "samples_per_s": float(f"{s:.9g}")} for p, s in zip(places, observed)]}


def test_vectors(constants):
    models = data.models()
    figure = {c.model.name: c for c in data.cpu_curves() if c.source == "figure"}
    alone = [[float(c), 1.0, 1.0, 0.0] for c in CORES]
    many = [[3, 1, 1, 0], [3, 4, 1, 0], [3, 8, 2, 0], [12, 8, 2, 0], [12, 8, 2, 2e-3]]
    bare = data.Model("undescribed", "other", 0.0, None, None, 32)
    of = lambda m, described=True: prior.of(constants, m, described)
    out = [case(f"{n}, prior", models[n], alone, prior_outputs=of(models[n])) for n in ("resnet18", "deepspeech", "bert_base")]
    out.append(case("resnet50, several GPUs and fetching", models["resnet50"], many, prior_outputs=of(models["resnet50"])))
    out.append(case("image without descriptors", models["resnet18"], alone[:3], described=False, prior_outputs=of(models["resnet18"], False)))
    out.append(case("nothing known", bare, many[:3], prior_outputs=of(bare)))
    for name in ("resnet18", "deepspeech"):
        out.append(calibrated(f"{name}, one observation", constants, figure[name], (12,)))
        out.append(calibrated(f"{name}, two observations", constants, figure[name], (12, 1)))
    return out


# What the host replays before it trusts a model file; the card holds every case.
SELF_TEST = ("resnet18, prior", "deepspeech, prior", "resnet50, several GPUs and fetching", "nothing known", "resnet18, two observations")


def self_test(vectors):
    keep = ("name", "job", "gpu", "place", "use_post", "post_mu", "post_l", "log_tput", "sd", "log_lo", "log_hi")
    cases = [{k: v[k] for k in keep if k in v} for v in vectors if v["name"] in SELF_TEST]
    return {"tolerance": TOLERANCE, "cases": cases}


def run(session, vector):
    """Outputs of `session` (anything with onnxruntime's `run`) for one vector."""
    n = len(vector["place"])
    tile = lambda row: np.tile(np.asarray(row, np.float32), (n, 1))
    feeds = {
        "job": tile(vector["job"]), "gpu": tile(vector["gpu"]), "place": np.asarray(vector["place"], np.float32),
        "post_mu": tile(vector.get("post_mu", [0.0] * 6)), "post_l": tile(vector.get("post_l", [0.0] * 21)),
        "use_post": tile([vector["use_post"]]),
    }
    return dict(zip(graph.OUTPUTS, session.run(None, feeds)))


def worst_difference(session, vectors):
    """Largest difference between the graph and the float64 formulas over all vectors and outputs."""
    worst = 0.0
    for vector in vectors:
        got = run(session, vector)
        for name in graph.OUTPUTS:
            expected = np.asarray(vector[name])
            if name.startswith("prior"):
                expected = np.tile(expected, (len(vector["place"]), 1))
            difference = np.abs(got[name].reshape(expected.shape) - expected).max()
            worst = max(worst, float(difference) if math.isfinite(difference) else math.inf)
    return worst
