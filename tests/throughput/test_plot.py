"""The plot of runs."""

from pathlib import Path

import msgspec

from tests.throughput.plot import write
from tests.throughput.runs import RUN


def test_the_same_runs_make_the_same_plot(tmp_path: Path) -> None:
    paths = [tmp_path / f"{number}.svg" for number in range(2)]
    for path in paths:
        write([RUN], path)
    assert paths[0].read_bytes() == paths[1].read_bytes()
    assert b"<svg" in paths[0].read_bytes()


def test_each_run_adds_a_line_of_panels(tmp_path: Path) -> None:
    path = tmp_path / "plot.svg"
    write([RUN], path)
    one = path.read_text().count('id="axes_')
    write([msgspec.structs.replace(RUN, nodes=500), RUN], path)
    assert one == 2
    assert path.read_text().count('id="axes_') == 4
