"""Writes the prior and the form as one ONNX graph (opset 17, IR 8), elementwise operators only.

Inputs, float32 [N, width]: what a job is (`job`), its GPU kind (`gpu`), its allocation (`place`), and a belief from
calibration (`post_mu`, `post_l`: lower triangle, row-major) that replaces the prior where `use_post` is 1.
Every input passes NaN -> default and bounds, so that outputs are finite whatever comes in. Each of the 16 curves of a
belief never falls as cores grow; so do their mean, lowest and highest.
"""

import numpy as np
from onnx import TensorProto, checker, helper, numpy_helper

from . import form
from .prior import LOG_G_SCALE_FREE, SD_G_SCALE_FREE

JOB = ("kind_image", "kind_audio", "kind_text", "described", "activations_m", "gmacs", "params_m", "params_known", "batch_per_gpu")
GPU = ("log_slowness", "sd_log_slowness")
PLACE = ("cores_per_gpu", "gpus", "nodes", "fetch_s_per_sample")
INPUTS = {"job": 9, "gpu": 2, "place": 4, "post_mu": 6, "post_l": 21, "use_post": 1}
OUTPUTS = {"log_tput": 1, "sd": 1, "log_lo": 1, "log_hi": 1, "prior_mu": 6, "prior_l": 21}
FEATURES = ";".join(
    f"{name}={','.join(columns)}" for name, columns in (("job", JOB), ("gpu", GPU), ("place", PLACE), ("theta", form.PARAMETERS))
)


class Builder:
    """Collects nodes and constants; every method returns the name of a tensor."""

    def __init__(self):
        self.nodes, self.constants = [], []

    def const(self, value, dtype=np.float32):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def tensor(self, x):
        return x if isinstance(x, str) else self.const(x)

    def op(self, kind, *inputs, out=None, **attributes):
        out = out or f"{kind.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, [self.tensor(x) for x in inputs], [out], **attributes))
        return out

    def add(self, a, b):
        return self.op("Add", a, b)

    def sub(self, a, b):
        return self.op("Sub", a, b)

    def mul(self, a, b):
        return self.op("Mul", a, b)

    def log(self, x, at_least):
        return self.op("Log", self.op("Max", x, [at_least]))

    def clip(self, x, low, high):
        return self.op("Min", self.op("Max", x, low), high)

    def clean(self, x, default, low, high):
        return self.clip(self.op("Where", self.op("IsNaN", x), default, x), low, high)

    def columns(self, x, start, end=None):
        index = lambda v: self.const([v], np.int64)
        return self.op("Slice", x, index(start), index(start + 1 if end is None else end), index(1))

    def mix(self, share, a, b):
        """share·a + (1 - share)·b"""
        return self.add(self.mul(share, a), self.mul(self.sub([1.0], share), b))

    def soft_max(self, a, b, sharpness):
        gap = self.op("Exp", self.op("Neg", self.mul(sharpness, self.op("Abs", self.sub(a, b)))))
        return self.add(self.op("Max", a, b), self.op("Div", self.op("Log", self.add([1.0], gap)), sharpness))


def kind_tables(c):
    """Rows: described image, other image, audio, text, other. Columns: mean [6] and triangle [21] of the prior."""
    mu, lower = np.zeros((5, 6)), np.zeros((5, 21))
    at = {cell: k for k, cell in enumerate(form.TRIANGLE)}
    mu[:, 2], lower[:, at[2, 2]] = c["log_gamma"], c["sd_gamma"]
    mu[1, 0] = c["log_g_image"]
    mu[:2, 1], lower[:2, at[1, 1]] = c["log_k_image"], c["sd_k_image"]
    lower[0, at[0, 0]], lower[1, at[0, 0]] = c["sd_g_described"], c["sd_g_image"]
    for row, kind in ((2, "audio"), (3, "text"), (4, "other")):
        mu[row, 0], mu[row, 1] = LOG_G_SCALE_FREE, LOG_G_SCALE_FREE + c["rho"][kind]
        lower[row, at[0, 0]] = lower[row, at[1, 0]] = SD_G_SCALE_FREE
        lower[row, at[1, 1]] = c["sd_rho"][kind]
    return mu, lower


