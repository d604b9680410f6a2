"""Rules such as "without `torch.nn.LayerNorm`": read from the answer's text, and watched while the answer runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from autograder.examiner import protocol
from autograder.examiner.client import Operators, observe_all
from autograder.examiner.judge import Examination, Sources
from autograder.examiner.rules import broken_rule
from autograder.exercises.comparisons import Tolerance, values_within
from autograder.exercises.declaration import Case, Criterion, Draw, Exercise, Rule, forward
from autograder.results import Text, Verdict

RULE = Rule(
    "ready-made",
    Text(en="You used torch's own layer.", zh="你用了 torch 现成的层。"),
    names=("torch.nn.LayerNorm", "torch.nn.functional.layer_norm", "torch.native_layer_norm"),
    operators=("aten::native_layer_norm",),
)

BROKEN = {
    "written out": "class Norm(nn.Module):\n    def __init__(self, d):\n        self.norm = nn.LayerNorm(d)",
    "the function": "def forward(x):\n    return F.layer_norm(x, x.shape[-1:])",
    "from torch": "y = torch.nn.LayerNorm(3)",
    "another path to it": "y = torch.nn.modules.LayerNorm(3)",
    "the file it lives in": "y = nn.modules.normalization.LayerNorm(3)",
    "torch's other name for it": "y = torch.layer_norm(x, (3,))",
    "the low-level function": "y = torch.native_layer_norm(x, (3,), None, None, 1e-5)",
    "a subclass": "class LayerNorm(nn.LayerNorm):\n    pass",
    "in a default argument": "def make(kind=nn.LayerNorm):\n    return kind(3)",
    "handed on, not called": "layers = {'norm': nn.LayerNorm}",
    "import as": "import torch.nn as t\ny = t.LayerNorm(3)",
    "import of the functions as": "import torch.nn.functional as func\ny = func.layer_norm(x, (3,))",
    "import of the whole path": "import torch.nn.modules.normalization\ntorch.nn.modules.normalization.LayerNorm(3)",
    "from import": "from torch.nn import LayerNorm",
    "from import as": "from torch.nn import LayerNorm as Linear\ny = Linear(3)",
    "from import of the file as": "from torch.nn.modules.normalization import LayerNorm as Own\ny = Own(3)",
    "from import of the package as": "from torch import nn as layers\ny = layers.LayerNorm(3)",
    "import inside a function": "def make(d):\n    from torch.nn import LayerNorm as L\n    return L(d)",
    "star import": "from torch.nn import *\ny = LayerNorm(3)",
    "assigned": "make = nn.LayerNorm\ny = make(3)",
    "assigned twice": "a = nn\nb = a\ny = b.LayerNorm(3)",
    "assigned with a type": "make: type = nn.LayerNorm",
    "assigned on the way": "if (make := nn.LayerNorm):\n    y = make(3)",
    "getattr": "y = getattr(nn, 'Layer' + 'Norm')(3)",
    "getattr under another name": "look = getattr\ny = look(nn, 'Layer' + 'Norm')(3)",
    "getattr handed on": "y = list(map(getattr, [nn], [name]))",
    "vars": "y = vars(nn)['LayerNorm'](3)",
    "a dictionary of names": "y = nn.__dict__['LayerNorm'](3)",
    "a method for names": "y = nn.__getattribute__('LayerNorm')(3)",
    "eval": "y = eval('nn.' + 'LayerNorm')(3)",
    "exec": "exec('y = nn.LayerNorm(3)')",
    "globals": "y = globals()['nn']",
    "importlib": "import importlib\ny = importlib.import_module('torch.nn')",
    "importlib, in part": "from importlib import import_module",
    "the import function": "y = __import__('torch').nn.LayerNorm(3)",
    "sys": "import sys\ny = sys.modules['torch.nn']",
    "operator": "from operator import attrgetter\ny = attrgetter('LayerNorm')(nn)",
    "after a magic": "%matplotlib inline\ny = nn.LayerNorm(3)",
    "under a cell magic": "%%time\ny = nn.LayerNorm(3)",
}


@pytest.mark.parametrize("answer", BROKEN.values(), ids=BROKEN)
def test_a_use_is_found_under_whatever_name(answer: str) -> None:
    assert broken_rule([RULE], answer) is RULE


KEPT = {
    "the formula": "class LayerNorm(nn.Module):\n    def forward(self, x):\n        return x - x.mean(-1, True)",
    "own class of the same name, used": "class LayerNorm(nn.Module):\n    pass\nnorm = LayerNorm()",
    "own function of the same name": "def layer_norm(x):\n    return x\ny = layer_norm(x)",
    "own method of the same name": "class A:\n    def layer_norm(self, x):\n        return self.layer_norm(x)",
    "an attribute of the same name": "class A(nn.Module):\n    def forward(self, x):\n        return self.LayerNorm(x)",
    "in a comment": "# nn.LayerNorm is forbidden\ny = 1",
    "in a text": "y = 'nn.LayerNorm'\nz = f'{y} torch.nn.LayerNorm'",
    "other layers": "y = nn.Linear(3, 4)\nz = F.relu(torch.ones(3))\nk = nn.modules.Linear(3, 4)",
    "other imports": "from torch.nn import Linear, Module as M\nimport math\nfrom math import *\ny = sqrt(2)",
    "a star import without a use": "from torch.nn import *\ny = Linear(3, 4)",
    "getattr of self": "class A:\n    def f(self):\n        setattr(self, 'x', 1)\n        return getattr(self, 'x')",
    "modules of self": "class A(nn.Module):\n    def f(self):\n        return list(self.modules())",
    "a variable called vars": "def f(x):\n    vars = x.var(-1)\n    return x / vars.sqrt()",
    "a variable called operator": "operator = torch.eye(3)\ny = operator @ x",
    "compiling a pattern": "import re\ny = re.compile('a')",
    "a method called eval": "y = model.eval()",
    "nothing": "",
    "a comment alone": "# to do",
}


@pytest.mark.parametrize("answer", KEPT.values(), ids=KEPT)
def test_ordinary_code_breaks_no_rule(answer: str) -> None:
    assert broken_rule([RULE], answer) is None


OTHERS = {
    "import as": ("import torch.nn as layers", "y = layers.LayerNorm(3)"),
    "from import": ("from torch.nn import LayerNorm", "y = LayerNorm(3)"),
    "from import as": ("from torch.nn import LayerNorm as Harmless", "y = Harmless(3)"),
    "star import": ("from torch.nn import *", "y = LayerNorm(3)"),
    "assignment": ("harmless = nn.LayerNorm", "y = harmless(3)"),
    "assignment inside a function": (
        "def f():\n    global harmless\n    harmless = F.layer_norm",
        "y = harmless(x, (3,))",
    ),
    "several cells": ("a = torch.nn", "y = b.LayerNorm(3)"),
    "a subclass of the imported class, of the same name": (
        "from torch.nn import LayerNorm",
        "class LayerNorm(LayerNorm):\n    pass",
    ),
    "a function that uses it": ("def helper(x):\n    return F.layer_norm(x, (3,))", "y = helper(x)"),
    "a class that uses it": (
        "class Norm(nn.Module):\n    def forward(self, x):\n        return F.layer_norm(x, (3,))",
        "class Answer(nn.Module):\n    def __init__(self):\n        self.norm = Norm()",
    ),
    "through two functions": (
        "def inner(x):\n    return F.layer_norm(x, (3,))\n\ndef helper(x):\n    return inner(x)",
        "def answer(x):\n    return helper(x)",
    ),
    "beside a magic": ("%load_ext autoreload\nfrom torch.nn import LayerNorm as Harmless", "y = Harmless(3)"),
}


@pytest.mark.parametrize(("other", "answer"), OTHERS.values(), ids=OTHERS)
def test_names_given_in_other_cells_are_followed(other: str, answer: str) -> None:
    """Without the other cell the name says nothing, or something else."""
    assert broken_rule([RULE], answer, [other, "b = a", "this does not parse ("]) is RULE
    if "class" not in answer:
        assert broken_rule([RULE], answer, ["unrelated = 1"]) is None


def test_an_own_definition_hides_an_import_of_that_name() -> None:
    """A notebook may import the class for another exercise, and the answer defines its own."""
    answer = "class LayerNorm(nn.Module):\n    pass\n\nnorm = LayerNorm()"
    assert broken_rule([RULE], answer, ["from torch.nn import LayerNorm", "y = nn.LayerNorm(3)"]) is None


def test_an_own_definition_hides_a_helper_of_that_name() -> None:
    helper = "def norm(x):\n    return F.layer_norm(x, (3,))"
    assert broken_rule([RULE], "def norm(x):\n    return x\n\ny = norm(x)", [helper]) is None


def test_of_two_helpers_of_one_name_the_last_counts() -> None:
    """As when the notebook runs."""
    ready_made, own = "def norm(x):\n    return F.layer_norm(x, (3,))", "def norm(x):\n    return x - x.mean()"
    assert broken_rule([RULE], "y = norm(x)", [ready_made, own]) is None
    assert broken_rule([RULE], "y = norm(x)", [own, ready_made]) is RULE


def test_helpers_may_call_each_other_in_a_circle() -> None:
    assert broken_rule([RULE], "y = a(1)", ["def a(n):\n    return b(n)\n\ndef b(n):\n    return a(n)"]) is None


def test_other_cells_may_use_what_the_answer_must_not() -> None:
    assert (
        broken_rule(
            [RULE],
            "y = 1",
            ["compare = nn.LayerNorm(3)", "eval('1')", "def f(x):\n    return nn.LayerNorm(3)(x)", "import importlib"],
        )
        is None
    )


@pytest.mark.parametrize(
    "answer", ["class (", "y = nn.LayerNorm(", "\0", "(" * 5000], ids=["class", "call", "null", "deep"]
)
def test_an_answer_that_does_not_parse_breaks_no_rule(answer: str) -> None:
    """It defines nothing, so there is nothing to judge; what ran is watched all the same."""
    assert broken_rule([RULE], answer) is None


def test_the_first_broken_rule_is_told() -> None:
    other = Rule("no-linear", Text(en="no", zh="不"), names=("torch.nn.Linear",))
    both = "y = nn.Linear(3, 3)\nz = nn.LayerNorm(3)"
    assert broken_rule([RULE, other], both) is RULE
    assert broken_rule([other, RULE], both) is other
    assert broken_rule([RULE, other], "y = nn.Linear(3, 3)") is other
    assert broken_rule([], both) is None


class Norm(nn.Module):
    """Right and written out."""

    def forward(self, x: Tensor) -> Tensor:
        centred = x - x.mean(-1, keepdim=True)
        return centred / (centred.square().mean(-1, keepdim=True) + 1e-5).sqrt()


class Hidden(nn.Module):
    """Right and ready-made, reached by a way that its text need not show."""

    def __init__(self) -> None:
        super().__init__()
        self.made = getattr(nn, "Layer" + "Norm")(4)

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.made(x)
        return found


class HiddenFunction(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, x.shape[-1:])


class Wrong(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x


def cases(draw: Draw) -> list[Case]:
    return [
        Case("Norm", steps=(forward(draw.normal(3, 5, 4)),)),
        Case("Norm", steps=(forward(draw.normal(2, 4), track=True),)),
        Case("Norm", steps=(forward(draw.normal(6, 4)),), device="meta"),
    ]


NORM = Exercise(
    id="norm",
    lesson="01-tiny",
    functions=("Norm",),
    reference={"Norm": Norm},
    cases=cases,
    criteria=(
        Criterion("values", Text(en="values", zh="数值"), 1.5, values_within(Tolerance(1e-5, "rounding"))),
        Criterion("again", Text(en="once more", zh="再一次"), 0.5, values_within(Tolerance(1e-5, "rounding"))),
    ),
    mistakes=(),
    rules=(RULE,),
)


def judged(answer: Callable[..., Any], sources: Sources | None = None) -> Verdict:
    examination = Examination(NORM, 3, "cpu")
    return examination.judge(observe_all(examination.questions, [answer]), sources)


def test_an_answer_that_keeps_the_rules_is_judged_by_its_values() -> None:
    assert judged(Norm, Sources("class Norm(nn.Module): ...")).score == 2.0
    assert judged(Wrong).score == 0.0
    assert judged(Wrong).mistake is None


def test_a_broken_rule_costs_all_points_and_is_told_for_each_criterion() -> None:
    """The values are right; the text shows the use."""
    verdict = judged(Norm, Sources("norm = nn.LayerNorm(4)"))
    assert (verdict.score, verdict.max_score, verdict.mistake) == (0.0, 2.0, "ready-made")
    assert verdict.message == RULE.message
    assert {criterion.message for criterion in verdict.criteria} == {RULE.message}
    assert [criterion.max_score for criterion in verdict.criteria] == [1.5, 0.5]


def test_names_of_other_cells_reach_the_judgement() -> None:
    assert judged(Norm, Sources("norm = harmless(4)", ("harmless = nn.LayerNorm",))).mistake == "ready-made"
    assert judged(Norm, Sources("norm = harmless(4)", ("harmless = Mine",))).score == 2.0


@pytest.mark.parametrize("answer", [Hidden, HiddenFunction])
@pytest.mark.parametrize("sources", [None, Sources("class Norm(nn.Module):\n    ..."), Sources("class (")], ids=repr)
def test_what_runs_is_watched_whatever_the_text_says(answer: type[nn.Module], sources: Sources | None) -> None:
    """An alias that the text hides shows when the answer runs, with or without the text."""
    assert judged(answer, sources).mistake == "ready-made"


def test_one_use_in_one_case_is_enough() -> None:
    """Hiding it from most questions does not help."""

    class Sometimes(Norm):
        def forward(self, x: Tensor) -> Tensor:
            return F.layer_norm(x, (4,)) if x.requires_grad else super().forward(x)

    assert judged(Sometimes).mistake == "ready-made"


def test_the_watch_sees_only_what_it_is_told_and_only_inside() -> None:
    x = torch.ones(2, 4)
    with Operators(("aten::native_layer_norm", "aten::relu")) as watch:
        F.layer_norm(x, (4,))
        torch.ones(2) + 1
    F.relu(x)
    assert watch.found == {"aten::native_layer_norm"}


def test_without_anything_to_watch_nothing_is_in_the_way() -> None:
    """The other exercises run without the watch, which takes time."""
    with Operators(()) as watch:
        assert torch.utils._python_dispatch._get_current_dispatch_mode() is None
        F.layer_norm(torch.ones(2, 4), (4,))
    assert watch.found == set()


def test_an_error_inside_takes_the_watch_away() -> None:
    with pytest.raises(ValueError, match="gone"), Operators(("aten::relu",)):
        raise ValueError("gone")
    assert torch.utils._python_dispatch._get_current_dispatch_mode() is None


def test_operators_in_a_message_are_texts_only() -> None:
    """The kernel may send anything; what is no text is not taken for an operator."""
    examination = Examination(NORM, 3, "cpu")
    observations = protocol.decode(observe_all(examination.questions, [Norm]))
    observations[0]["operators"] = (3, None, ("aten::native_layer_norm",))
    assert examination.judge(protocol.encode(observations)).score == 2.0
    observations[0]["operators"] = ("aten::native_layer_norm",)
    assert examination.judge(protocol.encode(observations)).mistake == "ready-made"
    observations[0]["operators"] = "aten::native_layer_norm"
    with pytest.raises(protocol.MalformedMessage):
        examination.judge(protocol.encode(observations))
