"""Lesson 04: wrong ways to add and normalise that people really write, and what to tell them."""

from __future__ import annotations

from collections.abc import Callable

import torch.nn.functional as F
from torch import Tensor, nn

from autograder.exercises.declaration import Mistake
from autograder.exercises.layer_norm_wrong import eps_outside, normalising, unbiased
from autograder.reference.block import AddNorm, LayerNorm
from autograder.results import Text

Norm = Callable[[Tensor], Tensor]


def _computing(formula: Callable[[Tensor, Tensor, Norm, Norm], Tensor]) -> type[AddNorm]:
    """`formula` makes the result of x, the sublayer's output, norm and dropout."""

    class Answer(AddNorm):
        def forward(self, x: Tensor, sublayer_output: Tensor) -> Tensor:
            return formula(x, sublayer_output, self.norm, self.dropout)

    return Answer


def _normed_by(kind: type[LayerNorm]) -> type[AddNorm]:
    class Answer(AddNorm):
        def __init__(self, d_model: int, dropout: float = 0.0, eps: float = 1e-5) -> None:
            super().__init__(d_model, dropout, eps)
            self.norm = kind(d_model, eps)

    return Answer


class _EpsIgnored(AddNorm):
    def __init__(self, d_model: int, dropout: float = 0.0, eps: float = 1e-5) -> None:
        super().__init__(d_model, dropout)


class _EpsAndDropoutExchanged(AddNorm):
    def __init__(self, d_model: int, eps: float = 1e-5, dropout: float = 0.0) -> None:
        super().__init__(d_model, min(dropout, 1.0), eps)


class _DropoutFixed(AddNorm):
    def __init__(self, d_model: int, dropout: float = 0.0, eps: float = 1e-5) -> None:
        super().__init__(d_model, 0.1, eps)


class _DropoutDefault(AddNorm):
    def __init__(self, d_model: int, dropout: float = 0.0, eps: float = 1e-5) -> None:
        super().__init__(d_model, 0.5, eps)


class _DropoutInEval(AddNorm):
    def forward(self, x: Tensor, sublayer_output: Tensor) -> Tensor:
        out: Tensor = self.norm(x + F.dropout(sublayer_output, self.dropout.p))
        return out


class _IsANorm(LayerNorm):
    def __init__(self, d_model: int, dropout: float = 0.0, eps: float = 1e-5) -> None:
        super().__init__(d_model, eps)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, sublayer_output: Tensor) -> Tensor:  # type: ignore[override]
        return super().forward(x + self.dropout(sublayer_output))


class _OtherName(nn.Module):
    def __init__(self, d_model: int, dropout: float = 0.0, eps: float = 1e-5) -> None:
        super().__init__()
        self.layer_norm = LayerNorm(d_model, eps)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, sublayer_output: Tensor) -> Tensor:
        out: Tensor = self.layer_norm(x + self.dropout(sublayer_output))
        return out


class _WithoutAffine(AddNorm):
    def __init__(self, d_model: int, dropout: float = 0.0, eps: float = 1e-5) -> None:
        super().__init__(d_model, dropout, eps)
        self.norm.register_parameter("weight", None)
        self.norm.register_parameter("bias", None)

    def forward(self, x: Tensor, sublayer_output: Tensor) -> Tensor:
        return F.layer_norm(x + self.dropout(sublayer_output), x.shape[-1:], eps=self.norm.eps)


class _InPlace(AddNorm):
    def forward(self, x: Tensor, sublayer_output: Tensor) -> Tensor:
        x += self.dropout(sublayer_output)
        out: Tensor = self.norm(x)
        return out


def _mistake(slug: str, answer: type[nn.Module], en: str, zh: str) -> Mistake:
    return Mistake(slug=slug, message=Text(en=en, zh=zh), answers={"AddNorm": answer})


