#!/usr/bin/env python3
"""Trains the throughput model on the published tables in data/ and writes throughput.onnx and throughput.json.

Also writes heldout/MODEL.onnx for each model of Synergy's tables: the same, trained without any row of that model.

`--check` trains again and compares with the committed files instead of writing them: exit 0 when they agree, 1 when
they have drifted, 3 when the packages of requirements.txt are missing. Takes a few seconds; the same input gives the
same bytes.
"""

import argparse
import hashlib
import json
import sys
from pathlib import Path

try:
    import numpy as np
    import onnx
    from onnx.reference import ReferenceEvaluator
except ImportError as missing:
    print(f"{missing}: pip install -r models/requirements.txt", file=sys.stderr)
    sys.exit(3)

from throughput_model import card, data, form, graph, heldout, prior

HERE = Path(__file__).resolve().parent
MODEL, CARD = HERE / "throughput.onnx", HERE / "throughput.json"
HELD_OUT = HERE / "heldout"
# float32 graph against float64 formulas.
GRAPH_TOLERANCE = 1e-5
# Committed against retrained numbers on another machine.
DRIFT_TOLERANCE = 1e-4


def compact(value):
    return json.dumps(value, separators=(",", ":"))


def export(held_out, without=None):
    """(model, its constants, metadata and test vectors), trained without any row of the model `without`."""
    constants = prior.learn(data.cpu_curves(without), prior.learn_network(data.scalings(without)))
    vectors = card.test_vectors(constants)
    metadata = {
        "version": f"{card.VERSION} without {without}" if without else card.VERSION,
        "training_sha256": data.digest(),
        "form": compact(form.CONSTANTS),
        "self_test": compact(card.self_test(vectors)),
        "held_out": compact(held_out),
    }
    model = graph.build(constants, metadata)
    worst = card.worst_difference(ReferenceEvaluator(model), vectors)
    if not worst < GRAPH_TOLERANCE:
        raise SystemExit(f"the graph differs from the formulas by {worst:.2e}, allowed {GRAPH_TOLERANCE:.0e}")
    return model, constants, metadata, vectors


def train(held_out):
    """(model, card): what users get."""
    model, constants, metadata, vectors = export(held_out)
    described = {
        "model": MODEL.name, "version": card.VERSION, "sha256": hashlib.sha256(model.SerializeToString()).hexdigest(),
        "training_sha256": metadata["training_sha256"], "opset": 17, "ir_version": 8,
        "features": graph.FEATURES, "inputs": graph.INPUTS, "outputs": graph.OUTPUTS,
        "constants": constants, "held_out": held_out, "gpu_kind_error_percent": heldout.gpu_kind_error(),
        "test_tolerance": card.TOLERANCE, "test_vectors": vectors,
    }
    return model, described


def differences(old, new, path=""):
    """Where two cards disagree, as human lines; digests of the model file are allowed to."""
    if isinstance(new, dict) and isinstance(old, dict):
        keys = [k for k in {**old, **new} if k != "sha256"]
        return [d for k in keys for d in differences(old.get(k), new.get(k), f"{path}.{k}")]
    if isinstance(new, list) and isinstance(old, list) and len(old) == len(new):
        return [d for i, (a, b) in enumerate(zip(old, new)) for d in differences(a, b, f"{path}[{i}]")]
    number = lambda v: isinstance(v, (int, float)) and not isinstance(v, bool)
    same = bool(np.isclose(old, new, rtol=DRIFT_TOLERANCE, atol=DRIFT_TOLERANCE)) if number(old) and number(new) else old == new
    return [] if same else [f"{path.lstrip('.')}: committed {old}, retrained {new}"]


def check(model, described):
    """Compares with the committed files; returns the exit code."""
    committed = json.loads(CARD.read_text())
    problems = differences(committed, json.loads(json.dumps(described)))
    stored = MODEL.read_bytes()
    if hashlib.sha256(stored).hexdigest() != committed["sha256"]:
        problems.append(f"{MODEL.name} is not the file that {CARD.name} describes")
    if stored != model.SerializeToString():
        worst = card.worst_difference(ReferenceEvaluator(onnx.load_from_string(stored)), described["test_vectors"])
        print(f"{MODEL.name}: not byte-identical here; largest difference of an output {worst:.1e}")
        if not worst < DRIFT_TOLERANCE:
            problems.append(f"{MODEL.name}: outputs differ by {worst:.1e}")
    for problem in problems[:20]:
        print(problem, file=sys.stderr)
    print("drifted: run models/train.py and commit" if problems else f"{MODEL.name} {committed['sha256'][:16]} is what the data gives")
    return 1 if problems else 0


def train_held_out(held_out):
    """name -> (model, test vectors), each trained without the model of that name."""
    exports = {name: export(held_out, name) for name in data.table_models()}
    return {name: (model, vectors) for name, (model, _, _, vectors) in exports.items()}


def check_held_out(models):
    """Compares with the committed files; returns the exit code."""
    problems = []
    for name, (model, vectors) in models.items():
        path = HELD_OUT / f"{name}.onnx"
        if not path.exists():
            problems.append(f"{path.name} is missing")
        elif path.read_bytes() != model.SerializeToString():
            worst = card.worst_difference(ReferenceEvaluator(onnx.load(path)), vectors)
            if not worst < DRIFT_TOLERANCE:
                problems.append(f"{path.name}: outputs differ by {worst:.1e}")
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare with the committed files instead of writing them")
    arguments = parser.parse_args()
    held_out = heldout.report()
    model, described = train(held_out)
    without = train_held_out(held_out)
    if arguments.check:
        return max(check(model, described), check_held_out(without))
    HELD_OUT.mkdir(exist_ok=True)
    for name, (one, _) in without.items():
        (HELD_OUT / f"{name}.onnx").write_bytes(one.SerializeToString())
    MODEL.write_bytes(model.SerializeToString())
    CARD.write_text(json.dumps(described, indent=1) + "\n")
    print(f"{MODEL.name}: {MODEL.stat().st_size} bytes, sha256 {described['sha256'][:16]}, {len(model.graph.node)} nodes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