def add_prior(b, c, job, gpu):
    """prior_mu [N, 6] and prior_l [N, 21]."""
    described, activations, gmacs, params, sized = (b.columns(job, i) for i in range(3, 8))
    image, audio, text = (b.columns(job, i) for i in range(3))
    other = b.clip(b.sub([1.0], b.add(image, b.add(audio, text))), [0.0], [1.0])
    known = b.mul(image, described)
    state = b.op("Concat", known, b.sub(image, known), audio, text, other, axis=1)
    table_mu, table_l = kind_tables(c)
    mu, lower = b.op("MatMul", state, table_mu), b.op("MatMul", state, table_l)
    w = c["g_weights"]
    g = b.add(b.mul(activations, [w[1]]), b.add(b.mul(gmacs, [w[2]]), b.add(b.mul(params, [w[3]]), [w[0]])))
    slowness, slowness_sd = b.columns(gpu, 0), b.columns(gpu, 1)
    # Kinds without an absolute scale keep it wide enough for any GPU.
    log_g = b.add(b.columns(mu, 0), b.add(b.mul(known, b.log(g, 1e-9)), b.mul(image, slowness)))
    sd_g = b.columns(lower, 0)
    sd_g = b.op("Sqrt", b.add(b.mul(sd_g, sd_g), b.mul(image, b.mul(slowness_sd, slowness_sd))))
    log_params, net, zero = b.log(params, 1e-3), c["network"], b.mul(image, [0.0])
    net_mu = [b.mix(sized, b.add(log_params, [net[f"log_{n}_per_mparam"]]), [net[f"log_{n}_unknown"]]) for n in ("ar", "an")]
    net_sd = [b.mix(sized, [net[f"sd_{n}"]], [net[f"sd_{n}_unknown"]]) for n in ("ar", "an")]
    zeros = lambda n: b.mul(zero, np.zeros((1, n)))
    prior_mu = b.op(
        "Concat", log_g, b.columns(mu, 1, 3), *net_mu, b.add(zero, [net["log_gamma_net"]]), axis=1, out="prior_mu"
    )
    prior_l = b.op(
        "Concat", sd_g, b.columns(lower, 1, 6), zeros(3), net_sd[0], zeros(4), net_sd[1], zeros(5),
        b.add(zero, [net["sd_gamma_net"]]), axis=1, out="prior_l",
    )
    return prior_mu, prior_l


def add_points(b, mu, lower):
    """The 16 points of the belief, one [N, 16] tensor per parameter, within their bounds."""
    theta, start = [], 0
    for i, (low, high) in enumerate(form.BOUNDS):
        spread = b.op("MatMul", b.columns(lower, start, start + i + 1), form.POINTS[:, : i + 1].T)
        theta.append(b.clip(b.add(b.columns(mu, i), spread), [low], [high]))
        start += i + 1
    return theta


def add_form(b, theta, place, batch):
    """log samples/s of the whole job at each point: [N, 16]."""
    cores, gpus, nodes, fetch = (b.columns(place, i) for i in range(4))
    gamma, gamma_net = b.op("Exp", theta[2]), b.op("Exp", theta[5])
    sample = b.soft_max(theta[0], b.sub(theta[1], b.op("Log", cores)), gamma)
    sample = b.soft_max(sample, b.log(fetch, form.FETCH_MIN_S), gamma)
    log_batch = b.log(batch, 1.0)
    more = b.op("Max", b.sub(gpus, [2.0]), [0.0])
    grown = lambda x, growth: b.add(x, b.op("Log", b.add([1.0], b.mul(more, [growth]))))
    across = b.clip(b.sub(nodes, [1.0]), [0.0], [1.0])
    alone = b.clip(b.sub([2.0], gpus), [0.0], [1.0])
    network = b.mix(across, grown(theta[4], form.GROWTH_NODES), grown(theta[3], form.GROWTH_NODE))
    network = b.sub(network, b.mul(alone, [form.ALONE]))
    step = b.soft_max(b.add(sample, log_batch), network, gamma_net)
    sigma = b.mix(across, [form.SIGMA_NODES], [form.SIGMA_NODE])
    return b.sub(b.add(b.op("Log", gpus), log_batch), step), sigma


def add_outputs(b, curves, sigma):
    mean = b.op("ReduceMean", curves, axes=[1], keepdims=1, out="log_tput")
    off = b.sub(curves, mean)
    variance = b.op("ReduceMean", b.mul(off, off), axes=[1], keepdims=1)
    b.op("Sqrt", b.add(variance, b.mul(sigma, sigma)), out="sd")
    b.op("Sub", b.op("ReduceMin", curves, axes=[1], keepdims=1), sigma, out="log_lo")
    b.op("Add", b.op("ReduceMax", curves, axes=[1], keepdims=1), sigma, out="log_hi")


def build(constants, metadata):
    """The checked model."""
    b = Builder()
    job = b.clean("job", np.zeros(9), np.zeros(9), [1, 1, 1, 1, 1e5, 1e6, 1e7, 1, 1e7])
    gpu = b.clean("gpu", np.zeros(2), [-8, 0], [8, 2])
    place = b.clean("place", [1, 1, 1, 0], [1e-2, 1, 1, 0], [1e4, 1e5, 1e5, 1e4])
    post_mu = b.clean("post_mu", np.zeros(6), [-40.0], [40.0])
    post_l = b.clean("post_l", np.zeros(21), [-10.0], [10.0])
    use_post = b.clean("use_post", [0.0], [0.0], [1.0])
    prior_mu, prior_l = add_prior(b, constants, job, gpu)
    theta = add_points(b, b.mix(use_post, post_mu, prior_mu), b.mix(use_post, post_l, prior_l))
    add_outputs(b, *add_form(b, theta, place, b.columns(job, 8)))
    tensors = lambda names: [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["N", w]) for n, w in names.items()]
    graph = helper.make_graph(b.nodes, "throughput", tensors(INPUTS), tensors(OUTPUTS), b.constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8, producer_name="coretuner")
    helper.set_model_props(model, {"features": FEATURES, **metadata})
    checker.check_model(model, full_check=True)
    return model
