#!/usr/bin/env python3
"""Prints the held-out errors of the throughput model, trained anew without each model in turn.

Exit code 1 when a goal is missed; `--json` prints the rows instead of the table.
"""

import argparse
import json
import sys

from throughput_model import data, heldout, prior

# (group, observations): largest allowed error over the whole curve, percent.
GOALS = {
    ("image", 0): 9.0, ("sensitive", 0): 15.0, ("all", 0): 10.0,
    ("sensitive", 1): 14.0, ("all", 1): 10.0,
    ("sensitive", 2): 4.5, ("all", 2): 3.0,
    ("sensitive", 3): 3.5, ("all", 3): 2.6,
    ("gpus and nodes", 1): 32.0, ("gpus and nodes", 2): 19.0, ("gpus and nodes", 3): 16.0,
}
BAND_GOAL = 80


def print_table(report):
    print("error of throughput over the whole curve, %, of models left out of training (80 % band covers, %)")
    print(f"{'group':<14} {'curves':>6}  " + "  ".join(f"{p} observed" for p in range(4)))
    for group in dict.fromkeys(r["group"] for r in report):
        cells = {r["probes"]: r for r in report if r["group"] == group}
        text = lambda r: f"{r['error_percent']:5.1f} ({r['band_cover_percent']:>2})" if r else f"{'':10}"
        row = "  ".join(f"{text(cells.get(p)):10}" for p in range(4))
        print(f"{group:<14} {next(iter(cells.values()))['curves']:>6}  {row}".rstrip())


def print_other_axes():
    constants = prior.learn(data.cpu_curves(), prior.learn_network(data.scalings()))
    print(f"speed on another GPU kind by memory bandwidth: {heldout.gpu_kind_error()} % (Gavel, one GPU)")
    resnet50 = data.models()["resnet50"]
    measured = {r["gpu_kind"]: r["cores_for_peak"] for r in data.rows("socc18_knees.csv") if r["model"] == "resnet50"}
    print(f"resnet50, cores for peak speed on a V100: measured {measured['V100']} (SoCC '18), knee of the prior {heldout.knee(constants, resnet50):.1f}")


def missed(report):
    for r in report:
        goal = GOALS.get((r["group"], r["probes"]))
        if goal and r["error_percent"] > goal:
            yield f"{r['group']}, {r['probes']} observed: {r['error_percent']} % > {goal} %"
        if r["group"] == "all" and r["band_cover_percent"] < BAND_GOAL:
            yield f"band covers {r['band_cover_percent']} % < {BAND_GOAL} % with {r['probes']} observed"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print rows as JSON")
    arguments = parser.parse_args()
    report = heldout.report()
    if arguments.json:
        print(json.dumps(report))
    else:
        print_table(report)
        print_other_axes()
    problems = list(missed(report))
    for problem in problems:
        print(f"goal missed: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
