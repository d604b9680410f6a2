"""Jupyter's own tools with our kernels: nbclient unchanged, through the provisioner's entry point."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import DeadKernelError
from nbformat import NotebookNode

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::DeprecationWarning")]


@pytest.fixture(autouse=True)
def _ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUPYTER_DEFAULT_PROVISIONER_NAME", "order-matters-warm")


def executed(*sources: str, **options: Any) -> NotebookNode:
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    NotebookClient(notebook, **{"timeout": 30, "allow_errors": True, **options}).execute()
    nbformat.validate(notebook)
    return notebook


def kinds(cell: NotebookNode) -> list[str]:
    return [output.output_type for output in cell.outputs]


def test_a_notebook_is_executed_in_the_sandbox() -> None:
    """Streams, results, errors, pictures, updates and counts, as from any kernel; the home folder is not there."""
    cells = executed(
        "import os, pathlib\nprint(os.getcwd(), pathlib.Path('/home').exists())",
        "x = 40",
        "x + 2",
        "1 / 0",
        "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()",
        "from IPython.display import display\nhandle = display('a', display_id='d')\nhandle.update('b')",
        "import sys\nprint('out'); print('err', file=sys.stderr)",
        "input()",
    ).cells
    assert cells[0].outputs[0].text == "/scratch False\n"
    assert (cells[2].outputs[0].data["text/plain"], cells[2].outputs[0].execution_count) == ("42", 3)
    assert cells[3].outputs[0].ename == "ZeroDivisionError"
    assert kinds(cells[4]) == ["execute_result", "display_data"] or kinds(cells[4]) == ["display_data"]
    assert "image/png" in cells[4].outputs[-1].data
    assert cells[5].outputs[0].data["text/plain"] == "'b'"
    assert {output.name for output in cells[6].outputs} == {"stdout", "stderr"}
    assert cells[7].outputs[0].ename == "EOFError"
    assert [cell.execution_count for cell in cells] == list(range(1, 9))


def test_no_script_comes_through() -> None:
    """HTML and JavaScript are dropped on the way, and the text beside them stays."""
    (cell,) = executed("from IPython.display import HTML\nHTML('<script>alert(1)</script>')").cells
    assert list(cell.outputs[0].data) == ["text/plain"]


def test_a_timeout_interrupts_the_cell_and_the_notebook_goes_on() -> None:
    """nbclient sends SIGINT through the provisioner."""
    first, second = executed("while True: pass", "print('on')", timeout=2, interrupt_on_timeout=True).cells
    assert first.outputs[-1].ename == "KeyboardInterrupt"
    assert second.outputs[0].text == "on\n"


def test_a_dead_kernel_is_noticed() -> None:
    """Its process ends, and nbclient says so."""
    with pytest.raises(DeadKernelError):
        executed("import os\nos._exit(1)", "print('never')")


def test_two_kernels_run_side_by_side(tmp_path: Path) -> None:
    """Each with a sandbox of its own: what one writes the other does not see."""
    from jupyter_client.manager import start_new_kernel

    first, one = start_new_kernel()
    second, two = start_new_kernel()
    try:
        for client, code in ((one, "open('mine', 'w').write('x')"), (two, "import os\nprint(os.listdir())")):
            reply = client.execute_interactive(code, timeout=30, output_hook=lambda message: seen.append(message))
            assert reply["content"]["status"] == "ok"
    finally:
        for manager, client in ((first, one), (second, two)):
            client.stop_channels()
            manager.shutdown_kernel(now=True)
    said = [message["content"]["text"] for message in seen if message["msg_type"] == "stream"]
    assert said == ["[]\n"]


seen: list[dict[str, Any]] = []
