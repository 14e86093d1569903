"""Reads the tables in models/data (see its README for sources and licences)."""

import csv
import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

DATA = Path(__file__).resolve().parent.parent / "data"
# Samples in one epoch of the image models of the figure (ImageNet); makes their epoch times absolute.
IMAGENET_SAMPLES = 1_281_167
# A curve is CPU-sensitive when its slowest point is this much slower than its fastest.
SENSITIVE_RATIO = 1.1
# Applications of the scaling tables that train a model of the other tables.
TRAINS = {"imagenet": "resnet50", "cifar10": "resnet18", "deepspeech2": "deepspeech", "bert": "bert_base"}


@dataclass(frozen=True)
class Model:
    """A training job's descriptor; `None` = not known."""

    name: str
    kind: str
    params_m: float
    gmacs: float | None
    activations_m: float | None
    batch: int

    @property
    def described(self):
        return self.activations_m is not None and self.gmacs is not None


@dataclass(frozen=True)
class Curve:
    """Seconds per sample of one GPU against cores. The unit of `seconds` is arbitrary unless `absolute`."""

    source: str
    model: Model
    cores: np.ndarray
    seconds: np.ndarray

    @property
    def absolute(self):
        return self.model.kind == "image"

    @property
    def sensitive(self):
        return bool(self.seconds.max() / self.seconds.min() > SENSITIVE_RATIO)


@dataclass(frozen=True)
class Scaling:
    """Step times of one (application, batch) over numbers of GPUs and nodes."""

    application: str
    params_m: float | None
    gpus: np.ndarray
    nodes: np.ndarray
    seconds: np.ndarray


def rows(name):
    with open(DATA / name, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def number(text):
    return float(text) if text else None


def models():
    out = {}
    for r in rows("models.csv"):
        out[r["model"]] = Model(
            r["model"], r["input"], float(r["params_m"]), number(r["gmacs"]), number(r["activations_m"]),
            int(r["batch_per_gpu"] or 1),
        )
    return out


def grouped(table, key, x, y):
    """key -> sorted [(x, y)]"""
    out = {}
    for r in table:
        out.setdefault(r[key], []).append((float(r[x]), float(r[y])))
    return {k: sorted(v) for k, v in out.items()}


def table_models():
    """Names of the models in Synergy's tables, in the order of the file."""
    return list(grouped(rows("synergy_table.csv"), "model", "cores_per_gpu", "relative_throughput"))


def cpu_curves(without=None):
    """CPU curves but those of one model: Synergy's figure first, then Synergy's tables, each in the order of its file."""
    known = models()
    out = []
    for name, points in grouped(rows("synergy_figure2.csv"), "model", "cores_per_gpu", "epoch_s").items():
        cores, epoch = (np.array(v) for v in zip(*points))
        samples = IMAGENET_SAMPLES if known[name].kind == "image" else 1.0
        out.append(Curve("figure", known[name], cores, epoch / samples))
    step = {r["model"]: float(r["iteration_s_at_3_cores"]) / int(r["batch_per_gpu"]) for r in rows("synergy_iterations.csv")}
    for name, points in grouped(rows("synergy_table.csv"), "model", "cores_per_gpu", "relative_throughput").items():
        cores, relative = (np.array(v) for v in zip(*points))
        out.append(Curve("table", known[name], cores, step[name] / relative))
    return [curve for curve in out if curve.model.name != without]


def scalings(without=None):
    """Scaling tables but those of applications that train one model."""
    params = {r["application"]: number(r["params_m"]) for r in rows("pollux_applications.csv")}
    jobs = {}
    for r in rows("pollux_scaling.csv"):
        if without and TRAINS.get(r["application"]) == without:
            continue
        cell = (float(r["gpus"]), float(r["nodes"]), float(r["step_s"]))
        jobs.setdefault((r["application"], int(r["batch_per_gpu"])), []).append(cell)
    out = []
    for (application, _), cells in sorted(jobs.items()):
        gpus, nodes, seconds = (np.array(v) for v in zip(*sorted(cells)))
        out.append(Scaling(application, params[application], gpus, nodes, seconds))
    return out


def digest():
    """SHA-256 over every table, in the order of their names."""
    total = hashlib.sha256()
    for path in sorted(DATA.glob("*.csv")):
        total.update(path.name.encode() + b"\0" + path.read_bytes())
    return total.hexdigest()
