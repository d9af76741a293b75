"""PyTorch's own profiler on its own DataLoader: the analysis must say what its JSON says."""

import json
import os
import subprocess
import sys
import textwrap

FEEDLINE = os.environ["FEEDLINE_BIN"]
PROGRAM = textwrap.dedent(
    """
    import sys
    import torch
    from torch.utils.data import DataLoader, Dataset

    class Squares(Dataset):
        def __len__(self):
            return 48

        def __getitem__(self, number):
            return (torch.arange(200_000) * number).float().sqrt().sum().reshape(1)

    if __name__ == "__main__":
        model = torch.nn.Linear(1, 10)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        cpu = torch.profiler.ProfilerActivity.CPU
        with torch.profiler.profile(activities=[cpu]) as profile:
            for batch in DataLoader(Squares(), batch_size=8, num_workers=int(sys.argv[1])):
                model(batch).sum().backward()
                optimizer.step()
        profile.export_chrome_trace(sys.argv[2])
    """
)


def profiled(folder, workers):
    """The profiler's JSON, and what an analysis makes of it."""
    program, trace = folder / "program.py", folder / "trace.json"
    program.write_text(PROGRAM)
    subprocess.run([sys.executable, program, str(workers), trace], check=True, capture_output=True)
    command = [FEEDLINE, "analyze", trace, "--no-cache", "--json"]
    analysis = subprocess.run(command, check=True, capture_output=True).stdout
    return json.loads(trace.read_text()), json.loads(analysis)


def check(folder, workers):
    profile, analysis = profiled(folder, workers)
    fetches = [
        event
        for event in profile["traceEvents"]
        if event.get("ph") == "X" and event["name"].startswith("enumerate(DataLoader)")
    ]
    # One a batch, and one that finds nothing more.
    assert len(fetches) == 7
    steps = analysis["steps"]
    assert [step["rank"] for step in steps] == [0] * len(steps)
    # Microseconds with three digits.
    expected = [round(event["dur"] * 1000) for event in sorted(fetches, key=lambda it: it["ts"])]
    assert [step["fetch_ns"] for step in steps] == expected[: len(steps)]
    assert len(steps) in (6, 7)
    called = {row["name"]: row["count"] for row in analysis["functions"]}
    linear = sum(event["name"] == "aten::linear" for event in profile["traceEvents"])
    assert called["aten::linear"] == linear == 6
    return steps


def test_steps_of_a_loader_without_workers(tmp_path):
    check(tmp_path, 0)


def test_steps_of_a_loader_with_workers(tmp_path):
    check(tmp_path, 2)
