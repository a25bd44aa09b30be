"""The page of a notebook: its text, its code, and what it prints when it is run.

`python -m tests.gallery.notebooks --write` runs the notebooks and writes their pages.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import nbformat
from nbclient import NotebookClient

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["NOTEBOOKS", "PLOTLY", "executed", "page", "page_of"]

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))
PLOTLY = "application/vnd.plotly.v1+json"


def executed(path: Path) -> Any:  # noqa: ANN401 - nbformat's nodes have no types
    """Run a notebook, and return it with its outputs."""
    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    client = NotebookClient(
        notebook,
        timeout=120,
        coalesce_streams=True,  # the kernel sends what is printed in parts, as it comes to it
        resources={"metadata": {"path": path.parent}},
    )
    # One thread: libraries that wait for each other's threads take minutes on a busy machine.
    client.execute(env=os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"})
    return notebook


def page_of(path: Path) -> Path:
    """Return the page of a notebook."""
    return ROOT / "docs" / "gallery" / f"{path.stem}.md"


def page(path: Path, notebook: Any) -> str:  # noqa: ANN401 - nbformat's nodes have no types
    """Return the text of the page; a figure is the picture with the name of the notebook."""
    return "\n\n".join(_parts(path, notebook)) + "\n"


def _parts(path: Path, notebook: Any) -> Iterator[str]:  # noqa: ANN401 - nbformat's nodes have no types
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            yield cell.source
            continue
        yield f"```python\n{cell.source}\n```"
        for output in cell.outputs:
            if output.output_type == "stream":
                yield f"```text\n{output.text.rstrip()}\n```"
            elif PLOTLY in output.data:
                title = output.data[PLOTLY]["layout"]["title"]["text"]
                yield f"![{title}]({path.stem}.svg)"
    yield f"The notebook is `{path.relative_to(ROOT)}`."


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit(__doc__)
    for one in NOTEBOOKS:
        page_of(one).write_text(page(one, executed(one)), "utf-8")
