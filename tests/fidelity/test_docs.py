"""docs/fidelity.md says what is measured here."""

import os
from pathlib import Path

import comparison
import datasets
import report
from conftest import BLOCK_SIZES

DOCS = Path(__file__).resolve().parents[2] / "docs" / "fidelity.md"
REWRITE = "rewrite it by running all of tests/fidelity with FEEDLINE_GOLDEN=rewrite, and read the diff"


def test_docs_have_the_counts_that_are_measured(real, ours, results):
    if os.environ.get("FEEDLINE_GOLDEN") == "rewrite":
        assert results["calls"] and results["devices"], REWRITE
        DOCS.write_text(report.render(results), encoding="utf-8")
    assert DOCS.exists(), f"no {DOCS}; {REWRITE}"
    lines = DOCS.read_text(encoding="utf-8").splitlines()
    missing = []
    for data_set in datasets.ALL:
        for size in BLOCK_SIZES:
            if size != 4096 and not data_set.large_blocks:
                continue
            compared = comparison.entry(
                data_set, size, 1, real(data_set, size, 1), ours(data_set, size, 1))
            row = f"| {' | '.join(report.calls_row(compared))} |"
            if row not in lines:
                missing.append(row)
    assert not missing, "not in docs/fidelity.md:\n" + "\n".join(missing) + f"\n{REWRITE}"
