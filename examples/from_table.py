"""I have a table and want a page that I can send to somebody. Which commands do I need?
=====================================================================================

Data: a simulated file as people have them, with a subject column, text, and missing values. Four commands
go from the file to the page: check, fit (with the evidence), graph, report. Takes about a minute on two
cores.
"""

# sphinx_gallery_thumbnail_path = "report-page.png"
import argparse
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd

parser = argparse.ArgumentParser(description="From a CSV file to a report page.")
parser.add_argument("--out", type=Path, default=Path("build/examples/from_table"))
out = parser.parse_args().out
out.mkdir(parents=True, exist_ok=True)

# 1. A file: 300 people, three visits each, five blood values. Urea and creatinine go together in the old
#    only; sodium and chloride in everybody.
rng = np.random.default_rng(0)
people = pd.DataFrame({"person": range(1, 301), "age": rng.integers(20, 81, 300)})
people["sex"] = rng.choice(["female", "male"], 300)
table = people.loc[people.index.repeat(3)].reset_index(drop=True)
values = rng.normal(size=(900, 5))
values[:, 1] += 0.6 * values[:, 0]
values[:, 3] += (table["age"] - 20) / 60 * values[:, 2]
table[["sodium", "chloride", "urea", "creatinine", "iron"]] = values.round(3)
table.loc[rng.choice(900, 20, replace=False), "iron"] = np.nan
table.to_csv(out / "blood.csv", index=False)

# 2. The commands, as they are typed in a shell. check and fit are told the same about the table: which
#    columns are covariates, which rows belong to one person, and what to do where something is missing.
#    --force replaces what an earlier run of this example wrote.
about = "blood.csv --covariates age,sex --group person --missing drop"
commands = [
    f"graphfield check {about}",
    f"graphfield fit {about} --evidence --out model --force",
    "graphfield graph model --at age=75 --at sex=female --threshold 0.1",
    "graphfield report model --title 'Blood values by age and sex' --out report.html --force",
]
for command in commands:
    print(f"$ {command}", flush=True)
    program = [sys.executable, "-m", "graphfield", *shlex.split(command)[1:]]
    subprocess.run(program, cwd=out, check=True)
    print(flush=True)

# 3. The page leads with the evidence, which it found in the folder of the model.
print(f"The page: {out / 'report.html'}")