ADD_NORM_MISTAKES = (
    _mistake(
        "residual-missing",
        _computing(lambda x, sub, norm, drop: norm(drop(sub))),
        "x does not reach the result: only the sublayer's output is normalised. The residual connection is the point "
        "of this module.",
        "x 没有进入结果：只对子层的输出做了归一化。这个模块的关键正是残差连接。",
    ),
    _mistake(
        "sublayer-ignored",
        _computing(lambda x, sub, norm, drop: norm(x)),
        "The sublayer's output does not reach the result: only x is normalised.",
        "子层的输出没有进入结果：只对 x 做了归一化。",
    ),
    _mistake(
        "norm-of-sublayer-added",
        _computing(lambda x, sub, norm, drop: x + norm(drop(sub))),
        "The sublayer's output is normalised and then added. Here the sum is what the norm should see.",
        "先对子层的输出归一化，再相加。这里应当归一化的是相加之后的和。",
    ),
    _mistake(
        "norm-of-x-added",
        _computing(lambda x, sub, norm, drop: norm(x) + drop(sub)),
        "x is normalised before the addition, and the sum is not. Here the addition comes first.",
        "相加之前归一化了 x，而和没有归一化。这里应当先相加。",
    ),
    _mistake(
        "residual-from-normed",
        _computing(lambda x, sub, norm, drop: norm(x) + norm(drop(sub))),
        "Both parts are normalised one by one and then added. Here there is one norm, and it comes after the addition.",
        "两部分各自归一化之后再相加。这里只有一次归一化，并且在相加之后。",
    ),
    _mistake(
        "not-normalised",
        _computing(lambda x, sub, norm, drop: x + drop(sub)),
        "The sum is returned as it is: your norm is there, but nothing passes through it.",
        "相加之后直接返回了：归一化层是有的，但没有任何数据经过它。",
    ),
    _mistake(
        "norm-twice",
        _computing(lambda x, sub, norm, drop: norm(norm(x + drop(sub)))),
        "The sum passes through the norm twice. Before training that is invisible; with learned scales it is not.",
        "和经过了两次归一化。训练之前看不出来；缩放学出来之后就不同了。",
    ),
    _mistake(
        "norm-before-and-after",
        _computing(lambda x, sub, norm, drop: norm(norm(x) + drop(sub))),
        "x is normalised before the addition and the sum after it. There is one norm in the formula.",
        "相加之前归一化了 x，相加之后又归一化了一次。公式里只有一次归一化。",
    ),
    _mistake(
        "added-twice",
        _computing(lambda x, sub, norm, drop: x + norm(x + drop(sub))),
        "x is added once more after the norm. The residual connection is one addition, before the norm.",
        "归一化之后又加了一次 x。残差连接只有一次相加，在归一化之前。",
    ),
    _mistake(
        "subtracted",
        _computing(lambda x, sub, norm, drop: norm(x - drop(sub))),
        "The sublayer's output is subtracted from x. Check the sign.",
        "子层的输出被从 x 中减去了。请检查符号。",
    ),
    _mistake(
        "multiplied",
        _computing(lambda x, sub, norm, drop: norm(x * drop(sub))),
        "x and the sublayer's output are multiplied. A residual connection adds, so that x passes unchanged where the "
        "sublayer says nothing.",
        "x 与子层的输出相乘了。残差连接是相加：这样在子层没有输出的地方，x 可以原样通过。",
    ),
    _mistake(
        "dropout-on-the-sum",
        _computing(lambda x, sub, norm, drop: norm(drop(x + sub))),
        "Dropout hits the sum, and so drops features of x too. The residual connection should let x pass whole.",
        "dropout 作用在了和上，连 x 的特征也会被丢弃。残差连接应当让 x 完整通过。",
    ),
    _mistake(
        "dropout-on-x",
        _computing(lambda x, sub, norm, drop: norm(drop(x) + sub)),
        "Dropout hits x, and the sublayer's output passes whole. The formula has it the other way round.",
        "dropout 作用在了 x 上，而子层的输出完整通过。公式正好相反。",
    ),
    _mistake(
        "dropout-on-both",
        _computing(lambda x, sub, norm, drop: norm(drop(x) + drop(sub))),
        "Dropout hits both parts of the sum. The residual connection should let x pass whole.",
        "相加的两部分都做了 dropout。残差连接应当让 x 完整通过。",
    ),
    _mistake(
        "dropout-last",
        _computing(lambda x, sub, norm, drop: drop(norm(x + sub))),
        "Dropout comes after the norm. The formula has it before the addition, on one of the two parts.",
        "dropout 放到了归一化之后。公式里它在相加之前，只作用于两部分中的一个。",
    ),
    _mistake(
        "no-dropout",
        _computing(lambda x, sub, norm, drop: norm(x + sub)),
        "Nothing is ever dropped: the argument `dropout` has no effect.",
        "从来没有丢弃任何特征：参数 dropout 不起作用。",
    ),
    _mistake(
        "dropout-in-eval",
        _DropoutInEval,
        "Features are dropped in eval mode too. The function form of dropout does not know the module's mode unless "
        "it is told.",
        "评估模式下也丢弃了特征。函数形式的 dropout 不知道模块处于哪种模式，需要你告诉它。",
    ),
    _mistake(
        "dropout-fixed",
        _DropoutFixed,
        "The share of dropped features is a fixed number in your code: the argument `dropout` has no effect, and "
        "features are dropped even by default.",
        "丢弃比例在你的代码里是一个写死的数：参数 dropout 不起作用，默认情况下也会丢弃特征。",
    ),
    _mistake(
        "dropout-default",
        _DropoutDefault,
        "Your dropout drops half of the features: it was made without the argument and uses torch's own default.",
        "你的 dropout 丢弃了一半特征：创建它时没有传入参数，用了 torch 自己的默认值。",
    ),
    _mistake(
        "eps-ignored",
        _EpsIgnored,
        "The argument `eps` does not reach the norm. Follow it through your constructor.",
        "参数 eps 没有传给归一化层。请顺着它检查你的构造函数。",
    ),
    _mistake(
        "arguments-exchanged",
        _EpsAndDropoutExchanged,
        "`eps` and `dropout` stand in another order in your constructor than in the signature of the task.",
        "构造函数里 eps 和 dropout 的顺序与题目给出的签名不同。",
    ),
    _mistake(
        "is-a-norm",
        _IsANorm,
        "The computation is right, but your module *is* a norm (its parameters are `weight` and `bias`). It should "
        "*have* one, under the name that the task gives.",
        "计算是对的，但你的模块本身就是一个归一化层（参数是 weight 和 bias）。它应当包含一个归一化层，并用题目规定的"
        "名字。",
    ),
    _mistake(
        "other-name",
        _OtherName,
        "The computation is right, but your norm has another name than the task gives it. Weights are saved and "
        "loaded by name.",
        "计算是对的，但归一化层的名字与题目规定的不同。权重是按名字保存和加载的。",
    ),
    _mistake(
        "affine-missing",
        _WithoutAffine,
        "Your norm has no learned scale and shift.",
        "你的归一化层没有可学习的缩放和平移。",
    ),
    _mistake(
        "norm-unbiased",
        _normed_by(normalising(unbiased)),
        "The addition is right. What is off comes from the norm inside: its variance divides by one less than the "
        "number of features. Mend your LayerNorm first.",
        "相加是对的。问题出在里面的归一化：它的方差除以的是特征数减一。请先改好你的 LayerNorm。",
    ),
    _mistake(
        "norm-eps-outside",
        _normed_by(normalising(eps_outside)),
        "The addition is right. What is off comes from the norm inside: its eps is added after the root. Mend your "
        "LayerNorm first.",
        "相加是对的。问题出在里面的归一化：它的 eps 加在了开方之后。请先改好你的 LayerNorm。",
    ),
    _mistake(
        "input-changed",
        _InPlace,
        "Your module changes x in place (`+=` does). Make a new tensor.",
        "你的模块原地改动了 x（+= 就会这样）。请生成新的张量。",
    ),
)
