#!/usr/bin/env python3
"""Writes models that the host must refuse, each broken in one way, into tests/fixtures/models."""

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from throughput_model import graph

HERE = Path(__file__).resolve().parent
GOOD = HERE / "throughput.onnx"
OUT = HERE.parent / "tests" / "fixtures" / "models"


def small(widths, metadata):
    """A valid model with the right names, whose outputs are 0; `widths` overrides those of some inputs and outputs."""
    inputs, outputs = ({n: widths.get(n, w) for n, w in table.items()} for table in (graph.INPUTS, graph.OUTPUTS))
    nodes = [helper.make_node("ReduceSum", [n, "axis"], [f"sum_{n}"], keepdims=1) for n in inputs]
    nodes.append(helper.make_node("Sum", [f"sum_{n}" for n in inputs], ["all"]))
    nodes += [helper.make_node("MatMul", ["all", f"zero_{n}"], [n]) for n in outputs]
    constants = [numpy_helper.from_array(np.array([1]), "axis")]
    constants += [numpy_helper.from_array(np.zeros((1, w), np.float32), f"zero_{n}") for n, w in outputs.items()]
    tensors = lambda names: [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["N", w]) for n, w in names.items()]
    made = helper.make_graph(nodes, "small", tensors(inputs), tensors(outputs), constants)
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    helper.set_model_props(model, metadata)
    onnx.checker.check_model(model)
    return model


def wrong_constants(metadata):
    """The real graph with its largest table of constants doubled: right interface, wrong answers."""
    model = onnx.load(GOOD)
    table = max((c for c in model.graph.initializer if c.data_type == TensorProto.FLOAT), key=lambda c: np.prod(c.dims))
    table.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(table) * 2, table.name))
    helper.set_model_props(model, metadata)
    return model


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    metadata = {p.key: p.value for p in onnx.load(GOOD).metadata_props}
    without = lambda key: {k: v for k, v in metadata.items() if k != key}
    models = {
        "wrong-input-width.onnx": small({"job": 8}, metadata),
        "wrong-output-width.onnx": small({"sd": 2}, metadata),
        "wrong-features.onnx": small({}, metadata | {"features": "job=something,else"}),
        "no-self-test.onnx": small({}, without("self_test")),
        "fails-self-test.onnx": wrong_constants(metadata),
    }
    files = {name: model.SerializeToString() for name, model in models.items()}
    files["truncated.onnx"] = GOOD.read_bytes()[:6000]
    files["not-a-model.onnx"] = b"this is not a protobuf\n"
    files["empty.onnx"] = b""
    for name, content in files.items():
        (OUT / name).write_bytes(content)
        print(f"{name}: {len(content)} bytes")


if __name__ == "__main__":
    main()
