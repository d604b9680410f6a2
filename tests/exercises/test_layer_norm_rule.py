"""Layer norm is to be written without torch's own: using one, by whatever name, costs all points and says why."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from autograder.examiner import grade
from autograder.examiner.address import EXAMINER_VARIABLE
from autograder.examiner.client import observe_all
from autograder.examiner.judge import Examination, Sources
from autograder.examiner.process import Examiner, ExaminerHost
from autograder.exercises import block
from autograder.results import Verdict

RULE = block.LAYER_NORM.rules[0]


def _own(body: str, before: str = "") -> str:
    """A LayerNorm with parameters of its own whose `forward` has this body."""
    return f"""{before}
class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
{textwrap.indent(textwrap.dedent(body).strip(), " " * 8)}
"""


def _wrapped(made: str, before: str = "") -> str:
    """A LayerNorm that keeps another module and hands x to it."""
    return f"""{before}
class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.inner = {made}
        self.weight, self.bias = self.inner.weight, self.inner.bias

    def forward(self, x):
        return self.inner(x)
"""


AFFINE = "(x.shape[-1],), self.weight, self.bias, self.eps"
BROKEN = {
    "subclass": "class LayerNorm(nn.LayerNorm):\n    pass\n",
    "the class itself": "LayerNorm = nn.LayerNorm\n",
    "wrapped": _wrapped("nn.LayerNorm(d_model, eps)"),
    "module alias": _wrapped("neural.LayerNorm(d_model, eps)", "import torch.nn as neural"),
    "class alias": _wrapped("Norm(d_model, eps)", "Norm = nn.LayerNorm"),
    "import by another name": _wrapped("Norm(d_model, eps)", "from torch.nn import LayerNorm as Norm"),
    "another path": _wrapped("torch.nn.modules.normalization.LayerNorm(d_model, eps)"),
    "getattr": _wrapped('getattr(nn, "Layer" + "Norm")(d_model, eps)'),
    "dict of the module": _wrapped('nn.__dict__["Layer" + "Norm"](d_model, eps)'),
    "eval": _wrapped('eval("nn.Layer" + "Norm")(d_model, eps)'),
    "functional": _own(f"return F.layer_norm(x, {AFFINE})"),
    "functional by path": _own(f"return torch.nn.functional.layer_norm(x, {AFFINE})"),
    "functional alias": _own(f"return norm(x, {AFFINE})", "from torch.nn.functional import layer_norm as norm"),
    "torch.layer_norm": _own(f"return torch.layer_norm(x, {AFFINE})"),
    "native": _own(f"return torch.native_layer_norm(x, {AFFINE})[0]"),
    "torch.ops": _own(f"return torch.ops.aten.native_layer_norm(x, {AFFINE})[0]"),
    "without affine": _own("return F.layer_norm(x, x.shape[-1:], eps=self.eps) * self.weight + self.bias"),
    "rms norm of the centred": _own(
        "return F.rms_norm(x - x.mean(-1, keepdim=True), x.shape[-1:], self.weight, self.eps) + self.bias"
    ),
    "group norm of rows": _own(
        """
        rows = x.reshape(-1, x.shape[-1])
        return F.group_norm(rows, 1, self.weight, self.bias, self.eps).reshape(x.shape)
        """
    ),
    "batch norm of columns": _own(
        """
        rows = x.reshape(-1, x.shape[-1])
        rows = F.batch_norm(rows.T, None, None, training=True, eps=self.eps).T
        return rows.reshape(x.shape) * self.weight + self.bias
        """
    ),
    "instance norm of rows": _own(
        """
        rows = F.instance_norm(x.reshape(1, -1, x.shape[-1]), eps=self.eps)
        return rows.reshape(x.shape) * self.weight + self.bias
        """
    ),
}
HELPERS = {
    "helper": (
        _own("return helper(x, self.weight, self.bias, self.eps)"),
        "def helper(x, weight, bias, eps):\n    return F.layer_norm(x, x.shape[-1:], weight, bias, eps)\n",
    ),
    "helper that centres for itself": (
        _own("return helper(x) * self.weight + self.bias"),
        "def helper(x):\n    return F.rms_norm(x - x.mean(-1, keepdim=True), x.shape[-1:], eps=1e-5)\n",
    ),
    "alias in another cell": (_own(f"return shortcut(x, {AFFINE})"), "shortcut = F.layer_norm\n"),
    "module alias in another cell": (_own(f"return G.layer_norm(x, {AFFINE})"), "import torch.nn.functional as G\n"),
}
FORMULA = """
m = x.mean(-1, keepdim=True)
return (x - m) / (x.var(-1, keepdim=True, unbiased=False) + self.eps).sqrt() * self.weight + self.bias
"""
KEPT = {
    "plain": (_own(FORMULA), ""),
    "named in a comment": (_own("# like nn.LayerNorm and F.layer_norm\n" + FORMULA), ""),
    "named in a docstring": (_own('"""As F.layer_norm does."""\n' + FORMULA), ""),
    "getattr of self": (_own(FORMULA.replace("self.eps", 'getattr(self, "eps")')), ""),
    "an attribute of that name": (_own("self.layer_norm = 1\n" + FORMULA), ""),
    "compared in another cell": (_own(FORMULA), "theirs = nn.LayerNorm(4)\n"),
    "imported in another cell": (_own(FORMULA), "from torch.nn import LayerNorm as Theirs, LayerNorm\n"),
}
broken = pytest.mark.parametrize(
    ("answer", "other"), [*((a, "") for a in BROKEN.values()), *HELPERS.values()], ids=[*BROKEN, *HELPERS]
)


def _defined(answer: str, other: str) -> Any:
    names: dict[str, Any] = {"torch": torch, "nn": nn, "F": F}
    exec(other, names)
    exec(answer, names)
    return names["LayerNorm"]


def _judge(answer: str, other: str, *, with_sources: bool = True) -> Verdict:
    examination = Examination(block.LAYER_NORM, 3, "cpu")
    observations = observe_all(examination.questions, [_defined(answer, other)])
    return examination.judge(observations, Sources(answer, (other, answer)) if with_sources else None)


def _assert_no_points(verdict: Verdict) -> None:
    assert (verdict.score, verdict.mistake, verdict.message) == (0.0, RULE.slug, RULE.message)
    assert {criterion.message for criterion in verdict.criteria} == {RULE.message}
    assert {criterion.score for criterion in verdict.criteria} == {0.0}


@broken
def test_a_ready_made_norm_costs_all_points(answer: str, other: str) -> None:
    _assert_no_points(_judge(answer, other))


@pytest.mark.parametrize("name", [name for name in BROKEN if name != "rms norm of the centred"])
def test_it_is_seen_running_too_when_the_text_is_not_at_hand(name: str) -> None:
    """RMS norm runs as ordinary arithmetic; only the text shows it."""
    _assert_no_points(_judge(BROKEN[name], "", with_sources=False))


@pytest.mark.parametrize(("answer", "other"), KEPT.values(), ids=KEPT.keys())
def test_naming_it_elsewhere_breaks_nothing(answer: str, other: str) -> None:
    verdict = _judge(answer, other)
    assert verdict.score == verdict.max_score, verdict.message.en


def test_a_wrong_answer_that_keeps_the_rule_is_judged_for_what_it_is() -> None:
    verdict = _judge(_own(FORMULA.replace("unbiased=False", "unbiased=True")), "")
    assert verdict.mistake == "unbiased-variance"


@pytest.mark.parametrize("exercise", [block.ADD_NORM, block.ENCODER_BLOCK], ids=lambda exercise: exercise.id)
def test_later_exercises_may_use_torchs(exercise: Any) -> None:
    assert exercise.rules == ()


@pytest.fixture
def notebook() -> Iterator[Any]:
    """Runs cells as a notebook does, with their text kept by IPython."""
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    config = Config()
    config.HistoryManager.enabled = False
    shell = InteractiveShell(config=config)
    shell.run_cell("import torch\nimport torch.nn as nn\nimport torch.nn.functional as F")
    yield shell
    shell.restore_sys_module_state()


def _graded_in(shell: Any, *cells: str) -> Any:
    for cell in (*cells, "from autograder.examiner import grade\nscore = grade('layer-norm', LayerNorm)"):
        shell.run_cell(cell, store_history=True).raise_error()
    return shell.user_ns["score"]


CELLS = ["subclass", "wrapped", "functional alias", "getattr", "rms norm of the centred"]


@pytest.mark.slow
@pytest.mark.parametrize("name", CELLS)
def test_in_a_notebook_without_the_grader_the_rule_holds(
    name: str, notebook: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(EXAMINER_VARIABLE, raising=False)
    assert _graded_in(notebook, BROKEN[name]) == 0.0
    assert RULE.message.en in capsys.readouterr().out


@pytest.mark.slow
def test_in_a_notebook_without_the_grader_a_right_answer_gets_its_points(
    notebook: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(EXAMINER_VARIABLE, raising=False)
    assert _graded_in(notebook, "theirs = nn.LayerNorm(4)", KEPT["plain"][0]) == 3.0


@pytest.fixture(scope="module")
def examiner() -> Iterator[Examiner]:
    host = ExaminerHost(b"a course key for tests", "cpu")
    examiner = Examiner(host.address)
    yield examiner
    examiner.stop()
    host.stop()


@pytest.mark.slow
@pytest.mark.xdist_group("examiner")
@pytest.mark.parametrize("name", [*CELLS, "helper", "alias in another cell", "plain"])
def test_through_the_examiners_socket_the_rule_holds(
    name: str, examiner: Examiner, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer, other = {**{n: (text, "") for n, text in BROKEN.items()}, **HELPERS, **KEPT}[name]
    with examiner.admit() as kernel:
        monkeypatch.setenv(EXAMINER_VARIABLE, str(kernel.fileno()))
        examiner.open("ada", "layer-norm", answer, (other, answer))
        grade("layer-norm", _defined(answer, other))
        verdict = examiner.close().verdict
    assert verdict is not None
    if name == "plain":
        assert verdict.score == verdict.max_score
    else:
        _assert_no_points(verdict)
