"""Are the answers on a table the same when somebody took logarithms first?

    .venv/bin/python benchmarks/logarithms.py Crime.csv --covariates year,region,smsa --group county

Tests the table as it is, and with the logarithm of every node that is always above zero: the p-value of
dependence, how many pairs have an edge or one that moves (false-discovery level .10), and by how much average
partial correlations differ. Nodes are all other columns of numbers; ``--drop`` leaves some out.
"""

from __future__ import annotations

import argparse
import json
import warnings

import numpy as np
import pandas as pd

import graphfield as gf


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("table")
    parser.add_argument("--covariates", required=True)
    parser.add_argument("--group")
    parser.add_argument("--drop", default="")
    arguments = parser.parse_args()
    table, names = pd.read_csv(arguments.table), arguments.covariates.split(",")
    left_out = {*names, arguments.group, *arguments.drop.split(",")}
    kept = [c for c in table.select_dtypes("number") if c not in left_out and not c.startswith("Unnamed")]
    X = table[kept].astype(float)
    logs = X.apply(lambda column: np.log(column) if (column > 0).all() else column)
    groups = None if arguments.group is None else table[arguments.group]
    averages = []
    for what, nodes in {"as it is": X, "logarithms": logs}.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", gf.DataWarning)
            given = {"groups": groups, "in_order": False, "covariates": []}
            test = gf.dependence_test(nodes, table[names], **given)
            found = gf.infer_edges(nodes, table[names], **given)
        averages.append(found.table.estimate)
        line = {"nodes": what, "p_value": test.p_value, "edges": len(found.edges())}
        print(json.dumps(line | {"moving": len(found.varying())}))
    print(
        json.dumps(
            {"largest difference of averages": round(float((averages[0] - averages[1]).abs().max()), 3)}
        )
    )


if __name__ == "__main__":
    main()
